"""`youbot identify`: recordings in, result.yaml, result.json and report.html out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from math import isfinite

from rich.console import Console
from rich.table import Table

from youbot_dynamics.commands.progress import announce, steps
from youbot_dynamics.errors import IdentificationError, ParameterError, RecordingError
from youbot_dynamics.identification.delay import DelayEstimate
from youbot_dynamics.identification.pipeline import Options, compare, identify, with_delays, write_outputs
from youbot_dynamics.identification.topics import ROLES
from youbot_dynamics.identification_stages import STAGES
from youbot_dynamics.robot import load_robot

_DONE, _NOT_IDENTIFIABLE = 0, 3


def identify_command(given: argparse.Namespace) -> int:
    """Run the verb; 3 where something asked for is not identifiable.

    Raises:
        YoubotDynamicsError: a recording, option or folder that cannot be used.
    """
    for stage in given.only.split(","):
        if stage not in STAGES:
            raise IdentificationError("--only", got=repr(stage), expected=f"of {', '.join(STAGES)}")
    if given.out.exists() and not given.out.is_dir():
        raise RecordingError(f"--out {given.out}", got="a file", expected="a folder")
    options = Options(_topics(given.topic), given.columns)
    robot = load_robot(params_file=given.params_file)
    with steps("youbot identify") as step:
        found = identify(given.bags, robot, options, step)
        better = with_delays(robot, found.result.delays)
        step("simulating the stabilised drives")
        comparisons = [compare(name, [path], better) for name, path in found.paths.items()]
        step("writing the report")
        names = ", ".join(path.name for path in given.bags)
        write_outputs(given.out, found, comparisons, f"Identification of {names}")
    if given.json:
        json.dump(found.result.as_dict(), sys.stdout, indent=2)
        print()
    else:
        print_delays(found.result.delays)
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


def print_delays(delays: Sequence[DelayEstimate]) -> None:
    """Print the delays with their intervals."""
    table = Table(
        title="effective delay in ms: dead time, lag and the share of friction",
        caption="interval: the scatter within the recording; on faster or slower drives friction counts differently",
    )
    for column in ("channel", "delay", "95 % interval", "gain", "verdict"):
        table.add_column(column, justify="left" if column in ("channel", "verdict") else "right")
    for delay in delays:
        low, high = delay.interval
        known = isfinite(delay.value)
        table.add_row(
            delay.channel,
            f"{1e3 * delay.value:.2f}" if known else "-",
            f"{1e3 * low:.2f} to {1e3 * high:.2f}" if isfinite(low) else "-",
            f"{delay.gain:.3f}" if known else "-",
            delay.verdict,
        )
    Console(soft_wrap=True).print(table)
