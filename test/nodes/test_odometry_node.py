"""Node odometry over DDS: gyro, wheels off pattern, roller phases; and the base controller that rests on them.

The node goes by stamps: they are made up, a period apart, and the next reading goes out when the node has answered the
one before. So a busy machine makes the test slower and nothing else.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.duration import Duration  # noqa: E402
from roller_drives import twin_drive  # noqa: E402
from ros_processes import PATIENCE, Observer, Processes, end, joint_message  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402

from youbot_dynamics.nodes._messages import pose_vector, seconds, to_time  # noqa: E402
from youbot_dynamics.nodes._runtime import LATCHED_QOS  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402

pytestmark = pytest.mark.ros

ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
NAMES = ROBOT.driver.wheel_joints
PERIOD = 0.02
WHEELS, PATTERN, COMMANDS = "/odometry: wheels", "/odometry: pattern", "/base_controller: commands"
BIAS = 0.03  # [rad/s]
PHASES = ("0.1", "-0.4", "0.3", "0.05")
KNOWN = [
    word
    for wheel, phase in zip(("fl", "fr", "rl", "rr"), PHASES, strict=True)
    for word in ("-p", f"robot.base.geometry.roller_phase_{wheel}:={phase}")
] + ["-p", "robot.base.geometry.roller_phase_error:=0.01"]


class Wheels:
    """A driver of wheels that turn as commanded, and a gyro of a base that turns as commanded."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.states = observer.node.create_publisher(JointState, "driver/joint_states", 10)
        self.imu = observer.node.create_publisher(Imu, "imu", 10)
        self.angles = np.zeros(4)
        self.stamp = time.time()

    def publish_motion(self, speeds: np.ndarray, yaw_rate: float | None) -> None:
        """Publish one reading at the stamp of now; the gyro's comes first."""
        driver = ROBOT.driver
        if yaw_rate is not None:
            message = Imu()
            message.header.stamp = to_time(self.stamp)
            message.angular_velocity.z = yaw_rate + BIAS
            self.imu.publish(message)
        position, velocity = self.angles * driver.position_sign, speeds * driver.velocity_sign
        self.states.publish(joint_message(self.stamp, NAMES, position=position, velocity=velocity))

    def roll(self, duration: float, speeds: np.ndarray, yaw_rate: float | None = None) -> None:
        """Turn on at wheel speeds (4,) [rad/s]; the gyro tells a yaw rate and its bias, or nothing."""
        for _ in range(round(duration / PERIOD)):
            self.stamp += PERIOD
            self.angles = self.angles + PERIOD * speeds
            self.publish_motion(speeds, yaw_rate)
            self.observer.wait(lambda: told_until(self.observer) > self.stamp - 0.5 * PERIOD, "odom of this reading")

    def begin(self) -> None:
        """Stand until odometry answers."""

        def heard() -> bool:
            self.stamp += PERIOD
            self.publish_motion(np.zeros(4), None)
            self.observer.spin(PERIOD)
            return bool(self.observer.received["odom"])

        self.observer.wait(heard, "odom")
        self.roll(PERIOD, np.zeros(4))

    def jump(self) -> None:
        """Count on from elsewhere."""
        self.stamp += PERIOD
        self.angles = self.angles + 50.0
        self.publish_motion(np.zeros(4), None)


def told_until(observer: Observer) -> float:
    """Stamp of the newest odom [s]."""
    return seconds(observer.received["odom"][-1].header.stamp)


def status(observer: Observer, name: str):
    """Last status of this name."""
    found = [s for array in observer.received["/diagnostics"] for s in array.status if s.name == name]
    return found[-1] if found else None


def values(observer: Observer, name: str) -> dict[str, str]:
    found = status(observer, name)
    return {} if found is None else {pair.key: pair.value for pair in found.values}


def spread(observer: Observer) -> float:
    """Variance of the position [m2]; 0 before the first message."""
    if not observer.received["odom"]:
        return 0.0
    covariance = np.reshape(observer.received["odom"][-1].pose.covariance, (6, 6))
    return float(np.trace(covariance[:2, :2]))


