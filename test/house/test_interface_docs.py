"""docs/interface.md lists every topic and service of every node, and no other: nodes are started and asked."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import pytest
import rclpy
from node_classes import CLASSES, VARIANTS
from rclpy.node import Node
from repository import ROOT

from youbot_dynamics.nodes.identification import TOPICS

PAGE = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "youbot_dynamics" / "nodes").glob("*.py"))
EVERYWHERE = ("/rosout", "/parameter_events")

Row = tuple[str, str, str]  # kind, name, type

pytestmark = pytest.mark.ros


def documented(node: str) -> dict[Row, str]:
    """Rows of a node's table, each with its condition."""
    section = PAGE.split(f"## `{node}`")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    assert lines, node
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {(kind, name, type_): only for name, kind, type_, only, _ in cells}


def of(node: Node) -> Iterator[Row]:
    """What a node has, in the words of the page."""
    own = f"/{node.get_name()}"
    faces = {
        "out": node.get_publisher_names_and_types_by_node,
        "in": node.get_subscriber_names_and_types_by_node,
        "service": node.get_service_names_and_types_by_node,
    }
    for kind, ask in faces.items():
        for name, types in ask(node.get_name(), node.get_namespace()):
            if name in EVERYWHERE or types[0].startswith(("rcl_interfaces", "type_description")):
                continue
            short = f"~{name.removeprefix(own)}" if name.startswith(f"{own}/") else name.removeprefix("/")
            short = f"/{short}" if short in ("diagnostics", "clock", "tf") else short
            short = re.sub(r"arm_joint_\d", "<joint>", short)
            yield kind, short, types[0].replace("/msg/", "/").replace("/srv/", "/")


def found(node: str, parameter: str = "") -> set[Row]:
    """What a node has that is started with a parameter."""
    arguments = ["--ros-args", "-p", parameter] if parameter else []
    rclpy.init(args=arguments)
    try:
        made = getattr(importlib.import_module(f"youbot_dynamics.nodes.{node}"), CLASSES[node])()
        try:
            return set(of(made))
        finally:
            made.destroy_node()
    finally:
        rclpy.shutdown()


@pytest.mark.parametrize("node", CLASSES)
def test_page_and_node_agree(node: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = documented(node)
    usual = found(node)
    with_parameters = usual.union(*(found(node, parameter) for parameter in VARIANTS.get(node, ())))
    assert not with_parameters - set(rows), "missing in docs/interface.md"
    always = {row for row, only in rows.items() if not only}
    assert always <= usual | {row for row in always if row[0] in ("action", "calls")}, always - usual
    for kind, name, type_ in set(rows) - with_parameters:
        # What needs another package, a service call or a peer: at least the code knows the name.
        assert rows[kind, name, type_], f"{name} is not there"
        assert name.removeprefix("~/").rsplit("/", 1)[-1].removesuffix("_command") in SOURCES, name


def test_every_node_of_the_package_has_a_section() -> None:
    nodes = re.search(r"NODES = \(([^)]*)\)", (ROOT / "setup.py").read_text(encoding="utf-8"))
    assert nodes is not None
    assert set(re.findall(r'"(\w+)"', nodes.group(1))) - {"recorder"} <= set(CLASSES)
    assert set(re.findall(r"^## `(\w+)`", PAGE, re.M)) == set(CLASSES)


def test_identification_listens_to_what_the_page_says() -> None:
    told = {name for kind, name, _ in documented("identification") if kind == "in"}
    assert told == {*TOPICS, "ground_truth"}
