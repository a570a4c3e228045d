"""Limits on what rosbags unpacks and parses.

rosbags unpacks any amount of data and parses any YAML that a file holds. This module replaces those functions of
rosbags once by functions that stop at a limit.
"""

from __future__ import annotations

import bz2
import importlib.util
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache, partial
from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import yaml

from youbot_dynamics.errors import RecordingError, missing_package
from youbot_dynamics.files import RAISE_LIMITS, beyond_limit, scaled


@contextmanager
def bag_packages() -> Iterator[None]:
    """Turn a failing import of rosbags or mcap inside the block into a ResourceError that says how to install them."""
    try:
        yield
    except ImportError as error:
        thing, expected = "reading and writing bags", "the packages rosbags and mcap"
        if importlib.util.find_spec("rosbag2_py") is not None:
            thing = "writing bags, and reading damaged bags and ROS 1 bags"
            expected += " (`ros2 bag record` does not need them)"
        raise missing_package("rosbags", thing, expected) from error


if TYPE_CHECKING:
    from rosbags.rosbag1 import Reader as Reader1
    from rosbags.rosbag2 import Reader as Reader2

LARGEST_CHUNK = 32_000_000  # unpacked size of a chunk or message [bytes]
UNPACKED, UNPACKED_PER_BYTE = 4_000_000, 200  # unpacked bytes in one pass: fixed part, and per byte of the recording
READS, BYTES_PER_READ = 1_000_000, 16  # messages read in one pass: fixed part, and one more per so many bytes of file
SKIPPED = 8  # a record that is not a message counts as this many messages
SQLITE_STEPS, SQLITE_STEPS_PER_BYTE = 10_000_000, 20  # SQLite instructions in one pass: fixed part, and per byte
LARGEST_METADATA = 2_000_000  # size of a YAML text (metadata.yaml, topic quality of service) [bytes]

_MESSAGE = 5  # kind of a record of an .mcap file
_RECORD, _HEADS = struct.Struct("<BQH4xQ").unpack_from, 23  # heads of a record and of a message, without a second time
_CHECKSUM_AT, _CHUNK_HEAD = 33, 49  # places of the checksum and of the compression's text in a chunk record
_MOST_FRAMES = 64  # compressed frames in a chunk; recorders write one
_DEEPEST = 32  # depth of nested lists and mappings
_STEPS_AT_ONCE = 100_000
_NO_LIMIT = 1 << 62


class DamagedError(RecordingError):
    """A file that the strict reader rejects; parts of it may still be recoverable."""


