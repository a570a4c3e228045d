"""Node arm_ekf: joint states, friction, payload, motor temperatures, what the wheels carry; it never commands."""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter, deque
from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import InertiaStamped, Point, PointStamped
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import Float64, Header
from std_srvs.srv import Trigger

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.stamp_rhythm import RateLimiter
from youbot_dynamics.estimation import arm_health
from youbot_dynamics.estimation.arm_ekf import ArmBelief, ArmEkf, ArmSensors
from youbot_dynamics.estimation.arm_health import REFUSALS, ArmHealth, Finding, JointIntake, JointReading, heat_findings
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.friction_feedforward import FrictionFeedforward
from youbot_dynamics.estimation.motor_heat import ArmTemperatures, HeatBelief, MotorLimits
from youbot_dynamics.estimation.payload import Payload, PayloadBelief
from youbot_dynamics.estimation.support import SIDES, Support, SupportEstimator, support_findings, supports
from youbot_dynamics.nodes._diagnostics import ERROR, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._listening import listen_joints
from youbot_dynamics.nodes._messages import answer, to_time
from youbot_dynamics.nodes._parameters import FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes._runtime import DRIVER_QOS, STATE_QOS, node_time, run
from youbot_dynamics.parameters import settings_table
from youbot_dynamics.robot import Robot
from youbot_dynamics.warm_up import first_use, use_filters


class _JointPublisher:
    """A topic of joint states with constant joints: one message is reused."""

    def __init__(self, publisher: Publisher, names: Sequence[str]) -> None:
        self._publisher = publisher
        self._message = JointState(name=list(names))

    def publish(self, stamp: float, **fields: Vector) -> None:
        """Publish fields, each (n,), at a stamp [s]; a topic has the same ones each time."""
        self._message.header.stamp = to_time(stamp)
        for name, values in fields.items():
            # As arrays: a message copies other sequences one by one.
            setattr(self._message, name, array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes()))
        self._publisher.publish(self._message)


class _ArmPublishers:
    """The topics of the node; `base_frame` is on the floor below the middle of the wheels."""

    def __init__(self, node: Node, robot: Robot, frame_prefix: str, base_frame: str) -> None:
        self._node = node
        joints, wheels = robot.driver.arm_joints, robot.driver.wheel_joints
        self._frames = tuple(frame_prefix + name for name in robot.arm.model().tree.names)
        self.estimated = self._joints("arm_1/estimated_joint_states", joints)
        self.friction = self._joints("arm_1/friction", joints)
        self.feedforward = self._joints("arm_1/friction_feedforward", joints)
        self._available = self._joints("arm_1/torque_available", joints)
        self._temperatures = [
            tuple(self._publisher(Temperature, f"arm_1/{joint}/{part}_temperature") for part in ("winding", "housing"))
            for joint in joints
        ]
        self._payload = self._publisher(InertiaStamped, "payload")
        self._margin = self._publisher(Float64, "tip_over_margin")
        self._normals = self._joints("wheel_normal_forces", wheels)
        self._centre = self._publisher(PointStamped, "centre_of_mass")
        self._base_frame = frame_prefix + base_frame

    def _publisher(self, kind: type, topic: str) -> Publisher:
        # The executor polls a publisher's events before every message; those of 18 cost as much as all estimates. They
        # report an incompatible QoS, which the subscriber reports as well.
        events = PublisherEventCallbacks(use_default_callbacks=False)
        return self._node.create_publisher(kind, topic, STATE_QOS, event_callbacks=events)

    def _joints(self, topic: str, names: Sequence[str]) -> _JointPublisher:
        return _JointPublisher(self._publisher(JointState, topic), names)

    def publish_payload(self, stamp: float, belief: PayloadBelief) -> None:
        """Publish mass and place in the last link's frame, at a stamp [s]."""
        message = InertiaStamped(header=_header(stamp, self._frames[-1]))
        message.inertia.m = max(0.0, belief.mass)
        centre = message.inertia.com
        centre.x, centre.y, centre.z = belief.centre.tolist()
        self._payload.publish(message)

    def publish_support(self, stamp: float, support: Support) -> None:
        """Publish margin, normal forces and centre of mass, at a stamp [s]."""
        self._margin.publish(Float64(data=support.margin))
        self._normals.publish(stamp, effort=support.normal_forces)
        x, y, z = support.centre_of_mass.tolist()
        self._centre.publish(PointStamped(header=_header(stamp, self._base_frame), point=Point(x=x, y=y, z=z)))

    def publish_heat(self, stamp: float, beliefs: Sequence[HeatBelief], limits: Sequence[MotorLimits]) -> None:
        """Publish the temperatures and torques available of all motors, at a stamp [s]."""
        for publishers, belief, frame in zip(self._temperatures, beliefs, self._frames, strict=True):
            temperatures = ((belief.winding, belief.winding_deviation), (belief.housing, belief.housing_deviation))
            for publisher, (temperature, deviation) in zip(publishers, temperatures, strict=True):
                header = _header(stamp, frame)
                publisher.publish(Temperature(header=header, temperature=temperature, variance=deviation**2))
        self._available.publish(stamp, effort=np.array([limit.torque for limit in limits]))


