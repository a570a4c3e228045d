"""The lab's table of errors: ours, what odometry saw of them, and the lab's own figures, one below the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.comparison import ErrorStatistics, PathComparison
from youbot_dynamics.identification.page.lab_figures import lab_table
from youbot_dynamics.identification.page.words import number, scroller, text

Statistics = Mapping[str, ErrorStatistics]

_COLUMNS = (*("X [m]", "Y [m]", "\u03c8 [rad]") * 2, "position [m]", "heading [rad]", "position [m]")
_FIRST_OF_GROUP = (3, 6, 8)  # columns with room before them
_SMALL = 1e-3  # [m, rad] where there is anything below it, numbers get a fifth decimal


class _Group(NamedTuple):
    """Rows of the table under a heading."""

    heading: str
    rows: Statistics


def statistics(path: PathComparison) -> Statistics:
    """Statistics of each drive, in the order of the lab's table."""
    order = dict.fromkeys([*comparison.ROWS, *path.actual])
    return {label: path.statistics(label) for label in order if label in path.actual}


def error_table(path: PathComparison) -> str:
    """Mean and standard deviation of X, Y, psi a drive, then RMSE and worst position.

    Below them, where odometry was recorded beside a ground truth, its error against the path and against the truth;
    where the lab drove the same program, its figures.

    Args:
        path: with one drive or more.
    """
    groups = _groups(path)
    sizes = np.abs(np.array([row for group in groups for row in map(_numbers, group.rows.values())], dtype=float))
    decimals = 5 if np.any((sizes > 0.0) & (sizes < _SMALL)) else 4
    columns = "".join(f'<th scope="col"{_space(k)}>{name}</th>' for k, name in enumerate(_COLUMNS))
    body = "".join(_rows(group, decimals) for group in groups)
    return (
        scroller(
            f"Errors of {path.name}",
            '<table><thead><tr><th rowspan="2" scope="col">Drive</th><th colspan="3" scope="colgroup">Mean</th>'
            '<th colspan="3" scope="colgroup" class="first">Standard deviation</th>'
            '<th colspan="2" scope="colgroup" class="first">RMSE</th>'
            '<th scope="colgroup" class="first">Worst</th></tr>'
            f"<tr>{columns}</tr></thead>{body}</table>",
        )
        + f'<p class="note">{_remarks(path)}</p>'
    )


def _groups(path: PathComparison) -> list[_Group]:
    ours = statistics(path)
    known = [label for label in ours if label in path.estimated]
    groups = [_Group("", ours)]
    if known:
        seen = {label: comparison.error_statistics(path.seen_errors(label)) for label in known}
        unseen = {label: comparison.error_statistics(path.unseen_errors(label)) for label in known}
        groups += [
            _Group("Odometry \u2212 desired: what feedback sees", seen),
            _Group(f"{path.truth.capitalize()} \u2212 odometry: what feedback cannot see", unseen),
        ]
    lab = lab_table(path.name)
    if lab is not None:
        groups.append(_Group(f"The lab, works {lab.works}, as printed: desired \u2212 actual", lab.statistics()))
    return groups


def _rows(group: _Group, decimals: int) -> str:
    """Rows under their heading, which "" leaves out."""
    heading = f'<tr><th colspan="10" scope="rowgroup" class="group"><span>{text(group.heading)}</span></th></tr>'
    rows = ""
    for label, of_drive in group.rows.items():
        cells = (f"<td{_space(k)}>{number(value, decimals)}</td>" for k, value in enumerate(_numbers(of_drive)))
        rows += f'<tr><th scope="row">{text(label)}</th>{"".join(cells)}</tr>'
    return f"<tbody>{heading if group.heading else ''}{rows}</tbody>"


def _numbers(of_drive: ErrorStatistics) -> list[float]:
    """What stands in a row."""
    rmse = of_drive.position_rmse, of_drive.heading_rmse
    return [float(v) for v in (*of_drive.mean, *of_drive.deviation, *rmse, of_drive.position_worst)]


def _space(column: int) -> str:
    return ' class="first"' if column in _FIRST_OF_GROUP else ""


def _remarks(path: PathComparison) -> str:
    """What the reader should know of the numbers."""
    remarks = [
        "Errors are e = actual \u2212 desired, X and Y in the fixed frame; the lab\u2019s tables carry the opposite "
        "sign. Standard deviations are those of the population (divided by n)."
    ]
    if comparison.RESTORED in path.actual:
        remarks.append(
            "\u201cRestored\u201d is the open-loop drive moved forward by a delay identified from another run."
        )
    if lab_table(path.name) is not None:
        remarks.append(
            "The lab\u2019s rows: seed 003, laboratory work with a youBot, 2022; the RMSE beside them follow from "
            "RMSE\u00b2 = mean\u00b2 + deviation\u00b2. Its restored drives are the desired ones by construction, "
            "but for an error of frames, and prove nothing. Robot and runs are others than ours."
        )
    return " ".join(remarks)
