"""The base of the twin in motion (system 35): motors, friction, wandering rollers, slip, in one compiled loop.

A wheel's row J_i says how fast it rolls at a body twist V. Where rollers are drawn, it wanders with the angle phi of
the roller on the floor off the bottom: R w = vx + t vy + (x t - y) wz with t = tan(d) / cos(phi) and
y = y_w + b tan(d) tan(phi), d the angle of the rollers, b the depth of their axes (system 31). With M_i the torque of
a wheel's motor (`drive_wheels`), f_i its friction, T_i what it passes to the floor, e_i the creep of its contact, 0
where it has grip,

    Jw w_i' = M_i - f_i - T_i,    w_i = J_i V + e_i T_i where |T_i| < G_i,    T_i = +-G_i where the wheel slides
    diag(m, m, I) V' = sum J_i' T_i - friction on the floor + m Omega (V_T, -V_L, 0)

A free roller takes force along its axis only, forward T / R, in all mu m g / n at most on n wheels: G_i = mu m g / n R
/ sqrt(1 + t^2). A base on mecanum wheels speeds up and brakes by mu g cos 45 deg = 5.5 m/s2. Loads do not shift between
wheels, and what a roller's friction takes of its grip is left out.

A step takes the rows and the centripetal term of its middle and the contacts of its end, and displaces everything by
its mean speed: the ledger of forces x displacements closes. Where the next roller comes to the floor, the row jumps
and the contact takes the blow without a bounce.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import copysign, cos, exp, floor, pi, sin, sqrt, tanh
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics import mecanum_dynamics
from youbot_dynamics.dynamics.mecanum_dynamics import WHEEL_SPEED_SCALE, friction_forces
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.roller_phase import RowConstants, write_row
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.base._readings import WheelLoop, drive_wheels, loop_of, quantised
from youbot_dynamics.simulation.truth import BaseTruth

_READ_RPM = 15.0  # of the motor: the velocity quantum of the driver


def counted_wheel_speeds(driver: Driver, wheel_speeds: ArrayLike) -> Vector:
    """Wheel speeds (4,) [rad/s] rounded to 1 motor rpm, 0.19 mm/s of travel, of the driver's velocity quantum of 15.

    Exact for a driver whose speeds have no quantum. Source: docs/robot_facts.md.
    """
    return quantised(np.asarray(wheel_speeds, dtype=float), driver.velocity_quantum / _READ_RPM)


WHEEL_COUNT = 4  # of the youBot


@dataclass(frozen=True)
class SlipEvent:
    """One wheel creeps over the floor, in proportion to the torque it passes on (linear creep).

    While it carries its part of the base's load at steady speed, `share` of its turn is slip: it turns
    1 / (1 - share) times as far as it rolls. Wheels with grip relieve it, then it slips by less; speeding up by more;
    braked it turns less than it rolls; without torque it rolls. The motors know their wheels only: they keep these to
    the command, and the base comes short of it.

    Raises:
        InputError: no wheel of this robot, or numbers out of range.
    """

    wheel: int  # 0 to 3: FL, FR, RL, RR
    share: float  # 0 to 0.95
    start: float  # simulated time [s]
    end: float  # simulated time, not before start [s]

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.wheel not in range(WHEEL_COUNT):
            raise InputError("wheel of a slip event", got=str(self.wheel), expected=f"0 to {WHEEL_COUNT - 1}")
        if not 0.0 <= self.share <= 0.95:
            raise InputError("share of a slip event", got=f"{self.share:g}", expected="0 to 0.95")
        if not self.start <= self.end:
            raise InputError("end of a slip event", got=f"{self.end:g} s", expected=f"not before {self.start:g} s")


def lost_shares(events: Iterable[SlipEvent], wheels: int, start: float, dt: float, steps: int) -> Vector:
    """Mean share (steps, wheels) lost by each wheel over each of `steps` intervals of `dt` [s] from `start` [s] on.

    Of events at one time the largest counts.

    Raises:
        InputError: a wheel that this base does not have.
    """
    shares = np.zeros((steps, wheels))
    for event in events:
        if event.wheel >= wheels:
            raise InputError("wheel of a slip event", got=str(event.wheel), expected=f"0 to {wheels - 1}")
        if event.start < start + steps * dt and event.end > start:
            edges = start + dt * np.arange(steps + 1)
            inside = np.minimum(edges[1:], event.end) - np.maximum(edges[:-1], event.start)
            lost = event.share * np.maximum(inside, 0.0) / dt
            shares[:, event.wheel] = np.maximum(shares[:, event.wheel], lost)
    return shares


STEP = 1e-3  # [s] of simulated time

# Layout of the state vector.
POSE = slice(0, 3)  # x, y, yaw in the world [m, m, rad]
TWIST = slice(3, 6)  # body twist [m/s, m/s, rad/s]
# Then, each of n wheels:
# REFERENCE: first-order answer of the motor loops to the delayed command [rad/s]
# LAGGING: integral of reference - speeds of the wheels [rad]
# WHEELS: wheel angles [rad], positive forward
# NOISE: wandering torque of the rolling wheels: rollers, joints between them, floor [N m]
# REPORTED: wheel speeds as the motor controllers filter them [rad/s]
# MOTORS: torques of the motors at the wheels, held over the last step [N m]
# SPEEDS: wheel speeds [rad/s]
REFERENCE, LAGGING, WHEELS, NOISE, REPORTED, MOTORS, SPEEDS = range(7)


def state_size(wheels: int) -> int:
    """Length of the state of a base on this many wheels."""
    return 6 + 7 * wheels


def of_wheels(part: int, wheels: int) -> slice:
    """Place of a part of the state that each of the wheels has, such as SPEEDS."""
    return slice(6 + part * wheels, 6 + (part + 1) * wheels)


# Layout of the ledger [J].
MOTOR_WORK, WHEEL_HEAT, FLOOR_HEAT, SLIP_HEAT = range(4)
LEDGER_SIZE = 4

# Rows of what a step finds at the wheels, (7, n): torque of friction f [N m], creep per torque e [rad/(s N m)], torque
# on the floor per torque of a wheel that does not creep, torque without the floor M - f and what holds the speed [N m],
# angle turned [rad], torque of a wheel that slides, 0 where it has grip, and the largest G [N m].
RUB, CREEP, GRIP, FREE, TURNED, SLIDES, LIMIT = range(7)

_BUMP_ANGLE = 0.3  # correlation of the wandering torque over the turn of the wheel [rad]: a third of a roller pitch
_LEAST_LOAD = 0.02  # [N m] chosen: keeps a contact from losing all its grip where the base rolls without a load
_PASSES = 2  # over a step, where rows depend on how far the wheels turn in it
_TRIES = 8  # at finding which wheels slide in a step; most steps need one
_GRAVITY = 9.81  # [m/s2]


class BaseConstants(NamedTuple):
    """One base in numbers."""

    mass: float  # m, of everything [kg]
    yaw_inertia: float  # I, of everything [kg m2]
    wheel_inertia: float  # Jw of a wheel with its reflected rotor [kg m2]
    # the motors. Their loops use the effective inertia and do not know what the wheels do beside a motion of the
    # base.
    loop: WheelLoop
    grips: Vector  # G (n,), largest torques the wheels pass to the floor [N m]
    rows: RowConstants  # of the wheels with their rollers; a pitch of 0 where the contact does not wander
    drives: Vector  # (n, 2) unit vectors along which the wheels drive
    roller_gains: Vector  # (n,) speed of a roller's rim over that of its wheel's centre across the drive [1]
    mean_rows: Vector  # (n, 3) rows J of the mean kinematics [rad/m, rad/m, 1]
    twist_of_wheels: Vector  # (3, n) least-squares inverse of the mean rows
    speed_lag: float  # time constant of the reported speeds [s]
    # standard deviation of the wandering torque [N m]; it acts on rolling wheels only, and up to F1
    torque_noise: float
    wheel_coulomb: float  # F1 [N m]
    roller_coulomb: float  # F2 / r [N]
    viscous: Vector  # (2,) xi_L, xi_T [N s/m]


def effective_inertia(truth: BaseTruth) -> Vector:
    """Mass matrix (3, 3) felt by the motors of this robot; see `mecanum_dynamics.effective_inertia` (D-003-10)."""
    return mecanum_dynamics.effective_inertia(truth.mecanum(), truth.mass, truth.yaw_inertia, truth.wheel_inertia)


def constants_of(truth: BaseTruth) -> BaseConstants:
    """Numbers of one robot as the loop takes them."""
    base = truth.mecanum()
    tangents, count = base.slants, len(base.radii)
    pitch = 2.0 * pi / truth.rollers if truth.rollers > 0.0 else 0.0
    spread = base.forward_matrix
    # A wheel without inertia has no speed of its own to slide at.
    rows = base.inverse_matrix
    grips = truth.floor_friction * truth.mass * _GRAVITY / count / np.hypot(rows[:, 0], rows[:, 1])
    return BaseConstants(
        mass=float(truth.mass),
        yaw_inertia=float(truth.yaw_inertia),
        wheel_inertia=float(truth.wheel_inertia),
        loop=loop_of(spread.T @ effective_inertia(truth) @ spread, truth),
        grips=grips if truth.wheel_inertia > 0.0 else np.full(count, np.inf),
        rows=RowConstants(
            positions=base.positions.copy(),
            radii=base.radii.copy(),
            along=base.along.copy(),
            slants=tangents * truth.wander_scale(),
            depths=truth.roller_depth * tangents,
            pitch=pitch,
            phases=pitch * np.array(truth.roller_phase[:count]),
            sideways=bool(base.free_axes[1]),
        ),
        drives=base.drives,
        roller_gains=np.full(count, sqrt(2.0)) if base.all_forward else base.roller_gains,
        mean_rows=base.inverse_matrix.copy(),
        twist_of_wheels=base.forward_matrix.copy(),
        speed_lag=float(truth.speed_lag),
        torque_noise=float(truth.torque_noise),
        wheel_coulomb=float(truth.wheel_coulomb),
        roller_coulomb=float(truth.roller_coulomb),
        viscous=np.array([truth.viscous_x, truth.viscous_y], dtype=float),
    )


@compiled
def write_rows(base: BaseConstants, wheel_angles: Vector, rows: Vector, rollers: Vector) -> None:
    """Write the rows (n, 3) [rad/m, rad/m, 1] and the rollers (n,) on the floor, counted, at angles (n,) [rad]."""
    for i in range(len(wheel_angles)):
        rollers[i] = floor((wheel_angles[i] + base.rows.phases[i]) / base.rows.pitch + 0.5)
        write_row(base.rows, i, wheel_angles[i], rows[i])


@compiled
def solve3(a: Vector, b: Vector, x: Vector) -> None:
    """Write x (3,) of a x = b, a (3, 3) regular, b (3,), by Cramer's rule."""
    c0 = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1]
    c1 = a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2]
    c2 = a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0]
    share = 1.0 / (a[0, 0] * c0 + a[0, 1] * c1 + a[0, 2] * c2)
    x[0] = share * (
        b[0] * c0 + b[1] * (a[0, 2] * a[2, 1] - a[0, 1] * a[2, 2]) + b[2] * (a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1])
    )
    x[1] = share * (
        b[0] * c1 + b[1] * (a[0, 0] * a[2, 2] - a[0, 2] * a[2, 0]) + b[2] * (a[0, 2] * a[1, 0] - a[0, 0] * a[1, 2])
    )
    x[2] = share * (
        b[0] * c2 + b[1] * (a[0, 1] * a[2, 0] - a[0, 0] * a[2, 1]) + b[2] * (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])
    )


