"""The ROS 2 driver of the real youBot as a process of the bringup.

Names, parameters and topics are those of a2s-institute/youbot_driver_ros_interface, branch foxy-devel. It listens on
cmd_vel, publishes odom, base/joint_states and arm_1/joint_states and broadcasts odom -> base_footprint on /tf.
"""

from __future__ import annotations

from pathlib import Path

from youbot_dynamics.bringup_plan.process import Process, file_arguments, parameter_arguments, remap_arguments
from youbot_dynamics.bringup_plan.ros_packages import needed_program, share_folder

PACKAGE = "youbot_driver_ros_interface"

# Its topics become those that the design gives a driver; both JointState topics become one.
DRIVER_REMAPPINGS = {
    "cmd_vel": "driver/cmd_vel",
    "odom": "driver/odom",
    "base/joint_states": "driver/joint_states",
    "arm_1/joint_states": "driver/joint_states",
    "joint_states": "driver/joint_states",
    "/tf": "driver/tf",
}
_CONFIGURATION = "youbot_driver"  # package with youbot-ethercat.cfg, youbot-base.cfg, youbot-manipulator.cfg
_REMEDY = (
    "build a2s-institute/youbot_driver and youbot_driver_ros_interface (branch foxy-devel) in your workspace and "
    "source it, or start a driver yourself and leave driver out"
)


def driver_process(common: tuple[str, ...], arm: bool, params_file: Path | None) -> Process:
    """Describe the process of the driver.

    Args:
        common: ROS arguments of every node: namespace, log level, time.
        arm: whether the robot has an arm.
        params_file: the user's file; what it says for ``/**/youbot_oodl_driver`` wins.

    Returns:
        The process.

    Raises:
        ResourceError: when the driver is not installed.
    """
    needed_program(PACKAGE, PACKAGE, _REMEDY)
    values: dict[str, str | bool | float] = {"youBotHasBase": True, "youBotHasArms": arm}
    values |= {"youBotBaseName": "youbot-base"} | ({"youBotArmName1": "youbot-manipulator"} if arm else {})
    # Reading the gripper blocks the driver's loop: seldom.
    values |= {"youBotDriverCycleFrequencyInHz": 50.0, "youBotDriverGripperReadingsCycleFrequencyInHz": 1.0}
    configuration = share_folder(_CONFIGURATION)
    if configuration is not None:
        values["youBotConfigurationFilePath"] = str(configuration / "config")
    return Process(
        PACKAGE,
        ("youbot_oodl_driver",),
        # Of two rules for /tf the first wins: the driver's own, before that of a namespace.
        (*remap_arguments(DRIVER_REMAPPINGS), *parameter_arguments(**values), *file_arguments(params_file), *common),
        package=PACKAGE,
    )
