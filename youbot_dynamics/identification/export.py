"""The result for other programs: motors for MuJoCo, dead times for Nav2, friction and bodies for a URDF.

Dead times of the base for Nav2's MPPI controller.

Its parameters model_delay_vx, model_delay_vy and model_delay_wz (controller server, plugin nav2_mppi_controller; Nav2
from mid-2026 on, navigation2 pull request 6154) are the times from a published command to its effect: predictions begin
with the commands of that time, which are on their way already. It moves the commands and does not low-pass them, so
these are dead times alone: a lag in them would be replayed as if the base stood still and then jumped.

Motors of the arm for MuJoCo: <dcmotor> (MuJoCo 3.7 and later; technical note "MuJoCo DC Motor Model").

MuJoCo's motor sits behind a gear and counts in turns of the rotor, so what friction holds the joint is divided by the
gear: torques by N, torques for an angle or a speed by N^2; a speed is multiplied by N. Its winding is its only thermal
node. The one node that stands for winding and housing has the resistance of both, R = R_wh + R_ha, so that every held
current ends at the same winding temperature, and the time constant

    tau = C_w R + C_h R_ha^2 / R

of the mean time after which heat leaves the two: the areas under both step responses are then the same, though the
first seconds, in which the winding runs ahead of its housing, are not.

A copy of urdf/youbot.urdf with the friction of its joints, and with the bodies of the arm that were identified.

URDF's model of friction is Coulomb and viscous: <dynamics friction="..." damping="..."/>. A wheel takes the Coulomb
torque and the viscous one of that wheel where wheels were told apart; else those of all wheels, and for damping its
share of the base's forward viscous friction, xi_L R^2 / 4, since on a straight line 4 d w / R = xi_L R w. What holds
the rollers, sideways, has no place in a URDF whose wheels are plain cylinders.
"""

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

SECTION = "/**/controller_server"
PLUGIN = "FollowPath"
# Two stages look for dead times: the delay axis by axis, the response with friction taken into account.
_DELAYS = (("x", "vx"), ("y", "vy"), ("yaw", "wz"))
_GROUPS = ("robot.base.delay", "robot.base.response")


def nav2_parameters(result: Result) -> dict[str, Value]:
    """Parameters of the controller server, names with the plugin's; only of the dead times that were identified [s].

    Of two for one axis the surer one counts. One that is of use only as part of the whole response is not among them:
    Nav2 takes it without the rest.
    """
    errors = {one.name: one.estimate.standard_error for one in result.findings if one.identified}
    found = {name: value for name, value in result.parameters().items() if name in errors}
    delays: dict[str, Value] = {}
    for ours, theirs in _DELAYS:
        known = [name for group in _GROUPS if (name := f"{group}.dead_time_{ours}") in found]
        if known:
            delays[f"{PLUGIN}.model_delay_{theirs}"] = found[min(known, key=errors.__getitem__)]
    return delays


def write_nav2(path: Path, result: Result, head: list[str]) -> bool:
    """Write the parameter file; nothing where no dead time was identified.

    Args:
        path: of the file, in an existing folder.
        result: what was identified.
        head: lines for the head of the file.

    Returns:
        Whether there was anything to write.

    Raises:
        OSError: it cannot be written.
    """
    values = nav2_parameters(result)
    if not values:
        return False
    comments = [
        *head,
        "Dead times [s] of the base for Nav2's MPPI controller, which rounds them to its model_dt.",
        f"Load it after your own Nav2 parameters; replace {PLUGIN} if your controller plugin has another name.",
    ]
    write_parameters(path, SECTION, values, comments)
    return True


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


_SOURCE = "youbot.urdf"
_CORNERS = ("fl", "fr", "rl", "rr")  # as the friction of each wheel is called, in the order of the driver's joints


def joint_dynamics(result: Result, robot: Robot) -> dict[str, dict[str, float]]:
    """Damping [N m s/rad] and friction [N m] by name of the joint; only what was identified.

    Args:
        result: what was identified.
        robot: names of its joints, and its geometry.
    """
    found, better = result.parameters(), result.applied_to(robot)
    dynamics: dict[str, dict[str, float]] = {}
    for k, (name, joint) in enumerate(zip(robot.driver.arm_joints, better.arm.joints, strict=True)):
        prefix = f"robot.arm.joint_{k + 1}.friction"
        dynamics[name] = {}
        if f"{prefix}.viscous" in found:
            dynamics[name]["damping"] = joint.friction.viscous
        if f"{prefix}.coulomb" in found:
            dynamics[name]["friction"] = joint.friction.coulomb
    for name, corner in zip(robot.driver.wheel_joints, _CORNERS, strict=True):
        dynamics[name] = _of_wheel(result, better, corner)
    return {name: values for name, values in dynamics.items() if values}


