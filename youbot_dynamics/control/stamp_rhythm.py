"""Regular times for the readings of a driver whose loop has a constant period but whose stamps jitter.

`RateLimiter` passes on as many messages of a stream as a rate allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array

_FIRST = 48  # steps from which period and phase are taken at first
_LAGS = (1, 2, 4, 8, 16, 32)  # readings; with each, the period is known well enough to count those of the next
_GAP = 0.5  # [s] after which the estimate restarts
# Fractions of a period. After a lost message, a stamp up to _EARLY before a time of the loop belongs to that time; one
# that is earlier is a late stamp of the time before. One that is later than _EITHER may be either.
_EARLY, _EITHER = 0.05, 0.8
_LOSSES = 0.005  # share of lost messages up to which such a stamp counts as late; above it stays as it is
_CLIP = 0.05  # fraction of a period to which the difference of stamp and rhythm is clipped
_PHASE, _PERIOD = 0.1, 0.002  # shares of the clipped difference that correct phase and period
_FASTER = 3.0  # factor on _CLIP at first; it falls to 1 within _SETTLING readings
_SETTLING = 30  # readings
_RECENT = 0.98  # weight of the past at each reading: a memory of 1 s at 50 Hz
_BALANCE = 0.5  # largest mean of the clipped differences, relative to the clip, at which the rhythm is used
_OFF, _OFF_SHARE = 0.5, 0.7  # fraction of a period, and share of recent stamps so far off at which the rhythm restarts
_BEFORE, _BEFORE_SHARE = 0.25, 0.15  # fraction of a period, and share of stamps so early at which no time is used
_AHEAD = 0.5  # fraction of a period: a time that is farther ahead of its stamp is not used
_COUNTED_TWICE = 4  # readings in a row, early by half a period, after which it restarts: a period was counted twice
_SPAN = 5  # steps over which the speed of a wheel is taken
_FADE = 0.998  # weight of the past at each reading: a memory of 10 s at 50 Hz
_LEAST = 1e-3  # [rad2] prediction error with the stamps below which no time is used
_BETTER = 0.5  # the prediction error with the rhythm must be below this share of it
_TINY = 1e-6  # [s]


class StampRhythm:
    """Follows period and phase of a driver's loop, and replaces stamps by its times if these fit the wheels better.

    If a stamp is late but its reading is not, a step of the wheels seems too slow and the next one too fast. If reading
    and stamp are late together, the times of the loop cause this error instead. The turn of each wheel in a step is
    therefore predicted from its mean speed over the steps before, once with the stamps and once with the times of the
    loop. The squares of both prediction errors are compared, with a memory of 10 s. Stamps stay as they are if the
    driver has no rhythm, and while the wheels stand.

    Phase and period follow by a loop of second order on the clipped difference of stamp and rhythm: a late stamp counts
    as a twentieth of a period, which moves the phase by less than that, and always alike. This loop can follow a
    period that is wrong by half a percent and no more. The rhythm is therefore used only while the clipped
    differences balance, and never where many stamps are early: a stamp can be late, but not before its reading.
    """

    def __init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        # Period [s]; shares of the stamps that were far off, that were early, and that followed a lost message.
        self._period, self._off, self._early, self._lost = 0.0, 0.0, 0.0, 0.0
        self._balance = 0.0  # mean of the clipped differences, relative to the clip
        self._followed, self._ahead = 0, 0  # readings since the period was found, and in a row that were early
        self._errors = [0.0, 0.0]  # squared prediction errors with stamps and with rhythm [rad2]
        # Stamp, time by the rhythm, wheel angles.
        self._readings: deque[tuple[float, float, Sequence[float]]] = deque(maxlen=_FIRST + 1)
        self._given = -np.inf

    @property
    def used(self) -> bool:
        """Whether stamps are moved to the rhythm."""
        by_stamps, by_rhythm = self._errors
        settled = self._followed > _SETTLING and abs(self._balance) < _BALANCE and self._early < _BEFORE_SHARE
        return settled and by_stamps > _LEAST and by_rhythm < _BETTER * by_stamps

    def take(self, stamp: float, angles: Sequence[float]) -> float:
        """Time [s] of a reading of wheel angles (n,) [rad] at its stamp [s]: the stamp, or the rhythm's time."""
        if self._readings and not 0.0 < stamp - self._readings[-1][0] <= _GAP:
            if -_GAP < stamp - self._readings[-1][0] <= 0.0:
                return min(stamp, self._given)  # a message that was overtaken, or came twice: not newer
            self._begin_anew()
        even = self._follow(stamp) if self._period > 0.0 else stamp
        self._readings.append((stamp, even, angles))
        if self._period == 0.0 and len(self._readings) > _FIRST:
            self._find()
        elif len(self._readings) > _SPAN + 2:
            self._compare()
        sure = stamp - even < _EITHER * self._period or self._lost < _LOSSES
        # A reading cannot be later than its stamp: a rhythm that is far ahead of it is no longer the driver's.
        sure = sure and even - stamp < _AHEAD * self._period
        time = even if self.used and sure and even > self._given else stamp
        # Times increase, also after one that was moved ahead of its stamp.
        self._given = time if time > self._given else self._given + _CLIP * self._period
        return self._given

    def _find(self) -> None:
        """First period, from steps over ever more readings, and first phase: that which most stamps share."""
        stamps = np.array([reading[0] for reading in self._readings])
        period = float(np.median(np.diff(stamps)))
        for lag in _LAGS:
            steps = stamps[lag:] - stamps[:-lag]
            period = float(np.median(steps / np.maximum(np.round(steps / period), 1.0)))
        off = (stamps[:, None] - stamps + 0.5 * period) % period - 0.5 * period
        shared = stamps[int(np.argmax(np.sum(np.abs(off) < _CLIP * period, axis=0)))]
        evens = shared + period * np.floor((stamps - shared) / period + _EARLY)
        self._period = period
        self._readings.extend([(s, e, a) for (s, _, a), e in zip(tuple(self._readings), evens.tolist(), strict=True)])

    def _follow(self, stamp: float) -> float:
        """Time of a reading with this stamp by the rhythm [s]; their difference corrects phase and period."""
        last, period = self._readings[-1][1], self._period
        skipped = last - self._readings[-4][1] > 3.5 * period
        if skipped and stamp - last < 0.5 * period:
            # A stamp shortly before was late by most of a period and took the place of the next one.
            before = self._readings.pop()
            last -= period
            self._readings.append((before[0], last, before[2]))
        periods = max(1, int((stamp - last) / period + _EARLY))
        off = stamp - last - periods * period
        self._followed += 1
        clip = _CLIP * period * max(1.0, _FASTER * (1.0 - self._followed / _SETTLING))
        clipped = min(max(off, -clip), clip)
        self._period += _PERIOD * clipped / periods
        self._balance = _RECENT * self._balance + (1.0 - _RECENT) * clipped / clip
        self._off = _RECENT * self._off + (1.0 - _RECENT) * (abs(off) > _OFF * period)
        self._early = _FADE * self._early + (1.0 - _FADE) * (off < -_BEFORE * period)
        self._lost = _FADE * self._lost + (1.0 - _FADE) * (periods > 1)
        self._ahead = self._ahead + 1 if off < -_OFF * period else 0
        if self._off > _OFF_SHARE or self._ahead == _COUNTED_TWICE:
            given = self._given
            self._begin_anew()
            self._given = given  # the driver's clock goes on
            return stamp
        return last + periods * period + _PHASE * clipped

    def _compare(self) -> None:
        """Add the prediction errors of the last step of the wheels but one, since the newest time may still change."""
        now, before, first = (self._readings[k] for k in (-2, -3, -3 - _SPAN))
        steps = [(a - b, b - c) for a, b, c in zip(now[2], before[2], first[2], strict=True)]
        clocks = (now[0], before[0], first[0]), (now[1], before[1], first[1])
        for k, (end, begin, since) in enumerate(clocks):
            share = (end - begin) / max(begin - since, _TINY)
            off = [newest - share * earlier for newest, earlier in steps]
            error = sum([angle * angle for angle in off])  # of a damaged reading infinite, where ** would raise
            self._errors[k] = _FADE * self._errors[k] + error if isfinite(error) else 0.0


def in_rhythm(stamps: ArrayLike, angles: ArrayLike) -> Vector:
    """Times (m,) [s] by `StampRhythm` of recorded readings: stamps (m,) [s] and wheel angles (m, n) [rad]."""
    times, rhythm = array("stamps", stamps, (None,)), StampRhythm()
    rows = np.asarray(angles, dtype=float).tolist()
    return np.array([rhythm.take(time, row) for time, row in zip(times.tolist(), rows, strict=True)])


_SLACK = 0.4  # of a period: stamps jitter, and the rate is kept all the same


class RateLimiter:
    """Lets stamps through at a rate [Hz] on average; where they come more slowly, all of them."""

    def __init__(self, rate: float) -> None:
        self._period = 1.0 / rate
        self._next = -1.0  # of a stamp long past: the first one goes through

    def due(self, stamp: float) -> bool:
        """Whether a message with this stamp [s] goes out; after a jump of the stamps, either way, it does."""
        ahead = self._next - stamp
        if _SLACK * self._period < ahead < 2.0 * self._period:
            return False
        on_time = -self._period < ahead < 2.0 * self._period
        self._next = (self._next if on_time else stamp) + self._period
        return True
