"""Wheels of the twin as they are: unequal radii, and rollers whose contact wanders (system 31)."""

from __future__ import annotations

import dataclasses
from math import pi

import numpy as np
import pytest
from base_drives import DRIVER, cruise, drive_busily

from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.roller_phase import contact_angles
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant, counted_wheel_speeds
from youbot_dynamics.simulation.base import _dynamics as dynamics
from youbot_dynamics.simulation.truth import BaseTruth, load_truth


def on_rollers(seed: int, count: float = 6.0, **changes: object) -> BaseTruth:
    return dataclasses.replace(load_truth(seed), rollers=count, **changes)  # type: ignore[arg-type]


def rolling_row(truth: BaseTruth, wheel: int, phi: float) -> np.ndarray:
    """Row of one wheel from the geometry alone: a roller `phi` off the bottom, free to spin about its axis.

    The hub moves as a rigid body with the base and the wheel's spin; at the point on the floor, its velocity along the
    floor may only be across the roller's axis, for the roller takes up that.
    """
    base = truth.mecanum()
    (x, y), radius, d, depth = base.positions[wheel], base.radii[wheel], base.roller_angles[wheel], truth.roller_depth
    # A wheel that rolls forward turns about +y: its bottom moves backwards.
    turn = np.array([[np.cos(phi), 0.0, np.sin(phi)], [0.0, 1.0, 0.0], [-np.sin(phi), 0.0, np.cos(phi)]])
    middle, axis = turn @ [0.0, 0.0, -depth], turn @ [np.cos(d), np.sin(d), 0.0]
    point = middle - axis * middle[0] / axis[0]  # of the axis, above the lowest line of the wheel
    contact = np.array([0.0, point[1], -radius])
    along = axis[:2] / np.hypot(*axis[:2])
    moves = []
    for vx, vy, wz, spin in np.eye(4):
        body = np.array([vx - wz * (y + contact[1]), vy + wz * (x + contact[0])])
        hub = np.cross([0.0, spin, 0.0], contact)[:2]
        moves.append((body + hub) @ along)
    return -np.array(moves[:3]) / moves[3]


@pytest.mark.parametrize("count", [6.0, 9.0])
def test_the_rows_are_those_of_a_roller_that_spins_freely_on_the_floor(count: float) -> None:
    truth = on_rollers(3, count)
    # The lateral factor of the ideal wheel: nothing is scaled.
    truth = dataclasses.replace(truth, lateral_factor=np.sin(pi / count) / (pi / count))
    base = dynamics.constants_of(truth)
    rows, rollers = np.zeros((4, 3)), np.zeros(4)
    for angles in np.random.default_rng(0).uniform(-9.0, 9.0, (50, 4)):
        dynamics.write_rows(base, angles, rows, rollers)
        off = contact_angles(base.rows, angles)
        assert np.all(np.abs(off) <= pi / count * (1 + 1e-12))
        expected = [rolling_row(truth, wheel, phi) for wheel, phi in enumerate(off)]
        np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [6.0, 9.0])
def test_over_whole_rollers_the_base_goes_sideways_by_the_lateral_factor(count: float) -> None:
    truth = on_rollers(2, count, roller_phase=(0.0,) * 4, wheel_radius_error=(0.0,) * 4).without_noise()
    plant = BasePlant(truth, DRIVER, 2)
    plant.command_twist([0.0, 0.1, 0.0])
    turns, poses = [], []
    for k in range(6000):
        plant.advance((k + 1) * 1e-3)
        turns.append(plant.wheel_angles[1])
        poses.append(plant.pose[1])
    pitches = np.arange(1, int(turns[-1] / (2 * pi / count))) * 2 * pi / count
    steps = np.diff(np.interp(pitches, turns, poses)) / (2 * pi / count * truth.wheel_radius)
    np.testing.assert_allclose(steps, truth.lateral_factor, rtol=1e-4)
    instant = np.gradient(poses[1000:], turns[1000:]) / truth.wheel_radius
    assert np.ptp(instant) > 0.9 * (1.0 - np.cos(pi / count))


def test_driving_straight_ahead_rollers_do_not_matter() -> None:
    smooth = cruise(load_truth(0).without_noise(), (0.3, 0.0, 0.0))
    rough = cruise(on_rollers(0).without_noise(), (0.3, 0.0, 0.0))
    np.testing.assert_allclose(rough.pose, smooth.pose, atol=1e-9)


