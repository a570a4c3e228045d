"""Write rosbag2 folders that survive SIGKILL and a full disk.

The writers of rosbag2 and rosbags keep the last chunk in memory and leave an .mcap file without an index if they are
killed. This writer closes a chunk every second, passes it to the operating system and updates metadata.yaml. Without
that file rosbag2 does not open the folder and asks for ``ros2 bag reindex``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import occupied, write_atomically
from youbot_dynamics.recording.bounds import bag_packages
from youbot_dynamics.recording.message_types import METADATA_RECORD, ROS_DISTRO, definition_of, type_hash_of

CHUNK_NANOSECONDS = 1_000_000_000
_VERSION = 9
_INFINITE = {"sec": 9223372036, "nsec": 854775807}


@dataclass(frozen=True)
class TopicQos:
    """Quality of service of a publisher; a player of the bag offers the same."""

    reliable: bool = True  # reliable, else best effort
    transient_local: bool = False  # late subscribers get the last messages, else volatile
    depth: int = 0  # length of the history; 0 where unknown

    def profile(self) -> dict[str, object]:
        """Return the profile under the names of rosbag2."""
        return {
            "history": "keep_last" if self.depth else "unknown",
            "depth": self.depth,
            "reliability": "reliable" if self.reliable else "best_effort",
            "durability": "transient_local" if self.transient_local else "volatile",
            "deadline": _INFINITE,
            "lifespan": _INFINITE,
            "liveliness": "automatic",
            "liveliness_lease_duration": _INFINITE,
            "avoid_ros_namespace_conventions": False,
        }


@dataclass
class _Topic:
    """A topic of the bag: RIHS01 hash ("" if unknown), channel in the .mcap file, number of messages so far."""

    type: str
    type_hash: str
    qos: TopicQos
    channel: int
    count: int = 0


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes repeated values in full, since readers of bags reject YAML aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _to_yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)


class _ChunkIndex:
    """Index entries of mcap's writer, stored as bytes: as objects they take twice the memory."""

    def __init__(self) -> None:
        self._records = bytearray()

    def replace(self, chunks: list[Any]) -> None:
        """Take the entries out of the writer's list and put this object in their place."""
        with bag_packages():
            from mcap.data_stream import RecordBuilder
        builder: Any = RecordBuilder()
        for chunk in chunks:
            if chunk is not self:
                chunk.write(builder)
        self._records += builder.end()
        chunks[:] = [self]

    def write(self, builder: Any) -> None:
        """Write all entries, with the interface of one mcap entry."""
        builder.write(self._records)


