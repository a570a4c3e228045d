"""What a calibration says in the names of the result: parameters of the robot, and values it has no parameter for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from youbot_dynamics.identification.calibration import (
    LATERAL_FACTOR,
    RADIUS,
    RADIUS_ERROR,
    SIZE,
    Calibration,
    wheels_told_apart,
)
from youbot_dynamics.identification.fitting.verdict import Estimate
from youbot_dynamics.robot_base import BaseGeometry

_PARAMETERS = "robot.base.geometry"
_BESIDE = "base.geometry"


def named_estimates(found: Calibration, geometry: BaseGeometry) -> dict[str, Estimate]:
    """Estimates by their name in the result.

    `robot.base.geometry.wheel_radius` is the mean of the wheels, and `wheel_radius_error_fl` and so on, over that mean,
    are parameters where `wheels_told_apart` says so; else they stand beside, the robot keeps the errors it has, and the
    radius is the one that has the found mean with them. Only the sum of `half_length` and `half_width` shows in the
    motion of the base: both keep their configured ratio. Radii of each wheel, the pose of the tracked body and the
    offset of its clock stand under `base.geometry`: the robot has no parameter for them.

    Args:
        found: the calibration of a base made from `geometry`.
        geometry: as configured.
    """
    apart = wheels_told_apart(found.estimates, geometry.mecanum().radii)
    common = 1.0 if apart else 1.0 / (1.0 + float(np.mean(geometry.wheel_radius_errors)))
    named = {f"{_PARAMETERS}.{RADIUS}": _share(found[RADIUS], RADIUS, common)}
    whole = geometry.half_length + geometry.half_width
    for name in ("half_length", "half_width"):
        named[f"{_PARAMETERS}.{name}"] = _share(found[SIZE], name, getattr(geometry, name) / whole)
    for estimate in found.estimates:
        if estimate.name != RADIUS:
            known = estimate.name == LATERAL_FACTOR or (apart and estimate.name.startswith(RADIUS_ERROR))
            prefix = _PARAMETERS if known else _BESIDE
            named[f"{prefix}.{estimate.name}"] = estimate
    return named


def _share(whole: Estimate, name: str, share: float) -> Estimate:
    """Estimate of a fixed share of another one."""
    low, high = whole.interval
    return replace(
        whole,
        name=name,
        value=share * whole.value,
        standard_error=share * whole.standard_error,
        interval=(share * low, share * high),
    )
