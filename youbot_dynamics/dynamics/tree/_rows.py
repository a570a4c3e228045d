"""Checks and shapes of one or many states, and the recursions over rows of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import LARGEST, Vector, array, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree import _articulated_body as articulated_body
from youbot_dynamics.dynamics.tree._layout import FLOATING, Layout
from youbot_dynamics.dynamics.tree._recursion import (
    forces,
    gather,
    motions,
    place,
    sines_and_cosines,
)
from youbot_dynamics.dynamics.tree._spatial import factor, solve
from youbot_dynamics.dynamics.tree._sweeps import mass_matrix_at, room_in, room_size, slopes_at
from youbot_dynamics.errors import InputError

_FLOAT = np.dtype(np.float64)
_UNIT = 1e-3  # tolerance of the length of a quaternion; the recursions normalise it


def state_rows(
    names: Sequence[str],
    layout: Layout,
    q: Mapping[str, Any],
    others: Mapping[str, Any],
    external: ArrayLike | None,
) -> tuple[Vector, list[Vector], Vector, bool]:
    """Bring positions, speeds and wrenches to t rows; a single state is repeated in every row.

    Args:
        names: [n] of the bodies, for messages.
        layout: the tree.
        q: name, value (nq,) or (t, nq), and nq.
        others: the same of speeds, accelerations or torques, (nv,) or (t, nv), and nv.
        external: (n, 6) or (t, n, 6) wrenches on the bodies, None for none.

    Returns:
        Positions (t, nq), the others (t, nv), wrenches (t, n, 6) or (1, n, 6), and whether all came as one state.
        All but the wrenches are read-only, whatever came: else the kernels would be compiled for each combination.

    Raises:
        InputError: a wrong shape, a number that is not finite, rows that do not match, or an invalid quaternion.
    """
    if external is None and all(_is_plain(*sized) for sized in (*q.values(), *others.values())):
        states = [read_only(value[None]) for value, _ in (*q.values(), *others.values())]
        _check_quaternions(names, layout, states[0])
        return states[0], states[1:], np.zeros((1, len(names), 6)), True
    rows = {name: (_looked_at(name, value), width) for name, (value, width) in {**q, **others}.items()}
    lengths = {len(value) for value, _ in rows.values() if value.ndim == 2}
    wrenches, stacked = np.zeros((1, len(names), 6)), False
    if external is not None:
        forces = _looked_at("external", external)
        stacked = forces.ndim == 3
        wrenches = array("external", forces, (None, len(names), 6) if stacked else (len(names), 6))
        wrenches = wrenches if stacked else wrenches[None]
        lengths |= {len(wrenches)} if stacked else set()
    if len(lengths) > 1:
        counts = " and ".join(str(n) for n in sorted(lengths))
        raise InputError(", ".join(rows), got=f"{counts} rows", expected="the same number of rows each")
    single = not lengths
    count = 1 if single else lengths.pop()
    checked = []
    for name, (value, width) in rows.items():
        state = array(name, value, (None, width) if value.ndim == 2 else (width,))
        checked.append(read_only(np.ascontiguousarray(np.broadcast_to(state, (count, width)))))
    _check_quaternions(names, layout, checked[0])
    return checked[0], checked[1:], wrenches, single


def one_state(names: Sequence[str], layout: Layout, q: Any, others: Mapping[str, Any]) -> tuple[Vector, list[Vector]]:
    """Positions (nq,) and the others (nv,) of a single state; arguments and errors as `state_rows`, q without name."""
    sized = {"q": q, **others}
    position, *motion = (x if _is_plain(x, n) else array(name, x, (n,)) for name, (x, n) in sized.items())
    _check_quaternions(names, layout, position[None])
    return position, motion


def _looked_at(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:
        raise InputError(name, got="rows of different lengths", expected="numbers in rows of one length") from None


def _is_plain(value: Any, width: int) -> bool:
    """Whether a value is one state that the kernels accept directly; checks by `array` cost 4 us each."""
    plain = type(value) is np.ndarray and value.dtype is _FLOAT and value.shape == (width,) and value.flags.carray
    return plain and all_finite(value)


@compiled
def all_finite(values: Vector) -> bool:
    """Whether no element of values (n,) is NaN, infinite or so large that `array` refuses it."""
    for k in range(len(values)):
        if not -LARGEST <= values[k] <= LARGEST:
            return False
    return True


def _check_quaternions(names: Sequence[str], layout: Layout, q: Vector) -> None:
    if len(layout.subspace) == q.shape[1]:  # as many speeds as positions: no floating joint
        return
    for i in (int(k) for k in np.flatnonzero(layout.kinds == FLOATING)):
        start = int(layout.q_start[i]) + 3
        off = np.abs(np.linalg.norm(q[:, start : start + 4], axis=1) - 1.0)
        if not np.all(off <= _UNIT):
            length = np.linalg.norm(q[np.argmax(off), start : start + 4])
            raise InputError(
                f"quaternion x y z w of body '{names[i]}' in q", got=f"length {length:.4g}", expected="length 1"
            )


def index_of(what: str, which: int | str, names: Sequence[str]) -> int:
    """Index of `which` body or joint, given by index or name, among names [n]; InputError for an unknown `what`."""
    if isinstance(which, str):
        if which not in names:
            raise InputError(what, got=f"'{which}'", expected=f"one of {', '.join(names)}")
        return names.index(which)
    if not isinstance(which, (int, np.integer)) or not 0 <= which < len(names):
        raise InputError(what, got=str(which), expected=f"0 to {len(names) - 1}")
    return int(which)


@compiled
def places(layout: Layout, q: Vector, rotations: Vector, positions: Vector) -> None:
    """Write the pose of every body in its parent at q (nq,): rotations (n, 3, 3), positions (n, 3)."""
    n = layout.parents.shape[0]
    sines, cosines = np.zeros(n), np.zeros(n)
    sines_and_cosines(layout, q, sines, cosines)
    place(layout, q, sines, cosines, rotations, positions)


@compiled
def inverse_dynamics_rows(layout: Layout, q: Vector, v: Vector, a: Vector, external: Vector, tau: Vector) -> None:
    """Write tau (t, nv) of q (t, nq), v (t, nv), a (t, nv) and wrenches external (t, n, 6) or (1, n, 6)."""
    n = layout.parents.shape[0]
    rotations, positions = np.zeros((n, 3, 3)), np.zeros((n, 3))
    velocity, acceleration, joint = np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6))
    momentum, force = np.zeros((n, 6)), np.zeros((n, 6))
    for t in range(q.shape[0]):
        places(layout, q[t], rotations, positions)
        motions(layout, rotations, positions, v[t], a[t], velocity, acceleration, joint)
        forces(layout, velocity, acceleration, external[t % external.shape[0]], momentum, force)
        gather(layout, rotations, positions, force, tau[t])
        for s in range(tau.shape[1]):
            tau[t, s] += layout.rotor_inertias[s] * a[t, s]


@compiled
def mass_matrix_rows(layout: Layout, q: Vector, matrix: Vector) -> None:
    """Write mass matrices (t, nv, nv) of q (t, nq). Source: system 26."""
    n, nv = layout.parents.shape[0], matrix.shape[1]
    placed = room_in(np.zeros(room_size(n, nv)), n, nv).placed
    for t in range(q.shape[0]):
        mass_matrix_at(layout, q[t], placed, matrix[t])


@compiled
def forward_dynamics_rows(
    layout: Layout, rotors: Vector, q: Vector, v: Vector, tau: Vector, external: Vector, out: Vector
) -> int:
    """Write accelerations (t, nv) of q (t, nq), v (t, nv), tau (t, nv), external (t, n, 6) or (1, n, 6); rotors (nv,).

    Returns:
        -1, or the body whose joint has no inertia to accelerate.

    Source: Featherstone's recursion, systems 21-23.
    """
    space = articulated_body.new_space(layout.parents.shape[0], v.shape[1])
    for t in range(q.shape[0]):
        places(layout, q[t], space.rotations, space.positions)
        stuck = articulated_body.articulate(layout, rotors, v[t], tau[t], external[t % external.shape[0]], space)
        if stuck >= 0:
            return stuck
        articulated_body.accelerate(layout, space, out[t])
    return -1


@compiled
def derivative_rows(
    layout: Layout, q: Vector, v: Vector, a: Vector, external: Vector, dq: Vector, dv: Vector, matrix: Vector
) -> None:
    """Write d tau/d q, d tau/d v, M, each (t, nv, nv), of q (t, nq), v, a (t, nv) and external."""
    n, nv = layout.parents.shape[0], v.shape[1]
    room, tau = room_in(np.zeros(room_size(n, nv)), n, nv), np.zeros(nv)
    for t in range(q.shape[0]):
        mass_matrix_at(layout, q[t], room.placed, matrix[t])
        slopes_at(layout, v[t], a[t], external[t % external.shape[0]], room, tau, dq[t], dv[t])


@compiled
def solve_derivatives(dq: Vector, dv: Vector, matrix: Vector) -> bool:
    """Replace d tau/d q, d tau/d v, M by d qdd/d q = -M^-1 d tau/d q, d qdd/d v = -M^-1 d tau/d v, d qdd/d tau = M^-1.

    Each is (nv, nv). Returns False if M is not positive definite.
    Source: document 001 (5), (6), which takes finite differences; system 8; D-001-2.
    """
    nv = matrix.shape[0]
    factors = matrix.copy()
    if not factor(factors, nv):
        return False
    column = np.empty(nv)
    for c in range(nv):
        for slopes in (dq, dv):
            for row in range(nv):
                column[row] = -slopes[row, c]
            solve(factors, nv, column)
            slopes[:, c] = column
        column[:] = 0.0
        column[c] = 1.0
        solve(factors, nv, column)
        matrix[:, c] = column
    return True


@compiled
def solve_derivative_rows(dq: Vector, dv: Vector, matrix: Vector) -> bool:
    """Replace inverse by forward derivatives in place, each (t, nv, nv); False if an M is not positive definite."""
    for t in range(dq.shape[0]):
        if not solve_derivatives(dq[t], dv[t], matrix[t]):
            return False
    return True
