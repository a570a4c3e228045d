"""An arm with LuGre friction and motors that warm up, and its implicit time step."""

from youbot_dynamics.dynamics.arm._model import (
    ROOT_LINK,
    ArmModel,
    ArmState,
    arm_tree,
)
from youbot_dynamics.dynamics.arm._step import (
    DONE,
    ROW,
    ArmBody,
    StepWork,
    arm_body,
    arm_step,
    step_work,
)
from youbot_dynamics.dynamics.arm._stops import stop_energy

__all__ = [
    "ArmBody",
    "ArmModel",
    "ArmState",
    "DONE",
    "ROOT_LINK",
    "ROW",
    "StepWork",
    "arm_body",
    "arm_step",
    "arm_tree",
    "step_work",
    "stop_energy",
]
