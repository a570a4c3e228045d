"""Which topic of a recording plays which role: by contract name in any namespace, else by type and joints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    "arm_states": (("driver/joint_states", "joint_states"), (JOINT_STATE,)),
    "arm_torque_commands": (("arm_1/joint_torque_command",), (JOINT_STATE,)),
    "motor_voltage": (("arm_1/motor_voltage",), (JOINT_STATE,)),
    "motor_temperature": (("arm_1/motor_temperature",), (JOINT_STATE,)),
    "housing_temperature": (("arm_1/housing_temperature",), (JOINT_STATE,)),
}

# Other topics that end like one of ours but play another role.
_NOT_MEANT = {
    "cmd_vel": ("driver/cmd_vel", "trajectory_tracker/cmd_vel"),
    "odom": ("driver/odom",),
    "joint_states": ("driver/joint_states",),
}
# What names the arm's joints and is no reading of them: commands, estimates, and what only a simulation knows.
_NO_READINGS = ("_command", "_commands", "estimated_joint_states", "motor_voltage", "_temperature")
_MOST_TOLD = 12  # topics in a message
_NO_READINGS_OF = ("ground_truth", "arm_1/friction", "arm_1/torque_available")


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
        got=f"no states of {', '.join(joints)} ({_told(recording, candidates)})",
        expected="a topic driver/joint_states",
        remedy="record it, or name another one with --topic wheel_states=NAME",
    )


def find_arm_states(recording: Recording, joints: tuple[str, ...], chosen: Mapping[str, str]) -> str:
    """Name of the topic with the states of the arm: by name, else any reading that names all the joints.

    Raises:
        RecordingError: none has them, or several robots' do.
    """
    if "arm_states" in chosen:
        named = find_topic(recording, "arm_states", chosen)
        assert named is not None  # a chosen topic is there, or find_topic has said that it is not
        return named
    found = [name for name in _readings(recording) if _names(recording, name, joints)]
    for ending in ROLES["arm_states"][0]:
        meant = [name for name in found if f"/{name.lstrip('/')}".endswith(f"/{ending}")]
        raw = [name for name in meant if not (ending == "joint_states" and name.endswith("driver/joint_states"))]
        if len(raw) > 1:
            raise RecordingError(
                f"{recording.path}",
                got=f"several topics with the states of the arm: {', '.join(raw)}",
                expected="one robot",
                remedy=f"choose with --topic arm_states={raw[0]}",
            )
        if raw:
            return raw[0]
    if found:
        return found[0]
    raise RecordingError(
        f"{recording.path}",
        got=f"no states of {', '.join(joints)} ({_told(recording, list(_readings(recording)))})",
        expected="a topic driver/joint_states with messages of the arm",
        remedy="record it, or name another one with --topic arm_states=NAME",
    )


def _told(recording: Recording, candidates: Sequence[str]) -> str:
    """What there is instead: topics of the type, else topics of any type with messages, at most a dozen."""
    if candidates:
        return f"JointState topics: {', '.join(candidates)}"
    heard = [info.name for info in recording.topics.values() if info.count > 0]
    if not heard:
        return "no messages at all"
    more = f" and {len(heard) - _MOST_TOLD} more" if len(heard) > _MOST_TOLD else ""
    return f"no JointState topic; topics: {', '.join(heard[:_MOST_TOLD])}{more}"


def _readings(recording: Recording) -> Iterator[str]:
    """JointState topics that may be readings of joints."""
    for info in recording.topics.values():
        others = info.name.endswith(_NO_READINGS) or any(part in info.name for part in _NO_READINGS_OF)
        if info.type == JOINT_STATE and info.count > 0 and not others:
            yield info.name


def _names(recording: Recording, topic: str, joints: tuple[str, ...]) -> bool:
    return any(set(joints) <= set(names) for names in recording.joint_names(topic))
