"""What looks wrong with a recording, whatever is identified from it: units, signs, stamps, holes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.identification.reading._clock import check_clock
from youbot_dynamics.identification.reading._opened import (
    Opened,
    find_arm_states,
    find_topic,
    find_wheel_states,
    ratio_tells,
    speed_ratio,
    times_of,
)
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.robot import Robot

_LEAP = 3.0  # [rad] less than half a turn, which a wrapped angle leaps by
_FASTEST = 60.0  # [rad/s] several times what any joint of a youBot does
_TIMES_USUAL = 20.0  # times as fast as nine of ten readings
_TWO_CLOCKS = 1.0  # [s]
_ASKED = 0.5  # [rad/s] that commands ask for, below which friction may hold the wheels
_UNLIKE = 20.0  # times as fast as commanded, or as slow: no slip and no wheel radius does that


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

    def states_of(find: Callable[[], str | None], joints: tuple[str, ...]) -> JointSeries | None:
        """None where they are not in the recording: the stage that needs them says so."""
        try:
            topic = find()
            return None if topic is None else recording.joint_states(topic, joints)
        except YoubotDynamicsError:
            return None

    wheels = states_of(lambda: find_wheel_states(recording, driver.wheel_joints, chosen), driver.wheel_joints)
    arm = states_of(lambda: find_arm_states(recording, driver.arm_joints, chosen), driver.arm_joints)
    commands = states_of(lambda: find_topic(recording, "wheel_commands", chosen), driver.wheel_joints)
    ones = np.ones(len(driver.arm_joints))
    signs = ((np.array(driver.position_sign), np.array(driver.velocity_sign)), (ones, ones))
    for states, (position_sign, velocity_sign) in zip((wheels, arm), signs, strict=True):
        if states is not None:
            yield from _of_series(states)
            yield from _of_jumps(states)
            yield from _of_units(states, position_sign, velocity_sign)
    if commands is not None:
        yield from _of_series(commands)
        if wheels is not None:
            yield from _of_pair(commands, wheels)


def _of_series(states: JointSeries) -> Iterator[str]:
    """Messages left out, values that are no numbers, and what is wrong with the clocks."""
    who = f"{states.topic} ({states.names[0]} ...)"
    if states.rejected:
        yield (
            f"{who}: {states.rejected} messages were left out: stamps go back or are missing, or a field has the "
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
        yield from (f"{who}: {warning}" for warning in check_clock(states.stamp, states.received).warnings)


def _of_jumps(states: JointSeries) -> Iterator[str]:
    """Angles that leap between two readings: wrapped into one turn, or readings that cannot be."""
    time = times_of(states)
    wrapped, leaps = [], []
    for k, name in enumerate(states.names):
        sound = np.isfinite(states.position[:, k])
        passed = np.diff(time[sound])
        steps, moments = np.diff(states.position[sound, k])[passed > 0.0], time[sound][1:][passed > 0.0]
        rates = np.abs(steps) / passed[passed > 0.0]
        usual = float(np.percentile(rates, 90)) if len(rates) else 0.0
        leap = (rates > _FASTEST) & (rates > _TIMES_USUAL * usual) & (np.abs(steps) > _LEAP)
        if not np.any(leap):
            continue
        # Between two readings the joint itself moves a little on top of the turn.
        if np.all(np.abs(np.abs(steps[leap]) - 2.0 * np.pi) < 1.0):
            wrapped.append(f"{name} {np.count_nonzero(leap)} times")
        else:
            first = int(np.argmax(leap))
            leaps.append(f"{name} by {steps[first]:.3g} rad at {moments[first]:.3f} s")
    if wrapped:
        yield f"{states.topic}: angles jump by a turn, {', '.join(wrapped)}: they are wrapped; record them unwrapped"
    if leaps:
        jumps = ", ".join(leaps)
        yield f"{states.topic}: angles jump between two readings, first {jumps}: no joint can; remove these readings"


def _of_pair(commands: JointSeries, wheels: JointSeries) -> Iterator[str]:
    """Commands and wheels that do not fit: two clocks, or another unit where the driver tells no velocities."""
    apart = [float(np.median(series.stamp - series.received)) for series in (commands, wheels) if len(series.stamp)]
    if len(apart) == 2 and abs(apart[1] - apart[0]) > _TWO_CLOCKS:
        yield (
            f"{wheels.topic}: its stamps are {abs(apart[1] - apart[0]):.4g} s off those of {commands.topic}, by the "
            "times of reception: two clocks, or one that was never set; synchronise them"
        )
    asked = _power(commands.velocity)
    if not asked > _ASKED:
        return
    time = times_of(wheels)
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = _power(np.diff(wheels.position, axis=0) / np.diff(time)[:, None])
    if turned < asked / _UNLIKE:
        yield f"{wheels.topic}: the wheels hardly turned while {commands.topic} asked for it: were the motors on?"
    told = bool(np.any(np.abs(wheels.velocity) > 0.0))  # then `_of_units` knows better
    if turned > asked * _UNLIKE and not told:
        yield (
            f"{wheels.topic}: the wheels turn {turned / asked:.3g} times as fast as {commands.topic} asks: "
            "angles of another unit, such as degrees, or commands of another"
        )


def _power(speeds: Vector) -> float:
    """Root mean square of speeds (n, 4), a few wild ones left out; NaN where there are none."""
    sound = np.abs(speeds[np.isfinite(speeds)])
    return float(np.sqrt(np.mean(sound[sound <= np.percentile(sound, 99)] ** 2))) if sound.size else np.nan


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
