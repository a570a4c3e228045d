"""Calibration over whole drives: geometry of every kind of base, what the motion leaves open, drift, held readings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from repository import DATA
from scipy.stats import chi2

from bench import optiodom
from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.estimation.odometry import Odometry
from youbot_dynamics.identification.calibration import (
    CalibrationSignals,
    Drift,
    calibrate_whole_way,
    expected_drift,
    held,
)
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot import load_robot
from youbot_dynamics.robot_base import BaseDrift

STEP = 0.05  # [s]
OPTIODOM = DATA / "optiodom"
DIFFERENTIAL = MecanumBase.differential(0.042, 0.2)
MECANUM = MecanumBase.rectangular(0.05, 0.235, 0.15)
TRUE_DIFFERENTIAL = MecanumBase.differential(0.0415, 0.206, [0.002, -0.002])
TRUE_MECANUM = MecanumBase.rectangular(0.0485, 0.235, 0.16, 0.96)
SENSOR = (0.05, -0.03, 1.2)
SLIP = 0.002, 0.004  # [m, rad] a square root of a metre of the way, of the position and of the yaw


def drive(
    true: MecanumBase,
    seed: int,
    seconds: float = 60.0,
    axes: tuple[float, float, float] = (0.2, 0.2, 0.6),
    turning: float = 0.0,
    slip: tuple[float, float] = SLIP,
    place: tuple[float, float, float] = SENSOR,
) -> CalibrationSignals:
    """A drive of smooth random twists along `axes` [m/s, m/s, rad/s] with slip that adds up, seen by a tracker.

    `turning` is added to the turn rate [rad/s].
    """
    random = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, STEP)
    waves = np.sin(random.uniform(0.1, 0.5, (3, 3, 1)) * time + random.uniform(0.0, 6.3, (3, 3, 1)))
    twists = (np.mean(waves, axis=0) * np.array(axes)[:, None]).T + [0.0, 0.0, turning]
    if true.steered:
        steering = 0.8 * np.sin(0.3 * time + random.uniform(0.0, 6.3)) + 0.1
        columns = true.rolled(np.column_stack([np.cumsum(np.full(len(time), 0.2)), steering]))
    else:
        allowed = twists @ true.motions @ true.motions.T
        columns = np.vstack([np.zeros(len(true.radii)), np.cumsum(STEP * allowed @ true.inverse_matrix.T, axis=0)])
        columns = columns[: len(time)]
    steps = np.diff(columns, axis=0) @ true.forward_matrix.T
    way = np.sqrt(np.hypot(steps[:, 0], steps[:, 1]) + true.reach * np.abs(steps[:, 2]))
    steps += random.normal(size=steps.shape) * way[:, None] * (slip[0], slip[0], slip[1])
    if np.any(true.fixed):
        steps[:, 1] = 0.0
    poses = [planar.compose([1.0, 2.0, random.uniform(-3.0, 3.0)], np.zeros(3))]
    for step in steps:
        poses.append(planar.compose(poses[-1], planar.exponential(step)))
    seen = np.array([planar.compose(pose, place) for pose in poses])
    seen += random.normal(size=seen.shape) * (0.001, 0.001, 0.002)
    return CalibrationSignals(time, columns, time, seen, seed)


def test_radii_track_and_place_of_a_differential_base_come_out_of_six_drives() -> None:
    found = calibrate_whole_way([drive(TRUE_DIFFERENTIAL, seed) for seed in range(6)], DIFFERENTIAL)
    true = {"wheel_radius": 0.0415, "lever": 0.103, "wheel_radius_error_fl": 0.002, "sensor_x": 0.05, "sensor_yaw": 1.2}
    for name, value in true.items():
        estimate = found[name]
        assert estimate.identified, estimate.verdict
        assert estimate.interval[0] <= value <= estimate.interval[1]
    assert found["wheel_radius"].value == pytest.approx(0.0415, rel=0.005)
    assert found["lever"].value == pytest.approx(0.103, rel=0.005)


def test_a_tricycle_is_calibrated_with_the_offset_of_its_steering() -> None:
    true = MecanumBase.tricycle(0.0318, 0.156, -0.02)
    found = calibrate_whole_way([drive(true, seed, 90.0) for seed in range(4)], MecanumBase.tricycle(0.0325, 0.15))
    for name, value in {"wheel_radius": 0.0318, "wheelbase": 0.156, "steering_offset": -0.02}.items():
        estimate = found[name]
        assert estimate.identified, estimate.verdict
        assert estimate.interval[0] <= value <= estimate.interval[1]
    assert found["wheel_radius"].value == pytest.approx(0.0318, rel=0.005)
    assert found["wheelbase"].value == pytest.approx(0.156, rel=0.01)


def test_the_clock_of_the_poses_is_found_with_a_tricycle_and_its_noise_is_told() -> None:
    """Without it, 90 ms put the tracked body 15 mm aside, with a tick, on a tricycle of a newcomer."""
    true, late = MecanumBase.tricycle(0.0318, 0.156, -0.02), 0.09
    seen = drive(true, 3, 180.0)
    stamped = dataclasses.replace(seen, pose_time=seen.pose_time + late)
    found = calibrate_whole_way([stamped], MecanumBase.tricycle(0.0325, 0.15), [0.06], clocks=True)
    for name, value in {"time_offset": late, "sensor_x": 0.05, "sensor_y": -0.03, "wheelbase": 0.156}.items():
        estimate = found[name]
        assert estimate.identified, estimate.verdict
        assert estimate.interval[0] <= value <= estimate.interval[1]
    assert found["time_offset"].value == pytest.approx(late, abs=2e-3)
    np.testing.assert_allclose(found.offsets, [found["time_offset"].value])
    assert not found.noise.coarse
    jumped = seen.poses.copy()
    jumped[1000, :2] += 0.5
    assert not calibrate_whole_way([dataclasses.replace(seen, poses=jumped)], true, clocks=True).noise.coarse
    noise = 0.03 * np.random.default_rng(4).standard_normal(seen.poses.shape)
    assert calibrate_whole_way([dataclasses.replace(seen, poses=seen.poses + noise)], true, clocks=True).noise.coarse


def test_one_long_drive_of_mecanum_wheels_is_cut_and_gives_the_lateral_factor() -> None:
    found = calibrate_whole_way([drive(TRUE_MECANUM, 1, 240.0)], MECANUM)
    assert found["wheel_radius"].value == pytest.approx(0.0485, rel=0.005)
    assert found["lateral_factor"].value == pytest.approx(0.96, rel=0.005)
    assert found.drift.drives >= 6


def test_what_straight_drives_leave_open_is_refused() -> None:
    found = calibrate_whole_way(
        [drive(TRUE_DIFFERENTIAL, seed, axes=(0.2, 0.0, 0.0)) for seed in range(6)], DIFFERENTIAL
    )
    assert found["wheel_radius"].identified
    for name in ("lever", "sensor_x", "sensor_y"):
        assert not found[name].identified


def test_the_yaw_of_a_body_far_from_the_middle_is_found_though_the_base_turns_in_one_direction_mostly() -> None:
    drives = [drive(TRUE_DIFFERENTIAL, seed, axes=(0.2, 0.0, 0.6), turning=0.3) for seed in range(6)]
    found = calibrate_whole_way(drives, DIFFERENTIAL)
    for name, value in zip(("sensor_x", "sensor_y", "sensor_yaw"), SENSOR, strict=True):
        assert found[name].value == pytest.approx(value, abs=0.01)


def test_motion_while_wheels_or_poses_are_missing_is_not_taken_for_motion_of_the_base() -> None:
    drives = [drive(TRUE_DIFFERENTIAL, seed, turning=0.5) for seed in range(6)]
    angles = drives[0].wheel_angles.copy()
    angles[600:] -= angles[600]  # the counter starts again
    lost = (drives[1].pose_time < 20.0) | (drives[1].pose_time > 32.0)  # in which the base turns by more than pi
    yaws = drives[1].poses * (1.0, 1.0, 0.0) + [0.0, 0.0, 1.0] * (
        (drives[1].poses[:, 2:] + np.pi) % (2 * np.pi) - np.pi
    )
    drives[0] = dataclasses.replace(drives[0], wheel_angles=angles)
    drives[1] = dataclasses.replace(drives[1], pose_time=drives[1].pose_time[lost], poses=yaws[lost])
    found = calibrate_whole_way(drives, DIFFERENTIAL)
    assert found["wheel_radius"].value == pytest.approx(0.0415, rel=0.005)
    assert found["lever"].value == pytest.approx(0.103, rel=0.005)
    assert expected_drift(drives, TRUE_DIFFERENTIAL, np.array(SENSOR)).yaw < 0.01


def test_what_is_refused_stays_as_configured_in_the_wheels_that_are_used() -> None:
    drives = [drive(TRUE_DIFFERENTIAL, seed, axes=(0.2, 0.0, 0.0)) for seed in range(6)]
    found = calibrate_whole_way(drives, DIFFERENTIAL)
    assert not found["lever"].identified
    assert isinstance(found.wheels, MecanumBase)
    assert found.wheels.positions[0, 1] == pytest.approx(0.1, rel=1e-3)


def test_drives_that_repeat_a_path_and_its_slip_make_nothing_more_certain() -> None:
    once = [drive(TRUE_DIFFERENTIAL, seed) for seed in range(6)]
    single, repeated = (calibrate_whole_way(drives, DIFFERENTIAL) for drives in (once, [*once, *once, *once]))
    assert repeated.drift == pytest.approx(single.drift, rel=0.02)
    for one, other in zip(single.estimates, repeated.estimates, strict=True):
        assert np.ptp(other.interval) == pytest.approx(np.ptp(one.interval), rel=0.02)


@pytest.mark.filterwarnings("error")
def test_turns_on_the_spot_are_one_path_only_where_they_are_alike() -> None:
    turns = [drive(TRUE_DIFFERENTIAL, seed, axes=(0.0, 0.0, 0.6), place=(0.0, 0.0, 0.0)) for seed in range(6)]
    still = [dataclasses.replace(one, poses=one.poses * [0.0, 0.0, 1.0]) for one in turns]
    for drives in (turns, still):
        assert expected_drift([*drives, *drives], TRUE_DIFFERENTIAL, np.zeros(3)).drives == 6


def test_the_predicted_drift_holds_on_drives_that_were_not_fitted() -> None:
    found = calibrate_whole_way([drive(TRUE_DIFFERENTIAL, seed) for seed in range(10)], DIFFERENTIAL)
    inside = []
    for seed in range(100, 160):
        left = drive(TRUE_DIFFERENTIAL, seed)
        steps = np.diff(left.wheel_angles, axis=0) @ found.wheels.forward_matrix.T
        way = float(np.sum(np.hypot(steps[:, 0], steps[:, 1]) + 0.103 * np.abs(steps[:, 2])))
        allowed = found.drift.within(way, float(np.sum(np.abs(steps[:, 2]))))
        end = _end(left, steps)
        inside += [end[0] <= allowed[0], end[1] <= allowed[1]]
    assert 0.88 <= np.mean(inside) <= 1.0
    assert found.drift.position < 0.02


def _end(signals: CalibrationSignals, steps: Vector) -> tuple[float, float]:
    """Errors [m, rad] at the end of odometry that starts at the first pose of the tracked body."""
    base = planar.compose(signals.poses[0], planar.between(np.array(SENSOR), np.zeros(3)))
    for step in steps:
        base = planar.compose(base, planar.exponential(step))
    error = planar.between(signals.poses[-1], planar.compose(base, SENSOR))
    return float(np.hypot(error[0], error[1])), abs(float(error[2]))


@pytest.mark.parametrize("place", [SENSOR, (0.4, 0.3, 0.0)], ids=["body near the middle", "body at a corner"])
def test_odometry_with_the_growth_that_was_found_knows_how_far_it_is_off(place: tuple[float, float, float]) -> None:
    slip = (0.02, 0.04)
    made = {"axes": (0.2, 0.2, 0.15), "slip": slip, "place": place}
    drift = expected_drift([drive(TRUE_MECANUM, seed, **made) for seed in range(24)], TRUE_MECANUM, np.array(place))
    growths = drift.estimates()
    for estimate, true in zip(growths, slip, strict=True):
        assert estimate.identified and estimate.interval[0] <= true <= estimate.interval[1]
        assert estimate.value == pytest.approx(true, rel=0.3)
    facts = load_robot().base
    sizes = {"wheel_radius": 0.0485, "half_length": 0.235, "half_width": 0.16, "lateral_factor": 0.96}
    geometry = dataclasses.replace(facts.geometry, **sizes)
    base = dataclasses.replace(facts, geometry=geometry, drift=BaseDrift(*(growth.value for growth in growths)))
    errors = []
    for seed in range(100, 160):
        signals, odometry = drive(TRUE_MECANUM, seed, **made), Odometry(dataclasses.replace(load_robot(), base=base))
        states = [odometry.update(*reading) for reading in zip(signals.wheel_time, signals.wheel_angles, strict=True)]
        first, last = (planar.compose(pose, planar.between(place, np.zeros(3))) for pose in signals.poses[[0, -1]])
        assert states[-1] is not None
        off = planar.between(first, last) - states[-1].pose
        off[2] = planar.wrap(off[2])
        errors.append(off @ np.linalg.solve(states[-1].covariance, off))
    assert np.mean(errors <= chi2.ppf(0.95, 3)) >= 0.9
    assert np.mean(errors <= chi2.ppf(0.5, 3)) <= 0.75, "the covariance is far too large"


@pytest.mark.parametrize("growth", [0.0, 0.001])
def test_a_floor_without_slip_gives_no_drift_for_real_ones(growth: float) -> None:
    for estimate in Drift(0.001, 0.001, 8, 0.004, 0.01, growth).estimates():
        assert estimate.reason is not None and estimate.reason.kind is Kind.NOT_OF_THE_ROBOT


def test_a_growth_of_the_position_that_the_yaw_explains_is_refused() -> None:
    position, yaw = Drift(0.01, 0.01, 8, 0.004, 0.0, 0.02).estimates()
    assert position.reason is not None and position.reason.kind is Kind.CONFUSED
    assert yaw.identified and 0.0 < yaw.interval[0] < 0.02 < yaw.interval[1]


def test_the_drift_with_a_wrong_radius_is_that_of_the_radius() -> None:
    drives = [drive(TRUE_DIFFERENTIAL, seed, axes=(0.2, 0.0, 0.0)) for seed in range(6)]
    true = expected_drift(drives, TRUE_DIFFERENTIAL, np.array(SENSOR), [0.0] * 6)
    wrong = MecanumBase.differential(1.05 * 0.0415, 0.206, [0.002, -0.002])
    assert true.position < 0.01
    assert expected_drift(drives, wrong, np.array(SENSOR), [0.0] * 6).position > 2.0 * true.position


def test_too_little_motion_and_other_columns_are_refused() -> None:
    with pytest.raises(IdentificationError, match="drive longer"):
        calibrate_whole_way([drive(TRUE_DIFFERENTIAL, 0, 4.0)], DIFFERENTIAL)
    with pytest.raises(InputError, match="4 in each"):
        calibrate_whole_way([drive(TRUE_DIFFERENTIAL, 0)], MECANUM)
    with pytest.raises(InputError, match="offsets"):
        calibrate_whole_way([drive(TRUE_DIFFERENTIAL, 0)] * 4, DIFFERENTIAL, [0.0])


def logged(lost: float, seed: int = 3) -> tuple[Vector, float]:
    """Speeds that a log of 10 ms repeats until the next one of a loop of 40 ms comes, losing rows; and their sum."""
    random = np.random.default_rng(seed)
    readings = np.round(400.0 * (2.0 + np.sin(0.05 * np.arange(600))) + random.normal(size=600) * 5.0)[:, None]
    rows = np.where(random.random(600) < lost, 3, 4)
    return np.repeat(readings, rows, axis=0), float(4.0 * np.sum(readings))


def test_readings_that_a_log_held_count_for_one_period_each_however_many_rows_it_lost() -> None:
    for lost in (0.1, 0.4):
        speeds, total = logged(lost)
        found = held(speeds)
        assert found is not None
        assert found.period == 4.0
        assert np.sum(found.speeds) == pytest.approx(total, rel=1e-3)
        assert np.sum(speeds) < 0.98 * total


@pytest.mark.parametrize("rows", [3.3, 3.5, 3.77])
def test_readings_of_a_loop_that_is_no_multiple_of_the_log_keep_an_even_beat_and_nothing_is_lost(rows: float) -> None:
    random = np.random.default_rng(2)
    borders = np.ceil(rows * np.arange(601)).astype(int)
    readings = 800.0 + np.round(random.normal(size=600) * 50.0)
    assert held(np.repeat(readings, np.diff(borders))[:, None]) is None


def test_slow_signals_in_coarse_steps_are_no_held_readings() -> None:
    time = 0.01 * np.arange(6000)
    for size, rate in ((8.0, 0.3), (20.0, 0.2)):
        assert held(np.round(size * np.sin(rate * time) + size + 2.0)[:, None]) is None


def test_held_refuses_what_is_no_table_of_numbers() -> None:
    assert held(np.zeros((0, 4))) is None
    for wrong in (np.zeros(5), np.full((5, 1), np.nan)):
        with pytest.raises(InputError, match="speeds"):
            held(wrong)


def test_readings_that_are_new_in_each_row_are_left_alone() -> None:
    random = np.random.default_rng(1)
    steady = np.repeat([[12.0], [13.0], [12.0]], 200, axis=0) + (random.random((600, 1)) < 0.2)
    assert held(steady) is None
    assert held(np.zeros((100, 4))) is None


@pytest.mark.slow
@pytest.mark.skipif(not OPTIODOM.is_dir(), reason=f"no recordings in {OPTIODOM}")
@pytest.mark.parametrize(("kind", "most"), [("omni4", 0.75), ("omni3", 0.75), ("tricyc", 0.85), ("diff", 0.9)])
def test_left_out_sets_of_a_public_benchmark_drift_less_than_with_published_geometry(kind: str, most: float) -> None:
    folders = sorted(file.parent for file in OPTIODOM.glob(f"{kind}/*/*/*_metadata.csv"))
    sets = [optiodom.read_set(folder, *folder.relative_to(OPTIODOM).parts[:2]) for folder in folders]
    parts = [optiodom.left_out(sets, each) for each in sets]
    assert np.mean(np.vstack([part.ratios for part in parts])) < most
    radii = [optiodom.fitted([each])["wheel_radius"].value for each in sets]
    assert max(radii) / min(radii) < 1.015
