"""A wheeled base at one state: against document 004 in its own frame, a 3-D model, and the laws of mechanics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from wheeled_bases import (
    LAYOUTS,
    as_unknowns,
    base_of,
    document_system,
    rolling_state,
    rotation,
    sliding_state,
    wheel,
)

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.source_systems.wheeled_base import BaseState, WheeledBase, contacts

PLAIN = [name for name in LAYOUTS if name not in ("youBot", "mixed")]


def torques_of(base: WheeledBase, seed: int, size: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([seed, 1])
    steers = np.array([one.steerable for one in base.wheels])
    return size * random.normal(size=len(steers)), random.normal(size=len(steers)) * steers


def upright(base: WheeledBase, name: str, regime: str, seeds: int = 12):
    """States, torques and motions in which no wheel lifts."""
    for seed in range(seeds):
        state = (sliding_state if regime == "slides" else rolling_state)(base, seed)
        if name == "mixed" and regime == "rolls":
            state = base.rolling_state([0.4, -0.2 * base.wheels[3].position[0], 0.2], aligned(base, 0.4, 0.2))
        torques = torques_of(base, seed)
        flags = np.full(len(base.wheels), regime == "rolls")
        motion = base.motion(state, *torques, rolling=flags)
        if not motion.tips_over:
            yield state, torques, motion


def aligned(base: WheeledBase, speed: float, yaw_rate: float) -> np.ndarray:
    """Steering angles along the motion of a base whose fixed wheel at index 3 rolls."""
    angles = np.zeros(len(base.wheels))
    for i, one in enumerate(base.wheels):
        if one.steerable:
            x, y = one.position
            angles[i] = np.arctan2(yaw_rate * (x - base.wheels[3].position[0]), speed - yaw_rate * y)
    return angles


def rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix, tol=1e-9 * np.linalg.norm(matrix, 2)))


@pytest.mark.parametrize("regime", ["rolls", "slides"])
@pytest.mark.parametrize("name", PLAIN)
def test_the_motion_solves_the_equations_of_the_document_once_they_are_right(name: str, regime: str) -> None:
    base, met = base_of(LAYOUTS[name]), 0
    for state, torques, motion in upright(base, name, regime):
        matrix, right = document_system(base, state, *torques, motion.rolling, pattern=False)
        np.testing.assert_allclose(matrix @ as_unknowns(base, state, motion), right, atol=1e-11 * np.max(np.abs(right)))
        met += 1
    assert met >= 4


def wheels_in_three_dimensions(base: WheeledBase):
    """Floating body with products of inertia, steering joints and spinning wheels, in Pinocchio."""
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    carried = sum(one.steering_inertia for one in base.wheels if not one.steerable)
    inertia = np.diag([9.0, 9.0, base.yaw_inertia + carried])
    inertia[0, 2] = inertia[2, 0] = base.product_xz
    inertia[1, 2] = inertia[2, 1] = base.product_yz
    model.appendBodyToJoint(root, pin.Inertia(base.mass, base.centre_of_mass, inertia), pin.SE3.Identity())
    spins = []
    for one in base.wheels:
        parent, place = root, pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, one.mount_angle), np.array([*one.position, 0.0]))
        if one.steerable:
            parent = model.addJoint(root, pin.JointModelRZ(), place, f"{one.name}_steering")
            swing = np.diag([0.0, 0.0, one.steering_inertia])
            model.appendBodyToJoint(parent, pin.Inertia(0.0, np.zeros(3), swing), pin.SE3.Identity())
            place = pin.SE3.Identity()
        place = place * pin.SE3(np.eye(3), np.array([-one.offset, 0.0, one.radius]))
        spins.append(model.addJoint(parent, pin.JointModelRY(), place, one.name))
        spun = np.diag([0.0, one.spin_inertia, 0.0])
        model.appendBodyToJoint(spins[-1], pin.Inertia(0.0, np.zeros(3), spun), pin.SE3.Identity())
    return pin, model, spins


def unexplained_wrench(base: WheeledBase, state: BaseState, motion, torques) -> np.ndarray:
    """What 3-D inverse dynamics asks for beyond motors and floor: wrench on the body, errors of the torques."""
    pin, model, spins = wheels_in_three_dimensions(base)
    q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    q[:2], q[3:7] = state.pose[:2], [0.0, 0.0, np.sin(state.pose[2] / 2), np.cos(state.pose[2] / 2)]
    v[[0, 1, 5]], a[[0, 1, 5]] = state.twist, motion.twist_rate
    applied = np.zeros(model.nv)
    for i, one in enumerate(base.wheels):
        joint = model.joints[spins[i]]
        q[joint.idx_q] = 0.7 * i
        v[joint.idx_v], a[joint.idx_v] = state.wheel_speeds[i], motion.wheel_accelerations[i]
        applied[joint.idx_v] = torques[0][i]
        if one.steerable:
            joint = model.joints[model.getJointId(f"{one.name}_steering")]
            q[joint.idx_q], v[joint.idx_v] = state.steering_angles[i], state.steering_rates[i]
            a[joint.idx_v], applied[joint.idx_v] = motion.steering_accelerations[i], torques[1][i]
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    turn = rotation(state.pose[2])
    external = [pin.Force.Zero() for _ in range(model.njoints)]
    for i, (one, joint) in enumerate(zip(base.wheels, spins, strict=True)):
        force = np.array([*(turn @ motion.tangential_forces[i]), motion.normal_forces[i]])
        moment = np.cross([0.0, 0.0, -one.radius], force)
        into = data.oMi[joint].rotation.T
        external[joint] = pin.Force(into @ force, into @ moment)
    return pin.rnea(model, data, q, v, a, external) - applied


@pytest.mark.parametrize("regime", ["rolls", "slides"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_forces_and_motion_leave_nothing_over_in_three_dimensions(name: str, regime: str) -> None:
    """Normal forces included: the body neither rolls nor pitches, with spinning, steering wheels (D-004-4)."""
    base, met = base_of(LAYOUTS[name]), 0
    for state, torques, motion in upright(base, name, regime, 4):
        if motion.residual > 1e-9:
            continue
        left = unexplained_wrench(base, state, motion, torques)
        np.testing.assert_allclose(left, 0.0, atol=1e-10 * base.mass * 9.81)
        met += 1
    assert met >= 1


def contact_path(base: WheeledBase, i: int, time: float) -> tuple[BaseState, np.ndarray, np.ndarray]:
    """A smooth motion with everything turning: state, generalised acceleration, place of contact i in fixed axes."""
    one, n = base.wheels[i], len(base.wheels)
    steers = np.array([w.steerable for w in base.wheels])
    pose = np.array([np.sin(time), 0.5 * np.cos(2 * time), 0.3 + 0.8 * time + 0.2 * time**2])
    rate = np.array([np.cos(time), -np.sin(2 * time), 0.8 + 0.4 * time])
    change = np.array([-np.sin(time), -2 * np.cos(2 * time), 0.4])
    steering, steering_rate, steering_change = np.sin(3 * time), 3 * np.cos(3 * time), -9 * np.sin(3 * time)
    turn = rotation(pose[2])
    state = BaseState(
        twist=[*(turn.T @ rate[:2]), rate[2]],
        wheel_speeds=np.full(n, 5 + 2 * np.sin(time)),
        steering_angles=steering * steers,
        steering_rates=steering_rate * steers,
        pose=pose,
    )
    swings = np.full(int(steers.sum()), steering_change + change[2])
    acceleration = np.concatenate([turn.T @ change[:2], change[2:], swings, np.full(n, 2 * np.cos(time))])
    angle = pose[2] + one.mount_angle + steering * one.steerable
    place = pose[:2] + turn @ one.position - one.offset * np.array([np.cos(angle), np.sin(angle)])
    return state, acceleration, place


def contact_velocity(base: WheeledBase, i: int, time: float, h: float = 1e-4) -> np.ndarray:
    """r_i' - R Omega n by differences of places of fourth order, in fixed axes."""
    ahead, behind = contact_path(base, i, time + h)[2], contact_path(base, i, time - h)[2]
    far, back = contact_path(base, i, time + 2 * h)[2], contact_path(base, i, time - 2 * h)[2]
    state = contact_path(base, i, time)[0]
    angle = state.pose[2] + base.wheels[i].mount_angle + state.steering_angles[i]
    roll = base.wheels[i].radius * state.wheel_speeds[i] * np.array([np.cos(angle), np.sin(angle)])
    return (8 * (ahead - behind) - (far - back)) / (12 * h) - roll


