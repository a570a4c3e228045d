"""The hidden truth of a robot whose file gives none: about its own facts, with random numbers of its own."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Value
from youbot_dynamics.robot import PREFIX as ROBOT
from youbot_dynamics.robot import Robot, load_robot

PREFIX = "truth"
# Quantities of the base that are facts of its robot, and those that grow with the friction of its wheels.
_OF_GEOMETRY = (
    "wheel_radius",
    "half_length",
    "half_width",
    "lateral_factor",
    "roller_depth",
    "wheel_distance",
    "track",
    "wheelbase",
)
_OF_FRICTION = ("wheel_coulomb", "roller_coulomb", "viscous_x", "viscous_y")
_OF_BASE = ("mass", "yaw_inertia", "wheel_inertia")
_AS_WHEEL_COULOMB = ("torque_noise", "servo_gain")
_SIZE = np.array([1.0, 0.97, 1.03])  # nominal, lowest and highest of what the youBot has not, over the fact


def given_truth(path: Path) -> dict[str, Value]:
    """Parameters `truth.*` of a file."""
    values = read_parameters(path, "mock_youbot")
    return {name: value for name, value in values.items() if name.split(".")[0] == PREFIX}


def other_robot(path: Path) -> Robot | None:
    """Robot of a file; None if it is a youBot's, or says nothing of a robot."""
    name = f"{ROBOT}.robot_id"
    robot = load_robot(robot_file=path) if name in read_parameters(path, "") else None
    return None if robot is None or robot.is_youbot else robot


def truth_about(robot: Robot, youbots: Mapping[str, Any], bounds: Mapping[str, Mapping[str, Any]]) -> dict[str, Value]:
    """Ranges of a base about the facts of a robot, by the factors of the youBot's and within the bounds of each."""
    base = robot.base
    facts = {name: getattr(base.geometry, name) for name in _OF_GEOMETRY}
    facts |= {name: getattr(base.friction, name) for name in _OF_FRICTION}
    facts |= {name: getattr(base, name) for name in _OF_BASE}
    ranges = {name: np.array(youbots[f"{PREFIX}.{name}"]) for name in (*facts, *_AS_WHEEL_COULOMB)}
    factor = facts["wheel_coulomb"] / ranges["wheel_coulomb"][0]
    scaled = {name: factor * ranges[name] for name in _AS_WHEEL_COULOMB}
    for name, fact in facts.items():
        nominal = ranges[name][0]
        scaled[name] = fact * (ranges[name] / nominal if nominal else _SIZE)
    return {
        f"{PREFIX}.{name}": tuple(np.clip(three, bounds[name]["low"], bounds[name]["high"]).tolist())
        for name, three in scaled.items()
    }


def own_stream(path: Path | None) -> tuple[int, ...]:
    """Stream of random numbers of a robot file without ranges: its delays are not those of the youBot's seeds."""
    if path is None or given_truth(path) or (robot := other_robot(path)) is None:
        return ()
    return (zlib.crc32(robot.robot_id.encode()),)
