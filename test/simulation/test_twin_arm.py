"""The twin's arm against mechanics, its own truth and the quirks of the real driver."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from package_imports import reachable
from plain_python import numbers_without_numba

from youbot_dynamics.dynamics.rigid_body import check_inertia, inertia_about
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import InputError, ParameterError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.arm import STEP, ArmPlant
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.arm._driver import CURRENT_QUANTUM
from youbot_dynamics.simulation.truth import (
    ArmTruth,
    BaseTruth,
    draw_arm_truth,
    load_arm_truth,
    load_truth,
    truth_table,
)

ROBOT = load_robot()
NOMINAL = load_arm_truth(0)
MODEL = NOMINAL.model(ROBOT)
LIMITS = np.array([[limit.lower, limit.upper] for limit in MODEL.tree.limits])
MIDDLE = LIMITS.mean(axis=1)
UPRIGHT = np.array([2.95, 1.13, -2.55, 1.79, 2.92])
AT_JOINT = np.array([motor.ratio * motor.motor.torque_constant for motor in MODEL.motors])
TABLE = {item.name.removeprefix("truth.arm."): item.default for item in truth_table() if ".arm." in item.name}
RAMPS = 2000.0 * 2.0 * np.pi / 60.0 / np.array([motor.ratio for motor in MODEL.motors])


def plant_at(position: object = UPRIGHT, seed: int = 0, **changes: object) -> ArmPlant:
    """Arm of one seed without noise, held at a position."""
    truth = dataclasses.replace(load_arm_truth(seed).without_noise(), **changes)  # type: ignore[arg-type]
    return ArmPlant(truth, ROBOT, seed, position=position)  # type: ignore[arg-type]


def followed(plant: ArmPlant, seconds: float) -> dict[str, np.ndarray]:
    """Time, position, speed, current and reference (t, 5) after each cycle of 1 ms."""
    rows = []
    start = plant.time
    for k in range(round(seconds / STEP)):
        plant.advance(start + (k + 1) * STEP)
        rows.append((np.full(5, plant.time), plant.position, plant.speed, plant.current, plant.reference))
    names = ("time", "position", "speed", "current", "reference")
    return dict(zip(names, np.array(rows).transpose(1, 0, 2), strict=True))


# --- The truth.


def test_the_arm_of_seed_0_is_the_one_of_the_sheets() -> None:
    sheets = ROBOT.arm.model()
    for name in ("masses", "first_moments", "inertias", "rotor_inertias"):
        ours, theirs = getattr(MODEL.tree.layout, name), getattr(sheets.tree.layout, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
    for ours, theirs in zip(MODEL.friction, sheets.friction, strict=True):
        np.testing.assert_allclose(ours.constants, theirs.constants, rtol=1e-12)
    for ours, theirs in zip(MODEL.motors, sheets.motors, strict=True):
        np.testing.assert_allclose(ours.motor.heat_constants, theirs.motor.heat_constants, rtol=1e-12)


def test_each_joint_is_drawn_by_itself_within_its_bounds_and_reproducibly() -> None:
    draws = [load_arm_truth(seed) for seed in range(1, 80)]
    assert load_arm_truth(7) == draws[6] and len(set(draws)) == len(draws)
    for name, (nominal, low, high) in TABLE.items():
        drawn = np.array([getattr(truth, name) for truth in draws])
        assert np.all((drawn >= low) & (drawn <= high)), name
        assert np.all(np.ptp(drawn, axis=0) >= 0.8 * (high - low)), name
        assert np.all(np.array(getattr(NOMINAL, name)) == nominal), name
        if drawn.ndim == 2:
            assert drawn.shape[1] == 5 and (low == high or len(set(drawn[0])) == 5), name


def test_the_stiffness_is_drawn_evenly_over_its_powers_of_ten() -> None:
    exponents = np.log10([load_arm_truth(seed).sliding_travel for seed in range(1, 200)]).ravel()
    shares = np.histogram(exponents, bins=4, range=(-4.0, -2.0))[0] / len(exponents)
    np.testing.assert_allclose(shares, 0.25, atol=0.05)


def test_drawing_an_arm_leaves_the_base_of_a_seed_as_it_always_was() -> None:
    for seed in (1, 7):
        random = np.random.default_rng(seed)
        table = {item.name: item.default for item in truth_table()}
        for field in dataclasses.fields(BaseTruth):
            if not field.metadata:
                continue
            _, low, high = table[f"truth.{field.name}"]  # type: ignore[misc]
            drawn = low + random.random(field.metadata["length"] or 1) * (high - low)
            if not field.name.startswith("servo_"):  # drawn by their own law, last of all
                np.testing.assert_array_equal(getattr(load_truth(seed), field.name), drawn)
    assert load_truth(1).dead_time_x == pytest.approx(0.1779554, abs=1e-7)


def test_bounds_of_the_arm_that_cross_are_refused() -> None:
    table = {item.name: item.default for item in truth_table()}
    with pytest.raises(ParameterError, match=r"truth\.arm\.coulomb: got lowest 2 above highest 1"):
        draw_arm_truth({**table, "truth.arm.coulomb": (1.0, 2.0, 1.0)}, 1)


def test_the_links_of_every_seed_are_bodies_with_the_drawn_masses_and_centres() -> None:
    sheets = ROBOT.arm.model().tree.layout
    for seed in range(1, 100):
        truth = load_arm_truth(seed)
        tree = truth.model(ROBOT).tree
        layout = tree.layout
        masses = sheets.masses * truth.link_mass
        shift = np.column_stack([truth.centre_x, truth.centre_y, truth.centre_z])
        centres = sheets.first_moments / sheets.masses[:, None]
        np.testing.assert_allclose(layout.masses, masses)
        np.testing.assert_allclose(layout.first_moments / layout.masses[:, None], centres + shift, atol=1e-15)
        central = [
            about - inertia_about(np.zeros((3, 3)), mass, centre)
            for about, mass, centre in zip(sheets.inertias, sheets.masses, centres, strict=True)
        ]
        central = np.array(central) * np.array(truth.link_mass)[:, None, None]
        for name, mass, inertia in zip(tree.names, masses, central, strict=True):
            check_inertia(name, float(mass), inertia)
        assert tree.is_written_out
        if seed > 3:
            continue
        placements = np.tile(np.eye(4), (5, 1, 1))
        placements[:, :3, :3], placements[:, :3, 3] = layout.rotations, layout.positions
        axes, moved, rotors = layout.axes, centres + shift, layout.rotor_inertias
        other = Tree.from_arrays(
            range(-1, 4), ["revolute"] * 5, axes, placements, masses, moved, central, rotor_inertias=rotors
        )
        random = np.random.default_rng(seed)
        q, v, tau = random.normal(size=(3, 5))
        expected = other.forward_dynamics(q, v, tau)
        np.testing.assert_allclose(tree.forward_dynamics(q, v, tau), expected, rtol=1e-9, atol=1e-9)


def test_friction_and_motors_of_a_seed_are_the_sheets_times_the_truth() -> None:
    truth = load_arm_truth(4)
    for k, (joint, friction, geared) in enumerate(
        zip(ROBOT.arm.joints, truth.model(ROBOT).friction, truth.model(ROBOT).motors, strict=True)
    ):
        assert friction.coulomb == pytest.approx(joint.friction.coulomb * truth.coulomb[k])
        assert friction.viscous == pytest.approx(joint.friction.viscous * truth.viscous[k])
        assert friction.reach == pytest.approx(truth.sliding_travel[k])
        # Inertia that the nominal sigma1 stands for: 2 x 0.7 sqrt(sigma0 J) - viscous.
        nominal = joint.friction
        inertia = ((nominal.sigma1 + nominal.viscous) / 1.4) ** 2 / nominal.sigma0
        ratio = (friction.sigma1 + friction.viscous) / (2.0 * np.sqrt(friction.sigma0 * inertia))
        assert ratio == pytest.approx(truth.damping_ratio[k])
        motor = geared.motor
        assert motor.torque_constant == pytest.approx(joint.motor.torque_constant * truth.torque_constant[k])
        assert motor.resistance == pytest.approx(joint.motor.resistance * truth.resistance[k])
        assert motor.rotor_inertia == pytest.approx(joint.motor.rotor_inertia * truth.rotor_inertia[k])
        capacity = joint.motor.winding_time_constant / joint.motor.winding_housing_resistance
        assert motor.winding_capacity == pytest.approx(capacity * truth.winding_capacity[k])
        capacity = joint.motor.housing_time_constant / joint.motor.housing_ambient_resistance
        assert motor.housing_capacity == pytest.approx(capacity * truth.housing_capacity[k])
        assert motor.ambient_temperature == truth.ambient_temperature


def test_the_damping_of_soft_bristles_never_turns_negative() -> None:
    soft = dataclasses.replace(
        NOMINAL, coulomb=(0.6,) * 5, viscous=(1.5,) * 5, sliding_travel=(1e-2,) * 5, damping_ratio=(0.3,) * 5
    )
    assert min(friction.sigma1 for friction in soft.model(ROBOT).friction) == 0.0


def test_the_arm_never_sees_what_is_tried_on_it() -> None:
    forbidden = ("estimation", "control", "identification", "nodes", "commands")
    found = reachable("youbot_dynamics.simulation.arm._plant")
    assert "youbot_dynamics.dynamics.arm._step" in found
    assert not [name for name in found if name.split(".")[1:2] and name.split(".")[1] in forbidden]


# --- The arm in motion.


def test_it_holds_its_position_from_the_start_until_told_otherwise() -> None:
    for seed, position in ((0, UPRIGHT), (1, ROBOT.arm.rest_position), (2, [2.9, 2.0, -1.0, 2.5, 1.0])):
        plant = plant_at(position, seed)
        plant.advance(5.0)
        np.testing.assert_allclose(plant.position, position, atol=2e-4)
        np.testing.assert_allclose(plant.speed, 0.0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_it_reaches_a_commanded_position_and_stays_without_hunting(seed: int) -> None:
    plant = plant_at(ROBOT.arm.rest_position, seed)
    plant.command_positions(UPRIGHT)
    plant.advance(8.0)
    tolerance = 50.0 * 2.0 * np.pi / 4000.0 / np.array([motor.ratio for motor in MODEL.motors])
    # What friction holds once the integral waits: within the tolerance but for the last glide.
    assert np.all(np.abs(plant.position - UPRIGHT) < 1.5 * tolerance)
    there = plant.position
    plant.advance(20.0)
    assert np.max(np.abs(plant.position - there)) < 1e-4


def test_a_position_is_approached_within_the_limits_of_the_ramps() -> None:
    plant = plant_at(ROBOT.arm.rest_position, 1)
    plant.command_positions([5.5, 1.1, -2.5, 1.8, 5.5])
    run = followed(plant, 6.0)
    assert np.max(np.abs(np.diff(run["reference"], axis=0))) <= 1.5708 * STEP * (1 + 1e-6)
    bends = np.abs(np.diff(run["reference"], n=2, axis=0)) / STEP**2
    assert np.all(bends <= RAMPS * 1.001)
    np.testing.assert_allclose(np.max(np.abs(run["speed"]), axis=0)[[0, 4]], 1.5708, rtol=0.02)
    # In mid-travel the joints lag their ramps by 1 / gain = 47 ms of it.
    middle = (np.abs(np.diff(run["reference"][:, 0]) / STEP - 1.5708) < 1e-6).nonzero()[0][-200]
    lag = (run["reference"][middle, 0] - run["position"][middle, 0]) / 1.5708
    assert 0.045 < lag < 0.049


def test_commanded_velocities_are_counted_in_revolutions_of_the_motor_a_minute() -> None:
    plant = plant_at(UPRIGHT, 0)
    one = 2.0 * np.pi / 60.0 / np.array([motor.ratio for motor in MODEL.motors])
    plant.command_velocities([10.4, 10.6, -3.3, 0.4, 50.0] * one)
    plant.advance(0.5)
    np.testing.assert_allclose(plant._memory[:, controller.RAMP_SPEED] / one, [10, 11, -3, 0, 50], atol=1e-9)


def test_velocities_are_reached_along_the_ramps_and_cut_at_the_largest() -> None:
    plant = plant_at(UPRIGHT, 2)
    plant.command_velocities([0.5, -0.2, 0.0, 0.3, 9.0])
    run = followed(plant, 1.2)
    np.testing.assert_allclose(run["speed"][-1], [0.5, -0.2, 0.0, 0.3, 1.5708], atol=0.01)
    moving = run["time"][run["speed"][:, 0] > 0.45, 0][0] - plant.truth.command_delay - 0.02
    assert moving > 0.45 / RAMPS[0] - 0.03


def test_a_trajectory_is_followed_and_rests_at_its_end() -> None:
    plant = plant_at(UPRIGHT, 3)
    times = np.linspace(0.5, 4.0, 8)
    swing = 0.4 * np.sin(1.3 * (times - 0.5))[:, None] * np.array([1.0, -0.5, 0.7, 0.8, -1.0])
    rates = 0.4 * 1.3 * np.cos(1.3 * (times - 0.5))[:, None] * np.array([1.0, -0.5, 0.7, 0.8, -1.0])
    bends = -(1.3**2) * swing
    rates[-1], bends[-1] = 0.0, 0.0
    plant.command_trajectory(times, UPRIGHT + swing, rates, bends)
    run = followed(plant, 4.2)
    late = (run["time"][:, 0] > 1.0) & (run["time"][:, 0] < 4.0)
    assert np.max(np.abs(run["position"] - run["reference"])[late]) < 0.02
    plant.advance(7.0)
    np.testing.assert_allclose(plant.position, UPRIGHT + swing[-1], atol=3e-3)
    np.testing.assert_allclose(plant.speed, 0.0, atol=1e-4)


def test_torque_driven_motion_is_that_of_the_model() -> None:
    """What `ArmModel.simulate` tends to in steps of 0.1 ms, while no stop is touched and no current is cut."""
    plant = plant_at(MIDDLE, 5, command_delay=0.0)
    model = plant.model
    time = (np.arange(900) * STEP)[:, None]
    size = np.array([5.0, 3.0, 2.0, 1.0, 0.5])
    torque = model.tree.gravity_forces(MIDDLE) + size * np.sin(2.0 * np.pi * np.array([0.9, 0.7, 1.1, 1.3, 1.7]) * time)
    rows = []
    for k, row in enumerate(torque):
        plant.command_torques(row)
        plant.advance((k + 1) * STEP)
        rows.append([plant.position, plant.speed, plant.winding, plant.housing])
    # A torque command is a current by the sheets' constants; the true motors make of it what they do.
    alone = model.simulate(
        dataclasses.replace(model.at_rest(MIDDLE), winding=np.full(5, plant.truth.ambient_temperature)),
        0.1 * STEP,
        current=np.repeat(torque / AT_JOINT, 10, axis=0),
    )
    found = np.array(rows).transpose(1, 0, 2)
    assert np.all((found[0] > LIMITS[:, 0]) & (found[0] < LIMITS[:, 1]))
    assert np.all(np.max(np.abs(found[0] - MIDDLE), axis=0) > 0.2)
    np.testing.assert_allclose(found[0], alone.position[9::10], rtol=0.0, atol=2e-5)
    np.testing.assert_allclose(found[1], alone.speed[9::10], rtol=0.0, atol=3e-4)
    np.testing.assert_allclose(found[2], alone.winding[9::10], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(found[3], alone.housing[9::10], rtol=0.0, atol=1e-8)


def test_currents_keep_the_limit_of_their_motor_and_of_the_battery() -> None:
    plant = plant_at(MIDDLE, 1)
    limits = np.array([joint.motor.current_limit for joint in ROBOT.arm.joints])
    plant.command_torques([99.0, -99.0, 99.0, -99.0, 99.0])
    run = followed(plant, 0.6)
    assert np.all(np.max(np.abs(run["current"]), axis=0) <= limits * (1 + 1e-12))
    assert np.all(np.abs(run["current"][20, :3]) == limits[:3])
    # Turning free, no motor runs faster than its back-EMF of 24 V.
    true = AT_JOINT * plant.truth.torque_constant
    assert np.all(np.abs(run["speed"]) <= 24.0 / true + 0.5)


def test_with_its_motors_off_it_falls_onto_a_stop_and_no_energy_comes_from_nowhere() -> None:
    plant = plant_at([2.95, 1.6, -2.55, 2.2, 2.92], 1)
    plant.switch_motors(False)
    stored, deepest = [0.0], 0.0
    for k in range(3000):
        plant.advance((k + 1) * STEP)
        stored.append(plant.energy().stored)
        deepest = max(deepest, float(np.max(plant.position - LIMITS[:, 1])))
    balance = plant.energy()
    assert 1e-3 < deepest < 0.03
    assert plant.position[1] == pytest.approx(LIMITS[1, 1], abs=2e-3)
    np.testing.assert_allclose(plant.speed, 0.0, atol=1e-3)
    assert balance.work == 0.0 and balance.stop_heat > 1.0 and balance.friction_heat > 1.0
    assert np.max(np.diff(stored)) < 1e-5  # energy only ever falls, through every blow and bounce
    assert abs(balance.gap) < 1e-5 * (balance.stop_heat + balance.friction_heat)


def test_motors_that_are_switched_on_again_catch_the_arm() -> None:
    plant = plant_at([2.95, 1.6, -2.55, 2.2, 2.92])
    plant.switch_motors(False)
    plant.advance(0.15)
    falling = plant.speed[1]
    assert falling > 0.1 and np.all(plant.current == 0.0)
    plant.switch_motors(True)
    caught = plant.position
    plant.advance(4.0)
    np.testing.assert_allclose(plant.speed, 0.0, atol=1e-5)
    # It brakes and returns to where it was commanded to hold.
    np.testing.assert_allclose(plant.position, caught, atol=2e-3)
    plant.switch_motors(False)
    plant.advance(4.1)
    plant.command_positions(UPRIGHT)
    plant.advance(10.0)
    np.testing.assert_allclose(plant.position, UPRIGHT, atol=2e-3)


def busy(plant: ArmPlant, seconds: int) -> None:
    """Positions, speeds, torques and trajectories in turn, a new one each second."""
    random = np.random.default_rng(3)
    for k in range(seconds):
        near = np.clip(UPRIGHT + random.uniform(-0.5, 0.5, 5), LIMITS[:, 0], LIMITS[:, 1])
        if k % 4 == 0:
            plant.command_positions(near)
        elif k % 4 == 1:
            plant.command_velocities(random.uniform(-0.5, 0.5, 5))
        elif k % 4 == 2:
            plant.command_torques(random.uniform(-1.0, 1.0, 5) * [3.0, 2.0, 1.5, 0.6, 0.3])
        else:
            plant.command_trajectory([0.9], [near], [np.zeros(5)], [np.zeros(5)])
        plant.advance(plant.time + 1.0)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_energy_of_a_busy_minute_balances_to_a_millionth(seed: int) -> None:
    """Work of the motors = heat of friction and stops + what is stored."""
    plant = plant_at(UPRIGHT, seed)
    busy(plant, 60)
    balance = plant.energy()
    assert plant.time == pytest.approx(60.0, abs=1e-9)
    assert balance.work > 50.0 and balance.friction_heat > 50.0 and balance.stop_heat > 10.0
    assert abs(balance.gap) < 3e-7 * balance.work


def test_the_work_in_the_ledger_is_what_the_motors_did() -> None:
    """The balance is closed against the plant's own currents and positions, not only within its ledger."""
    plant = plant_at(UPRIGHT, 4)
    plant.command_positions(UPRIGHT + [0.4, -0.5, 0.6, -0.5, 0.8])
    before = plant.position
    run = followed(plant, 2.0)
    moved = np.diff(np.vstack([before, run["position"]]), axis=0)
    work = np.sum(run["current"] * moved * AT_JOINT * plant.truth.torque_constant)
    assert plant.energy().work == pytest.approx(work, rel=1e-12)
    assert work > 1.0


