"""Trajectories as messages: with few points and all they may hold, or with any number of them as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Transform, Twist
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint


def message(times: Iterable[float], rates: tuple[int, int] = (0, 0), speed: float = 0.05) -> MultiDOFJointTrajectory:
    """Straight ahead at a speed, with so many velocities and accelerations at each point."""
    built = MultiDOFJointTrajectory(joint_names=["base_footprint"])
    built.header.frame_id = "base_footprint"
    for moment in times:
        transform = Transform()
        transform.translation.x = speed * float(moment)
        transform.translation.z = 7.0
        transform.rotation.z, transform.rotation.w = np.sin(0.1 * moment), np.cos(0.1 * moment)
        twists = [Twist(), Twist()]
        twists[0].linear.x, twists[0].linear.y, twists[0].angular.z = speed, 0.25 * moment, 0.5
        twists[1].linear.x = 9.0
        point = MultiDOFJointTrajectoryPoint(transforms=[transform])
        point.velocities, point.accelerations = twists[: rates[0]], twists[1:][: rates[1]]
        point.time_from_start = Duration(sec=int(moment), nanosec=round(1e9 * (moment % 1.0)))
        built.points.append(point)
    return built


def many(count: int, duration: float, speed: float = 0.05) -> bytes:
    """Serialized trajectory of so many points, straight ahead; built without an object a point."""
    head = serialize_message(message([0.0]))
    times = np.linspace(0.0, duration, count)
    layout = np.dtype("<u4, <u4, (7,)<f8, <u4, <u4, <i4, <u4")
    points = np.zeros(count, layout)
    points["f0"] = 1
    points["f2"][:, 0], points["f2"][:, 6] = speed * times, 1.0
    points["f5"] = times.astype(int)
    points["f6"] = np.round(1e9 * (times % 1.0)) % 1e9
    place = head.index(b"base_footprint", 40) + 16  # of the count of points: behind the name and its padding
    assert struct.unpack_from("<I", head, place) == (1,)
    return head[:place] + struct.pack("<I", count) + points.tobytes()
