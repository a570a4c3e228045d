"""Normal forces of the wheels of a rigid base, for any layout. Source: document 004, systems 47, 48, 54, 55."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Flags, Vector, array
from youbot_dynamics.errors import InputError

_FLATTEST = 1e-9  # smallest ratio of singular values of a layout that can support moments about both axes
FELT = 1e-12  # force or moment, relative to those of the weight, below which it is rounding


def support_matrix(contacts: ArrayLike, stiffness: ArrayLike, pole: ArrayLike = (0.0, 0.0)) -> Vector:
    """Matrix (n, 3) from a load to the normal forces of n springs under a rigid plate.

    Three equations of balance leave n - 3 forces undetermined. A rigid plate on springs determines them: the force is
    linear in the position, N_i = k_i (l0 + lx x_i + ly y_i). For equal stiffness this agrees with document 004 for four
    wheels in a rectangle, and for six with the middle ones halfway and on the same track. That document counts the
    wheels around the base (front left, front right, rear right, rear left), unlike document 003. For a trapezoid its
    formula differs from the plate by up to 17 N of 147 N.

    Args:
        contacts: (n, 2) contact points [m].
        stiffness: (n,) positive, any common unit.
        pole: (2,) reference point of the moments of the load [m].

    Raises:
        InputError: wrong shapes, fewer than three wheels, a stiffness that is not positive, or contacts on one line,
            which support no moment about that line.

    Source: document 004, systems 54, 55.
    """
    return plate_of(contacts, stiffness, pole).forces_of_load


def normal_forces(contacts: ArrayLike, stiffness: ArrayLike, load: ArrayLike, pole: ArrayLike = (0.0, 0.0)) -> Vector:
    """Normal forces (n,) [N] for a load, whose components are sum N, sum (x - pole) N and sum (y - pole) N.

    A negative force means that the floor would have to pull: the wheel lifts off and the base starts to tip. Negative
    forces are returned unchanged.

    Args:
        contacts: (n, 2) contact points [m].
        stiffness: (n,) positive.
        load: (3,) weight and its two first moments about the pole [N, N m, N m].
        pole: (2,) [m].

    Raises:
        InputError: wrong shapes, NaN, or contacts on one line.
    """
    forces: Vector = support_matrix(contacts, stiffness, pole) @ array("load", load, (3,))
    return forces


@dataclass(frozen=True, eq=False)
class Plate:
    """Rigid plate on the springs of the wheels that carry it: their forces, and which other wheels it touches.

    The floor pushes and never pulls, so some wheels may have lifted; the others share the load as in `support_matrix`.
    One wheel, two wheels or a row of wheels support no moment about their line. The load is then shared as if the plate
    were held level, and `presses` shows towards which wheels it tips.
    """

    points: Vector  # (n, 2) contact points [m], n >= 3
    springs: Vector  # (n,) stiffness, positive
    pole: Vector  # (2,) reference point of the moments of a load [m]
    carrying: Flags  # (n,) of bool, at least one is true
    # (n, 3) matrix from weight and its two first moments to the forces; 0 for a lifted wheel
    forces_of_load: Vector = field(init=False)
    # (2, 2) projector on the moments that the carrying wheels cannot support; 0 if they span an area
    free_tilt: Vector = field(init=False)
    _arms: Vector = field(init=False)
    _shift: Vector = field(init=False)
    _squeezed: Vector = field(init=False)

    def __post_init__(self) -> None:
        """Compute the heights of the plate over all wheels for a unit of each component of the load."""
        springs = self.springs * self.carrying
        total = float(springs.sum())
        centre = springs @ self.points / total
        arms = self.points - centre
        _, sizes, axes = np.linalg.svd(np.sqrt(springs)[:, None] * arms, full_matrices=False)
        reach = float(np.sqrt(self.springs.max()) * np.abs(arms).max())
        firm = sizes > _FLATTEST * max(float(sizes[0]), reach)
        held = axes[firm]
        # Moments about the pole become moments about `centre`, where sinking and tilting are decoupled.
        x, y = self.pole - centre
        shift = np.array([[1.0, 0.0, 0.0], [x, 1.0, 0.0], [y, 0.0, 1.0]])
        tilt = arms @ (held.T / sizes[firm] ** 2) @ held
        squeezed = self.springs[:, None] * (np.column_stack([np.full(len(arms), 1.0 / total), tilt]) @ shift)
        set_ = object.__setattr__
        set_(self, "forces_of_load", squeezed * self.carrying[:, None])
        set_(self, "free_tilt", np.zeros((2, 2)) if firm.all() else np.eye(2) - held.T @ held)
        set_(self, "_arms", arms)
        set_(self, "_shift", shift)
        set_(self, "_squeezed", squeezed)

    def on(self, carrying: Flags) -> Plate:
        """Return the same plate carried by other wheels, given by flags (n,)."""
        return replace(self, carrying=carrying)

    def presses(self, load: Vector) -> Flags:
        """Flags (n,) of the wheels that touch the floor under a load (3,); equal to `carrying` if that set is right."""
        forces, weight = self._squeezed @ load, FELT * abs(float(load[0]))
        flags: Flags = np.where(self.carrying, forces >= -weight, forces > weight)
        if self.free_tilt.any():
            fall = self._arms @ (self.free_tilt @ (self._shift @ load)[1:])
            falls = np.abs(fall) > weight * float(np.abs(self._arms).max()) ** 2
            flags = np.where(falls & ~self.carrying, fall > 0.0, flags)
        return flags


def plate_of(contacts: ArrayLike, stiffness: ArrayLike, pole: ArrayLike) -> Plate:
    """Plate carried by all wheels; arguments (n, 2), (n,) and (2,) as for `support_matrix`.

    Raises:
        InputError: as for `support_matrix`.
    """
    points = array("contacts", contacts, (None, 2))
    springs = array("stiffness", stiffness, (len(points),))
    centre = array("pole", pole, (2,))
    if np.any(springs <= 0.0):
        worst = int(np.argmin(springs))
        raise InputError(f"stiffness[{worst}]", got=f"{springs[worst]:g}", expected="a positive number")
    plate = Plate(points, springs, centre, np.ones(len(points), dtype=bool)) if len(points) > 2 else None
    if plate is None or plate.free_tilt.any():
        raise InputError(
            "contacts",
            got=f"{len(points)} points on one line or fewer than three",
            expected="at least three contact points that span an area",
        )
    return plate
