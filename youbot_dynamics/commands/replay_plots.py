"""Plots of `youbot replay`: estimates with 2-sigma bands, innovations, temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from youbot_dynamics.identification.page.curve_plots import with_gaps
from youbot_dynamics.identification.page.drawing import (
    LineStyle,
    colour,
    drawn,
    empty_figure,
    name_axes,
    plain_style,
    svg,
    thin,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = NDArray[np.float64]

ESTIMATED = LineStyle("blue", (), 1.4, 3.0)
TOLD = LineStyle("vermillion", (7.0, 2.0), 1.1, 2.8)
PART = LineStyle("purple", (1.0, 1.3), 1.5, 3.2)
LIMIT = LineStyle("ink", (3.0, 2.0), 0.9, 2.6)

_HEIGHT, _TWO_HIGH = 2.2, 3.4  # [in]
_MOST = 500  # samples a line
_WINDOWS = 100  # of a log, over each of which NIS is averaged
_FEWEST = 20  # messages in a window
_PROBABILITY = 0.95
_LEAST = 1e-3  # NIS below that is drawn there
_FARTHEST = 0.005  # share of a line that may lie beyond a plot, at either end


class Line(NamedTuple):
    """A line with a band.

    Args:
        style: how it is drawn.
        time: (n,) [s], increasing.
        values: (n,) NaN where unknown.
        band_time: (s,) [s]; empty for no band.
        middle: (s,) of the band.
        deviation: (s,) the band is two of these to either side.
    """

    style: LineStyle
    time: Vector
    values: Vector
    band_time: Vector = np.empty(0)
    middle: Vector = np.empty(0)
    deviation: Vector = np.empty(0)


def lines_plot(lines: Sequence[Line], quantity: str, *, label: str, key: str) -> str:
    """Lines with their bands over time, as an `<svg>` element.

    Args:
        lines: what is drawn.
        quantity: with its unit.
        label: what the plot shows, for those who cannot see it.
        key: distinct for each plot of a page.
    """
    with plain_style():
        figure = empty_figure(_HEIGHT)
        axes = figure.subplots()
        _draw(axes, lines)
        name_axes(axes, quantity, "time [s]")
        return svg(figure, label, key)


def position_plot(lines: Sequence[Line], innovation: Line, *, label: str, key: str) -> str:
    """Position above, innovation within its 2-sigma band below; arguments as those of `lines_plot`."""
    with plain_style():
        figure = empty_figure(_TWO_HIGH)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
        _draw(upper, lines)
        name_axes(upper, "position [rad]")
        _draw(lower, [innovation])
        name_axes(lower, "innovation [mrad]", "time [s]")
        return svg(figure, label, key)


class Consistency(NamedTuple):
    """NIS over time.

    Args:
        time: (w,) middles of the windows [s].
        nis: (w,) mean for each reading.
        low: (w,) lower end of the 95 % of a filter that knows how far it is off.
        high: (w,) upper end.
    """

    time: Vector
    nis: Vector
    low: Vector
    high: Vector

    @property
    def within(self) -> float:
        """Share of the windows between the bounds; NaN without windows."""
        return float(np.mean((self.nis >= self.low) & (self.nis <= self.high))) if len(self.nis) else float("nan")


def consistency(time: Vector, squares: Vector, readings: Vector) -> Consistency:
    """Average sums of squared innovations over windows: N readings give chi-squared of N degrees, over N.

    Args:
        time: (m,) [s], increasing.
        squares: (m,) sums of squared innovations over variances.
        readings: (m,) how many each sum has.
    """
    windows = max(1, min(_WINDOWS, len(time) // _FEWEST))
    parts = [part for part in np.array_split(np.arange(len(time)), windows) if len(part) and readings[part].sum() > 0]
    count = np.array([readings[part].sum() for part in parts])
    tail = 0.5 * (1.0 - _PROBABILITY)
    low, high = (2.0 * gammaincinv(0.5 * count, p) / count if len(parts) else count for p in (tail, 1.0 - tail))
    middles = np.array([0.5 * (time[part[0]] + time[part[-1]]) for part in parts])
    return Consistency(middles, np.array([squares[part].sum() for part in parts]) / count, low, high)


def nis_plot(found: Consistency, *, label: str, key: str) -> str:
    """NIS over time with its 95 % bounds; arguments as those of `lines_plot`."""
    with plain_style():
        figure = empty_figure(_HEIGHT)
        axes = figure.subplots()
        axes.fill_between(found.time, found.low, found.high, color=colour("green"), alpha=0.25, linewidth=0.0)
        axes.axhline(1.0, color=colour("axis"), linewidth=0.6)
        axes.plot(found.time, np.maximum(found.nis, _LEAST), marker=".", markersize=3.0, **drawn(ESTIMATED))
        axes.set_yscale("log")
        lowest, highest = float(np.min(found.nis, initial=0.2)), float(np.max(found.nis, initial=5.0))
        axes.set_ylim(max(_LEAST, 0.5 * lowest), 2.0 * highest)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        name_axes(axes, "NIS for each reading [1]", "time [s]")
        return svg(figure, label, key)


def _draw(axes: Axes, lines: Sequence[Line]) -> None:
    for line in lines:
        if len(line.band_time):
            half = 2.0 * line.deviation
            at, low, high = _broken(line.band_time, line.middle - half, line.middle + half)
            axes.fill_between(at, low, high, color=colour(line.style.colour), alpha=0.25, linewidth=0.0, zorder=2.4)
        if len(line.time):
            at, values = _broken(line.time, line.values)
            axes.plot(at, values, **drawn(line.style))
    axes.set_ylim(*reach(lines))


def reach(lines: Sequence[Line]) -> tuple[float, float]:
    """From where to where a plot goes: all but the farthest of lines and bands, for a band is wide where all begins."""
    parts = [line.values for line in lines]
    parts += [line.middle + 2.0 * side * line.deviation for line in lines for side in (-1.0, 1.0)]
    ends = [np.nanquantile(part, (_FARTHEST, 1.0 - _FARTHEST)) for part in parts if np.isfinite(part).any()]
    if not ends:
        return 0.0, 1.0
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    margin = 0.08 * (high - low) or max(1e-3, 0.1 * abs(low))
    return low - margin, high + margin


def _broken(time: Vector, *columns: Vector) -> list[Vector]:
    """Times (n,) and columns (n,) thinned by the first one, with NaN where the log has a gap."""
    keep = with_gaps(time, thin(columns[0], _MOST))
    there = keep >= 0
    return [np.where(there, values[keep], np.nan) for values in (time, *columns)]
