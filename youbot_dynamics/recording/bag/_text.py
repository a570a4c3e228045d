"""A text log with joints as a recording, so that every reader of topics reads it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag._bag import Recording
from youbot_dynamics.recording.bag._decode import IntArray, JointLayout
from youbot_dynamics.recording.bag._source import TopicInfo
from youbot_dynamics.recording.message_types import JOINT_STATE, POSE_STAMPED, TWIST_STAMPED
from youbot_dynamics.recording.text_log import TextLog

_AXES = ("x", "y", "yaw")
_SECOND = 1_000_000_000


class LogRecording(Recording):
    """A text log with positions of joints, as the topics of a bag; rows without a number are left out of a topic.

    `driver/joint_states` has position, velocity and effort; `arm_1/motor_voltage` and `arm_1/motor_temperature` have
    theirs, as does `cmd_vel` the columns `command.x`, `command.y`, `command.yaw`, and `pose` the three columns `pose`.
    """

    def __init__(self, log: TextLog) -> None:
        """Arrange the columns.

        Raises:
            RecordingError: not all three columns of a pose.
        """
        self.path = log.path
        self.metadata: Mapping[str, str] = {}
        # A stamp of 0 would mean that there is none.
        self.origin = _SECOND * (1 - int(np.floor(min(0.0, float(log.time[0])))))
        self._log = log
        self._stamps: IntArray = self.origin + np.round(log.time * _SECOND).astype(np.int64)
        self._decoded: dict[str, Any] = {}
        self._infos: dict[str, TopicInfo] = {}
        self._names = tuple(dict.fromkeys(name for columns in log.joints.values() for name in columns))
        states = [log.joints.get(role, {}) for role in ("position", "velocity", "effort")]
        self._add_joints("/driver/joint_states", states)
        for role in ("voltage", "temperature"):
            self._add_joints(f"/arm_1/motor_{role}", [{}, {}, log.joints.get(role, {})])
        if any(axis in log.command for axis in _AXES):
            rows, table = self._rows([log.command.get(axis, np.zeros(len(log.time))) for axis in _AXES])
            self._add("/cmd_vel", TWIST_STAMPED, len(rows), (rows, rows, table))
        if log.pose:
            if sorted(log.pose) != sorted(_AXES):
                got = ", ".join(f"pose.{axis}" for axis in log.pose)
                raise RecordingError(f"{log.path}", got=got, expected="pose.x, pose.y and pose.yaw")
            rows, table = self._rows([log.pose[axis] for axis in _AXES])
            self._add("/pose", POSE_STAMPED, len(rows), (set(), rows, rows, table))

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

    def _add(self, topic: str, type_name: str, count: int, decoded: object) -> None:
        self._infos[topic] = TopicInfo(topic, type_name, count)
        self._decoded[topic] = decoded

    def _rows(self, columns: list[Vector]) -> tuple[IntArray, Vector]:
        """Stamps (r,) [ns] and values (r, k) of the rows in which all k columns are numbers."""
        table = np.column_stack(columns)
        sound = np.all(np.isfinite(table), axis=1)
        return self._stamps[sound], table[sound]

    def _add_joints(self, topic: str, fields: Sequence[Mapping[str, Vector]]) -> None:
        """Joint states of all joints with three fields, NaN where a joint has no column of one."""
        if not any(fields):
            return
        missing = np.full(len(self._stamps), np.nan)
        values = np.array([np.column_stack([field.get(name, missing) for name in self._names]) for field in fields])
        told = np.any(np.isfinite(values), axis=(0, 2))
        layout = JointLayout(self._names, self._stamps[told], self._stamps[told], values[:, told])
        self._add(topic, JOINT_STATE, int(np.count_nonzero(told)), ([layout], 0))
