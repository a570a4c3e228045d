"""A drive in motion: bases to scale on their paths, a still picture where no script runs.

Lengths in the picture and in its data are [0.1 mm], angles [0.1 mrad]: finer than anything that is measured.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, Footprint, PathComparison
from youbot_dynamics.identification.page import drawing
from youbot_dynamics.identification.page.drawing import LineStyle
from youbot_dynamics.identification.page.words import text

Vector = NDArray[np.float64]

_TICK = 1e-4  # [m, rad]
_RATE = 25.0  # [Hz] of the samples a drive is shown with
_MOST_SAMPLES = 1000  # of a line; a longer drive gets fewer a second
_MAGNIFIED = 20  # times, on request
_ASPECT = 4.0 / 3.0  # of the picture, width over height
_LETTERS = 0.026  # size over the width of the picture
_MOMENTS = 6  # at which the still picture shows the base
_SPEEDS = ("0.25", "0.5", "1", "2", "4")
# [m] The youBot's body is 0.58 m long and, with its wheels, 0.376 m wide, with axes 0.47 m and wheels 0.30 m apart.
_BODY_BEYOND_AXES, _WHEEL_WIDTH = 0.055, 0.076


@dataclass(frozen=True, eq=False)
class _Rider:
    """One base of the animation.

    Args:
        name: in the legend.
        style: of its line and outline.
        poses: (n, 3) [m, m, rad].
        kind: class of its group in the picture.
    """

    name: str
    style: LineStyle
    poses: Vector
    kind: str


def can_be_animated(path: PathComparison) -> bool:
    """Whether a program has a recorded drive that lasts."""
    recorded = OPEN_LOOP in path.actual or FEEDBACK in path.actual
    return recorded and len(path.time) > 1 and bool(np.isfinite(path.desired).all())


def animation(path: PathComparison) -> str:
    """The drive of one program as a figure: reference, truth and odometry of the best drive, the open loop faded.

    Args:
        path: its drives.

    Returns:
        A `<figure>`; "" where `can_be_animated` says no.
    """
    if not can_be_animated(path):
        return ""
    riders = _riders(path)
    duration = float(path.time[-1] - path.time[0])
    count = max(2, min(_MOST_SAMPLES, round(duration * _RATE) + 1))
    at = np.linspace(path.time[0], path.time[-1], count)
    lines = [ticks(path.time, rider.poses, at) for rider in riders]
    run = {
        "end": round(duration, 4),
        "magnified": _MAGNIFIED,
        "lines": [[steps(axis) for axis in line.T] for line in lines],
    }
    data = html.escape(json.dumps(run, separators=(",", ":")))
    picture, grid = _picture(path, riders, lines, at)
    every = f"{duration / (_MOMENTS - 1):.3g}"
    return (
        f'<figure class="ride" data-run="{data}"><div class="stage">{picture}'
        f"<div>{_legend(riders)}{_controls(path.name, duration)}</div></div>"
        f"<figcaption>The drive seen from above: the base to scale, its front at the arrow, on a grid of {grid:g} m; "
        f"x to the right, y up. <span>The outlines stand {every} s apart.</span></figcaption></figure>"
    )


def ticks(time: Vector, poses: Vector, at: Vector) -> Vector:
    """Poses (m, 3) at the times `at` (m,) in whole ticks of 0.1 mm and 0.1 mrad, NaN where there is none.

    Args:
        time: (n,) increasing [s].
        poses: (n, 3) [m, m, rad].
        at: (m,) [s].
    """
    unwrapped = np.array(poses, dtype=float)
    there = np.isfinite(unwrapped[:, 2])
    unwrapped[there, 2] = np.unwrap(unwrapped[there, 2])
    sampled = np.column_stack([np.interp(at, time, axis) for axis in unwrapped.T])
    sampled[~np.isfinite(sampled).all(axis=1)] = np.nan
    rounded: Vector = np.round(sampled / _TICK)
    return rounded


def steps(axis: Vector) -> list[int | None]:
    """Steps from sample to sample of one axis (m,) in ticks, the first from 0; None where a sample is missing."""
    found: list[int | None] = []
    before = 0
    for value in axis.tolist():
        if math.isnan(value):
            found.append(None)
            continue
        found.append(int(value) - before)
        before = int(value)
    return found


def _riders(path: PathComparison) -> list[_Rider]:
    """Who drives, the reference first: so the script expects it."""
    main = FEEDBACK if FEEDBACK in path.actual else OPEN_LOOP
    style, words = (drawing.FEEDBACK, "stabilised") if main == FEEDBACK else (drawing.OPEN_LOOP, "open loop")
    riders = [_Rider("reference (commanded)", drawing.COMMANDED, path.desired, "reference")]
    if main == FEEDBACK and OPEN_LOOP in path.actual:
        riders.append(_Rider(f"open loop, {path.truth}", drawing.OPEN_LOOP, path.actual[OPEN_LOOP], "faded"))
    riders.append(_Rider(f"{words}, {path.truth}", style, path.actual[main], "main"))
    if main in path.estimated:
        riders.append(_Rider(f"{words}, odometry", drawing.ESTIMATED, path.estimated[main], "estimate"))
    return riders


def _picture(path: PathComparison, riders: Sequence[_Rider], lines: Sequence[Vector], at: Vector) -> tuple[str, float]:
    """The drawing of lines (m, 3) in ticks at the times (m,) [s], and how far its grid lines are apart [m]."""
    base = path.footprint
    shape = _footprint(base)
    reach = math.hypot(base.half_length + _BODY_BEYOND_AXES, base.half_width + _WHEEL_WIDTH / 2.0) / _TICK
    seen = np.vstack([line[:, :2] for line in lines])
    middle = (np.nanmin(seen, axis=0) + np.nanmax(seen, axis=0)) / 2.0
    half = np.nanmax(seen, axis=0) - middle + 1.25 * reach
    half = np.maximum(half, half[::-1] * np.array([_ASPECT, 1.0 / _ASPECT]))
    low, high = middle - half, middle + half
    step, grid = _grid(low, high)
    moments = np.linspace(0, len(at) - 1, _MOMENTS).round().astype(int)
    main = next(k for k, rider in enumerate(riders) if rider.kind == "main")
    trails = [_path("trail", rider, _trail(line)) for rider, line in zip(riders, lines, strict=True)]
    outlines = "".join(_outline(riders[main], pose, shape) for pose in lines[main][moments])
    times = _times(lines[main][moments], at[moments] - at[0], 1.08 * reach, _LETTERS * 2.0 * float(half[0]))
    live = "".join(_path("trail", rider, "") for rider in riders)
    live += "".join(_path("base", rider, shape) for rider in riders)
    label = f"Drive of {path.name} seen from above: paths and outlines of {', '.join(r.name for r in riders)}."
    box = f"{low[0]:.0f} {-high[1]:.0f} {2.0 * half[0]:.0f} {2.0 * half[1]:.0f}"
    picture = (
        f'<svg class="ground" viewBox="{box}" role="img" aria-label="{text(label)}"><path class="grid" d="{grid}"/>'
        f'{trails[0]}<g class="still">{outlines}{"".join(trails[1:])}{times}</g><g class="live">{live}</g></svg>'
    )
    return picture, step


def _path(kind: str, rider: _Rider, shape: str) -> str:
    return f'<path class="{kind} {rider.kind}" {drawing.stroke(rider.style)} d="{shape}"/>'


def _trail(line: Vector) -> str:
    """A path through poses (m, 3) in ticks, y up, broken where they are missing."""
    words: list[str] = []
    before: tuple[int, int] | None = None
    for x, y, _ in line.tolist():
        if math.isnan(x):
            before = None
            continue
        point = int(x), -int(y)
        words.append(f"M{point[0]} {point[1]}" if before is None else f"l{point[0] - before[0]} {point[1] - before[1]}")
        before = point
    return "".join(words)


def _outline(rider: _Rider, pose: Vector, shape: str) -> str:
    """The base at a pose (3,) in ticks; "" where that is missing."""
    x, y, yaw = pose.tolist()
    if math.isnan(x):
        return ""
    place = f"translate({x:.0f} {-y:.0f}) rotate({math.degrees(-yaw * _TICK):.1f})"
    return f'<g transform="{place}">{_path("base", rider, shape)}</g>'


def _times(poses: Vector, times: Vector, ahead: float, size: float) -> str:
    """Times (m,) [s] `ahead` of poses (m, 3), in letters of that size [tick], together where they would overlap."""
    words: list[tuple[float, float, list[str]]] = []
    for (x, y, yaw), time in zip(poses.tolist(), times.tolist(), strict=True):
        if math.isnan(x):
            continue
        right, down = x + ahead * math.cos(yaw * _TICK), -y - ahead * math.sin(yaw * _TICK)
        near = (told for at, below, told in words if math.hypot(at - right, below - down) < 2.0 * size)
        together = next(near, None)
        if together is None:
            words.append((right, down, together := []))
        together.append(f"{time:.3g}")
    style = f'font-size="{size:.0f}" text-anchor="middle" dominant-baseline="middle"'
    return "".join(f'<text x="{x:.0f}" y="{y:.0f}" {style}>{", ".join(told)} s</text>' for x, y, told in words)


def _footprint(base: Footprint) -> str:
    """Body, four wheels and an arrow to the front, seen from above, as path data around the centre in ticks."""
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


def _grid(low: Vector, high: Vector) -> tuple[float, str]:
    """Distance of grid lines [m], and the lines as path data, between two corners (2,) in ticks."""
    extent = float(np.max(high - low)) * _TICK
    rough = extent / 8.0
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


def _legend(riders: Sequence[_Rider]) -> str:
    """Names of the lines, and room for how far each is off the reference."""
    items = "".join(
        f"<li>{drawing.swatch(rider.style)}<span>{text(rider.name)}"
        + ("" if rider.kind == "reference" else '<span class="off"></span>')
        + "</span></li>"
        for rider in riders
    )
    return f'<ul class="legend" aria-label="Lines of the animation">{items}</ul>'


def _controls(name: str, duration: float) -> str:
    """What moves the picture; hidden until the script is there."""
    speeds = "".join(
        f'<option value="{speed}"{" selected" if speed == "1" else ""}>{speed} \u00d7</option>' for speed in _SPEEDS
    )
    return (
        f'<div class="controls" role="group" aria-label="Animation of {text(name)}" hidden>'
        '<button type="button">Play</button><span class="clock">0.00 s</span>'
        f'<input type="range" min="0" max="{duration:.4f}" step="0.02" value="0" aria-label="Time in the drive">'
        f"<label>Speed <select>{speeds}</select></label>"
        f'<label><input type="checkbox"> Errors \u00d7{_MAGNIFIED}</label></div>'
    )
