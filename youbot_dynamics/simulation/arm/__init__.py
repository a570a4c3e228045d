"""The arm of the digital twin: its driver, controllers, motion and readings."""

from youbot_dynamics.simulation.arm._controller import STEP, Order, limited, told_share
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
    "told_share",
    "torque_of_current",
]
