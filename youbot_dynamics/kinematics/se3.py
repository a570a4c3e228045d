"""Rigid motion in space, SE(3): the pose that a constant twist reaches. More of it: `source_systems.rigid_motion`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.kinematics import so3


def exponential(displacement: ArrayLike) -> Vector:
    """Pose (4, 4) reached by a constant body twist over unit time: the matrix exponential of [[skew(w), v], [0, 0]].

    This solves R' = R skew(w), p' = R v.

    Args:
        displacement: (6,) body twist x time, [v; w] in m and rad; InputError for a turn of more than 2^52 rad.

    Source: document 002 eq. (A.7), (A.10), systems 16, 17.
    """
    d = array("displacement", displacement, (6,), float(np.finfo(float).max))
    pose = np.eye(4)
    pose[:3, :3] = so3.exponential(d[3:])
    pose[:3, 3] = so3.left_jacobian(d[3:]) @ d[:3]
    return pose
