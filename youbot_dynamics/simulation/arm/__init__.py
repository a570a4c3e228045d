"""The arm of the digital twin: its driver, controllers, motion and readings."""

from youbot_dynamics.simulation.arm._controller import STEP, Order, filter_share, limited
from youbot_dynamics.simulation.arm._driver import (
    ArmDriver,
    ArmReading,
    TemperatureReading,
    VoltageReading,
    reachable,
    torque_of_current,
)
from youbot_dynamics.simulation.arm._plant import ArmPlant

__all__ = [
    "ArmDriver",
    "ArmPlant",
    "ArmReading",
    "Order",
    "STEP",
    "TemperatureReading",
    "VoltageReading",
    "limited",
    "reachable",
    "filter_share",
    "torque_of_current",
]
