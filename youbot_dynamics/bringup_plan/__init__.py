"""What a bringup starts: the one description behind `launch/bringup.launch.py` and `youbot bringup`, without ROS."""

from youbot_dynamics.bringup_plan.arguments import ARGUMENTS, TRUTH_VALUES, Argument, existing_file
from youbot_dynamics.bringup_plan.network import network, reach
from youbot_dynamics.bringup_plan.plan import left_out, plan
from youbot_dynamics.bringup_plan.process import Process, namespace_arguments

__all__ = [
    "ARGUMENTS",
    "TRUTH_VALUES",
    "Argument",
    "Process",
    "existing_file",
    "left_out",
    "namespace_arguments",
    "network",
    "plan",
    "reach",
]
