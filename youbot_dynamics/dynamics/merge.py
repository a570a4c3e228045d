"""Take fixed joints out of a tree: the same motion with fewer bodies."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.dynamics.layout import FIXED, Layout, Vector
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.dynamics.tree_check import parents_first
from youbot_dynamics.errors import ModelError


def without_fixed_joints(tree: Tree) -> Tree:
    """Tree in which every body hangs on a moving joint; q and v keep their order.

    What is fixed to a moving body joins it, with its inertia moved by Huygens and Steiner; what is fixed to the world
    goes, and its place is taken up by the joints it carries. Accelerations and joint forces stay the same.

    Raises:
        ModelError: no joint moves.
    """
    layout = tree.layout
    n = len(layout.parents)
    kept = [i for i in range(n) if layout.kinds[i] != FIXED]
    if not kept:
        raise ModelError("tree", got="only fixed joints", expected="at least one that moves")
    carrier = [-1] * n  # the moving body each body is fixed to
    pose_in_carrier = np.tile(np.eye(4), (n, 1, 1))
    masses = np.zeros(n)
    first_moments, inertias = np.zeros((n, 3)), np.zeros((n, 3, 3))
    parents, placements = list(layout.parents), _placements(layout)
    for i in layout.order:
        parent = int(layout.parents[i])
        if layout.kinds[i] != FIXED:
            carrier[i] = int(i)
        elif parent >= 0:
            carrier[i] = carrier[parent]
        if layout.kinds[i] == FIXED:
            pose_in_carrier[i] = (pose_in_carrier[parent] if parent >= 0 else np.eye(4)) @ placements[i]
        elif parent >= 0:
            parents[i] = carrier[parent]
            placements[i] = pose_in_carrier[parent] @ placements[i]
        if carrier[i] < 0:
            continue
        rotation, position = pose_in_carrier[i, :3, :3], pose_in_carrier[i, :3, 3]
        mass, centre = layout.masses[i], np.zeros(3)
        if mass > 0.0:
            centre = layout.first_moments[i] / mass
        central = layout.inertias[i] - point_inertia(mass, centre)
        moved = rotation @ centre + position
        into = carrier[i]
        masses[into] += mass
        first_moments[into] += mass * moved
        inertias[into] += rotation @ central @ rotation.T + point_inertia(mass, moved)
    index = {old: new for new, old in enumerate(kept)}
    new_parents = np.array([index[int(parents[i])] if parents[i] >= 0 else -1 for i in kept], dtype=np.int64)
    names = tuple(tree.names[i] for i in kept)
    merged = layout._replace(
        order=parents_first([int(parent) for parent in new_parents], names),
        parents=new_parents,
        kinds=layout.kinds[kept],
        axes=layout.axes[kept],
        rotations=np.ascontiguousarray(placements[kept, :3, :3]),
        positions=np.ascontiguousarray(placements[kept, :3, 3]),
        q_start=layout.q_start[kept],
        v_start=layout.v_start[kept],
        v_count=layout.v_count[kept],
        masses=masses[kept],
        first_moments=first_moments[kept],
        inertias=inertias[kept],
    )
    for array in merged:
        array.setflags(write=False)
    return Tree(
        names,
        tuple(tree.joint_names[i] for i in kept),
        merged,
        tuple(tree.limits[i] for i in kept),
        tuple(tree.damping[i] for i in kept),
        tuple(tree.friction[i] for i in kept),
    )


def _placements(layout: Layout) -> Vector:
    poses = np.tile(np.eye(4), (len(layout.parents), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = layout.rotations, layout.positions
    return poses
