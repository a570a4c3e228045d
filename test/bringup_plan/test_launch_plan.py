"""The description of the processes that the launch file and `youbot bringup` share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from youbot_dynamics.bringup_plan import (
    ARGUMENTS,
    IDENTIFY_ARGUMENTS,
    PASSED_ON,
    BringupOptions,
    check_words,
    identify_command,
    left_out,
    network,
    plan,
    reach,
)
from youbot_dynamics.errors import IdentificationError, ParameterError, ResourceError
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.resources import config_path, urdf_path


def by_name(**arguments):
    return {process.executable: process for process in plan(BringupOptions.read(arguments))}


def files(process):
    tokens = process.arguments
    return [value for flag, value in zip(tokens, tokens[1:], strict=False) if flag == "--params-file"]


@pytest.fixture
def two_files(tmp_path):
    result, own = tmp_path / "result.yaml", tmp_path / "own.yaml"
    result.touch()
    own.touch()
    return {"result_file": str(result), "params_file": str(own)}


def test_arguments_are_the_options_as_texts():
    assert BringupOptions.read({argument.name: argument.default for argument in ARGUMENTS}) == BringupOptions()
    for argument in ARGUMENTS:
        assert argument.description.endswith(".")
        assert not argument.choices or argument.default in argument.choices


def test_real_robot_starts_no_twin():
    names = [process.executable for process in plan(BringupOptions(robot="real"))]
    assert sorted(names) == ["arm_ekf", "base_controller", "check_driver", "odometry", "stop_base"]


def test_twin_is_started_before_what_drives_it():
    assert [process.executable for process in plan(BringupOptions(robot="mock"))][0] == "mock_youbot"


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
            plan(BringupOptions(robot=robot, viewer=True))


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


def test_the_identified_robot_is_simulated_with_its_result(two_files):
    youbot, mock = str(config_path("youbot.yaml")), str(config_path("mock.yaml"))
    simulated = by_name(robot="identified", **two_files)["mock_youbot"]
    assert files(simulated) == [youbot, mock, two_files["result_file"], two_files["params_file"]]
    assert {"plant:=twin", "identified:=true"} <= {*parameters(simulated)}
    assert "identified:=false" in parameters(by_name(robot="mock", **two_files)["mock_youbot"])


def test_a_simulated_driver_does_not_stamp_its_wheels_late(tmp_path):
    """Odometry would take off a time that it had not added."""
    result = tmp_path / "result.yaml"
    result.write_text("/**:\n  ros__parameters:\n    robot:\n      base:\n        delay:\n          stamps: 0.06\n")
    for robot, prompt in (("real", False), ("identified", True), ("mujoco", True)):
        for name in ("odometry", "base_controller"):
            told = parameters(by_name(robot=robot, result_file=str(result))[name])
            assert ("robot.base.delay.stamps:=0.0" in told) == prompt


def test_stop_base_stands_by_before_the_controller_starts_and_ends_last():
    processes = by_name()
    names = list(processes)
    assert names.index("stop_base") < names.index("base_controller")
    controller = processes["base_controller"].arguments
    assert controller[-2:] == ("-p", "guarded:=true")
    assert processes["stop_base"].arguments == (*controller[:-2], "-p", "standby:=true")
    assert [name for name, process in processes.items() if process.last] == ["stop_base"]


def test_stabilize_false_leaves_the_tracker_out():
    process = by_name(stabilize="false")["odometry"]
    assert process.node_names == ("odometry",)
    assert "stabilize:=false" in process.arguments
    both = by_name(stabilize=True)["odometry"]
    assert both.node_names == ("odometry", "trajectory_tracker")
    assert (process.title, both.title) == ("odometry", "odometry with trajectory_tracker")


def test_estimate_arm_false_leaves_the_arms_filter_out():
    assert by_name()["arm_ekf"].node_names == ("arm_ekf",)
    assert "arm_ekf" not in by_name(estimate_arm="false")


@pytest.mark.parametrize("namespace", ["yb1", "/yb1", "/yb1/"])
def test_namespace_takes_tf_along(namespace):
    for process in plan(BringupOptions(namespace=namespace)):
        tokens = process.arguments
        assert {"__ns:=/yb1", "/tf:=tf", "/tf_static:=tf_static"} <= set(tokens)


def test_without_namespace_nothing_is_remapped():
    assert all("-r" not in process.arguments for process in plan(BringupOptions(namespace="/")))


def test_sim_time_and_log_level_reach_every_process():
    for process in plan(BringupOptions.read({"use_sim_time": "True", "log_level": "warn"})):
        assert "use_sim_time:=true" in process.arguments
        assert process.arguments[process.arguments.index("--log-level") + 1] == "warn"


@pytest.mark.parametrize(
    "arguments",
    [
        {"robot": "webots"},
        {"log_level": "loud"},
        {"stabilize": "maybe"},
        {"viewer": "yes"},
        {"estimate_arm": "no"},
        {"use_sim_time": "1"},
        {"namespace": "1st"},
        {"namespace": "a//b"},
        {"namespace": "a__b"},
        {"namespace": "warehouse_robot_number_seven_of_the_second_floor-1"},
        {"namespace": "a b"},
    ],
)
def test_value_that_is_no_choice_is_refused_by_name(arguments):
    with pytest.raises(ParameterError, match=next(iter(arguments))) as caught:
        plan(BringupOptions.read(arguments))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["result_file", "params_file"])
def test_missing_file_is_refused_in_one_line(name, tmp_path):
    with pytest.raises(ResourceError, match=rf"{name}: got .*absent\.yaml, which does not exist") as caught:
        plan(BringupOptions(**{name: str(tmp_path / "absent.yaml")}))
    assert "\n" not in str(caught.value)


def test_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(ResourceError, match="is a folder"):
        plan(BringupOptions(params_file=str(tmp_path)))
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(ResourceError, match="pipe, which is no regular file"):
        plan(BringupOptions(params_file=str(pipe)))


def test_plan_needs_no_ros():
    code = (
        "import sys; from youbot_dynamics.bringup_plan import identify_command, plan; plan(); "
        "sys.exit(any(name in sys.modules for name in ('rclpy', 'launch', 'ament_index_python')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


COMMAND_NODES = {"base_controller", "stop_base", "trajectory_tracker"}


def test_passive_bringup_has_nobody_who_commands_and_no_tf():
    processes = by_name(robot="real", passive="true", identification="false")
    assert list(processes) == ["odometry", "arm_ekf", "identification"]
    assert not COMMAND_NODES & {name for process in processes.values() for name in process.node_names}
    assert {"stabilize:=false", "publish_tf:=false"} <= set(processes["odometry"].arguments)


def test_passive_nodes_hear_the_other_stack_and_take_none_of_its_names():
    for name, process in by_name(robot="real", passive=True).items():
        assert "driver/joint_states:=joint_states" in process.arguments, name
    odometry = by_name(robot="real", passive=True)["odometry"].arguments
    assert {"odom:=passive_odom", "joint_states:=passive_joint_states"} <= set(odometry)
    beside_ours = by_name(robot="real", passive=True, joint_states="driver/joint_states")["arm_ekf"].arguments
    assert "driver/joint_states:=driver/joint_states" in beside_ours


@pytest.mark.parametrize("passive", [False, True])
def test_the_gyro_is_heard_by_odometry_and_the_check_of_the_driver_on_the_topic_it_has(passive):
    for name, process in by_name(robot="real", passive=passive, imu="camera/imu/data").items():
        assert ("imu:=camera/imu/data" in process.arguments) == (name in ("odometry", "check_driver"))


@pytest.mark.parametrize("topic", ["", "imu data", "imu/", "/imu", "9axis", "a__b", "imu:=x", "imü", "{ns}/imu"])
@pytest.mark.parametrize("name", ["imu", "joint_states"])
def test_a_topic_that_cannot_be_is_refused_before_anything_starts(name, topic):
    if topic == "/imu":
        assert f":=/{topic[1:]}" in "".join(by_name(robot="real", passive=True, **{name: topic})["odometry"].arguments)
        return
    with pytest.raises(ParameterError, match=f"^{name}: got .*; expected the name of a topic; write for example"):
        plan(BringupOptions(**{name: topic}))


def test_simulated_robot_beside_passive_nodes_has_the_names_of_a_driver_nobody_remapped():
    mock = by_name(robot="mock", passive=True)["mock_youbot"].arguments
    assert {"driver/cmd_vel:=cmd_vel", "driver/odom:=odom", "driver/joint_states:=joint_states"} <= set(mock)
    assert not [token for token in by_name(robot="mock")["mock_youbot"].arguments if "driver/" in token]


def test_identification_listens_where_it_is_asked_for():
    assert "identification" not in by_name()
    assert by_name(identification="true")["identification"].node_names == ("identification",)


def test_motors_off_reaches_stop_base_alone():
    for name, process in by_name(motors_off="true").items():
        assert ("motors_off:=true" in process.arguments) == (name == "stop_base")


def test_record_starts_the_recorder_with_a_new_folder(tmp_path):
    process = by_name(record=str(tmp_path / "drive"), namespace="yb1")["recorder"]
    assert process.arguments[:3] == ("--out", str(tmp_path / "drive"), "--ros-args")
    assert "__ns:=/yb1" in process.arguments
    (tmp_path / "drive").mkdir()
    plan(BringupOptions(record=str(tmp_path / "drive")))  # empty
    (tmp_path / "drive" / "kept.mcap").touch()
    with pytest.raises(ResourceError, match=r"record: got .*which is not empty"):
        plan(BringupOptions(record=str(tmp_path / "drive")))


def test_frame_prefix_reaches_the_nodes_that_know_frames(prefix_with):
    prefix_with("robot_state_publisher", "robot_state_publisher")
    having = {name for name, p in by_name(frame_prefix="yb1/").items() if 'frame_prefix:="yb1/"' in p.arguments}
    assert having == {"mock_youbot", "odometry", "arm_ekf", "robot_state_publisher"}


@pytest.fixture
def prefix_with(tmp_path, monkeypatch):
    """A folder like those of a sourced ROS 2, with programs of other packages."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(["", str(tmp_path / "empty"), str(tmp_path / "prefix")]))

    def install(package: str, program: str) -> None:
        path = tmp_path / "prefix" / "lib" / package / program
        path.parent.mkdir(parents=True)
        path.touch(mode=0o755)
        (tmp_path / "prefix" / "share" / package).mkdir(parents=True)

    return install


