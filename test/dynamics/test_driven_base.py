"""The driven base: laws of its response, the twin as oracle, and its inverse."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from delay_runs import calibrated_truth
from response_runs import true_loops, with_own_loops
from scipy.integrate import solve_ivp

from youbot_dynamics.control.tracker import BasePredictor
from youbot_dynamics.control.tracker._feed_forward import FeedForward
from youbot_dynamics.control.trajectory import Trajectory, read_program
from youbot_dynamics.dynamics.driven_base import DrivenBase, write_droop
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics, effective_inertia
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.resources import program_path, robot_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

ROBOT = load_robot()
BASE = ROBOT.base
HOLD = 0.02


def of_truth(truth: BaseTruth) -> DrivenBase:
    """The twin's own numbers, for judging the model."""
    dynamics = MecanumDynamics(
        truth.mecanum(),
        truth.mass,
        truth.yaw_inertia,
        truth.wheel_inertia,
        wheel_coulomb=truth.wheel_coulomb,
        roller_coulomb=truth.roller_coulomb,
        viscous_x=truth.viscous_x,
        viscous_y=truth.viscous_y,
    )
    return DrivenBase(dynamics, truth.dead_times(), **true_loops(truth))


def twin_poses(twists: np.ndarray, truth: BaseTruth) -> tuple[np.ndarray, np.ndarray]:
    """Times and true poses of the twin under held twists."""
    plant = BasePlant(truth, ROBOT.driver, 1)
    base, driver = BASE.geometry.mecanum(), ROBOT.driver.mecanum()
    times, poses = [], []
    for k, twist in enumerate(twists):
        plant.advance(k * HOLD)
        plant.command_twist(driver.twist(base.wheel_speeds(twist)))
        plant.advance((k + 0.7) * HOLD)
        times.append(plant.time)
        poses.append(plant.pose)
    return np.array(times), np.array(poses)


@pytest.mark.parametrize("seed", [0, 1, 3, 9])
@pytest.mark.parametrize("name", ["translation", "rotation", "combined"])
def test_it_moves_like_the_twin_without_noise(seed: int, name: str) -> None:
    truth = with_own_loops(calibrated_truth(seed)).without_noise()
    twists = read_program(program_path(name), HOLD).twists
    times, poses = twin_poses(twists, truth)
    modelled = of_truth(truth).path(HOLD * np.arange(len(twists)), twists, times)
    # 1 motor rpm of the driver's commands is 0.19 mm/s.
    assert np.max(np.abs(modelled - poses)) < 2e-4
    without = DrivenBase(BASE.dynamics(), truth.dead_times(), truth.lag, 0.0)
    assert np.max(np.abs(without.path(HOLD * np.arange(len(twists)), twists, times) - poses)) > 3e-4


def test_a_step_without_friction_is_a_dead_time_and_a_lag() -> None:
    base = DrivenBase(BASE.dynamics(), (0.1, 0.2, 0.3), 0.05, 0.0)
    moments = np.array([0.05, 0.15, 0.4, 1.0])
    path = base.path([0.0], [[0.2, 0.0, 0.0]], moments)
    since = np.maximum(moments - 0.1, 0.0)
    exact = 0.2 * (since - 0.05 * (1.0 - np.exp(-since / 0.05)))
    np.testing.assert_allclose(path[:, 0], exact, atol=1e-9)
    np.testing.assert_array_equal(path[:, 1:], 0.0)


def test_at_constant_speed_friction_holds_it_back_by_its_deceleration_over_rate_squared() -> None:
    dynamics = MecanumDynamics(BASE.geometry.mecanum(), 30.0, 1.0, 0.0, viscous_x=30.0)
    base = DrivenBase(dynamics, np.zeros(3), 0.0, 10.0)
    path = base.path([0.0], [[0.2, 0.0, 0.0]], [5.0, 6.0])
    np.testing.assert_allclose(np.array([1.0, 1.2]) - path[:, 0], 0.2 * 30.0 / 30.0 / 10.0**2, rtol=1e-3)


# P, nearly P, overdamped, critical and underdamped loops.
@pytest.mark.parametrize("stiffness", [0.0, 1e-3, 30.0, 81.0, 81.0 * (1.0 + 1e-12), 2000.0])
def test_the_droop_solves_its_equation(stiffness: float) -> None:
    def rate(_: float, state: np.ndarray) -> list[float]:
        return [state[1], -18.0 * state[1] - stiffness * state[0] - 0.7]

    exact = solve_ivp(rate, (0.0, 0.13), [0.004, -0.02], rtol=1e-11, atol=1e-14).y[:, -1]
    rows = np.full((2, 3), np.nan)
    write_droop(18.0, stiffness, 0.13, rows)
    np.testing.assert_allclose(rows @ [0.004, -0.02, 0.7], exact, rtol=1e-6)


