"""Plots of the report as inline SVG: no file, no network, the same bytes for the same data.

Texts stay texts and colours become CSS variables, so that a page can show one plot on paper, light or dark.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import ResourceError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]

# Role -> colour on white paper and on a dark screen. The data colours follow Okabe and Ito, whose palette the
# colour-blind tell apart; every line has its own dashes as well.
PALETTE = {
    "ink": ("#1b1b1f", "#f0f0f2"),
    "axis": ("#5c5c64", "#a9a9b2"),
    "grid": ("#e3e3e8", "#34343c"),
    "blue": ("#0072b2", "#56b4e9"),
    "vermillion": ("#d55e00", "#f5793a"),
    "green": ("#009e73", "#2fc79a"),
    "purple": ("#b0568c", "#dd92bd"),
}
_WIDTH = 4.6  # [in] shown at about its own size in half a page, and still legible on a phone
_NARROWEST_PATH = 0.02  # [m] half a path plot shows at least this, or a turn on the spot would be all noise
_DETAIL_DELAYS = 14.0  # length of the detail of a fit, in delays
_DETAIL_LIMITS = (1.0, 4.0)  # [s]


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn, in a plot and in the legend.

    Args:
        colour: role in PALETTE.
        dashes: lengths of dashes and gaps [line widths]; empty for a solid line.
        width: [pt].
        layer: lines of a higher layer are drawn over the others.
    """

    colour: str
    dashes: tuple[float, ...]
    width: float
    layer: float


COMMANDED = LineStyle("ink", (3.0, 2.0), 1.0, 5.0)
OPEN_LOOP = LineStyle("vermillion", (7.0, 2.0), 1.3, 3.0)
RESTORED = LineStyle("purple", (1.0, 1.3), 1.6, 3.5)
SIMULATED = LineStyle("green", (5.0, 1.5, 1.0, 1.5), 1.3, 3.8)
FEEDBACK = LineStyle("blue", (), 2.0, 2.5)
MEASURED = FEEDBACK
SHIFTED = OPEN_LOOP


@dataclass(frozen=True, eq=False)
class Line:
    """One drive in a plot.

    Args:
        style: how it is drawn.
        values: (n, 3) poses or errors [m, m, rad].
    """

    style: LineStyle
    values: Vector