def test_description_is_our_urdf_read_as_one_text(prefix_with):
    prefix_with("robot_state_publisher", "robot_state_publisher")
    process = by_name(namespace="yb1")["robot_state_publisher"]
    assert process.package == "robot_state_publisher"
    assert "/tf:=tf" in process.arguments
    name, text = next(p for p in parameters(process) if p.startswith("robot_description")).split(":=", 1)
    assert yaml.safe_load(text) == urdf_path("youbot.urdf").read_text()
    assert not left_out(plan(), BringupOptions())


def test_missing_state_publisher_is_left_out_and_said(prefix_with):
    assert "robot_state_publisher" not in by_name()
    assert left_out(plan(), BringupOptions()).startswith("robot_state_publisher is not installed")


@pytest.mark.parametrize("arguments", [{"passive": True}, {"robot": "gazebo"}, {"description": "false"}], ids=str)
def test_description_is_left_to_others_without_a_word(prefix_with, arguments):
    prefix_with("robot_state_publisher", "robot_state_publisher")
    assert "robot_state_publisher" not in by_name(**arguments)
    options = BringupOptions.read(arguments)
    assert not left_out(plan(options), options)


def test_what_does_not_move_the_base_is_not_vital(prefix_with, tmp_path):
    prefix_with("robot_state_publisher", "robot_state_publisher")
    processes = plan(BringupOptions(robot="real", identification=True, record=str(tmp_path / "bag")))
    restarts = {p.executable: p.restarts for p in processes if not p.vital}
    again = dict.fromkeys(("arm_ekf", "check_driver", "identification", "robot_state_publisher"), 3)
    assert restarts == again | {"recorder": 0}
    assert {p.executable for p in processes if p.vital} == {"stop_base", "base_controller", "odometry"}


