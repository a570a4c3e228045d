"""Coulomb friction of several contacts: stick inside the friction cone, slide on it. Source: system 52."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, isfinite, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Indices, MadeOfArguments, Vector, array, excerpt, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError, ModelError

KINDS = ("fixed", "steered", "caster", "mecanum")

_NOT_GIVEN: Any = None


@dataclass(frozen=True, eq=False)
class Wheel(MadeOfArguments):
    """One wheel: its mount, its rotation and its contact with the floor.

    The rolling direction n has the angle `mount_angle` + steering angle from the x axis of the body; the axle points
    along t = z x n. A positive wheel speed rolls the base along +n. Fixed and mecanum wheels have no steering.

    Args:
        name: for messages.
        kind: "fixed", "steered", "caster" (free steering with a trail) or "mecanum".
        position: (2,) of the steering axis, or of the contact for a wheel without offset, from the centre of the base
            [m].
        radius: R, rolling [m].
        spin_inertia: J_W about the axle, with the reflected rotor [kg m2].
        friction_coefficient: mu of the contact [1].
        steering_inertia: J_C about the vertical steering axis [kg m2]; it belongs to the body if the wheel does not
            steer.
        offset: e, the contact trails the steering axis by e along -n [m].
        mount_angle: of the rolling direction at steering angle 0, at most 2 pi [rad].
        roller_angle: of the roller axis f from n, at most 2 pi [rad]; required for a mecanum wheel, 0 for the others.
        stiffness: vertical, relative to the other wheels [1 or N/m].

    Raises:
        ModelError: a value that no real wheel has; the message names wheel and quantity.
        InputError: a position that is not two finite numbers.

    Example:
        >>> yd.Wheel("front left", "mecanum", (0.2, 0.15), 0.05, 0.01, 0.8, roller_angle=-np.pi / 4).steerable
        False
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
        """True if the wheel has a steering angle of its own."""
        return self.kind in ("steered", "caster")


def _angle(thing: str, value: float) -> float:
    angle = number(thing, value, "rad")
    if abs(angle) > 2.0 * pi:
        raise ModelError(thing, got=f"{angle:g}", expected="at most a full turn, 2 pi", remedy="is it in rad?")
    return angle


