"""Recordings as time series: rosbag2 folders, .mcap, .db3 and ROS 1 bags, and the readable part of damaged files."""

from youbot_dynamics.recording.bag._bag import POSE_TYPES, Recording, open_bag
from youbot_dynamics.recording.bag._text import LogRecording

__all__ = [
    "LogRecording",
    "POSE_TYPES",
    "Recording",
    "open_bag",
]
