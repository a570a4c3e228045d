"""Recordings that cannot tell: every robot, every one of them, is refused with the right reason and exit code 3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from acceptance_bags import PERIOD, Row, arm_rows, base_rows, drawn_base, write
from arm_motions import truth_of
from friction_runs import STRAIGHT, WAYS, stairs
from stage_bags import ARM, ROBOT, WHEELS, nanoseconds
from test_stages import UPRIGHT, swing

from youbot_dynamics.commands.main import main
from youbot_dynamics.identification.excitation import ArmExcitation
from youbot_dynamics.recording.message_types import JOINT_STATE
from youbot_dynamics.recording.serialize import joint_state_cdr
from youbot_dynamics.simulation.arm_plant import ArmPlant
from youbot_dynamics.simulation.base_plant import BasePlant

BASE_FRICTION, ARM_FRICTION, DELAY = "robot.base.friction", "robot.arm.joint_{}.friction", "robot.base.delay"
WHEEL_COEFFICIENTS = ("viscous_x", "viscous_y", "roller_coulomb", "wheel_coulomb")
STEADY = 4.0  # [s] from which a held command is followed


class Case(NamedTuple):
    """One kind of recording.

    Args:
        rows: its messages, of the robot of a seed.
        stages: asked for.
        refused: name of each parameter that must be refused -> words its verdict must have.
        told: names that must be identified all the same.
    """

    rows: Callable[[int], list[Row]]
    stages: str
    refused: dict[str, str]
    told: tuple[str, ...] = ()


def drive(twists: np.ndarray, seed: int, effort: bool = True) -> list[Row]:
    plant = BasePlant(drawn_base(seed), ROBOT.driver, seed)
    return base_rows(plant, plant.advance, twists, seed, effort)


def move(motion: ArmExcitation, seed: int, effort: bool = True) -> list[Row]:
    plant = ArmPlant(truth_of(seed), ROBOT, seed, position=motion.positions[0])
    return arm_rows(plant, plant.advance, motion, effort)


def from_then_on(rows: list[Row], begin: float) -> list[Row]:
    """A recording that was begun later."""
    return [row for row in rows if row[0] >= begin]


def with_zero_efforts(rows: list[Row], joints: tuple[str, ...]) -> list[Row]:
    """States with all efforts 0, as drivers write them that measure none; `rows` have none."""
    return [
        (time, topic, kind, _with_zeros(cdr, joints) if topic == "/driver/joint_states" else cdr)
        for time, topic, kind, cdr in rows
    ]


def _with_zeros(cdr: bytes, joints: tuple[str, ...]) -> bytes:
    from rosbags.typesys import Stores, get_typestore

    state = get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr(cdr, JOINT_STATE)
    stamp = state.header.stamp.sec * 1_000_000_000 + state.header.stamp.nanosec
    return joint_state_cdr(stamp, joints, state.position, state.velocity, np.zeros(len(joints)))


def held(twist: tuple[float, float, float], seed: int) -> list[Row]:
    """A cruise, recorded once the robot follows."""
    return from_then_on(drive(np.tile(twist, (1500, 1)), seed), STEADY)


def circling(seed: int) -> list[Row]:
    """A sine of 0.5 s: the delay and the delay plus a period fit alike."""
    time = PERIOD * np.arange(1500)
    return drive(np.outer(np.sin(4.0 * np.pi * time), [0.15, 0.15, 0.4]), seed)


def legs(way: int) -> tuple[tuple[int, float], ...]:
    """Stairs along one axis only: 0 forward, 1 sideways, 2 turning."""
    speeds = [speed for leg, speed in STRAIGHT if leg == 0]
    return tuple((way, speed * (2.0 if way == 2 else 1.0)) for speed in speeds)


def one_speed(seed: int) -> list[Row]:
    """Joint 1 turns steadily one way, the others stand; recorded while it does."""
    times = np.array([0.0, 20.0])
    ends = np.tile(UPRIGHT, (2, 1))
    ends[:, 0] += [-2.0, 2.0]
    speeds = np.zeros((2, 5))
    speeds[:, 0] = 0.2
    steady = ArmExcitation(times, ends, speeds, np.zeros((2, 5)), 0.0, 0.0)
    return from_then_on(move(steady, seed), 2.0)


def of_base(words: str, *names: str) -> dict[str, str]:
    return {f"{BASE_FRICTION}.{name}": words for name in names or WHEEL_COEFFICIENTS}


def of_arm(words: str, joints: tuple[int, ...] = (1, 2, 3, 4, 5)) -> dict[str, str]:
    return {f"{ARM_FRICTION.format(k)}.{what}": words for k in joints for what in ("coulomb", "viscous")}


def of_delay(words: str, *axes: str) -> dict[str, str]:
    return {f"{DELAY}.effective_{axis}": words for axis in axes or ("x", "y", "yaw")}


CASES = {
    "cruise forward": Case(lambda seed: held((0.3, 0.0, 0.0), seed), "base_friction", of_base("")),
    "cruise askew": Case(lambda seed: held((0.2, 0.15, 0.3), seed), "base_friction", of_base("")),
    "delay of a cruise": Case(lambda seed: held((0.2, 0.15, 0.3), seed), "delay", of_delay("")),
    "forward only": Case(lambda seed: drive(stairs(30.0, legs(0)), seed), "base_friction", of_base("", "viscous_y")),
    "sideways only": Case(lambda seed: drive(stairs(30.0, legs(1)), seed), "base_friction", of_base("", "viscous_x")),
    "turning only": Case(lambda seed: drive(stairs(30.0, legs(2)), seed), "base_friction", of_base("", "viscous_x")),
    "delay of one axis": Case(lambda seed: drive(stairs(30.0, legs(0)), seed), "delay", of_delay("", "y", "yaw")),
    "rest": Case(lambda seed: drive(np.zeros((1000, 3)), seed), "delay,base_friction", of_base("")),
    "periodic": Case(circling, "delay", of_delay("")),
    "no effort": Case(lambda seed: drive(stairs(30.0), seed, effort=False), "base_friction", of_base("")),
    "zero effort": Case(lambda seed: with_zero_efforts(drive(stairs(30.0), seed, effort=False), WHEELS), "base_friction", of_base("")),
    "arm at one speed": Case(one_speed, "arm_friction", of_arm("")),
    "one joint only": Case(lambda seed: move(swing(30.0, (0, 0, 0, 1, 0)), seed), "arm_friction", of_arm("")),
    "arm at rest": Case(lambda seed: move(swing(10.0, (0, 0, 0, 0, 0)), seed), "arm_friction", of_arm("")),
    "arm without effort": Case(lambda seed: move(swing(20.0), seed, effort=False), "arm_friction", of_arm("")),
    "arm with zero effort": Case(lambda seed: with_zero_efforts(move(swing(20.0), seed, effort=False), ARM), "arm_friction", of_arm("")),
}
