"""Coulomb friction of several contacts at once: stick inside the cone, slide on its rim (system 52)."""

from __future__ import annotations

from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.compiled import compiled

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

_NEGLIGIBLE = 1e-20  # of the motion: what friction below it takes away is rounding
_PATIENCE = 200  # sweeps after which the bounds of the friction follow the normal forces more slowly


@compiled
def one_contact(
    g00: float, g01: float, g10: float, g11: float, q0: float, q1: float, bound: float
) -> tuple[float, float]:
    """Force T of one contact of mobility G that would move at q without it: Coulomb's law, solved exactly.

    Either G T + q = 0 with |T| <= bound, or |T| = bound and T opposes G T + q = -s T, s > 0. The second is
    (G + s) T = -q with |T(s)| = bound: one root of a falling function, found by Newton's method on 1/|T|.

    Args:
        g00: of the mobility, with g01, g10 and g11; 1/kg for accelerations.
        g01: see g00.
        g10: see g00.
        g11: see g00.
        q0: motion without friction along the first direction, with q1 along the second.
        q1: see q0.
        bound: mu N, not negative [N].
    """
    motion = sqrt(q0 * q0 + q1 * q1)
    if bound <= 0.0 or motion == 0.0:
        return 0.0, 0.0
    if bound * (g00 + g11) <= _NEGLIGIBLE * motion:  # s = |q|/bound, too large for the squares below
        return -q0 / motion * bound, -q1 / motion * bound
    s = 0.0
    t0, t1 = 0.0, 0.0
    for _ in range(60):
        a, d = g00 + s, g11 + s
        determinant = a * d - g01 * g10
        if determinant <= 0.0:  # nothing to hold on to along one direction: only a finite s is regular
            s = 1e-12 * (g00 + g11) + 2.0 * s
            continue
        t0 = (-q0 * d + q1 * g01) / determinant
        t1 = (-q1 * a + q0 * g10) / determinant
        size = sqrt(t0 * t0 + t1 * t1)
        if size <= bound * (1.0 + 1e-15) and s == 0.0:
            return t0, t1
        if abs(size - bound) <= 1e-15 * bound:
            break
        # (G + s)^-1 T, the slope of T over s.
        b0 = (t0 * d - t1 * g01) / determinant
        b1 = (t1 * a - t0 * g10) / determinant
        slope = t0 * b0 + t1 * b1
        if slope <= 0.0:  # lost to underflow
            break
        s = max(0.0, s + size * size / slope * (size - bound) / bound)
    size = sqrt(t0 * t0 + t1 * t1)
    if size == 0.0:
        return 0.0, 0.0
    return t0 * bound / size, t1 * bound / size


@compiled
def solve_friction(
    mobility: Vector,
    free_motion: Vector,
    first_row: Indices,
    friction: Vector,
    free_normals: Vector,
    normals_of_forces: Vector,
    forces: Vector,
    tolerance: float,
    sweeps: int,
) -> float:
    """Forces of n contacts that obey Coulomb's law together, contact by contact until nothing changes.

    Law of contact i: its motion is q + G T. It sticks (motion 0) while a force |T_i| <= mu_i N_i can hold it;
    else |T_i| = mu_i N_i against its motion (D-004-7: seed 004 divides by |v| = 0 and never compares with mu N).
    With the acceleration as "motion" this decides between rolling and sliding; with the velocity after a step
    (divided by dt) it is an implicit step that comes to rest without chatter.

    Args:
        mobility: (r, r) matrix G from forces to motion.
        free_motion: (r,) motion q without these forces.
        first_row: (n + 1,) rows of contact i are first_row[i] to first_row[i + 1], one or two of them.
        friction: (n,) mu.
        free_normals: (n,) normal forces without these forces [N].
        normals_of_forces: (n, r) what the forces add to them.
        forces: (r,) starting value, changed in place [N].
        tolerance: largest change of a force in the last sweep [N].
        sweeps: limit of their number.

    Returns:
        Largest motion that the last sweep undid: what a contact that should stick still moves. It does not vanish
        where sticking contacts contradict each other by less than the sweeps could turn into slip. Infinite if the
        forces grew beyond all bounds.
    """
    rows = len(free_motion)
    motion = 0.0
    bounds = np.zeros(len(friction))
    for sweep in range(sweeps):
        change = motion = 0.0
        # Friction that shifts the weight by more than itself (a high load) would make full steps swing for ever.
        share = 1.0 / (1.0 + sweep // _PATIENCE)
        for i in range(len(friction)):
            j = first_row[i]
            two = first_row[i + 1] - j == 2
            normal = free_normals[i]
            q0 = free_motion[j]
            q1 = free_motion[j + 1] if two else 0.0
            for k in range(rows):
                normal += normals_of_forces[i, k] * forces[k]
                if k != j and not (two and k == j + 1):
                    q0 += mobility[j, k] * forces[k]
                    if two:
                        q1 += mobility[j + 1, k] * forces[k]
            if not isfinite(normal):
                return inf
            lacking = friction[i] * max(normal, 0.0) - bounds[i]
            change = max(change, abs(lacking))
            bounds[i] += share * lacking
            bound = bounds[i]
            if two:
                t0, t1 = one_contact(
                    mobility[j, j], mobility[j, j + 1], mobility[j + 1, j], mobility[j + 1, j + 1], q0, q1, bound
                )
                step0, step1 = abs(t0 - forces[j]), abs(t1 - forces[j + 1])
                change = max(change, step0, step1)
                motion = max(motion, step0 * mobility[j, j], step1 * mobility[j + 1, j + 1])
                forces[j], forces[j + 1] = t0, t1
            else:
                t0 = min(bound, max(-bound, -q0 / mobility[j, j]))
                step0 = abs(t0 - forces[j])
                change = max(change, step0)
                motion = max(motion, step0 * mobility[j, j])
                forces[j] = t0
        if change <= tolerance:
            break
    return motion
