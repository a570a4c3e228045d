"""From what the user named to single recordings: folders of bags, folders in folders, links."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from youbot_dynamics.errors import RecordingError

_PART = re.compile(r"(?P<bag>.+)_\d+\.(mcap|db3)(\.zstd)?|(?P<alone>.+)\.(mcap|db3)(\.zstd)?")


def expand(paths: Sequence[Path]) -> list[Path]:
    """Replace a folder that holds recordings, at any depth, by them, in the order of their names.

    A folder is a recording itself if it has a metadata.yaml, or else no folders but files NAME_0.mcap, NAME_1.mcap ...
    of one NAME: the parts of a split bag. What is named twice, or links lead to twice, is taken once, or its data would
    count twice.
    Folders inside that are empty, or cannot be looked into, are kept as recordings: whoever opens them tells what is
    wrong with them.

    Args:
        paths: recordings, or folders with recordings.

    Raises:
        RecordingError: a path that does not exist.
    """
    found: list[Path] = []
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise RecordingError(str(path), got="no such file or folder", remedy="check the path of the recording")
        if path.is_dir():
            before = len(seen)
            inside = list(_inside(path, seen))
            # Nothing new in it: no recording at all, which whoever opens it tells, or those that were named before.
            found.extend(inside or ([path] if len(seen) > before else []))
        elif (real := Path(os.path.realpath(path))) not in seen:
            seen.add(real)
            found.append(path)
    return found


def _inside(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Recordings in a folder, or the folder where it is one; `seen` are the folders and files met so far."""
    try:
        real = folder.resolve()
        if real in seen:
            return
        seen.add(real)
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        folders = {name for name in names if (folder / name).is_dir()}
    except (OSError, RuntimeError):  # RuntimeError: a link that leads to itself, before Python 3.13
        yield folder
        return
    if not names or "metadata.yaml" in names or (not folders and _of_one_bag(names)):
        yield folder
        return
    for name in names:
        path = folder / name
        if name in folders:
            yield from _inside(path, seen)
        elif path.suffix == ".bag" or _PART.fullmatch(name):
            real = Path(os.path.realpath(path))
            if real not in seen:
                seen.add(real)
                yield path


def _of_one_bag(names: Sequence[str]) -> bool:
    """Whether the data files among these names are the parts of a single recording."""
    parts = [part for part in map(_PART.fullmatch, names) if part is not None]
    return len({part["bag"] or part["alone"] for part in parts}) == 1
