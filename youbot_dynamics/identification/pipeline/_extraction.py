"""Extraction tasks: what the stages of a phase take from each recording, in this process or on a worker."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from youbot_dynamics.errors import IdentificationError, RecordingError, YoubotDynamicsError
from youbot_dynamics.identification.reading import (
    Opened,
    Options,
    look_at,
    open_recording,
    refused_choices,
    untold_rows,
)
from youbot_dynamics.identification.stages import stage_of
from youbot_dynamics.robot import Robot

_PART = re.compile(r"(?P<bag>.+)_\d+\.(mcap|db3)(\.zstd)?|(?P<alone>.+)\.(mcap|db3)(\.zstd)?")

_MOST_FOLDERS = 10_000  # visited below one path: a second or two


def expand(paths: Sequence[Path]) -> list[Path]:
    """Replace each folder of recordings by the recordings in it, at any depth, sorted by name.

    A folder is a recording if it has a metadata.yaml, or if it has no folders and only the parts NAME_0.mcap,
    NAME_1.mcap ... of one split bag. A recording that is named or linked twice is used once, so that its data do not
    count twice. Inner folders that are empty or unreadable are kept; opening them reports the error.

    Raises:
        RecordingError: a path does not exist, or a folder has more than 10,000 folders and recordings in it.
    """
    recordings: list[Path] = []
    seen: set[Path] = set()
    for path in paths:
        if not os.path.exists(path):  # also of a name that is too long or has a null character
            raise RecordingError(str(path), got="no such file or folder", remedy="check the path of the recording")
        if path.is_dir():
            before = len(seen)
            inside = list(_inside(path, seen))
            # Nothing new in it: either no recording, which is reported on opening, or recordings named before.
            recordings.extend(inside or ([path] if len(seen) > before else []))
        elif (real := Path(os.path.realpath(path))) not in seen:
            seen.add(real)
            recordings.append(path)
    return recordings


def _inside(top: Path, seen: set[Path]) -> Iterator[Path]:
    """Recordings in a folder, or the folder itself if it is one; `seen` are the folders and files visited so far."""
    before, waiting = len(seen), [(top, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            real = Path(os.path.realpath(path))
            if real not in seen:
                seen.add(real)
                yield path
            continue
        try:
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            with os.scandir(path) as entries:
                names = sorted(entry.name for entry in entries)
            folders = {name for name in names if (path / name).is_dir()}
        except (OSError, RuntimeError):  # RuntimeError: a cyclic link, before Python 3.13
            yield path
            continue
        if len(seen) - before > _MOST_FOLDERS:
            got, remedy = f"more than {_MOST_FOLDERS} folders and recordings in it", "name the folder of the recordings"
            raise RecordingError(str(top), got=got, expected="a folder with recordings", remedy=remedy)
        if not names or "metadata.yaml" in names or (not folders and _of_one_bag(names)):
            yield path
            continue
        inner = (name for name in reversed(names) if name in folders or name.endswith(".bag") or _PART.fullmatch(name))
        waiting += [(path / name, name in folders) for name in inner]


def _of_one_bag(names: Sequence[str]) -> bool:
    """Whether the data files among these names are the parts of one recording."""
    parts = [part for part in map(_PART.fullmatch, names) if part is not None]
    return len({part["bag"] or part["alone"] for part in parts}) == 1


@dataclass(frozen=True, eq=False)
class Task:
    """One recording and what to extract from it."""

    path: Path  # of the recording
    number: int  # of the recording within the identification
    stages: tuple[str, ...]  # names of the stages that use it
    robot: Robot  # as known so far
    options: Options  # how to read it
    inspect: bool = False  # whether to check its quality and the user's choices; once is enough


@dataclass(frozen=True, eq=False)
class Extracted:
    """Data extracted from one recording; small and picklable."""

    number: int  # of the recording
    path: str  # of the recording
    sha256: str = ""  # of its data
    robot_id: str = ""  # as recorded
    unnamed: str = ""  # what to call its robot where neither that nor a joint tells it
    lost: str = ""  # what could not be read
    parts: dict[str, Any] = field(default_factory=dict)  # stage -> its part
    lacking: dict[str, YoubotDynamicsError] = field(default_factory=dict)  # stage -> why it has no data
    broken: YoubotDynamicsError | None = None  # why nothing could be read, None otherwise
    warnings: tuple[str, ...] = ()  # about its quality, if requested
    refused: dict[str, YoubotDynamicsError] = field(default_factory=dict)  # options it cannot satisfy, if requested
    untold: dict[str, float] = field(default_factory=dict)  # axis or channel -> time [s] as of `untold_rows`


class Worker(Protocol):
    """Executes tasks, here or elsewhere; results are in the order of the tasks."""

    def __call__(self, tasks: Sequence[Task], done: Callable[[str], None]) -> list[Extracted]:
        """Execute every task; `done` gets the name of each finished recording."""


def extract(task: Task, opened: Opened | None = None) -> Extracted:
    """Extract from a recording what the stages of a task need; pass `opened` if it is already open.

    Errors of a recording are part of the result; they are not raised.
    """
    try:
        known = opened or open_recording(task.path, task.number, task.robot, task.options)
        sha256 = known.sha256
    except YoubotDynamicsError as problem:
        return Extracted(task.number, str(task.path), broken=problem)
    parts: dict[str, Any] = {}
    lacking: dict[str, YoubotDynamicsError] = {}
    for name in task.stages:
        try:
            parts[name] = stage_of(name).extract(known, task.robot)
        except FAILURES as problem:
            lacking[name] = named_error(f"{name} of {task.path}", problem)
    warnings = look_at(known, task.robot) if task.inspect else ()
    refused = refused_choices(known, task.robot) if task.inspect else {}
    about = known.robot_id, known.unnamed, known.lost
    untold = untold_rows(known.log)
    return Extracted(task.number, str(task.path), sha256, *about, parts, lacking, None, warnings, refused, untold)


# Errors of one stage or path, after which the others continue: foreseen ones, and those of unexpected numbers.
FAILURES = (YoubotDynamicsError, ArithmeticError, ValueError, IndexError)


def named_error(what: str, problem: Exception) -> YoubotDynamicsError:
    """A foreseen error as it is, or the error for an unexpected one (a bug or unexpected numbers)."""
    if isinstance(problem, YoubotDynamicsError):
        return problem
    where = traceback.extract_tb(problem.__traceback__)[-1]
    return IdentificationError(
        what,
        got=f"an unexpected error ({type(problem).__name__} in {where.name}: {problem})",
        expected="valid numbers",
        remedy="check the values of the recording, and please report this error",
    )


class HereWorker:
    """Executes tasks in this process, one after the other; opens each recording once.

    Args:
        kept: bytes of the recordings whose decoded messages are kept for the next phase.
        counted: called with the number of finished recordings and their total number in each phase.
    """

    def __init__(self, kept: int = 200_000_000, counted: Callable[[int, int], None] = lambda done, count: None) -> None:
        self._kept, self._counted = kept, counted
        self._open: dict[int, Opened] = {}
        self._large: set[int] = set()  # whose messages are not kept

    def __call__(self, tasks: Sequence[Task], done: Callable[[str], None]) -> list[Extracted]:
        """Execute every task, see `Worker`."""
        extracted: list[Extracted] = []
        self._counted(0, len(tasks))
        for task in tasks:
            try:
                opened = self.opened(task.path, task.number, task.robot, task.options)
            except YoubotDynamicsError:  # which `extract` reports
                opened = None
            extracted.append(extract(task, opened))
            self._forget()
            self._counted(len(extracted), len(tasks))
            done(task.path.name)
        return extracted

    def opened(self, path: Path, number: int, robot: Robot, options: Options) -> Opened:
        """The recording; errors as of `open_recording`."""
        self._forget()
        if number in self._open:
            return replace(self._open[number], options=options)  # they may have changed since it was looked at
        opened = open_recording(path, number, robot, options)
        files = path.rglob("*") if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files if file.is_file())
        if size > self._kept and opened.log is not None:
            return opened  # a text log is in memory as a whole
        self._open[number] = opened
        if size > self._kept:
            self._large.add(number)
        else:
            self._kept -= size
        return opened

    def _forget(self) -> None:
        for number in self._large:
            self._open[number].forget()
