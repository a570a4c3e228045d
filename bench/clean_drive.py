"""A drive of a minute as simulators record it: commands, wheels and poses at 50 Hz without noise, delay or friction."""

from __future__ import annotations

from heapq import merge
from pathlib import Path

import numpy as np

from bench.ten_minutes import rows_of
from youbot_dynamics.identification.delay import LaggedCommand
from youbot_dynamics.identification.response._signals import rolled_path
from youbot_dynamics.identification.signals import HeldCommand
from youbot_dynamics.recording import message_types as types
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.robot import load_robot

DURATION, PERIOD, FINE = 60.0, 0.02, 20  # [s], [s], steps of the simulation in a period
DEAD_TIME, LAG = 0.06, 0.05  # [s] of every axis
FASTEST, STEEPEST = np.array([0.3, 0.2, 0.6]), np.array([0.6, 0.6, 1.5])  # [m/s, m/s, rad/s], the same a second


def write_clean_drive(folder: Path) -> Path:
    """Write the bag; return its folder."""
    robot, random = load_robot(), np.random.default_rng(9)
    base, wheels = robot.base.geometry.mecanum(), robot.driver.wheel_joints
    sent = np.arange(0.0, DURATION, PERIOD)
    goals = np.repeat(random.uniform(-1.0, 1.0, (round(DURATION / 1.2) + 1, 3)) * FASTEST, 60, axis=0)[: len(sent)]
    goals[(sent < 2.0) | (sent > DURATION - 3.0)] = 0.0
    twists = np.zeros_like(goals)
    for k in range(1, len(sent)):
        change = goals[k] - twists[k - 1]
        twists[k] = twists[k - 1] + np.clip(change, -STEEPEST * PERIOD, STEEPEST * PERIOD)
    time = np.arange(0.0, DURATION, PERIOD / FINE)
    commands = [LaggedCommand(HeldCommand(sent, twist, 0.0), LAG) for twist in twists.T]
    body = np.column_stack([command.at(time - DEAD_TIME).motion for command in commands])
    poses, seen = rolled_path(body)[::FINE], time[::FINE]
    angles = (body @ base.inverse_matrix.T)[::FINE] * np.array(robot.driver.position_sign)
    speeds = twists @ base.inverse_matrix.T
    topics = (
        rows_of(
            "/wheel_commands",
            types.JOINT_STATE,
            sent,
            lambda ns, k: types.joint_state_cdr(ns, wheels, velocity=speeds[k]),
        ),
        rows_of(
            "/driver/joint_states", types.JOINT_STATE, seen, lambda ns, k: types.joint_state_cdr(ns, wheels, angles[k])
        ),
        rows_of("/ground_truth", types.POSE_STAMPED, seen, lambda ns, k: types.pose_stamped_cdr(ns, "world", poses[k])),
    )
    with BagWriter(folder, {"robot_id": robot.robot_id}) as bag:
        for received, topic, kind, cdr in merge(*topics, key=lambda row: row[0]):
            bag.add_topic(topic, kind)
            bag.write(topic, cdr, received)
    return folder
