"""Friction of the base from wheel speeds and wheel torques, or from coasting."""

from youbot_dynamics.identification.base_friction._fit import (
    BaseFriction,
    coast_sums,
    estimate_base_friction,
    fit_coast_down,
)
from youbot_dynamics.identification.base_friction._rows import (
    ROLLER_DEADBAND,
    WHEEL_DEADBAND,
    FrictionModel,
)
from youbot_dynamics.identification.base_friction._signals import FrictionSignals

__all__ = [
    "BaseFriction",
    "FrictionModel",
    "FrictionSignals",
    "ROLLER_DEADBAND",
    "WHEEL_DEADBAND",
    "coast_sums",
    "estimate_base_friction",
    "fit_coast_down",
]