def _header(stamp: float, frame: str) -> Header:
    return Header(stamp=to_time(stamp), frame_id=frame)


_LEVELS = {arm_health.WARNING: WARN, arm_health.ERROR: ERROR}


class _ArmReport:
    """Makes statuses from findings, and logs each finding once when it appears."""

    def __init__(self, logger, robot: Robot) -> None:
        self._logger = logger
        self._joints = robot.driver.arm_joints
        self._limits = tuple(joint.motor.winding_temperature_limit for joint in robot.arm.joints)
        self._wheels = robot.driver.wheel_joints
        self._logged: dict[str, set[str]] = {}

    def joints(self, findings: Sequence[Finding], counts: Mapping[str, int], belief: ArmBelief, nis: float) -> Status:
        """Status of the joints' filter: findings, counts, and standard deviations."""
        values = {name.replace(" ", "_"): str(count) for name, count in counts.items()}
        values["nis_per_reading"] = f"{nis:.2f}"
        known = not math.isnan(belief.stamp)
        if known:
            deviation = np.sqrt(np.diag(belief.covariance))
            n = len(self._joints)
            for k, name in enumerate(self._joints):
                values[f"{name}.position_deviation_rad"] = f"{deviation[k]:.2g}"
                values[f"{name}.speed_deviation_rad_s"] = f"{deviation[n + k]:.2g}"
                values[f"{name}.torque_error_Nm"] = f"{belief.torque_error[k]:.2f}"
        return self._status("joints", findings, "estimating" if known else "waiting for states of the arm", values)

    def temperatures(self, beliefs: Sequence[HeatBelief], limits: Sequence[MotorLimits], margin: float) -> Status:
        """Status of the motors: temperatures, seconds to the limit at the present load, torque available."""
        values = {}
        for name, belief, limit in zip(self._joints, beliefs, limits, strict=True):
            values[f"{name}.winding_degC"] = f"{belief.winding:.1f} +- {belief.winding_deviation:.1f}"
            values[f"{name}.housing_degC"] = f"{belief.housing:.1f} +- {belief.housing_deviation:.1f}"
            values[f"{name}.seconds_to_limit"] = f"{limit.seconds:.0f}"
            values[f"{name}.torque_available_Nm"] = f"{limit.torque:.2f}"
            values[f"{name}.load_Nm"] = f"{limit.load:.2f}"
        findings = heat_findings(self._joints, beliefs, self._limits, [limit.seconds for limit in limits], margin)
        return self._status("temperatures", findings, "all windings below their limits", values)

    def payload(self, belief: PayloadBelief) -> Status:
        """Status of the payload: its mass with the standard deviation, or why it is not identifiable."""
        values = {
            "mass_kg": f"{belief.mass:.3f}",
            "mass_deviation_kg": f"{belief.mass_deviation:.3f}",
            "centre_m": ", ".join(f"{value:.3f}" for value in belief.centre),
        }
        if not belief.identifiable:
            return Status(OK, f"not identifiable: {belief.reason}", values)
        return Status(OK, f"{belief.mass:.2f} +- {belief.mass_deviation:.2f} kg", values)

    def support(self, lowest: Support | None, low_share: float, reason: str) -> Status:
        """Status of the wheels' normal forces: at the lowest one since the last report; else the reason why not."""
        if lowest is None:
            return self._status("support", (), f"not known: {reason}", {})
        loads = zip((*self._wheels, *SIDES), (*lowest.normal_forces, *lowest.side_loads), strict=True)
        values = {f"{name}_N": f"{load:.1f}" for name, load in loads}
        values["centre_of_mass_m"] = ", ".join(f"{value:.3f}" for value in lowest.centre_of_mass)
        values["mass_kg"] = f"{lowest.mass:.2f}"
        findings = support_findings(lowest, self._wheels, low_share)
        return self._status("support", findings, f"each wheel carries {lowest.margin:.0f} N or more", values)

    def _status(self, item: str, findings: Sequence[Finding], text: str, values: Mapping[str, str]) -> Status:
        logged = self._logged.get(item, set())
        for finding in findings:
            if finding.name not in logged:
                self._logger.warning(str(finding))
        self._logged[item] = {finding.name for finding in findings}
        if not findings:
            return Status(OK, text, values)
        return Status(_LEVELS[findings[0].level], "; ".join(str(finding) for finding in findings), values)


