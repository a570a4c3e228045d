"""What the user chose for all recordings and one of them lacks: topics, and spans with the motors off."""

from __future__ import annotations

from youbot_dynamics.errors import RecordingError, YoubotDynamicsError
from youbot_dynamics.identification.reading._opened import (
    ROLES,
    Opened,
    chosen_topic,
    find_wheel_states,
    times_of,
)
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.robot import Robot


def refused_choices(opened: Opened, robot: Robot) -> dict[str, YoubotDynamicsError]:
    """Options that this recording cannot satisfy -> why; what all recordings refuse is a mistake of the user.

    A text log of channels has no topics, and refuses each that is chosen.
    """
    options, recording = opened.options, opened.recording
    names = {f"--topic {role}={name}": (role, name) for role, name in options.topics.items() if role in ROLES}
    names |= {f"--pose-topic {options.pose_topic}": ("", options.pose_topic)} if options.pose_topic else {}
    refused: dict[str, YoubotDynamicsError] = {}
    for option, (role, name) in names.items():
        try:
            chosen_topic(opened.bag(), role, name)
        except YoubotDynamicsError as problem:
            of_log = RecordingError(f"{option} in {opened.path}", got="a text log of channels, which has no topics")
            refused[option] = problem if recording is not None else of_log
    if options.motors_off and recording is not None:
        length = _length(recording, robot, opened)
        for begin, end in options.motors_off:
            option = f"--motors-off {begin:g},{end:g}"
            if length is not None and begin >= length:
                refused[option] = RecordingError(
                    f"{option} in {opened.path}",
                    got=f"a recording of {length:.1f} s",
                    expected="seconds after its first wheel state",
                )
    return refused


def _length(recording: Recording, robot: Robot, opened: Opened) -> float | None:
    """Time from the first wheel state of a recording to its last [s]; None without any."""
    joints = robot.driver.wheel_joints
    try:
        topic = find_wheel_states(recording, joints, opened.options.topics)
        time = times_of(recording.joint_states(topic, joints))
    except YoubotDynamicsError:
        return None
    return float(time[-1] - time[0]) if len(time) else None
