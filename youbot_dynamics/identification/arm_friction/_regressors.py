"""Torques of an arm as a linear function of its inertial parameters, and the combinations that act on them.

The torques of rigid bodies are linear in mass, first moments and inertias about the joint origins: each column of the
regressor is the inverse dynamics of the tree with one of these numbers 1 and all others 0. Only some combinations, the
base parameters, affect any torque; a given motion excites even fewer.

Source: system 20.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.tree import Layout, Tree, inverse_dynamics_rows

QUANTITIES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m2",) * 6)
_INERTIAS = tuple(zip(*np.triu_indices(3), strict=True))
OF_BODY = len(QUANTITIES)

_ROUNDING = 1e-9  # share of a column in a combination below which it is a rounding error
_ALONE = 0.05  # largest effect of another parameter, in units of its uncertainty, in what is called a single one
# Assumed uncertainty of nominal links: twice that of docs/robot_facts.md.
_MASS_SHARE, _CENTRE, _ROTOR_SHARE = 0.3, 0.02, 0.2
_LEAST_ROTOR = 1e-4  # smallest uncertainty of a rotor inertia [kg m2]
UNKNOWN_ROTOR = 10.0  # uncertainty of a rotor inertia that is not given, over the largest inertia of links at a joint
_LEAST_UNCERTAINTY = 1e-9  # of a body's inertial parameters [kg, kg m, kg m2], since columns are divided by it


def inertial_parameters(tree: Tree) -> Vector:
    """Inertial parameters (10 n + nv,) of a tree of n bodies: ten per body as in QUANTITIES, then the rotor inertias.

    First moments [kg m] and inertias [kg m2] are about the origin of the joint frame, in that frame.
    """
    layout = tree.layout
    bodies = [
        [mass, *moment, *(inertia[i, j] for i, j in _INERTIAS)]
        for mass, moment, inertia in zip(layout.masses, layout.first_moments, layout.inertias, strict=True)
    ]
    return np.concatenate([np.ravel(bodies), layout.rotor_inertias])


def with_inertial_parameters(tree: Tree, parameters: Vector) -> Tree:
    """The same joints with other inertial parameters (p,), p = 10 n + nv, not checked: they may be unphysical."""
    return replace(tree, layout=_layout_with(tree, parameters))


def _layout_with(tree: Tree, parameters: Vector) -> Layout:
    n = len(tree.names)
    rows = parameters[: OF_BODY * n].reshape(n, OF_BODY)
    inertias = np.empty((n, 3, 3))
    for column, (i, j) in enumerate(_INERTIAS):
        inertias[:, i, j] = inertias[:, j, i] = rows[:, 4 + column]
    return tree.layout._replace(
        masses=rows[:, 0].copy(),
        first_moments=rows[:, 1:4].copy(),
        inertias=inertias,
        rotor_inertias=parameters[OF_BODY * n :].copy(),
    )


def regressor(tree: Tree, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Vector:
    """Y (t, nv, 10 n + nv) with tau = Y parameters = inverse_dynamics(q, v, a), for q, v, a (t, nv) [rad, s].

    The tree gives kinematics and gravity: n bodies, every joint with one degree of freedom.
    """
    positions = array("q", q, (None, tree.nv))
    speeds, accelerations = array("v", v, positions.shape), array("a", a, positions.shape)
    n, nv = len(tree.names), tree.nv
    table = np.zeros((len(positions), nv, OF_BODY * n + nv))
    no_wrenches, torque = np.zeros((len(positions), n, 6)), np.empty((len(positions), nv))
    for column in range(OF_BODY * n):
        unit = np.zeros(OF_BODY * n + nv)
        unit[column] = 1.0
        inverse_dynamics_rows(_layout_with(tree, unit), positions, speeds, accelerations, no_wrenches, torque)
        table[:, :, column] = torque
    for joint in range(nv):
        table[:, joint, OF_BODY * n + joint] = accelerations[:, joint]
    return table


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Independent columns of the regressor of a tree with p parameters, each for a combination of parameters."""

    columns: NDArray[np.intp]  # (b,) the independent columns
    combination: Vector  # (b, p) base parameters = combination @ inertial parameters
    # "arm_link_3_mx" is that first moment alone, "arm_link_3_mx_combination" one with all that act alike,
    # "arm_joint_2_rotor" an inertia
    names: tuple[str, ...]
    units: tuple[str, ...]


