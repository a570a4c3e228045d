"""Drawing for the page: inline SVG without files or network, the same bytes for the same data.

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
    "brown": ("#7a5230", "#cda67c"),
}
# [in] room for the words around the axes: the same in all plots, so that their axes stand in line.
_LEFT, _BELOW, _RIGHT, _ABOVE = 0.7, 0.42, 0.22, 0.26
_WIDTH = 4.6  # [in] shown at about its own size in half a page, and still legible on a phone


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
ESTIMATED = LineStyle("brown", (2.0, 1.0), 1.4, 4.0)
MEASURED = LineStyle("blue", (), 1.4, 2.5)
MODELLED = LineStyle("vermillion", (7.0, 2.0), 1.5, 3.0)


@dataclass(frozen=True, eq=False)
class Line:
    """One drive in a plot.

    Args:
        style: how it is drawn.
        values: (n, 3) poses or errors [m, m, rad].
    """

    style: LineStyle
    values: Vector


def thin(values: Vector, most: int) -> NDArray[np.int64]:
    """Which samples of a line to draw so that it keeps its extremes (lines with gaps are thinned evenly).

    Args:
        values: (n,), NaN where the line has a gap.
        most: number of samples to keep, 4 or more.

    Returns:
        Indices, increasing, (min(n, most),) or a few fewer.
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


def legend(entries: Sequence[tuple[str, LineStyle]]) -> str:
    """Names of lines beside a piece of each, as a list."""
    items = "".join(f"<li>{swatch(style)}{html.escape(name)}</li>" for name, style in entries)
    return f'<ul class="legend" aria-label="Lines of the plots">{items}</ul>'


def swatch(style: LineStyle) -> str:
    """A short piece of a line for the legend, as an `<svg>` element hidden from screen readers."""
    return f'<svg class="swatch" viewBox="0 0 30 8" aria-hidden="true"><path d="M1 4H29" {stroke(style)}/></svg>'


def stroke(style: LineStyle) -> str:
    """How SVG is told to draw a line, as attributes."""
    dashes = " ".join(f"{length * style.width:g}" for length in style.dashes)
    pattern = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'fill="none" stroke="var(--{style.colour})" stroke-width="{style.width:g}"{pattern}'


def drawn(style: LineStyle) -> dict[str, Any]:
    """How matplotlib is told to draw a line."""
    dashes = (0.0, style.dashes) if style.dashes else "solid"
    return {
        "color": colour(style.colour),
        "linestyle": dashes,
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
                "axes.edgecolor": colour("axis"),
                "axes.labelcolor": colour("ink"),
                "axes.grid": True,
                "axes.axisbelow": True,
                "axes.xmargin": 0.02,
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
    """An empty figure `height` [in] high that belongs to no window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height))
    figure.subplots_adjust(_LEFT / _WIDTH, _BELOW / height, 1.0 - _RIGHT / _WIDTH, 1.0 - _ABOVE / height, hspace=0.4)
    return figure


def name_axes(axes: Axes, upward: str, rightward: str = "") -> None:
    """Name what is drawn upward, above the axes, where every name has room, and what is drawn to the right."""
    axes.set_title(upward, loc="left", fontsize=9.0, pad=4.0)
    axes.set_xlabel(rightward)


def svg(figure: Figure, label: str, key: str) -> str:
    """A figure as an `<svg>` element: own ids, CSS variables for colours, two decimals, the fonts of the page.

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
    text = re.sub(r"font-family: [^;\"]*;? ?| transform=\"rotate\(-?0 [^\"]*", "", text)
    text = re.sub(r' ([xy])="([^"]*)"', lambda m: f' {m[1]}="{_short_path(m[2])}"', text)
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
