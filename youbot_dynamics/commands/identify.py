"""`youbot identify`: recordings in, result.yaml, result.json and report.html out."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from youbot_dynamics.commands.findings import print_findings
from youbot_dynamics.commands.progress import announce, steps
from youbot_dynamics.errors import ParameterError, RecordingError
from youbot_dynamics.identification.pipeline import compare, identify, write_outputs
from youbot_dynamics.identification.reading.fleet import fleet_worker
from youbot_dynamics.identification.reading.opened import Options
from youbot_dynamics.identification.reading.topics import ROLES
from youbot_dynamics.identification.result import result_json
from youbot_dynamics.identification_stages import chosen_stages
from youbot_dynamics.robot import load_robot

_DONE, _NOT_IDENTIFIABLE = 0, 3


def identify_command(given: argparse.Namespace) -> int:
    """Run the verb; 3 where something asked for is not identifiable.

    Raises:
        YoubotDynamicsError: a recording, option or folder that cannot be used.
    """
    only = chosen_stages("--only", given.only)
    _check_out(given.out)
    options = Options(_topics(given.topic), given.columns, given.pose_topic, _spans(given.motors_off))
    robot = load_robot(params_file=given.params_file)
    with steps("youbot identify") as step, fleet_worker(given.bags, given.scheduler, step.count) as worker:
        found = identify(given.bags, robot, options, step, only=only, worker=worker)
        better = found.result.applied_to(robot)
        if found.paths:
            step("simulating the stabilised drives")
        comparisons = [compare(name, [path], better) for name, path in found.paths.items()]
        step("writing the report")
        names = ", ".join(path.name for path in given.bags)
        write_outputs(given.out, found, comparisons, f"Identification of {names}")
    if given.json:
        sys.stdout.write(result_json(found.result))
    else:
        print_findings(found.result)
        for warning in found.warnings:
            announce(f"warning: {warning}")
        for note in found.notes:
            announce(f"note: {note}")
        announce(f"wrote {given.out / 'result.yaml'}, result.json and report.html")
    return _DONE if found.result.complete else _NOT_IDENTIFIABLE


def _check_out(folder: Path) -> None:
    """Refuse a folder that cannot be made before anything is worked out for it.

    Raises:
        RecordingError: a file is where it, or a folder above it, should be; or one that must not be written.
    """
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        got = "a file" if there == folder else f"a file, {there}, in place of a folder above it"
        raise RecordingError(f"--out {folder}", got=got, expected="a folder", remedy="name another one")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RecordingError(
            f"--out {folder}",
            got=f"a folder that must not be written: {there}",
            expected="a folder to write into",
            remedy="change its permissions, or name another one",
        )


def _topics(given: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for text in given:
        role, _, name = text.partition("=")
        if role not in ROLES or not name:
            raise ParameterError(f"--topic {text}", expected=f"ROLE=NAME, ROLE one of {', '.join(ROLES)}")
        chosen[role] = name
    return chosen


def _spans(given: Sequence[str]) -> tuple[tuple[float, float], ...]:
    """Spans of --motors-off BEGIN,END [s]."""
    spans = []
    for text in given:
        begin, _, end = text.partition(",")
        try:
            span = float(begin), float(end)
        except ValueError:
            span = math.nan, math.nan
        if not 0.0 <= span[0] < span[1] < math.inf:
            raise ParameterError(
                f"--motors-off {text}", expected="BEGIN,END in seconds after the first wheel state, BEGIN before END"
            )
        spans.append(span)
    return tuple(spans)
