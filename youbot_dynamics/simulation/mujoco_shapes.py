"""What is seen of the robot: the visual primitives of its URDF as MJCF, without contact and mass."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from youbot_dynamics.dynamics.urdf import Link
from youbot_dynamics.kinematics.rotations import rpy_to_matrix
from youbot_dynamics.simulation.mujoco_wheels import placed, text


def shapes_of(urdf: Path, links: Sequence[Link], bodies: Collection[str]) -> dict[str, str]:
    """MJCF of boxes and cylinders by body; what hangs on a body by links that are none of `bodies` belongs to it.

    Args:
        urdf: the file the links are of.
        links: every parent before its children.
        bodies: names of the links that are bodies of the model.
    """
    robot = ElementTree.parse(urdf).getroot()
    colours = {}
    for material in robot.findall("material"):
        colour = material.find("color")
        if colour is not None:
            colours[material.get("name", "")] = colour.get("rgba", "")
    elements = {element.get("name", ""): element for element in robot.findall("link")}
    carriers: dict[str, tuple[str, np.ndarray]] = {}
    shapes = dict.fromkeys(bodies, "")
    for link in links:
        if link.name in shapes:
            carriers[link.name] = (link.name, np.eye(4))
        elif link.parent in carriers:
            body, pose = carriers[link.parent]
            carriers[link.name] = (body, pose @ link.placement)
        else:
            continue
        body, pose = carriers[link.name]
        for visual in elements[link.name].findall("visual"):
            shapes[body] += _shape(visual, pose, colours)
    return shapes


def _shape(visual: ElementTree.Element, carrier: np.ndarray, colours: dict[str, str]) -> str:
    origin, pose = visual.find("origin"), np.eye(4)
    if origin is not None:
        pose[:3, 3] = [float(word) for word in origin.get("xyz", "0 0 0").split()]
        pose[:3, :3] = rpy_to_matrix(*(float(word) for word in origin.get("rpy", "0 0 0").split()))
    box, cylinder, material = visual.find("geometry/box"), visual.find("geometry/cylinder"), visual.find("material")
    if box is not None:
        form = f'type="box" size="{text([0.5 * float(word) for word in box.get("size", "").split()])}"'
    elif cylinder is not None:
        half = 0.5 * float(cylinder.get("length", ""))
        form = f'type="cylinder" size="{text([float(cylinder.get("radius", "")), half])}"'
    else:
        return ""
    colour = colours.get(material.get("name", ""), "") if material is not None else ""
    painted = f' rgba="{colour}"' if colour else ""
    return f'<geom class="seen" {form} {placed(carrier @ pose)}{painted}/>'
