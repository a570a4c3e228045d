"""Clocks and stamps of a recording: period, rate and losses of a series, and offset and drift of two clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Flags, Vector, burst_length, usual_step
from youbot_dynamics.errors import counted
from youbot_dynamics.identification.least_squares import NORMAL

_ROUNDING = 0.01  # [s] by which stamps of a synchronised clock may be later than the reception
_RECEIVED, _MOVED = "receive times", "stamps, put on the clock of the recorder,"
_ONE_CLOCK = 0.03  # [s] by which stamps of one clock, and their reception, may differ
_LONGEST_TRAVEL = 1.0  # [s] that readings of one topic may take longer than those of another
_MISSING = 1.5  # periods between messages above which one is missing
_WINDOW = 25  # steps over which the rate is computed
_OTHER_RATE = 1.4  # ratio of rates that counts as a change
_SHORT = 0.5  # share of the usual step; a regular sender has no shorter steps
_MANY = 0.1  # share of the steps that counts as many
_ALTERNATING = -0.8  # correlation of a step with the next; independent jitter of the stamps gives -0.5
_UNEVEN = 0.05  # spread of the steps over their mean
_REPEATED_ALIKE = 0.8  # share of the readings that must be repeated equally often
_FEWEST_HELD = 30  # readings that change, by which rows that hold them are known
_MOST_ROWS = 10  # that hold a reading: a slow signal in coarse steps lasts longer
_FRESH = 0.01  # share of the held readings that may last for a single row


def rhythm(stamps: Vector, jumps: Sequence[int]) -> tuple[float, int, tuple[str, ...]]:
    """Regularity of messages: rate from the median step [Hz], number of missing messages, warnings.

    Stamps (m,) [s] are in the order of arrival. The steps before messages after a jump of the clock, whose indices are
    `jumps`, are ignored. The rate is NaN if no two stamps differ.
    """
    steps = np.delete(np.diff(stamps), [place - 1 for place in jumps])
    warnings = []
    back, same = int(np.count_nonzero(steps < 0.0)), int(np.count_nonzero(steps == 0.0))
    if back:
        early = counted(back, "message is", "messages are")
        warnings.append(f"{early} stamped earlier than the one before: out of order, or from two senders")
    if same:
        warnings.append(f"{counted(same, 'message repeats', 'messages repeat')} the stamp of the one before")
    steps = steps[steps > 0.0]
    if not len(steps):
        return nan, 0, tuple(warnings)
    period = float(np.median(steps))
    burst = burst_length(np.append(0.0, np.cumsum(steps)))
    if burst > 1:
        apart = usual_step(np.cumsum(steps)[::burst])
        warnings.append(
            f"messages come in bursts of {burst}, every {1e3 * apart:.3g} ms, stamped as they arrive: delays contain "
            f"the {500.0 * apart:.2g} ms that they wait on average; stamp them where they are read"
        )
        return burst / apart, 0, tuple(warnings)
    mixed = _mixed(steps)
    changed = "" if mixed else _changed(steps)
    missing = 0
    if mixed or changed:
        warnings.append(mixed or changed)
    else:
        # Jitter of a stamp makes one step long and its neighbour short; a missing message makes their sum longer.
        around = np.convolve(np.pad(steps, 1, constant_values=period), np.ones(3), mode="valid")
        long = steps[(steps > _MISSING * period) & (around > (_MISSING + 2.0) * period)]
        missing = int(np.sum(np.round(long / period) - 1.0))
        if missing:
            lost = counted(missing, "message is", "messages are")
            where = "1 gap" if len(long) == 1 else f"{len(long)} gaps, the longest"
            warnings.append(
                f"{lost} missing in {where} of {float(long.max()):.3g} s, at a rate of {1.0 / period:.4g} Hz"
            )
    return 1.0 / period, missing, tuple(warnings)


def _mixed(steps: Vector) -> str:
    """Evidence of two senders, "" for none: short steps throughout, or short and long steps in turn."""
    if len(steps) < _WINDOW:
        return ""
    short = np.concatenate(
        [np.mean(part < _SHORT * np.quantile(part, 0.75, axis=1, keepdims=True), axis=1) for part in _windows(steps)]
    )
    even = steps - steps.mean()
    spread = float(np.std(steps))
    alternating = spread > _UNEVEN * float(steps.mean()) and float(even[1:] @ even[:-1]) < _ALTERNATING * float(
        even @ even
    )
    if float(np.median(short)) <= _MANY and not alternating:
        return ""
    return (
        f"steps between stamps of {1e3 * float(np.quantile(steps, 0.1)):.3g} and "
        f"{1e3 * float(np.quantile(steps, 0.9)):.3g} ms mix: two senders, or two rates, on one topic"
    )


def _changed(steps: Vector) -> str:
    """Change of the rate in words, "" if it is constant."""
    rates = np.concatenate([1.0 / np.median(part, axis=1) for part in _windows(steps)])
    if len(rates) < 4:
        return ""
    # Two consecutive windows, so that one window with many gaps is not a change of rate.
    lasting = np.minimum(rates[1:], rates[:-1]), np.maximum(rates[1:], rates[:-1])
    fast, slow = float(np.max(lasting[0])), float(np.min(lasting[1]))
    if fast < _OTHER_RATE * slow:
        return ""
    return f"the rate changes between {slow:.4g} and {fast:.4g} Hz within the recording"


def _windows(steps: Vector) -> list[Vector]:
    """Steps (s,) in windows of at least `_WINDOW`, rows of one table or of two whose lengths differ by 1."""
    count = max(1, len(steps) // _WINDOW)
    length, longer = divmod(len(steps), count)
    tables = np.split(steps, [longer * (length + 1)])
    return [table.reshape(-1, length + k) for k, table in zip((1, 0), tables, strict=True) if len(table)]


ONE_WAY = (
    "a constant offset between the clocks cannot be distinguished from delay, because messages travel in one direction "
    "only: the identified delay contains both"
)
_FEWEST = 20
_SUSTAINED = 2.0  # [s] longer than a stall of the network; a longer change is a jump of a clock
_BESIDE = 10  # minimum number of messages on each side of a jump
_SMALLEST_JUMP = 0.01  # [s]
_CAUGHT_UP = 0.75  # queued messages arrive within this share of the time between their stamps
_LONGEST_STEP = 1.5  # periods; a longer step between stamps is a gap or a clock jump
_JUMP_SPREADS = 6.0
_ODD = 0.25  # [periods] of a step that is no multiple of the period
_SHORTEST_DRIFT = 10.0  # shortest data to estimate a drift [s]
_BINS = 100
_DRIFT_ERROR = 5e-3  # drift over the recording above which a warning is given [s]
_OTHER_CLOCK = 1.0  # [s]
_JITTER_SHARE = 0.5  # of the period
_MAD = 1.4826  # standard deviation over median absolute deviation, of a normal distribution


@dataclass(frozen=True)
class ClockJump:
    """A jump of one clock against the other."""

    time: float  # receive time of the first message after it [s]
    size: float  # of the jump [s], positive if that clock moved forward
    clock: str  # "stamp" or "receive": the clock that jumped


@dataclass(frozen=True)
class ClockCheck:
    """Clocks and rate of one topic; NaN if the data do not determine a value."""

    rate: float  # from the median step [Hz]
    missing: int  # messages missing according to the stamps
    # Minimum of receive time minus stamp before the first jump [s]: clock offset plus shortest travel time
    offset: float = nan
    drift: float = nan  # how much faster the clock of the stamps runs than that of the receiver [s/s]
    drift_interval: tuple[float, float] = (nan, nan)  # 95 % interval [s/s]
    # Jitter of receive time minus stamp about its line, without jumps [s]: 1.48 times the median deviation, which
    # ignores stalls
    jitter: float = nan
    jumps: tuple[ClockJump, ...] = ()  # of either clock
    warnings: tuple[str, ...] = ()  # for the reader of results, one sentence each


def check_clock(stamps: Vector, times: Vector) -> ClockCheck:
    """Compare the stamps of a topic with the receive times of its messages.

    L = received - stamp = offset - drift t + travel time, travel time >= 0. Messages can be late but never early.
    Therefore jumps and drift are estimated from the lower envelope of L: minima over 2 s, and Theil-Sen through minima
    over bins. Queued messages that arrive faster than they were sent are late too; they are no clock jump.

    Stamps (m,) [s] are NaN throughout if no message carries one; times (m,) of reception [s] are two or more.
    """
    stamped = bool(np.all(np.isfinite(stamps)))
    if not stamped or len(times) < _FEWEST:
        unstamped = () if stamped else ("no message carries a stamp: receive times are used, with all their jitter",)
        rate, missing, warnings = rhythm(stamps if stamped else times, [])
        return ClockCheck(rate, missing, warnings=unstamped + warnings)
    return _compared(stamps, times)[0]


def on_clock_of_receiver(stamps: Vector, times: Vector) -> Vector:
    """Stamps (m,) [s] put on the clock of the receiver, with its jumps and drift, as of messages that travel shortest.

    Those of reception, `times` (m,) [s], where `check_clock` could not compare both.
    """
    if len(times) < _FEWEST or not np.all(np.isfinite(stamps)):
        return times
    checked, envelope = _compared(stamps, times)
    return stamps + envelope if isfinite(checked.drift) else times


def moves(checked: ClockCheck, times: Vector) -> bool:
    """Whether a clock of stamps surely jumps or drifts against the receiver, at `times` (m,), by 5 ms or more."""
    low, high = checked.drift_interval
    drifts = (low > 0.0 or high < 0.0) and abs(checked.drift) * float(np.ptp(times)) > _DRIFT_ERROR
    return bool(checked.jumps) or drifts


def _compared(stamps: Vector, times: Vector) -> tuple[ClockCheck, Vector]:
    """Clocks of `_FEWEST` or more messages, and the lower envelope (m,) of received - stamp [s]."""
    late = times - stamps
    prompt = _without_waits(late, times, stamps)
    places = _lasting(prompt, times, stamps, _jumps(prompt, times))
    rate, missing, warnings = rhythm(stamps, places)
    jumps, level = _measured(prompt, times, stamps, places, rate)
    drift, interval, line = _drift(prompt - level, times)
    off = late - level - line
    jitter = _MAD * float(np.median(np.abs(off - np.median(off))))
    offset = float(np.min(prompt[: places[0]] if places else prompt))
    checked = ClockCheck(rate, missing, offset, drift, interval, jitter, jumps)
    return replace(checked, warnings=_warnings(checked, times) + warnings), level + line


def _without_waits(late: Vector, times: Vector, stamps: Vector) -> Vector:
    """`late` (m,), with messages that caught up after a wait as late as the least late of those that follow."""
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
    from scipy.ndimage import minimum_filter1d  # only here: every reader of a bag would need 0.3 s more

    step = float(np.median(np.abs(np.diff(times))))
    width = max(_BESIDE, int(_SUSTAINED / step) if step > 0.0 else _BESIDE)
    width = min(width, max(_BESIDE, len(late) // 4))
    # Minima over the `width` messages before each one, and over the `width` messages from it on.
    before = minimum_filter1d(late, width, origin=(width - 1) // 2, mode="nearest")
    after = minimum_filter1d(late, width, origin=-(width // 2), mode="nearest")
    change = after[1:] - before[:-1]
    limit = max(_SMALLEST_JUMP, _JUMP_SPREADS * _MAD * float(np.median(np.abs(change - np.median(change)))))
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


def _lasting(late: Vector, times: Vector, stamps: Vector, places: list[int]) -> list[int]:
    """Places (p,) without small ones, and those between which messages were only late under load.

    After a clock jump the change is permanent; after a slow period, in which the stamps stay regular, the travel time
    returns to its old value.
    """
    lows = [float(np.min(part)) for part in np.split(late, places)]
    steps, period = np.diff(stamps), usual_step(stamps)
    kept = []
    for k, place in enumerate(places):
        size = lows[k + 1] - lows[k]
        rhythm_kept = abs(float(steps[place - 1]) - period) < 0.5 * abs(size)
        forward = bool(np.all(np.diff(times[max(0, place - _BESIDE) : place + _BESIDE]) >= 0.0))
        elsewhere = min(lows[k + 2 :], default=lows[k + 1]) if size > 0.0 else min(lows[:k], default=lows[k])
        back = elsewhere < max(lows[k : k + 2]) - 0.5 * abs(size)
        if abs(size) >= _SMALLEST_JUMP and not (rhythm_kept and forward and back):
            kept.append(place)
    return kept


def _measured(
    late: Vector, times: Vector, stamps: Vector, places: list[int], rate: float
) -> tuple[tuple[ClockJump, ...], Vector]:
    """Jumps with their sizes, and their contribution to `late` (m,)."""
    level = np.zeros(len(late))
    jumps = []
    ends = [0, *places, len(late)]
    for k, place in enumerate(places):
        size = float(np.min(late[place : ends[k + 2]]) - np.min(late[ends[k] : place]))
        level[place:] += size
        stamp_jumped = not isfinite(rate) or _off_rhythm(stamps, times, place, rate)
        clock = "stamp" if stamp_jumped else "receive"
        jumps.append(ClockJump(float(times[place]), -size if stamp_jumped else size, clock))
    return tuple(jumps), level


def _off_rhythm(stamps: Vector, times: Vector, place: int, rate: float) -> bool:
    """Whether the step of the stamps before a message fits their rate [Hz] worse than that of the receive times."""
    steps = [rate * float(clock[place] - clock[place - 1]) for clock in (stamps, times)]  # in periods
    odd = [abs(step - max(1, round(step))) for step in steps]  # lost messages make a step of several periods
    arrivals = rate * np.diff(times)
    jitter = _MAD * float(np.median(np.abs(arrivals - np.median(arrivals))))
    off = odd if max(odd) > _ODD + 3.0 * jitter else [abs(step - 1.0) for step in steps]
    return off[0] >= off[1]


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
    slope, (low, high) = _median_slope(since[lowest], late[lowest])
    start = float(np.median(late[lowest])) - slope * float(np.median(since[lowest]))
    return -slope, (-high, -low), start + slope * since


def _median_slope(x: Vector, y: Vector) -> tuple[float, tuple[float, float]]:
    """Median of the slopes between all points (n,), two of them or more at different x, and its 95 % interval.

    `scipy.stats` would take 0.7 s to import. Source: Sen 1968.
    """
    first, second = np.triu_indices(len(x), 1)
    apart = np.flatnonzero(x[first] != x[second])
    slopes = np.sort((y[second] - y[first])[apart] / (x[second] - x[first])[apart])
    n, many = len(x), len(slopes)
    variance = n * (n - 1) * (2 * n + 5)  # 18 times that of Kendall's sum of signs, less what ties take from it
    for counts in (np.unique(values, return_counts=True)[1] for values in (x, y)):
        variance -= int(np.sum(counts * (counts - 1) * (2 * counts + 5)))
    half = NORMAL * sqrt(max(0.0, variance / 18.0))
    low, high = max(round((many - half) / 2.0) - 1, 0), min(round((many + half) / 2.0), many - 1)
    return float(np.median(slopes)), (float(slopes[low]), float(slopes[high]))


def _warnings(checked: ClockCheck, times: Vector) -> tuple[str, ...]:
    texts = []
    if abs(checked.offset) > _OTHER_CLOCK:
        texts.append(f"stamps and receive times are from different clocks: they differ by {checked.offset:.3g} s")
    for jump in checked.jumps:
        direction = "forward" if jump.size > 0.0 else "back"
        clock = "clock of the stamps" if jump.clock == "stamp" else "clock of the receiver"
        texts.append(
            f"the {clock} jumps {direction} by {abs(jump.size):.3g} s at {jump.time:.3f} s: record again with a clock "
            "that does not jump"
        )
    if moves(replace(checked, jumps=()), times):
        duration = float(np.ptp(times))
        faster = "faster" if checked.drift > 0.0 else "slower"
        texts.append(
            f"the clock of the stamps runs {1e6 * abs(checked.drift):.3g} ppm {faster} than that of the receiver: "
            f"{1e3 * abs(checked.drift) * duration:.3g} ms over the recording"
        )
    if checked.jitter * checked.rate > _JITTER_SHARE:
        texts.append(
            f"messages arrive with a jitter of {1e3 * checked.jitter:.3g} ms, more than half their period: "
            "use stamps, not receive times"
        )
    return tuple(texts)


class Apart(NamedTuple):
    """How far the clocks of the stamps of two topics surely are apart [s]; 0 if they may be the same."""

    constant: float
    moving: float  # change of their difference, by jumps and drift


def clocks_apart(stamps: Sequence[Vector], received: Sequence[Vector]) -> Apart:
    """Compare the clocks of the stamps of two topics.

    Receive times of both are from the clock of the recorder. Jumps and drifts of the two clocks against it
    (`check_clock`) must be equal. No message arrives before its stamp: if one topic does and the other does not, its
    clock is another one. None arrives a second later than those of the other topic. A smaller constant difference may
    be the time that a driver takes to send its readings.

    Args:
        stamps: of each topic, (m,) and (n,) [s].
        received: of each topic, in the same shapes [s].
    """
    checks = [check_clock(stamp, times) for stamp, times in zip(stamps, received, strict=True)]
    one, other = checks
    duration = max(float(np.ptp(times)) if len(times) else 0.0 for times in received)
    same = one.drift_interval[0] <= other.drift_interval[1] and other.drift_interval[0] <= one.drift_interval[1]
    drift = 0.0 if same else abs(one.drift - other.drift)
    if not isfinite(drift):  # a topic is too short to be compared
        pairs = zip(checks, received, strict=True)
        drift = max((abs(c.drift) for c, times in pairs if isfinite(c.drift) and moves(c, times)), default=0.0)
    jumps = [(jump, side) for check, side in zip(checks, (1.0, -1.0), strict=True) for jump in check.jumps]
    jumps.sort(key=lambda pair: pair[0].time)
    shifts = np.cumsum([side * (jump.size if jump.clock == "receive" else -jump.size) for jump, side in jumps])
    # Messages of the two topics show a jump of one clock of both at times of their own.
    lasting = np.diff([*(jump.time for jump, _ in jumps), np.inf]) > _SUSTAINED
    moving = float(np.ptp(np.append(0.0, shifts[lasting]))) + drift * duration
    firsts = zip(checks, stamps, received, strict=True)
    offsets = [
        check.offset if isfinite(check.offset) else float(np.min(times - stamp))
        for check, stamp, times in firsts
        if len(times)
    ]
    early = max(0.0, -min(offsets)) if len(offsets) == 2 and max(offsets) > -_ROUNDING else 0.0
    late = max(offsets) - min(offsets) if len(offsets) == 2 else 0.0
    constant = max(early if early > _ONE_CLOCK else 0.0, late if late > _LONGEST_TRAVEL else 0.0)
    return Apart(constant, moving if moving > _DRIFT_ERROR else 0.0)


class OneClock(NamedTuple):
    """Times of commands and of motion on one clock."""

    command: Vector  # (n,) [s]
    motion: Vector  # (m,) [s]
    stamped: bool  # whether the times of the motion follow its stamps: without the jitter of reception
    words: str  # which times these are, for results


def on_one_clock(
    command: tuple[Vector | None, Vector], motion: tuple[Vector | None, Vector], topics: tuple[str, str]
) -> OneClock:
    """Stamps of commands and motion if their clock is the same, else times of the recorder's clock.

    A Twist has no stamp: its time is that of its reception. Stamps beside such times are put on the clock of the
    recorder if theirs jumps or drifts against it, and are not used if they are later than their reception or a second
    before it: they are of another clock then.

    Args:
        command: stamps (n,), None or NaN if there are none, and receive times (n,) [s].
        motion: the same of the motion, (m,).
        topics: names of both topics.
    """
    (sent, came), (taken, arrived) = command, motion
    stamps = [stamp for stamp in (sent, taken) if stamp is not None and np.all(np.isfinite(stamp))]
    if len(stamps) == 2:
        apart = clocks_apart(stamps, (came, arrived))
        why = f", since the clocks of their stamps differ by {max(apart):.2g} s"
        if apart.moving:
            sent, taken = (on_clock_of_receiver(*pair) for pair in zip(stamps, (came, arrived), strict=True))
            moved = sent is not came, taken is not arrived
            first, second = (_MOVED if one else _RECEIVED for one in moved)
            words = f"{first} of {topics[0]} and {topics[1]}"
            words = words if moved[0] == moved[1] else f"{first} of {topics[0]}, {second} of {topics[1]}"
            return OneClock(sent, taken, taken is not arrived, f"{words}{why}")
        if apart.constant:
            return OneClock(came, arrived, False, f"{_RECEIVED} of {topics[0]} and {topics[1]}{why}")
        return OneClock(stamps[0], stamps[1], True, f"stamps of {topics[0]} and {topics[1]}")
    if taken is None or not len(taken) or not np.all(np.isfinite(taken)):
        return OneClock(came, arrived, False, f"{_RECEIVED} of {topics[0]} and {topics[1]}")
    if moves(check_clock(taken, arrived), arrived):
        taken = on_clock_of_receiver(taken, arrived)
        own = _RECEIVED if taken is arrived else _MOVED
    else:
        near = -_ONE_CLOCK <= float(np.median(arrived - taken)) < _LONGEST_TRAVEL
        taken, own = (taken, "stamps") if near else (arrived, _RECEIVED)
    return OneClock(came, taken, taken is not arrived, f"{_RECEIVED} of {topics[0]}, {own} of {topics[1]}")


def new_readings(readings: Vector) -> tuple[Flags, int]:
    """Which readings (s, k) are new, and how often each is given; all and 1 if most are not repeated equally often.

    A driver that publishes faster than it reads repeats its readings with new stamps: motion in steps.
    """
    fresh = np.concatenate([[True], np.any(np.diff(readings, axis=0) != 0.0, axis=1)])[: len(readings)]
    lengths = np.diff(np.flatnonzero(fresh))
    often = int(np.median(lengths)) if len(lengths) else 1
    if often < 2 or np.mean(lengths == often) < _REPEATED_ALIKE:
        return np.ones(len(readings), dtype=bool), 1
    return fresh, often


def first_rows(readings: Vector) -> Flags:
    """Which rows (s,) of readings (s, k), NaN for none, show one first; all if a log does not repeat each one.

    A log that is faster than the readings repeats each until the next one comes, over numbers of rows that differ by
    one where its rate is no multiple of theirs. Equal readings, as at rest, are several: each lasts as long as usual.
    """
    changed = np.any(np.diff(np.nan_to_num(readings), axis=0) != 0.0, axis=1)
    begins = np.flatnonzero(np.append(True, changed)[: len(readings)])
    lengths = np.diff(np.append(begins, len(readings)))
    usual = int(np.bincount(lengths).argmax()) if len(lengths) else 1
    held = len(lengths) >= _FEWEST_HELD and np.quantile(lengths, _FRESH) >= 2.0 and usual <= _MOST_ROWS
    if not held or np.mean(np.abs(lengths - usual) <= 1) < _REPEATED_ALIKE:
        return np.ones(len(readings), dtype=bool)
    place = np.arange(len(readings)) - np.repeat(begins, lengths)
    whole = (place // usual + 1) * usual <= np.repeat(lengths, lengths)
    return np.asarray((place == 0) | (place % usual == 0) & whole)
