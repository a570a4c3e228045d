"""A text log of a robot as a recording, so that every reader of topics reads it too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag._bag import Recording
from youbot_dynamics.recording.bag._decode import (
    IntArray,
    JointLayout,
    Messages,
    joint_layouts,
    pose_columns,
    twist_columns,
)
from youbot_dynamics.recording.bag._source import TopicInfo
from youbot_dynamics.recording.message_types import JOINT_STATE, ODOMETRY, POSE_STAMPED, TWIST_STAMPED
from youbot_dynamics.recording.text_log import TextLog

_AXES = ("x", "y", "yaw")
_SECOND = 1_000_000_000
_OF_MOTORS = {"voltage": "motor_voltage", "temperature": "motor_temperature", "housing": "housing_temperature"}


class LogRecording(Recording):
    """A text log as the topics of a bag; rows without a number are left out of a topic.

    `driver/joint_states` has position, velocity and effort; `arm_1/motor_voltage`, `arm_1/motor_temperature` and
    `arm_1/housing_temperature` have theirs, as do `cmd_vel` the columns `command.x`, `command.y`, `command.yaw`, `odom`
    those of `measured`, and `pose` the three columns `pose`.
    """

    @classmethod
    def has_motion(cls, log: TextLog, wheels: Collection[str] = ()) -> bool:
        """Whether a log has a topic with a motion: of joints, `wheels` or the base."""
        of_base = bool(log.pose) or any(axis in log.measured for axis in _AXES)
        return "position" in log.joints or of_base or log.shows(wheels)

    def __init__(self, log: TextLog) -> None:
        """Arrange the columns.

        Raises:
            RecordingError: not all three columns of a pose.
        """
        self.path = log.path
        self.metadata: Mapping[str, str] = {}
        # A stamp of 0 would mean that there is none.
        self.origin = _SECOND * (1 - int(np.floor(min(0.0, log.time[0]))))
        self._log = log
        self._stamps: IntArray = self.origin + np.round(log.time * _SECOND).astype(np.int64)
        self._decoded: dict[tuple[str, Callable[..., Any]], Any] = {}
        self._infos: dict[str, TopicInfo] = {}
        self._names = tuple(dict.fromkeys(name for columns in log.joints.values() for name in columns))
        states = [log.joints.get(role, {}) for role in ("position", "velocity", "effort")]
        self._add_joints("/driver/joint_states", states)
        for role, topic in _OF_MOTORS.items():
            self._add_joints(f"/arm_1/{topic}", [{}, {}, log.joints.get(role, {})])
        if any(axis in log.command for axis in _AXES):
            rows, table = self._commands(log.command)
            if "sampled" in log.commands_are.values():  # it changed between the rows, on average half a row earlier
                rows = rows - int(0.5 * np.median(np.diff(rows)))
            self._add("/cmd_vel", TWIST_STAMPED, twist_columns, (rows, rows, table))
        if any(axis in log.measured for axis in _AXES):
            missing = np.full(len(log.time), np.nan)
            speeds = np.column_stack([log.measured.get(axis, missing) for axis in _AXES])
            present = np.any(np.isfinite(speeds), axis=1)
            self._add("/odom", ODOMETRY, twist_columns, (self._stamps[present], self._stamps[present], speeds[present]))
        if log.pose:
            if sorted(log.pose) != sorted(_AXES):
                got = ", ".join(f"pose.{axis}" for axis in log.pose)
                raise RecordingError(f"{log.path}", got=got, expected="pose.x, pose.y and pose.yaw")
            poses = np.column_stack([log.pose[axis] for axis in _AXES])
            sound = np.all(np.isfinite(poses), axis=1)
            rows = self._stamps[sound]
            self._add("/pose", POSE_STAMPED, pose_columns, (set(), rows, rows, poses[sound]))

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """Topics by name."""
        return MappingProxyType(self._infos)

    @property
    def lost(self) -> str:
        """Nothing: a text log with a bad entry is refused."""
        return ""

    @property
    def sha256(self) -> str:
        """Hash of the file."""
        return self._log.sha256

    def _add(self, topic: str, type_name: str, kind: Callable[..., Any], decoded: Any) -> None:
        stamps = decoded[0][0].stamp if kind is joint_layouts else decoded[-1]
        self._infos[topic] = TopicInfo(topic, type_name, len(stamps))
        self._decoded[topic, kind] = decoded

    def _messages(self, topic: str) -> Messages:
        """Nothing: what a topic holds is decoded already."""
        return Messages(lambda data: data, ())

    def _commands(self, columns: Mapping[str, Vector]) -> tuple[IntArray, Vector]:
        """Stamps (r,) [ns] and twists (r, 3) of the rows with a command, which may be of one axis alone.

        Each axis is held until its next command; an axis without a column is 0.
        """
        axes = [k for k, axis in enumerate(_AXES) if axis in columns]
        table = np.column_stack([columns[_AXES[k]] for k in axes])
        present = np.any(np.isfinite(table), axis=1)
        stamps, table = self._stamps[present], table[present]
        own = np.where(np.isfinite(table), np.arange(len(table))[:, None], 0)
        held = np.take_along_axis(table, np.maximum.accumulate(own, axis=0), axis=0)
        known = np.all(np.isfinite(held), axis=1)  # not before the first command of each axis
        twists = np.zeros((np.count_nonzero(known), len(_AXES)))
        twists[:, axes] = held[known]
        return stamps[known], twists

    def _add_joints(self, topic: str, fields: Sequence[Mapping[str, Vector]]) -> None:
        """Joint states of all joints with three fields, NaN where a joint has no column of one."""
        if not any(fields):
            return
        missing = np.full(len(self._stamps), np.nan)
        values = np.array([np.column_stack([field.get(name, missing) for name in self._names]) for field in fields])
        present = np.any(np.isfinite(values), axis=(0, 2))
        layout = JointLayout(self._names, self._stamps[present], self._stamps[present], values[:, present])
        self._add(topic, JOINT_STATE, joint_layouts, ([layout], 0))
