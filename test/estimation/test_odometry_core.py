"""Odometry from wheel angles: closure against the truth, honest covariance, jumps and the sign trap."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from delay_runs import calibrated_truth
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.estimation.odometry import Odometry, OdometryState, SignCheck
from youbot_dynamics.estimation.odometry._gyro import GyroTurn
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.robot_base import BaseDrift
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
SIGNS = np.array(ROBOT.driver.position_sign)
SEED = 2


def drive(
    parts: list[tuple[tuple[float, float, float], float]], robot: Robot = ROBOT, drawn: BaseTruth | None = None
) -> tuple[list[OdometryState], np.ndarray]:
    """Odometry of a robot and truth of a twin that is commanded one twist after the other, until it rests again.

    The twin has the geometry of the sheets where no other is given. The floor holds whatever the jumps of the command:
    what slid, no odometry of wheels could tell.
    """
    truth = dataclasses.replace((drawn or calibrated_truth(SEED)).without_noise(), floor_friction=5.0)
    twin = BasePlant(truth, ROBOT.driver, SEED)
    odometry = Odometry(robot)
    states, poses, k = [], [], 0
    for twist, seconds in [*parts, ((0.0, 0.0, 0.0), 1.5)]:
        twin.command_twist(twist)
        for _ in range(round(seconds / 0.02)):
            reading = twin.read()
            state = odometry.update(reading.stamp, reading.position * SIGNS)
            if state is not None:
                states.append(state)
                poses.append(twin.pose)
            k += 1
            twin.advance(k * 0.02)
    return states, np.array(poses)


SQUARE = [((0.3, 0.0, 0.0), 2.0), ((0.0, 0.3, 0.0), 2.0), ((-0.3, 0.0, 0.0), 2.0), ((0.0, -0.3, 0.0), 2.0)]
TURNED_SQUARE = [part for _ in range(4) for part in (((0.3, 0.0, 0.0), 1.5), ((0.0, 0.0, 0.8), 1.9))]
CIRCLE = [((0.25, 0.1, 0.9), 7.0)]


@pytest.mark.parametrize("parts", [SQUARE, TURNED_SQUARE, CIRCLE], ids=["square", "turned square", "circle"])
def test_with_the_true_geometry_odometry_agrees_with_the_truth_all_along(parts: list) -> None:
    states, true = drive(parts)
    found = np.array([state.pose for state in states])
    assert np.max(np.hypot(*true[:, :2].T)) > 0.3
    # Half an encoder tick a wheel is 1.5 um of travel; over a step the twist is not quite constant.
    assert np.max(np.hypot(*(found - true)[:, :2].T)) < 2e-4
    assert np.max(np.abs([planar.wrap(a - b) for a, b in zip(found[:, 2], true[:, 2], strict=True)])) < 2e-4


def knowing(truth: BaseTruth, radius: float, errors: tuple[float, ...]) -> Robot:
    """Robot with the places and the lateral factor of a truth, and these wheels."""
    geometry = dataclasses.replace(
        ROBOT.base.geometry,
        wheel_radius=radius,
        half_length=truth.half_length,
        half_width=truth.half_width,
        lateral_factor=truth.lateral_factor,
        **{f"wheel_radius_error_{name}": error for name, error in zip(("fl", "fr", "rl", "rr"), errors, strict=True)},
    )
    return dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, geometry=geometry))


@pytest.mark.parametrize("parts", [SQUARE, TURNED_SQUARE, CIRCLE], ids=["square", "turned square", "circle"])
def test_four_radii_that_differ_are_no_error_where_they_are_known_and_millimetres_where_their_mean_is(
    parts: list,
) -> None:
    drawn = load_truth(SEED)
    known = knowing(drawn, drawn.wheel_radius, drawn.wheel_radius_error)
    even = knowing(drawn, float(np.mean(drawn.wheel_radii())), (0.0,) * 4)
    off = []
    for robot in (known, even):
        states, true = drive(parts, robot, drawn)
        off.append(float(np.max(np.hypot(*(np.array([state.pose for state in states]) - true)[:, :2].T))))
    print(f"off by {1e3 * off[0]:.3f} mm with four radii, {1e3 * off[1]:.3f} mm with their mean")
    assert off[0] < 2e-4 and off[1] > 1e-3


def test_the_drivers_own_way_to_add_steps_is_ten_times_worse_on_the_same_circle() -> None:
    states, true = drive(CIRCLE)
    pose, worst = np.zeros(3), 0.0
    for state, truth in zip(states, true, strict=True):
        step = state.twist * 0.02
        yaw = pose[2] + step[2]
        pose = np.array([*(pose[:2] + planar.rotation(yaw) @ step[:2]), yaw])
        worst = max(worst, float(np.hypot(*(pose - truth)[:2])))
    assert worst > 2e-3


def test_the_twist_is_that_of_the_base() -> None:
    states, _ = drive([((0.2, -0.1, 0.3), 3.0)])
    asked = calibrated_truth(2).mecanum().twist(ROBOT.driver.mecanum().wheel_speeds([0.2, -0.1, 0.3]))
    np.testing.assert_allclose(states[145].twist, asked, atol=0.02)


def feed(odometry: Odometry, displacements: np.ndarray, dt: float = 0.02) -> list[OdometryState]:
    angles = np.zeros(4)
    odometry.update(0.0, angles)
    states = []
    for k, displacement in enumerate(displacements):
        angles = angles + BASE.wheel_speeds(displacement)
        state = odometry.update((k + 1) * dt, angles)
        assert state is not None
        states.append(state)
    return states


def drifting(position: float, yaw: float) -> Robot:
    drift = BaseDrift(position, yaw)
    return dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, drift=drift))


# Within what the wheels can do in 20 ms: beyond it odometry rightly sees a jump.
STEP = st.tuples(st.floats(-0.01, 0.01), st.floats(-0.008, 0.008), st.floats(-0.025, 0.025))


@given(steps=st.lists(STEP, min_size=2, max_size=60))
@settings(max_examples=60)
def test_the_covariance_is_symmetric_positive_and_never_loses_volume_or_yaw(steps: list) -> None:
    states = feed(Odometry(ROBOT), np.array(steps))
    volumes, yaws = [], []
    for state in states:
        for matrix in (state.covariance, state.twist_covariance):
            np.testing.assert_allclose(matrix, matrix.T, atol=1e-18)
            assert np.min(np.linalg.eigvalsh(matrix)) > -1e-15
        volumes.append(np.linalg.det(state.covariance))
        yaws.append(state.covariance[2, 2])
    assert np.all(np.diff(volumes) >= -1e-9 * max(volumes)) and np.all(np.diff(yaws) >= -1e-15)


def test_on_a_straight_line_every_variance_grows_with_the_distance_and_not_with_time() -> None:
    line = np.tile([0.005, 0.0, 0.0], (200, 1))
    states = feed(Odometry(ROBOT), line)
    growth = np.array([np.diag(state.covariance) for state in states])
    assert np.all(np.diff(growth, axis=0) > 0.0)
    # 1 m of travel: sigma^2 of each axis per metre; the yaw swings the end sideways by int (1 - s)^2 ds = 1/3.
    drift = ROBOT.base.drift
    np.testing.assert_allclose(growth[-1, 0], drift.position**2, rtol=1e-6)
    np.testing.assert_allclose(growth[-1, 2], drift.yaw**2, rtol=1e-6)
    np.testing.assert_allclose(growth[-1, 1], drift.position**2 + drift.yaw**2 / 3, rtol=0.02)
    slow = feed(Odometry(ROBOT), line, dt=0.5)
    np.testing.assert_allclose(slow[-1].covariance, states[-1].covariance, atol=1e-15)
    standing = feed(Odometry(ROBOT), np.zeros((50, 3)))
    np.testing.assert_array_equal(standing[-1].covariance, np.zeros((3, 3)))


def test_the_covariance_turns_with_the_robot_into_the_odometry_frame() -> None:
    quarter = np.tile([0.0, 0.0, np.pi / 2 / 50], (50, 1))
    line = np.tile([0.005, 0.0, 0.0], (200, 1))
    covariance = feed(Odometry(drifting(0.0, 0.01)), np.vstack([quarter, line]))[-1].covariance
    # Driving along +y with an uncertain yaw, the end is uncertain along x.
    assert covariance[0, 0] > 1e3 * covariance[1, 1] and covariance[0, 2] < 0.0


def test_the_predicted_covariance_is_that_of_a_thousand_noisy_drives() -> None:
    steps = np.tile([0.006, 0.002, 0.02], (150, 1))
    state = feed(Odometry(drifting(0.02, 0.03)), steps)[-1]
    rng = np.random.default_rng(11)
    runs = 3000
    pose = np.zeros((runs, 3))
    # A turn of 1 rad rolls the wheels of the youBot over 0.15 m and 0.235 m over the lateral factor.
    way = np.hypot(0.006, 0.002) + 0.02 * (0.15 + 0.235 / ROBOT.base.geometry.lateral_factor)
    position, yaw = np.array([0.02, 0.03]) * np.sqrt(way)
    for step in steps:
        d = step + rng.standard_normal((runs, 3)) * [position, position, yaw]
        half = 0.5 * d[:, 2]
        chord = np.sinc(half / np.pi)
        c, s = np.cos(pose[:, 2] + half), np.sin(pose[:, 2] + half)
        pose[:, 0] += chord * (d[:, 0] * c - d[:, 1] * s)
        pose[:, 1] += chord * (d[:, 0] * s + d[:, 1] * c)
        pose[:, 2] += d[:, 2]
    error = pose - np.append(state.pose[:2], 150 * 0.02)
    normalised = np.einsum("ni,ij,nj->n", error, np.linalg.inv(state.covariance), error)
    # Mean of chi^2 with 3 degrees of freedom: 3 +- 5 sqrt(6 / 3000), and a little for the linearisation.
    assert np.mean(normalised) == pytest.approx(3.0, abs=0.3)
    sample = np.cov(error.T)
    scale = np.sqrt(np.outer(np.diag(state.covariance), np.diag(state.covariance)))
    np.testing.assert_allclose((sample - state.covariance) / scale, 0.0, atol=0.1)


def test_twist_covariance_is_that_of_quantum_and_jitter() -> None:
    rng = np.random.default_rng(3)
    twist, dt = np.array([0.3, -0.1, 0.5]), 0.02
    speeds, quantum, jitter = BASE.wheel_speeds(twist), ROBOT.driver.position_quantum, ROBOT.driver.stamp_jitter
    phase = rng.uniform(0.0, 1.0, (4000, 1))
    first, second = jitter * rng.standard_normal((2, 4000, 1))
    one = np.round((phase * 7.0 + speeds * first) / quantum) * quantum
    two = np.round((phase * 7.0 + speeds * (dt + second)) / quantum) * quantum
    found = (two - one) / dt @ BASE.forward_matrix.T
    predicted = feed(Odometry(ROBOT), np.tile(twist * dt, (2, 1)))[-1].twist_covariance
    # All wheels of a message share its stamp: their errors are alike along the motion, and cancel nowhere.
    scale = np.sqrt(np.outer(np.diag(predicted), np.diag(predicted)))
    np.testing.assert_allclose((np.cov(found.T) - predicted) / scale, 0.0, atol=0.1)


def test_a_base_that_drives_straight_has_no_noise_of_the_stamp_sideways() -> None:
    straight = feed(Odometry(ROBOT), np.tile([0.006, 0.0, 0.0], (2, 1)))[-1].twist_covariance
    assert np.sqrt(straight[0, 0]) == pytest.approx(0.3 * np.sqrt(2.0) * 0.001 / 0.02, rel=1e-2)
    assert straight[1, 1] < 1e-4 * straight[0, 0]
    standing = feed(Odometry(ROBOT), np.zeros((2, 3)))[-1].twist_covariance
    assert np.min(np.linalg.eigvalsh(standing)) > 0.0


def test_a_restarted_encoder_is_counted_and_moves_nothing() -> None:
    odometry = Odometry(ROBOT)
    before = feed(odometry, np.tile([0.005, 0.0, 0.0], (10, 1)))[-1]
    assert odometry.update(0.22, np.zeros(4) + 100.0) is None
    after = odometry.update(0.24, np.zeros(4) + 100.0 + BASE.wheel_speeds([0.005, 0.0, 0.0]))
    assert odometry.jumps == 1 and after is not None
    np.testing.assert_allclose(after.pose, before.pose + [0.005, 0.0, 0.0], atol=1e-12)


def test_the_fastest_real_motion_is_not_taken_for_a_jump() -> None:
    odometry = Odometry(ROBOT)
    odometry.update(0.0, np.zeros(4))
    assert odometry.update(0.02, np.full(4, ROBOT.base.limits.wheel_speed * 0.02)) is not None
    # Readings a whole period apart with stamps that jitter together.
    assert odometry.update(0.032, np.full(4, ROBOT.base.limits.wheel_speed * 0.04)) is not None
    assert odometry.jumps == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_reading_that_is_no_number_is_counted_and_the_next_good_one_starts_anew(bad: float) -> None:
    odometry = Odometry(ROBOT)
    before = feed(odometry, np.tile([0.005, 0.0, 0.0], (3, 1)))[-1]
    assert odometry.update(0.08, [0.0, bad, 0.0, 0.0]) is None and odometry.jumps == 1
    assert odometry.update(0.10, np.zeros(4)) is None
    state = odometry.update(0.12, np.zeros(4))
    assert state is not None and np.array_equal(state.pose, before.pose)


def test_a_late_reading_is_counted_and_dropped() -> None:
    odometry = Odometry(ROBOT)
    feed(odometry, np.tile([0.005, 0.0, 0.0], (3, 1)))
    for stamp in (0.06, 0.05):
        assert odometry.update(stamp, np.zeros(4)) is None
    assert odometry.late == 2 and odometry.jumps == 0


def test_reset_returns_to_the_origin_with_certainty_and_goes_on() -> None:
    odometry = Odometry(ROBOT)
    feed(odometry, np.tile([0.005, 0.0, 0.03], (30, 1)))
    odometry.reset()
    total = 30 * BASE.wheel_speeds([0.005, 0.0, 0.03]) + BASE.wheel_speeds([0.004, 0.0, 0.0])
    state = odometry.update(0.62, total)
    assert state is not None
    np.testing.assert_allclose(state.pose, [0.004, 0.0, 0.0], atol=1e-12)
    assert state.covariance[0, 0] == pytest.approx(ROBOT.base.drift.position**2 * 0.004)


def test_the_pose_handed_out_is_not_the_one_inside() -> None:
    odometry = Odometry(ROBOT)
    state = feed(odometry, np.tile([0.005, 0.0, 0.0], (2, 1)))[-1]
    state.pose[:] = 99.0
    following = odometry.update(0.06, 3 * BASE.wheel_speeds([0.005, 0.0, 0.0]))
    assert following is not None and following.pose[0] == pytest.approx(0.015)


JOINTS = ("fl", "fr", "bl", "br")


def check(position_sign: np.ndarray, speed: float = 0.3, readings: int = 30) -> SignCheck:
    """Readings of the twin of a forward drive, in the signs the configuration believes in."""
    found, twin = SignCheck(JOINTS), BasePlant(calibrated_truth(0), ROBOT.driver, 0)
    twin.command_twist([speed, 0.0, 0.0])
    twin.advance(1.0)
    for k in range(readings):
        reading = twin.read()
        speeds = reading.velocity * ROBOT.driver.velocity_sign
        found.update(reading.stamp, (reading.position * position_sign).tolist(), speeds.tolist())
        twin.advance(1.02 + k * 0.02)
    return found


def test_the_sign_check_is_content_with_the_configured_signs() -> None:
    assert check(SIGNS).contradicting() == ()


def test_the_sign_check_catches_a_driver_that_flips_only_its_positions() -> None:
    """Readings taken as they come: the left wheels' position and velocity move in opposite directions."""
    flipped = np.array(ROBOT.driver.velocity_sign)
    assert check(flipped).contradicting() == ("fl", "bl")


