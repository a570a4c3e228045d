"""A tree of bodies as plain arrays, the form the compiled recursions read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

FIXED, REVOLUTE, PRISMATIC, FLOATING = 0, 1, 2, 3
JOINT_TYPES = {"fixed": FIXED, "revolute": REVOLUTE, "prismatic": PRISMATIC, "floating": FLOATING}
# Numbers a joint takes in q and in v; the orientation of a floating joint is a quaternion (x, y, z, w).
POSITIONS_OF = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, FLOATING: 7}
SPEEDS_OF = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, FLOATING: 6}


class Layout(NamedTuple):
    """n bodies, each with the joint that carries it (systems 18, 22); nv speeds in all. In m, kg, rad.

    Attributes:
        order: (n,) bodies with every parent before its children.
        parents: (n,) parent of each body, -1 for the world.
        kinds: (n,) FIXED, REVOLUTE, PRISMATIC or FLOATING.
        axes: (n, 3) unit axis of the joint in the body's frame; unused where it has none.
        rotations: (n, 3, 3) joint frame at q = 0 to the parent's frame.
        positions: (n, 3) origin of the joint frame in the parent's frame.
        q_start: (n,) first element of the joint in q.
        v_start: (n,) first element of the joint in v.
        v_count: (n,) number of speeds of the joint.
        subspace: (nv, 6) motion [linear; angular] of the body, in its frame, for each unit speed.
        masses: (n,).
        first_moments: (n, 3) mass times centre of mass, in the body's frame.
        inertias: (n, 3, 3) about the origin of the body's frame.
        rotor_inertias: (nv,) inertia of the motor reflected to the joint, added to the diagonal of the mass matrix.
        gravity: (3,) in the world [m/s2].
    """

    order: Indices
    parents: Indices
    kinds: Indices
    axes: Vector
    rotations: Vector
    positions: Vector
    q_start: Indices
    v_start: Indices
    v_count: Indices
    subspace: Vector
    masses: Vector
    first_moments: Vector
    inertias: Vector
    rotor_inertias: Vector
    gravity: Vector
