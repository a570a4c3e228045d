"""Friction feed-forward: it cancels what the model's friction takes, is smooth at rest, bounded and never too much."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.estimation.friction_feedforward import FrictionFeedforward
from youbot_dynamics.robot import load_robot

ARM = load_robot().arm.model()
SPEEDS = arrays(np.float64, 5, elements=st.floats(-20.0, 20.0))


def test_a_sliding_joint_driven_by_it_and_gravity_keeps_its_speed() -> None:
    """The twin of the same friction is the judge: without the torque it stops."""
    position, turning = np.array([2.95, 1.2, -2.4, 1.8, 2.9]), np.array([0.3, 0.0, 0.0, 0.0, 0.4])
    bristles = np.array([friction.steady_bristle(float(v)) for friction, v in zip(ARM.friction, turning, strict=True)])
    start = dataclasses.replace(ARM.at_rest(position), speed=turning, bristle=bristles)
    feedforward = FrictionFeedforward(ARM)

    def speed_after(help_it: bool) -> np.ndarray:
        state = start
        for _ in range(300):
            torque = ARM.tree.bias_forces(state.position, state.speed)
            state = ARM.step(state, 1e-3, torque=torque + help_it * feedforward.torque(state.speed))
        return state.speed

    assert speed_after(True)[[0, 4]] == pytest.approx(turning[[0, 4]], rel=0.02)
    assert np.abs(speed_after(False)[[0, 4]]).max() < 1e-3


def test_it_is_the_steady_torque_where_the_joint_surely_moves() -> None:
    speed = np.array([0.5, -0.4, 0.3, -0.2, 0.1])
    steady = [friction.steady_torque(float(v)) for friction, v in zip(ARM.friction, speed, strict=True)]
    assert FrictionFeedforward(ARM).torque(speed) == pytest.approx(steady, rel=1e-3)


@given(SPEEDS)
def test_it_is_odd_bounded_and_never_against_the_motion(speed: np.ndarray) -> None:
    feedforward = FrictionFeedforward(ARM, smoothing_speed=0.05)
    torque = feedforward.torque(speed)
    assert np.array_equal(feedforward.torque(-speed), -torque)
    assert np.all(np.abs(torque) <= feedforward.bound)
    assert np.all(torque * speed >= 0.0)


@given(SPEEDS, st.floats(0.0, 1.0))
def test_it_never_gives_more_than_friction_takes(speed: np.ndarray, share: float) -> None:
    """So that a loop closed over it stays passive where the friction is as identified."""
    taken = [friction.steady_torque(float(v)) for friction, v in zip(ARM.friction, speed, strict=True)]
    given_back = np.abs(FrictionFeedforward(ARM, share=share).torque(speed))
    assert np.all(given_back <= share * np.abs(taken) + 1e-12)


def test_it_is_smooth_at_rest_and_nothing_there() -> None:
    feedforward = FrictionFeedforward(ARM, smoothing_speed=0.02)
    assert not feedforward.torque(np.zeros(5)).any()
    slope = feedforward.torque(np.full(5, 1e-6)) / 1e-6
    expected = [friction.coulomb / 0.02 + friction.viscous for friction in ARM.friction]
    assert slope == pytest.approx(expected, rel=1e-6)


def test_a_stribeck_curve_is_followed() -> None:
    friction = LuGre(1.0, 2.0, 1e3, 1.0, static=1.5, stribeck_speed=0.1)
    arm = dataclasses.replace(ARM, friction=(friction,) * 5)
    slow, fast = (FrictionFeedforward(arm, smoothing_speed=1e-3).torque(np.full(5, v))[0] for v in (0.01, 1.0))
    assert slow == pytest.approx(friction.level(0.01) + 0.02) and fast == pytest.approx(3.0)


def test_what_is_no_speed_or_no_share_is_refused_and_it_survives_a_copy() -> None:
    feedforward = FrictionFeedforward(ARM)
    with pytest.raises(InputError, match="velocity"):
        feedforward.torque([0.0, np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="velocity"):
        feedforward.torque(np.zeros(4))
    with pytest.raises(ModelError, match="share"):
        FrictionFeedforward(ARM, share=1.2)
    with pytest.raises(ModelError, match="smoothing_speed"):
        FrictionFeedforward(ARM, smoothing_speed=0.0)
    again = pickle.loads(pickle.dumps(feedforward))
    assert np.array_equal(again.torque(np.ones(5)), feedforward.torque(np.ones(5)))
