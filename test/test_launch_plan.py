"""The description of the processes that the launch file and `youbot bringup` share."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from youbot_dynamics.bringup_plan import ARGUMENTS, plan
from youbot_dynamics.errors import ParameterError, ResourceError
from youbot_dynamics.resources import config_path


def by_name(**arguments):
    return {process.executable: process for process in plan(**arguments)}


def files(process):
    tokens = process.arguments
    return [value for flag, value in zip(tokens, tokens[1:], strict=False) if flag == "--params-file"]


@pytest.fixture
def two_files(tmp_path):
    result, own = tmp_path / "result.yaml", tmp_path / "own.yaml"
    result.touch()
    own.touch()
    return {"result_file": str(result), "params_file": str(own)}


def test_arguments_are_those_of_plan():
    parameters = inspect.signature(plan).parameters
    assert [argument.name for argument in ARGUMENTS] == list(parameters)
    for argument in ARGUMENTS:
        assert str(parameters[argument.name].default).lower() == argument.default
        assert argument.description.endswith(".")
        assert not argument.choices or argument.default in argument.choices


def test_real_robot_starts_no_twin():
    names = [process.executable for process in plan(robot="real")]
    assert sorted(names) == ["arm_ekf", "base_controller", "odometry", "stop_base"]


def test_twin_is_started_before_what_drives_it():
    assert [process.executable for process in plan(robot="mock")][0] == "mock_youbot"


def parameters(process):
    tokens = process.arguments
    return [value for flag, value in zip(tokens, tokens[1:], strict=False) if flag == "-p"]


def test_each_simulated_robot_is_the_mock_with_its_plant():
    for robot, plant_name in (("mock", "twin"), ("mujoco", "mujoco")):
        processes = by_name(robot=robot)
        assert list(processes) == ["mock_youbot", "stop_base", "base_controller", "odometry", "arm_ekf"]
        assert f"plant:={plant_name}" in parameters(processes["mock_youbot"])
        assert not [p for name in list(processes)[1:] for p in parameters(processes[name]) if p.startswith("plant")]


def test_viewer_is_opened_by_the_contact_simulation_alone():
    assert "viewer:=true" in parameters(by_name(robot="mujoco", viewer="true")["mock_youbot"])
    assert "viewer:=true" not in parameters(by_name(robot="mujoco")["mock_youbot"])
    for robot in ("mock", "real"):
        with pytest.raises(ParameterError, match="viewer: got robot"):
            plan(robot=robot, viewer=True)


def test_simulated_robot_publishes_the_clock_that_the_others_shall_use():
    assert "publish_clock:=true" in parameters(by_name(use_sim_time=True)["mock_youbot"])
    assert "publish_clock:=true" not in parameters(by_name()["mock_youbot"])
    for name, process in by_name(robot="real", use_sim_time=True).items():
        assert "publish_clock:=true" not in parameters(process), name


def test_files_stand_in_the_order_in_which_the_later_wins(two_files):
    processes = by_name(robot="mock", **two_files)
    youbot, mock = str(config_path("youbot.yaml")), str(config_path("mock.yaml"))
    for name in ("base_controller", "odometry", "stop_base", "arm_ekf"):
        assert files(processes[name]) == [youbot, two_files["result_file"], two_files["params_file"]]
    assert files(processes["mock_youbot"]) == [youbot, mock, two_files["params_file"]]


def test_stop_base_stands_by_before_the_controller_starts_and_ends_last():
    processes = by_name()
    names = list(processes)
    assert names.index("stop_base") < names.index("base_controller")
    controller = processes["base_controller"].arguments
    assert processes["stop_base"].arguments == (*controller, "-p", "standby:=true")
    assert [name for name, process in processes.items() if process.last] == ["stop_base"]


def test_stabilize_false_leaves_the_tracker_out():
    process = by_name(stabilize="false")["odometry"]
    assert process.node_names == ("odometry",)
    assert "stabilize:=false" in process.arguments
    assert by_name(stabilize=True)["odometry"].node_names == ("odometry", "trajectory_tracker")


def test_estimate_arm_false_leaves_the_arms_filter_out():
    assert by_name()["arm_ekf"].node_names == ("arm_ekf",)
    assert "arm_ekf" not in by_name(estimate_arm="false")


@pytest.mark.parametrize("namespace", ["yb1", "/yb1", "/yb1/"])
def test_namespace_takes_tf_along(namespace):
    for process in plan(namespace=namespace):
        tokens = process.arguments
        assert {"__ns:=/yb1", "/tf:=tf", "/tf_static:=tf_static"} <= set(tokens)


def test_without_namespace_nothing_is_remapped():
    assert all("-r" not in process.arguments for process in plan(namespace="/"))


def test_sim_time_and_log_level_reach_every_process():
    for process in plan(use_sim_time="True", log_level="warn"):
        assert "use_sim_time:=true" in process.arguments
        assert process.arguments[process.arguments.index("--log-level") + 1] == "warn"


@pytest.mark.parametrize(
    "arguments",
    [
        {"robot": "gazebo"},
        {"log_level": "loud"},
        {"stabilize": "maybe"},
        {"viewer": "yes"},
        {"estimate_arm": "no"},
        {"use_sim_time": "1"},
        {"namespace": "1st"},
        {"namespace": "a//b"},
        {"namespace": "a b"},
    ],
)
def test_value_that_is_no_choice_is_refused_by_name(arguments):
    with pytest.raises(ParameterError, match=next(iter(arguments))) as caught:
        plan(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["result_file", "params_file"])
def test_missing_file_is_refused_in_one_line(name, tmp_path):
    with pytest.raises(ResourceError, match=rf"{name}: got .*absent\.yaml, which does not exist") as caught:
        plan(**{name: str(tmp_path / "absent.yaml")})
    assert "\n" not in str(caught.value)


def test_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(ResourceError, match="is a folder"):
        plan(params_file=str(tmp_path))


def test_plan_needs_no_ros():
    code = (
        "import sys; from youbot_dynamics.bringup_plan import plan; plan(); "
        "sys.exit(any(name in sys.modules for name in ('rclpy', 'launch', 'ament_index_python')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
