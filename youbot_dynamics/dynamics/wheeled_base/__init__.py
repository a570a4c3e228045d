"""A base on any wheels and casters, with contacts that press, roll, slip and lift (Muir and Neuman 1987)."""

from youbot_dynamics.dynamics.wheeled_base._base import BaseMotion, WheeledBase
from youbot_dynamics.dynamics.wheeled_base._contact import (
    BaseState,
    Wheel,
    contacts,
    solve_friction,
)
from youbot_dynamics.dynamics.wheeled_base._regimes import solve_regimes
from youbot_dynamics.dynamics.wheeled_base._simulation import (
    BaseRun,
    BaseStep,
    simulate,
    step,
)

__all__ = [
    "BaseMotion",
    "BaseRun",
    "BaseState",
    "BaseStep",
    "Wheel",
    "WheeledBase",
    "contacts",
    "simulate",
    "solve_friction",
    "solve_regimes",
    "step",
]
