"""Read what is left of an .mcap file without a footer or with damaged chunks."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag._source import (
    Decoder,
    Rosbag2Source,
    RosbagsSource,
    TopicInfo,
    checked_size,
    collect_topics,
)
from youbot_dynamics.recording.bounds import ALLOWANCE, SKIPPED, bag_packages, chunk_unpackers
from youbot_dynamics.recording.message_types import METADATA_RECORD, jazzy_types, types_of_definition

_TIMES_END = 1 << 63  # [ns]
_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")  # kind and length of a record
_FOOTER, _MESSAGE, _CHUNK = 2, 5, 6  # kinds of records


@dataclass
class _Scan:
    """One pass over the complete records of a file and its chunks; records where and why it ended."""

    path: Path
    chunks: int = 0  # complete chunks seen
    damaged_chunks: int = 0  # chunks whose checksum or length is wrong, or that exceed a limit
    readable: int = 0  # bytes up to the end of the last complete record
    complete: bool = False  # whether the footer was reached
    reason: str = ""  # reason of the first chunk that exceeds a limit, in brackets

    def records(self, until_data: bool = False) -> Iterator[Any]:
        """Yield the records in file order; with until_data only those before the first chunk or message."""
        readers, size = _readers(), checked_size(self.path)
        with self.path.open("rb") as file, ALLOWANCE.of(size):
            if file.read(len(_MAGIC)) != _MAGIC:
                return
            contents = _split(file, size)
            while True:
                try:
                    kind, content = next(contents)
                    record = readers[kind](content) if kind in readers else None
                except Exception as error:  # mcap raises many types if the file ends inside a record or holds garbage.
                    self._note(error)
                    return
                self.readable = file.tell()
                if kind == _FOOTER:
                    self.complete = file.read(len(_MAGIC)) == _MAGIC
                    return
                if until_data and kind in (_CHUNK, _MESSAGE):
                    return
                if kind == _CHUNK:
                    try:
                        inside = self._inside(record)
                    except Exception as error:  # As above: wrong checksum, compression or record in the chunk.
                        self.damaged_chunks += 1
                        self._note(error)
                        continue
                    self.chunks += 1
                    yield from inside
                elif record is not None:
                    yield record

    def _note(self, error: Exception) -> None:
        self.reason = self.reason or f" ({error})" * isinstance(error, RecordingError)

    @staticmethod
    def _inside(chunk: Any) -> list[Any]:
        data = chunk_unpackers()[chunk.compression](chunk.data, chunk.uncompressed_size)
        if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
            raise ValueError("wrong checksum")
        readers = _readers()
        return [readers[kind](content) for kind, content in _split(BytesIO(data), len(data)) if kind in readers]


def _split(stream: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of each record of a stream of `size` bytes, and count them, as mcap's reader does not.

    Raises:
        DamagedError: more records than this pass may still read.
        EOFError: the last record is incomplete.
    """
    while head := stream.read(_HEAD.size):
        kind, length = _HEAD.unpack(head.ljust(_HEAD.size, b"\xff"))
        ALLOWANCE.count(1 if kind == _MESSAGE else SKIPPED)
        # A damaged length must not allocate gigabytes.
        if length > size or len(content := stream.read(length)) < length:
            raise EOFError
        yield kind, content


@lru_cache(maxsize=1)
def _readers() -> Mapping[int, Callable[[bytes], Any]]:
    """Return, for each record kind needed here, the function that makes an mcap record from its contents."""
    with bag_packages():
        from mcap import records
        from mcap.data_stream import ReadDataStream

    def of(kind: Any) -> Callable[[bytes], Any]:
        return lambda content: kind.read(ReadDataStream(BytesIO(content)))

    return {
        3: of(records.Schema),
        4: of(records.Channel),
        _MESSAGE: lambda content: records.Message.read(ReadDataStream(BytesIO(content)), len(content)),
        _CHUNK: of(records.Chunk),
        12: of(records.Metadata),
    }