def test_the_sign_check_needs_motion_and_several_readings() -> None:
    flipped = np.array(ROBOT.driver.velocity_sign)
    assert check(flipped, speed=0.0).contradicting() == ()
    assert check(flipped, readings=9).contradicting() == ()


def test_a_few_contradictions_at_a_reversal_are_no_verdict() -> None:
    found = SignCheck(JOINTS, needed=3)
    angle = 0.0
    for k in range(60):
        found.update(k * 0.02, [angle] * 4, [1.0 if k % 6 else -1.0] * 4)
        angle += 0.02
    assert found.contradicting() == ()


def test_stamps_may_come_from_an_array() -> None:
    found = SignCheck(JOINTS)
    for stamp in 0.02 * np.arange(20):
        found.update(stamp, [stamp] * 4, [-1.0] * 4)
    assert found.contradicting() == JOINTS


@pytest.mark.parametrize(("against", "told"), [(9, JOINTS), (7, ())])
def test_a_verdict_on_the_signs_needs_more_than_four_readings_against_for_each_that_agrees(
    against: int, told: tuple[str, ...]
) -> None:
    """Two that agree among nine or seven that do not, so fast that nothing fades."""
    found = SignCheck(JOINTS)
    for k in range(20 * (against + 2)):
        agrees = k % (against + 2) < 2
        found.update(k * 1e-3, [k * 1e-3] * 4, [1.0 if agrees else -1.0] * 4)
    assert found.contradicting() == told


