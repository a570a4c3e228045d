"""What a bringup starts: the one description behind `launch/bringup.launch.py` and `youbot bringup`, without ROS."""

from youbot_dynamics.bringup_plan._arguments import (
    ARGUMENTS,
    TRUTH_VALUES,
    Argument,
    BringupOptions,
    check_words,
    existing_file,
    new_folder,
    truth,
)
from youbot_dynamics.bringup_plan._plan import (
    IDENTIFY_ARGUMENTS,
    NO_BRINGUP,
    PASSED_ON,
    identify_command,
    left_out,
    plan,
)
from youbot_dynamics.bringup_plan._processes import (
    DRIVER,
    OUR_PACKAGE,
    RESTART_PAUSE,
    Process,
    namespace_arguments,
    needed_program,
    network,
    reach,
)

__all__ = [
    "ARGUMENTS",
    "Argument",
    "BringupOptions",
    "DRIVER",
    "IDENTIFY_ARGUMENTS",
    "NO_BRINGUP",
    "OUR_PACKAGE",
    "PASSED_ON",
    "Process",
    "RESTART_PAUSE",
    "TRUTH_VALUES",
    "check_words",
    "existing_file",
    "identify_command",
    "left_out",
    "namespace_arguments",
    "needed_program",
    "network",
    "new_folder",
    "plan",
    "reach",
    "truth",
]
