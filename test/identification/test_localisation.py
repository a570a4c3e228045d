"""Geometry from poses of a localisation: they scatter by centimetres, jump, are late, or are links of /tf."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from calibration_runs import BASE, Tracker, drawn_run, errands, held, localised, true_values
from friction_runs import ROBOT
from scipy.signal import lfilter
from stage_bags import nanoseconds, write_rows

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.calibration import Calibration, CalibrationSignals, calibrate
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.message_types import JOINT_STATE, TRANSFORMS, jazzy_types, joint_state_cdr
from youbot_dynamics.simulation.truth import load_truth

MINUTES = 300.0  # [s] of driving
DIFFERENTIAL = MecanumBase.differential(0.042, 0.2)


def youbot(seed: int, tracker: Tracker, noise: tuple[float, float]) -> tuple[Calibration, dict[str, float]]:
    run = drawn_run(seed, tracker, twists=errands(MINUTES, seed))
    seen = localised(run.poses, 1.0 / tracker.rate, noise, seed)
    found = calibrate([dataclasses.replace(run, poses=seen).signals()], BASE)
    return found, true_values(load_truth(seed), tracker)


def differential(
    seed: int, tracker: Tracker, noise: tuple[float, float], slip: float = 0.0
) -> tuple[Calibration, dict[str, float]]:
    """Each wheel slips by a random share of its speed, with a standard deviation and a correlation of 0.3 s."""
    random = np.random.default_rng([seed, 14])
    radius, track = random.uniform(0.97, 1.03) * 0.042, random.uniform(0.95, 1.05) * 0.2
    unequal = float(random.normal() * 0.003)
    true = MecanumBase.differential(radius, track, np.array([1.0, -1.0]) * unequal)
    drive = held(true, errands(MINUTES, seed, (0.3, 0.0, 0.8)))
    times = np.arange(0.5, MINUTES - 0.5, 1.0 / tracker.rate)
    moved = np.column_stack([np.interp(times, drive.wheel_time, column) for column in drive.poses.T])
    poses = np.array([planar.compose(pose, tracker.sensor) for pose in moved])
    seen = localised(poses, 1.0 / tracker.rate, noise, seed)
    steps = np.diff(drive.wheel_angles, axis=0)
    kept = np.exp(-float(np.median(np.diff(drive.wheel_time))) / 0.3)
    shares = lfilter([np.sqrt(1.0 - kept**2)], [1.0, -kept], random.normal(0.0, slip, steps.shape), axis=0)
    angles = np.vstack([drive.wheel_angles[:1], drive.wheel_angles[0] + np.cumsum(steps * (1.0 + shares), axis=0)])
    signals = CalibrationSignals(drive.wheel_time, angles, times + tracker.late, seen)
    names = "sensor_x", "sensor_y", "sensor_yaw"
    truth = dict(zip(names, tracker.sensor, strict=True)) | {"time_offset": tracker.late}
    return calibrate([signals], DIFFERENTIAL), {
        **truth,
        "wheel_radius": radius,
        "wheel_radius_error_fl": unequal,
        "lever": 0.5 * track,
    }


def drawn_localisation(seed: int) -> tuple[Tracker, tuple[float, float]]:
    """A localisation with 2 to 5 cm of noise at 2 to 10 Hz, late by 50 to 400 ms."""
    random = np.random.default_rng([seed, 15])
    place = (*random.uniform(-0.1, 0.1, 2).tolist(), float(random.uniform(-0.3, 0.3)))
    tracker = Tracker(place, 0.0, 0.0, float(random.uniform(2.0, 10.0)), float(random.uniform(0.05, 0.4)))
    return tracker, (float(random.uniform(0.02, 0.05)), float(random.uniform(0.01, 0.04)))


@pytest.mark.slow
@pytest.mark.parametrize("drive", [youbot, differential])
def test_five_minutes_of_a_localisation_give_radius_and_lever(drive) -> None:
    shares, inside = [], []
    for seed in range(20):
        found, truth = drive(seed, *drawn_localisation(seed))
        for estimate in found.estimates:
            if estimate.identified and estimate.name in truth:
                low, high = estimate.interval
                inside.append(low <= truth[estimate.name] <= high)
        shares.append([found[name].value / truth[name] - 1.0 for name in ("wheel_radius", "lever")])
    worst = np.max(np.abs(shares), axis=1)
    print(f"{np.mean(inside):.3f} of {len(inside)} inside; errors {np.round(100.0 * np.sort(worst), 2)} %")
    assert 0.9 <= np.mean(inside) <= 0.99
    assert np.median(worst) < 0.005
    assert np.mean(worst < 0.01) >= 0.95


def test_noisy_poses_are_told_from_those_of_motion_capture() -> None:
    tracker = Tracker((0.05, -0.02, 0.1), rate=10.0)
    precise = calibrate([drawn_run(3, tracker, twists=errands(60.0, 3)).signals()], BASE)
    noisy, truth = youbot(3, dataclasses.replace(tracker, late=0.3), (0.03, 0.03))
    assert precise.noise is not None and noisy.noise is not None
    assert noisy.noise.coarse and not precise.noise.coarse
    assert noisy.noise.position == pytest.approx(0.03, rel=0.2)
    assert noisy.noise.yaw == pytest.approx(0.03, rel=0.2)
    assert noisy["time_offset"].value == pytest.approx(0.3, abs=0.02)
    for name in ("wheel_radius", "lever"):
        assert noisy[name].value == pytest.approx(truth[name], rel=0.01)


@pytest.mark.slow
def test_intervals_of_the_geometry_hold_where_wheels_slip_at_random() -> None:
    """With windows that took the slip for noise of the poses, .77 of 56 held."""
    inside = []
    for seed, slip in product(range(12), (0.01, 0.03)):
        found, truth = differential(seed, Tracker(rate=5.0, late=0.18), (0.01, 0.01), slip)
        ticked = [found[name] for name in ("wheel_radius", "lever", "wheel_radius_error_fl") if found[name].identified]
        inside += [one.interval[0] <= truth[one.name] <= one.interval[1] for one in ticked]
    print(f"{np.mean(inside):.3f} of {len(inside)} inside")
    assert 0.9 <= np.mean(inside) <= 0.99 and len(inside) >= 60


def test_the_share_of_poses_that_jump_is_told() -> None:
    run = drawn_run(4, Tracker(rate=5.0, place_noise=0.03, yaw_noise=0.03), twists=errands(MINUTES, 4))
    poses = run.poses.copy()
    poses[200:230] += (0.8, -0.6, 0.3)
    found = calibrate([dataclasses.replace(run, poses=poses).signals()], BASE)
    assert found.noise is not None and found.noise.outlying == pytest.approx(30 / len(poses), abs=0.004)


def transforms(received: float, *links: tuple[str, str, float, np.ndarray]) -> tuple[float, str, str, bytes]:
    """A message of /tf: frame, child, stamp [s] and pose (3,) of each link."""
    types = jazzy_types().types
    stamped = types["geometry_msgs/msg/TransformStamped"]
    made = []
    for frame, child, stamp, (x, y, yaw) in links:
        time = types["builtin_interfaces/msg/Time"](*divmod(nanoseconds(stamp), 10**9))
        place = types["geometry_msgs/msg/Vector3"](x, y, 0.0)
        turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw))
        transform = types["geometry_msgs/msg/Transform"](place, turn)
        made.append(stamped(types["std_msgs/msg/Header"](time, frame), child, transform))
    data = jazzy_types().serialize_cdr(types[TRANSFORMS](made), TRANSFORMS)
    return received, "/tf", TRANSFORMS, bytes(data)


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    """Wheel states, and /tf of a localisation beside wheel odometry with the configured geometry and moving joints.

    A correction comes every half second, 150 ms late, is stamped ahead by 1 s, and is sent again unchanged.
    """
    run = drawn_run(5, Tracker(rate=2.0, place_noise=0.01, yaw_noise=0.01), twists=errands(MINUTES, 5))
    rows: list[tuple] = []
    pose, at = np.zeros(3), {}
    for k, (stamp, angles) in enumerate(zip(run.wheel_time, run.angles, strict=True)):
        if k:
            pose = planar.compose(pose, planar.exponential(BASE.forward_matrix @ (angles - run.angles[k - 1])))
        time = 1.0 + stamp
        states = joint_state_cdr(nanoseconds(time), ROBOT.driver.wheel_joints, angles * ROBOT.driver.position_sign)
        rows.append((time, "/driver/joint_states", JOINT_STATE, states))
        link = "robot/odom", "robot/base_link", time, pose
        rows.append(transforms(time + 0.001, link, ("robot/base_link", "robot/wheel", time, [0.1, 0.1, 0.01 * k])))
        at[k] = pose
    for stamp, seen in zip(run.pose_time[1:-1], run.poses[1:-1], strict=True):
        k = int(np.searchsorted(run.wheel_time, stamp))
        correction = planar.compose(seen, planar.between(at[k], np.zeros(3)))
        for later in (0.15, 0.3):
            time = 1.0 + stamp + later
            rows.append(transforms(time, ("map", "robot/odom", time + 0.85, correction)))
    return write_rows(tmp_path_factory.mktemp("localisation") / "drive", rows)


def test_a_tree_of_transforms_gives_poses_in_the_map_at_each_correction(bag) -> None:
    poses = open_bag(bag).poses("/tf")
    run = drawn_run(5, Tracker(rate=2.0, place_noise=0.01, yaw_noise=0.01), twists=errands(MINUTES, 5))
    assert len(poses.pose) == pytest.approx(len(run.poses), abs=4)
    assert np.all(poses.received - poses.stamp < 0.03)  # the stamp of odometry, not that of the correction


def test_geometry_is_found_from_map_and_odometry_in_tf(bag) -> None:
    identified = identify([bag], ROBOT, Options(pose_topic="/tf"), only=("calibration",))
    truth = true_values(load_truth(5), Tracker())
    found = {finding.name.rsplit(".", 1)[1]: finding for finding in identified.result.findings}
    for name in ("wheel_radius", "lever"):
        assert found[name].estimate.value == pytest.approx(truth[name], rel=0.01)
        assert found[name].identified
    assert not any(finding.identified for name, finding in found.items() if name.startswith("roller_phase"))
    assert any("poses scatter" in note for note in identified.notes)


def tree(folder: Path, corrections: list, frames=("map", "odom", "base_link"), late: int = 0) -> Path:
    """Twenty seconds forward at 0.1 m/s: odometry at 10 Hz from message `late` on, and corrections (k, 3) between."""
    rows = []
    for k, correction in enumerate(corrections):
        time = 1.0 + 0.1 * k
        if k >= late:
            rows.append(transforms(time, (frames[1], frames[2], time, np.array([0.01 * k, 0.0, 0.0]))))
        rows.append(transforms(time + 0.05, (frames[0], frames[1], time + 1.0, np.array(correction))))
    return write_rows(folder / "tree", rows)


def test_poses_come_where_the_correction_changes_and_not_where_it_is_rounded(tmp_path) -> None:
    steps = [[0.1 * (k // 50) + 1e-9 * (k % 3), 0.0, np.pi / 2] for k in range(200)]
    poses = open_bag(tree(tmp_path, steps)).poses("/tf")
    np.testing.assert_allclose(poses.pose[:, :2], [[0.1 * k, 0.5 * k] for k in range(4)], atol=1e-6)
    np.testing.assert_allclose(poses.stamp - poses.stamp[0], [0.0, 5.0, 10.0, 15.0], atol=1e-6)


def test_a_second_child_of_the_odometry_is_not_the_base(tmp_path) -> None:
    rows = []
    for k in range(5):
        time = 1.0 + k
        rows.append(transforms(time, ("odom_combined", "base_link", time, np.array([0.1 * k, 0.0, 0.0]))))
        rows.append(transforms(time + 0.1, ("map", "odom_combined", time, np.array([0.0, 0.1 * k, 0.0]))))
        rows.append(transforms(time + 0.1, ("odom_combined", "camera", time, np.array([9.0, 9.0, 0.0]))))
    poses = open_bag(write_rows(tmp_path / "camera", rows)).poses("/tf")
    np.testing.assert_allclose(poses.pose[:, :2], [[0.1 * k, 0.1 * k] for k in range(4)])  # one ends later


@pytest.mark.parametrize("frames", [("odom", "base_link"), ("base_odom", "base_link"), ("world", "base_footprint")])
def test_a_tree_without_localisation_is_refused_with_its_links(tmp_path, frames) -> None:
    rows = [transforms(1.0 + 0.1 * k, (*frames, 1.0 + 0.1 * k, np.array([0.1 * k, 0.0, 0.0]))) for k in range(9)]
    rows.append(transforms(1.0, ("base_link", "wheel", 1.0, np.zeros(3))))
    with pytest.raises(RecordingError, match=rf"{' -> '.join(frames)}.*map -> odom.*AMCL or SLAM"):
        open_bag(write_rows(tmp_path / "alone", rows)).poses("/tf")


def test_a_correction_that_never_changes_or_is_invalid_is_refused_as_that(tmp_path) -> None:
    with pytest.raises(RecordingError, match="200 transforms map -> odom .*with 1 corrections"):
        open_bag(tree(tmp_path, [[1.0, 2.0, 0.3]] * 200)).poses("/tf")
    (tmp_path / "other").mkdir()
    with pytest.raises(RecordingError, match="20 of them invalid"):
        open_bag(tree(tmp_path / "other", [[np.nan, 0.1 * k, 0.0] for k in range(20)])).poses("/tf")
    (tmp_path / "late").mkdir()
    with pytest.raises(RecordingError, match="with 0 corrections at a time when both are known"):
        open_bag(tree(tmp_path / "late", [[0.1 * k, 0.0, 0.0] for k in range(20)], late=19)).poses("/tf")
