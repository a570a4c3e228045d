"""The arm alone in MuJoCo, behind the driver that the twin's arm has."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.arm import STEP, ArmDriver, torque_of_current
from youbot_dynamics.simulation.mujoco_youbot._bodies import arm_bodies, arm_motors, text
from youbot_dynamics.simulation.mujoco_youbot._plant import ArmJoints
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoArm
from youbot_dynamics.simulation.truth import ArmTruth, BaseTruth

ROBOT = load_robot()


def fixed_arm_model(arm: ArmModel, timestep: float) -> str:
    """MJCF text of the arm alone, its first link fixed to the world.

    Args:
        arm: n joints in a chain.
        timestep: of the simulation [s].
    """
    gravity = text(arm.tree.layout.gravity)
    return (
        f'<mujoco model="arm"><compiler angle="radian" autolimits="true"/>'
        f'<option timestep="{timestep!r}" integrator="Euler" gravity="{gravity}"/>'
        f"<worldbody>{arm_bodies(arm, np.zeros(arm.tree.nv), True, {})}</worldbody>"
        f"<actuator>{arm_motors(arm)}</actuator></mujoco>"
    )


def with_rollers(truth: BaseTruth, rollers: int) -> BaseTruth:
    """Same base with so many rollers a wheel."""
    return dataclasses.replace(truth, rollers=float(rollers))


def mujoco_arm(truth: ArmTruth, position=ROBOT.arm.rest_position, *, steps: int = 1, seed: int = 0) -> ArmDriver:
    """MuJoCo takes `steps` steps in each cycle of 1 ms."""
    mujoco = pytest.importorskip("mujoco")
    arm = truth.model(ROBOT)
    model = mujoco.MjModel.from_xml_string(fixed_arm_model(arm, STEP / steps))
    data = mujoco.MjData(model)
    joints = ArmJoints(model, data, arm, partial(mujoco.mj_step, model, data, steps), speed_lag=truth.speed_lag)
    joints.place(position)
    return MujocoArm(joints, truth, ROBOT, arm, seed)


# Stretched out and down, where gravity brings back what strays: a chain that stands upright, driven by torques without
# feedback, would multiply the least difference by thousands in 5 s.
HANGING = np.array([2.9496, 2.3, -0.75, 1.9, 2.92])
TORQUE_PERIOD = 0.01  # [s]


def swinging_torques(arm: ArmModel, seed: int, seconds: float) -> np.ndarray:
    """Commands (k, 5) [N m] that swing all joints about HANGING by 0.3 to 1 rad, friction overcome and reversed.

    Divided by what the true motors give of a command, so that they do not drift into the stops.
    """
    random = np.random.default_rng(seed)
    rates = 2.0 * np.pi * random.uniform(0.3, 0.6, 5)
    t = (np.arange(round(seconds / TORQUE_PERIOD)) + 0.5)[:, None] * TORQUE_PERIOD
    q = HANGING + np.array([0.8, 0.3, 0.5, 0.6, 1.0]) * np.sin(rates * t) * np.minimum(t, 1.0) ** 2
    v = np.gradient(q, TORQUE_PERIOD, axis=0)
    a = np.gradient(v, TORQUE_PERIOD, axis=0)
    coulomb, viscous = np.array([[friction.coulomb, friction.viscous] for friction in arm.friction]).T
    bodies = np.array([arm.tree.inverse_dynamics(*row) for row in zip(q, v, a, strict=True)])
    sheets = np.array([joint.motor.gear_ratio * joint.motor.torque_constant for joint in ROBOT.arm.joints])
    return (bodies + coulomb * np.tanh(v / 0.05) + viscous * v) * sheets / torque_of_current(arm)
