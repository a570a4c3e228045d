"""A bag of wheel states, and how a user would read it with mcap-ros2-support, for two benches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, TWIST, joint_state_cdr, twist_cdr
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

TOPIC, COMMANDS = "/driver/joint_states", "/driver/cmd_vel"
EPOCH = 1_500_000_000_000_000_000  # [ns] so that the stamps look like a clock's
_PATTERN = 0.123456789  # stands for a number whose place in a message is looked for


def write_wheel_states(
    folder: Path, time: Vector, speeds: Vector, torques: Vector, robot: Robot, commands: Vector | None = None
) -> Path:
    """Bag of wheel states at times (n,) with wheel speeds (n, 4) and torques (n, 4); angles are summed-up speeds.

    With twists (n, 3) of the driver, each is sent at the same time as a command.
    """
    angles = np.cumsum(speeds, axis=0) * float(np.mean(np.diff(time))) * np.array(robot.driver.position_sign)
    signs = np.array(robot.driver.velocity_sign)
    example = joint_state_cdr(0, robot.driver.wheel_joints, *(np.full(4, _PATTERN + k) for k in range(3)))
    places = [example.index(np.full(4, _PATTERN + k).tobytes()) for k in range(3)]
    message = np.frombuffer(example, dtype=np.uint8).copy()
    with BagWriter(folder, {"robot_id": robot.robot_id}) as bag:
        bag.add_topic(TOPIC, JOINT_STATE)
        bag.add_topic(COMMANDS, TWIST)
        for k, row in enumerate(np.hstack([angles, speeds * signs, torques * signs])):
            stamp = EPOCH + round(time[k] * 1e9)
            message[4:12] = np.array(divmod(stamp, 1_000_000_000), dtype=np.uint32).view(np.uint8)
            for j, place in enumerate(places):
                message[place : place + 32] = row[4 * j : 4 * j + 4].view(np.uint8)
            if commands is not None:
                bag.write(COMMANDS, twist_cdr(commands[k]), stamp)
            bag.write(TOPIC, message.tobytes(), stamp + 200_000)
    return next(folder.glob("*.mcap"))


def read_with_mcap_ros2(file: Path, robot: Robot) -> tuple[Vector, Vector, Vector]:
    """Times (n,), wheel speeds (n, 4) and torques (n, 4) by the decoder of mcap-ros2-support."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    stamps, angles, efforts = [], [], []
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        for _, _, _, message in reader.iter_decoded_messages(topics=[TOPIC]):
            stamps.append(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)
            angles.append(message.position)
            efforts.append(message.effort)
    time = np.array(stamps) - stamps[0]
    speeds = np.gradient(np.array(angles) * np.array(robot.driver.position_sign), time, axis=0)
    return time, speeds, np.array(efforts) * np.array(robot.driver.velocity_sign)
