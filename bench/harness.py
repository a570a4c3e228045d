"""Time candidates side by side in one process, so that their ratios can be trusted on a noisy machine.

A bench module is a file `bench/bench_GROUP.py` with a table of item builders, name -> function without arguments:

    from bench.harness import AccuracyGoal, Candidate, Goal, Item, TimeGoal

    def advance() -> Item:
        friction, speeds = ...                                      # data, models, peers; not timed
        return Item(
            about="LuGre bristle over 1 s at 1 ms",
            unit="us",                                              # shown per sample: "ns", "us", "ms" or "s"
            candidates={                                            # the first one is ours: ratios refer to it
                "path exponential": Candidate(lambda: run(z, speeds), samples=1),
                "LSODA 1e-6": Candidate(lambda: solve_ivp(...)),
            },
            accuracy={"path exponential [N m]": error_of_ours, "LSODA 1e-6 [N m]": error_of_lsoda},
            goals=(
                Goal("path exponential", "LSODA 1e-6", 300.0),      # ours at least 300 times as fast
                TimeGoal("path exponential", 20e-6, says="..."),    # at most 20e-6 s a sample
                AccuracyGoal("path exponential [N m]", 1e-10),
            ),
        )

    ITEMS = {"lugre-advance": advance}
    ITEMS_WITHOUT_NUMBA = {"lugre-advance-plain": advance_plain}    # optional: run where `import numba` fails

Names are unique over all groups. `samples` says how many samples one call works off: a batch of 1000 stands beside a
single call. A call must do the same work each time and must not depend on how often it was called. Where a call takes
about a microsecond, hand over `functools.partial(function, ...)`, not a lambda: that is 40 ns nearer to the function.

How it is measured. One call to warm up (compilation), then the number of calls a repeat is doubled until a repeat
lasts long enough for the clock. All candidates run once in each repeat, the starting one moving on by one each time,
so that drift of the machine meets all alike; garbage collection is off. Shown are median and 10th to 90th percentile
over the repeats. A ratio is the median over the repeats of peer / ours *of the same repeat*: both ran within
milliseconds of each other, so a slow second of the machine divides out, which it does not in a ratio of medians.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}  # [s]


@dataclass(frozen=True)
class Candidate:
    """One way to do the work of an item.

    Args:
        call: does the work once.
        samples: samples one call works off.
        less: a call of the same shape that does no work; its time is taken off (what a loop in C++ would not pay).
        timed: `call` returns the seconds it took, measured by itself, for instance in a child process.
        note: what a reader of the table must know about it.
    """

    call: Callable[[], object]
    samples: int = 1
    less: Callable[[], object] | None = None
    timed: bool = False
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """Candidate `ours` is at least `at_least` times as fast a sample as candidate `peer`."""

    ours: str
    peer: str
    at_least: float


@dataclass(frozen=True)
class TimeGoal:
    """A candidate takes at most `at_most` seconds a sample; `says` tells what that means, e.g. a real-time factor."""

    candidate: str
    at_most: float
    says: str = ""


@dataclass(frozen=True)
class AccuracyGoal:
    """A figure in `Item.accuracy` is at most `at_most`."""

    quantity: str
    at_most: float


@dataclass(frozen=True)
class Item:
    """Candidates that do the same work, and what ours must reach.

    Args:
        about: the work, in a line.
        candidates: label -> candidate, or just its call; ours first.
        unit: of the times shown, one of `UNITS`.
        accuracy: what each candidate's result is off by, in units named in the label.
        goals: what must hold.
        repeats: at most so many, where a call takes seconds.
        note: remark under the table.

    Raises:
        ValueError: no candidate, an unknown unit, or a goal about an unknown label.
    """

    about: str
    candidates: Mapping[str, Candidate | Callable[[], object]]
    unit: str = "us"
    accuracy: Mapping[str, float] = field(default_factory=dict)
    goals: Sequence[Goal | TimeGoal | AccuracyGoal] = ()
    repeats: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what could not be measured or judged."""
        if not self.candidates:
            raise ValueError(f"{self.about}: got no candidate, expected one at least")
        if self.unit not in UNITS:
            raise ValueError(f"{self.about}: got unit {self.unit!r}, expected one of {', '.join(UNITS)}")
        for goal in self.goals:
            known = self.accuracy if isinstance(goal, AccuracyGoal) else self.candidates
            for label in _labels(goal):
                if label not in known:
                    raise ValueError(f"{self.about}: goal about {label!r}, expected one of {', '.join(known)}")


