"""The arm in motion: laws of mechanics and heat, an independent integrator, and what must be refused."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from youbot_dynamics.dynamics.arm import (
    DONE,
    ROW,
    ArmModel,
    ArmState,
    arm_body,
    arm_step,
    arm_tree,
    step_work,
)
from youbot_dynamics.dynamics.arm import _advance as arm_advance
from youbot_dynamics.dynamics.arm import _step as step_of_arm
from youbot_dynamics.dynamics.arm._model import ArmMotion
from youbot_dynamics.dynamics.arm._stops import stop_torque
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import load_robot

DT = 1e-3
MODEL = load_robot().arm.model()
MIDDLE = np.array([0.5 * (limits.lower + limits.upper) for limits in MODEL.tree.limits])
AT_JOINT = np.array([motor.ratio * motor.motor.torque_constant for motor in MODEL.motors])
STIFFNESS = np.array([friction.sigma0 for friction in MODEL.friction])


def swinging(steps: int, dt: float = DT) -> np.ndarray:
    """Torques that move every joint to and fro, about those that carry the arm in its middle."""
    time = (np.arange(steps) * dt)[:, None]
    size = np.array([5.0, 4.0, 2.0, 1.0, 0.6])
    return MODEL.tree.gravity_forces(MIDDLE) + size * np.sin(2.0 * np.pi * np.array([0.9, 0.7, 1.1, 1.3, 1.7]) * time)


def mean_speeds(start: ArmState, motion: ArmMotion) -> np.ndarray:
    speeds = np.vstack([start.speed, motion.speed])
    return 0.5 * (speeds[1:] + speeds[:-1])


def with_frictions(*, stiffer: float = 1.0, stribeck: bool = False, viscous: float = 1.0) -> ArmModel:
    """The arm with other friction constants."""
    frictions = tuple(
        LuGre(
            friction.coulomb,
            viscous * friction.viscous,
            stiffer * friction.sigma0,
            0.0 if stribeck else friction.sigma1,
            1.3 * friction.coulomb if stribeck else None,
            0.05 if stribeck else None,
        )
        for friction in MODEL.friction
    )
    return dataclasses.replace(MODEL, friction=frictions)


def test_the_arm_of_the_robot_runs_on_the_shipped_straight_line_code() -> None:
    assert MODEL.tree.is_written_out
    assert MODEL.tree.names == tuple(f"arm_link_{k}" for k in range(1, 6))
    assert MODEL.tree.joint_names == tuple(f"arm_joint_{k}" for k in range(1, 6))
    np.testing.assert_allclose(MODEL.tree.layout.rotor_inertias, [m.reflected_inertia for m in MODEL.motors])


def test_loops_and_straight_line_code_move_the_arm_alike() -> None:
    tilted = dataclasses.replace(MODEL, tree=arm_tree(MODEL.tree.layout.rotor_inertias, gravity=(1e-13, 0.0, -9.81)))
    assert not tilted.tree.is_written_out
    start = MODEL.at_rest(MIDDLE)
    one, other = (model.simulate(start, DT, torque=swinging(500)) for model in (MODEL, tilted))
    np.testing.assert_allclose(one.position, other.position, atol=1e-9)
    np.testing.assert_allclose(one.speed, other.speed, atol=1e-8)


def test_inverse_dynamics_with_friction_gives_back_the_accelerations() -> None:
    """q'' = M^-1 (tau - bias - tau_f): with tau of the inverse dynamics plus tau_f it returns q'' (system 7)."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = dataclasses.replace(
            MODEL.at_rest(rng.uniform(-1.0, 1.0, 5)), speed=rng.normal(size=5), bristle=rng.uniform(-1e-3, 1e-3, 5)
        )
        wanted = rng.normal(size=5)
        bodies = MODEL.tree.inverse_dynamics(state.position, state.speed, wanted)
        found = MODEL.acceleration(state, bodies + MODEL.friction_torque(state))
        np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_d_001_1_with_tau_d_the_friction_counts_twice() -> None:
    """Printed (3): B^-1 (tau_d - NL - tau_f), but by (1) and (2) tau_d = B q'' + NL is already free of friction."""
    state = dataclasses.replace(MODEL.at_rest(MIDDLE), speed=np.full(5, 0.5), bristle=np.full(5, 8e-4))
    wanted = np.zeros(5)
    tau_d = MODEL.tree.inverse_dynamics(state.position, state.speed, wanted)
    friction = MODEL.friction_torque(state)
    bias = MODEL.tree.bias_forces(state.position, state.speed)
    printed = np.linalg.solve(MODEL.tree.mass_matrix(state.position), tau_d - bias - friction)
    lost = np.linalg.solve(MODEL.tree.mass_matrix(state.position), friction)
    np.testing.assert_allclose(printed - wanted, -lost, atol=1e-10)
    assert np.max(np.abs(printed - wanted)) > 3.0  # rad/s2 at a speed that should stay
    np.testing.assert_allclose(MODEL.acceleration(state, tau_d + friction), wanted, atol=1e-10)


