"""What was wrong with the messages of a log, and which motors came near their limits: the findings of the live node."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from youbot_dynamics.estimation.arm_ekf import ArmTrack
from youbot_dynamics.estimation.arm_health import ERROR, ArmHealth, Finding, heat_findings
from youbot_dynamics.estimation.arm_log import ArmLog
from youbot_dynamics.estimation.joint_intake import JointReading
from youbot_dynamics.estimation.motor_heat import HeatBelief
from youbot_dynamics.estimation.replay_heat import HeatTrack
from youbot_dynamics.robot import Robot

RATE = 50.0  # [Hz] at which messages are looked at: that of the driver the thresholds are for
_LOOK = 1.0  # [s] between looks for findings
_OF_SIGNS = ("sign trap", "effort sign")


def findings_of_log(
    log: ArmLog, track: ArmTrack, heat: HeatTrack, robot: Robot, counts: Mapping[str, int], margin: float
) -> tuple[Finding, ...]:
    """All that the live node would have said, the worst first.

    Args:
        log: t messages, its times (t,).
        track: of its joints.
        heat: of its motors.
        robot: facts of the arm.
        counts: what became of messages and readings.
        margin: see `heat_findings`.
    """
    arm = robot.arm.model()
    coulomb = np.array([friction.coulomb for friction in arm.friction])
    health = ArmHealth(log.joints, coulomb, "the log")
    found: dict[str, Finding] = {}
    last_heard = last_look = -np.inf
    for row in np.flatnonzero(track.taken & np.isfinite(track.speed).all(axis=1)).tolist():
        now = float(log.received[row])
        if 0.0 <= now - last_heard < 1.0 / RATE - 1e-9:
            continue
        last_heard = now
        stamp = float(log.stamp[row])
        health.hear(JointReading(stamp, log.position[row], log.velocity[row], log.effort[row]), now, now)
        effort = np.where(np.isfinite(log.effort[row]), log.effort[row], 0.0)
        health.compare(effort, track.torque_error[row], track.speed[row])
        if not 0.0 <= now - last_look < _LOOK:
            last_look = now
            load = arm.tree.gravity_forces(track.position[row])
            found |= {one.name: one for one in health.findings(now, load, {})}
    if np.isfinite(last_heard):
        health.count(counts, last_heard)
        latest = health.findings(last_heard, np.full(len(log.joints), np.nan), {})
        # What a sign is, is better known at the end.
        found = {name: one for name, one in found.items() if name not in _OF_SIGNS}
        found |= {one.name: one for one in latest}
    if "effort sign" in found:
        remedy = "replay the log with those efforts inverted, and invert them in the driver"
        found["effort sign"] = dataclasses.replace(found["effort sign"], remedy=remedy)
    told = sorted([*found.values(), *_of_heat(log, heat, robot, margin)], key=lambda one: one.level != ERROR)
    return tuple(told)


def _of_heat(log: ArmLog, heat: HeatTrack, robot: Robot, margin: float) -> tuple[Finding, ...]:
    """Findings on the motors where they were hottest."""
    beliefs, seconds = [], []
    for k, row in enumerate(np.argmax(heat.winding, axis=0).tolist()):
        winding, winding_deviation = float(heat.winding[row, k]), float(heat.winding_deviation[row, k])
        housing, housing_deviation = float(heat.housing[row, k]), float(heat.housing_deviation[row, k])
        beliefs.append(
            HeatBelief(float(heat.time[row]), winding, winding_deviation, housing, housing_deviation, math.nan)
        )
        near = int(np.argmin(np.abs(heat.limit_time - heat.time[row])))
        seconds.append(float(heat.seconds[near, k]))
    limits = [joint.motor.winding_temperature_limit for joint in robot.arm.joints]
    return heat_findings(log.joints, beliefs, limits, seconds, margin)
