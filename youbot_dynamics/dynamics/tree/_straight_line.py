"""Straight-line code of certain trees: the recursions without loops, several times faster.

`scripts/write_straight_line.py` generates the code from the recursions; `generated/` contains it. The code is valid for
one arrangement of joints and one direction of gravity, with any masses, inertias and rotors.

Regrouping reduces the number of inertial parameters without a change of the joint torques. Mass on the axis of a
joint, distributed along it in any way, has the same effect at every angle of the joint, so it can be assigned to the
body that carries the joint. Three of a body's ten parameters move in this way: the mass, the first moment along the
axis, and a rod along the axis of inertia d (E - a a') about the joint. The regrouped values are not inertias of real
bodies, and forces between bodies differ, but joint torques and accelerations are the same (base parameters).
Source: Gautier and Khalil 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import HAVE_NUMBA
from youbot_dynamics.dynamics.generated import youbot_arm
from youbot_dynamics.dynamics.tree._articulated_body import carried_sizes
from youbot_dynamics.dynamics.tree._layout import REVOLUTE, Layout
from youbot_dynamics.dynamics.tree._spatial import ROUNDING


def spared_axis(axis: Vector) -> int:
    """Axis of the body's frame (0, 1, 2), normal to the joint axis (3,), whose moment of inertia becomes 0."""
    return int(np.argmin(np.abs(axis)))


def regrouped(layout: Layout) -> Layout:
    """Regrouped layout of revolute joints along axes of their bodies' frames.

    The mass, the first moment along the joint axis and the moment of inertia about `spared_axis` are 0.
    """
    masses, moments = np.array(layout.masses), np.array(layout.first_moments)
    inertias = np.array(layout.inertias)
    for i in reversed(layout.order):
        axis, spared, parent = layout.axes[i], spared_axis(layout.axes[i]), int(layout.parents[i])
        mass, along, rod = masses[i], float(axis @ moments[i]), inertias[i, spared, spared]
        masses[i] = 0.0
        moments[i] = np.where(np.abs(axis) > 0.5, 0.0, moments[i])
        inertias[i] -= rod * (np.eye(3) - np.outer(axis, axis))
        inertias[i, spared, spared] = 0.0
        if parent < 0:
            continue
        p, a = layout.positions[i], layout.rotations[i] @ axis
        h = along * a
        masses[parent] += mass
        moments[parent] += h + mass * p
        inertias[parent] += rod * (np.eye(3) - np.outer(a, a))
        inertias[parent] += (2.0 * p @ h + mass * p @ p) * np.eye(3)
        inertias[parent] -= np.outer(p, h) + np.outer(h, p) + mass * np.outer(p, p)
    return layout._replace(masses=masses, first_moments=moments, inertias=inertias)


_SHIPPED: tuple[ModuleType, ...] = (youbot_arm,)
# Number of inertial parameters of each body, and the index of the rotor among them.
STRIDE, ROTOR = 10, 9

_SAME = 1e-14  # [m, rad] tolerance for the sines of another machine
_FLOAT = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class StraightLine:
    """Kernels for one tree of nv joints; each takes `parameters`, the inertial parameters of the tree."""

    # (p,) first moments, inertias, rotor inertias and gravity, in the order of `parameters_of`; a tuple without a
    # compiler, since plain Python is slow on elements of arrays
    parameters: Any
    kernels: ModuleType  # the generated module; its functions of one state check only that the result is finite
    shape: tuple[int]  # of q, v and tau of one state

    def at(self, name: str, q: Any, v: Any, last: Any) -> Vector | None:
        """Result of a kernel for plain arrays q, v and tau or a (nv,); None if the arguments need the full checks.

        It is (nv,), or for `derivatives` (3, nv, nv).
        """
        if not _plain(q, v, last, self.shape):
            return None
        if not HAVE_NUMBA:
            q, v, last = _lists(q, v, last)
        out = np.empty((3, *self.shape, *self.shape) if name == "derivatives" else self.shape)
        return out if getattr(self.kernels, name)(q, v, last, self.parameters, out) else None

    def mass_matrix(self, q: Any) -> Vector | None:
        """Mass matrix (nv, nv) of a plain array q (nv,); None if it needs the full checks."""
        if not _plain(q, q, q, self.shape):
            return None
        if not HAVE_NUMBA:
            (q,) = _lists(q)
        out = np.empty((*self.shape, *self.shape))
        return out if self.kernels.mass_matrix(q, self.parameters, out) else None

    def rows(self, name: str) -> Callable[..., None]:
        """Kernel for rows of states, by its base name: compiled loops, or array operations on columns without numba."""
        kernel: Callable[..., None] = getattr(self.kernels, f"{name}_{'rows' if HAVE_NUMBA else 'columns'}")
        return kernel


