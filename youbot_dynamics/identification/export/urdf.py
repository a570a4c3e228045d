"""A copy of urdf/youbot.urdf with the friction of its joints, and with the bodies of the arm that were identified.

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
from numpy.typing import NDArray

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.arm.arm_inertia import ConsistentInertia
from youbot_dynamics.identification.arm.arm_regressors import OF_BODY, inertial_parameters
from youbot_dynamics.identification.result import Result
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

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
