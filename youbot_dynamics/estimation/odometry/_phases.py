"""Roller phases of each wheel, from the ripple of a gyro while the base drives.

With the roller of wheel i at the angle phi_i from the lowest point, its row differs from the mean row by

    e_i = slant_i / R_i (vy + x_i wz) (m / cos(phi_i) - 1) - depth_i / R_i wz tan(phi_i)

(`kinematics.roller_phase`; m is the mean factor). phi_i is the angle w_i of the wheel plus its phase p_i, modulo the
pitch 2 pi / n. Only the first harmonic is used, which is linear in z_i = (cos(n p_i), sin(n p_i)):

    m / cos(phi_i) - 1 ~ a cos(n (w_i + p_i)),    tan(phi_i) ~ b sin(n (w_i + p_i))

Each step gives two measurements: the turn of the gyro minus that of the wheels by their mean rows, and the residual of
the wheels. A Kalman filter of the eight constants z uses both. The constraint that z_i is on the unit circle is not
used. With real rollers the estimate gets there anyway; on smooth wheels, or with a wrong number of rollers, z goes to
0.
Source: systems 31, 56.
"""

from __future__ import annotations

from math import cos, sin
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.kinematics.roller_phase import RollingWheels, mean_factor

# Relative noise of the wheels' turn, where contacts give way: in the turn of the base, and in the residual of the
# wheels.
_SHARE_OF_TURN, _SHARE_OF_SLIP = 0.02, 0.05
_LEAST_TURN, _LEAST_SLIP = 3e-5, 2.4e-4  # [rad] of noise in a step
_LEAST_STEP = 1e-4  # [rad] of the fastest wheel: smaller steps are ignored
_SMALLEST, _LARGEST = 0.6, 1.4  # norm of z for rollers as assumed
_GOOD = 1.0 / 20.0  # standard error over the pitch below which phases are useful: a third of the ripple is left
_BETTER = 0.5  # ratio to the last reported error at which new phases are reported


class _Constants(NamedTuple):
    """Constants of a base.

    Args:
        rollers: of a wheel, n.
        turn_of: (4,) turn of the base from the turns of its wheels, mean rows [1].
        sideways_of: (4,) its sideways displacement for a known turn [m].
        turning: (4,) column of the mean rows for the turn [1].
        slip_of: (4,) slip direction of the wheels [1].
        slants: (4,) a slant_i / R_i [1/m].
        depths: (4,) b depth_i / R_i [1].
        ahead: (4,) x_i [m].
    """

    rollers: float
    turn_of: Vector
    sideways_of: Vector
    turning: Vector
    slip_of: Vector
    slants: Vector
    depths: Vector
    ahead: Vector


@compiled
def _take(
    base: _Constants, state: Vector, covariance: Vector, before: Vector, step: Vector, turn: float, variance: float
) -> None:
    """Update z (8,), cosines first, and its covariance (8, 8) by a step; arguments as `PhaseFinder.update`."""
    n = len(step)
    sideways, seen, slipped, moved, fastest = 0.0, turn, 0.0, 0.0, 0.0
    for i in range(n):
        sideways += base.sideways_of[i] * (step[i] - base.turning[i] * turn)
        seen -= base.turn_of[i] * step[i]
        slipped += base.slip_of[i] * step[i]
        moved += abs(base.turn_of[i] * step[i])
        fastest = max(fastest, abs(step[i]))
    row, gain = np.zeros(2 * n), np.zeros(2 * n)
    for reading in range(2):
        for i in range(n):
            angle = base.rollers * (before[i] + 0.5 * step[i])
            secant, tangent = base.slants[i] * (sideways + base.ahead[i] * turn), -base.depths[i] * turn
            share = -base.turn_of[i] if reading == 0 else base.slip_of[i]
            row[i] = share * (secant * cos(angle) + tangent * sin(angle))
            row[i + n] = share * (tangent * cos(angle) - secant * sin(angle))
        if reading == 0:
            total = variance + _LEAST_TURN**2 + (_SHARE_OF_TURN * moved) ** 2
            innovation = seen
        else:
            total = _LEAST_SLIP**2 + (_SHARE_OF_SLIP * fastest) ** 2
            innovation = slipped
        for i in range(2 * n):
            gain[i] = 0.0
            for j in range(2 * n):
                gain[i] += covariance[i, j] * row[j]
            innovation -= row[i] * state[i]
        for i in range(2 * n):
            total += row[i] * gain[i]
        for i in range(2 * n):
            state[i] += gain[i] * innovation / total
            for j in range(2 * n):
                covariance[i, j] -= gain[i] * gain[j] / total


