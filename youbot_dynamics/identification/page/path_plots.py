"""Plots of how a path was followed: over the ground, and its errors over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification.page.drawing import (
    Line,
    colour,
    drawn,
    empty_figure,
    name_axes,
    plain_style,
    svg,
    thin,
)

Vector = NDArray[np.float64]

_NARROWEST_PATH = 0.02  # [m] half a path plot shows at least this, or a turn on the spot would be all noise


def path_plot(lines: Sequence[Line], *, label: str, key: str, most: int) -> str:
    """Paths over the ground, x to the right and y up, both in the same scale; a dot where they start.

    Args:
        lines: their values are poses (n, 3).
        label: what the plot shows, for those who cannot see it.
        key: distinct for each plot of a page.
        most: samples a line.

    Returns:
        An `<svg>` element.
    """
    with plain_style():
        figure = empty_figure(4.3)
        axes = figure.subplots()
        for line in lines:
            count = len(line.values)
            keep = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
            axes.plot(line.values[keep, 0], line.values[keep, 1], **drawn(line.style))
        start = lines[-1].values[0]
        axes.plot(start[:1], start[1:2], "o", color=colour("ink"), markersize=4.5, zorder=9.0)
        shown = np.vstack([line.values[:, :2] for line in lines])
        middle = (np.nanmin(shown, axis=0) + np.nanmax(shown, axis=0)) / 2.0
        axes.update_datalim([middle - _NARROWEST_PATH, middle + _NARROWEST_PATH])
        axes.set_aspect("equal", adjustable="datalim")
        axes.locator_params(nbins=7)
        name_axes(axes, "y [m]", "x [m]")
        return svg(figure, label, key)


def error_plot(time: Vector, lines: Sequence[Line], *, label: str, key: str, most: int) -> str:
    """Errors of X, Y and psi over time, one above the other.

    Args:
        time: (n,) [s].
        lines: their values are errors (n, 3).
        label: what the plot shows, for those who cannot see it.
        key: distinct for each plot of a page.
        most: samples a line.

    Returns:
        An `<svg>` element.
    """
    with plain_style():
        figure = empty_figure(4.3)
        panels = figure.subplots(3, 1, sharex=True)
        for axis, (axes, name) in enumerate(zip(panels, ("X [m]", "Y [m]", "\u03c8 [rad]"), strict=True)):
            axes.axhline(0.0, color=colour("axis"), linewidth=0.6)
            for line in lines:
                keep = thin(line.values[:, axis], most)
                axes.plot(time[keep], line.values[keep, axis], **drawn(line.style))
            name_axes(axes, name, "time [s]" if axes is panels[-1] else "")
        return svg(figure, label, key)
