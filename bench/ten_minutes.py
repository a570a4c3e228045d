"""A drive of ten minutes as a bag of a million messages: wheels, arm, odometry and motion capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification.base_friction import FrictionModel
from youbot_dynamics.recording import message_types as types
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.robot import load_robot

Vector = NDArray[np.float64]
Row = tuple[int, str, str, bytes]  # time [ns], topic, type, message

DURATION, STEP = 600.0, 1e-3  # [s]
EPOCH = 1_500_000_000_000_000_000  # [ns] so that the stamps look like a clock's
DELAY = 150  # steps from a command to the motion
TRUTH = {"viscous_x": 15.0, "viscous_y": 20.0, "roller_coulomb": 0.3, "wheel_coulomb": 0.12}
# Amplitude and frequency [Hz] of two sines of x, y [m/s] and yaw [rad/s].
WAVES = ((0.25, 0.11, 0.12, 0.53), (0.22, 0.17, 0.13, 0.41), (0.5, 0.23, 0.3, 0.61))
UPRIGHT = np.array([2.95, 1.13, -2.55, 1.79, 2.92])  # [rad] the arm's
SWINGS = np.array([[0.8, 0.07], [0.4, 0.11], [0.5, 0.13], [0.6, 0.17], [0.9, 0.19]])  # [rad], [Hz] about it
ARM_STEPS, SLOW_STEPS = 15, 5  # steps from message to message: the arm four times in it, the others once
SPEED_NOISE, TORQUE_NOISE = 0.05, 0.05  # [rad/s], [N m]


def rows_of(topic: str, kind: str, time: Vector, message: Callable[[int, int], bytes]) -> Iterator[Row]:
    """Messages of a topic: `message` gets a stamp [ns] and the row."""
    for row, stamp in enumerate((EPOCH + np.round(time * 1e9).astype(np.int64)).tolist()):
        yield stamp + 200_000, topic, kind, message(stamp, row)


def write_ten_minutes(folder: Path) -> Path:
    """Write the bag: 1 kHz of the wheels, 267 Hz of the arm, 200 Hz of the rest; return its folder."""
    robot, random = load_robot(), np.random.default_rng(7)
    driver, arm = robot.driver, robot.arm.model().tree
    friction = FrictionModel(
        robot.base.geometry.mecanum(), robot.base.mass, robot.base.yaw_inertia, robot.base.wheel_inertia
    )
    base, time = friction.base, np.arange(round(DURATION / STEP)) * STEP
    paces = 2.0 * np.pi * np.array(WAVES)[:, 1::2]
    sizes = np.array(WAVES)[:, ::2]
    wanted = np.sum(sizes * np.sin(time[:, None, None] * paces), axis=2)  # (n, 3)
    twist, rate = np.zeros_like(wanted), np.zeros_like(wanted)
    twist[DELAY:] = wanted[:-DELAY]
    rate[DELAY:] = np.sum(sizes * paces * np.cos(time[:-DELAY, None, None] * paces), axis=2)
    speeds = base.wheel_speeds(twist)
    still = np.zeros_like(rate)
    rollers = np.repeat(np.sign(twist[:, 1:2]), 4, axis=1)
    table = friction.columns(twist, (still, still), np.sign(speeds), rollers)[:, :, :4]
    torques = (table @ list(TRUTH.values()) + friction.known_force(twist, rate)) @ base.forward_matrix
    torques += TORQUE_NOISE * random.standard_normal(torques.shape)
    angles = np.cumsum(speeds, axis=0) * STEP + SPEED_NOISE * STEP * random.standard_normal(speeds.shape)
    yaw = np.cumsum(twist[:, 2]) * STEP
    ahead, aside = np.cos(yaw), np.sin(yaw)
    along = [ahead * twist[:, 0] - aside * twist[:, 1], aside * twist[:, 0] + ahead * twist[:, 1]]
    poses = np.column_stack([*(np.cumsum(speed) * STEP for speed in along), yaw])

    moments = np.arange(round(4 * DURATION / (ARM_STEPS * STEP))) * ARM_STEPS * STEP / 4
    turn = 2.0 * np.pi * SWINGS[:, 1]
    q = UPRIGHT + SWINGS[:, 0] * np.sin(turn * moments[:, None])
    v = SWINGS[:, 0] * turn * np.cos(turn * moments[:, None])
    efforts = arm.inverse_dynamics(q, v, -(turn**2) * (q - UPRIGHT)) + 0.5 * np.sign(v) + 1.0 * v
    efforts += TORQUE_NOISE * random.standard_normal(efforts.shape)
    position_sign, velocity_sign = np.array(driver.position_sign), np.array(driver.velocity_sign)
    told = angles * position_sign, speeds * velocity_sign, torques * velocity_sign
    slow = slice(None, None, SLOW_STEPS)
    body, place = twist[slow], poses[slow]
    wheels, joints, often = driver.wheel_joints, driver.arm_joints, time[slow]
    readings = "/driver/joint_states", types.JOINT_STATE
    topics = (
        rows_of(*readings, time, lambda ns, k: types.joint_state_cdr(ns, wheels, *(column[k] for column in told))),
        rows_of(*readings, moments, lambda ns, k: types.joint_state_cdr(ns, joints, q[k], v[k], efforts[k])),
        rows_of(
            "/odom",
            types.ODOMETRY,
            often,
            lambda ns, k: types.odometry_cdr(ns, "odom", "base_link", place[k], body[k]),
        ),
        rows_of(
            "/ground_truth", types.POSE_STAMPED, often, lambda ns, k: types.pose_stamped_cdr(ns, "world", place[k])
        ),
    )
    with BagWriter(folder, {"robot_id": robot.robot_id}) as bag:
        for received, topic, kind, cdr in merge(*topics, key=lambda row: row[0]):
            bag.add_topic(topic, kind)
            bag.write(topic, cdr, received)
    return folder