def test_work_friction_and_energy_balance_over_a_minute() -> None:
    """Work of the motors = heat of the friction + change of energy, to a millionth of the work done."""
    start = MODEL.at_rest(MIDDLE)
    motion = MODEL.simulate(start, DT, torque=swinging(60_000))
    speeds = mean_speeds(start, motion)
    work, turned_over = DT * np.sum(motion.motor_torque * speeds), DT * np.sum(np.abs(motion.motor_torque * speeds))
    # What the friction takes in: into its bristles, which give it back, and into heat.
    taken = DT * np.sum(motion.friction_torque * speeds)
    stored = 0.5 * STIFFNESS @ (motion.end.bristle**2 - start.bristle**2)
    gained = MODEL.energy(motion.end) - MODEL.energy(start) - stored
    assert turned_over > 50.0
    assert abs(work - taken - gained) < 1e-6 * turned_over


def test_steps_converge_with_the_square_of_their_length() -> None:
    start, torque = MODEL.at_rest(MIDDLE), swinging(250, 4e-3)
    paths = {
        parts: MODEL.simulate(start, 4e-3 / parts, torque=np.repeat(torque, parts, axis=0)).position[parts - 1 :: parts]
        for parts in (1, 2, 4, 64)
    }
    errors = [np.sqrt(np.mean((paths[parts] - paths[64]) ** 2)) for parts in (1, 2, 4)]
    assert errors[0] < 1e-4 and errors[0] / errors[1] > 3.5 and errors[1] / errors[2] > 3.5


def test_an_implicit_integrator_of_scipy_finds_the_same_motion() -> None:
    """Radau on q, v, z as a stiff ODE; the torque is held over 10 ms."""
    start, torque, held = MODEL.at_rest(MIDDLE), swinging(30, 1e-2), 10
    frictions = MODEL.friction

    def rates(_: float, y: np.ndarray, tau: np.ndarray) -> np.ndarray:
        q, v, z = y.reshape(3, 5)
        resisting = np.array([f.torque(float(a), float(b)) for f, a, b in zip(frictions, z, v, strict=True)])
        sliding = [f.rate(float(a), float(b)) for f, a, b in zip(frictions, z, v, strict=True)]
        return np.concatenate([v, MODEL.tree.forward_dynamics(q, v, tau - resisting), sliding])

    y = np.concatenate([start.position, start.speed, start.bristle])
    for tau in torque:
        y = solve_ivp(rates, (0.0, 1e-2), y, args=(tau,), method="Radau", rtol=1e-8, atol=1e-11).y[:, -1]
    motion = MODEL.simulate(start, 1e-2 / held, torque=np.repeat(torque, held, axis=0))
    travelled = np.max(np.abs(y[:5] - start.position))
    assert travelled > 0.02
    np.testing.assert_allclose(motion.end.position, y[:5], atol=1e-4 * travelled)
    np.testing.assert_allclose(motion.end.speed, y[5:10], atol=2e-4)
    np.testing.assert_allclose(motion.end.bristle, y[10:], atol=2e-7)


