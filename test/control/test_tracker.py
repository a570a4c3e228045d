"""The tracker on an ideal robot with a delay on each axis, and its independence of the frame."""

from __future__ import annotations

import numpy as np
import pytest
from repository import ROOT

from youbot_dynamics.control.tracker import BasePredictor, Pid, Tracker, TrackerSettings
from youbot_dynamics.control.tracker._pid import PidGains
from youbot_dynamics.control.trajectory import Trajectory, read_program
from youbot_dynamics.dynamics.driven_base import DrivenBase
from youbot_dynamics.errors import InputError, TrajectoryError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import load_robot

BASE = load_robot().base
PROGRAMS = ROOT / "config" / "programs"
HOLD = 0.02
SETTINGS = TrackerSettings()
DELAYS = (0.10, 0.24, 0.16)


def program(name: str, seconds: float = 20.0) -> Trajectory:
    whole = read_program(PROGRAMS / f"{name}.txt", HOLD).trajectory()
    keep = whole.times <= seconds
    return Trajectory(whole.times[keep], whole.poses[keep])


def late(delays) -> DrivenBase:
    """A robot that answers each axis so late [s] and is ideal otherwise."""
    return DrivenBase(BASE.dynamics(), delays, 0.0, 0.0)


def law(gains: PidGains | None) -> Pid | None:
    """Law with these gains, if there are any."""
    return None if gains is None else Pid(gains)


