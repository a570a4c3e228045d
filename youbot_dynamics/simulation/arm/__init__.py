"""The arm of the digital twin: its driver, controllers, motion and readings."""

from youbot_dynamics.simulation.arm._controller import STEP, Order, filter_share
from youbot_dynamics.simulation.arm._driver import (
    ArmDriver,
    TemperatureReading,
    VoltageReading,
    reachable,
    torque_of_current,
)
from youbot_dynamics.simulation.arm._plant import ArmPlant

__all__ = [
    "ArmDriver",
    "ArmPlant",
    "Order",
    "STEP",
    "TemperatureReading",
    "VoltageReading",
    "reachable",
    "filter_share",
    "torque_of_current",
]
