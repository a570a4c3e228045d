"""Odometry of the base from its wheels, with a gyro and a slip test."""

from youbot_dynamics.estimation.odometry._estimator import BaseEstimator
from youbot_dynamics.estimation.odometry._gyro import GyroSettings
from youbot_dynamics.estimation.odometry._odometry import Odometry, OdometryState, SignCheck
from youbot_dynamics.estimation.odometry._slip import SlipSettings

__all__ = [
    "BaseEstimator",
    "GyroSettings",
    "Odometry",
    "OdometryState",
    "SignCheck",
    "SlipSettings",
]
