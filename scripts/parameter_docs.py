"""Write docs/parameters.md from the parameter tables of the nodes; `--check` only compares."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from youbot_dynamics.files import write_atomically
from youbot_dynamics.parameter_file import format_value
from youbot_dynamics.parameters import Parameter
from youbot_dynamics.robot import robot_table
from youbot_dynamics.simulation.faults import FOREVER, KINDS, FaultKind
from youbot_dynamics.simulation.truth import truth_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "parameters.md"
NODES = (
    "base_controller",
    "odometry",
    "trajectory_tracker",
    "arm_ekf",
    "identification",
    "mock_youbot",
    "stop_base",
    "check_driver",
)
HEADER = "| name | default | range | unit | change | description | source |\n|---|---|---|---|---|---|---|\n"


def row(parameter: Parameter) -> str:
    """One line of a table."""
    bounds = ", ".join(parameter.choices) or parameter.range_text().split(" [")[0]
    change = "relaunch" if parameter.read_only else "while running"
    cells = (parameter.name, format_value(parameter.default), bounds, parameter.unit, change)
    return "| " + " | ".join((f"`{cells[0]}`", *cells[1:], parameter.description, parameter.source)) + " |"


def option(parameter: Parameter) -> str:
    """One option of a fault, with its default."""
    shown = "must be given" if parameter.default == "" else format_value(parameter.default).strip("'")
    shown = "for ever" if parameter.default == FOREVER else f"{shown} {parameter.unit}".removesuffix(" 1").strip()
    return f"`{parameter.name}` ({shown}): {parameter.description}"


def fault_row(kind: FaultKind) -> str:
    """One line of the table of faults."""
    return f"| `{kind.name}` | {kind.description} | {' '.join(option(p) for p in kind.options)} |"


def faults() -> str:
    """The section on the parameter `fault`."""
    return "\n".join(
        [
            "## Faults of `mock_youbot`: parameter `fault`\n",
            "One or more faults, separated by semicolons, each a name and its options. An empty text ends them:\n",
            '    ros2 param set /mock_youbot fault "frozen_encoder joint=wheel_joint_fl after=2; lost share=0.1"\n',
            "Each also has the options `after` (0 s, start after the setting) and `lasting` (for ever, duration).\n",
            "| name | what happens | options (default) |\n|---|---|---|",
            *(fault_row(kind) for kind in KINDS),
            "",
        ]
    )


def page() -> str:
    """The whole page."""
    parts = [
        "# Parameters\n",
        "Generated from the tables in the code by `scripts/parameter_docs.py`; a test compares them.",
        "A node that finds an unknown name ends, and its message suggests the nearest known name.",
        "The defaults are those of the KUKA youBot. The column *change* says whether a value can change while the node",
        "runs or needs a restart (`relaunch`). In the column *source*, `chosen` marks an assumption of this package.\n",
        "## The robot: every node, section `/**`\n",
        HEADER + "\n".join(row(parameter) for parameter in robot_table()) + "\n",
    ]
    for name in NODES:
        table = importlib.import_module(f"youbot_dynamics.nodes.{name}").TABLE
        parts += [f"## `{name}`: section `/**/{name}`\n", HEADER + "\n".join(row(p) for p in table) + "\n"]
    parts += [
        faults(),
        "## The true values of the twin: `mock_youbot`, file config/mock.yaml\n",
        "Each is a list: nominal value (random seed 0), lowest and highest value (other seeds choose between them).\n",
        HEADER + "\n".join(row(parameter) for parameter in truth_table()) + "\n",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page() else 1)
    write_atomically(PAGE, page())