def test_restarts_of_a_process_are_counted_and_told():
    process = by_name()["arm_ekf"]
    assert process.loss(-9, 0) == (
        "ended with exit code -9, and the others continue without it: started again, time 1 of 3",
        True,
    )
    text, again = process.loss(1, 3)
    assert not again and text.endswith("its log may say why")


def test_rviz_is_no_vital_part(prefix_with, monkeypatch, tmp_path):
    with pytest.raises(ResourceError, match=r"package rviz2: got no program rviz2.*apt install ros-jazzy-rviz2"):
        plan(BringupOptions(rviz=True))
    prefix_with("rviz2", "rviz2")
    monkeypatch.setattr("youbot_dynamics.bringup_plan._plan.config_path", lambda name: tmp_path / name)
    process = by_name(rviz="true", frame_prefix="yb1/", namespace="yb1")["rviz2"]
    assert process.words == ("-d", str(tmp_path / "youbot.rviz"), "-f", "yb1/odom")
    assert not process.vital and not process.missed


def test_driver_is_started_with_its_topics_out_of_the_way(prefix_with, two_files):
    with pytest.raises(ResourceError, match=r"package youbot_driver_ros_interface: .*foxy-devel.*leave driver out"):
        plan(BringupOptions(robot="real", driver="start"))
    prefix_with("youbot_driver_ros_interface", "youbot_driver_ros_interface")
    prefix_with("youbot_driver", "anything")
    process = by_name(robot="real", driver="start", namespace="yb1", **two_files)["youbot_driver_ros_interface"]
    tokens = process.arguments
    for topic, raw in (
        ("cmd_vel", "driver/cmd_vel"),
        ("odom", "driver/odom"),
        ("base/joint_states", "driver/joint_states"),
        ("arm_1/joint_states", "driver/joint_states"),
        ("joint_states", "driver/joint_states"),
        ("/tf", "driver/tf"),
    ):
        assert f"{topic}:={raw}" in tokens
    assert tokens.index("/tf:=driver/tf") < tokens.index("/tf:=tf")  # of two rules the first wins
    assert files(process) == [two_files["params_file"]]
    values = parameters(process)
    assert any(p.startswith("youBotConfigurationFilePath:=") and p.endswith("youbot_driver/config") for p in values)
    assert "youBotArmName1:=youbot-manipulator" in values


