"""The whole robot as MJCF text, made of config/youbot.yaml and urdf/youbot.urdf: wheels of free rollers on a floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number, read_only
from youbot_dynamics.dynamics.arm import ROOT_LINK, ArmModel
from youbot_dynamics.dynamics.tree import Link, read_urdf
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.simulation.arm import STEP
from youbot_dynamics.simulation.base import WheelLoop, loop_of
from youbot_dynamics.simulation.mujoco_youbot._bodies import (
    Rollers,
    arm_at,
    arm_bodies,
    arm_motors,
    inertial,
    placed,
    shapes_of,
    wheel,
)

if TYPE_CHECKING:
    from youbot_dynamics.simulation.truth import BaseTruth

BASE = "base_link"
TIMESTEP = STEP  # [s] the cycle of the motor controllers
WHEEL_GROUP = 1  # of the wheels' motors, to switch them off together
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


@dataclass(frozen=True, eq=False)
class ContactBase:
    """The base as it is, on a floor.

    Raises:
        ModelError: a constant no robot has.
    """

    wheel_radii: Vector  # (4,) of FL, FR, RL, RR [m]; their axles stand so high that all four touch the floor
    half_length: float  # wheel axes to centre along x [m]
    half_width: float  # wheel centres to centre line [m]
    mass: float  # of the whole robot, arm included [kg]
    yaw_inertia: float  # of the whole robot about the vertical through its centre of mass, arm folded [kg m2]
    wheel_inertia: float  # of a wheel with its reflected rotor about the axle [kg m2]
    wheel_coulomb: float  # friction of a wheel F1 [N m]
    viscous_x: float  # friction forward xi_L [N s/m]
    viscous_y: float  # friction sideways xi_T [N s/m]
    lag: float  # time constant of the motors' speed loops [s]
    rollers: Rollers = field(default_factory=Rollers)  # of the wheels, with their friction
    # (4,) angle of a roller's middle behind the bottom of each wheel, at wheel angle 0 [rad].
    roller_phases: Vector = field(default_factory=lambda: np.zeros(4))
    floor_friction: float = 0.8  # largest friction over normal force between roller and floor [1]
    # (4,) true over nominal torque constants of the wheels' motors [1].
    torque_constant_factors: Vector = field(default_factory=lambda: np.ones(4))

    def __post_init__(self) -> None:
        """Check the constants."""
        for name in ("wheel_radii", "roller_phases", "torque_constant_factors"):
            try:
                four = array(name, getattr(self, name), (4,)).copy()
            except InputError as wrong:
                raise ModelError(wrong.thing, got=wrong.got, expected=wrong.expected) from None
            object.__setattr__(self, name, read_only(four))
        for name in ("wheel_radii", "torque_constant_factors"):
            for k, value in enumerate(getattr(self, name)):
                number(f"{name}[{k}]", float(value), above=0.0)
        for name in ("half_length", "half_width", "mass", "yaw_inertia", "wheel_inertia", "lag", "floor_friction"):
            number(name, getattr(self, name), above=0.0)
        for name in ("wheel_coulomb", "viscous_x", "viscous_y"):
            number(name, getattr(self, name), low=0.0)

    @classmethod
    def of_truth(cls, truth: BaseTruth, rollers: int | None = None) -> ContactBase:
        """Base of a drawn truth; its lateral factor and depth of rollers come of the rollers, not of the truth.

        Args:
            truth: the base.
            rollers: a wheel; those of the truth by default, 6 where its wheels are smooth.
        """
        count = rollers if rollers is not None else round(truth.rollers) or _ROLLERS
        return cls(
            wheel_radii=truth.wheel_radii(),
            half_length=truth.half_length,
            half_width=truth.half_width,
            mass=truth.mass,
            yaw_inertia=truth.yaw_inertia,
            wheel_inertia=truth.wheel_inertia,
            wheel_coulomb=truth.wheel_coulomb,
            viscous_x=truth.viscous_x,
            viscous_y=truth.viscous_y,
            lag=truth.lag,
            rollers=Rollers(count, coulomb=truth.roller_coulomb),
            roller_phases=2.0 * np.pi / count * np.array(truth.roller_phase),
            floor_friction=truth.floor_friction,
            torque_constant_factors=np.array(truth.wheel_torque_constant),
        )

    def mecanum(self) -> MecanumBase:
        """Closed form of its mean motion: the rollers' lateral factor (system 31)."""
        plain = MecanumBase.rectangular(1.0, self.half_length, self.half_width, self.rollers.lateral_factor)
        return MecanumBase(plain.positions, self.wheel_radii, plain.roller_angles, plain.lateral_factor)


