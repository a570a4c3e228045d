"""Faulty wheels: each is named within a second on the twin and on contact physics; healthy robots raise no alarm."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from delay_runs import calibrated_truth
from response_runs import ROBOT
from roller_drives import phases_of
from tracking_runs import ContactBaseOnly, knowing

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Trajectory, read_program
from youbot_dynamics.control.wheel_watch import WheelWatch
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.faults import parse_faults
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.scenario._drive import Drive
from youbot_dynamics.simulation.truth import BaseTruth, load_truth
from youbot_dynamics.simulation.youbot import BaseOnly

PERIOD = 0.02
WHEELS = ROBOT.driver.wheel_joints
SLOWEST = 0.1  # [m/s] of a wheel's rim, from which on a fault must be seen
WAYS = {"ahead": (0.11, 0.0, 0.0), "left": (0.0, 0.11, 0.0), "turning": (0.0, 0.0, 0.3), "fast": (-0.3, 0.0, 0.1)}
SLIDING = ("mujoco", "fast", 0.0, "reversed_wheel")  # the wheels break away at once
PLANTS = pytest.mark.parametrize("plant", ["twin", pytest.param("mujoco", marks=pytest.mark.slow)])


def run_on(plant: str, truth: BaseTruth, robot: Robot, path: Trajectory, seed: int, fault: str = "") -> Drive:
    """A drive of which only a faulty wheel can be the end."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    body = ContactBaseOnly(truth, seed) if plant == "mujoco" else BaseOnly(truth, ROBOT.driver, seed)
    settings = TrackerSettings(position_tolerance=50.0, yaw_tolerance=4.0, tracker="lq" if seed % 7 == 0 else "pid")
    faults = parse_faults(fault, ROBOT.driver)
    return drive(path, robot, body, seed, settings, faults=faults, interface="wheels" if seed % 2 else "twist")


def straight(way: str) -> Trajectory:
    """Four seconds at one of WAYS."""
    return Trajectory([0.0, 4.0], [np.zeros(3), 4.0 * np.array(WAYS[way])])


def counts_are_as_they_should_be(run: Drive, wheel: str, begin: float = 2.0) -> bool:
    """Whether for a second after `begin` [s] all wheels slide as told, as far as the driver reads: nothing to see."""
    signs = np.where(np.array(WHEELS) == wheel, -1.0, 1.0)
    k, n = np.searchsorted(run.reading_time, run.reading_time[0] + [begin, begin + 1.0])
    turned = signs * (run.wheel_angle[n] - run.wheel_angle[k])
    told = sum(
        PERIOD * sent.wheel_speeds for sent in run.sent if run.reading_time[k] <= sent.stamp < run.reading_time[n]
    )
    return bool(np.allclose(turned, told, rtol=0.2))


@PLANTS
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", [0.0, 2.5])
@pytest.mark.parametrize("kind", ["dead_wheel", "reversed_wheel", "frozen_encoder"])
def test_each_wheel_is_named_within_a_second(plant: str, way: str, after: float, kind: str) -> None:
    """From the start of the drive, or in the middle of it; with the response known or not."""
    truth = calibrated_truth(1)
    if kind == "reversed_wheel":
        truth = dataclasses.replace(truth, servo_gain=0.0)  # loops that the floor's grip overcomes
    for wheel in WHEELS:
        robot = knowing(ROBOT, truth) if wheel in WHEELS[:2] else ROBOT
        run = run_on(plant, truth, robot, straight(way), 1, f"{kind} joint={wheel} after={after}")
        if (plant, way, after, kind) == SLIDING and counts_are_as_they_should_be(run, wheel):
            continue
        assert run.given_up.startswith(wheel) and ";" not in run.given_up
        least = SLOWEST / ROBOT.base.geometry.wheel_radius
        quick = next(sent.stamp for sent in run.sent if np.min(np.abs(sent.wheel_speeds)) > least)
        moving = max(request.stamp for request in run.tracker_requests if np.any(request.twist))
        assert moving + PERIOD - max(after, quick) <= 1.0, f"{wheel}: {run.given_up}"


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", [0.0, 2.5])
def test_a_wheel_reversed_in_both_is_named_unless_stiff_servos_make_all_wheels_slide_as_told(
    way: str, after: float
) -> None:
    truth = calibrated_truth(1)
    assert truth.servo_gain > 5.0
    for wheel in WHEELS:
        run = run_on("mujoco", truth, ROBOT, straight(way), 1, f"reversed_wheel joint={wheel} after={after}")
        assert run.given_up.startswith(wheel) or counts_are_as_they_should_be(run, wheel, max(2.0, after + 0.4))


