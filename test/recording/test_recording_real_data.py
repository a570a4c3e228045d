"""Real recordings of other robots, kept outside the repository."""

from __future__ import annotations

import numpy as np
import pytest
from repository import DATA
from rosbags.highlevel import AnyReader

from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.text_log import read_text_log

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="data folder absent")


def test_ros1_wheel_states_and_motion_capture_are_read() -> None:
    recording = open_bag(DATA / "mecanum_polimi" / "bag1.bag")
    wheels = recording.joint_states("/wheel_states", ["rear_left", "front_left"])
    assert wheels.velocity.shape == (2871, 2) and wheels.rejected == 0
    assert np.median(np.diff(wheels.stamp)) == pytest.approx(1 / 48.9, rel=0.05)
    assert np.isnan(wheels.effort).all()
    pose = recording.poses("/robot/pose")
    assert pose.pose.shape == (9924, 3)
    assert pose.stamp[-1] - pose.stamp[0] == pytest.approx(58.8, abs=0.2)
    assert np.abs(pose.pose[:, 2]).max() <= np.pi
    assert recording.lost == ""


def test_ros1_odometry_is_read() -> None:
    """Its poses move as fast as its own twists say."""
    path, topic = DATA / "husky_robot_localization" / "test1.bag", "/husky_velocity_controller/odom"
    odometry = open_bag(path).poses(topic)
    assert odometry.pose.shape == (3952, 3)
    with AnyReader([path]) as reader:
        messages = reader.messages([connection for connection in reader.connections if connection.topic == topic])
        decoded = (reader.deserialize(raw, connection.msgtype) for connection, _, raw in messages)
        forward = np.array([message.twist.twist.linear.x for message in decoded])
    speed = np.hypot(*np.diff(odometry.pose[:, :2], axis=0).T) / np.diff(odometry.stamp)
    assert np.corrcoef(speed, np.abs(forward[1:]))[0, 1] > 0.75
    assert np.median(speed) == pytest.approx(np.median(np.abs(forward)), rel=0.2)


def test_semicolon_logs_with_three_header_lines_are_read() -> None:
    folder = DATA / "robotino2_brylev"
    names = "time:ms,command.m1:rad/s,command.m2,command.m3,_,_,_,measured.m1,measured.m2,measured.m3"
    for file in sorted((folder / "dc_motor_model_identification").glob("*.csv")):
        log = read_text_log(file, names)
        assert log.time.size == len(file.read_text().splitlines()) - 3
        assert np.median(np.diff(log.time)) == pytest.approx(0.03, rel=0.1)
        assert log.command["m1"][0] == 25.0
    drive = read_text_log(
        folder / "one_surface_type" / "table_surface" / "exp12.csv",
        "time:ms,command.x:m/s,command.y,command.yaw:rad/s" + ",_" * 20 + ",_",
    )
    assert drive.time.size == 578 and drive.command["x"][0] == 0.05
