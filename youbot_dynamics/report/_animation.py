"""Animation of a drive: bases to scale on their paths, drawn by `templates/animation.html.j2`.

Lengths in the picture and its data are in 0.1 mm, angles in 0.1 mrad: finer than any measurement.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, Footprint, PathComparison
from youbot_dynamics.report import _drawing
from youbot_dynamics.report._drawing import LineStyle

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
    """Animate reference, truth and odometry of the best drive of a program, open loop faded; None without a drive."""
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
    there = np.isfinite(axis)
    moved: list[int | None] = [None] * len(axis)
    for k, step in zip(np.flatnonzero(there), np.diff(axis[there], prepend=0.0), strict=True):
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
    there = np.isfinite(unwrapped[:, 2])
    unwrapped[there, 2] = np.unwrap(unwrapped[there, 2])
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
        near = (told for at, below, told in labels if math.hypot(at - right, below - down) < 2.0 * size)
        together = next(near, None)
        if together is None:
            labels.append((right, down, together := []))
        together.append(f"{time:.3g}")
    return [(f"{x:.0f}", f"{y:.0f}", told) for x, y, told in labels]


def _footprint(base: Footprint) -> str:
    """Path data of body, four wheels and an arrow to the front, seen from above, around the centre in ticks."""
    length, width, radius = base.half_length / _TICK, base.half_width / _TICK, base.wheel_radius / _TICK
    half_wheel = 0.5 * _WHEEL_WIDTH / _TICK
    front, side = length + _BODY_BEYOND_AXES / _TICK, width - half_wheel
    shape = _rectangle(-front, -side, 2.0 * front, 2.0 * side)
    for x in (-length, length):
        for y in (-width, width):
            shape += _rectangle(x - radius, y - half_wheel, 2.0 * radius, 2.0 * half_wheel)
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
