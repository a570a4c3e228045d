"""The opening of an identification report: what was found, how far to trust it, and what to do next."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from youbot_dynamics.identification.finding import Finding, FitCurve
from youbot_dynamics.identification.least_squares import ENOUGH
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.stages import STAGES

EFFECTIVE = "robot.base.delay.effective_"
_TILES = 5  # numbers shown
_DIFFERENCE = "_error_"  # in the name of a wheel's deviation from the mean


def opening(result: Result, warnings: Sequence[str], result_file: str) -> dict[str, Any]:
    """Return the three tiles: `found`, a list of findings; `trusted` and `why`; `words` and `command` of the next step.

    Args:
        result: of the identification.
        warnings: about the data.
        result_file: path of result.yaml, for the command.
    """
    trusted, why = _trust(result, warnings)
    words, command = _next(result, result_file)
    return {"found": _found(result), "trusted": trusted, "why": why, "words": words, "command": command}


def _found(result: Result) -> list[Finding]:
    """Choose up to five identified robot parameters: the effective delays, then one of each stage in turn."""
    parameters = [
        one
        for one in result.findings
        if one.identified and one.is_parameter and not one.is_part_of_delay and _DIFFERENCE not in one.name
    ]
    first = [one for one in parameters if one.name.startswith(EFFECTIVE)]
    turns = deque(deque(one for one in result.of_stage(stage) if one in parameters) for stage in STAGES)
    while turns and len(first) < _TILES:
        stage = turns.popleft()
        if stage:
            one = stage.popleft()
            first += [one] if one not in first else []
            turns.append(stage)
    return first[:_TILES]


def _trust(result: Result, warnings: Sequence[str]) -> tuple[bool, str]:
    """Whether the intervals are trustworthy, and the main reason."""
    count = len(result.sources)
    if not any(one.usable for one in result.findings):
        return False, "Nothing was identified. The verdicts below state what each value needs."
    if warnings:
        return False, f"Read the {_number(warnings)} about the data below first."
    if count <= 1:
        return False, f"One drive cannot show the scatter between drives. Record at least {ENOUGH} drives."
    if count < ENOUGH:
        return False, f"{count} drives show the scatter between drives only roughly. Record at least {ENOUGH} drives."
    return True, f"The intervals include the scatter between {count} drives, and no warning was raised."


def _number(warnings: Sequence[str]) -> str:
    return f"{len(warnings)} warnings" if len(warnings) > 1 else "warning"


def _next(result: Result, result_file: str) -> tuple[str, str]:
    """Return the next step in words, and its command."""
    if any(one.usable and one.is_parameter for one in result.findings):
        command = f"youbot bringup --robot real --result-file {shlex.quote(result_file)}"
        return "Drive with these values (--robot mock for the simulated robot):", command
    return "Drive every axis with this command, with youbot record in a second terminal:", "youbot play excitation"


def predicted(curves: Sequence[FitCurve]) -> str:
    """Describe the plots of a held-out prediction in one sentence; "" if there are none."""
    if not curves:
        return ""
    squares = [float(np.nanmean((one.measured - one.modelled) ** 2)) for one in curves if one.unit == "m"]
    over = max(float(one.time[-1] - one.time[0]) for one in curves)
    return (
        "The model is fitted to the first half of the drive and predicts the second half from the commands alone. "
        f"Over these {over:.0f} s without measurements, the RMS position error is {1e3 * np.sqrt(sum(squares)):.3g} mm."
    )
