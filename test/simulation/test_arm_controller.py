"""Ramps, cascade, trajectories and end stops of the twin's arm: laws each of them must keep by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.dynamics.arm._stops import depth_beyond, stop_energy, stop_torque
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.arm._controller import JointTrajectory, piece_at, point_of

DT = 1e-3
ROBOT = load_robot()
CONSTANTS = controller.controllers_of(ROBOT)
STOP = np.array([0.0, 2.0, 5000.0, 1.0])  # lower, upper, stiffness, damping


def ramped(start: float, target: float, speed: float, ramp: float, first: float = 0.0) -> np.ndarray:
    """Reference and its speed (t, 2) until both rest at the target."""
    rows = [(start, first)]
    while rows[-1] != (target, 0.0) and len(rows) < 200_000:
        rows.append(controller.ramp_to_position(*rows[-1], target, speed, ramp, DT))
    return np.array(rows)


@settings(max_examples=60)
@given(
    distance=st.floats(-6.0, 6.0),
    speed=st.floats(0.05, 3.0),
    ramp=st.floats(0.5, 5.0),
)
def test_a_ramp_keeps_its_limits_and_ends_at_its_target_without_overshoot(
    distance: float, speed: float, ramp: float
) -> None:
    rows = ramped(0.3, 0.3 + distance, speed, ramp)
    assert tuple(rows[-1]) == (0.3 + distance, 0.0)
    assert np.max(np.abs(rows[:, 1])) <= speed * (1 + 1e-12)
    assert np.max(np.abs(np.diff(rows[:, 1])), initial=0.0) <= ramp * DT * (1 + 1e-9)
    np.testing.assert_allclose(np.diff(rows[:, 0]), rows[1:, 1] * DT, atol=1e-12)
    gone = (rows[:, 0] - 0.3) * math.copysign(1.0, distance)
    assert np.all(np.diff(gone) >= -1e-12) and np.max(gone) <= abs(distance) + 1e-12
    # Time of the trapezoid, or of the triangle where the speed is not reached.
    left = abs(distance)
    ideal = left / speed + speed / ramp if left > speed**2 / ramp else 2.0 * math.sqrt(left / ramp)
    assert (len(rows) - 1) * DT == pytest.approx(ideal, abs=4 * DT)


@pytest.mark.parametrize(("target", "first"), [(0.05, 1.5), (-1.0, 1.5), (0.0, -1.0)])
def test_a_ramp_that_is_told_to_turn_back_brakes_first(target: float, first: float) -> None:
    rows = ramped(0.0, target, 1.5, 2.0, first)
    assert tuple(rows[-1]) == (target, 0.0)
    assert np.max(np.abs(np.diff(rows[:, 1]))) <= 2.0 * DT * (1 + 1e-9)
    farthest = np.max(np.abs(rows[:, 0]))
    assert farthest == pytest.approx(max(abs(target), first**2 / (2.0 * 2.0)), abs=3e-3)


def test_the_ramps_of_the_joints_are_those_of_the_driver() -> None:
    np.testing.assert_allclose(CONSTANTS[:, controller.RAMP], [1.343, 1.343, 2.094, 2.950, 2.950], rtol=5e-4)
    np.testing.assert_allclose(CONSTANTS[:, controller.SPEED_LIMIT], 1.5708)
    limits = [joint.motor.current_limit for joint in ROBOT.arm.joints]
    np.testing.assert_allclose(CONSTANTS[:, controller.CURRENT_LIMIT], limits)


def current_for(mode: int, command: float, steps: int = 1, **memory: float) -> np.ndarray:
    """Memory of joint 3's controller after steps at rest at 0."""
    found = np.zeros(5)
    found[controller.COMMAND] = command
    for name, value in memory.items():
        found[getattr(controller, name.upper())] = value
    for _ in range(steps):
        controller.control(mode, 0.0, 0.0, 0.0, 0.0, 1.03, DT, CONSTANTS[2], found)
    return found


def test_a_torque_command_sets_the_current_directly_within_its_limit() -> None:
    limit = CONSTANTS[2, controller.CURRENT_LIMIT]
    assert current_for(controller.TORQUE, 1.5)[controller.CURRENT] == 1.5
    assert current_for(controller.TORQUE, 99.0)[controller.CURRENT] == limit
    assert current_for(controller.TORQUE, -99.0)[controller.CURRENT] == -limit


def test_the_integral_waits_while_the_current_is_at_its_limit_and_is_free_at_once() -> None:
    limit = CONSTANTS[2, controller.CURRENT_LIMIT]
    held = current_for(controller.TRAJECTORY, 0.0, steps=5000, reference=3.0)
    assert held[controller.CURRENT] == limit
    assert held[controller.INTEGRAL] <= limit
    held[controller.REFERENCE] = -3.0
    controller.control(controller.TRAJECTORY, 0.0, 0.0, 0.0, 0.0, 1.03, DT, CONSTANTS[2], held)
    assert held[controller.CURRENT] < 0.0


def test_the_integral_waits_where_friction_may_hold_the_joint() -> None:
    near = 0.5 * CONSTANTS[2, controller.TOLERANCE]
    assert current_for(controller.POSITION_MODE, near, 100, reference=near)[controller.INTEGRAL] == 0.0
    assert current_for(controller.POSITION_MODE, 5 * near, 100, reference=5 * near)[controller.INTEGRAL] > 0.0


def knots(rng: np.random.Generator, count: int = 6) -> tuple[np.ndarray, ...]:
    times = np.cumsum(rng.uniform(0.2, 1.0, count)) - 0.2
    times[0] = 0.0
    return times, *(rng.normal(size=(count, 5)) for _ in range(3))