TABLE = (
    *settings_table(ArmSettings),
    *(parameter for parameter in FRAME_TABLE if parameter.name in ("base_frame", "frame_prefix")),
)

_FRICTION_RATE = 50.0  # [Hz]
_SUPPORT_RATE = 10.0  # [Hz]
_PAYLOAD_RATE = 1.0  # [Hz] while the arm moves
_LONGEST_GAP = 1.0  # [s] between stamps; a longer one is a jump of the clock, and the steady clock measures it
_WAITING = DRIVER_QOS.depth  # voltages at most that wait for their efforts
_SAME_TIME = 0.01  # [s] by which stamps of a voltage and an effort may differ


class ArmEkfNode(Node):
    """Passes the driver's messages to the arm's filters and publishes their estimates."""

    def __init__(self) -> None:
        super().__init__("arm_ekf")
        self._config = NodeParameters(self, TABLE)
        self._robot = self._config.robot()
        self._joints = self._robot.driver.arm_joints
        self._arm = self._robot.arm.model()
        self._settings = self._config.settings(ArmSettings)
        with first_use(self.get_logger().info):
            use_filters(self._make_filter(), self._make_payload(), self._make_temperatures(), self._make_support())
        self._lowest: Support | None = None  # since the last report
        self._counts_before: Counter[str] = Counter()  # of filters before a reset
        self._intended_starts = 1
        self._temperatures, self._feedforward = self._make_temperatures(), self._make_feedforward()
        self._make_filters()
        self._intake = JointIntake(self._joints, self._robot.driver.wheel_joints)
        self._of_motors = JointIntake(self._joints, self._robot.driver.wheel_joints)
        self._of_wheels = JointIntake(self._robot.driver.wheel_joints, self._joints)
        self._wheel_signs = tuple(
            np.array(signs) for signs in (self._robot.driver.position_sign, self._robot.driver.velocity_sign)
        )
        self._voltages: deque[JointReading] = deque(maxlen=_WAITING)  # for their efforts
        self._efforts: deque[tuple[float, Vector, Vector]] = deque(maxlen=_WAITING)  # stamps, efforts, speeds
        self._unpaired = 0
        coulomb = np.array([friction.coulomb for friction in self._arm.friction])
        self._health = ArmHealth(self._joints, coulomb, self.resolve_topic_name("driver/joint_states"))
        rates = _FRICTION_RATE, _SUPPORT_RATE, _PAYLOAD_RATE
        self._friction_limiter, self._support_limiter, self._payload_limiter = map(RateLimiter, rates)
        self._effort = np.zeros(len(self._joints))
        self._last_stamp, self._last_taken = np.nan, 0.0
        self._limits = self._limits_now()
        self._config.on_change(self._retune)
        self._out = _ArmPublishers(self, self._robot, self._config["frame_prefix"], self._config["base_frame"])
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/tare", self._on_tare)
        listen_joints(self, "driver/joint_states", self._on_joint_states, DRIVER_QOS)
        listen_joints(self, "arm_1/motor_voltage", self._on_voltage, DRIVER_QOS)
        listen_joints(self, "arm_1/motor_temperature", self._on_temperature, DRIVER_QOS)
        self._reporter = _ArmReport(self.get_logger(), self._robot)
        Diagnostics(self, self._report)
        self.get_logger().info("ready")

    def _make_filter(self) -> ArmEkf:
        jitter = self._robot.driver.stamp_jitter
        sensors = ArmSensors.of_robot(self._robot, self._settings.effort_noise, jitter)
        return ArmEkf(self._arm, sensors, self._settings.filter)

    def _make_payload(self) -> Payload:
        return Payload(self._arm, self._settings.filter, self._settings.payload.of_arm(self._robot.arm))

    def _make_support(self) -> SupportEstimator | None:
        return SupportEstimator(self._robot, self._settings.support_lag) if supports(self._robot) else None

    def _make_feedforward(self) -> FrictionFeedforward:
        return FrictionFeedforward(self._arm, self._settings.smoothing_speed, self._settings.feedforward_share)

    def _make_temperatures(self) -> ArmTemperatures:
        settings = self._settings
        sensor = settings.temperature_sensor, settings.temperature_noise
        return ArmTemperatures(self._robot.arm, settings.first_temperature, settings.heat, *sensor)

    def _make_filters(self) -> None:
        self._ekf, self._payload, self._support = self._make_filter(), self._make_payload(), self._make_support()
        self._belief, self._nis = self._ekf.state, np.nan

    def _reset(self) -> None:
        """Restart the filters of joints, payload and support; the counts remain."""
        self._counts_before.update(self._ekf.counts)
        self._intended_starts += self._ekf.counts["starts"] > 0
        self._make_filters()

    def _retune(self) -> None:
        before, self._settings = self._settings, self._config.settings(ArmSettings)
        if (before.filter, before.effort_noise) != (self._settings.filter, self._settings.effort_noise):
            self.get_logger().info("the filter of the joints restarts with its new tuning")
            self._reset()
        self._payload.tuning = self._settings.payload
        if before.support_lag != self._settings.support_lag:
            self._support = self._make_support()
        self._feedforward = self._make_feedforward()

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._reset()
        self._health.forget_signs()
        text = "joints, payload and checks of signs restart; temperatures stay, because a reset cools no motor"
        return answer(response, True, text)

    def _on_tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._payload.tare():
            text = "the gripper counts as empty now: torques so far count as errors of the model"
            return answer(response, True, text)
        text = "no torques measured yet: swing the empty arm both ways with its forearm level, then call again"
        return answer(response, False, text)

    def _on_joint_states(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        now = time.monotonic()
        position, velocity, effort = fields
        wheels = self._of_wheels.take(stamp, names, position, velocity, ())
        if wheels is not None and self._support is not None:
            angles, speeds = self._wheel_signs[0] * wheels.position, self._wheel_signs[1] * wheels.velocity
            self._support.take_wheels(stamp, angles, speeds)
        reading = self._intake.take(stamp, names, position, velocity, effort)
        if reading is None or not self._ekf.predict(stamp, reading.effort):
            return
        self._health.hear(reading, now, node_time(self))
        innovation = self._ekf.update(reading.position)
        if innovation.count:
            share = innovation.nis / innovation.count
            self._nis = share if np.isnan(self._nis) else self._nis + 0.02 * (share - self._nis)
        self._update_temperatures(reading, now)
        belief = self._belief = self._ekf.state
        if not np.isnan(belief.stamp):
            self._health.compare(self._effort, belief.torque_error, belief.speed)
            self._efforts.append((belief.stamp, self._effort, belief.speed))
            self._pair()
            self._publish(belief)

    def _update_temperatures(self, reading: JointReading, now: float) -> None:
        elapsed = reading.stamp - self._last_stamp
        if not 0.0 < elapsed <= _LONGEST_GAP:
            elapsed = now - self._last_taken if self._last_taken else 0.0
        self._last_stamp, self._last_taken = reading.stamp, now
        self._effort = np.where(np.isnan(reading.effort), self._effort, reading.effort)
        if self._temperatures.add(elapsed, reading.effort):
            self._limits = self._limits_now()
            self._out.publish_heat(reading.stamp, self._temperatures.state, self._limits)

    def _limits_now(self) -> tuple[MotorLimits, ...]:
        return self._temperatures.limits(self._settings.hold_time, self._settings.heat_deviations)

    def _on_voltage(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        reading = self._of_motors.take(stamp, names, (), (), fields[2])
        if reading is None:
            return
        if len(self._voltages) == self._voltages.maxlen:
            self._voltages.popleft()
            self._unpaired += 1
        self._voltages.append(reading)
        self._pair()

    def _pair(self) -> None:
        """Match voltages with the effort of the same time; on a busy machine either topic may arrive first."""
        while self._voltages and self._efforts and self._voltages[0].stamp <= self._efforts[-1][0] + _SAME_TIME:
            reading = self._voltages.popleft()
            for stamp, effort, speed in reversed(self._efforts):
                if abs(stamp - reading.stamp) <= _SAME_TIME:
                    self._temperatures.add_voltage(reading.effort, effort, speed)
                    break
            else:
                self._unpaired += 1

    def _on_temperature(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        reading = self._of_motors.take(stamp, names, (), (), fields[2])
        if reading is not None:
            self._temperatures.add_temperature(reading.effort)

    def _publish(self, belief: ArmBelief) -> None:
        stamp = belief.stamp
        self._out.estimated.publish(stamp, position=belief.position, velocity=belief.speed, effort=self._effort)
        if self._friction_limiter.due(stamp):
            self._out.friction.publish(stamp, effort=belief.friction_torque)
            self._out.feedforward.publish(stamp, effort=self._feedforward.torque(belief.speed))
        if self._payload.add(belief) and self._payload.state.identifiable and self._payload_limiter.due(stamp):
            self._out.publish_payload(stamp, self._payload.state)
        if self._support is None:
            return
        self._support.take_arm(stamp, belief.speed)
        if self._support_limiter.due(stamp):
            self._support.carry(self._payload.state)
            support = self._support.support(stamp, belief.position, belief.speed)
            if self._lowest is None or support.margin < self._lowest.margin:
                self._lowest = support
            self._out.publish_support(stamp, support)

    def _report(self) -> dict[str, Status]:
        now = time.monotonic()
        belief = self._belief
        counts = Counter(self._ekf.counts)
        counts.update(self._counts_before)
        counts["starts after a gap"] = max(0, counts.pop("starts", 0) - self._intended_starts)
        counts.update(self._intake.counts)
        counts.update(self._temperatures.counts)
        counts["motor messages refused"] = sum(self._of_motors.counts[name] for name in REFUSALS)
        counts["voltages without an effort"] = self._unpaired
        self._health.count(counts, now)
        known = not np.isnan(belief.stamp)
        load = self._arm.tree.gravity_forces(belief.position) if known else np.full(len(self._joints), np.nan)
        findings = self._health.findings(now, load, self._intake.names)
        lowest, self._lowest = self._lowest, None
        report = self._reporter
        reason = "no states of the arm" if self._support is not None else "the URDF of the arm has no wheels"
        return {
            "joints": report.joints(findings, counts, belief, self._nis),
            "temperatures": report.temperatures(self._temperatures.state, self._limits, self._settings.hot_margin),
            "payload": report.payload(self._payload.state),
            "support": report.support(lowest, self._settings.low_support, reason),
        }


def main() -> None:
    """Run the node."""
    run(lambda: [ArmEkfNode()])


if __name__ == "__main__":
    main()
