"""Writes the estimates of `youbot replay` as the bag that node arm_ekf would have left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from youbot_dynamics import __version__
from youbot_dynamics.estimation.friction_feedforward import FrictionFeedforward
from youbot_dynamics.estimation.replay import ArmReplay
from youbot_dynamics.nodes.pace import Pace
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, jazzy_types
from youbot_dynamics.recording.serialize import joint_state_cdr
from youbot_dynamics.robot import Robot

TEMPERATURE = "sensor_msgs/msg/Temperature"
FLOAT = "std_msgs/msg/Float64"
POINT, POINT_OF = "geometry_msgs/msg/PointStamped", "geometry_msgs/msg/Point"
INERTIA, INERTIA_OF = "geometry_msgs/msg/InertiaStamped", "geometry_msgs/msg/Inertia"
VECTOR = "geometry_msgs/msg/Vector3"
_FRICTION_RATE = 50.0  # [Hz] that of node arm_ekf
_PAYLOAD_RATE = 1.0  # [Hz] likewise
_BASE_FRAME = "base_footprint"

_Row = tuple[float, str, str, bytes]  # time [s], topic, type, message


def write_estimates(folder: Path, replay: ArmReplay, robot: Robot, origin: int) -> None:
    """Write a rosbag2 folder with the topics, types and rates of node arm_ekf; any viewer of bags reads it.

    Args:
        folder: new or empty.
        replay: what is written.
        robot: whose arm it is.
        origin: time 0 of the log [ns since 1970].

    Raises:
        RecordingError: the folder holds something already, or cannot be written.
        ResourceError: rosbags or mcap is not installed.
    """
    rows = [*_joints(replay, robot, origin), *_heat(replay, robot, origin), *_support(replay, robot, origin)]
    with BagWriter(folder, {"youbot_dynamics": __version__, "robot_id": robot.robot_id}) as bag:
        for time, topic, type_name, cdr in sorted(rows, key=lambda row: row[0]):
            bag.add_topic(topic, type_name)
            bag.write(topic, cdr, _ns(time, origin))


def _ns(time: float, origin: int) -> int:
    return origin + round(time * 1e9)


def _joints(replay: ArmReplay, robot: Robot, origin: int) -> Iterator[_Row]:
    log, track = replay.log, replay.track
    said, pace = replay.settings, Pace(_FRICTION_RATE)
    ahead = FrictionFeedforward(robot.arm.model(), said.smoothing_speed, said.feedforward_share)
    for row in np.flatnonzero(track.taken & np.isfinite(track.position).all(axis=1)).tolist():
        time = float(log.stamp[row])
        stamp, speed = _ns(time, origin), track.speed[row]
        cdr = joint_state_cdr(stamp, log.joints, track.position[row], speed, log.effort[row])
        yield time, "/arm_1/estimated_joint_states", JOINT_STATE, cdr
        if pace.due(time):
            friction = joint_state_cdr(stamp, log.joints, effort=track.friction_torque[row])
            yield time, "/arm_1/friction", JOINT_STATE, friction
            feedforward = joint_state_cdr(stamp, log.joints, effort=ahead.torque(speed))
            yield time, "/arm_1/friction_feedforward", JOINT_STATE, feedforward


def _heat(replay: ArmReplay, robot: Robot, origin: int) -> Iterator[_Row]:
    heat, joints = replay.heat, replay.log.joints
    frames = robot.arm.model().tree.names
    parts = (
        ("winding", heat.winding, heat.winding_deviation),
        ("housing", heat.housing, heat.housing_deviation),
    )
    for row, time in enumerate(heat.time.tolist()):
        for part, temperature, deviation in parts:
            for k, joint in enumerate(joints):
                variance = float(deviation[row, k]) ** 2
                cdr = temperature_cdr(_ns(time, origin), frames[k], float(temperature[row, k]), variance)
                yield time, f"/arm_1/{joint}/{part}_temperature", TEMPERATURE, cdr
    for time, torque in zip(heat.limit_time.tolist(), heat.torque, strict=True):
        cdr = joint_state_cdr(_ns(time, origin), joints, effort=torque)
        yield time, "/arm_1/torque_available", JOINT_STATE, cdr


def _support(replay: ArmReplay, robot: Robot, origin: int) -> Iterator[_Row]:
    """The wheels of a base that stands, and the payload once a second where it is known."""
    found, last_link = replay.support, robot.arm.model().tree.names[-1]
    weighed = Pace(_PAYLOAD_RATE)
    for row, time in enumerate(found.time.tolist()):
        ns, forces = _ns(time, origin), found.normal_forces[row]
        cdr = joint_state_cdr(ns, robot.driver.wheel_joints, effort=forces)
        yield time, "/wheel_normal_forces", JOINT_STATE, cdr
        yield time, "/tip_over_margin", FLOAT, _cdr(FLOAT, float(forces.min()))
        point = _made(POINT_OF, *found.centre_of_mass[row].tolist())
        yield time, "/centre_of_mass", POINT, _cdr(POINT, _header(ns, _BASE_FRAME), point)
        mass = float(found.payload[row])
        if not np.isnan(mass) and weighed.due(time):
            centre = _made(VECTOR, *found.payload_centre[row].tolist())
            inertia = _made(INERTIA_OF, max(0.0, mass), centre, *[0.0] * 6)
            yield time, "/payload", INERTIA, _cdr(INERTIA, _header(ns, last_link), inertia)


def _made(type_name: str, *fields: object) -> object:
    return jazzy_types().types[type_name](*fields)  # type: ignore[arg-type]


def _header(stamp_ns: int, frame_id: str) -> object:
    time = _made("builtin_interfaces/msg/Time", *divmod(stamp_ns, 1_000_000_000))
    return _made("std_msgs/msg/Header", time, frame_id)


def _cdr(type_name: str, *fields: object) -> bytes:
    return bytes(jazzy_types().serialize_cdr(_made(type_name, *fields), type_name))


def temperature_cdr(stamp_ns: int, frame_id: str, temperature: float, variance: float) -> bytes:
    """Serialise a sensor_msgs/msg/Temperature.

    Args:
        stamp_ns: header stamp [ns].
        frame_id: frame of the header.
        temperature: [degC].
        variance: [K2].
    """
    return _cdr(TEMPERATURE, _header(stamp_ns, frame_id), temperature, variance)
