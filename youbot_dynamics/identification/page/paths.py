"""Before and after: paths over the ground, errors over time, and the lab's table of their statistics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, ErrorStatistics, PathComparison
from youbot_dynamics.identification.page import drawing, path_plots
from youbot_dynamics.identification.page.words import listed, number, scroller, significant, text

Vector = NDArray[np.float64]
Statistics = Mapping[str, ErrorStatistics]

# Row of the lab's table -> name of its line in the plots, and how that is drawn.
_DRIVES = {
    OPEN_LOOP: ("actual (open loop)", drawing.OPEN_LOOP),
    comparison.RESTORED: ("restored", drawing.RESTORED),
    comparison.SIMULATED: ("simulated feedback", drawing.SIMULATED),
    FEEDBACK: ("stabilised (feedback)", drawing.FEEDBACK),
}


def statistics(path: PathComparison) -> Statistics:
    """Statistics of each drive, in the order of the lab's table."""
    return {label: comparison.error_statistics(errors) for label, errors in _errors(path).items()}


def path_article(path: PathComparison, key: str, most: int) -> str:
    """Path, errors over time and the lab's table of one program.

    Args:
        path: its drives.
        key: distinct for each call for one page.
        most: samples a line.
    """
    errors, table = _errors(path), statistics(path)
    drives = {label: _DRIVES.get(label, (label, drawing.COMMANDED)) for label in table}
    lines = [drawing.Line(style, path.actual[label]) for label, (_, style) in drives.items()]
    away = [drawing.Line(style, errors[label]) for label, (_, style) in drives.items()]
    rmse = [f"{label} {significant(of_drive.position_rmse)} m" for label, of_drive in table.items()]
    about = f"{path.name}: position RMSE {listed(rmse)}" if rmse else path.name
    over = path_plots.path_plot(
        [*lines, drawing.Line(drawing.COMMANDED, path.desired)],
        label=f"Path over the ground, {about}",
        key=key,
        most=most,
    )
    under = path_plots.error_plot(
        path.time, away, label=f"Errors of X, Y and heading over time, {about}", key=f"{key}e", most=most
    )
    return (
        f"<article><h3>{text(path.name)}</h3>"
        + drawing.legend([("commanded", drawing.COMMANDED), *drives.values()])
        + f'<figure><div class="pair">{over}{under}</div><figcaption>Path over the ground from the dot on, '
        f"and the errors over time; measured by {text(path.truth)}.</figcaption></figure>"
        + (_table(path.name, table) if table else "<p>No drive of this program was recorded.</p>")
        + "</article>"
    )


def _errors(path: PathComparison) -> dict[str, Vector]:
    """Errors (n, 3) of each drive, in the order of the lab's table."""
    order = dict.fromkeys([*comparison.ROWS, *path.actual])
    return {label: path.errors(label) for label in order if label in path.actual}


def _table(name: str, table: Statistics) -> str:
    """The lab's table: mean and standard deviation of X, Y, psi a drive, then RMSE and worst position."""
    rows = [[*s.mean, *s.deviation, s.position_rmse, s.heading_rmse, s.position_worst] for s in table.values()]
    sizes = np.abs(np.array(rows, dtype=float))
    decimals = 5 if np.any((sizes > 0.0) & (sizes < 1e-3)) else 4
    spaced = ["", "", "", ' class="first"', "", "", ' class="first"', "", ' class="first"']
    body = ""
    for label, row in zip(table, rows, strict=True):
        cells = (f"<td{space}>{number(float(v), decimals)}</td>" for space, v in zip(spaced, row, strict=True))
        body += f'<tr><th scope="row">{text(label)}</th>{"".join(cells)}</tr>'
    names = (*("X [m]", "Y [m]", "\u03c8 [rad]") * 2, "position [m]", "heading [rad]", "position [m]")
    columns = "".join(f'<th scope="col"{space}>{n}</th>' for space, n in zip(spaced, names, strict=True))
    restored = (
        " \u201cRestored\u201d is the open-loop drive moved forward by a delay identified from another run."
        if comparison.RESTORED in table
        else ""
    )
    return (
        scroller(
            f"Errors of {name}",
            '<table><thead><tr><th rowspan="2" scope="col">Drive</th><th colspan="3" scope="colgroup">Mean</th>'
            '<th colspan="3" scope="colgroup" class="first">Standard deviation</th>'
            '<th colspan="2" scope="colgroup" class="first">RMSE</th>'
            '<th scope="colgroup" class="first">Worst</th></tr>'
            f"<tr>{columns}</tr></thead><tbody>{body}</tbody></table>",
        )
        + '<p class="note">Errors are e = actual \u2212 desired, X and Y in the fixed frame; the lab\u2019s '
        "tables carry the opposite sign. Standard deviations are those of the population (divided by n)."
        f"{restored}</p>"
    )
