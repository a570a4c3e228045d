"""The whole robot as MJCF text, made of config/youbot.yaml and urdf/youbot.urdf: wheels of free rollers on a floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number
from youbot_dynamics.dynamics.arm import ROOT_LINK, ArmModel
from youbot_dynamics.dynamics.tree import Link, read_urdf
from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase, mean_factor
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.simulation.arm import STEP
from youbot_dynamics.simulation.base import WheelLoop, loop_of
from youbot_dynamics.simulation.mujoco_youbot import _bodies as bodies
from youbot_dynamics.simulation.mujoco_youbot._bodies import Rollers, inertial, placed
from youbot_dynamics.simulation.truth import BaseTruth

BASE = "base_link"
TIMESTEP = STEP  # [s] the cycle of the motor controllers
_WHEELS = ("wheel_link_fl", "wheel_link_fr", "wheel_link_bl", "wheel_link_br")
_ROLLERS = 6  # of the youBot's wheels, by pictures
_CONTACT = 'cone="elliptic" impratio="10" jacobian="sparse"'
# Twice the step, the stiffest MuJoCo lets be; on the soft floor of its defaults the base sinks in and loses a fifth of
# its acceleration.
_FLOOR = 'solref="0.002 1"'
_SCENERY = (
    '<asset><texture name="floor" type="2d" builtin="checker" rgb1="0.72 0.74 0.76" rgb2="0.64 0.66 0.68" width="300"'
    ' height="300"/><material name="floor" texture="floor" texrepeat="2 2" texuniform="true"/>'
    '<texture type="skybox" builtin="gradient" rgb1="0.9 0.93 0.97" rgb2="0.6 0.66 0.74" width="64" height="64"/>'
    "</asset>"
)

_POSITIVE = ("half_length", "half_width", "mass", "yaw_inertia", "wheel_inertia", "lag", "floor_friction")
_NOT_NEGATIVE = ("wheel_coulomb", "viscous_x", "viscous_y")


def rollers_of(truth: BaseTruth) -> Rollers:
    """Rollers of a base's wheels: those of the truth, six where its wheels are smooth."""
    return Rollers(round(truth.rollers) or _ROLLERS, truth.roller_coulomb)


def mean_kinematics(truth: BaseTruth) -> MecanumBase:
    """Closed form of the mean motion; its lateral factor comes of the rollers, not of the truth (system 31)."""
    factor = mean_factor(rollers_of(truth).count)
    return MecanumBase.rectangular(
        truth.wheel_radius, truth.half_length, truth.half_width, factor, truth.wheel_radius_error
    )


def contact_model(
    truth: BaseTruth,
    arm: ArmModel,
    *,
    with_arm: bool = True,
    position: ArrayLike | None = None,
) -> str:
    """MJCF text of the robot on a floor.

    Bodies `base_link`, `wheel_link_fl`, ..., `arm_link_1`, ...; joints and motors named as in the URDF. The wheels'
    motors take a torque.

    Args:
        truth: the base; its axles stand so high that all four wheels touch the floor.
        arm: bodies, friction and motors of the arm.
        with_arm: whether the arm moves; else it is held, part of the base.
        position: (n,) of an arm that is held [rad], folded to the stops by default; mass and yaw inertia of the whole
            robot are those of the base with the arm folded.

    Raises:
        ModelError: a constant no robot has; masses or inertias that leave nothing for the body of the base.
    """
    _check(truth)
    file = urdf_path("youbot.urdf")
    links = {link.name: link for link in read_urdf(file)}
    root, shoulder = links[BASE], links[ROOT_LINK]
    wheels = _wheels(truth, links)
    folded = np.zeros(arm.tree.nv)
    mass, inertia = _rest_of_base(truth, root, [*wheels, shoulder], bodies.arm_at(arm, folded), shoulder)
    seen = [link for name, link in links.items() if name not in _WHEELS]
    shapes = bodies.shapes_of(file, seen, [BASE, ROOT_LINK, *arm.tree.names])
    motors = "".join(f'<general name="{link.joint}" joint="{link.joint}"/>' for link in wheels)
    height = float(truth.wheel_radii()[0]) - float(wheels[0].placement[2, 3])
    return (
        '<mujoco model="youbot">'
        '<compiler angle="radian" autolimits="true"/>'
        f'<option timestep="{TIMESTEP!r}" integrator="Euler" {_CONTACT}/>'
        "<default>"
        '<geom contype="0" conaffinity="0" mass="0"/>'
        '<default class="roller"><geom type="sphere" contype="1" group="1" rgba="0.22 0.22 0.24 1"/></default>'
        '<default class="seen"><geom group="2"/></default>'
        "</default>"
        f"{_SCENERY}"
        "<worldbody>"
        '<light pos="1.5 -1 3" dir="-0.4 0.3 -1" diffuse="0.7 0.7 0.7" ambient="0.35 0.35 0.35"/>'
        f'<geom name="floor" type="plane" size="0 0 1" conaffinity="1" material="floor" priority="1" {_FLOOR}'
        f' friction="{truth.floor_friction!r}"/>'
        f'<body name="{BASE}" pos="0 0 {height!r}"><freejoint name="{BASE}"/><site name="{BASE}"/>'
        f"{inertial(mass, root.centre_of_mass, inertia)}{shapes[BASE]}{_turning_wheels(truth, wheels)}"
        f'<body name="{ROOT_LINK}" {placed(shoulder.placement)}>'
        f"{inertial(shoulder.mass, shoulder.centre_of_mass, shoulder.inertia)}{shapes[ROOT_LINK]}"
        f"{bodies.arm_bodies(arm, folded if position is None else position, with_arm, shapes)}</body></body>"
        "</worldbody>"
        f"<actuator>{motors}{_drag(truth)}{bodies.arm_motors(arm) if with_arm else ''}</actuator>"
        "</mujoco>"
    )


