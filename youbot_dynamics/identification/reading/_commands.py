"""Commanded speeds of the wheels, positive forward."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.robot import Driver

_TO_DRIVER = "_command", "_commands"  # ends of the names of topics that tell a driver the speeds of joints
_OURS = "wheel_commands"  # those of base_controller, in our signs


def is_to_driver(topic: str) -> bool:
    """Whether the name of a topic of joints says that it commands a driver, in its signs."""
    return topic.endswith(_TO_DRIVER) and not topic.endswith(_OURS)


def wheel_commands(recording: Recording, topic: str, driver: Driver) -> JointSeries:
    """Commands of the wheels on a topic; those of another name than `wheel_commands` have the signs of the driver.

    Raises:
        RecordingError: as `Recording.joint_states`.
    """
    sent = recording.joint_states(topic, driver.wheel_joints)
    if topic.endswith(_OURS):
        return sent
    signs = np.array(driver.command_sign)
    return replace(sent, position=sent.position * signs, velocity=sent.velocity * signs)
