"""Base on mecanum, omni, fixed or steered wheels: body twist to wheel speeds and back. Source: systems 29-31, 56."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi, sin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, finite_vector, number, read_only
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import steering

# Ratio to the largest singular value of constraints below which one does not count for their rank.
_DETERMINED = 1e-9

# Angles of the youBot's roller axes from the x axis, order FL, FR, RL, RR (document 003, wheels 1-4).
_YOUBOT_ROLLER_ANGLES = (-pi / 4, pi / 4, pi / 4, -pi / 4)

FEWEST_ROLLERS = 4  # fewer rollers would have pointed ends


def mean_factor(rollers: float) -> float:
    """Mean ratio of true to kinematic sideways speed of an ideal wheel: sin(pi/n) / (pi/n), n rollers.

    Source: system 31.
    """
    return sin(pi / rollers) / (pi / rollers)


@dataclass(frozen=True, eq=False)
class MecanumBase(MadeOfArguments):
    """Rolling constraints of n wheels; wheel speeds are positive when they roll the robot forward.

    A wheel at (x, y) with radius R and its roller axis at an angle d from the x axis cannot slide along that axis:
    R w = vx + t vy + (x t - y) wz with t = tan(d) / lateral_factor.
    A wheel that drives at an angle a from the x axis has R w = (cos(d) vx + sin(d) vy + (x sin(d) - y cos(d)) wz) /
    cos(d - a); an omni wheel has its roller axis in that direction, d = a.
    A fixed wheel, with a plain tyre, rolls like an omni wheel, but has no sideways slip either:
    -sin(a) vx + cos(a) vy + (x cos(a) + y sin(a)) wz = 0. The base moves by the twists that all fixed wheels allow.
    One wheel that is driven and steered has two rows, as two fixed wheels in its place have: what it rolls along and
    across the direction at steering angle 0, see `kinematics.steering`. An axle of fixed wheels on the y axis follows.
    The contact moves along the roller as the wheel turns. The lateral factor accounts for this in the mean:
    sin(pi/n)/(pi/n) for n rollers per wheel. A factor of 1 gives the formulas of document 003.
    The methods take one vector or a batch of vectors, and raise InputError for a wrong shape, NaN or infinity.

    Args:
        positions: (n, 2) wheel centres in the body frame [m].
        radii: (n,) [m], positive.
        roller_angles: (n,) angle of the roller axis from the x axis [rad], at most 2 pi, not across the drive.
        lateral_factor: ratio of true to kinematic sideways speed [1], positive; 1 unless all wheels drive forward.
        drive_angles: (n,) angle from the x axis of the direction in which each wheel drives [rad], at most 2 pi; zeros
            if not given.
        fixed: (n,) whether a wheel has a plain tyre; its roller angle then is its drive angle. None if not given.
        steered: whether the wheels are one that is driven and steered: see `tricycle`.

    Attributes:
        inverse_matrix: (n, 3) from twist [m/s, m/s, rad/s] to wheel speeds [rad/s]; read-only, as the next ones.
        forward_matrix: (3, n) from wheel speeds [rad/s] to the least-squares twist, of those in `motions`. For the
            youBot its first row is R/4 (1, 1, 1, 1). Document 003 prints 1/(4R), wrong by 1/R^2 = 443 (D-003-2).
        motions: (3, m) orthonormal twists by which the base can move: the identity, or those that fixed wheels allow.
        along: (n,) parts of vx in R w [1]: 1 for wheels that drive forward.
        slants: (n,) parts of vy in R w without the lateral factor [1]: tan(d) for wheels that drive forward.

    Raises:
        ModelError: wrong shapes, constants that are not finite or not positive, too few wheels, a roller axis across
            the drive (along y) or an angle above 2 pi (probably degrees), wheels that do not determine the twist, fixed
            wheels that are not on one line, or a lateral factor for wheels that are no mecanum wheels.

    Example:
        >>> base = yd.MecanumBase.rectangular(wheel_radius=0.05, half_length=0.2, half_width=0.15)
        >>> base.wheel_speeds([[0.2, 0.0, 0.0], [0.0, 0.0, 1.0]]).round(6)
        array([[ 4.,  4.,  4.,  4.],
               [-7.,  7., -7.,  7.]])

    Source: Muir and Neuman 1987; Campion, Bastin and d'Andrea-Novel 1996; document 003, systems 29, 31, 56.
    """

    positions: Vector
    radii: Vector
    roller_angles: Vector
    lateral_factor: float = 1.0
    drive_angles: Vector | None = None
    fixed: NDArray[np.bool_] | None = None
    steered: bool = False
    inverse_matrix: Vector = field(init=False, repr=False)
    forward_matrix: Vector = field(init=False, repr=False)
    motions: Vector = field(init=False, repr=False)
    along: Vector = field(init=False, repr=False)
    slants: Vector = field(init=False, repr=False)
    _slip_basis: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the shapes and store the matrices, read-only."""
        try:
            radii = np.array(array("radii", self.radii, (None,)))
            n = len(radii)
            positions = np.array(array("positions", self.positions, (n, 2)))
            angles = np.array(array("roller_angles", self.roller_angles, (n,)))
            drives = (
                np.zeros(n) if self.drive_angles is None else np.array(array("drive_angles", self.drive_angles, (n,)))
            )
            fixed = np.array(array("fixed", np.zeros(n) if self.fixed is None else self.fixed, (n,))) != 0.0
        except InputError as wrong:
            raise ModelError(wrong.thing, got=wrong.got, expected=wrong.expected) from None
        angles = np.where(fixed, drives, angles)
        motions = np.eye(3)[:, [0, 2]] if self.steered else _motions(positions[fixed], drives[fixed])
        free = motions.shape[1]
        if n < free:
            many = "three" if free == 3 else "two"
            raise ModelError("radii", got=f"{n} wheels", expected=f"at least {free}: a twist has {many} components")
        for wheel, (radius, angle, drive) in enumerate(zip(radii, angles, drives, strict=True)):
            number(f"radii[{wheel}]", radius, "m", above=0.0)
            _check_angles(wheel, angle, drive)
        factor = number("lateral_factor", self.lateral_factor, above=0.0)
        if factor != 1.0 and (np.any(drives) or np.any(fixed)):
            raise ModelError(
                "lateral_factor",
                got=f"{factor:g} for wheels that {'have no rollers' if np.any(fixed) else 'do not all drive forward'}",
                expected="1",
                remedy="the factor is of mecanum wheels, whose contact moves along slanted rollers",
            )
        pull = np.cos(angles - drives)
        along = np.cos(angles) / pull
        slants = np.where(drives == 0.0, np.tan(angles), np.sin(angles) / pull)
        inverse = _rolling_constraints(positions, along, slants / factor, motions) / radii[:, None]
        rolling = inverse if free == 3 else inverse @ motions
        basis = np.linalg.svd(rolling)[0][:, free:].T
        leading = basis[np.arange(n - free), np.argmax(np.abs(basis) > 1e-9, axis=1)]
        forward = np.linalg.pinv(rolling)
        arrays = {
            "positions": positions,
            "radii": radii,
            "roller_angles": angles,
            "drive_angles": drives,
            "inverse_matrix": inverse,
            "forward_matrix": forward if free == 3 else motions @ forward,
            "motions": motions,
            "along": along,
            "slants": slants,
            "_slip_basis": basis * np.sign(leading)[:, None],
        }
        for name, value in arrays.items():
            object.__setattr__(self, name, read_only(value))
        fixed.setflags(write=False)
        object.__setattr__(self, "fixed", fixed)
        object.__setattr__(self, "lateral_factor", factor)

    @classmethod
    def rectangular(
        cls,
        wheel_radius: float,
        half_length: float,
        half_width: float,
        lateral_factor: float = 1.0,
        radius_errors: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    ) -> MecanumBase:
        """Four wheels FL, FR, RL, RR at (+-half_length, +-half_width) [m] with the youBot's roller pattern.

        With lateral_factor 1 the wheel speeds are w1 = (vx - vy - (l + h) wz) / R and so on, as in document 003.

        Args:
            wheel_radius: nominal radius of all wheels [m].
            half_length: [m].
            half_width: [m].
            lateral_factor: as for the class.
            radius_errors: (4,) relative radius error of each wheel: its radius over the nominal one, minus 1.

        Raises:
            InputError: not four errors, or errors that are not finite.
            ModelError: as for the class; a radius, half length or half width that is not a positive number.
        """
        h = number("half_length", half_length, "m", above=0.0)
        w = number("half_width", half_width, "m", above=0.0)
        positions = np.array([[h, w], [h, -w], [-h, w], [-h, -w]])
        relative = 1.0 + array("radius_errors", radius_errors, (4,))
        radii = number("wheel_radius", wheel_radius, "m", above=0.0) * relative
        return cls(positions, radii, np.array(_YOUBOT_ROLLER_ANGLES), lateral_factor)

    @classmethod
    def omni(cls, positions: ArrayLike, drive_angles: ArrayLike, radii: ArrayLike) -> MecanumBase:
        """Base on omni wheels, whose rollers roll across the drive; forward along the drive is positive.

        Args:
            positions: (n, 2) wheel centres in the body frame [m].
            drive_angles: (n,) direction in which each wheel drives, from the x axis [rad].
            radii: (n,) [m].

        Raises:
            ModelError: as for the class.

        Example:
            >>> angles = np.radians([150.0, 270.0, 30.0])
            >>> base = yd.MecanumBase.omni(0.2 * np.column_stack([np.sin(angles), -np.cos(angles)]), angles, [0.04] * 3)
            >>> base.wheel_speeds([[0.4, 0.0, 0.0], [0.0, 0.0, 1.0]]).round(3) + 0.0
            array([[-8.66,  0.  ,  8.66],
                   [ 5.  ,  5.  ,  5.  ]])

        Source: Campion, Bastin and d'Andrea-Novel 1996, Swedish wheels with rollers at 90 degrees; system 29.
        """
        return cls(positions, radii, drive_angles, 1.0, drive_angles)  # type: ignore[arg-type]

    @classmethod
    def omni_circle(
        cls, wheel_radius: float, distance: float, drive_angles: ArrayLike, radius_errors: ArrayLike
    ) -> MecanumBase:
        """Omni wheels on a circle about the middle that drive along it, so that a positive turn has positive speeds.

        Args:
            wheel_radius: nominal radius of all wheels [m].
            distance: of the wheels from the middle [m].
            drive_angles: (n,) direction in which each wheel drives, from the x axis [rad].
            radius_errors: (n,) relative radius error of each wheel.

        Raises:
            InputError: angles that are not finite, or another number of errors.
            ModelError: as for the class.
        """
        angles = array("drive_angles", drive_angles, (None,))
        places = number("distance", distance, "m", above=0.0) * np.column_stack([np.sin(angles), -np.cos(angles)])
        relative = 1.0 + array("radius_errors", radius_errors, (len(angles),))
        return cls.omni(places, angles, number("wheel_radius", wheel_radius, "m", above=0.0) * relative)

    @classmethod
    def differential(cls, wheel_radius: float, track: float, radius_errors: ArrayLike = (0.0, 0.0)) -> MecanumBase:
        """Two fixed wheels, left and right at (0, +-track / 2), and casters.

        Args:
            wheel_radius: nominal radius of both wheels [m].
            track: distance between the wheels [m].
            radius_errors: (2,) relative radius error of each wheel.

        Raises:
            InputError: not two errors, or errors that are not finite.
            ModelError: a radius or track that is not a positive number.

        Example:
            >>> yd.MecanumBase.differential(0.05, 0.4).twist([1.0, 3.0]).round(6)
            array([0.1 , 0.  , 0.25])

        Source: Campion, Bastin and d'Andrea-Novel 1996, type (2, 0).
        """
        half = 0.5 * number("track", track, "m", above=0.0)
        radii = number("wheel_radius", wheel_radius, "m", above=0.0) * (
            1.0 + array("radius_errors", radius_errors, (2,))
        )
        return cls(np.array([[0.0, half], [0.0, -half]]), radii, np.zeros(2), fixed=np.ones(2, bool))

    @classmethod
    def tricycle(cls, wheel_radius: float, wheelbase: float, steering_offset: float = 0.0) -> MecanumBase:
        """One driven and steered wheel at (wheelbase, 0), and an axle of fixed wheels on the y axis.

        With b = steering + steering_offset the wheel rolls R dq = cos(b) dx + sin(b) wheelbase turn and does not slip
        across, and the axle allows no dy. So dx = R dq cos(b) and turn = R dq sin(b) / wheelbase.

        Args:
            wheel_radius: of the driven wheel [m].
            wheelbase: distance of the driven wheel ahead of the axle [m].
            steering_offset: true steering angle minus the measured one [rad], at most a quarter turn.

        Raises:
            ModelError: values that no such base has.

        Example:
            >>> base = yd.MecanumBase.tricycle(0.05, 0.4)
            >>> base.twist(base.rolling([2.0, 0.0], [0.0, np.pi / 2.0])).round(6) + 0.0
            array([0.  , 0.  , 0.25])

        Source: Campion, Bastin and d'Andrea-Novel 1996, type (1, 1).
        """
        length, offset = number("wheelbase", wheelbase, "m", above=0.0), number("steering_offset", steering_offset)
        if abs(offset) > 0.5 * pi:
            expected = "at most a quarter turn, pi / 2"
            raise ModelError("steering_offset", got=f"{offset:g}", expected=expected, remedy="is it in rad?")
        radii, drives = np.full(2, number("wheel_radius", wheel_radius, "m", above=0.0)), offset + np.array([0, pi / 2])
        return cls(np.array([[length, 0.0]] * 2), radii, drives, 1.0, drives, np.ones(2, bool), True)

    @property
    def steering_offset(self) -> float:
        """True steering angle minus the measured one [rad]; 0 of wheels that do not steer."""
        assert self.drive_angles is not None  # __post_init__ fills it
        return float(self.drive_angles[0]) if self.steered else 0.0

    @property
    def reach(self) -> float:
        """[m] that the wheels roll in the mean for an angle of 1 rad that the base turns; one that is steered alone."""
        ways: Vector = np.abs(self.radii * self.inverse_matrix[:, 2])
        return float(np.linalg.norm(ways) if self.steered else np.mean(ways))

    def fastest(self, wheel_speeds: ArrayLike) -> Vector:
        """Speed (...) [rad/s] of the fastest wheel, for speeds (..., n) [rad/s]."""
        speeds = np.asarray(wheel_speeds, dtype=float)
        return np.asarray(np.linalg.norm(speeds, axis=-1) if self.steered else np.max(np.abs(speeds), axis=-1))

    def rolled(self, readings: ArrayLike) -> Vector:
        """Angles (m, n) [rad] that the wheels rolled by readings (m, n) of their joints; of a steered wheel from 0."""
        return steering.rolled(readings) if self.steered else np.asarray(readings, dtype=float)

    def rolling(self, speeds: ArrayLike, readings: ArrayLike) -> Vector:
        """Speeds (..., n) [rad/s] at which wheels roll, by speeds (..., n) and readings (..., n) of their joints."""
        return steering.rolling(speeds, readings) if self.steered else np.asarray(speeds, dtype=float)

    def refuse_steered(self, thing: str) -> None:
        """Refuse a steered wheel for a thing that does not know it.

        Raises:
            ModelError: the wheel is steered.
        """
        if self.steered:
            got, expected = "a base with a steered wheel", "wheels that do not steer"
            raise ModelError(thing, got=got, expected=expected, remedy="youbot identify finds its delays and geometry")

    def of_joints(self, values: ArrayLike) -> Vector:
        """Way of the rim of a steered wheel as x, 0, and what its steering does as yaw (..., 3), of values (..., 2)."""
        speed, angle = np.moveaxis(np.asarray(values, dtype=float), -1, 0)
        return np.stack([float(self.radii[0]) * speed, np.zeros_like(speed), angle], axis=-1)

    @property
    def all_forward(self) -> bool:
        """Whether all are mecanum wheels that drive along x: only they have a lateral factor and roller phases."""
        return not np.any(self.drives[:, 1]) and not np.any(self.fixed)

    @property
    def free_axes(self) -> NDArray[np.bool_]:
        """Whether the base can move along x, along y and turn (3,), each alone; all True without fixed wheels."""
        free: NDArray[np.bool_] = np.sum(self.motions**2, axis=1) > 1.0 - _DETERMINED
        return free

    @property
    def drives(self) -> Vector:
        """Unit vectors (n, 2) along which the wheels drive [1]."""
        assert self.drive_angles is not None  # __post_init__ fills it
        return np.column_stack([np.cos(self.drive_angles), np.sin(self.drive_angles)])

    @property
    def roller_gains(self) -> Vector:
        """Speeds (n,) of the rollers' rims over that of the wheel centre across the drive [1]: |1 / cos(d - a)|.

        0 for fixed wheels, which have no rollers.
        """
        assert self.drive_angles is not None and self.fixed is not None  # __post_init__ fills them
        return np.where(self.fixed, 0.0, np.abs(1.0 / np.cos(self.roller_angles - self.drive_angles)))

    def wheel_speeds(self, twist: ArrayLike) -> Vector:
        """Wheel speeds (..., n) [rad/s] of body twists (..., 3) [m/s, m/s, rad/s].

        Source: Muir and Neuman 1987; system 29.
        """
        return _mapped(self.inverse_matrix, finite_vector("twist", twist, 3, True))

    def twist(self, wheel_speeds: ArrayLike) -> Vector:
        """Least-squares body twists (..., 3) [m/s, m/s, rad/s] of wheel speeds (..., n) [rad/s].

        Wheel angles [rad] in place of speeds give displacements [m, m, rad].
        Source: Muir and Neuman 1987; system 31; D-003-2.
        """
        return _mapped(self.forward_matrix, finite_vector("wheel_speeds", wheel_speeds, len(self.radii), True))

    def slip(self, wheel_speeds: ArrayLike) -> Vector:
        """Wheel-speed component (..., n - m) [rad/s] that causes none of the m `motions` of the base; 0 without slip.

        For the youBot it is n.w with the unit null vector n = (1, 1, -1, -1)/2 and w (..., n).
        Source: system 31.
        """
        return _mapped(self._slip_basis, finite_vector("wheel_speeds", wheel_speeds, len(self.radii), True))


