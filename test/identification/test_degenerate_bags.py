"""Recordings that cannot tell: every robot, every one of them, is refused with the right reason and exit code 3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from acceptance_bags import PERIOD, Row, arm_rows, base_run, drawn_base
from arm_motions import truth_of
from command_line import exit_code
from friction_runs import STRAIGHT, stairs
from stage_bags import ROBOT, UPRIGHT, swing, write_rows

from youbot_dynamics.identification.excitation import ArmExcitation
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.base import BasePlant

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


def drive(twists: np.ndarray, seed: int, told: float | None = 1.0) -> list[Row]:
    plant = BasePlant(drawn_base(seed), ROBOT.driver, seed)
    return base_run(plant, plant.advance, twists, seed, told).rows


def move(motion: ArmExcitation, seed: int, told: float | None = 1.0) -> list[Row]:
    plant = ArmPlant(truth_of(seed), ROBOT, seed, position=motion.positions[0])
    return arm_rows(plant, plant.advance, motion, told)


def from_then_on(rows: list[Row], begin: float) -> list[Row]:
    """A recording that was begun later."""
    return [row for row in rows if row[0] >= begin]


def held(twist: tuple[float, float, float], seed: int) -> list[Row]:
    """A cruise, recorded once the robot follows."""
    return from_then_on(drive(np.tile(twist, (3000, 1)), seed), STEADY)


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
    steady = ArmExcitation(times, ends, speeds, np.zeros((2, 5)))
    return from_then_on(move(steady, seed), 2.0)


def of_base(words: str, *names: str) -> dict[str, str]:
    return {f"{BASE_FRICTION}.{name}": words for name in names or WHEEL_COEFFICIENTS}


def of_arm(words: str, joints: tuple[int, ...] = (1, 2, 3, 4, 5)) -> dict[str, str]:
    return {f"{ARM_FRICTION.format(k)}.{what}": words for k in joints for what in ("coulomb", "viscous")}


def of_delay(words: str, *axes: str) -> dict[str, str]:
    return {f"{DELAY}.effective_{axis}": words for axis in axes or ("x", "y", "yaw")}


ONE_SPEED = "it cannot be distinguished from"
STOOD = "the joint never slid"
NO_EFFORT, ZERO_EFFORT = "holds no wheel effort", "every wheel effort in the recording is exactly 0"
CASES = {
    "cruise forward": Case(
        lambda seed: held((0.3, 0.0, 0.0), seed),
        "base_friction",
        {
            **of_base("it cannot be distinguished from wheel_coulomb", "viscous_x"),
            **of_base("it cannot be distinguished from viscous_x", "wheel_coulomb"),
            **of_base("the robot never moved sideways", "viscous_y", "roller_coulomb"),
        },
    ),
    "cruise askew": Case(lambda seed: held((0.2, 0.15, 0.3), seed), "base_friction", of_base(ONE_SPEED)),
    "delay of a cruise": Case(
        lambda seed: held((0.2, 0.15, 0.3), seed), "delay", of_delay("the command never changed")
    ),
    "forward only": Case(
        lambda seed: drive(stairs(30.0, legs(0)), seed),
        "base_friction",
        of_base("the robot never moved sideways", "viscous_y", "roller_coulomb"),
        (f"{BASE_FRICTION}.wheel_coulomb",),
    ),
    "sideways only": Case(
        lambda seed: drive(stairs(30.0, legs(1)), seed),
        "base_friction",
        {
            **of_base("the robot never moved forward", "viscous_x"),
            **of_base("it cannot be distinguished from wheel_coulomb", "roller_coulomb"),
            **of_base("it cannot be distinguished from roller_coulomb", "wheel_coulomb"),
        },
    ),
    "turning only": Case(lambda seed: drive(stairs(30.0, legs(2)), seed), "base_friction", of_base(ONE_SPEED)),
    "delay of one axis": Case(
        lambda seed: drive(stairs(30.0, legs(0)), seed),
        "delay",
        of_delay("the command never changed", "y", "yaw"),
        (f"{DELAY}.effective_x",),
    ),
    "rest": Case(
        lambda seed: drive(np.zeros((1000, 3)), seed),
        "delay,base_friction",
        {**of_delay("the command never changed"), **of_base("0 usable time blocks in which every wheel turns")},
    ),
    "periodic": Case(circling, "delay", of_delay("the motion is periodic")),
    "no effort": Case(lambda seed: drive(stairs(30.0), seed, None), "base_friction", of_base(NO_EFFORT)),
    "zero effort": Case(lambda seed: drive(stairs(30.0), seed, 0.0), "base_friction", of_base(ZERO_EFFORT)),
    "arm at one speed": Case(
        one_speed,
        "arm_friction",
        {**of_arm("slid at one speed only", (1,)), **of_arm(STOOD, (2, 3, 4, 5))},
    ),
    "one joint only": Case(
        lambda seed: move(swing(30.0, (0, 0, 0, 1, 0)), seed),
        "arm_friction",
        of_arm(STOOD, (1, 2, 3, 5)),
        (f"{ARM_FRICTION.format(4)}.coulomb",),
    ),
    "arm at rest": Case(
        lambda seed: move(swing(10.0, (0, 0, 0, 0, 0)), seed), "arm_friction", of_arm("the arm never moved")
    ),
    "arm without effort": Case(
        lambda seed: move(swing(20.0), seed, None), "arm_friction", of_arm("the states of the arm have no efforts")
    ),
    "arm with zero effort": Case(
        lambda seed: move(swing(20.0), seed, 0.0), "arm_friction", of_arm("every effort of the arm is exactly 0")
    ),
}


def judge(name: str, seed: int, verdicts: dict[str, str]) -> None:
    """Hold the verdicts, by the names of the findings, against what the case says."""
    for parameter, words in CASES[name].refused.items():
        verdict = verdicts[parameter]
        assert verdict.startswith("not identifiable: ") and words in verdict, (name, seed, parameter, verdict)
    for parameter in CASES[name].told:
        assert verdicts[parameter] == "identified", (name, seed, parameter, verdicts[parameter])


def check(name: str, seed: int, folder: Path) -> None:
    """What the pipeline makes of the recording of one robot; incomplete is exit code 3."""
    bag = write_rows(folder, CASES[name].rows(seed))
    result = identify([bag], ROBOT, Options(), only=CASES[name].stages.split(",")).result
    assert not result.complete, (name, seed)
    judge(name, seed, {finding.name: finding.estimate.verdict for finding in result.findings})


@pytest.mark.parametrize("name", CASES)
def test_a_recording_that_cannot_tell_is_refused_with_its_reason(name, tmp_path):
    check(name, 0, tmp_path / "bag")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_recordings_of_twenty_robots_that_cannot_tell_are_all_refused(name, tmp_path):
    for seed in range(20):
        check(name, seed, tmp_path / str(seed))


def check_the_program(name: str, folder: Path) -> None:
    """What `youbot identify` says of a recording: exit code 3, and the reasons in result.json."""
    bag = write_rows(folder / "bag", CASES[name].rows(0))
    assert exit_code("identify", bag, "--out", folder / "found", "--only", CASES[name].stages) == 3
    listed = json.loads((folder / "found" / "result.json").read_text())["parameters"]
    judge(name, 0, {one["name"]: one["verdict"] for one in listed})


def test_the_program_ends_with_exit_code_3(tmp_path):
    check_the_program("arm at rest", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "arm at rest"])
def test_the_program_ends_with_exit_code_3_on_each_of_them(name, tmp_path):
    check_the_program(name, tmp_path)
