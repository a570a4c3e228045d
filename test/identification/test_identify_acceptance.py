"""What issue 5 asks of identification, by bags of drawn robots through the pipeline; figures: docs/acceptance.md.

Run with -s to see them. Every robot is drawn whole: geometry, masses, friction, delays, torque constants, noise. Which
truth a number is held against stands at the functions of acceptance_bags.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from acceptance_bags import (
    PERIOD,
    Judged,
    arm_motion,
    arm_rows,
    bag_of_twin,
    base_motion,
    base_run,
    drawn_base,
    forces,
    found_values,
    judged,
    truths_of_arm,
    truths_of_delay,
    truths_of_geometry,
    truths_of_twin,
)
from friction_runs import COEFFICIENTS, ROBOT, friction_model
from mujoco_arms import mujoco_arm
from stage_bags import write_rows

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.mujoco_youbot._model import mean_kinematics
from youbot_dynamics.simulation.mujoco_youbot._plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoBase
from youbot_dynamics.simulation.truth import BaseTruth, load_arm_truth

# Beside `response`, half of whose time it would take; that has a test of its own.
STAGES = ("calibration", "delay", "base_friction", "arm_friction")
SPEEDS = (0.05, 0.15, 0.3)  # [m/s] the excitation of a minute has 0.17 m/s root mean square and 0.4 m/s at most
CHUNK = 20
ROBOTS = 200
PHASES = 6  # of the rollers of a wheel against those of the others, drawn, that are in a steady force


class OfRobot(NamedTuple):
    """One robot identified: its values that were called identified, and errors (2, 3) of its friction force."""

    values: list[Judged]
    force_errors: np.ndarray


def findings_of(bag: Path, stages: tuple[str, ...]) -> tuple[Finding, ...]:
    return identify([bag], ROBOT, Options(), only=stages).result.findings


def identified_twin(seed: int) -> OfRobot:
    """A minute of the recommended excitation of base and arm of one robot, through a bag."""
    twists = base_motion(60.0)
    with TemporaryDirectory() as folder:
        found = findings_of(bag_of_twin(Path(folder) / "bag", seed, twists, arm_motion()), STAGES)
    true = truths_of_twin(seed, twists)
    return OfRobot(judged(found, true), forces(found_values(found), SPEEDS) / forces(true, SPEEDS) - 1.0)


@cache
def robots(first: int) -> list[OfRobot]:
    """A chunk of them: pytest counts time by the test."""
    return [identified_twin(seed) for seed in range(first, first + CHUNK)]


def shares(values: list[Judged], title: str) -> tuple[float, float]:
    """Share of values within 3 standard errors, and of intervals that hold the truth; printed by kind of value."""
    kinds: dict[str, list[Judged]] = {}
    for one in values:
        kinds.setdefault(re.sub(r"joint_\d", "joint_N", one.name.split("_at_")[0]), []).append(one)
    for kind, ones in sorted(kinds.items()):
        near = np.mean([abs(one.sigmas) <= 3.0 for one in ones])
        held = np.mean([one.inside for one in ones])
        rms = np.sqrt(np.mean([one.relative**2 for one in ones]))
        print(f"  {kind:44s} {len(ones):5d}: {near:.3f} within 3, {held:.3f} held, {100 * rms:6.2f} % rms")
    near = float(np.mean([abs(one.sigmas) <= 3.0 for one in values]))
    held = float(np.mean([one.inside for one in values]))
    print(f"{title}: of {len(values)} identified values {near:.4f} within 3 standard errors, {held:.4f} held")
    return near, held


@pytest.mark.parametrize("seeds", [(1,), pytest.param((1, 2), marks=pytest.mark.slow)])
def test_a_few_robots_are_identified_through_a_bag(seeds):
    found = [identified_twin(seed) for seed in seeds]
    near, held = shares([value for robot in found for value in robot.values], f"{len(seeds)} robots")
    assert near >= 0.97 and held >= 0.85
    assert all(len(robot.values) >= 38 for robot in found)
    assert max(np.abs(robot.force_errors).max() for robot in found) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, ROBOTS + 1, CHUNK))
def test_robots_of_a_chunk(first):
    values = [value for robot in robots(first) for value in robot.values]
    near, held = shares(values, f"robots {first} to {first + CHUNK - 1}")
    assert near >= 0.95 and held >= 0.88


@pytest.mark.slow
def test_two_hundred_robots_are_within_their_own_intervals():
    found = [robot for first in range(1, ROBOTS + 1, CHUNK) for robot in robots(first)]
    near, held = shares([value for robot in found for value in robot.values], f"{len(found)} robots")
    assert near >= 0.97
    assert 0.90 <= held <= 0.99
    off = np.abs([robot.force_errors for robot in found])
    print(
        f"friction force at {SPEEDS} m/s, forward and sideways, of {len(found)} robots: rms"
        f" {100 * np.sqrt(np.mean(off**2, axis=0)).round(4)} %, within 5 % {np.mean(off < 0.05, axis=0).round(3)},"
        f" of all {np.mean(off < 0.05):.4f}, worst {100 * off.max():.1f} %"
    )
    assert np.mean(off < 0.05) >= 0.97


@pytest.mark.slow
def test_the_response_of_robots_is_within_its_own_intervals(tmp_path):
    twists, values = base_motion(60.0), []
    for seed in range(1, 21):
        found = findings_of(bag_of_twin(tmp_path / str(seed), seed, twists, None), ("calibration", "response"))
        response = tuple(finding for finding in found if ".response." in finding.name)
        values += judged(response, truths_of_twin(seed, twists))
    near, held = shares(values, "response of 20 robots")
    assert near >= 0.95 and 0.90 <= held <= 0.99


# Five minutes: what each coefficient can be known to


def information_bound(truth: BaseTruth, twists: np.ndarray) -> np.ndarray:
    """Smallest standard errors (4,) any unbiased estimate could have, over the coefficients: Cramer-Rao.

    What it counts as unknown is the four coefficients alone, and as noise only the torque that wanders as each wheel
    turns, correlated over 0.3 rad: standard deviation s, so a density 2 s^2 0.3 / |w| in time, known and Gaussian.
    Masses, geometry, delays and readings are taken for exact, so a real estimate can only be worse.
    """
    model = friction_model()
    base = model.base
    jacobian = base.inverse_matrix
    wheels, sliding = twists @ jacobian.T, twists[:, 1:2] + twists[:, 2:3] * base.positions[:, 0]
    turning = np.all(np.abs(wheels) > 0.2, axis=1)
    none = np.zeros_like(twists)
    rows = model.columns(twists, (none, none), np.sign(wheels), np.sign(sliding))[turning, :, :4]
    density = 0.6 * truth.torque_noise**2 / np.abs(wheels[turning])
    noise = np.einsum("ia,ki,ib->kab", jacobian, density, jacobian)
    information = PERIOD * np.einsum("kap,kaq->pq", rows, np.linalg.solve(noise, rows))
    return np.sqrt(np.diag(np.linalg.inv(information))) / [getattr(truth, name) for name in COEFFICIENTS]


@pytest.mark.slow
def test_five_minutes_tell_each_coefficient_about_as_well_as_the_wandering_torque_allows(tmp_path):
    twists, errors, bounds, own, values = base_motion(300.0), [], [], [], []
    for seed in range(1, 17):
        found = findings_of(bag_of_twin(tmp_path / str(seed), seed, twists, None), STAGES[:3])
        true, estimates = truths_of_twin(seed, twists), {finding.name: finding.estimate for finding in found}
        ones = [(estimates[f"robot.base.friction.{n}"], true[f"robot.base.friction.{n}"]) for n in COEFFICIENTS]
        errors.append([one.value / value - 1.0 for one, value in ones])
        own.append([one.standard_error / value for one, value in ones])
        bounds.append(information_bound(drawn_base(seed), twists))
        values += judged(tuple(f for f in found if ".friction." in f.name), true)
    error, told, bound = np.abs(errors), np.array(own), np.array(bounds)
    near, held = shares(values, "friction of 16 robots, 300 s")
    print(
        f"{COEFFICIENTS}: within 5 % {np.mean(error < 0.05, axis=0).round(3)},"
        f" median error {100 * np.median(error, axis=0).round(4)} %, own standard error (median)"
        f" {100 * np.median(told, axis=0).round(4)} %, bound (median) {100 * np.median(bound, axis=0).round(4)} %;"
        f" robots whose bound allows 5 % at 95 %: {np.mean(1.96 * bound < 0.05, axis=0).round(3)}"
    )
    assert near >= 0.97 and held >= 0.90
    # What was asked for is all of them within 5 %; the bound leaves that to viscous_x and wheel_coulomb alone.
    assert np.all(np.mean(error < 0.05, axis=0) >= [0.95, 0.85, 0.75, 0.95])
    assert np.all(np.median(told / bound, axis=0) < 2.0)


# The arm on a motion it was never tuned on


@pytest.mark.slow
def test_a_fresh_motion_and_fresh_arms_are_told_as_well(tmp_path):
    values, totals = [], []
    for motion_seed, seeds in ((1, range(301, 313)), (2, range(313, 325))):
        motion = arm_motion(motion_seed)
        for seed in seeds:
            truth = load_arm_truth(seed)
            plant = ArmPlant(truth, ROBOT, seed, position=motion.positions[0])
            bag = write_rows(tmp_path / str(seed), arm_rows(plant, plant.advance, motion))
            ones = judged(findings_of(bag, ("arm_friction",)), truths_of_arm(truth))
            values += ones
            totals += [abs(one.relative) for one in ones if "total_at" in one.name]
    near, held = shares(values, "24 fresh arms on 2 fresh motions")
    print(f"total friction: {100 * np.mean(np.array(totals) < 0.05):.1f} % within 5 %, worst {100 * max(totals):.1f} %")
    assert near >= 0.97 and 0.90 <= held <= 0.99
    assert np.mean(np.array(totals) < 0.05) >= 0.97


# MuJoCo: wheels of free rollers on a floor, joints of another engine


def steady_forces(truth: BaseTruth) -> np.ndarray:
    """Forces (2, 3) forward and sideways that hold a base in MuJoCo at SPEEDS, of its exact torques, as told [N].

    What a contact of rollers loses beyond the coefficients given is in them: sideways each roller that comes to the
    floor takes a blow. They are the truth for a force; for a coefficient there is none, since what is lost so depends
    on the motion. How the rollers of the four wheels stand to each other changes a sideways force by up to 4 %: a drive
    mixes these phases, and so does a motion aside before each measurement.
    """
    base, forces, random = mean_kinematics(truth), np.zeros((2, len(SPEEDS))), np.random.default_rng(1)
    rise = np.linspace(0.0, 1.0, 500)[:, None]
    for axis, k in np.ndindex(*forces.shape):
        wheels, before = base.wheel_speeds(SPEEDS[k] * np.eye(3)[axis]), np.zeros(4)
        plant = MujocoPlant(truth, ROBOT.arm.model(), with_arm=False)
        torques = []
        for aside in base.wheel_speeds(random.uniform(-1.0, 1.0, (PHASES, 3)) * [0.3, 0.3, 0.8]):
            plant.advance(np.vstack([before + rise * (aside - before), aside + rise * (wheels - aside)]))
            plant.advance(np.tile(wheels, (500, 1)))
            for _ in range(1500):
                plant.advance(wheels[None])
                torques.append(plant.wheel_torques)
            before = wheels
        told = np.mean(torques, axis=0) / np.array(truth.wheel_torque_constant)
        forces[axis, k] = (told @ base.inverse_matrix)[axis]
    return forces


def identified_contact(seed: int, folder: Path) -> tuple[list[Judged], np.ndarray]:
    """One robot in MuJoCo through a bag: judged values, and errors (2, 3) of the friction force over the steady one."""
    truth, arm_truth, twists, motion = drawn_base(seed), load_arm_truth(seed), base_motion(60.0), arm_motion()
    plant = MujocoPlant(truth, ROBOT.arm.model(), with_arm=False)
    base = MujocoBase(plant, truth, ROBOT.driver, seed)
    run = base_run(base, base.advance, twists, seed)
    arm = mujoco_arm(arm_truth, motion.positions[0], seed=seed)
    found = findings_of(write_rows(folder, run.rows + arm_rows(arm, arm.advance, motion)), STAGES)
    true = {**truths_of_geometry(truth), **truths_of_delay(run, twists), **truths_of_arm(arm_truth)}
    # Its rollers give the lateral factor, and so the lever; the truth's own are those of a twin.
    rollers = mean_kinematics(truth)
    true["robot.base.geometry.lateral_factor"] = rollers.lateral_factor
    true["base.geometry.lever"] = truth.half_length / rollers.lateral_factor + truth.half_width
    return judged(found, true), forces(found_values(found), SPEEDS) / steady_forces(truth) - 1.0


@pytest.mark.slow
def test_robots_in_mujoco_are_identified_through_a_bag(tmp_path):
    values, errors = [], []
    for seed in (1, 2, 3):
        ones, error = identified_contact(seed, tmp_path / str(seed))
        values += ones
        errors.append(error)
        print(seed, (100 * error).round(2).tolist(), [one for one in ones if abs(one.sigmas) > 3.0])
    near, held = shares(values, "3 robots in MuJoCo")
    off = np.abs(errors)
    print(f"friction force: {100 * np.mean(off < 0.05):.1f} % within 5 %, worst {100 * off.max():.1f} %")
    assert near >= 0.97 and 0.88 <= held
    assert np.mean(off < 0.05) >= 0.9
