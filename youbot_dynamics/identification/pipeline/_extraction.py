"""Recordings and what the stages of a phase take out of each: tasks that run here, or on any worker."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from youbot_dynamics.errors import IdentificationError, RecordingError, YoubotDynamicsError
from youbot_dynamics.identification.reading import Opened, Options, look_at, open_recording
from youbot_dynamics.identification.stages import stage_of
from youbot_dynamics.robot import Robot

_PART = re.compile(r"(?P<bag>.+)_\d+\.(mcap|db3)(\.zstd)?|(?P<alone>.+)\.(mcap|db3)(\.zstd)?")


def expand(paths: Sequence[Path]) -> list[Path]:
    """Replace a folder that holds recordings, at any depth, by them, in the order of their names.

    A folder is a recording itself if it has a metadata.yaml, or else no folders but files NAME_0.mcap, NAME_1.mcap ...
    of one NAME: the parts of a split bag. What is named twice, or links lead to twice, is taken once, or its data would
    count twice. Folders inside that are empty, or cannot be looked into, are kept as recordings: whoever opens them
    tells what is wrong with them.

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


@dataclass(frozen=True, eq=False)
class Task:
    """One recording and what to take out of it."""

    path: Path  # of the recording
    number: int  # of the recording within the identification
    stages: tuple[str, ...]  # names of the stages that look at it
    robot: Robot  # as known so far
    options: Options  # how to read it
    inspect: bool = False  # whether to look for what is wrong with it, whatever the stages need: once is enough


@dataclass(frozen=True, eq=False)
class Extracted:
    """What came out of one recording; small, and can be pickled."""

    number: int  # of the recording
    path: str  # of it
    sha256: str = ""  # of its data
    robot_id: str = ""  # as recorded
    lost: str = ""  # what could not be read of it
    parts: dict[str, Any] = field(default_factory=dict)  # stage -> its part
    lacking: dict[str, YoubotDynamicsError] = field(default_factory=dict)  # stage -> why it found nothing to work with
    broken: YoubotDynamicsError | None = None  # why nothing could be read at all, None where it could
    warnings: tuple[str, ...] = ()  # what is wrong with it, where that was asked


class Worker(Protocol):
    """Works tasks off, here or elsewhere; results come in the order of the tasks."""

    def __call__(self, tasks: Sequence[Task], done: Callable[[str], None]) -> list[Extracted]:
        """Extract every task; `done` is told the name of each recording as it is finished."""


def extract(task: Task, opened: Opened | None = None) -> Extracted:
    """Take out of a recording what the stages of a task need; `opened` where it is open already.

    A recording that cannot be read, or lacks something, is told in the result, never raised.
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
        except YoubotDynamicsError as problem:
            lacking[name] = problem
        except (ArithmeticError, ValueError, IndexError) as unforeseen:  # numbers nobody thought of; others go on
            lacking[name] = unforeseen_error(f"{name} of {task.path}", unforeseen)
    warnings = look_at(known, task.robot) if task.inspect else ()
    return Extracted(task.number, str(task.path), sha256, known.robot_id, known.lost, parts, lacking, None, warnings)


def unforeseen_error(what: str, problem: Exception) -> IdentificationError:
    """An error that is a mistake of ours, or numbers nobody thought of, as one of a stage: the others go on."""
    where = traceback.extract_tb(problem.__traceback__)[-1]
    return IdentificationError(
        what,
        got=f"an unexpected error ({type(problem).__name__} in {where.name}: {problem})",
        expected="numbers it can work with",
        remedy="look at the values of the recording, and please report this",
    )


class HereWorker:
    """Works tasks off in this process, one after the other; keeps small recordings open for the next phase."""

    def __init__(self, kept: int = 200_000_000) -> None:
        """Keep recordings of up to `kept` bytes in all."""
        self._kept = kept
        self._open: dict[int, Opened] = {}

    def __call__(self, tasks: Sequence[Task], done: Callable[[str], None]) -> list[Extracted]:
        """Extract every task, see `Worker`."""
        extracted = []
        for task in tasks:
            extracted.append(self._extract(task))
            done(task.path.name)
        return extracted

    def _extract(self, task: Task) -> Extracted:
        opened = self._open.get(task.number)
        if opened is None:
            files = task.path.rglob("*") if task.path.is_dir() else [task.path]
            size = sum(file.stat().st_size for file in files if file.is_file())
            if size <= self._kept:
                try:
                    opened = open_recording(task.path, task.number, task.robot, task.options)
                except YoubotDynamicsError:
                    return extract(task)
                self._kept -= size
                self._open[task.number] = opened
        return extract(task, opened)
