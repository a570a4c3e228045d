"""A lock-step drive as the bag a live run would have left: same topics, types, frames and metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from youbot_dynamics import __version__
from youbot_dynamics.arrays import Vector, made_of
from youbot_dynamics.kinematics.planar import covariance_in_space
from youbot_dynamics.kinematics.steering import joint_commands
from youbot_dynamics.recording import message_types as types
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.robot import Robot, values_of
from youbot_dynamics.simulation.driver_reports import BASE_FRAME, ODOM_FRAME, JointReport
from youbot_dynamics.simulation.scenario import Drive

EPOCH = 1_500_000_000  # [s] where the clock of a simulation begins in a bag, so that its stamps look like a clock's
_AXES = ("x", "y", "yaw")
_SLOWLY = 25  # passes of the driver's loop between two true temperatures


def write_bag(drive: Drive, robot: Robot, folder: Path | str, feedback: bool = True) -> None:
    """Write a drive as a rosbag2 folder; what is in it depends on the drive alone, not on the machine or the hour.

    Args:
        drive: of `scenario.drive`.
        robot: what the controllers believed.
        folder: new or empty.
        feedback: whether the tracker corrected errors; the metadata say so, as those of a recording do.

    Raises:
        InputError: a drive or a robot that is none.
        RecordingError: the folder holds something already, or cannot be written.
        ResourceError: rosbags or mcap is not installed.

    Example:
        >>> yd.write_bag(run, robot, "drive_of_twin_0")  # as driven in the example of `drive`
    """
    made_of("drive", drive, Drive)
    made_of("robot", robot, Robot)
    notes = {
        "youbot_dynamics": __version__,
        "robot_id": robot.robot_id,
        "parameters": json.dumps(values_of(robot)),
        "feedback": json.dumps(feedback),
    }
    rows = [*_commands(drive, robot), *_readings(drive, robot), *_truths(drive, robot)]
    with BagWriter(folder, notes) as bag:
        for time, topic, type_name, cdr in sorted(rows, key=lambda row: row[0]):
            bag.add_topic(topic, type_name)
            bag.write(topic, cdr, _ns(time))


_Row = tuple[float, str, str, bytes]  # time of reception [s], topic, type, message


def _commands(drive: Drive, robot: Robot) -> Iterator[_Row]:
    """What our nodes sent."""
    desired, wheels = drive.desired, robot.driver.wheel_joints
    path = types.trajectory_cdr(_ns(drive.start), BASE_FRAME, BASE_FRAME, desired.times, desired.poses, desired.twists)
    yield 0.0, "/trajectory", types.MULTI_DOF_TRAJECTORY, path
    for sent in drive.sent:
        position, velocity = None, sent.wheel_speeds
        if sent.steering is not None:
            position, velocity = joint_commands(sent.wheel_speeds, sent.steering)
        speeds = types.joint_state_cdr(_ns(sent.stamp), wheels, position, velocity)
        yield sent.stamp, "/wheel_commands", types.JOINT_STATE, speeds
        yield sent.stamp, "/driver/cmd_vel", types.TWIST, types.twist_cdr(sent.driver_twist)
    for request in drive.tracker_requests:
        error = types.joint_state_cdr(_ns(request.pose_stamp), _AXES, request.state.error, request.state.error_rate)
        yield request.stamp, "/trajectory_tracker/cmd_vel", types.TWIST, types.twist_cdr(request.twist)
        yield request.stamp, "/trajectory_tracker/error", types.JOINT_STATE, error


def _readings(drive: Drive, robot: Robot) -> Iterator[_Row]:
    """What the driver said, and what odometry made of it."""
    for message in drive.messages:
        report = message.report
        if isinstance(report, JointReport):
            yield message.received, "/driver/joint_states", types.JOINT_STATE, _joints(report)
            yield message.received, "/joint_states", types.JOINT_STATE, _joints(_with_our_signs(report, robot))
        else:
            odometry = _odometry(report.stamp, report.pose, report.twist)
            yield message.received, "/driver/odom", types.ODOMETRY, odometry
    for time, state in zip(drive.odometry_time.tolist(), drive.odometry, strict=True):
        covariances = covariance_in_space(state.covariance), covariance_in_space(state.twist_covariance)
        odometry = _odometry(state.stamp, state.pose, state.twist, *covariances)
        yield time, "/odom", types.ODOMETRY, odometry


def _truths(drive: Drive, robot: Robot) -> Iterator[_Row]:
    """What only a simulation knows."""
    joints = robot.driver.arm_joints
    for k, time in enumerate(drive.reading_time.tolist()):
        stamp, arm = _ns(time), drive.arm
        yield time, "/ground_truth", types.ODOMETRY, _odometry(time, drive.true_pose[k], drive.true_twist[k])
        if arm is None:
            continue
        moving = types.joint_state_cdr(stamp, joints, arm.position[k], arm.speed[k], arm.torque[k])
        yield time, "/ground_truth/arm", types.JOINT_STATE, moving
        if k % _SLOWLY == 0:
            for part, warm in (("winding", arm.winding), ("housing", arm.housing)):
                temperatures = types.joint_state_cdr(stamp, joints, effort=warm[k])
                yield time, f"/ground_truth/{part}_temperature", types.JOINT_STATE, temperatures


def _with_our_signs(report: JointReport, robot: Robot) -> JointReport:
    """Report in which every wheel turns positive when it rolls forward, as odometry republishes it."""
    driver = robot.driver
    at = {name: k for k, name in enumerate(driver.wheel_joints)}
    position_sign = np.array([driver.position_sign[at[name]] if name in at else 1.0 for name in report.names])
    velocity_sign = np.array([driver.velocity_sign[at[name]] if name in at else 1.0 for name in report.names])
    effort = report.effort.copy()
    shared = min(len(effort), len(velocity_sign))
    effort[:shared] *= velocity_sign[:shared]
    return replace(
        report,
        position=report.position * position_sign[: len(report.position)],
        velocity=report.velocity * velocity_sign[: len(report.velocity)],
        effort=effort,
    )


def _joints(report: JointReport) -> bytes:
    return types.joint_state_cdr(_ns(report.stamp), report.names, report.position, report.velocity, report.effort)


def _odometry(stamp: float, pose: Vector, twist: Vector, *covariances: Vector) -> bytes:
    return types.odometry_cdr(_ns(stamp), ODOM_FRAME, BASE_FRAME, pose, twist, *covariances)


def _ns(time: float) -> int:
    return EPOCH * 1_000_000_000 + round(time * 1e9)
