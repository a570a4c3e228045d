"""What a recording or a URDF tells of a base without a robot file: its wheels, their places, signs, rates and steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.tree import read_urdf
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading import (
    is_to_driver,
    joint_readings,
    new_readings,
    speed_ratio,
    times_of,
)
from youbot_dynamics.identification.signals import HeldCommand, wheel_angles
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.bag import POSE_TYPES, Recording
from youbot_dynamics.recording.message_types import JOINT_TYPES, ODOMETRY, TWIST, TWIST_STAMPED

_BY = ("odometry", "poses", "commands")  # motions of a base, best first
_KINDS = dict.fromkeys(POSE_TYPES, "poses") | {ODOMETRY: "odometry", TWIST: "commands", TWIST_STAMPED: "commands"}
_WINDOW, _GRID = 1.0, 0.05  # [s] over which motions are compared, and between the begins of two windows
_DELAYS = np.arange(-0.5, 1.5, 0.025)  # [s] by which wheels may turn after the motion: commands lead by up to a second
_FEWEST = 40  # windows, or readings
_TURNED = 0.5  # [rad] by which a joint must turn to count
_FOLLOWS = 0.5  # least correlation of commanded and made rotation
_EXPLAINED = 0.8  # share of the rotation of a wheel that the motion explains: 0.97 and more of wheels, 0.5 of an arm
_AXIS_MOVED = 0.12  # share of the largest motion above which an axis counts as moved
_SHOWN = 0.5  # share of a motion that wheels show, and of their turns that it explains, below which it is noise
_APART = 0.15  # ratio of singular values of the motion below which its axes moved together: 0.09 in circles, else 0.4
_LOOKS_AHEAD = 0.05  # [rad] within which a tracked body looks as the base does
_COHERENT = 0.9  # share of the turns of wheels that one heading of the tracked body explains
_TURNING_RADIUS = 0.3  # [m] converts turns to distances, for that
_ALIKE = 1.6  # largest ratio of what is alike in all wheels
_SIDEWAYS = 0.2  # share of its rotation forward, by which a wheel turns at most if motion to the side does not turn it
_GAP = 1.9  # median periods between two readings above which some are missing
_ON_STEPS, _FEWEST_STEPS, _MOST_QUANTA = 0.95, 15, 50  # of differences of readings that are multiples of a quantum


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
    place: tuple[float, float, float] = (math.nan, math.nan, math.nan)  # x, y and radius in a URDF [m]
    fastest: float = math.nan  # by its limit in a URDF [rad/s]

    @property
    def side(self) -> str:
        """Left or right, by how it turns as the base moves forward and around; "" where that does not tell."""
        return {-1.0: "left", 1.0: "right"}.get(float(np.sign(self.row[0] * self.row[2])), "")


_Group: TypeAlias = tuple[Vector, Vector, list[TurningJoint]]  # n joints, times (m,) [s] and angles (m, n) [rad]


class Judged(NamedTuple):
    """Joints that turned, judged by a motion of the base."""

    by: str  # odometry, poses or commands; "" for none
    topic: str  # of the motion
    joints: tuple[TurningJoint, ...]
    motions: Mapping[str, str] = MappingProxyType({})  # topics of motions that fit, by what they are
    unused: tuple[str, ...] = ()  # those that contradict the commands
    heading: float = 0.0  # of the tracked body on the base [rad], where the commands show one

    @property
    def wheels(self) -> list[TurningJoint]:
        """Joints that turn with the base."""
        return [joint for joint in self.joints if joint.explained > _EXPLAINED]


def turning_joints(recording: Recording) -> Judged:
    """Joints that turned, judged by the best motion of the base that two of them follow, else by none.

    Odometry is best, then poses; commands show no sizes. A tracked body may look another way than the base: the
    commands tell. A motion is not used that contradicts them about which wheel is where. If the base never moved
    sideways, the commands tell whether it should have: wheels without rollers do not obey.

    Raises:
        RecordingError: no joint turned.
    """
    topics = joint_readings(recording)
    groups = list(_turned(recording, [topic for topic in topics if topic.endswith("joint_states")] or topics))
    alone = Judged("", "", tuple(joint for *_, joints in groups for joint in joints))
    if not groups:
        asked = next((topic for by, topic, *_ in _motions(recording) if by == "commands"), "cmd_vel")
        role = "" if asked.endswith("cmd_vel") else f" --topic cmd_vel={asked}"
        command = f"youbot identify {recording.path}{role} --out found"
        remedy = f"record joint_states of a drive; without them no robot file helps: {command}"
        raise RecordingError(f"{recording.path}", got="no joint that turned", expected="one", remedy=remedy)
    judged = [
        Judged(by, topic, tuple(_judged(groups, moved_at, way, by == "poses")))
        for by, topic, moved_at, way in _motions(recording)
    ]
    judged.sort(key=lambda one: (round(sum(joint.explained for joint in one.wheels), 2), "driver/" in one.topic))
    best = {one.by: one for one in judged if len(one.wheels) > 1}
    sent = best.get("commands", alone).wheels
    if "poses" in best:
        best["poses"] = _along_base(best["poses"], sent)
    usable = [best[by] for by in _BY if by in best and not _contradict(best[by].wheels, sent)]
    motions = {by: one.topic for by, one in best.items()}
    rows = {joint.name: joint.row * [np.nan, 1.0, np.nan] for joint in sent}
    for k, one in enumerate(usable):
        joints = [replace(j, row=np.where(np.isnan(j.row), rows.get(j.name, j.row), j.row)) for j in one.joints]
        unused = tuple(topic for by, topic in motions.items() if best[by] not in usable)
        usable[k] = one._replace(joints=tuple(joints), motions=motions, unused=unused)
    return next((one for one in usable if arranged(one.wheels)), usable[0] if usable else alone)


def _along_base(judged: Judged, sent: Sequence[TurningJoint]) -> Judged:
    """Motion of a tracked body along the axes of the base, by the wheels, which turn as those of the commands, `sent`.

    Of a body that looks to the left by h, the part r (2,) of a row for motion in the plane is that of the base turned
    by -h.
    """
    rows = {joint.name: complex(*joint.row[:2]) for joint in sent}
    pairs = [(complex(*joint.row[:2]), rows[joint.name]) for joint in judged.wheels if joint.name in rows]
    turns = [by_poses * by_commands.conjugate() for by_poses, by_commands in pairs]
    total = complex(np.sum(turns))
    heading = -math.atan2(total.imag, total.real)
    # Wheels that turn by motion forward alone, or that are others than those of the commands, show none.
    if not abs(total) > _COHERENT * float(np.sum(np.abs(turns))) or abs(heading) < _LOOKS_AHEAD:
        return judged
    c, s = math.cos(heading), math.sin(heading)
    turned = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    joints = tuple(replace(joint, row=joint.row @ turned) for joint in judged.joints)
    return judged._replace(joints=joints, heading=heading)


def _contradict(one: Sequence[TurningJoint], other: Sequence[TurningJoint]) -> bool:
    """Whether two motions put the same wheels into different places, or turn them the other way."""
    places = [arranged(wheels) or arranged(wheels, ordered=True) for wheels in (one, other)]
    told = [(found.joints, found.signs) for found in places if found and found.signs]
    return len(told) == 2 and told[0] != told[1] and {*told[0][0]} == {*told[1][0]}


def _motions(recording: Recording) -> Iterator[tuple[str, str, Vector, Vector]]:
    """Each motion of the base: what it is, topic, times (k,) [s], and sums (k, 3) of its steps along its own axes."""
    for name, info in recording.topics.items():
        if by := "poses" if name.endswith("ground_truth") else _KINDS.get(info.type):
            with suppress(RecordingError):
                yield by, name, *_way(recording, name)


def _way(recording: Recording, topic: str) -> tuple[Vector, Vector]:
    """Times (k,) [s] and sums (k, 3) of steps: of poses, or of speeds where there are no poses that move."""
    with suppress(RecordingError):
        poses = recording.poses(topic)
        if np.any(steps := planar.steps_of_path(poses.pose)):
            return poses.received, np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    sent = recording.twists(topic)
    speeds = np.nan_to_num(sent.twist.T)  # a log without a column for an axis
    return sent.received, np.column_stack([HeldCommand(sent.received, v, 0.0).integral(sent.received) for v in speeds])


def _turned(recording: Recording, topics: Sequence[str]) -> Iterator[_Group]:
    """Joints that turned, each once, in groups that messages name together."""
    seen = set[str]()
    for topic in topics:
        with suppress(RecordingError):  # efforts alone, or messages that cannot be read
            for names in sorted(recording.joint_names(topic), key=len)[::-1]:
                series, ones = recording.joint_states(topic, names), np.ones(len(names))
                table = wheel_angles(recording, series, times_of(series), (ones, ones))[0]
                sound = np.all(np.isfinite(table), axis=1)
                time, angles = times_of(series)[sound], table[sound]
                turned = np.ptp(angles, axis=0) > _TURNED if len(angles) > _FEWEST else sound[:0]
                if not (new := [k for k in np.flatnonzero(turned).tolist() if names[k] not in seen]):
                    continue
                seen |= {names[k] for k in new}
                steps = np.diff(time)
                rate = 1.0 / (new_readings(angles)[1] * float(np.mean(steps[steps < _GAP * np.median(steps)])))
                read = [(names[k], series.position[sound, k], series.velocity[sound, k]) for k in new]
                joints = [
                    TurningJoint(
                        name, topic, np.full(3, np.nan), 0.0, rate, (_quantum(q), _quantum(v)), speed_ratio(time, q, v)
                    )
                    for name, q, v in read
                ]
                yield series.received[sound], angles[:, new], joints


def _judged(groups: Sequence[_Group], moved_at: Vector, way: Vector, noisy: bool) -> Iterator[TurningJoint]:
    """Joints, with the delay to the motion, which may be `noisy`, that explains the rotation of two best."""
    for received, angles, joints in groups:
        fits = [_fit(received, angles, moved_at + delay, way, noisy) for delay in _DELAYS]
        rows, explained = max(fits, key=lambda fit: float(np.sum(np.sort(fit[1])[-2:])))
        for joint, row, share in zip(joints, rows, explained.tolist(), strict=True):
            yield replace(joint, row=row, explained=share)


def _fit(time: Vector, angles: Vector, moved_at: Vector, way: Vector, noisy: bool) -> tuple[Vector, Vector]:
    """Rotation per motion (n, 3) of joints with angles (m, n), and the share (n,) of it that this explains."""
    rows = np.full((angles.shape[1], 3), np.nan)
    begins = np.arange(max(time[0], moved_at[0]), min(time[-1], moved_at[-1]) - _WINDOW, _GRID)
    if len(begins) < _FEWEST:
        return rows, np.zeros(len(rows))
    turned, moved = (
        np.column_stack([np.interp(begins + _WINDOW, at, one) - np.interp(begins, at, one) for one in table.T])
        for at, table in ((time, angles), (moved_at, way))
    )
    size = np.sqrt(np.mean(moved**2, axis=0)) * [1.0, 1.0, _TURNING_RADIUS]
    axes = size > _AXIS_MOVED * np.max(size)
    plain = np.linalg.lstsq(moved[:, axes], turned, rcond=None)[0]
    left = np.sum((turned - moved[:, axes] @ plain) ** 2, axis=0)
    # Noise of the poses would make the rows too small: the part of each motion that the joints show is without it.
    wheels = turned[:, left < _SHOWN * np.sum(turned**2, axis=0)]
    shown = wheels @ np.linalg.lstsq(wheels, moved, rcond=None)[0] if noisy and wheels.shape[1] > 1 else moved
    axes &= np.sum(shown**2, axis=0) > _SHOWN * np.sum(moved**2, axis=0)
    if noisy and np.all(axes) and wheels.shape[1] == 2:  # what is sideways is of a body beside the middle
        axes[1] = False
    singular = np.linalg.svd(shown[:, axes] / np.linalg.norm(shown[:, axes], axis=0), compute_uv=False)
    if not len(singular) or singular[-1] > _APART * singular[0]:  # else nothing tells which motion turns them
        rows[:, axes] = np.linalg.lstsq(shown[:, axes], turned, rcond=None)[0].T
    return rows, 1.0 - left / np.maximum(np.sum(turned**2, axis=0), 1e-12)


def _quantum(readings: Vector) -> float:
    """Step of some readings (n,), NaN if their differences are no multiples of one."""
    steps = np.diff(np.unique(readings[np.isfinite(readings)]))
    steps = steps[steps > 1e-9]
    quantum = float(np.mean(steps[steps < 1.5 * np.min(steps)])) if len(steps) else math.nan
    counts = steps[steps < _MOST_QUANTA * quantum] / quantum
    even = len(counts) >= _FEWEST_STEPS and np.mean(np.abs(counts - np.round(counts)) < 0.1) > _ON_STEPS
    return quantum if even else math.nan


def drawn_wheels(urdf: Path) -> tuple[tuple[TurningJoint, ...], float]:
    """Wheels of a base in its URDF, and the mass of all links [kg].

    They turn without end about an axis along y, on links that nothing else moves; the front left one comes first. Their
    rows are those of a radius of 1 m, and tell nothing of sideways motion.

    Raises:
        ModelError: no URDF.
    """
    links = read_urdf(urdf, lock_mimics=True)
    poses, moved = {links[0].name: np.eye(4)}, set[str]()
    wheels = list[TurningJoint]()
    for link in links[1:]:
        pose = poses[link.name] = poses[link.parent] @ link.placement
        x, y, axis = float(pose[0, 3]), float(pose[1, 3]), (pose[:3, :3] @ link.axis).tolist()
        endless = link.joint_type == "revolute" and math.isinf(link.limits.upper)
        if endless and link.parent not in moved and abs(axis[1]) > 0.99 * np.linalg.norm(axis):
            ahead = float(np.sign(axis[1]))
            row = np.array([ahead, np.nan, -y * ahead])
            wheels.append(TurningJoint(link.joint, "", row, place=(x, y, link.radius), fastest=link.limits.velocity))
        if link.joint_type != "fixed" or link.parent in moved:
            moved.add(link.name)
    wheels.sort(key=lambda wheel: (-round(wheel.place[0], 3), -wheel.place[1]))
    return tuple(wheels), sum(link.mass for link in links)


def commanded_turns(recording: Recording, joints: Sequence[TurningJoint]) -> tuple[str, tuple[float, ...]]:
    """Topic of commanded speeds of some joints, and for each 1 if it turns as commanded, else -1; empty for none."""
    for topic, info in recording.topics.items():
        if info.type not in JOINT_TYPES or not is_to_driver(topic):
            continue
        with suppress(RecordingError):  # of other joints, or messages that cannot be read
            names = tuple(joint.name for joint in joints)
            sent, made = recording.joint_states(topic, names), recording.joint_states(joints[0].topic, names)
            begins = np.arange(made.received[0], made.received[-1] - _WINDOW, _GRID)
            ends, alike = begins + _WINDOW, np.zeros(len(joints))
            ways = [np.interp([begins, ends], made.received, angles) for angles in made.position.T]
            turned = np.array([way[1] - way[0] for way in ways])
            orders = [HeldCommand(sent.received, speed, 0.0) for speed in sent.velocity.T]
            for delay in _DELAYS[_DELAYS >= 0.0]:
                wanted = np.array([one.integral(ends - delay) - one.integral(begins - delay) for one in orders])
                sizes = np.linalg.norm(wanted, axis=1) * np.linalg.norm(turned, axis=1)
                share = np.sum(wanted * turned, axis=1) / np.maximum(sizes, 1e-12)
                alike = max(alike, share, key=lambda one: float(np.sum(np.abs(one))))
            if np.all(np.abs(alike) > _FOLLOWS):
                return topic, tuple(np.sign(alike).tolist())
    return "", ()


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
    if not (names and np.all(np.isfinite([forward, turn]))):
        return Wheels(names) if ordered and count in (2, 4) else None
    every = count > 2 and bool(np.all(np.isfinite(left)))
    straight = np.nan_to_num(table[:, :2]) * [1.0, float(count > 2)]
    turn = turn - straight @ np.linalg.lstsq(straight, turn, rcond=None)[0]  # of the middle, where a body is beside it
    size, ahead, spin = np.hypot(*straight.T), np.sign(forward), float(np.mean(np.abs(turn)))
    if every and count == 4 and not ordered and np.all(np.abs(left) < _SIDEWAYS * np.abs(forward)):  # skid steering
        first = {wheel.side: wheel for wheel in wheels[::-1]}
        return arranged([first["left"], first["right"]]) if {*first} == {"left", "right"} else None
    slanted = every and count == 4 and all(map(_alike, (forward, left, turn)))
    if every and count in (3, 4) and _alike(size) and _alike(turn) and not slanted:
        signs, radius = np.sign(turn), 1.0 / float(np.mean(size))
        angles = np.arctan2(*(straight * signs[:, None]).T[::-1])
        return Wheels(names, tuple(signs.tolist()), tuple(angles.tolist()), radius, radius * spin)
    right = turn * ahead > 0.0
    rear = slanted & ((left * ahead > 0.0) != right)  # rollers of front and rear wheels slant to opposite sides
    places = (right + 2 * rear).tolist() if slanted or count == 2 else []
    order = list(range(count)) if ordered else [places.index(place) for place in sorted({*places})]
    if count not in (2, 4) or len(order) != count:
        return None
    radius = 1.0 / float(np.mean(np.abs(forward)))
    factor = float(1.0 / (radius * np.mean(np.abs(left)))) if slanted else 1.0
    return Wheels(tuple(names[k] for k in order), tuple(ahead[order].tolist()), (), radius, radius * spin, factor)


def _alike(values: Vector) -> bool:
    return bool(np.max(np.abs(values)) < _ALIKE * np.min(np.abs(values)))
