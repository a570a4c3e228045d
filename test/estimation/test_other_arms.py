"""Arms of six and seven joints from a robot file and a URDF: dynamics, filter and replay are those of that arm."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from arm_runs import JITTER, Run, filtered, loaded, rms
from other_arms import FILES, ROBOTS, swing_of, truth_of

from youbot_dynamics.commands._replay import read_node
from youbot_dynamics.dynamics.arm import DONE, ROW, arm_step, step_work
from youbot_dynamics.dynamics.tree import bias_at, mass_matrix_at, room_in, room_size, slopes_at
from youbot_dynamics.errors import ModelError, ParameterError
from youbot_dynamics.estimation.arm_ekf import ArmEkf, ArmEkfTuning, ArmSensors
from youbot_dynamics.estimation.payload import Payload, PayloadBelief, PayloadTuning
from youbot_dynamics.estimation.replay import ArmLog, replay_arm
from youbot_dynamics.parameter_file import read_parameters, write_parameters
from youbot_dynamics.robot import Robot, load_robot, robot_from_values, values_of

pin = pytest.importorskip("pinocchio", reason="pinocchio is not installed")

KNOWN = ArmEkfTuning(friction_error=0.0, load_error=0.0)
NAMES = sorted(FILES)


@pytest.fixture(scope="module")
def runs() -> dict[str, list[Run]]:
    """Three runs of each arm, 6 s at 200 Hz."""
    return {
        name: [swing_of(name, dataclasses.replace(truth_of(name), stamp_jitter=JITTER), s, 6.0, 5) for s in range(3)]
        for name in NAMES
    }


@pytest.mark.parametrize("name", NAMES)
def test_accelerations_are_those_of_pinocchio(name: str) -> None:
    robot, random = ROBOTS[name], np.random.default_rng(1)
    model = pin.buildModelFromUrdf(str(FILES[name].with_suffix(".urdf")))
    model.armature = robot.arm.reflected_rotor_inertia()
    data, tree = model.createData(), robot.arm.tree()
    assert tree.nv == len(robot.arm.joints) == len(robot.driver.arm_joints)
    for _ in range(100):
        q, v, tau = random.uniform(-2.0, 2.0, tree.nv), random.normal(size=tree.nv), 20.0 * random.normal(size=tree.nv)
        theirs = pin.aba(model, data, q, v, tau)
        np.testing.assert_allclose(tree.forward_dynamics(q, v, tau), theirs, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.parametrize("name", NAMES)
def test_what_a_step_of_the_filter_is_made_of_is_that_of_pinocchio(name: str) -> None:
    tree, random = ROBOTS[name].arm.tree(), np.random.default_rng(3)
    model = pin.buildModelFromUrdf(str(FILES[name].with_suffix(".urdf")))
    model.armature = tree.layout.rotor_inertias.copy()
    data, n = model.createData(), tree.nv
    room = room_in(np.zeros(room_size(n, n)), n, n)
    for _ in range(30):
        q, v, a = random.uniform(-2.0, 2.0, n), random.normal(size=n), 5.0 * random.normal(size=n)
        (matrix, dq, dv), (bias, torque) = np.zeros((3, n, n)), np.zeros((2, n))
        mass_matrix_at(tree.layout, q, room.placed, matrix)
        bias_at(tree.layout, v, room, bias)
        slopes_at(tree.layout, v, a, room.none, room, torque, dq, dv)
        upper = np.triu(pin.crba(model, data, q))
        theirs = {
            "mass matrix": (matrix, upper + np.triu(upper, 1).T),
            "bias": (bias, pin.nle(model, data, q, v).copy()),
            "torques": (torque + model.armature * a, pin.rnea(model, data, q, v, a).copy()),
        }
        by_q, by_v, _ = pin.computeRNEADerivatives(model, data, q, v, a)
        for what, (ours, expected) in {**theirs, "by q": (dq, by_q), "by v": (dv, by_v)}.items():
            np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max(), err_msg=what)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_of_the_filter_solves_its_equation_by_plain_iterations_and_by_line_search(name: str) -> None:
    """Pinocchio solves that equation with the rotors and the stiffness of the joints on the diagonal."""
    arm, random, dt = ROBOTS[name].arm.model(), np.random.default_rng(2), 5e-3
    n, body, reach = arm.tree.nv, arm.body, np.array([friction.reach for friction in arm.friction])
    plain, searched = step_work(body), step_work(body)
    model = pin.buildModelFromUrdf(str(FILES[name].with_suffix(".urdf")))
    data = model.createData()
    for _ in range(30):
        q, v = random.uniform(-1.5, 1.5, n), 0.5 * random.normal(size=n)
        for work, *constants in ((plain, 20, 1e-10, False), (searched, 0, 0.0, True)):
            table = work.table
            table[ROW.position], table[ROW.speed], table[ROW.acceleration] = q, v, 0.0
            table[ROW.bristle], table[ROW.drive] = 0.9 * reach * np.sign(v), arm.tree.gravity_forces(q)
            assert arm_step(body.layout, body.joints, body.halfway, *constants, dt, True, work) == DONE
            model.armature = table[ROW.rotors].copy()
            arguments = model, data, *(table[row].copy() for row in (ROW.middle, ROW.mean_speed, ROW.load))
            theirs = pin.aba(*arguments).copy()
            np.testing.assert_allclose(table[ROW.acceleration], theirs, rtol=0.0, atol=1e-9 * np.abs(theirs).max())
            for ours, expected in zip(work.derivatives[:, 0], pin.computeABADerivatives(*arguments), strict=True):
                np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-6 * np.abs(expected).max())
        for row in (ROW.acceleration, ROW.after, ROW.friction):
            np.testing.assert_allclose(plain.table[row], searched.table[row], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(plain.derivatives, searched.derivatives, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_filter_is_consistent_with_the_truth(name: str, runs: dict[str, list[Run]]) -> None:
    nees = []
    for run in runs[name]:
        _, found = filtered(run, run.model, KNOWN, robot=ROBOTS[name])
        nees.append(found[(run.stamp > 2.0) & run.moving] / (2.0 * run.model.tree.nv))
    print(f"{name}: NEES {np.concatenate(nees).mean():.3f}")
    assert 0.8 < np.concatenate(nees).mean() < 1.2


@pytest.mark.parametrize("name", NAMES)
def test_a_log_replays_with_speeds_nearer_to_the_truth_than_the_drivers(name: str, runs: dict[str, list[Run]]) -> None:
    run, robot = runs[name][0], ROBOTS[name]
    log = ArmLog(robot.driver.arm_joints, run.stamp, run.stamp, run.position, run.velocity, run.effort)
    replay = replay_arm(log, robot)
    later = run.stamp > 1.0
    ours, drivers = (rms((speed - run.true_speed)[later]) for speed in (replay.track.speed, run.velocity))
    assert ours < 0.6 * drivers
    assert [one.joint for one in replay.summary] == list(robot.driver.arm_joints)
    assert np.isnan(replay.support.normal_forces).all()  # the URDF of the arm has no base
    assert replay.heat.winding.shape[1] == len(robot.arm.joints)


@pytest.mark.parametrize("name", NAMES)
def test_robot_files_give_the_arm_its_joints_and_its_urdf(name: str) -> None:
    robot = ROBOTS[name]
    assert robot_from_values(values_of(robot)) == robot
    assert robot.arm.urdf == str(FILES[name].with_suffix(".urdf"))
    assert read_node(None, None, FILES[name])[0] == robot
    assert robot.arm_quanta()[0].shape == (len(robot.arm.joints),)


def weighed(name: str, mass: float, seed: int) -> PayloadBelief:
    """What an arm that is as its sheets say believes after a swing of 12 s with a payload at its grip point."""
    robot = ROBOTS[name]
    arm, tuning, place = robot.arm.model(), ArmEkfTuning(), np.array(robot.arm.grip_point)
    truth = dataclasses.replace(truth_of(name), stamp_jitter=JITTER)
    run = swing_of(name, loaded(truth, mass, arm.tree, place), seed, 12.0, 20)
    ekf = ArmEkf(arm, ArmSensors.of_robot(robot, stamp_jitter=JITTER), tuning)
    payload = Payload(arm, tuning, PayloadTuning().of_arm(robot.arm))
    for stamp, position, effort in zip(run.stamp, run.position, run.effort, strict=True):
        ekf.predict(stamp, effort)
        ekf.update(position)
        payload.add(ekf.state)
    return payload.state


@pytest.mark.parametrize("name", NAMES)
def test_a_payload_is_weighed_on_the_scale_of_the_arm(name: str) -> None:
    permitted = ROBOTS[name].arm.payload
    for share in (0.0, 0.4, 1.0):
        found = weighed(name, share * permitted, 1)
        print(f"{name}: {share * permitted:.1f} kg, weighed {found.mass:.2f} +- {found.mass_deviation:.2f} kg")
        assert found.identifiable and found.mass_deviation < 0.15 * permitted
        assert abs(found.mass - share * permitted) < 2.0 * found.mass_deviation


def changed(tmp_path: Path, **values: object) -> Robot:
    """The UR5e from a file with other values; None leaves one out."""
    given = {**read_parameters(FILES["ur5e"], ""), **{f"robot.{name}": value for name, value in values.items()}}
    file = tmp_path / "robot.yaml"
    write_parameters(file, "/**", {name: value for name, value in given.items() if value is not None})  # type: ignore[misc]
    return load_robot(robot_file=file)


def test_a_joint_without_values_has_none_for_the_youbots_are_none_of_it(tmp_path: Path) -> None:
    robot = changed(tmp_path, **{"arm.joint_2.friction.coulomb": None})
    assert np.isnan(robot.arm.joints[1].friction.coulomb) and not robot.arm.is_known
    with pytest.raises(ModelError, match=r"joint_2\.friction of the arm: got no coulomb;.*robot file"):
        robot.arm.friction()


def test_more_joints_than_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"arm\.joint_7\.friction\.coulomb.*an unknown name"):
        changed(tmp_path, **{"arm.joint_7.friction.coulomb": 1.0})


def test_a_resting_position_of_another_number_of_joints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"rest_position.*5 elements.*6 joints"):
        changed(tmp_path, **{"arm.rest_position": (0.0,) * 5})


def test_a_value_of_a_joint_beyond_its_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"joint_6\.friction\.coulomb.*0\.0001 to 1000 \[N m\]"):
        changed(tmp_path, **{"arm.joint_6.friction.coulomb": -1.0})


def test_a_tip_that_the_root_does_not_carry_is_refused(tmp_path: Path) -> None:
    urdf = str(FILES["ur5e"].with_suffix(".urdf"))
    robot = changed(tmp_path, **{"arm.urdf": urdf, "arm.root_link": "forearm_link", "arm.tip_link": "shoulder_link"})
    with pytest.raises(ModelError, match=r"tip link 'shoulder_link'.*no such link"):
        robot.arm.model()


def test_sensors_of_another_arm_are_refused() -> None:
    with pytest.raises(ModelError, match=r"7 numbers.*6 joints"):
        ArmEkf(ROBOTS["ur5e"].arm.model(), ArmSensors.of_robot(ROBOTS["panda"]))
