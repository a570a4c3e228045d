"""Signals of a text log: what its driver knew of the geometry, and when its commands were sent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from youbot_dynamics.identification.reading import untold_rows
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.recording.bag import LogRecording
from youbot_dynamics.recording.text_log import read_text_log
from youbot_dynamics.robot import load_robot

ROBOT = load_robot()


def test_a_driver_that_did_not_know_the_radii_has_sent_a_turn_with_each_way(tmp_path):
    """Radii that the run itself finds made its delay in yaw "explain only 75 % of the motion"."""
    geometry = ROBOT.base.geometry
    as_sent = geometry.mecanum()
    calibrated = replace(geometry, wheel_radius_error_fl=0.01, wheel_radius_error_rl=0.01)
    robot = replace(ROBOT, base=replace(ROBOT.base, geometry=calibrated))
    time = 0.02 * np.arange(500)
    twists = np.column_stack([0.3 * np.sign(np.sin(0.7 * time)), np.zeros((500, 2))])
    angles = np.cumsum(0.02 * twists @ as_sent.inverse_matrix.T, axis=0)
    log = tmp_path / "log.csv"
    np.savetxt(log, np.column_stack([time, twists[:, 0], angles]), delimiter=",", fmt="%.9f")
    joints = ",".join(f"position.{name}" for name in robot.driver.wheel_joints)
    recording = LogRecording(read_text_log(log, f"time,command.x,{joints}"))
    signals = base_signals(recording, robot, {}, sent_with=as_sent)
    speeds = np.diff(signals.measured, axis=0) / 0.02
    gains = np.diag(robot.base.geometry.mecanum().forward_matrix @ as_sent.inverse_matrix)
    np.testing.assert_allclose(speeds, (signals.command * gains)[1:], atol=1e-6)
    assert np.max(np.abs(signals.command[:, 2])) > 1e-3
    np.testing.assert_allclose(signals.command[:, 0], twists[:, 0], atol=1e-12)


def test_wheels_were_read_before_the_driver_stamped_them(tmp_path):
    time = 0.02 * np.arange(500)
    angles = np.outer(np.cumsum(0.3 * np.sin(time)), np.ones(4))
    np.savetxt(tmp_path / "log.csv", np.column_stack([time, np.sin(time), angles]), delimiter=",")
    joints = ",".join(f"position.{name}" for name in ROBOT.driver.wheel_joints)
    recording = LogRecording(read_text_log(tmp_path / "log.csv", f"time,command.x,{joints}"))
    late = replace(ROBOT, base=replace(ROBOT.base, delay=replace(ROBOT.base.delay, stamps=0.06)))
    prompt, earlier = (base_signals(recording, robot, {}) for robot in (ROBOT, late))
    np.testing.assert_allclose(prompt.measured_time - earlier.measured_time, 0.06, atol=1e-9)
    np.testing.assert_array_equal(prompt.command_time, earlier.command_time)


def test_only_commands_in_rows_of_the_motion_may_have_been_sent_before_them(tmp_path):
    """Commands of a merged log have rows and times of their own."""
    time = 0.1 * np.arange(20)
    shared = np.column_stack([time, np.sin(time), np.cos(time), np.full(20, 0.0)])
    own = np.array(
        [[*row[:2], np.nan, np.nan] for row in shared] + [[row[0] + 0.03, np.nan, *row[2:]] for row in shared]
    )
    rows = []
    for name, table in (("shared", shared), ("own", own[np.argsort(own[:, 0])])):
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",")
        rows.append(untold_rows(read_text_log(tmp_path / f"{name}.csv", "time,command.x,measured.x,measured.yaw")))
    assert rows == [{"x": pytest.approx(0.1)}, {}]
