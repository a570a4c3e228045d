"""What the stamps and receive times of a topic say of its clocks: drift, jitter, jumps, lost messages, rates."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import minimum_filter1d
from scipy.stats import theilslopes

from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.timing.stamp_rhythm import Rhythm, rhythm

Vector = NDArray[np.float64]

ONE_WAY = (
    "a constant offset between the clocks cannot be told from delay: messages go one way, and what is found as "
    "delay holds both"
)
_FEWEST = 20
_SUSTAINED = 2.0  # [s] longer than a stall of the network: what lasts longer is a jump of a clock
_BESIDE = 10  # messages on each side of a jump at least
_SMALLEST_JUMP = 0.01  # [s]
_CAUGHT_UP = 0.75  # of the time between their stamps, within which messages come that had to wait
_LONGEST_STEP = 1.5  # periods; a longer step between stamps is a gap, or a clock that jumped
_JUMP_SPREADS = 6.0
_SHORTEST_DRIFT = 10.0  # [s] of data to tell a drift from
_BINS = 100
_DRIFT_ERROR = 5e-3  # [s] over the recording, from which on a drift is worth a warning
_OTHER_CLOCK = 1.0  # [s]
_JITTER_SHARE = 0.5  # of the period


@dataclass(frozen=True)
class ClockJump:
    """A jump of one clock against the other.

    Args:
        time: receive time of the first message after it [s].
        size: of the jump [s], positive where that clock went forward.
        clock: "stamp" or "receive": the one that left its rhythm.
    """

    time: float
    size: float
    clock: str


@dataclass(frozen=True)
class ClockCheck:
    """Clocks and rhythm of one topic; NaN where the data do not tell.

    Args:
        messages: number of them.
        rate: messages a second, from the median step [Hz].
        offset: least receive time less stamp before the first jump [s]: clock offset and shortest way together.
        drift: how much faster the clock of the stamps runs than that of the receiver [s/s].
        drift_interval: 95 % interval [s/s].
        jitter: standard deviation of receive time less stamp about its line, jumps taken out [s].
        jumps: of either clock.
        missing: messages that the rhythm of the stamps lacks.
        warnings: what a reader of results should know, a sentence each.
    """

    messages: int
    rate: float
    offset: float
    drift: float
    drift_interval: tuple[float, float]
    jitter: float
    jumps: tuple[ClockJump, ...]
    missing: int
    warnings: tuple[str, ...]

    @property
    def summary(self) -> str:
        """One sentence for a result: what was found, and what cannot be."""
        drift = "drift unknown" if np.isnan(self.drift) else f"drift {1e6 * self.drift:.3g} ppm"
        return f"{self.rate:.4g} Hz, {drift}, jitter {1e3 * self.jitter:.3g} ms, {len(self.jumps)} jumps; {ONE_WAY}"


def check_clock(stamp: ArrayLike, received: ArrayLike) -> ClockCheck:
    """Compare the stamps of a topic with the times its messages came in.

    L = received - stamp = offset - drift t + way, way >= 0. A way is late now and then, never early: jumps and drift
    are read from the lower envelope of L, minima over 2 s and Theil-Sen through minima over bins. Messages that had to
    wait and then come faster than they were sent are late as well, however many they are, and no clock has jumped.

    Args:
        stamp: (m,) [s], in the order of arrival; NaN or 0 where a message carries none.
        received: (m,) [s].

    Raises:
        InputError: arrays of different lengths, or fewer than 2 messages with a receive time.
    """
    stamps, times = np.asarray(stamp, dtype=float), np.asarray(received, dtype=float)
    if stamps.ndim != 1 or stamps.shape != times.shape:
        raise InputError("stamp and received", got=f"shapes {stamps.shape} and {times.shape}", expected="(m,) each")
    known = np.isfinite(times)
    stamps, times = stamps[known], times[known]
    if len(times) < 2:
        raise InputError("received", got=f"{len(times)} finite times", expected="2 or more", remedy="record longer")
    stamped = np.isfinite(stamps) & (stamps != 0.0)
    count, bare = len(times), int(np.count_nonzero(~stamped))
    if count - bare < _FEWEST:
        found = rhythm(times, [])
        told = "no message carries a stamp" if bare == count else f"only {count - bare} of {count} messages are stamped"
        warnings = (f"{told}: receive times serve, with all their jitter", *found.warnings)
        return ClockCheck(count, found.rate, nan, nan, (nan, nan), nan, (), found.missing, warnings)
    warnings = (f"{bare} of {count} messages carry no stamp (NaN or 0) and are left out",) if bare else ()
    stamps, times = stamps[stamped], times[stamped]
    late = times - stamps
    prompt = _without_waits(late, times, stamps)
    places = _jumps(prompt, times)
    found = rhythm(stamps, places)
    jumps, level = _measured(prompt, times, stamps, places, found)
    drift, interval, line = _drift(prompt - level, times)
    jitter = float(np.std(late - level - line))
    offset = float(np.min(prompt[: places[0]] if places else prompt))
    checked = ClockCheck(count, found.rate, offset, drift, interval, jitter, jumps, found.missing, ())
    told_clock = _warnings(checked, float(np.ptp(times)))
    everything = (*warnings, *told_clock, *found.warnings)
    return ClockCheck(count, found.rate, offset, drift, interval, jitter, jumps, found.missing, everything)


def _without_waits(late: Vector, times: Vector, stamps: Vector) -> Vector:
    """`late` (m,), where messages that caught up after a wait are as late as the least of those that follow them."""
    steps = np.diff(stamps)
    longest = _LONGEST_STEP * float(np.median(steps))
    sent, came = (
        np.append(0.0, np.cumsum(part)) for part in (np.clip(steps, 0.0, longest), np.maximum(np.diff(times), 0.0))
    )
    waited = came[_BESIDE:] - came[:-_BESIDE] < _CAUGHT_UP * (sent[_BESIDE:] - sent[:-_BESIDE])
    ends = np.flatnonzero(np.diff(waited, prepend=False, append=False))
    prompt = late.copy()
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        prompt[begin:end] = np.minimum(late[begin:end], np.min(late[end : end + _BESIDE]))
    return prompt


def _jumps(late: Vector, times: Vector) -> list[int]:
    """First messages after a lasting change of the lower envelope of `late` (m,)."""
    step = float(np.median(np.abs(np.diff(times))))
    width = max(_BESIDE, int(_SUSTAINED / step) if step > 0.0 else _BESIDE)
    width = min(width, max(_BESIDE, len(late) // 4))
    # Minima over the `width` messages before each one, and over as many from it on.
    before = minimum_filter1d(late, width, origin=(width - 1) // 2, mode="nearest")
    after = minimum_filter1d(late, width, origin=-(width // 2), mode="nearest")
    change = after[1:] - before[:-1]
    limit = max(_SMALLEST_JUMP, _JUMP_SPREADS * 1.4826 * float(np.median(np.abs(change - np.median(change)))))
    candidates = np.flatnonzero(np.abs(change) > limit) + 1
    places: list[int] = []
    if not len(candidates):
        return places
    for group in np.split(candidates, np.flatnonzero(np.diff(candidates) > 1) + 1):
        steps = np.abs(np.diff(late)[group - 1])
        largest = np.abs(change[group - 1]) > 0.5 * np.max(np.abs(change[group - 1]))
        place = int(group[int(np.argmax(np.where(largest, steps, -1.0)))])
        if _BESIDE <= place <= len(late) - _BESIDE:
            places.append(place)
    return places


def _measured(
    late: Vector, times: Vector, stamps: Vector, places: list[int], found: Rhythm
) -> tuple[tuple[ClockJump, ...], Vector]:
    """Jumps with their sizes, and what they add to `late` (m,)."""
    level = np.zeros(len(late))
    jumps = []
    ends = [0, *places, len(late)]
    for k, place in enumerate(places):
        size = float(np.min(late[place : ends[k + 2]]) - np.min(late[ends[k] : place]))
        level[place:] += size
        off_rhythm = [abs(float(clock[place] - clock[place - 1]) - 1.0 / found.rate) for clock in (stamps, times)]
        stamp_jumped = off_rhythm[0] >= off_rhythm[1]
        jumps.append(ClockJump(float(times[place]), -size if stamp_jumped else size, _name(stamp_jumped)))
    return tuple(jumps), level


def _name(stamp_jumped: bool) -> str:
    return "stamp" if stamp_jumped else "receive"


def _drift(late: Vector, times: Vector) -> tuple[float, tuple[float, float], Vector]:
    """Drift, its interval, and the line (m,) through the lower envelope of `late` (m,)."""
    since = times - times[0]
    duration = float(np.max(since))
    if duration < _SHORTEST_DRIFT:
        return nan, (nan, nan), np.full(len(late), float(np.min(late)))
    bins = np.clip((since / duration * _BINS).astype(int), 0, _BINS - 1)
    lowest = [
        rows[int(np.argmin(late[rows]))] for rows in (np.flatnonzero(bins == k) for k in range(_BINS)) if len(rows)
    ]
    slope, start, low, high = theilslopes(late[lowest], since[lowest], alpha=0.95)
    return -float(slope), (-float(high), -float(low)), float(start) + float(slope) * since


def _warnings(checked: ClockCheck, duration: float) -> tuple[str, ...]:
    told = []
    if abs(checked.offset) > _OTHER_CLOCK:
        told.append(f"stamps and receive times are of different clocks: {checked.offset:.3g} s apart")
    for jump in checked.jumps:
        way = "forward" if jump.size > 0.0 else "back"
        clock = "clock of the stamps" if jump.clock == "stamp" else "clock of the receiver"
        told.append(
            f"the {clock} jumps {way} by {abs(jump.size):.3g} s at {jump.time:.3f} s: split the recording there"
        )
    low, high = checked.drift_interval
    if abs(checked.drift) * duration > _DRIFT_ERROR and (low > 0.0 or high < 0.0):
        faster = "faster" if checked.drift > 0.0 else "slower"
        told.append(
            f"the clock of the stamps runs {1e6 * abs(checked.drift):.3g} ppm {faster} than that of the receiver: "
            f"{1e3 * abs(checked.drift) * duration:.3g} ms over the recording"
        )
    if checked.jitter * checked.rate > _JITTER_SHARE:
        told.append(
            f"messages arrive with a jitter of {1e3 * checked.jitter:.3g} ms, more than half their period: "
            "use stamps, not receive times"
        )
    return tuple(told)
