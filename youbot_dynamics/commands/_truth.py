"""The hidden truth of the digital twin that `youbot demo` and `youbot try` start, compared with the findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from youbot_dynamics.commands.terminal import print_rows
from youbot_dynamics.identification.delay.stage import effective_delays
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.report import reveal
from youbot_dynamics.robot import load_robot, robot_from_values, values_of
from youbot_dynamics.simulation.truth import load_truth


def true_values(seed: int, bag: Path) -> dict[str, float]:
    """True values of the twin of a seed, by the names of the findings.

    The true delays compare the commands of the drive with the exact motion in the recording (topic `ground_truth`).
    """
    truth, recording = load_truth(seed).as_found(), open_bag(bag)
    geometry = {name: value for name, value in truth.items() if name.startswith("robot.base.geometry.")}
    robot = robot_from_values({**values_of(load_robot()), **geometry})
    poses = recording.poses("/ground_truth")
    way = np.vstack([np.zeros(3), np.cumsum(planar.steps_of_path(poses.pose), axis=0)])
    signals = base_signals(recording, robot, {})
    exact = dataclasses.replace(signals, measured_time=poses.stamp, measured=way, measured_is="position")
    delays = {f"robot.base.delay.effective_{axis}": delay for axis, delay in effective_delays(exact).items()}
    # The pose sensor is at the centre of the twin and uses its clock.
    tracked = dict.fromkeys(
        (f"base.geometry.{name}" for name in ("sensor_x", "sensor_y", "sensor_yaw", "time_offset")), 0.0
    )
    return {**truth, **tracked, **delays}


def print_truth(result: Result, truth: Mapping[str, float], seed: int) -> None:
    """Print the findings beside the truth, with hit or miss."""
    print_rows(f"the hidden truth of twin {seed}", reveal(result, truth))
