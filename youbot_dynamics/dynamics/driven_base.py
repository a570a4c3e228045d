"""A base under speed control: its motion for given twist commands, with dead time, lag and the droop due to friction.

For a body twist V and a commanded twist u, axis by axis:

    r' = (u(t - dead time) - r) / lag                reference of the speed loops
    e'' + b e' + s e = -a(V) - (1 - feed) r',  V = r + e'
    M a(V) = friction(V) + m Omega x V               M: effective inertia

e' is the deviation of the twist from r. This form covers three kinds of loops:

- P (s = 0): friction costs a / b of the speed as long as it acts. A servo of gain kv on each wheel loses F / kv.
- PI (s > 0): the speed recovers, and the base lags by a / s [m] at constant speed. This adds to the delay at every
  start, stop and reversal: 10 mm on a slow youBot. `integral` is 4 s / b^2; 1 is critically damped.
- With `feed` 1 the loops know the inertia and add the torque for r'; b is the same for all axes. With `feed` 0 each
  wheel has its own servo: b and s of an axis are the gains over its inertia, and P loops add 1 / b to the lag. With a
  centre of mass off the middle M is not diagonal, D its diagonal: the equation of e is then D^-1 M (e'' + r') + b e' +
  s e = D^-1 M (-a). As s is a multiple of b, it falls apart into three modes q, e = W q with W' D b W = L, W' M W = 1.

Motion alone determines only the ratio of friction to inertia, so the friction refers to the inertia given here.
Source: systems 33, 35.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, cos, exp, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from youbot_dynamics.arrays import Indices, MadeOfArguments, Vector, array, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics, accelerate, friction_forces
from youbot_dynamics.errors import InputError

STEP = 2e-3  # [s] longest sensible step: shorter than the command period and the loops' time constants

# Layout of the state vector.
POSE = slice(0, 3)  # x, y, yaw [m, m, rad]
# 3 to 5: r, body twist [m/s, m/s, rad/s]; 6 to 8: e, in the body frame [m, m, rad]; 9 to 11: e' [m/s, m/s, rad/s]
STATE_SIZE = 12


class DriveConstants(NamedTuple):
    """Constants of a driven base. Loops unpack them first: an access to a tuple of arrays costs more than a tanh."""

    dead_times: Vector  # (3,) of x, y, yaw [s]
    lag: float  # time constant of r after a command [s], 0 for none
    damping: Vector  # (3,) b of each axis [1/s], 0 for loops that friction does not disturb
    stiffness: Vector  # (3,) s of each axis [1/s2], 0 for loops without integral
    unfed: Vector  # (3, 3) factor D^-1 M of r' in the equation for e; 0 for loops with feed-forward of the torque
    modes: Vector  # (3, 3) W, columns are modes; the unit matrix for loops with feed-forward
    to_modes: Vector  # (3, 3) its inverse
    force_to_modes: Vector  # (3, 3) W' D, from the right side of the equation for e to that of the modes
    mode_damping: Vector  # (3,) L [1/s]; the stiffness is the same multiple of it as s of b
    inverse_inertia: Vector  # (3, 3) of the effective inertia
    mass: float  # of the body [kg]
    centre: Vector  # (2,) of mass [m]
    wheels_of_twist: Vector  # (n, 3) matrix from twist to wheel speeds
    positions: Vector  # (n, 2) wheel centres [m]
    drives: Vector  # (n, 2) unit vectors along which the wheels drive
    roller_gains: Vector  # (n,) |1/cos d|
    wheel_coulomb: float  # F1 [N m]
    roller_coulomb: float  # F2 / r [N]
    viscous: Vector  # (2,) [N s/m]


_CLOSEST = 0.9  # largest coupling of turns with translations: at 1 the inertia is no longer positive definite
_NO_INTEGRAL = 1e-6  # 4 s / b^2 below which s counts as 0: its time constant is a million times that of b


@compiled
def write_droop(damping: float, stiffness: float, dt: float, rows: Vector) -> None:
    """Write the matrix (2, 3) from (e, e', a) to e and e' after a step of e'' + b e' + s e = -a with constant a, exact.

    Args:
        damping: b [1/s], positive.
        stiffness: s [1/s2], 0 or positive.
        dt: step [s].
        rows: output.
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
    """Write the matrix (2, 3) of `write_droop` for a given twist V.

    Loops with feed-forward obey e'' + b e' + s e = -a. For the others r' = V' - e'', which leaves b e' + s e = -(a +
    V'); the third column then multiplies a + V'.

    Args:
        damping: b [1/s], positive.
        stiffness: s [1/s2], 0 or positive.
        fed: whether the loops have the feed-forward.
        dt: step [s].
        rows: output.
    """
    if fed:
        write_droop(damping, stiffness, dt, rows)
        return
    fade = exp(-stiffness / damping * dt)
    rows[:] = 0.0
    rows[0, 0], rows[0, 2] = fade, -dt / damping if fade == 1.0 else (fade - 1.0) / stiffness


@compiled
def _write_acting(sent: Vector, dead_times: Vector, time: float, place: Indices) -> None:
    """Write the index of the command that acts on each axis (3,) at a time [s]; -1 before the first one."""
    for axis in range(3):
        place[axis] = len(sent) - 1
        while place[axis] >= 0 and sent[place[axis]] > time - dead_times[axis]:
            place[axis] -= 1


@compiled
def _advance_droop(
    unfed: Vector,
    modes: Vector,
    to_modes: Vector,
    to_forces: Vector,
    droop: Vector,
    dt: float,
    pull: Vector,
    change: Vector,
    work: Vector,
    state: Vector,
    twist: Vector,
) -> None:
    """Advance e and e' in `state` (12,) by a step in modes, and add the mean of e' over it to `twist` (3,).

    The first four are of the base, `to_forces` is `force_to_modes`; droop (3, 2, 3) are the matrices of the modes
    (`write_droop`), dt [s] is the step, pull (3,) is a(V), change (3,) the mean of r' over the step, work (3, 3) work
    space.
    """
    for axis in range(3):
        work[0, axis] = -pull[axis]
        twist[axis] -= state[6 + axis] / dt
        for other in range(3):
            work[0, axis] += unfed[axis, other] * change[other]
    for axis in range(3):
        held, rate, push = 0.0, 0.0, 0.0
        for other in range(3):
            held += to_modes[axis, other] * state[6 + other]
            rate += to_modes[axis, other] * state[9 + other]
            push += to_forces[axis, other] * work[0, other]
        row = droop[axis]
        work[1, axis] = row[0, 0] * held + row[0, 1] * rate + row[0, 2] * push
        work[2, axis] = row[1, 0] * held + row[1, 1] * rate + row[1, 2] * push
    for axis in range(3):
        state[6 + axis], state[9 + axis] = 0.0, 0.0
        for other in range(3):
            state[6 + axis] += modes[axis, other] * work[1, other]
            state[9 + axis] += modes[axis, other] * work[2, other]
        twist[axis] += state[6 + axis] / dt


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
    """Advance a driven base from `begin` to `end` [s] under twist commands, each valid until the next one.

    Args:
        constants: of the base.
        state: (12,) at `begin`; on return at `end`.
        begin: [s].
        end: [s], not before `begin`.
        longest: largest step [s].
        sent: (c,) times of the commands, increasing [s]; before the first one the command is zero.
        twists: (c, 3) [m/s, m/s, rad/s].
        moments: (k,) increasing [s]; poses are written for those from `begin` to `end`.
        poses: (k, 3) output: pose at each of these times, linear within a step; other rows are unchanged.
    """
    dead, lag, damping, inverse = constants.dead_times, constants.lag, constants.damping, constants.inverse_inertia
    mass, centre, rows, places = constants.mass, constants.centre, constants.wheels_of_twist, constants.positions
    drives, gains, viscous = constants.drives, constants.roller_gains, constants.viscous
    of_wheels, of_rollers = constants.wheel_coulomb, constants.roller_coulomb
    steps = max(1, int(ceil((end - begin) / longest - 1e-9)))
    dt = (end - begin) / steps
    if dt <= 0.0:
        return
    droops, droop = damping[0] > 0.0, np.zeros((3, 2, 3))
    if droops:
        for axis in range(3):
            mode_damping = constants.mode_damping[axis]
            write_droop(mode_damping, constants.stiffness[0] / damping[0] * mode_damping, dt, droop[axis])
    decay = exp(-dt / lag) if lag > 0.0 else 0.0
    fading = lag * (1.0 - decay) / dt
    none, forces, pull, twist, before = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    command, last, between, change = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    unfed, modes, to_modes, to_forces = constants.unfed, constants.modes, constants.to_modes, constants.force_to_modes
    work = np.zeros((3, 3))
    place = np.zeros(3, np.int64)
    _write_acting(sent, dead, begin, place)
    look = np.searchsorted(moments, begin)
    for step in range(steps):
        now = begin + step * dt
        for axis in range(3):
            # Mean of the delayed command over the step; commands are further apart than a step.
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
            # Middle of the step, extrapolated with the twist of the last step.
            for axis in range(3):
                between[axis] = twist[axis] + 0.5 * (twist[axis] - last[axis]) if step > 0 else twist[axis]
                last[axis] = twist[axis]
            friction_forces(between, rows, places, drives, gains, of_wheels, of_rollers, viscous, forces)
            accelerate(between, inverse, mass, centre, none, forces, pull)
        for axis in range(3):
            # Means over the step of r and of e'.
            away = state[3 + axis] - command[axis]
            twist[axis] = command[axis] + away * fading
            state[3 + axis] = command[axis] + away * decay
            change[axis] = away * (decay - 1.0) / dt
        if droops:
            _advance_droop(unfed, modes, to_modes, to_forces, droop, dt, pull, change, work, state, twist)
        # Chord of the arc, exact on SE(2) for a constant twist; for a small turn sin(a)/a is 1 - a^2/6.
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
    # With stamps of the present date a rounded sum of steps can end 0.2 us early.
    while look < len(moments) and moments[look] <= end:
        for axis in range(3):
            poses[look, axis] = state[axis]
        look += 1


@dataclass(frozen=True, eq=False)
class DrivenBase(MadeOfArguments):
    """A base whose wheels are under speed control.

    Raises:
        InputError: dead times that are not three numbers of 0 or more, a feed that is neither 0 nor 1.
        ModelError: a negative lag, rate or integral.
    """

    dynamics: MecanumDynamics  # inertia and friction; only their ratio matters here
    dead_times: Vector  # (3,) of x, y, yaw [s]
    lag: float  # time constant of r after a command [s], 0 for none
    rate: float  # half of b of the x axis [1/s], 0 if friction is negligible or unknown
    # effective inertia of turns of `dynamics` over the true one: the factor of friction in turns
    turn_factor: float = 1.0
    integral: float = 1.0  # 4 s / b^2 of the x axis [1], 0 for P loops, 1 for PI loops that are critically damped
    # 1 for loops with feed-forward of the torque for an acceleration, 0 for a plain servo on each wheel
    feed: float = 1.0
    _constants: DriveConstants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the values and prepare the constants for the compiled loops."""
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
        inertia[2, 2] /= factor
        if not (sideways := bool(model.base.free_axes[1])):  # fixed wheels hold it there: it has no part in the rest
            inertia[1, [0, 2]] = inertia[[0, 2], 1] = 0.0
        coupling = float(np.sum(inertia[2, :2] ** 2 / np.diag(inertia)[:2])) / inertia[2, 2]
        if coupling > _CLOSEST:  # a search may ask for what no body has
            inertia[2, :2] = inertia[:2, 2] = inertia[2, :2] * sqrt(_CLOSEST / coupling)
        modes = to_modes = force_to_modes = np.eye(3)
        if self.feed == 1.0:
            inverse, unfed, speeds = np.linalg.inv(inertia), np.zeros((3, 3)), np.ones(3)
        else:
            # Servos on the wheels give an axis J'J times their gain, for any inertia.
            diagonal = np.diag(inertia)
            inverse = np.diag(1.0 / diagonal)
            unfed, speeds = inverse @ inertia, np.sum(wheels**2, axis=0) / diagonal
        if not sideways:
            inverse[1, 1], speeds[1] = 0.0, speeds[0]
        damping = mode_damping = 2.0 * self.rate * speeds / speeds[0]
        if self.feed == 0.0 and self.rate > 0.0:
            gains = diagonal * damping
            mode_damping, modes = eigh(np.diag(gains), inertia)
            to_modes, force_to_modes = modes.T @ inertia, modes.T * diagonal
        constants = DriveConstants(
            self.dead_times,
            self.lag,
            damping,
            self.integral * self.rate * damping / 2.0,
            unfed,
            np.ascontiguousarray(modes),
            np.ascontiguousarray(to_modes),
            np.ascontiguousarray(force_to_modes),
            np.ascontiguousarray(mode_damping),
            np.asarray(inverse, dtype=np.float64),
            model.mass,
            np.array(model.centre_of_mass, dtype=float),
            np.array(wheels),
            np.array(model.base.positions),
            model.base.drives,
            model.base.roller_gains,
            model.wheel_coulomb,
            model.roller_coulomb,
            np.array([model.viscous_x, model.viscous_y]),
        )
        object.__setattr__(self, "_constants", constants)

    @property
    def memory(self) -> float:
        """Slowest time constant of the decay of a droop [s]; e of P loops does not decay but has no effect."""
        if self.rate == 0.0:
            return 0.0
        numbers = self._constants
        h, s = 0.5 * numbers.damping, numbers.stiffness
        slow = h - np.sqrt(np.maximum(h * h - s, 0.0))
        return float(1.0 / np.min(np.where(slow > _NO_INTEGRAL * h, slow, 2.0 * h)))

    @property
    def answer_lag(self) -> float:
        """Time constant of the response of the x axis [s]: P servos on the wheels add to `lag`."""
        servo = self.feed == 0.0 and self.integral == 0.0 and self.rate > 0.0
        return self.lag + (0.5 / self.rate if servo else 0.0)

    @property
    def constants(self) -> DriveConstants:
        """Constants for the compiled loops."""
        return self._constants

    def path(self, sent: ArrayLike, twists: ArrayLike, moments: ArrayLike) -> Vector:
        """Poses (k, 3) at the moments (k,) [s], from rest at the origin at the first command.

        Args:
            sent: (c,) times of the commands, increasing [s].
            twists: (c, 3) body twists, each valid until the next.
            moments: (k,) increasing, none before the first command.

        Raises:
            InputError: shapes that do not match, or moments before the first command.
        """
        # Copies, since `follow` would be compiled anew, for seconds, for arrays that cannot be written.
        times = array("sent", sent, (None,)).copy()
        commands = array("twists", twists, (len(times), 3)).copy()
        at = array("moments", moments, (None,)).copy()
        poses = np.zeros((len(at), 3))
        if len(at) == 0 or len(times) == 0:
            return poses
        if at[0] < times[0]:
            raise InputError("moments", got=f"{at[0]:g} s", expected=f"none before the first command, {times[0]:g} s")
        state, end = np.zeros(STATE_SIZE), float(at[-1]) + STEP
        follow(self._constants, state, float(times[0]), end, STEP, times, commands, at, poses)
        return poses
