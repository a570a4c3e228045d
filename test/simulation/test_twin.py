"""The digital twin against mechanics: energy, inertia, response, delay; and against the quirks of the real driver."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from effective_delay import effective_delay
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_python import numbers_without_numba

from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant, DelayLine
from youbot_dynamics.simulation.base import _dynamics as dynamics
from youbot_dynamics.simulation.driver_reports import checked_until
from youbot_dynamics.simulation.robot_driver import RobotDriver
from youbot_dynamics.simulation.truth import BaseTruth, load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import Youbot

DRIVER = load_robot().driver
FINE_DRIVER = dataclasses.replace(DRIVER, position_quantum=0.0, velocity_quantum=0.0)
NOMINAL = load_truth(0)
SMOOTH = NOMINAL.without_friction().without_noise()
WHEEL_SCALE, ROLLER_SCALE = 0.05, 0.003  # [rad/s], [m/s] over which Coulomb friction rises


def coast(truth: BaseTruth, state: np.ndarray, steps: int, dt: float, powered: bool = False) -> None:
    nothing = np.zeros((steps, 4))
    ledger = np.zeros(dynamics.LEDGER_SIZE)
    state[dynamics.of_wheels(dynamics.SPEEDS, 4)] = truth.mecanum().wheel_speeds(state[dynamics.TWIST])
    dynamics.advance(dynamics.constants_of(truth), nothing, nothing, nothing, dt, powered, state, ledger)


def at_twist(twist: np.ndarray) -> np.ndarray:
    state = np.zeros(dynamics.state_size(4))
    state[dynamics.TWIST] = twist
    return state


def energy(truth: BaseTruth, twist: np.ndarray) -> float:
    """Body and wheels counted one by one, not through the inertia of the code."""
    wheels = truth.mecanum().wheel_speeds(twist)
    body = truth.mass * (twist[0] ** 2 + twist[1] ** 2) + truth.yaw_inertia * twist[2] ** 2
    return 0.5 * float(body + truth.wheel_inertia * wheels @ wheels)


def dissipation(truth: BaseTruth, twist: np.ndarray) -> float:
    """F1 sum|w| + sqrt2 F2/r sum|rho| + xi V^2 at each wheel (system 35), signs smoothed as in the twin."""
    base = truth.mecanum()
    w = base.wheel_speeds(twist)
    along = twist[0] - twist[2] * base.positions[:, 1]
    sideways = twist[1] + twist[2] * base.positions[:, 0]
    power = truth.wheel_coulomb * np.sum(w * np.tanh(w / WHEEL_SCALE))
    power += np.sqrt(2.0) * truth.roller_coulomb * np.sum(sideways * np.tanh(sideways / ROLLER_SCALE))
    return float(power + np.sum(truth.viscous_x * along**2 + truth.viscous_y * sideways**2) / 4.0)


TWIST = st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8), st.floats(-2.0, 2.0))


@given(twist=TWIST, seed=st.integers(1, 40))
@settings(max_examples=25)
def test_friction_never_creates_energy(twist: tuple, seed: int) -> None:
    truth = load_truth(seed).without_noise()
    state = at_twist(np.array(twist))
    before = energy(truth, state[dynamics.TWIST])
    for _ in range(60):
        coast(truth, state, 5, dynamics.STEP)
        after = energy(truth, state[dynamics.TWIST])
        assert after <= before * (1.0 + 1e-12)
        before = after


@given(twist=TWIST, seed=st.integers(0, 40))
@settings(max_examples=40)
def test_the_base_loses_exactly_the_dissipated_power_of_system_35(twist: tuple, seed: int) -> None:
    truth = load_truth(seed).without_noise()
    state, h = at_twist(np.array(twist)), 1e-7
    power = dissipation(truth, np.array(twist))
    assert power >= 0.0
    coast(truth, state, 1, h)
    lost = (energy(truth, np.array(twist)) - energy(truth, state[dynamics.TWIST])) / h
    assert lost == pytest.approx(power, rel=1e-4, abs=1e-4)


def test_friction_brings_a_coasting_base_to_rest() -> None:
    state = at_twist(np.array([0.5, -0.3, 1.0]))
    coast(NOMINAL.without_noise(), state, 5000, dynamics.STEP)
    np.testing.assert_allclose(state[dynamics.TWIST], 0.0, atol=1e-4)


def test_without_friction_a_coasting_base_keeps_its_energy() -> None:
    state = at_twist(np.array([0.5, -0.3, 0.8]))
    before = energy(SMOOTH, state[dynamics.TWIST])
    coast(SMOOTH, state, 1000, dynamics.STEP)
    assert energy(SMOOTH, state[dynamics.TWIST]) == pytest.approx(before, rel=1e-3)
    assert state[2] > 0.5  # it has turned far meanwhile


def test_a_body_without_wheels_or_friction_flies_straight_on_while_it_spins() -> None:
    """Newton: without outer force the velocity in the world stays; checks the sign of the centripetal term."""
    free = dataclasses.replace(SMOOTH, wheel_inertia=0.0)
    state = at_twist(np.array([0.4, -0.2, 1.5]))
    coast(free, state, 20000, 1e-4)
    np.testing.assert_allclose(state[dynamics.POSE], [0.8, -0.4, 3.0], atol=1e-3)
    world = planar.rotation(state[2]) @ state[dynamics.TWIST][:2]
    np.testing.assert_allclose(world, [0.4, -0.2], atol=1e-3)


def kkt_acceleration(truth: BaseTruth, twist: np.ndarray, wheel_torque: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Body (3) and wheels (4) as free bodies, joined by the rolling constraints with multipliers."""
    j = truth.mecanum().inverse_matrix
    mass = np.diag([truth.mass, truth.mass, truth.yaw_inertia, *[truth.wheel_inertia] * 4])
    constraint = np.hstack([j, -np.eye(4)])
    vx, vy, wz = twist
    gyroscopic = truth.mass * wz * np.array([vy, -vx, 0.0])
    system = np.block([[mass, constraint.T], [constraint, np.zeros((4, 4))]])
    right = np.concatenate([force + gyroscopic, wheel_torque, np.zeros(4)])
    return np.linalg.solve(system, right)[:3]


