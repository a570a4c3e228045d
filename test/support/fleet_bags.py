"""Short drives of the twin as bags with wheel efforts, for the tests of fleets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from friction_runs import ROBOT, calibrated_truth, drive, multi_sine

from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, TWIST, joint_state_cdr, twist_cdr

EPOCH = 1_500_000_000  # [s] so that the stamps look like a clock's


def nanoseconds(time: float) -> int:
    return EPOCH * 1_000_000_000 + round(time * 1e9)


def write_drive(folder: Path, seed: int, duration: float) -> Path:
    """One drive of the twin `seed` as a rosbag2 folder: the commands, and what the driver reads, efforts included."""
    truth = calibrated_truth(0)  # one robot
    base, driver = ROBOT.base.geometry.mecanum(), ROBOT.driver.mecanum()
    run = drive(multi_sine(duration, seed), truth, seed)
    signs = np.array(ROBOT.driver.position_sign), np.array(ROBOT.driver.velocity_sign)
    positions, efforts = run.positions * signs[0], run.efforts * signs[1]
    velocities = np.gradient(run.positions, run.stamps, axis=0) * signs[1]
    with BagWriter(folder, {"robot_id": ROBOT.robot_id}) as bag:
        bag.add_topic("/driver/cmd_vel", TWIST)
        bag.add_topic("/driver/joint_states", JOINT_STATE)
        for k, sent in enumerate(run.command_time):
            twist = driver.twist(base.wheel_speeds(run.twist[k]))
            bag.write("/driver/cmd_vel", twist_cdr(twist), nanoseconds(sent))
            stamp = nanoseconds(run.stamps[k])
            message = joint_state_cdr(stamp, ROBOT.driver.wheel_joints, positions[k], velocities[k], efforts[k])
            bag.write("/driver/joint_states", message, max(stamp, nanoseconds(sent)) + 100_000)
    return folder


def write_drives(folder: Path, count: int, duration: float = 8.0) -> Path:
    """A folder of drives."""
    for seed in range(count):
        write_drive(folder / f"drive_{seed:02}", seed, duration)
    return folder
