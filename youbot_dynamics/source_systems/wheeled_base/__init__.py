"""A base on any wheels and casters, whose contacts press, roll, slip and lift. Source: document 004, systems 42-56."""

from youbot_dynamics.source_systems.wheeled_base._base import BaseMotion, WheeledBase
from youbot_dynamics.source_systems.wheeled_base._contact import (
    BaseState,
    Wheel,
    contacts,
    solve_friction,
)
from youbot_dynamics.source_systems.wheeled_base._lifted_wheels import plate_with_lifted_wheels
from youbot_dynamics.source_systems.wheeled_base._regimes import solve_regimes
from youbot_dynamics.source_systems.wheeled_base._simulation import (
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
    "plate_with_lifted_wheels",
    "simulate",
    "solve_friction",
    "solve_regimes",
    "step",
]
