"""Wheel speeds for the rollers to come, and when the phases they rest on no longer hold."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from roller_drives import ROBOT, RollerDrive, twin_drive

from youbot_dynamics.control import roller_preview
from youbot_dynamics.control.phase_guard import PhaseGuard
from youbot_dynamics.control.roller_preview import RollerPreview
from youbot_dynamics.dynamics.driven_base import DrivenBase
from youbot_dynamics.kinematics.roller_phase import RollingWheels
from youbot_dynamics.robot import Robot

HOLD = 0.02
WHEELS = RollingWheels.ideal(ROBOT.base.geometry.mecanum(), 6, [0.1, -0.4, 0.3, 0.05])
TWIST = np.array([0.2, 0.15, 0.4])


def stiff(dead_time: float) -> DrivenBase:
    """A base whose loops do what they are told, one dead time later."""
    return DrivenBase(ROBOT.base.dynamics(), np.full(3, dead_time), 0.0, 0.0)


def rolled_on(angles: np.ndarray, twist: np.ndarray, time: float) -> np.ndarray:
    """Wheel angles after some time [s] at a twist, in small steps."""
    steps = max(1, round(time / 1e-4))
    for _ in range(steps):
        angles = angles + WHEELS.wheel_speeds(angles, twist) * time / steps
    return angles


@pytest.mark.parametrize("dead_time", [0.0, 0.15])
def test_a_stiff_base_is_sent_the_rows_of_the_rollers_it_will_stand_on(dead_time: float) -> None:
    """At constant speed: the mean over the hold of the wheel speeds of the twist, where the wheels will then be."""
    preview = RollerPreview(WHEELS, stiff(dead_time), HOLD)
    angles = np.array([1.0, -2.0, 3.0, 0.4])
    preview.observe(0.0, angles)
    for k in range(60):
        now = k * HOLD
        speeds = preview.wheel_speeds(now, TWIST)
        if now > dead_time + 0.1:
            begin = rolled_on(angles, TWIST, dead_time + HOLD / 2)
            end = rolled_on(begin, TWIST, HOLD)
            expected = (end - begin) / HOLD
            assert np.max(np.abs(expected - WHEELS.base.wheel_speeds(TWIST))) > 0.0
            np.testing.assert_allclose(speeds, expected, atol=0.05)
        # The reading between this command and the next: the wheels turn as if they had been rolling.
        if now >= dead_time:
            angles = rolled_on(angles, TWIST, HOLD / 2 if now - HOLD < dead_time else HOLD)
        preview.observe(now + HOLD / 2, angles)


def test_without_a_reading_or_with_an_old_one_the_mean_rows_speak() -> None:
    preview = RollerPreview(WHEELS, stiff(0.1), HOLD)
    mean = WHEELS.base.wheel_speeds(TWIST)
    np.testing.assert_allclose(preview.wheel_speeds(0.0, TWIST), mean)
    preview.observe(0.0, np.zeros(4))
    for k in range(20):
        preview.wheel_speeds(k * HOLD, TWIST)
    assert np.max(np.abs(preview.wheel_speeds(0.4, TWIST) - mean)) > 0.05
    np.testing.assert_allclose(preview.wheel_speeds(10.0, TWIST), mean)


def test_axes_are_served_each_at_its_own_dead_time() -> None:
    """At constant speed an axis gets what it would get if all axes came at its time."""
    dead_times = [0.06, 0.2, 0.12]
    bases = [stiff(dead_time) for dead_time in dead_times]
    bases.append(DrivenBase(ROBOT.base.dynamics(), np.array(dead_times), 0.0, 0.0))
    previews = [RollerPreview(WHEELS, base, HOLD) for base in bases]
    angles, spread = np.zeros(4), 0.0
    for k in range(80):
        sent = []
        for preview in previews:
            preview.observe(k * HOLD - 0.01, angles)
            sent.append(WHEELS.base.twist(preview.wheel_speeds(k * HOLD, TWIST)) - TWIST)
        if k >= 40:
            alike, own = np.diag(np.array(sent[:3])), sent[3]
            np.testing.assert_allclose(own, alike, atol=4e-3)
            spread = max(spread, np.ptp(np.array(sent[:3]), axis=0).max())
        angles = rolled_on(angles, TWIST, HOLD)
    assert spread > 0.015


def test_viscous_drag_holds_each_wheels_place_back_by_its_own_speed() -> None:
    """Without other friction: the drag of four places that move with the base, less what the motors balance of it."""
    viscous, angles = np.array([30.0, 50.0]), np.array([0.1, -0.2, 0.05, 0.3])
    loops = RollerPreview(WHEELS, stiff(0.0), HOLD)._loops._replace(
        viscous=viscous, coulomb=0.0, sideways=np.zeros(4), body=np.zeros(3)
    )
    places = [np.array([[1.0, 0.0, -y], [0.0, 1.0, x]]) for x, y in WHEELS.constants.positions]
    drag = sum(place.T @ np.diag(viscous / 4.0) @ place for place in places) @ TWIST
    forces = np.empty(3)
    roller_preview._unbalanced(WHEELS.constants, loops, angles, TWIST, np.zeros(3), np.empty(4), forces)
    np.testing.assert_allclose(forces, drag - WHEELS.rows(angles).T @ loops.forward.T @ drag, atol=1e-12)


def robot_at(phases: np.ndarray) -> Robot:
    names = ("roller_phase_fl", "roller_phase_fr", "roller_phase_rl", "roller_phase_rr")
    values = dict(zip(names, phases.tolist(), strict=True))
    geometry = dataclasses.replace(ROBOT.base.geometry, roller_phase_error=0.01, **values)
    return dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, geometry=geometry))


def lost_after(drive: RollerDrive, phases: np.ndarray) -> str:
    guard = PhaseGuard(robot_at(phases))
    for stamp, position in zip(drive.stamp, drive.position, strict=True):
        guard.update(stamp, position)
    return guard.lost


def test_phases_that_are_right_hold_and_wrong_ones_are_found_out() -> None:
    drive = twin_drive("combined", 1)
    phases = np.array(drive.wheels.phases)
    assert lost_after(drive, phases) == ""
    assert "does not follow the rollers" in lost_after(drive, phases + [0.5, -0.4, 0.3, 0.5])


def test_phases_are_lost_with_the_count() -> None:
    guard = PhaseGuard(robot_at(np.zeros(4)))
    guard.update(0.0, np.zeros(4))
    assert guard.update(0.02, np.full(4, 0.1)) == ""
    assert guard.update(0.04, np.full(4, 40.0)) == "the wheel counts jumped"
    limit = ROBOT.base.limits.wheel_speed
    for times, lost in ((1.9, ""), (2.5, "the wheel counts jumped")):
        fast = PhaseGuard(robot_at(np.zeros(4)))
        fast.update(0.0, np.zeros(4))
        assert fast.update(1.0, np.full(4, times * limit)) == lost
    silent = PhaseGuard(robot_at(np.zeros(4)))
    assert silent.update(0.0, [0.0, np.nan, 0.0, 0.0]) == "a wheel has no angle"
    assert PhaseGuard(ROBOT).lost == "none are known"
