"""Message types that a recording may hold, and their serialisation without ROS.

Stamps are in ns, poses x, y, yaw [m, m, rad], twists vx, vy, wz [m/s, m/s, rad/s].
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bounds import bag_packages

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

JOINT_STATE = "sensor_msgs/msg/JointState"
DYNAMIC_JOINT_STATE = "control_msgs/msg/DynamicJointState"
TWIST = "geometry_msgs/msg/Twist"
TWIST_STAMPED = "geometry_msgs/msg/TwistStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
JOINT_TYPES = (JOINT_STATE, DYNAMIC_JOINT_STATE)
IMU = "sensor_msgs/msg/Imu"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
POSE_WITH_COVARIANCE_STAMPED = "geometry_msgs/msg/PoseWithCovarianceStamped"
TRANSFORM_STAMPED = "geometry_msgs/msg/TransformStamped"
TRANSFORMS = "tf2_msgs/msg/TFMessage"
MULTI_DOF_TRAJECTORY = "trajectory_msgs/msg/MultiDOFJointTrajectory"

ROS_DISTRO = "jazzy"

# rosbags lacks control_msgs. Source: ros-controls/control_msgs, branch master, control_msgs/msg.
_INTERFACE_VALUE = "control_msgs/msg/InterfaceValue"
_CONTROL_MSGS = {
    _INTERFACE_VALUE: "string[] interface_names\nfloat64[] values\n",
    DYNAMIC_JOINT_STATE: f"std_msgs/Header header\nstring[] joint_names\n{_INTERFACE_VALUE}[] interface_values\n",
}


@lru_cache(maxsize=1)
def jazzy_types() -> Typestore:
    """Return the message types of ROS 2 Jazzy, and of control_msgs those that a recording is read from."""
    with bag_packages():
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in _CONTROL_MSGS.items():
        store.register(get_types_from_msg(definition, name))
    return store


@lru_cache(maxsize=64)
def types_of_definition(type_name: str, definition: str) -> Typestore:
    """Return the types of a topic of a ROS 1 bag, from the definition stored in the bag."""
    with bag_packages():
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, type_name))
    return store


def definition_of(type_name: str) -> str:
    """Return the ros2msg text of a message type such as ``nav_msgs/msg/Odometry`` and of the types it contains.

    Raises:
        RecordingError: ROS 2 Jazzy has no such type.
    """
    if not is_known(type_name):
        raise RecordingError(
            f"message type {type_name}",
            got="no definition",
            expected="a type of ROS 2 Jazzy such as sensor_msgs/msg/JointState",
            remedy="pass the text of its definition",
        )
    return jazzy_types().generate_msgdef(type_name, ros_version=2)[0]


def is_known(type_name: str) -> bool:
    """Whether rosbags knows the type from ROS 2 Jazzy; recording any other type requires a definition."""
    return type_name in jazzy_types().fielddefs


def type_hash_of(type_name: str) -> str:
    """Return the RIHS01 hash of a message type, "" if ROS 2 Jazzy does not have the type."""
    return jazzy_types().hash_rihs01(type_name) if is_known(type_name) else ""


METADATA_RECORD = "youbot_dynamics"

LITTLE_ENDIAN = b"\x00\x01\x00\x00"  # encapsulation of CDR, from whose end fields are aligned
LAST_STAMP = 2**31 * 1_000_000_000 - 1  # [ns] a header can hold


def joint_state_cdr(
    stamp_ns: int,
    names: Sequence[str],
    position: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    frame_id: str = "",
) -> bytes:
    """Serialise a sensor_msgs/msg/JointState: k names and (k,) values; None leaves a field empty."""
    data = _head(stamp_ns, frame_id, tuple(names))
    for values in (position, velocity, effort):
        _add(data, () if values is None else values, counted=True)
    return bytes(data)


def float_cdr(value: float) -> bytes:
    """Serialise a std_msgs/msg/Float64."""
    return LITTLE_ENDIAN + struct.pack("<d", value)


def stamped_cdr(stamp_ns: int, frame_id: str, *values: float) -> bytes:
    """Serialise a message of a header and numbers alone, such as sensor_msgs/msg/Temperature."""
    data = _head(stamp_ns, frame_id)
    _add(data, values)
    return bytes(data)


def twist_cdr(twist: ArrayLike) -> bytes:
    """Serialise a geometry_msgs/msg/Twist of a twist (3,)."""
    return LITTLE_ENDIAN + struct.pack("<6d", *_twist(twist))


def twist_stamped_cdr(stamp_ns: int, frame_id: str, twist: ArrayLike) -> bytes:
    """Serialise a geometry_msgs/msg/TwistStamped of a twist (3,)."""
    return stamped_cdr(stamp_ns, frame_id, *_twist(twist))


def pose_stamped_cdr(stamp_ns: int, frame_id: str, pose: ArrayLike) -> bytes:
    """Serialise a geometry_msgs/msg/PoseStamped of a pose (3,)."""
    return stamped_cdr(stamp_ns, frame_id, *_pose(pose))


def odometry_cdr(
    stamp_ns: int,
    frame_id: str,
    child_frame_id: str,
    pose: ArrayLike,
    twist: ArrayLike,
    pose_covariance: ArrayLike | None = None,
    twist_covariance: ArrayLike | None = None,
) -> bytes:
    """Serialise a nav_msgs/msg/Odometry of a pose (3,) and a twist (3,) in the moving child frame.

    Covariances are (36,) or (6, 6), rows x, y, z, roll, pitch, yaw; None for zeros.
    """
    data = _head(stamp_ns, frame_id) + _text(child_frame_id)
    for values, covariance in ((_pose(pose), pose_covariance), (_twist(twist), twist_covariance)):
        _add(data, values)
        _add(data, np.zeros(36) if covariance is None else np.reshape(covariance, 36))
    return bytes(data)


def trajectory_cdr(
    stamp_ns: int, frame_id: str, joint: str, times: ArrayLike, poses: ArrayLike, twists: ArrayLike | None = None
) -> bytes:
    """Serialise a trajectory_msgs/msg/MultiDOFJointTrajectory of one planar joint.

    Args:
        stamp_ns: header stamp, the start of the trajectory [ns].
        frame_id: frame of the poses.
        joint: name of the moving frame.
        times: (n,) since the start [s].
        poses: (n, 3) [m, m, rad].
        twists: (n, 3) body twists [m/s, m/s, rad/s]; None leaves them out.
    """
    rows = np.asarray(poses, dtype=np.float64)
    velocities = [None] * len(rows) if twists is None else list(np.asarray(twists, dtype=np.float64))
    data = _head(stamp_ns, frame_id, (joint,)) + struct.pack("<I", len(rows))
    for time, pose, velocity in zip(np.asarray(times, dtype=np.float64), rows, velocities, strict=True):
        for values in (_pose(pose), () if velocity is None else _twist(velocity), ()):  # the last are accelerations
            data += struct.pack("<I", len(values) > 0)
            _add(data, values)
        data += struct.pack("<iI", *divmod(round(float(time) * 1e9), 1_000_000_000))
    return bytes(data)


def _twist(twist: ArrayLike) -> Sequence[float]:
    vx, vy, wz = np.asarray(twist, dtype=np.float64).tolist()
    return vx, vy, 0.0, 0.0, 0.0, wz


def _pose(pose: ArrayLike) -> Sequence[float]:
    x, y, yaw = np.asarray(pose, dtype=np.float64).tolist()
    return x, y, 0.0, 0.0, 0.0, float(np.sin(yaw / 2.0)), float(np.cos(yaw / 2.0))


def _add(data: bytearray, values: ArrayLike, counted: bool = False) -> None:
    """Append numbers at their alignment, if there are any, after their count if a message has that."""
    numbers = np.ascontiguousarray(values, dtype="<f8").tobytes()
    if counted:
        data += struct.pack("<I", len(numbers) // 8)
    if numbers:
        data += bytes(-(len(data) - len(LITTLE_ENDIAN)) % 8) + numbers


def _head(stamp_ns: int, frame_id: str, *lists: tuple[str, ...]) -> bytearray:
    """Header of a message, and lists of texts after it, filled up to a multiple of 4 bytes."""
    stamp = struct.pack("<iI", *divmod(min(int(stamp_ns), LAST_STAMP), 1_000_000_000))
    return bytearray(LITTLE_ENDIAN + stamp + _texts(frame_id, *lists))


@lru_cache(maxsize=64)
def _texts(frame_id: str, *lists: tuple[str, ...]) -> bytes:
    return _text(frame_id) + b"".join(struct.pack("<I", len(texts)) + b"".join(map(_text, texts)) for texts in lists)


@lru_cache(maxsize=64)
def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data) + 1) + data + bytes(4 - len(data) % 4)
