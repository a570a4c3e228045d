"""Friction of the base from wheel speeds and wheel torques, or from coasting (system 36)."""

from youbot_dynamics.identification.base_friction._fit import (
    BaseFriction,
    FrictionSignals,
    estimate_base_friction,
    estimate_coast_down,
)
from youbot_dynamics.identification.base_friction._rows import (
    ROLLER_DEADBAND,
    WHEEL_DEADBAND,
    FrictionModel,
)

__all__ = [
    "BaseFriction",
    "FrictionModel",
    "FrictionSignals",
    "ROLLER_DEADBAND",
    "WHEEL_DEADBAND",
    "estimate_base_friction",
    "estimate_coast_down",
]
