"""Response of a body to its commands, from a Twist and odometry or a gyro alone: for robots without wheel states."""

from youbot_dynamics.identification.body._fit import BodyAxis, identify_axis

__all__ = ["BodyAxis", "identify_axis"]
