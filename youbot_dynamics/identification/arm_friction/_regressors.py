"""Torques of an arm as a linear function of its inertial parameters, and which combinations of them act at all.

The torques of rigid bodies are linear in mass, first moments and inertias about the joints' origins (system 20): each
column of the regressor is the inverse dynamics of the tree with one of these numbers 1 and all others 0. Only some
combinations, the base parameters, act on any torque; of these, a given motion feels fewer still.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.tree import Layout, Tree, inverse_dynamics_rows

QUANTITIES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m2",) * 6)
_INERTIAS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
OF_BODY = len(QUANTITIES)

_SAMPLES = 400  # random states that show which columns depend on each other
_DEPENDENT = 1e-9  # size of what is left of such a column, relative to the largest
# Uncertainty taken for granted of nominal links: docs/robot_facts.md, doubled.
_MASS_SHARE, _CENTRE, _ROTOR_SHARE = 0.3, 0.02, 0.2


def inertial_parameters(tree: Tree) -> Vector:
    """Inertial parameters (10 n + nv,) of a tree of n bodies: ten a body as in QUANTITIES, then the rotor inertias.

    First moments [kg m] and inertias [kg m2] are about the origin of the joint's frame, in that frame.
    """
    layout = tree.layout
    of_bodies = [
        [mass, *moment, *(inertia[i, j] for i, j in _INERTIAS)]
        for mass, moment, inertia in zip(layout.masses, layout.first_moments, layout.inertias, strict=True)
    ]
    return np.concatenate([np.ravel(of_bodies), layout.rotor_inertias])


def parameter_names(tree: Tree) -> tuple[str, ...]:
    """Names of the inertial parameters, such as "arm_link_2 mx" and "arm_joint_2 rotor"."""
    of_bodies = [f"{body} {quantity}" for body in tree.names for quantity in QUANTITIES]
    return (*of_bodies, *(f"{joint} rotor" for joint in tree.joint_names))


def parameter_units(tree: Tree) -> tuple[str, ...]:
    """Units of the inertial parameters."""
    return _UNITS * len(tree.names) + ("kg m2",) * tree.nv


def with_inertial_parameters(tree: Tree, parameters: ArrayLike) -> Tree:
    """The same joints with other bodies; nothing is checked, so that unphysical ones can be looked at.

    Args:
        tree: n bodies with nv speeds.
        parameters: (p,) with p = 10 n + nv.
    """
    given = array("parameters", parameters, (OF_BODY * len(tree.names) + tree.nv,))
    return dataclasses.replace(tree, layout=_layout_with(tree, given))


def _layout_with(tree: Tree, parameters: Vector) -> Layout:
    """Layout of the tree with other bodies, parameters (10 n + nv,)."""
    n = len(tree.names)
    rows = parameters[: OF_BODY * n].reshape(n, OF_BODY)
    inertias = np.empty((n, 3, 3))
    for place, (i, j) in enumerate(_INERTIAS):
        inertias[:, i, j] = inertias[:, j, i] = rows[:, 4 + place]
    return tree.layout._replace(
        masses=rows[:, 0].copy(),
        first_moments=rows[:, 1:4].copy(),
        inertias=inertias,
        rotor_inertias=parameters[OF_BODY * n :].copy(),
    )


def regressor(tree: Tree, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Vector:
    """Y (t, nv, 10 n + nv) with tau = Y parameters = inverse_dynamics(q, v, a).

    Args:
        tree: kinematics and gravity; n bodies, every joint with one speed.
        q: (t, nv) [rad].
        v: (t, nv) [rad/s].
        a: (t, nv) [rad/s2].
    """
    positions = array("q", q, (None, tree.nv))
    speeds, accelerations = array("v", v, positions.shape), array("a", a, positions.shape)
    n, nv = len(tree.names), tree.nv
    table = np.zeros((len(positions), nv, OF_BODY * n + nv))
    none, torque = np.zeros((len(positions), n, 6)), np.empty((len(positions), nv))
    for column in range(OF_BODY * n):
        one = np.zeros(OF_BODY * n + nv)
        one[column] = 1.0
        inverse_dynamics_rows(_layout_with(tree, one), positions, speeds, accelerations, none, torque)
        table[:, :, column] = torque
    for joint in range(nv):
        table[:, joint, OF_BODY * n + joint] = accelerations[:, joint]
    return table


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Independent columns of the regressor of a tree with p parameters, each standing for a combination of them.

    Args:
        columns: (b,) the independent columns.
        combination: (b, p) base parameters = combination @ inertial parameters.
        names: (b,) of the column each is named after: "arm_link_3 mx" is that first moment with what acts like it.
        units: (b,).
    """

    columns: NDArray[np.intp]
    combination: Vector
    names: tuple[str, ...]
    units: tuple[str, ...]


