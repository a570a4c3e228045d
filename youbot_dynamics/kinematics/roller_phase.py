"""Mecanum wheels with discrete rollers: rolling constraints that vary with the roller on the floor.

phi is the angle of the roller on the floor from the lowest point of its wheel. The contact lies off the middle of the
roller, along the roller's axis. The rolling constraint of the wheel is

    R w = vx + t vy + (x t - y) wz,    t = tan(d) / cos(phi),    y = y_w + b tan(d) tan(phi)

with d the angle of the roller's axis from the x axis (t = +-1 / cos(phi) for the youBot's 45 degrees) and b the depth
of that axis below the wheel's axis. phi is the wheel angle modulo the spacing 2 pi / n of its n rollers, between -pi/n
and pi/n. It grows as the wheel rolls forward; the constraint jumps where the next roller comes to the floor.

The constant lateral factor is the mean of these constraints. A wheel that turns evenly spends equal times at all phi
and moves the base sideways by R w cos(phi) / tan(d). The mean of this is

    n / (2 pi) int cos(phi) dphi = sin(pi/n) / (pi/n)

times the value for a roller in the middle: 0.9549 for 6 rollers, 0.9798 for 9. The mean of tan(phi) is 0: the mean
contact is in the middle of the wheel.
Source: systems 29, 31 and 56.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, floor, inf, isnan, nan, pi, sin, sqrt, tan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, finite_vector, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import FEWEST_ROLLERS, MecanumBase, mean_factor

YOUBOT_ROLLERS = 6.0  # per wheel, counted on pictures
NO_PHASES = "only the contact of mecanum wheels moves along slanted rollers; these are omni wheels or have no rollers"
_LONGEST_PIECE = 0.3  # [rad] of the fastest wheel per integration piece: two Gauss points have a relative error of 1e-6


def ideal_depth(wheel_radius: float, roller_angle: float, rollers: float) -> float:
    """Depth b [m] of the roller axes in a wheel whose n rollers just clear each other: R / (1 + sin(pi/n) |sin(d)|).

    The roller's radius is R - b in its middle. The next roller is 2 b sin(pi/n) away along the wheel; across the roller
    axes the distance is 2 b sin(pi/n) |sin(d)|. The depth of the youBot is 35 mm.

    Args:
        wheel_radius: R [m].
        roller_angle: d [rad].
        rollers: n.
    """
    return wheel_radius / (1.0 + sin(pi / rollers) * abs(sin(roller_angle)))


class RowConstants(NamedTuple):
    """Constants of the wheels as arrays, for compiled loops."""

    positions: Vector  # (n, 2) wheel centres [m]
    radii: Vector  # (n,) [m]
    along: Vector  # (n,) part of vx in R w [1]: 1 for wheels that drive forward
    slants: Vector  # (n,) t for the roller in its middle position [1]
    depths: Vector  # (n,) b tan(d) [m]
    pitch: float  # angle from roller to roller [rad]; 0 for constant rows
    phases: Vector  # (n,) angle phi of the roller on the floor at wheel angle 0 [rad]
    sideways: bool  # whether the base can move along y; with fixed wheels it cannot


@compiled
def contact_angle(angle: float, phase: float, pitch: float) -> float:
    """Angle phi [rad] of the roller on the floor from the lowest point, at a wheel angle; 0 for constant rows."""
    if pitch <= 0.0:
        return 0.0
    off = angle + phase
    return off - pitch * floor(off / pitch + 0.5)


def contact_angles(wheels: RowConstants, wheel_angles: Vector) -> Vector:
    """`contact_angle` (n,) [rad] of all wheels at angles (n,) [rad]."""
    if wheels.pitch == 0.0:
        return np.zeros(len(wheel_angles))
    off = wheel_angles + wheels.phases
    return off - wheels.pitch * np.floor(off / wheels.pitch + 0.5)


@compiled
def contact_row(
    x: float, y: float, radius: float, along: float, slant: float, depth: float, phi: float
) -> tuple[float, float, float]:
    """Row [rad/m, rad/m, 1] of a wheel at (x, y) whose roller is at phi; for the equation see the module."""
    t = slant / cos(phi)
    return along / radius, t / radius, (x * t - y * along - depth * tan(phi)) / radius


@compiled
def write_row(wheels: RowConstants, i: int, angle: float, row: Vector) -> None:
    """Write the row (3,) of wheel i at its `angle` [rad]."""
    positions, radii, along, slants, depths, pitch, phases, _ = wheels
    phi = contact_angle(angle, phases[i], pitch)
    x, y = positions[i, 0], positions[i, 1]
    row[0], row[1], row[2] = contact_row(x, y, radii[i], along[i], slants[i], depths[i], phi)


@compiled
def _next_change(wheels: RowConstants, before: Vector, step: Vector, share: float) -> float:
    """Fraction of the step, after `share`, at which the next wheel changes its roller; infinite if none does."""
    first = inf
    for i in range(len(step)):
        if step[i] == 0.0:
            continue
        begin = (before[i] + wheels.phases[i]) / wheels.pitch + 0.5
        rate = step[i] / wheels.pitch
        at = begin + rate * (share + 1e-9)
        border = floor(at) + 1.0 if rate > 0.0 else floor(at)
        change = (border - begin) / rate
        if share + 1e-9 < change < first:
            first = change
    return first


@compiled
def _solve(rows: Vector, sideways: bool, step: Vector, weights: Vector, turn: float, move: Vector) -> None:
    """Write the least-squares displacement (3,) of rows (n, 3) move = step (n,); with a given turn unless it is NaN."""
    a = np.zeros((3, 3))
    b = np.zeros(3)
    for i in range(len(step)):
        for j in range(3):
            b[j] += weights[i] * rows[i, j] * step[i]
            for k in range(3):
                a[j, k] += weights[i] * rows[i, j] * rows[i, k]
    if not sideways:
        a[0, 1], a[1, 1], a[1, 2], b[1] = 0.0, 1.0, 0.0, 0.0
    if isnan(turn):
        p, q = a[1, 1] * a[2, 2] - a[1, 2] * a[1, 2], a[0, 2] * a[1, 2] - a[0, 1] * a[2, 2]
        r, s = a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1], a[0, 0] * a[2, 2] - a[0, 2] * a[0, 2]
        t, u = a[0, 1] * a[0, 2] - a[0, 0] * a[1, 2], a[0, 0] * a[1, 1] - a[0, 1] * a[0, 1]
        share = 1.0 / (a[0, 0] * p + a[0, 1] * q + a[0, 2] * r)
        move[0] = share * (p * b[0] + q * b[1] + r * b[2])
        move[1] = share * (q * b[0] + s * b[1] + t * b[2])
        move[2] = share * (r * b[0] + t * b[1] + u * b[2])
    else:
        c, d = b[0] - a[0, 2] * turn, b[1] - a[1, 2] * turn
        share = 1.0 / (a[0, 0] * a[1, 1] - a[0, 1] * a[0, 1])
        move[0] = share * (a[1, 1] * c - a[0, 1] * d)
        move[1] = share * (a[0, 0] * d - a[0, 1] * c)
        move[2] = turn


@compiled
def roll(
    wheels: RowConstants, before: Vector, step: Vector, weights: Vector, turn: float, moved: Vector, residual: Vector
) -> None:
    """Integrate one step of the wheels, each at constant speed, in pieces between two changes of rollers.

    Each piece takes the mean displacement at two Gauss points along its arc of SE(2): exact to the fourth order in the
    turn of the wheels, also across changes of rollers.

    Args:
        wheels: constants of the wheels.
        before: (n,) wheel angles at the start [rad].
        step: (n,) turn of each wheel [rad].
        weights: (n,) of the wheels in the least squares; 0 leaves a wheel out.
        turn: of the base, known from another sensor [rad]; NaN to take it from the wheels.
        moved: (3,) output: pose at the end in the frame of the start [m, m, rad], yaw not wrapped.
        residual: (n,) output: turn of each wheel minus the turn that the base motion explains [rad].
    """
    n = len(step)
    rows, move, mean = np.zeros((n, 3)), np.zeros(3), np.zeros(3)
    moved[:] = 0.0
    residual[:] = step
    fastest = 0.0
    for i in range(n):
        fastest = max(fastest, abs(step[i]))
    begin = 0.0
    while begin < 1.0:
        end = 1.0
        if wheels.pitch > 0.0 and fastest > 0.0:
            end = min(min(1.0, begin + _LONGEST_PIECE / fastest), _next_change(wheels, before, step, begin))
        length = end - begin
        mean[:] = 0.0
        points = 2 if wheels.pitch > 0.0 else 1
        for point in range(points):
            at = begin + length * (0.5 if points == 1 else 0.5 + (point - 0.5) / sqrt(3.0))
            for i in range(n):
                write_row(wheels, i, before[i] + at * step[i], rows[i])
            _solve(rows, wheels.sideways, step, weights, turn, move)
            for axis in range(3):
                mean[axis] += length * move[axis] / points
            for i in range(n):
                rolled = rows[i, 0] * move[0] + rows[i, 1] * move[1] + rows[i, 2] * move[2]
                residual[i] -= length * rolled / points
        # Exact arc of a constant twist: the chord lies along the middle heading.
        heading = moved[2] + 0.5 * mean[2]
        half = 0.5 * mean[2]
        chord = 1.0 - half * half / 6.0 if abs(half) < 1e-3 else sin(half) / half
        moved[0] += chord * (mean[0] * cos(heading) - mean[1] * sin(heading))
        moved[1] += chord * (mean[0] * sin(heading) + mean[1] * cos(heading))
        moved[2] += mean[2]
        begin = end


@compiled
def _roll_path(wheels: RowConstants, angles: Vector, path: Vector) -> None:
    n = angles.shape[1]
    weights, moved, residual = np.ones(n), np.zeros(3), np.zeros(n)
    for k in range(1, len(angles)):
        roll(wheels, angles[k - 1], angles[k] - angles[k - 1], weights, nan, moved, residual)
        c, s = cos(path[k - 1, 2]), sin(path[k - 1, 2])
        path[k, 0] = path[k - 1, 0] + c * moved[0] - s * moved[1]
        path[k, 1] = path[k - 1, 1] + s * moved[0] + c * moved[1]
        path[k, 2] = path[k - 1, 2] + moved[2]


class _Rolled(NamedTuple):
    """Result of one step of the wheels."""

    displacement: Vector  # (3,) constant body twist x time that leads to the same pose [m, m, rad]
    residual: Vector  # (n,) turn of the wheels that no base motion explains [rad]


@dataclass(frozen=True, eq=False)
class RollingWheels(MadeOfArguments):
    """A base with its rollers, if it has any. While their phases are unknown, the constant mean rows apply.

    The base's lateral factor is the mean: t is sin(pi/n) / (pi/n) over that factor times the ideal t. The methods raise
    InputError for a wrong shape, NaN or infinity.

    Raises:
        ModelError: fewer than four rollers, a depth below 0 or above the smallest radius, phases of a wrong shape,
            phases of wheels that do not drive forward, or fixed wheels whose axle is not the y axis.
    """

    base: MecanumBase  # positions, radii, roller angles and lateral factor of the wheels
    rollers: float  # number n of rollers on each wheel, a whole number
    depth: float  # distance b of the lowest roller's axis below the wheel's axis [m]
    # (n,) angle phi of a roller of each wheel at wheel angle 0 [rad], up to multiples of the pitch; None if unknown
    phases: Vector | None = None
    constants: RowConstants = field(init=False, repr=False)  # of the wheels, for compiled loops

    def __post_init__(self) -> None:
        """Check the values and prepare the arrays for the loops."""
        base, n = self.base, len(self.base.radii)
        if not FEWEST_ROLLERS <= self.rollers < inf or self.rollers != round(self.rollers):
            raise ModelError(
                "rollers a wheel", got=f"{self.rollers:g}", expected=f"a whole number from {FEWEST_ROLLERS}"
            )
        depth = number("depth of the roller axes", self.depth, "m", low=0.0, high=float(base.radii.min()))
        if self.phases is not None:
            if not base.all_forward:
                raise ModelError("roller phases", got="wheels that do not drive forward", remedy=NO_PHASES)
            try:
                object.__setattr__(self, "phases", read_only(array("roller phases", self.phases, (n,)).copy()))
            except InputError as wrong:
                raise ModelError(wrong.thing, got=wrong.got, expected=wrong.expected) from None
        if not (base.free_axes[0] and base.free_axes[2]):
            remedy = "put the origin in the middle between the wheels"
            raise ModelError("frame of the base", got="fixed wheels off its y axis", expected="on it", remedy=remedy)
        object.__setattr__(self, "depth", depth)
        known = self.phases is not None
        constants = RowConstants(
            positions=base.positions,
            radii=base.radii,
            along=base.along,
            slants=base.slants * ((mean_factor(self.rollers) if known else 1.0) / base.lateral_factor),
            depths=depth * base.slants,
            pitch=self.pitch if known else 0.0,
            phases=np.zeros(n) if self.phases is None else self.phases,
            sideways=bool(base.free_axes[1]),
        )
        object.__setattr__(self, "constants", constants)

    @property
    def pitch(self) -> float:
        """Angle from roller to roller [rad]."""
        return 2.0 * pi / self.rollers

    @classmethod
    def ideal(
        cls, base: MecanumBase, rollers: float = YOUBOT_ROLLERS, phases: ArrayLike | None = None
    ) -> RollingWheels:
        """Wheels whose rollers just clear each other (`ideal_depth`), with phases (n,) [rad] if they are known.

        Raises:
            ModelError: as for the class.
        """
        depth = ideal_depth(float(base.radii.min()), float(np.abs(base.roller_angles).max()), rollers)
        return cls(base, rollers, depth, phases)  # type: ignore[arg-type]

    def at_phases(self, phases: ArrayLike | None) -> RollingWheels:
        """Return the same wheels with other phases (n,) [rad], or None for the mean rows.

        Raises:
            ModelError: phases of a wrong shape.
        """
        return RollingWheels(self.base, self.rollers, self.depth, phases)  # type: ignore[arg-type]

    def roller_angles(self, wheel_angles: ArrayLike) -> Vector:
        """Angles phi (n,) [rad] of the rollers on the floor at wheel angles (n,) [rad]; zeros for unknown phases."""
        return contact_angles(self.constants, finite_vector("wheel_angles", wheel_angles, len(self.base.radii)))

    def rows(self, wheel_angles: ArrayLike) -> Vector:
        """Matrix (n, 3) from twist [m/s, m/s, rad/s] to wheel speeds [rad/s] at wheel angles (n,) [rad].

        Source: system 31.
        """
        angles = finite_vector("wheel_angles", wheel_angles, len(self.base.radii))
        rows = np.empty((len(angles), 3))
        for i, angle in enumerate(angles.tolist()):
            write_row(self.constants, i, angle, rows[i])
        return rows

    def wheel_speeds(self, wheel_angles: ArrayLike, twist: ArrayLike) -> Vector:
        """Wheel speeds (n,) [rad/s] of a body twist (3,) at wheel angles (n,) [rad]."""
        return self.rows(wheel_angles) @ finite_vector("twist", twist, 3)

    def twist(self, wheel_angles: ArrayLike, wheel_speeds: ArrayLike) -> Vector:
        """Least-squares body twist (3,) [m/s, m/s, rad/s] of wheel speeds (n,) [rad/s] at wheel angles (n,) [rad]."""
        speeds = finite_vector("wheel_speeds", wheel_speeds, len(self.base.radii))
        return np.asarray(np.linalg.lstsq(self.rows(wheel_angles), speeds, rcond=None)[0], dtype=np.float64)

    def roll(
        self, before: ArrayLike, after: ArrayLike, turn: float | None = None, weights: ArrayLike | None = None
    ) -> _Rolled:
        """Motion of the base while each wheel turns at constant speed between two sets of wheel angles.

        Args:
            before: (n,) wheel angles at the start [rad].
            after: (n,) wheel angles at the end [rad].
            turn: of the base, known from another sensor [rad]; None to take it from the wheels.
            weights: (n,) of the wheels in the least squares, ones by default; 0 leaves a wheel out.
        """
        n = len(self.base.radii)
        start = finite_vector("before", before, n)
        step = finite_vector("after", after, n) - start
        shares = np.ones(n) if weights is None else finite_vector("weights", weights, n)
        moved, residual = np.empty(3), np.empty(n)
        roll(self.constants, start, step, shares, nan if turn is None else float(turn), moved, residual)
        if self.phases is None:
            # With one piece the twist is exact for any turn; the logarithm of the pose would wrap the turn.
            return _Rolled(self.base.forward_matrix @ (step - residual), residual)
        return _Rolled(planar.logarithm(moved), residual)

    def path(self, angles: ArrayLike) -> Vector:
        """Poses (m, 3) [m, m, rad] along wheel angles (m, n) [rad], from the origin; the yaw is not wrapped."""
        turned = array("angles", angles, (None, len(self.base.radii)))
        path = np.zeros((len(turned), 3))
        _roll_path(self.constants, turned, path)
        return path