def _of_wheel(result: Result, better: Robot, corner: str) -> dict[str, float]:
    """Damping and friction of one wheel; `better` is the robot with the result."""
    alone = {finding.name: finding.estimate.value for finding in result.findings if finding.identified}
    found, base = result.parameters(), better.base
    values: dict[str, float] = {}
    if f"base.friction.wheel_viscous_{corner}" in alone:
        values["damping"] = max(0.0, alone[f"base.friction.wheel_viscous_{corner}"])
    elif "robot.base.friction.viscous_x" in found:
        values["damping"] = base.friction.viscous_x * base.geometry.wheel_radius**2 / len(_CORNERS)
    if f"base.friction.wheel_coulomb_{corner}" in alone:
        values["friction"] = max(0.0, alone[f"base.friction.wheel_coulomb_{corner}"])
    elif "robot.base.friction.wheel_coulomb" in found:
        values["friction"] = base.friction.wheel_coulomb
    return values


def link_inertias(bodies: ConsistentInertia) -> dict[str, Vector]:
    """Inertial parameters (10,) of each link of the arm that moves: m, m c, inertia about the origin of the link.

    The bodies were identified with what is fixed to them, the fingers of the gripper: that is taken off again.
    """
    whole = arm_tree()
    own = Tree.from_urdf(urdf_path(_SOURCE), root="arm_link_0")
    own_rows = dict(
        zip(own.names, inertial_parameters(own)[: OF_BODY * len(own.names)].reshape(-1, OF_BODY), strict=True)
    )
    count = OF_BODY * len(whole.names)
    drawn = inertial_parameters(whole)[:count].reshape(-1, OF_BODY)
    found = bodies.parameters[:count].reshape(-1, OF_BODY)
    return {name: own_rows[name] + found[i] - drawn[i] for i, name in enumerate(whole.names)}


def urdf_text(dynamics: Mapping[str, Mapping[str, float]], inertias: Mapping[str, Vector], head: list[str]) -> str:
    """Text of the URDF.

    Args:
        dynamics: of joints, by name.
        inertias: inertial parameters (10,) of links, by name.
        head: lines for a comment at its beginning.
    """
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    robot = ElementTree.parse(urdf_path(_SOURCE), parser).getroot()
    for joint in robot.findall("joint"):
        values = dynamics.get(joint.get("name", ""))
        if values:
            element = ElementTree.SubElement(joint, "dynamics", {key: repr(value) for key, value in values.items()})
            element.tail = "\n  "
    for link in robot.findall("link"):
        parameters = inertias.get(link.get("name", ""))
        if parameters is not None:
            _put_inertia(link, parameters)
    comment = ElementTree.Comment("\n    " + "\n    ".join(line.replace("--", "- -") for line in head) + "\n  ")
    comment.tail = "\n  "
    robot.insert(0, comment)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(robot, encoding="unicode") + "\n"


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
    ElementTree.SubElement(inertial, "origin", {"xyz": " ".join(repr(float(x)) for x in centre), "rpy": "0 0 0"})
    ElementTree.SubElement(inertial, "mass", {"value": repr(mass)})
    places = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ElementTree.SubElement(inertial, "inertia", {key: repr(float(central[at])) for key, at in places.items()})
    inertial.text = "\n      "
    for child in inertial:
        child.tail = "\n      "
    inertial[-1].tail = "\n    "


def write_urdf(path: Path, result: Result, robot: Robot, bodies: ConsistentInertia | None, head: list[str]) -> bool:
    """Write the URDF; nothing where no friction of a joint and no bodies were identified.

    Args:
        path: of the file, in an existing folder.
        result: what was identified.
        robot: names of its joints, and its geometry.
        bodies: of the arm, None where they were not looked for.
        head: lines for a comment at its beginning.

    Returns:
        Whether there was anything to write.

    Raises:
        OSError: it cannot be written.
    """
    dynamics = joint_dynamics(result, robot)
    inertias = {} if bodies is None else link_inertias(bodies)
    if not dynamics and not inertias:
        return False
    told = [
        *head,
        f"Friction of: {', '.join(dynamics) or 'no joint'}. Bodies of: {', '.join(inertias) or 'no link'}.",
        "All else is that of urdf/youbot.urdf of the package, where its sources stand.",
    ]
    write_atomically(path, urdf_text(dynamics, inertias, told))
    return True


FOLDER = "exports"


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
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    head = provenance(result)
    bodies = products.get(BODIES)
    arm = bodies if isinstance(bodies, ConsistentInertia) else None
    nav2, urdf, motors = place / "nav2.yaml", place / "youbot.urdf", place / "motors.xml"
    written = {
        nav2: write_nav2(nav2, result, head),
        urdf: write_urdf(urdf, result, robot, arm, head),
        motors: write_mujoco(motors, result, robot, head),
    }
    for path, is_there in written.items():
        if not is_there:
            path.unlink(missing_ok=True)
    if not any(written.values()) and not any(place.iterdir()):
        place.rmdir()
    return tuple(path for path, is_there in written.items() if is_there)


def provenance(result: Result) -> list[str]:
    """Lines that say where a file comes from: tool, robot and recordings."""
    robot_id = "".join(c if c.isprintable() else " " for c in result.robot_id)
    count = len(result.sources)
    recordings = f"{count} recording{'s' if count != 1 else ''}"
    return [
        f"Identified by youbot_dynamics {__version__} (schema {SCHEMA_VERSION}) of robot '{robot_id}', {recordings};",
        "intervals, verdicts, ranges and hashes of the recordings: result.json beside this folder.",
    ]