def test_windings_warm_as_the_motors_alone_would_with_these_currents() -> None:
    plant = plant_at([2.95, 2.0, -1.5, 1.79, 2.92], 6)
    run = followed(plant, 2.0)
    for k, geared in enumerate(plant.model.motors):
        ambient = plant.truth.ambient_temperature
        alone = geared.motor.heat_history(ambient, ambient, run["current"][:, k], STEP)
        np.testing.assert_allclose(plant.winding[k], alone[-1, 0], rtol=1e-10)
        np.testing.assert_allclose(plant.housing[k], alone[-1, 1], rtol=1e-10)
    assert np.max(plant.winding) > plant.truth.ambient_temperature + 0.05


def test_loops_and_straight_line_code_move_the_twin_alike() -> None:
    one, other = plant_at(UPRIGHT, 2), plant_at(UPRIGHT, 2)
    mover = other._mover
    other._mover = mover._replace(body=mover.body._replace(layout=other.model.tree.layout))
    for plant in (one, other):
        plant.command_positions(UPRIGHT + 0.2)
        plant.advance(0.5)
    np.testing.assert_allclose(one.position, other.position, atol=1e-9)
    assert np.max(np.abs(one.speed)) > 0.1


# --- Commands and their delays.


def first_motion(plant: ArmPlant, before: np.ndarray) -> float:
    """Time at which the current first differs from the one that held the arm."""
    for _ in range(200):
        plant.advance(plant.time + STEP * 1.000001)
        if not np.allclose(plant.current, before, atol=1e-9):
            return plant.time - STEP
    raise AssertionError("no motion")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_torque_answers_after_the_delay_drawn_and_other_commands_after_the_next_loop(seed: int) -> None:
    truth = load_arm_truth(seed)
    for sent in (0.1, 0.1173):
        plant = plant_at(UPRIGHT, seed)
        plant.advance(sent)
        plant.command_torques([1.0, 1.0, 1.0, 1.0, 1.0], sent)
        late = first_motion(plant, plant.current) - sent
        assert 0.0 <= late - truth.command_delay < 1.001 * STEP
        plant = plant_at(UPRIGHT, seed)
        plant.advance(sent)
        plant.command_velocities([0.5] * 5, sent)
        late = first_motion(plant, plant.current) - sent
        wait = (truth.loop_phase - sent) % 0.02
        assert 0.0 <= late - truth.command_delay - wait < 1.001 * STEP


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_encoder_first_tells_of_a_torque_7_to_16_ms_after_it(seed: int) -> None:
    """What the logs of the H-BRS thesis show; the current answers some 2 ms before."""
    plant = plant_at(UPRIGHT, seed)
    plant.advance(0.1)
    plant.command_torques([0.0, 0.0, 0.0, 0.0, 0.5])
    before, tick = plant.position, 2.0 * np.pi / 4000.0 / 71.0
    while abs(plant.position[4] - before[4]) < tick and plant.time < 0.2:
        plant.advance(plant.time + STEP)
    late = plant.time - 0.1
    assert 6.5e-3 < late < 17.5e-3
    assert 0.9e-3 < late - plant.truth.command_delay < 6e-3


