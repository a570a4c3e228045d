"""Extended Kalman filter of an arm with LuGre friction. Source: systems 12, 13."""

from youbot_dynamics.estimation.arm_ekf._filter import ArmBelief, ArmEkf, ArmTrack
from youbot_dynamics.estimation.arm_ekf._tuning import ESTIMATED, PROPAGATED, ArmEkfTuning, ArmSensors

__all__ = ["ArmBelief", "ArmEkf", "ArmEkfTuning", "ArmSensors", "ArmTrack", "ESTIMATED", "PROPAGATED"]
