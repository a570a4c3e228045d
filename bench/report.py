"""Show results as tables and keep them as JSON."""

from __future__ import annotations

import datetime
import json
import math
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.harness import UNITS, Result, Timing, Verdict, percentiles
from youbot_dynamics.files import write_atomically

SCHEMA = 1
PACKAGES = ("numpy", "scipy", "numba", "pin", "mujoco", "casadi", "youbot_dynamics")


def show(result: Result, console: Console) -> None:
    """Print one item: a row a candidate, then accuracies, goals and remarks."""
    if result.error:
        console.print(f"[bold]{result.name}[/bold]: [red]not measured:[/red] {escape(result.error)}\n")
        return
    table = Table(title=escape(f"{result.name}: {result.about}"), title_justify="left", title_style="bold")
    table.add_column("candidate")
    for heading in (f"{result.unit}/sample", "p10", "p90", "x first", "batch"):
        table.add_column(heading, justify="right")
    ours = next(iter(result.timings))
    for label, timing in result.timings.items():
        low, high = percentiles(timing.seconds)
        times = [f"{seconds / UNITS[result.unit]:.3g}" for seconds in (timing.median, low, high)]
        ratio = Timing(result.ratios(ours, label), 1, 1).median
        table.add_row(escape(label), *times, f"{ratio:.3g}", str(timing.samples))
    console.print(table)
    remarks = [f"{label}: {timing.note}" for label, timing in result.timings.items() if timing.note]
    for line in [*remarks, *([result.note] if result.note else [])]:
        console.print(f"  {escape(line)}", style="dim", highlight=False)
    for quantity, off in result.accuracy.items():
        console.print(f"  accuracy: {escape(quantity)} {off:.2g}", highlight=False)
    for verdict in result.verdicts:
        console.print(f"  {_mark(verdict)} {escape(verdict.goal)}: {_measured(verdict)}", highlight=False)
    console.print()


def summary(results: Iterable[Result], console: Console) -> None:
    """Print every goal with what was measured."""
    table = Table(title="Goals", title_justify="left", title_style="bold")
    for heading in ("", "item", "goal", "measured (p10 to p90)"):
        table.add_column(heading)
    for result in results:
        if result.error:
            table.add_row("[red]ERROR[/red]", result.name, "", escape(result.error))
        for verdict in result.verdicts:
            table.add_row(_mark(verdict), result.name, escape(verdict.goal), _measured(verdict))
    if table.row_count:
        console.print(table)


def as_dict(result: Result, group: str, tier: str) -> dict[str, Any]:
    """One item as it stands in the JSON file; times are seconds a sample."""
    return {
        "name": result.name,
        "group": group,
        "tier": tier,
        "about": result.about,
        "candidates": [_candidate(label, timing, result) for label, timing in result.timings.items()],
        "accuracy": {quantity: _finite(off) for quantity, off in result.accuracy.items()},
        "goals": [
            {"goal": v.goal, "measured": _finite(v.measured), "p10_p90": v.spread, "met": v.met}
            for v in result.verdicts
        ],
        "note": result.note,
        "error": result.error,
        "met": result.met,
    }


def document(items: list[dict[str, Any]], *, quick: bool, cpu: int | None) -> dict[str, Any]:
    """The whole JSON file: items, and what they were measured with."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "processor": processor(),
        "pinned_to": cpu,
        "quick": quick,
        "versions": versions(),
        "met": all(item["met"] for item in items),
        "items": items,
    }


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON whole or not at all."""
    write_atomically(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def versions() -> dict[str, str]:
    """Versions of the package and its peers; "missing" where one is not installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def processor() -> str:
    """Model of the processor as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _candidate(label: str, timing: Timing, result: Result) -> dict[str, Any]:
    first = next(iter(result.timings))
    return {
        "label": label,
        "median": timing.median,
        "p10_p90": percentiles(timing.seconds),
        "times_first": Timing(result.ratios(first, label), 1, 1).median,
        "repeats": len(timing.seconds),
        "calls_per_repeat": timing.calls,
        "samples_per_call": timing.samples,
        "note": timing.note,
    }


def _finite(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None  # JSON has no NaN


def _mark(verdict: Verdict) -> str:
    return "[green]pass[/green]" if verdict.met else "[red]MISS[/red]"


def _measured(verdict: Verdict) -> str:
    spread = f" ({verdict.spread[0]:.3g} to {verdict.spread[1]:.3g})" if verdict.spread else ""
    return f"{verdict.measured:.3g}{spread}"
