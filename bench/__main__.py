"""Run the benchmarks: `python -m bench [NAME...]`; a NAME is a group (file bench_GROUP.py) or an item.

Exit code 0 when every goal was met, 1 when one was missed or an item could not be measured, 2 for a wrong argument.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import report
from bench.harness import Item, Result, measure

HERE = Path(__file__).resolve().parent
WITH, WITHOUT = "numba", "without numba"  # the tiers
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")

Builder = Callable[[], Item]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; see `--help`."""
    chosen = _arguments(arguments)
    tier = WITHOUT if chosen.without_numba else WITH
    cpu = settle()
    if tier == WITHOUT:
        sys.modules["numba"] = None  # type: ignore[assignment]  # `import numba` now raises ImportError
    groups = load_groups()
    if chosen.list:
        print("\n".join(f"{group}: {', '.join((*with_, *without))}" for group, (with_, without) in groups.items()))
        return 0
    try:
        names = select(groups, chosen.names)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 150)
    if tier == WITHOUT:
        console.rule("without numba")
    results = []
    items = []
    for group, tables in groups.items():
        for name, build in tables[tier == WITHOUT].items():
            if name in names:
                results.append(run(name, build, quick=chosen.quick))
                items.append(report.as_dict(results[-1], group, tier))
                report.show(results[-1], console)
    if results:
        report.summary(results, console)
    if tier == WITH and any(name in names for _, without in groups.values() for name in without):
        items += in_child(chosen)
    content = report.document(items, quick=chosen.quick, cpu=cpu)
    report.write(chosen.json, content)
    return 0 if content["met"] else 1


def settle() -> int | None:
    """Keep to one processor and one thread; return the processor, None where the system cannot pin.

    Must run before numpy is imported: its libraries read the number of threads once.
    """
    for library in THREADS:
        os.environ[f"{library}_NUM_THREADS"] = "1"
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


def load_groups() -> dict[str, tuple[dict[str, Builder], dict[str, Builder]]]:
    """Import the bench modules: group -> (items, items without numba).

    Raises:
        ValueError: two items carry the same name.
    """
    groups = {}
    seen: dict[str, str] = {}
    for path in sorted(HERE.glob("bench_*.py")):
        module = importlib.import_module(f"bench.{path.stem}")
        group = path.stem.removeprefix("bench_")
        groups[group] = (dict(module.ITEMS), dict(getattr(module, "ITEMS_WITHOUT_NUMBA", {})))
        for name in [*groups[group][0], *groups[group][1], group]:
            if name in seen:
                raise ValueError(f"two things are called {name!r}: in {seen[name]} and {path.name}")
            seen[name] = path.name
    return groups


def select(groups: dict[str, tuple[dict[str, Builder], dict[str, Builder]]], names: Sequence[str]) -> set[str]:
    """Item names meant by names of groups and items; all, when there are none.

    Raises:
        ValueError: a name is neither.
    """
    members = {group: {*with_, *without} for group, (with_, without) in groups.items()}
    items = set().union(*members.values())
    selected = set() if names else items
    for name in names:
        if name not in members and name not in items:
            near = difflib.get_close_matches(name, [*members, *items], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"got {name!r}, expected a group ({', '.join(members)}) or an item (--list){hint}")
        selected = selected | members.get(name, {name})
    return selected


def run(name: str, build: Builder, *, quick: bool) -> Result:
    """Build an item and measure it; what goes wrong becomes the error of its result."""
    try:
        item = build()
        return measure(name, item, repeats=5 if quick else 21, shortest=0.001 if quick else 0.004)
    except Exception as error:  # one broken peer must not hide the other items
        return Result(name, "", "us", {}, {}, (), error=f"{type(error).__name__}: {error}")


def in_child(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the items without numba in a process of their own; if it breaks, that is the one item returned."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        command = [sys.executable, "-m", "bench", "--without-numba", "--json", str(path), *chosen.names]
        command += ["--quick"] if chosen.quick else []
        elsewhere = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *elsewhere])}
        sys.stdout.flush()
        code = subprocess.run(command, env=environment, check=False).returncode
        if not path.is_file():
            broken = Result(WITHOUT, "", "us", {}, {}, (), error=f"the process ended with exit code {code}")
            return [report.as_dict(broken, "", WITHOUT)]
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["items"]
        return found


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench", description="Time the package beside what a user would pick instead."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a group or an item; all without any")
    parser.add_argument("--quick", action="store_true", help="5 short repeats instead of 21: to see that it runs")
    parser.add_argument("--json", type=Path, default=Path("bench_results.json"), metavar="PATH", help="result file")
    parser.add_argument("--list", action="store_true", help="list groups and their items, measure nothing")
    parser.add_argument("--without-numba", action="store_true", help="only the items that run without numba")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
