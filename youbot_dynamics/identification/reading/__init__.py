"""A recording for the stages: opened and numbered, with topics found and units, clocks and stamps checked."""

from youbot_dynamics.identification.reading._choices import refused_choices
from youbot_dynamics.identification.reading._clock import (
    ONE_WAY,
    clocks_apart,
    first_rows,
    new_readings,
    on_clock_of_receiver,
    on_one_clock,
)
from youbot_dynamics.identification.reading._commands import is_to_driver, wheel_commands
from youbot_dynamics.identification.reading._logs import MERGED, columns_of, efforts_of, untold_rows
from youbot_dynamics.identification.reading._opened import (
    ROLES,
    Opened,
    Options,
    Source,
    find_arm_states,
    find_odometry,
    find_pose_topic,
    find_topic,
    find_wheel_states,
    joint_readings,
    motor_readings,
    named_topics,
    open_recording,
    positions_in_degrees,
    recorded_joints,
    speed_ratio,
    times_of,
)
from youbot_dynamics.identification.reading._quality import excess_of_angles, look_at
from youbot_dynamics.identification.reading._unnamed import robot_of

__all__ = [
    "MERGED",
    "ONE_WAY",
    "Opened",
    "Options",
    "ROLES",
    "Source",
    "clocks_apart",
    "columns_of",
    "efforts_of",
    "excess_of_angles",
    "find_arm_states",
    "recorded_joints",
    "find_odometry",
    "first_rows",
    "find_pose_topic",
    "find_topic",
    "named_topics",
    "find_wheel_states",
    "is_to_driver",
    "joint_readings",
    "look_at",
    "motor_readings",
    "new_readings",
    "on_clock_of_receiver",
    "on_one_clock",
    "open_recording",
    "positions_in_degrees",
    "refused_choices",
    "robot_of",
    "speed_ratio",
    "times_of",
    "untold_rows",
    "wheel_commands",
]
