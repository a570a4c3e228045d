"""Start the robot: base_controller, odometry with trajectory_tracker, arm_ekf; a simulated one for robot:=mock, mujoco.

The real robot's driver is not started here; start it beside this with its topics ``cmd_vel``, ``odom`` and
``joint_states`` remapped to ``driver/cmd_vel``, ``driver/odom`` and ``driver/joint_states``.
Which processes there are, and with which files, stands in ``youbot_dynamics.bringup_plan``. The end of any of
them ends the bringup. One of them, ``stop_base``, stands by and sends zero when base_controller falls silent.
"""

import shutil

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch_ros.actions import Node
from launch_ros.utilities import prefix_namespace

from youbot_dynamics.bringup_plan import ARGUMENTS, plan
from youbot_dynamics.errors import YoubotDynamicsError

# launch leaves its processes behind when it gets SIGTERM or is killed: let the kernel stop them then.
FOLLOW_LAUNCH = "setpriv --pdeathsig TERM --"
# [s] a process has to obey SIGINT, and as long again to obey SIGTERM. Who goes on sending through both is killed
# while stop_base still listens, whatever sigterm_timeout an including file sets.
PATIENCE = "1.0"
PATIENCE_LAST = "4.0"


def generate_launch_description():
    """Declare the arguments and build the rest when their values are known."""
    declared = [
        DeclareLaunchArgument(
            argument.name,
            default_value=argument.default,
            description=argument.description,
            choices=list(argument.choices) or None,
        )
        for argument in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def start(context):
    """Turn the plan into launch actions, inside a pushed namespace if this file is included in one."""
    values = {argument.name: context.launch_configurations[argument.name] for argument in ARGUMENTS}
    pushed = context.launch_configurations.get("ros_namespace")
    values["namespace"] = prefix_namespace(pushed, values["namespace"] or None) or ""
    try:
        processes = plan(**values)
    except YoubotDynamicsError as error:
        raise RuntimeError(str(error)) from None
    follow = shutil.which("setpriv") and not context.launch_configurations.get("launch-prefix")
    return [node(process, FOLLOW_LAUNCH if follow else None) for process in processes]


def node(process, prefix):
    """Make the launch action of a process; a bringup without one of its parts is no bringup."""
    patience = PATIENCE_LAST if process.last else PATIENCE
    return Node(
        package="youbot_dynamics",
        executable=process.executable,
        ros_arguments=list(process.ros_arguments),
        output="screen",
        exec_name=process.executable,
        prefix=prefix,
        emulate_tty=True,
        on_exit=Shutdown(reason=f"{process.executable} ended"),
        sigterm_timeout=patience,
        sigkill_timeout=patience,
    )
