"""A base under speed control: how it follows the twists it is sent, with dead time, lag and the droop of friction.

The loops of the wheels answer a command and hold the answer against friction (systems 33, 35). For a body twist V
behind the twist u that was sent, axis by axis:

    r' = (u(t - dead time) - r) / lag                what the loops are asked for
    e'' + b e' + s e = -a(V) - (1 - feed) r',  V = r + e'
    M a(V) = friction(V) + m Omega x V               M: effective inertia

e' is what the base lacks of r. Three kinds of loops are of this form:

- P (s = 0): friction takes a / b of the speed for as long as it acts. A servo of gain kv on each wheel loses F / kv.
- PI (s > 0): the speed comes back, and the base lags by a / s [m] at constant speed, which at every start, stop and
  reversal adds to the delay: 10 mm on a slow youBot. `integral` is 4 s / b^2: 1 is critically damped.
- With `feed` 1 the loops know the inertia and add the torque for r'; b is the same for all axes. With `feed` 0 each
  wheel has a servo of its own: b and s of an axis are the gains over its inertia, and P loops add 1 / b to the lag.

Only friction over inertia shows in a motion: the friction here is in units of the inertia it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, cos, exp, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Indices, Vector, array, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics, accelerate, friction_forces
from youbot_dynamics.errors import InputError
from youbot_dynamics.frozen import MadeOfArguments

STEP = 2e-3  # [s] longest a step should be: less than commands are apart, a fraction of the loops' time constants

# Layout of the state vector.
POSE = slice(0, 3)  # x, y, yaw [m, m, rad]
ANSWER = slice(3, 6)  # r, body twist [m/s, m/s, rad/s]
HELD_BACK = slice(6, 9)  # e, in the body frame [m, m, rad]
HELD_BACK_RATE = slice(9, 12)  # e' [m/s, m/s, rad/s]
STATE_SIZE = 12


class DriveConstants(NamedTuple):
    """A driven base in numbers. Loops unpack it first: each look into a tuple of arrays costs them more than a tanh.

    Args:
        dead_times: (3,) of x, y, yaw [s].
        lag: time constant of the answer [s], 0 for none.
        damping: (3,) b of each axis [1/s], 0 for loops that friction does not move.
        stiffness: (3,) s of each axis [1/s2], 0 for loops without integral.
        unfed: (3, 3) what an acceleration of the answer adds to a: 0 for loops that are fed its torque.
        inverse_inertia: (3, 3) of the effective inertia.
        mass: of the body [kg].
        centre: (2,) of mass [m].
        wheels_of_twist: (n, 3).
        positions: (n, 2) wheel centres [m].
        roller_gains: (n,) |1/cos d|.
        wheel_coulomb: F1 [N m].
        roller_coulomb: F2 / r [N].
        viscous: (2,) [N s/m].
    """

    dead_times: Vector
    lag: float
    damping: Vector
    stiffness: Vector
    unfed: Vector
    inverse_inertia: Vector
    mass: float
    centre: Vector
    wheels_of_twist: Vector
    positions: Vector
    roller_gains: Vector
    wheel_coulomb: float
    roller_coulomb: float
    viscous: Vector


_NO_INTEGRAL = 1e-6  # 4 s / b^2 below which s counts as 0: its time constant is a million times that of b


@compiled
def write_droop(damping: float, stiffness: float, dt: float, rows: Vector) -> None:
    """Write the rows (2, 3) that take (e, e', a) to e and to e' after a step under a constant a.

    Exact for e'' + b e' + s e = -a.

    Args:
        damping: b [1/s], positive.
        stiffness: s [1/s2], 0 or positive.
        dt: step [s].
        rows: written.
    """
    half = 0.5 * damping
    if stiffness <= _NO_INTEGRAL * half * half:
        fade = exp(-damping * dt)
        moved = (1.0 - fade) / damping
        rows[0, 0], rows[0, 1], rows[0, 2] = 1.0, moved, -(dt - moved) / damping
        rows[1, 0], rows[1, 1], rows[1, 2] = 0.0, fade, -moved
        return
    apart = half * half - stiffness
    if abs(apart) * dt * dt < 1e-8:
        even = exp(-half * dt)
        odd = dt * even
    elif apart > 0.0:
        root = sqrt(apart)
        slow, fast = exp((root - half) * dt), exp(-(root + half) * dt)
        even, odd = 0.5 * (slow + fast), 0.5 * (slow - fast) / root
    else:
        root = sqrt(-apart)
        fade = exp(-half * dt)
        even, odd = fade * cos(root * dt), fade * sin(root * dt) / root
    rows[0, 0], rows[0, 1] = even + half * odd, odd
    rows[1, 0], rows[1, 1], rows[1, 2] = -stiffness * odd, even - half * odd, -odd
    rows[0, 2] = (rows[0, 0] - 1.0) / stiffness


@compiled
def write_inverse_droop(damping: float, stiffness: float, fed: bool, dt: float, rows: Vector) -> None:
    """Write the rows (2, 3) of `write_droop` for a twist V that is known.

    Loops that are fed keep e'' + b e' + s e = -a. For the others r' = V' - e'', which leaves b e' + s e = -(a + V'),
    and the third column is of a + V'.

    Args:
        damping: b [1/s], positive.
        stiffness: s [1/s2], 0 or positive.
        fed: whether they are.
        dt: step [s].
        rows: written.
    """
    if fed:
        write_droop(damping, stiffness, dt, rows)
        return
    fade = exp(-stiffness / damping * dt)
    rows[:] = 0.0
    rows[0, 0], rows[0, 2] = fade, -dt / damping if fade == 1.0 else (fade - 1.0) / stiffness


@compiled
def _write_acting(sent: Vector, dead_times: Vector, time: float, place: Indices) -> None:
    """Write which command acts on each axis (3,) at a time [s], -1 before the first one."""
    for axis in range(3):
        place[axis] = len(sent) - 1
        while place[axis] >= 0 and sent[place[axis]] > time - dead_times[axis]:
            place[axis] -= 1


@compiled
def follow(
    constants: DriveConstants,
    state: Vector,
    begin: float,
    end: float,
    longest: float,
    sent: Vector,
    twists: Vector,
    moments: Vector,
    poses: Vector,
) -> None:
    """Advance a driven base from `begin` to `end` [s] under the twists it was sent, each held until the next one.

    Args:
        constants: of the base.
        state: (12,) at `begin`; that at `end` on return.
        begin: [s].
        end: [s], not before `begin`.
        longest: a step may be [s].
        sent: (c,) times of the commands, increasing [s]; before the first one the command is zero.
        twists: (c, 3) [m/s, m/s, rad/s].
        moments: (k,) increasing [s]; those from `begin` to `end` are looked at.
        poses: (k, 3) pose at each of them, linear within a step; rows of the others stay.
    """
    dead, lag, damping, stiffness, unfed, inverse, mass, centre, rows, places, gains, of_wheels, of_rollers, viscous = (
        constants
    )
    steps = max(1, int(ceil((end - begin) / longest - 1e-9)))
    dt = (end - begin) / steps
    if dt <= 0.0:
        return
    droops, droop = damping[0] > 0.0, np.zeros((3, 2, 3))
    if droops:
        for axis in range(3):
            write_droop(damping[axis], stiffness[axis], dt, droop[axis])
    decay = exp(-dt / lag) if lag > 0.0 else 0.0
    fading = lag * (1.0 - decay) / dt
    none = np.zeros(max(3, len(places)))
    forces, pull, twist, before = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    command, last, between, change = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    place = np.zeros(3, np.int64)
    _write_acting(sent, dead, begin, place)
    look = np.searchsorted(moments, begin)
    for step in range(steps):
        now = begin + step * dt
        for axis in range(3):
            # Mean of the delayed command over the step; commands are further apart than steps are long.
            first = now - dead[axis]
            k = place[axis]
            while k + 1 < len(sent) and sent[k + 1] <= first:
                k += 1
            place[axis] = k
            held = twists[k, axis] if k >= 0 else 0.0
            if k + 1 < len(sent) and sent[k + 1] < first + dt:
                share = (sent[k + 1] - first) / dt
                held = held * share + twists[k + 1, axis] * (1.0 - share)
            command[axis] = held
            twist[axis] = state[3 + axis] + state[9 + axis]
            before[axis] = state[axis]
        if droops:
            # At the middle of the step, where its twist would be if it went on as in the last one.
            for axis in range(3):
                between[axis] = twist[axis] + 0.5 * (twist[axis] - last[axis]) if step > 0 else twist[axis]
                last[axis] = twist[axis]
            vx, vy, wz = between[0], between[1], between[2]
            friction_forces(vx, vy, wz, rows, places, gains, of_wheels, of_rollers, viscous, none, forces)
            accelerate(vx, vy, wz, inverse, mass, centre[0], centre[1], none, forces, pull)
        for axis in range(3):
            # Mean over the step of the answer, and of the droop's rate.
            away = state[3 + axis] - command[axis]
            twist[axis] = command[axis] + away * fading
            state[3 + axis] = command[axis] + away * decay
            change[axis] = away * (decay - 1.0) / dt
        if droops:
            for axis in range(3):
                held, rate = state[6 + axis], state[9 + axis]
                against = -pull[axis]
                for other in range(3):
                    against += unfed[axis, other] * change[other]
                row = droop[axis]
                state[6 + axis] = row[0, 0] * held + row[0, 1] * rate + row[0, 2] * against
                state[9 + axis] = row[1, 0] * held + row[1, 1] * rate + row[1, 2] * against
                twist[axis] += (state[6 + axis] - held) / dt
        # The chord of the arc: exact on SE(2) for a constant twist; of a small turn sin(a)/a is 1 - a^2/6.
        half = 0.5 * dt * twist[2]
        yaw, chord = state[2] + half, dt * (1.0 - half * half / 6.0)
        state[0] += chord * (cos(yaw) * twist[0] - sin(yaw) * twist[1])
        state[1] += chord * (sin(yaw) * twist[0] + cos(yaw) * twist[1])
        state[2] += dt * twist[2]
        while look < len(moments) and moments[look] <= now + dt + 1e-12:
            part = min(1.0, (moments[look] - now) / dt)
            for axis in range(3):
                poses[look, axis] = before[axis] + part * (state[axis] - before[axis])
            look += 1
    # Of stamps of today a rounded sum of steps can fall short of the end by 0.2 us.
    while look < len(moments) and moments[look] <= end:
        for axis in range(3):
            poses[look, axis] = state[axis]
        look += 1


@dataclass(frozen=True, eq=False)
class DrivenBase(MadeOfArguments):
    """A base whose wheels are under speed control.

    Args:
        dynamics: inertia and friction; of these only friction over inertia matters.
        dead_times: (3,) of x, y, yaw [s].
        lag: time constant of the answer to a command [s], 0 for none.
        rate: half of b forward [1/s], 0 where friction does not matter or is not known.
        turn_factor: how much more friction turns count for than the yaw inertia of `dynamics` says: it is rarely known.
        integral: 4 s / b^2 forward [1], 0 for P loops, 1 for PI loops that are critically damped.
        feed: 1 for loops that are fed the torque for an acceleration, 0 for a servo on each wheel alone.

    Raises:
        InputError: dead times that are not three numbers of 0 or more, a feed that is neither 0 nor 1.
        ModelError: a negative lag, rate or integral.
    """

    dynamics: MecanumDynamics
    dead_times: Vector
    lag: float
    rate: float
    turn_factor: float = 1.0
    integral: float = 1.0
    feed: float = 1.0
    _constants: DriveConstants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the numbers and keep them for the compiled loops."""
        dead = array("dead_times", self.dead_times, (3,))
        if np.any(dead < 0.0):
            raise InputError("dead_times", got=str(dead.tolist()), expected="0 s or more")
        if self.feed not in (0.0, 1.0):
            raise InputError("feed of the base's loops", got=str(self.feed), expected="0 or 1")
        object.__setattr__(self, "dead_times", read_only(dead.copy()))
        object.__setattr__(self, "lag", number("lag of the base", self.lag, "s", low=0.0))
        object.__setattr__(self, "rate", number("rate of the base's loops", self.rate, "1/s", low=0.0))
        object.__setattr__(self, "integral", number("integral of the base's loops", self.integral, "1", low=0.0))
        factor = number("turn_factor of the base", self.turn_factor, "1", above=0.0)
        object.__setattr__(self, "turn_factor", factor)
        model = self.dynamics
        inertia, wheels = model.effective_inertia.copy(), model.base.inverse_matrix
        if self.feed == 1.0:
            inverse, unfed, speeds = np.linalg.inv(inertia), np.zeros((3, 3)), np.ones(3)
            inverse[2] *= factor
        else:
            # Servos on the wheels give an axis J'J of their gain, whatever its inertia.
            inertia[2, 2] /= factor
            inverse = np.diag(1.0 / np.diag(inertia))
            unfed, speeds = inverse @ inertia, np.diag(inverse) * np.sum(wheels**2, axis=0)
        damping = 2.0 * self.rate * speeds / speeds[0]
        constants = DriveConstants(
            self.dead_times,
            self.lag,
            damping,
            self.integral * self.rate * damping / 2.0,
            unfed,
            np.asarray(inverse, dtype=np.float64),
            model.mass,
            np.array(model.centre_of_mass, dtype=float),
            np.array(wheels),
            np.array(model.base.positions),
            np.abs(1.0 / np.cos(model.base.roller_angles)),
            model.wheel_coulomb,
            model.roller_coulomb,
            np.array([model.viscous_x, model.viscous_y]),
        )
        object.__setattr__(self, "_constants", constants)

    @property
    def memory(self) -> float:
        """Slowest time constant with which a droop fades [s]; e of P loops stays, and moves nothing."""
        if self.rate == 0.0:
            return 0.0
        numbers = self._constants
        h, s = 0.5 * numbers.damping, numbers.stiffness
        slow = h - np.sqrt(np.maximum(h * h - s, 0.0))
        return float(1.0 / np.min(np.where(slow > _NO_INTEGRAL * h, slow, 2.0 * h)))

    @property
    def answer_lag(self) -> float:
        """Time constant of the answer forward [s]: that of P servos on the wheels adds to `lag`."""
        servo = self.feed == 0.0 and self.integral == 0.0 and self.rate > 0.0
        return self.lag + (0.5 / self.rate if servo else 0.0)

    @property
    def constants(self) -> DriveConstants:
        """Numbers for the compiled loops."""
        return self._constants

    def path(self, sent: ArrayLike, twists: ArrayLike, moments: ArrayLike) -> Vector:
        """Poses (k, 3) at the moments (k,) [s], from rest at the origin at the first command.

        Args:
            sent: (c,) times of the commands, increasing [s].
            twists: (c, 3) body twists, each held until the next.
            moments: (k,) increasing, none before the first command.

        Raises:
            InputError: shapes that do not fit, or moments before the first command.
        """
        times = array("sent", sent, (None,))
        commands = array("twists", twists, (len(times), 3))
        at = array("moments", moments, (None,))
        poses = np.zeros((len(at), 3))
        if len(at) == 0 or len(times) == 0:
            return poses
        if at[0] < times[0]:
            raise InputError("moments", got=f"{at[0]:g} s", expected=f"none before the first command, {times[0]:g} s")
        state, end = np.zeros(STATE_SIZE), float(at[-1]) + STEP
        follow(self._constants, state, float(times[0]), end, STEP, times, commands, at, poses)
        return poses