def _plain(q: Any, v: Any, tau: Any, shape: tuple[int]) -> bool:
    """Whether three arguments are arrays that the kernels accept directly; this costs 0.3 us, the full checks 10 us."""
    return (
        type(q) is type(v) is type(tau) is np.ndarray
        and q.dtype is v.dtype is tau.dtype is _FLOAT
        and q.shape == v.shape == tau.shape == shape
        and q.flags.carray
        and v.flags.carray
        and tau.flags.carray
        and (HAVE_NUMBA or bool(np.isfinite(q).all()))  # sine of plain Python raises an error of its own for infinity
    )


def _lists(*states: Any) -> list[Any]:
    """Convert to lists, the fastest type for plain Python."""
    return [state.tolist() for state in states]


def parameters_of(layout: Layout) -> Vector:
    """Inertial parameters (10 n + 1,) of n bodies with a revolute joint each, in the order of the generated code.

    For each body after regrouping: first moment x y z, inertia about the joint's origin xx yy zz xy xz yz, rotor
    inertia. The last element is the magnitude of gravity.
    """
    free = regrouped(layout)
    rows = [
        [
            *free.first_moments[i],
            *np.diag(free.inertias[i]),
            free.inertias[i, 0, 1],
            free.inertias[i, 0, 2],
            free.inertias[i, 1, 2],
            free.rotor_inertias[i],
        ]
        for i in range(len(layout.parents))
    ]
    return np.array([*np.concatenate(rows), float(np.linalg.norm(layout.gravity))])


def structure_of(layout: Layout) -> tuple[tuple[int, ...], Vector] | None:
    """Parents, and geometry (n, 15) of axes, rotations, positions, if all joints turn about axes of their frames."""
    in_order = np.array_equal(layout.order, np.arange(len(layout.parents)))
    if not in_order or not np.all(layout.kinds == REVOLUTE) or not np.all(np.isin(np.abs(layout.axes), (0.0, 1.0))):
        return None
    n = len(layout.parents)
    geometry = np.hstack([layout.axes, layout.rotations.reshape(n, 9), layout.positions])
    return tuple(int(parent) for parent in layout.parents), geometry


def find_straight_line(layout: Layout) -> StraightLine | None:
    """Generated code for this tree, None if there is none."""
    structure = structure_of(layout)
    size = float(np.linalg.norm(layout.gravity))
    for module in _SHIPPED:
        if structure is None or structure[0] != module.PARENTS or size == 0.0 or not _resisted(layout):
            continue
        same = np.allclose(structure[1], np.array(module.GEOMETRY), rtol=0.0, atol=_SAME)
        if same and np.array_equal(layout.gravity / size, np.array(module.GRAVITY_DIRECTION)):
            numbers = parameters_of(layout)
            numbers.setflags(write=False)
            parameters = numbers if HAVE_NUMBA else tuple(numbers.tolist())
            return StraightLine(parameters, module, (len(layout.parents),))
    return None


def _resisted(layout: Layout) -> bool:
    """Whether the rotor and body of each joint give it inertia at any q; generated code divides unchecked."""
    own = np.einsum("ni,nij,nj->n", layout.axes, layout.inertias, layout.axes)
    masses, moments = np.zeros_like(own), np.zeros_like(own)
    carried_sizes(layout, layout.positions, masses, moments)
    return bool(np.all(own + layout.rotor_inertias > ROUNDING * moments))
