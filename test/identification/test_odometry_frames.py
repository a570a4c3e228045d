"""Odometry whose twist is not that of its pose is named before the fit, with the frame that explains it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from youbot_dynamics.identification.reading import Options, look_at, open_recording
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import ODOMETRY, odometry_cdr
from youbot_dynamics.robot import load_robot


def warnings_of(bag: Path, pose: np.ndarray, twist: np.ndarray, period: float) -> tuple[str, ...]:
    with BagWriter(bag, {}) as writer:
        writer.add_topic("/odom", ODOMETRY)
        for k, (at, moving) in enumerate(zip(pose, twist, strict=True)):
            ns = 1_700_000_000_000_000_000 + round(k * period * 1e9)
            writer.write("/odom", odometry_cdr(ns, "odom", "base_link", at, moving), ns)
    robot = load_robot(robot_file="rosbot_xl")
    return look_at(open_recording(bag, 0, robot, Options()), robot)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ("base", ""),
        ("world", "the twist is in the frame of the pose, not in that of the base: turn it by the heading"),
        ("half", "in yaw 0.5; delays, gains and limits of the base are those of the twist: mend the odometry"),
        ("none", ""),
    ],
)
def test_a_twist_in_another_frame_is_named(tmp_path: Path, frame: str, says: str) -> None:
    period = 0.02
    time = np.arange(0.0, 30.0, period)
    twist = np.column_stack([0.3 * np.sin(0.9 * time), 0.2 * np.sin(0.7 * time + 1.0), 0.5 + 0.3 * np.sin(0.4 * time)])
    heading = period * np.cumsum(twist[:, 2])
    cos, sin = np.cos(heading), np.sin(heading)
    world = np.column_stack([cos * twist[:, 0] - sin * twist[:, 1], sin * twist[:, 0] + cos * twist[:, 1], twist[:, 2]])
    pose = period * np.cumsum(world, axis=0)
    pose = {"half": pose * [1.0, 1.0, 0.5], "none": 0.0 * pose}.get(frame, pose)
    said = [text for text in warnings_of(tmp_path / "bag", pose, world if frame == "world" else twist, period)]
    contradiction = [text for text in said if "pose and twist contradict each other" in text]
    assert len(contradiction) == bool(says) and all(says in text for text in contradiction)