def thin(time: Vector, values: Vector, most: int) -> tuple[Vector, Vector]:
    """At most `most` samples of a line that keep its extremes (gaps, and lines with NaN, are thinned evenly).

    Args:
        time: (n,) increasing.
        values: (n,).
        most: number of samples to keep, 4 or more.

    Returns:
        Times and values, both (min(n, most),) or a few fewer.
    """
    if len(time) <= most:
        return time, values
    if not np.all(np.isfinite(values)):
        keep = np.linspace(0, len(time) - 1, most).astype(int)
        return time[keep], values[keep]
    edges = np.linspace(0, len(time), (most - 2) // 2 + 1).astype(int)
    chosen = [0, len(time) - 1]
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        part = values[first:last]
        chosen += [first + int(np.argmin(part)), first + int(np.argmax(part))]
    keep = np.unique(chosen)
    return time[keep], values[keep]


def fit_plots(
    time: Vector, motions: Sequence[Vector], delay: float, *, unit: str, label: str, key: str, most: int
) -> str:
    """Commanded, shifted and measured motion: the whole run with the residual below, and a detail.

    Args:
        time: (n,) [s], n >= 2.
        motions: commanded, shifted, measured, each (n,) in `unit`.
        delay: [s] sets the length of the detail; may be NaN.
        unit: of the motions.
        label: what the plots show, for those who cannot see them.
        key: distinct for each call for one page.
        most: samples a line.

    Returns:
        Two `<svg>` elements.
    """
    with _style():
        figure = _figure(3.5)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
        _draw_fit(upper, time, motions, most)
        upper.set_ylabel(f"motion [{unit}]")
        lower.axhline(0.0, color=_hex("axis"), linewidth=0.6)
        lower.plot(*thin(time, motions[2] - motions[1], most), color=_hex("blue"), linewidth=0.9)
        lower.set_ylabel(f"residual [{unit}]")
        lower.set_xlabel("time [s]")
        figure.align_ylabels([upper, lower])
        whole = _svg(figure, label, key)

        part = busiest(time, motions[0], delay)
        figure = _figure(3.5)
        axes = figure.subplots()
        _draw_fit(axes, time[part], [motion[part] for motion in motions], most)
        axes.set_ylabel(f"motion [{unit}]")
        axes.set_xlabel("time [s]")
        return whole + _svg(figure, f"Detail. {label}", f"{key}d")


def busiest(time: Vector, commanded: Vector, delay: float) -> slice:
    """Samples where the command changes most, over a time in which the delay can be seen.

    Args:
        time: (n,) [s], n >= 2.
        commanded: (n,) motion.
        delay: [s], may be NaN.
    """
    wanted = _DETAIL_DELAYS * delay if np.isfinite(delay) else 0.0
    length = min(float(np.clip(wanted, *_DETAIL_LIMITS)), float(time[-1] - time[0]))
    starts = np.arange(time[0], time[-1] - length, length / 4.0)
    if len(starts) == 0:
        return slice(0, len(time))
    travel = np.abs(np.interp(starts + length, time, commanded) - np.interp(starts, time, commanded))
    start = float(starts[int(np.argmax(np.nan_to_num(travel)))])
    first, last = np.searchsorted(time, [start, start + length])
    return slice(int(first), int(last)) if last - first > 1 else slice(0, len(time))


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
    with _style():
        figure = _figure(4.3)
        axes = figure.subplots()
        for line in lines:
            count = len(line.values)
            keep = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
            axes.plot(line.values[keep, 0], line.values[keep, 1], **_drawn(line.style))
        start = lines[-1].values[0]
        axes.plot(start[:1], start[1:2], "o", color=_hex("ink"), markersize=4.5, zorder=9.0)
        shown = np.vstack([line.values[:, :2] for line in lines])
        middle = (np.nanmin(shown, axis=0) + np.nanmax(shown, axis=0)) / 2.0
        axes.update_datalim([middle - _NARROWEST_PATH, middle + _NARROWEST_PATH])
        axes.set_aspect("equal", adjustable="datalim")
        axes.locator_params(nbins=7)
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")
        return _svg(figure, label, key)


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
    with _style():
        figure = _figure(4.3)
        panels = figure.subplots(3, 1, sharex=True)
        for axis, (axes, name) in enumerate(zip(panels, ("X [m]", "Y [m]", "\u03c8 [rad]"), strict=True)):
            axes.axhline(0.0, color=_hex("axis"), linewidth=0.6)
            for line in lines:
                axes.plot(*thin(time, line.values[:, axis], most), **_drawn(line.style))
            axes.set_ylabel(name)
        panels[-1].set_xlabel("time [s]")
        figure.align_ylabels(panels)
        return _svg(figure, label, key)


def swatch(style: LineStyle) -> str:
    """A short piece of a line for the legend, as an `<svg>` element hidden from screen readers."""
    dashes = " ".join(f"{length * style.width:g}" for length in style.dashes)
    pattern = f' stroke-dasharray="{dashes}"' if dashes else ""
    drawn = f'fill="none" stroke="var(--{style.colour})" stroke-width="{style.width:g}"{pattern}'
    return f'<svg class="swatch" viewBox="0 0 30 8" aria-hidden="true"><path d="M1 4H29" {drawn}/></svg>'


def _draw_fit(axes: Axes, time: Vector, motions: Sequence[Vector], most: int) -> None:
    for motion, style in zip(motions, (COMMANDED, SHIFTED, MEASURED), strict=True):
        axes.plot(*thin(time, motion, most), **_drawn(style))


def _drawn(style: LineStyle) -> dict[str, Any]:
    dashes = (0.0, style.dashes) if style.dashes else "solid"
    return {
        "color": _hex(style.colour),
        "linestyle": dashes,
        "linewidth": style.width,
        "zorder": style.layer,
        "dash_capstyle": "butt",
        "solid_joinstyle": "round",
    }


def _hex(role: str) -> str:
    return PALETTE[role][0]


@contextmanager
def _style() -> Iterator[None]:
    """Settings of every plot, whatever the user's matplotlibrc says.

    Raises:
        ResourceError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as problem:
        raise ResourceError(
            "plots of the report",
            got="no matplotlib",
            remedy="install it: pip install matplotlib, or apt install python3-matplotlib",
        ) from problem
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.fonttype": "none",
                "svg.hashsalt": "youbot_dynamics",
                "text.parse_math": False,
                "font.size": 9.0,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.linewidth": 0.6,
                "axes.edgecolor": _hex("axis"),
                "axes.labelcolor": _hex("ink"),
                "axes.grid": True,
                "axes.axisbelow": True,
                "axes.xmargin": 0.02,
                "axes.unicode_minus": True,
                "axes.formatter.useoffset": False,
                "grid.color": _hex("grid"),
                "grid.linewidth": 0.6,
                "xtick.color": _hex("axis"),
                "ytick.color": _hex("axis"),
                "xtick.major.width": 0.6,
                "ytick.major.width": 0.6,
                "xtick.major.size": 3.0,
                "ytick.major.size": 3.0,
                "text.color": _hex("ink"),
            }
        )
        yield


def _figure(height: float) -> Figure:
    """An empty figure `height` [in] high that belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, height), layout="constrained")


def _svg(figure: Figure, label: str, key: str) -> str:
    """A figure as `<svg>`: own ids, CSS variables for colours, two decimals, the fonts of the page.

    Its style sheet is dropped, since it would hold for the whole page: the page sets joins and caps
    (`.plot *`).
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = text.replace("xlink:href=", "href=")
    wanted = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{key}-{m[1]}"' if m[1] in wanted else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", text)
    text = re.sub(r'(?<= d=")[^"]*', lambda m: _short_path(m[0]), text)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    for role, (light, _) in PALETTE.items():
        text = text.replace(light, f"var(--{role})")
    text = re.sub(r"<defs>\s*</defs>|<g>\s*</g>|(?<=>)\s*\n\s*(?=<)", "", text)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    head = f'<svg class="plot" {box[0]} role="img" aria-label="{html.escape(label)}">'
    return head + text[text.index(">") + 1 :].strip()


def _short_path(path: str) -> str:
    """The same path data with numbers to 0.01 pt and no line breaks."""
    numbers = re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), path)
    return " ".join(re.sub(r"([A-Za-z]) ", r"\1", numbers).split())
