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

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.joint_trajectory import piece_at, point_of

STEP = 1e-3  # [s] cycle of the bus to the motor controllers
SUPPLY = 24.0  # [V] of the batteries: KUKA youBot manual
TORQUE, POSITION_MODE, VELOCITY, TRAJECTORY = range(4)

# Columns of the constants of the controllers (n, 7).
POSITION_GAIN, VELOCITY_GAIN, INTEGRAL_GAIN, CURRENT_LIMIT, SPEED_LIMIT, RAMP, TOLERANCE = range(7)
# Columns of what the controllers remember (n, 5): what was commanded, the ramp, the integral, the current.
COMMAND, REFERENCE, RAMP_SPEED, INTEGRAL, CURRENT = range(5)

_RAMP_OF_MOTOR = 2000.0 * 2.0 * math.pi / 60.0  # [rad/s2] default of the ramp generator, 2000 rpm a second
_POSITION_GAIN = 21.0  # [1/s]
_BANDWIDTH = 80.0  # [1/s] of the speed loop on the joint's own inertia: chosen
_INTEGRAL_RATE = 20.0  # [1/s] chosen
_TOLERANCE_OF_MOTOR = 50.0 * 2.0 * math.pi / 4000.0  # [rad] 50 ticks of the encoder: chosen


def controllers_of(robot: Robot) -> Vector:
    """Constants (n, 7) of the controllers as set for a robot as its sheets describe it.

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
        ]
    )


@compiled
def ramp_to_position(
    reference: float, speed: float, target: float, speed_limit: float, ramp: float, dt: float
) -> tuple[float, float]:
    """Reference [rad] and its speed [rad/s] one step on: trapezoids of speed that end at the target without overshoot.

    Args:
        reference: [rad].
        speed: of the reference [rad/s].
        target: [rad].
        speed_limit: [rad/s].
        ramp: acceleration [rad/s2].
        dt: [s].
    """
    ahead = target - reference
    left, once = abs(ahead), ramp * dt
    # The fastest speed from which steps of `once` end at the target: whole steps, and a share of one in each of them.
    steps = left / (once * dt)
    whole = math.floor(math.sqrt(0.25 + 2.0 * steps) - 0.5)
    fastest = once * (whole + (steps - 0.5 * whole * (whole + 1.0)) / (whole + 1.0))
    wanted = math.copysign(min(fastest, speed_limit), ahead)
    speed = ramp_to_speed(speed, wanted, ramp, dt)
    if speed == wanted and left <= once * dt:
        return target, speed
    return reference + speed * dt, speed


@compiled
def ramp_to_speed(speed: float, wanted: float, ramp: float, dt: float) -> float:
    """Speed [rad/s] one step of `dt` [s] on towards `wanted` [rad/s], changing by `ramp` [rad/s2] at most."""
    once = ramp * dt
    return wanted if abs(wanted - speed) <= once else speed + math.copysign(once, wanted - speed)


@compiled
def limited(current: float, limit: float, back_emf: float, resistance: float) -> float:
    """Current [A] that a controller can give of the one it wants: within what the supply drives, then its own limit.

    Args:
        current: wanted [A].
        limit: [A].
        back_emf: of the motor [V].
        resistance: of its winding, as warm as it is [Ohm].
    """
    lowest, highest = (-SUPPLY - back_emf) / resistance, (SUPPLY - back_emf) / resistance
    return min(max(min(max(current, lowest), highest), -limit), limit)


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
        constants: (7,) of the controller.
        memory: (5,) of the controller; changed. COMMAND is a current [A], a position [rad] or a speed [rad/s].
    """
    limit = constants[CURRENT_LIMIT]
    if mode == TORQUE:
        memory[CURRENT] = limited(memory[COMMAND], limit, back_emf, resistance)
        memory[INTEGRAL] = memory[CURRENT]  # a later mode goes on from here
        return
    resting = False
    if mode == VELOCITY:
        top = constants[SPEED_LIMIT]
        asked = min(max(memory[COMMAND], -top), top)
        memory[RAMP_SPEED] = ramp_to_speed(memory[RAMP_SPEED], asked, constants[RAMP], dt)
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
    memory[CURRENT] = limited(needed, limit, back_emf, resistance)
    if not resting and (memory[CURRENT] == needed or needed * missing < 0.0):
        memory[INTEGRAL] += constants[INTEGRAL_GAIN] * missing * dt


@compiled
def control_cycle(
    mode: int,
    times: Vector,
    pieces: Vector,
    last: Vector,
    elapsed: float,
    position: Vector,
    speed: Vector,
    back_emf: Vector,
    resistance: Vector,
    constants: Vector,
    memory: Vector,
) -> None:
    """Set the currents of n joints for the cycle of 1 ms that begins now.

    Args:
        mode: one of the four.
        times: (m,) knots of the trajectory [s], any in other modes.
        pieces: (m - 1, n, 6) of the trajectory.
        last: (n,) its last knot [rad].
        elapsed: time since its start, when the cycle begins [s].
        position: (n,) [rad].
        speed: (n,) [rad/s].
        back_emf: (n,) of the motors [V].
        resistance: (n,) of their windings, as warm as they are [Ohm].
        constants: (n, 7) of the controllers.
        memory: (n, 5) of the controllers; changed, its column CURRENT is what drives the cycle [A].
    """
    now = elapsed + STEP
    piece = piece_at(times, now) if mode == TRAJECTORY else 0
    for i in range(len(memory)):
        ahead = 0.0
        if mode == TRAJECTORY:
            memory[i, REFERENCE], ahead = point_of(times, pieces, last, piece, now, i)
        control(mode, position[i], speed[i], ahead, back_emf[i], resistance[i], STEP, constants[i], memory[i])


def told_share(lag: float) -> float:
    """Share of the way to the true speed that the speed the driver is told goes in one cycle.

    Args:
        lag: time constant of the motor controllers' filter [s], 0 for none.
    """
    return 1.0 if lag <= 0.0 else -math.expm1(-STEP / lag)
