"""Motors of the arm for MuJoCo: <dcmotor> (MuJoCo 3.7 and later; technical note "MuJoCo DC Motor Model").

MuJoCo's motor sits behind a gear and counts in turns of the rotor, so what friction holds the joint is divided by the
gear: torques by N, torques for an angle or a speed by N^2; a speed is multiplied by N. Its winding is its only thermal
node. The one node that stands for winding and housing has the resistance of both, R = R_wh + R_ha, so that every held
current ends at the same winding temperature, and the time constant

    tau = C_w R + C_h R_ha^2 / R

of the mean time after which heat leaves the two: the areas under both step responses are then the same, though the
first seconds, in which the winding runs ahead of its housing, are not.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from youbot_dynamics.dynamics.geared_motor import GearedMotor
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.thermal_motor import ThermalMotor
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.result import Result
from youbot_dynamics.robot import Robot

_MOTOR = ("torque_constant", "resistance")
_HEAT = (
    "winding_housing_resistance",
    "housing_ambient_resistance",
    "winding_time_constant",
    "housing_time_constant",
)
_BRISTLES = ("coulomb", "sigma0", "sigma1")


def one_node(motor: ThermalMotor) -> tuple[float, float]:
    """Thermal resistance [K/W] and capacity [J/K] of the one node that stands for winding and housing."""
    both = motor.thermal_resistance
    away = motor.housing_ambient_resistance
    time_constant = motor.winding_capacity * both + motor.housing_capacity * away**2 / both
    return both, time_constant / both


def dcmotor(name: str, geared: GearedMotor, friction: LuGre, identified: set[str]) -> ElementTree.Element:
    """Element <dcmotor> of a joint, input voltage.

    Args:
        name: of the joint, and of the motor.
        geared: its motor.
        friction: at the joint.
        identified: names of what was identified: heat and friction are written only then.
    """
    motor, ratio = geared.motor, geared.ratio
    element = ElementTree.Element("dcmotor", {"name": name, "joint": name, "gear": repr(ratio)})
    element.set("motorconst", f"{motor.torque_constant!r} {motor.torque_constant!r}")
    element.set("resistance", repr(motor.resistance))
    if identified & set(_HEAT):
        resistance, capacity = one_node(motor)
        temperatures = (motor.temperature_coefficient, motor.reference_temperature, motor.ambient_temperature)
        element.set("thermal", _text(resistance, capacity, 0.0, *temperatures))
    coulomb, viscous, sigma0, sigma1, static, stribeck_speed = friction.constants
    if identified & set(_BRISTLES):
        square = ratio**2
        bristles = (sigma0 / square, sigma1 / square, coulomb / ratio, static / ratio, stribeck_speed * ratio)
        element.set("lugre", _text(*bristles))
    if "viscous" in identified:
        element.set("damping", repr(viscous / ratio**2))
    return element


def _text(*values: float) -> str:
    return " ".join(repr(float(value)) for value in values)


def mujoco_text(result: Result, robot: Robot, head: list[str]) -> str:
    """MJCF with the motors of the joints for which anything was identified; "" where there is none.

    Args:
        result: what was identified.
        robot: names and motors; what was not identified of a motor that is written is the robot's own.
        head: lines for a comment at its beginning.
    """
    found, better = result.parameters(), result.applied_to(robot)
    actuator = ElementTree.Element("actuator")
    told = list(head)
    motors, frictions = better.arm.motors(), better.arm.friction()
    for k, name in enumerate(robot.driver.arm_joints):
        prefix = f"robot.arm.joint_{k + 1}."
        identified = {full.rpartition(".")[2] for full in found if full.startswith(prefix)}
        if not identified:
            continue
        element = dcmotor(name, motors[k], frictions[k], identified)
        actuator.append(element)
        written = list(_MOTOR)
        written += [*_HEAT, "temperature_coefficient"] if element.get("thermal") else []
        written += list(_BRISTLES) if element.get("lugre") else []
        own = ", ".join(what for what in written if what not in identified)
        told.append(f"{name}: identified {', '.join(sorted(identified))}" + (f"; the robot's own {own}" if own else ""))
    if not len(actuator):
        return ""
    told += [
        "Use: <include file='motors.xml'/> in a model with these joints; controls are voltages [V] of the windings.",
        "Rotor inertias (armature) are not in it: they are not identified.",
    ]
    root = ElementTree.Element("mujoco")
    root.append(ElementTree.Comment("\n    " + "\n    ".join(line.replace("--", "- -") for line in told) + "\n  "))
    root.append(actuator)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def write_mujoco(path: Path, result: Result, robot: Robot, head: list[str]) -> bool:
    """Write the motors; nothing where nothing of a joint of the arm was identified.

    Args:
        path: of the file, in an existing folder.
        result: what was identified.
        robot: names and motors.
        head: lines for a comment at its beginning.

    Returns:
        Whether there was anything to write.

    Raises:
        OSError: it cannot be written.
    """
    text = mujoco_text(result, robot, head)
    if text:
        write_atomically(path, text)
    return bool(text)
