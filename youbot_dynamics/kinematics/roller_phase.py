"""Mecanum wheels with the rollers they stand on: rows that wander with the contact (system 31, systems 29 and 56).

The roller on the floor stands at an angle phi off the bottom of its wheel. Its contact is then out along the roller's
axis, and the wheel's row of the rolling constraints is

    R w = vx + t vy + (x t - y) wz,    t = tan(d) / cos(phi),    y = y_w + b tan(d) tan(phi)

with d the angle of the roller's axis from the x axis (t = +-1 / cos(phi) for the youBot's 45 degrees) and b the depth
of that axis below the wheel's. phi is the wheel's angle modulo the spacing 2 pi / n of its n rollers, between -pi/n
and pi/n: it grows as the wheel rolls forward, and where the next roller comes to the floor the row jumps.

The constant lateral factor is the mean of it: a wheel that turns evenly passes every phi for the same time and moves
the base sideways by R w cos(phi) / tan(d), in the mean

    n / (2 pi) int cos(phi) dphi = sin(pi/n) / (pi/n)

of what it would with the roller in the middle: 0.9549 for 6 rollers, 0.9798 for 9. The mean of tan(phi) is 0: the
contacts wander about the middle of the wheels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, floor, inf, isnan, nan, pi, sin, sqrt, tan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, finite_vector, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.frozen import MadeOfArguments
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase

YOUBOT_ROLLERS = 6.0  # a wheel, by pictures
_FEWEST_ROLLERS = 4  # with fewer the barrels end in a point
_LONGEST_PIECE = 0.3  # [rad] of the fastest wheel between two looks at the rows: two Gauss points leave 1e-6 of it


def mean_factor(rollers: float) -> float:
    """True over kinematic sideways speed of an ideal wheel of n rollers in the mean, sin(pi/n) / (pi/n) (system 31)."""
    return sin(pi / rollers) / (pi / rollers)


def ideal_depth(wheel_radius: float, roller_angle: float, rollers: float) -> float:
    """Depth b [m] of the roller axes in a wheel whose n rollers just clear each other: R / (1 + sin(pi/n) |sin(d)|).

    A roller of radius R - b in its middle and its neighbour, 2 b sin(pi/n) away along the wheel, are
    2 b sin(pi/n) |sin(d)| apart across their axes. The youBot's: 35 mm.

    Args:
        wheel_radius: R [m].
        roller_angle: d [rad].
        rollers: n.
    """
    return wheel_radius / (1.0 + sin(pi / rollers) * abs(sin(roller_angle)))


class RowConstants(NamedTuple):
    """Wheels in numbers, for the loops.

    Args:
        positions: (n, 2) wheel centres [m].
        radii: (n,) [m].
        slants: (n,) t of the roller in its middle [1].
        depths: (n,) b tan(d) [m].
        pitch: angle from roller to roller [rad]; 0 for rows that stand still.
        phases: (n,) angle of the roller on the floor off the bottom at wheel angle 0 [rad].
    """

    positions: Vector
    radii: Vector
    slants: Vector
    depths: Vector
    pitch: float
    phases: Vector


@compiled
def contact_angle(angle: float, phase: float, pitch: float) -> float:
    """Angle phi off the bottom [rad] of the roller on the floor, at a wheel angle; 0 for rows that stand still."""
    if pitch <= 0.0:
        return 0.0
    off = angle + phase
    phi: float = off - pitch * floor(off / pitch + 0.5)
    return phi


@compiled
def contact_row(
    x: float, y: float, radius: float, slant: float, depth: float, phi: float
) -> tuple[float, float, float]:
    """Row [rad/m, rad/m, 1] of a wheel at (x, y) whose roller is phi off the bottom: see the head of this file."""
    t = slant / cos(phi)
    return 1.0 / radius, t / radius, (x * t - y - depth * tan(phi)) / radius


@compiled
def write_row(wheels: RowConstants, i: int, angle: float, row: Vector) -> None:
    """Write the row (3,) of wheel i at its `angle` [rad]."""
    positions, radii, slants, depths, pitch, phases = wheels
    phi = contact_angle(angle, phases[i], pitch)
    row[0], row[1], row[2] = contact_row(positions[i, 0], positions[i, 1], radii[i], slants[i], depths[i], phi)


@compiled
def _next_change(wheels: RowConstants, before: Vector, step: Vector, share: float) -> float:
    """Share of the step, later than `share`, at which the next wheel changes its roller; infinite for none."""
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
def _solve(rows: Vector, step: Vector, weights: Vector, turn: float, move: Vector) -> None:
    """Write the displacement (3,) that fits rows (n, 3) move = step (n,) best; given the turn, if that is no NaN."""
    a = np.zeros((3, 3))
    b = np.zeros(3)
    for i in range(len(step)):
        for j in range(3):
            b[j] += weights[i] * rows[i, j] * step[i]
            for k in range(3):
                a[j, k] += weights[i] * rows[i, j] * rows[i, k]
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
    """Roll on by one step, every wheel evenly, in pieces between one change of rollers and the next.

    In each piece the mean displacement of two Gauss points is laid along its arc of SE(2): exact to the fourth order
    in the turn of the wheels, whatever rollers change on the way.

    Args:
        wheels: in numbers.
        before: (n,) wheel angles at its begin [rad].
        step: (n,) turned [rad].
        weights: (n,) of the wheels in the least squares; 0 leaves one out.
        turn: of the base, known from elsewhere [rad]; NaN where the wheels must tell.
        moved: (3,) written: pose at the end in the frame of the begin [m, m, rad], yaw not wrapped.
        residual: (n,) written: turned less what the motion explains [rad].
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
            _solve(rows, step, weights, turn, move)
            for axis in range(3):
                mean[axis] += length * move[axis] / points
            for i in range(n):
                rolled = rows[i, 0] * move[0] + rows[i, 1] * move[1] + rows[i, 2] * move[2]
                residual[i] -= length * rolled / points
        # The exact arc of a constant twist: chord along its middle heading.
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
    """What a step of the wheels says.

    Args:
        displacement: (3,) constant body twist x time that leads to the same pose [m, m, rad].
        residual: (n,) turn of the wheels that no motion explains [rad].
    """

    displacement: Vector
    residual: Vector


