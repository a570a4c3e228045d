"""Stage `calibration`: geometry of the base, from its wheels and any topic that tells where the robot is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from youbot_dynamics.identification.calibration import LATERAL_FACTOR, RADIUS, SIZE, Calibration, calibrate
from youbot_dynamics.identification.calibration_poses import CalibrationSignals, recorded_calibration_signals
from youbot_dynamics.identification.finding import Correlation, Finding, StageResult
from youbot_dynamics.identification.opened import Opened
from youbot_dynamics.identification.stages.stage import Reopen, Taken
from youbot_dynamics.identification.verdict import Estimate
from youbot_dynamics.robot import Robot

STAGE = "calibration"
_PREFIX = "robot.base.geometry"
_LONGEST = 3600.0  # [s] of recordings that are fitted together
_RATIO = "of half_length and half_width only the sum shows in the motion: both are the configured ones times one factor"


def extract(opened: Opened, robot: Robot) -> CalibrationSignals:
    """Wheels and poses of one recording.

    Raises:
        RecordingError: no wheel states, no poses beside odometry, or several topics that could be meant.
    """
    options = opened.options
    return recorded_calibration_signals(opened.bag(), robot, options.topics, options.pose_topic, opened.number)


def finish(taken: Sequence[Taken], robot: Robot, reopen: Reopen) -> StageResult:
    """Geometry from all recordings together, which must have the tracked body in one place on the robot."""
    used: list[Taken] = []
    notes: list[str] = []
    total = 0.0
    for one in taken:
        time = one.part.wheel_time
        total += float(time[-1] - time[0]) if len(time) else 0.0
        if not used or total <= _LONGEST:
            used.append(one)
        else:
            notes.append(f"{one.name} left out: an hour of readings is fitted together")
    found = calibrate([one.part for one in used], robot.base.geometry.mecanum())
    if found[SIZE].identified:
        notes.append(_RATIO)
    return StageResult(
        STAGE,
        _findings(found, robot, sum(len(one.part.poses) for one in used)),
        correlations=_correlations(found),
        notes=tuple(notes),
    )


def _findings(found: Calibration, robot: Robot, samples: int) -> tuple[Finding, ...]:
    """Parameters of the robot first; then what it has none for: each wheel's radius, the sensor, clocks."""
    geometry = robot.base.geometry
    configured = geometry.half_length + geometry.half_width
    named: list[tuple[str, Estimate]] = []
    for estimate in found.estimates:
        if estimate.name in (RADIUS, LATERAL_FACTOR):
            named.append((f"{_PREFIX}.{estimate.name}", estimate))
        elif estimate.name == SIZE:
            for half in ("half_length", "half_width"):
                share = getattr(geometry, half) / configured
                named.append((f"{_PREFIX}.{half}", _times(estimate, half, share)))
            named.append((f"base.geometry.{SIZE}", estimate))
        else:
            named.append((f"base.geometry.{estimate.name}", estimate))
    return tuple(Finding(name, estimate, samples) for name, estimate in named)


def _times(estimate: Estimate, name: str, factor: float) -> Estimate:
    """An estimate of a share of a length."""
    low, high = estimate.interval
    return dataclasses.replace(
        estimate,
        name=name,
        value=factor * estimate.value,
        standard_error=factor * estimate.standard_error,
        interval=(factor * low, factor * high),
    )


def _correlations(found: Calibration) -> tuple[Correlation, ...]:
    fit = found.fit
    if fit is None:
        return ()
    names = tuple(unknown.name for unknown in fit.unknowns)
    return (Correlation("Geometry of the base", names, fit.correlation, fit.condition, fit.method, fit.active_bounds),)