def healthy(seed: int) -> tuple[BaseTruth, Robot, Trajectory, str]:
    """A robot, what is known of it, a path and what happens to its messages, drawn."""
    random = np.random.default_rng([seed, 99])
    jitter, grip = random.choice([0.001, 0.2 * PERIOD]), random.choice([0.8, 0.5, 0.3])
    truth = dataclasses.replace(load_truth(seed), stamp_jitter=float(jitter), floor_friction=float(grip))
    if seed % 3 == 0:
        truth = dataclasses.replace(truth, rollers=6.0, roller_phase=phases_of(seed))
    robot = knowing(ROBOT, truth) if seed % 2 else ROBOT
    messages = ("", "lost share=0.2 of=base", "late delay=0.1 share=0.2 of=base", "")[seed % 4]
    if seed % 5 < 3:
        name = ("translation", "rotation", "combined")[seed % 5]
        return truth, robot, read_program(program_path(name), PERIOD).trajectory(), messages
    # From point to point, from a crawl to more than the wheels can do.
    lasting = random.uniform(0.4, 4.0, 10)
    speeds = random.normal(size=(10, 3)) * random.choice([0.02, 0.06, 0.1, 0.3, 0.8], 10)[:, None] * [1.0, 1.0, 2.0]
    poses = np.vstack([np.zeros(3), np.cumsum(speeds * lasting[:, None], axis=0)])
    return truth, robot, Trajectory(np.append(0.0, np.cumsum(lasting)), poses), messages


@PLANTS
@pytest.mark.parametrize("seeds", [range(1, 6), pytest.param(range(6, 90), marks=pytest.mark.slow)])
def test_no_healthy_robot_raises_an_alarm(plant: str, seeds: range) -> None:
    """Half an hour, slow ones included: any delay, lag, friction, slip, scatter of stamps, crawl and saturation."""
    driven = 0.0
    for seed in seeds:
        truth, robot, path, messages = healthy(seed)
        run = run_on(plant, truth, robot, path, seed, messages)
        assert "wheel" not in run.given_up, f"seed {seed}: {run.given_up}"
        driven += float(run.reading_time[-1])
    print(f"\n{plant}: {driven / 60.0:.1f} minutes without an alarm")


def follow(watch: WheelWatch, speeds: np.ndarray, sent: np.ndarray, seconds: float, begin: float = 0.0) -> str:
    """What a watch says at last of wheels that turn at speeds (4,) and are sent others [rad/s]."""
    said = ""
    for k in range(round(seconds / PERIOD)):
        stamp = begin + k * PERIOD
        watch.sent(stamp, sent.tolist())
        said = watch.read(stamp, (speeds * stamp).tolist())
    return said


def test_it_says_what_it_sees() -> None:
    told = np.full(4, 4.0)
    for speeds, said in (
        ([4.0, 0.0, 4.0, 4.0], "wheel_joint_fr stands still though commanded: it is dead or stuck, or its encoder"),
        ([4.0, 4.0, -4.0, 4.0], "wheel_joint_bl turns against its command"),
        ([2.0, 6.0, 2.0, 2.0], "wheel_joint_fl drives against the others"),
        ([0.0, 0.0, 0.0, 0.0], "no wheel follows its command: motors off"),
        ([4.0, 4.0, 4.0, 4.0], ""),
        ([3.0, 3.2, 3.1, 2.9], ""),
    ):
        text = follow(WheelWatch(ROBOT), np.array(speeds), told, 1.0)
        assert text.startswith(said) and bool(text) == bool(said)


def test_what_is_asked_for_a_moment_or_slowly_accuses_nobody() -> None:
    still, told = np.zeros(4), np.full(4, 4.0)
    assert follow(WheelWatch(ROBOT), still, told, 0.6) == ""
    assert follow(WheelWatch(ROBOT), still, np.full(4, 1.5), 3.0) == ""
    watch = WheelWatch(ROBOT)
    for k in range(10):
        assert follow(watch, still, (-1.0) ** k * told, 0.6, 0.6 * k) == ""