@pytest.mark.parametrize("stiffer", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("drive", ["torque", "current", "voltage"])
def test_a_step_of_1_ms_is_stable(drive: str, stiffer: float) -> None:
    """However stiff the bristles, and with a back-EMF that damps a bare link within microseconds."""
    model = with_frictions(stiffer=stiffer)
    torque = swinging(3000)
    resistance = np.array([motor.motor.resistance for motor in model.motors])
    drives = {"torque": torque, "current": torque / AT_JOINT, "voltage": torque / AT_JOINT * resistance}
    motion = model.simulate(model.at_rest(MIDDLE), DT, **{drive: drives[drive]})
    assert np.all(np.isfinite(motion.position)) and np.max(np.abs(motion.speed)) < 20.0
    # No ringing from step to step: what a step changes is small against what it moves.
    jumps = np.abs(np.diff(motion.speed, n=2, axis=0)).max(axis=0)
    assert np.all(jumps < 0.2 * np.abs(motion.speed).max(axis=0))


@pytest.mark.parametrize("dt", [1e-4, 1e-3, 2e-3, 5e-3])
@pytest.mark.parametrize("sigma0", [250.0, 1e4, 1e5, 3e5, 1e6])
def test_every_step_is_solved_whatever_the_stiffness_and_the_length(sigma0: float, dt: float) -> None:
    """Newton's equation at the middle of each step, put together anew from the states alone.

    Twelve plain iterations of Newton's method left up to 1.25 N m of it open at 1e6 N m/rad.
    """
    steps = 400
    drives = np.zeros((steps, 5))
    drives[: steps // 2] = np.random.default_rng(3).uniform(-1.0, 1.0, (steps // 2, 5)) * [12.0, 12.0, 8.0, 4.0, 1.7]
    for damping in (0.0, 1.0):
        frictions = [LuGre(f.coulomb, f.viscous, sigma0, damping * f.sigma1) for f in MODEL.friction]
        model = dataclasses.replace(MODEL, friction=tuple(frictions))
        start = model.at_rest([2.9, 1.9, -2.0, 2.0, 2.9])
        motion = model.simulate(start, dt, torque=drives)
        q, v, z = (
            np.vstack([getattr(start, name), getattr(motion, name)]) for name in ("position", "speed", "bristle")
        )
        mean_speed, sigma1, viscous = (
            0.5 * (v[1:] + v[:-1]),
            damping * np.array([f.sigma1 for f in MODEL.friction]),
            np.array([f.viscous for f in MODEL.friction]),
        )
        friction = 0.5 * sigma0 * (z[1:] + z[:-1]) + sigma1 * np.diff(z, axis=0) / dt + viscous * mean_speed
        needed = model.tree.inverse_dynamics(q[:-1] + 0.5 * dt * v[:-1], mean_speed, np.diff(v, axis=0) / dt)
        np.testing.assert_allclose(needed + friction, drives, atol=1e-5)
        np.testing.assert_allclose(motion.friction_torque, friction, atol=1e-5)
        for k, law in enumerate(frictions):
            np.testing.assert_allclose(law.advance(z[:-1, k], v[:-1, k], v[1:, k], dt), z[1:, k], atol=1e-12)


def test_a_step_into_end_stops_is_solved_however_stiff_the_bristles() -> None:
    """With the bodies halfway; the torques of the stops turn the strides as those of the friction do."""
    random, n = np.random.default_rng(4), 5
    frictions = [LuGre(f.coulomb, f.viscous, 1e6, f.sigma1) for f in MODEL.friction]
    stops = np.column_stack([MIDDLE - 1e-3, MIDDLE + 1e-3, np.full(n, 2e5), np.ones(n)])
    body = arm_body(MODEL.tree, np.array([law.constants for law in frictions]), stops)
    work = step_work(body)
    for _ in range(200):
        table = work.table
        q, v, drive = MIDDLE + random.uniform(-2e-3, 2e-3, n), random.uniform(-2.0, 2.0, n), random.normal(size=n)
        table[ROW.position], table[ROW.speed], table[ROW.bristle], table[ROW.acceleration] = q, v, 0.0, 0.0
        table[ROW.drive] = drive
        assert arm_step(body.layout, body.joints, body.halfway, 0, 0.0, True, DT, False, work) == DONE
        a = table[ROW.acceleration]
        moved = DT * (v + 0.5 * DT * a)
        after = np.array([law.advance(0.0, v[i], v[i] + DT * a[i], DT) for i, law in enumerate(frictions)])
        sigma1, viscous = (np.array([getattr(law, name) for law in frictions]) for name in ("sigma1", "viscous"))
        friction = 0.5e6 * after + sigma1 * after / DT + viscous * moved / DT
        stopping = np.array([stop_torque(q[i], moved[i], DT, stops[i])[0] for i in range(n)])
        needed = MODEL.tree.inverse_dynamics(q + 0.5 * moved, moved / DT, a)
        np.testing.assert_allclose(needed + friction - stopping, drive, atol=1e-4)


@pytest.mark.parametrize("halfway", [False, True])
def test_plain_iterations_and_line_search_solve_a_step_alike_by_straight_line_code_and_by_loops(halfway: bool) -> None:
    """With no plain iteration allowed, a step is left to the line search."""
    random = np.random.default_rng(6)
    body = MODEL.body._replace(halfway=halfway)
    assert body.layout is None
    for _ in range(20):
        q, v, drive = MIDDLE + random.uniform(-1.0, 1.0, 5), random.normal(size=5), 3.0 * random.normal(size=5)
        found = []
        for layout in (None, MODEL.tree.layout):
            for iterations in (20, 0):
                work = step_work(body._replace(layout=layout))
                table = work.table
                table[ROW.position], table[ROW.speed], table[ROW.drive] = q, v, drive
                constants = iterations, 1e-10, iterations == 0, 5e-3, True
                assert arm_step(layout, body.joints, halfway, *constants, work) == DONE
                found.append(np.concatenate([table[ROW.acceleration], table[ROW.friction], work.derivatives.ravel()]))
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-6, atol=1e-6)


def test_a_step_that_is_not_solved_is_reported_and_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm_advance, "_PLAIN_ITERATIONS", 1)
    monkeypatch.setattr(step_of_arm, "_ITERATIONS", 1)
    for name in ("arm_step", "advance"):
        function = getattr(arm_advance, name)
        monkeypatch.setattr(arm_advance, name, getattr(function, "py_func", function))
    drive = np.zeros((50, 5))
    with pytest.raises(InputError, match=r"current \[\d+\]: got a step that did not converge; .* shorten the step"):
        MODEL.simulate(MODEL.at_rest(MIDDLE), DT, current=drive)