def test_odometry_uses_the_calibrated_geometry_not_the_drivers() -> None:
    geometry = dataclasses.replace(ROBOT.base.geometry, wheel_radius=0.05)
    robot = dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, geometry=geometry))
    odometry = Odometry(robot)
    odometry.update(0.0, np.zeros(4))
    state = odometry.update(0.02, np.full(4, 0.1))
    assert state is not None and state.pose[0] == pytest.approx(0.005)


def test_one_stamp_far_ahead_costs_some_readings_and_not_the_odometry() -> None:
    odometry = Odometry(ROBOT)
    wheels = BASE.wheel_speeds([0.2, 0.0, 0.0])
    outcomes = []
    for k in range(60):
        stamp = 0.02 * k + (3600.0 if k == 20 else 0.0)
        outcomes.append(odometry.update(stamp, wheels * 0.02 * k))
    assert all(state is not None for state in outcomes[1:20])
    assert all(state is None for state in outcomes[21:30])
    assert all(state is not None for state in outcomes[40:])
    assert odometry.late >= 10 and odometry.jumps >= 1


def test_reset_also_forgets_a_stamp_that_is_in_doubt() -> None:
    odometry = Odometry(ROBOT)
    odometry.update(1000.0, np.zeros(4))
    odometry.update(0.98, np.zeros(4))
    odometry.reset()
    assert odometry.update(1.0, np.zeros(4)) is None
    state = odometry.update(1.02, np.full(4, 0.1))
    assert state is not None and state.pose[0] == pytest.approx(0.1 * 0.0475)


