"""The robot in MuJoCo: on wheels of rollers it drives as closed form and twin say, and it speaks as the twin."""

from __future__ import annotations

import dataclasses
from math import pi, sin

import numpy as np
import pytest
from effective_delay import effective_delay
from mujoco_arms import with_rollers

from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot
from youbot_dynamics.simulation.mujoco_youbot._model import TIMESTEP, mean_kinematics
from youbot_dynamics.simulation.mujoco_youbot._plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoBase
from youbot_dynamics.simulation.truth import BaseTruth, load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import Youbot

pytest.importorskip("mujoco")

ROBOT = load_robot()
ARM = ROBOT.arm.model()
ARM_TRUTH = load_arm_truth(0).without_noise()
TRUTH = dataclasses.replace(
    load_truth(0).with_geometry(ROBOT.base.geometry).without_noise(), rollers=0.0, roller_phase=(0.0,) * 4
)
PLAIN = MecanumBase.rectangular(0.0475, 0.235, 0.15)
# Forward, sideways, turning, mixed.
TWISTS = {"x": [0.3, 0.0, 0.0], "y": [0.0, 0.3, 0.0], "yaw": [0.0, 0.0, 0.8], "all": [0.2, -0.1, 0.5]}
PROGRAMS = ("translation", "rotation", "combined")


def factor(rollers: int) -> float:
    return sin(pi / rollers) / (pi / rollers)


def mean_twist(truth: BaseTruth, wheel_speeds: np.ndarray, seconds: float) -> np.ndarray:
    """Mean body twist (3,) after half a second of start, at wheel speeds (4,) held."""
    plant = MujocoPlant(truth, ARM, with_arm=False)
    plant.advance(np.tile(wheel_speeds, (500, 1)))
    twists = []
    for _ in range(round(seconds / 5e-3)):
        plant.advance(np.tile(wheel_speeds, (5, 1)))
        twists.append(plant.twist)
    return np.mean(twists, axis=0)


def check_mean(found: np.ndarray, expected: np.ndarray) -> None:
    """Each axis within 1 % of what it shall be, of the whole motion where that is little; 1 rad/s ~ 0.28 m/s."""
    whole = np.hypot(np.hypot(*expected[:2]), 0.28 * expected[2])
    print(f"found {found.round(5)}, closed form {expected.round(5)}, off {(found - expected).round(5)}")
    for k, lever in enumerate((1.0, 1.0, 0.28)):
        scale = abs(expected[k]) if abs(expected[k]) * lever > 0.2 * whole else whole / lever
        assert abs(found[k] - expected[k]) < 0.01 * scale


@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("twist", TWISTS.values(), ids=TWISTS)
def test_mean_velocities_are_those_of_the_closed_form(twist, rollers):
    """The lateral factor sin(pi/n) / (pi/n) is nowhere in the model: it comes of the rollers (system 31)."""
    wheel_speeds = PLAIN.wheel_speeds(twist)
    factored = MecanumBase.rectangular(0.0475, 0.235, 0.15, factor(rollers))
    # Whole passages of rollers: pitch over the mean wheel speed.
    passage = 2.0 * pi / rollers / np.abs(wheel_speeds).max()
    seconds = passage * np.ceil(1.0 / passage)
    check_mean(mean_twist(with_rollers(TRUTH, rollers), wheel_speeds, seconds), factored.twist(wheel_speeds))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("twist", TWISTS.values(), ids=TWISTS)
def test_drawn_robots_keep_to_their_closed_form(twist, rollers, seed):
    """Wrong radii, each wheel another, rollers anywhere, friction and masses as drawn."""
    truth = with_rollers(load_truth(seed), rollers)
    wheel_speeds = PLAIN.wheel_speeds(twist)
    check_mean(mean_twist(truth, wheel_speeds, 4.0), mean_kinematics(truth).twist(wheel_speeds))


@pytest.mark.parametrize("wheel", range(4))
def test_a_larger_wheel_turns_the_robot_as_the_closed_form_says(wheel):
    errors = tuple(0.02 * float(k == wheel) for k in range(4))
    truth = dataclasses.replace(TRUTH, rollers=9.0, wheel_radius=0.0475, wheel_radius_error=errors)
    wheel_speeds = np.full(4, 8.0)
    expected = mean_kinematics(truth).twist(wheel_speeds)
    found = mean_twist(truth, wheel_speeds, 1.0)
    print(f"found {found.round(5)}, closed form {expected.round(5)}")
    assert np.all(np.abs(found - expected) < [4e-3, 4e-4, 1e-3])
    assert abs(expected[2]) > 4e-3