def test_bristles_no_step_resolves_cost_accuracy_that_shorter_steps_give_back() -> None:
    """1e5 N m/rad, a second of swinging 1.9 rad wide: off by 1.5 mrad at 1 ms, by 0.02 mrad at 0.25 ms."""
    frictions = tuple(LuGre(f.coulomb, f.viscous, 1e5, f.sigma1) for f in MODEL.friction)
    model, held, torque = dataclasses.replace(MODEL, friction=frictions), 4e-3, swinging(250, 4e-3)
    paths = {
        parts: model.simulate(model.at_rest(MIDDLE), held / parts, torque=np.repeat(torque, parts, axis=0)).position[
            parts - 1 :: parts
        ]
        for parts in (4, 16, 64)
    }
    assert np.max(np.abs(paths[4] - paths[64])) < 3e-3
    assert np.max(np.abs(paths[16] - paths[64])) < 1e-4


def test_without_rotor_inertia_an_explicit_step_with_back_emf_explodes() -> None:
    """Why the rotors stand on the diagonal of the mass matrix: N^2 K^2 / R acts on 1e-4 kg m2 at the last joint."""
    bare = arm_tree()
    damping = np.array([(m.ratio * m.motor.torque_constant) ** 2 / m.motor.resistance for m in MODEL.motors])

    def largest_speed(tree: object) -> float:
        q, v = MIDDLE.copy(), np.full(5, 1e-3)
        for _ in range(40):
            v = v + DT * tree.forward_dynamics(q, v, tree.gravity_forces(q) - damping * v)  # type: ignore[attr-defined]
            if not np.max(np.abs(v)) < 1e6:
                return np.inf
        return float(np.max(np.abs(v)))

    assert largest_speed(bare) == np.inf
    assert largest_speed(MODEL.tree) < 1e-3


