"""Node arm_ekf: joint states, friction, payload, motor temperatures, what the wheels carry; it never commands."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from std_srvs.srv import Trigger

from youbot_dynamics.estimation.arm_ekf import ArmBelief, ArmEkf
from youbot_dynamics.estimation.arm_ekf_tuning import ArmSensors
from youbot_dynamics.estimation.arm_health import ArmHealth
from youbot_dynamics.estimation.arm_temperatures import ArmTemperatures, MotorLimits
from youbot_dynamics.estimation.friction_feedforward import FrictionFeedforward
from youbot_dynamics.estimation.joint_intake import REFUSALS, JointIntake, JointReading
from youbot_dynamics.estimation.payload import Payload
from youbot_dynamics.estimation.support import Support
from youbot_dynamics.estimation.support_estimator import SupportEstimator
from youbot_dynamics.nodes.arm_ekf_outlets import ArmOutlets
from youbot_dynamics.nodes.arm_ekf_report import ArmReport
from youbot_dynamics.nodes.arm_ekf_settings import ArmEkfSettings
from youbot_dynamics.nodes.diagnostics import Diagnostics, Status
from youbot_dynamics.nodes.listening import listen_joints
from youbot_dynamics.nodes.pace import Pace
from youbot_dynamics.nodes.parameters import FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes.runtime import STATE_QOS, run
from youbot_dynamics.parameters import settings_table
from youbot_dynamics.warm_up import first_use, use_filters

TABLE = (
    *settings_table(ArmEkfSettings),
    *(parameter for parameter in FRAME_TABLE if parameter.name in ("base_frame", "frame_prefix")),
)

FRICTION_RATE = 50.0  # [Hz]
SUPPORT_RATE = 10.0  # [Hz]
PAYLOAD_RATE = 1.0  # [Hz] while the arm moves
_LONGEST_GAP = 1.0  # [s] between stamps; what is longer is a jump of the clock and measured by the machine's
_WAITING = 10  # voltages at most that wait for their efforts
_SAME_TIME = 0.01  # [s] by which stamps of a voltage and an effort may differ

Vector = NDArray[np.float64]


class ArmEkfNode(Node):
    """Feeds the arm's filters with the driver's messages and publishes what they believe."""

    def __init__(self) -> None:
        super().__init__("arm_ekf")
        self._config = NodeParameters(self, TABLE)
        self._robot = self._config.robot()
        self._joints = self._robot.driver.arm_joints
        self._arm = self._robot.arm.model()
        self._settings = self._config.settings(ArmEkfSettings)
        with first_use(self.get_logger().info):
            use_filters(self._make_filter(), self._make_payload(), self._make_temperatures(), self._make_support())
        self._support = self._make_support()
        self._lowest: Support | None = None  # since the last report
        self._ekf, self._payload, self._temperatures = (
            self._make_filter(),
            self._make_payload(),
            self._make_temperatures(),
        )
        self._feedforward = self._make_feedforward()
        self._counts_before: Counter[str] = Counter()
        self._intended_starts = 1
        self._belief, self._nis = self._ekf.state, np.nan
        self._intake = JointIntake(self._joints, self._robot.driver.wheel_joints)
        self._of_motors = JointIntake(self._joints, self._robot.driver.wheel_joints)
        self._of_wheels = JointIntake(self._robot.driver.wheel_joints, self._joints)
        self._wheel_signs = tuple(
            np.array(signs) for signs in (self._robot.driver.position_sign, self._robot.driver.velocity_sign)
        )
        self._voltages: deque[JointReading] = deque(maxlen=_WAITING)  # for their efforts
        self._unpaired = 0
        coulomb = np.array([friction.coulomb for friction in self._arm.friction])
        self._health = ArmHealth(self._joints, coulomb, self.resolve_topic_name("driver/joint_states"))
        self._friction_pace, self._support_pace = Pace(FRICTION_RATE), Pace(SUPPORT_RATE)
        self._payload_pace = Pace(PAYLOAD_RATE)
        self._effort = np.zeros(len(self._joints))
        self._last_stamp, self._last_taken = np.nan, 0.0
        self._limits = self._limits_now()
        self._config.on_change(self._retune)
        self._out = ArmOutlets(self, self._robot, str(self._config["frame_prefix"]), str(self._config["base_frame"]))
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/tare", self._on_tare)
        listen_joints(self, "driver/joint_states", self._on_joint_states, STATE_QOS)
        listen_joints(self, "arm_1/motor_voltage", self._on_voltage, STATE_QOS)
        listen_joints(self, "arm_1/motor_temperature", self._on_temperature, STATE_QOS)
        self._reporter = ArmReport(self.get_logger(), self._joints, self._robot)
        Diagnostics(self, self._report)
        self.get_logger().info("ready")

    def _make_filter(self) -> ArmEkf:
        jitter = self._robot.driver.stamp_jitter
        sensors = ArmSensors.of_robot(self._robot, self._settings.effort_noise, jitter)
        return ArmEkf(self._arm, sensors, self._settings.tuning())

    def _make_payload(self) -> Payload:
        return Payload(self._arm, self._settings.tuning(), self._settings.payload_tuning())

    def _make_support(self) -> SupportEstimator:
        return SupportEstimator(self._robot, self._settings.support_lag)

    def _make_feedforward(self) -> FrictionFeedforward:
        return FrictionFeedforward(self._arm, self._settings.smoothing_speed, self._settings.feedforward_share)

    def _make_temperatures(self) -> ArmTemperatures:
        settings = self._settings
        return ArmTemperatures(
            self._robot.arm,
            settings.first_temperature(),
            settings.heat_tuning(),
            settings.temperature_sensor,
            settings.temperature_noise,
        )

    def _begin_anew(self) -> None:
        """Filters of joints and payload that know nothing yet; what was counted stays."""
        self._counts_before.update(self._ekf.counts)
        self._intended_starts += self._ekf.counts["starts"] > 0
        self._ekf, self._payload = self._make_filter(), self._make_payload()
        self._support = self._make_support()
        self._belief, self._nis = self._ekf.state, np.nan

    def _retune(self) -> None:
        before, self._settings = self._settings, self._config.settings(ArmEkfSettings)
        if (before.tuning(), before.effort_noise) != (self._settings.tuning(), self._settings.effort_noise):
            self.get_logger().info("the filter of the joints begins anew with its new tuning")
            self._begin_anew()
        self._payload.tuning = self._settings.payload_tuning()
        if before.support_lag != self._settings.support_lag:
            self._support = self._make_support()
        self._feedforward = self._make_feedforward()

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._begin_anew()
        self._health.forget_signs()
        response.success = True
        response.message = (
            "joints, payload and checks of signs begin anew; temperatures stay, for motors do not cool by it"
        )
        return response

    def _on_tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self._payload.tare()
        response.message = (
            "the gripper counts as empty now: what was felt so far is taken for errors of the model"
            if response.success
            else "nothing was felt yet: swing the empty arm both ways with its forearm level, then call again"
        )
        return response

    def _on_joint_states(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        now = time.monotonic()
        position, velocity, effort = fields
        wheels = self._of_wheels.take(stamp, names, position, velocity, ())
        if wheels is not None:
            angles, speeds = self._wheel_signs[0] * wheels.position, self._wheel_signs[1] * wheels.velocity
            self._support.take_wheels(stamp, angles, speeds)
        reading = self._intake.take(stamp, names, position, velocity, effort)
        if reading is None:
            return
        if not self._ekf.predict(stamp, reading.effort):
            return
        self._health.hear(reading, now, 1e-9 * self.get_clock().now().nanoseconds)
        innovation = self._ekf.update(reading.position)
        if innovation.count:
            share = innovation.nis / innovation.count
            self._nis = share if np.isnan(self._nis) else self._nis + 0.02 * (share - self._nis)
        self._warm(reading, now)
        belief = self._belief = self._ekf.state
        if not np.isnan(belief.stamp):
            self._health.compare(self._effort, belief.torque_error, belief.speed)
            self._pair(belief)
            self._publish(belief)

    def _warm(self, reading: JointReading, now: float) -> None:
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
        told = self._of_motors.take(stamp, names, (), (), fields[2])
        if told is None:
            return
        if len(self._voltages) == self._voltages.maxlen:
            self._voltages.popleft()
            self._unpaired += 1
        self._voltages.append(told)
        self._pair(self._belief)

    def _pair(self, belief: ArmBelief) -> None:
        """Use voltages as soon as the effort of the same time is known; either message may come first."""
        while self._voltages and self._voltages[0].stamp <= belief.stamp + _SAME_TIME:
            told = self._voltages.popleft()
            if belief.stamp - told.stamp <= _SAME_TIME:
                self._temperatures.add_voltage(told.effort, self._effort, belief.speed)
            else:
                self._unpaired += 1

    def _on_temperature(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        told = self._of_motors.take(stamp, names, (), (), fields[2])
        if told is not None:
            self._temperatures.add_temperature(told.effort)

    def _publish(self, belief: ArmBelief) -> None:
        stamp = belief.stamp
        self._out.estimated.publish(stamp, belief.position, belief.speed, self._effort)
        if self._friction_pace.due(stamp):
            self._out.friction.publish(stamp, effort=belief.friction_torque)
            self._out.feedforward.publish(stamp, effort=self._feedforward.torque(belief.speed))
        if self._payload.add(belief) and self._payload.state.identifiable and self._payload_pace.due(stamp):
            self._out.publish_payload(stamp, self._payload.state)
        self._support.take_arm(stamp, belief.speed)
        if self._support_pace.due(stamp):
            self._support.carry(self._payload.state)
            found = self._support.support(stamp, belief.position, belief.speed)
            if self._lowest is None or found.margin < self._lowest.margin:
                self._lowest = found
            self._out.publish_support(stamp, found)

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
        return {
            "joints": self._reporter.joints(findings, counts, belief, self._nis),
            "temperatures": self._reporter.temperatures(
                self._temperatures.state, self._limits, self._settings.hot_margin
            ),
            "payload": self._reporter.payload(self._payload.state),
            "support": self._reporter.support(lowest, self._settings.low_support),
        }


def main() -> None:
    """Run the node."""
    run(lambda: [ArmEkfNode()])


if __name__ == "__main__":
    main()
