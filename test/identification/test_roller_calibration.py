"""Geometry and roller phases found together: the ripple of the rollers no longer bends the geometry."""

from __future__ import annotations

import numpy as np
from roller_drives import ROBOT, mean_factor, twin_drive

from youbot_dynamics.identification.calibration import CalibrationSignals, calibrate
from youbot_dynamics.identification.calibration._fit import LEVER
from youbot_dynamics.identification.calibration._poses import calibration_signals
from youbot_dynamics.identification.calibration._rollers import calibrate_with_rollers, without_ripple
from youbot_dynamics.identification.calibration.stage import finish
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.stages import Taken
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import robot_from_values, robot_table, values_of

BELIEVED = ROBOT.base.geometry.wheels()
GEOMETRY = ROBOT.base.geometry
TRUE_LEVER = GEOMETRY.half_length / mean_factor(6) + GEOMETRY.half_width


def signals(seed: int, rollers: int = 6, sensor: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> CalibrationSignals:
    drive = twin_drive("combined", seed, repeats=2, rollers=rollers)
    poses = np.array([planar.compose(pose, np.array(sensor)) for pose in drive.pose])
    return calibration_signals(drive.stamp, drive.position, drive.time, poses)


def lever_error(found) -> float:
    return abs(found[LEVER].value / TRUE_LEVER - 1.0)


def test_rollers_that_are_known_leave_a_better_geometry() -> None:
    errors = []
    for seed in (1, 2, 3):
        one = signals(seed)
        both = calibrate_with_rollers([one], BELIEVED)
        assert both.phases.identified
        errors.append([lever_error(calibrate([one], BELIEVED.base)), lever_error(both.calibration)])
    mean, rolling = np.array(errors).mean(axis=0)
    print(f"lever off by {mean:.2e} with mean rows, {rolling:.2e} with the rollers")
    assert rolling < 0.5 * mean
    assert rolling < 1e-3


def test_the_body_that_is_tracked_may_stand_aside() -> None:
    drive = twin_drive("combined", 1, repeats=2)
    found = calibrate_with_rollers([signals(1, sensor=(0.1, -0.05, 0.8))], BELIEVED)
    assert found.phases.identified
    off = np.array([one.value for one in found.phases.estimates]) - np.array(drive.wheels.phases)
    pitch = BELIEVED.pitch
    assert np.max(np.abs((off + pitch / 2) % pitch - pitch / 2)) < 0.05


def test_wheels_without_ripple_are_calibrated_as_ever() -> None:
    one = signals(1, rollers=0)
    found = calibrate_with_rollers([one], BELIEVED)
    assert not found.phases.identified
    assert found.calibration[LEVER].value == calibrate([one], BELIEVED.base)[LEVER].value


def test_phases_that_cannot_be_asked_for_are_told_and_cost_nothing() -> None:
    one = signals(1)
    few = CalibrationSignals(one.wheel_time, one.wheel_angles, one.pose_time[:3], one.poses[:3])
    found = calibrate_with_rollers([few], BELIEVED)
    assert isinstance(found.phases, str) and "wheel readings with poses" in found.phases
    assert not found.calibration[LEVER].identified


def test_without_ripple_the_mean_rows_tell_the_way() -> None:
    drive = twin_drive("combined", 1)
    one = CalibrationSignals(drive.time, drive.angle, drive.time, drive.pose)
    smooth = without_ripple(one, drive.wheels)
    path = RollingPath(drive.wheels)
    assert path.off(smooth.wheel_angles, drive.pose) < 0.2 * path.off(drive.angle, drive.pose)


def test_a_wheel_that_bears_nothing_moves_nothing_when_it_slips() -> None:
    drive = twin_drive("combined", 1)
    slipping = drive.angle + 0.01 * (drive.angle - drive.angle[0]) * [0.0, 0.0, 1.0, 0.0]
    one = CalibrationSignals(drive.time, slipping, drive.time, drive.pose)
    loads = np.array([1.0, 1.0, 1e-6, 1.0])
    alike, loaded = (
        RollingPath(drive.wheels).off(without_ripple(one, drive.wheels, weights).wheel_angles, drive.pose)
        for weights in (None, loads)
    )
    assert loaded < 0.3 * alike


class RollingPath:
    """How far the mean rows reckon off a path."""

    def __init__(self, wheels) -> None:
        self.mean = wheels.at_phases(None)

    def off(self, angles: np.ndarray, poses: np.ndarray) -> float:
        return float(np.max(np.abs(self.mean.path(angles) - poses)))


def findings_of(one: CalibrationSignals) -> dict[str, Finding]:
    return {finding.name: finding for finding in finish([Taken(0, "drive", one)], ROBOT, lambda number: None).findings}


def test_the_stage_tells_phases_as_parameters_only_where_all_are_found() -> None:
    found = findings_of(signals(1))
    table = {parameter.name: parameter for parameter in robot_table()}
    values = {
        name: table[name].check(float(finding.estimate.value))
        for name, finding in found.items()
        if finding.usable and name in table
    }
    robot = robot_from_values({**values_of(ROBOT), **values})
    phases = robot.base.geometry.roller_phases
    assert phases is not None
    off = phases - np.array(twin_drive("combined", 1, repeats=2).wheels.phases)
    assert np.max(np.abs((off + BELIEVED.pitch / 2) % BELIEVED.pitch - BELIEVED.pitch / 2)) < 0.05
    smooth = findings_of(signals(1, rollers=0))
    assert "robot.base.geometry.roller_phase_fl" not in smooth
    assert not smooth["base.geometry.roller_phase_fl"].usable
