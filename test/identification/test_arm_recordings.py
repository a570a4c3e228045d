"""Joints of a real youBot arm: friction, inertia and delay from recordings that others published."""

from __future__ import annotations

import numpy as np
import pytest
from arm_motions import explained_in, is_consistent
from repository import DATA
from scipy.integrate import cumulative_trapezoid

from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction
from youbot_dynamics.identification.arm_friction._inertia import consistent_inertia
from youbot_dynamics.identification.arm_friction._lugre import fit_bristles
from youbot_dynamics.identification.arm_friction._torque_delay import estimate_torque_delay
from youbot_dynamics.identification.signals import ArmSignals
from youbot_dynamics.robot import load_robot

STEPS = DATA / "youbot_arm_rajagopal"
SWING = DATA / "youbot_arm_keiser"

pytestmark = pytest.mark.skipif(not STEPS.is_dir() or not SWING.is_dir(), reason="data folder absent")


def joint_4(part: slice) -> ArmSignals:
    """Position and commanded torque (controller plus weight) of joint 4 on a slow sine, 850 Hz."""
    log = np.loadtxt(STEPS / "joint4_manipulator" / "differenttorquesExperiment" / "tofindratio.txt", delimiter=",")
    log = log[part]
    return ArmSignals(log[:, 3], log[:, :1], log[:, 1:2] + log[:, 2:3])


def joint_5(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, commanded torques as the driver cuts them, speeds of joint 5 set in motion."""
    folder = STEPS / "joint5_manipulator" / "innerlooptuning"
    log = np.loadtxt(folder / f"manipulator_joint5_innerloop_{name}.txt", delimiter=",")
    return log[:, 1], np.clip(log[:, 2], -1.755, 1.755), log[:, 0]


def runs_of_joint_5() -> list[ArmSignals]:
    runs = [joint_5(name) for name in ("0pt5rads", "1rads")]
    return [
        ArmSignals(t, cumulative_trapezoid(v, t, initial=0.0)[:, None], u[:, None], k)
        for k, (t, u, v) in enumerate(runs)
    ]


def swing() -> ArmSignals:
    """Ten seconds of joints 1 to 5 at 500 Hz; the effort of joint 3 has the other sign (the driver reverses it)."""
    position, effort = (np.loadtxt(SWING / f"{name}.txt")[:5000] for name in ("act_pos", "ef_tor"))
    return ArmSignals(0.002 * np.arange(5000), position, effort * [1.0, 1.0, -1.0, 1.0, 1.0])


def test_half_a_run_of_joint_4_predicts_the_other_half():
    # Windows of +-0.1 s, beyond 0.05 rad/s and 0.03 rad after a reversal.
    half = len(joint_4(slice(None)).time) // 2
    first, second = [joint_4(slice(0, half))], [joint_4(slice(half, None))]
    plain = identify_arm_friction(first, ArmFrictionModel(("joint_4",), stribeck_speeds=(0.0,)))
    found = identify_arm_friction(first, ArmFrictionModel(("joint_4",)))
    held_out = explained_in(found, second)["joint_4"]
    print(f"held-out R2 {explained_in(plain, second)['joint_4']:.4f} -> {held_out:.4f}, {found.model.stribeck_speeds}")
    assert held_out >= 0.98
    # Without a curve nothing is said of low speed, where friction is larger than Coulomb + viscous have it.
    assert "no Stribeck curve" in plain["joint_4"]["coulomb"].verdict
    assert "no Stribeck curve" in plain["joint_4"].totals[0].verdict
    # The torque falls with speed, beyond what Coulomb + viscous, or even a Stribeck curve, can say: no such viscosity.
    assert "beyond its physical bound 0" in found["joint_4"]["viscous"].verdict
    assert found["joint_4"]["viscous"].value == 0.0
    low, middle, high = found["joint_4"].totals
    print([(total.name, round(total.value, 3)) for total in (low, middle, high)])
    assert all(total.identified for total in (low, middle, high)) and low.value > middle.value > 0.2


def test_joint_5_moves_ten_milliseconds_after_its_torque():
    delay = estimate_torque_delay([joint_5("0pt5rads"), joint_5("1rads")]).delay
    print(f"{1e3 * delay.value:.2f} ms {np.round(1e3 * np.array(delay.interval), 2)}")
    assert delay.identified and delay.value == pytest.approx(0.010, abs=0.002)
    assert delay.interval[1] - delay.interval[0] < 0.005


@pytest.mark.parametrize(("run", "friction"), [(0, 0.166), (1, 0.181)])
def test_one_speed_of_joint_5_tells_its_total_friction_only(run, friction):
    fit = identify_arm_friction(runs_of_joint_5()[run : run + 1], ArmFrictionModel(("joint_5",), weighed=False))[
        "joint_5"
    ]
    (total,) = fit.totals
    print(f"{total.value:.4f} N m {total.interval}")
    assert total.identified and total.value == pytest.approx(friction, rel=0.1)
    for name in ("coulomb", "viscous"):
        assert "slid at one speed only" in fit[name].verdict and np.isnan(fit[name].value)


def test_both_speeds_of_joint_5_tell_coulomb_from_viscous_friction():
    fit = identify_arm_friction(runs_of_joint_5(), ArmFrictionModel(("joint_5",), weighed=False))["joint_5"]
    print(fit["coulomb"], fit["viscous"])
    assert fit["coulomb"].identified and fit["viscous"].identified
    for speed, friction in ((0.49, 0.166), (1.0, 0.181)):
        assert fit["coulomb"].value + fit["viscous"].value * speed == pytest.approx(friction, rel=0.1)


@pytest.fixture(scope="module")
def swung():
    # Windows of +-0.15 s, beyond 0.05 rad/s and 0.03 rad after a reversal.
    names = tuple(f"joint_{k + 1}" for k in range(5))
    model = ArmFrictionModel(names, load_robot().arm.model().tree, half_width=0.15)
    return identify_arm_friction([swing()], model)


def test_bodies_that_can_exist_explain_the_torques_of_a_swing(swung):
    bodies = consistent_inertia(swung)
    print({name: round(share, 4) for name, share in bodies.explained.items()}, bodies.friction.round(3))
    for joint, wanted in (("joint_1", 0.93), ("joint_2", 0.96), ("joint_3", 0.98), ("joint_4", 0.99)):
        assert bodies.explained[joint] >= wanted
    assert all(is_consistent(bodies.parameters[10 * k : 10 * k + 10]) for k in range(5))
    # Least squares alone finds bodies that cannot exist.
    assert not all(is_consistent(swung.parameters[10 * k : 10 * k + 10]) for k in range(5))
    assert np.all(bodies.friction[:, :3] >= 0.0)


def test_ten_seconds_of_swing_are_not_enough_for_every_coefficient_and_say_so(swung):
    assert swung["joint_2"]["viscous"].verdict.startswith("not identifiable: the interval of")
    assert "effort of this joint is exactly 0" in swung["joint_5"]["coulomb"].verdict


def test_four_reversals_of_joint_4_are_too_few_for_its_bristles():
    signals = [joint_4(slice(300, None))]
    found = identify_arm_friction(signals, ArmFrictionModel(("joint_4",)))
    bristles = fit_bristles(signals, found, "joint_4")
    assert bristles.reversals == 4 and "4 reversals are too few" in bristles.sigma0.verdict