def test_a_quarter_circle_at_50_hz_ends_within_a_tenth_of_a_millimetre() -> None:
    """Radius 0.5 m, wheels without noise but counted in the driver's quanta."""
    odometry, quantum = Odometry(ROBOT), ROBOT.driver.position_quantum
    speeds = BASE.wheel_speeds([0.25, 0.0, 0.5])
    for time in [*np.arange(0.0, np.pi, 0.02).tolist(), np.pi]:
        state = odometry.update(time, np.round(speeds * time / quantum) * quantum)
    assert state is not None
    assert np.hypot(*(state.pose[:2] - 0.5)) < 1e-4 and abs(state.pose[2] - np.pi / 2) < 1e-4


def test_wheels_weigh_by_the_square_of_their_load() -> None:
    """Wheels driven against each other creep by force over load, squared: that creep moves no pose.

    With the centre of mass ahead the front wheels bear more, and creep less.
    """
    ahead = ROBOT.base.centre_of_mass[0] / ROBOT.base.geometry.half_length
    loads = 1.0 + ahead * np.array([1.0, 1.0, -1.0, -1.0])
    creep = 1e-3 * np.array([1.0, 1.0, -1.0, -1.0]) / loads**2
    centred = dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, centre_of_mass=(0.0, 0.0)))
    moved = []
    for robot in (ROBOT, centred):
        odometry = Odometry(robot)
        odometry.update(0.0, np.zeros(4))
        state = odometry.update(0.02, creep)
        assert state is not None
        moved.append(np.abs(state.pose).max())
    assert moved[0] < 0.05 * moved[1]


