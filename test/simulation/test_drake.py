"""Wheels of free rollers in Drake, a second opinion on MuJoCo's contacts: lateral factor, delays, roller phases."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from acceptance_bags import base_motion, base_run, drawn_base, truths_of_delay
from drake_plant import Contact, DrakePlant
from mujoco_arms import with_rollers
from stage_bags import write_rows

from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.kinematics.mecanum import MecanumBase, mean_factor
from youbot_dynamics.kinematics.planar import steps_of_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.mujoco_youbot._model import rollers_of
from youbot_dynamics.simulation.mujoco_youbot._plant import ContactPlant, MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoBase
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

pytest.importorskip("mujoco")
pytest.importorskip("pydrake", reason="drake is not installed: pip install 'youbot_dynamics[drake]'")
pytestmark = pytest.mark.slow

ROBOT = load_robot()
ARM = ROBOT.arm.model()
TRUTH = load_truth(0).without_noise()
SAME = 3e-3  # what two factors may differ by


def lateral_factor(plant: ContactPlant, truth: BaseTruth, speed: float = 0.3) -> float:
    """Way to the left over that of wheels without rollers that turn as far, over whole passages of rollers."""
    base = MecanumBase.rectangular(truth.wheel_radius, truth.half_length, truth.half_width)
    wheels = base.wheel_speeds([0.0, speed, 0.0])
    passage = 2.0 * np.pi / truth.rollers / np.abs(wheels).max()
    plant.advance(np.linspace(0.0, 1.0, 300)[:, None] * wheels)
    plant.advance(np.tile(wheels, (300, 1)))
    poses, angles = [plant.pose], [plant.wheel_angles]
    for _ in range(round(1e3 * passage * np.ceil(2.0 / passage))):
        plant.advance(wheels[None])
        poses.append(plant.pose)
        angles.append(plant.wheel_angles)
    way = steps_of_path(np.array(poses)).sum(axis=0)
    return float(way[1] / (base.forward_matrix @ (angles[-1] - angles[0]))[1])


def off_closed_form(contact: Contact, truth: BaseTruth, speed: float = 0.3) -> float:
    """Lateral factor in Drake over sin(pi/n) / (pi/n), less 1."""
    off = lateral_factor(DrakePlant(truth, ARM, contact), truth, speed) / mean_factor(rollers_of(truth).count) - 1.0
    print(f"{truth.rollers:.0f} rollers, {contact}, {speed} m/s, grip {truth.floor_friction}: {100 * off:+.3f} %")
    return off


@pytest.mark.parametrize("rollers", [6, 9])
def test_the_lateral_factor_is_that_of_mujoco_and_of_the_closed_form(rollers: int) -> None:
    """It is nowhere in the model, and the two engines share none of their code."""
    truth = with_rollers(TRUTH, rollers)
    closed = mean_factor(rollers_of(truth).count)
    drake, mujoco = (lateral_factor(kind(truth), truth) for kind in (in_drake, in_mujoco))
    print(f"{rollers} rollers: closed form {closed:.5f}, Drake {drake:.5f}, MuJoCo {mujoco:.5f}")
    assert drake == pytest.approx(closed, rel=SAME) and drake == pytest.approx(mujoco, rel=SAME)


def in_drake(truth: BaseTruth) -> ContactPlant:
    return DrakePlant(truth, ARM)


def in_mujoco(truth: BaseTruth) -> ContactPlant:
    return MujocoPlant(truth, ARM, with_arm=False)


@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize(
    "contact",
    [
        {"steps": 2},
        {"approximation": "similar"},
        {"approximation": "sap", "steps": 2},
        {"stiffness": 1e6},
        {"stiffness": 1e8},
        {"dissipation": 5.0},
        {"dissipation": 500.0},
        {"stiction": 1e-3},
        {"stiction": 1e-5},
        {"every": 1},
    ],
    ids=str,
)
def test_it_does_not_depend_on_how_the_contacts_are_computed(contact: dict[str, object], rollers: int) -> None:
    assert abs(off_closed_form(Contact(**contact), with_rollers(TRUTH, rollers))) < SAME


@pytest.mark.parametrize(("speed", "grip"), [(0.1, 0.8), (0.4, 0.8), (0.3, 0.5), (0.3, 1.0)])
def test_it_depends_neither_on_the_speed_nor_on_the_grip(speed: float, grip: float) -> None:
    truth = dataclasses.replace(with_rollers(TRUTH, 6), floor_friction=grip)
    assert abs(off_closed_form(Contact(), truth, speed)) < SAME


def test_a_floor_that_gives_way_lowers_it() -> None:
    """What the bounds above are worth: two rollers of a wheel that carry together for longer are distinguished."""
    assert off_closed_form(Contact(stiffness=1e5), with_rollers(TRUTH, 6)) < -SAME


@pytest.mark.parametrize(("seed", "contact"), [(1, Contact()), (2, Contact("similar", stiffness=1e6))], ids=str)
def test_a_recording_is_identified_as_one_of_any_robot(seed: int, contact: Contact, tmp_path: Path) -> None:
    """A minute of the recommended excitation, through a bag and `identify`: delays, lateral factor, roller phases."""
    truth, twists = drawn_base(seed), base_motion(60.0)
    base = MujocoBase(DrakePlant(truth, ARM, contact), truth, ROBOT.driver, seed)
    run = base_run(base, base.advance, twists, seed)
    bag = write_rows(tmp_path / "bag", run.rows)
    found = identify([bag], ROBOT, Options(), only=("calibration", "delay")).result.findings
    one = {finding.name.removeprefix("robot.base."): finding.estimate for finding in found}
    pitch = 2.0 * np.pi / rollers_of(truth).count
    for name, delay in truths_of_delay(run, twists).items():
        estimate = one[name.removeprefix("robot.base.")]
        print(
            f"{name}: {1e3 * estimate.value:.2f} ms, true {1e3 * delay:.2f} ms, +-{2e3 * estimate.standard_error:.2f}"
        )
        assert estimate.identified and estimate.value == pytest.approx(delay, abs=5e-3)
    factor, closed = one["geometry.lateral_factor"], mean_factor(rollers_of(truth).count)
    print(f"lateral factor {factor.value:.5f}, {factor.interval}; closed form {closed:.5f}")
    assert factor.identified and factor.value == pytest.approx(closed, rel=SAME)
    for wheel, share in zip(("fl", "fr", "rl", "rr"), truth.roller_phase, strict=True):
        phase = one[f"geometry.roller_phase_{wheel}"]
        off = (phase.value / pitch - share + 0.5) % 1.0 - 0.5
        print(f"roller phase {wheel}: off by {pitch * off:.4f} rad, +-{2.0 * phase.standard_error:.4f}")
        assert phase.identified and abs(pitch * off) < 0.05