def yaw(observer: Observer) -> float:
    return float(pose_vector(observer.received["odom"][-1].pose.pose)[2])


def test_odometry_is_of_the_time_at_which_the_driver_read_the_wheels():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false", "-p", "robot.base.delay.stamps:=0.06")
        observer.listen(Odometry, "odom")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry")

        def heard() -> bool:
            wheels.stamp += PERIOD
            wheels.publish_motion(np.zeros(4), None)
            observer.spin(PERIOD)
            return bool(observer.received["odom"])

        observer.wait(heard, "odom")
        observer.wait(
            lambda: abs(told_until(observer) - wheels.stamp + 0.06) < 0.5 * PERIOD, "odom of the last reading"
        )


def test_the_gyro_tells_the_turn():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false")
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry")
        observer.wait(lambda: wheels.imu.get_subscription_count() > 0, "its ear for the gyro")
        wheels.begin()
        wheels.roll(3.5, np.zeros(4), 0.0)
        observer.wait(lambda: values(observer, PATTERN).get("gyro_bias_rad_s", "").startswith("0.0300"), "the bias")
        begin = yaw(observer)
        # Wheels that creep: they turn for 0.5 rad/s, the base for 0.4.
        wheels.roll(2.0, BASE.wheel_speeds([0.0, 0.0, 0.5]), 0.4)
        turned = yaw(observer) - begin
        assert turned == pytest.approx(0.8, abs=0.01)
        observer.wait(lambda: values(observer, PATTERN)["gyro"] == "used", "a diagnostic of it")


def test_a_wheel_off_pattern_is_told_and_widens_the_covariance():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false")
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry")
        wheels.begin()
        grown = []
        for factors in ([1.0, 1.0, 1.0, 1.0], [1.3, 1.0, 1.0, 1.0]):
            before = spread(observer)
            wheels.roll(1.6, BASE.wheel_speeds([0.3, 0.0, 0.0]) * factors)
            grown.append(spread(observer) - before)
        observer.wait(lambda: values(observer, PATTERN).get("slips") == "1", "the slip in the diagnostics")
        pattern = status(observer, PATTERN)
        assert (
            "does not fit the other wheels" in pattern.message
            and "which of" in pattern.message
            and pattern.level == b"\x01"
        )
        assert grown[1] > 5.0 * grown[0]


def test_without_a_gyro_the_wheels_tell_the_turn_and_lost_phases_are_told():
    with Processes() as processes, Observer() as observer:
        child = processes.node("odometry", "-p", "stabilize:=false", *KNOWN)
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry")
        wheels.begin()
        wheels.roll(2.5, BASE.wheel_speeds([0.0, 0.0, 0.4]))
        assert yaw(observer) == pytest.approx(1.0, abs=0.01)
        observer.wait(lambda: values(observer, PATTERN).get("roller_phases") == "used", "the phases in use")
        assert values(observer, PATTERN)["gyro"] == "not used"
        wheels.jump()
        wheels.roll(0.1, np.zeros(4))
        observer.wait(lambda: values(observer, PATTERN)["roller_phases"] == "lost", "lost phases")
        assert "roller phases are no longer valid: the wheel counts jumped" in status(observer, PATTERN).message
        assert end(child).count("[odometry]: ready\n") == 1, "docs/usage.md tells to wait for it on a real robot, too"


def test_a_gyro_that_is_well_again_is_no_longer_complained_of():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false")
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry")
        observer.wait(lambda: wheels.imu.get_subscription_count() > 0, "its ear for the gyro")
        wheels.begin()
        for duration, rate in ((0.2, 0.0), (0.3, None), (0.2, 0.0)):
            wheels.roll(duration, np.zeros(4), rate)
        observer.wait(lambda: status(observer, PATTERN) is not None, "its diagnostics")
        observer.wait(lambda: "1 gaps" in status(observer, PATTERN).message, "the gap in them")
        assert status(observer, PATTERN).level == b"\x01"
        wheels.roll(31.0, np.zeros(4), 0.0)
        observer.wait(lambda: status(observer, PATTERN).level == b"\x00", "a diagnostic without the gap")


