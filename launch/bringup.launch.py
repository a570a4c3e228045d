"""Start the robot: base_controller, odometry with trajectory_tracker, arm_ekf, and what else the arguments ask for.

Which processes there are, and with which files, stands in ``youbot_dynamics.bringup_plan``; Gazebo is included from
gazebo.launch.py, whose arguments may be given here too. The end of a vital process ends this bringup, with exit status
1 if it is all that was launched, and only this: several may run in one launch. One process, ``stop_base``, stands by
and sends zero when base_controller falls silent.

Another launch file includes this as any other; more than once inside a GroupAction each, since launch lets the
arguments of one inclusion leak into the next otherwise.
"""

import os
import shutil
import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    Shutdown,
    TimerAction,
)
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node
from launch_ros.utilities import prefix_namespace

from youbot_dynamics.bringup_plan import (
    ARGUMENTS,
    OUR_PACKAGE,
    RESTART_PAUSE,
    BringupOptions,
    assumed_by,
    check_words,
    left_out,
    network,
    plan,
    reach,
)
from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.nodes.local_socket import BACK, LOST, check_folder, notify
from youbot_dynamics.resources import launch_path

# launch leaves its processes behind when it gets SIGTERM or is killed: let the kernel stop them then.
FOLLOW_LAUNCH = "setpriv --pdeathsig TERM --"
# [s] a process has to obey SIGINT, and as long again to obey SIGTERM. A process that ignores both is killed
# while stop_base still listens, whatever sigterm_timeout an including file sets.
PATIENCE = "1.0"
PATIENCE_LAST = "4.0"


def generate_launch_description():
    """Declare the arguments and build the rest when their values are known."""
    declared = [DeclareLaunchArgument(**argument.declaration()) for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def start(context):
    """Turn the plan into launch actions, inside a pushed namespace if this file is included in one."""
    values = {argument.name: context.launch_configurations[argument.name] for argument in ARGUMENTS}
    gazebo = [include_gazebo(values)] if values["robot"] == "gazebo" else []
    pushed = context.launch_configurations.get("ros_namespace")
    values["namespace"] = prefix_namespace(pushed, values["namespace"] or None) or ""
    try:
        # Of a launch file that includes this one the words are not for us alone.
        if launched_alone():
            check_words(context.argv, names_of(gazebo))
        options = BringupOptions.read(values)
        processes = plan(options)
        if not options.passive:
            check_folder()
    except YoubotDynamicsError as error:
        raise RuntimeError(str(error)) from None
    follow = shutil.which("setpriv") and not context.launch_configurations.get("launch-prefix")
    nodes, ended = [], []
    prefix = FOLLOW_LAUNCH if follow else None
    nodes += [node(process, nodes, ended, prefix, options.robot, options.namespace) for process in processes]
    remarks = assumed_by(options), left_out(processes, options), reach(options.robot, os.environ)
    return [*(LogInfo(msg=remark) for remark in remarks if remark), *gazebo, *nodes]


def launched_alone():
    """Tell whether this file is what was launched, and no part of another one."""
    here = Path(__file__)
    words = [Path(word) for word in sys.argv]
    return any(
        word.name == here.name and (OUR_PACKAGE in sys.argv or word.resolve() == here.resolve()) for word in words
    )


def names_of(included):
    """Names of the arguments that may be given here: ours, and those of the launch files included here."""
    names = [argument.name for argument in ARGUMENTS]
    for include in included:
        described = include.launch_description_source.try_get_launch_description_without_context()
        names += [argument.name for argument in described.get_launch_arguments()]
    return names


def include_gazebo(values):
    """Include Gazebo with the robot in it."""
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(launch_path("gazebo.launch.py"))),
        launch_arguments={
            "namespace": values["namespace"],
            "use_sim_time": "true",
            "headless": "false" if values["viewer"].lower() == "true" else "true",
        }.items(),
    )


def node(process, nodes, ended, prefix, robot, namespace, restarted=0):
    """Make the launch action of a process; a bringup without one of its vital parts is no bringup.

    What is not vital is started again some times when it ends, and stop_base reports it on /diagnostics.

    Args:
        process: of the plan.
        nodes: the actions of this bringup, all of them once the launch runs.
        ended: gets the name of the first process that ends.
        prefix: command before the executable.
        robot: what is driven; in Gazebo the end of the process ends the whole launch.
        namespace: of this bringup.
        restarted: how often the process has been started again.
    """

    def end(event, context):
        if context.is_shutdown or ended:
            return None
        ended.append(process.executable)
        reason = f"{process.executable} ended"
        if launched_alone():
            raise RuntimeError(f"{reason}: ending its bringup")  # the one way to give launch a status other than 0
        if robot == "gazebo":
            return Shutdown(reason=reason)
        others = [action for action in nodes if action is not event.action]
        stop = [EmitEvent(event=ShutdownProcess(process_matcher=matches_action(action))) for action in others]
        return [LogInfo(msg=f"{reason}: ending its bringup"), *stop]

    def lose(event, context):
        if context.is_shutdown or ended or not process.missed:
            return None
        text, again = process.loss(event.returncode, restarted)
        notify(namespace, process.executable, LOST, text)
        restart = TimerAction(period=RESTART_PAUSE, actions=[OpaqueFunction(function=start_again)])
        return [LogInfo(msg=f"{process.executable} {text}"), *([restart] if again else [])]

    def start_again(context):
        if ended:
            return None
        notify(namespace, process.executable, BACK, "had ended, and was started again")
        nodes.append(node(process, nodes, ended, prefix, robot, namespace, restarted + 1))
        return [nodes[-1]]

    patience = PATIENCE_LAST if process.last else PATIENCE
    return Node(
        package=process.package,
        executable=process.executable,
        arguments=list(process.words),
        ros_arguments=list(process.ros_arguments),
        output="screen",
        exec_name=process.executable,
        prefix=prefix,
        additional_env=network(robot, os.environ),
        emulate_tty=sys.stdout.isatty(),  # into a file go no colours
        on_exit=end if process.vital else lose,
        sigterm_timeout=patience,
        sigkill_timeout=patience,
    )
