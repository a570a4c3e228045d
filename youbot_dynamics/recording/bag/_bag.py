"""Read bags of ROS 2 (mcap, sqlite3) and ROS 1 as time series, without ROS.

.. code-block:: python

    recording = open_bag("drive_1")
    wheels = recording.joint_states("/driver/joint_states", ["wheel_joint_fl", "wheel_joint_fr"])
    print(wheels.stamp, wheels.velocity, recording.lost or "complete")
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError, listed
from youbot_dynamics.files import open_file, read_text
from youbot_dynamics.recording import message_types, series
from youbot_dynamics.recording.bag import _decode
from youbot_dynamics.recording.bag._angles import unwrapped
from youbot_dynamics.recording.bag._recovery import RecoveredMcap, Source, read_metadata_record
from youbot_dynamics.recording.bag._rows import in_common_rows
from youbot_dynamics.recording.bag._source import (
    Rosbag2Source,
    RosbagsSource,
    TopicInfo,
    collect_topics,
    reading,
    rosbag2_reads,
)
from youbot_dynamics.recording.bag._transforms import localised
from youbot_dynamics.recording.bounds import LARGEST_METADATA, DamagedError

# Message types with the pose of a body; motion capture such as vicon_bridge, vrpn or OptiTrack sends transforms.
POSE_TYPES = (
    message_types.POSE_STAMPED,
    message_types.POSE_WITH_COVARIANCE_STAMPED,
    message_types.TRANSFORM_STAMPED,
    message_types.ODOMETRY,
)

Decoded = TypeVar("Decoded")

_NANOSECONDS = 1_000_000_000
_OTHERS = [*_decode.INTERFACES][3:]


def open_bag(path: Path | str) -> Recording:
    """Open a recording.

    An .mcap file without a footer, left by a recorder that was killed, is read up to its last complete chunk.

    Args:
        path: rosbag2 folder (with or without metadata.yaml), an .mcap or .db3 file, or a ROS 1 .bag file.

    Raises:
        RecordingError: the path does not exist, is not a bag, or not a single message can be read.
        ResourceError: rosbags or mcap is not installed.
    """
    return Recording(Path(path))


class Recording:
    """A recording: its topics, and their messages as time series. :func:`open_bag` returns one.

    A topic is decoded at the first request and then cached.

    Attributes:
        path: path that was opened.
        metadata: entries that our recorder wrote (robot_id, versions, parameters).
        origin: first receive time, rounded down to a whole second [ns]; 0 for a recording without messages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = data_files(path)
        self._sources, self._note = open_sources(path, self._files)
        metadata: dict[str, str] = {}
        for source in self._sources:
            metadata.update(source.metadata)
        for file in self._files:
            if file.suffix == ".mcap" and not rosbag2_reads():  # rosbag2 reads them itself
                metadata.update(read_metadata_record(file))
        self.metadata: Mapping[str, str] = MappingProxyType(metadata)
        starts = [source.start for source in self._sources if source.start is not None]
        self.origin = min(starts) // _NANOSECONDS * _NANOSECONDS if starts else 0
        self._decoded: dict[tuple[str, Callable[..., Any]], Any] = {}  # by topic and what is read of it

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """Topics by name."""
        topics = [topic for source in self._sources for topic in source.topics.values()]
        return MappingProxyType(collect_topics((topic.name, topic.type, topic.count) for topic in topics))

    @property
    def lost(self) -> str:
        """Description of what could not be read, "" if everything was.

        A damaged chunk is detected only when a topic in it is read, so check this again after reading.
        """
        return "; ".join(part for part in (*(source.lost for source in self._sources), self._note) if part)

    @cached_property
    def sha256(self) -> str:
        """Hash of the concatenated data files, in hexadecimal digits."""
        digest = hashlib.sha256()
        for path in self._files:
            with open_file(path, RecordingError, str(path), "a recording") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()

    def joint_names(self, topic: str) -> set[tuple[str, ...]]:
        """Return the sets of joints that the messages of a JointState topic name together.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        return {layout.names for layout in self._joint_layouts(topic)[0]}

    def joint_states(self, topic: str, joints: Sequence[str]) -> series.JointSeries:
        """Return the joint states of a topic, selected by joint name.

        Args:
            topic: of type sensor_msgs/msg/JointState.
            joints: names in the order wanted. Messages that lack one of them are skipped, unless all do. Infinite
                values become NaN. What is read in separate messages or rows is interpolated to common ones. Angles
                that leap within their range, wrapped or by a counter that rolls over, are put together.

        Raises:
            RecordingError: no such topic, another type, no messages, or none with these joints.
        """
        layouts, rejected = self._joint_layouts(topic)
        names = tuple(joints)
        chosen = [layout for layout in layouts if set(names) <= set(layout.names)]
        seen = dict.fromkeys(name for layout in layouts for name in layout.names)
        if not chosen and set(names) <= set(seen):
            chosen = [layout for layout in layouts if set(names) & set(layout.names)]
        if not chosen:
            missing, thing = [name for name in names if name not in seen], f"topic {topic} in {self.path}"
            if rejected and not seen:
                got, remedy = f"{rejected} messages with fewer or more values than names", "mend the driver"
                expected = "a position, velocity and effort of each joint, or none of one kind"
                raise RecordingError(thing, got=got, expected=expected, remedy=remedy)
            got, expected = f"joints {', '.join(seen) or 'without names'}", f"messages that name {', '.join(missing)}"
            remedy = "give the joint names of this robot, by its --robot-file, or another topic"
            raise RecordingError(thing, got=got, expected=expected, remedy=remedy)
        received = np.concatenate([layout.received for layout in chosen])
        stamp = np.concatenate([layout.stamp for layout in chosen])
        rows = _decode.rows_in_order(received, stamp)
        fields = range(len(chosen[0].values))
        position, *others = (_numbers(_joined(chosen, field, names, rows)) for field in fields)
        times, stamps = _decode.seconds(received[rows], self.origin), _decode.stamp_seconds(stamp[rows], self.origin)
        position, ranges = unwrapped(times, position)
        clock = stamps if np.any(stamp) else times
        kept, (position, velocity, effort, *more) = in_common_rows(clock, (position, *others))
        return series.JointSeries(
            topic,
            names,
            stamps[kept],
            times[kept],
            position[kept],
            velocity[kept],
            effort[kept],
            {name: one[kept] for name, one in zip(_OTHERS, more, strict=False) if np.any(np.isfinite(one))},
            rejected=rejected + received.size - rows.size,
            ranges=tuple(ranges.tolist()),
        )

    def twists(self, topic: str) -> series.TwistSeries:
        """Return the body velocities of a Twist, TwistStamped, Odometry or Imu topic; a gyro has no vx and vy: NaN.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        types = (message_types.TWIST, message_types.TWIST_STAMPED, message_types.ODOMETRY, message_types.IMU)
        received, stamp, twist = self._columns(topic, types, _decode.twist_columns)
        stamp = _decode.filled_stamps(received, stamp)
        rows = _decode.rows_in_order(received, stamp)
        return series.TwistSeries(
            topic,
            _decode.seconds(stamp[rows], self.origin) if np.any(stamp) else None,
            _decode.seconds(received[rows], self.origin),
            _numbers(twist[rows]),
            rejected=received.size - rows.size,
        )

    def poses(self, topic: str) -> series.PoseSeries:
        """Return the planar poses of a topic of one of POSE_TYPES, or those of a localisation in a tree of transforms.

        Raises:
            RecordingError: no such topic, another type, no messages, transforms of several bodies, or a tree without
                localisation.
        """
        thing = f"topic {topic} in {self.path}"
        bodies: set[str] = set()
        if topic in self.topics and self.topics[topic].type == message_types.TRANSFORMS:
            received, stamp, pose = localised(self._columns(topic, (message_types.TRANSFORMS,), _decode.links), thing)
        else:
            bodies, received, stamp, pose = self._columns(topic, POSE_TYPES, _decode.pose_columns)
        if len(bodies) > 1:
            got, remedy = f"transforms of {', '.join(sorted(bodies))}", "record the topic of the robot alone"
            raise RecordingError(thing, got=got, expected="transforms of one body", remedy=remedy)
        rows = _decode.rows_in_order(received, stamp, np.all(np.isfinite(pose), axis=1))
        return series.PoseSeries(
            topic,
            _decode.stamp_seconds(stamp[rows], self.origin),
            _decode.seconds(received[rows], self.origin),
            pose[rows],
            rejected=received.size - rows.size,
        )

    def trajectories(self, topic: str) -> tuple[series.TrajectoryMessage, ...]:
        """Return the planar trajectories of a MultiDOFJointTrajectory topic, in the order received.

        Raises:
            RecordingError: no such topic, another type, or no messages.
        """
        messages = self._columns(topic, (message_types.MULTI_DOF_TRAJECTORY,), _decode.trajectory_rows)
        return tuple(
            series.TrajectoryMessage(1e-9 * (stamp - self.origin) if stamp else float("nan"), times, poses)
            for stamp, times, poses in messages
        )

    def _joint_layouts(self, topic: str) -> tuple[list[_decode.JointLayout], int]:
        return self._columns(topic, message_types.JOINT_TYPES, _decode.joint_layouts)

    def _type_of(self, topic: str, expected: Sequence[str]) -> str:
        """Return the type of a topic; check that the topic exists, has an expected type and is not empty."""
        topics = self.topics
        thing = f"topic {topic} in {self.path}"
        if topic not in topics:
            alike = [name for name, info in topics.items() if info.type in expected]
            near = difflib.get_close_matches(topic, alike, n=3, cutoff=0.5)
            names = near + [name for name in alike if name not in near]
            wanted = f"one of {listed(names)}" if names else " or ".join(expected)
            remedy = "name one of the topics" if names else "record it again"
            raise RecordingError(thing, got="no such topic", expected=wanted, remedy=remedy)
        info = topics[topic]
        if info.type not in expected:
            wanted = " or ".join(expected)
            raise RecordingError(thing, got=info.type, expected=wanted, remedy="name a topic of that type")
        if not info.count:
            remedy = "check that the topic was published while recording"
            raise RecordingError(thing, got="no messages", expected="at least one", remedy=remedy)
        return info.type

    def _columns(
        self, topic: str, types: Sequence[str], columns: Callable[[_decode.Messages, str], Decoded]
    ) -> Decoded:
        """Return the columns of a topic; if the file is damaged, those of its readable part."""
        type_name = self._type_of(topic, types)
        key = topic, columns
        if key not in self._decoded:
            try:
                with reading(self.path):
                    self._decoded[key] = columns(self._messages(topic), type_name)
            except DamagedError:
                if all(isinstance(source, RecoveredMcap) for source in self._sources):
                    raise
                self._sources, self._note = open_files(self._files, indexed=False)
                self._type_of(topic, (type_name,))
                with reading(self.path):
                    self._decoded[key] = columns(self._messages(topic), type_name)
        decoded: Decoded = self._decoded[key]
        return decoded

    def _messages(self, topic: str) -> _decode.Messages:
        sources = [source for source in self._sources if topic in source.topics]
        return _decode.Messages(
            sources[0].messages(topic)[0], chain.from_iterable(source.messages(topic)[1] for source in sources)
        )


