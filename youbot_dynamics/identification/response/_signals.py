"""Commands and poses of a drive as the fit of the response takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.signals import stream_gaps
from youbot_dynamics.kinematics import planar

_MEMORY = 0.5  # [s] for which a base goes on doing what it was told
_SPAN = 0.5  # [s] over which displacements are compared: several times lag and loop, less than friction wanders over
_FEWEST = 200  # readings


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Commands and poses of one drive from rest.

    Raises:
        InputError: commands or poses and their times that differ in number.
    """

    sent: Vector  # (c,) times of the commands [s], increasing
    twists: Vector  # (c, 3) body twists that were sent, each held until the next [m/s, m/s, rad/s]
    stamps: Vector  # (m,) of the poses, on the same clock [s]
    poses: Vector  # (m, 3) in any fixed frame [m, m, rad]: ground truth, or what the wheels have rolled
    recording: int = 0  # number of the recording, another one for each

    def __post_init__(self) -> None:
        """Check the shapes, leave out what is not finite or not newer, and keep the arrays read-only."""
        # A command that cannot be read is not one to stop: the one before it is taken to hold.
        sent, twists = _sound_rows("twists", "command", self.sent, self.twists)
        stamps, poses = _sound_rows("poses", "stamp", self.stamps, self.poses)
        inside = (stamps >= sent[0]) & (stamps <= sent[-1] + 1.0) if len(sent) else np.zeros(len(stamps), dtype=bool)
        stamps, poses = stamps[inside], poses[inside]
        poses[:, 2] = np.unwrap(poses[:, 2])
        for name, value in (("sent", sent), ("twists", twists), ("stamps", stamps), ("poses", poses)):
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


def _sound_rows(name: str, owner: str, times: ArrayLike, table: ArrayLike) -> tuple[Vector, Vector]:
    """Times (n,) and rows (n, 3) that are finite, each later than the one before it.

    Raises:
        InputError: times and rows that differ in number.
    """
    moments, rows = np.asarray(times, dtype=float), np.asarray(table, dtype=float)
    if rows.shape != (len(moments), 3):
        raise InputError(name, got=f"shape {rows.shape}", expected=f"({len(moments)}, 3), one a {owner}")
    sound = np.isfinite(moments) & np.all(np.isfinite(rows), axis=1)
    moments, rows = moments[sound], rows[sound]
    later = np.diff(moments, prepend=-np.inf) > 0.0
    return moments[later], rows[later]


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


def span_of(one: DriveSignals) -> int:
    """Readings within `_SPAN`."""
    return max(1, round(_SPAN / float(np.median(np.diff(one.stamps)))))


def tells(one: DriveSignals) -> bool:
    """Whether enough is left of a drive: of 1 kHz for a blink, or with most of its commands lost, nothing is."""
    if len(one.stamps) < _FEWEST or len(one.sent) <= 1:
        return False
    span = span_of(one)
    return span < len(one.stamps) and float(np.sum(one.commands_known(span))) >= _FEWEST / 2


def displacements(poses: Vector, span: int) -> Vector:
    """How far each pose (m, 3) is from that `span` readings before, in its frame: (m - span, 3) [m, m, rad]."""
    before, after = poses[:-span], poses[span:]
    c, s = np.cos(before[:, 2]), np.sin(before[:, 2])
    x, y = (after - before)[:, :2].T
    return np.column_stack([c * x + s * y, c * y - s * x, after[:, 2] - before[:, 2]])
