"""Why a number is not identified: a kind, which the code compares, and a text, which only people read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from youbot_dynamics.errors import IdentificationError


class Kind(Enum):
    """Kind of a reason; the values are those of `kind` in result.json."""

    NOT_MEASURED = "not_measured"  # a signal is missing, or tells nothing
    TOO_LITTLE_DATA = "too_little_data"
    NOT_EXCITED = "not_excited"  # the data lack the motion on which the number depends
    CONFUSED = "confused"  # the data determine only a combination with other numbers
    TOO_WIDE = "too_wide"  # its interval is too wide for its value
    AT_BOUND = "at_bound"  # the fit is beyond its physical bound, or the search ended at a bound
    WRONG_SIGNALS = "wrong_signals"  # signals contradict each other or the robot: signs, order, units, clocks
    UNEXPLAINED = "unexplained"  # the model does not explain the data
    NOT_CONVERGED = "not_converged"  # the search spent its budget
    OTHER_EXPLANATION = "other_explanation"  # another explanation, which the data do not exclude, gives another value
    NOT_OF_THE_ROBOT = "not_of_the_robot"  # it belongs to the recording, or another number is the one to use
    DEPENDS = "depends"  # it depends on a number that is not identified
    OUT_OF_RANGE = "out_of_range"  # beyond the range of the robot's parameter
    UNTOLD = "untold"  # in a result file without kinds, of version 1.0

    @property
    def in_words(self) -> str:
        """A few words for people, where a whole reason is too long."""
        return _IN_WORDS[self]


_IN_WORDS = {
    Kind.NOT_MEASURED: "not measured",
    Kind.TOO_LITTLE_DATA: "too little data",
    Kind.NOT_EXCITED: "the motion does not show it",
    Kind.CONFUSED: "only together with others",
    Kind.TOO_WIDE: "interval too wide",
    Kind.AT_BOUND: "beyond its physical bound",
    Kind.WRONG_SIGNALS: "signals contradict each other",
    Kind.UNEXPLAINED: "the model does not explain the data",
    Kind.NOT_CONVERGED: "the search found no end",
    Kind.OTHER_EXPLANATION: "another explanation is possible",
    Kind.NOT_OF_THE_ROBOT: "not a property of the robot",
    Kind.DEPENDS: "depends on one not identified",
    Kind.OUT_OF_RANGE: "out of range",
    Kind.UNTOLD: "no reason given",
}


@dataclass(frozen=True)
class Reason:
    """Why a number is not identified. The package never compares, parses or edits the text."""

    kind: Kind
    text: str  # in plain words, for people; continues "not identifiable: "


IDENTIFIED = "identified"
_REFUSED = "not identifiable: "


def verdict_of(reason: Reason | None) -> str:
    """Verdict for people: "identified", or "not identifiable: " and the reason."""
    return IDENTIFIED if reason is None else f"{_REFUSED}{reason.text}"


def recorded_reason(verdict: str, kind: str | None) -> Reason | None:
    """Reason of a verdict and a kind as result.json holds them; no kind in files of version 1.0.

    Raises:
        ValueError: a kind that does not exist.
    """
    if verdict == IDENTIFIED:
        return None
    return Reason(Kind.UNTOLD if kind is None else Kind(kind), verdict[len(_REFUSED) :])


def too_little(problem: IdentificationError, counted: str = "") -> Reason:
    """Reason of an error by too little data; `counted` names what was counted, if the error's words do not fit."""
    kind = problem.kind if isinstance(problem.kind, Kind) else Kind.TOO_LITTLE_DATA
    got = f"{problem.count} {counted}" if counted else problem.got
    return Reason(kind, f"{got}; needed: {problem.expected}")
