"""Parts of the robot as MJCF: wheels of free rollers, the arm and its motors, and what is seen of the URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import cos, pi, sin, tan
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Link
from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics.rotations import rpy_to_matrix

# No source publishes the youBot's rollers. Chosen: as thick as their neighbours let them be, less this share of air,
_CLEARANCE = 0.05
# and of rubber around a sleeve.
_DENSITY = 1200.0  # [kg/m3]
_SPHERES = 41  # a roller; odd, so that one stands in its middle


@dataclass(frozen=True)
class Rollers:
    """The rollers of a wheel.

    A roller turns about an axis at distance `depth` from the axle, at `angle` to the wheel's plane. At s along that
    axis it is R - |distance of that point from the axle| thick, so that it touches the cylinder of radius R there and
    the wheel rolls on a circle at every angle. Spheres with their middles on the axis do that exactly; in between
    them the wheel is lower by (R - r) (1 - cos(pi / (n (spheres - 1)))): 3 um for 6 rollers of 41 spheres.
    """

    count: int  # n, rollers a wheel, 4 at least, as `BaseTruth` wants it
    coulomb: float  # friction of a roller over its radius, F2 / r [N]

    def radius(self, wheel_radius: float, angle: float) -> float:
        """Radius [m] of a roller in its middle: neighbours at `angle` [rad] to the wheel's plane clear each other."""
        share = (1.0 - _CLEARANCE) * sin(pi / self.count) * abs(sin(angle))
        return wheel_radius * share / (1.0 + share)

    def profile(self, wheel_radius: float, angle: float) -> tuple[Vector, Vector]:
        """Places (k,) of the spheres along the roller's axis and their radii (k,) [m]."""
        depth = wheel_radius - self.radius(wheel_radius, angle)
        reach = depth * tan(pi / self.count) / cos(angle)
        places = np.linspace(-reach, reach, _SPHERES)
        return places, wheel_radius - np.hypot(depth, places * cos(angle))


def text(values: ArrayLike) -> str:
    """Numbers (n,) as an attribute of MJCF, none of their digits lost."""
    return " ".join(repr(float(value)) for value in np.ravel(values))


def placed(pose: ArrayLike) -> str:
    """Attributes of MJCF for a pose (4, 4)."""
    p = np.asarray(pose, dtype=float)
    return f'pos="{text(p[:3, 3])}" xyaxes="{text(p[:3, :2].T)}"'


def inertial(mass: float, centre: ArrayLike, inertia: ArrayLike) -> str:
    """MJCF of a body's mass [kg], centre of mass (3,) [m] and inertia (3, 3) about it [kg m2]."""
    i = np.asarray(inertia, dtype=float)
    moments = text([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])
    return f'<inertial mass="{mass!r}" pos="{text(centre)}" fullinertia="{moments}"/>'


def wheel(
    link: Link,
    radius: float,
    angle: float,
    rollers: Rollers,
    rotor_inertia: float,
    coulomb: float,
    phase: float = 0.0,
) -> str:
    """MJCF of a wheel: a hub on its axle and free rollers, together of the mass and inertia of its link.

    Args:
        link: the wheel of the URDF.
        radius: R [m].
        angle: of the roller on the floor against the x axis [rad].
        rollers: how they are made.
        rotor_inertia: of the motor, reflected to the axle [kg m2].
        coulomb: friction torque of the axle [N m].
        phase: angle of a roller's middle behind the bottom of the wheel, at wheel angle 0 [rad]; the wheel that turns
            forward moves it on.

    Raises:
        ModelError: the rollers alone are heavier than the wheel.
    """
    depth = radius - rollers.radius(radius, angle)
    places, sizes = rollers.profile(radius, angle)
    slices = _DENSITY * pi * sizes**2 * (places[1] - places[0])
    slices[[0, -1]] *= 0.5
    mass = float(np.sum(slices))
    along = float(slices @ (0.5 * sizes**2))
    across = float(slices @ (0.25 * sizes**2 + places**2))
    bodies, hub = [], link.inertia.copy()
    for k in range(rollers.count):
        out, axis = _roller_place(phase + 2.0 * pi * k / rollers.count, angle)
        inertia = across * np.eye(3) + (along - across) * np.outer(axis, axis)
        hub -= inertia_about(inertia, mass, depth * out)
        spheres = "".join(
            f'<geom class="roller" pos="{text(place * axis)}" size="{size!r}"/>'
            for place, size in zip(places.tolist(), sizes.tolist(), strict=True)
        )
        bodies.append(
            f'<body name="{link.name}_roller_{k}" pos="{text(depth * out)}">'
            f'<joint name="{link.joint}_roller_{k}" class="roller" axis="{text(axis)}"'
            f' frictionloss="{rollers.coulomb * (radius - depth)!r}"/>'
            f"{inertial(mass, np.zeros(3), inertia)}{spheres}</body>"
        )
    hub_mass = link.mass - rollers.count * mass
    if hub_mass <= 0.0 or np.linalg.eigvalsh(hub)[0] <= 0.0:
        raise ModelError(
            f"rollers of {link.name}",
            got=f"{rollers.count * mass:.3g} kg in all",
            expected=f"less than the wheel, {link.mass:g} kg, and less inertia",
        )
    return (
        f'<body name="{link.name}" {placed(link.placement)}>'
        f'<joint name="{link.joint}" axis="{text(link.axis)}" armature="{rotor_inertia!r}" frictionloss="{coulomb!r}"/>'
        f"{inertial(hub_mass, np.zeros(3), hub)}"
        f'<geom class="seen" type="cylinder" size="{0.6 * radius!r} 0.02" zaxis="0 1 0" rgba="0.55 0.55 0.57 1"/>'
        f"{''.join(bodies)}</body>"
    )