def two_bases(truth, rollers: int) -> tuple[BasePlant, MujocoBase]:
    """Twin and MuJoCo with one truth."""
    plant = MujocoPlant(with_rollers(truth, rollers), ARM, with_arm=False)
    return BasePlant(truth, ROBOT.driver, 0), MujocoBase(plant, truth, ROBOT.driver, 0)


def drive_both(truth, rollers: int, name: str) -> tuple[float, float, float, float]:
    """Largest distance [m] and turn [rad] between twin and MuJoCo on a program of the lab; its path and turn."""
    bases = two_bases(truth, rollers)
    program = read_program(program_path(name), 0.02)
    poses = []
    for k, twist in enumerate(np.vstack([program.twists, np.zeros((30, 3))])):
        for base in bases:
            base.command_twist(twist)
            base.advance((k + 1) * 0.02)
        poses.append([base.pose for base in bases])
    twin, contact = np.moveaxis(np.array(poses), 1, 0)
    path = float(np.hypot(*np.diff(twin[:, :2], axis=0).T).sum())
    turn = float(np.abs(np.diff(twin[:, 2])).sum())
    distance = float(np.hypot(*(twin - contact)[:, :2].T).max())
    angle = float(np.abs(twin - contact)[:, 2].max())
    print(
        f"{name}, {rollers} rollers: {1e3 * distance:.2f} mm of {path:.2f} m, {1e3 * angle:.2f} mrad of {turn:.2f} rad"
    )
    return distance, angle, path, turn


def check_drive(truth, rollers: int, name: str, share: float = 0.01) -> None:
    distance, angle, path, turn = drive_both(truth, rollers, name)
    # The wheels of a base that turns on the spot still go 0.28 m a radian.
    assert distance < share * max(path, 0.28 * turn)
    assert angle < share * max(turn, path / 0.28)


@pytest.mark.parametrize("name", PROGRAMS)
def test_twin_and_mujoco_drive_the_programs_alike(name):
    """Pose within 1 % of the path at every moment, friction and delays included, with the known lateral factor."""
    check_drive(dataclasses.replace(TRUTH, lateral_factor=factor(6)), 6, name)


