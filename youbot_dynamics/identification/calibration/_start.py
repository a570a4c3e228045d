"""Preparation of the calibration: rough synchronisation of clocks, windows, and what the motion can determine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.calibration._model import (
    AROUND,
    MOVING,
    Guess,
    Windows,
    odometry,
    wrapped,
)
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.comparison import sample_poses
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase

RESTING = "the robot hardly moved while its pose was known"
NO_TURN = "the robot never turned in these data"
NO_SIDEWAYS = "the robot never moved sideways in these data"
NO_FORWARD = (
    "the robot never drove forward in these data, and sideways motion does not distinguish it from the lateral factor"
)
NO_FACTOR = Reason(
    Kind.NOT_OF_THE_ROBOT,
    "omni wheels have none: the factor is of mecanum wheels, whose contact moves along slanted rollers as they turn",
)
ONLY_TURN = "the robot only turned in these data, which determines only size divided by radius"

TURNING_RADIUS = 0.3  # [m] converts turns to distances

_WORST_OFFSET = 2.0  # largest offset tried [s]
GRID = 0.02  # [s] interval of the times at which wheels and tracker are compared
_SPEED_INTERVAL = 0.3  # interval over which speeds are compared [s], since poses are noisy
_NEAR_BEST = 0.02  # relative difference to the best agreement at which the smaller offset is taken
_USUAL = 2.0  # way in half a second over that of 19 in 20 up to which it is one of the wheels
_MARGIN = 0.1 + AROUND  # [s] wheel readings needed around a pose, since the offset still changes
_SHORT = 2.0  # [s] length of windows in which motion is counted, and of the blocks of which the scatter is taken
_LONG = 6.0  # [s] length of windows over which slip and the scatter of the poses are measured
_FEWEST_POSES = 4  # in a window
_LEAST_SHARE = 0.5  # share of its length that the poses of a window must span
_ANOTHER_UNIT = 4.0  # ratio of distances by poses and by wheels above which a unit is wrong
_FEW_WINDOWS = 30  # number of windows below which they are made shorter
_EXCITED = np.array([0.05, 0.05, 0.1])  # [m, m, rad] motion for a window to count: forward, sideways, turning
_EXCITED_WINDOWS = 3


def first_guess(recordings: Sequence[CalibrationSignals], base: MecanumBase) -> Guess:
    """The configured base, with a first estimate of clock offsets and sensor yaw from the recordings."""
    offsets = np.array([_rough_offset(signals, base) for signals in recordings])
    return Guess(base, np.array([0.0, 0.0, first_yaw(recordings, base, offsets.tolist())]), offsets)


def first_yaw(recordings: Sequence[CalibrationSignals], wheels: MecanumBase, offsets: Sequence[float]) -> float:
    """Estimate of the yaw [rad] of the tracked body on the base, with the clock offsets (r,) [s]."""
    product = 0j
    for signals, offset in zip(recordings, offsets, strict=True):
        if has_readings(signals):
            rolled, tracked = (displacements(poses) @ [1.0, 1j, 0.0] for poses in _paths(signals, wheels, offset))
            # A counter of the driver that starts again is no motion.
            usual = np.abs(rolled) <= _USUAL * np.quantile(np.append(np.abs(rolled), 0.0), 0.95)
            product += np.sum((np.conj(rolled) * tracked)[usual])
    # A displacement at angle a in the base frame has the angle a - b in the frame of a body turned by b.
    return -float(np.angle(product)) if product else 0.0


def has_readings(signals: CalibrationSignals) -> bool:
    """Whether there are two or more readings of the wheels and of the tracker."""
    return len(signals.pose_time) > 1 and len(signals.wheel_time) > 1


def _paths(signals: CalibrationSignals, base: MecanumBase, offset: float) -> tuple[Vector, Vector]:
    """Poses (m, 3) on a grid of times, by the wheels and by the tracker."""
    times = common_times(signals, offset)
    return odometry(signals, base, times), sample_poses(signals.pose_time, signals.poses, times + offset)


def common_times(signals: CalibrationSignals, offset: float) -> Vector:
    """Times (m,) [s] of the wheels' clock, on a grid, at which wheels and tracked body are known."""
    first = max(signals.wheel_time[0], signals.pose_time[0] - offset)
    last = min(signals.wheel_time[-1], signals.pose_time[-1] - offset)
    return np.arange(first, last, GRID)


def displacements(poses: Vector) -> Vector:
    """Motion (k - d, 3) [m, m, rad] over each half second in the frame at its middle, of poses (k, 3) on the grid."""
    ahead = round(0.5 / GRID)
    step = poses[ahead:] - poses[:-ahead]
    middle = poses[:-ahead, 2] + 0.5 * step[:, 2]
    return np.column_stack([planar.turned(step[:, :2], -middle), step[:, 2]])