def _check(truth: BaseTruth) -> None:
    """Refuse with a ModelError a constant that no robot has."""
    for name in _POSITIVE:
        number(name, getattr(truth, name), above=0.0)
    for name in _NOT_NEGATIVE:
        number(name, getattr(truth, name), low=0.0)
    for k, factor in enumerate(truth.wheel_torque_constant):
        number(f"wheel_torque_constant[{k}]", factor, above=0.0)


def _turning_wheels(truth: BaseTruth, wheels: Sequence[Link]) -> str:
    """MJCF of the wheels with their rollers."""
    rollers, radii, kinematics = rollers_of(truth), truth.wheel_radii(), mean_kinematics(truth)
    phases = 2.0 * np.pi / rollers.count * array("roller_phase", truth.roller_phase, (4,))
    return "".join(
        bodies.wheel(
            link,
            float(radii[k]),
            float(kinematics.roller_angles[k]),
            rollers,
            truth.wheel_inertia - float(link.axis @ link.inertia @ link.axis),
            truth.wheel_coulomb,
            float(phases[k]),
        )
        for k, link in enumerate(wheels)
    )


def speed_loops(truth: BaseTruth) -> WheelLoop:
    """Speed loops of the wheels' motors, of the twin's bandwidth and inertia.

    Besides a motion of the base, where the twin's wheels are stiff to each other, a loop has the inertia of its wheel.
    """
    spread = mean_kinematics(truth).forward_matrix
    body = spread.T @ np.diag([truth.mass, truth.mass, truth.yaw_inertia]) @ spread
    return loop_of(body + truth.wheel_inertia * np.eye(4), truth)


def _drag(truth: BaseTruth) -> str:
    """Viscous friction of the base, a quarter of it at each wheel."""
    turn = truth.viscous_y * truth.half_length**2 + truth.viscous_x * truth.half_width**2
    return "".join(
        f'<general name="drag_{axis}" site="{BASE}" gear="{gear}" gainprm="0" biastype="affine"'
        f' biasprm="0 0 {-viscous!r}"/>'
        for axis, gear, viscous in (
            ("x", "1 0 0 0 0 0", truth.viscous_x),
            ("y", "0 1 0 0 0 0", truth.viscous_y),
            ("yaw", "0 0 0 0 0 1", turn),
        )
    )


def _wheels(truth: BaseTruth, links: dict[str, Link]) -> list[Link]:
    """The wheels of the URDF, FL, FR, RL, RR, at the places of the base, their lowest points in one plane."""
    radii = truth.wheel_radii()
    wheels, largest = [], float(np.max(radii))
    for name, (x, y), radius in zip(_WHEELS, mean_kinematics(truth).positions, radii, strict=True):
        place = links[name].placement.copy()
        place[:3, 3] = x, y, place[2, 3] + radius - largest
        wheels.append(replace(links[name], placement=place))
    return wheels


def _rest_of_base(
    truth: BaseTruth, root: Link, carried: Sequence[Link], arm: tuple[float, Vector, Vector], shoulder: Link
) -> tuple[float, Vector]:
    """Mass and inertia (3, 3) that the body of the base must have for the whole robot to have those of `truth`.

    Its inertia grows with its mass; then its extent in the plane is stretched until the yaw inertia fits, which
    leaves an inertia that a body can have.
    """
    arm_mass, arm_centre, arm_inertia = arm
    turn = shoulder.placement[:3, :3]
    parts = [
        (link.mass, link.placement[:3, :3], link.placement[:3, 3], link.centre_of_mass, link.inertia)
        for link in carried
    ]
    parts.append((arm_mass, turn, shoulder.placement[:3, 3], arm_centre, arm_inertia))
    mass = truth.mass - sum(part[0] for part in parts)
    if mass <= 0.0:
        raise ModelError(
            "mass of the robot", got=f"{truth.mass:g} kg", expected=f"more than its parts, {truth.mass - mass:g}"
        )
    masses = np.array([mass, *(part[0] for part in parts)])
    centres = np.array([root.centre_of_mass, *(r @ c + p for _, r, p, c, _ in parts)])
    off = centres - masses @ centres / truth.mass
    around = float(masses @ np.sum(off[:, :2] ** 2, axis=1))
    around += sum(float((r @ inertia @ r.T)[2, 2]) for _, r, _, _, inertia in parts)
    remaining = truth.yaw_inertia - around
    if remaining <= 0.0:
        raise ModelError(
            "yaw inertia of the robot", got=f"{truth.yaw_inertia:g} kg m2", expected=f"more than its parts, {around:g}"
        )
    scaled = root.inertia * (mass / root.mass)
    # Second moments int x x' dm, from which an inertia is trace E - moments.
    moments = 0.5 * np.trace(scaled) * np.eye(3) - scaled
    stretch = np.diag([np.sqrt(remaining / scaled[2, 2])] * 2 + [1.0])
    moments = stretch @ moments @ stretch
    return mass, np.trace(moments) * np.eye(3) - moments
