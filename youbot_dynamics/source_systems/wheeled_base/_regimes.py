"""Which wheels carry the base, which roll and which slide, and the resulting accelerations. Source: systems 52-54."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.dynamics.normal_forces import Plate
from youbot_dynamics.errors import InputError
from youbot_dynamics.source_systems.wheeled_base._contact import Contacts, solve_friction

REST = 1e-4  # [m/s] a slower contact stands still: it may roll, and the direction of its slip is undefined
_RANK = 1e-9  # singular values below this fraction of the largest count as 0
_ON_THE_CONE = 1e-9  # relative tolerance
_STARTS = 1e-4  # [m/s2] contact acceleration above which a wheel starts to slide
_FORCE_TOLERANCE = 1e-12  # relative to the weight
_SWEEPS = 5000
_SETS_OF_WHEELS = 255  # largest number of sets tried in the search for the carrying wheels: all sets of 8 wheels


@dataclass(frozen=True, eq=False)
class BaseEquations:
    """M u' = h + C' T with N = N_0 + N_u u', at one state; u, r, m as in `Contacts`."""

    mass: Vector  # (m, m) mass matrix M
    load: Vector  # (m,) torques and velocity products h
    contact: Contacts  # kinematics of the contacts
    friction: Vector  # (n,) mu
    plate: Plate  # of the base on the wheels that carry it; the others have neither normal force nor friction
    floor_load: Vector  # (3,) weight and its first moments, as in `Plate`, for u' = 0
    floor_load_of_motion: Vector  # (3, m) their derivative by u'
    free_normals: Vector = field(init=False)  # (n,) N_0 [N]
    normals_of_motion: Vector = field(init=False)  # (n, m) N_u

    def __post_init__(self) -> None:
        """Compute the shares of the load."""
        object.__setattr__(self, "free_normals", self.plate.forces_of_load @ self.floor_load)
        object.__setattr__(self, "normals_of_motion", self.plate.forces_of_load @ self.floor_load_of_motion)

    def moving(self) -> Flags:
        """Flags (n,): the contact moves over the floor, so the wheel slides."""
        squares = np.bincount(self.contact.owner, self.contact.velocities**2, len(self.friction))
        flags: Flags = squares > REST**2
        return flags

    def normals(self, acceleration: Vector) -> Vector:
        """Normal forces (n,) [N] for an acceleration (m,)."""
        forces: Vector = self.free_normals + self.normals_of_motion @ acceleration
        return forces

    def presses(self, acceleration: Vector) -> Flags:
        """Flags (n,) of the wheels that touch the floor for an acceleration (m,); see `Plate.presses`."""
        return self.plate.presses(self.floor_load + self.floor_load_of_motion @ acceleration)

    def with_sliding(self) -> tuple[Vector, Vector, Vector]:
        """Mass (m, m) and load (m,) with the friction of the sliding wheels included, and its directions (r, n).

        T = -mu N v/|v| (9a, 10a) with N affine in the acceleration makes the mass matrix unsymmetric.
        """
        contact = self.contact
        push = np.zeros((len(contact.owner), len(self.friction)))
        for i in np.flatnonzero(self.moving()):
            mine = contact.owner == i
            velocity = contact.velocities[mine]
            push[mine, i] = -self.friction[i] * velocity / np.linalg.norm(velocity)
        through = contact.rows.T @ push
        return self.mass - through @ self.normals_of_motion, self.load + through @ self.free_normals, push


@dataclass(frozen=True, eq=False)
class ContactAnswer:
    """Generalised acceleration u' (m,) and the friction (r,) [N] along the directions of the contacts."""

    acceleration: Vector
    row_forces: Vector


Answer = TypeVar("Answer", bound=ContactAnswer)