def test_bristles_hold_the_arm_against_gravity() -> None:
    """Torques off by less than the Coulomb level move nothing but the bristles."""
    coulomb = np.array([friction.coulomb for friction in MODEL.friction])
    torque = MODEL.tree.gravity_forces(MIDDLE) + 0.8 * coulomb * [1, -1, 1, -1, 1]
    motion = MODEL.simulate(MODEL.at_rest(MIDDLE), DT, torque=np.tile(torque, (3000, 1)))
    np.testing.assert_allclose(motion.end.speed, 0.0, atol=1e-6)
    assert np.max(np.abs(motion.end.position - MIDDLE)) < 3e-3
    np.testing.assert_allclose(STIFFNESS * motion.end.bristle, 0.8 * coulomb * [1, -1, 1, -1, 1], rtol=0.05)
    moving = MODEL.tree.gravity_forces(MIDDLE) + 1.5 * coulomb
    assert np.all(MODEL.simulate(MODEL.at_rest(MIDDLE), DT, torque=np.tile(moving, (300, 1))).end.speed > 1e-3)


def test_friction_takes_energy_and_never_gives_more_than_the_bristles_hold() -> None:
    for model in (MODEL, with_frictions(stribeck=True, viscous=1.0)):
        start = model.at_rest(MIDDLE)
        motion = model.simulate(start, DT, torque=swinging(4000))
        heat = DT * np.cumsum(np.sum(motion.friction_torque * mean_speeds(start, motion), axis=1))
        heat -= 0.5 * np.sum(STIFFNESS * motion.bristle**2, axis=1)
        assert np.min(np.diff(heat)) > -1e-6 * heat[-1]


def test_a_current_heats_the_windings_as_the_motor_alone() -> None:
    current = np.tile(0.4 * np.array([2.47, 2.47, 2.47, 1.07, 0.49]), (2000, 1))
    motion = MODEL.simulate(MODEL.at_rest(MIDDLE), DT, current=current)
    for k, geared in enumerate(MODEL.motors):
        alone = geared.motor.heat_history(25.0, 25.0, current[:, k], DT)
        np.testing.assert_allclose(motion.winding[:, k], alone[:, 0], rtol=1e-12)
        np.testing.assert_allclose(motion.housing[:, k], alone[:, 1], rtol=1e-12)
    np.testing.assert_allclose(motion.motor_torque, current * AT_JOINT, rtol=1e-12)
    assert np.all(np.diff(motion.winding, axis=0) > 0.0)


def test_a_warm_winding_takes_less_current_from_a_voltage() -> None:
    voltage = np.tile([6.0, 6.0, 6.0, 6.0, 6.0], (5, 1))
    cold, warm = (
        MODEL.simulate(MODEL.at_rest(MIDDLE, degrees), DT, voltage=voltage).current[0] for degrees in (25.0, 100.0)
    )
    np.testing.assert_allclose(cold / warm, 1.0 + 0.00393 * 75.0, rtol=0.02)


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ({"efficiency": 0.7}, "efficiency of the gear of arm_joint_3: got 0.7; expected 1 in an arm"),
        ({"rotor_friction": 1e-6}, r"rotor_friction of the motor of arm_joint_3: .* add N\^2 D = 0\.01 N m s/rad"),
    ],
)
def test_a_motor_with_losses_of_its_own_is_refused_not_ignored(losses: dict[str, float], words: str) -> None:
    """Losses of gear and rotor are in the friction of the joint: a gear's would chatter about standstill."""
    motors = list(MODEL.motors)
    if "efficiency" in losses:
        motors[2] = dataclasses.replace(motors[2], **losses)
    else:
        motors[2] = dataclasses.replace(motors[2], motor=dataclasses.replace(motors[2].motor, **losses))
    with pytest.raises(ModelError, match=words):
        dataclasses.replace(MODEL, motors=tuple(motors))


