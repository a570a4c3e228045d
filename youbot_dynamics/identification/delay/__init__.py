"""Delay of each axis: the shift that best maps the held command onto the motion (systems 32, 33)."""

from youbot_dynamics.identification.delay._estimator import DelayEstimate, estimate_delay

__all__ = [
    "DelayEstimate",
    "estimate_delay",
]
