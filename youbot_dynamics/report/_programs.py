"""Tracking of each program before and after: error table beside that of the laboratory works, and an animation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.comparison import (
    FEEDBACK,
    OPEN_LOOP,
    RESTORED,
    SIMULATED,
    ErrorStatistics,
    Footprint,
    PathComparison,
)
from youbot_dynamics.report import _drawing
from youbot_dynamics.report._drawing import LineStyle
from youbot_dynamics.report._plots import error_plot, path_plot
from youbot_dynamics.report._words import listed, significant

# Row of the error table -> name and style of its line in the plots.
_DRIVES = {
    OPEN_LOOP: ("actual (open loop)", _drawing.OPEN_LOOP),
    RESTORED: ("restored", _drawing.RESTORED),
    SIMULATED: ("simulated feedback", _drawing.SIMULATED),
    FEEDBACK: ("stabilised (feedback)", _drawing.FEEDBACK),
}
_SMALL = 1e-3  # [m, rad] numbers get a fifth decimal if any is smaller

# Mean and standard deviation of X, Y and psi [m, m, rad], as printed. There errors are desired - actual
# (dX = X_id - X_rf), so the means have the opposite sign of ours. The restored drives equal the desired ones by
# construction, except for an error of frames (D-003-7). The two works: open loop, and with feedback.
# Source: laboratory works 1 to 6 with a youBot, 2022; document 003, tables.
LAB_TABLES = {
    "translation": (
        "1 and 4",
        {
            OPEN_LOOP: (-0.0129, -0.0098, 0.0018, 0.0116, 0.0163, 0.0037),
            RESTORED: (-0.0022, 9.5515e-04, -4.3600e-05, 0.0013, 8.5501e-04, 3.0704e-05),
            SIMULATED: (-0.0015, 1.4308e-04, 6.3540e-07, 0.0028, 0.0017, 0.0012),
            FEEDBACK: (-3.7000e-05, -1.8850e-04, -1.1500e-05, 0.0076, 0.0074, 0.0020),
        },
    ),
    "rotation": (
        "2 and 5",
        {
            OPEN_LOOP: (0.0050, 6.9350e-04, -0.1393, 0.0019, 0.0017, 0.0981),
            RESTORED: (0.0037, -0.0021, -1.0738e-16, 0.0031, 0.0026, 2.9814e-05),
            SIMULATED: (1.1001e-04, 2.9530e-05, 0.0014, 4.2714e-04, 4.8925e-04, 0.0040),
            FEEDBACK: (6.8000e-05, 2.8050e-04, -0.0328, 5.6228e-04, 6.8286e-04, 0.0039),
        },
    ),
    "combined": (
        "3 and 6",
        {
            OPEN_LOOP: (-0.0048, 0.0251, -0.1453, 0.0303, 0.0391, 0.0739),
            RESTORED: (0.0481, 0.0236, -0.0192, 0.0452, 0.0447, 3.5437e-05),
            SIMULATED: (-9.9559e-06, 3.2256e-04, -0.0130, 0.0038, 0.0038, 0.0018),
            FEEDBACK: (-4.9000e-05, 5.3927e-04, -0.0260, 0.0074, 0.0075, 0.0034),
        },
    ),
}


_Lab = tuple[str, Mapping[str, tuple[float, ...]]]  # works of the laboratory, and its row of each drive
Group = tuple[str, dict[str, list[float]]]  # heading, and rows below it: label of a drive -> its numbers


def program_of(path: PathComparison, key: str, most: int, is_youbot: bool) -> dict[str, Any]:
    """Paths, errors over time, animation and error table of a program.

    Args:
        path: its drives.
        key: distinct for each program of a page.
        most: samples per line.
        is_youbot: whether a youBot's drives of a laboratory report are shown beside it.
    """
    table, lab = statistics(path), _lab_table(path.name) if is_youbot else None
    drives = {label: _DRIVES.get(label, (label, _drawing.COMMANDED)) for label in table}
    lines = [(style, path.actual[label]) for label, (_, style) in drives.items()]
    away = [(style, path.errors(label)) for label, (_, style) in drives.items()]
    rmse = [f"{label} {significant(of_drive.position_rmse)} m" for label, of_drive in table.items()]
    about = f"{path.name}: position RMSE {listed(rmse)}" if rmse else path.name
    groups = _error_groups(path, table, lab) if table else []
    sizes = np.abs([number for _, rows in groups for row in rows.values() for number in row])
    over = [*lines, (_drawing.COMMANDED, path.desired)]
    under = f"Errors of X, Y and heading over time, {about}"
    return {
        "name": path.name,
        "truth": path.truth,
        "legend": [("commanded", _drawing.COMMANDED), *drives.values()],
        "over": path_plot(over, label=f"Path seen from above, {about}", key=key, most=most),
        "errors": error_plot(path.time, away, label=under, key=f"{key}e", most=most),
        "animation": animation_of(path),
        "groups": groups,
        "decimals": 5 if np.any((sizes > 0.0) & (sizes < _SMALL)) else 4,
        "restored": RESTORED in path.actual,
        "by_the_lab": lab is not None,
    }


def statistics(path: PathComparison) -> dict[str, ErrorStatistics]:
    """Error statistics of each drive, in the order of the error table."""
    order = dict.fromkeys([*comparison.ROWS, *path.actual])
    return {label: path.statistics(label) for label in order if label in path.actual}


def _error_groups(path: PathComparison, table: Mapping[str, ErrorStatistics], lab: _Lab | None) -> list[Group]:
    """Rows of mean and standard deviation of X, Y, psi, RMSE of position and heading, worst position error.

    Our drives come first. If odometry and a ground truth were recorded, the errors of odometry against path and truth
    follow. If the lab drove the same program, its figures come last.
    """
    groups: list[Group] = [("", {label: _row(of_drive) for label, of_drive in table.items()})]
    known = [label for label in table if label in path.estimated]
    if known:
        seen = {label: _row(comparison.error_statistics(path.seen_errors(label))) for label in known}
        unseen = {label: _row(comparison.error_statistics(path.unseen_errors(label))) for label in known}
        groups += [
            ("Odometry \u2212 desired: the error that feedback sees and corrects", seen),
            (f"{path.truth.capitalize()} \u2212 odometry: the error of odometry, which feedback cannot see", unseen),
        ]
    if lab is not None:
        works, rows = lab
        heading = f"Laboratory report of 2022, works {works}, as printed: desired \u2212 actual"
        groups.append((heading, {label: lab_row(row) for label, row in rows.items()}))
    return groups


def _row(of_drive: ErrorStatistics) -> list[float]:
    rmse = of_drive.position_rmse, of_drive.heading_rmse
    return [float(v) for v in (*of_drive.mean, *of_drive.deviation, *rmse, of_drive.position_worst)]


def lab_row(row: tuple[float, ...]) -> list[float]:
    """Mean and deviation of a printed row, and the RMSE that follows: RMSE^2 = mean^2 + deviation^2.

    Source: system 37.
    """
    square = np.square(row[:3]) + np.square(row[3:])
    return [*row, math.sqrt(square[0] + square[1]), math.sqrt(square[2]), math.nan]


def _lab_table(program: str) -> _Lab | None:
    """The lab's table of the one program whose name is part of this name; None if none or several match."""
    named = [table for name, table in LAB_TABLES.items() if name in program.lower()]
    return named[0] if len(named) == 1 else None