@compiled
def change_twist(
    mass: float,
    yaw_inertia: float,
    stiffness: float,
    dt: float,
    state: Vector,
    ground: Vector,
    middle: Vector,
    after: Vector,
    wheels: Vector,
    sideways: bool,
    matrix: Vector,
    right: Vector,
    gain: Vector,
) -> None:
    """Solve a step of `dt` [s] for the change of the twist, and for which wheels slide in it.

    Without `sideways`, fixed wheels hold the base across their drive by a force that does no work. Mass m [kg], yaw
    inertia I [kg m2] and stiffness Jw / dt [N m s]; the state and wheels (7, n) as laid out above, of which turned and
    slides are written; friction on the floor `ground` (3,) [N, N, N m]; rows of the middle and of the end of the step
    (n, 3) [rad/m, rad/m, 1]; work space matrix (3, 3) and right (3,). The change `gain` (3,) [m/s, m/s, rad/s] is
    written.
    """
    vx, vy, wz = state[3], state[4], state[5]
    count, speeds = len(middle), state[6 + SPEEDS * len(middle) :]
    # m Omega (V_T, -V_L) of the middle does no work over the step.
    spin = mass * dt * wz
    for _ in range(_TRIES):
        matrix[:] = 0.0
        matrix[0, 0] = matrix[1, 1] = mass
        matrix[2, 2] = yaw_inertia
        matrix[0, 1], matrix[1, 0] = -0.5 * spin, 0.5 * spin
        right[0] = spin * vy - dt * ground[0]
        right[1] = -spin * vx - dt * ground[1]
        right[2] = -dt * ground[2]
        for i in range(count):
            if wheels[SLIDES, i] != 0.0:
                for axis in range(3):
                    right[axis] += middle[i, axis] * dt * wheels[SLIDES, i]
                continue
            grip = wheels[GRIP, i]
            rolling = after[i, 0] * vx + after[i, 1] * vy + after[i, 2] * wz
            push = dt * grip * (wheels[FREE, i] - stiffness * rolling)
            for axis in range(3):
                right[axis] += middle[i, axis] * push
                for column in range(3):
                    matrix[axis, column] += dt * grip * stiffness * middle[i, axis] * after[i, column]
        if not sideways:
            matrix[1, :], matrix[:, 1], matrix[1, 1], right[1] = 0.0, 0.0, 1.0, 0.0
        solve3(matrix, right, gain)
        settled = True
        for i in range(count):
            rolling = after[i, 0] * (vx + gain[0]) + after[i, 1] * (vy + gain[1]) + after[i, 2] * (wz + gain[2])
            slides, creep = wheels[SLIDES, i], wheels[CREEP, i]
            if slides != 0.0:
                end = (wheels[FREE, i] - slides) / stiffness
                if (end - rolling) * slides < creep * slides * slides:
                    wheels[SLIDES, i], settled = 0.0, False
            else:
                traction = wheels[GRIP, i] * (wheels[FREE, i] - stiffness * rolling)
                end = rolling + creep * traction
                if abs(traction) > wheels[LIMIT, i]:
                    wheels[SLIDES, i], settled = copysign(wheels[LIMIT, i], traction), False
            wheels[TURNED, i] = 0.5 * dt * (speeds[i] + end)
        if settled:
            break


