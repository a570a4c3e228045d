"""Reads what is left of an .mcap file without a footer or with damaged chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bounds import ALLOWANCE, chunk_unpackers
from youbot_dynamics.recording.message_types import jazzy_types
from youbot_dynamics.recording.optional_packages import bag_packages
from youbot_dynamics.recording.source import Decoder, TopicInfo, checked_size, collect_topics

METADATA_RECORD = "youbot_dynamics"
_TIMES_END = 1 << 63  # [ns]


class _Scan:
    """One pass over the complete records of a file, chunks opened; knows afterwards where and why it ended.

    Attributes:
        chunks: complete chunks seen.
        damaged_chunks: chunks whose contents do not match their checksum or length, or are beyond a limit.
        reason: of the first that was beyond one, in brackets, or "".
        readable: bytes up to the end of the last complete record.
        complete: whether the footer was reached.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chunks = 0
        self.damaged_chunks = 0
        self.readable = 0
        self.complete = False
        self.reason = ""

    def records(self, until_data: bool = False) -> Iterator[Any]:
        """Yield the records in file order; with until_data only those before the first chunk or message."""
        with bag_packages():
            from mcap.records import Chunk, Message
            from mcap.stream_reader import StreamReader, breakup_chunk
        unpackers = chunk_unpackers()
        size = checked_size(self.path)
        with self.path.open("rb") as file, ALLOWANCE.of(size):
            # A damaged length must not make the reader allocate gigabytes.
            stream = StreamReader(file, emit_chunks=True, record_size_limit=size).records
            while True:
                try:
                    record = next(stream)
                except StopIteration:
                    self.complete = True
                    return
                except Exception:  # The file ends inside a record, or holds garbage: mcap raises many types.
                    return
                self.readable = file.tell()
                if until_data and isinstance(record, Chunk | Message):
                    return
                if isinstance(record, Chunk):
                    try:
                        unpack = unpackers[record.compression]
                        record.data, record.compression = unpack(record.data, record.uncompressed_size), ""
                        contents = breakup_chunk(record, validate_crc=True)
                    except Exception as error:  # As above: wrong checksum, compression or record inside the chunk.
                        self.damaged_chunks += 1
                        self.reason = self.reason or f" ({error})" * isinstance(error, RecordingError)
                        continue
                    self.chunks += 1
                    yield from contents
                else:
                    yield record


def read_metadata_record(path: Path) -> dict[str, str]:
    """Return the metadata that our recorder puts at the beginning of an .mcap file, {} if there is none.

    Raises:
        ResourceError: mcap is not installed.
    """
    with bag_packages():
        from mcap.records import Metadata
    for record in _Scan(path).records(until_data=True):
        if isinstance(record, Metadata) and record.name == METADATA_RECORD:
            return dict(record.metadata)
    return {}


class RecoveredMcap:
    """The complete chunks of a damaged .mcap file.

    Args:
        path: the file.

    Raises:
        RecordingError: not one message can be recovered.
        ResourceError: mcap is not installed.
    """

    def __init__(self, path: Path) -> None:
        """Go through the file once for its topics and what is lost."""
        with bag_packages():
            from mcap.records import Channel, Message, Schema
        self.path = path
        self.metadata: Mapping[str, str] = {}
        schemas: dict[int, str] = {}
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
        return partial(jazzy_types().deserialize_cdr, typename=type_name), self._bytes(wanted)

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
            got += f", {scan.damaged_chunks} of {total} chunks are damaged and lost{scan.reason}"
        if scan.complete:
            return got
        tail = self.path.stat().st_size - scan.readable
        got += ", the file has no footer (recorder killed or file cut): "
        if tail:
            return got + f"its last {tail} bytes, an incomplete record, and all that should follow are lost"
        return got + "what was not flushed is lost, at most the last second in a bag of our recorder"