@pytest.mark.parametrize("has_arm", [True, False])
@pytest.mark.parametrize("estimate_arm", [True, False])
def test_the_driver_has_the_arm_of_the_robot_whether_or_not_arm_ekf_runs(prefix_with, tmp_path, has_arm, estimate_arm):
    prefix_with("youbot_driver_ros_interface", "youbot_driver_ros_interface")
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"robot": {"has_arm": has_arm}}}}))
    processes = by_name(robot="real", driver="start", estimate_arm=estimate_arm, params_file=str(own))
    assert f"youBotHasArms:={str(has_arm).lower()}" in processes["youbot_driver_ros_interface"].arguments
    assert ("arm_ekf" in processes) == (has_arm and estimate_arm)


def test_gazebo_brings_its_own_clock_signs_and_interface():
    processes = by_name(robot="gazebo")
    assert "mock_youbot" not in processes
    gazebo = str(config_path("gazebo/youbot_gazebo.yaml"))
    for name, process in processes.items():
        assert files(process) == [str(config_path("youbot.yaml")), gazebo], name
        assert "use_sim_time:=true" in process.arguments


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"robot": "mock", "driver": "start"}, "driver"),
        ({"robot": "real", "driver": "start", "passive": True}, "driver"),
        ({"robot": "gazebo", "passive": True}, "passive"),
        ({"robot": "gazebo", "frame_prefix": "a/"}, "frame_prefix"),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(arguments, name):
    with pytest.raises(ParameterError, match=f"^{name}: got .*leave|^{name}: got .*give"):
        plan(BringupOptions.read(arguments))


