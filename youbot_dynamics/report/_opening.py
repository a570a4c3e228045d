"""What the report of an identification opens with: what was found, how far to trust it, what to do next."""

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
_TILES = 5  # numbers
_DIFFERENCE = "_error_"  # in the name of what a wheel differs by from the mean


def opening(result: Result, warnings: Sequence[str], result_file: str) -> dict[str, Any]:
    """The three tiles: `found`, a list of findings; `trust`, whether and why; `next`, words and a command.

    Args:
        result: of the identification.
        warnings: about the data.
        result_file: path of result.yaml, for the command.
    """
    trusted, why = _trust(result, warnings)
    words, command = _next(result, result_file)
    return {"found": _found(result), "trusted": trusted, "why": why, "words": words, "command": command}


def _found(result: Result) -> list[Finding]:
    """Up to five identified parameters of the robot: its effective delays, then one of each stage in turn."""
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
    """Whether the intervals can be taken at their word, and the one reason."""
    count = len(result.sources)
    if not any(one.usable for one in result.findings):
        return False, "Nothing was identified. The verdicts below say what each value needs."
    if warnings:
        return False, f"There {'are' if len(warnings) > 1 else 'is'} {_number(warnings)} about the data: read first."
    if count <= 1:
        return False, f"One drive shows no differences between drives. {ENOUGH} drives make the intervals trustworthy."
    if count < ENOUGH:
        return False, f"{count} drives show the scatter between drives only roughly. {ENOUGH} are enough."
    return True, f"The intervals include the scatter between {count} drives, and no warning was raised."


def _number(warnings: Sequence[str]) -> str:
    return f"{len(warnings)} warnings" if len(warnings) > 1 else "one warning"


def _next(result: Result, result_file: str) -> tuple[str, str]:
    """What to do next, and the command for it."""
    if any(one.usable and one.is_parameter for one in result.findings):
        command = f"youbot bringup --robot real --result-file {shlex.quote(result_file)}"
        return "Drive with these values (--robot mock for the simulated robot):", command
    return "Record a drive that moves every axis (youbot record beside it):", "youbot play excitation"


def predicted(curves: Sequence[FitCurve]) -> str:
    """What plots of a held-out prediction show, in one sentence; empty where there are none."""
    if not curves:
        return ""
    squares = [float(np.nanmean((one.measured - one.modelled) ** 2)) for one in curves if one.unit == "m"]
    over = max(float(one.time[-1] - one.time[0]) for one in curves)
    return (
        "The model was fitted to the first half of the drive only, and then predicts the second half from the commands "
        f"alone: after {over:.0f} s without any measurement it is off by {1e3 * np.sqrt(sum(squares)):.3g} mm (RMS)."
    )