def test_p_loops_lack_the_speed_that_friction_takes_for_good() -> None:
    dynamics = MecanumDynamics(BASE.geometry.mecanum(), 30.0, 1.0, 0.0, viscous_x=30.0)
    base = DrivenBase(dynamics, np.zeros(3), 0.0, 10.0, integral=0.0)
    path = base.path([0.0], [[0.2, 0.0, 0.0]], [5.0, 6.0])
    speed = path[1, 0] - path[0, 0]
    np.testing.assert_allclose(0.2 - speed, speed * 30.0 / 30.0 / 20.0, rtol=1e-6)


@pytest.mark.parametrize("reset", [0.0, 0.02, 0.3])
@pytest.mark.parametrize(("gain", "coulomb"), [(1.5, 0.15), (8.0, 0.03)])
@pytest.mark.parametrize("name", ["translation", "rotation"])
def test_it_moves_like_a_twin_with_a_servo_on_each_wheel(name: str, gain: float, coulomb: float, reset: float) -> None:
    truth = dataclasses.replace(
        calibrated_truth(3).without_noise(), servo_gain=gain, servo_reset=reset, wheel_coulomb=coulomb
    )
    twists = read_program(program_path(name), HOLD).twists
    times, poses = twin_poses(twists, truth)
    modelled = of_truth(truth).path(HOLD * np.arange(len(twists)), twists, times)
    assert np.max(np.abs(modelled - poses)) < 5e-4


def test_a_turning_base_is_pushed_outwards() -> None:
    free = MecanumDynamics(BASE.geometry.mecanum(), 30.0, 1.0, 0.0)
    path = DrivenBase(free, np.zeros(3), 0.0, 20.0).path([0.0], [[0.4, 0.0, 0.2]], [0.5])
    circle = 2.0 * np.array([np.sin(0.1), 1.0 - np.cos(0.1)])
    np.testing.assert_allclose(path[0, 1] - circle[1], -0.4 * 0.2 / 20.0**2, rtol=0.02)


@pytest.mark.parametrize(
    "lag, rate, integral, feed",
    [
        (0.0, 0.0, 1.0, 1.0),
        (0.03, 0.0, 1.0, 1.0),
        (0.03, 15.0, 1.0, 1.0),
        (0.06, 8.0, 1.0, 1.0),
        (0.03, 25.0, 0.0, 1.0),
        (0.03, 25.0, 0.0, 0.0),
        (0.01, 25.0, 3.0, 0.0),
        (0.0, 40.0, 0.2, 0.0),
    ],
)
@pytest.mark.parametrize("name", ["translation", "rotation", "combined"])
def test_the_feed_forward_is_its_inverse(name: str, lag: float, rate: float, integral: float, feed: float) -> None:
    base = DrivenBase(BASE.dynamics(), (0.07, 0.22, 0.13), lag, rate, 1.0, integral, feed)
    trajectory = read_program(program_path(name), HOLD).trajectory()
    feed = FeedForward(base, trajectory, HOLD)
    sent = HOLD * np.arange(-20, 1050)
    twists = np.array([feed.twist(float(time)) for time in sent])
    moments = np.arange(0.0, 20.5, 0.013)
    path = base.path(sent, twists, moments)
    np.testing.assert_allclose(path, trajectory.path(moments), rtol=0.0, atol=2e-4)


def test_the_prediction_is_the_model_run_on_and_a_reading_moves_it_by_its_share() -> None:
    base = DrivenBase(BASE.dynamics(), (0.1, 0.2, 0.15), 0.03, 15.0)
    sent = HOLD * np.arange(40)
    twists = np.column_stack([np.sin(sent), 0.3 * np.cos(sent), 0.5 * np.sin(2.0 * sent)])
    predictor = BasePredictor(base, 0.25)
    predictor.observe(0.0, np.zeros(3))
    for time, twist in zip(sent[:20], twists[:20], strict=True):
        predictor.sent(float(time), twist)
    ahead = predictor.poses([0.9, 0.5], sent[20:], twists[20:])
    np.testing.assert_allclose(ahead, base.path(sent, twists, [0.5, 0.9])[::-1], atol=1e-5)
    modelled = base.path(sent, twists, [0.3])[0]
    predictor.observe(0.3, modelled + np.array([0.01, -0.02, 0.03 + 2.0 * np.pi]))
    predictor.observe(0.2, np.full(3, 9.0))  # older than the last: changes nothing
    moved = predictor.poses([0.3], [], [])[0] - modelled
    np.testing.assert_allclose(moved, [0.0025, -0.005, 0.0075], atol=1e-5)