def test_commands_keep_their_order_and_their_times() -> None:
    plant = plant_at(UPRIGHT, 0, command_delay=0.01, loop_phase=0.0)
    plant.command_positions(UPRIGHT + 0.1, 0.001)  # waits for the loop at 0.020
    plant.command_torques(np.full(5, 0.2), 0.002)  # would overtake it
    plant.command_torques(np.zeros(5), 0.5)
    plant.advance(0.0295)
    assert not np.any(plant.current == 0.2 / AT_JOINT)
    plant.advance(0.2)
    np.testing.assert_allclose(plant.current, 0.2 / AT_JOINT)
    plant.advance(0.52)
    np.testing.assert_array_equal(plant.current, 0.0)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (lambda p: p.command_positions([0.1, 0.1, 0.1, 0.1, 0.1]), r"position\[2\]: got 0.1; expected -5.18363 to 0 "),
        (lambda p: p.command_positions([0.1] * 4), r"position: got shape \(4,\)"),
        (lambda p: p.command_velocities([0.0, np.nan, 0.0, 0.0, 0.0]), r"velocity\[1\]: got nan"),
        (lambda p: p.command_torques(np.full(5, np.inf)), r"torque\[0\]: got inf"),
        (lambda p: p.command_trajectory([1.0], [[9.0, 1.0, -1.0, 1.0, 1.0]]), r"positions\[0\]\[0\]: got 9"),
        (lambda p: p.command_trajectory([1.0], [[1.0, 1.0]]), r"positions\[0\]: got shape \(2,\)"),
        (lambda p: p.command_torques(np.zeros(5), np.nan), "time"),
    ],
)
def test_a_command_the_driver_would_refuse_changes_nothing(command: object, words: str) -> None:
    plant = plant_at()
    with pytest.raises(InputError, match=words):
        command(plant)  # type: ignore[operator]
    plant.advance(0.5)
    np.testing.assert_allclose(plant.position, UPRIGHT, atol=1e-4)


