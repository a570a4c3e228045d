"""Bags in a ROS installation without the packages that come by pip: rosbag2_py reads them.

rosbag2_py is in no pip package. What stands in for it has its calls, as they are in rosbag2 of Jazzy;
messages are decoded by the rclpy that is here.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from youbot_dynamics.errors import RecordingError, ResourceError
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.bag._source import Rosbag2Source
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import (
    jazzy_types,
    joint_state_cdr,
    odometry_cdr,
    trajectory_cdr,
    twist_cdr,
)

START, STEP = 1_700_000_000_250_000_000, 20_000_000
WHEELS = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")
TYPES = {
    "/driver/joint_states": "sensor_msgs/msg/JointState",
    "/odom": "nav_msgs/msg/Odometry",
    "/cmd_vel": "geometry_msgs/msg/Twist",
    "/trajectory": "trajectory_msgs/msg/MultiDOFJointTrajectory",
}


class SequentialReader:
    """rosbag2_py.SequentialReader as far as it is called, over the reader of rosbags."""

    def open(self, storage: SimpleNamespace, converter: tuple[str, str]) -> None:
        from rosbags.rosbag2 import Reader

        assert converter == ("", ""), "messages are wanted as they were recorded"
        self._reader = Reader(Path(storage.uri))
        try:
            self._reader.open()
        except Exception as problem:
            raise RuntimeError("No storage could be initialized from the inputs.") from problem
        self._topics: list[str] = []
        self._messages: list[tuple[str, bytes, int]] | None = None

    def __del__(self) -> None:
        with suppress(Exception):  # one that could not be opened
            self._reader.close()

    def get_metadata(self) -> SimpleNamespace:
        topics = [
            SimpleNamespace(topic_metadata=SimpleNamespace(name=c.topic, type=c.msgtype), message_count=c.msgcount)
            for c in self._reader.connections
        ]
        custom = self._reader.storage.metadata.custom if hasattr(self._reader.storage, "metadata") else {}
        return SimpleNamespace(
            topics_with_message_count=topics,
            message_count=self._reader.message_count,
            starting_time=SimpleNamespace(nanoseconds=self._reader.start_time),
            custom_data=custom or {},
        )

    def set_filter(self, topics: list[str]) -> None:
        self._topics = topics

    def has_next(self) -> bool:
        if self._messages is None:
            wanted = [c for c in self._reader.connections if c.topic in self._topics]
            self._messages = [(c.topic, bytes(data), t) for c, t, data in self._reader.messages(wanted)]
        return bool(self._messages)

    def read_next(self) -> tuple[str, bytes, int]:
        assert self._messages
        return self._messages.pop(0)


def messages() -> list[tuple[str, bytes, int]]:
    found = []
    for row in range(50):
        stamp = START + row * STEP
        wheels = joint_state_cdr(stamp, WHEELS, np.full(4, 0.1 * row), np.arange(4.0) - row, np.full(4, 3.0))
        pose = odometry_cdr(stamp, "odom", "base_footprint", (row, 2.0, 0.5), (0.1, 0.2, 0.3))
        found += [
            ("/driver/joint_states", wheels, stamp + 1_000_000),
            ("/odom", pose, stamp + 2_000_000),
            ("/cmd_vel", twist_cdr((row, -row, 0.5)), stamp + 3_000_000),
        ]
    path = trajectory_cdr(START, "odom", "base_footprint", [0.0, 1.0], [(0, 0, 0), (1.0, 0.5, 0.2)])
    return [*found, ("/trajectory", path, START + 4_000_000)]


@pytest.fixture(params=["mcap", "mcap alone", "sqlite3"])
def bag(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "sqlite3":
        from rosbags.rosbag2 import StoragePlugin, Writer

        with Writer(tmp_path / "drive", version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
            connections = {
                name: writer.add_connection(name, kind, typestore=jazzy_types()) for name, kind in TYPES.items()
            }
            for topic, data, received in messages():
                writer.write(connections[topic], received, data)
        return tmp_path / "drive"
    with BagWriter(tmp_path / "drive", {"robot_id": "yb-7"}) as writer:
        for name, kind in TYPES.items():
            writer.add_topic(name, kind)
        for topic, data, received in messages():
            writer.write(topic, data, received)
    return tmp_path / "drive" if request.param == "mcap" else tmp_path / "drive" / "drive_0.mcap"


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch):
    """A ROS installation without rosbags and mcap, once it is asked for."""

    def begin() -> None:
        stand_in = ModuleType("rosbag2_py")
        stand_in.SequentialReader = SequentialReader  # type: ignore[attr-defined]
        stand_in.StorageOptions = lambda uri, storage_id="": SimpleNamespace(uri=uri)  # type: ignore[attr-defined]
        stand_in.ConverterOptions = lambda given, wanted: (given, wanted)  # type: ignore[attr-defined]
        stand_in.StorageFilter = lambda topics: topics  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "rosbag2_py", stand_in)
        real = importlib.util.find_spec
        answers = {"rosbags": None, "mcap": None, "rosbag2_py": stand_in}
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: answers[name] if name in answers else real(name, *more)
        )

    return begin


def columns(path: Path) -> tuple[object, list[np.ndarray]]:
    recording = open_bag(path)
    joints = recording.joint_states("/driver/joint_states", WHEELS)
    twists, poses = recording.twists("/cmd_vel"), recording.poses("/odom")
    (trajectory,) = recording.trajectories("/trajectory")
    arrays = [joints.stamp, joints.received, joints.position, joints.velocity, joints.effort]
    arrays += [twists.received, twists.twist, poses.stamp, poses.received, poses.pose, trajectory.time, trajectory.pose]
    return (recording.topics, recording.origin, recording.lost, recording.sha256), arrays


def test_rosbag2_gives_what_rosbags_gives(bag: Path, without_pip) -> None:
    facts, arrays = columns(bag)
    without_pip()
    assert all(isinstance(source, Rosbag2Source) for source in open_bag(bag)._sources)
    of_rosbag2, found = columns(bag)
    assert of_rosbag2 == facts
    for one, other in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_our_recorder_wrote_about_a_bag_is_found(tmp_path: Path, without_pip) -> None:
    with BagWriter(tmp_path / "drive", {"robot_id": "yb-7"}) as writer:
        writer.add_topic("/cmd_vel", TYPES["/cmd_vel"])
        writer.write("/cmd_vel", twist_cdr((0.1, 0.0, 0.0)), START)
    without_pip()
    assert open_bag(tmp_path / "drive").metadata["robot_id"] == "yb-7"


def test_a_damaged_bag_asks_for_the_packages_that_recover_it(tmp_path: Path, without_pip, monkeypatch) -> None:
    with BagWriter(tmp_path / "drive", {}) as writer:
        writer.add_topic("/cmd_vel", TYPES["/cmd_vel"])
        for row in range(200):
            writer.write("/cmd_vel", twist_cdr((row, 0, 0)), START + row * STEP)
    cut = tmp_path / "cut.mcap"
    cut.write_bytes((tmp_path / "drive" / "drive_0.mcap").read_bytes()[:-300])
    without_pip()
    monkeypatch.setitem(sys.modules, "rosbags.rosbag1", None)
    with pytest.raises(ResourceError, match=r"damaged bags.*youbot_dynamics\[bags\]"):
        open_bag(cut)


def test_recording_names_what_records_without_pip(tmp_path: Path, without_pip, monkeypatch) -> None:
    without_pip()
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(ResourceError, match="ros2 bag record"):
        BagWriter(tmp_path / "drive", {})


def test_no_bag_is_told_apart_from_no_package(tmp_path: Path, without_pip) -> None:
    without_pip()
    (tmp_path / "notes.txt").write_text("no bag")
    with pytest.raises(RecordingError, match="which is not the start of a bag"):
        open_bag(tmp_path / "notes.txt")
