"""config/sros2/youbot.policy.xml has the structure SROS2 asks for and allows what the nodes do, and no more."""

from __future__ import annotations

import importlib
import importlib.util
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT

pytest.importorskip("rclpy")

import rclpy  # noqa: E402
from node_classes import CLASSES, VARIANTS  # noqa: E402
from rclpy.node import Node  # noqa: E402

from youbot_dynamics.nodes.recorder import Recorder  # noqa: E402

_spec = importlib.util.spec_from_file_location("sros2_policy", ROOT / "scripts" / "sros2_policy.py")
assert _spec is not None and _spec.loader is not None
policy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(policy)

Right = tuple[str, str, str]  # list, permission, full name
# Children and attributes of each element, as sros2/policy/schemas/policy.xsd of version 0.2.0 has them.
CHILDREN = {
    "policy": {"enclaves"},
    "enclaves": {"enclave"},
    "enclave": {"profiles"},
    "profiles": {"profile"},
    "profile": {"topics", "services", "actions"},
    "topics": {"topic"},
    "services": {"service"},
    "actions": {"action"},
}
NEEDED = {"policy": {"version"}, "enclave": {"path"}, "profile": {"ns", "node"}}
RIGHTS = {"topics": {"publish", "subscribe"}, "services": {"reply", "request"}, "actions": {"call", "execute"}}


def root() -> ElementTree.Element:
    return ElementTree.parse(policy.POLICY).getroot()


def full(name: str, node: str) -> str:
    """A name as the graph shows it, of a node without namespace."""
    return f"/{node}/{name[2:]}" if name.startswith("~/") else name if name.startswith("/") else f"/{name}"


def allowed(node: str, enclave: str) -> set[Right]:
    """What the profile of a node in an enclave allows."""
    profiles = root().findall(f".//enclave[@path='{enclave}']/profiles/profile[@node='{node}']")
    assert len(profiles) == 1, f"{node} in {enclave}"
    return {
        (group.tag, right, full(str(entry.text), node))
        for group in profiles[0]
        for right, verdict in group.attrib.items()
        if verdict == "ALLOW"
        for entry in group
    }


def asked(node: Node) -> Iterator[Right]:
    """What a running node publishes, hears, serves and calls."""
    name, space = node.get_name(), node.get_namespace()
    for group, right, ask in (
        ("topics", "publish", node.get_publisher_names_and_types_by_node),
        ("topics", "subscribe", node.get_subscriber_names_and_types_by_node),
        ("services", "reply", node.get_service_names_and_types_by_node),
        ("services", "request", node.get_client_names_and_types_by_node),
    ):
        for topic, _ in ask(name, space):
            yield group, right, topic


def rights_of(node: str, parameter: str, folder: Path) -> set[Right]:
    rclpy.init(args=["--ros-args", "-p", parameter] if parameter else [])
    try:
        if node == "recorder":
            made: Node = Recorder(folder / "bag", ())
        else:
            made = getattr(importlib.import_module(f"youbot_dynamics.nodes.{node}"), CLASSES[node])()
        try:
            return set(asked(made))
        finally:
            if node == "recorder":
                made.stop()  # type: ignore[attr-defined]
            made.destroy_node()
    finally:
        rclpy.shutdown()


def test_the_policy_is_that_of_the_interface_table() -> None:
    assert policy.POLICY.read_text(encoding="utf-8") == policy.page(), "run scripts/sros2_policy.py"


def test_the_policy_has_the_structure_of_the_schema() -> None:
    top = root()
    assert top.tag == "policy" and top.attrib == {"version": "0.2.0"}
    for element in top.iter():
        children = {child.tag for child in element}
        if element.tag in CHILDREN:
            assert children and children <= CHILDREN[element.tag], element.tag
            assert not (element.text or "").strip()
        else:
            assert not children and (element.text or "").strip()
        if element.tag in RIGHTS:
            assert element.attrib and set(element.attrib) <= RIGHTS[element.tag]
            assert set(element.attrib.values()) == {"ALLOW"}
        else:
            assert set(element.attrib) == NEEDED.get(element.tag, set()), element.tag
    paths = [enclave.attrib["path"] for enclave in top.iter("enclave")]
    assert len(set(paths)) == len(paths)


def test_only_the_controller_and_its_guard_may_command_the_driver() -> None:
    enclaves = root().iter("enclave")
    commanders = {
        profile.attrib["node"]
        for enclave in enclaves
        for profile in enclave.iter("profile")
        for group in profile.iter("topics")
        if group.attrib.get("publish") and "driver/cmd_vel" in [topic.text for topic in group]
    }
    assert commanders == {"base_controller", "stop_base"}


@pytest.mark.ros
@pytest.mark.parametrize("node", [*CLASSES, "recorder"])
def test_the_policy_covers_what_a_running_node_asks_for(node: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = set().union(*(rights_of(node, p, tmp_path / f"{k}") for k, p in enumerate(("", *VARIANTS.get(node, ())))))
    assert any(name.endswith("/get_parameters") for _, _, name in wanted), "the graph is not there yet"
    process = next((p for p, nodes in policy.SHARED.items() if node in nodes), node)
    for enclave in (policy.ENCLAVE, f"{policy.ENCLAVE}/{process}"):
        rights = allowed(node, enclave)
        everything = ("topics", "subscribe", "/*") in rights
        missing = {w for w in wanted - rights if not (everything and w[:2] == ("topics", "subscribe"))}
        assert not missing, f"{enclave}: {sorted(missing)}"
