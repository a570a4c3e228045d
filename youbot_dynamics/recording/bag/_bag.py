"""Bags of ROS 2 (mcap, sqlite3) and ROS 1 as time series, without ROS.

.. code-block:: python

    recording = open_bag("drive_1")
    wheels = recording.joint_states("/driver/joint_states", ["wheel_joint_fl", "wheel_joint_fr"])
    print(wheels.stamp, wheels.velocity, recording.lost or "complete")
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import open_file
from youbot_dynamics.recording.bag._decode import (
    JointLayout,
    Messages,
    joint_layouts,
    ordered_rows,
    pose_columns,
    seconds,
    stamp_seconds,
    trajectory_rows,
    twist_columns,
)
from youbot_dynamics.recording.bag._locate import data_files, open_sources, recover_sources
from youbot_dynamics.recording.bag._recovery import RecoveredMcap, read_metadata_record
from youbot_dynamics.recording.bag._source import Decoder, TopicInfo, checked_time, collect_topics, reading
from youbot_dynamics.recording.bounds import DamagedError
from youbot_dynamics.recording.message_types import (
    JOINT_STATE,
    MULTI_DOF_TRAJECTORY,
    ODOMETRY,
    POSE_STAMPED,
    POSE_WITH_COVARIANCE_STAMPED,
    TWIST,
    TWIST_STAMPED,
)
from youbot_dynamics.recording.series import (
    JointSamples,
    JointSeries,
    PoseSeries,
    TrajectoryMessage,
    TwistSeries,
)

__all__ = ["Recording", "TopicInfo", "open_bag"]

Decoded = TypeVar("Decoded")

_NANOSECONDS = 1_000_000_000


def open_bag(path: Path | str) -> Recording:
    """Open a recording.

    An .mcap file without a footer, of a recorder that was killed, is read as far as its chunks are complete.

    Args:
        path: rosbag2 folder (with or without metadata.yaml), an .mcap or .db3 file, or a ROS 1 .bag file.

    Raises:
        RecordingError: nothing there, not a bag, or damaged so that not one message can be read.
        ResourceError: rosbags or mcap is not installed.
    """
    return Recording(Path(path))


class Recording:
    """A recording: its topics, and their messages as time series.

    A topic is decoded when it is first asked for and kept. Made by :func:`open_bag`.

    Attributes:
        path: what was opened.
        metadata: what our recorder wrote about the recording (robot_id, versions, parameters).
    """

    def __init__(self, path: Path) -> None:
        """Open a recording; see :func:`open_bag`."""
        self.path = path
        self._files = data_files(path)
        self._sources, self._note = open_sources(path, self._files)
        self.metadata: Mapping[str, str] = MappingProxyType(self._read_metadata())
        self._origin = self._first_time()
        self._joints: dict[str, tuple[list[JointLayout], int]] = {}
        self._twists: dict[str, TwistSeries] = {}
        self._poses: dict[str, PoseSeries] = {}

    @property
    def origin(self) -> int:
        """First receive time, rounded down to a whole second [ns]; 0 for a recording without messages."""
        return self._origin

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """Topics by name."""
        found = [topic for source in self._sources for topic in source.topics.values()]
        return MappingProxyType(collect_topics((topic.name, topic.type, topic.count) for topic in found))

    @property
    def lost(self) -> str:
        """What could not be read, "" if everything was.

        A damaged chunk inside a file is found only when a topic in it is read: ask again after reading.
        """
        return "; ".join(part for part in (*(source.lost for source in self._sources), self._note) if part)

    @property
    def damaged(self) -> bool:
        """Whether anything could not be read; see ``lost``."""
        return bool(self.lost)

    @cached_property
    def sha256(self) -> str:
        """Hash of the data file, or of the data files one after the other, in hexadecimal digits."""
        digest = hashlib.sha256()
        for path in self._files:
            with open_file(path, RecordingError, str(path), "a recording") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()

    def joint_names(self, topic: str) -> dict[tuple[str, ...], int]:
        """Return how many messages of a JointState topic name which joints.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        counts: dict[tuple[str, ...], int] = {}
        for layout in self._joint_layouts(topic)[0]:
            counts[layout.names] = counts.get(layout.names, 0) + layout.received.size
        return counts

    def joint_states(self, topic: str, joints: Sequence[str] | None = None) -> JointSeries:
        """Return the joint states of a topic, selected by joint name.

        Args:
            topic: of type sensor_msgs/msg/JointState.
            joints: names in the order wanted; messages that lack one of them are skipped and counted. None:
                every joint any message names, NaN where a message lacks it. Infinite values become NaN as well.

        Raises:
            RecordingError: no such topic, another type, no messages, or none with these joints.
        """
        layouts, rejected = self._joint_layouts(topic)
        seen = tuple(dict.fromkeys(name for layout in layouts for name in layout.names))
        names = seen if joints is None else tuple(joints)
        chosen = [layout for layout in layouts if joints is None or set(names) <= set(layout.names)]
        if not chosen:
            missing = [name for name in names if name not in seen]
            raise RecordingError(
                f"topic {topic} in {self.path}",
                got=f"joints {', '.join(seen) or 'without names'}",
                expected=f"messages that name {', '.join(missing)}" if missing else f"{', '.join(names)} together",
                remedy="give the joint names of this robot or another topic",
            )
        received = np.concatenate([layout.received for layout in chosen])
        stamp = np.concatenate([layout.stamp for layout in chosen])
        blocks = [layout.columns(names) for layout in chosen]
        order = np.argsort(received, kind="stable")
        rows = order[ordered_rows(stamp[order])]
        position, velocity, effort = (_numbers(np.concatenate(block)[rows]) for block in zip(*blocks, strict=True))
        return JointSeries(
            topic,
            names,
            stamp_seconds(stamp[rows], self._origin),
            seconds(received[rows], self._origin),
            position,
            velocity,
            effort,
            skipped=sum(layout.received.size for layout in layouts) - received.size,
            rejected=rejected + received.size - rows.size,
        )

    def twists(self, topic: str) -> TwistSeries:
        """Return the body velocities of a Twist or TwistStamped topic.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        type_name = self._type_of(topic, (TWIST, TWIST_STAMPED))
        if topic not in self._twists:
            received, stamp, twist = self._decode(
                topic, type_name, lambda messages: twist_columns(messages, type_name == TWIST_STAMPED)
            )
            order = np.argsort(received, kind="stable")
            rows = order[ordered_rows(stamp[order])]
            self._twists[topic] = TwistSeries(
                topic,
                seconds(stamp[rows], self._origin) if np.any(stamp) else None,
                seconds(received[rows], self._origin),
                _numbers(twist[rows]),
                rejected=received.size - rows.size,
            )
        return self._twists[topic]

    def poses(self, topic: str) -> PoseSeries:
        """Return the planar poses of an Odometry, PoseStamped or PoseWithCovarianceStamped topic.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        type_name = self._type_of(topic, (ODOMETRY, POSE_STAMPED, POSE_WITH_COVARIANCE_STAMPED))
        if topic not in self._poses:
            frame, received, stamp, pose, twist = self._decode(
                topic, type_name, lambda messages: pose_columns(messages, type_name)
            )
            order = np.argsort(received, kind="stable")
            sound = order[np.all(np.isfinite(pose[order]), axis=1)]
            rows = sound[ordered_rows(stamp[sound])]
            self._poses[topic] = PoseSeries(
                topic,
                frame,
                stamp_seconds(stamp[rows], self._origin),
                seconds(received[rows], self._origin),
                pose[rows],
                _numbers(twist[rows]) if type_name == ODOMETRY else None,
                rejected=received.size - rows.size,
            )
        return self._poses[topic]

    def trajectories(self, topic: str) -> tuple[TrajectoryMessage, ...]:
        """Return the planar trajectories of a MultiDOFJointTrajectory topic, in the order they came.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        type_name = self._type_of(topic, (MULTI_DOF_TRAJECTORY,))
        return tuple(
            TrajectoryMessage(
                topic,
                frame,
                1e-9 * (stamp - self._origin) if stamp else float("nan"),
                1e-9 * (received - self._origin),
                times,
                poses,
            )
            for received, stamp, frame, times, poses in self._decode(topic, type_name, trajectory_rows)
        )

    def _joint_layouts(self, topic: str) -> tuple[list[JointLayout], int]:
        self._type_of(topic, (JOINT_STATE,))
        if topic not in self._joints:
            self._joints[topic] = self._decode(topic, JOINT_STATE, joint_layouts, JointSamples)
        return self._joints[topic]

    def _type_of(self, topic: str, expected: Sequence[str]) -> str:
        """Return the type of a topic after checking that it is there, of an expected type, and not empty."""
        topics = self.topics
        if topic not in topics:
            near = difflib.get_close_matches(topic, topics, n=3, cutoff=0.5)
            names = near + [name for name in topics if name not in near]
            more = f" and {len(names) - 12} more" if len(names) > 12 else ""
            raise RecordingError(
                f"topic {topic} in {self.path}",
                got="no such topic",
                expected=f"one of {', '.join(names[:12])}{more}" if names else "a recording with topics",
                remedy="name one of the topics" if names else "record it again",
            )
        info = topics[topic]
        if info.type not in expected:
            raise RecordingError(
                f"topic {topic} in {self.path}",
                got=info.type,
                expected=" or ".join(expected),
                remedy="name a topic of that type",
            )
        if not info.count:
            raise RecordingError(
                f"topic {topic} in {self.path}",
                got="no messages",
                expected="at least one",
                remedy="check that the topic was published while recording",
            )
        return info.type

    def _decode(
        self,
        topic: str,
        type_name: str,
        columns: Callable[[Messages], Decoded],
        faster: Callable[[Decoder], Decoder] | None = None,
    ) -> Decoded:
        """Collect the columns of a topic; where a file turns out to be damaged, of what is left of it."""
        try:
            with reading(self.path):
                return columns(self._messages(topic, faster))
        except DamagedError:
            if all(isinstance(source, RecoveredMcap) for source in self._sources):
                raise
            self._sources, self._note = recover_sources(self._files)
            self._type_of(topic, (type_name,))
            with reading(self.path):
                return columns(self._messages(topic, faster))

    def _messages(self, topic: str, faster: Callable[[Decoder], Decoder] | None) -> Messages:
        for source in self._sources:
            if topic in source.topics:
                decode, messages = source.messages(topic)
                if faster is not None:
                    decode = faster(decode)
                with reading(source.path):
                    for received, data in messages:
                        yield checked_time(received), decode(data)

    def _first_time(self) -> int:
        starts = [source.start for source in self._sources if source.start is not None]
        return min(starts) // _NANOSECONDS * _NANOSECONDS if starts else 0

    def _read_metadata(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in self._sources:
            found.update(source.metadata)
        for file in self._files:
            if file.suffix == ".mcap":
                found.update(read_metadata_record(file))
        return found


def _numbers(values: Vector) -> Vector:
    """The same table with NaN in place of infinities, (n, k): neither was measured, and NaN is what readers expect."""
    return np.where(np.isfinite(values), values, np.nan)
