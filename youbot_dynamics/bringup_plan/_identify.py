"""The arguments of `identify.launch.py`, and the command it runs beside a bringup."""

from __future__ import annotations

from collections.abc import Mapping

from youbot_dynamics.bringup_plan._arguments import ARGUMENTS, Argument, check_choice, existing_file, new_folder, truth
from youbot_dynamics.bringup_plan._processes import file_arguments, namespace_arguments, parameter_arguments
from youbot_dynamics.errors import ResourceError
from youbot_dynamics.identification.stages import STAGES, chosen_stages
from youbot_dynamics.resources import config_path, robot_path

_SIMULATED = ("mock", "mujoco", "gazebo")  # they tell the true pose of the base
NO_BRINGUP = "none"

# Handed on to the bringup as they are.
PASSED_ON = (
    "namespace",
    "robot_file",
    "params_file",
    "result_file",
    "use_sim_time",
    "log_level",
    "driver",
    "frame_prefix",
    "viewer",
)

IDENTIFY_ARGUMENTS = (
    Argument(
        "robot",
        "mock",
        "Robot to identify: one that bringup.launch.py starts here, or `none` for one whose bringup already runs.",
        ("real", *_SIMULATED, NO_BRINGUP),
    ),
    *(argument for argument in ARGUMENTS if argument.name in PASSED_ON),
    Argument("out", "", "Folder for the bag, result.yaml, result.json and report.html; new or empty. Required."),
    Argument("duration", "60.0", "How long each excitation lasts [s]."),
    Argument(
        "room", "1.0", "Largest distance of the base from its start [m]: keep that much space free in every direction."
    ),
    Argument(
        "wait",
        "120.0",
        "How long to wait for the robot's first messages [s]; the first start compiles code for half a minute.",
    ),
    Argument("arm", "false", "Whether to move and identify the arm too: true or false."),
    Argument("only", "", f"What to identify, of: {', '.join(STAGES)}; separated by commas, empty for all."),
    Argument(
        "pose_topic",
        "",
        "Topic with a measured pose of the base; empty for none, or for the pose of a simulated robot.",
    ),
    Argument(
        "shutdown",
        "true",
        "Whether the end of the identification ends the whole launch, with exit status 1 if it failed; write "
        "false if you include this in a launch that continues: true or false.",
    ),
)


def identify_command(values: Mapping[str, str]) -> list[str]:
    """Words behind ``python -m youbot_dynamics.commands.identify``, ROS arguments at the end.

    Args:
        values: value of each of ``IDENTIFY_ARGUMENTS``; the namespace complete.

    Raises:
        IdentificationError: an unknown stage.
        ParameterError: a malformed value.
        ResourceError: no folder, or one with something in it; a parameter file that does not exist.
    """
    check_choice("log_level", values["log_level"])
    chosen_stages("only", values["only"])
    out = new_folder("out", values["out"])
    if out is None:
        raise ResourceError("out", got="no folder", expected="where to write the result", remedy="write out:=found")
    own, result = (existing_file(name, values[name]) for name in ("params_file", "result_file"))
    pose = values["pose_topic"] or ("ground_truth" if values["robot"] in _SIMULATED else "")
    words = ["--out", str(out), "--duration", values["duration"], "--room", values["room"], "--wait", values["wait"]]
    words += ["--namespace", values["namespace"]] if values["namespace"] else []
    words += ["--frame-prefix", values["frame_prefix"]] if values["frame_prefix"] else []
    words += ["--arm"] if truth("arm", values["arm"]) else []
    words += ["--only", values["only"]] if values["only"] else []
    words += ["--pose-topic", pose] if pose else []
    words += ["--params-file", str(own)] if own is not None else []
    robot = robot_path(values["robot_file"])
    words += ["--robot-file", str(robot)] if robot is not None else []
    sim_time = truth("use_sim_time", values["use_sim_time"]) or values["robot"] == "gazebo"
    gazebo = config_path("gazebo/youbot_gazebo.yaml") if values["robot"] == "gazebo" else None
    ros = (
        *file_arguments(config_path("youbot.yaml"), robot, gazebo, result, own),
        *namespace_arguments(values["namespace"]),
        *parameter_arguments(use_sim_time=sim_time),
        "--log-level",
        values["log_level"],
    )
    return [*words, "--ros-args", *ros]
