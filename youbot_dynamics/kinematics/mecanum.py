"""Mecanum base with any number of wheels: body twist to wheel speeds and back. Source: systems 29-31, 56."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, finite_vector, number, read_only
from youbot_dynamics.errors import InputError, ModelError

# Ratio of smallest to largest singular value of the rolling constraints below which their rank counts as deficient.
_DETERMINED = 1e-9

# Angles of the youBot's roller axes from the x axis, order FL, FR, RL, RR (document 003, wheels 1-4).
_YOUBOT_ROLLER_ANGLES = (-pi / 4, pi / 4, pi / 4, -pi / 4)


@dataclass(frozen=True, eq=False)
class MecanumBase(MadeOfArguments):
    """Rolling constraints of n mecanum wheels; wheel speeds are positive when they roll the robot forward.

    A wheel at (x, y) with radius R and its roller axis at an angle d from the x axis cannot slide along that axis:
    R w = vx + t vy + (x t - y) wz with t = tan(d) / lateral_factor.
    The contact moves along the roller as the wheel turns. The lateral factor accounts for this in the mean:
    sin(pi/n)/(pi/n) for n rollers per wheel. A factor of 1 gives the formulas of document 003.
    The methods take one vector or a batch of vectors, and raise InputError for a wrong shape, NaN or infinity.

    Args:
        positions: (n, 2) wheel centres in the body frame [m].
        radii: (n,) [m], positive.
        roller_angles: (n,) angle of the roller axis from the x axis [rad], at most 2 pi, cosine not zero.
        lateral_factor: ratio of true to kinematic sideways speed [1], positive.

    Raises:
        ModelError: wrong shapes, constants that are not finite or not positive, fewer than three wheels, a roller axis
            along y or an angle above 2 pi (probably degrees), or wheels that do not determine the twist.

    Example:
        >>> base = yd.MecanumBase.rectangular(wheel_radius=0.05, half_length=0.2, half_width=0.15)
        >>> base.wheel_speeds([[0.2, 0.0, 0.0], [0.0, 0.0, 1.0]]).round(6)
        array([[ 4.,  4.,  4.,  4.],
               [-7.,  7., -7.,  7.]])

    Source: Muir and Neuman 1987; document 003, systems 29, 31, 56.
    """

    positions: Vector
    radii: Vector
    roller_angles: Vector
    lateral_factor: float = 1.0
    _inverse: Vector = field(init=False, repr=False)
    _forward: Vector = field(init=False, repr=False)
    _slip_basis: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the shapes and store the matrices, read-only."""
        try:
            radii = np.array(array("radii", self.radii, (None,)))
            n = len(radii)
            positions = np.array(array("positions", self.positions, (n, 2)))
            angles = np.array(array("roller_angles", self.roller_angles, (n,)))
        except InputError as wrong:
            raise ModelError(wrong.thing, got=wrong.got, expected=wrong.expected) from None
        if n < 3:
            raise ModelError("radii", got=f"{n} wheels", expected="at least 3: a twist has three components")
        for wheel, (radius, angle) in enumerate(zip(radii, angles, strict=True)):
            number(f"radii[{wheel}]", radius, "m", above=0.0)
            if abs(angle) > 2.0 * pi:
                raise ModelError(
                    f"roller_angles[{wheel}]",
                    got=f"{angle:g}",
                    expected="at most a full turn, 2 pi",
                    remedy="is it in rad?",
                )
            if abs(np.cos(angle)) < 1e-9:
                raise ModelError(
                    f"roller_angles[{wheel}]",
                    got=f"{angle:g} rad: along y, where the wheel speed is undetermined",
                    expected="a roller axis with a part along x",
                )
        factor = number("lateral_factor", self.lateral_factor, above=0.0)
        inverse = _rolling_constraints(positions, np.tan(angles) / factor) / radii[:, None]
        basis = np.linalg.svd(inverse)[0][:, 3:].T
        leading = basis[np.arange(n - 3), np.argmax(np.abs(basis) > 1e-9, axis=1)]
        arrays = {
            "positions": positions,
            "radii": radii,
            "roller_angles": angles,
            "_inverse": inverse,
            "_forward": np.linalg.pinv(inverse),
            "_slip_basis": basis * np.sign(leading)[:, None],
        }
        for name, value in arrays.items():
            object.__setattr__(self, name, read_only(value))
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
            ModelError: as for the class; a half length or half width that is not positive.
        """
        h = number("half_length", half_length, "m", above=0.0)
        w = number("half_width", half_width, "m", above=0.0)
        positions = np.array([[h, w], [h, -w], [-h, w], [-h, -w]])
        radii = wheel_radius * (1.0 + array("radius_errors", radius_errors, (4,)))
        return cls(positions, radii, np.array(_YOUBOT_ROLLER_ANGLES), lateral_factor)

    @property
    def inverse_matrix(self) -> Vector:
        """Matrix (n, 3) from twist [m/s, m/s, rad/s] to wheel speeds [rad/s]; read-only."""
        return self._inverse

    @property
    def forward_matrix(self) -> Vector:
        """Matrix (3, n) from wheel speeds [rad/s] to the least-squares twist; read-only.

        For the youBot its first row is R/4 (1, 1, 1, 1). Document 003 prints 1/(4R), wrong by 1/R^2 = 443.
        Source: D-003-2.
        """
        return self._forward

    def wheel_speeds(self, twist: ArrayLike) -> Vector:
        """Wheel speeds (..., n) [rad/s] of body twists (..., 3) [m/s, m/s, rad/s].

        Source: Muir and Neuman 1987; system 29.
        """
        return _mapped(self._inverse, finite_vector("twist", twist, 3, True))

    def twist(self, wheel_speeds: ArrayLike) -> Vector:
        """Least-squares body twists (..., 3) [m/s, m/s, rad/s] of wheel speeds (..., n) [rad/s].

        Wheel angles [rad] in place of speeds give displacements [m, m, rad].
        Source: Muir and Neuman 1987; system 31; D-003-2.
        """
        return _mapped(self._forward, finite_vector("wheel_speeds", wheel_speeds, len(self.radii), True))

    def slip(self, wheel_speeds: ArrayLike) -> Vector:
        """Wheel-speed component (..., n - 3) [rad/s] that causes no motion of the base; 0 without slip.

        For the youBot it is n.w with the unit null vector n = (1, 1, -1, -1)/2 and w (..., n).
        Source: system 31.
        """
        return _mapped(self._slip_basis, finite_vector("wheel_speeds", wheel_speeds, len(self.radii), True))


def _mapped(matrix: Vector, vectors: Vector) -> Vector:
    """Products (..., m) of a matrix (m, n) with vectors (..., n)."""
    mapped: Vector = matrix @ vectors if vectors.ndim == 1 else vectors @ matrix.T
    return mapped


def _rolling_constraints(positions: Vector, tangents: Vector) -> Vector:
    """Rows (n, 3) of R w = vx + t vy + (x t - y) wz for wheels at positions (n, 2) with tangents t (n,).

    Raises:
        ModelError: the rank of the rows is below 3.
    """
    rows = np.column_stack([np.ones(len(tangents)), tangents, positions[:, 0] * tangents - positions[:, 1]])
    # Lengths are scaled by the distance of the farthest wheel, so that the rank does not depend on the unit of length.
    reach = float(np.max(np.hypot(positions[:, 0], positions[:, 1])))
    strength = np.linalg.svd(rows / [1.0, 1.0, reach or 1.0], compute_uv=False)
    rank = int(np.sum(strength > _DETERMINED * strength[0]))
    if rank < 3:
        raise ModelError(
            "positions and roller_angles",
            got=f"rolling constraints of rank {rank}",
            expected="rank 3: these wheels leave the twist of the base undetermined",
        )
    return rows