def _rough_offset(signals: CalibrationSignals, base: MecanumBase) -> float:
    """Offset [s] with the best agreement of speed and turn rate of wheels and body; the smallest if several agree."""
    if not has_readings(signals):
        return 0.0
    speeds = []
    for poses in _paths(signals, base, 0.0):
        step = advances(poses)
        speeds.append(np.column_stack([np.hypot(step[:, 0], step[:, 1]), TURNING_RADIUS * step[:, 2]]))
    return best_offset(*speeds)


def advances(path: Vector) -> Vector:
    """Differences (k - d, n) over 0.3 s of a path (k, n) on the grid of times."""
    ahead = round(_SPEED_INTERVAL / GRID)
    return path[ahead:] - path[:-ahead]


def best_offset(rolled: Vector, tracked: Vector) -> float:
    """Delay [s] of tracked speeds (k, c) that agrees best with those of the wheels, both on the grid of times.

    The smallest if several agree; 0 if the recording is too short.
    """
    speeds = rolled, tracked
    if len(rolled) <= 3 * round(_SPEED_INTERVAL / GRID):
        return 0.0
    largest_lag = min(round(_WORST_OFFSET / GRID), len(speeds[0]) // 3)
    inner = speeds[0][largest_lag : len(speeds[0]) - largest_lag]
    lags = np.arange(-largest_lag, largest_lag + 1)
    # The error of a tracker that jumps is limited to the usual speed.
    cap = np.maximum(np.quantile(np.abs(inner), 0.95, axis=0), MOVING)
    misfit = np.array(
        [
            np.mean(np.minimum(np.abs(speeds[1][largest_lag + k : largest_lag + k + len(inner)] - inner), cap))
            for k in lags
        ]
    )
    size = float(np.mean(np.minimum(np.abs(inner), cap)))
    best_lags = lags[misfit <= np.min(misfit) + _NEAR_BEST * size]
    # The middle of the offsets that agree equally well, unless 0 is among them.
    return 0.0 if 0 in best_lags else float(np.median(best_lags)) * GRID


def cut_windows(
    recordings: Sequence[CalibrationSignals], guess: Guess
) -> tuple[tuple[Windows, ...], tuple[Windows, ...], tuple[Windows, ...]]:
    """Short and long windows, and whole pieces, of each recording in which it moves and its wheels and poses are known.

    The short ones are longer than 2 s if poses are rare, half of it if there are few windows.
    """
    steps = [np.diff(signals.pose_time) for signals in recordings if len(signals.pose_time) > 1]
    period = float(np.median(np.concatenate(steps))) if steps else _SHORT
    usual = max(_SHORT, 2.0 * _FEWEST_POSES * period)

    windows = _cut(recordings, guess, usual)
    few = sum(len(part.starts) for part in windows) < _FEW_WINDOWS
    short = _cut(recordings, guess, 0.5 * _SHORT) if few and usual == _SHORT else windows
    return short, _cut(recordings, guess, max(_LONG, usual)), _cut(recordings, guess, math.inf)


def _cut(recordings: Sequence[CalibrationSignals], guess: Guess, length: float) -> tuple[Windows, ...]:
    """Windows of a length [s] of each recording."""
    pairs = zip(recordings, guess.offsets.tolist(), strict=True)
    return tuple(_windows(signals, guess.base, offset, length) for signals, offset in pairs)


def _windows(signals: CalibrationSignals, base: MecanumBase, offset: float, span: float) -> Windows:
    """Windows of one recording, ended by gaps in the wheel readings, without those of few poses or little motion."""
    nothing = np.zeros(0, dtype=np.int64)
    if len(signals.wheel_time) < 2:
        return Windows(signals, nothing, nothing, span)
    stamps, times = signals.wheel_time, signals.pose_time - offset
    gap_counts = np.concatenate([[0], np.cumsum(signals.gaps())])
    around = np.clip(np.searchsorted(stamps, times[:, None] + [-_MARGIN, _MARGIN]) - [1, 0], 0, len(stamps) - 1)
    before, after = gap_counts[around].T
    inside = (times >= stamps[0] + _MARGIN) & (times <= stamps[-1] - _MARGIN)
    rows = np.flatnonzero(inside & (before == after))
    window = np.floor(signals.since_start[rows] / span)
    changes = np.diff(window, prepend=-np.inf) + np.diff(before[rows], prepend=0)
    selected, starts, count = [], [], 0
    borders = [*np.flatnonzero(changes), len(rows)]
    for first, last in zip(borders[:-1], borders[1:], strict=True):
        part = rows[first:last]
        begin, end = times[part[[0, -1]]]
        turned = signals.wheel_angles[slice(*np.searchsorted(stamps, [begin, end]))]
        enough = last - first >= _FEWEST_POSES and end - begin >= _LEAST_SHARE * min(span, _SHORT) and len(turned) > 0
        if enough and np.max(np.ptp(turned, axis=0) * base.radii) > MOVING:
            selected.append(part)
            starts.append(count)
            count += last - first
    chosen = np.concatenate(selected) if selected else nothing
    return Windows(signals, chosen, np.array(starts, dtype=np.int64), span)


@dataclass(frozen=True)
class Excitation:
    """Number of windows with enough motion along each axis."""

    span: float  # length of each [s]
    counts: tuple[int, int, int]  # windows with enough of forward, sideways, turning
    omni: bool = False  # whether the wheels have no lateral factor

    @property
    def sufficient(self) -> list[bool]:
        """Whether enough windows have forward motion, sideways motion, and turns."""
        return [count >= _EXCITED_WINDOWS for count in self.counts]

    def determined(self, wheels: int) -> list[bool]:
        """Which unknowns of `Guess.moved`, without the offsets, the fit estimates.

        If only a combination of two is determined, one of them stays as configured.
        """
        forward, sideways, turning = self.sufficient
        straight = forward or sideways
        return [True] * wheels + [
            turning and straight,
            forward and sideways and not self.omni,
            turning,
            turning,
            straight,
        ]

    def reasons(self, wheels: int, offsets: int) -> list[Reason | None]:
        """Why each of these unknowns and offsets cannot be identified, None if it may be.

        Sensor and offsets are fitted together with the radii: without these they are refused too.
        """
        forward, sideways, turning = self.sufficient
        if not any(self.sufficient):
            return [self._with_counts(RESTING, 0)] * (wheels + 5 + offsets)
        if not (forward or sideways):
            return [self._with_counts(ONLY_TURN, 0)] * (wheels + 5 + offsets)
        scale = None if forward or self.omni else self._with_counts(NO_FORWARD, 0)
        lever = scale if turning else self._with_counts(NO_TURN, 2)
        factor = NO_FACTOR if self.omni else scale if sideways else self._with_counts(NO_SIDEWAYS, 1)
        return [scale] * wheels + [lever, factor, lever, lever] + [scale] * (1 + offsets)

    def _with_counts(self, lacking: str, axis: int) -> Reason:
        """Reason of a motion that is lacking, with how much along or about an axis there was and how much is needed."""
        direction, unit = ("forward", "sideways", "of turning")[axis], ("m", "m", "rad")[axis]
        few = f"{self.counts[axis]} windows of {self.span:g} s have {_EXCITED[axis]:g} {unit} {direction} or more"
        return Reason(Kind.NOT_EXCITED, f"{few}; {_EXCITED_WINDOWS} are needed: {lacking}")


def excitation(windows: Sequence[Windows], guess: Guess) -> Excitation:
    """Motion of the wheels in the windows of all recordings."""
    table = np.abs(_motions(windows, guess))
    forward, sideways, turning = np.sum(table > _EXCITED, axis=0).tolist()
    return Excitation(windows[0].span, (forward, sideways, turning), not guess.base.all_forward)


def wrong_unit(windows: Sequence[Windows], start: Guess) -> Reason | None:
    """Why wheels or poses have a wrong unit, None if they may be in rad and m, by the median over the windows."""
    rolled = _lengths(_motions(windows, start))
    tracked = [np.zeros(0)]
    for part in windows:
        first, last = _ends(part)
        step = part.signals.poses[last] - part.signals.poses[first]
        step[:, 2] = wrapped(step[:, 2])
        tracked.append(_lengths(step))
    moved = rolled > 0.0
    ratio = float(np.median(np.concatenate(tracked)[moved] / rolled[moved])) if moved.any() else 1.0
    if 1.0 / _ANOTHER_UNIT < ratio < _ANOTHER_UNIT:
        return None
    return Reason(
        Kind.WRONG_SIGNALS,
        f"the poses show {ratio:.3g} times the distance that the configured wheels rolled: check that the wheel "
        "positions are in rad and the poses in m",
    )


def _lengths(motions: Vector) -> Vector:
    """Length (w,) [m] of motions (w, 3) [m, m, rad], with turns converted by `TURNING_RADIUS`."""
    return np.hypot(motions[:, 0], motions[:, 1]) + TURNING_RADIUS * np.abs(motions[:, 2])


def _ends(part: Windows) -> tuple[Indices, Indices]:
    """First and last pose (w,) of each window, as indices into the recording."""
    return part.rows[part.starts], part.rows[part.starts + part.counts - 1]


def _motions(windows: Sequence[Windows], guess: Guess) -> Vector:
    """Forward, sideways [m] and turn [rad] (w, 3) from the wheels in the windows of all recordings."""
    turns = []
    for part, offset in zip(windows, guess.offsets, strict=True):
        first, last = (part.signals.angles_at(part.signals.pose_time[ends] - offset) for ends in _ends(part))
        turns.append(last - first)
    return np.vstack(turns) @ guess.base.forward_matrix.T