class Allowance(threading.local):
    """What this thread may still unpack and read in the current pass; there is no limit outside a pass."""

    def __init__(self) -> None:
        self.chunk = self.bytes = self.steps = self.reads = _NO_LIMIT

    @contextmanager
    def of(self, size: int) -> Iterator[None]:
        """Set the limits for one pass over a recording of `size` bytes."""
        before = self.chunk, self.bytes, self.steps, self.reads
        self.chunk = scaled(LARGEST_CHUNK)
        self.bytes = scaled(UNPACKED + UNPACKED_PER_BYTE * size)
        self.steps = scaled(SQLITE_STEPS + SQLITE_STEPS_PER_BYTE * size)
        self.reads = scaled(READS + size // BYTES_PER_READ)
        try:
            yield
        finally:
            self.chunk, self.bytes, self.steps, self.reads = before

    def unpack(self, kind: Callable[[], Any], packed: bytes, claimed: int | None = None) -> bytes:
        """Unpack a chunk or message.

        `kind` is the decompressor class, as in the modules bz2, zstd and lz4.frame. `claimed` is the unpacked size that
        the file states [bytes], None if it states none.

        Raises:
            DamagedError: the data is incomplete, or larger than stated or allowed; unpacking stops there.
        """
        most = min(self.chunk, self.bytes)
        if claimed is not None:
            self._check("a chunk", claimed, most)
            most = claimed
        data = b""
        frames = 0
        while packed:  # one frame after the other
            frames += 1
            if frames > _MOST_FRAMES:
                expected = f"at most {_MOST_FRAMES}"
                raise DamagedError("a chunk", got="too many compressed frames", expected=expected)
            decompressor = kind()
            data += decompressor.decompress(packed, max_length=most + 1 - len(data))
            self._check("a chunk", len(data), most)
            if not decompressor.eof:
                raise DamagedError("a chunk", got="compressed data that ends early", expected="complete data")
            packed = decompressor.unused_data or b""
        self.bytes -= len(data)
        return data

    def spend(self, data: bytes) -> bytes:
        """Count the bytes and return them unchanged; raise a DamagedError if they exceed what is left."""
        self._check("a compressed file", len(data), self.bytes)
        self.bytes -= len(data)
        return data

    def step(self) -> bool:
        """Count SQLite steps and return false, so that SQLite continues; raise a DamagedError if none are left."""
        self.steps -= _STEPS_AT_ONCE
        if self.steps < 0:
            raise DamagedError("a database", got="too many rows", expected="tables as rosbag2 writes them")
        return False

    def count(self, reads: int) -> None:
        """Count records of an .mcap file (a megabyte may unpack to millions); raise a DamagedError if none are left."""
        self.reads -= reads
        if self.reads < 0:
            expected = f"at most {READS}, and one for each {BYTES_PER_READ} bytes of the file"
            raise DamagedError("its records", got="more than allowed", expected=expected, remedy=RAISE_LIMITS)

    @staticmethod
    def _check(thing: str, size: int, most: int) -> None:
        if size > most:
            raise DamagedError(thing, **beyond_limit(f"{size} bytes unpacked or more", most))


ALLOWANCE = Allowance()


def load_yaml(text: str) -> Any:
    """Return the plain values of a YAML text.

    Raises:
        DamagedError: the text is too long, nested too deeply, has an alias, or is not YAML.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if len(text) > scaled(LARGEST_METADATA):
        raise DamagedError("its YAML", **beyond_limit(f"{len(text)} characters", scaled(LARGEST_METADATA)))
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
                expected = f"plain values nested at most {_DEEPEST} deep"
                raise DamagedError("its YAML", got="an alias or deeper nesting", expected=expected)
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as problem:  # ValueError: a number with thousands of digits
        raise DamagedError("its YAML", got=f"{problem}", expected="YAML as rosbag2 writes it") from None


def rosbags_readers() -> tuple[type[Reader1], type[Reader2]]:
    """Return the readers of ROS 1 and ROS 2 bags, which respect the limits of ALLOWANCE."""
    with bag_packages():
        from rosbags.rosbag1 import Reader as Reader1
        from rosbags.rosbag2 import Reader as Reader2
    chunk_unpackers()
    return Reader1, Reader2


@lru_cache(maxsize=1)
def chunk_unpackers() -> Mapping[str, Callable[[bytes, int], bytes]]:
    """Limit rosbags; return, for each compression, the function that unpacks an .mcap chunk (bytes, stated size)."""
    apsw, lz4 = (cast("Any", importlib.import_module(name)) for name in ("apsw", "lz4.frame"))
    modules = ("rosbag1.reader", "rosbag2.reader", "rosbag2.metadata", "rosbag2.storage_mcap")
    reader1, reader2, metadata, mcap = (cast("Any", importlib.import_module(f"rosbags.{name}")) for name in modules)
    zstd = reader2.zstd

    @contextmanager
    def open_zstd(packed: BinaryIO, mode: str) -> Iterator[Any]:
        with zstd.open(packed, mode) as file:
            yield SimpleNamespace(read=lambda size: ALLOWANCE.spend(file.read(size)))

    def bound(connection: Any) -> None:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, min(ALLOWANCE.chunk, 1_000_000_000))
        connection.set_progress_handler(ALLOWANCE.step, _STEPS_AT_ONCE)

    def counted(read: Callable[..., Any], reads: int, *arguments: Any) -> Any:
        ALLOWANCE.count(reads)
        return read(*arguments)

    unpack = ALLOWANCE.unpack
    unpackers: dict[str, Callable[..., bytes]] = {
        "lz4": partial(unpack, lz4.LZ4FrameDecompressor),
        "zstd": partial(unpack, zstd.ZstdDecompressor),
    }
    mcap.DECOMPRESSORS.update(unpackers)
    mcap.read_exact, mcap.skip_sized = partial(counted, mcap.read_exact, 1), partial(counted, mcap.skip_sized, SKIPPED)
    reader1.decompressors.update(lz4=unpackers["lz4"], bz2=partial(unpack, bz2.BZ2Decompressor))
    reader2.zstd = SimpleNamespace(open=open_zstd, decompress=unpackers["zstd"])
    parsed = lru_cache(maxsize=16)(load_yaml)  # rosbags parses the same few texts of each topic at every opening
    reader2.YAML = metadata.YAML = lambda typ: SimpleNamespace(load=lambda text: deepcopy(parsed(text)))
    apsw.connection_hooks.append(bound)
    return {"": lambda data, size: data, **unpackers}


def messages_of_chunk(chunk: Any, numbers: Collection[int], file: BinaryIO) -> list[tuple[int, bytes]]:
    """Return receive time [ns] and bytes of the messages on some channels of an .mcap chunk, sorted by time.

    Raises:
        DamagedError, or an error of the readers: the chunk is damaged or exceeds a limit.
    """
    from rosbags.rosbag2 import storage_mcap

    file.seek(chunk.chunk_start_offset + _CHECKSUM_AT)
    checksum = int.from_bytes(file.read(4), "little")
    file.seek(chunk.chunk_start_offset + _CHUNK_HEAD + len(chunk.compression))
    packed = storage_mcap.read_exact(file, chunk.compressed_size)
    data = storage_mcap.decompress(packed, chunk.compression, chunk.uncompressed_size, checksum)
    start, stop = chunk.message_start_time, chunk.message_end_time
    found, at, end, reads, padded = [], 0, len(data), 0, data + bytes(_HEADS)  # the last record may be shorter
    while at < end:
        kind, length, number, time = _RECORD(padded, at)
        first, at = at + _HEADS, at + 9 + length
        if kind != _MESSAGE:
            reads += SKIPPED
            continue
        reads += 1
        if number in numbers and start <= time <= stop:
            found.append((time, data[first + 8 : at]))
    if at > end:
        raise DamagedError("a chunk", got="a record that ends after it", expected="complete records")
    ALLOWANCE.count(reads)  # a chunk is of limited size
    found.sort(key=itemgetter(0))
    return found
