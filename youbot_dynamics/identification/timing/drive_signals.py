"""Commands and poses of a drive, as the response of a base is identified from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import array, read_only
from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.timing.stream_gaps import stream_gaps
from youbot_dynamics.kinematics import planar

Vector = NDArray[np.float64]

_MEMORY = 0.5  # [s] for which a base goes on doing what it was told


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Commands and poses of one drive from rest.

    Args:
        sent: (c,) times of the commands [s], increasing.
        twists: (c, 3) body twists that were sent, each held until the next [m/s, m/s, rad/s].
        stamps: (m,) of the poses, on the same clock [s].
        poses: (m, 3) in any fixed frame [m, m, rad]: ground truth, or what the wheels have rolled.
        recording: number of the recording, another one for each.

    Raises:
        InputError: commands and their times that differ in number.
    """

    sent: Vector
    twists: Vector
    stamps: Vector
    poses: Vector
    recording: int = 0

    def __post_init__(self) -> None:
        """Check the shapes, leave out what is not finite or not newer, and keep the arrays read-only."""
        sent = np.asarray(self.sent, dtype=float)
        twists = np.asarray(self.twists, dtype=float)
        if twists.shape != (len(sent), 3):
            raise InputError("twists", got=f"shape {twists.shape}", expected=f"({len(sent)}, 3), one a command")
        # A command that cannot be read is not one to stop: the one before it is taken to hold.
        told = np.isfinite(sent) & np.all(np.isfinite(twists), axis=1)
        sent, twists = sent[told], twists[told]
        stamps, poses = np.asarray(self.stamps, dtype=float), np.asarray(self.poses, dtype=float)
        sound = np.isfinite(stamps) & np.all(np.isfinite(poses), axis=1)
        stamps, poses = stamps[sound], poses[sound].copy()
        newer = np.concatenate([[True], np.diff(stamps) > 0.0]) if len(stamps) else np.zeros(0, dtype=bool)
        late = np.concatenate([[True], np.diff(sent) > 0.0]) if len(sent) else np.zeros(0, dtype=bool)
        stamps, poses = stamps[newer], poses[newer]
        inside = (stamps >= sent[0]) & (stamps <= sent[-1] + 1.0) if len(sent) else np.zeros(len(stamps), dtype=bool)
        stamps, poses = stamps[inside], poses[inside]
        if len(poses):
            poses[:, 2] = np.unwrap(poses[:, 2])
        for name, value in (("sent", sent[late]), ("twists", twists[late]), ("stamps", stamps), ("poses", poses)):
            object.__setattr__(self, name, read_only(np.ascontiguousarray(value)))

    def commands_known(self, span: int) -> Vector:
        """Which displacements over `span` readings have their commands: (m - span,), 1 or 0.

        0 where messages of a stream are missing, a second of a damaged bag say: what the base was told then is lost.
        """
        known = np.ones(len(self.stamps) - span)
        usual = float(np.median(np.diff(self.sent)))
        for gap in stream_gaps(self.sent):
            begin, end = self.sent[gap] + usual, self.sent[gap + 1] + _MEMORY
            known[(self.stamps[span:] > begin) & (self.stamps[:-span] < end)] = 0.0
        return known


def rolled_path(body_positions: ArrayLike) -> Vector:
    """Poses (m, 3) that a body rolled, from sums of its body displacements (m, 3): odometry on SE(2), from the origin.

    Args:
        body_positions: (m, 3) wheel angles through the forward kinematics [m, m, rad].
    """
    sums = array("body_positions", body_positions, (None, 3))
    poses = np.zeros((len(sums), 3))
    for k, step in enumerate(np.diff(sums, axis=0)):
        poses[k + 1] = planar.compose(poses[k], planar.exponential(step))
    return poses
