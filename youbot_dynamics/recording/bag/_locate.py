"""Find the data files of a recording and open the sources that read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import open_file, read_text
from youbot_dynamics.recording.bag._recovery import RecoveredMcap, Source
from youbot_dynamics.recording.bag._rosbag2 import Rosbag2Source, rosbag2_reads
from youbot_dynamics.recording.bag._source import RosbagsSource
from youbot_dynamics.recording.bounds import LARGEST_METADATA, DamagedError

_MAGIC = {".mcap": b"\x89MCAP0\r\n", ".db3": b"SQLite format 3\x00", ".bag": b"#ROSBAG V"}
_DATA_FILE = re.compile(r"\.(mcap|db3)(\.zstd)?$")
_EXPECTED = "a rosbag2 folder, an .mcap or .db3 file, or a ROS 1 .bag file"


def data_files(path: Path) -> list[Path]:
    """Return the data files of a recording, split files in the order of their numbers.

    Args:
        path: rosbag2 folder or data file.

    Raises:
        RecordingError: the path does not exist, the folder holds no bag, or the file is not a bag.
    """
    if not path.exists():
        remedy = "check the spelling of the path"
        raise RecordingError(str(path), got="no such file or folder", expected=_EXPECTED, remedy=remedy)
    if not path.is_dir():
        check_magic(path)
        return [path]
    files = [file for file in path.iterdir() if _DATA_FILE.search(file.name) and file.is_file()]
    listing = path / "metadata.yaml"
    if listing.exists():
        # A repaired copy beside the original would otherwise be read as a second part.
        listed = read_text(listing, RecordingError, str(listing), "a bag's metadata in YAML", LARGEST_METADATA)
        files = [file for file in files if file.name in listed] or files
    elif not files:
        inside = sorted(entry.name for entry in path.iterdir())
        raise RecordingError(
            str(path),
            got=f"a folder without a bag, with {', '.join(inside[:5])}" if inside else "an empty folder",
            expected=_EXPECTED,
            remedy="name the folder or file of one recording",
        )
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
    """Open a recording as a whole if possible, else file by file.

    Args:
        path: rosbag2 folder or data file.
        files: its data files.

    Returns:
        The sources, and a sentence on files that could not be read or "".

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
            if "missing" in error.got:
                lost = error.got
    sources, unreadable = open_files(files)
    return sources, "; ".join(part for part in (lost, unreadable) if part)


def open_files(files: Sequence[Path], *, indexed: bool = True) -> tuple[list[Source], str]:
    """Open each data file on its own; result and errors as in `open_sources`. The error gives the first reason.

    Args:
        files: the data files.
        indexed: use the index of .mcap files if it can be read; otherwise scan their chunks.
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