@pytest.mark.parametrize("kind", ["fixed", "steered", "caster", "mecanum"])
def test_contact_velocity_and_acceleration_are_derivatives_along_a_path(kind: str) -> None:
    base = base_of([kind, "fixed", "caster"])
    for time in (0.0, 0.4, 1.1):
        state, acceleration, _ = contact_path(base, 0, time)
        found = contacts(base.wheels, state)
        mine = found.owner == 0
        turn, h = rotation(state.pose[2]), 1e-4
        velocity = turn.T @ contact_velocity(base, 0, time)
        np.testing.assert_allclose(found.velocities[mine], found.directions[mine] @ velocity, atol=1e-10)
        ahead, behind = contact_velocity(base, 0, time + h), contact_velocity(base, 0, time - h)
        change = turn.T @ (ahead - behind) / (2 * h)
        expected = found.rows[mine] @ acceleration + found.drift[mine]
        if kind == "mecanum":  # its direction turns with the body while the contact moves across it
            change = change + state.twist[2] * np.array([velocity[1], -velocity[0]])
        np.testing.assert_allclose(expected, found.directions[mine] @ change, atol=1e-7)


def test_d_004_2_the_printed_contact_velocity_takes_the_caster_for_welded_on() -> None:
    """v_0 + omega x (r_i - r_0) - R Omega n differs from the true velocity by e |alpha' - omega|."""
    base = base_of(["caster", "fixed", "fixed"])
    state, _, place = contact_path(base, 0, 0.4)
    turn, w = rotation(state.pose[2]), state.twist[2]
    arm = place - state.pose[:2]
    angle = state.pose[2] + state.steering_angles[0]
    roll = base.wheels[0].radius * state.wheel_speeds[0] * np.array([np.cos(angle), np.sin(angle)])
    printed = turn @ state.twist[:2] + w * np.array([-arm[1], arm[0]]) - roll
    missed = printed - contact_velocity(base, 0, 0.4)
    assert np.linalg.norm(missed) == pytest.approx(0.06 * abs(state.steering_rates[0]), rel=1e-8)
    assert np.linalg.norm(missed) > 0.06


