"""Wheels of a planar base and the motion of their contact points (systems 43-45, 56)."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import array, excerpt, number, read_only
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.frozen import MadeOfArguments

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

KINDS = ("fixed", "steered", "caster", "mecanum")

_NOT_GIVEN: Any = None


@dataclass(frozen=True, eq=False)
class Wheel(MadeOfArguments):
    """One wheel: how it is mounted, how it turns, how it holds the floor.

    The rolling direction n has the angle `mount_angle` + steering angle from the x axis of the body; the axle points
    along t = z x n. A positive wheel speed rolls the base along +n. Fixed and mecanum wheels have no steering.

    Args:
        name: for messages.
        kind: "fixed", "steered", "caster" (free steering with a trail) or "mecanum".
        position: (2,) steering axis, or contact of a wheel without offset, from the centre of the base [m].
        radius: R, rolling [m].
        spin_inertia: J_W about the axle, reflected rotor included [kg m2].
        friction_coefficient: mu of the contact [1].
        steering_inertia: J_C about the vertical steering axis [kg m2]; turns with the body where there is no steering.
        offset: e, the contact trails the steering axis by e along -n [m].
        mount_angle: of the rolling direction at steering angle 0, at most 2 pi [rad].
        roller_angle: of the roller axis f against n, at most 2 pi [rad]; a mecanum wheel needs it, the others have 0.
        stiffness: vertical, against that of the other wheels [1 or N/m].

    Raises:
        ModelError: a value no real wheel has; the message names wheel and quantity.
        InputError: a position that is not two finite numbers.
    """

    name: str
    kind: str
    position: Vector
    radius: float
    spin_inertia: float
    friction_coefficient: float
    steering_inertia: float = 0.0
    offset: float = 0.0
    mount_angle: float = 0.0
    roller_angle: float = _NOT_GIVEN
    stiffness: float = 1.0

    def __post_init__(self) -> None:
        """Check each quantity."""
        if self.kind not in KINDS:
            raise ModelError(f"kind of wheel {self.name}", got=repr(self.kind), expected=", ".join(KINDS))
        of = f"of wheel {self.name}"
        set_ = object.__setattr__
        set_(self, "position", read_only(array(f"position {of}", self.position, (2,)).copy()))
        set_(self, "radius", number(f"radius {of}", self.radius, "m", above=0.0))
        set_(self, "spin_inertia", number(f"spin_inertia {of}", self.spin_inertia, "kg m2", above=0.0))
        set_(self, "friction_coefficient", number(f"friction_coefficient {of}", self.friction_coefficient, low=0.0))
        set_(self, "stiffness", number(f"stiffness {of}", self.stiffness, above=0.0))
        set_(self, "mount_angle", _angle(f"mount_angle {of}", self.mount_angle))
        set_(self, "offset", number(f"offset {of}", self.offset, "m"))
        unknown = self.roller_angle is _NOT_GIVEN
        if unknown and self.kind == "mecanum":
            raise ModelError(f"roller_angle {of}", got="none", expected="the angle of its roller axis [rad]")
        set_(self, "roller_angle", _angle(f"roller_angle {of}", 0.0 if unknown else self.roller_angle))
        inertia = number(f"steering_inertia {of}", self.steering_inertia, "kg m2", low=0.0)
        set_(self, "steering_inertia", inertia)
        if self.steerable and inertia == 0.0:
            raise ModelError(f"steering_inertia {of}", got="0", expected="a positive inertia: it is free to steer")
        if self.kind == "caster" and self.offset <= 0.0:
            raise ModelError(f"offset {of}", got=f"{self.offset:g}", expected="a positive trail [m] of a caster")
        if self.kind != "mecanum" and self.roller_angle != 0.0:
            raise ModelError(f"roller_angle {of}", got=f"{self.roller_angle:g}", expected=f"0 for a {self.kind} wheel")
        if abs(cos(self.roller_angle)) < 1e-9:
            raise ModelError(f"roller_angle {of}", got=f"{self.roller_angle:g}", expected="an axis not along the axle")

    @property
    def steerable(self) -> bool:
        """True if the steering angle moves on its own."""
        return self.kind in ("steered", "caster")


def _angle(thing: str, value: float) -> float:
    angle = number(thing, value, "rad")
    if abs(angle) > 2.0 * pi:
        raise ModelError(thing, got=f"{angle:g}", expected="at most a full turn, 2 pi", remedy="is it in rad?")
    return angle


@dataclass(frozen=True, eq=False)
class BaseState(MadeOfArguments):
    """Where the base is and how it moves; angles and rates of steering are *relative to the body*.

    Seed 004 measures the angle of a wheel in the fixed frame: alpha = yaw + mount angle + steering angle, and
    alpha' = yaw rate + steering rate. Its list of states with Omega' in it is too long: Omega' follows from the
    state and the torques (D-004-8).

    Args:
        twist: (3,) velocity of the centre in body axes and yaw rate [m/s, m/s, rad/s].
        wheel_speeds: (n,) Omega [rad/s].
        steering_angles: (n,) [rad]; 0 where there is no steering. Default 0.
        steering_rates: (n,) [rad/s]; 0 where there is no steering. Default 0.
        pose: (3,) x, y, yaw in the fixed frame [m, m, rad]. Default 0.

    Raises:
        InputError: wrong shapes, NaN or infinity.
    """

    twist: Vector
    wheel_speeds: Vector
    steering_angles: Vector | None = None
    steering_rates: Vector | None = None
    pose: Vector | None = None

    def __post_init__(self) -> None:
        """Check and lock the arrays."""
        speeds = array("wheel_speeds", self.wheel_speeds, (None,))
        n = len(speeds)
        rest = np.zeros(n)
        fields = {
            "twist": array("twist", self.twist, (3,)),
            "wheel_speeds": speeds,
            "steering_angles": array(
                "steering_angles", rest if self.steering_angles is None else self.steering_angles, (n,)
            ),
            "steering_rates": array(
                "steering_rates", rest if self.steering_rates is None else self.steering_rates, (n,)
            ),
            "pose": array("pose", np.zeros(3) if self.pose is None else self.pose, (3,)),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, read_only(value.copy()))


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contact points of n wheels at one state, in body axes, with the r rows of their constraints.

    A row is the velocity of one contact along one direction in which the floor can push: two rows (n and t) for a
    plain wheel, one (the roller axis f) for a mecanum wheel. The generalised velocities are
    u = (vx, vy, omega, alpha' of the s wheels that steer, Omega of all n wheels), m = 3 + s + n.

    Attributes:
        points: (n, 2) from the centre [m].
        headings: (n, 2) rolling directions n.
        turning: (n,) alpha', rate of the rolling direction in the fixed frame [rad/s].
        owner: (r,) wheel of each row.
        directions: (r, 2) unit direction of each row.
        rows: (r, m) matrix C, so that C u is the contact velocity along each direction.
        drift: (r,) part of the contact acceleration (mecanum: derivative of f . v_i) that is left when u' = 0 [m/s2].
        velocities: (r,) C u [m/s].
    """

    points: Vector
    headings: Vector
    turning: Vector
    owner: Indices
    directions: Vector
    rows: Vector
    drift: Vector
    velocities: Vector


