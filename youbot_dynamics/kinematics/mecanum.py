"""Mecanum base: body twist to wheel speeds and back, for any number of wheels (systems 29-31, 56)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

# Roller axes of the youBot against the x axis, order FL, FR, RL, RR (seed 003, wheels 1-4).
_YOUBOT_ROLLER_ANGLES = (-pi / 4, pi / 4, pi / 4, -pi / 4)


@dataclass(frozen=True, eq=False)
class MecanumBase:
    """Rolling constraints of n mecanum wheels; wheel speeds are positive when they roll the robot forward.

    A wheel at (x, y) with radius R and roller axis at angle d from the x axis cannot slide along that axis:
    R w = vx + t vy + (x t - y) wz with t = tan(d) / lateral_factor (seed 003, formula for the speed of wheel i;
    systems 29, 56). The lateral factor is the mean of the roller's wandering contact, sin(pi/n)/(pi/n) for n
    rollers a wheel (system 31); 1 gives the document's formulas.

    Args:
        positions: (n, 2) wheel centres in the body frame [m].
        radii: (n,) [m], positive.
        roller_angles: (n,) roller axis against the x axis [rad], cosine not zero.
        lateral_factor: true over kinematic sideways speed [1], positive.

    Raises:
        ValueError: for wrong shapes, fewer than three wheels, or wheels that leave a motion undetermined.
    """

    positions: Vector
    radii: Vector
    roller_angles: Vector
    lateral_factor: float = 1.0
    _inverse: Vector = field(init=False, repr=False)
    _forward: Vector = field(init=False, repr=False)
    _slip_basis: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the shapes and keep the matrices, read-only."""
        positions = np.array(self.positions, dtype=float)
        radii = np.array(self.radii, dtype=float)
        angles = np.array(self.roller_angles, dtype=float)
        n = len(radii)
        if positions.shape != (n, 2) or angles.shape != (n,) or n < 3:
            raise ValueError(
                f"positions (n, 2), radii (n,) and roller_angles (n,) of one n >= 3 expected, got "
                f"{positions.shape}, {radii.shape}, {angles.shape}"
            )
        if not (np.all(radii > 0.0) and self.lateral_factor > 0.0):
            raise ValueError("radii and lateral_factor must be positive")
        if np.any(np.abs(np.cos(angles)) < 1e-9):
            raise ValueError("a roller axis along y leaves the wheel speed undetermined")
        tangent = np.tan(angles) / self.lateral_factor
        rows = np.column_stack([np.ones(n), tangent, positions[:, 0] * tangent - positions[:, 1]])
        inverse = rows / radii[:, None]
        if np.linalg.matrix_rank(inverse) < 3:
            raise ValueError("these wheels leave a motion of the base undetermined (rank below 3)")
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
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def rectangular(
        cls, wheel_radius: float, half_length: float, half_width: float, lateral_factor: float = 1.0
    ) -> MecanumBase:
        """Four wheels FL, FR, RL, RR at (+-half_length, +-half_width) [m] with the youBot's roller pattern.

        With lateral_factor 1 the wheel speeds are seed 003's: w1 = (vx - vy - (l + h) wz) / R and so on.
        """
        h, w = half_length, half_width
        positions = np.array([[h, w], [h, -w], [-h, w], [-h, -w]])
        return cls(positions, np.full(4, wheel_radius), np.array(_YOUBOT_ROLLER_ANGLES), lateral_factor)

    @property
    def inverse_matrix(self) -> Vector:
        """Matrix (n, 3) from twist [m/s, m/s, rad/s] to wheel speeds [rad/s]; read-only."""
        return self._inverse

    @property
    def forward_matrix(self) -> Vector:
        """Matrix (3, n) from wheel speeds [rad/s] to twist, least squares; read-only.

        For the youBot its first row is R/4 (1, 1, 1, 1); seed 003 prints 1/(4R), wrong by 1/R^2 = 443 (D-003-2).
        """
        return self._forward

    def wheel_speeds(self, twist: ArrayLike) -> Vector:
        """Wheel speeds (n,) [rad/s] of a body twist (3,) [m/s, m/s, rad/s]."""
        speeds: Vector = self._inverse @ np.asarray(twist, dtype=float)
        return speeds

    def twist(self, wheel_speeds: ArrayLike) -> Vector:
        """Body twist (3,) [m/s, m/s, rad/s] that fits wheel speeds (n,) [rad/s] best; angles give displacements."""
        twist: Vector = self._forward @ np.asarray(wheel_speeds, dtype=float)
        return twist

    def slip(self, wheel_speeds: ArrayLike) -> Vector:
        """Part of the wheel speeds (n - 3,) [rad/s] that no motion of the base explains; 0 without slip.

        For the youBot it is n.w with the unit null vector n = (1, 1, -1, -1)/2 (system 31).
        """
        residual: Vector = self._slip_basis @ np.asarray(wheel_speeds, dtype=float)
        return residual
