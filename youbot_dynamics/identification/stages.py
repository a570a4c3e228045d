"""The stages of an identification in the order in which they run, and their interface."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from youbot_dynamics.errors import IdentificationError, did_you_mean

if TYPE_CHECKING:  # `youbot --help` lists the stages and must stay fast
    from youbot_dynamics.arrays import Vector
    from youbot_dynamics.identification.finding import StageResult, Table
    from youbot_dynamics.identification.reading import Opened
    from youbot_dynamics.robot import Robot


class About(NamedTuple):
    """Description of a stage."""

    what: str  # what it identifies
    remark: str = ""  # remark that applies to all its numbers
    of: str = ""  # part of the robot that it needs: "arm", "base" or its "wheels"

    @property
    def part(self) -> str:
        """Part of the robot that it is about."""
        return "arm" if self.of == "arm" else "base"

    @property
    def title(self) -> str:
        """What it identifies of which part."""
        return f"{self.what} of the {self.part}"


_DELAY = (
    "a delay is the time by which the motion is behind its command: dead time, lag, and a share of friction that "
    "depends on speed; measured at the wheels, it does not show that the body follows some ms later, most in turns"
)
_BODY = (
    "measured from odometry, a gyro or poses, whose own delay and scale are part of the numbers; the gain is motion "
    "over command at the driven speeds"
)
_SCALED = "all values scale with the torque constant of the efforts; the intervals do not include its error"
# Each phase uses the results of the phases before it; the stages of one phase read a recording together.
PHASES = (
    {"calibration": About("geometry", of="wheels")},
    {"delay": About("delays", _DELAY)},
    {"body": About("limits", _BODY, of="base")},
    {"response": About("response", of="wheels")},
    {
        "base_friction": About("friction", _SCALED, of="wheels"),
        "arm_friction": About("friction", of="arm"),
        "thermal": About("motors", of="arm"),
    },
)
STAGES = {stage: about for phase in PHASES for stage, about in phase.items()}
# [s] of a recording that are enough for fits that simulate it, or whose values do not change within it.
EXCERPT = 300.0
# Number of recordings with curves for the report: those of a fleet would fill memory and page.
DRAWN = 12


def stage_of(name: str) -> Stage:
    """Load a stage in STAGES by name: the module `stage` of its folder."""
    return cast("Stage", importlib.import_module(f"{__package__}.{name}.stage"))


def chosen_stages(name: str, text: str) -> tuple[str, ...]:
    """Parse comma-separated names of stages, the value of the option `name`; empty for "".

    Raises:
        IdentificationError: an unknown name.
    """
    only = tuple(stage.strip() for stage in text.split(",")) if text else ()
    for stage in only:
        if stage not in STAGES:
            expected = f"names from {', '.join(STAGES)}, separated by commas"
            remedy = did_you_mean(stage.lower(), list(STAGES))
            raise IdentificationError(name, got=repr(stage), expected=expected, remedy=remedy)
    return only


class Taken(NamedTuple):
    """Data that a stage extracted from one recording."""

    number: int  # of the recording
    name: str  # of the recording, for notes
    part: Any  # return value of `extract`


_LONGEST = 3600.0  # total length of the recordings of `within_an_hour` [s]


def within_an_hour(recordings: Sequence[Taken], time_of: Callable[[Any], Vector]) -> tuple[list[Taken], list[str]]:
    """Recordings of up to an hour in total, at least one, and a note for each of the others.

    More readings in one fit add little information and fill the memory. `time_of` a part are its stamps (n,) [s].
    """
    used: list[Taken] = []
    notes: list[str] = []
    total = 0.0
    for recording in recordings:
        time = time_of(recording.part)
        duration = float(time[-1] - time[0]) if len(time) else 0.0
        if not used or total + duration <= _LONGEST:
            used.append(recording)
            total += duration
        else:
            notes.append(f"{recording.name} left out: the limit of one hour of readings is reached")
    return used, notes


class Stage(Protocol):
    """The module `stage` of a subject's folder.

    `extract` runs in other processes, also on other machines: its result must be small and picklable. `finish` gets the
    parts in the order of the recordings, so that the result does not depend on who extracted them.
    """

    FINDINGS: Table  # all numbers that it may find

    def extract(self, opened: Opened, robot: Robot) -> Any:
        """Extract the data of one recording.

        Raises:
            YoubotDynamicsError: the recording lacks something that this stage needs; the message names it.
        """

    def finish(self, taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
        """Fit all parts (at least one); `reopen` opens a recording again by its number, for fits that need single rows.

        Raises:
            YoubotDynamicsError: the recordings together hold too little data.
        """