def test_without_the_lateral_factor_they_would_not():
    twin, contact = two_bases(dataclasses.replace(TRUTH, lateral_factor=1.0), 6)
    for base in (twin, contact):
        base.command_twist([0.0, 0.3, 0.0])
        base.advance(2.0)
    assert contact.pose[1] / twin.pose[1] == pytest.approx(factor(6), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_with_nine_rollers_they_are_nearer_still(name):
    check_drive(dataclasses.replace(TRUTH, lateral_factor=factor(9)), 9, name, share=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_drawn_robots_drive_the_programs_alike(name, seed):
    """Wrong radii, each wheel another, contacts that wander in both."""
    truth = load_truth(seed).without_noise()
    truth = dataclasses.replace(truth, rollers=6.0, lateral_factor=factor(6))
    check_drive(truth, 6, name)


def test_the_contact_wanders_alike_in_twin_and_mujoco():
    """With the true rollers the twin follows the ripple of the contact: nearer than by its mean."""
    truth = dataclasses.replace(TRUTH, lateral_factor=factor(6))
    ripple = dataclasses.replace(truth, rollers=6.0, roller_phase=(0.1, -0.2, 0.3, 0.45))
    mean = dataclasses.replace(ripple, rollers=0.0)
    speeds = []
    for base_truth in (ripple, mean):
        twin, _ = two_bases(base_truth, 6)
        _, contact = two_bases(ripple, 6)
        for base in (twin, contact):
            base.command_twist([0.0, 0.25, 0.0])
            base.advance(1.0)
        off = []
        for k in range(150):
            for base in (twin, contact):
                base.advance(1.0 + 0.01 * (k + 1))
            off.append(twin.twist - contact.twist)
        speeds.append(np.sqrt(np.mean(np.square(off), axis=0)))
    print(f"rms of the difference: ripple {speeds[0].round(5)}, mean {speeds[1].round(5)}")
    assert speeds[0][1] < 0.5 * speeds[1][1]


LIKE_MUJOCO = {"lateral_factor": factor(6), "rollers": 0.0, "roller_phase": (0.0,) * 4}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("axis", [0, 2], ids=["x", "yaw"])
def test_both_answer_a_step_alike(axis, seed):
    """Each loop of the contact base reckons with all that its wheel moves: with a quarter of the mass, yaw was twice
    too fast.
    """
    truth = dataclasses.replace(load_truth(seed).without_noise(), **LIKE_MUJOCO)
    commanded, reached = np.zeros(3), []
    commanded[axis] = 0.2 if axis == 0 else 0.5
    for base in two_bases(truth, 6):
        base.command_twist(commanded, 0.0)
        speeds = []
        for k in range(800):
            base.advance((k + 1) * 1e-3)
            speeds.append(base.twist[axis])
        reached.append(np.argmax(np.array(speeds) > 0.632 * np.mean(speeds[-200:])) * 1e-3)
    print(f"63 % after {np.array(reached) - truth.dead_times()[axis]} s, lag {truth.lag:.4f} s")
    assert reached[1] == pytest.approx(reached[0], abs=4e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_turn_is_as_late_in_both(seed):
    truth = dataclasses.replace(load_truth(seed).without_noise(), **LIKE_MUJOCO)
    times = np.arange(0.0, 8.0, 0.02)
    commands = 0.8 * np.sin(1.3 * times) + 0.4 * np.sin(4.4 * times)
    late = []
    for base in two_bases(truth, 6):
        turned = []
        for time, command in zip(times, commands, strict=True):
            base.advance(float(time))
            turned.append(base.pose[2])
            base.command_twist([0.0, 0.0, command], float(time))
        late.append(effective_delay(times, commands, times, turned))
    print(f"effective delay {np.array(late)} s")
    assert late[1] == pytest.approx(late[0], abs=5e-3)


@pytest.mark.parametrize("axis", [0, 1], ids=["x", "y"])
def test_both_stop_on_the_grip_of_their_rollers(axis):
    """From full speed, wheels sliding: mu g cos 45 and some friction in the twin, contacts in MuJoCo."""
    truth = dataclasses.replace(TRUTH, lateral_factor=factor(6), lag=0.01)
    commanded, speeds = np.zeros(3), []
    commanded[axis] = 0.8
    for base in two_bases(truth, 6):
        base.command_twist(commanded, 0.0)
        base.advance(2.0)
        base.command_twist(np.zeros(3), 2.0)
        base.advance(2.0 + truth.dead_times()[axis] + 0.02)
        before = base.twist[axis]
        base.advance(base.time + 0.08)
        speeds.append((before - base.twist[axis]) / 0.08)
        assert np.abs(base.wheel_torques).max() < 5.1
    print(f"decelerations {np.array(speeds)} m/s2")
    assert 5.0 < speeds[0] < 6.2
    assert speeds[1] == pytest.approx(speeds[0], rel=0.15)


@pytest.mark.parametrize("kind", [0, 1], ids=["twin", "MuJoCo"])
def test_commands_are_counted_in_motor_rpm(kind):
    """Facts 1.4: speeds that round to the same rpm move the base alike, to the bit."""
    moved = []
    for rpm in (99.7, 100.4, 100.6):
        base = two_bases(TRUTH, 6)[kind]
        speed = rpm * ROBOT.driver.velocity_quantum / 15.0
        base.command_twist([speed * 0.0475, 0.0, 0.0])
        base.advance(0.4)
        base.command_wheels(np.array(ROBOT.driver.command_sign) * -speed)
        base.advance(0.8)
        moved.append(base.wheel_angles)
    np.testing.assert_array_equal(moved[0], moved[1])
    assert np.all(np.abs(moved[2] - moved[0]) > 1e-5)


def test_readings_are_those_of_the_twin():
    """Signs, quanta, delay, lag and the driver's odometry: one sampler, two plants."""
    truth = dataclasses.replace(TRUTH, lateral_factor=factor(6))
    twin, contact = two_bases(truth, 6)
    for base in (twin, contact):
        base.command_twist([0.2, 0.0, 0.3])
    for k in range(60):
        for base in (twin, contact):
            base.advance(0.02 * (k + 1))
        one, other = twin.read(), contact.read()
        assert one.stamp == pytest.approx(other.stamp, abs=1e-9)
        settled = 0.02 * k > truth.dead_time_x + 10.0 * truth.lag
        for name, bound in (("position", 0.05), ("velocity", 0.25), ("odometry", 3e-3), ("twist", 0.02)):
            if settled or name in ("position", "odometry"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=bound, err_msg=name)
    quanta = other.velocity / ROBOT.driver.velocity_quantum
    np.testing.assert_allclose(quanta, np.round(quanta), atol=1e-9)
    assert other.velocity[0] < 0.0 < other.velocity[1], "the driver does not flip the speeds of the left wheels"
    assert np.all(other.position > 0.0), "but their positions"
    assert contact.read_efforts().effort.shape == (4,)


def test_stamps_jitter_and_efforts_are_noisy():
    _, base = two_bases(dataclasses.replace(TRUTH, stamp_jitter=1e-3, effort_noise=0.02), 6)
    stamps, efforts = [], []
    for _ in range(200):
        stamps.append(base.read().stamp)
        efforts.append(base.read_efforts().effort)
    assert np.std(stamps) == pytest.approx(1e-3, rel=0.2)
    assert np.std(efforts) == pytest.approx(0.02, rel=0.2)


def test_speeds_are_told_late_by_the_lag():
    truth = dataclasses.replace(TRUTH, speed_lag=0.05)
    _, late = two_bases(truth, 6)
    late.command_twist([0.3, 0.0, 0.0])
    late.advance(truth.dead_time_x + 0.06)
    reported = np.abs(late.read().velocity).mean()
    assert 0.1 * late.wheel_speeds.mean() < reported < 0.8 * late.wheel_speeds.mean()


def test_commands_come_late_by_the_dead_time_of_their_axis():
    truth = dataclasses.replace(TRUTH, dead_time_x=0.1, dead_time_yaw=0.2)
    _, base = two_bases(truth, 6)
    base.advance(0.1)
    base.command_twist([0.2, 0.0, 0.5])
    base.advance(0.195)
    assert np.abs(base.twist).max() < 1e-4
    base.advance(0.29)
    assert base.twist[0] > 0.1 and abs(base.twist[2]) < 1e-2
    base.advance(0.5)
    assert base.twist[2] > 0.3


def test_wheels_can_be_commanded_beside_any_motion():
    """In the driver's signs; one dead wheel of four makes rollers slip, and the base turns away."""
    _, base = two_bases(TRUTH, 6)
    signs = np.array(ROBOT.driver.command_sign)
    base.command_wheels(4.0 * signs)
    base.advance(1.0)
    np.testing.assert_allclose(base.wheel_speeds, 4.0, atol=0.1)
    assert base.twist[0] == pytest.approx(4.0 * 0.0475, rel=0.02)
    base.command_wheels(signs * [0.0, 4.0, 4.0, 4.0])
    base.advance(2.0)
    np.testing.assert_allclose(base.wheel_speeds, [0.0, 4.0, 4.0, 4.0], atol=0.5)


@pytest.mark.parametrize("twist", [[0.4, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 1.2]], ids=["x", "y", "yaw"])
def test_switched_off_the_base_coasts_as_far_as_the_twin(twist):
    """Inertia and friction are one: F1 of the wheels, F2 of the rollers, the viscous rest.

    MuJoCo's base comes to rest a little earlier: contacts between spheres and a floor that gives way cost 0.9 N, and
    sideways each roller that comes to the floor has to be spun up, which the twin does not know.
    """
    bases = two_bases(dataclasses.replace(TRUTH, lateral_factor=factor(6)), 6)
    ways = []
    for base in bases:
        base.command_twist(twist)
        base.advance(1.5)
        start = base.pose
        base.switch_motors(False)
        base.advance(3.5)
        assert np.all(base.wheel_torques == 0.0)
        assert np.abs(base.twist).max() < 5e-3
        ways.append(float(np.abs(base.pose - start) @ [1.0, 1.0, 0.28]))
    print(f"twin {ways[0]:.4f} m, MuJoCo {ways[1]:.4f} m")
    assert 0.8 * ways[0] < ways[1] < ways[0]


def test_switched_on_again_the_base_drives_on_without_a_jump():
    _, base = two_bases(TRUTH, 6)
    base.command_twist([0.3, 0.0, 0.0])
    base.advance(1.0)
    base.switch_motors(False)
    base.advance(2.5)
    base.switch_motors(True)
    for k in range(50):
        base.advance(2.5 + 0.01 * (k + 1))
        assert base.twist[0] < 0.33
    assert base.twist[0] == pytest.approx(0.3, rel=0.02)


@pytest.mark.parametrize("command", [[np.nan, 0.0, 0.0], [0.0, 0.0], "fast"])
def test_commands_that_are_none_are_refused(command):
    _, base = two_bases(TRUTH, 6)
    with pytest.raises(InputError, match="twist"):
        base.command_twist(command)


def test_an_arm_that_is_held_has_no_joints():
    with pytest.raises(InputError, match="with_arm"):
        _ = MujocoPlant(TRUTH, ARM, with_arm=False).joints


def test_base_and_arm_move_together_as_in_the_twin():
    base_truth = dataclasses.replace(TRUTH, lateral_factor=factor(6))
    plants = [kind(base_truth, ARM_TRUTH, ROBOT, 3) for kind in (Youbot, MujocoYoubot)]
    for plant in plants:
        plant.base.command_twist([0.1, 0.05, 0.2])
        plant.arm.command_positions([2.0, 1.0, -1.5, 1.5, 2.0])
    for k in range(100):
        for plant in plants:
            plant.advance(0.02 * (k + 1))
    twin, contact = plants
    assert contact.time == pytest.approx(twin.time, abs=1e-9)
    assert np.all(np.abs(contact.base.pose - twin.base.pose) < [5e-3, 5e-3, 1e-2])
    np.testing.assert_allclose(contact.arm.position, twin.arm.position, rtol=0, atol=1e-2)
    for name in ("read", "read_voltages", "read_temperatures"):
        one, other = (getattr(plant.arm, name)() for plant in plants)
        assert type(one) is type(other)
    assert type(twin.base.read()) is type(contact.base.read())


def test_an_arm_that_swings_pushes_the_base():
    """Momentum: motors of the wheels off, the arm's first joint turns one way, the base the other."""
    robot = MujocoYoubot(TRUTH.without_friction(), ARM_TRUTH, ROBOT, 0, position=[2.95, 2.4, -2.55, 1.79, 2.92])
    robot.advance(0.1)
    robot.base.switch_motors(False)
    robot.arm.command_velocities([1.5, 0.0, 0.0, 0.0, 0.0])
    robot.advance(0.8)
    assert robot.arm.speed[0] > 0.5
    # The axis of joint 1 points down: a positive turn of the arm is a negative one about z.
    assert robot.base.twist[2] > 0.02


def test_equal_seeds_give_equal_bits_and_other_seeds_do_not():
    def run(seed: int) -> list[np.ndarray]:
        plant = MujocoYoubot(load_truth(2), load_arm_truth(2), ROBOT, seed)
        plant.base.command_twist([0.2, 0.1, 0.3])
        plant.arm.command_positions([2.5, 1.2, -2.0, 1.5, 2.0])
        out = []
        for k in range(20):
            plant.advance(0.02 * (k + 1))
            base, arm = plant.base.read(), plant.arm.read()
            out += [plant.base.pose, base.position, np.array([base.stamp, arm.stamp]), arm.position, arm.effort]
        return out

    first, again, other = run(5), run(5), run(6)
    assert all(np.array_equal(one, same) for one, same in zip(first, again, strict=True))
    assert not np.array_equal(first[2], other[2])


def test_how_it_is_advanced_changes_nothing():
    ends = []
    for calls in (1, 37):
        plant = MujocoYoubot(TRUTH, ARM_TRUTH, ROBOT, 0)
        plant.base.command_twist([0.2, 0.1, 0.3])
        plant.arm.command_velocities([0.5, 0.0, 0.0, 0.0, 0.0])
        for k in range(calls):
            plant.advance(0.37 * (k + 1) / calls)
        assert plant.time == pytest.approx(0.37)
        ends.append([plant.base.pose, plant.base.wheel_angles, plant.arm.position])
        plant.advance(0.2)
        assert plant.time == pytest.approx(0.37), "never backwards"
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("step", [3.0, 0.02])
def test_the_pose_of_a_robot_that_spins_is_not_wrapped(step):
    """However it is advanced, and though nobody looks on the way."""
    _, base = two_bases(TRUTH, 6)
    base.command_twist([0.0, 0.0, 2.5])
    for k in range(round(3.0 / step)):
        base.advance(step * (k + 1))
    assert base.pose[2] > 6.5
    assert TIMESTEP == 1e-3