# --- What the driver reports.


def test_a_reading_has_five_joints_and_two_still_fingers_in_steps_of_the_driver() -> None:
    plant = plant_at(UPRIGHT, 1)
    plant.command_velocities([0.3, 0.1, -0.2, 0.25, 0.4])
    plant.advance(0.4)
    reading = plant.read()
    positions, speeds = ROBOT.arm_quanta()
    for values in (reading.position, reading.velocity, reading.effort):
        assert values.shape == (7,) and np.all(values[5:] == 0.0)
    for values, quanta in ((reading.position, positions), (reading.velocity, speeds)):
        np.testing.assert_allclose(values[:5] / quanta, np.rint(values[:5] / quanta), atol=1e-6)
    assert np.all(np.abs(reading.position[:5] - plant.position) <= 0.5 * positions * (1 + 1e-9))
    counts = reading.effort[:5] / AT_JOINT / CURRENT_QUANTUM
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    assert np.all(np.abs(reading.effort[:5] / AT_JOINT - plant.current) <= 0.5 * CURRENT_QUANTUM * (1 + 1e-9))
    np.testing.assert_allclose(speeds, [0.010069, 0.010069, 0.015708, 0.022124, 0.022124], rtol=1e-4)
    assert reading.stamp == plant.time


def test_reported_speeds_come_10_ms_late() -> None:
    """While a joint speeds up evenly, a first-order lag is behind by acceleration x time constant."""
    fine = dataclasses.replace(ROBOT, driver=dataclasses.replace(ROBOT.driver, motor_velocity_quantum=0.0))
    plant = ArmPlant(NOMINAL.without_noise(), fine, 0, position=UPRIGHT)
    plant.command_velocities([1.0, 0.0, 0.0, 0.0, 0.0])
    plant.advance(0.6)
    rows = []
    for k in range(100):
        plant.advance(0.6 + (k + 1) * STEP)
        rows.append((plant.speed[0], plant.read().velocity[0]))
    true, reported = np.array(rows).T
    acceleration = np.polyfit(np.arange(100) * STEP, true, 1)[0]
    assert acceleration == pytest.approx(RAMPS[0], rel=0.05)
    assert np.mean(true - reported) / acceleration == pytest.approx(0.010, rel=0.06)