def test_the_phase_of_the_rollers_explains_the_motion_and_the_mean_does_not() -> None:
    truth = on_rollers(5, floor_friction=5.0).without_noise()
    plant = BasePlant(truth, DRIVER, 5)
    base, mean = dynamics.constants_of(truth), truth.mecanum().forward_matrix
    plant.command_twist([0.15, 0.15, 0.3])
    known = constant = np.zeros(3)
    rows, rollers = np.zeros((4, 3)), np.zeros(4)
    for k in range(5000):
        angles = plant.wheel_angles
        plant.advance((k + 1) * 2e-3)
        turned = plant.wheel_angles - angles
        dynamics.write_rows(base, angles + 0.5 * turned, rows, rollers)
        known = planar.integrate(known, np.linalg.pinv(rows) @ turned, 1.0)
        constant = planar.integrate(constant, mean @ turned, 1.0)
    drift, drift_of_mean = (float(np.hypot(*(found - plant.pose)[:2])) for found in (known, constant))
    print(f"\ndrift over 10 s: phase known {1e3 * drift:.2f} mm, mean {1e3 * drift_of_mean:.2f} mm")
    assert drift < 1e-3 and drift < 0.2 * drift_of_mean


def test_without_rollers_the_mean_kinematics_hold() -> None:
    plant = drive_busily(load_truth(6), 6, 3.0)
    np.testing.assert_allclose(plant.wheel_speeds, load_truth(6).mecanum().wheel_speeds(plant.twist), atol=1e-12)
    np.testing.assert_array_equal(plant.roller_angles, np.zeros(4))


def test_every_wheel_rolls_on_its_own_radius() -> None:
    truth = dataclasses.replace(load_truth(7), wheel_radius_error=(0.01, -0.01, 0.005, 0.0))
    plant = cruise(truth, (0.3, 0.0, 0.0))
    way = truth.mecanum().wheel_speeds(plant.twist) * truth.wheel_radii()
    vx, vy, wz = plant.twist
    x, y = truth.half_length, truth.half_width
    slant = np.array([-1.0, 1.0, 1.0, -1.0]) / truth.lateral_factor
    places = np.array([[x, y], [x, -y], [-x, y], [-x, -y]])
    np.testing.assert_allclose(way, vx + slant * (vy + wz * places[:, 0]) - wz * places[:, 1], atol=1e-12)
    # What a driver that knows one radius asks for, the base does not do.
    assert abs(plant.twist[2]) > 1e-3


def test_the_twist_asked_of_unequal_wheels_is_the_one_nearest_to_their_speeds() -> None:
    truth = load_truth(8).without_friction().without_noise()
    plant = cruise(truth, (0.2, 0.1, 0.2), 4.0)
    counted = counted_wheel_speeds(DRIVER, DRIVER.mecanum().wheel_speeds([0.2, 0.1, 0.2]))
    commanded = np.linalg.lstsq(truth.mecanum().inverse_matrix, counted, rcond=None)[0]
    np.testing.assert_allclose(plant.twist, commanded, atol=1e-9)


def test_the_geometry_is_drawn_as_wide_as_the_facts_say() -> None:
    truths = [load_truth(seed) for seed in range(1, 300)]
    for name, nominal, share in (
        ("wheel_radius", 0.0475, 0.05),
        ("half_length", 0.235, 0.03),
        ("half_width", 0.15, 0.03),
    ):
        drawn = np.array([getattr(truth, name) for truth in truths]) / nominal - 1.0
        assert np.max(np.abs(drawn)) <= share + 1e-9 and np.ptp(drawn) > 1.9 * share
    errors = np.array([truth.wheel_radius_error for truth in truths])
    assert np.max(np.abs(errors)) <= 0.01 and np.all(np.ptp(errors, axis=0) > 0.019)
    assert np.max(np.abs(np.corrcoef(errors.T) - np.eye(4))) < 0.2
    factors = [truth.lateral_factor for truth in truths]
    assert min(factors) >= 0.95 and max(factors) <= 0.98


def test_a_calibrated_truth_differs_in_its_geometry_only() -> None:
    truth, geometry = load_truth(9), load_robot().base.geometry
    known = truth.with_geometry(geometry)
    np.testing.assert_array_equal(known.mecanum().inverse_matrix, geometry.mecanum().inverse_matrix)
    changed = {f.name for f in dataclasses.fields(truth) if getattr(truth, f.name) != getattr(known, f.name)}
    sizes = {"wheel_radius", "half_length", "half_width", "lateral_factor", "wheel_radius_error", "steering_offset"}
    assert changed == sizes


@pytest.mark.parametrize("count", [3.0, 6.5])
def test_wheels_of_too_few_or_broken_rollers_are_refused(count: float) -> None:
    with pytest.raises(ModelError, match=f"rollers a wheel: got {count:g}"):
        on_rollers(0, count)
