"""Optimal force on a load: a free rigid body first, then carried down a chain to the torques of its joints."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from repository import ROOT
from scipy.integrate import trapezoid

from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import so3
from youbot_dynamics.kinematics.rotations import nearest_rotation
from youbot_dynamics.robot import load_robot
from youbot_dynamics.source_systems.load_lift import (
    FreeBody,
    LiftLaw,
    LiftWeights,
    Load,
    optimal_lift,
    smooth_path,
    with_load,
)
from youbot_dynamics.source_systems.optimal_tracking import TrackingProblem, track
from youbot_dynamics.source_systems.rigid_motion import pose_of

sys.path.insert(0, str(ROOT / "examples"))
from lift_a_load import Lift, lift  # noqa: E402
from stand_up import SITTING, STANDING, Standing, stand_up  # noqa: E402

ROBOT = load_robot()
GRAVITY = np.array([0.0, 0.0, -9.81])
BAR = Load(0.5, np.array([0.01, -0.02, 0.05]), np.diag([8e-3, 8e-3, 4e-4]))  # a rod that tumbles
LOW, HIGH = (2.95, 2.2, -1.4, 2.5, 2.9), (2.95, 1.3, -2.0, 2.2, 2.9)


def free_body(load: Load = BAR, seed: int = 0) -> FreeBody:
    return FreeBody(load, so3.exponential(np.random.default_rng(seed).normal(size=3)), GRAVITY)


def pose_and_twist(body: FreeBody, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pose and twist of the carrier at coordinates x: the way back from `FreeBody.state`."""
    rotation = so3.exponential(x[3:6]) @ body.orientation
    spin = rotation.T @ so3.left_jacobian(x[3:6]) @ x[9:]
    centre = body.load.centre_of_mass
    return pose_of(rotation, x[:3] - rotation @ centre), np.concatenate(
        [rotation.T @ x[6:9] - np.cross(spin, centre), spin]
    )


def as_tree(load: Load) -> Tree:
    return Tree.from_arrays(
        [-1], ["floating"], np.zeros((1, 3)), np.eye(4)[None], [load.mass], [load.centre_of_mass], [load.inertia]
    )