def friction_of_parts(truth: BaseTruth, twist: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    base = truth.mecanum()
    torque = -truth.wheel_coulomb * np.tanh(base.wheel_speeds(twist) / WHEEL_SCALE)
    total = np.zeros(3)
    for x, y in base.positions:
        along, sideways = twist[0] - twist[2] * y, twist[1] + twist[2] * x
        fx = -truth.viscous_x * along / 4.0
        fy = -truth.viscous_y * sideways / 4.0
        fy -= np.sqrt(2.0) * truth.roller_coulomb * np.tanh(sideways / ROLLER_SCALE)
        total += [fx, fy, x * fy - y * fx]
    return torque, total


@pytest.mark.parametrize("twist", np.random.default_rng(5).uniform(-1.0, 1.0, (5, 3)))
def test_the_motion_is_that_of_body_and_wheels_under_rolling_constraints(twist: np.ndarray) -> None:
    truth = NOMINAL.without_noise()
    state, h = at_twist(twist), 1e-7
    coast(truth, state, 1, h)
    expected = kkt_acceleration(truth, twist, *friction_of_parts(truth, twist))
    np.testing.assert_allclose((state[dynamics.TWIST] - twist) / h, expected, rtol=1e-6, atol=1e-6)


def test_the_effective_inertia_is_that_of_the_constrained_system() -> None:
    j = NOMINAL.mecanum().inverse_matrix
    inertia = dynamics.effective_inertia(NOMINAL)
    for torque in np.eye(4):
        expected = kkt_acceleration(NOMINAL, np.zeros(3), torque, np.zeros(3))
        np.testing.assert_allclose(np.linalg.solve(inertia, j.T @ torque), expected, atol=1e-14)


def test_the_rotors_make_the_base_heavier_by_16_kg() -> None:
    """Document 003 takes the mass of the robot for m_a; the reflected rotors alone add 4 J / R^2 (D-003-10)."""
    rotors = dataclasses.replace(NOMINAL, wheel_inertia=0.0090)
    added = dynamics.effective_inertia(rotors)[0, 0] - NOMINAL.mass
    assert added == pytest.approx(4 * 0.0090 / 0.0475**2)
    assert added == pytest.approx(16.0, abs=0.1)


def test_the_transverse_row_sums_the_signs_of_the_wheels_with_their_pattern() -> None:
    """Document 003, eq. (1), T row: F1/R (sign phi_i) without a sum (D-003-9).

    Driving sideways turns wheels 1 and 4 backwards: a sum without the pattern (-, +, +, -) vanishes, one sign alone
    gives a quarter. The base brakes with all four, plus 4 sqrt2 F2/r and the viscous part.
    """
    truth = dataclasses.replace(NOMINAL.without_noise(), lateral_factor=1.0)
    speed = 0.4
    state, h = at_twist(np.array([0.0, speed, 0.0])), 1e-6
    coast(truth, state, 1, h)
    lost = dynamics.effective_inertia(truth)[1, 1] * (speed - state[4]) / h
    signs = np.sign(truth.mecanum().wheel_speeds([0.0, speed, 0.0]))
    assert signs.sum() == 0.0
    pattern = np.array([-1.0, 1.0, 1.0, -1.0])
    rest = 4 * np.sqrt(2.0) * truth.roller_coulomb + truth.viscous_y * speed
    assert lost == pytest.approx(truth.wheel_coulomb / truth.wheel_radius * (pattern @ signs) + rest, rel=1e-6)
    assert lost - rest == pytest.approx(4 * truth.wheel_coulomb / truth.wheel_radius, rel=1e-5)


def test_friction_acts_alike_forwards_and_backwards() -> None:
    truth = NOMINAL.without_noise()
    for twist in np.random.default_rng(2).uniform(-0.5, 0.5, (5, 3)):
        one, other = at_twist(twist), at_twist(-twist)
        coast(truth, one, 1, 1e-6)
        coast(truth, other, 1, 1e-6)
        # The centripetal term is even in the speed, the friction odd.
        change = (one[3:6] - twist) - (other[3:6] + twist)
        torque, force = friction_of_parts(truth, twist)
        expected = kkt_acceleration(truth, np.zeros(3), torque, force)
        np.testing.assert_allclose(change / 2e-6, expected, rtol=1e-4, atol=1e-5)


def step_response(truth: BaseTruth, axis: int, at: float, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Velocity and position of one axis after a step of its command at `at`; and the commanded speed."""
    robot = BasePlant(truth, FINE_DRIVER, 0)
    twist = np.zeros(3)
    twist[axis] = 0.2
    robot.command_twist(twist, at)
    commanded = truth.mecanum().twist(FINE_DRIVER.mecanum().wheel_speeds(twist))[axis]
    velocity, position = [], []
    for time in times:
        robot.advance(float(time))
        velocity.append(robot.twist[axis])
        position.append(robot.pose[axis])
    return np.array(velocity), np.array(position), commanded


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_without_friction_the_speed_follows_exactly_to_first_order_after_the_dead_time(axis: int) -> None:
    truth = dataclasses.replace(SMOOTH, dead_time_x=0.1, dead_time_y=0.2, dead_time_yaw=0.3, lag=0.04)
    times = np.arange(1, 80) * 0.01
    velocity, position, commanded = step_response(truth, axis, 0.0, times)
    since = np.maximum(times - truth.dead_times()[axis], 0.0)
    np.testing.assert_allclose(velocity, commanded * (1.0 - np.exp(-since / truth.lag)), atol=1e-9)
    expected = commanded * (since - truth.lag * (1.0 - np.exp(-since / truth.lag)))
    np.testing.assert_allclose(position, expected, atol=1e-6)


@pytest.mark.parametrize("dead", [0.1, 0.10031, 0.1005, 0.10099])
@pytest.mark.parametrize("at", [0.0, 0.00042])
def test_the_dead_time_is_exact_between_the_steps(dead: float, at: float) -> None:
    truth = dataclasses.replace(SMOOTH, dead_time_x=dead, lag=0.04)
    times = np.array([0.0995, 0.12, 0.2, 0.5, 0.8])
    velocity, position, commanded = step_response(truth, 0, at, times)
    since = np.maximum(times - dead - at, 0.0)
    # A switch inside a step is spread over it: its moment is exact, the speed just after it to (step / lag)^2 / 8.
    np.testing.assert_allclose(velocity, commanded * (1.0 - np.exp(-since / truth.lag)), atol=commanded * 1e-4)
    expected = commanded * (since - truth.lag * (1.0 - np.exp(-since / truth.lag)))
    np.testing.assert_allclose(position, expected, atol=4e-6)
    assert position[-1] == pytest.approx(commanded * (0.8 - at - dead - truth.lag), abs=1e-6)
    assert velocity[0] == 0.0


@given(
    gaps=st.lists(st.floats(0.0, 0.05), min_size=1, max_size=20),
    dead=st.tuples(st.floats(0.0, 0.2), st.floats(0.0, 0.2)),
    start=st.floats(0.0, 0.5),
)
@settings(max_examples=60)
def test_the_delay_line_gives_the_mean_of_the_delayed_command(gaps: list, dead: tuple, start: float) -> None:
    line = DelayLine(dead)
    times = np.cumsum(gaps)
    values = np.random.default_rng(len(gaps)).normal(size=(len(times), 2))
    for time, value in zip(times, values, strict=True):
        line.push(time, value)
    dt, steps = 3e-3, 40
    means = line.means(start, dt, steps)
    begins = start + np.arange(steps) * dt
    ends = np.append(times[1:], np.inf)
    for axis in range(2):
        # Overlap of each interval with the time each command acts.
        lower = np.maximum(begins[:, None], times + dead[axis])
        upper = np.minimum(begins[:, None] + dt, ends + dead[axis])
        expected = np.maximum(upper - lower, 0.0) @ values[:, axis] / dt
        np.testing.assert_allclose(means[:, axis], expected, atol=1e-9)


def test_the_delay_line_forgets_only_what_has_long_taken_effect() -> None:
    line = DelayLine([0.15])
    for k in range(10000):
        line.push(k * 0.02, [np.sin(k * 0.01)])
        if k % 500 == 499:
            now = k * 0.02
            held = np.sin(np.floor((now - 0.15 + 1e-9) / 0.02) * 0.01)
            assert line.means(now, 1e-4, 1)[0, 0] == pytest.approx(held, abs=1e-6)


@pytest.mark.parametrize("until", [np.nan, np.inf, -np.inf])
def test_a_time_that_is_none_is_refused_and_nothing_moves(until: float) -> None:
    robot = load_robot()
    twin = Youbot(load_truth(0), load_arm_truth(0), robot, seed=0)
    for plant in (twin, twin.arm, BasePlant(load_truth(0), robot.driver, 0)):
        with pytest.raises(InputError, match=r"^until: got -?(nan|inf); expected a finite number"):
            plant.advance(until)
    assert twin.time == 0.0
    with pytest.raises(InputError, match=r"^start: got -?(nan|inf); expected a finite number"):
        Youbot(load_truth(0), load_arm_truth(0), robot, seed=0, start=until)


def test_more_than_an_hour_in_one_call_is_refused_and_nothing_moves() -> None:
    robot = load_robot()
    twin = Youbot(load_truth(0), load_arm_truth(0), robot, seed=0)
    for plant in (twin, twin.arm, RobotDriver(twin, robot.driver, 0)):
        with pytest.raises(InputError, match=r"^until: got 1e\+12 s; expected at most 3600 s after .*several calls"):
            plant.advance(1e12)
    assert twin.time == twin.arm.time == 0.0
    assert checked_until(3600.0, 0.0) == 3600.0


def test_the_last_command_is_held_for_ever() -> None:
    robot = BasePlant(SMOOTH, FINE_DRIVER, 0)
    robot.command_twist([0.1, 0.0, 0.0])
    robot.advance(30.0)
    assert robot.twist[0] == pytest.approx(0.1)


def test_two_ways_to_command_a_driver_move_the_base_alike() -> None:
    twist = [0.2, -0.1, 0.4]
    one, other = BasePlant(NOMINAL, DRIVER, 3), BasePlant(NOMINAL, DRIVER, 3)
    one.command_twist(twist)
    other.command_wheels(DRIVER.mecanum().wheel_speeds(twist) * np.array(DRIVER.command_sign))
    one.advance(1.0)
    other.advance(1.0)
    np.testing.assert_allclose(one.pose, other.pose, atol=1e-12)


def test_switching_the_motors_off_lets_the_base_coast_and_on_again_takes_the_held_command() -> None:
    def cruise(truth: BaseTruth) -> BasePlant:
        robot = BasePlant(truth, FINE_DRIVER, 0)
        robot.command_twist([0.4, 0.0, 0.0])
        robot.advance(1.0)
        robot.switch_motors(False)
        robot.advance(1.1)
        return robot

    assert cruise(SMOOTH).twist[0] == pytest.approx(0.4, rel=1e-6)
    rubbing = NOMINAL.without_noise()
    robot = cruise(rubbing)
    mass = dynamics.effective_inertia(rubbing)[0, 0]
    slowest = (4 * rubbing.wheel_coulomb / rubbing.wheel_radius + rubbing.viscous_x * 0.35) / mass
    fastest = (4 * rubbing.wheel_coulomb / rubbing.wheel_radius + rubbing.viscous_x * 0.4) / mass
    assert 0.1 * slowest < 0.4 - robot.twist[0] < 0.1 * fastest
    robot.advance(6.0)
    assert abs(robot.twist[0]) < 1e-4
    robot.switch_motors(True)
    robot.advance(7.0)
    assert robot.twist[0] == pytest.approx(0.4, rel=0.02)


def forward(driver=DRIVER, truth: BaseTruth = NOMINAL, twist=(0.2, 0.0, 0.0), seconds: float = 1.0) -> BasePlant:
    robot = BasePlant(truth, driver, 1)
    robot.command_twist(twist)
    robot.advance(seconds)
    return robot


def test_driving_forward_the_driver_says_opposite_signs_of_position_and_velocity_on_the_left() -> None:
    """youbot facts 0.4: the wrapper flips the position of FL and BL, not their velocity."""
    robot = forward()
    first = robot.read()
    robot.advance(robot.time + 0.1)
    second = robot.read()
    assert np.all(second.position - first.position > 0.0)
    np.testing.assert_array_equal(np.sign(second.velocity), [-1.0, 1.0, -1.0, 1.0])
    assert np.all(second.velocity * np.array(DRIVER.velocity_sign) > 0.0)
    np.testing.assert_allclose(robot.wheel_angles, second.position, atol=1e-4)


def test_readings_are_quantised_to_encoder_ticks_and_to_15_motor_rpm() -> None:
    robot = forward(twist=(0.2, 0.05, 0.1), seconds=1.234)
    reading = robot.read()
    for values, quantum in ((reading.position, DRIVER.position_quantum), (reading.velocity, DRIVER.velocity_quantum)):
        np.testing.assert_allclose(values / quantum, np.round(values / quantum), atol=1e-6)
    assert np.max(np.abs(reading.position - robot.wheel_angles)) <= DRIVER.position_quantum / 2 * (1 + 1e-9)
    speeds = NOMINAL.mecanum().wheel_speeds(robot.twist)
    error = np.abs(reading.velocity * np.array(DRIVER.velocity_sign) - speeds)
    assert 0.0 < np.max(error) <= DRIVER.velocity_quantum / 2 * (1 + 1e-9)


def test_stamps_scatter_by_the_jitter_and_stay_in_order() -> None:
    truth = dataclasses.replace(NOMINAL, stamp_jitter=0.002)
    robot = BasePlant(truth, DRIVER, 5)
    offsets = []
    for k in range(1500):
        robot.advance(k * 0.02)
        offsets.append(robot.read().stamp - robot.time)
    assert np.std(offsets) == pytest.approx(0.002, rel=0.1) and abs(np.mean(offsets)) < 2e-4
    assert np.max(np.abs(offsets)) <= 0.008 and np.all(np.diff(offsets) > -0.02)


def test_the_drivers_own_odometry_points_half_a_step_of_turn_too_far() -> None:
    """It adds each step with the heading after it (system 28): wz dt / 2 = 10 mrad at 1 rad/s and 50 Hz."""
    truth = dataclasses.replace(SMOOTH, lateral_factor=1.0, floor_friction=5.0)
    robot = BasePlant(truth, FINE_DRIVER, 0)
    robot.command_twist([0.3, 0.0, 1.0])
    robot.advance(1.0)
    first, start = robot.read().odometry, robot.pose
    for k in range(50):
        robot.advance(1.02 + k * 0.02)
        last = robot.read().odometry
    driver, true = last - first, robot.pose - start
    turned = np.arctan2(driver[1], driver[0]) - np.arctan2(true[1], true[0])
    assert turned == pytest.approx(1.0 * 0.02 / 2, abs=2e-4)
    assert driver[2] == pytest.approx(true[2], abs=1e-9)


def run_of(seed: int) -> list[float]:
    robot = BasePlant(load_truth(seed), DRIVER, seed)
    numbers: list[float] = []
    for k in range(25):
        robot.command_twist([0.2 * np.sin(0.3 * k), 0.1, 0.2])
        robot.advance((k + 1) * 0.02)
        reading = robot.read()
        numbers += [reading.stamp, *robot.pose, *robot.twist, *reading.position, *reading.velocity, *reading.odometry]
    return [float(number) for number in numbers]


def test_equal_seeds_give_equal_bits_and_others_do_not() -> None:
    assert run_of(3) == run_of(3)
    assert run_of(3) != run_of(4)


def test_how_the_time_is_cut_changes_little() -> None:
    whole, cut = BasePlant(SMOOTH, FINE_DRIVER, 0), BasePlant(SMOOTH, FINE_DRIVER, 0)
    for robot in (whole, cut):
        robot.command_twist([0.06, 0.03, 0.15])  # little enough for grip and currents
    whole.advance(0.6)
    for k in range(97):
        cut.advance((k + 1) * 0.6 / 97)
    np.testing.assert_allclose(cut.pose, whole.pose, atol=2e-5)


def test_without_numba_the_twin_moves_alike() -> None:
    np.testing.assert_allclose(numbers_without_numba(run_of, 3), run_of(3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_effective_delay_of_a_base_without_friction_is_dead_time_and_lag(seed: int) -> None:
    truth = load_truth(seed).without_friction().without_noise()
    robot = BasePlant(truth, FINE_DRIVER, seed)
    times = np.arange(0.0, 12.0, 0.02)
    commands = 0.2 * np.sin(0.8 * times) + 0.05 * np.sin(2.3 * times)
    moved = []
    for time, command in zip(times, commands, strict=True):
        robot.advance(float(time))
        moved.append(robot.pose[0])
        robot.command_twist([command, 0.0, 0.0])
    found = effective_delay(times, commands, times, np.array(moved))
    assert found == pytest.approx(truth.dead_time_x + truth.lag, abs=1e-3)


def test_the_torque_wanders_as_the_wheels_roll_with_the_spread_it_is_said_to_have() -> None:
    state = np.zeros(dynamics.state_size(4))
    normals = np.random.default_rng(0).standard_normal((60000, 4))
    truth, ledger = dataclasses.replace(SMOOTH, torque_noise=0.05), np.zeros(dynamics.LEDGER_SIZE)
    straight = np.tile(truth.mecanum().wheel_speeds([0.3, 0.0, 0.0]), (100, 1))
    samples = []
    for part in np.split(normals, 600):
        dynamics.advance(
            dynamics.constants_of(truth), straight, part, np.zeros((100, 4)), dynamics.STEP, True, state, ledger
        )
        samples.append(state[dynamics.of_wheels(dynamics.NOISE, 4)].copy())
    assert np.std(samples[10:]) == pytest.approx(0.05, rel=0.1)


def test_a_base_at_rest_stays_at_rest_with_motors_on_or_off() -> None:
    for powered in (True, False):
        plant = BasePlant(load_truth(1), DRIVER, seed=1)
        plant.switch_motors(powered)
        plant.advance(20.0)
        assert np.array_equal(plant.pose, np.zeros(3))
