"""Friction, weight and inertia of the arm from positions and torques."""

from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._inertia import ConsistentInertia
from youbot_dynamics.identification.arm_friction._load import LoadFriction, load_friction
from youbot_dynamics.identification.arm_friction._regressors import (
    OF_BODY,
    felt_parameters,
    inertial_parameters,
    regressor,
    uncertainty,
)
from youbot_dynamics.identification.arm_friction._rivals import identify_arm_friction
from youbot_dynamics.identification.arm_friction._rows import ArmFrictionModel
from youbot_dynamics.identification.arm_friction._scale import EffortScale, recorded_effort_scale
from youbot_dynamics.identification.arm_friction._windows import SLOWEST

__all__ = [
    "ArmFriction",
    "ArmFrictionModel",
    "ConsistentInertia",
    "EffortScale",
    "LoadFriction",
    "OF_BODY",
    "SLOWEST",
    "felt_parameters",
    "identify_arm_friction",
    "inertial_parameters",
    "load_friction",
    "recorded_effort_scale",
    "regressor",
    "uncertainty",
]
