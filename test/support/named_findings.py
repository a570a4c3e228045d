"""Findings by their names in results, for tests that need some without an identification."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from youbot_dynamics.identification.calibration import Calibration
from youbot_dynamics.identification.calibration._findings import geometry_findings
from youbot_dynamics.identification.finding import CASES, Finding, Row
from youbot_dynamics.identification.least_squares import Estimate
from youbot_dynamics.identification.stages import STAGES, stage_of
from youbot_dynamics.robot_base import BaseGeometry


def row_of(name: str, unit: str = "1") -> tuple[Row, bool]:
    """Row of a stage's table with this name, and whether it is listed only; a row of its own for other names."""
    for stage in STAGES:
        for row in stage_of(stage).FINDINGS.rows:
            parts = re.sub(r"{(\w+)}", lambda key: f"(?P<{key[1]}>{'|'.join(CASES.get(key[1], ['.+']))})", row.pattern)
            listed = row.optional and not name.startswith("robot.")
            found = re.fullmatch(parts, f"robot.{name}" if listed else name)
            if found:
                return row.at(**found.groupdict()), listed
    return Row(name.replace("{", "{{").replace("}", "}}"), unit, "a number"), False


def named_finding(name: str, estimate: Estimate, samples: int = 0, valid_for: str = "", **more: Any) -> Finding:
    row, listed = row_of(name, estimate.unit)
    units = row.unit.split(", ")
    estimate = estimate if estimate.unit in units else replace(estimate, unit=units[0])
    return Finding(row, estimate, samples, valid_for, listed=listed, **more)


def named_estimates(calibration: Calibration, geometry: BaseGeometry) -> dict[str, Estimate]:
    """Estimates of a calibration by their names in a result."""
    return {one.name: one.estimate for one in geometry_findings(calibration, geometry, 0)}
