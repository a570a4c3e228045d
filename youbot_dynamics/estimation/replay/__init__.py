"""The arm's estimators on a recorded log, without ROS."""

from youbot_dynamics.estimation.replay._parts import ArmLog, MotorReadings
from youbot_dynamics.estimation.replay._replay import ArmReplay, JointSummary, replay_arm, sound_innovations

__all__ = ["ArmLog", "ArmReplay", "JointSummary", "MotorReadings", "replay_arm", "sound_innovations"]
