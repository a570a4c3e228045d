"""Common interface to the data files of a recording: topics, and decoded messages of one topic.

Each pass opens the files and closes them again, so that a Recording holds no handles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from youbot_dynamics.errors import RecordingError, YoubotDynamicsError
from youbot_dynamics.files import open_file
from youbot_dynamics.recording.bounds import ALLOWANCE, DamagedError, messages_of_chunk, rosbags_readers
from youbot_dynamics.recording.message_types import jazzy_types, types_of_definition

if TYPE_CHECKING:
    from rosbags.rosbag1 import Reader as Reader1
    from rosbags.rosbag2 import Reader as Reader2
import importlib
import importlib.util

Decoder = Callable[[bytes], Any]

_LONGEST_NAME = 1000  # characters; ROS allows 255


@dataclass(frozen=True)
class TopicInfo:
    """A topic of a recording."""

    name: str  # such as ``/driver/joint_states``
    type: str  # such as ``sensor_msgs/msg/JointState``, also for ROS 1 bags
    count: int  # number of messages


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error that a damaged file causes in the readers into a DamagedError that names the file."""
    try:
        yield
    except DamagedError as error:
        if error.thing.startswith(str(path)):
            raise
        raise DamagedError(
            f"{path}, {error.thing}", got=error.got, expected=error.expected, remedy=error.remedy
        ) from None
    except YoubotDynamicsError:
        raise
    except PermissionError as error:
        raise RecordingError(
            str(path),
            got="permission denied",
            expected="a file that can be read",
            remedy="change its permissions",
        ) from error
    except Exception as error:  # For damaged bytes rosbags raises assertion, struct, index and other errors.
        raise DamagedError(
            str(path),
            got=f"damaged data ({type(error).__name__}: {error})",
            expected="a complete recording",
            remedy=_repair(path),
        ) from error


def _repair(path: Path) -> str:
    return {
        ".bag": f"repair a copy of it with: rosbag reindex {path.name}",
        ".db3": f"repair a copy of it with: sqlite3 {path.name} .recover | sqlite3 repaired.db3",
    }.get(path.suffix, "record it again, or pass an intact copy")


def collect_topics(connections: Iterable[tuple[str, str, int]]) -> dict[str, TopicInfo]:
    """Add up the message counts of connections (topic, type, count) by topic, sorted by name.

    If a topic changes its type, only the first type counts.
    """
    topics: dict[str, TopicInfo] = {}
    for name, type_name, count in connections:
        if len(name) > _LONGEST_NAME or len(type_name) > _LONGEST_NAME or not isinstance(count, int):
            raise ValueError(f"a topic named {name[:30]!r}")
        known = topics.get(name, TopicInfo(name, type_name, 0))
        if known.type == type_name:
            topics[name] = TopicInfo(name, type_name, known.count + count)
    return dict(sorted(topics.items()))


def checked_size(path: Path) -> int:
    """Return the size of a recording [bytes]; raise a RecordingError unless all are regular, readable files."""
    size = 0
    for file in path.iterdir() if path.is_dir() else (path,):
        if file.exists() and not file.is_dir():
            with open_file(file, RecordingError, str(file), "a recording") as stream:
                size += os.fstat(stream.fileno()).st_size
    return size


def checked_time(received: int) -> int:
    """Return the receive time [ns]; raise a ValueError unless it is a non-negative integer below 2^63."""
    if isinstance(received, int) and 0 <= received < 1 << 63:
        return received
    raise ValueError(f"a receive time of {str(received)[:30]!r}")