def on_pressed_wheels(
    equations: BaseEquations, solve: Callable[[BaseEquations], Answer]
) -> tuple[BaseEquations, Answer]:
    """Solve the equations on the set of wheels, of all n, that then carries the base: N >= 0 on each.

    The first set is all wheels; the next are those that touched the floor in the last solution, so a wheel can also
    come back. If this cycles, every set of up to eight wheels is tried, large sets first. With more wheels there are
    too many sets: the small ones come first, because cycles arise for a load that tips, and the search ends after 255.

    While all wheels slide at known speeds a set exists: forces N >= 0 with the sum m g move the load to a position that
    gives such forces again, and continuously so. Where wheels may stick or start to slip, there may be none: high loads
    with large friction jam (Painleve's paradox). With random torques, wheels up to 0.25 m from the centre and mu up to
    1.5, this happened in 4 of 293 steps with the centre of mass 0.3 m to 3 m high, and in none of 106 steps at 0.05 m.

    Args:
        equations: of the base on all its wheels.
        solve: solves the equations on the wheels of their plate.

    Raises:
        InputError: no set exists or none was found: friction that jams the base.
    """
    n = len(equations.friction)
    sizes = range(n, 0, -1) if 2**n <= _SETS_OF_WHEELS + 1 else range(1, n)
    every = (chosen for size in sizes for chosen in combinations(range(n), size))
    following: tuple[int, ...] | None = tuple(range(n))
    tried: set[tuple[int, ...]] = set()
    why: InputError | None = None
    while following is not None and len(tried) < _SETS_OF_WHEELS:
        tried.add(following)
        carrying = np.isin(np.arange(n), following)
        on_these = equations if carrying.all() else replace(equations, plate=equations.plate.on(carrying))
        try:
            answer = solve(on_these)
        except InputError as error:
            pressed, why = following, error
        else:
            pressed = tuple(np.flatnonzero(on_these.presses(answer.acceleration)).tolist())
            if pressed == following:
                return on_these, answer
        following = pressed if pressed and pressed not in tried else next((s for s in every if s not in tried), None)
    raise InputError(
        "friction of the wheels",
        got="no set of wheels on the floor that satisfies the friction law",
        expected="a lower centre of mass or friction",
    ) from why


@dataclass(frozen=True, eq=False)
class RegimeSolution(ContactAnswer):
    """One solution of the equations."""

    normals: Vector  # (n,) [N]
    rolling: Flags  # (n,) of bool
    rank: int  # number of independent rolling constraints
    constraints: int  # their number
    residual: float  # largest required rolling acceleration that no motion gives [m/s2]

    def inside_cones(self, equations: BaseEquations) -> bool:
        """True if every rolling wheel is held, |T| <= mu N, and its rolling is consistent with the others."""
        squares = np.bincount(equations.contact.owner, self.row_forces**2, len(self.normals))
        limits = equations.friction * np.maximum(self.normals, 0.0)
        held = np.sqrt(squares) <= limits * (1.0 + _ON_THE_CONE) + 1e-9
        return bool(np.all(held[self.rolling])) and self.residual <= _ON_THE_CONE


def solve_regimes(equations: BaseEquations, rolling: Flags) -> RegimeSolution:
    """Accelerations when the flagged wheels (n,) roll, with any force that takes, and those that move slide.

    The rolling constraints are redundant in most states. Plain wheels give 2n rows for 3 + n accelerations, which are
    redundant for n >= 4; for 3 moving wheels the axles meet in the instantaneous centre of rotation. The accelerations
    are still unique; the forces of least norm are returned.

    Raises:
        InputError: sliding friction that jams the base (no unique acceleration).

    Source: D-004-9.
    """
    contact = equations.contact
    held = rolling[contact.owner]
    mass, load, push = equations.with_sliding()
    acceleration, forces, rank, residual = _constrained(
        equations.mass, mass, load, contact.rows[held], -contact.drift[held]
    )
    normals = equations.normals(acceleration)
    rows = push @ normals
    rows[held] = forces
    return RegimeSolution(acceleration, rows, normals, rolling, rank, int(np.sum(held)), residual)


def solve_cones(equations: BaseEquations) -> RegimeSolution:
    """Accelerations by the friction law alone: each wheel at rest sticks or starts to slide, as its cone allows.

    A wheel at rest that cannot be held slides against its remaining acceleration.

    Raises:
        InputError: friction that jams the base, or no set of forces that obeys the law.

    Source: D-004-7.
    """
    contact = equations.contact
    at_rest = equations.plate.carrying & ~equations.moving()
    mass, load, push = equations.with_sliding()
    answer = friction_of_contacts(equations, mass, load, at_rest, contact.drift)
    acceleration = answer.acceleration
    normals = equations.normals(acceleration)
    starts = np.abs(contact.rows @ acceleration + contact.drift)
    largest = np.zeros(len(at_rest))
    np.maximum.at(largest, contact.owner, starts)
    rolling = at_rest & (largest <= _STARTS)
    kept = contact.rows[rolling[contact.owner]]
    rank = _rank(np.asarray(np.linalg.svd(kept @ _whitening(equations.mass).T, compute_uv=False), dtype=np.float64))
    residual = float(np.max(largest[rolling], initial=0.0))
    rows = push @ normals + answer.row_forces
    return RegimeSolution(acceleration, rows, normals, rolling, rank, len(kept), residual)


