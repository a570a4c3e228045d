"""Delay of each axis: the time shift for which the held command best explains the motion."""

from youbot_dynamics.identification.delay._estimator import DelayEstimate, estimate_delay
from youbot_dynamics.identification.delay._fopdt import (
    BLOCK,
    LaggedCommand,
    fit_fopdt,
    identified_together,
    orthogonal_size,
)

__all__ = [
    "BLOCK",
    "DelayEstimate",
    "LaggedCommand",
    "estimate_delay",
    "fit_fopdt",
    "identified_together",
    "orthogonal_size",
]
