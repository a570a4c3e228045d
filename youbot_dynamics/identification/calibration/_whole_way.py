"""Calibrate the wheels of a base over whole drives: by where the base ends up, not by its motion over some seconds.

Odometry that starts at a pose G leads the tracked body at S on the base over the way Z = G o O(wheels) o S. For each
drive G is fitted; left are errors e in position and yaw, with one standard deviation each, found from the data. Slip
adds up along the way, so the errors of one drive belong together: a drive counts once, however many poses it has, and
what the drives say differently is the error of the result (the jackknife over drives). On one path the base slips alike
each time, so drives that repeat it are left out together. A wheel whose radius no drive shows stays near the mean of
the others. `calibrate` uses windows of some seconds and finds clocks and filters too.

Source: systems 29-31, 34; Martinelli 2002 for slip that adds up; Efron 1982 for the jackknife.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.calibration._drift import Drift
from youbot_dynamics.identification.calibration._fit import LATERAL_FACTOR, LEVER, RADIUS, RADIUS_ERROR
from youbot_dynamics.identification.calibration._model import Guess, lever, odometry
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._start import first_yaw
from youbot_dynamics.identification.calibration._weights import UNEQUAL, PoseNoise
from youbot_dynamics.identification.least_squares import (
    ByName,
    Estimate,
    Kind,
    Unknown,
    judge,
    student,
)
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot_base import WHEELS

WHEELBASE, STEERING_OFFSET = "wheelbase", "steering_offset"
_STEP = 0.5  # [s] between the poses that are compared
_ROUNDED = 1e-6  # [s] error of times; without it, poses at the edge of a step would fall on either side
_SPANS = 5.0, 10.0, 20.0, 40.0, math.inf  # [s] over which errors are measured
_LEAST_OF_A_SPAN = 0.1  # [m] way of the wheels
_OUTLIER = 25.0  # times the median variance [1]: jumps of the tracker
_FEWEST_DRIVES = 4  # fewer are cut into parts
_PARTS = 6  # at least, where drives are cut
_FEWEST_POSES = 8  # compared in a drive
_LEAST_WAY = 0.5  # [m] way of the wheels in a drive
# Chosen: points of two paths, and their largest RMS difference as a share of the size and of the turn of one
_POINTS, _ALIKE = 50, 0.15
_LEAST_TURN = 1.0  # [rad] by which the turns of smaller ones are compared, as `_LEAST_WAY` for the size
_ROUNDS = 4  # of weights
_OF_NOISE = 6.0  # [s] over which the noise of the poses is measured
_FIRST_SCALES = 0.02, 0.1  # [m, rad]
_USEFUL, _EQUAL = 0.05, 0.005  # largest useful half-width of a size, as its share; of a radius error
_PLACE, _ANGLE = 0.025, 0.02  # [m, rad] useful half-width of the place of the tracked body
_LIKELY = 0.2  # standard deviation of sizes over the configured ones, in logarithms: where no drive shows them
# Chosen: standard deviation between kinds of motion of what a size seems to be. Circles and squares of one day, driven
# by robots of the benchmark OptiOdom, differ by up to 0.7 % on tyres and 1.4 % on rollers.
_ON_TYRES, _ON_ROLLERS = 0.004, 0.007
_OF_BODY = 0.001, 0.001, 0.004  # [m, m, rad] the same, of the place of the tracked body
_CLOCK, _OFFSET = 0.3, 0.05  # [s] standard deviation of a clock from the first guess; useful half-width of it
_KEPT = 1e-6  # standard deviation of what stays as configured
_NEAR = 0.3, 0.3, 0.5  # [m, m, rad] standard deviation of the place of the body, and of its yaw from the first guess


@dataclass(frozen=True, eq=False)
class WholeWay(ByName):
    """Geometry by whole drives."""

    estimates: tuple[Estimate, ...]
    wheels: MecanumBase  # with the fitted values
    sensor: Vector  # (3,) pose of the tracked body on the base [m, m, rad]
    offsets: Vector  # (r,) pose stamp minus wheel stamp of the same moment in each recording [s]
    drift: Drift
    noise: PoseNoise  # of the poses


class _Geometry(NamedTuple):
    """Unknowns of the geometry of wheels, as changes from the configured ones."""

    changed: Callable[[Vector], MecanumBase]  # by changes (p,)
    values: Callable[[MecanumBase], Vector]  # (q,) values that are reported
    unknowns: tuple[Unknown, ...]  # of these values
    columns: dict[str, int]  # the change that a value alone depends on
    beliefs: Vector  # (k, p) rows that are 0 +-1 for what is believed without data
    kinds: float  # standard deviation between kinds of motion of what a size seems to be [1]
    reach: float  # [m] of the wheels from the centre: the rim way of a turn of 1 rad


_PLACES = (
    Unknown("sensor_x", "m", resolution=_PLACE, share=0.0),
    Unknown("sensor_y", "m", resolution=_PLACE, share=0.0),
    Unknown("sensor_yaw", "rad", resolution=_ANGLE, share=0.0),
)


@dataclass(frozen=True, eq=False)
class _Drive:
    """One drive, at the poses that are compared."""

    signals: CalibrationSignals
    recording: int  # its number
    times: Vector  # (m,) of the wheels' clock [s]
    poses: Vector  # (m, 3) measured

    def later(self, offsets: Vector) -> _Drive:
        """The drive with stamps of its poses that are later than those of the wheels by offsets (r,) [s] more."""
        return replace(self, times=self.times - offsets[self.recording])

    def errors(self, wheels: MecanumBase, sensor: Vector, scales: Vector) -> Vector:
        """Errors (m, 3) [m, m, rad] of odometry from its best start, for standard deviations (2,) [m, rad]."""
        path = odometry(self.signals, wheels, self.times, sensor)
        turn = np.unwrap(self.poses[:, 2] - path[:, 2])
        heading = float(np.mean(turn))
        rolled, seen = (poses[:, :2] - np.mean(poses[:, :2], axis=0) for poses in (path, self.poses))
        for _ in range(2):
            rotated = planar.turned(rolled, np.full(len(turn), heading))
            across = np.column_stack([-rotated[:, 1], rotated[:, 0]])
            moment = np.sum(across * (seen - rotated)) / scales[0] ** 2 + np.sum(turn - heading) / scales[1] ** 2
            heading += float(moment / (np.sum(across**2) / scales[0] ** 2 + len(turn) / scales[1] ** 2))
        rotated = planar.turned(rolled, np.full(len(turn), heading))
        return np.column_stack([seen - rotated, turn - heading])

    def parts(self, count: int) -> list[_Drive]:
        """The drive in parts of about the same length."""
        cut = (np.array_split(column, count) for column in (self.times, self.poses))
        return [replace(self, times=times, poses=poses) for times, poses in zip(*cut, strict=True)]

    def path(self) -> Vector:
        """Poses (k, 3) at equal steps of its time, from the first one on."""
        yaw = np.unwrap(self.poses[:, 2])
        place = planar.turned(self.poses[:, :2] - self.poses[0, :2], np.full(len(yaw), -yaw[0]))
        steps = np.linspace(self.times[0], self.times[-1], _POINTS)
        return np.column_stack([np.interp(steps, self.times, column) for column in (*place.T, yaw - yaw[0])])

    def moves(self, wheels: MecanumBase, reach: float) -> bool:
        """Whether it has poses and motion to learn from."""
        if len(self.times) < _FEWEST_POSES:
            return False
        return bool(self.drifts(wheels, np.zeros(3), reach, math.inf)[0, 2] > _LEAST_WAY)

    def drifts(self, wheels: MecanumBase, sensor: Vector, reach: float, span: float) -> Vector:
        """Errors of odometry that starts anew after each span [s]; there is one span if it is infinite.

        Returns:
            (k, 4): errors of position [m] and yaw [rad] at the end, way of the wheels [m], and the integral over it of
            the squared distance [m3] from the base to the end of the body, which a random walk of the yaw moves.
        """
        path = odometry(self.signals, wheels, self.times, sensor)
        turned = np.unwrap(self.poses[:, 2] - path[:, 2])
        base = odometry(self.signals, wheels, self.times)
        steps, middles = np.abs(np.diff(base, axis=0)), 0.5 * (base[1:, :2] + base[:-1, :2])
        ways = np.hypot(steps[:, 0], steps[:, 1]) + reach * steps[:, 2]
        cuts = np.array([0, len(ways)])
        if math.isfinite(span):
            starts = np.arange(self.times[0], self.times[-1] + 0.5 * _STEP, span) - _ROUNDED
            cuts = np.minimum(np.searchsorted(self.times, starts), len(ways))
        rows = []
        for i, j in zip(cuts[:-1], cuts[1:], strict=True):
            rolled, seen = (planar.turned(all_[j, :2] - all_[i, :2], -all_[[i], 2])[0] for all_ in (path, self.poses))
            moment = ways[i:j] @ np.sum((path[j, :2] - middles[i:j]) ** 2, axis=1)
            rows.append((np.hypot(*(rolled - seen)), abs(turned[j] - turned[i]), np.sum(ways[i:j]), moment))
        return np.array(rows).reshape(-1, 4)


def calibrate_whole_way(
    recordings: Sequence[CalibrationSignals],
    wheels: MecanumBase,
    offsets: Sequence[float] | Vector = (),
    *,
    clocks: bool = False,
) -> WholeWay:
    """Calibrate mecanum, omni, fixed or steered wheels over whole drives.

    Args:
        recordings: of one robot with one tracker, its body in one place. The columns of their angles are the wheels of
            its `rolled`. Fewer than four with motion are cut into six parts or more.
        wheels: configured geometry; a size may be wrong by half.
        offsets: (r,) pose stamp minus wheel stamp of the same moment in each recording [s]; 0 if not given.
        clocks: whether the offsets are unknown, too; those given are then a first guess.

    Returns:
        Values with intervals that hold between drives, and the drift to expect on others. Sizes of the base that the
        drives leave open are refused, and `wheels` has the configured ones; so with the place of the body.

    Raises:
        InputError: other columns than the wheels have, no recording, or another number of offsets.
        IdentificationError: too few drives with motion in which the poses are known.
    """
    offsets = _checked(recordings, wheels, offsets)
    geometry = _geometry(wheels)
    drives = _drives(recordings, offsets, wheels, geometry.reach)
    guess = np.array([0.0, 0.0, first_yaw(recordings, wheels, offsets)])
    paths, p = _paths(drives), geometry.beliefs.shape[1]
    guess = np.append(guess, offsets if clocks else [])
    fitted = _fit(drives, paths, geometry, guess, ())
    numbers = [signals.recording for signals in recordings] if clocks else []
    estimates = _judged(geometry, fitted, guess, numbers)
    refused = {estimate.name for estimate in estimates if not estimate.identified}
    if kept := [column for name, column in geometry.columns.items() if name in refused]:
        fitted = _fit(drives, paths, geometry, guess, kept)
    found, body = geometry.changed(fitted.values[:p]), guess + fitted.values[p:]
    without = [(geometry.changed(values[:p]), guess[:3] + values[p : p + 3]) for values in fitted.without]
    if clocks:
        drives, offsets = [drive.later(fitted.values[p + 3 :]) for drive in drives], body[3:].tolist()
    drift = _drift(drives, paths, [without[path] for path in paths], geometry)
    noise = _noise(drives, found, body[:3])
    return WholeWay(estimates, found, read_only(body[:3].copy()), read_only(np.array(offsets)), drift, noise)


def expected_drift(
    recordings: Sequence[CalibrationSignals],
    wheels: MecanumBase,
    sensor: Vector,
    offsets: Sequence[float] | Vector = (),
) -> Drift:
    """Drift of odometry with a geometry that is known, by these recordings; noise of the poses counts as drift.

    Args:
        recordings: as of `calibrate_whole_way`.
        wheels: the geometry.
        sensor: (3,) pose of the tracked body on the base [m, m, rad].
        offsets: as of `calibrate_whole_way`.

    Raises:
        InputError: as `calibrate_whole_way`.
        IdentificationError: too few drives with motion in which the poses are known.
    """
    offsets, geometry = _checked(recordings, wheels, offsets), _geometry(wheels)
    drives = _drives(recordings, offsets, wheels, geometry.reach)
    return _drift(drives, _paths(drives), [(wheels, sensor)] * len(drives), geometry)


def _checked(
    recordings: Sequence[CalibrationSignals], wheels: MecanumBase, offsets: Sequence[float] | Vector
) -> list[float]:
    """Offsets (r,) of the clocks [s], 0 if not given, of recordings that these wheels can have made.

    Raises:
        InputError: they cannot, or other offsets.
    """
    columns = wheels.forward_matrix.shape[1]
    shapes = ", ".join(str(signals.wheel_angles.shape[1]) for signals in recordings) or "no recording"
    if not recordings or any(signals.wheel_angles.shape[1] != columns for signals in recordings):
        raise InputError("recordings", got=f"columns {shapes}", expected=f"{columns} in each")
    given = offsets if len(offsets) else np.zeros(len(recordings))
    checked: list[float] = array("offsets", given, (len(recordings),)).tolist()
    return checked


def _drift(
    drives: Sequence[_Drive], paths: Sequence[int], found: Sequence[tuple[MecanumBase, Vector]], geometry: _Geometry
) -> Drift:
    """Drift of drives on numbered paths, each with its geometry and pose of the body (3,).

    Slip is no random walk: over some lengths the yaw grows faster than over others, and the largest growth counts. The
    growth of the position is that over the shortest: over longer ones nearly all of its error comes from the yaw.
    """
    pairs = list(zip(drives, found, strict=True))
    position_growths, yaw_growth = list[float](), 0.0
    for span in _SPANS:
        table = np.vstack([drive.drifts(*given, geometry.reach, span) for drive, given in pairs])
        position, yaw, way, moment = table[table[:, 2] > _LEAST_OF_A_SPAN].T
        if len(way):
            turning = _mean(yaw**2 / way)
            moved = _mean(position**2 / (2.0 * way)) - turning * float(np.mean(moment / (2.0 * way)))
            position_growths.append(math.sqrt(max(moved, 0.0)))
            yaw_growth = max(yaw_growth, math.sqrt(turning))
    ends = np.vstack([drive.drifts(*given, geometry.reach, math.inf) for drive, given in pairs])
    position, yaw = np.sqrt(np.mean((ends[:, :2] / ends[:, 2:3]) ** 2, axis=0)).tolist()
    return Drift(position, yaw, max(paths) + 1, geometry.kinds, position_growths[0], yaw_growth)


def _mean(squares: Vector) -> float:
    """Mean (n,) of squares; what jumps of a tracker make of some counts little."""
    return float(np.mean(np.minimum(squares, _OUTLIER * np.median(squares))))


def _noise(drives: Sequence[_Drive], wheels: MecanumBase, sensor: Vector) -> PoseNoise:
    """How far poses lie from odometry over some seconds, from its best start in them."""
    parts = [part for drive in drives for part in drive.parts(max(1, round(np.ptp(drive.times) / _OF_NOISE)))]
    parts = [part for part in parts if len(part.times) > 1]
    scales = np.array(_FIRST_SCALES)
    errors = np.vstack([part.errors(wheels, sensor, scales) for part in parts])
    position, yaw = math.sqrt(_mean(errors[:, :2] ** 2)), math.sqrt(_mean(errors[:, 2] ** 2))
    moved = np.vstack([part.poses[:, :2] - np.mean(part.poses[:, :2], axis=0) for part in parts])
    return PoseNoise(position, yaw, 0.0, 0.0, math.sqrt(float(np.mean(np.sum(moved**2, axis=1)))))


def _geometry(wheels: MecanumBase) -> _Geometry:
    """Unknowns of these wheels."""
    return _of_tricycle(wheels) if wheels.steered else _of_base(wheels)


def _drives(
    recordings: Sequence[CalibrationSignals], offsets: Sequence[float], wheels: MecanumBase, reach: float
) -> list[_Drive]:
    """Whole drives with motion; parts of them where there are few.

    Raises:
        IdentificationError: too few.
    """
    pairs = enumerate(zip(recordings, offsets, strict=True))
    drives = [drive for k, pair in pairs for drive in _known(k, *pair) if drive.moves(wheels, reach)]
    if 0 < len(drives) < _FEWEST_DRIVES:
        parts = math.ceil(_PARTS / len(drives))
        cut = [part for drive in drives for part in drive.parts(parts)]
        drives = [part for part in cut if part.moves(wheels, reach)]
    if len(drives) < _FEWEST_DRIVES:
        raise IdentificationError(
            "geometry by whole drives",
            kind=Kind.TOO_LITTLE_DATA,
            count=len(drives),
            needed=_FEWEST_DRIVES,
            got=f"{len(drives)} drives or parts of drives in which the wheels roll {_LEAST_WAY:g} m or more",
            expected=f"{_FEWEST_DRIVES} or more",
            remedy="drive longer, and record poses and wheels at the same time",
        )
    return drives


def _known(recording: int, signals: CalibrationSignals, offset: float) -> list[_Drive]:
    """Drives of a recording, cut where the motion of the wheels is unknown, at the poses that are compared."""
    stamps, times = signals.wheel_time, signals.pose_time - offset
    if len(stamps) < 2:
        return []
    pieces = np.append(0, np.cumsum(signals.gaps()))
    before = np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, len(stamps) - 2)
    inside = (times >= stamps[0]) & (times <= stamps[-1]) & (pieces[before] == pieces[before + 1])
    drives = []
    for piece in np.unique(pieces[before[inside]]):
        known = np.flatnonzero(inside & (pieces[before] == piece))
        rows = known[np.flatnonzero(np.diff(np.floor((times[known] + _ROUNDED) / _STEP), prepend=-np.inf))]
        drives.append(_Drive(signals, recording, times[rows], signals.poses[rows]))
    return drives


def _paths(drives: Sequence[_Drive]) -> list[int]:
    """Number of the path of each drive, equal of those that repeat one; each has its own if there are few paths."""
    seen, numbers = list[Vector](), list[int]()
    for path in (drive.path() for drive in drives):
        sizes = np.maximum([np.max(np.ptp(path[:, :2], axis=0)), np.ptp(path[:, 2])], [_LEAST_WAY, _LEAST_TURN])
        apart = [np.sqrt(np.mean((path - other) ** 2, axis=0)) for other in seen]
        alike = [max(np.hypot(x, y) / sizes[0], yaw / sizes[1]) < _ALIKE for x, y, yaw in apart]
        numbers.append(alike.index(True) if any(alike) else len(seen))
        seen += [] if any(alike) else [path]
    return numbers if len(seen) >= _FEWEST_DRIVES else list(range(len(drives)))


class _Fitted(NamedTuple):
    """Fitted changes of the geometry, of the pose of the body and of r clocks or none."""

    values: Vector  # (p + 3 + r,)
    without: list[Vector]  # the same without the drives of each path
    believed: Vector  # (p + 3 + r, k) changes by one standard deviation of each belief


def _fit(
    drives: Sequence[_Drive], paths: Sequence[int], geometry: _Geometry, guess: Vector, kept: Sequence[int]
) -> _Fitted:
    """Fit all drives with equal weight, and each time without those of one of the numbered paths.

    `guess` (3 + r,) is of the body's pose and the clocks; changes in the columns `kept` stay 0.
    """
    (k, p), near = geometry.beliefs.shape, np.append(_NEAR, np.full(len(guess) - 3, _CLOCK))
    count = p + len(guess)
    beliefs = np.zeros((k + len(guess), count))
    beliefs[:k, :p], beliefs[k:, p:] = geometry.beliefs, np.diag(1.0 / near)
    beliefs = np.vstack([beliefs, np.eye(count)[list(kept)] / _KEPT])
    scales, values = np.array(_FIRST_SCALES), np.zeros(count)
    steps = np.append(np.full(p, 0.01), np.full(len(guess), 0.02))

    def errors(values: Vector) -> list[Vector]:
        found, body = geometry.changed(values[:p]), guess[:3] + values[p : p + 3]
        moved = [drive.later(values[p + 3 :]) for drive in drives] if len(guess) > 3 else drives
        return [drive.errors(found, body, scales) for drive in moved]

    def weighted(values: Vector) -> Vector:
        tables = [table / scales[[0, 0, 1]] for table in errors(values)]
        return np.concatenate([*((table / math.sqrt(len(table))).ravel() for table in tables), beliefs @ values])

    for _ in range(_ROUNDS):
        values = least_squares(weighted, values, x_scale=steps).x
        squares = [np.mean(table**2, axis=0) for table in errors(values)]
        x, y, yaw = np.sqrt(np.mean(squares, axis=0))
        scales = np.maximum([math.hypot(x, y) / math.sqrt(2.0), yaw], 1e-6)
    solved = least_squares(weighted, values, x_scale=steps)
    of_row = np.repeat([*paths, -1], [*(3 * len(drive.times) for drive in drives), len(beliefs)])
    normal = solved.jac.T @ solved.jac
    without = []
    for number in range(max(paths) + 1):
        rows, errors = solved.jac[of_row == number], solved.fun[of_row == number]
        without.append(solved.x + np.linalg.solve(normal - rows.T @ rows, rows.T @ errors))
    return _Fitted(solved.x, without, np.linalg.solve(normal, beliefs.T))


def _judged(geometry: _Geometry, fitted: _Fitted, guess: Vector, numbers: Sequence[int]) -> tuple[Estimate, ...]:
    """Values with intervals: by what the drives, and other kinds of motion, say differently, and what is believed.

    `numbers` are those of the recordings whose clocks are unknown.
    """
    p = geometry.beliefs.shape[1]

    def reported(values: Vector) -> Vector:
        return np.append(geometry.values(geometry.changed(values[:p])), guess + values[p:])

    values, count = reported(fitted.values), len(fitted.without)
    replicates = np.array([reported(left) for left in fitted.without])
    between = np.sqrt((count - 1) * np.mean((replicates - np.mean(replicates, axis=0)) ** 2, axis=0))
    steps = [reported(fitted.values + change) - reported(fitted.values) for change in fitted.believed.T]
    kinds = [
        geometry.kinds * abs(value) if unknown.share == _USEFUL else 0.0
        for unknown, value in zip(geometry.unknowns, values.tolist(), strict=False)
    ] + [*_OF_BODY, *[0.0] * len(numbers)]
    names = ["time_offset"] if len(numbers) == 1 else [f"time_offset_{number}" for number in numbers]
    unknowns = *geometry.unknowns, *_PLACES, *(Unknown(name, "s", resolution=_OFFSET, share=0.0) for name in names)
    errors = np.linalg.norm([between, kinds, *steps], axis=0)
    multiple = student(count - 1)
    return tuple(
        judge(unknown, value, error, multiple * error)
        for unknown, value, error in zip(unknowns, values.tolist(), errors.tolist(), strict=True)
    )


def _of_base(base: MecanumBase) -> _Geometry:
    """Unknowns of mecanum, omni or fixed wheels: logarithms of radii, lever and, of mecanum wheels, lateral factor."""
    n, mecanum = len(base.radii), base.all_forward

    def changed(changes: Vector) -> MecanumBase:
        all_changes = np.zeros(n + 6)
        all_changes[: len(changes)] = changes
        return Guess(base, np.zeros(3), np.zeros(0)).moved(all_changes).base

    def values(wheels: MecanumBase) -> Vector:
        mean = float(np.mean(wheels.radii))
        sizes = [lever(wheels), wheels.lateral_factor] if mecanum else [lever(wheels)]
        return np.array([mean, *(wheels.radii / mean - 1.0), *sizes])

    names = WHEELS[:n] if n <= len(WHEELS) else tuple(str(wheel) for wheel in range(n))
    unknowns = [Unknown(RADIUS, "m", share=_USEFUL)]
    unknowns += [Unknown(f"{RADIUS_ERROR}_{name}", "1", resolution=_EQUAL, share=0.0) for name in names]
    unknowns += [Unknown(LEVER, "m", share=_USEFUL)]
    unknowns += [Unknown(LATERAL_FACTOR, "1", share=_USEFUL)] if mecanum else []
    p = n + (2 if mecanum else 1)
    equal = np.pad((np.eye(n) - 1.0 / n) / UNEQUAL, ((0, 0), (0, p - n)))
    likely = np.zeros((p - n + 1, p))
    likely[0, :n] = 1.0 / (n * _LIKELY)
    likely[1:, n:] = np.eye(p - n) / _LIKELY
    kinds = _ON_TYRES if np.all(base.fixed) else _ON_ROLLERS
    columns = {LEVER: n, LATERAL_FACTOR: n + 1} if mecanum else {LEVER: n}
    columns |= {place.name: p + k for k, place in enumerate(_PLACES)}
    return _Geometry(changed, values, tuple(unknowns), columns, np.vstack([equal, likely]), kinds, lever(base))


def _of_tricycle(configured: MecanumBase) -> _Geometry:
    """Unknowns of a tricycle: logarithms of radius and wheelbase, and the offset of the steering angle."""

    def values(wheels: MecanumBase) -> Vector:
        return np.array([wheels.radii[0], wheels.positions[0, 0], wheels.steering_offset])

    def changed(changes: Vector) -> MecanumBase:
        radius, length, offset = values(configured).tolist()
        return MecanumBase.tricycle(
            radius * math.exp(changes[0]), length * math.exp(changes[1]), offset + float(changes[2])
        )

    unknowns = (
        Unknown(RADIUS, "m", share=_USEFUL),
        Unknown(WHEELBASE, "m", share=_USEFUL),
        Unknown(STEERING_OFFSET, "rad", resolution=_ANGLE, share=0.0),
    )
    columns = {unknown.name: k for k, unknown in enumerate((*unknowns, *_PLACES))}
    beliefs = np.diag([1.0 / _LIKELY] * 3)
    return _Geometry(changed, values, unknowns, columns, beliefs, _ON_TYRES, configured.reach)