def test_a_bristle_beyond_its_reach_is_refused_and_one_at_its_end_is_not() -> None:
    start, reach = MODEL.at_rest(MIDDLE), np.array([friction.reach for friction in MODEL.friction])
    at_end = dataclasses.replace(start, bristle=-reach)
    MODEL.step(at_end, DT, current=np.zeros(5))
    beyond = dataclasses.replace(start, bristle=reach * [1.0, -1.001, 1.0, 1.0, 1.0])
    with pytest.raises(InputError, match=r"bristle of arm_joint_2: got -0\.001001; expected at most its reach 0\.001"):
        MODEL.step(beyond, DT, current=np.zeros(5))
    sliding = MODEL.simulate(start, DT, voltage=np.full((400, 5), 24.0)).end
    assert np.max(np.abs(sliding.bristle) / reach) > 0.999
    MODEL.step(sliding, DT, current=np.zeros(5))


def test_a_winding_too_cold_for_its_resistance_is_refused_at_once_and_on_the_way() -> None:
    """R(T) = 0 at -229.45 degC; below, a voltage would drive the motor by its back-EMF without limit."""
    rest = MODEL.at_rest(MIDDLE)
    cold = dataclasses.replace(rest, winding=np.array([25.0, 25.0, 25.0, -300.0, 25.0]))
    with pytest.raises(ModelError, match="arm_joint_4, winding temperature -300 degC: got resistance"):
        MODEL.step(cold, DT, voltage=np.zeros(5))
    cooling = MODEL.at_rest(MIDDLE, -229.4)
    cooling = dataclasses.replace(cooling, housing=np.full(5, -273.0))
    MODEL.step(cooling, DT, current=np.zeros(5))
    with pytest.raises(ModelError, match=r"winding at current \[\d+\]: got a resistance that is not positive"):
        MODEL.simulate(cooling, DT, current=np.zeros((100, 5)))


def test_a_single_step_is_a_row_of_a_simulation_and_changes_nothing_it_was_given() -> None:
    torque = swinging(50)
    start = MODEL.at_rest(MIDDLE)
    state = start
    for row in torque:
        state = MODEL.step(state, DT, torque=row)
    end = MODEL.simulate(start, DT, torque=torque).end
    for name in ("position", "speed", "bristle", "winding", "housing"):
        np.testing.assert_allclose(getattr(state, name), getattr(end, name), rtol=1e-9, atol=1e-12)
        assert not getattr(end, name).flags.writeable
    np.testing.assert_array_equal(start.position, MIDDLE)
    np.testing.assert_array_equal(start.speed, 0.0)


def test_two_simulations_are_equal_to_the_bit() -> None:
    one, two = (MODEL.simulate(MODEL.at_rest(MIDDLE), DT, torque=swinging(300)) for _ in range(2))
    np.testing.assert_array_equal(one.position, two.position)
    np.testing.assert_array_equal(one.bristle, two.bristle)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "drive of the arm: got none; expected one of torque, current, voltage"),
        ({"torque": np.zeros((2, 5)), "current": np.zeros((2, 5))}, "got torque and current"),
        ({"torque": np.zeros((2, 4))}, r"torque: got shape \(2, 4\); expected shape \(n, 5\)"),
        ({"voltage": [[0.0, np.nan, 0.0, 0.0, 0.0]]}, r"voltage\[0, 1\]: got nan"),
        ({"torque": np.full((5, 5), 1e99)}, r"torque \[\d\]: got a motion without bounds"),
    ],
)
def test_a_drive_that_is_none_is_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        MODEL.simulate(MODEL.at_rest(MIDDLE), DT, **arguments)  # type: ignore[arg-type]


WITHOUT_BOUNDS = """
import dataclasses
import sys
import numpy as np
from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import load_robot
model = load_robot().arm.model()
tilted = arm_tree(model.tree.layout.rotor_inertias, gravity=(1e-13, 0.0, -9.81))
curved = tuple(LuGre(f.coulomb, f.viscous, f.sigma0, 0.0, 1.3 * f.coulomb, 0.05) for f in model.friction)
models = (model, dataclasses.replace(model, tree=tilted), dataclasses.replace(model, friction=curved))
cases = [("torque", 100.0, 0.1), ("current", 20.0, 0.1), ("current", 50.0, 1.0), ("voltage", 1e6, 1e-3)]
cases += [("torque", 1e99, 1e-3), ("current", 1e99, 1e-3), ("torque", 100.0, 1e99), ("voltage", 24.0, 1e75)]
for arm in models:
    for drive, size, dt in cases:
        try:
            arm.simulate(arm.at_rest(np.zeros(5)), dt, **{drive: np.full((200, 5), size)})
        except InputError as error:
            print("without bounds" in str(error) or "did not converge" in str(error))
        else:
            print(f"{drive} {size} {dt} was answered")
"""