def test_stamps_and_efforts_scatter_as_drawn_and_stamps_stay_in_order() -> None:
    truth = load_arm_truth(2)
    plant = ArmPlant(truth, ROBOT, 2, position=UPRIGHT)
    readings, times = [], []
    for k in range(1, 1500):
        plant.advance(k * 0.02)
        readings.append(plant.read())
        times.append(plant.time)
    stamps = np.array([reading.stamp for reading in readings])
    assert np.std(stamps - times) == pytest.approx(truth.stamp_jitter, rel=0.1)
    assert np.max(np.abs(stamps - times)) <= 4.0 * truth.stamp_jitter and np.all(np.diff(stamps) > 0.0)
    efforts = np.array([reading.effort[:5] for reading in readings])
    quantum = CURRENT_QUANTUM * AT_JOINT
    np.testing.assert_allclose(np.std(efforts, axis=0), np.hypot(truth.effort_noise, quantum / 12**0.5), rtol=0.1)
    np.testing.assert_allclose(efforts.mean(axis=0), plant.current * AT_JOINT, atol=3e-3)


def test_an_effort_is_off_by_the_torque_constant_the_driver_does_not_know() -> None:
    plant = plant_at([2.95, 1.8, -2.0, 2.2, 2.92], 3, effort_noise=0.0)
    plant.advance(1.0)
    true = plant.current * AT_JOINT * plant.truth.torque_constant
    ratio = true[1:3] / plant.read().effort[1:3]
    np.testing.assert_allclose(ratio, plant.truth.torque_constant[1:3], rtol=5e-3)


