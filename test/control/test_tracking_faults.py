"""What the tracker does where it cannot track: limits, silent odometry, clocks that jump; in the core and over DDS."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from delay_runs import calibrated_truth
from response_runs import ROBOT
from tracking_runs import knowing

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.tracking_run import RunSettings, StampWatch
from youbot_dynamics.control.trajectory import Program, Trajectory, read_program
from youbot_dynamics.resources import program_path
from youbot_dynamics.simulation.faults import parse_faults
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.scenario._drive import Drive, DriveSetup, Gyro, _LockStep
from youbot_dynamics.simulation.youbot import BaseOnly

PERIOD = 0.02
ODOM_TIMEOUT = RunSettings().odom_timeout
TRUTH = calibrated_truth(1)
LAWS = pytest.mark.parametrize("law", ["pid", pytest.param("lq", marks=pytest.mark.slow)])


def feed(watch: StampWatch, ages: Iterator[float] | list[float], start: int = 0) -> list[str]:
    """What a watch says of messages a period apart that are so old."""
    return [watch.take(PERIOD * k, 7.0 + PERIOD * k - age) for k, age in enumerate(ages, start)]


def test_late_messages_and_a_clock_that_is_set_right_are_no_jump() -> None:
    random = np.random.default_rng(0)
    held_up = np.maximum.accumulate(random.exponential(0.02, 500) * (random.random(500) < 0.3))
    assert not any(feed(StampWatch(), list(random.exponential(0.005, 3000))))
    assert not any(feed(StampWatch(), [0.0] * 100 + list(held_up)))
    # A stall of half a second, then ten messages that waited come at once.
    burst = StampWatch()
    assert not any(feed(burst, [0.002] * 100))
    assert not any(burst.take(2.5, 7.0 + 2.0 + PERIOD * k) for k in range(10))
    for rate in (5e-4, -5e-4):
        assert not any(feed(StampWatch(), [rate * PERIOD * k for k in range(30000)]))


def test_a_queue_of_messages_shows_as_their_delay_behind_the_promptest_one_and_a_jump_does_not() -> None:
    def take(count: range, late: float, ahead: float = 0.0) -> list[str]:
        return [watch.take(PERIOD * k + late, 7.0 + PERIOD * k + ahead) for k in count]

    watch = StampWatch()
    assert not any(take(range(100), 0.002))
    assert watch.delay == pytest.approx(0.0, abs=1e-4)
    assert not any(take(range(100, 150), 0.302))
    assert watch.delay == pytest.approx(0.3, abs=2e-3)
    take(range(150, 200), 0.302, -2.0)  # the stamps went back
    assert watch.delay == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize(
    ("size", "said"), [(0.13, "ahead by 0.13 s"), (3.0, "ahead by 3.00 s"), (-0.2, "back by 0.18")]
)
def test_a_jump_is_told_once_with_its_size(size: float, said: str) -> None:
    watch = StampWatch()
    assert not any(feed(watch, [0.0] * 100))
    told = feed(watch, [-size] * 100, 100)
    assert said in told[0]
    assert not any(told[1:])


def faulty(fault: str, law: str = "pid") -> Drive:
    """12 s of the combined program on a twin to whose driver something happens after 8 s."""
    whole = read_program(program_path("combined"), PERIOD)
    program = Program("begin", whole.twists[: round(12.0 / PERIOD)], PERIOD).trajectory()
    faults = parse_faults(fault, ROBOT.driver)
    plant = BaseOnly(TRUTH, ROBOT.driver, 1)
    return drive(program, knowing(ROBOT, TRUTH), plant, 1, TrackerSettings(tracker=law), faults=faults)


class WrongGyro(Gyro):
    """A gyro whose rate is `scale` times the true one."""

    def __init__(self, scale: float) -> None:
        super().__init__(0)
        self._scale = scale

    def read(self, time: float, yaw_rate: float) -> tuple[float, float]:
        return super().read(time, self._scale * yaw_rate)


@pytest.mark.parametrize("scale", [-1.0, 0.0, 57.3])
def test_a_gyro_of_another_sign_axis_or_unit_never_turns_the_base_away_and_no_wheel_is_blamed(scale: float) -> None:
    """The base ran away for 2 s with a yaw of odometry that had the wrong sign, until the gyro was left out."""
    whole = read_program(program_path("combined"), PERIOD)
    path = Program("begin", whole.twists[: round(8.0 / PERIOD)], PERIOD).trajectory()
    setup = DriveSetup(gyro=WrongGyro(scale), rest=3.0)
    steps = _LockStep(path, knowing(ROBOT, TRUTH), BaseOnly(TRUTH, ROBOT.driver, 1), 1, setup)
    run = steps.drive()
    assert np.abs(run.odometry_pose[:, 2] - run.true_pose[:, 2]).max() < 0.025
    assert np.abs(run.true_pose[-1, 2] - path.poses[-1, 2]) < 0.005
    assert steps._estimator.odometry.slips == 0
    assert len(run.complaints) == 1 and run.complaints[0].startswith("gyro: ")


@LAWS
@pytest.mark.parametrize(
    ("fault", "said", "within"),
    [
        ("lost share=1.0 of=base after=8", "odom stopped", ODOM_TIMEOUT + 2.0 * PERIOD),
        ("clock_jump size=0.3 after=8", "jumped ahead by 0.3", 3.0 * PERIOD),
        ("clock_jump size=100 after=8", "jumped ahead by 100", 3.0 * PERIOD),
        # Odometry drops ten late readings before it believes in another clock.
        ("clock_jump size=-0.4 after=8", "went back by 0.", 14.0 * PERIOD),
        ("clock_jump size=-100 after=8", "went back by 99", 14.0 * PERIOD),
    ],
)
def test_it_asks_for_rest_in_time_and_the_base_rests_a_delay_and_a_braking_later(
    law: str, fault: str, said: str, within: float
) -> None:
    run = faulty(fault, law)
    assert said in run.given_up
    moving = max(request.stamp for request in run.tracker_requests if np.any(request.twist))
    assert 8.0 <= moving <= 8.0 + within + 1e-9
    limits, speed = ROBOT.base.limits, np.abs([request.twist for request in run.tracker_requests]).max(axis=0)
    braking = max(np.hypot(*speed[:2]) / limits.deceleration, speed[2] / limits.angular_deceleration)
    loops = 12.0 * TRUTH.lag  # until the motors have done what they are told, but for 2 %
    rest = 8.0 + within + braking + max(TRUTH.dead_times()) + loops
    assert np.max(np.abs(run.true_twist[run.reading_time > rest])) < 5e-3
    assert rest < 10.0


def test_a_gap_that_is_shorter_than_the_timeout_is_bridged() -> None:
    run = faulty("lost share=1.0 of=base after=8 lasting=0.4")
    assert run.given_up == ""
    off = np.linalg.norm(run.true_pose[-1, :2] - run.desired.poses[-1, :2])
    assert off < 0.01


def hurry(law: str, over: float, lasting: float) -> tuple[float, float]:
    """How far a drive sideways, for a while at `over` times the speed that wheels can do, goes beyond its end, and
    how far it is off 6 s after it could have arrived [m]."""
    base, limits = ROBOT.base.geometry.mecanum(), ROBOT.base.limits
    fastest = limits.wheel_speed / np.max(np.abs(base.wheel_speeds([0.0, 1.0, 0.0])))
    far = over * fastest * lasting
    arrival = 1.0 + far / fastest + fastest / limits.acceleration + fastest / limits.deceleration
    times = [0.0, 1.0, 1.0 + lasting, arrival + 8.0]
    path = Trajectory(times, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, far, 0.0], [0.0, far, 0.0]])
    plant = BaseOnly(TRUTH, ROBOT.driver, 1)
    run = drive(path, knowing(ROBOT, TRUTH), plant, 1, TrackerSettings(tracker=law, position_tolerance=5.0))
    assert run.given_up == ""
    wheels = np.array([sent.wheel_speeds for sent in run.sent])
    assert np.max(np.abs(wheels)) == pytest.approx(limits.wheel_speed, rel=0.02)
    assert np.max(np.abs(wheels)) <= limits.wheel_speed + 1e-9
    assert np.max(np.abs(run.true_pose[:, 0])) < 0.03 and np.max(np.abs(run.true_pose[:, 2])) < 0.03
    off = run.true_pose[:, 1] - far
    settled = run.reading_time - run.start > arrival + 6.0
    return float(np.max(off)), float(np.max(np.abs(off[settled])))


@pytest.mark.parametrize(("law", "most"), [("pid", 0.12), ("lq", 0.01)])
def test_beyond_the_limits_it_does_what_it_can_and_recovers_without_winding_up(law: str, most: float) -> None:
    """Twice as long at the limit adds nothing to what it goes too far: nothing is wound up meanwhile.

    That a PI law goes too far at all is its answer to a large error; the LQ law has no integral of it.
    """
    over, left = zip(*(hurry(law, 1.5, lasting) for lasting in (1.5, 3.0)), strict=True)
    print(f"\n{law}: over by {1e3 * np.array(over)} mm, at last {1e3 * np.array(left)} mm off")
    assert max(over) < most
    assert over[1] < over[0] + 0.01
    assert max(left) < 5e-3


def test_a_program_at_the_limit_ends_where_it_should() -> None:
    over, left = hurry("pid", 1.0, 2.0)
    print(f"\nover by {1e3 * over:.1f} mm, at last {1e3 * left:.1f} mm off")
    assert over < 0.08 and left < 5e-3


class Scene:
    """The node trajectory_tracker alone, with odometry, wheel commands and a trajectory from this process."""

    def __init__(self, processes, observer) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import Twist
        from nav_msgs.msg import Odometry
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import MultiDOFJointTrajectory

        processes.node("trajectory_tracker")
        self.observer = observer
        self.jump = {"odom": 0.0, "wheel_commands": 0.0}  # of the stamps [s]
        self.silent = False
        self.odom = observer.node.create_publisher(Odometry, "odom", 10)
        self.wheels = observer.node.create_publisher(JointState, "wheel_commands", 10)
        self.path = observer.node.create_publisher(MultiDOFJointTrajectory, "trajectory", 1)
        observer.listen(Twist, "trajectory_tracker/cmd_vel")
        observer.listen(DiagnosticArray, "/diagnostics")
        observer.wait(lambda: self.path.get_subscription_count() > 0, "the tracker")
        observer.wait(lambda: self.odom.get_subscription_count() > 0, "its ear for odom")
        observer.wait(lambda: self.wheels.get_subscription_count() > 0, "its ear for wheel_commands")

    def stamp(self, topic: str):
        from builtin_interfaces.msg import Time

        moment = time.time() + self.jump[topic]
        return Time(sec=int(moment), nanosec=int(1e9 * (moment % 1.0)))

    def go_on(self, duration: float) -> None:
        """Speak to the tracker every 20 ms, as a base that stands."""
        from nav_msgs.msg import Odometry
        from sensor_msgs.msg import JointState

        end = time.monotonic() + duration
        while time.monotonic() < end:
            if not self.silent:
                message = Odometry()
                message.header.stamp = self.stamp("odom")
                message.pose.pose.orientation.w = 1.0
                self.odom.publish(message)
            sent = JointState(name=list(ROBOT.driver.wheel_joints), velocity=[0.0] * 4, position=[0.0] * 4)
            sent.header.stamp = self.stamp("wheel_commands")
            self.wheels.publish(sent)
            self.observer.spin(PERIOD)

    def follow(self) -> None:
        """Let it follow a path at 0.1 m/s for half a minute."""
        from builtin_interfaces.msg import Duration
        from geometry_msgs.msg import Transform
        from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

        message = MultiDOFJointTrajectory(joint_names=["base_footprint"])
        message.header.frame_id = "base_footprint"
        for seconds in (0, 30):
            transform = Transform()
            transform.translation.x, transform.rotation.w = 0.1 * seconds, 1.0
            point = MultiDOFJointTrajectoryPoint(transforms=[transform], time_from_start=Duration(sec=seconds))
            message.points.append(point)
        patience = time.monotonic() + 60.0
        while self.asked() < 0.05:
            assert time.monotonic() < patience, "nothing is followed"
            # Again where it was lost, or given up because this test was held up for longer than odometry may be silent.
            self.go_on(0.2)
            self.path.publish(message)
            for _ in range(20):
                self.go_on(0.1)
                if self.asked() >= 0.05:
                    break
        self.go_on(0.5)

    def asked(self) -> float:
        """Speed it asked for last [m/s]."""
        asked = self.observer.received["trajectory_tracker/cmd_vel"]
        return abs(asked[-1].linear.x) if asked else 0.0

    def stopped_after(self, begin: float) -> tuple[float, float]:
        """How long after a moment it asked for rest, of which so much is what the machine held up [s].

        Asserts that it then kept silent.
        """
        topic = "trajectory_tracker/cmd_vel"
        patience = time.monotonic() + 60.0
        while self.asked() > 0.0:
            assert time.monotonic() < patience, "it never asked for rest"
            self.go_on(PERIOD)
        count = len(self.observer.received[topic])
        held_up = self.observer.held_up(topic, begin - 0.5)
        self.go_on(0.7)
        assert not any(message.linear.x for message in self.observer.received[topic][count:])
        return self.observer.times[topic][count - 1] - begin, held_up

    def wait_for(self, words: str) -> None:
        """Spin until the diagnostics say so: once a second they come."""
        self.observer.wait(lambda: words in self.status(), f"{words!r} in the diagnostics")

    def status(self) -> str:
        """Newest words of the tracker in the diagnostics."""
        entries = [s for array in self.observer.received["/diagnostics"] for s in array.status]
        own = [entry.message for entry in entries if entry.name.endswith("trajectory_tracker: trajectory")]
        return own[-1] if own else ""


@pytest.mark.ros
def test_the_node_stops_in_time_and_says_why_where_odometry_falls_silent_or_clocks_jump() -> None:
    """All in one process of the tracker, which takes the next trajectory each time.

    Promised: rest within 0.15 s of what it must not go on with, and what the machine held up besides.
    """
    pytest.importorskip("rclpy")
    from ros_processes import Observer, Processes

    with Processes() as processes, Observer() as observer:
        scene = Scene(processes, observer)
        cases = [
            # Stamps of odom, of wheel_commands: jump by so much; what is said; within [s].
            (0.3, 0.0, "stamps of /odom jumped ahead by 0.", 0.15),
            (-0.3, 0.0, "stamps of /odom went back by 0.", 0.15),
            (0.0, 0.3, "stamps of /wheel_commands jumped ahead by 0.", 0.15),
            (-5.0, -5.0, "went back by", 0.15),
        ]
        for odom, wheels, said, within in cases:
            scene.follow()
            begin = time.monotonic()
            scene.jump["odom"] += odom
            scene.jump["wheel_commands"] += wheels
            after, held_up = scene.stopped_after(begin)
            assert after < within + held_up
            scene.wait_for(said)
            print(f"\nodom {odom:+g} s, wheel_commands {wheels:+g} s: rest after {after:.3f} s; {scene.status()}")
            print(f"this machine held up {held_up:.3f} s")
            assert scene.status().startswith("trajectory given up")
            scene.jump = dict.fromkeys(scene.jump, 0.0)
        scene.follow()
        begin, scene.silent = time.monotonic(), True
        after, held_up = scene.stopped_after(begin)
        assert ODOM_TIMEOUT - 0.1 - held_up < after < ODOM_TIMEOUT + 0.15 + held_up
        scene.wait_for("odom stopped")
        print(f"\nno odom: rest after {after:.3f} s; {scene.status()}")