def _mapped(matrix: Vector, vectors: Vector) -> Vector:
    """Products (..., m) of a matrix (m, n) with vectors (..., n)."""
    return matrix @ vectors if vectors.ndim == 1 else vectors @ matrix.T


def _check_angles(wheel: int, angle: float, drive: float) -> None:
    """Refuse angles [rad] of the roller axis and the drive of a wheel that no wheel can have."""
    for name, value in (("roller_angles", angle), ("drive_angles", drive)):
        if not abs(value) <= 2.0 * pi:
            raise ModelError(
                f"{name}[{wheel}]", got=f"{value:g}", expected="at most a full turn, 2 pi", remedy="is it in rad?"
            )
    if abs(np.cos(angle - drive)) < 1e-9:
        where = "along y" if drive == 0.0 else "across the drive"
        raise ModelError(
            f"roller_angles[{wheel}]",
            got=f"{angle:g} rad: {where}, where the wheel speed is undetermined",
            expected="a roller axis with a component along x"
            if drive == 0.0
            else "a roller axis with a component along the drive direction",
        )


def _scaled(rows: Vector, positions: Vector) -> Vector:
    """Rows (k, 3) with lengths in units of the farthest wheel: their rank does not depend on the unit of length."""
    reach = float(np.max(np.hypot(positions[:, 0], positions[:, 1])))
    return rows / [1.0, 1.0, reach or 1.0]


