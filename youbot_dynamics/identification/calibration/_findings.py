"""Findings of a calibration, with motion capture or with a tape measure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from youbot_dynamics.identification.calibration._fit import (
    LATERAL_FACTOR,
    LEVER,
    LEVER_IN_WORDS,
    RADIUS,
    Calibration,
    all_radii_identified,
)
from youbot_dynamics.identification.finding import Finding, Row, Table
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.robot_base import BaseGeometry

_ERROR = "radius error of the {wheel} wheel"
_LEVER = "lever of a turn"
_DRIFT = "drift of odometry"
TIME_OFFSETS = "time_offset", "time_offset_{recording}"  # keys: of the poses ahead of the wheels
FINDINGS = Table(
    Row("robot.base.geometry.wheel_radius", "m", "mean radius of the wheels", told=("mean wheel radius",)),
    Row(
        "robot.base.geometry.wheel_radius_error_{wheel}", "1", _ERROR, optional=True, told=("radius errors", "{wheel}")
    ),
    Row("base.geometry.wheel_radius_{wheel}", "m", "radius of the {wheel} wheel"),
    Row("robot.base.geometry.half_length", "m", "half of the wheelbase", LEVER_IN_WORDS, told=(_LEVER,), quiet=True),
    Row("robot.base.geometry.half_width", "m", "half of the track width", LEVER_IN_WORDS, told=(_LEVER,), quiet=True),
    Row("base.geometry.lever", "m", _LEVER, told=(_LEVER,)),
    Row(
        "robot.base.geometry.wheel_distance",
        "m",
        "distance of the omni wheels from the middle",
        told=("distance of the wheels",),
    ),
    Row("robot.base.geometry.track", "m", "distance between the wheels", told=("distance between the wheels",)),
    Row("robot.base.geometry.wheelbase", "m", "wheelbase", told=("wheelbase",)),
    Row("robot.base.geometry.steering_offset", "rad", "offset of the steering", told=("offset of the steering",)),
    Row(
        "robot.base.geometry.lateral_factor",
        "1",
        "sideways speed over that of ideal wheels",
        told=("sideways speed factor",),
        sideways=True,
    ),
    Row("base.geometry.sensor_{axis}", "m, rad", "place of the tracked body {axis}", sideways=False),
    Row("robot.base.drift.position", "m/sqrt(m)", "growth of position errors of odometry", told=(_DRIFT,), quiet=True),
    Row("robot.base.drift.yaw", "rad/sqrt(m)", "growth of yaw errors of odometry", told=(_DRIFT,), quiet=True),
    Row("base.geometry.time_offset", "s", "clock of the poses ahead of that of the wheels"),
    Row("base.geometry.time_offset_{recording}", "s", "clock of the poses ahead of the wheels, recording {recording}"),
    Row(
        "robot.base.delay.stamps",
        "s",
        "time by which the driver stamps the wheels late",
        told=("late stamps of the wheels",),
    ),
    Row("base.geometry.pose_smoothing", "s2", "smoothing of the poses"),
    Row("robot.base.geometry.roller_phase_{wheel}", "rad", "roller phase of the {wheel} wheel", optional=True),
    Row(
        "robot.base.geometry.roller_phase_error",
        "rad",
        "largest standard error of the roller phases",
        told=("roller phases",),
        quiet=True,
    ),
)
_LEVERS = {"wheel_distance": 1.0, "track": 2.0}  # sizes that the lever is, and how many of it
_ONLY_LEVER = Reason(
    Kind.CONFUSED, f"a turn shows only {LEVER_IN_WORDS}; the ratio of the two lengths is the configured one"
)


def geometry_findings(calibration: Calibration, geometry: BaseGeometry, samples: int) -> list[Finding]:
    """Findings of the calibration of a base made from the configured `geometry`.

    The radius errors are parameters if all are identified (`all_radii_identified`). Otherwise the robot keeps its own,
    and the written radius is the one that gives the identified mean with them. Of `half_length` and `half_width` the
    motion shows only the lever: each is refused on its own, with the value of the configured ratio that gives the
    identified lever. Of omni wheels, which have no lateral factor, the lever is `wheel_distance`, of a differential
    base half of the `track`.
    """
    radii_identified = all_radii_identified(calibration.estimates)
    common = 1.0 if radii_identified else 1.0 / (1.0 + float(np.mean(geometry.wheel_radius_errors)))
    mean, lever = calibration[RADIUS], calibration[LEVER]
    sizes = {name: factor for name, factor in _LEVERS.items() if getattr(geometry, name) > 0.0}
    interval, error = (common * mean.interval[0], common * mean.interval[1]), common * mean.standard_error
    mean = replace(mean, value=common * mean.value, standard_error=error, interval=interval)
    findings = [Finding(FINDINGS.row(RADIUS), mean, samples)]
    for name, factor in sizes.items():
        low, high = lever.interval
        size = replace(lever, value=factor * lever.value, standard_error=factor * lever.standard_error)
        findings.append(Finding(FINDINGS.row(name), replace(size, interval=(factor * low, factor * high)), samples))
    for name in () if sizes else ("half_length", "half_width"):
        half = FINDINGS.row(name).refused(lever.reason or _ONLY_LEVER).estimate
        if lever.identified:
            half = replace(half, value=calibration.size_factor * getattr(geometry, name))
        findings.append(Finding(FINDINGS.row(name), half, samples, together=lever.identified))
    for estimate in calibration.estimates:
        if estimate.name != RADIUS and not (sizes and estimate.name in (LEVER, LATERAL_FACTOR)):
            row = FINDINGS.row(estimate.name)
            findings.append(Finding(row, estimate, samples, listed=row.optional and not radii_identified))
    return [finding for finding in findings if geometry.moves_sideways or not finding.row.of_sideways]
