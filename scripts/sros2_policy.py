"""Write config/sros2/youbot.policy.xml from the tables of docs/interface.md; `--check` only compares.

A test compares those tables with the nodes, and what the policy allows with what each node asks for when it runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
INTERFACE = ROOT / "docs" / "interface.md"
POLICY = ROOT / "config" / "sros2" / "youbot.policy.xml"

ENCLAVE = "/youbot_dynamics"
# Nodes that share a process share its enclave; every other node has one of its own name.
SHARED = {"odometry": ("odometry", "trajectory_tracker")}
_ARM_JOINTS = tuple(f"arm_joint_{k}" for k in range(1, 6))
# rclpy gives these to every node: log, parameter events, time, parameter and type description services.
_PUBLISHED = ("/rosout", "/parameter_events")
_HEARD = ("/clock",)
_SERVED = tuple(
    f"~/{name}"
    for name in (
        "describe_parameters",
        "get_parameter_types",
        "get_parameters",
        "get_type_description",
        "list_parameters",
        "set_parameters",
        "set_parameters_atomically",
    )
)
_OF_KIND = {  # kind in the table: list, permission, element
    "out": ("topics", "publish", "topic"),
    "in": ("topics", "subscribe", "topic"),
    "service": ("services", "reply", "service"),
    "calls": ("services", "request", "service"),
    "action": ("actions", "call", "action"),
}
# The recorder hears what it is told to, and asks these for what belongs into the bag's metadata.
_RECORDER = (
    ("in", "/*"),
    *(
        ("calls", f"{node}/{service}")
        for node in ("base_controller", "odometry", "trajectory_tracker")
        for service in ("list_parameters", "get_parameters")
    ),
)


class Entry(NamedTuple):
    """One thing a node may do.

    Attributes:
        kind: of the table: out, in, service, calls or action.
        name: as the table writes it: relative, absolute or behind `~/`.
    """

    kind: str
    name: str


def interface() -> dict[str, list[Entry]]:
    """What each node may do, by the tables of docs/interface.md; placeholders filled in."""
    sections = re.split(r"^## ", INTERFACE.read_text(encoding="utf-8"), flags=re.M)[1:]
    nodes: dict[str, list[Entry]] = {}
    for section in sections:
        name = section.split("`")[1]
        rows = [[cell.strip().strip("`") for cell in line.split("|")[1:3]] for line in section.splitlines()]
        entries = [Entry(cells[1], cells[0]) for cells in rows if len(cells) == 2 and cells[1] in _OF_KIND]
        nodes[name] = [
            Entry(entry.kind, entry.name.replace("<joint>", joint))
            for entry in entries
            for joint in (_ARM_JOINTS if "<joint>" in entry.name else ("",))
        ]
    nodes["recorder"] = [Entry(*pair) for pair in _RECORDER]
    return nodes


def permissions(entries: Iterable[Entry]) -> dict[tuple[str, str, str], list[str]]:
    """Names by (list, permission, element), what every node needs included."""
    allowed: dict[tuple[str, str, str], set[str]] = {
        _OF_KIND["out"]: set(_PUBLISHED),
        _OF_KIND["in"]: set(_HEARD),
        _OF_KIND["service"]: set(_SERVED),
    }
    for entry in entries:
        allowed.setdefault(_OF_KIND[entry.kind], set()).add(entry.name)
    return {key: sorted(names) for key, names in allowed.items()}


def _profile(node: str, entries: Iterable[Entry], serves: Iterable[str]) -> list[str]:
    lines = [f'        <profile ns="/" node="{node}">']
    for (group, permission, element), names in permissions(entries).items():
        # The simulated robot serves the action that the arm's player calls.
        right = "execute" if group == "actions" and node in serves else permission
        lines.append(f'          <{group} {right}="ALLOW">')
        lines += [f"            <{element}>{escape(name)}</{element}>" for name in names]
        lines.append(f"          </{group}>")
    return [*lines, "        </profile>"]


def _enclave(path: str, nodes: Iterable[str], table: dict[str, list[Entry]]) -> list[str]:
    profiles = [line for node in nodes for line in _profile(node, table[node], ("mock_youbot",))]
    return [
        f'    <enclave path="{path}">',
        "      <profiles>",
        *profiles,
        "      </profiles>",
        "    </enclave>",
    ]


def page() -> str:
    """The whole policy: one enclave for a whole bringup, and one for each process."""
    table = interface()
    housed = {node for group in SHARED.values() for node in group}
    processes = {**{node: (node,) for node in table if node not in housed}, **SHARED}
    enclaves = _enclave(ENCLAVE, sorted(table), table)
    for process in sorted(processes):
        enclaves += _enclave(f"{ENCLAVE}/{process}", processes[process], table)
    head = "<!-- Written by scripts/sros2_policy.py from docs/interface.md; how to use it: docs/security.md. -->"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, '<policy version="0.2.0">', "  <enclaves>"]
    return "\n".join([*lines, *enclaves, "  </enclaves>", "</policy>", ""])


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if POLICY.is_file() and POLICY.read_text(encoding="utf-8") == page() else 1)
    POLICY.parent.mkdir(parents=True, exist_ok=True)
    POLICY.write_text(page(), encoding="utf-8")
