"""Node odometry over DDS: gyro, wheels off pattern, roller phases; and the base controller that rests on them."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import Observer, Processes  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402

from youbot_dynamics.nodes.messages import joint_message, pose_vector, to_time  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402

pytestmark = pytest.mark.ros

ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
NAMES = ROBOT.driver.wheel_joints
PERIOD = 0.02
BIAS = 0.03  # [rad/s]
PHASES = ("0.1", "-0.4", "0.3", "0.05")
KNOWN = [
    word
    for wheel, phase in zip(("fl", "fr", "rl", "rr"), PHASES, strict=True)
    for word in ("-p", f"robot.base.geometry.roller_phase_{wheel}:={phase}")
] + ["-p", "robot.base.geometry.roller_phase_error:=0.01"]


class Wheels:
    """A driver of wheels that turn as told, and a gyro of a base that turns as told."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.states = observer.node.create_publisher(JointState, "driver/joint_states", 10)
        self.imu = observer.node.create_publisher(Imu, "imu", 10)
        self.angles = np.zeros(4)

    def roll(self, seconds: float, speeds: np.ndarray, yaw_rate: float | None = None) -> None:
        """Turn on at wheel speeds (4,) [rad/s]; the gyro tells a yaw rate and its bias, or nothing."""
        driver = ROBOT.driver
        finish = time.monotonic() + seconds
        while time.monotonic() < finish:
            now = time.time()
            position, velocity = self.angles * driver.position_sign, speeds * driver.velocity_sign
            self.states.publish(joint_message(now, NAMES, position=position, velocity=velocity))
            if yaw_rate is not None:
                message = Imu()
                message.header.stamp = to_time(now)
                message.angular_velocity.z = yaw_rate + BIAS
                self.imu.publish(message)
            self.observer.spin(PERIOD)
            self.angles = self.angles + speeds * (time.time() - now)


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


def test_the_gyro_tells_the_turn():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false")
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry", 40.0)
        observer.wait(lambda: wheels.imu.get_subscription_count() > 0, "its ear for the gyro")
        wheels.roll(3.5, np.zeros(4), 0.0)
        assert values(observer, "/odometry: pattern")["gyro_bias_rad_s"].startswith("0.0300")
        begin = yaw(observer)
        # Wheels that creep: they turn for 0.5 rad/s, the base for 0.4.
        wheels.roll(2.0, BASE.wheel_speeds([0.0, 0.0, 0.5]), 0.4)
        rolled = BASE.twist(wheels.angles)[2]
        turned = yaw(observer) - begin
        assert turned == pytest.approx(0.8 * rolled, abs=0.05)
        assert turned < 0.9 * rolled
        assert values(observer, "/odometry: pattern")["gyro"] == "used"


def test_a_wheel_off_pattern_is_told_and_widens_the_covariance():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false")
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry", 40.0)
        grown = []
        for factors in ([1.0, 1.0, 1.0, 1.0], [1.3, 1.0, 1.0, 1.0]):
            before = spread(observer)
            wheels.roll(1.6, BASE.wheel_speeds([0.3, 0.0, 0.0]) * factors)
            grown.append(spread(observer) - before)
        told = status(observer, "/odometry: pattern")
        assert "off pattern" in told.message and "which of" in told.message and told.level == b"\x01"
        assert values(observer, "/odometry: pattern")["slips"] == "1"
        assert grown[1] > 5.0 * grown[0]


def test_without_a_gyro_the_wheels_tell_the_turn_and_lost_phases_are_told():
    with Processes() as processes, Observer() as observer:
        processes.node("odometry", "-p", "stabilize:=false", *KNOWN)
        observer.listen(Odometry, "odom")
        observer.listen(DiagnosticArray, "/diagnostics")
        wheels = Wheels(observer)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "odometry", 40.0)
        wheels.roll(2.5, BASE.wheel_speeds([0.0, 0.0, 0.4]))
        assert values(observer, "/odometry: pattern")["roller_phases"] == "used"
        assert values(observer, "/odometry: pattern")["gyro"] == "not used"
        assert yaw(observer) == pytest.approx(BASE.twist(wheels.angles)[2], abs=0.05)
        wheels.angles = wheels.angles + 50.0
        wheels.roll(1.5, np.zeros(4))
        assert values(observer, "/odometry: pattern")["roller_phases"] == "lost"
        assert "roller phases are lost: the wheel counts jumped" in status(observer, "/odometry: pattern").message


def test_the_base_controller_sends_the_rows_of_the_rollers_as_long_as_they_are_known():
    with Processes() as processes, Observer() as observer:
        processes.node("base_controller", "-p", "command_interface:=joint_state", *KNOWN)
        observer.listen(JointState, "driver/wheel_velocity_command")
        observer.listen(JointState, "wheel_commands")
        observer.listen(DiagnosticArray, "/diagnostics")
        wish = observer.node.create_publisher(Twist, "cmd_vel", 1)
        wheels = Wheels(observer)
        observer.wait(lambda: wish.get_subscription_count() > 0, "base_controller", 40.0)
        observer.wait(lambda: wheels.states.get_subscription_count() > 0, "its ear for the wheels")
        message = Twist()
        message.linear.y = 0.2
        speeds = BASE.wheel_speeds([0.0, 0.2, 0.0])

        def asked(seconds: float) -> np.ndarray:
            begin = len(observer.received["driver/wheel_velocity_command"])
            finish = time.monotonic() + seconds
            while time.monotonic() < finish:
                wish.publish(message)
                wheels.roll(0.1, speeds)
            sent = observer.received["driver/wheel_velocity_command"][begin:]
            return np.array([m.velocity for m in sent]) * np.array(ROBOT.driver.command_sign)

        asked(2.0)
        rippling = asked(1.5) / speeds
        # 1 / cos(phi) over its mean, phi up to a twelfth of a turn: from 0.955 to 1.103.
        assert np.ptp(rippling) > 0.06
        assert 0.9 < np.min(rippling) < np.max(rippling) < 1.15
        plain = np.array(observer.received["wheel_commands"][-1].velocity)
        np.testing.assert_allclose(plain, speeds, atol=1e-6)
        assert values(observer, "/base_controller: commands")["roller_phases"] == "used"

        wheels.angles = wheels.angles + 50.0
        asked(1.2)
        np.testing.assert_allclose(asked(0.5) / speeds, 1.0, atol=1e-6)
        assert "roller phases are lost" in status(observer, "/base_controller: commands").message
