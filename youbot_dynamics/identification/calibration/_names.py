"""Estimates of a calibration by their names in a result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from youbot_dynamics.identification.calibration._fit import (
    LATERAL_FACTOR,
    LEVER,
    LEVER_IN_WORDS,
    RADIUS,
    RADIUS_ERROR,
    Calibration,
    all_radii_identified,
)
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason, Unknown, undetermined
from youbot_dynamics.robot_base import BaseGeometry

_ONLY_LEVER = Reason(
    Kind.CONFUSED, f"the motion determines only {LEVER_IN_WORDS}; this value keeps the configured ratio of the two"
)


def named_estimates(calibration: Calibration, geometry: BaseGeometry) -> dict[str, Estimate]:
    """Estimates by their name in the result.

    `robot.base.geometry.wheel_radius` is the mean of the wheels. `wheel_radius_error_fl` and so on are relative to this
    mean; they are parameters if all are identified (`all_radii_identified`). Otherwise the robot keeps its errors, and
    the written radius is the one that gives the identified mean with them. Of `half_length` and `half_width` the motion
    shows only the lever: each is refused on its own, with the value of the configured ratio that gives the identified
    lever. Of omni wheels the lever is `wheel_distance`. Lever, radius of each wheel, pose, clock and smoothing of the
    tracker are listed under `base.geometry`, because the robot has no parameter for them. The calibration is of a base
    made from the configured `geometry`.
    """
    radii_identified = all_radii_identified(calibration.estimates)
    common = 1.0 if radii_identified else 1.0 / (1.0 + float(np.mean(geometry.wheel_radius_errors)))
    parameters = "robot.base.geometry"
    mean = calibration[RADIUS]
    interval, error = (common * mean.interval[0], common * mean.interval[1]), common * mean.standard_error
    scaled = replace(mean, value=common * mean.value, standard_error=error, interval=interval)
    named = {f"{parameters}.{RADIUS}": scaled}
    lever_estimate = calibration[LEVER]
    if geometry.wheel_distance > 0.0:
        named[f"{parameters}.wheel_distance"] = replace(lever_estimate, name="wheel_distance")
    for name in ("half_length", "half_width") if geometry.wheel_distance == 0.0 else ():
        half = undetermined(Unknown(name, "m"), lever_estimate.reason)
        if lever_estimate.identified:
            half = replace(half.refused(_ONLY_LEVER), value=calibration.size_factor * getattr(geometry, name))
        named[f"{parameters}.{name}"] = half
    for estimate in calibration.estimates:
        if estimate.name != RADIUS and not (estimate.name == LEVER and geometry.wheel_distance > 0.0):
            known = estimate.name == LATERAL_FACTOR or (radii_identified and estimate.name.startswith(RADIUS_ERROR))
            named[f"{parameters if known else 'base.geometry'}.{estimate.name}"] = estimate
    return named