def _numbers(values: Vector) -> Vector:
    """Replace infinite values by NaN: neither is a measurement, and readers expect NaN."""
    infinite = np.isinf(values)
    return np.where(infinite, np.nan, values) if np.any(infinite) else values


def _joined(layouts: Sequence[_decode.JointLayout], field: int, names: Sequence[str], rows: _decode.IntArray) -> Vector:
    """Rows of one field of some layouts, a column for each joint; without a copy of what need not be rearranged."""
    tables = [
        layout.values[field] if names == layout.names else _arranged(layout.values[field], layout.names, names)
        for layout in layouts
    ]
    table = tables[0] if len(tables) == 1 else np.concatenate(tables)
    return table if np.array_equal(rows, np.arange(len(table))) else table[rows]


def _arranged(table: Vector, given: Sequence[str], names: Sequence[str]) -> Vector:
    """Columns (n, k) of joints by their names; NaN for one that the table (n, m) of the `given` ones lacks."""
    if set(names) <= set(given):
        return table[:, [given.index(name) for name in names]]
    missing = np.full((len(table), 1), np.nan)
    return np.hstack([table, missing])[:, [given.index(name) if name in given else -1 for name in names]]


_MAGIC = {".mcap": b"\x89MCAP0\r\n", ".db3": b"SQLite format 3\x00", ".bag": b"#ROSBAG V"}
_ZSTD = b"\x28\xb5\x2f\xfd"
_DATA_FILE = re.compile(r"\.(mcap|db3)(\.zstd)?$")
_EXPECTED = "a rosbag2 folder, an .mcap or .db3 file, or a ROS 1 .bag file"