_TICK = 1e-4  # [m, rad]
_RATE = 25.0  # sample rate of the animation [Hz]
_MOST_SAMPLES = 1000  # samples of a line; a longer drive has a lower rate
_MAGNIFIED = 20  # optional magnification of the errors
_ASPECT = 4.0 / 3.0  # width over height of the picture
_LETTERS = 0.026  # font size over the width of the picture
_MOMENTS = 6  # number of bases in the still picture
# [m] The youBot's body is 0.58 m long and 0.376 m wide with its wheels; wheelbase 0.47 m, track 0.30 m.
_BODY_BEYOND_AXES, _WHEEL_WIDTH = 0.055, 0.076


class _MovingBase(NamedTuple):
    """One base of the animation: name in the legend, line style, CSS class, poses (m, 3) in ticks."""

    name: str
    style: LineStyle
    kind: str
    ticks: Vector
    trail: str  # path data


def animation_of(path: PathComparison) -> dict[str, Any] | None:
    """Animate reference, truth and odometry of the best drive of a program, open loop faded; None without a drive.

    `templates/animation.html.j2` draws it. Lengths are in 0.1 mm, angles in 0.1 mrad: finer than any measurement.
    """
    recorded = OPEN_LOOP in path.actual or FEEDBACK in path.actual
    if not recorded or len(path.time) < 2 or not np.isfinite(path.desired).all():
        return None
    duration = float(path.time[-1] - path.time[0])
    at = np.linspace(path.time[0], path.time[-1], max(2, min(_MOST_SAMPLES, round(duration * _RATE) + 1)))
    bases = _bases(path, at)
    main = next(base for base in bases if base.kind == "main")
    lines = [[_steps(axis) for axis in base.ticks.T] for base in bases]
    footprint = path.footprint
    corner = footprint.half_length + _BODY_BEYOND_AXES, footprint.half_width + _WHEEL_WIDTH / 2.0
    reach = math.hypot(*corner) / _TICK
    low, high = _extent(bases, 1.25 * reach)
    width, height = (high - low).tolist()
    step, grid = _grid(low, high)
    moments = np.linspace(0, len(at) - 1, _MOMENTS).round().astype(int)
    letters = _LETTERS * width
    return {
        "name": path.name,
        "duration": duration,
        "magnified": _MAGNIFIED,
        "run": json.dumps({"end": round(duration, 4), "magnified": _MAGNIFIED, "lines": lines}, separators=(",", ":")),
        "bases": bases,  # the script expects the reference first
        "main": main,  # shown in the still picture
        "footprint": _footprint(footprint),
        "box": f"{low[0]:.0f} {-high[1]:.0f} {width:.0f} {height:.0f}",
        "grid": grid,
        "step": step,
        "outlines": [
            f"translate({x:.0f} {-y:.0f}) rotate({math.degrees(-yaw * _TICK):.1f})"
            for x, y, yaw in main.ticks[moments].tolist()
            if not math.isnan(x)
        ],
        "times": _times(main.ticks[moments], at[moments] - at[0], 1.08 * reach, letters),
        "letters": f"{letters:.0f}",
        "every": duration / (_MOMENTS - 1),
    }


