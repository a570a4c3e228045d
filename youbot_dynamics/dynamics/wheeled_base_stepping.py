"""Step a wheeled base with exact Coulomb friction: it sticks, slides, sticks again, and stops for good (system 52)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import excerpt, number
from youbot_dynamics.dynamics.wheel_contact import BaseState
from youbot_dynamics.dynamics.wheel_regimes import BaseEquations, ContactAnswer, friction_of_contacts, on_pressed_wheels
from youbot_dynamics.dynamics.wheeled_base import WheeledBase
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.planar import integrate

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BaseStep:
    """One step of `step`.

    Attributes:
        state: after it.
        tangential_forces: (n, 2) friction on each wheel during it, body axes at its end [N].
        normal_forces: (n,) never negative [N].
        lifted: (n,) True where the wheel left the floor: no normal force, no friction.
        contact_velocities: (n, 2) of the contact points at its end, body axes [m/s].
        friction_work: done by friction on the contacts, never positive [J].
    """

    state: BaseState
    tangential_forces: Vector
    normal_forces: Vector
    lifted: Flags
    contact_velocities: Vector
    friction_work: float

    @property
    def tips_over(self) -> bool:
        """True if a wheel has lifted; see `wheeled_base.BaseMotion.tips_over`."""
        return bool(np.any(self.lifted))


def step(
    base: WheeledBase,
    state: BaseState,
    wheel_torques: ArrayLike,
    steering_torques: ArrayLike | None = None,
    dt: float = 1e-3,
) -> BaseStep:
    """State after `dt` under constant torques, with friction that is consistent with the *end* of the step.

    Each contact either stands still at the end with |T| <= mu N, or T = -mu N v/|v| with v at the end: rolling,
    slip, the change between them and rest are one law, without a threshold of speed and without chatter (D-004-7).
    Wheels that would have to be pulled down lift, as in `WheeledBase.motion`.
    First order in dt. Slower than `wheeled_base_simulation.simulate`, but stuck wheels do not creep.

    Args:
        base: body and n wheels.
        state: at the start.
        wheel_torques: (n,) [N m].
        steering_torques: (n,) [N m], default 0.
        dt: [s].

    Raises:
        InputError: wrong shapes, NaN, a torque on a steering that is not there, or friction that jams the base, as
            a high load can (`wheel_regimes.on_pressed_wheels`).
        ModelError: a step that is not positive.
    """
    dt = number("dt", dt, "s", above=0.0)
    if not isinstance(state, BaseState):
        raise InputError("state", got=excerpt(state), expected="a BaseState")
    assert state.pose is not None and state.steering_angles is not None and state.steering_rates is not None
    # Move first, with the velocity seen from the axes after the turn; then change the velocity there. So the contact
    # velocity that friction makes 0 is exactly that of the state returned.
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
