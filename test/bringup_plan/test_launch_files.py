"""What the launch files make of their arguments and of the end of a process, where launch itself is not installed."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest
from launch_files import declared, flat, loaded, of_kind, started

from youbot_dynamics.bringup_plan import ARGUMENTS, IDENTIFY_ARGUMENTS, BringupOptions, Process, plan

RUNS, ENDS = SimpleNamespace(is_shutdown=False), SimpleNamespace(is_shutdown=True)
OPTIONAL = Process("arm_ekf", ("arm_ekf",), (), vital=False, restarts=1)


def texts(actions) -> list[str]:
    return [named["msg"] for named in of_kind(actions, "LogInfo")]


@pytest.mark.parametrize(("name", "arguments"), [("bringup", ARGUMENTS), ("identify", IDENTIFY_ARGUMENTS)])
def test_arguments_are_those_of_the_plan(name, arguments):
    assert declared(loaded(f"{name}.launch.py")) == {argument.name: argument.default for argument in arguments}


@pytest.mark.parametrize(
    "values", [{}, {"robot": "real", "stabilize": "false"}, {"robot": "mujoco", "viewer": "true"}, {"passive": "true"}]
)
def test_a_bringup_starts_what_the_plan_says(values):
    nodes = of_kind(started(loaded("bringup.launch.py"), **values), "Node")
    processes = plan(BringupOptions.read(values))
    assert [node["executable"] for node in nodes] == [process.executable for process in processes]
    assert [tuple(node["ros_arguments"]) for node in nodes] == [process.ros_arguments for process in processes]
    assert [node["sigterm_timeout"] for node in nodes] == ["4.0" if process.last else "1.0" for process in processes]


def test_who_can_command_the_real_robot_is_said_in_a_line():
    (line,) = (line for line in texts(started(loaded("bringup.launch.py"), robot="real")) if "docs/security.md" in line)
    assert "can command this robot" in line


def test_a_bringup_takes_a_pushed_namespace():
    nodes = of_kind(started(loaded("bringup.launch.py"), pushed="/fleet", namespace="yb1"), "Node")
    assert all("__ns:=/fleet/yb1" in node["ros_arguments"] for node in nodes)


def test_what_cannot_be_used_is_told_in_a_line():
    with pytest.raises(RuntimeError, match="frame_prefix.*gazebo"):
        started(loaded("bringup.launch.py"), robot="gazebo", frame_prefix="a/")


def test_a_folder_of_the_sockets_that_is_not_ours_alone_is_told_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / f"youbot_dynamics_{os.getuid()}").touch()
    with pytest.raises(RuntimeError, match=f"folder of the local sockets: got {tmp_path}.*set TMPDIR"):
        started(loaded("bringup.launch.py"))
    started(loaded("bringup.launch.py"), passive="true")  # it has no stop_base


def test_the_first_vital_process_that_ends_ends_the_others_of_its_bringup_once():
    nodes = [action for action in started(loaded("bringup.launch.py")) if type(action).__name__ == "Node"]
    first, second = [node for node in nodes if node.named["executable"] in ("base_controller", "odometry")]
    assert first.named["on_exit"](SimpleNamespace(action=first), ENDS) is None
    actions = flat(first.named["on_exit"](SimpleNamespace(action=first), RUNS))
    assert texts(actions) == ["base_controller ended: ending its bringup"]
    assert len(of_kind(actions, "EmitEvent")) == len(nodes) - 1
    assert second.named["on_exit"](SimpleNamespace(action=second), RUNS) is None


@pytest.mark.parametrize("robot", ["mock", "gazebo"])
def test_a_launch_of_nothing_but_a_bringup_fails_with_its_first_vital_process(monkeypatch, robot):
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "youbot_dynamics", "bringup.launch.py"])
    file = loaded("bringup.launch.py")
    vital = file.node(Process("odometry", ("odometry",), ()), [], [], None, robot, "")
    with pytest.raises(RuntimeError, match="odometry ended: ending its bringup"):
        vital.named["on_exit"](SimpleNamespace(action=vital), RUNS)
    assert vital.named["on_exit"](SimpleNamespace(action=vital), RUNS) is None


def test_a_launch_file_of_the_same_name_of_another_package_goes_on_without_the_bringup(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "my_robot", "bringup.launch.py"])
    nodes = [action for action in started(loaded("bringup.launch.py")) if type(action).__name__ == "Node"]
    (vital,) = [node for node in nodes if node.named["executable"] == "odometry"]
    actions = flat(vital.named["on_exit"](SimpleNamespace(action=vital), RUNS))
    assert texts(actions) == ["odometry ended: ending its bringup"]


def test_what_is_not_vital_is_started_again_as_often_as_the_plan_says():
    file, nodes, ended = loaded("bringup.launch.py"), [], []
    first = file.node(OPTIONAL, nodes, ended, None, "mock", "")
    actions = flat(first.named["on_exit"](SimpleNamespace(returncode=1), RUNS))
    assert "arm_ekf ended with exit code 1" in texts(actions)[0] and "time 1 of 1" in texts(actions)[0]
    (timer,) = of_kind(actions, "TimerAction")
    (again,) = flat(timer["actions"][0].named["function"](RUNS))
    assert again.named["executable"] == "arm_ekf" and nodes == [again]
    last = flat(again.named["on_exit"](SimpleNamespace(returncode=1), RUNS))
    assert "its log may say why" in texts(last)[0] and len(last) == 1
    ended.append("base_controller")
    assert first.named["on_exit"](SimpleNamespace(returncode=1), RUNS) is None


def test_an_identification_beside_its_bringup_ends_the_launch_with_a_line(tmp_path):
    file = loaded("identify.launch.py")
    group, session = started(file, out=str(tmp_path / "found"), robot="mock")
    assert type(group).__name__ == "GroupAction" and "--out" in session.named["arguments"]
    assert (session.named["package"], session.named["executable"]) == ("youbot_dynamics", "identify_robot")
    for code, text in file.DONE.items():
        actions = flat(session.named["on_exit"](SimpleNamespace(returncode=code), RUNS))
        assert text in texts(actions)[0] and len(of_kind(actions, "Shutdown")) == 1
    with pytest.raises(RuntimeError, match="exit code 1"):
        session.named["on_exit"](SimpleNamespace(returncode=1), RUNS)


@pytest.mark.parametrize("name", ["duration", "room", "wait"])
def test_a_number_that_cannot_be_used_ends_an_identification_before_its_bringup(tmp_path, name):
    for value in ("-1", "soon", "inf", *(() if name == "wait" else ("0.1",))):
        with pytest.raises(RuntimeError, match=f"{name}: got {value}"):
            started(loaded("identify.launch.py"), out=str(tmp_path / "found"), robot="mock", **{name: value})
    assert not list(tmp_path.iterdir())


def test_an_identification_included_in_a_launch_that_goes_on_ends_alone(tmp_path):
    (session,) = started(loaded("identify.launch.py"), out=str(tmp_path / "found"), robot="none", shutdown="false")
    actions = flat(session.named["on_exit"](SimpleNamespace(returncode=0), RUNS))
    assert len(actions) == 1 and "identification done" in texts(actions)[0]
    failed = session.named["on_exit"](SimpleNamespace(returncode=1), RUNS)
    assert "failed with exit code 1" in texts([failed])[0]


def test_gazebo_is_started_for_the_first_robot_alone():
    file = loaded("gazebo.launch.py")
    alone = started(file, namespace="yb2", server="false", x="1.0")
    assert [node["executable"] for node in of_kind(alone, "Node")] == [
        "robot_state_publisher",
        "create",
        "parameter_bridge",
        "spawner",
    ]
    assert {node["namespace"] for node in of_kind(alone, "Node")} == {"/yb2"}
    whole = started(file, headless="true")
    (include,) = of_kind(whole, "IncludeLaunchDescription")
    assert dict(include["launch_arguments"])["gz_args"].startswith("-r -s ")