@dataclass(frozen=True, eq=False)
class BaseState(MadeOfArguments):
    """Position and motion of the base; angles and rates of steering are *relative to the body*.

    Document 004 measures the angle of a wheel in the fixed frame: alpha = yaw + mount angle + steering angle, and
    alpha' = yaw rate + steering rate. It lists Omega' among the states, but Omega' follows from state and torques.

    Args:
        twist: (3,) velocity of the centre in body axes and yaw rate [m/s, m/s, rad/s].
        wheel_speeds: (n,) Omega [rad/s].
        steering_angles: (n,) [rad]; 0 for wheels without steering. Default 0.
        steering_rates: (n,) [rad/s]; 0 for wheels without steering. Default 0.
        pose: (3,) x, y, yaw in the fixed frame [m, m, rad]. Default 0.

    Raises:
        InputError: wrong shapes, NaN or infinity.

    Source: D-004-8.
    """

    twist: Vector
    wheel_speeds: Vector
    steering_angles: Vector | None = None
    steering_rates: Vector | None = None
    pose: Vector | None = None

    def __post_init__(self) -> None:
        """Check the arrays and make them read-only."""
        speeds = array("wheel_speeds", self.wheel_speeds, (None,))
        n = len(speeds)
        zeros = np.zeros(n)
        fields = {
            "twist": array("twist", self.twist, (3,)),
            "wheel_speeds": speeds,
            "steering_angles": array(
                "steering_angles", zeros if self.steering_angles is None else self.steering_angles, (n,)
            ),
            "steering_rates": array(
                "steering_rates", zeros if self.steering_rates is None else self.steering_rates, (n,)
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
    """

    points: Vector  # (n, 2) from the centre [m]
    headings: Vector  # (n, 2) rolling directions n
    turning: Vector  # (n,) alpha', rate of the rolling direction in the fixed frame [rad/s]
    owner: Indices  # (r,) wheel of each row
    directions: Vector  # (r, 2) unit direction of each row
    rows: Vector  # (r, m) matrix C, so that C u is the contact velocity along each direction
    drift: Vector  # (r,) contact acceleration (mecanum: derivative of f . v_i) for u' = 0 [m/s2].
    velocities: Vector  # (r,) C u [m/s]


def contacts(wheels: tuple[Wheel, ...], state: BaseState) -> Contacts:
    """Contact kinematics of all wheels at one state, with (n,) angles and speeds.

    Velocity of the contact point, with rho the position of the steering axis, n the rolling direction, t = z x n:
    v_i = v_0 + omega z x rho - e alpha' t - R Omega n. Document 004 has omega instead of alpha'. Its derivative:
    v_i' = v_0' + omega' z x rho - omega^2 rho - e alpha'' t + e alpha'^2 n - R Omega' n - R Omega alpha' t.
    Without steering alpha' = omega. A mecanum wheel constrains only f . v_i, and f turns with the body: of the velocity
    products in (f . v_i)' only omega (z x f) . v_0 remains.

    Raises:
        InputError: a state that is not a `BaseState`, another number of wheels, or a steering angle or rate of a wheel
            without steering.

    Source: document 004, v_i, (9b), (10b), systems 43-45, 56; D-004-2, D-004-3, D-004-6.
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
        axis = wheel.position if wheel.steerable else point  # the point that moves with the yaw rate only
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
            # The contact of a mecanum wheel moves across f, and f turns: (f . v_i)' = f . v_i' + omega (z x f) . v_i.
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
    """Torques (n,) [N m], one for each wheel; None means 0.

    Raises:
        InputError: wrong shape, NaN or infinity.
    """
    return array(thing, np.zeros(len(wheels)) if value is None else value, (len(wheels),))


_NEGLIGIBLE = 1e-20  # relative to the motion: a smaller effect of friction is rounding
_PATIENCE = 200  # sweeps after which the bounds of the friction follow the normal forces more slowly


@compiled
def one_contact(
    g00: float, g01: float, g10: float, g11: float, q0: float, q1: float, bound: float
) -> tuple[float, float]:
    """Force T of one contact of mobility G whose motion without T is q: exact solution of Coulomb's law.

    Either G T + q = 0 with |T| <= bound, or |T| = bound and T opposes G T + q = -s T, s > 0. The second case is
    (G + s) T = -q with |T(s)| = bound: one root of a decreasing function, found by Newton's method on 1/|T|.
    The elements of G are in 1/kg for accelerations; the bound is mu N, not negative [N].
    """
    motion = sqrt(q0 * q0 + q1 * q1)
    if bound <= 0.0 or motion == 0.0:
        return 0.0, 0.0
    if bound * (g00 + g11) <= _NEGLIGIBLE * motion:  # s = |q|/bound, too large for the squares below
        return -q0 / motion * bound, -q1 / motion * bound
    s = 0.0
    t0, t1 = 0.0, 0.0
    for _ in range(60):
        a, d = g00 + s, g11 + s
        determinant = a * d - g01 * g10
        if determinant <= 0.0:  # no mobility along one direction: only a finite s is regular
            s = 1e-12 * (g00 + g11) + 2.0 * s
            continue
        t0 = (-q0 * d + q1 * g01) / determinant
        t1 = (-q1 * a + q0 * g10) / determinant
        size = sqrt(t0 * t0 + t1 * t1)
        if size <= bound * (1.0 + 1e-15) and s == 0.0:
            return t0, t1
        if abs(size - bound) <= 1e-15 * bound:
            break
        # (G + s)^-1 T, the derivative of T by s.
        b0 = (t0 * d - t1 * g01) / determinant
        b1 = (t1 * a - t0 * g10) / determinant
        slope = t0 * b0 + t1 * b1
        if slope <= 0.0:  # underflow
            break
        s = max(0.0, s + size * size / slope * (size - bound) / bound)
    size = sqrt(t0 * t0 + t1 * t1)
    if size == 0.0:
        return 0.0, 0.0
    return t0 * bound / size, t1 * bound / size


@compiled
def solve_friction(
    mobility: Vector,
    free_motion: Vector,
    first_row: Indices,
    friction: Vector,
    free_normals: Vector,
    normals_of_forces: Vector,
    forces: Vector,
    tolerance: float,
    sweeps: int,
) -> float:
    """Forces of n contacts that obey Coulomb's law together, by sweeps over the contacts (Gauss-Seidel).

    Law of contact i: its motion is q + G T. It sticks (motion 0) while a force |T_i| <= mu_i N_i can hold it; otherwise
    |T_i| = mu_i N_i against its motion. Document 004 divides by |v| = 0 and never compares with mu N. With the
    acceleration as "motion" this decides between rolling and sliding. With the velocity after a step, divided by dt, it
    is an implicit step that comes to rest without chatter.

    Args:
        mobility: (r, r) matrix G from forces to motion.
        free_motion: (r,) motion q without these forces.
        first_row: (n + 1,) rows of contact i are first_row[i] to first_row[i + 1], one or two of them.
        friction: (n,) mu.
        free_normals: (n,) normal forces without these forces [N].
        normals_of_forces: (n, r) their change by the forces.
        forces: (r,) initial value, changed in place [N].
        tolerance: largest change of a force in the last sweep [N].
        sweeps: largest number of sweeps.

    Returns:
        Largest correction of the motion in the last sweep, that is, the motion left at contacts that should stick. It
        does not vanish where sticking contacts contradict each other by less than the sweeps can turn into slip. It is
        infinite if the forces grew without bound.

    Source: system 52; D-004-7.
    """
    rows = len(free_motion)
    motion = 0.0
    bounds = np.zeros(len(friction))
    for sweep in range(sweeps):
        change = motion = 0.0
        # If friction shifts more weight than its own size (a high load), full steps would oscillate forever.
        share = 1.0 / (1.0 + sweep // _PATIENCE)
        for i in range(len(friction)):
            j = first_row[i]
            two = first_row[i + 1] - j == 2
            normal = free_normals[i]
            q0 = free_motion[j]
            q1 = free_motion[j + 1] if two else 0.0
            for k in range(rows):
                normal += normals_of_forces[i, k] * forces[k]
                if k != j and not (two and k == j + 1):
                    q0 += mobility[j, k] * forces[k]
                    if two:
                        q1 += mobility[j + 1, k] * forces[k]
            if not isfinite(normal):
                return inf
            lacking = friction[i] * max(normal, 0.0) - bounds[i]
            change = max(change, abs(lacking))
            bounds[i] += share * lacking
            bound = bounds[i]
            if two:
                t0, t1 = one_contact(
                    mobility[j, j], mobility[j, j + 1], mobility[j + 1, j], mobility[j + 1, j + 1], q0, q1, bound
                )
                step0, step1 = abs(t0 - forces[j]), abs(t1 - forces[j + 1])
                change = max(change, step0, step1)
                motion = max(motion, step0 * mobility[j, j], step1 * mobility[j + 1, j + 1])
                forces[j], forces[j + 1] = t0, t1
            else:
                t0 = min(bound, max(-bound, -q0 / mobility[j, j]))
                step0 = abs(t0 - forces[j])
                change = max(change, step0)
                motion = max(motion, step0 * mobility[j, j])
                forces[j] = t0
        if change <= tolerance:
            break
    return motion