@pytest.mark.parametrize(("apart", "silence"), [(1.0, 2.0), (HOLD, 1.5)])
def test_a_command_acts_until_the_next_one_does_however_long_ago_the_last_pose(apart: float, silence: float) -> None:
    base = DrivenBase(BASE.dynamics(), (0.1, 0.2, 0.15), 0.03, 0.0)
    sent = np.arange(0.0, silence + 1e-9, apart)
    twists = np.column_stack([np.full(len(sent), 0.2), 0.1 * np.cos(sent), np.zeros(len(sent))])
    predictor = BasePredictor(base, 0.25)
    predictor.observe(0.0, np.zeros(3))
    for time, twist in zip(sent, twists, strict=True):
        predictor.sent(float(time), twist)
    ahead = predictor.poses([silence], [], [])
    np.testing.assert_allclose(ahead, base.path(sent, twists, [silence]), atol=1e-5)


def test_a_predictor_keeps_no_more_commands_than_still_act() -> None:
    predictor = BasePredictor(DrivenBase(BASE.dynamics(), (0.1, 0.1, 0.1), 0.03, 15.0), 0.25)
    for k in range(500):
        predictor.observe(HOLD * k, np.zeros(3))
        predictor.sent(HOLD * k, np.zeros(3))
    assert predictor.kept < 12


def test_poses_at_many_moments_are_those_at_each() -> None:
    program = read_program(program_path("combined"), HOLD).trajectory()
    rough = Trajectory(program.times[::40], program.poses[::40], np.gradient(program.poses[::40], 0.8, axis=0))
    moments = np.array([-1.0, 0.0, 0.013, 3.3337, 19.99, 20.0, 25.0])
    for trajectory in (program, rough, Trajectory([0.0], [[1.0, 2.0, 3.0]])):
        each = np.array([trajectory.pose(float(moment)) for moment in moments])
        np.testing.assert_allclose(trajectory.path(moments), each, atol=1e-12)


def test_numbers_no_base_has_are_refused() -> None:
    with pytest.raises(InputError, match="dead_times"):
        DrivenBase(BASE.dynamics(), (-0.1, 0.0, 0.0), 0.0, 0.0)
    with pytest.raises(ModelError, match="lag"):
        DrivenBase(BASE.dynamics(), np.zeros(3), -0.1, 0.0)
    with pytest.raises(InputError, match="moments"):
        DrivenBase(BASE.dynamics(), np.zeros(3), 0.0, 0.0).path([1.0], [[0.0, 0.0, 0.0]], [0.5])


def test_a_pose_to_come_is_reached_however_the_stamps_of_today_round() -> None:
    """A float of seconds since 1970 is a multiple of 0.24 us: sums of steps may end one short of the moment."""
    base, today = DrivenBase(BASE.dynamics(), np.full(3, 0.1), 0.02, 20.0), 1.7e9
    reached = []
    for k in range(4000):
        begin = today + 0.02 + k * 2.0**-22
        predictor = BasePredictor(base, 1.0)
        predictor.observe(begin, np.zeros(3))
        predictor.sent(begin - 0.2, [0.3, 0.0, 0.0])
        reached.append(predictor.poses([begin + 0.2 + 7 * k * 2.0**-22], [], np.empty((0, 3)))[0, 0])
    assert np.min(reached) > 0.05 and np.ptp(reached) < 0.01


