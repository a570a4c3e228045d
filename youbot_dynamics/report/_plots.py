"""Plots of an identification: model against measurement, and driven path against desired path.

Each function returns an `<svg>` element. `label` describes the plot for screen readers, `key` is distinct for each plot
of a page, and `most` is the largest number of samples of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.finding import FitCurve
from youbot_dynamics.identification.least_squares import Whiteness
from youbot_dynamics.report import _drawing as drawing
from youbot_dynamics.report._drawing import COMMANDED, MEASURED, MODELLED, LineStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Lines = Sequence[tuple[LineStyle, Vector]]

_WHOLE_HEIGHT, _DETAIL_HEIGHT, _PATH_HEIGHT = 3.9, 2.2, 4.3  # [in]
_BARS = 130.0  # [pt] width of all bars of a plot together
_FEWEST_IN_DETAIL = 30  # samples; a shorter detail shows no more than the whole
_NARROWEST_PATH = 0.02  # [m] smallest half-width of a path plot; a turn on the spot would otherwise show only noise


def whole_plot(curve: FitCurve, *, label: str, key: str, most: int) -> Markup:
    """The whole run (two samples or more), with the residual, measured - modelled, below."""
    with drawing.plain_style():
        figure = drawing.empty_figure(_WHOLE_HEIGHT)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
        _draw_fit(upper, curve, slice(None), most, "")
        lower.axhline(0.0, color=drawing.colour("axis"), linewidth=0.6)
        residual = drawing.thinned(most, curve.time - curve.time[0], curve.measured - curve.modelled)
        lower.plot(*residual, color=drawing.colour("blue"), linewidth=0.9)
        drawing.name_axes(lower, f"residual [{curve.unit}]", "time [s]")
        return drawing.svg(figure, label, key)


def detail_plot(curve: FitCurve, *, label: str, key: str, most: int) -> Markup:
    """A detail of the run, where it changes most."""
    with drawing.plain_style():
        figure = drawing.empty_figure(_DETAIL_HEIGHT)
        _draw_fit(figure.subplots(), curve, detail(curve), most, "time [s]")
        return drawing.svg(figure, label, key)


def has_detail(curve: FitCurve) -> bool:
    """Whether a detail shows more than the whole."""
    part = detail(curve)
    return bool(1 < part.stop - part.start < len(curve.time) // 2)


def detail(curve: FitCurve) -> slice:
    """Samples of a detail: the curve gives its length; it lies where the command, or else the motion, changes most."""
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


def _draw_fit(axes: Axes, curve: FitCurve, part: slice, most: int, rightward: str) -> None:
    """Draw band, command, model and measurement of some samples."""
    time, modelled = curve.time[part] - curve.time[0], curve.modelled[part]
    if curve.band is not None:
        at, middle, half = drawing.thinned(most, time, modelled, curve.band[part])
        tint = drawing.colour(MODELLED.colour)
        axes.fill_between(at, middle - half, middle + half, color=tint, alpha=0.25, linewidth=0.0, zorder=2.7)
    for values, style in ((curve.reference, COMMANDED), (curve.modelled, MODELLED), (curve.measured, MEASURED)):
        if values is not None:
            axes.plot(*drawing.thinned(most, time, values[part]), **drawing.drawn(style))
    drawing.name_axes(axes, f"{curve.quantity} [{curve.unit}]", rightward)


def autocorrelation_plot(test: Whiteness, *, label: str, key: str, low: bool = False) -> Markup:
    """Bars of the autocorrelation of a residual; for white noise 95 % lie within the dashed lines at +-2/sqrt(n).

    The test has at least one lag; a plot that is `low` fits below a detail.
    """
    with drawing.plain_style():
        figure = drawing.empty_figure(_WHOLE_HEIGHT - _DETAIL_HEIGHT if low else _DETAIL_HEIGHT)
        axes = figure.subplots()
        lags = range(1, 1 + len(test.correlations))
        axes.vlines(lags, 0.0, test.correlations, colors=drawing.colour("blue"), linewidth=_BARS / len(lags))
        axes.axhline(0.0, color=drawing.colour("axis"), linewidth=0.6)
        bound = white_bound(test)
        for side in (-bound, bound):
            axes.axhline(side, color=drawing.colour("ink"), linewidth=0.8, dashes=(3.0, 2.0))
        top = min(1.05, max(2.0 * bound, 1.2 * float(np.max(np.abs(test.correlations)))))
        axes.set_ylim(-top, top)
        axes.set_xlim(0.0, 1.0 + len(test.correlations))
        axes.locator_params("x", integer=True)
        drawing.name_axes(axes, "autocorrelation of the residual", f"lag in steps of {test.step:.3g} s")
        return drawing.svg(figure, label, key)


def white_bound(test: Whiteness) -> float:
    """2/sqrt(n) of the n residuals of a test."""
    return float(2.0 / np.sqrt(max(4, test.samples)))


def path_plot(lines: Lines, *, label: str, key: str, most: int) -> Markup:
    """Poses (n, 3) seen from above, x to the right and y up, equal scales; a dot where the last line starts."""
    with drawing.plain_style():
        figure = drawing.empty_figure(_PATH_HEIGHT)
        axes = figure.subplots()
        for style, poses in lines:
            keep = np.unique(np.linspace(0, len(poses) - 1, min(len(poses), most)).astype(int))
            axes.plot(poses[keep, 0], poses[keep, 1], **drawing.drawn(style))
        start = lines[-1][1][0]
        axes.plot(start[:1], start[1:2], "o", color=drawing.colour("ink"), markersize=4.5, zorder=9.0)
        shown = np.vstack([poses[:, :2] for _, poses in lines])
        middle = (np.nanmin(shown, axis=0) + np.nanmax(shown, axis=0)) / 2.0
        axes.update_datalim([middle - _NARROWEST_PATH, middle + _NARROWEST_PATH])
        axes.set_aspect("equal", adjustable="datalim")
        axes.locator_params(nbins=7)
        drawing.name_axes(axes, "y [m]", "x [m]")
        return drawing.svg(figure, label, key)


def error_plot(time: Vector, lines: Lines, *, label: str, key: str, most: int) -> Markup:
    """Errors (n, 3) of X, Y and psi at times (n,) [s], in three panels."""
    with drawing.plain_style():
        figure = drawing.empty_figure(_PATH_HEIGHT)
        panels = figure.subplots(3, 1, sharex=True)
        for axis, (axes, name) in enumerate(
            zip(panels, ("error of X [m]", "error of Y [m]", "error of \u03c8 [rad]"), strict=True)
        ):
            axes.axhline(0.0, color=drawing.colour("axis"), linewidth=0.6)
            for style, errors in lines:
                keep = drawing.thin(errors[:, axis], most)
                axes.plot(time[keep], errors[keep, axis], **drawing.drawn(style))
            drawing.name_axes(axes, name, "time [s]" if axes is panels[-1] else "")
        return drawing.svg(figure, label, key)