def test_a_jump_of_a_count_and_numbers_that_are_none_begin_anew() -> None:
    watch, told = WheelWatch(ROBOT), np.full(4, 4.0)
    for k in range(200):
        watch.sent(k * PERIOD, told.tolist())
        angles = told * k * PERIOD + [100.0 if k > 100 else 0.0, 0.0, 0.0, 0.0]
        angles[1] = np.nan if k == 150 else angles[1]
        assert watch.read(k * PERIOD, angles.tolist()) == ""


def test_joints_named_twice_are_refused_in_the_parameters() -> None:
    with pytest.raises(ParameterError, match="robot.driver.wheel_joints: got wheel_joint_fl twice"):
        dataclasses.replace(ROBOT.driver, wheel_joints=(WHEELS[0], WHEELS[0], WHEELS[2], WHEELS[3]))


@pytest.mark.ros
def test_a_faulty_wheel_ends_the_trajectory_and_is_named_over_dds() -> None:
    pytest.importorskip("rclpy")
    from diagnostic_msgs.msg import DiagnosticArray
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters
    from ros_processes import Observer, Processes
    from sensor_msgs.msg import JointState
    from std_srvs.srv import Trigger
    from trajectory_messages import many
    from trajectory_msgs.msg import MultiDOFJointTrajectory

    from youbot_dynamics.nodes._messages import seconds

    def spoil(fault: str) -> float:
        parameter = Parameter(name="fault")
        parameter.value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=fault)
        request = SetParameters.Request(parameters=[parameter])
        assert observer.call(SetParameters, "mock_youbot/set_parameters", request).results[0].successful
        return time.time()

    with Processes() as processes, Observer() as observer:
        processes.node("mock_youbot")
        processes.node("base_controller")
        processes.node("odometry")
        observer.listen(JointState, "trajectory_tracker/error")
        observer.listen(DiagnosticArray, "/diagnostics")
        path = observer.node.create_publisher(MultiDOFJointTrajectory, "trajectory", 1)
        errors = observer.received["trajectory_tracker/error"]
        observer.wait(lambda: path.get_subscription_count() > 0, "the tracker", 60.0)
        observer.wait(lambda: observer.node.count_subscribers("trajectory_tracker/cmd_vel") > 0, "the controller", 60.0)

        def told(item: str, words: str) -> str:
            """Latest message of an item with these words, "" for none."""
            entries = [s for array in observer.received["/diagnostics"] for s in array.status]
            return next((s.message for s in reversed(entries) if s.name == item and words in s.message), "")

        def drive() -> None:
            """Send the trajectory, and again where this machine held up the odometry, until it is followed."""
            begun = len(errors)
            observer.send(path, many(300, 30.0, 0.15), lambda: len(errors) > begun + 100, "the drive", 8.0)

        def ended_by(fault: str) -> tuple[str, float]:
            """Why a drive ended in which a fault was set, and the stamp of its last step after that [s]."""
            observer.received["/diagnostics"].clear()
            drive()
            observer.received["/diagnostics"].clear()
            since = spoil(fault)
            observer.wait(lambda: told("/trajectory_tracker: trajectory", "given up"), f"{fault}: the end of the drive")
            why, last = told("/trajectory_tracker: trajectory", "given up"), seconds(errors[-1].header.stamp) - since
            spoil("")
            observer.call(Trigger, "mock_youbot/reset", Trigger.Request())
            observer.spin(1.0)
            return why, last

        observer.wait(lambda: told("/odometry: wheels", "integrating"), "odometry", 60.0)
        for kind, wheel in (("dead_wheel", 1), ("reversed_wheel", 0), ("frozen_encoder", 2)):
            ends = (ended_by(f"{kind} joint={WHEELS[wheel]}") for _ in range(10))
            # A machine that holds up the odometry ends drives as well: another one then.
            why, last = next((why, last) for why, last in ends if "odom stopped" not in why)
            print(f"\n{kind}: last step on a reading {last:.2f} s after the fault was set")
            assert why.startswith(f"trajectory given up: {WHEELS[wheel]}") and last < 1.0, why
        spoil(f"duplicate_names joint={WHEELS[3]}")
        words = f"{WHEELS[3]} named twice in one message"
        observer.wait(lambda: told("/odometry: wheels", words), words)