class RosbagsSource:
    """A rosbag2 folder with metadata.yaml, or a file .mcap, .db3 or .bag, that the reader of rosbags accepts.

    Raises:
        DamagedError: rosbags cannot read it.
        ResourceError: rosbags is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: Mapping[str, str] = {}
        with reading(path), self._reader() as reader:
            self.topics: Mapping[str, TopicInfo] = collect_topics(
                (connection.topic, connection.msgtype, connection.msgcount) for connection in reader.connections
            )
            self.start = checked_time(reader.start_time) if reader.message_count else None
            storage: Any = getattr(reader, "storage", None)
            files = [part.path.name for part in getattr(storage, "storages", ())]
            if len(set(files)) < len(files):  # its messages would count twice
                raise DamagedError(str(path), got="a file that is listed twice", expected="each file once")
            if storage is not None and path.is_dir():
                self.metadata = {str(key): str(value) for key, value in (storage.metadata.custom or {}).items()}
        self.lost = self._unread_log()

    def messages(self, topic: str) -> tuple[Decoder, Iterator[tuple[int, bytes]]]:
        """Return the decoder of a topic, and receive time [ns] and bytes of its messages.

        Raises:
            DamagedError: the data of the topic cannot be read; the iterator may raise it too.
        """
        type_name = self.topics[topic].type
        with reading(self.path), self._reader() as reader:
            definition = next(c.msgdef.data for c in reader.connections if c.topic == topic and c.msgtype == type_name)
            if self.path.suffix == ".bag":
                decode = types_of_definition(type_name, definition).deserialize_ros1
            else:
                decode = jazzy_types().deserialize_cdr
        return partial(decode, typename=type_name), self._bytes(topic, type_name)

    def _bytes(self, topic: str, type_name: str) -> Iterator[tuple[int, bytes]]:
        with reading(self.path), self._reader() as reader:
            connections = [c for c in reader.connections if c.topic == topic and c.msgtype == type_name]
            files = _chunked(reader)
            if not files:
                for _, received, data in reader.messages(connections):
                    yield checked_time(received), data
            for file, chunks in files:
                numbers = {c.id for c in file.connections if c.topic == topic and c.msgtype == type_name}
                for chunk in chunks:
                    if any(chunk.channel_count.get(number, 0) for number in numbers):
                        yield from messages_of_chunk(chunk, numbers, file.bio)

    @contextmanager
    def _reader(self) -> Iterator[Reader1 | Reader2]:
        Reader1, Reader2 = rosbags_readers()
        kind: Any = Reader1 if self.path.suffix == ".bag" else Reader2
        with ALLOWANCE.of(checked_size(self.path)), kind(self.path) as reader:
            yield reader

    def _unread_log(self) -> str:
        """Report rows that a killed recorder left in the write-ahead log, which rosbags does not read."""
        logs = [self.path.with_name(self.path.name + "-wal")] if self.path.suffix == ".db3" else []
        if self.path.is_dir():
            logs = sorted(self.path.glob("*.db3-wal"))
        waiting = [log.name for log in logs if log.exists() and log.stat().st_size]
        if not waiting:
            return ""
        database = waiting[0].removesuffix("-wal")
        return (
            f"messages in {', '.join(waiting)} are not read: the recorder was killed; add them with: "
            f"sqlite3 {database} 'PRAGMA wal_checkpoint(TRUNCATE)'"
        )


def _chunked(reader: Any) -> list[tuple[Any, list[Any]]]:
    """Return the .mcap files of a reader, and the chunks of each by time; none unless chunks follow one another."""
    storage: Any = getattr(reader, "storage", None)
    files = getattr(storage, "storages", [storage])
    found = []
    for file in files:
        chunks = sorted(getattr(file, "chunks", ()), key=attrgetter("message_start_time", "chunk_start_offset"))
        apart = all(one.message_end_time <= other.message_start_time for one, other in pairwise(chunks))
        if not chunks or not apart or storage.metadata.compression_mode == "message":
            return []
        found.append((file, chunks))
    return found


def rosbag2_reads() -> bool:
    """Whether this module reads ROS 2 bags: rosbag2_py is installed, but rosbags or mcap is missing."""
    lacking = [name for name in ("rosbags", "mcap") if importlib.util.find_spec(name) is None]
    return bool(lacking) and importlib.util.find_spec("rosbag2_py") is not None


class Rosbag2Source:
    """A rosbag2 folder or file that rosbag2 accepts; it recovers nothing and applies no limits.

    Raises:
        DamagedError: rosbag2 cannot read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            information = self._open().get_metadata()
            self.topics: Mapping[str, TopicInfo] = collect_topics(
                (topic.topic_metadata.name, topic.topic_metadata.type, topic.message_count)
                for topic in information.topics_with_message_count
            )
            self.start = checked_time(information.starting_time.nanoseconds) if information.message_count else None
            self.metadata: Mapping[str, str] = dict(information.custom_data)
        self.lost = ""

    def messages(self, topic: str) -> tuple[Decoder, Iterator[tuple[int, bytes]]]:
        """Return the decoder of a topic, and receive time [ns] and bytes of its messages."""
        from rclpy.serialization import deserialize_message

        package, _, name = self.topics[topic].type.partition("/msg/")
        kind = getattr(importlib.import_module(f"{package}.msg"), name)
        return partial(deserialize_message, message_type=kind), self._bytes(topic)

    def _bytes(self, topic: str) -> Iterator[tuple[int, bytes]]:
        import rosbag2_py

        with reading(self.path):
            reader = self._open()
            reader.set_filter(rosbag2_py.StorageFilter(topics=[topic]))
            while reader.has_next():
                _, data, received = reader.read_next()[:3]
                yield checked_time(received), data

    def _open(self) -> Any:
        import rosbag2_py

        reader = rosbag2_py.SequentialReader()
        reader.open(rosbag2_py.StorageOptions(uri=str(self.path)), rosbag2_py.ConverterOptions("", ""))
        return reader