@pytest.mark.parametrize(
    "feed, integral, rate, turn_factor",
    [(0, 0, 15, 1), (0, 1, 15, 1), (0, 0.3, 8, 1.4), (0, 0.3, 0.8, 1.4), (1, 1, 15, 1.4)],
)
@pytest.mark.parametrize("centre", [(0.035, 0.0), (0.08, 0.02)])
def test_a_centre_of_mass_off_the_middle_couples_the_axes(centre, feed, integral, rate, turn_factor) -> None:
    """Against the equations of all three axes at once, solved by scipy; steps of twist drive the coupling."""
    mass, yaw_inertia, lag, dead = 29.9, 1.1, 0.03, np.array([0.1, 0.15, 0.05])
    wheels = MecanumBase.rectangular(0.0475, 0.235, 0.15)
    model = MecanumDynamics(wheels, mass, yaw_inertia, 0.0106, centre_of_mass=centre, viscous_x=15.0, viscous_y=20.0)
    base = DrivenBase(model, dead, lag, float(rate), turn_factor, integral, float(feed))
    sent = np.arange(0.0, 3.0, 0.02)
    twists = np.stack([0.2 * np.sin(1.3 * sent), *(0.2 * np.sign(np.sin(w * sent)) for w in (1.7, 1.1))], axis=1)
    moments = np.arange(0.0, 2.9, 0.1)
    inertia = effective_inertia(wheels, mass, yaw_inertia, 0.0106, centre_of_mass=centre).copy()
    inertia[2, 2] /= turn_factor
    servo = np.sum(wheels.inverse_matrix**2, axis=0) / np.diag(inertia)
    damping = 2.0 * rate * (np.ones(3) if feed else servo / servo[0])
    stiffness = 0.5 * integral * rate * damping

    def motion(time: float, state: np.ndarray, command: np.ndarray) -> np.ndarray:
        (yaw, answer, held, rates) = state[2], state[3:6], state[6:9], state[9:]
        twist, change = answer + rates, (command - answer) / lag
        inner = np.array([twist[1] + twist[2] * centre[0], twist[2] * centre[1] - twist[0], -twist[:2] @ centre])
        forces = mass * twist[2] * inner - model.friction(twist)
        servos = damping * rates + stiffness * held
        if feed:
            second = np.linalg.solve(inertia, forces) - servos
        else:
            second = np.linalg.solve(inertia, forces - inertia @ change - np.diag(inertia) * servos)
        turned = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]) @ twist[:2]
        return np.concatenate([turned, twist[2:], change, rates, second])

    state, exact = np.zeros(12), {0.0: np.zeros(3)}
    ends = np.unique(np.round(np.concatenate([moments, *(sent + delay for delay in dead)]), 9))
    ends = ends[(ends > 0.0) & (ends <= moments[-1])]
    for begin, end in zip([0.0, *ends[:-1]], ends, strict=True):
        acting = np.searchsorted(sent, 0.5 * (begin + end) - dead, side="right") - 1
        command = np.where(acting >= 0, twists[acting, range(3)], 0.0)
        state = solve_ivp(motion, (begin, end), state, args=(command,), rtol=1e-8, atol=1e-11).y[:, -1]
        exact[round(end, 9)] = state[:3]
    wanted = np.array([exact[round(moment, 9)] for moment in moments])
    assert np.abs(base.path(sent, twists, moments) - wanted).max() < 1e-5


def test_the_response_of_a_base_that_cannot_move_sideways_needs_no_dead_time_there() -> None:
    base = load_robot(robot_file=robot_path("turtlebot3_burger")).base
    known = dataclasses.replace(base.response, dead_time_x=0.1, dead_time_yaw=0.2, lag=0.02, rate=20.0)
    assert known.known and not base.response.known
    assert not dataclasses.replace(known, dead_time_yaw=0.0).known
    driven = dataclasses.replace(base, response=known).driven()
    path = driven.path([0.0], [[0.1, 0.0, 0.5]], [1.0])
    assert driven.dead_times.tolist() == [0.1, 0.0, 0.2]
    np.testing.assert_allclose(path[0, 2], 0.5 * 0.78, atol=0.02)


@pytest.mark.parametrize("gain", [0.0, 0.5])
def test_a_differential_base_moves_like_its_twin_and_never_sideways(gain: float) -> None:
    file = robot_path("create_3")
    robot = load_robot(robot_file=file)
    truth = load_truth(3, file).with_geometry(robot.base.geometry).without_noise()
    truth = dataclasses.replace(truth, servo_gain=gain, servo_reset=0.1)
    times = HOLD * np.arange(400)
    twists = np.column_stack([0.2 * np.sin(1.1 * times), 0.0 * times, 0.8 * np.sin(0.7 * times)])
    plant, moments, poses = BasePlant(truth, robot.driver, 1), [], []
    for k, twist in enumerate(twists):
        plant.advance(k * HOLD)
        plant.command_twist(twist)
        plant.advance((k + 0.7) * HOLD)
        moments.append(plant.time)
        poses.append(plant.pose)
        assert plant.twist[1] == 0.0
    energy = plant.energy()
    assert abs(energy.gap) < 1e-6 * energy.work
    modelled = of_truth(truth).path(times, twists, np.array(moments))
    assert np.max(np.abs(modelled - poses)) < 1.5e-3
    assert np.ptp(np.array(poses)[:, 0]) > 0.1 and np.ptp(np.array(poses)[:, 2]) > 0.5
