"""Odometry of a base with slip beside the noisy poses of a body on it: a Kalman filter whose innovations are residuals.

Between two poses the wheels move the tracked body by D in its own frame. Slip adds a random walk to where the base is:

    G' = G o D,   G + slip,   variance of the yaw s^2 w + (v/l)^2 and along each axis (l s)^2 w + v^2,

with the way w of the wheels (turns included), the lever l, and half the unusual slip v of the wheels against each
other, as if it lasted for 6 s. A pose is G with white noise and with noise that wanders with a time constant, as that
of a localisation does. Before the first pose nothing is known of where the base is. What a pose shows beyond all poses
before it, over its standard deviation, is white: so spans of all lengths count with their true weight, and no start of
a window is fitted. Poses far off are those of another place: they get the weight of Student's t.

Source: Anderson and Moore 1979, Optimal Filtering, ch. 3 and 9 (innovations as residuals); Lange, Little and Taylor
1989 (Student's t); systems 29-31, 34.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from youbot_dynamics.arrays import Indices, Vector, usual_step
from youbot_dynamics.compiled import compiled
from youbot_dynamics.identification.calibration._model import (
    Guess,
    Windows,
    lever,
    motions,
    odometry,
    slips_of_wheels,
    tracked,
    wrapped,
)
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._weights import HARDLY, MEDIAN_TO_DEVIATION
from youbot_dynamics.kinematics import planar

_FREEDOM = 5.0  # of Student's t: of normal poses 1 % get less than half of their weight
_THINNED, _RUN = 800, 10  # poses from which the noise is found, half of them in runs of so many
_TRIALS = 300  # of the search for the noise
_SEARCHED = 0.03  # [1] to which it finds it
_LIKELY = 3.0  # standard deviation of each part of the noise over its first value, in logarithms, without any pose
# Of each part of `Noise` in its order and units, in logarithms: farther apart, rounding would make variances negative
_LOWEST, _HIGHEST = np.log([*[1e-5] * 5, 0.02]), np.log([*[1.0] * 5, 30.0])
LASTING = 6.0  # [s] for which errors of odometry may last
_L1_ROUNDS = 8
_SHORTEST = 1e-3  # [s] between poses
_MEAN = 0.2  # [s] of poses
_LEAP, _LEAP_OF_YAW = 4.0, 1.0  # step from pose to pose over that of nine in ten, and [rad], that no mean contains
_JUMP, _MAPS = 15.0, 5  # [s] that poses may lie elsewhere; times that they may do so for longer, at least
_ALL = slice(None)
_AVERAGED = 0.4  # [s] of the instruments
_SCALED = 5  # steps to the size of what most poses are off
_NO_TRUST = 1e-3
_LATE = 0.2  # standard deviation of a delay of up to one reading, over the time between readings
_ROUNDED = 1e-14  # [m2, rad2] least variance of a step


class Noise(NamedTuple):
    """Standard deviations of what odometry and poses are off."""

    slip: float = 0.02  # growth of the yaw of odometry [rad/sqrt(m)]; of the position this times the lever
    position: float = 0.01  # white noise of a pose along each axis [m]
    yaw: float = 0.01  # the same [rad]
    wander_position: float = 0.01  # noise that lasts [m]
    wander_yaw: float = 0.01  # the same [rad]
    wander_time: float = 2.0  # its time constant [s]


class Poses(NamedTuple):
    """Poses of one recording, each the mean over a fifth of a second.

    A mean of places moves with the base as one place does, so nothing is lost; and what a tracker filters, or steps of
    an encoder make of short motions, hardly counts. A pose that leaps from the one before begins another mean.
    """

    number: int  # of the recording
    part: Windows  # the recording, with a window for each piece without gaps
    starts: Indices  # (m,) index into its `rows` at which each mean starts
    begins: NDArray[np.bool_]  # (m,) whether the motion up to it is unknown
    poses: Vector  # (m, 3) [m, m, rad]

    @classmethod
    def of(cls, number: int, part: Windows) -> Poses:
        """The poses of the windows of a recording, one or more."""
        piece = part.spread(np.arange(len(part.starts), dtype=float))
        cells = np.floor(part.signals.since_start[part.rows] / _MEAN)
        poses = part.signals.poses[part.rows]
        moved = _differences(poses)
        far = np.hypot(moved[:, 0], moved[:, 1])
        leaps = (far > _LEAP * np.quantile(far, 0.9)) | (np.abs(wrapped(moved[:, 2])) > _LEAP_OF_YAW)
        anew = np.diff(piece, prepend=-1.0) > 0.0
        starts = np.flatnonzero((np.diff(cells, prepend=-np.inf) > 0.0) | anew | leaps)
        first = np.repeat(poses[starts, 2], np.diff(np.append(starts, len(poses))))
        poses = np.column_stack([poses[:, :2], first + wrapped(poses[:, 2] - first)])
        return cls(number, part, starts, anew[starts], _means(poses, starts))

    @property
    def time(self) -> Vector:
        """Mean times (m,) as `since_start` [s]."""
        return self.mean(self.part.signals.since_start[self.part.rows])

    def times(self, guess: Guess) -> Vector:
        """Times (r,) of all poses by the clock of the wheels [s]."""
        return np.asarray(self.part.signals.pose_time[self.part.rows] - guess.offsets[self.number])

    def mean(self, values: Vector) -> Vector:
        """Means (m, ...) of values (r, ...) of all poses."""
        return _means(values, self.starts)

    def spread(self, values: Vector) -> Vector:
        """Values (m,) repeated for all poses (r,)."""
        return np.repeat(values, np.diff(np.append(self.starts, len(self.part.rows))))

    def path(self, guess: Guess, smooth: bool = False) -> Vector:
        """Poses (m, 3) [m, m, rad] of the tracked body by the wheels; `smooth` takes angles as of `_smoothed`."""
        signals = _smoothed(self.part.signals) if smooth else self.part.signals
        times = self.times(guess)
        return self.mean(tracked(signals, guess.base, times, guess.sensor, guess.smoothing, guess.of_past))


def _means(values: Vector, starts: Indices) -> Vector:
    counts = np.diff(np.append(starts, len(values))).astype(float)
    sums = np.add.reduceat(values, starts, axis=0)
    return np.asarray(sums / (counts if values.ndim == 1 else counts[:, None]))


def _smoothed(signals: CalibrationSignals) -> CalibrationSignals:
    """Signals with wheel angles that are means over 0.4 s: instruments of which the steps of encoders are no part.

    Where the wheels hardly turn between two poses, the noise of their angles would be a part of the residuals and of
    their slopes alike, and make the wheels smaller: on real mecanum wheels with 188 steps a turn by 1.3 %. The weights
    are a triangle, which reverses no motion; angles beyond a gap are of another count.

    Source: Young 2011, Recursive Estimation and Time-Series Analysis, ch. 7 (instrumental variables).
    """
    half = int(0.25 * _AVERAGED / usual_step(signals.wheel_time, _AVERAGED))
    pieces = np.split(signals.wheel_angles, np.flatnonzero(signals.gaps()) + 1)
    return replace(signals, wheel_angles=np.vstack([_averaged(_averaged(piece, half), half) for piece in pieces]))


def _averaged(values: Vector, half: int) -> Vector:
    """Means (m, n) over `half` values to either side."""
    sums = np.cumsum(np.pad(values, ((half + 1, half), (0, 0)), mode="edge"), axis=0)
    return np.asarray((sums[2 * half + 1 :] - sums[: -2 * half - 1]) / (2 * half + 1))


class Track(NamedTuple):
    """Some poses of one recording, and what moved the base up to each from the one before."""

    poses: Vector  # (m, 3) measured
    begins: NDArray[np.bool_]  # (m,) whether the motion up to a pose is unknown
    intervals: Vector  # (m,) [s]
    ways: Vector  # (m,) of the wheels, with turns as ways of the rims [m]
    slipped: Vector  # (m,) [m] standard deviation by unusual slip of the wheels against each other
    trust: Vector  # (m,) in each pose, nearly 0 for one of another place
    reach: float  # lever of a turn [m]


def track(poses: Poses, guess: Guess, trust: Vector, kept: Indices | slice = _ALL) -> Track:
    """The poses of a recording, or those with the indices `kept`, with a trust (m,) in each of all of them."""
    signals, times = poses.part.signals, poses.times(guess)
    base = _steps(poses.mean(odometry(signals, guess.base, times))[kept])
    smooth = _smoothed(signals)
    slip = _differences(poses.mean(slips_of_wheels(smooth, guess.base, times))[kept])
    turned = _differences(poses.mean(motions(smooth, guess.base, times))[kept])
    reach, intervals = lever(guess.base), _differences(poses.time[kept])
    beyond = 0.5 * float(np.mean(guess.base.radii)) * np.max(np.abs(_unusual(slip, turned)), axis=1)
    slipped = beyond * np.sqrt(LASTING / np.maximum(intervals, _SHORTEST))
    ways = np.hypot(base[:, 0], base[:, 1]) + reach * np.abs(base[:, 2])
    return Track(poses.poses[kept], poses.begins[kept], intervals, ways, slipped, trust[kept], reach)


def _unusual(slip: Vector, moved: Vector) -> Vector:
    """Slip (m, n) beyond what goes with the motion (m, 3) in most of a drive, by least absolute values.

    Wheels of stiff loops whose radii differ slip in proportion to the motion, all the time.
    """
    left, floor = slip, 1e-3 * float(np.max(np.abs(slip), initial=0.0)) + 1e-300
    for _ in range(_L1_ROUNDS):
        weighted = moved / np.maximum(np.linalg.norm(left, axis=1), floor)[:, None]
        left = slip - moved @ (np.linalg.pinv(weighted.T @ moved) @ weighted.T @ slip)
    return left


def _steps(path: Vector) -> Vector:
    """Motion (m, 3) [m, m, rad] from pose to pose of a path (m, 3), in the frame of the earlier one; 0 in the first."""
    moved = _differences(path)
    moved[1:, :2] = planar.turned(moved[1:, :2], -path[:-1, 2])
    return moved


def _differences(values: Vector) -> Vector:
    """From row to row (m, ...), 0 in the first."""
    return np.diff(values, axis=0, prepend=values[:1])


def innovations(along: Track, paths: Sequence[Vector], noise: Noise) -> tuple[Vector, Vector]:
    """What each pose shows beyond those before, over its standard deviation, and the weights of the poses.

    Args:
        along: the poses.
        paths: (c,) paths (m, 3) by the wheels, of several guesses; gains and weights are those of the first.
        noise: of odometry and poses.

    Returns:
        (c, m, 3), 0 where a track begins; and (m,).
    """
    shown, weights, _ = _with_noise(along, np.array([_steps(path) for path in paths]), noise)
    return shown, weights


def unlikeliness(pairs: Sequence[tuple[Poses, Track]], guess: Guess, noise: Noise) -> float:
    """Minus the logarithm of the likelihood of the poses of all recordings."""
    return sum(_with_noise(along, _steps(poses.path(guess))[None], noise)[2] for poses, along in pairs)


def _with_noise(along: Track, moved: Vector, noise: Noise) -> tuple[Vector, Vector, float]:
    """What `_filtered` gives for tracks with a noise."""
    variances = *_variances(along, noise), *_wander(along, noise)
    return _filtered(along.poses, along.begins, along.trust, moved, *variances)


def trusted(recordings: Sequence[Poses], guess: Guess) -> tuple[list[Poses], list[Vector]]:
    """Trust (m,) in the poses of each recording, nearly 0 in those that lie many times as far off as most.

    A localisation that jumps for some seconds shows nothing of the wheels; taken for noise, it would be that of all.
    One that jumps for longer, or began elsewhere, has another map from there on: its poses start again.
    """
    known = list(recordings)
    for _ in range(_MAPS):
        anew = [_anew(poses, own) for poses, own in zip(known, _trust(known, guess), strict=True)]
        if not any(np.any(begins & ~poses.begins) for poses, begins in zip(known, anew, strict=True)):
            break
        known = [poses._replace(begins=poses.begins | begins) for poses, begins in zip(known, anew, strict=True)]
    return known, _trust(known, guess)


def _trust(recordings: Sequence[Poses], guess: Guess) -> list[Vector]:
    """Trust by noise of the size of what most poses are off, in place and in yaw."""
    pairs = []
    for poses in recordings:
        along = track(poses, guess, np.ones(len(poses.poses)))
        pairs.append((along, _steps(poses.path(guess))[None]))
    noise = Noise()
    for _ in range(_SCALED):
        shown = np.concatenate([np.abs(_with_noise(along, own, noise)[0][0, ~along.begins]) for along, own in pairs])
        place, yaw = (max(MEDIAN_TO_DEVIATION * float(np.median(part)), 1e-3) for part in (shown[:, :2], shown[:, 2]))
        factors = np.array([yaw, place, yaw, place, yaw, 1.0])
        noise = Noise(*np.exp(np.clip(np.log(noise * factors), _LOWEST, _HIGHEST)).tolist())
    of_all = (_with_noise(along, own, noise)[1] for along, own in pairs)
    return [np.where(weights < HARDLY, _NO_TRUST, 1.0) for weights in of_all]


def _anew(poses: Poses, trust: Vector) -> NDArray[np.bool_]:
    """Where (m,) poses that are not trusted begin to last too long for a jump."""
    edges = np.diff((trust < 1.0).astype(int), prepend=0, append=0)
    first, end = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    begins = np.zeros(len(trust), dtype=bool)
    begins[first[poses.time[end - 1] - poses.time[first] > _JUMP]] = True
    return begins


def fitted_noise(recordings: Sequence[Poses], guess: Guess, start: Noise, trust: Sequence[Vector]) -> Noise:
    """The most likely noise of the poses of all recordings and of odometry with a guess, near the `start`.

    `trust` (m,) is that in the poses of each recording.
    """
    every = max(1, sum(len(poses.poses) for poses in recordings) // _THINNED)
    tracks, moved = [], []
    for poses, own in zip(recordings, trust, strict=True):
        kept = _thinned(poses.begins, every)
        tracks.append(track(poses, guess, own, kept))
        moved.append(_steps(poses.path(guess)[kept])[None])
    first = np.log(start)

    def unlikely(logarithms: Vector) -> float:
        noise = Noise(*np.exp(np.clip(logarithms, _LOWEST, _HIGHEST)).tolist())
        total = 0.5 * float(np.sum(((logarithms - np.log(Noise())) / _LIKELY) ** 2))
        for one, own in zip(tracks, moved, strict=True):
            total += _with_noise(one, own, noise)[2]
        return total

    simplex = np.vstack([first, first + np.eye(len(first))])
    options = {"maxfev": _TRIALS, "xatol": _SEARCHED, "fatol": _SEARCHED, "initial_simplex": simplex}
    found = minimize(unlikely, first, method="Nelder-Mead", options=options).x
    noise = Noise(*np.exp(np.clip(found, _LOWEST, _HIGHEST)).tolist())
    place, yaw = _of_late_readings(recordings, tracks, moved)
    return noise._replace(position=max(noise.position, place), yaw=max(noise.yaw, yaw))


def _of_late_readings(
    recordings: Sequence[Poses], tracks: Sequence[Track], moved: Sequence[Vector]
) -> tuple[float, float]:
    """Least white noise [m, rad] of poses: what the base moves while a wheel reading is late by up to one more.

    A loop that beats with its readings makes wheels seem slower for seconds, and then catch up: taken for slip, the
    short spans in between would make them larger.
    """
    late = _LATE * max(usual_step(poses.part.signals.wheel_time, 0.0) for poses in recordings)
    known = [one.intervals > _SHORTEST for one in tracks]
    speeds = np.vstack(
        [own[0, rows] / one.intervals[rows, None] for one, own, rows in zip(tracks, moved, known, strict=True)]
    )
    place, yaw = np.median(np.hypot(speeds[:, 0], speeds[:, 1])), np.median(np.abs(speeds[:, 2]))
    return late * float(place), late * float(yaw)


def _thinned(begins: NDArray[np.bool_], every: int) -> Indices:
    """Indices of about one of `every` poses of each track: half in runs, half far apart.

    White noise is what neighbours show, slip what distant poses do.
    """
    number = np.arange(len(begins))
    number -= np.maximum.accumulate(np.where(begins, number, 0))
    return np.flatnonzero((number % (2 * every * _RUN) < _RUN) | (number % (2 * every) == 0))


def _variances(along: Track, noise: Noise) -> tuple[Vector, Vector]:
    """Variances (m, 3) of the steps and (3,) of a pose."""
    slip = noise.slip**2 * along.ways + _ROUNDED
    straight = along.reach**2 * slip + along.slipped**2 + _ROUNDED
    turning = slip + (along.slipped / along.reach) ** 2
    return np.column_stack([straight, straight, turning]), np.array([noise.position, noise.position, noise.yaw]) ** 2


def _wander(along: Track, noise: Noise) -> tuple[Vector, Vector]:
    """Variances (3,) of the noise that wanders, and what is left (m,) of it after each step."""
    lasting = np.array([noise.wander_position, noise.wander_position, noise.wander_yaw]) ** 2
    return lasting, np.exp(-along.intervals / noise.wander_time)


@compiled
def _filtered(
    poses: Vector,
    begins: NDArray[np.bool_],
    trust: Vector,
    moved: Vector,
    walk: Vector,
    white: Vector,
    lasting: Vector,
    kept: Vector,
) -> tuple[Vector, Vector, float]:
    """`innovations`, their weights, and minus the logarithm of their likelihood.

    The state is the pose of the body and the wandering noise of each of its parts. `walk` (m, 3) are variances of
    steps, `white` and `lasting` (3,) of poses; `kept` (m,) is what is left of the wandering noise after each interval.
    Trust counts in the likelihood, and with the weight in the variance of a pose and the size of its innovation.
    """
    count, length = moved.shape[0], moved.shape[1]
    shown, weights = np.zeros((count, length, 3)), np.copy(trust)
    state, covariance, gain = np.zeros((count, 6)), np.zeros((6, 6)), np.zeros((6, 3))
    unlikely = 0.0
    for k in range(length):
        if begins[k]:  # nothing was known: the pose of the body is what was seen, off by both kinds of noise
            covariance[:] = 0.0
            for j in range(3):
                covariance[j, j] = white[j] + lasting[j]
                covariance[j + 3, j + 3] = lasting[j]
                covariance[j, j + 3] = covariance[j + 3, j] = -lasting[j]
            for i in range(count):
                state[i, :3], state[i, 3:] = poses[k], 0.0
            continue
        remaining = kept[k]
        for i in range(count):
            cosine, sine = math.cos(state[i, 2]), math.sin(state[i, 2])
            ahead = cosine * moved[i, k, 0] - sine * moved[i, k, 1]
            aside = sine * moved[i, k, 0] + cosine * moved[i, k, 1]
            if i == 0:  # P = A P A' with A = [[1, 0, -aside], [0, 1, ahead], [0, 0, 1]] beside remaining I
                for j in range(6):
                    covariance[0, j] -= aside * covariance[2, j]
                    covariance[1, j] += ahead * covariance[2, j]
                for j in range(6):
                    covariance[j, 0] -= aside * covariance[j, 2]
                    covariance[j, 1] += ahead * covariance[j, 2]
                for j in range(3):
                    covariance[j + 3, :] *= remaining
                    covariance[:, j + 3] *= remaining
                    covariance[j, j] += walk[k, j]
                    covariance[j + 3, j + 3] += (1.0 - remaining * remaining) * lasting[j]
            state[i, 0] += ahead
            state[i, 1] += aside
            state[i, 2] += moved[i, k, 2]
            for j in range(3):
                state[i, j + 3] *= remaining
        foreseen = covariance[:3, :3] + covariance[3:, :3] + covariance[:3, 3:] + covariance[3:, 3:]
        for j in range(3):
            foreseen[j, j] += white[j]
        root = np.linalg.cholesky(foreseen)
        whitening = np.linalg.inv(root)
        whole = 2.0 * math.pi * math.floor((poses[k, 2] - state[0, 2] - state[0, 5] + math.pi) / (2.0 * math.pi))
        for i in range(count):
            shown[i, k] = poses[k] - state[i, :3] - state[i, 3:]
            shown[i, k, 2] -= whole
        square = 0.0
        for j in range(3):
            one = whitening[j, 0] * shown[0, k, 0] + whitening[j, 1] * shown[0, k, 1] + whitening[j, 2] * shown[0, k, 2]
            square += one * one
            unlikely += trust[k] * math.log(root[j, j])
        unlikely += trust[k] * 0.5 * (_FREEDOM + 3.0) * math.log(1.0 + square / _FREEDOM)
        weights[k] = min(1.0, (_FREEDOM + 3.0) / (_FREEDOM + square))
        used = trust[k] * weights[k]
        for j in range(3):
            foreseen[j, j] += white[j] * (1.0 / used - 1.0)
        inverse = np.linalg.inv(foreseen)
        seen = covariance[:, :3] + covariance[:, 3:]
        for j in range(6):
            for m in range(3):
                gain[j, m] = seen[j, 0] * inverse[0, m] + seen[j, 1] * inverse[1, m] + seen[j, 2] * inverse[2, m]
        for i in range(count):
            for j in range(6):
                state[i, j] += gain[j, 0] * shown[i, k, 0] + gain[j, 1] * shown[i, k, 1] + gain[j, 2] * shown[i, k, 2]
        for j in range(6):
            for m in range(j + 1):  # one half is the mirror of the other: what rounding makes of a difference grows
                covariance[j, m] -= gain[j, 0] * seen[m, 0] + gain[j, 1] * seen[m, 1] + gain[j, 2] * seen[m, 2]
                covariance[m, j] = covariance[j, m]
        scale = math.sqrt(used)
        for i in range(count):
            first, second, third = shown[i, k, 0], shown[i, k, 1], shown[i, k, 2]
            for j in range(3):
                shown[i, k, j] = scale * (whitening[j, 0] * first + whitening[j, 1] * second + whitening[j, 2] * third)
    return shown, weights, unlikely
