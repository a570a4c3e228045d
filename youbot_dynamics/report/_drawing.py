"""Draw plots for the page: inline SVG without files or network, identical bytes for identical data.

Texts remain texts and colours become CSS variables, so that one plot works on paper, light and dark screens.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import missing_package, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Role -> colour on white paper and on a dark screen. The data colours are the palette of Okabe and Ito, which is safe
# for colour-blind readers; every line also has its own dashes.
PALETTE = {
    "ink": ("#1b1b1f", "#f0f0f2"),
    "axis": ("#5c5c64", "#a9a9b2"),
    "grid": ("#e3e3e8", "#34343c"),
    "blue": ("#0072b2", "#56b4e9"),
    "vermillion": ("#d55e00", "#f5793a"),
    "green": ("#009e73", "#2fc79a"),
    "purple": ("#b0568c", "#dd92bd"),
    "brown": ("#7a5230", "#cda67c"),
}
# [in] margins for the labels around the axes: the same in all plots, so that the axes are aligned.
_LEFT, _BELOW, _RIGHT, _ABOVE = 0.7, 0.42, 0.22, 0.26
_WIDTH = 4.6  # [in] about actual size in half a page, and still legible on a phone
_GAP = 10.0  # a line is interrupted where a step is this many times the usual one


@dataclass(frozen=True)
class LineStyle:
    """Style of a line, in a plot and in the legend."""

    colour: str  # role in PALETTE
    dashes: tuple[float, ...]  # lengths of dashes and gaps [line widths]; empty for a solid line
    width: float  # [pt]
    layer: float  # lines of a higher layer are drawn over the others

    @property
    def dash_lengths(self) -> str:
        """Lengths of dashes and gaps in the SVG format."""
        return " ".join(f"{length * self.width:g}" for length in self.dashes)


# Drives of a program: desired, driven, restored, simulated, and as estimated by odometry.
COMMANDED = LineStyle("ink", (3.0, 2.0), 1.0, 5.0)
OPEN_LOOP = LineStyle("vermillion", (7.0, 2.0), 1.3, 3.0)
RESTORED = LineStyle("purple", (1.0, 1.3), 1.6, 3.5)
SIMULATED = LineStyle("green", (5.0, 1.5, 1.0, 1.5), 1.3, 3.8)
FEEDBACK = LineStyle("blue", (), 2.0, 2.5)
ESTIMATED = LineStyle("brown", (2.0, 1.0), 1.4, 4.0)
# Fits.
MEASURED = LineStyle("blue", (), 1.4, 2.5)
MODELLED = LineStyle("vermillion", (7.0, 2.0), 1.5, 3.0)


def thin(values: Vector, most: int) -> NDArray[np.int64]:
    """Choose samples of a line to draw so that its extremes remain (lines with gaps are thinned evenly).

    Args:
        values: (n,), NaN where the line has a gap.
        most: number of samples to keep, 4 or more.

    Returns:
        Increasing indices, (min(n, most),) or slightly fewer.
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    if not np.all(np.isfinite(values)):
        return np.linspace(0, count - 1, most).astype(np.int64)
    edges = np.linspace(0, count, (most - 2) // 2 + 1).astype(int)
    chosen = [0, count - 1]
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        part = values[first:last]
        chosen += [first + int(np.argmin(part)), first + int(np.argmax(part))]
    return np.unique(chosen)


def with_gaps(time: Vector, keep: NDArray[np.int64]) -> NDArray[np.int64]:
    """Insert -1 into the indices (m,) of a line's samples where samples are missing, so that no line crosses the gap.

    Args:
        time: (n,) [s], increasing.
        keep: (m,) indices of the samples to draw.
    """
    steps = np.diff(time)
    gaps = np.concatenate([[0], np.cumsum(steps > _GAP * np.median(steps))]) if len(steps) else np.zeros(1, int)
    return np.insert(keep, 1 + np.flatnonzero(np.diff(gaps[keep])), -1)


def thinned(most: int, time: Vector, *columns: Vector) -> list[Vector]:
    """Thin times (n,) and columns (n,) to at most `most` samples, chosen by the first column, with NaN at gaps."""
    keep = with_gaps(time, thin(columns[0], most))
    return [np.where(keep >= 0, values[keep], np.nan) for values in (time, *columns)]


def drawn(style: LineStyle) -> dict[str, Any]:
    """Matplotlib arguments of a line style."""
    return {
        "color": colour(style.colour),
        "linestyle": (0.0, style.dashes) if style.dashes else "solid",
        "linewidth": style.width,
        "zorder": style.layer,
        "dash_capstyle": "butt",
        "solid_joinstyle": "round",
    }


def colour(role: str) -> str:
    """Colour of a role in PALETTE on white paper."""
    return PALETTE[role][0]


@contextmanager
def plain_style() -> Iterator[None]:
    """Settings of every plot, independent of the user's matplotlibrc.

    Raises:
        ResourceError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as problem:
        raise missing_package("matplotlib", "plots of the report") from problem
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
                "axes.edgecolor": colour("axis"),
                "axes.labelcolor": colour("ink"),
                "axes.grid": True,
                "axes.axisbelow": True,
                "axes.xmargin": 0.02,
                "axes.titley": 1.0,  # else matplotlib lays out all ticks again to look for one above the title
                "axes.unicode_minus": True,
                "axes.formatter.useoffset": False,
                "grid.color": colour("grid"),
                "grid.linewidth": 0.6,
                "xtick.color": colour("axis"),
                "ytick.color": colour("axis"),
                "xtick.major.width": 0.6,
                "ytick.major.width": 0.6,
                "xtick.major.size": 3.0,
                "ytick.major.size": 3.0,
                "text.color": colour("ink"),
            }
        )
        yield


def empty_figure(height: float) -> Figure:
    """An empty figure without a window, `height` [in] high."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    figure.subplots_adjust(_LEFT / _WIDTH, _BELOW / height, 1.0 - _RIGHT / _WIDTH, 1.0 - _ABOVE / height, hspace=0.4)
    return figure


def name_axes(axes: Axes, upward: str, rightward: str = "") -> None:
    """Label the vertical quantity above the axes, where long names fit, and the horizontal quantity below."""
    axes.set_title(upward, loc="left", fontsize=9.0, pad=4.0)
    axes.set_xlabel(rightward)


def svg(figure: Figure, label: str, key: str) -> Markup:
    """Convert a figure to an `<svg>` element: own ids, CSS variables for colours, two decimals, the fonts of the page.

    The style sheet of the figure is dropped, since it would apply to the whole page; the page sets line joins and caps
    (`.plot *`).

    Args:
        figure: the figure.
        label: description of the plot for screen readers.
        key: distinct for each plot of a page.
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
    text = re.sub(r"font-family: [^;\"]*;? ?| transform=\"rotate\(-?0 [^\"]*", "", text)
    text = re.sub(r' ([xy])="([^"]*)"', lambda m: f' {m[1]}="{_short_path(m[2])}"', text)
    for role, (light, _) in PALETTE.items():
        text = text.replace(light, f"var(--{role})")
    text = re.sub(r"<defs>\s*</defs>|<g>\s*</g>|(?<=>)\s*\n\s*(?=<)", "", text)
    box = re.search(r'viewBox="([^"]*)"', text)
    assert box is not None
    head = Markup('<svg class="plot" viewBox="{}" role="img" aria-label="{}">').format(box[1], printable(label))
    return head + Markup(text[text.index(">") + 1 :].strip())  # noqa: S704 - matplotlib has escaped its texts


def _short_path(path: str) -> str:
    """Path data with numbers rounded to 0.01 pt and without line breaks."""
    numbers = re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), path)
    return " ".join(re.sub(r"([A-Za-z]) ", r"\1", numbers).split())
