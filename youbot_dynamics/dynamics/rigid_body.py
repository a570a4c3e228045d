"""Mass and inertia of a rigid body. Point masses, other poles and the wrench of a motion: `source_systems.bodies`.

All functions raise InputError for a wrong shape or a number that is not finite, and ModelError for a mass that is
negative or not finite, or an inertia that no body can have.
Source: document 002, systems 18, 19.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number
from youbot_dynamics.errors import ModelError

# An inertia may violate the triangle inequality by this fraction of its largest moment: rounding of CAD programs.
_ROUNDING = 1e-6


def point_inertia(mass: float, offset: ArrayLike) -> Vector:
    """Inertia (3, 3) of a point mass about a pole: m (|d|^2 E - d d') [kg m2].

    Args:
        mass: [kg].
        offset: (3,) point minus pole [m]; its sign does not matter.

    Source: system 18.
    """
    m, d = number("mass", mass, "kg", low=0.0), array("offset", offset, (3,), float(np.finfo(float).max))
    inertia: Vector = m * (d @ d * np.eye(3) - np.outer(d, d))
    return inertia


def inertia_about(inertia: ArrayLike, mass: float, offset: ArrayLike) -> Vector:
    """Inertia about a pole, from the one about the centre of mass: I_P = I_G + m (|d|^2 E - d d').

    This is the parallel-axis theorem (Huygens, Steiner). Document 002 adds the scalar m |d|^2 to the tensor.

    Args:
        inertia: (3, 3) about the centre of mass [kg m2].
        mass: [kg].
        offset: (3,) centre of mass minus pole [m]; its sign does not matter.

    Source: system 19; D-002-3.
    """
    return inertia_tensor("inertia", inertia) + point_inertia(mass, offset)


def check_inertia(name: str, mass: float, inertia: ArrayLike) -> None:
    """Refuse a mass [kg] and inertia (3, 3) [kg m2] about the centre of mass that no body can have.

    The principal moments must be at least 0 and each at most the sum of the other two. A body without mass has no
    inertia. Semidefinite inertias of rods and points are valid; document 002 requires positive definite ones.

    Raises:
        ModelError: names the body.

    Source: system 18.
    """
    weight = number(f"mass of body '{name}'", mass, "kg", low=0.0)
    size = float(np.abs(inertia_tensor(f"inertia of body '{name}'", inertia)).max())
    if weight == 0.0 and size > 0.0:
        raise ModelError(
            f"inertia of body '{name}'", got=f"{size:g} kg m2 without any mass", expected="a mass, or no inertia"
        )


def inertia_tensor(thing: str, inertia: ArrayLike) -> Vector:
    """Return an inertia (3, 3) [kg m2] about any point as an array; refuse one that no body can have.

    Raises:
        ModelError: not symmetric, or principal moments that no body has; names `thing`.
    """
    tensor = array(thing, inertia, (3, 3))
    size = float(np.abs(tensor).max())
    if not np.allclose(tensor, tensor.T, rtol=0.0, atol=1e-9 * size):
        raise ModelError(thing, got="a tensor that is not symmetric", expected="ixy = iyx, ixz = izx, iyz = izy")
    moments = np.linalg.eigvalsh(tensor)
    text = ", ".join(f"{moment:.4g}" for moment in moments)
    if not moments[0] >= -_ROUNDING * size:
        raise ModelError(thing, got=f"principal moments {text}", expected="none negative [kg m2]")
    if not moments[2] - moments[1] <= moments[0] + _ROUNDING * size:
        raise ModelError(
            thing,
            got=f"principal moments {text}",
            expected="none larger than the sum of the other two",
            remedy="check its numbers and their unit, kg m2",
        )
    return tensor