def test_wheel_commands_without_finite_speeds_are_ignored_and_readings_without_a_position_told():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false")
        observer.listen(Odometry, "odom")
        commands = observer.node.create_publisher(JointState, "wheel_commands", 10)
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry")
        observer.wait(lambda: commands.get_subscription_count() > 0, "its ear for commands")
        wheels.begin()
        for speeds in ((), (np.nan,) * 4, (1.0, -np.inf, np.inf, 1.0)):
            commands.publish(joint_message(wheels.stamp, NAMES, velocity=speeds))
            assert commands.wait_for_all_acked(Duration(seconds=PATIENCE))
            wheels.roll(0.2, np.ones(4))
        observer.listen(DiagnosticArray, "/diagnostics")

        def told(text: str) -> bool:
            wheels.stamp += PERIOD
            wheels.publish_motion(np.zeros(4), None)
            observer.spin(PERIOD)
            return status(observer, WHEELS) is not None and text in status(observer, WHEELS).message

        observer.wait(lambda: told("integrating"), "its word that all is well")
        wheels.angles[1] = np.nan
        observer.wait(lambda: told(f"position of {NAMES[1]}:"), "a word on the wheel without a position")
        assert status(observer, WHEELS).level == b"\x02"
        assert all(child.poll() is None for child in processes.children)


def test_a_refusal_is_warned_of_for_a_while_and_counted_for_ever():
    """With a memory of 3 s instead of 30."""
    shortened = (
        "from youbot_dynamics.nodes import _diagnostics; _diagnostics.MEMORY = 3.0; "
        "from youbot_dynamics.nodes.base_controller import main; main()"
    )
    with Processes() as processes, Observer() as observer:
        processes.run([sys.executable, "-c", shortened])
        observer.listen(DiagnosticArray, "/diagnostics")
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: cmd_vel.get_subscription_count() > 0, "base_controller")
        message = Twist()
        message.linear.x = float("nan")
        observer.wait(lambda: status(observer, COMMANDS) is not None, "its diagnostics")
        assert status(observer, COMMANDS).level == b"\x00" and values(observer, COMMANDS)["refusal_age_s"] == "inf"

        def refused() -> int:
            return int(values(observer, COMMANDS)["refused"])

        observer.send(cmd_vel, message, refused, "the refusal")
        assert status(observer, COMMANDS).level == b"\x01" and "NaN" in status(observer, COMMANDS).message
        assert values(observer, COMMANDS)["window_s"] == "3"
        observer.wait(lambda: status(observer, COMMANDS).level == b"\x00", "a diagnostic without the refusal")
        assert refused() > 0 and int(values(observer, COMMANDS)["refusal_age_s"]) >= 3

        simulated = Parameter(
            name="use_sim_time", value=ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
        )
        request = SetParameters.Request(parameters=[simulated])
        (answer,) = observer.call(SetParameters, "base_controller/set_parameters", request).results
        assert not answer.successful and "relaunch with it" in answer.reason

        longer = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=0.4)
        request = SetParameters.Request(parameters=[Parameter(name="command_timeout", value=longer)])
        (answer,) = observer.call(SetParameters, "base_controller/set_parameters", request).results
        assert not answer.successful and "read-only" in answer.reason


