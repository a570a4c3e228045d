"""The metadata.yaml of a rosbag2 folder, version 9, as rosbag2 of Jazzy reads and writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from youbot_dynamics.files import write_atomically
from youbot_dynamics.recording.message_types import ROS_DISTRO

_VERSION = 9
# Words that YAML 1.1 takes for booleans or nothing where they stand unquoted.
_NOT_STRINGS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
_INFINITE = {"sec": 9223372036, "nsec": 854775807}


@dataclass(frozen=True)
class TopicQos:
    """Quality of service of a publisher, as a player offers it again.

    Attributes:
        reliable: reliable, else best effort.
        transient_local: late subscribers get the last messages, else volatile.
        depth: length of the history; 0 where unknown.
    """

    reliable: bool = True
    transient_local: bool = False
    depth: int = 0

    def profile(self) -> dict[str, object]:
        """Return the profile with the names of rosbag2."""
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


@dataclass(frozen=True)
class RecordedTopic:
    """A topic as it stands in metadata.yaml.

    Attributes:
        name: name of the topic.
        type: message type.
        type_hash: RIHS01 hash of the type, "" if unknown.
        qos: offered quality of service.
    """

    name: str
    type: str
    type_hash: str
    qos: TopicQos


def bag_information(
    file_name: str,
    topics: Sequence[tuple[RecordedTopic, int]],
    first: int,
    last: int,
    custom_data: Mapping[str, str],
) -> dict[str, object]:
    """Return the contents of metadata.yaml for a bag of one .mcap file.

    Args:
        file_name: the data file, in the folder.
        topics: each topic with its number of messages.
        first: earliest receive time [ns].
        last: latest receive time [ns].
        custom_data: our own entries.
    """
    count = sum(number for _, number in topics)
    span = {"starting_time": {"nanoseconds_since_epoch": first}, "duration": {"nanoseconds": last - first}}
    return {
        "version": _VERSION,
        "storage_identifier": "mcap",
        **span,
        "message_count": count,
        "topics_with_message_count": [
            {
                "topic_metadata": {
                    "name": topic.name,
                    "type": topic.type,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": [topic.qos.profile()],
                    "type_description_hash": topic.type_hash,
                },
                "message_count": number,
            }
            for topic, number in topics
        ],
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file_name],
        "files": [{"path": file_name, **span, "message_count": count}],
        "custom_data": dict(custom_data),
        "ros_distro": ROS_DISTRO,
    }


def to_yaml(value: object) -> str:
    """Return nested mappings, sequences, strings, integers and booleans as block YAML, strings quoted."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            plain = key.isidentifier() and key.lower() not in _NOT_STRINGS
            name = key if plain else json.dumps(key, ensure_ascii=False)
            yield from _entry(f"{name}:", entry)
    elif isinstance(value, list) and value:
        for entry in value:
            lines = list(_lines(entry))
            yield f"- {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])
    else:
        yield json.dumps(value, ensure_ascii=False)


def _entry(key: str, value: object) -> Iterator[str]:
    lines = list(_lines(value))
    if isinstance(value, Mapping | list) and value:
        yield key
        yield from (f"  {line}" for line in lines)
    else:
        yield f"{key} {lines[0]}"


def write_metadata(folder: Path, information: Mapping[str, object], durable: bool) -> None:
    """Write metadata.yaml so that at every moment there is either the old or the new one.

    Args:
        folder: of the bag.
        information: from :func:`bag_information`.
        durable: wait until it is on the disk itself.

    Raises:
        OSError: the file cannot be written.
    """
    text = to_yaml({"rosbag2_bagfile_information": information})
    write_atomically(folder / "metadata.yaml", text, durable=durable)