@compiled
def move(state: Vector, gain: Vector, dt: float) -> None:
    """Change the twist by a gain (3,), and the pose by the mean twist, so that it lags by nothing: an arc on SE(2)."""
    mx, my, mw = state[3] + 0.5 * gain[0], state[4] + 0.5 * gain[1], state[5] + 0.5 * gain[2]
    for axis in range(3):
        state[3 + axis] += gain[axis]
    heading = state[2] + 0.5 * mw * dt
    chord = 1.0 - (mw * dt) ** 2 / 24.0
    state[0] += dt * chord * (mx * cos(heading) - my * sin(heading))
    state[1] += dt * chord * (mx * sin(heading) + my * cos(heading))
    state[2] += dt * mw


@compiled
def advance(
    base: BaseConstants,
    commands: Vector,
    normals: Vector,
    slips: Vector,
    dt: float,
    powered: bool,
    state: Vector,
    ledger: Vector,
) -> None:
    """Advance the base in place by len(commands) steps of `dt`.

    The motion lags its command by more than dead time and `lag`: the loop compensates friction slowly. Figures:
    `BaseTruth`.
    Friction: `mecanum_dynamics.friction_forces` (D-003-9) with a torque that wanders as the wheels turn, by F1 at most
    so that friction never drives. The centre of mass is over the centre of the base; the real one lies 35 mm ahead,
    0.9 % of the yaw inertia.

    Args:
        base: its numbers.
        commands: (k, n) delayed wheel speeds, mean over each step [rad/s].
        normals: (k, n) standard normal numbers that drive the wandering torque.
        slips: (k, n) share of its turn that a wheel loses to slip while it carries its part L of the friction on the
            floor: e = share |w| / L, so that slip only ever costs energy.
        dt: step [s].
        powered: False lets the base coast.
        state: (6 + 7 n,) as laid out above; changed in place.
        ledger: (4,) work of the motors, heat in the wheels, on the floor and of slip and blows [J]; added to.
    """
    filter_share = 1.0 - exp(-dt / base.speed_lag) if base.speed_lag > 0.0 else 1.0
    mass, inertia, stiffness = base.mass, base.yaw_inertia, base.wheel_inertia / dt
    wanders = base.rows.pitch > 0.0
    before, after, middle = base.mean_rows.copy(), base.mean_rows.copy(), base.mean_rows.copy()
    count = commands.shape[1]
    rollers, others = np.zeros(count), np.zeros(count)
    parts = state[6:].reshape((7, count))
    reference, lagging, angles, bumps = parts[REFERENCE], parts[LAGGING], parts[WHEELS], parts[NOISE]
    filtered, motors, speeds = parts[REPORTED], parts[MOTORS], parts[SPEEDS]
    wheels, reached = np.zeros((7, count)), angles.copy()
    wheels[LIMIT] = base.grips
    ground, right, gain, matrix = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros((3, 3))
    no_wheels, roller_gains, twist = np.zeros((count, 3)), base.roller_gains, state[TWIST]
    drives, places, rollers_rub, viscous = base.drives, base.rows.positions, base.roller_coulomb, base.viscous
    if wanders:
        write_rows(base, reached, before, rollers)
    for k in range(commands.shape[0]):
        vx, vy, wz = state[3], state[4], state[5]
        if powered:
            drive_wheels(base.loop, commands[k], speeds, dt, reference, lagging, motors)
        else:
            motors[:] = 0.0
        friction_forces(twist, no_wheels, places, drives, roller_gains, 0.0, rollers_rub, viscous, ground)
        for i in range(count):
            memory = exp(-abs(speeds[i]) * dt / _BUMP_ANGLE)
            bumps[i] = memory * bumps[i] + base.torque_noise * sqrt(1.0 - memory * memory) * normals[k, i]
            rolling = tanh(speeds[i] / WHEEL_SPEED_SCALE)
            bump = min(max(bumps[i], -base.wheel_coulomb), base.wheel_coulomb)
            wheels[RUB, i] = base.wheel_coulomb * rolling + bump * abs(rolling)
            pull = motors[i] - wheels[RUB, i]
            load = _LEAST_LOAD
            if slips[k, i] > 0.0:
                part = 0.0
                for axis in range(3):
                    part += base.twist_of_wheels[axis, i] * ground[axis]
                load = max(abs(part), load)
            wheels[CREEP, i] = slips[k, i] * abs(speeds[i]) / load
            wheels[GRIP, i] = 1.0 / (1.0 + wheels[CREEP, i] * stiffness)
            wheels[FREE, i] = pull + stiffness * speeds[i]
            wheels[TURNED, i] = dt * speeds[i]
        for _ in range(_PASSES if wanders else 1):
            if wanders:
                for i in range(count):
                    reached[i] = angles[i] + wheels[TURNED, i]
                write_rows(base, reached, after, others)
                for i in range(count):
                    share = 0.5 if rollers[i] == others[i] else 1.0
                    for axis in range(3):
                        middle[i, axis] = (1.0 - share) * before[i, axis] + share * after[i, axis]
            turning = mass, inertia, stiffness, dt, state, ground, middle, after, wheels
            change_twist(*turning, base.rows.sideways, matrix, right, gain)
        mx, my, mw = vx + 0.5 * gain[0], vy + 0.5 * gain[1], wz + 0.5 * gain[2]
        ledger[FLOOR_HEAT] += dt * (ground[0] * mx + ground[1] * my + ground[2] * mw)
        for i in range(count):
            rolled = dt * (middle[i, 0] * mx + middle[i, 1] * my + middle[i, 2] * mw)
            turned = wheels[TURNED, i]
            end = 2.0 * turned / dt - speeds[i]
            traction = wheels[FREE, i] - stiffness * end
            ledger[MOTOR_WORK] += motors[i] * turned
            ledger[WHEEL_HEAT] += wheels[RUB, i] * turned
            ledger[SLIP_HEAT] += traction * (turned - rolled)
            angles[i] += turned
            filtered[i] += filter_share * (end - filtered[i])
            speeds[i] = end
            rollers[i] = others[i]
        if wanders:
            before[:] = after
        if not powered:
            reference[:] = speeds
            lagging[:] = 0.0
        move(state, gain, dt)
