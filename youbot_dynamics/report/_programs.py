"""Tracking of each program before and after: our error table beside the figures of the laboratory works."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.comparison import (
    FEEDBACK,
    OPEN_LOOP,
    RESTORED,
    SIMULATED,
    ErrorStatistics,
    PathComparison,
)
from youbot_dynamics.report import _drawing
from youbot_dynamics.report._animation import animation_of
from youbot_dynamics.report._plots import error_plot, path_plot
from youbot_dynamics.report._words import listed, significant

# Row of the error table -> name and style of its line in the plots.
_DRIVES = {
    OPEN_LOOP: ("actual (open loop)", _drawing.OPEN_LOOP),
    RESTORED: ("restored", _drawing.RESTORED),
    SIMULATED: ("simulated feedback", _drawing.SIMULATED),
    FEEDBACK: ("stabilised (feedback)", _drawing.FEEDBACK),
}
_SMALL = 1e-3  # [m, rad] numbers get a fifth decimal if any is smaller

# Mean and standard deviation of X, Y and psi [m, m, rad], as printed. There errors are desired - actual
# (dX = X_id - X_rf), so the means have the opposite sign of ours. The restored drives equal the desired ones by
# construction, except for an error of frames (D-003-7). The two works: open loop, and with feedback.
# Source: laboratory works 1 to 6 with a youBot, 2022; document 003, tables.
LAB_TABLES = {
    "translation": (
        "1 and 4",
        {
            OPEN_LOOP: (-0.0129, -0.0098, 0.0018, 0.0116, 0.0163, 0.0037),
            RESTORED: (-0.0022, 9.5515e-04, -4.3600e-05, 0.0013, 8.5501e-04, 3.0704e-05),
            SIMULATED: (-0.0015, 1.4308e-04, 6.3540e-07, 0.0028, 0.0017, 0.0012),
            FEEDBACK: (-3.7000e-05, -1.8850e-04, -1.1500e-05, 0.0076, 0.0074, 0.0020),
        },
    ),
    "rotation": (
        "2 and 5",
        {
            OPEN_LOOP: (0.0050, 6.9350e-04, -0.1393, 0.0019, 0.0017, 0.0981),
            RESTORED: (0.0037, -0.0021, -1.0738e-16, 0.0031, 0.0026, 2.9814e-05),
            SIMULATED: (1.1001e-04, 2.9530e-05, 0.0014, 4.2714e-04, 4.8925e-04, 0.0040),
            FEEDBACK: (6.8000e-05, 2.8050e-04, -0.0328, 5.6228e-04, 6.8286e-04, 0.0039),
        },
    ),
    "combined": (
        "3 and 6",
        {
            OPEN_LOOP: (-0.0048, 0.0251, -0.1453, 0.0303, 0.0391, 0.0739),
            RESTORED: (0.0481, 0.0236, -0.0192, 0.0452, 0.0447, 3.5437e-05),
            SIMULATED: (-9.9559e-06, 3.2256e-04, -0.0130, 0.0038, 0.0038, 0.0018),
            FEEDBACK: (-4.9000e-05, 5.3927e-04, -0.0260, 0.0074, 0.0075, 0.0034),
        },
    ),
}


Group = tuple[str, dict[str, list[float]]]  # heading, and rows below it: label of a drive -> its numbers


def program_of(path: PathComparison, key: str, most: int) -> dict[str, Any]:
    """Paths, errors over time, animation and error table of a program.

    Args:
        path: its drives.
        key: distinct for each program of a page.
        most: samples per line.
    """
    table = statistics(path)
    drives = {label: _DRIVES.get(label, (label, _drawing.COMMANDED)) for label in table}
    lines = [(style, path.actual[label]) for label, (_, style) in drives.items()]
    away = [(style, path.errors(label)) for label, (_, style) in drives.items()]
    rmse = [f"{label} {significant(of_drive.position_rmse)} m" for label, of_drive in table.items()]
    about = f"{path.name}: position RMSE {listed(rmse)}" if rmse else path.name
    groups = _error_groups(path, table) if table else []
    sizes = np.abs([number for _, rows in groups for row in rows.values() for number in row])
    over = [*lines, (_drawing.COMMANDED, path.desired)]
    under = f"Errors of X, Y and heading over time, {about}"
    return {
        "name": path.name,
        "truth": path.truth,
        "legend": [("commanded", _drawing.COMMANDED), *drives.values()],
        "over": path_plot(over, label=f"Path seen from above, {about}", key=key, most=most),
        "errors": error_plot(path.time, away, label=under, key=f"{key}e", most=most),
        "animation": animation_of(path),
        "groups": groups,
        "decimals": 5 if np.any((sizes > 0.0) & (sizes < _SMALL)) else 4,
        "restored": RESTORED in path.actual,
        "by_the_lab": _lab_table(path.name) is not None,
    }


def statistics(path: PathComparison) -> dict[str, ErrorStatistics]:
    """Error statistics of each drive, in the order of the error table."""
    order = dict.fromkeys([*comparison.ROWS, *path.actual])
    return {label: path.statistics(label) for label in order if label in path.actual}


def _error_groups(path: PathComparison, table: Mapping[str, ErrorStatistics]) -> list[Group]:
    """Rows of mean and standard deviation of X, Y, psi, RMSE of position and heading, worst position error.

    Our drives come first. If odometry and a ground truth were recorded, the errors of odometry against path and truth
    follow. If the lab drove the same program, its figures come last.
    """
    groups: list[Group] = [("", {label: _row(of_drive) for label, of_drive in table.items()})]
    known = [label for label in table if label in path.estimated]
    if known:
        seen = {label: _row(comparison.error_statistics(path.seen_errors(label))) for label in known}
        unseen = {label: _row(comparison.error_statistics(path.unseen_errors(label))) for label in known}
        groups += [
            ("Odometry \u2212 desired: what feedback sees", seen),
            (f"{path.truth.capitalize()} \u2212 odometry: what feedback cannot see", unseen),
        ]
    lab = _lab_table(path.name)
    if lab is not None:
        works, rows = lab
        heading = f"The lab, works {works}, as printed: desired \u2212 actual"
        groups.append((heading, {label: lab_row(row) for label, row in rows.items()}))
    return groups


def _row(of_drive: ErrorStatistics) -> list[float]:
    rmse = of_drive.position_rmse, of_drive.heading_rmse
    return [float(v) for v in (*of_drive.mean, *of_drive.deviation, *rmse, of_drive.position_worst)]


def lab_row(row: tuple[float, ...]) -> list[float]:
    """Mean and deviation of a printed row, and the RMSE that follows: RMSE^2 = mean^2 + deviation^2.

    Source: system 37.
    """
    square = np.square(row[:3]) + np.square(row[3:])
    return [*row, math.sqrt(square[0] + square[1]), math.sqrt(square[2]), math.nan]


def _lab_table(program: str) -> tuple[str, Mapping[str, tuple[float, ...]]] | None:
    """The lab's table of the one program whose name is part of this name; None if none or several match."""
    named = [table for name, table in LAB_TABLES.items() if name in program.lower()]
    return named[0] if len(named) == 1 else None
