"""Point masses, inertia about other poles and lines, and the Newton-Euler equations of a body about any pole.

All functions raise InputError for a wrong shape or a number that is not finite, and ModelError for a mass that is
negative or not finite, or an inertia that no body can have. `dynamics.rigid_body` has the inertia of one point.
Source: document 002, systems 18-20.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.rigid_body import inertia_tensor, point_inertia
from youbot_dynamics.errors import InputError, ModelError

# An inertia may be smaller than that of its mass in one point by this fraction of its largest moment: rounding.
_ROUNDING = 1e-6


def inertia_between_poles(inertia: ArrayLike, mass: float, old_offset: ArrayLike, new_offset: ArrayLike) -> Vector:
    """Inertia about a new pole from the one about an old pole, neither of them the centre of mass.

    I_1 = I_0 + m (|d1|^2 E - d1 d1') - m (|d0|^2 E - d0 d0'). Document 002 uses the distance of the two poles, which is
    valid only if the old pole is the centre of mass.

    Args:
        inertia: (3, 3) about the old pole [kg m2].
        mass: [kg].
        old_offset: (3,) centre of mass minus old pole [m].
        new_offset: (3,) centre of mass minus new pole [m].

    Raises:
        ModelError: an inertia that no body of this mass can have about the old pole.

    Source: system 19; D-002-3.
    """
    central = _tensor_about_pole(inertia, mass, old_offset) - point_inertia(mass, old_offset)
    return central + point_inertia(mass, new_offset)


def point_masses(masses: ArrayLike, positions: ArrayLike) -> tuple[float, Vector, Vector]:
    """Total mass [kg], centre of mass (3,) [m] and inertia (3, 3) about it [kg m2] of n point masses.

    p_c = sum m p / m and I = sum m (|p|^2 E - p p').

    Args:
        masses: (n,) [kg].
        positions: (n, 3) [m].

    Raises:
        ModelError: a total mass of zero.

    Source: system 18.
    """
    weights = array("masses", masses, (None,))
    points = array("positions", positions, (len(weights), 3))
    total = float(weights.sum())
    if np.any(weights < 0.0) or not total > 0.0:
        raise ModelError(
            "masses", got=f"{weights.min():g}, in all {total:g}", expected="none negative, a sum above 0 [kg]"
        )
    centre: Vector = weights @ points / total
    arms = points - centre
    inertia = np.einsum("n,ni,ni->", weights, arms, arms) * np.eye(3) - np.einsum("n,ni,nj->ij", weights, arms, arms)
    return total, centre, inertia


def moment_about_line(inertia: ArrayLike, direction: ArrayLike) -> float:
    """Moment of inertia [kg m2] about a line through the pole of `inertia`: r' I r with r of unit length.

    It sums |r x p|^2 m, with the distance from the line. Document 002 prints p^2, the distance from the pole.

    Args:
        inertia: (3, 3) about a point of the line [kg m2].
        direction: (3,) of any length but 0.

    Raises:
        InputError: a zero direction.

    Source: system 18; D-002-2.
    """
    tensor, line = inertia_tensor("inertia", inertia), array("direction", direction, (3,), float(np.finfo(float).max))
    longest = np.abs(line).max()
    if longest == 0.0:
        raise InputError("direction", got="length 0", expected="a direction")
    line = line / longest
    return float(line @ tensor @ line / (line @ line))


def _tensor_about_pole(inertia: ArrayLike, mass: float, offset: ArrayLike) -> Vector:
    """Return an inertia (3, 3) about a pole; refuse one smaller than that of the mass concentrated in its centre."""
    tensor = inertia_tensor("inertia", inertia)
    least = np.linalg.eigvalsh(tensor - point_inertia(mass, offset))[0]
    if not least >= -_ROUNDING * float(np.abs(tensor).max()):
        raise ModelError(
            "inertia",
            got=f"a moment {-least:.4g} kg m2 below that of the mass in its centre",
            expected="the inertia about the pole",
            remedy="transform it with inertia_about",
        )
    return tensor


def wrench_about_pole(
    mass: float,
    inertia: ArrayLike,
    offset: ArrayLike,
    angular_velocity: ArrayLike,
    angular_acceleration: ArrayLike,
    acceleration: ArrayLike,
) -> Vector:
    """Force and moment about a pole fixed in the body for a given motion: the Newton-Euler equations.

    f = m (a + alpha x r + w x (w x r)), n = I alpha + w x I w + m r x a with r the centre of mass and a the
    acceleration of the pole. Document 002 omits the last term, although its poles are not centres of mass.

    Args:
        mass: [kg].
        inertia: (3, 3) about the pole [kg m2].
        offset: (3,) centre of mass minus pole [m].
        angular_velocity: (3,) [rad/s].
        angular_acceleration: (3,) [rad/s2].
        acceleration: (3,) of the pole minus gravity [m/s2].

    Returns:
        (6,) [force; moment] [N, N m], in the frame of the arguments.

    Raises:
        ModelError: an inertia that no body of this mass can have about the pole.

    Source: system 20; D-002-4.
    """
    tensor, r = _tensor_about_pole(inertia, mass, offset), array("offset", offset, (3,))
    w, alpha = (
        array("angular_velocity", angular_velocity, (3,)),
        array("angular_acceleration", angular_acceleration, (3,)),
    )
    a = array("acceleration", acceleration, (3,))
    force = mass * (a + np.cross(alpha, r) + np.cross(w, np.cross(w, r)))
    moment = tensor @ alpha + np.cross(w, tensor @ w) + mass * np.cross(r, a)
    return np.concatenate([force, moment])


def moment_of_forces(forces: ArrayLike, points: ArrayLike, couples: ArrayLike) -> Vector:
    """Resultant wrench (6,) [force; moment about the origin] of forces at points: sum r x f + mu.

    Lemma A.1 of document 002 has f x r, the negative moment.

    Args:
        forces: (n, 3) [N].
        points: (n, 3) points of application [m].
        couples: (n, 3) [N m].

    Source: document 002 lemma A.1; D-002-5.
    """
    f = array("forces", forces, (None, 3))
    r, mu = array("points", points, (len(f), 3)), array("couples", couples, (len(f), 3))
    moment = np.cross(r, f).sum(axis=0) + mu.sum(axis=0)
    return np.concatenate([f.sum(axis=0), moment])
