"""LuGre friction. Source: Canudas de Wit, Olsson, Astrom and Lischinsky 1995; systems 9 to 12."""

from youbot_dynamics.dynamics.lugre._bristle import (
    advance_with_slopes,
    friction_torque,
    friction_torque_slopes,
)
from youbot_dynamics.dynamics.lugre._lugre import (
    Jacobians,
    LuGre,
    Step,
    coulomb_under_load,
    micro_damping,
)

__all__ = [
    "Jacobians",
    "LuGre",
    "Step",
    "advance_with_slopes",
    "coulomb_under_load",
    "friction_torque",
    "friction_torque_slopes",
    "micro_damping",
]