class BagWriter:
    """A rosbag2 folder ``NAME/NAME_0.mcap`` with ``NAME/metadata.yaml``, written by one thread.

    Closing the writer finishes the file, also after an exception inside ``with``. If messages may stop coming, call
    :meth:`flush` from a timer once a second.

    Args:
        folder: folder to create; its name becomes the name of the bag.
        metadata: entries such as robot_id, versions and parameters. ``Recording.metadata`` returns them; rosbag2 shows
            them as custom_data.

    Raises:
        RecordingError: the folder is not empty or cannot be written.
        ResourceError: rosbags or mcap is not installed.
    """

    def __init__(self, folder: Path | str, metadata: Mapping[str, str]) -> None:
        with bag_packages():
            from mcap.writer import Writer
        self._folder = Path(folder)
        self._metadata = dict(metadata)
        try:
            self._path = self._folder / f"{self._folder.resolve().name}_0.mcap"
        except (ValueError, OSError, RuntimeError) as problem:  # a null byte; a cyclic link
            expected, remedy = "a path of a folder", "choose another --out"
            raise RecordingError(str(folder), got=str(problem), expected=expected, remedy=remedy) from None
        self._topics: dict[str, _Topic] = {}
        self._schemas: dict[tuple[str, str], int] = {}
        self._first: int | None = None
        self._last = 0
        self._pending_since: tuple[int, float] | None = None
        self._metadata_time = 0.0
        self._index = _ChunkIndex()
        self._failure: RecordingError | None = None
        self._closed = False
        with self._disk():
            if occupied(self._folder):
                raise RecordingError(
                    str(self._folder),
                    got="a file or folder that already exists",
                    expected="a new or empty folder",
                    remedy="choose another --out",
                )
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb")
            # flush and finish of mcap have no type annotations.
            self._writer: Any = Writer(self._file)
            self._writer.start(profile="ros2", library="youbot_dynamics")
            self._put_metadata()

    @property
    def size(self) -> int:
        """Bytes written to the file so far; the next `flush` adds those of the open chunk."""
        return self._file.tell()

    def add_topic(self, name: str, type_name: str, definition: str | None = None, qos: TopicQos | None = None) -> None:
        """Announce a topic. Announcing it again with the same type does nothing.

        Args:
            name: such as ``/odom``.
            type_name: such as ``nav_msgs/msg/Odometry``.
            definition: ros2msg text of the type and of the types it contains; None for a type of ROS 2 Jazzy.
            qos: quality of service of its publisher.

        Raises:
            RecordingError: the topic already has another type, or the type is unknown and has no definition.
        """
        self._check_open()
        if name in self._topics:
            known = self._topics[name].type
            if known != type_name:
                raise RecordingError(
                    f"topic {name}", got=type_name, expected=known, remedy="record it under another name"
                )
            return
        text = definition_of(type_name) if definition is None else definition
        type_hash, qos = type_hash_of(type_name), qos or TopicQos()
        with self._disk():
            schema = self._schemas.get((type_name, text))
            if schema is None:
                schema = self._writer.register_schema(type_name, "ros2msg", text.encode())
                self._schemas[type_name, text] = schema
            details = {"offered_qos_profiles": _to_yaml([qos.profile()]), "topic_type_hash": type_hash}
            channel = self._writer.register_channel(name, "cdr", schema, details)
        self._topics[name] = _Topic(type_name, type_hash, qos, channel)

    def write(self, topic: str, cdr: bytes, received_ns: int) -> None:
        """Append a serialised message of an announced topic; close the chunk if it is one second old.

        Raises:
            RecordingError: the topic is unknown, the receive time [ns] is negative, or the disk write fails.
        """
        self._check_open()
        announced = self._topics.get(topic)
        if announced is None or received_ns < 0:
            raise RecordingError(
                f"topic {topic} of {self._folder}",
                got=f"a message at {received_ns} ns",
                expected=f"one of {', '.join(self._topics) or 'no topic yet'}, at a time of 0 ns or later",
                remedy="announce the topic with add_topic and give its receive time",
            )
        with self._disk():
            self._writer.add_message(announced.channel, received_ns, cdr, received_ns)
        announced.count += 1
        self._first = received_ns if self._first is None else min(self._first, received_ns)
        self._last = max(self._last, received_ns)
        if self._pending_since is None:
            self._pending_since = (received_ns, time.monotonic())
        elif (
            received_ns - self._pending_since[0] >= CHUNK_NANOSECONDS
            or time.monotonic() - self._pending_since[1] >= CHUNK_NANOSECONDS * 1e-9
        ):
            self.flush()

    def describe(self, entries: Mapping[str, str]) -> None:
        """Add entries to the metadata, replacing those with the same key.

        Raises:
            RecordingError: the disk write fails.
        """
        self._check_open()
        self._metadata.update(entries)
        with self._disk():
            self._close_chunk()
            self._put_metadata()

    def flush(self) -> None:
        """Close the chunk and pass it to the operating system; do nothing if there are no new messages.

        Raises:
            RecordingError: the disk write fails.
        """
        self._check_open()
        if self._pending_since is None:
            return
        with self._disk():
            self._close_chunk()
            # A lock-step simulation closes many chunks per second; metadata.yaml need not follow each of them.
            if time.monotonic() - self._metadata_time >= 1.0:
                self._write_metadata()

    def close(self) -> None:
        """Finish the file: index, footer, metadata.yaml. A second call does nothing.

        Raises:
            RecordingError: the disk write fails; data flushed before stays readable.
        """
        if self._closed:
            return
        self._closed = True
        if self._failure is not None:
            return
        with self._disk():
            self._close_chunk()
            self._writer.add_metadata("rosbag2", {"serialized_metadata": _to_yaml(self._information())})
            self._writer.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._write_metadata(durable=True)

    def __enter__(self) -> BagWriter:
        """Return the writer."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the bag."""
        self.close()

    def _close_chunk(self) -> None:
        self._writer.flush()
        self._pending_since = None
        self._index.replace(getattr(self._writer, "_Writer__chunk_indices", []))

    def _information(self) -> dict[str, object]:
        """Return the contents of metadata.yaml, as rosbag2 writes it for a bag of one file."""
        first, count = self._first or 0, sum(topic.count for topic in self._topics.values())
        file_name = self._path.name.encode(errors="backslashreplace").decode()
        span = {"starting_time": {"nanoseconds_since_epoch": first}, "duration": {"nanoseconds": self._last - first}}
        return {
            "version": _VERSION,
            "storage_identifier": "mcap",
            **span,
            "message_count": count,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": name,
                        "type": topic.type,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": [topic.qos.profile()],
                        "type_description_hash": topic.type_hash,
                    },
                    "message_count": topic.count,
                }
                for name, topic in self._topics.items()
            ],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [file_name],
            "files": [{"path": file_name, **span, "message_count": count}],
            "custom_data": self._metadata,
            "ros_distro": ROS_DISTRO,
        }

    def _put_metadata(self) -> None:
        self._writer.add_metadata(METADATA_RECORD, self._metadata)
        self._file.flush()
        self._write_metadata()

    def _write_metadata(self, durable: bool = False) -> None:
        """Replace metadata.yaml atomically: at any time the old or the new file is complete."""
        text = _to_yaml({"rosbag2_bagfile_information": self._information()})
        write_atomically(self._folder / "metadata.yaml", text, durable=durable)
        self._metadata_time = time.monotonic()

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise RecordingError(str(self._folder), got="a closed bag", remedy="write before closing it")

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Turn a disk error into a RecordingError and stop writing, since the last chunk may be incomplete."""
        try:
            yield
        except OSError as error:
            self._failure = RecordingError(
                str(self._path),
                got=f"{error.strerror or error}",
                expected="a disk with space for the recording; data flushed before stays readable",
                remedy="free space or choose another --out",
            )
            file = getattr(self, "_file", None)
            if file is not None:
                with suppress(OSError):
                    file.raw.close()
            raise self._failure from error