def test_voltages_and_temperatures_of_a_robot_that_measures_them() -> None:
    plant = plant_at(UPRIGHT, 1)
    plant.command_velocities([0.4, 0.1, -0.2, 0.3, 0.6])
    plant.advance(0.7)
    for k, geared in enumerate(plant.model.motors):
        motor, speed = geared.motor, geared.motor_speed(plant.speed[k])
        current = motor.observe((speed, plant.winding[k], plant.housing[k]), plant.read_voltages().voltage[k]).current
        assert current == pytest.approx(plant.current[k], abs=1e-9)
    warm = plant.read_temperatures()
    np.testing.assert_array_equal(warm.winding, plant.winding)
    np.testing.assert_array_equal(warm.housing, plant.housing)
    noisy = ArmPlant(load_arm_truth(1), ROBOT, 1)
    found = np.array([noisy.read_temperatures().winding for _ in range(400)])
    np.testing.assert_allclose(found.std(axis=0), noisy.truth.temperature_noise, rtol=0.15)
    found = np.array([noisy.read_voltages().voltage for _ in range(400)])
    np.testing.assert_allclose(found.std(axis=0), noisy.truth.voltage_noise, rtol=0.15)


@pytest.mark.parametrize("seed", [0, 5])
def test_slow_turns_to_and_fro_show_the_friction_that_was_drawn(seed: int) -> None:
    """Half the difference of the efforts of both directions: Coulomb + viscous x speed, but for the torque constant."""
    truth = load_arm_truth(seed)
    speed = 0.2
    plant = ArmPlant(truth, ROBOT, seed, position=UPRIGHT)
    means = []
    for direction in (1.0, -1.0):
        plant.command_velocities([0.0, 0.0, 0.0, 0.0, direction * speed])
        plant.advance(plant.time + 1.0)
        efforts = []
        for _ in range(100):
            plant.advance(plant.time + 0.02)
            efforts.append(plant.read().effort[4])
        means.append(np.mean(efforts))
    friction = plant.model.friction[4]
    expected = (friction.coulomb + friction.viscous * speed) / truth.torque_constant[4]
    assert 0.5 * (means[0] - means[1]) == pytest.approx(expected, abs=0.006)