class PhaseFinder:
    """Estimates the roller phases of a base of four wheels.

    Args:
        wheels: geometry, number of rollers and their depth; phases are ignored.
        weights: (4,) of the wheels in the least squares of their motion.
    """

    def __init__(self, wheels: RollingWheels, weights: Vector) -> None:
        base, mean = wheels.base, wheels.base.inverse_matrix
        self._pitch = wheels.pitch
        roots, tangents = np.sqrt(weights), np.tan(base.roller_angles)
        phi = wheels.pitch * ((np.arange(256) + 0.5) / 256 - 0.5)
        secant = 2.0 * float(np.mean((mean_factor(wheels.rollers) / np.cos(phi) - 1.0) * np.cos(wheels.rollers * phi)))
        tangent = 2.0 * float(np.mean(np.tan(phi) * np.sin(wheels.rollers * phi)))
        self._base = _Constants(
            float(wheels.rollers),
            np.ascontiguousarray((np.linalg.pinv(roots[:, None] * mean) * roots)[2]),
            np.ascontiguousarray((np.linalg.pinv(roots[:, None] * mean[:, :2]) * roots)[1]),
            np.ascontiguousarray(mean[:, 2]),
            np.ascontiguousarray(base.slip(np.eye(len(mean)))[:, 0]),
            secant * tangents / base.lateral_factor / base.radii,
            tangent * wheels.depth * tangents / base.radii,
            np.ascontiguousarray(base.positions[:, 0]),
        )
        self.clear()
        # Compile now: a node that compiles while driving would not respond for seconds.
        self.update(np.zeros(len(mean)), np.full(len(mean), _LEAST_STEP), 0.0, 0.0)
        self.clear()

    def clear(self) -> None:
        """Restart: the wheel counts jumped, or estimated phases turned out wrong."""
        size = 2 * len(self._base.ahead)
        self._state, self._covariance = np.zeros(size), 0.5 * np.eye(size)
        self._told = np.inf

    @property
    def errors(self) -> Vector:
        """Standard errors (4,) of the phases [rad]; infinite if no rollers of this number are visible."""
        (c, s), own = self._state.reshape(2, -1), np.arange(len(self._base.ahead))
        p, behind = self._covariance, own + len(own)
        across = s**2 * p[own, own] - 2.0 * s * c * p[own, behind] + c**2 * p[behind, behind]
        square = c**2 + s**2
        there = (square > _SMALLEST**2) & (square < _LARGEST**2)
        errors: Vector = np.where(there, np.sqrt(np.maximum(across, 0.0)) / np.maximum(square, _SMALLEST**2), np.inf)
        return errors / self._base.rollers

    def update(self, before: Vector, step: Vector, turn: float, variance: float) -> Vector | None:
        """Process wheel angles (4,) [rad], their step (4,) and the turn of a gyro in it [rad] with its variance.

        Returns:
            The phases (4,) [rad] once all are known to a twentieth of the pitch, and again when their error has halved.
        """
        if np.abs(step).max() < _LEAST_STEP:
            return None
        _take(self._base, self._state, self._covariance, before, step, turn, variance)
        error = float(self.errors.max())
        if error > min(_GOOD * self._pitch, _BETTER * self._told):
            return None
        self._told = error
        c, s = self._state.reshape(2, -1)
        phases: Vector = np.arctan2(s, c) / self._base.rollers
        return phases