def _motions(positions: Vector, drives: Vector) -> Vector:
    """Orthonormal twists (3, m) that fixed wheels at positions (k, 2) with drive angles (k,) allow.

    Raises:
        ModelError: they do not let the base turn.
    """
    if len(positions) == 0:
        return np.eye(3)
    (x, y), (c, s) = positions.T, (np.cos(drives), np.sin(drives))
    rows = np.column_stack([-s, c, x * c + y * s])
    strength = np.linalg.svd(_scaled(rows, positions), compute_uv=False)
    motions = np.linalg.svd(rows)[2][int(np.sum(strength > _DETERMINED * strength[0])) :].T
    if not np.any(np.abs(motions[2]) > _DETERMINED):
        raise ModelError(
            "positions of fixed wheels",
            got="wheels that are not on one line: the base turns only where they slip sideways (skid steering)",
            expected="fixed wheels whose axles are on one line",
            remedy="give one wheel of each side, on a line, at the effective track that a calibration finds",
        )
    return motions


def _rolling_constraints(positions: Vector, along: Vector, slants: Vector, motions: Vector) -> Vector:
    """Rows (n, 3) of R w = c vx + t vy + (x t - y c) wz for wheels at positions (n, 2), c and t (n,).

    Raises:
        ModelError: the rows leave some of the motions (3, m) undetermined.
    """
    rows = np.column_stack([along, slants, positions[:, 0] * slants - positions[:, 1] * along])
    free = motions.shape[1]
    scaled = _scaled(rows, positions)
    strength = np.linalg.svd(scaled if free == 3 else scaled @ motions, compute_uv=False)
    rank = int(np.sum(strength > _DETERMINED * strength[0]))
    if rank < free:
        raise ModelError(
            "positions and roller_angles",
            got=f"rolling constraints of rank {rank}",
            expected=f"rank {free}: these wheels leave the twist of the base undetermined",
        )
    return rows
