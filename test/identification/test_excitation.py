"""Motions recommended for identification keep to the limits of the robot and teach more than chance."""

from __future__ import annotations

import numpy as np
import pytest
from arm_motions import ROBOT, TREE, expected_friction, recommended, torque_limits

from youbot_dynamics.errors import IdentificationError, ProgramError
from youbot_dynamics.identification.base_friction import FrictionModel
from youbot_dynamics.identification.excitation import MultiSine, arm_motion, base_program
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot, robot_from_values, values_of

CENTRE = np.array([2.95, 1.13, -2.55, 1.79, 2.92])


def test_a_robot_without_an_arm_has_no_motion_of_the_arm():
    with pytest.raises(ProgramError, match="^arm_excitation: got robot rosbot_xl, which has none .*; play excitation"):
        arm_motion(load_robot(robot_file=robot_path("rosbot_xl")), 60.0)


def base_model() -> FrictionModel:
    return FrictionModel(ROBOT.base.geometry.mecanum(), mass=29.9, yaw_inertia=1.1, wheel_inertia=0.009)


def test_speeds_and_accelerations_are_derivatives_of_the_positions():
    random = np.random.default_rng(0)
    sines = MultiSine(20.0, *(random.uniform(0.1, 0.5, (2, 3)) for _ in range(3)))
    time = np.linspace(0.01, 19.99, 500)
    h = 1e-5
    x, v, a = sines.at(time)
    before, after = sines.at(time - h), sines.at(time + h)
    np.testing.assert_allclose(v, (after[0] - before[0]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(a, (after[1] - before[1]) / (2 * h), atol=1e-5)
    for part in sines.at(np.array([0.0, 20.0])):
        np.testing.assert_allclose(part, 0.0, atol=1e-9)


def test_the_arm_begins_and_ends_at_rest_and_keeps_every_limit():
    motion = recommended(60.0)
    lower = np.array([limit.lower for limit in TREE.limits])
    upper = np.array([limit.upper for limit in TREE.limits])
    fastest = np.array([limit.velocity for limit in TREE.limits])
    for k in (0, -1):
        np.testing.assert_allclose(motion.positions[k], CENTRE, atol=1e-9)
        np.testing.assert_allclose(motion.velocities[k], 0.0, atol=1e-9)
    assert np.all(motion.positions > lower) and np.all(motion.positions < upper)
    assert np.all(np.abs(motion.velocities) <= 0.8 * fastest + 1e-9)
    torque = TREE.inverse_dynamics(motion.positions, motion.velocities, motion.accelerations)
    friction = expected_friction()
    torque = np.abs(torque) + friction[:, 0] + friction[:, 1] * np.abs(motion.velocities)
    assert np.all(torque.max(axis=0) <= 1.001 * torque_limits())


def test_every_joint_goes_both_ways_at_several_speeds():
    motion = recommended(60.0)
    assert np.all(motion.velocities.max(axis=0) > 0.3) and np.all(motion.velocities.min(axis=0) < -0.3)
    speeds = np.abs(motion.velocities)
    assert np.all(np.std(speeds, axis=0) > 0.3 * np.mean(speeds, axis=0))


def test_the_search_teaches_more_than_chance():
    at_random, searched = recommended(60.0, tries=1).information, recommended(60.0).information
    print(f"information {at_random:.2f} -> {searched:.2f}")
    assert searched > at_random + 1.0


def test_weak_motors_get_a_smaller_motion():
    strong = recommended(20.0, 0, 10)
    weights = np.abs(TREE.gravity_forces(CENTRE)) + expected_friction()[:, 0]
    torques, values = np.maximum(1.5 * weights, 1.0), values_of(ROBOT)
    for k, (joint, torque) in enumerate(zip(ROBOT.arm.joints, torques.tolist(), strict=True), 1):
        values[f"robot.arm.joint_{k}.motor.current_limit"] = (
            torque / joint.motor.torque_constant / joint.motor.gear_ratio
        )
    weak = arm_motion(robot_from_values(values), 20.0, tries=10)
    assert np.ptp(weak.positions[:, 1]) < np.ptp(strong.positions[:, 1])


def test_a_centre_at_a_limit_is_refused():
    with pytest.raises(IdentificationError, match="excitation of arm_joint_2: .*a centre within the limits"):
        centre = {"robot.arm.excitation_centre": (2.95, 0.0, -2.55, 1.79, 2.92)}
        arm_motion(robot_from_values({**values_of(ROBOT), **centre}), 20.0, tries=2)


def test_the_base_program_can_be_played_and_stays_in_its_room():
    program = base_program(ROBOT, 60.0, 1.0, 0.02, tries=40)
    program.check(ROBOT.base)
    assert program.duration == pytest.approx(60.0)
    poses = program.trajectory().poses
    print(np.ptp(poses, axis=0), np.abs(program.twists).max(axis=0))
    assert np.all(np.abs(np.cumsum(program.twists, axis=0) * program.dt).max(axis=0) < [1.01, 1.01, 1.51])
    np.testing.assert_allclose(program.twists[[0, -1]], 0.0, atol=1e-3)


def test_the_base_program_brakes_as_softly_as_the_robot_must():
    values = {"robot.base.limits.deceleration": 0.2, "robot.base.limits.angular_deceleration": 0.3}
    soft = robot_from_values({**values_of(ROBOT), **values})
    base_program(soft, 20.0, 1.0, 0.02, tries=3).check(soft.base)


def test_the_base_program_tells_all_coefficients_of_friction_apart():
    model = base_model()
    program = base_program(ROBOT, 60.0, 1.0, 0.02, tries=40)
    twist = program.twists[::5]
    wheels = twist @ model.base.inverse_matrix.T
    sliding = twist[:, 1:2] + twist[:, 2:3] * model.base.positions[:, 0]
    zero = np.zeros_like(twist)
    rows = model.columns(twist, (zero, zero), np.sign(wheels), np.sign(sliding))[:, :, : model.coefficients]
    rows = rows.reshape(-1, model.coefficients)
    condition = np.linalg.cond(rows / np.linalg.norm(rows, axis=0))
    print(f"scaled condition {condition:.1f}")
    assert condition < 6.0  # a multi-sine by hand: 4.4; a trapezoid: 13 to 24; a cruise: 152 (system 36)


def test_another_seed_is_another_motion_that_keeps_the_limits_and_teaches_as_much():
    """What is measured on one motion must not rest on it: the acceptance takes others."""
    first, second = recommended(20.0, 0, 10), recommended(20.0, 1, 10)
    assert np.abs(first.positions - second.positions).max() > 0.2
    assert second.information > recommended(20.0, 0, 1).information
    fastest = np.array([limit.velocity for limit in TREE.limits])
    assert np.all(np.abs(second.velocities) <= 0.8 * fastest + 1e-9)
    programs = [base_program(ROBOT, 30.0, 1.0, 0.02, tries=10, seed=seed) for seed in (0, 1)]
    assert np.abs(programs[0].twists - programs[1].twists).max() > 0.1
    for program in programs:
        program.check(ROBOT.base)