def _steps(axis: Vector) -> list[int | None]:
    """Differences between samples of one axis (m,) in ticks, the first from 0; None where a sample is missing."""
    finite = np.isfinite(axis)
    moved: list[int | None] = [None] * len(axis)
    for k, step in zip(np.flatnonzero(finite), np.diff(axis[finite], prepend=0.0), strict=True):
        moved[k] = int(step)
    return moved


def _bases(path: PathComparison, at: Vector) -> list[_MovingBase]:
    """The bases to animate at the times `at` (m,) [s], the reference first."""
    main = FEEDBACK if FEEDBACK in path.actual else OPEN_LOOP
    style, words = (_drawing.FEEDBACK, "stabilised") if main == FEEDBACK else (_drawing.OPEN_LOOP, "open loop")
    drives = [("reference (commanded)", _drawing.COMMANDED, "reference", path.desired)]
    if main == FEEDBACK and OPEN_LOOP in path.actual:
        drives.append((f"open loop, {path.truth}", _drawing.OPEN_LOOP, "faded", path.actual[OPEN_LOOP]))
    drives.append((f"{words}, {path.truth}", style, "main", path.actual[main]))
    if main in path.estimated:
        drives.append((f"{words}, odometry", _drawing.ESTIMATED, "estimate", path.estimated[main]))
    bases = []
    for name, of_line, kind, poses in drives:
        ticks = _ticks(path.time, poses, at)
        bases.append(_MovingBase(name, of_line, kind, ticks, _trail(ticks)))
    return bases


def _ticks(time: Vector, poses: Vector, at: Vector) -> Vector:
    """Interpolate poses (n, 3) [m, m, rad] of times (n,) [s] at times `at` (m,), in ticks; NaN where missing."""
    unwrapped = np.array(poses, dtype=float)
    finite = np.isfinite(unwrapped[:, 2])
    unwrapped[finite, 2] = np.unwrap(unwrapped[finite, 2])
    sampled = np.column_stack([np.interp(at, time, axis) for axis in unwrapped.T])
    sampled[~np.isfinite(sampled).all(axis=1)] = np.nan
    rounded: Vector = np.round(sampled / _TICK)
    return rounded