# --- Reproducible.


def run_of(seed: int, cut: float = 0.02, extra: bool = False, start: float = 0.0) -> list[float]:
    """Numbers of a short run; `cut` is how long each call of advance is [s]."""
    plant = ArmPlant(load_arm_truth(seed), ROBOT, seed, start=start, position=UPRIGHT)
    plant.command_positions(UPRIGHT + 0.3, start + 0.01)
    plant.command_torques([0.5, 0.2, 0.1, 0.1, 0.1], start + 0.15)
    numbers: list[float] = []
    for k in range(10):
        for part in range(round(0.02 / cut)):
            plant.advance(start + k * 0.02 + (part + 1) * cut)
        if extra:
            plant.read_voltages(), plant.read_temperatures()
        reading = plant.read()
        numbers += [reading.stamp, *plant.position, *plant.speed, *plant.winding]
        numbers += [*reading.position, *reading.velocity, *reading.effort]
    return [float(number) for number in numbers]


def test_equal_seeds_give_equal_bits_and_others_do_not() -> None:
    assert run_of(3) == run_of(3)
    assert run_of(3) != run_of(4)


def test_neither_how_time_is_cut_nor_what_else_is_read_changes_a_bit() -> None:
    assert run_of(3) == run_of(3, cut=0.001)
    assert run_of(3) == run_of(3, cut=0.004, extra=True)


def test_time_runs_in_whole_cycles_from_any_start() -> None:
    plant = ArmPlant(NOMINAL, ROBOT, 0, start=123456.7)
    for k in range(1, 300):
        requested = 123456.7 + 0.0037 * k
        plant.advance(requested)
        assert 0.0 <= requested - plant.time + 1e-8 < STEP + 2e-8
    plant.advance(0.0)  # the past is past
    assert plant.time > 123456.7


def test_without_numba_the_arm_moves_alike() -> None:
    plain = numbers_without_numba(run_of, 3)
    ours = run_of(3)
    quanta = [1e-9] * len(ours)
    # A last digit may tip a quantised number over its edge.
    assert np.mean(np.abs(np.subtract(plain, ours)) > quanta) < 0.02
    np.testing.assert_allclose(plain, ours, atol=0.03)


def test_a_truth_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        NOMINAL.ambient_temperature = 20.0  # type: ignore[misc]
    assert isinstance(hash(NOMINAL), int) and isinstance(NOMINAL, ArmTruth)
