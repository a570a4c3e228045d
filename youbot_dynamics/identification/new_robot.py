"""What a recording or a URDF tells of a base without a robot file: its wheels, their places, signs, rates and steps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.tree import read_urdf
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading import new_readings, speed_ratio, times_of
from youbot_dynamics.identification.signals import HeldCommand, wheel_angles
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.bag import POSE_TYPES, Recording
from youbot_dynamics.recording.message_types import JOINT_TYPES, ODOMETRY, TWIST, TWIST_STAMPED
from youbot_dynamics.recording.series import JointSeries

_NO_READINGS = re.compile("command|ground_truth|estimated")
_BY = ("odometry", "commands", "poses")  # motions of a base, best first: a tracked body may look another way
_WINDOW, _GRID = 0.5, 0.05  # [s] over which motions are compared, and between the begins of two windows
_DELAYS = np.arange(-0.5, 1.5, 0.025)  # [s] by which wheels may turn after the motion: commands lead by up to a second
_FEWEST = 40  # windows, or readings
_TURNED = 0.5  # [rad] by which a joint must turn to count
_EXPLAINED = 0.8  # share of the rotation of a wheel that the motion explains: 0.97 and more of wheels, 0.5 of an arm
_AXIS_MOVED = 0.08  # share of the largest motion above which an axis counts as moved
_APART = 0.15  # ratio of singular values of the motion below which its axes moved together: 0.09 in circles, else 0.4
_TURNING_RADIUS = 0.3  # [m] converts turns to distances, for that
_ALIKE = 1.6  # largest ratio of what is alike in all wheels
_GAP = 1.9  # median periods between two readings above which some are missing
_ON_STEPS, _FEWEST_STEPS, _MOST_QUANTA = 0.95, 15, 50  # of differences of readings that are multiples of a quantum
# Places by the signs of the rotation in motions and turns to the left, of a wheel that turns on as the base advances
_CORNERS = {(-1.0, -1.0): 0, (1.0, 1.0): 1, (1.0, -1.0): 2, (-1.0, 1.0): 3}


@dataclass(frozen=True, eq=False)
class TurningJoint:
    """A joint that turns, and how it turns with the base."""

    name: str
    topic: str  # of its readings, "" for one of a URDF
    row: Vector  # (3,) rotation by motion forward, to the left [rad/m] and turn [1], NaN along axes without motion
    explained: float = 1.0  # share of its rotation that this explains
    rate: float = math.nan  # of its readings [Hz]
    quanta: tuple[float, float] = (math.nan, math.nan)  # steps of position [rad] and speed [rad/s], NaN for none
    ratio: float = math.nan  # change of position over velocity


class Judged(NamedTuple):
    """Joints that turned, judged by a motion of the base."""

    by: str  # odometry, commands or poses; "" for none
    topic: str  # of the motion
    joints: tuple[TurningJoint, ...]

    @property
    def wheels(self) -> list[TurningJoint]:
        """Joints that turn with the base."""
        return [joint for joint in self.joints if joint.explained > _EXPLAINED]


def turning_joints(recording: Recording) -> Judged:
    """Joints that turned, judged by the best motion of the base that two of them follow, else by none.

    Odometry comes before commands, unless it contradicts them about which wheel is where; poses come last.

    Raises:
        RecordingError: no joint turned.
    """
    topics = [one.name for one in recording.topics.values() if one.type in JOINT_TYPES and one.count]
    topics = [topic for topic in topics if not _NO_READINGS.search(topic)]
    named = [topic for topic in topics if topic.endswith("joint_states")] or topics
    alone = Judged("", "", tuple(_judged(recording, named, np.zeros(0), np.zeros((0, 3)))))
    if not alone.joints:
        remedy = f"record joint_states of a drive; without them no robot file helps: youbot identify {recording.path}"
        raise RecordingError(f"{recording.path}", got="no joint that turned", expected="one", remedy=remedy)
    judged = [Judged(by, topic, tuple(_judged(recording, named, *way))) for by, topic, *way in _motions(recording)]
    judged = [one for one in judged if len(one.wheels) > 1]
    best = {one.by: one for one in sorted(judged, key=lambda one: sum(joint.explained for joint in one.wheels))}
    told = {one.by: found for one in best.values() if one.by != "poses" and (found := arranged(one.wheels))}
    if len({found.joints for found in told.values()}) > 1:
        del best["odometry"]
    return next((best[by] for by in _BY if by in best), alone)


def _motions(recording: Recording) -> Iterator[tuple[str, str, Vector, Vector]]:
    """Each motion of the base: what it is, topic, times (k,) [s], and sums (k, 3) of its steps along its own axes."""
    for info in recording.topics.values():
        with suppress(RecordingError):
            if info.type in (TWIST, TWIST_STAMPED):
                sent = recording.twists(info.name)
                ways = [HeldCommand(sent.received, column, 0.0).integral(sent.received) for column in sent.twist.T]
                yield "commands", info.name, sent.received, np.column_stack(ways)
            elif info.type in POSE_TYPES:
                poses, by = recording.poses(info.name), "odometry" if info.type == ODOMETRY else "poses"
                steps = planar.steps_of_path(poses.pose)
                yield by, info.name, poses.received, np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])


def _angles(recording: Recording, topics: Sequence[str]) -> Iterator[tuple[JointSeries, Vector]]:
    """States of the joints that messages name together, and angles (m, n) of these [rad]."""
    for topic in topics:
        with suppress(RecordingError):  # efforts alone, or messages that cannot be read
            for names in sorted(recording.joint_names(topic), key=len)[::-1]:
                series, ones = recording.joint_states(topic, names), np.ones(len(names))
                yield series, wheel_angles(recording, series, times_of(series), (ones, ones))[0]


def _judged(recording: Recording, topics: Sequence[str], moved_at: Vector, way: Vector) -> Iterator[TurningJoint]:
    """The joints that turned, each once, with the delay to the motion that explains the rotation of two best."""
    seen = set[str]()
    for series, table in _angles(recording, topics):
        names, topic = series.names, series.topic
        sound = np.all(np.isfinite(table), axis=1)
        time, angles, received = times_of(series)[sound], table[sound], series.received[sound]
        turned = np.ptp(angles, axis=0) > _TURNED if len(angles) > _FEWEST else sound[:0]
        new = [k for k in np.flatnonzero(turned).tolist() if names[k] not in seen]
        if not new:
            continue
        fits = [_fit(received, angles[:, new], moved_at + delay, way) for delay in _DELAYS]
        rows, explained = max(fits, key=lambda fit: float(np.sum(np.sort(fit[1])[-2:])))
        steps = np.diff(time)
        rate = 1.0 / (new_readings(angles)[1] * float(np.mean(steps[steps < _GAP * np.median(steps)])))
        for k, row, share in zip(new, rows, explained.tolist(), strict=True):
            seen.add(names[k])
            readings = series.position[sound, k], series.velocity[sound, k]
            quanta = _quantum(readings[0]), _quantum(readings[1])
            yield TurningJoint(names[k], topic, row, share, rate, quanta, speed_ratio(time, *readings))


def _fit(time: Vector, angles: Vector, moved_at: Vector, way: Vector) -> tuple[Vector, Vector]:
    """Rotation per motion (n, 3) of joints with angles (m, n), and the share (n,) of it that this explains."""
    rows, shares = np.full((angles.shape[1], 3), np.nan), np.zeros(angles.shape[1])
    if len(moved_at) < 2:
        return rows, shares
    begins = np.arange(max(time[0], moved_at[0]), min(time[-1], moved_at[-1]) - _WINDOW, _GRID)
    if len(begins) < _FEWEST:
        return rows, shares
    turned, moved = (
        np.column_stack([np.interp(begins + _WINDOW, at, one) - np.interp(begins, at, one) for one in table.T])
        for at, table in ((time, angles), (moved_at, way))
    )
    size = np.sqrt(np.mean(moved**2, axis=0)) * [1.0, 1.0, _TURNING_RADIUS]
    axes = size > _AXIS_MOVED * np.max(size)
    rows[:, axes] = np.linalg.lstsq(moved[:, axes], turned, rcond=None)[0].T
    left = np.sum((turned - moved @ np.nan_to_num(rows).T) ** 2, axis=0)
    singular = np.linalg.svd(moved[:, axes] / np.linalg.norm(moved[:, axes], axis=0), compute_uv=False)
    if len(singular) and singular[-1] < _APART * singular[0]:  # the wheels follow, but not which motion turns them
        rows[:] = np.nan
    return rows, 1.0 - left / np.maximum(np.sum(turned**2, axis=0), 1e-12)


def _quantum(readings: Vector) -> float:
    """Step of some readings (n,), NaN if their differences are no multiples of one."""
    steps = np.diff(np.unique(readings[np.isfinite(readings)]))
    steps = steps[steps > 1e-9]
    quantum = float(np.mean(steps[steps < 1.5 * np.min(steps)])) if len(steps) else math.nan
    counts = steps[steps < _MOST_QUANTA * quantum] / quantum
    even = len(counts) >= _FEWEST_STEPS and np.mean(np.abs(counts - np.round(counts)) < 0.1) > _ON_STEPS
    return quantum if even else math.nan


def drawn_wheels(urdf: Path) -> tuple[tuple[TurningJoint, ...], dict[str, tuple[float, float, float]], float]:
    """Wheels of a base in its URDF, their x, y and radius [m] by name, and the mass of all links [kg].

    They turn without end about an axis along y, on links that nothing else moves; the front left one comes first. Their
    rows are those of a radius of 1 m, and tell nothing of sideways motion.

    Raises:
        ModelError: no URDF.
    """
    links = read_urdf(urdf, lock_mimics=True)
    poses, moved = {links[0].name: np.eye(4)}, set[str]()
    wheels, places = list[TurningJoint](), dict[str, tuple[float, float, float]]()
    for link in links[1:]:
        pose = poses[link.name] = poses[link.parent] @ link.placement
        x, y, axis = float(pose[0, 3]), float(pose[1, 3]), (pose[:3, :3] @ link.axis).tolist()
        endless = link.joint_type == "revolute" and math.isinf(link.limits.upper)
        if endless and link.parent not in moved and abs(axis[1]) > 0.99 * np.linalg.norm(axis):
            ahead = float(np.sign(axis[1]))
            wheels.append(TurningJoint(link.joint, "", np.array([ahead, np.nan, -y * ahead])))
            places[link.joint] = x, y, link.radius
        if link.joint_type != "fixed" or link.parent in moved:
            moved.add(link.name)
    wheels.sort(key=lambda wheel: (-round(places[wheel.name][0], 3), -places[wheel.name][1]))
    return tuple(wheels), places, sum(link.mass for link in links)


@dataclass(frozen=True)
class Wheels:
    """Which wheel of a base is where."""

    joints: tuple[str, ...]  # in the order of the robot file
    signs: tuple[float, ...] = ()  # 1 for one that turns on as the base advances, or as an omni base turns left
    drive_angles: tuple[float, ...] = ()  # of omni wheels [rad]
    radius: float = math.nan  # by the rows [m]
    lever: float = math.nan  # half the track, half width + half length / lateral factor, or distance of omni wheels [m]
    lateral_factor: float = 1.0  # of mecanum wheels


def arranged(wheels: Sequence[TurningJoint], ordered: bool = False) -> Wheels | None:
    """Arrangement of wheels by how they turn with the base; None if that does not tell.

    If they are `ordered` as in the robot file, two are those of a differential and four those of a mecanum base, unless
    their motion tells that these are omni wheels.
    """
    names, table = tuple(wheel.name for wheel in wheels), np.array([wheel.row for wheel in wheels]).reshape(-1, 3)
    (forward, left, turn), count = table.T, len(wheels)
    if not np.all(np.isfinite([forward, turn])):
        return Wheels(names) if ordered and count in (2, 4) else None
    straight, every = np.nan_to_num(table[:, :2]), count > 2 and bool(np.all(np.isfinite(left)))
    turn = turn - straight @ np.linalg.lstsq(straight, turn, rcond=None)[0]  # of the middle, where a body is beside it
    size, ahead = np.hypot(*straight.T), np.sign(forward)
    slanted = every and count == 4 and all(map(_alike, (forward, left, turn)))
    if every and count in (3, 4) and _alike(size) and _alike(turn) and not slanted:
        signs, radius = np.sign(turn), 1.0 / float(np.mean(size))
        angles = np.arctan2(*(straight * signs[:, None]).T[::-1])
        lever = radius * float(np.mean(np.abs(turn)))
        return Wheels(names, tuple(signs.tolist()), tuple(angles.tolist()), radius, lever)
    places = [int(one > 0.0) for one in turn * ahead] if count == 2 else []
    if slanted:
        places = [_CORNERS[side, round_] for side, round_ in np.sign(np.array([left, turn]) * ahead).T.tolist()]
    order = list(range(count)) if ordered else [places.index(place) for place in sorted({*places})]
    if count not in (2, 4) or len(order) != count:
        return None
    radius = 1.0 / float(np.mean(np.abs(forward)))
    lever = radius * float(np.mean(np.abs(turn)))
    factor = float(np.mean(np.abs(forward)) / np.mean(np.abs(left))) if slanted else 1.0
    return Wheels(tuple(names[k] for k in order), tuple(ahead[order].tolist()), (), radius, lever, factor)


def _alike(values: Vector) -> bool:
    return bool(np.max(np.abs(values)) < _ALIKE * np.min(np.abs(values)))
