"""Delay of each axis: the time shift for which the held command best explains the motion."""

from youbot_dynamics.identification.delay._estimator import DelayEstimate, estimate_delay

__all__ = [
    "DelayEstimate",
    "estimate_delay",
]
