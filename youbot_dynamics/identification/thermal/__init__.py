"""Electrical and thermal constants of a motor (systems 1, 2, 5)."""

from youbot_dynamics.identification.thermal._fit import Armature, Heat, HeatRun, identify_armature, identify_heat

__all__ = [
    "Armature",
    "Heat",
    "HeatRun",
    "identify_armature",
    "identify_heat",
]
