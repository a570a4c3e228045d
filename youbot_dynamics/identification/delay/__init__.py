"""Delay of each axis: the time shift for which the held command best explains the motion."""

from youbot_dynamics.identification.delay._estimator import (
    LEAST_EXPLAINED,
    OPPOSITE_MISFIT,
    DelayEstimate,
    estimate_delay,
    negligible_delay,
)
from youbot_dynamics.identification.delay._fopdt import (
    BLOCK,
    LEAD,
    LEAST_LAG,
    LONGEST,
    LaggedCommand,
    fit_fopdt,
    identified_together,
    negligible_part,
    orthogonal_size,
)
from youbot_dynamics.identification.delay._reasons import CONSTANT, OPPOSITE, leading
from youbot_dynamics.identification.delay._stops import stopping

__all__ = [
    "BLOCK",
    "CONSTANT",
    "DelayEstimate",
    "LEAD",
    "LEAST_EXPLAINED",
    "LEAST_LAG",
    "LONGEST",
    "LaggedCommand",
    "OPPOSITE",
    "OPPOSITE_MISFIT",
    "estimate_delay",
    "fit_fopdt",
    "identified_together",
    "leading",
    "negligible_delay",
    "negligible_part",
    "orthogonal_size",
    "stopping",
]
