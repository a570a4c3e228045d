"""Plots of how a model follows what was measured: the whole run, its residual, a detail, and what is left in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification.finding import FitCurve
from youbot_dynamics.identification.fitting.whiteness import Whiteness
from youbot_dynamics.identification.page.drawing import (
    COMMANDED,
    MEASURED,
    MODELLED,
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

_GAP = 10.0  # times the usual step
_WHOLE_HEIGHT, _DETAIL_HEIGHT = 3.9, 2.2  # [in]
_FEWEST_IN_DETAIL = 30  # samples: a detail of fewer shows no more than the whole


def whole_plot(curve: FitCurve, *, label: str, key: str, most: int) -> str:
    """The whole run with the residual, measured - modelled, below.

    Args:
        curve: of two samples or more.
        label: what the plot shows, for those who cannot see it.
        key: distinct for each plot of a page.
        most: samples a line.

    Returns:
        An `<svg>` element.
    """
    with plain_style():
        figure = empty_figure(_WHOLE_HEIGHT)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
        _draw(upper, curve, slice(None), most, "")
        residual = curve.measured - curve.modelled
        keep = with_gaps(curve.time, thin(residual, most))
        lower.axhline(0.0, color=colour("axis"), linewidth=0.6)
        lower.plot(*_points(curve.time - curve.time[0], residual, keep), color=colour("blue"), linewidth=0.9)
        name_axes(lower, f"residual [{curve.unit}]", "time [s]")
        return svg(figure, label, key)


def detail_plot(curve: FitCurve, *, label: str, key: str, most: int) -> str:
    """A detail of the run, where it changes most; arguments and result as those of `whole_plot`."""
    with plain_style():
        figure = empty_figure(_DETAIL_HEIGHT)
        axes = figure.subplots()
        _draw(axes, curve, detail(curve), most, "time [s]")
        return svg(figure, label, key)


def autocorrelation_plot(found: Whiteness, *, label: str, key: str, low: bool) -> str:
    """Bars of a residual's autocorrelation; white noise stays within the dashed lines at +-2/sqrt(n) 19 times of 20.

    Args:
        found: its test, with a number of lags other than 0.
        label: what the plot shows, for those who cannot see it.
        key: distinct for each plot of a page.
        low: to fit below a detail.

    Returns:
        An `<svg>` element.
    """
    with plain_style():
        figure = empty_figure(_WHOLE_HEIGHT - _DETAIL_HEIGHT if low else _DETAIL_HEIGHT)
        axes = figure.subplots()
        axes.bar(range(1, 1 + len(found.correlations)), found.correlations, width=0.5, color=colour("blue"))
        axes.axhline(0.0, color=colour("axis"), linewidth=0.6)
        bound = white_bound(found)
        for side in (-bound, bound):
            axes.axhline(side, color=colour("ink"), linewidth=0.8, dashes=(3.0, 2.0))
        top = min(1.05, max(2.0 * bound, 1.2 * float(np.max(np.abs(found.correlations)))))
        axes.set_ylim(-top, top)
        axes.set_xlim(0.0, 1.0 + len(found.correlations))
        axes.locator_params("x", integer=True)
        name_axes(axes, "autocorrelation of the residual", f"lag in steps of {found.step:.3g} s")
        return svg(figure, label, key)


def white_bound(found: Whiteness) -> float:
    """2/sqrt(n) of the n residuals of a test."""
    return float(2.0 / np.sqrt(max(4, found.samples)))


def has_detail(curve: FitCurve) -> bool:
    """Whether a detail would show more than the whole."""
    part = detail(curve)
    return bool(1 < part.stop - part.start < len(curve.time) // 2)


def detail(curve: FitCurve) -> slice:
    """Samples of a detail: of the length the curve asks for, where its command, or else its motion, changes most."""
    time, count = curve.time, len(curve.time)
    if curve.detail <= 0.0 or count <= _FEWEST_IN_DETAIL:
        return slice(0, count)
    length = max(curve.detail, _FEWEST_IN_DETAIL * float(np.median(np.diff(time))))
    starts = np.arange(time[0], time[-1] - length, length / 4.0)
    if len(starts) == 0:
        return slice(0, count)
    busy = curve.measured if curve.reference is None else curve.reference
    travel = np.abs(np.interp(starts + length, time, busy) - np.interp(starts, time, busy))
    start = float(starts[int(np.argmax(np.nan_to_num(travel)))])
    first, last = np.searchsorted(time, [start, start + length])
    return slice(int(first), int(last))


def _draw(axes: Axes, curve: FitCurve, part: slice, most: int, rightward: str) -> None:
    """Band, command, model and measurement of some samples."""
    time, modelled = curve.time[part] - curve.time[0], curve.modelled[part]
    if curve.band is not None:
        keep = with_gaps(time, thin(modelled, most))
        at, middle = _points(time, modelled, keep)
        _, half = _points(time, curve.band[part], keep)
        axes.fill_between(
            at,
            middle - half,
            middle + half,
            color=colour(MODELLED.colour),
            alpha=0.25,
            linewidth=0.0,
            zorder=2.7,
        )
    lines = ((curve.reference, COMMANDED), (curve.modelled, MODELLED), (curve.measured, MEASURED))
    for values, style in lines:
        if values is not None:
            keep = with_gaps(time, thin(values[part], most))
            axes.plot(*_points(time, values[part], keep), **drawn(style))
    name_axes(axes, f"{curve.quantity} [{curve.unit}]", rightward)


def with_gaps(time: Vector, keep: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of a line's samples (m,) with a -1 where samples are missing in between: no line leads across.

    Args:
        time: (n,) [s], increasing.
        keep: (m,) indices of the samples to draw.
    """
    steps = np.diff(time)
    gaps = np.concatenate([[0], np.cumsum(steps > _GAP * np.median(steps))]) if len(steps) else np.zeros(1, int)
    return np.insert(keep, 1 + np.flatnonzero(np.diff(gaps[keep])), -1)


def _points(time: Vector, values: Vector, keep: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """Times and values (m,) of the samples to draw, NaN at a gap; arrays of n samples."""
    there = keep >= 0
    return np.where(there, time[keep], np.nan), np.where(there, values[keep], np.nan)
