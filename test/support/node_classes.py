"""The classes of the nodes, and parameters with which a node has what it has not without them."""

from __future__ import annotations

CLASSES = {
    "base_controller": "BaseController",
    "odometry": "OdometryNode",
    "trajectory_tracker": "TrajectoryTracker",
    "arm_ekf": "ArmEkfNode",
    "identification": "IdentificationNode",
    "stop_base": "StopBase",
    "check_driver": "CheckDriver",
    "mock_youbot": "MockYoubot",
    "program_player": "ProgramPlayer",
    "arm_player": "ArmPlayer",
}
# Parameters that bring out what a node has only with them.
VARIANTS = {
    "base_controller": ("command_interface:=joint_state", "command_interface:=float64_multi_array"),
    "odometry": ("stabilize:=false",),
    "stop_base": ("standby:=true",),
    "mock_youbot": ("motor_sensors:=true", "publish_clock:=true"),
}
