"""DC motors with winding and housing temperature, with and without a gear. Source: document 000, systems 1 to 6."""

from youbot_dynamics.dynamics.thermal_motor._motor import (
    GearedMotor,
    ThermalMotor,
    drivable_current,
    winding_resistance,
)
from youbot_dynamics.dynamics.thermal_motor._network import (
    heat_history,
    heat_integral,
    heat_matrix,
    heat_rates,
    heat_step,
)

__all__ = [
    "GearedMotor",
    "ThermalMotor",
    "drivable_current",
    "heat_history",
    "heat_integral",
    "heat_matrix",
    "heat_rates",
    "heat_step",
    "winding_resistance",
]