def read_metadata_record(path: Path) -> dict[str, str]:
    """Return the metadata that our recorder writes at the start of an .mcap file, {} if there is none."""
    with bag_packages():
        from mcap.records import Metadata
    for record in _Scan(path).records(until_data=True):
        if isinstance(record, Metadata) and record.name == METADATA_RECORD:
            return dict(record.metadata)
    return {}


class RecoveredMcap:
    """The complete chunks of a damaged .mcap file, or of one with messages of ROS 1.

    Raises:
        RecordingError: not one message can be recovered.
    """

    def __init__(self, path: Path) -> None:
        with bag_packages():
            from mcap.records import Channel, Message, Schema
        self.path = path
        self.metadata: Mapping[str, str] = {}
        schemas: dict[int, str] = {}
        self._ros1: dict[str, str] = {}  # definition of each type of ROS 1
        channels: dict[int, tuple[str, int]] = {}
        counts: Counter[int] = Counter()
        times: list[int] = []
        scan = _Scan(path)
        for record in scan.records():
            if isinstance(record, Message) and record.log_time < _TIMES_END:
                counts[record.channel_id] += 1
                times.append(record.log_time)
            elif isinstance(record, Schema):
                schemas[record.id] = record.name
                if record.encoding == "ros1msg":
                    schemas[record.id] = "/msg/".join(record.name.split("/"))
                    self._ros1[schemas[record.id]] = record.data.decode()
            elif isinstance(record, Channel):
                channels[record.id] = (record.topic, record.schema_id)
        self._channels = {
            number: (topic, schemas[schema]) for number, (topic, schema) in channels.items() if schema in schemas
        }
        self.topics: Mapping[str, TopicInfo] = collect_topics(
            (topic, type_name, counts[number]) for number, (topic, type_name) in sorted(self._channels.items())
        )
        recovered = sum(topic.count for topic in self.topics.values())
        if not recovered:
            raise RecordingError(
                str(path),
                got=f"0 messages recovered from {path.stat().st_size} bytes, no complete chunk{scan.reason}",
                expected="an .mcap file with at least one complete chunk",
                remedy="record it again",
            )
        self.start: int | None = min(times)
        self.lost = self._describe(scan, recovered, (max(times) - min(times)) * 1e-9)

    def messages(self, topic: str) -> tuple[Decoder, Iterator[tuple[int, bytes]]]:
        """Return the decoder of a topic, and receive time [ns] and bytes of its messages."""
        type_name = self.topics[topic].type
        wanted = {number for number, channel in self._channels.items() if channel == (topic, type_name)}
        if type_name in self._ros1:
            decode = types_of_definition(type_name, self._ros1[type_name]).deserialize_ros1
        else:
            decode = jazzy_types().deserialize_cdr
        return partial(decode, typename=type_name), self._bytes(wanted)

    def _bytes(self, wanted: set[int]) -> Iterator[tuple[int, bytes]]:
        with bag_packages():
            from mcap.records import Message
        for record in _Scan(self.path).records():
            if isinstance(record, Message) and record.channel_id in wanted and record.log_time < _TIMES_END:
                yield record.log_time, record.data

    def _describe(self, scan: _Scan, recovered: int, duration: float) -> str:
        if scan.complete and not scan.damaged_chunks:
            return ""
        got = f"{self.path.name}: {recovered} messages over {duration:.3f} s recovered"
        if scan.damaged_chunks:
            total = scan.chunks + scan.damaged_chunks
            got += f", {scan.damaged_chunks} of {total} chunks are damaged and lost"
        got += scan.reason
        if scan.complete:
            return got
        tail = self.path.stat().st_size - scan.readable
        given_up = scan.reason and not scan.damaged_chunks
        got += f", {'not read to its end' if given_up else 'the file has no footer (recorder killed or file cut)'}: "
        if tail:
            return got + f"its last {tail} bytes, an incomplete record, and all data after them are lost"
        return got + "data not yet flushed is lost, at most the last second in a bag of our recorder"


Source = RosbagsSource | RecoveredMcap | Rosbag2Source