def uncertainty(tree: Tree) -> Vector:
    """How far (10 n + nv,) the inertial parameters of a robot may lie from those of its drawings.

    A third of the mass, 2 cm of the centre of mass and what both make of the inertia; a fifth of a rotor.
    """
    layout = tree.layout
    rows = []
    for mass, inertia in zip(layout.masses, layout.inertias, strict=True):
        size = 0.5 * float(np.trace(inertia)) * _MASS_SHARE + mass * _CENTRE**2
        length = np.sqrt(max(0.5 * float(np.trace(inertia)) / mass, _CENTRE**2)) if mass > 0.0 else _CENTRE
        moment = mass * np.hypot(_CENTRE, _MASS_SHARE * length)
        rows.append([_MASS_SHARE * mass, *(moment,) * 3, *(size,) * 6])
    rotors = np.maximum(_ROTOR_SHARE * layout.rotor_inertias, 1e-4)
    return np.concatenate([np.ravel(rows), rotors])


def base_parameters(tree: Tree, seed: int = 0) -> BaseParameters:
    """Base parameters of a tree: which columns of the regressor are independent over all motions.

    Args:
        tree: n bodies, every joint with one speed.
        seed: of the random states the dependence is read from; it changes nothing but rounding.
    """
    random = np.random.default_rng(seed)
    q, v, a = (random.uniform(-3.0, 3.0, (_SAMPLES, tree.nv)) for _ in range(3))
    table = regressor(tree, q, v, a)
    return _independent(tree, table.reshape(-1, table.shape[2]), _DEPENDENT, np.ones(table.shape[2]))


def felt_parameters(tree: Tree, rows: ArrayLike, torque: float) -> BaseParameters:
    """The combinations that these very data feel: those whose uncertainty moves the torques by more than `torque`.

    The others cannot be told from the rest and would make nonsense of it; they stay at the values of the drawings.

    Args:
        tree: n bodies.
        rows: (r, 10 n + nv) of the regressor.
        torque: root mean square over the rows [N m].
    """
    sizes = uncertainty(tree)
    table = array("rows", rows, (None, len(sizes))) / np.sqrt(max(1, len(np.atleast_2d(rows))))
    return _independent(tree, table, torque, sizes)


def _independent(tree: Tree, rows: Vector, smallest: float, sizes: Vector) -> BaseParameters:
    """Columns of rows (r, p) scaled by sizes (p,) that keep more than `smallest` beside those chosen before."""
    scaled = rows * sizes
    upper, order = qr(scaled, mode="r", pivoting=True)
    strength = np.abs(np.diag(upper[: len(order)]))
    limit = smallest * strength[0] if smallest == _DEPENDENT else smallest
    rank = int(np.count_nonzero(strength > limit))
    columns = np.asarray(order[:rank], dtype=np.intp)
    # Dependent columns as combinations of the chosen ones, in the units of the parameters.
    shares = np.linalg.solve(upper[:rank, :rank], upper[:rank, rank:]) if rank else np.zeros((0, len(order)))
    combination = np.zeros((rank, len(sizes)))
    combination[np.arange(rank), columns] = 1.0
    rest = order[rank:]
    combination[:, rest] = shares * sizes[columns][:, None] / sizes[rest]
    combination[np.abs(combination) < _DEPENDENT] = 0.0
    sequence = np.argsort(columns)
    names, units = parameter_names(tree), parameter_units(tree)
    return BaseParameters(
        columns[sequence],
        combination[sequence],
        tuple(names[k] for k in columns[sequence]),
        tuple(units[k] for k in columns[sequence]),
    )


def named_after(base: BaseParameters) -> Sequence[str]:
    """Names with underscores, as results carry them: "arm_link_3_mx"."""
    return [name.replace(" ", "_") for name in base.names]
