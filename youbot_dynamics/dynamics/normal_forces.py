"""Share of the weight that each wheel of a rigid base carries, for any layout (systems 47, 48, 54, 55)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import array
from youbot_dynamics.errors import InputError

Vector = NDArray[np.float64]

_FLATTEST = 1e-9  # smallest singular value over the largest of a layout that still carries moments


def support_matrix(contacts: ArrayLike, stiffness: ArrayLike, pole: ArrayLike = (0.0, 0.0)) -> Vector:
    """Matrix (n, 3) from a load to the normal forces of n springs under a rigid plate.

    Three equations of balance leave n - 3 forces open. A flat plate on springs closes them: the force is linear in
    the place, N_i = k_i (l0 + lx x_i + ly y_i). For equal stiffness this is the pattern of seed 004 for four wheels
    in a rectangle and for six with the middle ones half way and on the same track; there the document counts the
    wheels around the base (front left, front right, rear right, rear left), not front to rear as seed 003. For a
    trapezoid its pattern contradicts the plate by up to 17 N of 147 N (systems 54, 55).

    Args:
        contacts: (n, 2) contact points [m].
        stiffness: (n,) positive, any common unit.
        pole: (2,) point about which the load takes its moments [m].

    Raises:
        InputError: wrong shapes, fewer than three wheels, a stiffness that is not positive, or contacts on one line:
            such a base carries no moment across the line.
    """
    points = array("contacts", contacts, (None, 2))
    springs = array("stiffness", stiffness, (len(points),))
    if np.any(springs <= 0.0):
        worst = int(np.argmin(springs))
        raise InputError(f"stiffness[{worst}]", got=f"{springs[worst]:g}", expected="a positive number")
    arms = points - array("pole", pole, (2,))
    plate = np.column_stack([np.ones(len(arms)), arms])
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) if len(points) > 2 else np.zeros(2)
    if spread[1] <= _FLATTEST * max(spread[0], 1e-300):
        raise InputError(
            "contacts",
            got=f"{len(points)} points on one line or fewer than three",
            expected="at least three contact points that span an area",
        )
    loaded = springs[:, None] * plate
    forces: Vector = loaded @ np.linalg.inv(plate.T @ loaded)
    return forces


def normal_forces(contacts: ArrayLike, stiffness: ArrayLike, load: ArrayLike, pole: ArrayLike = (0.0, 0.0)) -> Vector:
    """Normal forces (n,) [N] that carry a load: sum N, sum (x - pole) N, sum (y - pole) N are its three numbers.

    A negative force means the floor would have to pull: that wheel lifts off, the base starts to tip. It is
    returned as it is, for the caller to judge.

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