def drive_ideal(
    tracker: Tracker, delays: tuple[float, float, float], duration: float, pose: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Times and poses of a robot whose axes hold each command `delay` late (whole periods), fed back at once."""
    periods = [round(delay / HOLD) for delay in delays]
    sent: list[np.ndarray] = []
    poses = [np.zeros(3) if pose is None else np.array(pose)]
    times = [0.0]
    for k in range(round(duration / HOLD)):
        sent.append(tracker.step(k * HOLD, k * HOLD, poses[-1]).twist)
        acting = [sent[k - n][axis] if k >= n else 0.0 for axis, n in enumerate(periods)]
        poses.append(planar.integrate(poses[-1], acting, HOLD))
        times.append((k + 1) * HOLD)
    return np.array(times), np.array(poses)


@pytest.mark.parametrize("name", ["translation", "rotation", "combined"])
@pytest.mark.parametrize("feedback", [False, True])
def test_the_preview_makes_up_exactly_for_a_different_delay_on_each_axis(name: str, feedback: bool) -> None:
    gains = SETTINGS.gains(DELAYS, HOLD) if feedback else None
    tracker = Tracker(program(name, 8.0), 0.34, late(DELAYS), law(gains), HOLD)
    times, poses = drive_ideal(tracker, DELAYS, 9.0)
    desired = np.array([tracker.desired_pose(time) for time in times])
    assert np.max(np.abs(desired)) > 0.1
    np.testing.assert_allclose(poses, desired, rtol=0, atol=1e-9)


def test_without_the_preview_the_same_drive_is_late_by_the_delay() -> None:
    tracker = Tracker(program("translation", 8.0), 0.34, late((0.0, 0.0, 0.0)), None, HOLD)
    times, poses = drive_ideal(tracker, DELAYS, 9.0)
    error = poses - np.array([tracker.desired_pose(time) for time in times])
    assert np.max(np.abs(error[:, 0])) > 0.9 * 0.2 * DELAYS[0]
    shifted = np.array([tracker.desired_pose(time - DELAYS[1])[1] for time in times])
    np.testing.assert_allclose(poses[:, 1], shifted, atol=1e-9)


@pytest.mark.parametrize("refused", [0, 1, 2])
@pytest.mark.parametrize("delays", [(0.2, 0.2, 0.2), (0.10, 0.14, 0.12), (0.16, 0.06, 0.2)])
def test_an_axis_without_a_known_delay_makes_feed_forward_no_worse_than_none(refused: int, delays: tuple) -> None:
    """Axes that are late together are late on their path; a turn that alone is late leaves it."""
    path, worst = program("combined", 12.0), []
    for believed in (np.zeros(3), np.where(np.arange(3) == refused, 0.0, delays)):
        settings = TrackerSettings(feedback=False)
        tracker = settings.for_trajectory(path, 0.34, late(believed), HOLD)
        times, poses = drive_ideal(tracker, delays, 13.0)
        errors = poses - np.array([path.pose(time - 0.34) for time in times])
        worst.append((np.hypot(errors[:, 0], errors[:, 1]).max(), np.abs(errors[:, 2]).max()))
    (none, none_yaw), (partly, partly_yaw) = worst
    assert partly <= 0.7 * none and partly_yaw <= 0.7 * none_yaw


@pytest.mark.parametrize("delay", [0.1234, 0.057])
def test_a_curved_path_is_followed_exactly_with_one_delay_that_fits_no_period(delay: float) -> None:
    """Constant turn and translation at once; poses are checked where the held commands end."""
    arc = Trajectory([0.0, 6.0], [[0.0, 0.0, 0.0], planar.exponential([1.2, 0.6, 3.0])])
    tracker = Tracker(arc, 0.3, late((delay,) * 3), None, HOLD)
    pose = np.zeros(3)
    for k in range(400):
        pose = planar.integrate(pose, tracker.step(k * HOLD, 0.0, np.zeros(3)).twist, HOLD)
        np.testing.assert_allclose(pose, tracker.desired_pose((k + 1) * HOLD + delay), rtol=0, atol=1e-9)


def test_any_delays_are_exact_on_the_own_clock_of_each_axis_of_a_translation() -> None:
    delays = (0.0613, 0.1377, 0.2)
    tracker = Tracker(program("translation", 8.0), 0.31, late(delays), None, HOLD)
    position = np.zeros(2)
    for k in range(430):
        position = position + tracker.step(k * HOLD, 0.0, np.zeros(3)).twist[:2] * HOLD
        for axis in range(2):
            arrival = (k + 1) * HOLD + delays[axis]
            assert position[axis] == pytest.approx(tracker.desired_pose(arrival)[axis], abs=1e-9)


FRAMES = [(0.0, 0.0, 2.0), (3.0, -2.0, -1.3), (-5.0, 1.0, 3.1)]


@pytest.mark.parametrize("frame", FRAMES)
def test_moving_and_turning_the_whole_scene_leaves_the_body_commands_as_they_are(frame: tuple) -> None:
    trajectory = program("combined", 4.0)
    gains = SETTINGS.gains((0.1, 0.2, 0.15), HOLD)
    here = Tracker(trajectory, 0.3, late((0.1, 0.2, 0.15)), law(gains), HOLD)
    there = Tracker(trajectory.anchored(frame), 0.3, late((0.1, 0.2, 0.15)), law(gains), HOLD)
    rng = np.random.default_rng(4)
    for k in range(150):
        pose = here.desired_pose(k * HOLD) + rng.normal(0.0, 0.05, 3)
        ours = here.step((k + 1) * HOLD, k * HOLD, pose)
        theirs = there.step((k + 1) * HOLD, k * HOLD, planar.compose(frame, pose))
        np.testing.assert_allclose(theirs.twist, ours.twist, atol=1e-9)
        np.testing.assert_allclose(theirs.error, ours.error, atol=1e-9)
        np.testing.assert_allclose(theirs.error_rate, ours.error_rate, atol=1e-7)


def test_the_error_is_actual_less_desired_in_the_body_frame() -> None:
    standing = Trajectory([0.0], [[1.0, 2.0, 0.3]])
    gains = SETTINGS.gains((0.1, 0.1, 0.1), HOLD)
    # Facing +y, displaced by 0.1 along +y: 0.1 too far ahead, so it has to go backwards.
    state = Tracker(standing, 0.0, late(np.zeros(3)), law(gains), HOLD, settle=9.0).step(
        0.0, 0.0, [1.0, 2.1, np.pi / 2]
    )
    np.testing.assert_allclose(state.error, [0.1, 0.0, np.pi / 2 - 0.3], atol=1e-12)
    assert state.twist[0] < 0.0 and state.twist[1] == pytest.approx(0.0, abs=1e-12) and state.twist[2] < 0.0


@pytest.mark.parametrize(("actual", "desired", "error"), [(3.1, -3.1, 6.2 - 2 * np.pi), (-3.1, 3.1, 2 * np.pi - 6.2)])
def test_the_yaw_error_takes_the_short_way_round(actual: float, desired: float, error: float) -> None:
    tracker = Tracker(Trajectory([0.0], [[0.0, 0.0, desired]]), 0.0, late(np.zeros(3)), None, HOLD)
    assert tracker.step(0.0, 0.0, [0.0, 0.0, actual]).error[2] == pytest.approx(error)


def test_feedback_returns_a_displaced_robot_to_its_path() -> None:
    delays = (0.14, 0.14, 0.14)
    tracker = Tracker(program("combined"), 0.3, late(delays), law(SETTINGS.gains(delays, HOLD)), HOLD, settle=1.0)
    times, poses = drive_ideal(tracker, delays, 12.0, np.array([0.1, -0.08, 0.2]))
    error = poses - np.array([tracker.desired_pose(time) for time in times])
    assert np.max(np.abs(error[-100:])) < 2e-3


@pytest.mark.parametrize("believed", [0.2, 0.0], ids=["delay known", "delay unknown"])
def test_behind_the_predictor_lq_leaves_nothing_of_a_steady_push(believed: float) -> None:
    """A predictor that trusts a share is behind it by some periods, one that does not look ahead by none."""
    stand = Trajectory(np.array([0.0, 60.0]), np.zeros((2, 3)))
    tracker = TrackerSettings(tracker="lq").for_trajectory(stand, 0.0, late((believed,) * 3), HOLD)
    pose, sent, errors = np.zeros(3), [np.zeros(3)] * 10, []
    for k in range(2000):
        state = tracker.step(k * HOLD, k * HOLD, pose)
        sent.append(state.twist)
        errors.append(state.error)
        pose = planar.integrate(pose, sent[k] + np.array([0.004, 0.0, 0.0]), HOLD)
    assert np.max(np.abs(errors)) > 1e-3
    np.testing.assert_allclose(errors[-1], 0.0, atol=2e-6)


def test_before_a_first_reading_only_commands_that_may_still_act_are_kept() -> None:
    """So without feedback, where nothing is ever read: a drive of hours would grow slow."""
    predictor = BasePredictor(late(DELAYS), 1.0)
    for k in range(500):
        predictor.sent(k * HOLD, np.array([0.1, 0.0, 0.0]))
    assert predictor.kept <= max(DELAYS) / HOLD + 3
    predictor.observe(499 * HOLD, np.zeros(3))
    now = 499 * HOLD
    np.testing.assert_allclose(predictor.poses([now + 0.2], [], np.zeros((0, 3)))[0], [0.02, 0.0, 0.0], atol=1e-9)


def test_it_finishes_after_the_last_point_and_the_time_to_settle_and_then_asks_for_rest() -> None:
    tracker = Tracker(Trajectory([0.0, 1.0], [[0, 0, 0], [0.1, 0, 0]]), 2.0, late(np.zeros(3)), None, HOLD, settle=0.5)
    assert not tracker.step(3.49, 3.4, np.zeros(3)).finished
    last = tracker.step(3.5, 3.4, np.ones(3))
    assert last.finished and np.all(last.twist == 0.0)


def test_before_the_start_it_stands_but_for_the_preview() -> None:
    line = Trajectory([0.0, 1.0], [[0, 0, 0], [0.1, 0.1, 0]])
    tracker = Tracker(line, 1.0, late((0.3, 0.1, 0.0)), None, HOLD)
    np.testing.assert_allclose(tracker.step(0.65, 0.6, np.zeros(3)).twist, 0.0, atol=1e-12)
    np.testing.assert_allclose(tracker.step(0.8, 0.7, np.zeros(3)).twist, [0.1, 0.0, 0.0], atol=1e-12)


def test_a_cut_request_stops_the_integral_and_rounding_does_not() -> None:
    def integral_after(share: float) -> float:
        standing = Trajectory([0.0], [[0.0, 0.0, 0.0]])
        tracker = Tracker(standing, 0.0, late(np.zeros(3)), law(SETTINGS.gains((0.2,) * 3, HOLD)), HOLD, settle=99.0)
        for k in range(100):
            twist = tracker.step(k * HOLD, k * HOLD, [0.5, 0.0, 0.0]).twist
            tracker.observe_sent(k * HOLD, twist * share)
        return float(twist[0])

    assert integral_after(1.0) < integral_after(0.5) - 0.1
    assert integral_after(1.0 - 1e-9) == pytest.approx(integral_after(1.0))


def test_a_command_that_left_late_is_no_error_of_the_base() -> None:
    """An exact robot whose commands leave up to 9 ms late is predicted from when they really left."""
    random, base = np.random.default_rng(1), late((0.1, 0.1, 0.1))
    path = Trajectory([0.0, 3.0], [[0.0, 0.0, 0.0], [0.9, 0.3, 0.6]])
    tracker = Tracker(path, 0.4, base, law(SETTINGS.gains((0.1,) * 3, HOLD)), HOLD)
    sent, twists, pose, off = [0.0], [np.zeros(3)], np.zeros(3), []
    for k in range(1, 150):
        asked = tracker.step(k * HOLD, sent[-1] + 1e-3 if k > 1 else 0.0, pose).twist
        left = k * HOLD + random.uniform(0.0, 0.009)
        sent, twists = [*sent, left], [*twists, asked]
        tracker.observe_sent(left, twists[-1])
        pose = base.path(sent, twists, [left + 1e-3])[0]
        predicted = tracker._predictor.poses([left + 1e-3], [], np.zeros((0, 3)))[0]
        off.append(np.abs(predicted - pose).max())
    assert max(off) < 1e-5
    assert np.linalg.norm(pose) > 0.5


def test_settings_give_gains_for_the_whole_loop_and_none_without_feedback() -> None:
    assert TrackerSettings(feedback=False).gains((0.1, 0.1, 0.1), HOLD) is None
    made = SETTINGS.gains((0.1, 0.0, 0.3), HOLD)
    assert made is not None
    share = SETTINGS.delay_uncertainty
    loops = np.array([share * 0.1, SETTINGS.assumed_delay, share * 0.3]) + 2 * HOLD
    np.testing.assert_allclose(np.array(made.proportional) * loops, SETTINGS.aggressiveness / np.e)


@pytest.mark.parametrize("wrong", [0.0, -0.02, np.nan, "soon", None])
def test_a_period_that_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="^period: got "):
        SETTINGS.gains((0.1, 0.1, 0.1), wrong)
    with pytest.raises(InputError, match="^dt: got "):
        Trajectory([0.0, 1.0], np.zeros((2, 3))).eased(0.5, wrong)


@pytest.mark.parametrize("wrong", [None, "x", np.nan, np.inf, 10**400, [[0.1, 0.2]], [np.nan, 0.0, 0.0]])
def test_readings_that_are_no_numbers_are_refused_and_change_nothing(wrong: object) -> None:
    def follow(disturbed: bool) -> np.ndarray:
        tracker = SETTINGS.for_trajectory(Trajectory([0.0, 2.0], [[0.0] * 3, [0.5, 0.0, 0.0]]), 0.0, late(DELAYS), HOLD)
        for time in (0.02, 0.04, 0.06):
            for refused in (
                lambda time=time: tracker.step(time, time, wrong),
                lambda time=time: tracker.step(wrong, time, np.zeros(3)),
                lambda time=time: tracker.step(time, wrong, np.zeros(3)),
                lambda time=time: tracker.observe_sent(time, wrong),
                lambda: tracker.observe_sent(wrong, np.zeros(3)),
                lambda: tracker.observe_line(wrong, 0.0),
                lambda time=time: tracker.observe_line(time, wrong),
                lambda: tracker.desired_pose(wrong),
                lambda: SETTINGS.tolerates(wrong),
            ) * disturbed:
                with pytest.raises(InputError, match="got .*expected"):
                    refused()
            state = tracker.step(time, time, [0.01, 0.0, 0.0])
        return state.twist

    assert np.array_equal(follow(True), follow(False))


def test_an_error_beyond_the_tolerance_is_no_tracking_error() -> None:
    from youbot_dynamics.control.tracker import TrackerSettings

    settings = TrackerSettings(position_tolerance=0.5, yaw_tolerance=0.8)
    assert settings.tolerates([0.3, -0.39, 0.79])
    assert not settings.tolerates([0.4, 0.4, 0.0])
    assert not settings.tolerates([0.0, 0.0, -0.81])


def test_an_eased_trajectory_starts_and_stops_smoothly_on_the_same_path() -> None:
    arc = Trajectory([0.0, 4.0], [[0.0, 0.0, 0.0], [0.8, 0.4, 0.9]])
    eased = arc.eased(0.8)
    assert eased.duration == pytest.approx(4.8)
    assert np.diff(eased.times) == pytest.approx(np.full(240, 0.02))
    speeds = np.linalg.norm(np.array([eased.mean_twist(t, t + 0.02) for t in np.arange(0.0, 4.8, 0.02)])[:, :2], axis=1)
    assert speeds[0] < 1e-3 and speeds[-1] < 1e-3
    assert np.max(np.abs(np.diff(speeds))) / 0.02 < 0.6
    assert np.max(speeds) == pytest.approx(np.linalg.norm(arc.mean_twist(0.0, 4.0)[:2]), rel=1e-3)
    fine = arc.path(np.linspace(0.0, 4.0, 4001))[:, :2]
    on_it = [np.min(np.linalg.norm(fine - pose[:2], axis=1)) for pose in eased.poses]
    assert max(on_it) < 1e-3
    assert arc.eased(0.0) is arc
    with pytest.raises(TrajectoryError, match="ramp"):
        arc.eased(5.0)


def test_a_camera_that_sees_the_line_elsewhere_moves_the_path_there() -> None:
    """The line lies 4 cm left of the planned path and odometry drifts sideways: the robot stays on the line."""
    line = Trajectory([0.0, 12.0], [[0.0, 0.0, 0.0], [2.4, 0.0, 0.0]])
    delays = (0.1, 0.1, 0.1)
    tracker = Tracker(line, 0.3, late(delays), law(SETTINGS.gains(delays, HOLD)), HOLD, line_blend=0.3)
    sent: list[np.ndarray] = []
    true, drift = np.zeros(3), 0.0
    seen: list[float] = []
    for k in range(600):
        now = k * HOLD
        drift += 0.002 * HOLD
        sent.append(tracker.step(now, now, true + [0.0, drift, 0.0]).twist)
        seen.append(float(true[1]) - 0.04)
        if k >= 10 and k % 5 == 0 and not 300 < k < 350:  # 10 pictures a second, 0.2 s late, lost for a second
            tracker.observe_line(now - 0.2, seen[-11])
        true = planar.integrate(true, sent[-6] if k >= 5 else np.zeros(3), HOLD)
    assert np.max(np.abs(np.array(seen)[400:])) < 0.003


def test_the_first_picture_of_a_line_moves_the_path_no_more_at_once_than_any_other() -> None:
    line = Trajectory([0.0, 12.0], [[0.0, 0.0, 0.0], [2.4, 0.0, 0.0]])
    tracker = Tracker(line, 0.3, late((0.1, 0.1, 0.1)), None, HOLD, line_blend=0.3)
    for k in range(20):
        tracker.step(k * HOLD, k * HOLD, np.zeros(3))
        tracker.observe_line(k * HOLD, -0.04)
        assert tracker.desired_pose(1.0)[1] == pytest.approx(0.04 * (1.0 - np.exp(-k * HOLD / 0.3)))
    tracker.observe_line(5.0, 1.0)  # of a moment nobody knows
    assert tracker.desired_pose(1.0)[1] < 0.04


def test_a_picture_is_held_against_the_first_reading_of_its_moment_and_an_older_picture_changes_nothing() -> None:
    line = Trajectory([0.0, 12.0], [[0.0, 0.0, 0.0], [2.4, 0.0, 0.0]])
    tracker = Tracker(line, 0.3, late((0.1, 0.1, 0.1)), None, HOLD)
    tracker.step(0.02, 0.0, np.zeros(3))
    tracker.step(0.04, 0.02, np.zeros(3))
    tracker.step(0.06, 0.02, [0.0, 0.5, 0.0])  # odometry has brought nothing newer
    tracker.observe_line(0.02, -0.04)
    assert tracker.desired_pose(1.0)[1] == pytest.approx(0.04)
    tracker.observe_line(0.0, 1.0)
    tracker.observe_line(0.02, 1.0)
    assert tracker.desired_pose(1.0)[1] == pytest.approx(0.04)
