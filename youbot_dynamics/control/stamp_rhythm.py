"""Regular times for the readings of a driver whose loop has a constant period but whose stamps jitter.

`RateLimiter` passes on as many messages of a stream as a rate allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.compiled import compiled

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


# Layout of the numbers of a rhythm: the period [s]; shares of the stamps that were far off, early, and after a lost
# message; the mean of the clipped differences, relative to the clip; readings since the period was found, and in a row
# that were early; squared prediction errors with stamps and with rhythm [rad2]; the last time given [s]; readings.
_P, _FAR, _SOON, _LOST, _MEAN, _FOLLOWED, _AHEAD_ROW, _BY_STAMPS, _BY_RHYTHM, _GIVEN, _COUNT = range(11)
_KEPT = _FIRST + 1  # readings: stamp, time by the rhythm, wheel angles


@compiled
def _begin_anew(numbers: Vector) -> None:
    numbers[:] = 0.0
    numbers[_GIVEN] = -np.inf


@compiled
def _settled(numbers: Vector) -> bool:
    """Whether stamps are moved to the rhythm."""
    by_stamps, by_rhythm = numbers[_BY_STAMPS], numbers[_BY_RHYTHM]
    even = abs(numbers[_MEAN]) < _BALANCE and numbers[_SOON] < _BEFORE_SHARE
    settled = numbers[_FOLLOWED] > _SETTLING and by_stamps > _LEAST
    return bool(settled and even and by_rhythm < _BETTER * by_stamps)


@compiled
def _find(numbers: Vector, readings: Vector) -> None:
    """First period, from steps over ever more readings, and first phase: that which most stamps share."""
    stamps = readings[:, 0].copy()
    period = np.median(np.diff(stamps))
    for lag in _LAGS:
        steps = stamps[lag:] - stamps[:-lag]
        period = np.median(steps / np.maximum(np.floor(steps / period + 0.5), 1.0))
    most, shared = -1, stamps[0]
    for stamp in stamps:
        off = (stamps - stamp + 0.5 * period) % period - 0.5 * period
        near = np.sum(np.abs(off) < _CLIP * period)
        if near > most:
            most, shared = near, stamp
    readings[:, 1] = shared + period * np.floor((stamps - shared) / period + _EARLY)
    numbers[_P] = period


@compiled
def _follow(numbers: Vector, readings: Vector, stamp: float) -> float:
    """Time of a reading with this stamp by the rhythm [s]; their difference corrects phase and period."""
    newest = int(numbers[_COUNT]) - 1
    last, period = readings[newest % _KEPT, 1], numbers[_P]
    skipped = last - readings[(newest - 3) % _KEPT, 1] > 3.5 * period
    if skipped and stamp - last < 0.5 * period:
        # A stamp shortly before was late by most of a period and took the place of the next one.
        last -= period
        readings[newest % _KEPT, 1] = last
    periods = max(1, int((stamp - last) / period + _EARLY))
    off = stamp - last - periods * period
    numbers[_FOLLOWED] += 1.0
    clip = _CLIP * period * max(1.0, _FASTER * (1.0 - numbers[_FOLLOWED] / _SETTLING))
    clipped = min(max(off, -clip), clip)
    numbers[_P] += _PERIOD * clipped / periods
    numbers[_MEAN] = _RECENT * numbers[_MEAN] + (1.0 - _RECENT) * clipped / clip
    numbers[_FAR] = _RECENT * numbers[_FAR] + (1.0 - _RECENT) * (abs(off) > _OFF * period)
    numbers[_SOON] = _FADE * numbers[_SOON] + (1.0 - _FADE) * (off < -_BEFORE * period)
    numbers[_LOST] = _FADE * numbers[_LOST] + (1.0 - _FADE) * (periods > 1)
    numbers[_AHEAD_ROW] = numbers[_AHEAD_ROW] + 1.0 if off < -_OFF * period else 0.0
    if numbers[_FAR] > _OFF_SHARE or numbers[_AHEAD_ROW] == _COUNTED_TWICE:
        given = numbers[_GIVEN]
        _begin_anew(numbers)
        numbers[_GIVEN] = given  # the driver's clock goes on
        return stamp
    return float(last + periods * period + _PHASE * clipped)


@compiled
def _compare(numbers: Vector, readings: Vector) -> None:
    """Add the prediction errors of the last step of the wheels but one, since the newest time may still change."""
    newest = int(numbers[_COUNT]) - 1
    now, before = readings[(newest - 1) % _KEPT], readings[(newest - 2) % _KEPT]
    first = readings[(newest - 2 - _SPAN) % _KEPT]
    for k in range(2):
        share = (now[k] - before[k]) / max(before[k] - first[k], _TINY)
        error = np.sum(((now[2:] - before[2:]) - share * (before[2:] - first[2:])) ** 2)
        # Of a damaged reading it is not finite.
        numbers[_BY_STAMPS + k] = _FADE * numbers[_BY_STAMPS + k] + error if isfinite(error) else 0.0


@compiled
def _take(numbers: Vector, readings: Vector, stamp: float, angles: Vector) -> float:
    """Time [s] of the next reading; see `StampRhythm.take`."""
    if numbers[_COUNT] > 0:
        passed = stamp - readings[(int(numbers[_COUNT]) - 1) % _KEPT, 0]
        if -_GAP < passed <= 0.0:
            return min(stamp, float(numbers[_GIVEN]))  # a message that was overtaken, or came twice: not newer
        if not 0.0 < passed <= _GAP:
            _begin_anew(numbers)
    even = _follow(numbers, readings, stamp) if numbers[_P] > 0.0 else stamp
    row = int(numbers[_COUNT]) % _KEPT
    readings[row, 0], readings[row, 1] = stamp, even
    readings[row, 2:] = angles
    numbers[_COUNT] += 1.0
    if numbers[_P] == 0.0 and numbers[_COUNT] > _FIRST:
        _find(numbers, readings)
    elif numbers[_COUNT] > _SPAN + 2:
        _compare(numbers, readings)
    period = numbers[_P]
    sure = stamp - even < _EITHER * period or numbers[_LOST] < _LOSSES
    # A reading cannot be later than its stamp: a rhythm that is far ahead of it is no longer the driver's.
    sure = sure and even - stamp < _AHEAD * period
    time = even if _settled(numbers) and sure and even > numbers[_GIVEN] else stamp
    # Times increase, also after one that was moved ahead of its stamp.
    numbers[_GIVEN] = time if time > numbers[_GIVEN] else numbers[_GIVEN] + _CLIP * period
    return float(numbers[_GIVEN])


@compiled
def _take_all(numbers: Vector, readings: Vector, stamps: Vector, angles: Vector) -> Vector:
    """Times (m,) [s] of readings with stamps (m,) [s] and wheel angles (m, n) [rad]."""
    times = np.empty_like(stamps)
    for k in range(len(stamps)):
        times[k] = _take(numbers, readings, stamps[k], angles[k])
    return times


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
        self._numbers, self._readings = np.zeros(_COUNT + 1), np.zeros((_KEPT, 2))
        _begin_anew(self._numbers)

    @property
    def used(self) -> bool:
        """Whether stamps are moved to the rhythm."""
        return bool(_settled(self._numbers))

    def take(self, stamp: float, angles: Sequence[float]) -> float:
        """Time [s] of a reading of wheel angles (n,) [rad] at its stamp [s]: the stamp, or the rhythm's time."""
        return float(self.take_all(np.array([stamp], dtype=float), np.array([angles], dtype=float))[0])

    def take_all(self, stamps: Vector, angles: Vector) -> Vector:
        """The same (m,) of several readings: stamps (m,) [s] and wheel angles (m, n) [rad]."""
        if self._readings.shape[1] != 2 + angles.shape[1]:
            self._readings = np.zeros((_KEPT, 2 + angles.shape[1]))
        return np.asarray(_take_all(self._numbers, self._readings, stamps, angles))


def in_rhythm(stamps: ArrayLike, angles: ArrayLike) -> Vector:
    """Times (m,) [s] by `StampRhythm` of recorded readings: stamps (m,) [s] and wheel angles (m, n) [rad]."""
    times = array("stamps", stamps, (None,))
    return StampRhythm().take_all(times, np.ascontiguousarray(angles, dtype=float))


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
