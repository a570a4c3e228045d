"""Mecanum wheels for a contact engine: free rollers, each a barrel of spheres whose envelope is the wheel's circle."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin, tan

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.urdf import Link
from youbot_dynamics.errors import ModelError

# No source publishes the youBot's rollers. Chosen: as thick as their neighbours let them be, less this share of air,
_CLEARANCE = 0.05
# and of rubber around a sleeve.
_DENSITY = 1200.0  # [kg/m3]


@dataclass(frozen=True)
class Rollers:
    """The rollers of a wheel.

    A roller turns about an axis at distance `depth` from the axle, at `angle` to the wheel's plane. At s along that
    axis it is R - |distance of that point from the axle| thick, so that it touches the cylinder of radius R there and
    the wheel rolls on a circle at every angle. Spheres with their middles on the axis do that exactly; in between
    them the wheel is lower by (R - r) (1 - cos(pi / (n (spheres - 1)))): 3 um for 6 rollers of 41 spheres.

    Args:
        count: n, rollers a wheel.
        spheres: a roller, odd, so that one stands in its middle.
        coulomb: friction of a roller over its radius, F2 / r [N].

    Raises:
        ModelError: fewer than 4 rollers, whose barrels would end in a point, or spheres even or fewer than 3.
    """

    count: int = 6
    spheres: int = 41
    coulomb: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what makes no wheel."""
        if self.count < 4:
            raise ModelError("rollers a wheel", got=str(self.count), expected="at least 4")
        if self.spheres < 3 or self.spheres % 2 == 0:
            raise ModelError("spheres a roller", got=str(self.spheres), expected="an odd number of at least 3")

    @property
    def lateral_factor(self) -> float:
        """Mean of the wandering contact: true over kinematic sideways speed, sin(pi/n) / (pi/n) (system 31)."""
        return sin(pi / self.count) / (pi / self.count)

    def radius(self, wheel_radius: float, angle: float) -> float:
        """Radius [m] of a roller in its middle: neighbours at `angle` [rad] to the wheel's plane clear each other."""
        share = (1.0 - _CLEARANCE) * sin(pi / self.count) * abs(sin(angle))
        return wheel_radius * share / (1.0 + share)

    def profile(self, wheel_radius: float, angle: float) -> tuple[Vector, Vector]:
        """Places (k,) of the spheres along the roller's axis and their radii (k,) [m]."""
        depth = wheel_radius - self.radius(wheel_radius, angle)
        reach = depth * tan(pi / self.count) / cos(angle)
        places = np.linspace(-reach, reach, self.spheres)
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
        turn = phase + 2.0 * pi * k / rollers.count
        out = np.array([-sin(turn), 0.0, -cos(turn)])
        axis = cos(angle) * np.array([cos(turn), 0.0, -sin(turn)]) + sin(angle) * np.array([0.0, 1.0, 0.0])
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
    left = link.mass - rollers.count * mass
    if left <= 0.0 or np.linalg.eigvalsh(hub)[0] <= 0.0:
        raise ModelError(
            f"rollers of {link.name}",
            got=f"{rollers.count * mass:.3g} kg in all",
            expected=f"less than the wheel, {link.mass:g} kg, and less inertia",
        )
    return (
        f'<body name="{link.name}" {placed(link.placement)}>'
        f'<joint name="{link.joint}" axis="{text(link.axis)}" armature="{rotor_inertia!r}" frictionloss="{coulomb!r}"/>'
        f"{inertial(left, np.zeros(3), hub)}"
        f'<geom class="seen" type="cylinder" size="{0.6 * radius!r} 0.02" zaxis="0 1 0" rgba="0.55 0.55 0.57 1"/>'
        f"{''.join(bodies)}</body>"
    )