def test_a_motion_without_bounds_is_an_error_and_never_goes_on_forever() -> None:
    """Of drives and steps far beyond the arm; NaN on the way kept the walk along the bristle from arriving."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_BOUNDS], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 24, done.stdout + done.stderr


def test_a_speed_no_joint_has_is_refused() -> None:
    for speed in (1e7, 1e80, 1e100):
        state = dataclasses.replace(MODEL.at_rest(MIDDLE), speed=np.array([0.0, speed, 0.0, 0.0, 0.0]))
        with pytest.raises(InputError, match="a motion without bounds"):
            MODEL.step(state, DT, current=np.zeros(5))


def test_a_winding_that_grows_hot_beyond_all_numbers_is_reported() -> None:
    drive = np.full((9, 5), 900.0)
    MODEL.simulate(MODEL.at_rest(MIDDLE), DT, current=drive)  # the motion itself is within bounds
    light = []
    for geared in MODEL.motors:
        faster = 0.01 * geared.motor.winding_time_constant
        light.append(dataclasses.replace(geared, motor=dataclasses.replace(geared.motor, winding_time_constant=faster)))
    model = dataclasses.replace(MODEL, motors=tuple(light))
    with pytest.raises(InputError, match=r"current \[\d\]: got a motion without bounds"):
        model.simulate(model.at_rest(MIDDLE), DT, current=drive)


@pytest.mark.parametrize("dt", [0.0, -1e-3, np.nan])
def test_a_step_that_is_no_time_is_refused(dt: float) -> None:
    with pytest.raises(InputError, match="dt"):
        MODEL.simulate(MODEL.at_rest(MIDDLE), dt, torque=np.zeros((1, 5)))


def test_lists_the_caller_still_holds_are_not_the_arm_s() -> None:
    friction, motors = list(MODEL.friction), list(MODEL.motors)
    model = ArmModel(MODEL.tree, friction, motors)  # type: ignore[arg-type]
    friction.clear(), motors.clear()
    assert model.friction == MODEL.friction and model.motors == MODEL.motors


def test_a_state_is_read_only_and_not_the_caller_s_array() -> None:
    position = MIDDLE.copy()
    state = ArmState(position, np.zeros(5), np.zeros(5), [25.0] * 5, np.full(5, 25.0))  # type: ignore[arg-type]
    position[:] = 9.0
    np.testing.assert_array_equal(state.position, MIDDLE)
    assert not any(getattr(state, field.name).flags.writeable for field in dataclasses.fields(state))
    assert MODEL.step(state, DT, current=np.zeros(5)).speed.shape == (5,)
    with pytest.raises(InputError, match="speed: got shape"):
        ArmState(MIDDLE, np.zeros((2, 2)), np.zeros(5), np.zeros(5), np.zeros(5))


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="5 joints, 4 frictions, 5 motors"):
        ArmModel(MODEL.tree, MODEL.friction[:4], MODEL.motors)
    with pytest.raises(ModelError, match="rotor inertias of the arm's tree"):
        ArmModel(arm_tree(), MODEL.friction, MODEL.motors)
    with pytest.raises(InputError, match="position"):
        MODEL.at_rest([0.0, 1.0])
    with pytest.raises(InputError, match="state: got ndarray; expected an ArmState"):
        MODEL.simulate(MIDDLE, DT, torque=np.zeros((1, 5)))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="arm_joint_1, winding temperature -500 degC"):
        MODEL.at_rest(MIDDLE, temperature=-500.0)


def test_a_tree_with_fixed_bodies_says_how_to_take_them_out() -> None:
    fixed = Tree.from_urdf(urdf_path("youbot.urdf"), root="arm_link_0", locked=[])
    with pytest.raises(ModelError, match="tree of the arm: .* fixed .*without_fixed_joints"):
        ArmModel(fixed, MODEL.friction, MODEL.motors)
