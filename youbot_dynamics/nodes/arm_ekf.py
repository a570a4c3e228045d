"""Node arm_ekf: joint states, friction, payload, motor temperatures, what the wheels carry; it never commands."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import InertiaStamped, PointStamped
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from youbot_dynamics.estimation import arm_health
from youbot_dynamics.estimation.arm_estimator import ArmEstimator
from youbot_dynamics.estimation.arm_health import Finding
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.payload import PayloadBelief
from youbot_dynamics.estimation.support import SIDES, Support, support_findings
from youbot_dynamics.messages.arm import ArmMessages
from youbot_dynamics.nodes._diagnostics import ERROR, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._listening import listen_joints
from youbot_dynamics.nodes._messages import answer
from youbot_dynamics.nodes._parameters import FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes._runtime import DRIVER_QOS, STATE_QOS, node_time, run
from youbot_dynamics.parameters import settings_table
from youbot_dynamics.robot import Robot
from youbot_dynamics.warm_up import first_use, use_arm_estimator

_LEVELS = {arm_health.WARNING: WARN, arm_health.ERROR: ERROR}


class _ArmReport:
    """Makes statuses from findings, and logs each finding once when it appears."""

    def __init__(self, logger, robot: Robot) -> None:
        self._logger = logger
        self._joints = robot.driver.arm_joints
        self._wheels = robot.driver.wheel_joints
        self._logged: dict[str, set[str]] = {}

    def joints(self, estimator: ArmEstimator) -> Status:
        """Status of the joints' filter: findings, counts, and standard deviations."""
        findings, belief = estimator.findings(time.monotonic()), estimator.belief
        values = {name.replace(" ", "_"): str(count) for name, count in estimator.counts.items()}
        values["nis_per_reading"] = f"{estimator.nis:.2f}"
        known = not math.isnan(belief.stamp)
        if known:
            deviation = np.sqrt(np.diag(belief.covariance))
            n = len(self._joints)
            for k, name in enumerate(self._joints):
                values[f"{name}.position_deviation_rad"] = f"{deviation[k]:.2g}"
                values[f"{name}.speed_deviation_rad_s"] = f"{deviation[n + k]:.2g}"
                values[f"{name}.torque_error_Nm"] = f"{belief.torque_error[k]:.2f}"
        return self._status("joints", findings, "estimating" if known else "waiting for states of the arm", values)

    def temperatures(self, estimator: ArmEstimator) -> Status:
        """Status of the motors: temperatures, seconds to the limit at the present load, torque available."""
        values, beliefs, limits = {}, estimator.temperatures.state, estimator.limits
        for name, belief, limit in zip(self._joints, beliefs, limits, strict=True):
            values[f"{name}.winding_degC"] = f"{belief.winding:.1f} +- {belief.winding_deviation:.1f}"
            values[f"{name}.housing_degC"] = f"{belief.housing:.1f} +- {belief.housing_deviation:.1f}"
            values[f"{name}.seconds_to_limit"] = f"{limit.seconds:.0f}"
            values[f"{name}.torque_available_Nm"] = f"{limit.torque:.2f}"
            values[f"{name}.load_Nm"] = f"{limit.load:.2f}"
        findings = estimator.heat_findings(beliefs, [limit.seconds for limit in limits])
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


class ArmEkfNode(Node):
    """Passes the driver's messages to the arm's estimators and publishes their estimates."""

    def __init__(self) -> None:
        super().__init__("arm_ekf")
        self._config = NodeParameters(self, TABLE)
        robot, settings = self._config.robot(), self._config.settings(ArmSettings)
        with first_use(self.get_logger().info):
            use_arm_estimator(ArmEstimator(robot, settings))
        self._messages = ArmMessages(robot, settings, self._config["frame_prefix"], self._config["base_frame"])
        self._estimator = ArmEstimator(robot, settings, self.resolve_topic_name("driver/joint_states"))
        self._config.on_change(self._retune)
        self._topics: dict[str, Publisher] = {}
        self._offer(robot.driver.arm_joints)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/tare", self._on_tare)
        listen_joints(self, "driver/joint_states", self._on_joint_states, DRIVER_QOS)
        listen_joints(self, "arm_1/motor_voltage", self._estimator.take_voltages, DRIVER_QOS)
        listen_joints(self, "arm_1/motor_temperature", self._estimator.take_temperatures, DRIVER_QOS)
        self._reporter = _ArmReport(self.get_logger(), robot)
        Diagnostics(self, self._report)
        self.get_logger().info("ready")

    def _offer(self, joints: Sequence[str]) -> None:
        """Make the publishers of all topics of `ArmMessages`."""
        for name in ("estimated_joint_states", "friction", "friction_feedforward", "torque_available"):
            self._add(JointState, f"arm_1/{name}")
        for joint in joints:
            for part in ("winding", "housing"):
                self._add(Temperature, f"arm_1/{joint}/{part}_temperature")
        self._add(InertiaStamped, "payload")
        self._add(Float64, "tip_over_margin")
        self._add(JointState, "wheel_normal_forces")
        self._add(PointStamped, "centre_of_mass")

    def _add(self, kind: type, topic: str) -> None:
        # The executor polls a publisher's events before every message; those of 18 cost as much as all estimates. They
        # report an incompatible QoS, which the subscriber reports as well.
        events = PublisherEventCallbacks(use_default_callbacks=False)
        self._topics[topic] = self.create_publisher(kind, topic, STATE_QOS, event_callbacks=events)

    def _retune(self) -> None:
        settings = self._config.settings(ArmSettings)
        self._messages.retune(settings)
        if self._estimator.retune(settings):
            self.get_logger().info("the filter of the joints restarts with its new tuning")

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._estimator.reset()
        self._estimator.health.forget_signs()
        text = "joints, payload and checks of signs restart; temperatures stay, because a reset cools no motor"
        return answer(response, True, text)

    def _on_tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._estimator.payload.tare():
            text = "the gripper counts as empty now: torques so far count as errors of the model"
            return answer(response, True, text)
        text = "no torques measured yet: swing the empty arm both ways with its forearm level, then call again"
        return answer(response, False, text)

    def _on_joint_states(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        now, clock = time.monotonic(), node_time(self)
        estimates = self._estimator.take_states(stamp, names, fields, now, clock)
        for _, topic, _, cdr in self._messages.of(estimates):
            self._topics[topic].publish(cdr)

    def _report(self) -> dict[str, Status]:
        estimator, report = self._estimator, self._reporter
        lowest, estimator.lowest = estimator.lowest, None
        reason = "no states of the arm" if estimator.support is not None else "the URDF of the arm has no wheels"
        return {
            "joints": report.joints(estimator),
            "temperatures": report.temperatures(estimator),
            "payload": report.payload(estimator.payload.state),
            "support": report.support(lowest, estimator.settings.low_support, reason),
        }


def main() -> None:
    """Run the node."""
    run(lambda: [ArmEkfNode()])


if __name__ == "__main__":
    main()
