"""Extended Kalman filter of an arm with LuGre friction (systems 12, 13, 44)."""

from youbot_dynamics.estimation.arm_ekf._filter import ArmBelief, ArmEkf, ArmTrack
from youbot_dynamics.estimation.arm_ekf._tuning import ESTIMATED, PROPAGATED, ArmEkfTuning, ArmSensors

__all__ = ["ArmBelief", "ArmEkf", "ArmEkfTuning", "ArmSensors", "ArmTrack", "ESTIMATED", "PROPAGATED"]