def test_a_passive_caster_swings_at_the_sideways_speed_of_its_axis_over_its_trail() -> None:
    base = base_of(LAYOUTS["differential"])
    state = base.rolling_state([0.5, -0.2 * 0.3, 0.3], [0.0, 0.0, 0.7])
    x, y = base.wheels[2].position
    speed = np.array([0.5 - 0.3 * y, -0.06 + 0.3 * x])
    across = np.array([-np.sin(0.7), np.cos(0.7)])
    assert state.steering_rates[2] + 0.3 == pytest.approx(speed @ across / 0.06)
    np.testing.assert_allclose(contacts(base.wheels, state).velocities, 0.0, atol=1e-15)


def test_d_004_3_the_printed_no_slip_equations_move_casters_wrongly_or_not_at_all() -> None:
    """(9b), (10b) as printed: accelerations off by metres per second squared; with six wheels nothing solves them."""
    everything = frozenset({"rolling"})
    for name, solvable in (("differential", True), ("six", False)):
        base, off, left = base_of(LAYOUTS[name]), 0.0, 0.0
        for state, torques, motion in upright(base, name, "rolls", 30):
            assert motion.residual < 1e-9
            matrix, right = document_system(base, state, *torques, motion.rolling, everything, pattern=False)
            found = np.linalg.lstsq(matrix, right, rcond=1e-11)[0]
            left = max(left, np.max(np.abs(matrix @ found - right)))
            off = max(off, np.max(np.abs(found - as_unknowns(base, state, motion))[:2]))
        print(f"{name}: acceleration off by {off:.2f} m/s2, left over {left:.2g}")
        assert (left < 1e-9) == solvable
        assert off > 1.0


def test_d_004_4_without_the_momentum_of_the_wheels_the_weight_is_shared_wrongly() -> None:
    pytest.importorskip("pinocchio")
    worst = 0.0
    base = base_of(LAYOUTS["four steered"], mass=80.0)
    for state, torques, motion in upright(base, "four steered", "slides", 30):
        matrix, right = document_system(base, state, *torques, motion.rolling, frozenset({"moments"}))
        printed = np.linalg.solve(matrix, right)[3 + 8 : 3 + 12]
        wrong = dataclasses.replace(motion, normal_forces=printed)
        worst = max(worst, np.max(np.abs(printed - motion.normal_forces)))
        assert np.max(np.abs(unexplained_wrench(base, state, motion, torques))) < 1e-9
        assert np.max(np.abs(unexplained_wrench(base, state, wrong, torques))) > 0.05
    print(f"normal forces differ by up to {worst:.1f} N of {80 * 9.81 / 4:.0f} N")
    assert worst > 2.0


