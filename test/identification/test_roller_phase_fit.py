"""Phases of the rollers from wheels and poses of one drive: right, with honest intervals, and refused where absent."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from roller_drives import PERIOD, ROBOT, RollerDrive, mujoco_drive, twin_drive, twin_truth, twists_of

from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.estimation.odometry import Odometry
from youbot_dynamics.identification.calibration import CalibrationSignals
from youbot_dynamics.identification.calibration._poses import recorded_calibration_signals
from youbot_dynamics.identification.calibration._rollers import (
    RollerPhaseFit,
    _check_counts,
    _Pieces,
    fit_roller_phases,
)
from youbot_dynamics.identification.comparison import sample_poses
from youbot_dynamics.identification.signals import even_stamps
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase, mean_factor
from youbot_dynamics.kinematics.roller_phase import RollingWheels
from youbot_dynamics.messages.drive_bag import write_bag
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.simulation.scenario import drive as drive_lock_step
from youbot_dynamics.simulation.youbot import BaseOnly

BELIEVED = RollingWheels.ideal(ROBOT.base.geometry.mecanum())


def fit(drive: RollerDrive, noise: float = 0.0, believed: RollingWheels = BELIEVED) -> RollerPhaseFit:
    """Fit with poses of some noise [m]; headings with twice that [rad]."""
    poses = drive.pose + noise * np.random.default_rng(0).standard_normal(drive.pose.shape) * [1.0, 1.0, 2.0]
    return fit_roller_phases(CalibrationSignals(drive.stamp, drive.position, drive.time, poses), believed)


def check_phases(found: RollerPhaseFit, truth: np.ndarray, at_most: float, slack: float = 0.0) -> None:
    """Phases within a bound of the true ones, and these within the intervals, widened by some slack [rad]."""
    pitch = found.wheels.pitch
    off = np.array([estimate.value for estimate in found.estimates]) - truth
    off = (off + 0.5 * pitch) % pitch - 0.5 * pitch
    reach = np.array([0.5 * (estimate.interval[1] - estimate.interval[0]) for estimate in found.estimates])
    print(f"off by {off.round(4)} rad, intervals +-{reach.round(4)}")
    assert np.max(np.abs(off)) < at_most
    assert np.sum(np.abs(off) < reach + slack) >= 3
    assert found.identified and found.wheels.phases is not None


@pytest.mark.parametrize("program", ["translation", "rotation", "combined"])
def test_phases_are_found_from_true_poses(program: str) -> None:
    """Readings with quanta and jitter of the stamps."""
    drive = twin_drive(program, 1)
    found = fit(drive)
    check_phases(found, drive.wheels.phases, 0.03, slack=5e-3)
    inside = (drive.stamp >= drive.time[0]) & (drive.stamp <= drive.time[-1])
    path = sample_poses(drive.time, drive.pose, even_stamps(drive.stamp, drive.position)[inside])
    mean, rolling = (
        np.sqrt(np.mean((planar.move_path(path[0], wheels.path(drive.position[inside])) - path) ** 2, axis=0))
        for wheels in (BELIEVED, found.wheels)
    )
    print(f"reckoned off by {mean} m, m, rad with mean rows, {rolling} with phases")
    assert np.all(rolling < 0.3 * mean)


def test_phases_are_found_by_a_motion_capture_of_half_a_millimetre() -> None:
    drive = twin_drive("combined", 1, repeats=3)
    check_phases(fit(drive, 5e-4), drive.wheels.phases, 0.1)


def test_a_robot_that_is_not_calibrated_does_not_bend_them() -> None:
    """Radii, levers and lateral factor a few per cent off: the phase is told apart from all of them."""
    drive = twin_drive("combined", 2, calibrated=False)
    check_phases(fit(drive), drive.wheels.phases, 0.06, slack=0.02)


def test_wheels_without_ripple_have_no_phase() -> None:
    """Smooth wheels: the best phase is worth less than none, and is refused with the reason."""
    found = fit(twin_drive("combined", 1, rollers=0))
    assert not found.identified and found.wheels.phases is None
    assert all("not identifiable" in estimate.verdict for estimate in found.estimates)


def test_another_number_of_rollers_fits_worse() -> None:
    drive = twin_drive("combined", 1)
    nine = fit(drive, believed=RollingWheels.ideal(BELIEVED.base, 9))
    assert not nine.identified


def test_odometry_is_better_for_them() -> None:
    """One bag for the phases, another drive of the same robot for the proof."""
    found = fit(twin_drive("combined", 1))
    drive = twin_drive("translation", 1)
    left = {}
    for wheels in (found.wheels, BELIEVED):
        odometry = Odometry(ROBOT, wheels)
        poses = [odometry.update(float(t), p) for t, p in zip(drive.stamp, drive.position, strict=True)][1:]
        errors = np.array([state.pose for state in poses if state is not None]) - drive.pose[1:]
        left[wheels is BELIEVED] = np.hypot(errors[:, 0], errors[:, 1]).std()
    print(f"place: {left[False]:.5f} m with the phases found, {left[True]:.5f} m without")
    assert left[False] < 0.3 * left[True]


def test_a_wheel_that_hardly_turned_says_so() -> None:
    drive = twin_drive("combined", 1)
    still = dataclasses.replace(drive, position=drive.position * [1.0, 1.0, 1e-3, 1.0])
    found = fit(still)
    assert "turned by" in found.estimates[2].verdict and np.isnan(found.estimates[2].value)
    assert not found.identified and found.wheels.phases is None


@pytest.mark.parametrize("jump", [0.5, 20.0])
def test_counts_that_jump_have_no_phases(jump: float) -> None:
    drive = twin_drive("combined", 1)
    position = drive.position.copy()
    position[500:, 1] += jump
    with pytest.raises(IdentificationError, match="wheel angles that jump, first by"):
        fit(dataclasses.replace(drive, position=position))


def test_the_steps_of_a_piece_add_up_to_what_lies_between_its_ends() -> None:
    angles = np.random.default_rng(0).normal(size=(100, 4))
    pieces = _Pieces.cut(0.01 * np.arange(100), angles, np.zeros((99, 3)))
    between = angles[pieces.last] - angles[pieces.first]
    np.testing.assert_allclose(pieces.sums(np.diff(angles, axis=0)), between, atol=1e-12)


def test_stamps_that_are_irregular_are_no_counts_that_jump() -> None:
    times = np.arange(0.0, 30.0, 0.02)
    angles = np.outer(10.0 * times, np.ones(4))
    times[700] = times[699] + 0.0005  # 0.2 rad in half a millisecond looks like 400 rad/s
    _check_counts(times, angles)
    angles[900:, 2] += 0.5
    with pytest.raises(IdentificationError, match=rf"at {times[900]:.3f} s"):
        _check_counts(times, angles)


def test_too_little_is_refused() -> None:
    drive = twin_drive("combined", 1)
    with pytest.raises(IdentificationError, match="100 wheel readings"):
        fit(dataclasses.replace(drive, stamp=drive.stamp[:100], position=drive.position[:100]))


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bag of a closed-loop drive of a robot with rollers."""
    folder = tmp_path_factory.mktemp("rollers") / "bag"
    plant = BaseOnly(twin_truth(1), ROBOT.driver, 1)
    trajectory = Program("combined", twists_of("combined"), PERIOD).trajectory()
    write_bag(drive_lock_step(trajectory, ROBOT, plant, 1), ROBOT, folder)
    return folder


def test_phases_are_found_from_a_bag(bag: Path) -> None:
    found = fit_roller_phases(recorded_calibration_signals(open_bag(bag), ROBOT, {}), BELIEVED)
    check_phases(found, twin_drive("combined", 1).wheels.phases, 0.03, slack=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("program", ["translation", "rotation", "combined"])
def test_phases_of_contact_physics_are_found(program: str, rollers: int) -> None:
    pytest.importorskip("mujoco")
    drive = mujoco_drive(program, 1, rollers=rollers)
    geometry = ROBOT.base.geometry
    base = MecanumBase.rectangular(
        geometry.wheel_radius, geometry.half_length, geometry.half_width, mean_factor(rollers)
    )
    check_phases(fit(drive, believed=RollingWheels.ideal(base, rollers)), drive.wheels.phases, 0.05, slack=0.01)
