"""Friction of DAMIAO motors, one alone and one in a seven-joint arm, from recordings that others published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arm_motions import explained_in
from repository import DATA

from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction
from youbot_dynamics.identification.arm_friction._fit import JointFit
from youbot_dynamics.identification.signals import ArmSignals

FOLDER = DATA / "openarm_damiao"
TURN = 25.0  # [rad] after which the motor's position starts again

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="data folder absent")


def capture(name: str) -> dict[str, np.ndarray]:
    (file,) = Path(FOLDER).glob(name)
    with np.load(file) as log:
        return {key: log[key] for key in log if key != "metadata"}


def motor() -> ArmSignals:
    """A motor alone: speeds of 0.5 to 8 rad/s both ways in steps, then ramps between them, 48 readings a second."""
    log = capture("damiao_motor_01_*")
    moving = log["time"] > 45.6  # before that it stands, and the torque is raised in steps
    position = np.unwrap(log["position"], period=TURN)
    return ArmSignals(log["time"][moving], position[moving, None], log["torque_feedback"][moving, None])


def joint_1() -> ArmSignals:
    """The first joint of the arm, slow with stick-slip: at most 0.3 rad/s, about 25 readings a second."""
    log = capture("*collect_joint_1*")
    return ArmSignals(log["time"], log["q"][:, :1], log["tau_measured"][:, :1])


def part(signals: ArmSignals, start: float, end: float) -> ArmSignals:
    chosen = (signals.time >= start) & (signals.time < end)
    return ArmSignals(signals.time[chosen], signals.position[chosen], signals.torque[chosen])


def halves(signals: ArmSignals, *, weighed: bool) -> list[tuple[JointFit, float]]:
    """Friction from each half of a recording, and R2 of its prediction of the other half."""
    middle = float(signals.time[len(signals.time) // 2])
    both = [part(signals, -np.inf, middle), part(signals, middle, np.inf)]
    found = [identify_arm_friction([half], ArmFrictionModel(("joint",), weighed=weighed)) for half in both]
    return [(fit["joint"], explained_in(fit, [other])["joint"]) for fit, other in zip(found, both[::-1], strict=True)]


def test_friction_of_a_motor_alone_predicts_the_other_half_of_its_recording():
    for joint, held_out in halves(motor(), weighed=False):
        coulomb, viscous = joint["coulomb"], joint["viscous"]
        print(coulomb, viscous, round(held_out, 4))
        assert held_out > 0.99
        assert coulomb.identified and viscous.identified
        # The torque at constant speed, read from the log: means of the steps at 3.4 and 7.3 rad/s, both ways.
        for speed, torque in ((3.38, 0.628), (7.27, 0.730)):
            assert coulomb.value + viscous.value * speed == pytest.approx(torque, rel=0.04)


def test_half_a_recording_of_stick_slip_leaves_viscous_friction_open():
    both = halves(joint_1(), weighed=True)
    for joint, held_out in both:
        print(joint["coulomb"], joint["viscous"], joint.totals, round(held_out, 4))
        assert held_out > 0.9
        assert "not identifiable: the interval" in joint["viscous"].verdict
    (low, high), (low_2, high_2) = (joint["coulomb"].interval for joint, _ in both)
    assert max(low, low_2) < min(high, high_2)
