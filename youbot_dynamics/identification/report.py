"""The report of an identification: one HTML file that needs no network, with verdicts, plots and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.comparison import PathComparison
from youbot_dynamics.identification.finding import StageResult
from youbot_dynamics.identification.page.animation import can_be_animated
from youbot_dynamics.identification.page.correlations import correlation_tables
from youbot_dynamics.identification.page.fits import fit_figures, shown_curves
from youbot_dynamics.identification.page.paths import path_article
from youbot_dynamics.identification.page.style import document
from youbot_dynamics.identification.page.summary import summary
from youbot_dynamics.identification.page.verdicts import verdict_tables
from youbot_dynamics.identification.page.words import text
from youbot_dynamics.identification.result import Result

_FEWEST_POINTS, _MOST_POINTS = 100, 2000  # of a line
# The page stays below 3 MB: bytes for its plots, bytes of a plot besides its lines, and of a point of a line.
_PLOT_BUDGET, _EMPTY_PLOT, _POINT = 2_300_000, 15_000, 14
_PLOTS_OF_CURVE, _LINES_OF_CURVE = 3, 11
_PLOTS_OF_PATH, _LINES_OF_DRIVE = 2, 4
_ANIMATION = 90_000  # bytes of a path's at most
_MOST_ENTRIES = 200  # of a list; those of a fleet are in result.json


@dataclass(frozen=True, eq=False)
class Report:
    """Everything a report shows.

    Args:
        title: heading of the page.
        result: findings with verdicts.
        stages: what each stage found, with curves and correlations.
        paths: one comparison a program.
        provenance: where it comes from: bag, hash, clock, versions, ...
        warnings: what is wrong with the data.
        notes: what the reader should know, such as a recording that was cut.
    """

    title: str
    result: Result
    stages: tuple[StageResult, ...]
    paths: tuple[PathComparison, ...]
    provenance: Mapping[str, str]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def render(report: Report) -> str:
    """The report as a whole HTML document; the same bytes for the same report.

    Raises:
        ResourceError: there is something to plot and matplotlib is not installed.
    """
    most = _points_of_a_line(report)
    correlations = [one for stage in report.stages for one in stage.correlations]
    drawn = {
        "warnings": ("Warnings about the data", _list(report.warnings)),
        "verdicts": ("Verdicts", verdict_tables(report.result)),
        "fits": ("Fits", fit_figures(report.stages, most)),
        "correlations": ("Correlations", correlation_tables(correlations)),
        "paths": ("Paths", "".join(path_article(path, f"p{k}", most) for k, path in enumerate(report.paths))),
        "provenance": ("Provenance", _provenance(report.provenance)),
        "notes": ("Notes", _list(report.notes)),
    }
    sections = {key: (title, body) for key, (title, body) in drawn.items() if body}
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, (title, _) in sections.items())
    header = (
        f"<header><h1>{text(report.title)}</h1>"
        f'<p class="robot">Robot {text(report.result.robot_id)}</p>'
        f'<p class="summary">{text(summary(report.result, report.paths))}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )
    body = [
        f'<section class="{key}" aria-labelledby="{key}"><h2 id="{key}">{title}</h2>{body}</section>'
        for key, (title, body) in sections.items()
    ]
    moving = any(can_be_animated(path) for path in report.paths)
    page = document(text(report.title), "\n".join([header, *body]), moving=moving)
    # File names may hold what neither UTF-8 nor HTML can.
    return page.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def write_report(path: Path, report: Report) -> None:
    """Write `render(report)` to a file, whole or not at all; its folder must exist.

    Raises:
        ResourceError: as `render`.
    """
    write_atomically(path, render(report))


def _points_of_a_line(report: Report) -> int:
    """Samples each line of the page may have."""
    curves = sum(len(curves) for _, curves, _ in shown_curves(report.stages))
    plots = _PLOTS_OF_CURVE * curves + _PLOTS_OF_PATH * len(report.paths)
    lines = _LINES_OF_CURVE * curves + sum(1 + _LINES_OF_DRIVE * len(path.actual) for path in report.paths)
    points = (_PLOT_BUDGET - _EMPTY_PLOT * plots - _ANIMATION * len(report.paths)) // (_POINT * max(1, lines))
    return max(_FEWEST_POINTS, min(_MOST_POINTS, points))


def _provenance(provenance: Mapping[str, str]) -> str:
    entries = list(provenance.items())
    rows = "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in entries[:_MOST_ENTRIES])
    return f"<dl>{rows}</dl>{_more(len(entries))}" if entries else ""


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>" for line in lines[:_MOST_ENTRIES])
    return f"<ul>{items}</ul>{_more(len(lines))}" if items else ""


def _more(count: int) -> str:
    return f'<p class="note">{count - _MOST_ENTRIES} more are left out here.</p>' if count > _MOST_ENTRIES else ""
