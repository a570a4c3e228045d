"""Layouts of RViz, Foxglove and PlotJuggler show topics that our nodes publish, with their types, joints and fields."""

from __future__ import annotations

import ast
import importlib
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

import youbot_dynamics.nodes
from youbot_dynamics.resources import config_path, urdf_path
from youbot_dynamics.robot import load_robot

# Standard topics of others: robot_state_publisher's, and its types.
OTHERS = {"robot_description": "std_msgs/msg/String", "tf": "tf2_msgs/msg/TFMessage"}
DISPLAYS = {
    "RobotModel": "std_msgs/msg/String",
    "Odometry": "nav_msgs/msg/Odometry",
    "PointStamped": "geometry_msgs/msg/PointStamped",
}
DRIVER = load_robot().driver
NAMES = {"trajectory_tracker/error": ("x", "y", "yaw"), "wheel_commands": DRIVER.wheel_joints}
NAMES |= {"wheel_normal_forces": DRIVER.wheel_joints, "joint_states": (*DRIVER.wheel_joints, *DRIVER.arm_joints)}
ARM_TOPIC = re.compile(r"arm_1/(estimated_joint_states|friction|torque_available)")


@cache
def published() -> dict[str, str]:
    """Patterns of the topics that our nodes publish, with their types, out of the code of the nodes."""
    found: dict[str, str] = {}
    for path in sorted(Path(youbot_dynamics.nodes.__path__[0]).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [call.args[0].value for call in calls_of(tree, {"__init__"}) if isinstance(call.args[0], ast.Constant)]
        makers = makers_of_publishers(tree)
        for call in calls_of(tree, set(makers)):
            kind, topic = makers[called(call)](call)
            if kind and isinstance(topic, (ast.Constant, ast.JoinedStr)):
                found[pattern(topic).replace("~", nodes[0] if nodes else "~")] = kind
    return found


def called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def calls_of(tree: ast.AST, names: set[str]) -> list[ast.Call]:
    """Calls, with arguments, of functions or methods of these names."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if called(call) in names and call.args]


Maker = Callable[[ast.Call], tuple[str, ast.expr | None]]


def makers_of_publishers(tree: ast.Module) -> dict[str, Maker]:
    """Functions that make a publisher, as functions from their call to the type and the topic.

    Beside create_publisher these are the functions of the file that hand their own arguments on to such a one.
    """
    types = dict(message_types(tree))

    def maker(kind_at: int | str, topic_at: int) -> Maker:
        def read(call: ast.Call) -> tuple[str, ast.expr | None]:
            kind = kind_at if isinstance(kind_at, str) else types.get(getattr(call.args[kind_at], "id", ""), "")
            return kind, call.args[topic_at] if topic_at < len(call.args) else None

        return read

    makers = {"create_publisher": maker(0, 1)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for _ in range(3):  # functions that call functions that call such a one are deep enough
        for function in functions:
            names = [argument.arg for argument in function.args.args if argument.arg != "self"]
            for call in calls_of(function, set(makers)):
                kind, topic = makers[called(call)](call)
                if isinstance(topic, ast.Name) and topic.id in names:
                    own = [names.index(a.id) for a in call.args if isinstance(a, ast.Name) and a.id in names]
                    of_kind = kind or next((at for at in own if at != names.index(topic.id)), None)
                    if of_kind is not None:
                        makers[function.name] = maker(of_kind, names.index(topic.id))
    return makers


def message_types(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names by which a file calls messages, and their types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".msg"):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module.removesuffix('.msg')}/msg/{alias.name}"


def pattern(topic: ast.Constant | ast.JoinedStr) -> str:
    """Regular expression of a topic; what is filled in at run time matches one part of a name."""
    if isinstance(topic, ast.Constant):
        return re.escape(topic.value).lstrip("/").replace(r"\~", "~")
    return "".join(re.escape(p.value) if isinstance(p, ast.Constant) else "[a-z0-9_]+" for p in topic.values)


def type_of(topic: str) -> str:
    name = topic.lstrip("/")
    types = {kind for known, kind in published().items() if re.fullmatch(known, name)} | {OTHERS.get(name, "")} - {""}
    assert types, f"nobody publishes {topic}"
    (kind,) = types
    return kind


def check_field(kind: str, path: list[str]) -> None:
    """A number of the message type stands at the end of this path of fields."""
    for name in path:
        package, _, message = kind.split("/")
        fields = getattr(importlib.import_module(f"{package}.msg"), message).get_fields_and_field_types()
        assert name in fields, f"{kind} has no field {name}, but {', '.join(fields)}"
        kind = fields[name].replace("/", "/msg/")
    assert kind in ("double", "sequence<double>"), f"{path} is a {kind}"


def joints_of(topic: str) -> tuple[str, ...]:
    name = topic.lstrip("/")
    return NAMES.get(name) or (DRIVER.arm_joints if ARM_TOPIC.fullmatch(name) else ())


def test_the_topics_of_our_nodes_are_found_in_their_code():
    """The oracle of this file: it knows what the contract names."""
    for topic, kind in {
        "odom": "nav_msgs/msg/Odometry",
        "driver/odom": "nav_msgs/msg/Odometry",
        "wheel_commands": "sensor_msgs/msg/JointState",
        "trajectory_tracker/error": "sensor_msgs/msg/JointState",
        "trajectory_tracker/cmd_vel": "geometry_msgs/msg/Twist",
        "arm_1/friction": "sensor_msgs/msg/JointState",
        "arm_1/arm_joint_3/housing_temperature": "sensor_msgs/msg/Temperature",
        "payload": "geometry_msgs/msg/InertiaStamped",
        "tip_over_margin": "std_msgs/msg/Float64",
        "diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
    }.items():
        assert type_of(topic) == kind
    with pytest.raises(AssertionError, match="nobody publishes /odometry"):
        type_of("/odometry")


def rviz() -> dict:
    return yaml.safe_load(config_path("youbot.rviz").read_text(encoding="utf-8"))["Visualization Manager"]


def test_rviz_shows_topics_of_the_right_type_in_frames_there_are():
    shown = {}
    for display in rviz()["Displays"]:
        package, name = display["Class"].split("/")
        assert package == "rviz_default_plugins"
        for key in ("Topic", "Description Topic"):
            if key in display:
                topic = display[key]["Value"]
                assert not topic.startswith("/"), f"{topic} would not follow the namespace"
                assert type_of(topic) == DISPLAYS[name]
                assert display[key]["Reliability Policy"] == "Reliable"
                shown[topic] = display[key]["Durability Policy"]
    assert {"odom", "ground_truth", "robot_description"} <= set(shown)
    assert {topic for topic, durability in shown.items() if durability == "Transient Local"} == {"robot_description"}
    links = {link.attrib["name"] for link in ElementTree.parse(urdf_path("youbot.urdf")).iter("link")}
    assert rviz()["Global Options"]["Fixed Frame"] == "odom"
    assert rviz()["Views"]["Current"]["Target Frame"] in links


def test_rviz_sends_nothing():
    """No tool that publishes: a goal or a pose that nobody hears would only mislead."""
    silent = {"MoveCamera", "Select", "FocusCamera", "Measure"}
    assert {tool["Class"].split("/")[1] for tool in rviz()["Tools"]} <= silent


def foxglove() -> dict:
    return json.loads(config_path("foxglove_youbot.json").read_text(encoding="utf-8"))


def panels_in(layout: str | dict) -> list[str]:
    if isinstance(layout, str):
        return [layout]
    assert layout["direction"] in ("row", "column") and 0 < layout["splitPercentage"] < 100
    return panels_in(layout["first"]) + panels_in(layout["second"])


def test_foxglove_places_every_panel_once():
    assert sorted(panels_in(foxglove()["layout"])) == sorted(foxglove()["configById"])


def test_foxglove_plots_numbers_of_our_topics():
    for name, panel in foxglove()["configById"].items():
        for path in panel.get("paths", []):
            topic, fields = re.fullmatch(r"([a-z0-9_/]+)\.([a-z0-9_.\[\]]+)", path["value"]).groups()
            assert name.startswith("Plot!") and topic.startswith("/")
            kind = type_of(topic)
            check_field(kind, re.sub(r"\[\d+\]", "", fields).split("."))
            index = re.search(r"\[(\d+)\]$", fields)
            assert (index is not None) == (kind == "sensor_msgs/msg/JointState")
            if index is not None:
                # Places in an array hold for messages that always name the same joints in the same order.
                assert topic != "/joint_states" and int(index[1]) < len(joints_of(topic))
            stamped = kind != "std_msgs/msg/Float64"
            assert path["timestampMethod"] == ("headerStamp" if stamped else "receiveTime")


def test_foxglove_shows_the_robot_and_its_health():
    panels = foxglove()["configById"]
    assert type_of(panels["DiagnosticSummary!all"]["topicToRender"]) == "diagnostic_msgs/msg/DiagnosticArray"
    robot = panels["3D!robot"]
    assert type_of(robot["layers"]["urdf"]["topic"]) == "std_msgs/msg/String"
    assert robot["layers"]["grid"]["frameId"] == "odom" and robot["followTf"] == "base_footprint"
    assert all(type_of(topic) for topic in robot["topics"])


def plotjuggler() -> ElementTree.Element:
    return ElementTree.parse(config_path("plotjuggler_youbot.xml")).getroot()


def selected_topics() -> list[str]:
    return plotjuggler().find("Plugins/plugin/selected_topics").attrib["value"].split(";")


def test_plotjuggler_plots_numbers_of_the_topics_it_subscribes_to():
    used = set()
    for curve in plotjuggler().iter("curve"):
        name = curve.attrib["name"]
        topic = max((topic for topic in selected_topics() if name.startswith(f"{topic}/")), key=len)
        used.add(topic)
        path = name.removeprefix(f"{topic}/").split("/")
        kind = type_of(topic)
        if kind == "sensor_msgs/msg/JointState":  # its parser writes TOPIC/JOINT/FIELD
            assert path[0] in joints_of(topic), name
            path = path[1:]
        check_field(kind, path)
    assert used == set(selected_topics())


def test_plotjuggler_compares_every_wheel_and_joint():
    curves = {curve.attrib["name"] for curve in plotjuggler().iter("curve")}
    for wheel in DRIVER.wheel_joints:
        assert {f"/wheel_commands/{wheel}/velocity", f"/joint_states/{wheel}/velocity"} <= curves
    for joint in DRIVER.arm_joints:
        assert {f"/arm_1/friction/{joint}/effort", f"/arm_1/{joint}/winding_temperature/temperature"} <= curves
    assert {f"/trajectory_tracker/error/{axis}/position" for axis in ("x", "y", "yaw")} <= curves


def test_plotjuggler_can_rebuild_its_docks():
    """It trusts `count` and `sizes`: one size for each child, their sum 1."""
    splitters = list(plotjuggler().iter("DockSplitter"))
    assert splitters
    for splitter in splitters:
        sizes = [float(size) for size in splitter.attrib["sizes"].split(";")]
        assert len(splitter) == int(splitter.attrib["count"]) == len(sizes)
        assert sum(sizes) == pytest.approx(1.0, abs=1e-3)
        assert splitter.attrib["orientation"] in ("|", "-")
        assert {child.tag for child in splitter} <= {"DockSplitter", "DockArea"}
