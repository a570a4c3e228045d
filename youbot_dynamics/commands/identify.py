"""`youbot identify`: recordings in, result.yaml, result.json and report.html out."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

from youbot_dynamics.commands.findings import print_findings
from youbot_dynamics.commands.progress import announce, steps
from youbot_dynamics.errors import IdentificationError, ParameterError, RecordingError
from youbot_dynamics.identification.fleet import fleet_worker
from youbot_dynamics.identification.opened import Options
from youbot_dynamics.identification.pipeline import compare, identify, write_outputs
from youbot_dynamics.identification.result import result_json
from youbot_dynamics.identification.topics import ROLES
from youbot_dynamics.identification_stages import STAGES
from youbot_dynamics.robot import load_robot

_DONE, _NOT_IDENTIFIABLE = 0, 3


def identify_command(given: argparse.Namespace) -> int:
    """Run the verb; 3 where something asked for is not identifiable.

    Raises:
        YoubotDynamicsError: a recording, option or folder that cannot be used.
    """
    only = tuple(given.only.split(",")) if given.only else ()
    for stage in only:
        if stage not in STAGES:
            raise IdentificationError("--only", got=repr(stage), expected=f"of {', '.join(STAGES)}")
    if given.out.exists() and not given.out.is_dir():
        raise RecordingError(f"--out {given.out}", got="a file", expected="a folder")
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
