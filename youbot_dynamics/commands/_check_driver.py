"""`youbot check-driver`: check the driver against what the nodes expect; print findings and remedies."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.table import Table

from youbot_dynamics.commands._terminal import announce, table_console
from youbot_dynamics.errors import ParameterError, printable
from youbot_dynamics.estimation.driver_check import DriverFinding, Verdict, worst

SHORTEST, LONGEST = 2.0, 120.0  # [s]; 2 s are 100 messages at 50 Hz
_COLOURS = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.ERROR: "red", Verdict.NOT_TOLD: "cyan"}
_CODES = {Verdict.OK: 0, Verdict.WARNING: 0, Verdict.ERROR: 1, Verdict.NOT_TOLD: 3}


def check_driver_command(duration: float, as_json: bool, ros_arguments: Sequence[str]) -> int:
    """Listen for a duration [s], print the findings and return the exit code.

    The code is 0 if nothing is wrong, 1 after an error or an interruption, 3 if something could not be checked.

    Raises:
        ParameterError: the duration or the ROS arguments are invalid.
    """
    if not SHORTEST <= duration <= LONGEST:
        raise ParameterError("--duration", got=f"{duration:g} s", expected=f"{SHORTEST:g} to {LONGEST:g} s")
    from youbot_dynamics.nodes.check_driver import check_once

    findings = check_once(duration, list(ros_arguments), announce)
    if not findings:
        return 1
    if as_json:
        document = [
            {"item": f.item, "verdict": f.verdict.value, "text": f.text, "remedy": f.remedy, "values": dict(f.values)}
            for f in findings
        ]
        print(json.dumps({"verdict": worst(findings).value, "findings": document}, indent=2))
    else:
        _print_table(findings)
    return _CODES[worst(findings)]


def _print_table(findings: Sequence[DriverFinding]) -> None:
    console = table_console(soft_wrap=False)
    table = Table(title="the driver", show_lines=True)
    for column in ("item", "verdict", "seen", "what to do"):
        table.add_column(column, overflow="fold")  # else a long name loses its end
    for finding in findings:
        verdict = f"[{_COLOURS[finding.verdict]}]{finding.verdict.value}[/]"
        table.add_row(finding.item, verdict, _plain(finding.text), _plain(finding.remedy))
    console.print(table)
    counts = {v: sum(f.verdict is v for f in findings) for v in _COLOURS}
    console.print(", ".join(f"{n} {verdict.value}" for verdict, n in counts.items() if n), highlight=False)


def _plain(text: str) -> str:
    return printable(text).replace("[", r"\[")
