"""A tracked body may sit anywhere on a base without wheel states: delays and gains are those of the base."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from body_runs import KINDS, drawn_plant, gain_of, holds, ramps, twin_drive
from stage_bags import ROBOT, nanoseconds, write_rows

from youbot_dynamics.identification.body._fit import BodyAxis, identify_axis
from youbot_dynamics.identification.body._mounting import Mounting, mounting, on_the_base, with_errors
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.signals import MotionSignals
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.message_types import (
    ODOMETRY,
    POSE_STAMPED,
    TWIST_STAMPED,
    odometry_cdr,
    pose_stamped_cdr,
    twist_stamped_cdr,
)

AXES = {"x": 0, "y": 1}


def path_of(base_poses: np.ndarray, sensor: np.ndarray, seed: int) -> np.ndarray:
    """Path along its own axes of a body at `sensor` on the base, from poses with noise and a wrapped yaw."""
    noise = np.random.default_rng([seed, 32]).normal(size=base_poses.shape) * [1e-3, 1e-3, 3e-3]
    poses = np.array([planar.compose(pose, sensor) for pose in base_poses]) + noise
    poses[:, 2] = (poses[:, 2] + np.pi) % (2.0 * np.pi) - np.pi
    return np.vstack([np.zeros(3), np.cumsum(planar.steps_of_path(poses), axis=0)])


def response(sent, twists, stamps, path) -> tuple[Mounting | None, dict[str, BodyAxis]]:
    """What the stage does with the poses of a tracker."""
    found = mounting(MotionSignals(("x", "y", "yaw"), ("m", "m", "rad"), sent, twists, stamps, path, "", None, "", ""))
    if found is not None:
        path = on_the_base(path, found)
    axes = {
        name: identify_axis(name, "m/s", sent, twists[:, k], stamps, path[:, k], measured_is="position")
        for name, k in AXES.items()
    }
    return found, axes if found is None else {name: with_errors(axes[name], found, k) for name, k in AXES.items()}


def judge_foreign(seed: int) -> list[bool]:
    """Whether the intervals of delay and gain hold for axes of other kinds, with turns that go with the motion or not.

    Every fourth body is at the centre.
    """
    random = np.random.default_rng([seed, 31])
    kinds = [KINDS[(seed + 3 * k) % len(KINDS)] for k in range(3)]
    plants = [
        dataclasses.replace(drawn_plant(kind, seed + 100 * k), quantum=1e-9, lost=0.0, noise=0.0, rate=50.0)
        for k, kind in enumerate(kinds)
    ]
    twists = ramps(seed)
    twists[:, 2] += (seed % 3) * 0.5 * twists[:, 0]
    driven = [plant.drive(twists[:, k], seed) for k, plant in enumerate(plants)]
    (sent, stamps, _), speeds = driven[0], np.column_stack([speed for _, _, speed in driven])
    sensor = random.uniform([-0.4, -0.4, -3.0], [0.4, 0.4, 3.0]) if seed % 4 else np.zeros(3)
    pose, poses = np.zeros(3), [np.zeros(3)]
    for speed in 0.5 * (speeds[1:] + speeds[:-1]):
        pose = planar.integrate(pose, speed, 0.02)
        poses.append(pose)
    found, axes = response(sent, twists, stamps, path_of(np.array(poses), sensor, seed))
    assert found is not None and found.clear == bool(seed % 4)
    turned = abs(planar.compose(np.zeros(3), [0.0, 0.0, found.yaw - sensor[2]])[2])
    assert min(turned, 2.0 * np.pi - turned) < 4.0 * found.errors[0]
    assert abs(found.place - complex(*sensor[:2])) < 4.0 * found.errors[1]
    inside = []
    for name, k in AXES.items():
        delay, gain = axes[name]["effective"], axes[name]["gain"]
        assert gain.identified
        inside += [holds(gain, gain_of(plants[k], twists[:, k]))]
        inside += [holds(delay, plants[k].delay)] if delay.identified else []
    return inside


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_delays_and_gains_are_those_of_the_base_wherever_the_tracked_body_sits(seed):
    assert np.mean(judge_foreign(seed)) >= 0.75


@pytest.mark.slow
def test_their_intervals_hold_for_sixty_robots():
    inside = [one for seed in range(60) for one in judge_foreign(seed)]
    print(f"\n{len(inside)} values, {np.mean(inside):.3f} inside")
    assert np.mean(inside) >= 0.95


@pytest.mark.parametrize("place", [(0.0, 0.0), (0.0, 0.3)])
def test_an_arc_does_not_show_where_the_body_sits_and_its_values_are_refused(place):
    twists = ramps(1)
    drive = twin_drive(1, np.column_stack([twists[:, 0], 0.3 * twists[:, 1], 2.0 * twists[:, 0]]))
    _, axes = response(drive.sent, drive.twists, drive.stamps, path_of(drive.poses, np.array([*place, 0.0]), 1))
    for kind in ("effective", "gain"):
        assert not axes["x"][kind].identified
    assert "drive without turning too" in axes["x"]["gain"].verdict


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_a_body_that_looks_backwards_is_turned_round_whatever_its_noise(seed):
    drive = twin_drive(seed, ramps(seed))
    noise = np.random.default_rng(seed).normal(size=drive.poses.shape) * [0.01, 0.01, 0.02]
    path = path_of(drive.poses + noise, np.array([0.0, 0.0, np.pi]), seed)
    found, axes = response(drive.sent, drive.twists, drive.stamps, path)
    assert found is not None and found.clear and found.errors[0] < 0.05
    assert axes["x"]["gain"].identified and axes["x"]["gain"].value == pytest.approx(drive.gains[0], abs=0.05)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_base_that_ignores_sideways_commands_shows_the_place_of_the_body(seed):
    random, twists = np.random.default_rng([seed, 33]), ramps(seed)
    twists[:, 2] = 0.8 * twists[:, 0] + 0.5 * twists[:, 2]
    drive = twin_drive(seed, twists * [1.0, 0.0, 1.0])
    twists = np.vstack([twists, np.zeros((len(drive.sent) - len(twists), 3))])
    twists[:, 1] = np.repeat(random.uniform(-0.05, 0.05, len(twists) // 20 + 1), 20)[: len(twists)]
    found, axes = response(drive.sent, twists, drive.stamps, path_of(drive.poses, np.array([0.0, 0.15, 0.0]), seed))
    assert found is not None and abs(found.place - 0.15j) < 4.0 * found.errors[1]
    assert not axes["x"]["gain"].identified or holds(axes["x"]["gain"], drive.gains[0])
    assert not axes["y"]["gain"].identified


def test_a_body_a_centimetre_off_is_not_taken_for_centred():
    inside = []
    for seed in range(5):
        turns = np.random.default_rng([seed, 34]).uniform(-0.15, 0.15, 1200)
        twists = ramps(seed) * [1.0, 0.0, 0.0] + np.outer(np.repeat(turns[::20], 20), [0.0, 0.0, 1.0])
        twists[:, 2] += 2.0 * twists[:, 0]
        drive = twin_drive(seed, twists)
        path = path_of(drive.poses, np.array([0.0, 0.012, 0.0]), seed)
        _, axes = response(drive.sent, drive.twists, drive.stamps, path)
        assert axes["x"]["gain"].identified
        inside.append(holds(axes["x"]["gain"], drive.gains[0]))
    assert np.mean(inside) >= 0.8


def test_a_command_that_is_not_finite_is_left_out():
    drive = twin_drive(2, ramps(2))
    twists = drive.twists.copy()
    twists[500, 1] = np.nan
    found, axes = response(drive.sent, twists, drive.stamps, path_of(drive.poses, np.array([0.2, 0.1, 1.0]), 2))
    assert found is not None and found.yaw == pytest.approx(1.0, abs=0.02)
    assert axes["x"]["effective"].identified and holds(axes["x"]["effective"], drive.delays[0])


def test_poses_with_a_wrong_sign_are_not_taken_for_a_turned_body():
    drive = twin_drive(2, ramps(2))
    path = path_of(drive.poses, np.zeros(3), 2)
    signals = MotionSignals(
        ("x", "y", "yaw"),
        ("m", "m", "rad"),
        drive.sent,
        drive.twists,
        drive.stamps,
        path * [1.0, -1.0, -1.0],
        "",
        None,
        "",
        "",
    )
    assert mounting(signals) is None


@pytest.mark.parametrize(("topic", "kind"), [("/mocap/base", POSE_STAMPED), ("/vio/odometry", ODOMETRY)])
def test_a_bag_with_a_tracker_beside_the_centre_gives_the_delays_of_the_base(tmp_path, topic, kind):
    drive, sensor = twin_drive(2, ramps(2)), np.array([0.25, -0.15, 0.5])
    seen = [planar.compose(pose, sensor) for pose in drive.poses]
    rows = [
        (time, "/cmd_vel", TWIST_STAMPED, twist_stamped_cdr(nanoseconds(time), "base_link", twist))
        for time, twist in zip(drive.sent.tolist(), drive.twists, strict=True)
    ]
    for stamp, pose in zip(drive.stamps.tolist(), seen, strict=True):
        made = (
            pose_stamped_cdr(nanoseconds(stamp), "map", pose)
            if kind == POSE_STAMPED
            else odometry_cdr(nanoseconds(stamp), "map", "camera", pose, np.zeros(3))
        )
        rows.append((stamp + 0.002, topic, kind, made))
    bag = write_rows(tmp_path / "bag", rows)
    found = identify([bag], ROBOT, Options(pose_topic=topic), only=("body",))
    for name, true, gain in zip("xy", drive.delays, drive.gains, strict=False):
        delay = found.result[f"robot.base.delay.effective_{name}"].estimate
        assert delay.identified and holds(delay, true)
        assert found.result[f"base.body.gain_{name}"].estimate.value == pytest.approx(gain, abs=0.01)
    notes = " ".join(found.notes)
    assert "the tracked body is turned by 28.7 +-" in notes and "lies at x 0.25" in notes
