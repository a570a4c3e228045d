"""The motor controllers of the arm: ramps, and a cascade from position over speed to current, at 1 kHz.

    wanted speed = ahead + position_gain (reference - q)
    current      = velocity_gain (wanted - v) + integral,    integral' = integral_gain (wanted - v)

within the limits of the current and of the supply's 24 V, where the integral waits. It also waits where a joint that
shall rest is within `tolerance` of its reference: friction holds it there, and an integral that goes on would make it
hunt.

Position and velocity commands pass the ramp generator. A position is followed without `ahead`, so that the joint lags
its ramp by 1 / position_gain = 47 ms (logs of the H-BRS thesis 2018: 45 to 49 ms at joint 4); a trajectory hands its
speed ahead. The controllers read their own encoder and Hall sensors: position and speed without the driver's quanta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.thermal_motor import drivable_current
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Robot

# Coefficients of s^0 ... s^5 (rows) from position, speed and acceleration at 0, then at 1 (columns).
_QUINTIC = 0.5 * np.array(
    [
        [2, 0, 0, 0, 0, 0],
        [0, 2, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [-20, -12, -3, 20, -8, 1],
        [30, 16, 3, -30, 14, -2],
        [-12, -6, -1, 12, -6, 1],
    ]
)
# d/ds of s^1 ... s^5 (rows) at places from 0 to 1 (columns).
_SLOPES = np.array([k * np.linspace(0.0, 1.0, 11) ** (k - 1) for k in range(1, 6)])
FASTEST = 1000.0  # [rad/s] chosen: 600 times what the joints can; faster is a mistake
_CUBIC = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-3, -2, 3, -1], [2, 1, -2, 1]])


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """m >= 1 knots of n joints, joined as FollowJointTrajectory's drivers join them.

    Positions alone: by straight lines; with velocities: by cubics; with accelerations too: by quintics.

    Raises:
        InputError: a wrong shape, a number that is not finite, times that do not increase, or accelerations alone.
    """

    times: Vector  # (m,) after the start [s], not negative, strictly increasing
    positions: Vector  # (m, n) [rad]
    velocities: Vector | None = None  # (m, n) [rad/s], or None
    accelerations: Vector | None = None  # (m, n) [rad/s2], or None; only with velocities

    def __post_init__(self) -> None:
        """Check the knots and keep them read-only."""
        times = array("times", self.times, (None,)).copy()
        if len(times) == 0:
            raise InputError("times", got="no knot", expected="at least one")
        if times[0] < 0.0 or np.any(np.diff(times) <= 0.0):
            raise InputError("times", got=str(times), expected="times from 0 on that strictly increase")
        positions = array("positions", self.positions, (len(times), None)).copy()
        object.__setattr__(self, "times", read_only(times))
        object.__setattr__(self, "positions", read_only(positions))
        if self.accelerations is not None and self.velocities is None:
            raise InputError("accelerations", got="no velocities beside them", expected="both or velocities alone")
        for name in ("velocities", "accelerations"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_only(array(name, value, positions.shape).copy()))

    def beginning_at(self, position: ArrayLike) -> JointTrajectory:
        """Same trajectory with a knot at rest in front, where its first one comes later than its start.

        Args:
            position: (n,) of the joints when it starts [rad].
        """
        if self.times[0] == 0.0:
            return self
        first = array("position", position, (self.positions.shape[1],))[None]
        still = np.zeros_like(first)
        return JointTrajectory(
            np.concatenate([[0.0], self.times]),
            np.concatenate([first, self.positions]),
            None if self.velocities is None else np.concatenate([still, self.velocities]),
            None if self.accelerations is None else np.concatenate([still, self.accelerations]),
        )

    def check_speeds(self, position: ArrayLike) -> None:
        """Refuse what no arm could be meant to follow.

        Args:
            position: (n,) of the joints now, as if it started [rad].

        Raises:
            InputError: speeds on the way that are above `FASTEST` or overflow.
        """
        with np.errstate(all="ignore"):
            whole = self.beginning_at(position)
            speeds = np.abs(whole.pieces()[:, :, 1:] @ _SLOPES) / np.diff(whole.times)[:, None, None]
        slow = speeds <= FASTEST
        if not slow.all():
            piece, joint, _ = np.argwhere(~slow)[0]
            raise InputError(
                f"trajectory, joint {joint + 1} on the way to {whole.times[piece + 1]:g} s",
                got=f"speeds of up to {speeds[piece, joint].max():.3g} rad/s",
                expected=f"at most {FASTEST:g} rad/s",
            )

    def pieces(self) -> Vector:
        """Coefficients (m - 1, n, 6) of each piece in powers of its own time s in 0..1."""
        steps = np.diff(self.times)[:, None]
        p = self.positions
        out = np.zeros((len(steps), p.shape[1], 6))
        if self.velocities is None:
            out[:, :, 0], out[:, :, 1] = p[:-1], p[1:] - p[:-1]
            return out
        v = self.velocities
        ends = [p[:-1], v[:-1] * steps, p[1:], v[1:] * steps]
        powers = _CUBIC
        if self.accelerations is not None:
            a = self.accelerations
            ends = [*ends[:2], a[:-1] * steps**2, *ends[2:], a[1:] * steps**2]
            powers = _QUINTIC
        out[:, :, : len(ends)] = np.einsum("ke,emn->mnk", powers, np.array(ends))
        return out


@compiled
def piece_at(times: Vector, time: float) -> int:
    """Index of the piece of `times` (m,) that holds `time` [s], not before the first; m - 1 from the end on."""
    return max(0, int(np.searchsorted(times, time, side="right")) - 1)


@compiled
def point_of(times: Vector, pieces: Vector, last: Vector, piece: int, time: float, joint: int) -> tuple[float, float]:
    """Position [rad] and speed [rad/s] of one joint at `time` [s], in the piece of `piece_at`.

    After the end of the times (m,) [s] and pieces (m - 1, n, 6) it rests at the last knot (n,) [rad].
    """
    if piece >= len(times) - 1:
        return last[joint], 0.0
    length = times[piece + 1] - times[piece]
    s = (time - times[piece]) / length
    c = pieces[piece, joint]
    position = c[0] + s * (c[1] + s * (c[2] + s * (c[3] + s * (c[4] + s * c[5]))))
    speed = c[1] + s * (2.0 * c[2] + s * (3.0 * c[3] + s * (4.0 * c[4] + s * 5.0 * c[5])))
    return position, speed / length


STEP = 1e-3  # [s] cycle of the bus to the motor controllers
TORQUE, POSITION_MODE, VELOCITY, TRAJECTORY = range(4)

# Columns of the constants of the controllers (n, 8).
POSITION_GAIN, VELOCITY_GAIN, INTEGRAL_GAIN, CURRENT_LIMIT, SPEED_LIMIT, RAMP, TOLERANCE, SUPPLY = range(8)
# Columns of what the controllers remember (n, 5): what was commanded, the ramp, the integral, the current.
COMMAND, REFERENCE, RAMP_SPEED, INTEGRAL, CURRENT = range(5)

_RAMP_OF_MOTOR = 2000.0 * 2.0 * math.pi / 60.0  # [rad/s2] default of the ramp generator, 2000 rpm a second
_POSITION_GAIN = 21.0  # [1/s]
_BANDWIDTH = 80.0  # [1/s] of the speed loop on the joint's own inertia: chosen
_INTEGRAL_RATE = 20.0  # [1/s] chosen
_TOLERANCE_OF_MOTOR = 50.0 * 2.0 * math.pi / 4000.0  # [rad] 50 ticks of the encoder: chosen


def controllers_of(robot: Robot) -> Vector:
    """Constants (n, 8) of the controllers as set for a robot as its sheets describe it.

    Its arm's inertias in the middle of their travel and its torque constants set the gains; the real joints differ.
    """
    model = robot.arm.model()
    limits = model.tree.limits
    middle = np.array([0.5 * (limit.lower + limit.upper) for limit in limits])
    inertia = np.diag(model.tree.mass_matrix(middle))
    ratio = np.array([joint.motor.gear_ratio for joint in robot.arm.joints])
    at_joint = ratio * np.array([joint.motor.torque_constant for joint in robot.arm.joints])
    gain = _BANDWIDTH * inertia / at_joint
    return np.column_stack(
        [
            np.full(len(ratio), _POSITION_GAIN),
            gain,
            _INTEGRAL_RATE * gain,
            [joint.motor.current_limit for joint in robot.arm.joints],
            [limit.velocity for limit in limits],
            _RAMP_OF_MOTOR / ratio,
            _TOLERANCE_OF_MOTOR / ratio,
            np.full(len(ratio), robot.arm.supply_voltage),
        ]
    )


@compiled
def ramp_to_position(
    reference: float, speed: float, target: float, speed_limit: float, ramp: float, dt: float
) -> tuple[float, float]:
    """Reference [rad] and its speed [rad/s] one step of `dt` [s] on; `ramp` is an acceleration [rad/s2].

    They are trapezoids of speed that end at the target [rad] without overshoot.
    """
    ahead = target - reference
    distance, once = abs(ahead), ramp * dt
    # The fastest speed from which steps of `once` end at the target: whole steps, and a share of one in each of them.
    steps = distance / (once * dt)
    whole = math.floor(math.sqrt(0.25 + 2.0 * steps) - 0.5)
    fastest = once * (whole + (steps - 0.5 * whole * (whole + 1.0)) / (whole + 1.0))
    wanted = math.copysign(min(fastest, speed_limit), ahead)
    speed = ramp_to_speed(speed, wanted, ramp, dt)
    if speed == wanted and distance <= once * dt:
        return target, speed
    return reference + speed * dt, speed


@compiled
def ramp_to_speed(speed: float, wanted: float, ramp: float, dt: float) -> float:
    """Speed [rad/s] one step of `dt` [s] on towards `wanted` [rad/s], changing by `ramp` [rad/s2] at most."""
    once = ramp * dt
    return wanted if abs(wanted - speed) <= once else speed + math.copysign(once, wanted - speed)


@compiled
def control(
    mode: int,
    position: float,
    speed: float,
    ahead: float,
    back_emf: float,
    resistance: float,
    dt: float,
    constants: Vector,
    memory: Vector,
) -> None:
    """Set the current of one joint for the next step.

    Args:
        mode: one of the four.
        position: of the joint [rad].
        speed: of the joint [rad/s].
        ahead: speed of the trajectory [rad/s]; in TRAJECTORY mode, where REFERENCE holds its position.
        back_emf: of the motor [V].
        resistance: of its winding [Ohm].
        dt: [s].
        constants: (8,) of the controller.
        memory: (5,) of the controller; changed. COMMAND is a current [A], a position [rad] or a speed [rad/s].
    """
    limit, supply = constants[CURRENT_LIMIT], constants[SUPPLY]
    if mode == TORQUE:
        memory[CURRENT] = drivable_current(memory[COMMAND], limit, supply, back_emf, resistance)
        memory[INTEGRAL] = memory[CURRENT]  # a later mode goes on from here
        return
    resting = False
    if mode == VELOCITY:
        top = constants[SPEED_LIMIT]
        target = min(max(memory[COMMAND], -top), top)
        memory[RAMP_SPEED] = ramp_to_speed(memory[RAMP_SPEED], target, constants[RAMP], dt)
        wanted = memory[RAMP_SPEED]
    else:
        if mode == POSITION_MODE:
            memory[REFERENCE], memory[RAMP_SPEED] = ramp_to_position(
                memory[REFERENCE], memory[RAMP_SPEED], memory[COMMAND], constants[SPEED_LIMIT], constants[RAMP], dt
            )
            moving = memory[RAMP_SPEED]
        else:
            memory[RAMP_SPEED] = ahead
            moving = ahead
        off = memory[REFERENCE] - position
        wanted = ahead + constants[POSITION_GAIN] * off
        resting = moving == 0.0 and abs(off) < constants[TOLERANCE]
    missing = wanted - speed
    needed = constants[VELOCITY_GAIN] * missing + memory[INTEGRAL]
    memory[CURRENT] = drivable_current(needed, limit, supply, back_emf, resistance)
    if not resting and (memory[CURRENT] == needed or needed * missing < 0.0):
        memory[INTEGRAL] += constants[INTEGRAL_GAIN] * missing * dt


class Order(NamedTuple):
    """What the motor controllers have to do until further notice, as `_controller.control_cycle` takes it."""

    mode: int  # one of the four
    times: Vector  # (m,) knots of the trajectory [s]; an old one in other modes
    pieces: Vector  # (m - 1, n, 6) of the trajectory
    last: Vector  # (n,) its last knot [rad]
    elapsed: float  # time since its start [s]


@compiled
def control_cycle(
    order: Order,
    elapsed: float,
    position: Vector,
    speed: Vector,
    back_emf: Vector,
    resistance: Vector,
    constants: Vector,
    memory: Vector,
) -> None:
    """Set the currents of n joints for the cycle of 1 ms that begins now, `elapsed` [s] after the trajectory's start.

    The other arguments are those of `control`, a row for each joint: (n,), constants (n, 8) and memory (n, 5), whose
    column CURRENT is what drives the cycle [A].
    """
    now = elapsed + STEP
    follows = order.mode == TRAJECTORY
    piece = piece_at(order.times, now) if follows else 0
    for i in range(len(memory)):
        ahead = 0.0
        if follows:
            memory[i, REFERENCE], ahead = point_of(order.times, order.pieces, order.last, piece, now, i)
        control(order.mode, position[i], speed[i], ahead, back_emf[i], resistance[i], STEP, constants[i], memory[i])


def filter_share(lag: float) -> float:
    """Share of the difference to the true speed by which the reported speed changes in one cycle.

    Args:
        lag: time constant of the motor controllers' filter [s], 0 for none.
    """
    return 1.0 if lag <= 0.0 else -math.expm1(-STEP / lag)