@dataclass(frozen=True, eq=False)
class RollingWheels(MadeOfArguments):
    """A mecanum base and its rollers, at phases that are known or not; without them rows are constant, their mean.

    The base's lateral factor is kept as the mean: t is sin(pi/n) / (pi/n) over that factor times the ideal one. The
    methods raise InputError for a wrong shape, NaN or infinity.

    Args:
        base: places, radii, roller angles and lateral factor of the wheels.
        rollers: n, of each wheel, a whole number.
        depth: b, of the axis of the roller on the floor below the wheel's [m].
        phases: (n,) angle of a roller off the bottom of each wheel at wheel angle 0 [rad], any multiple of the pitch
            more or less; None where they are not known.

    Raises:
        ModelError: fewer than four rollers, a depth below 0 or beyond the smallest wheel, or phases of a wrong shape.
    """

    base: MecanumBase
    rollers: float
    depth: float
    phases: Vector | None = None
    _constants: RowConstants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the numbers and lay them out for the loops."""
        base, n = self.base, len(self.base.radii)
        if self.rollers != round(self.rollers) or self.rollers < _FEWEST_ROLLERS:
            raise ModelError(
                "rollers a wheel", got=f"{self.rollers:g}", expected=f"a whole number from {_FEWEST_ROLLERS}"
            )
        depth = number("depth of the roller axes", self.depth, "m", low=0.0, high=float(base.radii.min()))
        if self.phases is not None:
            try:
                object.__setattr__(self, "phases", read_only(array("roller phases", self.phases, (n,)).copy()))
            except InputError as wrong:
                raise ModelError(wrong.thing, got=wrong.got, expected=wrong.expected) from None
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "_constants", self._laid_out(self.phases))

    def _laid_out(self, phases: Vector | None) -> RowConstants:
        base, n = self.base, len(self.base.radii)
        tangents, known = np.tan(base.roller_angles), phases is not None
        return RowConstants(
            positions=base.positions,
            radii=base.radii,
            slants=tangents * ((mean_factor(self.rollers) if known else 1.0) / base.lateral_factor),
            depths=self.depth * tangents,
            pitch=self.pitch if known else 0.0,
            phases=np.zeros(n) if phases is None else phases,
        )

    @property
    def pitch(self) -> float:
        """Angle from roller to roller [rad]."""
        return 2.0 * pi / self.rollers

    @property
    def constants(self) -> RowConstants:
        """The wheels in numbers, for compiled loops."""
        return self._constants

    @classmethod
    def ideal(
        cls, base: MecanumBase, rollers: float = YOUBOT_ROLLERS, phases: ArrayLike | None = None
    ) -> RollingWheels:
        """Wheels whose rollers just clear each other (`ideal_depth`), at phases (n,) [rad] where they are known.

        Raises:
            ModelError: as the class.
        """
        depth = ideal_depth(float(base.radii.min()), float(np.abs(base.roller_angles).max()), rollers)
        return cls(base, rollers, depth, phases)  # type: ignore[arg-type]

    def at_phases(self, phases: ArrayLike | None) -> RollingWheels:
        """Same wheels with other phases (n,) [rad], or None for the mean rows.

        Raises:
            ModelError: phases of a wrong shape.
        """
        return RollingWheels(self.base, self.rollers, self.depth, phases)  # type: ignore[arg-type]

    def roller_angles(self, wheel_angles: ArrayLike) -> Vector:
        """Angles phi (n,) off the bottom of the rollers on the floor [rad] at wheel angles (n,) [rad].

        Zeros where the phases are not known.
        """
        angles = finite_vector("wheel_angles", wheel_angles, len(self.base.radii))
        if self.phases is None:
            return np.zeros(len(angles))
        off = angles + self.phases
        found: Vector = off - self.pitch * np.floor(off / self.pitch + 0.5)
        return found

    def rows(self, wheel_angles: ArrayLike) -> Vector:
        """Matrix (n, 3) from twist [m/s, m/s, rad/s] to wheel speeds [rad/s] at wheel angles (n,) [rad] (system 31)."""
        angles = finite_vector("wheel_angles", wheel_angles, len(self.base.radii))
        rows = np.empty((len(angles), 3))
        for i, angle in enumerate(angles.tolist()):
            write_row(self._constants, i, angle, rows[i])
        return rows

    def wheel_speeds(self, wheel_angles: ArrayLike, twist: ArrayLike) -> Vector:
        """Wheel speeds (n,) [rad/s] of a body twist (3,) at wheel angles (n,) [rad]."""
        speeds: Vector = self.rows(wheel_angles) @ finite_vector("twist", twist, 3)
        return speeds

    def twist(self, wheel_angles: ArrayLike, wheel_speeds: ArrayLike) -> Vector:
        """Body twist (3,) that fits wheel speeds (n,) [rad/s] best at wheel angles (n,) [rad]: least squares."""
        speeds = finite_vector("wheel_speeds", wheel_speeds, len(self.base.radii))
        return np.asarray(np.linalg.lstsq(self.rows(wheel_angles), speeds, rcond=None)[0], dtype=np.float64)

    def roll(
        self, before: ArrayLike, after: ArrayLike, turn: float | None = None, weights: ArrayLike | None = None
    ) -> _Rolled:
        """Motion of the base while its wheels turn evenly from one set of angles to another.

        Args:
            before: (n,) [rad].
            after: (n,) [rad].
            turn: of the base, known from elsewhere [rad].
            weights: (n,) of the wheels in the least squares, ones if not given; 0 leaves one out.
        """
        n = len(self.base.radii)
        start = finite_vector("before", before, n)
        step = finite_vector("after", after, n) - start
        shares = np.ones(n) if weights is None else finite_vector("weights", weights, n)
        moved, residual = np.empty(3), np.empty(n)
        roll(self._constants, start, step, shares, nan if turn is None else float(turn), moved, residual)
        if self.phases is None:
            # One twist all along, whatever its turn; an arc found back from the pose would be the shortest.
            return _Rolled(self.base.twist(step - residual), residual)
        return _Rolled(planar.logarithm(moved), residual)

    def path(self, angles: ArrayLike) -> Vector:
        """Poses (m, 3) [m, m, rad] along wheel angles (m, n) [rad], from the origin on; the yaw is not wrapped."""
        turned = array("angles", angles, (None, len(self.base.radii)))
        path = np.zeros((len(turned), 3))
        _roll_path(self._constants, turned, path)
        return path
