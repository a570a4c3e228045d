"""A recording for the stages: opened and numbered, with topics found and units, clocks and stamps checked."""

from youbot_dynamics.identification.reading._choices import refused_choices
from youbot_dynamics.identification.reading._clock import ONE_WAY, clocks_apart
from youbot_dynamics.identification.reading._opened import (
    ROLES,
    Opened,
    Options,
    Source,
    angles_beyond,
    find_arm_states,
    find_odometry,
    find_pose_topic,
    find_topic,
    find_wheel_states,
    listed,
    named_topics,
    open_recording,
    positions_in_degrees,
    speed_ratio,
    times_of,
)
from youbot_dynamics.identification.reading._quality import look_at

__all__ = [
    "ONE_WAY",
    "Opened",
    "Options",
    "ROLES",
    "Source",
    "angles_beyond",
    "clocks_apart",
    "find_arm_states",
    "find_odometry",
    "find_pose_topic",
    "find_topic",
    "named_topics",
    "find_wheel_states",
    "listed",
    "look_at",
    "open_recording",
    "positions_in_degrees",
    "refused_choices",
    "speed_ratio",
    "times_of",
]
