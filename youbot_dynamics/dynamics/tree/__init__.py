"""Dynamics of trees of rigid bodies. Source: Featherstone 2008."""

from youbot_dynamics.dynamics.tree._layout import Layout
from youbot_dynamics.dynamics.tree._rows import (
    derivative_rows,
    forward_dynamics_rows,
    inverse_dynamics_rows,
    mass_matrix_rows,
    solve_derivative_rows,
)
from youbot_dynamics.dynamics.tree._spatial import factor, solve
from youbot_dynamics.dynamics.tree._straight_line import (
    ROTOR,
    STRIDE,
    parameters_of,
)
from youbot_dynamics.dynamics.tree._sweeps import bias_at, mass_matrix_at, room_in, room_size, slopes_at
from youbot_dynamics.dynamics.tree._tree import Tree, without_fixed_joints
from youbot_dynamics.dynamics.tree._urdf import Link, arm_chain, read_urdf

__all__ = [
    "Layout",
    "Link",
    "ROTOR",
    "STRIDE",
    "Tree",
    "arm_chain",
    "bias_at",
    "derivative_rows",
    "factor",
    "forward_dynamics_rows",
    "inverse_dynamics_rows",
    "mass_matrix_at",
    "mass_matrix_rows",
    "parameters_of",
    "read_urdf",
    "room_in",
    "room_size",
    "slopes_at",
    "solve",
    "solve_derivative_rows",
    "without_fixed_joints",
]
