"""Fast simulation of a wheeled base with regularised friction. Source: systems 42-56."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Flags, Vector, array, excerpt, number, read_only
from youbot_dynamics.compiled import HAVE_NUMBA
from youbot_dynamics.dynamics.normal_forces import FELT
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.planar import integrate
from youbot_dynamics.source_systems.wheeled_base._base import Support, WheeledBase
from youbot_dynamics.source_systems.wheeled_base._contact import BaseState, contacts
from youbot_dynamics.source_systems.wheeled_base._kernel import WHEEL, Run, advance, has_gained
from youbot_dynamics.source_systems.wheeled_base._regimes import (
    BaseEquations,
    ContactAnswer,
    friction_of_contacts,
    on_pressed_wheels,
)


@dataclass(frozen=True, eq=False)
class BaseStep(Support):
    """Result of one step of `step`."""

    state: BaseState  # after the step
    tangential_forces: Vector  # (n, 2) friction on each wheel during the step, in body axes at its end [N]
    normal_forces: Vector  # (n,) never negative [N]
    lifted: Flags  # (n,) True for a wheel that left the floor: no normal force, no friction
    contact_velocities: Vector  # (n, 2) of the contact points at the end, body axes [m/s]
    friction_work: float  # work of friction on the contacts, never positive [J]


def step(
    base: WheeledBase,
    state: BaseState,
    wheel_torques: ArrayLike,
    steering_torques: ArrayLike | None = None,
    dt: float = 1e-3,
) -> BaseStep:
    """State after `dt` under constant torques, with friction that is consistent with the *end* of the step.

    Each contact either stands still at the end with |T| <= mu N, or T = -mu N v/|v| with v at the end. Rolling, slip
    and rest obey one law, without a threshold of speed and without chatter. Wheels that the floor would have to pull
    lift, as in `WheeledBase.motion`. The method is of first order in dt. It is slower than `simulate`, but stuck wheels
    do not creep.

    Args:
        base: body and n wheels.
        state: at the start.
        wheel_torques: (n,) [N m].
        steering_torques: (n,) [N m], default 0.
        dt: [s].

    Raises:
        InputError: wrong shapes, NaN, a steering torque on a wheel without steering, or friction that jams the base, as
            with a high load (`_regimes.on_pressed_wheels`).
        ModelError: a step that is not positive.

    Source: D-004-7.
    """
    dt = number("dt", dt, "s", above=0.0)
    if not isinstance(state, BaseState):
        raise InputError("state", got=excerpt(state), expected="a BaseState")
    assert state.pose is not None and state.steering_angles is not None and state.steering_rates is not None
    # Move first, with the velocity in the axes after the turn; then change the velocity there. The contact velocity
    # that friction makes 0 is then exactly that of the returned state.
    turn = dt * state.twist[2]
    c, s = np.cos(turn), np.sin(turn)
    vx, vy, yaw_rate = state.twist
    moved = BaseState(
        twist=np.array([c * vx + s * vy, c * vy - s * vx, yaw_rate]),
        wheel_speeds=state.wheel_speeds,
        steering_angles=state.steering_angles + dt * state.steering_rates,
        steering_rates=state.steering_rates,
        pose=integrate(state.pose, state.twist, dt),
    )
    equations = base.equations(moved, wheel_torques, steering_torques)
    contact, n, steerable = equations.contact, len(base.wheels), base.steerable
    before = contact.velocities / dt

    def rub(on_these: BaseEquations) -> ContactAnswer:
        return friction_of_contacts(on_these, on_these.mass, on_these.load, on_these.plate.carrying, before)

    on_these, answer = on_pressed_wheels(equations, rub)
    acceleration, row_forces = answer.acceleration, answer.row_forces
    row_speeds = dt * (contact.rows @ acceleration + before)
    forces, velocities = np.zeros((n, 2)), np.zeros((n, 2))
    np.add.at(forces, contact.owner, row_forces[:, None] * contact.directions)
    np.add.at(velocities, contact.owner, row_speeds[:, None] * contact.directions)
    rates = state.steering_rates.copy()
    rates[steerable] += dt * (acceleration[3 : 3 + len(steerable)] - acceleration[2])
    after = BaseState(
        twist=moved.twist + dt * acceleration[:3],
        wheel_speeds=state.wheel_speeds + dt * acceleration[3 + len(steerable) :],
        steering_angles=moved.steering_angles,
        steering_rates=rates,
        pose=moved.pose,
    )
    normals = np.maximum(on_these.normals(acceleration), 0.0)  # rounding
    lifted = ~on_these.plate.carrying
    return BaseStep(after, forces, normals, lifted, velocities, dt * float(row_forces @ row_speeds))


SLIP_SPEED = 0.01  # [m/s] slip speed of the regularised friction


@dataclass(frozen=True, eq=False)
class BaseRun(Support):
    """Motion of a simulated base: k steps of n wheels, with the start."""

    poses: Vector  # (k + 1, 3) x, y, yaw in the fixed frame [m, m, rad]
    twists: Vector  # (k + 1, 3) in body axes [m/s, m/s, rad/s]
    wheel_speeds: Vector  # (k + 1, n) [rad/s]
    wheel_angles: Vector  # (k + 1, n) turned since the start [rad]
    steering_angles: Vector  # (k + 1, n) relative to the body [rad]
    steering_rates: Vector  # (k + 1, n) [rad/s]
    # (k + 1, n) of the step that led to each row, never negative; the first row is the weight at rest [N]
    normal_forces: Vector
    lifted: Flags  # (k + 1, n) True for a wheel that had left the floor

    def state(self, step: int = -1) -> BaseState:
        """State after `step` steps, from which another run can start."""
        return BaseState(
            self.twists[step],
            self.wheel_speeds[step],
            self.steering_angles[step],
            self.steering_rates[step],
            self.poses[step],
        )


def simulate(
    base: WheeledBase,
    state: BaseState,
    wheel_torques: ArrayLike,
    steering_torques: ArrayLike | None = None,
    dt: float = 1e-3,
    slip_speed: float = SLIP_SPEED,
) -> BaseRun:
    """Motion of a base under torques, k steps of `dt`, with plain and mecanum wheels.

    Friction is T = -mu N v/sqrt(|v|^2 + slip_speed^2), which avoids the 0/0 of (9a), (10a). v in the numerator is that
    after the step: the scheme is linearly implicit, so steps of 1 ms are stable while braking to rest. The explicit law
    would need 2 J_W slip_speed/(mu N R^2). A contact that should stick under a force |T| = x mu N creeps at slip_speed
    x/sqrt(1 - x^2): a tenth of `slip_speed` for x = 0.1, all of it for 0.71, without bound near the limit of the cone.
    `step` does not creep.

    The rest is explicit and of first order in dt. A wheel that steers must turn little in a step: dt well below
    1/(steering rate + yaw rate) and, for a caster of trail e, below e over the speed of its axis (e = 0.03 m at 1 m/s:
    20 ms is stable, 50 ms is not). The normal forces are those of the step before. Wheels that the floor would have to
    pull lift, and the others share the load.

    Args:
        base: body and wheels.
        state: at the start.
        wheel_torques: (k, n) [N m], constant over each step.
        steering_torques: (k, n) [N m], default 0.
        dt: step [s].
        slip_speed: [m/s].

    Raises:
        InputError: wrong shapes, NaN, a steering torque on a wheel without steering, or a motion without bounds: over
            four times the initial kinetic energy plus the work of the motors, as with too long steps.
        ModelError: a step or slip speed that is not positive.

    Source: document 004 (9a), (10a), system 54; D-004-7.
    """
    n = len(base.wheels)
    drive = array("wheel_torques", wheel_torques, (None, n))
    steps = len(drive)
    steer = np.zeros((steps, n))
    if steering_torques is not None:
        steer = array("steering_torques", steering_torques, (steps, n))
    dt, slip_speed = number("dt", dt, "s", above=0.0), number("slip_speed", slip_speed, "m/s", above=0.0)
    for i, wheel in enumerate(base.wheels):
        if not wheel.steerable and np.any(steer[:, i] != 0.0):
            raise InputError(f"steering torque of wheel {wheel.name}", got="a torque", expected="0: it has no steering")
    contact = contacts(base.wheels, state)
    weight = np.zeros(2)  # moments of the load about the centre of mass, zero at rest
    assert state.pose is not None and state.steering_angles is not None and state.steering_rates is not None
    parts = [state.pose, state.twist, weight, state.wheel_speeds, state.steering_angles, state.steering_rates]
    first = np.concatenate(parts)
    record = np.zeros((steps + 1, len(first)))
    record[0] = first

    wheels, run = _wheels(base, contact.headings, dt), _run(base, dt, slip_speed)
    drive, steer, reaction = drive / wheels["spin_inertia"], steer / wheels["steering_inertia"], steer.sum(axis=1)
    plate = np.zeros((steps + 1, 3))
    try:
        if HAVE_NUMBA:
            rows, torques = record.reshape(-1), (drive.reshape(-1), steer.reshape(-1))
            advance(rows, plate.reshape(-1), steps, *torques, reaction, run, wheels)
            unbounded = has_gained(rows, steps, *torques, run, wheels)
        else:
            arrays = (record, plate, drive, steer, reaction)
            numbers, heights, drives, steers, reactions = (v.reshape(-1).tolist() for v in arrays)
            items = [SimpleNamespace(**dict(zip(WHEEL.names or (), wheel, strict=True))) for wheel in wheels.tolist()]
            advance(numbers, heights, steps, drives, steers, reactions, run, items)
            unbounded = has_gained(numbers, steps, drives, steers, run, items)
            record.reshape(-1)[:], plate.reshape(-1)[:] = numbers, heights
    except (ArithmeticError, ValueError):  # division after an overflow, or infinite angles
        unbounded = True
    if unbounded:
        raise InputError(
            "motion of the base",
            got="a motion without bounds",
            expected="torques and a step that it can follow",
            remedy="shorten dt",
        )
    poses, twists, _, speeds, angles, rates = np.split(read_only(record), [3, 6, 8, 8 + n, 8 + 2 * n], axis=1)
    turned = np.zeros((steps + 1, n))
    np.cumsum(0.5 * dt * (speeds[1:] + speeds[:-1]), axis=0, out=turned[1:])
    springs = _springs(base, plate, angles)
    lifted = springs < -FELT * base.mass * base.gravity
    lifted.setflags(write=False)
    forces = read_only(np.maximum(springs, 0.0))
    return BaseRun(poses, twists, speeds, read_only(turned), angles, rates, forces, lifted)


def _springs(base: WheeledBase, plate: Vector, steering_angles: Vector) -> Vector:
    """Forces (k, n) [N] of the springs under a plate (k, 3) of height l0 and slopes lx, ly at its pole.

    They are negative where the plate is clear of the floor.
    """
    poles = np.empty((len(base.wheels), 3))
    for i, wheel in enumerate(base.wheels):
        c, s = np.cos(wheel.mount_angle), np.sin(wheel.mount_angle)
        place = wheel.position - (0.0 if wheel.steerable else wheel.offset) * np.array([c, s])
        poles[i] = wheel.stiffness * np.array([1.0, *(place - base.centre_of_mass[:2])])
    forces: Vector = plate @ poles.T
    for i, wheel in enumerate(base.wheels):
        if wheel.steerable and wheel.offset != 0.0:
            angle = wheel.mount_angle + steering_angles[:, i]
            trailing = plate[:, 1] * np.cos(angle) + plate[:, 2] * np.sin(angle)
            forces[:, i] -= wheel.stiffness * wheel.offset * trailing
    return forces


def _run(base: WheeledBase, dt: float, slip_speed: float) -> Run:
    cx, cy, height = base.centre_of_mass.tolist()
    carried = sum(wheel.steering_inertia for wheel in base.wheels if not wheel.steerable)
    return Run(
        dt,
        slip_speed**2,
        base.mass,
        base.yaw_inertia + carried + base.mass * (cx**2 + cy**2),
        cx,
        cy,
        height,
        base.product_xz,
        base.product_yz,
        base.gravity,
        swings=any(wheel.steerable and wheel.offset != 0.0 for wheel in base.wheels),
    )


def _wheels(base: WheeledBase, headings: Vector, dt: float) -> NDArray[np.void]:
    """Wheels (n,) for `advance`; headings (n, 2) are the initial ones."""
    wheels = np.zeros(len(base.wheels), WHEEL)
    for record, wheel, (nx, ny) in zip(wheels, base.wheels, headings.tolist(), strict=True):
        x, y = wheel.position.tolist()
        fixed, trail = (0.0, wheel.offset) if wheel.steerable else (wheel.offset, 0.0)
        steering_inertia = wheel.steering_inertia if wheel.steerable else 1.0
        c, s = np.cos(wheel.roller_angle), np.sin(wheel.roller_angle)
        values = {
            "spin_inertia": wheel.spin_inertia,
            "steering_inertia": steering_inertia,
            "axis_x": x - fixed * nx,
            "axis_y": y - fixed * ny,
            "trail": trail,
            "trail_per_inertia": trail / steering_inertia,
            "rolled": wheel.radius * c,
            "rolled_per_inertia": wheel.radius * c / wheel.spin_inertia,
            "stiffness": wheel.stiffness,
            "grip": wheel.friction_coefficient * wheel.stiffness * dt,
            "mount": wheel.mount_angle,
            "lateral": wheel.kind != "mecanum",
            "steers": wheel.steerable,
            "head_x": nx,
            "head_y": ny,
            "dir_x": c * nx - s * ny,
            "dir_y": c * ny + s * nx,
        }
        for name, value in values.items():
            record[name] = value
    return wheels