def test_a_turn_from_elsewhere_takes_the_place_of_the_wheels_own() -> None:
    odometry = Odometry(ROBOT)
    odometry.update(0.0, np.zeros(4))
    assert odometry.last_stamp == 0.0
    state = odometry.update(0.02, BASE.wheel_speeds([0.005, 0.0, 0.01]), GyroTurn(0.02, 1e-8, 1e-5))
    assert state is not None and state.pose[2] == pytest.approx(0.02)
    # Noise of the gyro, and its bias, which the next step will have again.
    assert state.covariance[2, 2] == pytest.approx(1e-8 + 1e-10)
    state = odometry.update(0.04, 2.0 * BASE.wheel_speeds([0.005, 0.0, 0.01]), GyroTurn(0.02, 1e-8, 1e-5))
    assert state is not None and state.covariance[2, 2] == pytest.approx(2e-8 + 4e-10)


def test_the_scale_of_a_gyro_is_in_doubt_as_far_as_it_turned_and_no_farther() -> None:
    odometry = Odometry(ROBOT)
    odometry.update(0.0, np.zeros(4))
    angles, deviations = np.zeros(4), []
    for k in range(200):
        told = 0.05 if k < 100 else -0.05
        angles = angles + BASE.wheel_speeds([0.0, 0.0, told])
        state = odometry.update(0.02 * (k + 1), angles, GyroTurn(told, 0.0, 0.0, 0.01 * told))
        assert state is not None
        deviations.append(np.sqrt(state.covariance[2, 2]))
    assert deviations[99] == pytest.approx(0.05, rel=1e-6)
    assert deviations[-1] < 1e-9


def test_it_stands_half_a_second_after_the_last_count() -> None:
    odometry = Odometry(ROBOT)
    for k in range(100):
        odometry.update(0.02 * k, np.full(4, 0.01 * min(k, 20)))
        assert odometry.standing == (k >= 45)