def contacts(wheels: tuple[Wheel, ...], state: BaseState) -> Contacts:
    """Contact kinematics of all wheels at one state, with (n,) angles and speeds.

    Velocity of the contact point that rolls on the floor (seed 004, v_i; D-004-2), with rho the place of the
    steering axis, n the rolling direction, t = z x n:
    v_i = v_0 + omega z x rho - e alpha' t - R Omega n. The document has omega in the place of alpha'.
    Its derivative (9b, 10b; D-004-3):
    v_i' = v_0' + omega' z x rho - omega^2 rho - e alpha'' t + e alpha'^2 n - R Omega' n - R Omega alpha' t.
    Without steering alpha' = omega (D-004-6). A mecanum wheel holds f . v_i alone (system 56), and f turns with the
    body: of the products of velocities in (f . v_i)' only omega (z x f) . v_0 is left.

    Raises:
        InputError: no `BaseState`, one of another number of wheels, or a steering angle or rate of a wheel that has no
            steering.
    """
    n = len(wheels)
    if not isinstance(state, BaseState):
        raise InputError("state", got=excerpt(state), expected="a BaseState")
    if len(state.wheel_speeds) != n:
        raise InputError("wheel_speeds", got=f"shape ({len(state.wheel_speeds)},)", expected=f"shape ({n},)")
    assert state.steering_angles is not None and state.steering_rates is not None
    yaw_rate = state.twist[2]
    steerable = [i for i, wheel in enumerate(wheels) if wheel.steerable]
    owner, directions, rows, drift = [], [], [], []
    points, headings, turning = np.empty((n, 2)), np.empty((n, 2)), np.empty(n)
    for i, wheel in enumerate(wheels):
        if not wheel.steerable and (state.steering_angles[i] != 0.0 or state.steering_rates[i] != 0.0):
            raise InputError(
                f"steering of wheel {wheel.name}",
                got=f"angle {state.steering_angles[i]:g}, rate {state.steering_rates[i]:g}",
                expected=f"0: a {wheel.kind} wheel has none",
            )
        angle = wheel.mount_angle + state.steering_angles[i]
        along = np.array([np.cos(angle), np.sin(angle)])
        across = np.array([-along[1], along[0]])
        rate, spin = yaw_rate + state.steering_rates[i], wheel.radius * state.wheel_speeds[i]
        point = wheel.position - wheel.offset * along
        points[i], headings[i], turning[i] = point, along, rate
        axis = wheel.position if wheel.steerable else point  # what turns with the yaw rate alone
        trail = wheel.offset if wheel.steerable else 0.0
        product = -(yaw_rate**2) * axis + trail * rate**2 * along - spin * rate * across
        roller = np.cos(wheel.roller_angle) * along + np.sin(wheel.roller_angle) * across
        for direction in (roller,) if wheel.kind == "mecanum" else (along, across):
            row = np.zeros(3 + len(steerable) + n)
            row[:2] = direction
            row[2] = axis[0] * direction[1] - axis[1] * direction[0]
            if wheel.steerable:
                row[3 + steerable.index(i)] = -trail * (across @ direction)
            row[3 + len(steerable) + i] = -wheel.radius * (along @ direction)
            owner.append(i)
            directions.append(direction)
            rows.append(row)
            # A mecanum contact moves across f, and f turns: (f . v_i)' = f . v_i' + omega (z x f) . v_i.
            turned = yaw_rate * (direction[0] * state.twist[1] - direction[1] * state.twist[0])
            drift.append(turned if wheel.kind == "mecanum" else product @ direction)
    matrix = np.array(rows)
    motion = np.concatenate([state.twist, turning[steerable], state.wheel_speeds])
    return Contacts(
        points=points,
        headings=headings,
        turning=turning,
        owner=np.array(owner),
        directions=np.array(directions),
        rows=matrix,
        drift=np.array(drift),
        velocities=matrix @ motion,
    )


def wheel_torques(thing: str, value: ArrayLike | None, wheels: tuple[Wheel, ...]) -> Vector:
    """Torques (n,) [N m], one a wheel; None stands for 0.

    Raises:
        InputError: wrong shape, NaN or infinity.
    """
    return array(thing, np.zeros(len(wheels)) if value is None else value, (len(wheels),))
