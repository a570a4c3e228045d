"""Identify the robot: start it, record it while it drives the recommended excitation, fit, write the result.

With robot:=none it does so with a robot that runs already, from this launch or another one. The words of the session
stand in ``youbot_dynamics.bringup_plan``. It ends by itself: exit status 0 when the result is written, also
where something was not identifiable, which is said; 1 where it failed.
"""

import shutil
import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node
from launch_ros.utilities import prefix_namespace

from youbot_dynamics.bringup_plan import (
    IDENTIFY_ARGUMENTS,
    NO_BRINGUP,
    OUR_PACKAGE,
    PASSED_ON,
    check_words,
    identify_command,
    truth,
)
from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.resources import launch_path

DONE = {0: "done", 3: "done, but not everything is identifiable: see the report"}


def generate_launch_description():
    """Declare the arguments and build the rest when their values are known."""
    declared = [DeclareLaunchArgument(**argument.declaration()) for argument in IDENTIFY_ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def start(context):
    """Build the bringup, if one is wanted, and the session beside it."""
    values = {argument.name: context.launch_configurations[argument.name] for argument in IDENTIFY_ARGUMENTS}
    of_bringup = {name: values[name] for name in PASSED_ON} | {"robot": values["robot"]}
    pushed = context.launch_configurations.get("ros_namespace")
    values["namespace"] = prefix_namespace(pushed, values["namespace"] or None) or ""
    try:
        if Path(__file__).name in (Path(word).name for word in sys.argv):
            check_words(context.argv, (argument.name for argument in IDENTIFY_ARGUMENTS))
        words = identify_command(values)
        whole = truth("shutdown", values["shutdown"])
    except YoubotDynamicsError as error:
        raise RuntimeError(str(error)) from None

    def end(event, context):
        if event.returncode in DONE:
            text = f"identification {DONE[event.returncode]}: {values['out']}"
            return [LogInfo(msg=text), *([Shutdown(reason=text)] if whole else [])]
        text = f"identification failed with exit code {event.returncode}: see its message above"
        if whole and not context.is_shutdown:
            raise RuntimeError(text)  # the one way to make launch end with a status other than 0
        return LogInfo(msg=text)

    session = Node(
        package=OUR_PACKAGE,
        executable="identify_robot",
        arguments=words,
        exec_name="identify_robot",
        # It stops its children one after the other.
        sigterm_timeout="20.0",
        prefix="setpriv --pdeathsig TERM --" if shutil.which("setpriv") else None,
        output="screen",
        additional_env={"PYTHONUNBUFFERED": "1"},
        on_exit=end,
    )
    if values["robot"] == NO_BRINGUP:
        return [session]
    bringup = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(launch_path("bringup.launch.py"))), launch_arguments=of_bringup.items()
    )
    return [GroupAction([bringup]), session]
