"""Friction of rollers that stand anywhere, as the preview reckons with it, against the geometry of a wheel in space."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.control.roller_preview import RollerPreview, _unbalanced
from youbot_dynamics.dynamics.driven_base import DrivenBase
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.kinematics.mecanum import MecanumBase, mean_factor
from youbot_dynamics.kinematics.roller_phase import RollingWheels

BASE = MecanumBase.rectangular(0.0475, 0.235, 0.15)
PHASES = [0.1, -0.4, 0.3, 0.05]
TWIST = np.array([0.2, -0.15, 0.4])


def wheels_of(rollers: int) -> RollingWheels:
    ideal = MecanumBase(BASE.positions, BASE.radii, BASE.roller_angles, mean_factor(rollers))
    return RollingWheels.ideal(ideal, rollers, PHASES)


def preview_of(wheels: RollingWheels, **friction: float) -> RollerPreview:
    dynamics = MecanumDynamics(wheels.base, 25.0, 1.1, 0.01, **friction)
    return RollerPreview(wheels, DrivenBase(dynamics, np.full(3, 0.1), 0.02, 25.0), 0.02)


def in_space(wheels: RollingWheels, wheel: int, angle: float) -> np.ndarray:
    """Speeds (2, 3) of a wheel and of its roller on the floor for each axis of the twist, from points and axes.

    The roller's axis is a line at depth b in the direction phi off the bottom, at the angle d to the wheel's plane. It
    turns about that line, with the wheel; where it touches, straight below the wheel's axle, the floor holds it.
    """
    radius, slant = wheels.base.radii[wheel], wheels.base.roller_angles[wheel]
    phi = wheels.roller_angles(np.full(4, angle))[wheel]
    # Rolling forward brings the bottom to the rear: a roller at phi > 0 lies behind.
    towards = np.array([-np.sin(phi), 0.0, -np.cos(phi)])
    middle = np.array([0.0, 0.0, radius]) + wheels.depth * towards
    along = np.array([np.cos(phi), 0.0, -np.sin(phi)])
    axis = np.cos(slant) * along + np.sin(slant) * np.array([0.0, 1.0, 0.0])
    above = middle - axis * middle[0] / axis[0]  # where the axis passes over the line on which the wheel touches
    touch = np.array([0.0, above[1], 0.0])
    by_roller = np.cross(axis, touch - above)[:2]
    by_wheel = np.cross([0.0, 1.0, 0.0], touch - [0.0, 0.0, radius])[:2]
    x, y = wheels.base.positions[wheel] + touch[:2]
    carried = np.array([[1.0, 0.0, -y], [0.0, 1.0, x]])
    speeds: np.ndarray = -np.linalg.solve(np.column_stack([by_wheel, by_roller]), carried)
    return speeds


@pytest.mark.parametrize("rollers", [6, 9])
def test_rows_and_levers_are_those_of_a_wheel_in_space(rollers: int) -> None:
    """A roller's friction is one torque: its force is that torque times its speed for each axis of the twist."""
    wheels = wheels_of(rollers)
    preview = preview_of(wheels, roller_coulomb=2.0)
    angles = np.linspace(0.0, wheels.pitch, 60, endpoint=False)
    speeds = np.array([[in_space(wheels, wheel, angle) for wheel in range(4)] for angle in angles])
    for angle, rows in zip(angles, speeds[:, :, 0], strict=True):
        np.testing.assert_allclose(rows, wheels.rows(np.full(4, angle)), rtol=1e-9, atol=1e-9)
    levers = np.abs(speeds[:, :, 1, 1]) / np.abs(speeds[:, 0, 1, 1]).mean()
    assert levers.max() / levers.min() > 1.2
    # Sideways: each roller's friction in the mean is F2 / r over cos d.
    mean = 2.0 * np.sqrt(2.0)
    torques = wheels.base.forward_matrix.T @ np.array([0.0, 4.0 * mean, 0.0])
    places, forces = wheels.base.positions[:, 0], np.zeros(3)
    for angle, lever in zip(angles, levers, strict=True):
        at = np.full(4, angle)
        _unbalanced(wheels.constants, preview._loops, at, np.array([0.0, 0.3, 0.0]), np.zeros(3), np.zeros(4), forces)
        felt = np.array([0.0, mean * lever.sum(), mean * lever @ places])
        np.testing.assert_allclose(forces, felt - wheels.rows(at).T @ torques, atol=0.01 * 4.0 * mean)


def test_without_ripple_motors_balance_everything() -> None:
    """Of mean rows nothing is left, whatever rubs and however it accelerates."""
    mean = wheels_of(6).at_phases(None)
    preview = preview_of(mean, wheel_coulomb=0.3, roller_coulomb=2.0, viscous_x=40.0, viscous_y=60.0)
    forces = np.ones(3)
    _unbalanced(mean.constants, preview._loops, np.array([1.0, 2.0, 3.0, 4.0]), TWIST, np.ones(3), np.zeros(4), forces)
    np.testing.assert_allclose(forces, 0.0, atol=1e-9)
