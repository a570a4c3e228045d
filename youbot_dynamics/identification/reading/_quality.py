"""Quality checks of a recording, independent of the stages: units, signs, stamps, gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, rms
from youbot_dynamics.errors import RecordingError, YoubotDynamicsError, counted
from youbot_dynamics.identification.reading._clock import check_clock
from youbot_dynamics.identification.reading._commands import wheel_commands
from youbot_dynamics.identification.reading._opened import (
    Opened,
    angles_beyond,
    find_arm_states,
    find_odometry,
    find_topic,
    find_wheel_states,
    ratio_tells,
    speed_ratio,
    times_of,
)
from youbot_dynamics.identification.reading._whose import other_joints
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.robot import Robot

_JOINED = (
    "commands change along straight lines of {:.3g} ms, as of a log that was resampled: they are taken as held "
    "between the corners; name their columns command_held.NAME if that is wrong"
)
_AXES = ("forward", "sideways", "in yaw")
_CONTRADICTS = 0.15  # relative difference of pose and twist
_LEAP = 3.0  # [rad] slightly less than half a turn
_FASTEST = 60.0  # [rad/s] several times the speed of any youBot joint
_TIMES_USUAL = 20.0  # multiple of the speed of nine of ten readings
_TWO_CLOCKS = 1.0  # [s]
_WINDOW = 0.2  # [s] over which the motion of wheels is compared with the commands
_LONGEST_DELAY = 1.0  # [s] tried
_FEWEST_WINDOWS = 50
_FOLLOWS = 0.7  # correlation with the command of a wheel that follows it: 0.8 to 1.0 on twins and real robots
_CLEAR = 0.2  # by which the correlation with the command of another wheel must be larger
_NO_RADIANS = 6.5  # [rad] beyond a joint limit: more than a turn, which a wrong encoder zero cannot explain
_COMMANDED = 0.5  # [rad/s] command below which friction may hold the wheels
_UNLIKE = 20.0  # factor between commanded and measured speed that neither slip nor wheel radius explains


def look_at(opened: Opened, robot: Robot) -> tuple[str, ...]:
    """Warnings about the joint states and wheel commands of a recording, except those that a stage reports as errors.

    A text log has no topics to check.
    """
    if opened.log is not None and not math.isnan(opened.log.joined):
        return (f"{opened.path.name}: {_JOINED.format(1e3 * opened.log.joined)}",)
    if opened.recording is None:
        return ()
    return tuple(f"{opened.path.name}: {warning}" for warning in _warnings(opened, robot))


def _warnings(opened: Opened, robot: Robot) -> Iterator[str]:
    recording, chosen, driver = opened.bag(), opened.options.topics, robot.driver
    if others := other_joints(recording, robot):
        yield others

    def states_of(find: Callable[[], str | None], joints: tuple[str, ...], sent: bool = False) -> JointSeries | None:
        """None if the recording lacks them; the stage that needs them reports it."""
        try:
            if (topic := find()) is None:
                return None
            return wheel_commands(recording, topic, driver) if sent else recording.joint_states(topic, joints)
        except YoubotDynamicsError:
            return None

    wheels = states_of(lambda: find_wheel_states(recording, driver.wheel_joints, chosen), driver.wheel_joints)
    arm = states_of(lambda: find_arm_states(recording, driver.arm_joints, chosen), driver.arm_joints)
    commands = states_of(lambda: find_topic(recording, "wheel_commands", chosen), driver.wheel_joints, sent=True)
    ones = np.ones(len(driver.arm_joints))
    signs = ((np.array(driver.position_sign), np.array(driver.velocity_sign)), (ones, ones))
    for states, (position_sign, velocity_sign) in zip((wheels, arm), signs, strict=True):
        if states is not None:
            yield from _of_series(states)
            yield from _of_jumps(states)
            yield from _of_units(states, position_sign, velocity_sign)
    yield from _of_odometry(recording, chosen, wheels is None)
    if commands is not None:
        yield from _of_series(commands)
        if wheels is not None:
            yield from _of_pair(commands, wheels)
            yield from _of_signs(commands, wheels, signs[0][0])


def _of_series(states: JointSeries) -> Iterator[str]:
    """Messages left out, values that are not finite, and problems of the clocks."""
    who = f"{states.topic} ({states.names[0]} ...)"
    if states.rejected:
        yield (
            f"{who}: {counted(states.rejected, 'message was', 'messages were')} left out because stamps decrease or "
            "are missing, or a field has the wrong length; check for a clock that was set, two publishers of the "
            "topic, or messages out of order"
        )
    for what, table in (("positions", states.position), ("velocities", states.velocity), ("efforts", states.effort)):
        numbers = np.isfinite(table)
        lacking = int(np.count_nonzero(~np.all(numbers, axis=1)))
        if np.any(numbers) and lacking:
            joints = ", ".join(
                name for name, sound in zip(states.names, np.all(numbers, axis=0), strict=True) if not sound
            )
            yield f"{who}: {lacking} of {len(table)} messages have {what} that are not finite numbers, of {joints}"
    if len(states.received) > 1:
        yield from (f"{who}: {warning}" for warning in check_clock(states.stamp, states.received).warnings)


def _of_jumps(states: JointSeries) -> Iterator[str]:
    """Angles that were wrapped, and those that jump between two readings without it, which is impossible."""
    time = times_of(states)
    leaps = []
    ranges = dict.fromkeys(f"{size:.4g}" for size in states.ranges if size > 0.0)
    if ranges:
        names = [name for name, size in zip(states.names, states.ranges, strict=True) if size > 0.0]
        yield (
            f"{states.topic}: angles of {', '.join(names)} start again after {' or '.join(ranges)} rad, wrapped or by "
            "a counter that rolls over: they were put together"
        )
    for k, name in enumerate(states.names):
        sound = np.isfinite(states.position[:, k])
        passed = np.diff(time[sound])
        steps, moments = np.diff(states.position[sound, k])[passed > 0.0], time[sound][1:][passed > 0.0]
        rates = np.abs(steps) / passed[passed > 0.0]
        usual = float(np.percentile(rates, 90)) if len(rates) else 0.0
        leap = (rates > _FASTEST) & (rates > _TIMES_USUAL * usual) & (np.abs(steps) > _LEAP)
        if not np.any(leap):
            continue
        first = int(np.argmax(leap))
        leaps.append(f"{name} by {steps[first]:.3g} rad at {moments[first]:.3f} s")
    if leaps:
        jumps = ", ".join(leaps)
        yield f"{states.topic}: angles jump between two readings, first {jumps}: impossible; remove these readings"


def _of_odometry(recording: Recording, chosen: Mapping[str, str], alone: bool) -> Iterator[str]:
    """Odometry whose pose moves otherwise than its twist says, along an axis; its clock if it is `alone`."""
    try:
        topic = find_odometry(recording, chosen)
        poses, twists = (None, None) if topic is None else (recording.poses(topic), recording.twists(topic))
    except YoubotDynamicsError:
        return
    if alone and twists is not None and twists.stamp is not None and len(twists.received) > 1:
        yield from (f"{topic}: {warning}" for warning in check_clock(twists.stamp, twists.received).warnings)
    if poses is None or twists is None or len(poses.stamp) != len(twists.received) or not np.any(twists.twist):
        return
    path = np.vstack([np.zeros(3), np.cumsum(planar.steps_of_path(poses.pose), axis=0)])
    if not np.any(path):  # some drivers leave it empty
        return

    def apart(motion: Vector) -> list[str]:
        ratios = [speed_ratio(times_of(poses), motion[:, k], twists.twist[:, k]) for k in range(3)]
        return [
            f"{axis} {ratio:.3g}" for axis, ratio in zip(_AXES, ratios, strict=True) if abs(ratio - 1.0) > _CONTRADICTS
        ]

    if found := apart(path):
        in_world = not apart(np.column_stack([poses.pose[:, :2], path[:, 2]]))
        remedy = "the twist is in the frame of the pose, not in that of the base: turn it by the heading"
        yield (
            f"{topic}: pose and twist contradict each other: motion of the pose over that of the twist is "
            f"{', '.join(found)}; delays, gains and limits of the base are those of the twist: "
            f"{remedy if in_world else 'mend the odometry'}"
        )


def _of_pair(commands: JointSeries, wheels: JointSeries) -> Iterator[str]:
    """Commands and wheels that do not match: two clocks, or another unit if the driver reports no velocities."""
    apart = [float(np.median(series.stamp - series.received)) for series in (commands, wheels) if len(series.stamp)]
    if len(apart) == 2 and abs(apart[1] - apart[0]) > _TWO_CLOCKS:
        yield (
            f"{wheels.topic}: relative to the receive times, its stamps differ from those of {commands.topic} by "
            f"{abs(apart[1] - apart[0]):.4g} s: their clocks differ; synchronise them"
        )
    commanded = _power(commands.velocity)
    if not commanded > _COMMANDED:
        return
    time = times_of(wheels)
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = _power(np.diff(wheels.position, axis=0) / np.diff(time)[:, None])
    if turned < commanded / _UNLIKE:
        yield f"{wheels.topic}: the wheels hardly turned although {commands.topic} was not zero: were the motors on?"
    reported = bool(np.any(np.abs(wheels.velocity) > 0.0))  # then `_of_units` is more precise
    if turned > commanded * _UNLIKE and not reported:
        yield (
            f"{wheels.topic}: the wheels turn {turned / commanded:.3g} times as fast as commanded by {commands.topic}: "
            "check the units of angles (degrees?) and commands"
        )


def _of_signs(commands: JointSeries, wheels: JointSeries, position_sign: Vector) -> Iterator[str]:
    """Wheels that turn against their own command, or follow the command of another wheel."""
    tables = _correlations(commands, wheels, position_sign)
    scores = np.sum(np.max(np.abs(tables), axis=2), axis=1)
    likely = tables[scores >= np.max(scores) - _CLEAR * len(wheels.names)]  # a periodic command agrees at several
    table = tables[np.argmax(scores)]
    for k, row in enumerate(table):
        followed = int(np.argmax(np.abs(row)))
        if abs(row[k]) > abs(row[followed]) - _CLEAR:
            followed = k
        if abs(row[followed]) < _FOLLOWS or (followed == k and row[k] > 0.0):
            continue
        if np.any(np.sign(row[followed]) * likely[:, k, followed] < 0.0):
            continue
        how = "against" if row[followed] < 0.0 else "as"
        whose = "its command" if followed == k else f"the command of {wheels.names[followed]}"
        yield (
            f"{wheels.topic}: {wheels.names[k]} turns {how} {whose} on {commands.topic}: check the order of the wheels "
            "and their signs in robot.driver"
        )


def _correlations(commands: JointSeries, wheels: JointSeries, position_sign: Vector) -> Vector:
    """Correlations (d, n, n) of the motion of each wheel with the command of each, at delays of up to a second.

    Rows and columns without motion, and tables of short recordings, are 0.
    """
    n = len(wheels.names)
    delays = np.arange(0.0, _LONGEST_DELAY, 0.25 * _WINDOW)
    tables = np.zeros((len(delays), n, n))
    sound = np.all(np.isfinite(commands.velocity), axis=1), np.all(np.isfinite(wheels.position), axis=1)
    sent, read = commands.received[sound[0]], wheels.received[sound[1]]
    if min(len(sent), len(read)) < _FEWEST_WINDOWS:
        return tables
    times = np.arange(max(sent[0], read[0]) + _LONGEST_DELAY, min(sent[-1], read[-1]) - _WINDOW, 0.5 * _WINDOW)
    if len(times) < _FEWEST_WINDOWS:
        return tables
    angles = (wheels.position[sound[1]] * position_sign).T
    turned = [np.interp(times + _WINDOW, read, column) - np.interp(times, read, column) for column in angles]
    for table, delay in zip(tables, delays, strict=True):
        middles = np.searchsorted(sent, times + 0.5 * _WINDOW - delay, side="right") - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            table[:] = np.nan_to_num(np.corrcoef(turned, commands.velocity[sound[0]][middles].T)[:n, n:])
    return tables


def _power(speeds: Vector) -> float:
    """Root mean square of speeds (n, 4) without a few outliers; NaN if there are none."""
    sound = np.abs(speeds[np.isfinite(speeds)])
    return rms(sound[sound <= np.percentile(sound, 99)]) if sound.size else np.nan


def _of_units(states: JointSeries, position_sign: Vector, velocity_sign: Vector) -> Iterator[str]:
    """One warning for all joints with the same problem."""
    time, joints_with = times_of(states), dict[str, list[str]]()
    for k, name in enumerate(states.names):
        ratio = speed_ratio(time, position_sign[k] * states.position[:, k], velocity_sign[k] * states.velocity[:, k])
        words = ratio_tells(ratio)
        if words:
            joints_with.setdefault(words, []).append(f"{name} {ratio:.4g}")
    for words, joints in joints_with.items():
        yield f"{states.topic}: {words}; d(position)/dt over velocity: {', '.join(joints)}"


def excess_of_angles(thing: str, position: ArrayLike, robot: Robot) -> float:
    """Largest excess of arm angles (s, n) [rad] over the limits of their joints [rad], 0 where these are unknown.

    `thing` names them in the error.

    Raises:
        RecordingError: angles that cannot be radians.
    """
    if not robot.arm.urdf:
        return 0.0
    limits = robot.arm.tree().limits
    beyond = angles_beyond(position, [limit.lower for limit in limits], [limit.upper for limit in limits])
    if beyond > _NO_RADIANS:
        raise RecordingError(
            thing,
            got=f"angles up to {beyond:.4g} beyond the limits of their joints: they look like degrees",
            expected="angles [rad] with the zeros of the arm's URDF",
            remedy="record the states of the driver; in a text log write position.JOINT:deg",
        )
    return beyond