@dataclass(frozen=True)
class Timing:
    """Seconds a sample of one candidate, one figure a repeat."""

    seconds: tuple[float, ...]
    samples: int
    calls: int
    note: str = ""

    @property
    def median(self) -> float:
        """Median over the repeats [s]."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Verdict:
    """A goal with what was measured: a ratio, seconds or an accuracy; `spread` is its 10th and 90th percentile."""

    goal: str
    measured: float
    met: bool
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Result:
    """What an item showed; `error` tells why it could not be measured."""

    name: str
    about: str
    unit: str
    timings: Mapping[str, Timing]
    accuracy: Mapping[str, float]
    verdicts: Sequence[Verdict]
    note: str = ""
    error: str = ""

    @property
    def met(self) -> bool:
        """Whether it was measured and no goal missed."""
        return not self.error and all(verdict.met for verdict in self.verdicts)

    def ratios(self, ours: str, peer: str) -> tuple[float, ...]:
        """How many times as fast `ours` is as `peer`, one figure a repeat."""
        pairs = zip(self.timings[ours].seconds, self.timings[peer].seconds, strict=True)
        return tuple(theirs / mine for mine, theirs in pairs)


def measure(name: str, item: Item, *, repeats: int, shortest: float) -> Result:
    """Time the candidates of an item interleaved and judge its goals.

    Args:
        name: of the item.
        item: what to time.
        repeats: how often each candidate runs, unless the item wants fewer.
        shortest: [s] a repeat lasts at least this long, by calling the candidate often enough.

    Returns:
        The timings, and one verdict a goal.
    """
    candidates = {label: c if isinstance(c, Candidate) else Candidate(c) for label, c in item.candidates.items()}
    labels = list(candidates)
    repeats = min(repeats, item.repeats or repeats)
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        calls = {label: _calls(candidate, shortest) for label, candidate in candidates.items()}
        seconds: dict[str, list[float]] = {label: [] for label in labels}
        for repeat in range(repeats):
            first = repeat % len(labels)
            for label in labels[first:] + labels[:first]:
                seconds[label].append(_per_sample(candidates[label], calls[label]))
    finally:
        if collecting:
            gc.enable()
    timings = {
        label: Timing(tuple(seconds[label]), candidate.samples, calls[label], candidate.note)
        for label, candidate in candidates.items()
    }
    result = Result(name, item.about, item.unit, timings, item.accuracy, (), item.note)
    verdicts = tuple(judge(goal, result) for goal in item.goals)
    return Result(name, item.about, item.unit, timings, item.accuracy, verdicts, item.note)


def judge(goal: Goal | TimeGoal | AccuracyGoal, result: Result) -> Verdict:
    """Compare a goal with the timings and accuracies of a result; a figure that is not finite misses it."""
    if isinstance(goal, Goal):
        ratios = result.ratios(goal.ours, goal.peer)
        ratio = statistics.median(ratios)
        text = f"{goal.ours} >= {goal.at_least:g} x {goal.peer}"
        return Verdict(text, ratio, ratio >= goal.at_least, percentiles(ratios))
    if isinstance(goal, TimeGoal):
        timing = result.timings[goal.candidate]
        text = f"{goal.candidate} <= {goal.at_most:.3g} s" + (f" ({goal.says})" if goal.says else "")
        return Verdict(text, timing.median, timing.median <= goal.at_most, percentiles(timing.seconds))
    off = result.accuracy[goal.quantity]
    return Verdict(f"{goal.quantity} off by <= {goal.at_most:g}", off, off <= goal.at_most)


def percentiles(figures: Sequence[float]) -> tuple[float, float]:
    """The 10th and 90th percentile, interpolated; of a single figure, that figure twice."""
    if len(figures) == 1:
        return figures[0], figures[0]
    tenths = statistics.quantiles(figures, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def _labels(goal: Goal | TimeGoal | AccuracyGoal) -> tuple[str, ...]:
    if isinstance(goal, Goal):
        return goal.ours, goal.peer
    return (goal.candidate,) if isinstance(goal, TimeGoal) else (goal.quantity,)


def _calls(candidate: Candidate, shortest: float) -> int:
    """Warm up, then find how many calls make a repeat of at least `shortest` seconds."""
    if candidate.timed:
        return 1
    candidate.call()
    calls = 1
    while _seconds(candidate.call, calls) < shortest:
        calls *= 2
    return calls


def _per_sample(candidate: Candidate, calls: int) -> float:
    if candidate.timed:
        return float(candidate.call()) / candidate.samples  # type: ignore[arg-type]
    spent = _seconds(candidate.call, calls)
    if candidate.less is not None:
        spent -= _seconds(candidate.less, calls)
    return spent / (calls * candidate.samples)


def _seconds(call: Callable[[], object], calls: int) -> float:
    rounds = range(calls)
    began = time.perf_counter()
    for _ in rounds:
        call()
    return time.perf_counter() - began