def slippery(base: WheeledBase) -> WheeledBase:
    return dataclasses.replace(
        base, wheels=tuple(dataclasses.replace(one, friction_coefficient=0.0) for one in base.wheels)
    )


def test_d_004_5_internal_steering_torque_leaves_the_angular_momentum_alone() -> None:
    """Printed (6) has no steering inertia: on ice a steering motor would create angular momentum from nothing."""
    base = slippery(base_of(LAYOUTS["four steered"]))
    state, torque = sliding_state(base, 2), np.array([1.0, 0.4, -0.2, 0.7])
    motion = base.motion(state, np.zeros(4), torque)
    swings = motion.steering_accelerations + motion.twist_rate[2]
    inertia = np.array([one.steering_inertia for one in base.wheels])
    assert base.yaw_inertia * motion.twist_rate[2] + inertia @ swings == pytest.approx(0.0, abs=1e-13)
    flags = np.zeros(4, dtype=bool)
    matrix, right = document_system(base, state, np.zeros(4), torque, flags, frozenset({"yaw"}))
    printed = np.linalg.solve(matrix, right)
    gained = base.yaw_inertia * printed[2] + inertia @ printed[3 + 16 : 3 + 20]
    assert gained == pytest.approx(torque.sum())


def test_d_004_1_without_torque_the_base_goes_on_turning() -> None:
    """The header prints J omega = torque: no torque, no turn."""
    base = slippery(base_of(LAYOUTS["car"], product_xz=0.0, product_yz=0.0))
    state = sliding_state(base, 4)
    motion = base.motion(state, np.zeros(4))
    assert abs(state.twist[2]) > 0.1 and motion.twist_rate[2] == pytest.approx(0.0, abs=1e-14)
    torque = 0.0  # of the floor about the centre of mass
    assert torque / base.yaw_inertia != pytest.approx(state.twist[2], abs=0.1)


