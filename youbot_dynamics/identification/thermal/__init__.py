"""Electrical and thermal constants of a motor."""

from youbot_dynamics.identification.thermal._fit import Armature, Heat, HeatRun, identify_armature, identify_heat

__all__ = [
    "Armature",
    "Heat",
    "HeatRun",
    "identify_armature",
    "identify_heat",
]
