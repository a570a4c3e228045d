"""Pages of the report made of their parts, for its tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from youbot_dynamics.identification.comparison import PathComparison
from youbot_dynamics.identification.finding import StageResult
from youbot_dynamics.identification.pipeline import Identification
from youbot_dynamics.identification.result import Result
from youbot_dynamics.report._identification import identification_page
from youbot_dynamics.robot import load_robot


@dataclass(frozen=True, eq=False)
class Report:
    """What a page shows."""

    title: str
    result: Result
    stages: tuple[StageResult, ...] = ()
    paths: tuple[PathComparison, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def render(report: Report) -> str:
    found = Identification(report.result, report.stages, {}, report.notes, report.warnings, load_robot())
    return identification_page(report.title, found, report.paths, report.provenance)
