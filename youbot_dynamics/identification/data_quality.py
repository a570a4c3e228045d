"""What looks wrong with a recording, whatever is identified from it: units, signs, stamps, holes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.identification.arm_signals import times_of
from youbot_dynamics.identification.clock import check_clock
from youbot_dynamics.identification.opened import Opened
from youbot_dynamics.identification.topics import find_arm_states, find_topic, find_wheel_states
from youbot_dynamics.identification.units import ratio_tells, speed_ratio
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

_NOT_ZERO = 1e-9  # [s]


def look_at(opened: Opened, robot: Robot) -> tuple[str, ...]:
    """Warnings about the joint states and wheel commands of a recording; those a stage refuses are told by it.

    Args:
        opened: the recording; a text log has no topics to be looked at.
        robot: joint names and signs.
    """
    if opened.recording is None:
        return ()
    return tuple(f"{opened.path.name}: {warning}" for warning in _warnings(opened, robot))


def _warnings(opened: Opened, robot: Robot) -> Iterator[str]:
    recording, chosen, driver = opened.bag(), opened.options.topics, robot.driver
    ones = np.ones(len(driver.arm_joints))
    both = (
        (find_wheel_states, driver.wheel_joints, np.array(driver.position_sign), np.array(driver.velocity_sign)),
        (find_arm_states, driver.arm_joints, ones, ones),
    )
    for find, joints, position_sign, velocity_sign in both:
        try:
            states = recording.joint_states(find(recording, joints, chosen), joints)
        except YoubotDynamicsError:
            continue  # not in the recording: the stage that needs it says so
        yield from _of_series(states)
        yield from _of_units(states, position_sign, velocity_sign)
    try:
        topic = find_topic(recording, "wheel_commands", chosen)
        commands = None if topic is None else recording.joint_states(topic, driver.wheel_joints)
    except YoubotDynamicsError:
        return
    if commands is not None:
        yield from _of_series(commands)


def _of_series(states: JointSeries) -> Iterator[str]:
    """Messages left out, values that are no numbers, and what is wrong with the clocks."""
    who = f"{states.topic} ({states.names[0]} ...)"
    if states.rejected:
        yield (
            f"{who}: {states.rejected} messages left out, their stamps go back or are missing, or a field has the "
            "wrong length: a clock was set, two publishers share the topic, or messages came out of order"
        )
    for what, table in (("positions", states.position), ("velocities", states.velocity), ("efforts", states.effort)):
        numbers = np.isfinite(table)
        lacking = int(np.count_nonzero(~np.all(numbers, axis=1)))
        if np.any(numbers) and lacking:
            joints = ", ".join(
                name for name, sound in zip(states.names, np.all(numbers, axis=0), strict=True) if not sound
            )
            yield f"{who}: {lacking} of {len(table)} messages have {what} that are no numbers, of {joints}"
    if len(states.received) > 1:
        # In a message 0 means no stamp; here times count from a second of the recording, where 0 is one like any other.
        checked = check_clock(states.stamp + _NOT_ZERO, states.received + _NOT_ZERO)
        yield from (f"{who}: {warning}" for warning in checked.warnings)


def _of_units(states: JointSeries, position_sign: Vector, velocity_sign: Vector) -> Iterator[str]:
    """One warning for all joints of which the same is wrong."""
    time, told = times_of(states), dict[str, list[str]]()
    for k, name in enumerate(states.names):
        ratio = speed_ratio(time, position_sign[k] * states.position[:, k], velocity_sign[k] * states.velocity[:, k])
        words = ratio_tells(ratio)
        if words:
            told.setdefault(words, []).append(f"{name} {ratio:.4g}")
    for words, joints in told.items():
        yield f"{states.topic}: {words}; d(position)/dt over velocity: {', '.join(joints)}"
