"""The base of the digital twin: commands on their way, wheels, rollers, slip and readings."""

from youbot_dynamics.simulation.base._dynamics import SlipEvent, counted_wheel_speeds
from youbot_dynamics.simulation.base._plant import BasePlant, DelayLine, SimulatedBase
from youbot_dynamics.simulation.base._readings import (
    BaseSampler,
    EffortReading,
    WheelLoop,
    drive_wheels,
    loop_of,
)
from youbot_dynamics.simulation.base._steered import base_plant

__all__ = [
    "BasePlant",
    "BaseSampler",
    "DelayLine",
    "EffortReading",
    "SimulatedBase",
    "SlipEvent",
    "WheelLoop",
    "base_plant",
    "counted_wheel_speeds",
    "drive_wheels",
    "loop_of",
]
