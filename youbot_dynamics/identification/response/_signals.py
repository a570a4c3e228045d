"""Commands and poses of a drive for the fit of the response."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only, usual_step
from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.delay import LaggedCommand
from youbot_dynamics.identification.signals import HeldCommand, advancing, stream_gaps
from youbot_dynamics.kinematics import planar

_MEMORY = 0.5  # time for which a command affects the base [s]
_SPAN = 0.5  # time of the compared displacements [s]: several lags, but shorter than variations of friction
_FEWEST = 200  # readings


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Commands and poses of one drive from rest.

    Raises:
        InputError: the numbers of commands or poses and of their times differ.
    """

    sent: Vector  # (c,) times of the commands [s], increasing
    twists: Vector  # (c, 3) commanded body twists, each held until the next [m/s, m/s, rad/s]
    stamps: Vector  # (m,) of the poses, on the same clock [s]
    poses: Vector  # (m, 3) in any fixed frame [m, m, rad]: ground truth, or odometry of the wheels
    recording: int = 0  # number of the recording, distinct for each

    def __post_init__(self) -> None:
        """Check the shapes, drop rows that are not finite or not newer, and make the arrays read-only."""
        # An unreadable command is not a stop: the command before it stays in force.
        sent, twists = _valid_rows("twists", "command", self.sent, self.twists)
        stamps, poses = _valid_rows("poses", "stamp", self.stamps, self.poses)
        inside = (stamps >= sent[0]) & (stamps <= sent[-1] + 1.0) if len(sent) else np.zeros(len(stamps), dtype=bool)
        stamps, poses = stamps[inside], poses[inside]
        poses[:, 2] = np.unwrap(poses[:, 2])
        for name, value in (("sent", sent), ("twists", twists), ("stamps", stamps), ("poses", poses)):
            object.__setattr__(self, name, read_only(np.ascontiguousarray(value)))

    def commands_known(self, span: int) -> Vector:
        """Whether the commands of each displacement over `span` readings are known: (m - span,), 1 or 0.

        0 where messages of the stream are missing, for example a damaged second of a bag.
        """
        known = np.ones(len(self.stamps) - span)
        period = usual_step(self.sent)
        for gap in stream_gaps(self.sent):
            begin, end = self.sent[gap] + period, self.sent[gap + 1] + _MEMORY
            known[(self.stamps[span:] > begin) & (self.stamps[:-span] < end)] = 0.0
        return known


def _valid_rows(name: str, owner: str, times: ArrayLike, table: ArrayLike) -> tuple[Vector, Vector]:
    """Times (n,) and rows (n, 3) that are finite and newer than all before.

    Raises:
        InputError: the numbers of times and rows differ.
    """
    moments, rows = np.asarray(times, dtype=float), np.asarray(table, dtype=float)
    if rows.shape != (len(moments), 3):
        raise InputError(name, got=f"shape {rows.shape}", expected=f"({len(moments)}, 3), one per {owner}")
    newer = advancing(moments, rows)
    return moments[newer], rows[newer]


def rolled_path(body_positions: ArrayLike) -> Vector:
    """Odometry poses (m, 3) on SE(2), from the origin, by wheel angles through the forward kinematics (m, 3)."""
    sums = array("body_positions", body_positions, (None, 3))
    steps = np.diff(sums, axis=0)
    heading = sums[:-1, 2] - sums[0, 2] + 0.5 * steps[:, 2]
    chords = planar.turned(steps[:, :2] * np.sinc(0.5 * steps[:, 2:] / np.pi), heading)
    return np.vstack([np.zeros(3), np.column_stack([np.cumsum(chords, axis=0), sums[1:, 2] - sums[0, 2]])])


def lagged_positions(drive: DriveSignals, twists: Vector, dead_times: Vector, lag: float) -> Vector:
    """Body positions (m, 3) at the stamps of a drive under twists (c, 3), after dead times (3,) and a lag or 0 [s].

    Exact, and from rest like the drive.
    """
    sent = np.append(drive.sent[0] - 1.0, drive.sent)
    commands = [HeldCommand(sent, np.append(0.0, column), 0.0) for column in twists.T]
    query = [drive.stamps - dead_time for dead_time in dead_times]
    if lag > 0.0:
        return np.column_stack([LaggedCommand(one, lag).at(at).motion for one, at in zip(commands, query, strict=True)])
    return np.column_stack([one.motion(at) for one, at in zip(commands, query, strict=True)])


def span_of(drive: DriveSignals) -> int:
    """Readings within `_SPAN`."""
    return max(1, round(_SPAN / usual_step(drive.stamps)))


def has_enough_data(drive: DriveSignals) -> bool:
    """Whether a drive holds enough data: not after a very short time at 1 kHz, or with most of its commands missing."""
    if len(drive.stamps) < _FEWEST or len(drive.sent) <= 1:
        return False
    span = span_of(drive)
    return span < len(drive.stamps) and float(np.sum(drive.commands_known(span))) >= _FEWEST / 2


def displacements(poses: Vector, span: int) -> Vector:
    """Displacement of each pose (m, 3) from that `span` readings before, in the frame of the latter: (m - span, 3)."""
    step = poses[span:] - poses[:-span]
    return np.column_stack([planar.turned(step[:, :2], -poses[:-span, 2]), step[:, 2]])
