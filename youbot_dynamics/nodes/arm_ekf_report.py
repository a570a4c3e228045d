"""What node arm_ekf says on /diagnostics and in its log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from youbot_dynamics.estimation import arm_health
from youbot_dynamics.estimation.arm_ekf import ArmBelief
from youbot_dynamics.estimation.arm_health import Finding, heat_findings
from youbot_dynamics.estimation.arm_temperatures import MotorLimits
from youbot_dynamics.estimation.motor_heat import HeatBelief
from youbot_dynamics.estimation.payload import PayloadBelief
from youbot_dynamics.estimation.support import SIDES, Support
from youbot_dynamics.estimation.support_estimator import support_findings
from youbot_dynamics.nodes.diagnostics import ERROR, OK, WARN, Status
from youbot_dynamics.robot import Robot

_LEVELS = {arm_health.WARNING: WARN, arm_health.ERROR: ERROR}


class ArmReport:
    """Makes statuses of findings, and logs each finding once when it appears.

    Args:
        logger: of the node.
        joints: names of the arm's joints.
        robot: whose limits are shown.
    """

    def __init__(self, logger, joints: Sequence[str], robot: Robot) -> None:
        self._logger = logger
        self._joints = tuple(joints)
        self._limits = tuple(joint.motor.winding_temperature_limit for joint in robot.arm.joints)
        self._wheels = robot.driver.wheel_joints
        self._told: dict[str, set[str]] = {}

    def joints(self, findings: Sequence[Finding], counts: Mapping[str, int], belief: ArmBelief, nis: float) -> Status:
        """Status of the joints' filter: findings, all that was counted, and how sure it is."""
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
        for name, belief, one in zip(self._joints, beliefs, limits, strict=True):
            values[f"{name}.winding_degC"] = f"{belief.winding:.1f} +- {belief.winding_deviation:.1f}"
            values[f"{name}.housing_degC"] = f"{belief.housing:.1f} +- {belief.housing_deviation:.1f}"
            values[f"{name}.seconds_to_limit"] = f"{one.seconds:.0f}" if math.isfinite(one.seconds) else "inf"
            values[f"{name}.torque_available_Nm"] = f"{one.torque:.2f}"
            values[f"{name}.load_Nm"] = f"{one.load:.2f}"
        found = heat_findings(self._joints, beliefs, self._limits, [one.seconds for one in limits], margin)
        return self._status("temperatures", found, "all windings below their limits", values)

    def payload(self, belief: PayloadBelief) -> Status:
        """Status of the payload: what it weighs, how surely, or why that is not known."""
        values = {
            "mass_kg": f"{belief.mass:.3f}",
            "mass_deviation_kg": f"{belief.mass_deviation:.3f}",
            "centre_m": ", ".join(f"{value:.3f}" for value in belief.centre),
        }
        if not belief.identifiable:
            return Status(OK, f"not identifiable: {belief.reason}", values)
        return Status(OK, f"{belief.mass:.2f} +- {belief.mass_deviation:.2f} kg", values)

    def support(self, lowest: Support | None, low_share: float) -> Status:
        """Status of what the wheels carry: of the moment since the last report when one carried least."""
        if lowest is None:
            return self._status("support", (), "not known: no states of the arm", {})
        loads = zip((*self._wheels, *SIDES), (*lowest.normal_forces, *lowest.side_loads), strict=True)
        values = {f"{name}_N": f"{load:.1f}" for name, load in loads}
        values["centre_of_mass_m"] = ", ".join(f"{value:.3f}" for value in lowest.centre_of_mass)
        values["mass_kg"] = f"{lowest.mass:.2f}"
        found = support_findings(lowest, self._wheels, low_share)
        return self._status("support", found, f"each wheel carries {lowest.margin:.0f} N or more", values)

    def _status(self, item: str, findings: Sequence[Finding], fine: str, values: Mapping[str, str]) -> Status:
        names = {finding.name for finding in findings}
        before = self._told.get(item, set())
        for finding in findings:
            if finding.name not in before:
                self._logger.warning(str(finding))
        self._told[item] = names
        if not findings:
            return Status(OK, fine, values)
        return Status(_LEVELS[findings[0].level], "; ".join(str(finding) for finding in findings), values)
