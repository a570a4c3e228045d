"""Poses of any topic that tells them: the types of `Recording.poses`, and the transforms that motion capture sends."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag._bag import Recording
from youbot_dynamics.recording.bag._decode import (
    IntArray,
    Messages,
    ordered_rows,
    seconds,
    stamp_of,
    stamp_seconds,
    yaw_of,
)
from youbot_dynamics.recording.message_types import ODOMETRY, POSE_STAMPED, POSE_WITH_COVARIANCE_STAMPED
from youbot_dynamics.recording.series import PoseSeries

TRANSFORM_STAMPED = "geometry_msgs/msg/TransformStamped"
POSE_TYPES = (POSE_STAMPED, POSE_WITH_COVARIANCE_STAMPED, TRANSFORM_STAMPED, ODOMETRY)


def read_poses(recording: Recording, topic: str) -> PoseSeries:
    """Planar poses of a topic of one of POSE_TYPES, such as those of vicon_bridge, vrpn or an OptiTrack client.

    Raises:
        RecordingError: no such topic, another type, no messages, or transforms of several bodies.
    """
    info = recording.topics.get(topic)
    if info is None or info.type != TRANSFORM_STAMPED or not info.count:
        return recording.poses(topic)
    bodies, frame, received, stamp, pose = recording._decode(topic, TRANSFORM_STAMPED, _transform_columns)
    if len(bodies) > 1:
        raise RecordingError(
            f"topic {topic} in {recording.path}",
            got=f"transforms of {', '.join(sorted(bodies))}",
            expected="those of one body",
            remedy="record the topic of the robot alone",
        )
    order = np.argsort(received, kind="stable")
    turned = order[~np.isnan(pose[order, 2])]
    rows = turned[ordered_rows(stamp[turned])]
    return PoseSeries(
        topic,
        frame,
        stamp_seconds(stamp[rows], recording.origin),
        seconds(received[rows], recording.origin),
        pose[rows],
        None,
        rejected=received.size - rows.size,
    )


def _transform_columns(messages: Messages) -> tuple[set[str], str, IntArray, IntArray, Vector]:
    """Names of the bodies, frame, receive times (n,) [ns], stamps (n,) [ns] and poses (n, 3) [m, m, rad]."""
    bodies: set[str] = set()
    frame = ""
    received, stamp, places, quaternions = [], [], [], []
    for time, message in messages:
        bodies.add(message.child_frame_id)
        frame = frame or message.header.frame_id
        shift, turn = message.transform.translation, message.transform.rotation
        received.append(time)
        stamp.append(stamp_of(message))
        places.append((shift.x, shift.y))
        quaternions.append((turn.x, turn.y, turn.z, turn.w))
    yaw = yaw_of(np.array(quaternions, dtype=np.float64).reshape(-1, 4))
    place = np.array(places, dtype=np.float64).reshape(-1, 2)
    return (
        bodies,
        frame,
        np.array(received, dtype=np.int64),
        np.array(stamp, dtype=np.int64),
        np.column_stack((place, yaw)),
    )
