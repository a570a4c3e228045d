"""Position, speed, acceleration and torque of joints in short windows, all with the same smoothing.

Each window is 2 w wide with weights k(x) = (1 - x^2)^2, x = (t - middle) / w. All four are means with these weights.
Integration by parts gives the mean speed as the integral of k dq, and the mean acceleration as minus that of dk/dt dq.
No reading is differentiated, and relations that are linear in the four remain exact after smoothing. The speeds of the
driver are not used: they are quantised to 15 motor rpm and lag by 10 ms.

Source: modulating functions, Shinbrot 1957.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Indices, Vector, smallest_change, usual_step
from youbot_dynamics.compiled import compiled
from youbot_dynamics.identification.signals import TRAVEL, ArmSignals, even_stamps

HALF_WIDTH = 0.1  # [s] five readings of a 50 Hz driver on either side
_FEWEST = 5  # readings in a window
# A joint slides above this speed, and this far from its last reversal or rest: three times the longest plausible
# bristle deflection, after which the bristle torque is within 10 % of the Coulomb torque.
SLOWEST = 0.05  # [rad/s]
# Changes of the angle that are no reversal: at least and at most [rad], and in standard deviations of the noise
_JITTER, _MOST_JITTER, _NOISES = TRAVEL / 30.0, TRAVEL / 10.0, 4.0
_REACH = 0.05  # [rad] used on either side of a reversal
_START_DISTANCE = 0.01  # used before a reversal [rad]
_FAR_SMALLER = 0.6  # noise by differences of a higher order, over that by those before, below which it counts
_ENOUGH = 4000  # readings that tell their noise
_MEDIAN = 0.6745  # of the magnitude of a normal error, in standard deviations


@dataclass(frozen=True, eq=False)
class ArmWindows:
    """States of n joints in k windows."""

    time: Vector  # (k,) middle of each [s]
    position: Vector  # (k, n) [rad]
    speed: Vector  # (k, n) [rad/s]
    acceleration: Vector  # (k, n) [rad/s2]
    torque: Vector  # (k, n) [N m]
    slew: Vector  # (k, n) rate of the torque [N m/s]
    sliding: Vector  # (k, n) sign of the motion if a joint slides with settled friction, else 0
    recording: int  # number of the recording
    half_width: float  # of the windows [s]


def shortest(recordings: Sequence[ArmSignals]) -> float:
    """Smallest half-width [s] for which windows of each recording hold 5 readings; 0 without readings."""
    periods = [usual_step(signals.time) for signals in recordings if len(signals.time) > 1]
    return 0.5 * (_FEWEST + 1) * max(periods, default=0.0)


def arm_windows(signals: ArmSignals, half_width: float = HALF_WIDTH) -> ArmWindows:
    """Windows of a recording, one per half-width; those with a gap or too few readings are left out.

    Jitter of the stamps is removed first (`even_stamps`), because it would dominate the acceleration. The half-width
    [s] is increased if a window would hold fewer than 5 readings. Where efforts are later than the motion, by
    `signals.delay`, theirs are windows that are as much later: interpolated readings would have less noise.
    """
    time, n = even_stamps(signals.time, signals.position), signals.position.shape[1]
    period = usual_step(time, half_width)
    width = max(half_width, shortest([signals]))
    middles = np.arange(time[0] + width, time[-1] - width, width) if len(time) > 1 else np.zeros(0)
    # Positions near 0, to preserve the precision of differences.
    origin = signals.position.mean(axis=0) if len(time) else np.zeros(n)
    expected = max(_FEWEST, int(1.2 * width / period)) if period > 0.0 else _FEWEST
    given = time, signals.position - origin, signals.torque
    states, sound = _smooth(*given, middles, width, expected)
    if signals.delay != 0.0:
        later, evenly = _smooth(*given, middles + signals.delay, width, expected)
        states[:, 3] = later[:, 3] - later[:, 4] * (later[:, 5] - states[:, 5])
        states[:, 4], sound = later[:, 4], sound & evenly
    sliding = _sliding(time, signals.position, middles, states[:, 1])
    position, speed, acceleration, mean_torque, slew, _ = states[sound].transpose(1, 0, 2)
    motion = position + origin, speed, acceleration
    return ArmWindows(middles[sound], *motion, mean_torque, slew, sliding[sound], signals.recording, width)


@compiled
def _smooth(
    time: Vector, position: Vector, torque: Vector, middles: Vector, width: float, fewest: int
) -> tuple[Vector, NDArray[np.bool_]]:
    """Means (k, 6, n) of position, speed, acceleration, torque, its rate, time, and whether each window (k,) is even.

    The time is that of the means of position and torque, from the middle of a window on [s].

    Readings are (s,), (s, n), (s, n); windows are at `middles` (k,). `width` is the half-width of a window, `fewest`
    the number of readings it needs.
    """
    first, n = 0, position.shape[1]
    states, sound = np.zeros((len(middles), 6, n)), np.zeros(len(middles), dtype=np.bool_)
    for k in range(len(middles)):
        while first < len(time) and time[first] <= middles[k] - width:
            first += 1
        # `unit`: both integrals for q = x and q = x^2 / 2; sums over few readings have errors of some per cent.
        total, centre, unit = 0.0, 0.0, np.zeros(4)
        sums = np.zeros((5, n))
        last, widest, before = first, 0.0, -1.0
        while last < len(time) and time[last] < middles[k] + width:
            x = (time[last] - middles[k]) / width
            weight = (1.0 - x * x) ** 2
            total += weight
            centre += weight * x
            for j in range(n):
                sums[0, j] += weight * position[last, j]
                sums[3, j] += weight * torque[last, j]
            widest = max(widest, x - before)
            before = x
            last += 1
        if last - first < fewest or max(widest, 1.0 - before) > 0.7:
            continue
        sound[k] = True
        # Motion between two readings is assigned to its middle; across a window end only the inner share counts.
        for i in range(max(first, 1), min(last + 1, len(time))):
            x, before = (time[i] - middles[k]) / width, (time[i - 1] - middles[k]) / width
            low, high = max(before, -1.0), min(x, 1.0)
            share = (high - low) / (x - before) if x > before else 1.0
            middle = 0.5 * (low + high)
            inside = 1.0 - middle * middle
            kernel, falling = share * inside * inside, share * 4.0 * middle * inside
            position_mean = 0.5 * (before + x)
            unit += (x - before) * np.array([kernel, kernel * position_mean, falling, falling * position_mean])
            for j in range(n):
                change = position[i, j] - position[i - 1, j]
                sums[1, j] += kernel * change
                sums[2, j] += falling * change
                sums[4, j] += kernel * (torque[i, j] - torque[i - 1, j])
        determinant = unit[0] * unit[3] - unit[1] * unit[2]
        for j in range(n):
            speed = (sums[1, j] * unit[3] - sums[2, j] * unit[1]) / determinant
            acceleration = (unit[0] * sums[2, j] - unit[2] * sums[1, j]) / determinant
            states[k, 0, j] = sums[0, j] / total
            # The mean refers to the weighted mean time of the readings, not to the middle.
            states[k, 1, j] = (speed + acceleration * centre / total) / width
            states[k, 2, j] = acceleration / (width * width)
            states[k, 3, j] = sums[3, j] / total
            states[k, 4, j] = sums[4, j] / (unit[0] * width)
            states[k, 5, j] = width * centre / total
    return states, sound


def _sliding(time: Vector, position: Vector, middles: Vector, speed: Vector) -> Vector:
    """Sign (k, n) of the motion with settled friction in windows at `middles` (k,) with mean speeds (k, n), else 0."""
    sliding = np.sign(speed) * (np.abs(speed) > SLOWEST)
    width = middles[1] - middles[0] if len(middles) > 1 else 0.0
    noises = [reading_noise(time, column, [(0, 0, len(time))]) for column in position.T]
    for j in range(position.shape[1]):
        jitter = min(max(_JITTER, _NOISES * float(noises[j])), _MOST_JITTER)
        direction, reversal = _since_reversal(position[:, j], jitter)
        # Sliding during the whole window: settled and in one direction at every reading. The last reading of a
        # direction, the outermost, is often after the reversal: the parabola through it and its neighbours tells.
        code = np.where(np.abs(position[:, j] - reversal) >= TRAVEL, direction, 0.0)
        last = np.flatnonzero(direction[2:] != direction[1:-1]) + 1
        before, after = time[last] - time[last - 1], time[last + 1] - time[last]
        came, goes = position[last, j] - position[last - 1, j], position[last + 1, j] - position[last, j]
        code[last[(came * after**2 + goes * before**2) * direction[last] <= 0.0]] = 0.0
        low = np.searchsorted(time, middles - width, side="right")
        high = np.searchsorted(time, middles + width)
        for sign in (-1.0, 1.0):
            different = np.concatenate([[0], np.cumsum(code != sign)])
            sliding[:, j] *= (sliding[:, j] != sign) | ((high > low) & (different[high] == different[low]))
    return sliding


def on_its_way(position: Vector) -> NDArray[np.bool_]:
    """Flags (s,) of positions (s,) where a joint is `TRAVEL` or more behind a reversal, and goes on after them."""
    direction, reversal = _since_reversal(position, _JITTER)
    after = np.append(direction[1:], 0.0)
    return np.asarray((np.abs(position - reversal) >= TRAVEL) & (direction == after) & (direction != 0.0))


@compiled
def _since_reversal(position: Vector, jitter: float) -> tuple[Vector, Vector]:
    """Direction (s,) of the motion and position (s,) of the last reversal; changes up to `jitter` [rad] are ignored."""
    direction, reversal = np.zeros(len(position)), np.zeros(len(position))
    sign, extreme, start, outermost = 0.0, position[0], position[0], 0
    for k in range(len(position)):
        x = position[k]
        if sign == 0.0:
            if abs(x - start) > jitter:
                sign = 1.0 if x > start else -1.0
                extreme, outermost = x, k
        elif (x - extreme) * sign >= 0.0:
            extreme, outermost = x, k
        elif (extreme - x) * sign > jitter:
            start = extreme
            sign = -sign
            # The reversal is at the outermost point, before it is detected.
            direction[outermost + 1 : k] = sign
            reversal[outermost + 1 : k] = start
            extreme, outermost = x, k
        direction[k] = sign
        reversal[k] = start
    return direction, reversal


def turning_points(path: Vector) -> NDArray[np.intp]:
    """Indices (m,) of reversals in positions (s,) [rad]; jitter of 1 mrad is not a reversal."""
    direction, _ = _since_reversal(path, _JITTER) if len(path) else (path, path)
    changes = np.flatnonzero((direction[1:] != direction[:-1]) & (direction[:-1] != 0.0))
    bounds = np.concatenate([[0], changes + 1])
    # The outermost point is slightly before the point of detection.
    return np.array(
        [a + int(np.argmax(path[a : b + 1] * direction[b])) for a, b in zip(bounds[:-1], changes, strict=True)],
        dtype=np.intp,
    )


def reversal_pieces(position: Vector) -> list[tuple[int, int, int]]:
    """First reading, turning point and last reading (exclusive) of each reversal of positions (s,)."""
    pieces = []
    turns = turning_points(position)
    for k, turn in enumerate(turns):
        begin = turns[k - 1] if k else 0
        end = turns[k + 1] if k + 1 < len(turns) else len(position)
        before = np.abs(position[begin:turn] - position[turn])
        after = np.abs(position[turn:end] - position[turn])
        if not (len(before) and before.max() > _REACH and after.max() > _REACH):
            continue
        first = begin + int(np.flatnonzero(before > _START_DISTANCE)[-1])
        last = turn + int(np.flatnonzero(after > _REACH)[0])
        pieces.append((first, int(turn), last))
    return pieces


def near_turns(turns: Sequence[tuple[int, int, int]], margin: int, count: int) -> Indices:
    """Indices (r,) of the readings of reversals that have `margin` others on either side among `count`."""
    near = np.concatenate([np.zeros(0, dtype=np.intp), *(np.arange(first, last) for first, _, last in turns)])
    return near[(near >= margin) & (near < count - margin)]


def reading_noise(time: Vector, position: Vector, turns: Sequence[tuple[int, int, int]]) -> float:
    """Standard deviation of the noise of positions (s,) at times (s,) near reversals [rad]; 0 without reversals.

    Smooth motion has hardly any fourth divided differences. Fast motion has some in slow readings: those of sixth or
    eighth order count where they are far smaller. Near reversals the joint is slow, so that errors of the stamps are no
    noise of the positions; where it rests, steps of the encoder show no error, but they have one.
    """
    noise = math.inf
    for half in (2, 3, 4):
        near = near_turns(turns, half, len(time))
        if not len(near):
            break
        near = near[:: math.ceil(len(near) / _ENOUGH)]
        window = near[:, None] + np.arange(-half, half + 1)
        stamps = (time[window] - time[near, None]) / usual_step(time)
        weights = 1.0 / np.prod(stamps[:, :, None] - stamps[:, None, :] + np.eye(2 * half + 1), axis=2)
        differences = np.sum(weights * position[window], axis=1) / np.linalg.norm(weights, axis=1)
        found = float(np.median(np.abs(differences))) / _MEDIAN
        noise = found if found < _FAR_SMALLER * noise else noise
    rounding = float(smallest_change(position[:, None])[0]) / math.sqrt(12.0)
    return max(noise, rounding) if math.isfinite(noise) else 0.0


def noise_of(signals: ArmSignals) -> Vector:
    """Standard deviations (n,) of the noise of each joint's positions [rad], near its reversals if it has any."""
    time = even_stamps(signals.time, signals.position)
    return np.array(
        [reading_noise(time, column, reversal_pieces(column) or [(0, 0, len(time))]) for column in signals.position.T]
    )