def friction_of_contacts(
    equations: BaseEquations, mass: Vector, load: Vector, chosen: Flags, motion: Vector
) -> ContactAnswer:
    """Accelerations (m,) and friction of the chosen wheels (n,) by Coulomb's law; see `_contact.solve_friction`.

    Args:
        equations: of the base.
        mass: (m, m), with the friction of the other wheels included.
        load: (m,), likewise.
        chosen: (n,) of bool; the others have no force here.
        motion: (r,) motion of the contacts for u' = 0: their velocity products, or their velocity over a step.

    Raises:
        InputError: friction that jams the base, or no set of forces that obeys the law.
    """
    contact = equations.contact
    held = chosen[contact.owner]
    rows = contact.rows[held]
    first = np.searchsorted(contact.owner[held], np.append(np.flatnonzero(chosen), len(chosen)))
    _refuse_jam(mass)
    answer = np.asarray(np.linalg.solve(mass, np.column_stack([load, rows.T])), dtype=np.float64)
    free, of_forces = answer[:, 0], answer[:, 1:]
    forces = np.zeros(len(rows))
    mobility = rows @ of_forces
    weight = float(np.sum(np.abs(equations.free_normals)))
    residual = solve_friction(
        mobility,
        rows @ free + motion[held],
        first,
        equations.friction[chosen],
        equations.normals(free)[chosen],
        np.ascontiguousarray((equations.normals_of_motion @ of_forces)[chosen]),
        forces,
        _FORCE_TOLERANCE * weight,
        _SWEEPS,
    )
    if not residual <= max(_STARTS, _ON_THE_CONE * weight * float(np.max(np.diag(mobility), initial=0.0))):
        raise InputError("friction of the wheels", got="no consistent forces", expected="a base that does not jam")
    row_forces = np.zeros(len(held))
    row_forces[held] = forces
    return ContactAnswer(free + of_forces @ forces, row_forces)


def _whitening(mass: Vector) -> Vector:
    """Matrix W with u' = W' w such that w'w/2 is the energy of acceleration; it makes metres and radians comparable."""
    inverse: Vector = np.linalg.inv(np.linalg.cholesky(mass))
    return inverse


def _rank(sizes: Vector) -> int:
    return int(np.sum(sizes > _RANK * sizes[0])) if len(sizes) else 0


def _refuse_jam(matrix: Vector) -> None:
    if len(matrix) and np.linalg.cond(matrix) > 1.0 / np.finfo(float).eps:
        raise InputError(
            "friction of the wheels", got="a base that jams", expected="a lower centre of mass or friction"
        )


def _constrained(
    metric: Vector, mass: Vector, load: Vector, rows: Vector, wanted: Vector
) -> tuple[Vector, Vector, int, float]:
    """Solve mass a = load + rows' T with rows a = wanted for any rank of rows, with T of least norm.

    One singular value decomposition splits the accelerations (m,), in the metric of the true mass matrix, into those
    that the k rows determine and those that are free.

    Returns:
        Accelerations (m,), forces (k,), rank, and the largest component of `wanted` that no acceleration gives.
    """
    whitening = _whitening(metric)
    scaled_mass, scaled_load, scaled_rows = whitening @ mass @ whitening.T, whitening @ load, rows @ whitening.T
    u, sizes, vt = np.linalg.svd(scaled_rows, full_matrices=True)
    rank = _rank(sizes)
    fixed, free = vt[:rank], vt[rank:]
    w = fixed.T @ ((u[:, :rank].T @ wanted) / sizes[:rank])
    reduced = free @ scaled_mass @ free.T
    _refuse_jam(reduced)
    w = w + free.T @ np.linalg.solve(reduced, free @ (scaled_load - scaled_mass @ w))
    forces = u[:, :rank] @ ((fixed @ (scaled_mass @ w - scaled_load)) / sizes[:rank])
    missing = wanted - scaled_rows @ w
    return whitening.T @ w, forces, rank, float(np.max(np.abs(missing), initial=0.0))