def sampled(trajectory: JointTrajectory, time: float) -> tuple[np.ndarray, np.ndarray]:
    times, pieces = trajectory.times, trajectory.pieces()
    piece = piece_at(times, time)
    points = [point_of(times, pieces, trajectory.positions[-1], piece, time, joint) for joint in range(5)]
    return np.array([p for p, _ in points]), np.array([v for _, v in points])


@pytest.mark.parametrize("given_rows", [1, 2, 3])
def test_a_trajectory_passes_its_knots_with_what_they_say(given_rows: int) -> None:
    times, *rows = knots(np.random.default_rng(given_rows))
    trajectory = JointTrajectory(times, *rows[:given_rows])
    small = 1e-6
    for k, time in enumerate(times[:-1]):
        for side in (0.0, -small) if k else (0.0,):
            position, speed = sampled(trajectory, time + side)
            np.testing.assert_allclose(position, rows[0][k], atol=1e-4)
            if given_rows > 1:
                np.testing.assert_allclose(speed, rows[1][k], atol=1e-3)
            if given_rows > 2:
                later = sampled(trajectory, time + side + (small if side == 0.0 else -small))[1]
                slope = (later - speed) / (small if side == 0.0 else -small)
                np.testing.assert_allclose(slope, rows[2][k], atol=1e-2)
    position, speed = sampled(trajectory, times[-1] + 1.0)
    np.testing.assert_array_equal(position, rows[0][-1])
    np.testing.assert_array_equal(speed, 0.0)


@pytest.mark.parametrize(("degree", "given_rows"), [(1, 1), (3, 2), (5, 3)])
def test_pieces_give_back_polynomials_of_their_degree(degree: int, given_rows: int) -> None:
    law = np.polynomial.Polynomial(np.random.default_rng(degree).normal(size=degree + 1))
    times = np.array([0.0, 0.4, 1.1, 1.5])
    rows = [np.repeat(law.deriv(k)(times)[:, None], 5, axis=1) for k in range(given_rows)]
    trajectory = JointTrajectory(times, *rows)
    for time in np.linspace(0.0, 1.499, 23):
        position, speed = sampled(trajectory, float(time))
        np.testing.assert_allclose(position, law(time), atol=1e-12)
        np.testing.assert_allclose(speed, law.deriv()(time), atol=1e-11)


def test_a_trajectory_whose_first_knot_comes_later_begins_where_the_arm_is() -> None:
    times, *rows = knots(np.random.default_rng(0))
    late = JointTrajectory(times + 0.5, *rows).beginning_at(np.ones(5))
    position, speed = sampled(late, 0.0)
    np.testing.assert_allclose(position, 1.0)
    np.testing.assert_allclose(speed, 0.0)
    np.testing.assert_allclose(sampled(late, 0.5)[0], rows[0][0], atol=1e-12)
    at_once = JointTrajectory(times, *rows)
    assert at_once.beginning_at(np.ones(5)) is at_once


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], np.zeros((0, 5))), "times: got no knot"),
        (([0.0, 1.0, 1.0], np.zeros((3, 5))), "strictly increase"),
        (([-0.1, 1.0], np.zeros((2, 5))), "times from 0 on"),
        (([0.0, 1.0], np.zeros((3, 5))), r"positions: got shape \(3, 5\)"),
        (([0.0, 1.0], np.zeros((2, 5)), np.zeros((2, 4))), "velocities"),
        (([0.0, 1.0], np.zeros((2, 5)), None, np.zeros((2, 5))), "got no velocities beside them"),
        (([0.0, 1.0], np.full((2, 5), np.nan)), r"positions\[0, 0\]: got nan"),
    ],
)
def test_knots_that_are_no_trajectory_are_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        JointTrajectory(*arguments)  # type: ignore[arg-type]


@given(position=st.floats(-0.05, 2.05), moved=st.floats(-0.02, 0.02), damping=st.sampled_from([0.0, 1.0]))
def test_a_stop_takes_energy_and_never_pulls(position: float, moved: float, damping: float) -> None:
    stop = np.array([*STOP[:3], damping])
    torque, slope = stop_torque(position, moved, DT, stop)
    before, after = stop_energy(position, stop), stop_energy(position + moved, stop)
    lost = -torque * moved - (after - before)
    assert lost >= -1e-12
    sides = depth_beyond(position, stop) + depth_beyond(position + moved, stop)
    assert torque * sides <= 0.0
    assert slope <= 1e-9
    if damping == 0.0:
        assert lost == pytest.approx(0.0, abs=1e-10)


@given(position=st.floats(-0.03, 0.03), moved=st.floats(-0.02, 0.02))
def test_the_slope_of_a_stop_is_that_of_its_torque(position: float, moved: float) -> None:
    small = 1e-7
    torque, slope = stop_torque(position, moved, DT, STOP)
    ahead, behind = (stop_torque(position, moved + sign * small, DT, STOP)[0] for sign in (1.0, -1.0))
    kinks = min(abs(position), abs(position + moved), abs(moved))
    if kinks < 1e-5 or 0.0 in (torque, ahead, behind):
        return
    # The speed at the end moves the joint by dt / 2 of it.
    assert slope == pytest.approx((ahead - behind) / (2.0 * small) * 0.5 * DT, rel=1e-4, abs=1e-5)


def test_between_the_limits_a_stop_is_not_there() -> None:
    assert stop_torque(0.5, 0.1, DT, STOP) == (0.0, 0.0)
    assert stop_energy(2.0, STOP) == stop_energy(0.0, STOP) == 0.0
    assert depth_beyond(2.25, STOP) == 0.25 and depth_beyond(-0.25, STOP) == -0.25
