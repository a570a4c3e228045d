"""The arm's filters on a whole log, without ROS: states, friction, temperatures, and checks of their consistency."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.arm_ekf import ArmEkf, ArmSensors, ArmTrack
from youbot_dynamics.estimation.arm_health import Finding
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.motor_heat import ArmTemperatures
from youbot_dynamics.estimation.payload import Payload
from youbot_dynamics.estimation.replay._parts import (
    ArmLog,
    HeatTrack,
    SupportTrack,
    findings_of_log,
    replay_heat,
    replay_support,
)
from youbot_dynamics.robot import Robot

_MOST_STOPS = 1000  # largest number of instants with full covariances
_MOVING = 0.02  # [rad/s] below which a joint counts as standing
_WITHIN = 1.959964  # standard deviations of a two-sided 95 % interval


@dataclass(frozen=True, eq=False)
class Deviations:
    """Standard deviations at s instants of a log."""

    row: NDArray[np.int64]  # (s,) indices of their messages
    position: Vector  # (s, n) [rad]
    speed: Vector  # (s, n) [rad/s]
    friction: Vector  # (s, n) [N m]
    bristle: Vector  # (s, n) of the bristles' torque, sigma0 z [N m]; NaN if bristles are not estimated


@dataclass(frozen=True, eq=False)
class JointSummary:
    """Summary of one joint over a log."""

    joint: str  # name
    nis: float  # mean squared innovation over its expected variance; 1 for a consistent filter
    coverage: float  # fraction of the innovations within their 95 % intervals
    refused: int  # number of readings beyond the gate
    speed_difference: float  # RMS of the estimated speed minus the driver's [rad/s], NaN if that is not reported
    friction: float  # RMS of the friction torque while the joint moves [N m], NaN if it never does
    winding: float  # highest temperature of the winding [degC]
    winding_deviation: float  # at that time [K]
    seconds_to_limit: float  # time to the limit at the end of the log, at its load [s]; infinite if it is never reached


@dataclass(frozen=True, eq=False)
class ArmReplay:
    """A filtered log."""

    log: ArmLog  # input of the filters
    track: ArmTrack  # estimates for each message
    bristle_torque: Vector  # (t, n) sigma0 z [N m], the elastic part of the friction
    deviations: Deviations  # of some of the estimates
    heat: HeatTrack  # temperatures
    support: SupportTrack  # payload, and wheel loads of a standing base
    settings: ArmSettings  # of the filters
    summary: tuple[JointSummary, ...]  # one for each joint
    findings: tuple[Finding, ...]  # faults of the messages, and hot motors
    counts: Mapping[str, int]  # numbers of messages and readings by outcome


def replay_arm(
    log: ArmLog, robot: Robot, settings: ArmSettings | None = None, step: Callable[[str], None] | None = None
) -> ArmReplay:
    """Run the filters of node arm_ekf over a log.

    Args:
        log: of an arm.
        robot: parameters of that arm and its driver.
        settings: of the filters; by default those of node arm_ekf.
        step: called with a text at the start of each step.

    Raises:
        InputError: a log of another number of joints than the robot's arm.
    """
    used, report = ArmSettings() if settings is None else settings, (lambda _: None) if step is None else step
    arm = robot.arm.model()
    sensors = ArmSensors.of_robot(robot, used.effort_noise, robot.driver.stamp_jitter)
    ekf = ArmEkf(arm, sensors, used.filter)
    report("filtering the joints")
    stiffness = np.array([friction.sigma0 for friction in arm.friction])
    track, deviations = _follow(ekf, log, stiffness)
    report("computing the motor temperatures")
    warmth = ArmTemperatures(
        robot.arm, used.first_temperature, used.heat, used.temperature_sensor, used.temperature_noise
    )
    heat = replay_heat(log, track, warmth, used.hold_time, used.heat_deviations)
    report("estimating the payload")
    payload = Payload(arm, used.filter, used.payload.of_arm(robot.arm))
    support = replay_support(log, track, robot, payload, used.support_lag)
    report("checking for faults")
    counts = {**ekf.counts, **log.counts, **heat.counts}
    counts["starts after a gap"] = max(0, counts.pop("starts") - 1)
    findings = findings_of_log(log, track, heat, robot, counts, used.hot_margin)
    summary = tuple(_summary(k, log, track, heat) for k in range(len(log.joints)))
    bristle = stiffness * track.bristle
    return ArmReplay(log, track, bristle, deviations, heat, support, used, summary, findings, counts)


def sound_innovations(track: ArmTrack, joint: int) -> NDArray[np.bool_]:
    """Messages (t,) with an accepted innovation of a joint."""
    there: NDArray[np.bool_] = (
        track.taken
        & (track.innovation_variance[:, joint] > 0.0)
        & np.isfinite(track.innovation[:, joint])
        & (track.refused[:, joint] == 0)
    )
    return there


def _follow(ekf: ArmEkf, log: ArmLog, stiffness: Vector) -> tuple[ArmTrack, Deviations]:
    """Filter in pieces, and store the full covariance after each."""
    t = len(log.stamp)
    edges = np.unique(np.linspace(0, t, min(t, _MOST_STOPS) + 1).astype(np.int64))
    tracks, rows, n = [], [], ekf.arm.tree.nv
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        part = slice(int(first), int(last))
        tracks.append(ekf.replay(log.stamp[part], log.position[part], log.effort[part]))
        deviation = np.sqrt(np.diag(ekf.state.covariance))
        bristle = stiffness * deviation[2 * n : 3 * n] if ekf.bristles_estimated else np.full(n, np.nan)
        known = np.where(np.isnan(ekf.state.stamp), np.nan, 1.0)
        rows.append(known * np.array([deviation[:n], deviation[n : 2 * n], ekf.friction_deviation(), bristle]))
    names = [field.name for field in dataclasses.fields(ArmTrack)]
    whole = ArmTrack(**{name: np.concatenate([getattr(track, name) for track in tracks]) for name in names})
    table = np.array(rows)
    return whole, Deviations(edges[1:] - 1, *(table[:, k] for k in range(4)))


def _summary(k: int, log: ArmLog, track: ArmTrack, heat: HeatTrack) -> JointSummary:
    sound = sound_innovations(track, k)
    squares = track.innovation[sound, k] ** 2 / track.innovation_variance[sound, k]
    speed, reported = track.speed[:, k], log.velocity[:, k]
    moving = track.taken & (np.abs(speed) > _MOVING)
    hottest = int(np.argmax(heat.winding[:, k]))
    return JointSummary(
        log.joints[k],
        _mean(squares),
        _mean(squares < _WITHIN**2),
        int(track.refused[:, k].sum()),
        float(np.sqrt(_mean((speed - reported)[track.taken & np.isfinite(speed - reported)] ** 2))),
        float(np.sqrt(_mean(track.friction_torque[moving, k] ** 2))),
        float(heat.winding[hottest, k]),
        float(heat.winding_deviation[hottest, k]),
        float(heat.seconds[-1, k]),
    )


def _mean(values: Vector | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
