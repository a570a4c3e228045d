"""Figures of the laboratory work that this package began with: how well its youBot followed the three programs.

Seed 003, tables of mean and standard deviation of X, Y and psi of works 1 to 6, 2022, as printed. Errors are
desired - actual there (dX = X_id - X_rf), so the means have the opposite sign of ours. Its restored drives are the
desired ones by construction, but for an error of frames (D-003-7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, RESTORED, SIMULATED, ErrorStatistics


@dataclass(frozen=True)
class LabTable:
    """The table of one program.

    Args:
        works: numbers of the laboratory works: driven open loop, and with feedback.
        rows: label of a drive -> mean X, Y, psi and standard deviation X, Y, psi of desired - actual [m, m, rad].
    """

    works: str
    rows: Mapping[str, tuple[float, float, float, float, float, float]]

    def statistics(self) -> dict[str, ErrorStatistics]:
        """The rows as statistics, with what follows from them: RMSE^2 = mean^2 + deviation^2 (system 37)."""
        found = {}
        for label, row in self.rows.items():
            mean, deviation = np.array(row[:3]), np.array(row[3:])
            square = mean**2 + deviation**2
            found[label] = ErrorStatistics(
                mean=mean,
                deviation=deviation,
                position_rmse=math.sqrt(square[0] + square[1]),
                heading_rmse=math.sqrt(square[2]),
                position_worst=math.nan,
            )
        return found


LAB_TABLES = {
    "translation": LabTable(
        "1 and 4",
        {
            OPEN_LOOP: (-0.0129, -0.0098, 0.0018, 0.0116, 0.0163, 0.0037),
            RESTORED: (-0.0022, 9.5515e-04, -4.3600e-05, 0.0013, 8.5501e-04, 3.0704e-05),
            SIMULATED: (-0.0015, 1.4308e-04, 6.3540e-07, 0.0028, 0.0017, 0.0012),
            FEEDBACK: (-3.7000e-05, -1.8850e-04, -1.1500e-05, 0.0076, 0.0074, 0.0020),
        },
    ),
    "rotation": LabTable(
        "2 and 5",
        {
            OPEN_LOOP: (0.0050, 6.9350e-04, -0.1393, 0.0019, 0.0017, 0.0981),
            RESTORED: (0.0037, -0.0021, -1.0738e-16, 0.0031, 0.0026, 2.9814e-05),
            SIMULATED: (1.1001e-04, 2.9530e-05, 0.0014, 4.2714e-04, 4.8925e-04, 0.0040),
            FEEDBACK: (6.8000e-05, 2.8050e-04, -0.0328, 5.6228e-04, 6.8286e-04, 0.0039),
        },
    ),
    "combined": LabTable(
        "3 and 6",
        {
            OPEN_LOOP: (-0.0048, 0.0251, -0.1453, 0.0303, 0.0391, 0.0739),
            RESTORED: (0.0481, 0.0236, -0.0192, 0.0452, 0.0447, 3.5437e-05),
            SIMULATED: (-9.9559e-06, 3.2256e-04, -0.0130, 0.0038, 0.0038, 0.0018),
            FEEDBACK: (-4.9000e-05, 5.3927e-04, -0.0260, 0.0074, 0.0075, 0.0034),
        },
    ),
}


def lab_table(program: str) -> LabTable | None:
    """The lab's table of the program whose name is in this name; None where there is none, or more than one."""
    named = [table for name, table in LAB_TABLES.items() if name in program.lower()]
    return named[0] if len(named) == 1 else None