def test_d_004_6_a_wheel_without_steering_turns_with_the_body() -> None:
    """Printed (8) with M_C = 0 sets alpha'' = -e n x T/J_C = 0 for a fixed wheel, whatever the body does."""
    base = base_of(["fixed"] * 4)
    state = sliding_state(base, 1)
    motion = base.motion(state, np.zeros(4))
    assert abs(motion.twist_rate[2]) > 0.5
    np.testing.assert_array_equal(motion.steering_accelerations, 0.0)
    inertia = np.array([one.steering_inertia for one in base.wheels])
    np.testing.assert_allclose(motion.steering_torques, inertia * motion.twist_rate[2])
    flags = np.zeros(4, dtype=bool)
    matrix, right = document_system(base, state, np.zeros(4), np.zeros(4), flags, frozenset({"steering"}))
    np.testing.assert_allclose(np.linalg.solve(matrix, right)[3 + 16 : 3 + 20], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", LAYOUTS)
def test_power_of_motors_and_friction_is_the_change_of_energy(name: str) -> None:
    base = base_of(LAYOUTS[name])
    for seed in range(6):
        state, torques = sliding_state(base, seed), torques_of(base, seed)
        motion = base.motion(state, *torques)
        found = contacts(base.wheels, state)

        def energy(h: float, state=state, motion=motion) -> float:
            return base.energy(
                BaseState(
                    state.twist + h * motion.twist_rate,
                    state.wheel_speeds + h * motion.wheel_accelerations,
                    state.steering_angles,
                    state.steering_rates + h * motion.steering_accelerations,
                )
            )

        change = (energy(0.5) - energy(-0.5)) / 1.0  # exact: the energy is quadratic in the velocities
        velocities = np.zeros((len(base.wheels), 2))
        np.add.at(velocities, found.owner, found.velocities[:, None] * found.directions)
        friction = np.sum(motion.tangential_forces * velocities)
        motors = torques[0] @ state.wheel_speeds + torques[1] @ state.steering_rates
        assert friction <= 0.0
        assert change == pytest.approx(motors + friction, abs=3e-11 * (1.0 + abs(motors) + abs(friction)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_floor_carries_the_weight_and_pushes_the_centre_of_mass(name: str) -> None:
    base = base_of(LAYOUTS[name])
    state, torques = sliding_state(base, 3), torques_of(base, 3)
    motion = base.motion(state, *torques)
    assert motion.normal_forces.sum() == pytest.approx(base.mass * 9.81, rel=1e-13)
    (vx, vy, w), (cx, cy, _) = state.twist, base.centre_of_mass
    centre = motion.twist_rate[:2] + w * np.array([-vy, vx])
    centre = centre + motion.twist_rate[2] * np.array([-cy, cx]) - w**2 * np.array([cx, cy])
    np.testing.assert_allclose(base.mass * centre, motion.tangential_forces.sum(axis=0), atol=1e-11)


def test_the_direction_of_the_scene_does_not_matter() -> None:
    base = base_of(LAYOUTS["mixed"])
    state, torques = sliding_state(base, 5), torques_of(base, 5)
    turned = dataclasses.replace(state, pose=state.pose + [3.0, -1.0, 2.0])
    for name in ("twist_rate", "normal_forces", "tangential_forces"):
        np.testing.assert_array_equal(
            getattr(base.motion(state, *torques), name), getattr(base.motion(turned, *torques), name)
        )


def printed_rank(base: WheeledBase, state: BaseState) -> int:
    n = len(base.wheels)
    rolls = np.ones(n, dtype=bool)
    return rank(document_system(base, state, np.zeros(n), np.zeros(n), rolls, frozenset({"rolling", "steering"}))[0])


def test_d_004_9_as_many_equations_as_unknowns_are_not_enough() -> None:
    """18, 25, 35 equations in as many unknowns; all rolling, their ranks are 17, 23 or 24, and 32."""
    for seed in range(5):
        differential, four, six = (base_of(LAYOUTS[k]) for k in ("differential", "four steered", "six"))
        assert printed_rank(differential, rolling_state(differential, seed)) == 17
        assert printed_rank(four, rolling_state(four, seed)) == 23
        assert printed_rank(four, rolling_state(four, seed, straight=True)) == 23
        standing = BaseState(np.zeros(3), np.zeros(4), np.random.default_rng(seed).normal(size=4))
        assert printed_rank(four, standing) == 24
        assert printed_rank(six, rolling_state(six, seed)) == 32
        for base in (differential, four, six):
            n, state = len(base.wheels), sliding_state(base, seed)
            matrix, _ = document_system(base, state, np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool))
            assert rank(matrix) == len(matrix) == {3: 18, 4: 25, 6: 35}[n]


def test_every_moving_rolling_state_of_three_wheels_leaves_a_force_open() -> None:
    """The axles meet in the instantaneous centre of rotation: two of the three sideways constraints are enough."""
    base = base_of(LAYOUTS["three steered"])
    for seed in range(20):
        motion = base.motion(rolling_state(base, seed), np.zeros(3), rolling=[True] * 3)
        assert (motion.rank, motion.constraints) == (5, 6) and not motion.forces_unique
    blocked = BaseState(np.zeros(3), np.zeros(3), [0.3, -0.9, 2.0])
    motion = base.motion(blocked, np.zeros(3))
    assert motion.forces_unique and np.all(motion.rolling)
    np.testing.assert_allclose(motion.twist_rate, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["differential", "car", "four steered", "six"])
def test_the_motion_is_unique_and_the_forces_are_the_smallest(name: str) -> None:
    base = base_of(LAYOUTS[name])
    state, torques = rolling_state(base, 2), torques_of(base, 2, 0.3)
    n = len(base.wheels)
    motion = base.motion(state, *torques, rolling=[True] * n)
    matrix, right = document_system(base, state, *torques, [True] * n, pattern=False)
    mine = as_unknowns(base, state, motion)
    _, sizes, right_vectors = np.linalg.svd(matrix)
    null = right_vectors[np.sum(sizes > 1e-9 * sizes[0]) :]
    assert len(null) == motion.constraints - motion.rank > 0 and not motion.forces_unique
    forces = slice(3, 3 + 2 * n)
    np.testing.assert_allclose(np.delete(null, np.arange(3, 3 + 2 * n), axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(null[:, forces] @ mine[forces], 0.0, atol=1e-9)


def test_d_004_8_the_wheel_acceleration_is_no_state() -> None:
    """Printed states: 6 + 4 n with Omega' in them. One state of 6 + 3 n, two torques, two accelerations."""
    base = base_of(LAYOUTS["car"])
    state = sliding_state(base, 0)
    numbers = [state.pose, state.twist, state.wheel_speeds, state.steering_angles, state.steering_rates]
    assert sum(len(part) for part in numbers) == 6 + 3 * 4
    one, other = base.motion(state, np.zeros(4)), base.motion(state, np.ones(4))
    assert np.min(np.abs(other.wheel_accelerations - one.wheel_accelerations)) > 10.0


def test_a_mecanum_base_rolls_in_one_way_only_and_its_forces_are_known() -> None:
    """One row, one force and one wheel acceleration for each wheel: full rank in every state (system 56)."""
    base = base_of(LAYOUTS["youBot"])
    for seed in range(10):
        state, torques = rolling_state(base, seed), torques_of(base, seed)
        motion = base.motion(state, *torques, rolling=[True] * 4)
        assert motion.forces_unique and motion.rank == 4 and motion.residual < 1e-12
        for i, force in enumerate(motion.tangential_forces):
            angle = base.wheels[i].roller_angle
            assert force @ [-np.sin(angle), np.cos(angle)] == pytest.approx(0.0, abs=1e-11)


def test_d_004_7_at_rest_the_printed_friction_law_is_nothing_over_nothing() -> None:
    base = base_of(["fixed"] * 4)
    standing = BaseState(np.zeros(3), np.zeros(4))
    with np.errstate(invalid="ignore"):
        flags = np.zeros(4, dtype=bool)
        assert np.isnan(document_system(base, standing, np.zeros(4), np.zeros(4), flags)[0]).any()
    with pytest.raises(InputError, match="wheel w0.*slip is undefined"):
        base.motion(standing, np.zeros(4), rolling=flags)
    motion = base.motion(standing, np.zeros(4))
    np.testing.assert_allclose(motion.tangential_forces, 0.0, atol=1e-12)
    assert np.all(motion.rolling)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_wheel_rolls_inside_its_cone_and_slides_off_on_its_rim_against_its_motion(name: str) -> None:
    base, random, slid, held = base_of(LAYOUTS[name]), np.random.default_rng(8), 0, 0
    for seed in range(25):
        state = rolling_state(base, seed, straight=True) if name == "mixed" else rolling_state(base, seed)
        if name == "mixed":
            state = base.rolling_state([state.twist[0], 0.0, 0.0])
        motion = base.motion(state, random.normal(size=len(base.wheels)) * 12.0)
        assert motion.residual < 1e-4
        found = contacts(base.wheels, state)
        starts = found.rows @ generalised(base, state, motion) + found.drift
        for i, one in enumerate(base.wheels):
            mine = found.owner == i
            start = starts[mine] @ found.directions[mine]
            force, limit = motion.tangential_forces[i], one.friction_coefficient * max(motion.normal_forces[i], 0.0)
            size = np.linalg.norm(force)
            assert size <= limit * (1 + 1e-9) + 1e-8
            if motion.rolling[i]:
                np.testing.assert_allclose(start, 0.0, atol=1e-4)
                held += 1
            else:
                assert size == pytest.approx(limit, rel=1e-7, abs=1e-8)
                assert force @ start == pytest.approx(-size * np.linalg.norm(start), rel=1e-6, abs=1e-8)
                slid += 1
    assert slid > 5 and held > 5


def generalised(base: WheeledBase, state: BaseState, motion) -> np.ndarray:
    vx, vy, w = state.twist
    chassis = motion.twist_rate + [-w * vy, w * vx, 0.0]
    swings = (motion.steering_accelerations + chassis[2])[base.steerable]
    return np.concatenate([chassis, swings, motion.wheel_accelerations])


def test_too_much_torque_spins_the_wheel_at_the_limit_of_its_cone() -> None:
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.0), product_xz=0.0, product_yz=0.0)
    light = [dataclasses.replace(one, spin_inertia=2e-4) for one in base.wheels]
    base = dataclasses.replace(base, wheels=tuple(light), centre_of_mass=(0.0, 0.0, 0.0))
    best, radius = 0.7 * 9.81, 0.08
    limit = 0.7 * base.mass * 9.81 / 4 * radius + 2e-4 * best / radius
    state = base.rolling_state([0.5, 0.0, 0.0])
    gripping, spinning = base.motion(state, np.full(4, 0.99 * limit)), base.motion(state, np.full(4, 1.2 * limit))
    assert np.all(gripping.rolling) and not np.any(spinning.rolling)
    assert gripping.twist_rate[0] == pytest.approx(0.99 * best, rel=2e-3)
    assert spinning.twist_rate[0] == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"radius": -0.1}, "radius of wheel front"),
        ({"spin_inertia": 0.0}, "spin_inertia of wheel front"),
        ({"friction_coefficient": -0.2}, "friction_coefficient of wheel front"),
        ({"stiffness": 0.0}, "stiffness of wheel front"),
        ({"kind": "tracked"}, "kind of wheel front.*'tracked'"),
        ({"kind": "caster", "offset": 0.0}, "offset of wheel front"),
        ({"kind": "steered", "steering_inertia": 0.0}, "steering_inertia of wheel front"),
        ({"kind": "mecanum", "roller_angle": np.pi / 2}, "roller_angle of wheel front"),
        ({"roller_angle": 0.5}, "roller_angle of wheel front"),
        ({"mount_angle": np.nan}, "mount_angle of wheel front"),
    ],
)
def test_a_wheel_that_cannot_be_is_refused_by_name(change: dict, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        dataclasses.replace(wheel("front", "fixed", (0.1, 0.2)), **change)


def test_a_base_that_cannot_be_is_refused() -> None:
    wheels = base_of(["fixed"] * 4).wheels
    with pytest.raises(ModelError, match="mass of the base"):
        WheeledBase(wheels, -1.0, 1.0, (0, 0, 0.1))
    with pytest.raises(ModelError, match="yaw_inertia"):
        WheeledBase(wheels, 1.0, np.nan, (0, 0, 0.1))
    with pytest.raises(ModelError, match="a different name for each"):
        WheeledBase((wheels[0], wheels[0], wheels[1]), 1.0, 1.0, (0, 0, 0.1))
    with pytest.raises(InputError, match="centre_of_mass: got shape \\(2,\\)"):
        WheeledBase(wheels, 1.0, 1.0, (0, 0))
    in_line = [wheel(str(k), "fixed", (0.1 * k, 0.2 * k)) for k in range(4)]
    with pytest.raises(InputError, match="one line"):
        WheeledBase(tuple(in_line), 1.0, 1.0, (0, 0, 0.1))
    with pytest.raises(InputError, match="position of wheel a"):
        wheel("a", "fixed", (0.1, np.inf))


def test_arguments_that_do_not_fit_are_refused_with_place_and_reason() -> None:
    base = base_of(["fixed", "fixed", "caster"])
    state = base.rolling_state([0.1, 0.0, 0.0])
    with pytest.raises(InputError, match=r"wheel_torques: got shape \(2,\); expected shape \(3,\)"):
        base.motion(state, [1.0, 2.0])
    with pytest.raises(InputError, match=r"wheel_torques\[1\]: got nan"):
        base.motion(state, [1.0, np.nan, 2.0])
    with pytest.raises(InputError, match="steering torque of wheel w0"):
        base.motion(state, np.zeros(3), [1.0, 0.0, 0.0])
    with pytest.raises(InputError, match="steering of wheel w1"):
        base.motion(BaseState(state.twist, state.wheel_speeds, [0.0, 0.2, 0.0]), np.zeros(3))
    with pytest.raises(InputError, match="twist"):
        BaseState([1.0, 2.0], np.zeros(3))
    with pytest.raises(InputError, match="wheel_speeds"):
        base.motion(BaseState(np.zeros(3), np.zeros(4)), np.zeros(3))
    sliding = BaseState([0.1, 0.2, 0.0], state.wheel_speeds)
    with pytest.raises(InputError, match="contact speed of wheel w0: got 0.2 m/s; expected 0: it is set to roll"):
        base.motion(sliding, np.zeros(3), rolling=[True, True, False])


def test_parameters_and_states_cannot_be_changed() -> None:
    base = base_of(["fixed"] * 4)
    state = BaseState(np.zeros(3), np.zeros(4))
    for held in (base.centre_of_mass, base.wheels[0].position, state.twist, state.wheel_speeds):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 1.0