def _roller_place(turn: float, angle: float) -> tuple[Vector, Vector]:
    """Direction (3,) from the hub to a roller that is `turn` [rad] behind the floor, and its axis (3,)."""
    out = np.array([-sin(turn), 0.0, -cos(turn)])
    axis = cos(angle) * np.array([cos(turn), 0.0, -sin(turn)]) + sin(angle) * np.array([0.0, 1.0, 0.0])
    return out, axis


def arm_bodies(arm: ArmModel, position: ArrayLike, moves: bool, shapes: dict[str, str]) -> str:
    """MJCF of the arm's bodies, to stand within the body of its first link.

    Args:
        arm: n joints in a chain.
        position: (n,) at which an arm that does not move is held [rad].
        moves: whether it has its joints.
        shapes: MJCF of what is seen of the bodies, by their names.
    """
    tree, layout = arm.tree, arm.tree.layout
    held = array("position of the arm", position, (tree.nv,))
    poses = tree.poses(held)
    opened, parent = [], np.eye(4)
    for i, name in enumerate(tree.names):
        mass = float(layout.masses[i])
        centre = layout.first_moments[i] / mass
        place = np.eye(4)
        place[:3, :3], place[:3, 3] = layout.rotations[i], layout.positions[i]
        joint, limits = "", tree.limits[i]
        if moves:
            joint = (
                f'<joint name="{tree.joint_names[i]}" axis="{text(layout.axes[i])}"'
                f' armature="{float(layout.rotor_inertias[i])!r}" damping="{float(arm.friction[i].viscous)!r}"'
                f' range="{text([limits.lower, limits.upper])}"/>'
            )
        else:
            place = np.linalg.inv(parent) @ poses[i]
            parent = poses[i]
        central = layout.inertias[i] - inertia_about(np.zeros((3, 3)), mass, centre)
        body = inertial(mass, centre, central)
        opened.append(f'<body name="{name}" {placed(place)}>{joint}{body}{shapes.get(name, "")}')
    return "".join(opened) + "</body>" * len(opened)


def arm_motors(arm: ArmModel) -> str:
    """MJCF of the motors, driven by torques [N m] at the joints and named as these.

    A motor of torque constant K behind a gear N is one of constant N K at the joint: the same current for a torque,
    so the same heat. Its one thermal node is the winding; the air around it is the housing, which the plant moves
    (`MujocoYoubot`). The friction is MuJoCo's LuGre model, its viscous part the damping of the joint.
    """
    rows = []
    for name, geared, friction in zip(arm.tree.joint_names, arm.motors, arm.friction, strict=True):
        motor = geared.motor
        coulomb, _, sigma0, sigma1, static, stribeck_speed = friction.constants
        heat = [
            motor.winding_housing_resistance,
            motor.winding_capacity,
            0.0,
            motor.temperature_coefficient,
            motor.reference_temperature,
            motor.ambient_temperature,
        ]
        rows.append(
            f'<dcmotor name="{name}" joint="{name}" input="ff"'
            f' motorconst="{geared.ratio * motor.torque_constant!r}" resistance="{motor.resistance!r}"'
            f' lugre="{text([sigma0, sigma1, coulomb, static, stribeck_speed])}" thermal="{text(heat)}"/>'
        )
    return "".join(rows)


def arm_at(arm: ArmModel, position: ArrayLike) -> tuple[float, Vector, Vector]:
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg m2] about it of the whole arm at position (n,) [rad].

    In the frame of the arm's first link; rotors, which turn with their joints, are not in it.
    """
    layout = arm.tree.layout
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for i, pose in enumerate(arm.tree.poses(array("position of the arm", position, (arm.tree.nv,)))):
        m, turned = float(layout.masses[i]), pose[:3, :3]
        centre = layout.first_moments[i] / m
        central = turned @ (layout.inertias[i] - inertia_about(np.zeros((3, 3)), m, centre)) @ turned.T
        at = turned @ centre + pose[:3, 3]
        mass, first, second = mass + m, first + m * at, second + inertia_about(central, m, at)
    return mass, first / mass, second - inertia_about(np.zeros((3, 3)), mass, first / mass)


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