def tree_state(body: FreeBody, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pose, twist = pose_and_twist(body, x)
    return np.concatenate([pose[:3, 3], so3.matrix_to_quaternion(pose[:3, :3])]), twist


def test_coordinates_and_their_rates_are_those_of_the_moving_carrier() -> None:
    body = free_body()
    rng = np.random.default_rng(1)
    for _ in range(5):
        x, u = 0.6 * rng.normal(size=12), rng.normal(size=6)
        pose, twist = pose_and_twist(body, x)
        np.testing.assert_allclose(body.state(pose, twist), x, atol=1e-12)
        h = 1e-4
        ahead, behind = (
            pose_and_twist(body, np.concatenate([x[:6] + s * x[6:] + 0.5 * s**2 * u, x[6:] + s * u]))[1]
            for s in (h, -h)
        )
        np.testing.assert_allclose(body.carrier_rate(x, u), (ahead - behind) / (2.0 * h), atol=2e-6)


def test_the_wrench_is_that_of_newton_and_euler() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    body = free_body()
    model = pinocchio.Model()
    joint = model.addJoint(0, pinocchio.JointModelFreeFlyer(), pinocchio.SE3.Identity(), "load")
    model.appendBodyToJoint(
        joint, pinocchio.Inertia(BAR.mass, BAR.centre_of_mass, BAR.inertia), pinocchio.SE3.Identity()
    )
    rng = np.random.default_rng(2)
    for _ in range(5):
        x, u = 0.6 * rng.normal(size=12), rng.normal(size=6)
        q, v = tree_state(body, x)
        wanted = pinocchio.rnea(model, model.createData(), q, v, body.carrier_rate(x, u))
        np.testing.assert_allclose(body.wrench(x, u), wanted, atol=1e-9)


def drive(
    body: FreeBody, wrench: Callable[[float, np.ndarray], np.ndarray], x: np.ndarray, duration: float, steps: int
) -> np.ndarray:
    """Coordinates (s + 1, 12) of the rigid body under a wrench, Runge and Kutta on its own nonlinear equations."""
    tree = as_tree(body.load)
    h = duration / steps

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        # y: position of the carrier, rotation as 9 numbers, twist in its frame.
        clean = nearest_rotation(y[3:12].reshape(3, 3))
        q = np.concatenate([y[:3], so3.matrix_to_quaternion(clean)])
        state = body.state(pose_of(clean, y[:3]), y[12:])
        a = tree.forward_dynamics(q, y[12:], wrench(t, state))
        spin = np.array([[0.0, -y[17], y[16]], [y[17], 0.0, -y[15]], [-y[16], y[15], 0.0]])
        return np.concatenate([clean @ y[12:15], (clean @ spin).ravel(), a])

    pose, twist = pose_and_twist(body, x)
    y = np.concatenate([pose[:3, 3], pose[:3, :3].ravel(), twist])
    rows = [x]
    for k in range(steps):
        t = k * h
        k1 = rates(t, y)
        k2 = rates(t + h / 2, y + h / 2 * k1)
        k3 = rates(t + h / 2, y + h / 2 * k2)
        k4 = rates(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        clean = nearest_rotation(y[3:12].reshape(3, 3))
        y[3:12] = clean.ravel()
        rows.append(body.state(pose_of(clean, y[:3]), y[12:]))
    return np.array(rows)


START, GOAL = np.zeros(12), np.array([0.3, -0.1, 0.4, 1.2, -0.8, 0.5, 0, 0, 0, 0, 0, 0])
DURATION, STEPS = 1.0, 50


@cache
def lifted_free_body() -> tuple[FreeBody, Callable[[float], np.ndarray], object]:
    body = free_body()
    poses = [pose_and_twist(body, x)[0] for x in (START, GOAL)]
    desired = smooth_path(body, *poses, DURATION)
    # Weights so small that the optimum stays visibly off the path.
    return body, desired, optimal_lift(desired, DURATION, STEPS, LiftWeights(position=200.0, speed=5.0, end=50.0))


def cost(body: FreeBody, push: Callable[[float, np.ndarray], np.ndarray]) -> float:
    """Cost of a law, from the motion of the rigid body under its wrench."""
    _, desired, _ = lifted_free_body()
    rows = drive(body, lambda t, x: body.wrench(x, push(t, x)), START, DURATION, STEPS)
    times = np.linspace(0.0, DURATION, STEPS + 1)
    spent = []
    for t, x in zip(times, rows, strict=True):
        e, u = desired(t) - x, push(t, x)
        spent.append(200.0 * e[:6] @ e[:6] + 5.0 * e[6:] @ e[6:] + u @ u)
    simpson = np.ones(STEPS + 1)
    simpson[1:-1:2], simpson[2:-1:2] = 4.0, 2.0
    e = desired(DURATION) - rows[-1]
    return float(simpson @ spent * DURATION / STEPS / 3.0 + 50.0 * e @ e)


def test_the_optimal_wrench_moves_a_tumbling_body_at_the_cost_of_the_value_function_and_no_other_costs_less() -> None:
    body, _, gains = lifted_free_body()
    best = cost(body, gains.command)
    assert best == pytest.approx(gains.cost(0.0, START), rel=1e-4)
    rng = np.random.default_rng(5)
    for _ in range(2):
        extra = 0.3 * rng.normal(size=6)
        assert cost(body, lambda t, x, extra=extra: gains.command(t, x) + extra * np.sin(5.0 * t)) > best


def test_d_002_9_without_gravity_and_the_turning_of_the_axes_the_body_goes_elsewhere() -> None:
    """M nu' = F with nu the rates of six coordinates, as printed: u = M^-1 F, M of the first orientation."""
    body, _, gains = lifted_free_body()
    wanted = drive(body, lambda t, x: body.wrench(x, gains.command(t, x)), START, DURATION, STEPS)[-1]
    first = body.orientation @ BAR.inertia @ body.orientation.T

    def of_document(x: np.ndarray, u: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        rotation = so3.exponential(x[3:6]) @ body.orientation
        force = rotation.T @ (BAR.mass * (u[:3] - gravity))
        return np.concatenate([force, rotation.T @ first @ u[3:] + np.cross(BAR.centre_of_mass, force)])

    law = gains.command
    fallen = drive(body, lambda t, x: of_document(x, law(t, x), np.zeros(3)), START, DURATION, STEPS)[-1]
    assert np.linalg.norm(fallen[:3] - wanted[:3]) > 0.2
    held = drive(body, lambda t, x: of_document(x, law(t, x), GRAVITY), START, DURATION, STEPS)[-1]
    np.testing.assert_allclose(held[:3], wanted[:3], atol=1e-4)  # translation only: there it holds
    assert np.linalg.norm(held[3:6] - wanted[3:6]) > 0.05


def test_d_002_9_a_reference_of_positions_alone_does_not_fit_y_equal_to_x() -> None:
    rates, entry = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    with pytest.raises(InputError, match=r"reference: got shape \(1,\)"):
        track(TrackingProblem(rates, entry, np.eye(2), np.eye(2), 1.0, np.eye(2), lambda t: [t]), 0.0, 1.0)


def test_d_002_9_a_weight_of_one_makes_the_effort_small_not_the_work() -> None:
    """1 m in 1 s from rest to rest: the optimum of effort needs 1.8 times the work of a dash, a coast and a stop."""
    rates, entry = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    gains = track(
        TrackingProblem(rates, entry, np.eye(2), np.zeros((2, 2)), 1.0, 1e8 * np.eye(2), lambda t: [1.0, 0.0]), 0.0, 1.0
    )
    motion = gains.motion([0.0, 0.0])
    np.testing.assert_allclose(motion.states[-1], [1.0, 0.0], atol=1e-5)
    effort = trapezoid(motion.inputs[:, 0] ** 2, motion.times)
    work = trapezoid(np.abs(motion.inputs[:, 0] * motion.states[:, 1]), motion.times)
    assert effort == pytest.approx(12.0, rel=1e-3)
    # Speed up to v within t, coast, stop: v (1 - t) = 1, effort 2 v^2 / t, work v^2.
    ramp = 0.1
    coasting = 1.0 / (1.0 - ramp)
    assert 2.0 * coasting**2 / ramp > 2.0 * effort
    assert work / coasting**2 == pytest.approx(2.25 * (1.0 - ramp) ** 2, rel=1e-2)


def law_of_arm(load: Load) -> tuple[LiftLaw, Tree]:
    tree = ROBOT.arm.model().tree
    poses = [tree.poses(np.array(q))[-1] for q in (LOW, HIGH)]
    body = FreeBody(load, poses[0][:3, :3], GRAVITY)
    gains = optimal_lift(smooth_path(body, *poses, 2.0), 2.0, 20, LiftWeights())
    return LiftLaw(tree, "arm_link_5", body, gains), with_load(tree, "arm_link_5", load)


IN_PLANE = Load(0.5, np.array([0.0, 0.0, 0.05]), np.diag([3e-4, 3e-4, 2e-4]))


def test_with_the_torques_of_the_law_the_load_accelerates_as_the_free_body_should() -> None:
    """Joint torques in, motion of arm and load out: that the load is not free any more does not show."""
    law, loaded = law_of_arm(IN_PLANE)
    rng = np.random.default_rng(7)
    for k in range(4):
        q = np.array(LOW) + 0.2 * rng.normal(size=5)
        v = 0.3 * rng.normal(size=5)
        asked = law.step(0.5 * k, q, v)
        a = loaded.forward_dynamics(q, v, asked.torque)
        h = 1e-5
        ahead, behind = (loaded.jacobian(q + s * v + 0.5 * s**2 * a, "arm_link_5") @ (v + s * a) for s in (h, -h))
        rate = (ahead - behind) / (2.0 * h)
        wanted = law.body.carrier_rate(asked.state, asked.push)
        left = law.body.load.spatial_inertia() @ (wanted - rate)
        # Five joints: what they can do of six is done, the force for the rest would move none of them.
        np.testing.assert_allclose(loaded.propagate_force(q, "arm_link_5", left), 0.0, atol=1e-5)
        assert np.linalg.norm(rate - wanted) == pytest.approx(asked.unmoved, abs=1e-4)


def test_at_rest_the_force_propagated_and_gravity_are_all_and_in_motion_they_are_not() -> None:
    """Document 002 A.5 is statics: on its torques alone the rotors of the youBot swallow most of the acceleration."""
    law, loaded = law_of_arm(IN_PLANE)
    q, v = np.array(LOW), np.zeros(5)
    asked = law.step(0.2, q, v)
    assert np.linalg.norm(asked.push[:3]) > 0.1
    statics = asked.propagated + law.chain.inverse_dynamics(q, v, v)
    jacobian = loaded.jacobian(q, "arm_link_5")
    slow, right = (
        np.linalg.norm((jacobian @ loaded.forward_dynamics(q, v, tau))[:3]) for tau in (statics, asked.torque)
    )
    assert slow < 0.3 * right
    resting = law.body.wrench(asked.state, np.zeros(6))
    held = law.chain.propagate_force(q, "arm_link_5", resting) + law.chain.inverse_dynamics(q, v, v)
    np.testing.assert_allclose(held, loaded.gravity_forces(q), atol=1e-12)


@cache
def arm_run() -> Lift:
    return lift(IN_PLANE)


def test_the_arm_lifts_a_load_half_a_metre_with_friction_within_its_limits() -> None:
    run = arm_run()
    assert run.rise > 0.5
    assert run.errors[:, 0].max() < 3e-3 and run.errors[:, 1].max() < 0.02
    assert run.errors[-1, 0] < 1.5e-3 and run.errors[-1, 1] < 6e-3
    assert run.cut == 0 and 0.3 < (np.abs(run.torque) / run.limits).max() < 1.0
    assert np.abs(run.speed[-1]).max() < 1e-3


def test_the_work_of_the_motors_is_what_the_lift_stored_and_what_friction_took() -> None:
    run = arm_run()
    assert run.stored > 9.0 and run.heat > 3.0
    assert abs(run.work - run.stored - run.heat) < 1e-4 * run.work


def test_a_load_beyond_the_arm_is_told_by_its_torques() -> None:
    run = lift(Load(4.0, np.array([0.0, 0.0, 0.05]), 0.01 * np.eye(3)), duration=1.0, hold=0.0, period=0.004)
    assert run.cut > 0 and (np.abs(run.torque) / run.limits).max() == pytest.approx(1.0)
    assert run.errors[:, 0].max() > 0.02


def test_a_load_on_the_tree_asks_for_its_own_wrench_besides() -> None:
    tree = ROBOT.arm.model().tree
    loaded = with_load(tree, "arm_link_5", BAR)
    q, v, a = np.array(LOW), np.full(5, 0.4), np.full(5, -0.7)
    bare = tree.inverse_dynamics(q, v, a)
    jacobian = tree.jacobian(q, 4)
    h = 1e-6
    rate = jacobian @ a + (tree.jacobian(q + h * v, 4) - tree.jacobian(q - h * v, 4)) @ v / (2.0 * h)
    pose = tree.poses(q)[-1]
    alone = as_tree(BAR).inverse_dynamics(
        np.concatenate([pose[:3, 3], so3.matrix_to_quaternion(pose[:3, :3])]), jacobian @ v, rate
    )
    np.testing.assert_allclose(loaded.inverse_dynamics(q, v, a), bare + jacobian.T @ alone, atol=1e-8)


@cache
def person_run() -> Standing:
    return stand_up()


def test_a_person_stands_up_on_the_path_of_the_upper_body() -> None:
    run = person_run()
    assert run.errors.max() < 5e-3 and run.errors[-1] < 2e-4
    np.testing.assert_allclose(run.position[0], SITTING)
    np.testing.assert_allclose(run.position[-1], STANDING, atol=2e-3)
    assert np.abs(run.torque[:, 1]).max() == pytest.approx(200.0, abs=30.0)  # the knees bear most


def test_energy_of_standing_up_is_the_work_of_the_joints() -> None:
    run = person_run()
    assert abs(run.work - run.stored) < 1e-5 * run.work
    rise = 9.81 * 0.678 * 75.0 * run.rise
    assert rise < run.stored < 1.3 * rise  # the legs rise as well


def test_standing_the_force_on_the_upper_body_is_its_weight() -> None:
    run = person_run()
    rotation = so3.exponential(np.array([0.0, run.position[-1].sum(), 0.0]))
    force = rotation @ run.wrench[-1, :3]
    np.testing.assert_allclose(force, [0.0, 0.0, 0.678 * 75.0 * 9.81], atol=2.0)


def test_bodies_and_paths_that_cannot_be_are_refused() -> None:
    with pytest.raises(ModelError, match="mass of the load"):
        Load(-1.0, np.zeros(3), np.eye(3))
    with pytest.raises(InputError, match=r"inertia of the load: got shape \(3,\)"):
        Load(1.0, np.zeros(3), np.ones(3))
    with pytest.raises(ModelError, match="inertia of the load"):
        Load(1.0, np.zeros(3), np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(InputError, match="duration: got 0 s"):
        smooth_path(free_body(), np.eye(4), np.eye(4), 0.0)


def test_the_examples_of_the_page_run() -> None:
    page = (ROOT / "docs" / "source_systems" / "optimal_tracking.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(code, "optimal_tracking.md", "exec"), scope)
    law = scope["law"]
    assert 0.19 < law.command(0.001, 0.2, 0.2 * np.ones(12), scope["ahead"], 0.02 * scope["ahead"]) < 0.2
