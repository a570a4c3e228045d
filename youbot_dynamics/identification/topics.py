"""Which topic of a recording plays which role: by contract name in any namespace, else by type and joints."""

from __future__ import annotations

from collections.abc import Mapping

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.message_types import (
    JOINT_STATE,
    MULTI_DOF_TRAJECTORY,
    ODOMETRY,
    TWIST,
    TWIST_STAMPED,
)

# Role -> names by contract, best first, and accepted types.
ROLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "wheel_commands": (("wheel_commands",), (JOINT_STATE,)),
    "driver_cmd_vel": (("driver/cmd_vel",), (TWIST, TWIST_STAMPED)),
    "cmd_vel": (("cmd_vel",), (TWIST, TWIST_STAMPED)),
    "wheel_states": (("driver/joint_states", "joint_states"), (JOINT_STATE,)),
    "odom": (("odom",), (ODOMETRY,)),
    "ground_truth": (("ground_truth",), (ODOMETRY,)),
    "trajectory": (("trajectory",), (MULTI_DOF_TRAJECTORY,)),
}

# Other topics that end like one of ours but play another role.
_NOT_MEANT = {
    "cmd_vel": ("driver/cmd_vel", "trajectory_tracker/cmd_vel"),
    "odom": ("driver/odom",),
    "joint_states": ("driver/joint_states",),
}


def find_topic(recording: Recording, role: str, chosen: Mapping[str, str]) -> str | None:
    """Name of the topic that plays a role; None where the recording has none.

    Args:
        recording: where to look.
        role: key of ROLES.
        chosen: role -> topic as the user said; wins, and must exist.

    Raises:
        RecordingError: several topics could be meant (several robots in one bag), or the chosen one is absent.
    """
    names, types = ROLES[role]
    if role in chosen:
        if chosen[role] not in recording.topics:
            raise RecordingError(
                f"topic {chosen[role]} in {recording.path}",
                got="no such topic",
                expected=f"one of {', '.join(recording.topics)}",
                remedy=f"correct --topic {role}=NAME",
            )
        return chosen[role]
    for name in names:
        unlike = tuple(f"/{other}" for other in _NOT_MEANT.get(name, ()))
        found = [
            info.name
            for info in recording.topics.values()
            if f"/{info.name.lstrip('/')}".endswith(f"/{name}")
            and not (unlike and f"/{info.name.lstrip('/')}".endswith(unlike))
            and info.type in types
            and info.count > 0
        ]
        if len(found) > 1:
            raise RecordingError(
                f"{recording.path}",
                got=f"several topics {name}: {', '.join(found)}",
                expected="one robot",
                remedy=f"choose with --topic {role}={found[0]}",
            )
        if found:
            return found[0]
    return None


def find_wheel_states(recording: Recording, joints: tuple[str, ...], chosen: Mapping[str, str]) -> str:
    """Name of the topic with the states of the wheels: by name, else any that names all the joints.

    Raises:
        RecordingError: none has them; names the joints and the JointState topics there are.
    """
    named = find_topic(recording, "wheel_states", chosen)
    if named is not None:
        return named
    candidates = [info.name for info in recording.topics.values() if info.type == JOINT_STATE and info.count > 0]
    for name in candidates:
        if name.rsplit("/", 1)[-1] == "wheel_commands":
            continue
        if any(set(joints) <= set(names) for names in recording.joint_names(name)):
            return name
    raise RecordingError(
        f"{recording.path}",
        got=f"no states of {', '.join(joints)} (JointState topics: {', '.join(candidates) or 'none'})",
        expected="a topic driver/joint_states",
        remedy="record it, or name another one with --topic wheel_states=NAME",
    )
