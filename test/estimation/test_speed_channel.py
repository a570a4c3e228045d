"""Positions against speeds of the same wheels: the sign trap, a wrong scale, a lag."""

from __future__ import annotations

import numpy as np
import pytest
from roller_drives import PROGRAMS, ROBOT, twin_drive

from youbot_dynamics.estimation.odometry import SignCheck
from youbot_dynamics.estimation.odometry._estimator import SpeedChannelCheck

JOINTS = ROBOT.driver.wheel_joints


def check(factors: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0), late: int = 0, program: str = "combined"):
    """Readings of the twin, speeds times factors and some messages late."""
    drive, found = twin_drive(program, 1, seconds=10.0), SpeedChannelCheck(JOINTS)
    speeds = drive.velocity * np.array(factors)
    for k in range(late, len(drive.stamp)):
        found.update(float(drive.stamp[k]), drive.position[k].tolist(), speeds[k - late].tolist())
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_scale_and_lag_are_those_of_the_driver(program: str) -> None:
    """Its speeds are filtered with 10 ms; the stamps jitter by the millisecond."""
    found = check(program=program)
    channels = found.channels()
    print(f"{program}: scale {channels.scale.round(4)}, lag {(1e3 * channels.lag).round(1)} ms")
    assert found.complaints() == ()
    np.testing.assert_allclose(channels.scale, 1.0, atol=4e-3)
    np.testing.assert_allclose(channels.lag, 0.01, atol=5e-3)
    assert np.all(np.abs(channels.lag - 0.01) < 4.0 * channels.lag_error)


def test_a_driver_that_flips_only_its_positions_is_told_by_wheel() -> None:
    complaints = check((-1.0, 1.0, -1.0, 1.0)).complaints()
    assert len(complaints) == 2 and all("wrong sign" in text for text in complaints)
    assert complaints[0].startswith("wheel_joint_fl") and complaints[1].startswith("wheel_joint_bl")


def test_a_wrong_gear_ratio_is_told() -> None:
    (complaint,) = check((1.0, 1.0, 1.0, 1.25)).complaints()
    assert complaint.startswith("wheel_joint_br") and "1.25" in complaint


def test_speeds_that_come_three_messages_late_are_told() -> None:
    found = check(late=3)
    np.testing.assert_allclose(found.channels().lag, 0.07, atol=0.01)
    assert len(found.complaints()) == 4 and all("lags by" in text for text in found.complaints())


def test_nothing_is_said_before_there_was_motion() -> None:
    found = SpeedChannelCheck(JOINTS)
    for k in range(500):
        found.update(0.02 * k, [0.0] * 4, [0.0] * 4)
    assert found.complaints() == () and np.all(np.isnan(found.channels().scale))


def test_the_first_motion_after_a_rest_is_no_wrong_gear_ratio() -> None:
    """Two pieces fit two numbers without a rest: what was read while the wheels stood must not vouch for them."""
    drive, found = twin_drive("combined", 1, seconds=10.0), SpeedChannelCheck(JOINTS)
    for k in range(500):
        found.update(float(drive.stamp[0]) - 0.02 * (500 - k), drive.position[0].tolist(), [0.0] * 4)
    stamps = drive.stamp + np.random.default_rng(1).normal(0.0, 0.01, len(drive.stamp))
    for k in range(len(stamps)):
        found.update(float(stamps[k]), drive.position[k].tolist(), drive.velocity[k].tolist())
        assert found.complaints() == ()


def test_gaps_and_holes_begin_a_new_piece() -> None:
    """A message a second late or without numbers: what the wheel did meanwhile is nobody's fault."""
    found = SpeedChannelCheck(JOINTS)
    for k in range(800):
        time = 0.02 * k + (1.0 if k > 300 else 0.0)
        told = np.full(4, np.nan) if k % 97 == 5 else (3.0 + np.sin(time)) * np.ones(4)
        found.update(time, [3.0 * time - float(np.cos(time))] * 4, told.tolist())
    assert found.complaints() == ()
    np.testing.assert_allclose(found.channels().scale, 1.0, atol=1e-2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wild", [1e308, -1e160])
def test_one_speed_of_another_world_does_not_blind_it_for_ever(wild: float) -> None:
    found = SpeedChannelCheck(JOINTS)
    for k in range(800):
        time = 0.02 * k
        told = np.full(4, wild) if k == 300 else 1.25 * (3.0 + np.sin(time)) * np.ones(4)
        found.update(time, [3.0 * time - float(np.cos(time))] * 4, told.tolist())
    assert len(found.complaints()) == 4 and all("1.25" in text for text in found.complaints())


def test_one_jump_of_an_encoder_is_forgotten_after_half_a_minute_of_motion() -> None:
    found = SpeedChannelCheck(JOINTS)
    told = []
    for k in range(2500):
        time = 0.02 * k
        angles = time - np.cos(0.3 * time) / 0.3 + np.array([100.0 if k > 300 else 0.0, 0.0, 0.0, 0.0])
        found.update(time, angles.tolist(), [1.0 + np.sin(0.3 * time)] * 4)
        told.append(bool(found.complaints()))
    assert any(told) and not any(told[1900:])


def test_votes_on_signs_fade_once_a_driver_is_put_right() -> None:
    found = SignCheck(JOINTS)
    for k in range(3500):
        sign = -1.0 if k < 1500 else 1.0
        found.update(0.02 * k, [0.06 * k] * 4, [3.0 * sign] * 4)
        if k == 1499:
            assert found.contradicting() == JOINTS
    assert found.contradicting() == ()