def contact_model(
    base: ContactBase,
    arm: ArmModel,
    *,
    with_arm: bool = True,
    position: ArrayLike | None = None,
) -> str:
    """MJCF text of the robot on a floor.

    Bodies `base_link`, `wheel_link_fl`, ..., `arm_link_1`, ...; joints and motors named as in the URDF. The wheels'
    motors take a torque.

    Args:
        base: the base.
        arm: bodies, friction and motors of the arm.
        with_arm: whether the arm moves; else it is held, part of the base.
        position: (n,) of an arm that is held [rad], folded to the stops by default; mass and yaw inertia of the whole
            robot are those of the base with the arm folded.

    Raises:
        ModelError: masses or inertias that leave nothing for the body of the base.
    """
    file = urdf_path("youbot.urdf")
    links = {link.name: link for link in read_urdf(file)}
    root, shoulder = links[BASE], links[ROOT_LINK]
    wheels = _wheels(base, links)
    folded = np.zeros(arm.tree.nv)
    mass, inertia = _rest_of_base(base, root, [*wheels, shoulder], arm_at(arm, folded), shoulder)
    seen = [link for name, link in links.items() if name not in _WHEELS]
    shapes = shapes_of(file, seen, [BASE, ROOT_LINK, *arm.tree.names])
    kinematics = base.mecanum()
    turning = "".join(
        wheel(
            link,
            float(base.wheel_radii[k]),
            float(kinematics.roller_angles[k]),
            base.rollers,
            base.wheel_inertia - float(link.axis @ link.inertia @ link.axis),
            base.wheel_coulomb,
            float(base.roller_phases[k]),
        )
        for k, link in enumerate(wheels)
    )
    height = float(base.wheel_radii[0]) - float(wheels[0].placement[2, 3])
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
        f' friction="{base.floor_friction!r}"/>'
        f'<body name="{BASE}" pos="0 0 {height!r}"><freejoint name="{BASE}"/><site name="{BASE}"/>'
        f"{inertial(mass, root.centre_of_mass, inertia)}{shapes[BASE]}{turning}"
        f'<body name="{ROOT_LINK}" {placed(shoulder.placement)}>'
        f"{inertial(shoulder.mass, shoulder.centre_of_mass, shoulder.inertia)}{shapes[ROOT_LINK]}"
        f"{arm_bodies(arm, folded if position is None else position, with_arm, shapes)}</body></body>"
        "</worldbody>"
        f"<actuator>{_wheel_motors(wheels)}{_drag(base)}{arm_motors(arm) if with_arm else ''}</actuator>"
        "</mujoco>"
    )


def speed_loops(base: ContactBase) -> WheelLoop:
    """Speed loops of the wheels' motors, of the twin's bandwidth and inertia.

    Besides a motion of the base, where the twin's wheels are stiff to each other, a loop has the inertia of its wheel.
    """
    mecanum = base.mecanum()
    spread = mecanum.forward_matrix
    body = spread.T @ np.diag([base.mass, base.mass, base.yaw_inertia]) @ spread
    return loop_of(body + base.wheel_inertia * np.eye(4), base.lag, base.torque_constant_factors)


def _wheel_motors(wheels: Sequence[Link]) -> str:
    return "".join(f'<general name="{link.joint}" joint="{link.joint}" group="{WHEEL_GROUP}"/>' for link in wheels)


def _drag(base: ContactBase) -> str:
    """Viscous friction of the base, a quarter of it at each wheel."""
    turn = base.viscous_y * base.half_length**2 + base.viscous_x * base.half_width**2
    return "".join(
        f'<general name="drag_{axis}" site="{BASE}" gear="{gear}" gainprm="0" biastype="affine"'
        f' biasprm="0 0 {-viscous!r}"/>'
        for axis, gear, viscous in (
            ("x", "1 0 0 0 0 0", base.viscous_x),
            ("y", "0 1 0 0 0 0", base.viscous_y),
            ("yaw", "0 0 0 0 0 1", turn),
        )
    )


def _wheels(base: ContactBase, links: dict[str, Link]) -> list[Link]:
    """The wheels of the URDF, FL, FR, RL, RR, at the places of the base, their lowest points in one plane."""
    wheels, largest = [], float(np.max(base.wheel_radii))
    for name, (x, y), radius in zip(_WHEELS, base.mecanum().positions, base.wheel_radii, strict=True):
        place = links[name].placement.copy()
        place[:3, 3] = x, y, place[2, 3] + radius - largest
        wheels.append(replace(links[name], placement=place))
    return wheels


def _rest_of_base(
    base: ContactBase, root: Link, carried: Sequence[Link], arm: tuple[float, Vector, Vector], shoulder: Link
) -> tuple[float, Vector]:
    """Mass and inertia (3, 3) that the body of the base must have for the whole robot to have those of `base`.

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
    mass = base.mass - sum(part[0] for part in parts)
    if mass <= 0.0:
        raise ModelError(
            "mass of the robot", got=f"{base.mass:g} kg", expected=f"more than its parts, {base.mass - mass:g}"
        )
    masses = np.array([mass, *(part[0] for part in parts)])
    centres = np.array([root.centre_of_mass, *(r @ c + p for _, r, p, c, _ in parts)])
    off = centres - masses @ centres / base.mass
    around = float(masses @ np.sum(off[:, :2] ** 2, axis=1))
    around += sum(float((r @ inertia @ r.T)[2, 2]) for _, r, _, _, inertia in parts)
    left = base.yaw_inertia - around
    if left <= 0.0:
        raise ModelError(
            "yaw inertia of the robot", got=f"{base.yaw_inertia:g} kg m2", expected=f"more than its parts, {around:g}"
        )
    scaled = root.inertia * (mass / root.mass)
    # Second moments int x x' dm, from which an inertia is trace E - moments.
    moments = 0.5 * np.trace(scaled) * np.eye(3) - scaled
    stretch = np.diag([np.sqrt(left / scaled[2, 2])] * 2 + [1.0])
    moments = stretch @ moments @ stretch
    return mass, np.trace(moments) * np.eye(3) - moments