def uncertainty(tree: Tree) -> Vector:
    """Assumed uncertainty (10 n + nv,) of the nominal inertial parameters of a robot.

    A third of the mass, 2 cm of the centre of mass and their effect on the inertia; a fifth of a rotor. It is never 0,
    so a massless body stays massless. A rotor inertia of 0 means that nothing is known of it, because a URDF has none:
    behind a gear it may be ten times that of all links.
    """
    layout = tree.layout
    rows = []
    for mass, inertia in zip(layout.masses, layout.inertias, strict=True):
        size = 0.5 * float(np.trace(inertia)) * _MASS_SHARE + mass * _CENTRE**2
        length = np.sqrt(max(0.5 * float(np.trace(inertia)) / mass, _CENTRE**2)) if mass > 0.0 else _CENTRE
        moment = mass * np.hypot(_CENTRE, _MASS_SHARE * length)
        rows.append([_MASS_SHARE * mass, *(moment,) * 3, *(size,) * 6])
    links = float(np.max(np.diag(tree.mass_matrix(np.zeros(tree.nq))), initial=0.0))
    unknown = max(UNKNOWN_ROTOR * links, _LEAST_ROTOR)
    rotors = np.where(
        layout.rotor_inertias > 0.0, np.maximum(_ROTOR_SHARE * layout.rotor_inertias, _LEAST_ROTOR), unknown
    )
    return np.concatenate([np.maximum(np.ravel(rows), _LEAST_UNCERTAINTY), rotors])


def felt_parameters(tree: Tree, rows: ArrayLike, torque: float) -> BaseParameters:
    """Combinations that the data determine: their uncertainty changes the torques by more than `torque`.

    The change is the root mean square [N m] over rows (r, 10 n + nv) of the regressor. The remaining combinations would
    be ill-conditioned; they keep their nominal values.
    """
    sizes = uncertainty(tree)
    table = array("rows", rows, (None, len(sizes)))
    # Columns, in units of their uncertainty, with more than `torque` outside the span of those chosen before.
    upper, order = qr(table / np.sqrt(max(1, len(table))) * sizes, mode="r", pivoting=True)
    rank = int(np.count_nonzero(np.abs(np.diag(upper[: len(order)])) > torque))
    columns, dependent = np.asarray(order[:rank], dtype=np.intp), order[rank:]
    # Dependent columns as combinations of the chosen ones, in the units of the parameters.
    shares = np.linalg.solve(upper[:rank, :rank], upper[:rank, rank:]) if rank else np.zeros((0, len(order)))
    combination = np.zeros((rank, len(sizes)))
    combination[np.arange(rank), columns] = 1.0
    combination[:, dependent] = shares * sizes[columns][:, None] / sizes[dependent]
    combination[np.abs(combination) < _ROUNDING] = 0.0
    ascending = np.argsort(columns)
    names = [f"{body}_{quantity}" for body in tree.names for quantity in QUANTITIES]
    names += [f"{joint}_rotor" for joint, speeds in zip(tree.joint_names, tree.layout.v_count, strict=True) if speeds]
    alone = np.max(np.abs(shares), axis=1, initial=0.0) < _ALONE
    units = _UNITS * len(tree.names) + ("kg m2",) * tree.nv
    return BaseParameters(
        columns[ascending],
        combination[ascending],
        tuple(names[columns[k]] + ("" if alone[k] else "_combination") for k in ascending),
        tuple(units[k] for k in columns[ascending]),
    )


def _common_columns(angles: Vector, accelerations: Vector) -> list[Vector]:
    """Columns (k,) of what n joints do to each other, by their angles [rad] and accelerations [rad/s2] (n, k).

    The weight that a joint of a tree lifts is a sum of sines and cosines of sums and differences of the angles of all
    subsets of its joints. Inertias are constant here, and centrifugal torques are left out.
    """
    count, columns = len(angles), list(accelerations)
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            for signs in product((1.0, -1.0), repeat=size - 1):
                total = np.array([1.0, *signs]) @ angles[list(chosen)]
                columns += [np.sin(total), np.cos(total)]
    return columns


def columns_of_joints(position: Vector, acceleration: Vector, weighed: bool, coupled: bool) -> Vector:
    """Columns (k, n, m + 1) of n joints without a tree at positions (k, n) [rad] and accelerations (k, n) [rad/s2].

    They are the own acceleration, the sine and cosine of the angle where a joint is `weighed`, what the others do to it
    where joints are `coupled`, and last the torque of nominal bodies, 0.
    """
    parts = [acceleration]
    parts += [np.sin(position), np.cos(position)] if weighed else []
    own = np.stack([*parts, np.zeros_like(position)], axis=2)
    if not coupled:
        return own
    common, count = np.column_stack(_common_columns(position.T, acceleration.T)), own.shape[1]
    places = [(j, count + 2 * j, count + 2 * j + 1) for j in range(count)]  # of what each has of its own
    shared = np.stack([np.delete(common, place, axis=1) for place in places], axis=1)
    return np.concatenate([own[:, :, :-1], shared, own[:, :, -1:]], axis=2)
