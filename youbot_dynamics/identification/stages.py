"""The stages of an identification, in the order in which they run, and what each of them offers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from youbot_dynamics.errors import IdentificationError

if TYPE_CHECKING:  # `youbot --help` names the stages and must stay quick
    from youbot_dynamics.identification.finding import StageResult
    from youbot_dynamics.identification.reading import Opened
    from youbot_dynamics.robot import Robot


class About(NamedTuple):
    """What is said of a stage."""

    title: str  # what it identifies
    remark: str = ""  # what holds for all its numbers


_DELAY = (
    "effective: dead time, lag and a share of friction, for the motion of the wheels; the body may follow some "
    "ms later, more in yaw, by inertia and rollers; at other speeds the share of friction differs"
)
_SCALED = "all values scale with the torque constant of the efforts; the intervals do not include its error"
# Each phase uses what the phases before it identified; the stages of one phase read a recording together.
PHASES = (
    {"calibration": About("geometry of the base")},
    {"delay": About("delays of the base", _DELAY)},
    {"response": About("response of the base")},
    {
        "base_friction": About("friction of the base", _SCALED),
        "arm_friction": About("friction of the arm"),
        "thermal": About("motors of the arm"),
    },
)
STAGES = {stage: about for phase in PHASES for stage, about in phase.items()}
# Recordings of which a part holds curves for the report: those of a fleet would fill memory and page.
DRAWN = 12


def stage_of(name: str) -> Stage:
    """Load the stage of a name in STAGES: the module `stage` of its folder."""
    return cast("Stage", importlib.import_module(f"{__package__}.{name}.stage"))


def chosen_stages(name: str, text: str) -> tuple[str, ...]:
    """Read names of stages, separated by commas, as the user gives them to the option `name`; empty for "".

    Raises:
        IdentificationError: an unknown name.
    """
    only = tuple(stage.strip() for stage in text.split(",")) if text else ()
    for stage in only:
        if stage not in STAGES:
            raise IdentificationError(
                name, got=repr(stage), expected=f"names from {', '.join(STAGES)}, separated by commas"
            )
    return only


class Taken(NamedTuple):
    """What a stage took out of one recording."""

    number: int  # of the recording
    name: str  # of the recording, for notes
    part: Any  # what `extract` gave


class Stage(Protocol):
    """The module `stage` of a subject's folder.

    `extract` runs in other processes, on other machines too: its part must be small and can be pickled. `finish` sees
    the parts in the order of the recordings, whoever made them, so that the result does not depend on that.
    """

    def extract(self, opened: Opened, robot: Robot) -> Any:
        """Part of one recording.

        Raises:
            YoubotDynamicsError: the recording lacks what this stage needs; says what.
        """

    def finish(self, taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
        """Fit of all parts, at least one; `reopen` opens a recording again by its number, for fits that need rows.

        Raises:
            YoubotDynamicsError: they are too little together.
        """
