"""What every stage offers: `extract` for one recording, anywhere, and `finish` for all of them, here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from youbot_dynamics.identification.finding import StageResult
from youbot_dynamics.identification.reading.opened import Opened
from youbot_dynamics.robot import Robot

# Recordings of which a part holds curves for the report: a fleet's would fill memory and page.
DRAWN = 12

# Opens a recording once more by its number: for the rare fit that needs its rows again.
Reopen = Callable[[int], Opened]


class Taken(NamedTuple):
    """What a stage took out of one recording.

    Args:
        number: of the recording.
        name: of the recording, for notes.
        part: what `extract` gave.
    """

    number: int
    name: str
    part: Any


class Stage(Protocol):
    """A module of this package.

    `extract` runs in other processes, on other machines too: its part must be small and can be pickled. `finish` sees
    the parts in the order of the recordings, whoever made them, so that the result does not depend on that.
    """

    def extract(self, opened: Opened, robot: Robot) -> Any:
        """Part of one recording.

        Raises:
            YoubotDynamicsError: the recording lacks what this stage needs; says what.
        """

    def finish(self, taken: Sequence[Taken], robot: Robot, reopen: Reopen) -> StageResult:
        """Fit of all parts, at least one.

        Raises:
            YoubotDynamicsError: they are too little together.
        """
