"""Message definitions and their codecs, from rosbags: no ROS installation is asked."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.optional_packages import bag_packages

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

JOINT_STATE = "sensor_msgs/msg/JointState"
TWIST = "geometry_msgs/msg/Twist"
TWIST_STAMPED = "geometry_msgs/msg/TwistStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
POSE_WITH_COVARIANCE_STAMPED = "geometry_msgs/msg/PoseWithCovarianceStamped"
MULTI_DOF_TRAJECTORY = "trajectory_msgs/msg/MultiDOFJointTrajectory"

ROS_DISTRO = "jazzy"


@lru_cache(maxsize=1)
def jazzy_types() -> Typestore:
    """Return the message types of ROS 2 Jazzy.

    Raises:
        ResourceError: rosbags is not installed.
    """
    with bag_packages():
        from rosbags.typesys import Stores, get_typestore
    return get_typestore(Stores.ROS2_JAZZY)


@lru_cache(maxsize=64)
def types_of_definition(type_name: str, definition: str) -> Typestore:
    """Return the types that a ROS 1 bag defines for one of its topics.

    Args:
        type_name: such as ``sensor_msgs/msg/JointState``.
        definition: text of the message and of those it contains, as the bag holds it.

    Raises:
        ResourceError: rosbags is not installed.
    """
    with bag_packages():
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, type_name))
    return store


def definition_of(type_name: str) -> str:
    """Return the ros2msg text of a message type, the types it contains appended.

    Args:
        type_name: such as ``nav_msgs/msg/Odometry``.

    Raises:
        RecordingError: no such type in ROS 2 Jazzy.
        ResourceError: rosbags is not installed.
    """
    if not is_known(type_name):
        raise RecordingError(
            f"message type {type_name}",
            got="no definition of it",
            expected="a type of ROS 2 Jazzy such as sensor_msgs/msg/JointState",
            remedy="pass the text of its definition",
        )
    return jazzy_types().generate_msgdef(type_name, ros_version=2)[0]


def is_known(type_name: str) -> bool:
    """Whether ROS 2 Jazzy, as rosbags knows it, has a message type: others cannot be recorded without a definition."""
    return type_name in jazzy_types().fielddefs


def type_hash_of(type_name: str) -> str:
    """Return the RIHS01 hash of a message type, "" for one that ROS 2 Jazzy does not have."""
    return jazzy_types().hash_rihs01(type_name) if is_known(type_name) else ""
