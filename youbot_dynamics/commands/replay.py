"""`youbot replay`: the arm's filters over a recorded log; a table, a bag of estimates, and report.html out."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from youbot_dynamics import __version__
from youbot_dynamics.commands.progress import announce, steps
from youbot_dynamics.commands.replay_bag import write_estimates
from youbot_dynamics.commands.replay_log import TOPIC_ROLES, OpenedLog, open_log
from youbot_dynamics.commands.replay_page import cells, column_names, render
from youbot_dynamics.commands.replay_settings import read_node, replay_settings
from youbot_dynamics.errors import ParameterError, RecordingError
from youbot_dynamics.estimation.replay import ArmReplay, replay_arm
from youbot_dynamics.files import write_atomically

_DONE = 0
_PIPED = 160  # columns where the output is no terminal
_BAG = "estimates"


def replay_command(given: argparse.Namespace) -> int:
    """Run the verb.

    Raises:
        YoubotDynamicsError: a log, option or folder that cannot be used; nothing is written then.
    """
    topics = _topics(given.topic)
    if given.out is not None:
        _check_folder(given.out)
    robot, settings = read_node(given.result_file, given.params_file)
    with steps("youbot replay") as step:
        step("reading")
        opened = open_log(given.log, robot, given.columns, topics, given.invert_effort)
        replay = replay_arm(opened.arm, robot, replay_settings(settings), step)
        if given.out is not None:
            step("drawing the report")
            provenance = {**opened.provenance, "youbot_dynamics": __version__, **_files(given)}
            page = render(f"Replay of {given.log.name}", replay, robot, provenance, opened.warnings)
            given.out.mkdir(parents=True, exist_ok=True)
            step("writing the estimates")
            write_estimates(given.out / _BAG, replay, robot, opened.origin)
            write_atomically(given.out / "report.html", page)
    if given.json:
        sys.stdout.write(as_json(replay, opened))
    else:
        _print(replay, opened)
        if given.out is not None:
            announce(f"wrote {given.out / 'report.html'} and {given.out / _BAG}, a bag")
    return _DONE


def as_json(replay: ArmReplay, opened: OpenedLog) -> str:
    """Summary, findings and counts; a number that is not finite is null."""
    joints = [
        {key: value if isinstance(value, str) else _number(value) for key, value in dataclasses.asdict(one).items()}
        for one in replay.summary
    ]
    findings = [dataclasses.asdict(one) for one in replay.findings]
    found = {
        "joints": joints,
        "findings": findings,
        "warnings": list(opened.warnings),
        "counts": dict(replay.counts),
        "provenance": dict(opened.provenance),
    }
    return json.dumps(found, indent=2) + "\n"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _topics(given: Sequence[str]) -> Mapping[str, str]:
    chosen = {}
    for words in given:
        role, _, name = words.partition("=")
        if role not in TOPIC_ROLES or not name:
            raise ParameterError(f"--topic {words}", expected=f"ROLE=NAME, ROLE one of {', '.join(TOPIC_ROLES)}")
        chosen[role] = name
    return chosen


def _check_folder(out: Path) -> None:
    """Refuse, before the work is done, a folder that cannot take the results."""
    if out.exists() and not out.is_dir():
        raise RecordingError(f"--out {out}", got="a file", expected="a folder")
    bag = out / _BAG
    if bag.exists() and (not bag.is_dir() or any(bag.iterdir())):
        raise RecordingError(
            f"--out {out}",
            got="a folder with the estimates of an earlier replay",
            expected="a folder without estimates/",
            remedy="choose another --out, or remove that one",
        )


def _files(given: argparse.Namespace) -> dict[str, str]:
    named = {"parameter file": given.params_file, "result file": given.result_file}
    chosen = {name: str(path) for name, path in named.items() if path is not None}
    inverted = {"efforts inverted": ", ".join(given.invert_effort)} if given.invert_effort else {}
    return {**chosen, **inverted}


def _print(replay: ArmReplay, opened: OpenedLog) -> None:
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console = Console(soft_wrap=True, width=_PIPED)
    table = Table(title="the arm by its filter")
    table.add_column("joint", no_wrap=True)
    for name in column_names():
        table.add_column(name, justify="right")
    for one in replay.summary:
        table.add_row(one.joint, *("-" if "nan" in cell else cell for cell in cells(one)))
    console.print(table)
    for name, count in replay.counts.items():
        if count:
            announce(f"{name}: {count}")
    for warning in opened.warnings:
        announce(f"warning: {warning}")
    for finding in replay.findings:
        announce(f"{finding.level}: {finding}")