def _trail(ticks: Vector) -> str:
    """Path data through poses (m, 3) in ticks, y up, interrupted where poses are missing."""
    words: list[str] = []
    before: tuple[int, int] | None = None
    for x, y, _ in ticks.tolist():
        if math.isnan(x):
            before = None
            continue
        point = int(x), -int(y)
        words.append(f"M{point[0]} {point[1]}" if before is None else f"l{point[0] - before[0]} {point[1] - before[1]}")
        before = point
    return "".join(words)


def _times(poses: Vector, times: Vector, ahead: float, size: float) -> list[tuple[str, str, list[str]]]:
    """Place the times (m,) [s] `ahead` of poses (m, 3) at a font size [tick]; merge labels that would overlap."""
    labels: list[tuple[float, float, list[str]]] = []
    for (x, y, yaw), time in zip(poses.tolist(), times.tolist(), strict=True):
        if math.isnan(x):
            continue
        right, down = x + ahead * math.cos(yaw * _TICK), -y - ahead * math.sin(yaw * _TICK)
        near = (times_there for at, below, times_there in labels if math.hypot(at - right, below - down) < 2.0 * size)
        together = next(near, None)
        if together is None:
            labels.append((right, down, together := []))
        together.append(f"{time:.3g}")
    return [(f"{x:.0f}", f"{y:.0f}", together) for x, y, together in labels]


def _footprint(base: Footprint) -> str:
    """Path data of body, wheels and an arrow to the front, seen from above, around the centre in ticks."""
    length, width, radius = base.half_length / _TICK, base.half_width / _TICK, base.wheel_radius / _TICK
    half_wheel = 0.5 * _WHEEL_WIDTH / _TICK
    front, side = length + _BODY_BEYOND_AXES / _TICK, width - half_wheel
    shape = _rectangle(-front, -side, 2.0 * front, 2.0 * side)
    corners = [(x, y) for x in (-length, length) for y in (-width, width)] if not base.wheels else []
    for x, y in corners:
        shape += _rectangle(x - radius, y - half_wheel, 2.0 * radius, 2.0 * half_wheel)
    for x, y, drive in base.wheels:
        ahead, aside = radius * np.exp(1j * drive), half_wheel * np.exp(1j * (drive + 0.5 * math.pi))
        middle = complex(x, y) / _TICK
        ends = [middle + a * ahead + b * aside for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        shape += "M" + "L".join(f"{end.real:.0f} {end.imag:.0f}" for end in ends) + "z"
    return shape + f"M{0.55 * front:.0f} {-0.4 * side:.0f}L{0.9 * front:.0f} 0L{0.55 * front:.0f} {0.4 * side:.0f}"


def _rectangle(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:.0f} {y:.0f}h{width:.0f}v{height:.0f}h{-width:.0f}z"


def _extent(bases: list[_MovingBase], margin: float) -> tuple[Vector, Vector]:
    """Corners (2,) of a picture that shows all bases."""
    seen = np.vstack([base.ticks[:, :2] for base in bases])
    middle = (np.nanmin(seen, axis=0) + np.nanmax(seen, axis=0)) / 2.0
    half = np.nanmax(seen, axis=0) - middle + margin
    half = np.maximum(half, half[::-1] * np.array([_ASPECT, 1.0 / _ASPECT]))
    return middle - half, middle + half


def _grid(low: Vector, high: Vector) -> tuple[float, str]:
    """Spacing of grid lines [m] and the lines as path data, between two corners (2,) in ticks."""
    rough = float(np.max(high - low)) * _TICK / 8.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough)
    words = []
    for axis in (0, 1):
        for k in range(math.ceil(low[axis] * _TICK / step), math.floor(high[axis] * _TICK / step) + 1):
            at = k * step / _TICK
            if axis == 0:
                words.append(f"M{at:.0f} {-high[1]:.0f}V{-low[1]:.0f}")
            else:
                words.append(f"M{low[0]:.0f} {-at:.0f}H{high[0]:.0f}")
    return step, "".join(words)