def test_phases_that_odometry_finds_with_a_gyro_reach_the_base_controller_until_the_counts_jump():
    drive = twin_drive("combined", 1, standing=4.0)
    pitch = drive.wheels.pitch
    finds = ("-p", "find_roller_phases:=true")
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false", *finds)
        processes.node("base_controller", *finds)
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 1, "odometry and base_controller")
        observer.wait(lambda: wheels.imu.get_subscription_count() > 0, "the subscription of the gyro")
        begin = wheels.stamp
        heard = observer.received["odom"]
        for k, moment in enumerate(drive.time.tolist()):
            for part, rate in enumerate(drive.rate[k].tolist()):
                message = Imu()
                message.header.stamp = to_time(begin + moment + 0.5 * PERIOD * (part - 1))
                message.angular_velocity.z = rate + BIAS
                wheels.imu.publish(message)
            wheels.angles, wheels.stamp = drive.position[k], begin + moment
            count = len(heard)
            wheels.publish_motion(drive.velocity[k], None)
            if k > 0:
                observer.wait(lambda count=count: len(heard) > count, "odom of this reading")
        observer.wait(lambda: values(observer, COMMANDS).get("roller_phases") == "used", "phases in base_controller")
        observer.wait(lambda: values(observer, PATTERN).get("roller_phases") == "used", "phases in odometry")
        observer.listen(JointState, "roller_phases", LATCHED_QOS)
        observer.hear("roller_phases", 1)
        found = np.array(observer.received["roller_phases"][-1].position)
        off = (found - drive.wheels.phases + 0.5 * pitch) % pitch - 0.5 * pitch
        assert np.max(np.abs(off)) < pitch / 15.0
        wheels.angles, wheels.stamp = drive.position[-1] + 5.0, begin + moment + PERIOD
        wheels.publish_motion(np.zeros(4), None)
        observer.wait(lambda: values(observer, COMMANDS).get("roller_phases") != "used", "the jump in base_controller")
        observer.wait(lambda: not observer.received["roller_phases"][-1].position, "word that none are known")


def test_the_base_controller_sends_the_rows_of_the_rollers_as_long_as_they_are_known():
    with Processes() as processes, Observer() as observer:
        processes.node("base_controller", "-p", "command_interface:=joint_state", *KNOWN)
        observer.listen(JointState, "driver/wheel_velocity_command")
        observer.listen(JointState, "wheel_commands")
        observer.listen(DiagnosticArray, "/diagnostics")
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        wheels = Wheels(observer)
        observer.wait(lambda: cmd_vel.get_subscription_count() > 0, "base_controller")
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "its ear for the wheels")
        message = Twist()
        message.linear.y = 0.2
        speeds = BASE.wheel_speeds([0.0, 0.2, 0.0])

        def driven(periods: int) -> np.ndarray:
            """Drive until so many commands more have come; these (periods, 4) [rad/s], ours. The clock is real here."""
            heard = observer.received["driver/wheel_velocity_command"]
            begin = len(heard)

            def enough() -> bool:
                cmd_vel.publish(message)
                now = time.time()
                wheels.angles = wheels.angles + (now - wheels.stamp) * speeds
                wheels.stamp = now
                wheels.publish_motion(speeds, None)
                observer.spin(PERIOD)
                return len(heard) >= begin + periods

            observer.wait(enough, "commands")
            return np.array([m.velocity for m in heard[begin:]]) * np.array(ROBOT.driver.command_sign)

        def mean() -> np.ndarray:
            """What the newest command asks of the wheels in the mean of their rollers (4,) [rad/s]."""
            sent = observer.received["wheel_commands"]
            return np.array(sent[-1].velocity) if sent else np.zeros(4)

        while not np.allclose(mean(), speeds, atol=1e-6):
            driven(5)
        rippling = driven(75) / speeds
        # 1 / cos(phi) over its mean, phi up to a twelfth of a turn: from 0.955 to 1.103, and what the loops need more.
        assert np.ptp(rippling) > 0.06
        assert 0.85 < np.min(rippling) < np.max(rippling) < 1.2
        np.testing.assert_allclose(mean(), speeds, atol=1e-6)
        observer.wait(lambda: values(observer, COMMANDS).get("roller_phases") == "used", "the phases in use")

        wheels.angles = wheels.angles + 50.0
        while "roller phases are no longer valid" not in status(observer, COMMANDS).message:
            driven(5)
        while not np.allclose(mean(), speeds, atol=1e-6):  # the wait above let the base rest
            driven(5)
        np.testing.assert_allclose(driven(10) / speeds, 1.0, atol=1e-6)