def test_misspelt_argument_is_refused_with_the_nearest_one():
    names = [argument.name for argument in ARGUMENTS]
    check_words(["robot:=mock", "launch-prefix:=gdb", "emulate_tty:=false"], names)
    with pytest.raises(ParameterError, match=r"argument pasive: got no such argument; did you mean passive\?"):
        check_words(["pasive:=true"], names)


def test_identification_is_told_robot_and_folder(tmp_path):
    values = {argument.name: argument.default for argument in IDENTIFY_ARGUMENTS}
    with pytest.raises(ResourceError, match="out: got no folder"):
        identify_command(values)
    words = identify_command(values | {"out": str(tmp_path / "found"), "namespace": "yb1", "arm": "true"})
    assert words[: words.index("--ros-args")].count("--arm") == 1
    assert words[words.index("--pose-topic") + 1] == "ground_truth"
    assert "__ns:=/yb1" in words
    real = identify_command(values | {"out": str(tmp_path / "found"), "robot": "none"})
    assert "--pose-topic" not in real


def test_what_cannot_be_identified_is_refused_before_anything_is_driven(tmp_path):
    values = {argument.name: argument.default for argument in IDENTIFY_ARGUMENTS} | {"out": str(tmp_path / "found")}
    assert "--only" in identify_command(values | {"only": "delay, response"})
    with pytest.raises(IdentificationError, match="only: got 'dealy'; expected names from calibration, delay"):
        identify_command(values | {"only": "dealy"})


def test_a_folder_that_cannot_be_made_is_refused_before_anything_starts(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match=r"record: got a file, .*/file, instead of a folder"):
        plan(BringupOptions(record=str(tmp_path / "file" / "drive")))


def test_arguments_of_an_identification_that_go_on_to_the_bringup_are_the_bringups():
    of_bringup = {argument.name: argument for argument in ARGUMENTS}
    for argument in IDENTIFY_ARGUMENTS:
        assert argument.description.rstrip().endswith((".", ": true or false."))
        if argument.name in PASSED_ON:
            assert argument is of_bringup[argument.name]


@pytest.mark.parametrize("robot", ["mock", "mujoco"])
def test_simulated_robot_stays_on_this_machine_unless_told_otherwise(robot):
    assert network(robot, {}) == {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    assert network(robot, {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}) == {}
    assert not reach(robot, {})


def test_real_robot_keeps_the_network_it_is_given_and_says_who_can_command_it():
    assert network("real", {}) == {}
    assert reach("real", {}).startswith("ROS_AUTOMATIC_DISCOVERY_RANGE SUBNET, ROS_DOMAIN_ID 0: every ROS 2 program")
    assert "LOCALHOST, ROS_DOMAIN_ID 7:" in reach(
        "real", {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "7"}
    )


def test_the_tracker_of_a_base_that_cannot_move_sideways_has_no_feedback_and_that_is_said():
    options = BringupOptions(robot="mock", robot_file="create_3")
    process = by_name(robot="mock", robot_file="create_3")["odometry"]
    assert "trajectory_tracker" in process.node_names
    given = [read_parameters(Path(file), "trajectory_tracker") for file in files(process)]
    assert {"feedback": False} in given
    assert left_out(plan(options), options) == (
        "without feedback, since this base cannot move sideways: follow paths by Nav2's pure pursuit or MPPI"
    )
    assert not left_out(plan(BringupOptions()), BringupOptions(robot="mock", robot_file="rosbot_xl"))