def data_files(path: Path) -> list[Path]:
    """Return the data files of a rosbag2 folder, or a single one; split files in the order of their numbers.

    Raises:
        RecordingError: the path does not exist, the folder holds no bag, or the file is not a bag.
    """
    if not os.path.exists(path):  # also of a name that is too long
        remedy = "check the spelling of the path"
        raise RecordingError(str(path), got="no such file or folder", expected=_EXPECTED, remedy=remedy)
    if not path.is_dir():
        check_magic(path)
        return [path]
    files = [file for file in path.iterdir() if _DATA_FILE.search(file.name) and file.is_file()]
    listing = path / "metadata.yaml"
    if listing.exists():
        # A repaired copy beside the original would otherwise be read as a second part.
        named = read_text(listing, RecordingError, str(listing), "a bag's metadata in YAML", LARGEST_METADATA)
        files = [file for file in files if file.name in named] or files
    elif not files:
        inside = sorted(entry.name for entry in path.iterdir())
        got = f"a folder without a bag, with {', '.join(inside[:5])}" if inside else "an empty folder"
        remedy = "name the folder or file of one recording"
        raise RecordingError(str(path), got=got, expected=_EXPECTED, remedy=remedy)
    return sorted(files, key=lambda file: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", file.name)])


def check_magic(path: Path) -> None:
    """Check that the first bytes of a file match its suffix.

    Raises:
        RecordingError: they do not match, or the file cannot be read.
    """
    with open_file(path, RecordingError, str(path), _EXPECTED) as file:
        first = file.read(16)
    if not first:
        raise RecordingError(str(path), got="an empty file", expected=_EXPECTED, remedy="record it again")
    if first.startswith(_ZSTD):
        raise RecordingError(
            str(path),
            got="a file compressed as a whole",
            expected=f"the folder of a whole bag with its metadata.yaml, or {_EXPECTED}",
            remedy=f"unpack it with zstd -d {shlex.quote(path.name)}, and pass what comes out",
        )
    kind = next((suffix for suffix, magic in _MAGIC.items() if first.startswith(magic)), None)
    if kind is None:
        raise RecordingError(
            str(path),
            got=f"a file that starts with {first[:8]!r}, which is not the start of a bag",
            expected=_EXPECTED,
            remedy="name a recording, or give --columns if it is a text log",
        )
    if path.suffix != kind:
        raise RecordingError(
            str(path),
            got=f"the contents of a {kind} file",
            expected=f"a name that ends in {kind}",
            remedy=f"rename it to {path.with_suffix(kind).name}",
        )


def open_sources(path: Path, files: Sequence[Path]) -> tuple[list[Source], str]:
    """Open a recording as a whole if possible, else by its data files; also a sentence on unreadable files, or "".

    Raises:
        RecordingError: nothing can be read.
        ResourceError: rosbags or mcap is not installed.
    """
    if rosbag2_reads() and path.suffix != ".bag":
        whole = path.is_dir() and (path / "metadata.yaml").exists()
        with suppress(DamagedError):  # recovery needs the packages that the next lines import
            return [Rosbag2Source(part) for part in ([path] if whole else files)], ""
    lost = ""
    if path.is_dir() and (path / "metadata.yaml").exists():
        try:
            return [RosbagsSource(path)], ""
        except DamagedError as error:
            if not files:
                raise
            lost = error.got
    sources, unreadable = open_files(files)
    if unreadable or any(source.lost for source in sources):  # which explains it, but for a file that is not there
        lost = lost if "missing" in lost else ""
    elif lost and "missing" not in lost:
        lost = f"metadata.yaml is not used: {lost}"
    return sources, "; ".join(part for part in (lost, unreadable) if part)


def open_files(files: Sequence[Path], *, indexed: bool = True) -> tuple[list[Source], str]:
    """Open each data file on its own; result and errors as in `open_sources`. The error gives the first reason.

    With `indexed`, the index of .mcap files is used if it can be read; otherwise their chunks are scanned.
    """
    sources: list[Source] = []
    failures: list[RecordingError] = []
    for file in files:
        try:
            check_magic(file)
            sources.append(_open_file(file, indexed))
        except RecordingError as error:
            failures.append(error)
    if not sources:
        raise failures[0]
    return sources, "; ".join(str(error) for error in failures)


def _open_file(file: Path, indexed: bool) -> Source:
    if indexed or file.suffix != ".mcap":
        try:
            return RosbagsSource(file)
        except DamagedError:
            if file.suffix != ".mcap":
                raise
    return RecoveredMcap(file)
