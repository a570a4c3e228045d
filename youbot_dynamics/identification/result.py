"""What was identified, as a ROS parameter file and as JSON with intervals, verdicts and provenance."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from youbot_dynamics import __version__
from youbot_dynamics.identification.delay import DelayEstimate
from youbot_dynamics.parameter_file import write_atomically, write_parameters
from youbot_dynamics.parameters import Value

SCHEMA_VERSION = 1

# Channels of the base and the parameters their delays belong to.
PARAMETER_OF_CHANNEL = {
    "x": "robot.base.delay.effective_x",
    "y": "robot.base.delay.effective_y",
    "yaw": "robot.base.delay.effective_yaw",
}


@dataclass(frozen=True)
class Source:
    """A recording that was read.

    Args:
        path: as given.
        sha256: of its data.
        clock: which clock the times of its signals are of.
        signals: topics or columns that were compared.
        robot_id: as recorded, "" if it does not say.
        lost: what could not be read of it, "" for nothing.
    """

    path: str
    sha256: str
    clock: str
    signals: str
    robot_id: str
    lost: str


@dataclass(frozen=True)
class Result:
    """Everything one identification found.

    Args:
        robot_id: of the robot it holds for.
        delays: one estimate a channel.
        sources: the recordings.
    """

    robot_id: str
    delays: tuple[DelayEstimate, ...]
    sources: tuple[Source, ...]

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for could be identified."""
        return all(delay.identified for delay in self.delays)

    def parameters(self) -> dict[str, Value]:
        """Parameters for a relaunch: only what was identified, and the robot's name."""
        values: dict[str, Value] = {"robot.robot_id": self.robot_id}
        for delay in self.delays:
            if delay.identified and delay.channel in PARAMETER_OF_CHANNEL:
                values[PARAMETER_OF_CHANNEL[delay.channel]] = float(delay.value)
        return values

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that are not finite become null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "robot_id": self.robot_id,
            "parameters": [_entry(delay) for delay in self.delays],
            "sources": [vars(source) for source in self.sources],
            "versions": versions(),
        }


def versions() -> Mapping[str, str]:
    """Versions that could matter when a result is compared with another one."""
    return {
        "youbot_dynamics": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def _entry(delay: DelayEstimate) -> dict[str, Any]:
    return {
        "name": PARAMETER_OF_CHANNEL.get(delay.channel, f"delay.effective_{delay.channel}"),
        "value": _finite(delay.value),
        "unit": "s",
        "standard_error": _finite(delay.standard_error),
        "interval_95": [_finite(bound) for bound in delay.interval],
        "verdict": delay.verdict,
        "gain": _finite(delay.gain),
        "residual": _finite(delay.residual),
        "samples": delay.samples,
        "valid_for": f"commands of up to {delay.fastest:.3g} in SI units of the channel" if delay.samples else "",
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def write_result(folder: Path, result: Result) -> None:
    """Write result.yaml and result.json into an existing folder, each whole or not at all."""
    comments = [
        f"Identified by youbot_dynamics {__version__}; intervals, verdicts and sources: result.json.",
        "Use: youbot bringup --result-file result.yaml, or ros2 launch ... result_file:=result.yaml",
    ]
    write_parameters(folder / "result.yaml", "/**", result.parameters(), comments)
    text = json.dumps(result.as_dict(), indent=2, allow_nan=False)
    write_atomically(folder / "result.json", text + "\n")
