"""The result for other programs: dead times for Nav2, friction and bodies for a URDF, motors for MuJoCo."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from youbot_dynamics import __version__
from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.thermal_motor import GearedMotor, ThermalMotor
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.arm_friction import OF_BODY, ConsistentInertia, inertial_parameters
from youbot_dynamics.identification.finding import BODIES
from youbot_dynamics.identification.result import SCHEMA_VERSION, Result
from youbot_dynamics.parameter_file import write_parameters
from youbot_dynamics.parameters import Value
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot


def export_all(folder: Path, result: Result, robot: Robot, products: Mapping[str, object]) -> tuple[Path, ...]:
    """Write exports/nav2.yaml, youbot.urdf and motors.xml into an existing folder, each whole or not at all.

    Only what was identified is in them. A file of an earlier identification in this folder, for which there is nothing
    now, goes: it would not belong to the result beside it.

    Args:
        folder: that of result.yaml.
        result: what was identified.
        robot: the robot as it was read, before the result was applied to it.
        products: of the stages, by name; "arm_bodies" is a ConsistentInertia.

    Returns:
        Paths of the files that were written.

    Raises:
        OSError: the folder cannot be written.
    """
    place = folder / "exports"
    place.mkdir(exist_ok=True)
    head = _provenance(result)
    written = []
    nav2 = place / "nav2.yaml"
    if delays := _nav2_parameters(result):
        about = [
            "Dead times [s] of the base for Nav2's MPPI controller, which rounds them to its model_dt.",
            f"Load it after your own Nav2 parameters; replace {_PLUGIN} if your controller plugin has another name.",
        ]
        write_parameters(nav2, "/**/controller_server", delays, [*head, *about])
        written.append(nav2)
    else:
        nav2.unlink(missing_ok=True)
    texts = {
        place / "youbot.urdf": _urdf_text(result, robot, products.get(BODIES), head),
        place / "motors.xml": _mujoco_text(result, robot, head),
    }
    for path, text in texts.items():
        if text:
            write_atomically(path, text)
            written.append(path)
        else:
            path.unlink(missing_ok=True)
    if not any(place.iterdir()):
        place.rmdir()
    return tuple(written)


def _provenance(result: Result) -> list[str]:
    """Lines that say where a file comes from: tool, robot and recordings."""
    robot_id = "".join(c if c.isprintable() else " " for c in result.robot_id)
    count = len(result.sources)
    recordings = f"{count} recording{'s' if count != 1 else ''}"
    return [
        f"Identified by youbot_dynamics {__version__} (schema {SCHEMA_VERSION}) of robot '{robot_id}', {recordings};",
        "intervals, verdicts, ranges and hashes of the recordings: result.json beside this folder.",
    ]


def _comment(lines: list[str]) -> str:
    return "\n    " + "\n    ".join(line.replace("--", "- -") for line in lines) + "\n  "


def _numbers(*values: float) -> str:
    return " ".join(repr(float(value)) for value in values)


# Nav2

_PLUGIN = "FollowPath"


def _nav2_parameters(result: Result) -> dict[str, Value]:
    """Dead times [s] of the base, as far as identified, as parameters of Nav2's controller server.

    model_delay_vx, model_delay_vy and model_delay_wz (plugin nav2_mppi_controller; Nav2 from mid-2026 on, navigation2
    pull request 6154) are the times from a published command to its effect: predictions begin with the commands of that
    time, which are on their way already. It moves the commands and does not low-pass them, so these are dead times
    alone: a lag in them would be replayed as if the base stood still and then jumped.

    Two stages look for dead times: the delay axis by axis, the response with friction taken into account; the surer one
    counts. One that is of use only as part of the whole response is not among them, nor one beside a lag that is
    refused: Nav2 takes it without the rest.
    """
    refused = {finding.name for finding in result.findings if not finding.identified}
    errors = {finding.name: finding.estimate.standard_error for finding in result.findings if finding.identified}
    identified = {name: value for name, value in result.parameters().items() if name in errors}
    delays: dict[str, Value] = {}
    for axis, velocity in (("x", "vx"), ("y", "vy"), ("yaw", "wz")):
        lags = {"delay": f"base.delay.lag_{axis}", "response": "robot.base.response.lag"}
        names = [f"robot.base.{stage}.dead_time_{axis}" for stage, lag in lags.items() if lag not in refused]
        known = [name for name in names if name in identified]
        if known:
            delays[f"{_PLUGIN}.model_delay_{velocity}"] = identified[min(known, key=errors.__getitem__)]
    return delays


# URDF

_SOURCE = "youbot.urdf"
_CORNERS = ("fl", "fr", "rl", "rr")  # as the friction of each wheel is called, in the order of the driver's joints


def _urdf_text(result: Result, robot: Robot, bodies: object, head: list[str]) -> str:
    """A copy of urdf/youbot.urdf with friction and bodies that were identified; "" where none were."""
    dynamics = _joint_dynamics(result, robot)
    inertias = _link_inertias(bodies) if isinstance(bodies, ConsistentInertia) else {}
    if not dynamics and not inertias:
        return ""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(urdf_path(_SOURCE), parser).getroot()
    for joint in root.findall("joint"):
        if values := dynamics.get(joint.get("name", "")):
            element = ElementTree.SubElement(joint, "dynamics", {key: repr(value) for key, value in values.items()})
            element.tail = "\n  "
    for link in root.findall("link"):
        parameters = inertias.get(link.get("name", ""))
        if parameters is not None:
            _put_inertia(link, parameters)
    about = [
        f"Friction of: {', '.join(dynamics) or 'no joint'}. Bodies of: {', '.join(inertias) or 'no link'}.",
        "All other values are those of urdf/youbot.urdf of the package, which names their sources.",
    ]
    comment = ElementTree.Comment(_comment([*head, *about]))
    comment.tail = "\n  "
    root.insert(0, comment)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _joint_dynamics(result: Result, robot: Robot) -> dict[str, dict[str, float]]:
    """Attributes damping [N m s/rad] and friction [N m] of <dynamics> by name of the joint; only what was identified.

    URDF's model of friction is Coulomb and viscous. A wheel takes the Coulomb torque and the viscous one of that wheel
    where wheels were told apart; else those of all wheels, and for damping its share of the base's forward viscous
    friction, xi_L R^2 / 4, since on a straight line 4 d w / R = xi_L R w. What holds the rollers, sideways, has no
    place in a URDF whose wheels are plain cylinders.
    """
    found = result.parameters()
    alone = {finding.name: finding.estimate.value for finding in result.findings if finding.identified}
    base, better = "base.friction.wheel", result.applied_to(robot).base
    straight = better.friction.viscous_x * better.geometry.wheel_radius**2 / len(_CORNERS)
    dynamics: dict[str, dict[str, float]] = {}
    for k, name in enumerate(robot.driver.arm_joints):
        prefix = f"robot.arm.joint_{k + 1}.friction"
        pairs = (("damping", f"{prefix}.viscous"), ("friction", f"{prefix}.coulomb"))
        dynamics[name] = {key: float(found[of]) for key, of in pairs if of in found}  # type: ignore[arg-type]
    for name, corner in zip(robot.driver.wheel_joints, _CORNERS, strict=True):
        wheel = dynamics[name] = {}
        if f"{base}_viscous_{corner}" in alone:
            wheel["damping"] = max(0.0, alone[f"{base}_viscous_{corner}"])
        elif "robot.base.friction.viscous_x" in found:
            wheel["damping"] = straight
        if f"{base}_coulomb_{corner}" in alone:
            wheel["friction"] = max(0.0, alone[f"{base}_coulomb_{corner}"])
        elif "robot.base.friction.wheel_coulomb" in found:
            wheel["friction"] = better.friction.wheel_coulomb
    return {name: values for name, values in dynamics.items() if values}


def _link_inertias(bodies: ConsistentInertia) -> dict[str, Vector]:
    """Inertial parameters (10,) of each link of the arm that moves: m, m c, inertia about the origin of the link.

    The bodies were identified with what is fixed to them, the fingers of the gripper: that is taken off again.
    """

    def of_links(parameters: Vector, tree: Tree) -> dict[str, Vector]:
        return dict(zip(tree.names, parameters[: OF_BODY * len(tree.names)].reshape(-1, OF_BODY), strict=True))

    whole, alone = arm_tree(), Tree.from_urdf(urdf_path(_SOURCE), root="arm_link_0")
    drawn, own = of_links(inertial_parameters(whole), whole), of_links(inertial_parameters(alone), alone)
    return {name: own[name] + found - drawn[name] for name, found in of_links(bodies.parameters, whole).items()}


def _put_inertia(link: ElementTree.Element, parameters: Vector) -> None:
    """Put inertial parameters (10,) into the <inertial> of a link."""
    mass, moment = float(parameters[0]), parameters[1:4]
    centre = moment / mass
    xx, xy, xz, yy, yz, zz = parameters[4:]
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - point_inertia(mass, centre)
    inertial = link.find("inertial")
    assert inertial is not None  # every moving link of the arm has one
    tail = inertial.tail
    inertial.clear()
    inertial.tail = tail
    ElementTree.SubElement(inertial, "origin", {"xyz": _numbers(*centre), "rpy": "0 0 0"})
    ElementTree.SubElement(inertial, "mass", {"value": repr(mass)})
    places = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ElementTree.SubElement(inertial, "inertia", {key: repr(float(central[at])) for key, at in places.items()})
    inertial.text = "\n      "
    for child in inertial:
        child.tail = "\n      "
    inertial[-1].tail = "\n    "


# MuJoCo

_MOTOR = ("torque_constant", "resistance")
_HEAT = (
    "winding_housing_resistance",
    "housing_ambient_resistance",
    "winding_time_constant",
    "housing_time_constant",
)
_BRISTLES = ("coulomb", "sigma0", "sigma1")


def _one_node(motor: ThermalMotor) -> tuple[float, float]:
    """Thermal resistance [K/W] and capacity [J/K] of the one node that stands for winding and housing.

    It has the resistance of both, R = R_wh + R_ha, so that every held current ends at the same winding temperature, and
    the time constant tau = C_w R + C_h R_ha^2 / R of the mean time after which heat leaves the two: the areas under
    both step responses are then the same, though the first seconds, in which the winding runs ahead of its housing, are
    not.
    """
    both = motor.thermal_resistance
    away = motor.housing_ambient_resistance
    time_constant = motor.winding_capacity * both + motor.housing_capacity * away**2 / both
    return both, time_constant / both


def _dcmotor(name: str, geared: GearedMotor, friction: LuGre, identified: set[str]) -> ElementTree.Element:
    """Element <dcmotor> of a joint, input voltage; heat and friction are in it only where any of it was identified.

    MuJoCo's motor (3.7 and later; technical note "MuJoCo DC Motor Model") sits behind a gear and counts in turns of the
    rotor, so what friction holds the joint is divided by the gear: torques by N, torques for an angle or a speed by
    N^2; a speed is multiplied by N. Its winding is its only thermal node, see `_one_node`.
    """
    motor, ratio = geared.motor, geared.ratio
    element = ElementTree.Element("dcmotor", {"name": name, "joint": name, "gear": repr(ratio)})
    element.set("motorconst", f"{motor.torque_constant!r} {motor.torque_constant!r}")
    element.set("resistance", repr(motor.resistance))
    if identified & set(_HEAT):
        temperatures = (motor.temperature_coefficient, motor.reference_temperature, motor.ambient_temperature)
        element.set("thermal", _numbers(*_one_node(motor), 0.0, *temperatures))
    coulomb, viscous, sigma0, sigma1, static, stribeck_speed = friction.constants
    if identified & set(_BRISTLES):
        square = ratio**2
        bristles = (sigma0 / square, sigma1 / square, coulomb / ratio, static / ratio, stribeck_speed * ratio)
        element.set("lugre", _numbers(*bristles))
    if "viscous" in identified:
        element.set("damping", repr(viscous / ratio**2))
    return element


def _mujoco_text(result: Result, robot: Robot, head: list[str]) -> str:
    """MJCF with the motors of the joints for which anything was identified; "" where there is none.

    What was not identified of a motor that is written is the robot's own, and the comment at the beginning says so.
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
        element = _dcmotor(name, motors[k], frictions[k], identified)
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
    root.append(ElementTree.Comment(_comment(told)))
    root.append(actuator)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
