"""Dynamics, estimation, identification and control of the KUKA youBot; the core imports without ROS.

`import youbot_dynamics as yd` offers what is needed first, such as `yd.MecanumBase`. A name is imported when first
used: the import itself costs nothing. Everything else is found under the modules' own paths.
"""

from __future__ import annotations

from youbot_dynamics import interrupts as interrupts  # the first: Ctrl-C may come while the others are imported

# isort: split
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from youbot_dynamics.control.tracker import Tracker as Tracker
    from youbot_dynamics.control.tracker import TrackerSettings as TrackerSettings
    from youbot_dynamics.control.trajectory import Trajectory as Trajectory
    from youbot_dynamics.dynamics.lugre import LuGre as LuGre
    from youbot_dynamics.dynamics.thermal_motor import ThermalMotor as ThermalMotor
    from youbot_dynamics.dynamics.tree import Tree as Tree
    from youbot_dynamics.estimation.arm_ekf import ArmEkf as ArmEkf
    from youbot_dynamics.estimation.motor_heat import MotorHeat as MotorHeat
    from youbot_dynamics.identification.delay import estimate_delay as estimate_delay
    from youbot_dynamics.identification.pipeline import identify as identify
    from youbot_dynamics.identification.reading import Options as Options
    from youbot_dynamics.kinematics.mecanum import MecanumBase as MecanumBase
    from youbot_dynamics.kinematics.planar import integrate as integrate
    from youbot_dynamics.messages.drive_bag import write_bag as write_bag
    from youbot_dynamics.report import write_outputs as write_outputs
    from youbot_dynamics.robot import Robot as Robot
    from youbot_dynamics.robot import load_robot as load_robot
    from youbot_dynamics.simulation.scenario import drive as drive
    from youbot_dynamics.simulation.truth import load_arm_truth as load_arm_truth
    from youbot_dynamics.simulation.truth import load_truth as load_truth
    from youbot_dynamics.simulation.youbot import BaseOnly as BaseOnly
    from youbot_dynamics.simulation.youbot import Youbot as Youbot
    from youbot_dynamics.source_systems.wheeled_base import Wheel as Wheel
    from youbot_dynamics.source_systems.wheeled_base import WheeledBase as WheeledBase

__version__ = "1.0.0"

_MODULES = {
    "ArmEkf": "estimation.arm_ekf",
    "BaseOnly": "simulation.youbot",
    "LuGre": "dynamics.lugre",
    "MecanumBase": "kinematics.mecanum",
    "MotorHeat": "estimation.motor_heat",
    "Options": "identification.reading",
    "Robot": "robot",
    "ThermalMotor": "dynamics.thermal_motor",
    "Tracker": "control.tracker",
    "TrackerSettings": "control.tracker",
    "Trajectory": "control.trajectory",
    "Tree": "dynamics.tree",
    "Wheel": "source_systems.wheeled_base",
    "WheeledBase": "source_systems.wheeled_base",
    "Youbot": "simulation.youbot",
    "drive": "simulation.scenario",
    "estimate_delay": "identification.delay",
    "identify": "identification.pipeline",
    "integrate": "kinematics.planar",
    "load_arm_truth": "simulation.truth",
    "load_robot": "robot",
    "load_truth": "simulation.truth",
    "write_bag": "messages.drive_bag",
    "write_outputs": "report",
}

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'youbot_dynamics' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"youbot_dynamics.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
