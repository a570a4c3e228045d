"""Read intact ROS 2 bags with rosbag2 itself, for a ROS installation without the pip packages rosbags and mcap."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from youbot_dynamics.recording.bag._source import Decoder, TopicInfo, checked_time, collect_topics, reading


def rosbag2_reads() -> bool:
    """Whether this module reads ROS 2 bags: rosbag2_py is installed, but rosbags or mcap is missing."""
    lacking = [name for name in ("rosbags", "mcap") if importlib.util.find_spec(name) is None]
    return bool(lacking) and importlib.util.find_spec("rosbag2_py") is not None


class Rosbag2Source:
    """A file or rosbag2 folder that rosbag2 accepts; it recovers nothing and applies no limits.

    Args:
        path: rosbag2 folder with metadata.yaml, .mcap or .db3.

    Raises:
        DamagedError: rosbag2 cannot read it.
    """

    def __init__(self, path: Path) -> None:
        """Read topics and counts."""
        self.path = path
        with reading(path):
            found = self._open().get_metadata()
            self.topics: Mapping[str, TopicInfo] = collect_topics(
                (topic.topic_metadata.name, topic.topic_metadata.type, topic.message_count)
                for topic in found.topics_with_message_count
            )
            self.start = checked_time(found.starting_time.nanoseconds) if found.message_count else None
            self.metadata: Mapping[str, str] = dict(found.custom_data)
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
                yield received, data

    def _open(self) -> Any:
        import rosbag2_py

        reader = rosbag2_py.SequentialReader()
        reader.open(rosbag2_py.StorageOptions(uri=str(self.path)), rosbag2_py.ConverterOptions("", ""))
        return reader
