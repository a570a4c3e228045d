"""The youBot in MuJoCo: contact physics with rollers, behind the twin's driver."""

from youbot_dynamics.simulation.mujoco_youbot._model import contact_model
from youbot_dynamics.simulation.mujoco_youbot._view import engine
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoYoubot

__all__ = [
    "MujocoYoubot",
    "contact_model",
    "engine",
]
