"""The robot as one object: where its values come from, and what is refused."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from youbot_dynamics.errors import InputError, ParameterError, ResourceError
from youbot_dynamics.parameter_file import read_parameters, write_parameters
from youbot_dynamics.parameters import facts_of
from youbot_dynamics.resources import config_path
from youbot_dynamics.robot import Robot, load_robot, robot_from_values, robot_table
from youbot_dynamics.simulation.truth import BaseTruth, draw_truth, load_arm_truth, load_truth, truth_table

DELAY = "robot.base.delay.effective_x"


def params(folder: Path, name: str, values: dict, section: str = "/**") -> Path:
    write_parameters(folder / name, section, values)
    return folder / name


def test_without_files_the_configuration_holds() -> None:
    values = read_parameters(config_path("youbot.yaml"), "")
    robot = load_robot()
    assert robot.robot_id == values["robot.robot_id"] == "youbot"
    assert robot.base.geometry.wheel_radius == values["robot.base.geometry.wheel_radius"]
    assert robot_from_values({item.name: item.default for item in robot_table()}) == robot


def test_params_file_beats_result_file_beats_configuration(tmp_path: Path) -> None:
    result = params(tmp_path, "r.yaml", {DELAY: 0.1, "robot.base.delay.effective_y": 0.2})
    own = params(tmp_path, "p.yaml", {DELAY: 0.3})
    np.testing.assert_array_equal(load_robot().base.delay.effective(), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(load_robot(result).base.delay.effective(), [0.1, 0.2, 0.0])
    np.testing.assert_array_equal(load_robot(params_file=own).base.delay.effective(), [0.3, 0.0, 0.0])
    np.testing.assert_array_equal(load_robot(result, own).base.delay.effective(), [0.3, 0.2, 0.0])


def test_sections_of_nodes_in_a_params_file_are_not_of_the_robot(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("/**:\n  ros__parameters:\n    use_sim_time: true\n/**/odometry:\n  ros__parameters:\n    a: 1\n")
    assert load_robot(params_file=path) == load_robot()


def test_joints_with_the_names_of_the_urdf_are_put_in_the_order_of_its_chain(tmp_path: Path) -> None:
    names = load_robot().driver.arm_joints
    for given, expected in ((names[::-1], names), (("a", "b", "c", "d", "e"), ("a", "b", "c", "d", "e"))):
        path = params(tmp_path, "p.yaml", {"robot.driver.arm_joints": list(given)})
        assert load_robot(params_file=path).driver.arm_joints == expected


@pytest.mark.parametrize(
    "content", ["", "# a comment\n", "/odometry:\n  ros__parameters:\n    robot:\n      robot_id: mine\n"]
)
def test_a_robot_file_that_says_nothing_of_a_robot_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "own.yaml").write_text(content)
    with pytest.raises(ParameterError, match="robot file .*own.yaml: got nothing about a robot; expected .*robot"):
        load_robot(robot_file=tmp_path / "own.yaml")


def test_a_robot_file_without_sizes_and_names_of_its_base_is_refused_as_a_result(tmp_path: Path) -> None:
    delay = params(tmp_path, "result.yaml", {"robot.robot_id": "own", DELAY: 0.1})
    with pytest.raises(ParameterError, match="neither its wheel_radius .*; a result.yaml goes with --result-file"):
        load_robot(robot_file=delay)
    sizes = params(tmp_path, "own.yaml", {"robot.robot_id": "own", "robot.base.geometry.wheel_radius": 0.04})
    assert load_robot(robot_file=sizes, result_file=delay).base.delay.effective_x == 0.1


def test_a_robot_is_named_as_on_the_command_line(tmp_path: Path) -> None:
    assert load_robot(robot_file="rosbot_xl").robot_id == "rosbot_xl"
    (tmp_path / "own.yaml").write_text("/**: {ros__parameters: {robot: {robot_id: own, driver: {rate: 50.0}}}}")
    assert load_robot(robot_file=str(tmp_path / "own.yaml")).robot_id == "own"
    with pytest.raises(ResourceError, match="did you mean rosbot_xl"):
        load_robot(robot_file="rosbot_x")


def test_an_unknown_fact_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    path = params(tmp_path, "p.yaml", {"robot.base.delay.effective_z": 0.1})
    with pytest.raises(ParameterError, match=r"did you mean robot\.base\.delay\.effective_[xy]"):
        load_robot(params_file=path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({DELAY: -0.1}, r"effective_x: got -0\.1; expected 0 to 1 \[s\]"),
        ({DELAY: 1.5}, r"0 to 1 \[s\]"),
        ({DELAY: 1}, "a number with a decimal point"),
        (
            {"robot.arm.joint_1.friction.coulomb": -0.1},
            r"joint_1\.friction\.coulomb: got -0\.1; expected 0\.0001 to 1000",
        ),
        ({"robot.arm.joint_3.motor.resistance": 0.0}, r"0\.01 to 100 \[Ohm\]"),
        ({"robot.driver.wheel_joints": ("a", "b", "c")}, "got 3 elements; expected 4"),
        ({"robot.driver.position_sign": (1.0, 1.0, 1.0, 2.0)}, "-1 to 1"),
    ],
)
def test_a_value_out_of_range_is_refused(tmp_path: Path, values: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        load_robot(params_file=params(tmp_path, "p.yaml", values))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("effective_z: 0.1", r"parameter robot\.base\.delay\.effective_z: .*did you mean"),
        ("effective_x: 1.5", r"parameter robot\.base\.delay\.effective_x: got 1\.5; expected 0 to 1 \[s\]"),
        ("effective_x: 1", r"parameter robot\.base\.delay\.effective_x: got 1; expected a number with a decimal point"),
    ],
)
@pytest.mark.parametrize("role", ["result_file", "params_file"])
def test_a_refused_fact_names_its_file_and_line(tmp_path: Path, role: str, line: str, words: str) -> None:
    path = tmp_path / "own.yaml"
    head = "# mine\n/**:\n  ros__parameters:\n    robot:\n      base:\n        mass: 30.0\n        delay:\n"
    path.write_text(f"{head}          effective_y: 0.1\n          {line}\n")
    with pytest.raises(ParameterError, match=rf"^parameter file {re.escape(str(path))}, line 9: {words}"):
        load_robot(**{role: path})


def test_a_wheel_that_is_also_a_joint_of_the_arm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("/**:\n  ros__parameters:\n    robot.driver.wheel_joints: ['arm_joint_1', 'b', 'c', 'd']\n")
    with pytest.raises(ParameterError, match="wheel_joints and arm_joints: got arm_joint_1 twice"):
        load_robot(params_file=path)


def test_of_a_fact_given_twice_the_later_counts_and_its_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    section = "  ros__parameters:\n    robot.base.mass: "
    path.write_text(f"/**:\n{section}-1.0\n/**/**:\n{section}30.0\n")
    assert load_robot(params_file=path).base.mass == 30.0
    path.write_text(f"/**:\n{section}30.0\n/**/**:\n{section}-2.0\n")
    with pytest.raises(ParameterError, match=r"own\.yaml, line 6: parameter robot\.base\.mass: got -2\.0"):
        load_robot(params_file=path)


def test_the_result_of_another_robot_is_refused(tmp_path: Path) -> None:
    other = params(tmp_path, "r.yaml", {"robot.robot_id": "fred", DELAY: 0.1})
    with pytest.raises(ParameterError, match="got a result of robot 'fred'; expected one of robot 'youbot'"):
        load_robot(other)
    own = params(tmp_path, "p.yaml", {"robot.robot_id": "fred"})
    robot = load_robot(other, own)
    assert robot.robot_id == "fred" and robot.base.delay.effective_x == 0.1
    third = params(tmp_path, "q.yaml", {"robot.robot_id": "anna"})
    with pytest.raises(ParameterError, match="of robot 'anna'"):
        load_robot(other, third)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"absent\.yaml"):
        load_robot(tmp_path / "absent.yaml")


SI = re.compile(
    r"1|s|m|rad|kg|N|Hz|(m|rad)/s2?|kg m2|N m|N s/m|N m(/rad| s/rad|/A)|A|V|Ohm|degC|1/K|1/s|K/W|(m|rad)/sqrt\(m\)"
)


@pytest.mark.parametrize("path", [[], {}, 0.0, "", False])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(ParameterError, match="^parameter file .*: got .*; expected a ROS parameter file"):
        load_robot(path)
    with pytest.raises(ParameterError, match="^parameter file .*: got .*; expected a ROS parameter file"):
        load_robot(params_file=path)


@pytest.mark.parametrize(("cls", "prefix"), [(Robot, "robot"), (BaseTruth, "truth")])
def test_every_fact_has_description_and_source_and_every_number_unit_and_range(cls: type, prefix: str) -> None:
    leaves = facts_of(cls, prefix, 5)
    assert len(leaves) >= 17
    for name, kind, metadata in leaves:
        assert metadata["description"].endswith("."), name
        assert metadata["source"], name
        if kind in (float, tuple[float, ...]):
            assert SI.fullmatch(metadata["unit"]), (name, metadata["unit"])
            assert metadata["low"] < metadata["high"], name
        else:
            assert kind in (str, bool, tuple[str, ...]) and metadata["unit"] == "", name


def test_every_value_of_the_configuration_is_within_its_range_and_none_is_missing() -> None:
    for parameter in robot_table():
        assert parameter.check(parameter.default) == parameter.default
        assert parameter.read_only


def test_the_robot_is_frozen() -> None:
    robot = load_robot()
    with pytest.raises(dataclasses.FrozenInstanceError):
        robot.robot_id = "x"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        robot.base.delay.effective_x = 0.2  # type: ignore[misc]


def test_the_signs_are_what_the_driver_does() -> None:
    """youbot facts 0.4 and 1.1: the wrapper flips the position of FL and BL, not their velocity."""
    driver = load_robot().driver
    assert driver.wheel_joints == ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")
    of_motor = np.array([-1.0, 1.0, -1.0, 1.0])
    wrapper = np.array([-1.0, 1.0, -1.0, 1.0])
    np.testing.assert_array_equal(driver.command_sign, of_motor)
    np.testing.assert_array_equal(driver.velocity_sign, of_motor)
    np.testing.assert_array_equal(driver.position_sign, of_motor * wrapper)


def test_the_resolution_of_the_driver_follows_from_its_gear() -> None:
    driver = load_robot().driver
    assert driver.position_quantum == pytest.approx(2 * np.pi / (4000 * 9405 / 364), rel=1e-3)
    assert driver.velocity_quantum == pytest.approx(15.0 * 2 * np.pi / 60 * 364 / 9405, rel=1e-3)


def test_steps_of_the_motors_and_of_the_wheels_are_the_same_ticks() -> None:
    driver = load_robot().driver
    assert driver.motor_position_quantum == pytest.approx(2 * np.pi / 4000)
    assert driver.motor_velocity_quantum == pytest.approx(driver.motor_position_quantum / 1e-3)
    assert driver.position_quantum == pytest.approx(driver.motor_position_quantum * 364 / 9405, rel=1e-3)
    assert driver.velocity_quantum == pytest.approx(driver.motor_velocity_quantum * 364 / 9405, rel=1e-3)


def test_steps_of_the_arm_are_those_of_its_logs() -> None:
    """15 motor rpm: seen as 0.022124 rad/s at joints 4 and 5, derived for the others."""
    robot = load_robot()
    position, velocity = robot.arm_quanta()
    np.testing.assert_allclose(position, [1.007e-5, 1.007e-5, 1.571e-5, 2.212e-5, 2.212e-5], rtol=1e-3)
    np.testing.assert_allclose(velocity, [0.010069, 0.010069, 0.015708, 0.022124, 0.022124], rtol=1e-4)


def test_reflected_rotors_are_those_of_the_independent_source() -> None:
    """N^2 J of the quoted sheets against the H-BRS constants of 2019, within 3 %."""
    rotors = load_robot().arm.reflected_rotor_inertia()
    np.testing.assert_allclose(rotors, [0.33848, 0.33848, 0.13571, 0.04698, 0.01799], rtol=0.03)


def test_reading_the_facts_leaves_the_compiler_alone() -> None:
    """Every node reads them at its start; numba would add 0.2 s to each."""
    code = "import sys; from youbot_dynamics.robot import load_robot; load_robot(); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


def test_friction_of_the_arm_is_that_of_its_facts() -> None:
    arm = load_robot().arm
    for joint, model in zip(arm.joints, arm.friction(), strict=True):
        friction = joint.friction
        assert (model.coulomb, model.viscous) == (friction.coulomb, friction.viscous)
        assert (model.sigma0, model.sigma1) == (friction.sigma0, friction.sigma1)
        assert friction.coulomb / friction.sigma0 == pytest.approx(1e-3)


def test_motors_of_the_arm_are_those_of_their_facts() -> None:
    arm = load_robot().arm
    torques = [geared.joint_torque(1.0, 0.0) for geared in arm.motors()]
    np.testing.assert_allclose(torques, [5.226, 5.226, 3.35, 3.621, 3.479], rtol=1e-4)
    for joint, geared in zip(arm.joints, arm.motors(), strict=True):
        fact = joint.motor
        assert geared.motor.resistance_at(arm.reference_temperature) == fact.resistance
        assert geared.motor.rotor_friction == 0.0  # in the friction of the joint
        winding = arm.ambient_temperature + geared.motor.steady_state_rise(fact.nominal_current).winding
        assert 0.6 * fact.winding_temperature_limit < winding < fact.winding_temperature_limit
        assert fact.nominal_current < min(fact.current_limit, geared.motor.runaway_current)


def test_the_truth_of_seed_0_is_nominal_and_others_are_drawn_within_their_bounds() -> None:
    table = {item.name.split(".")[1]: item.default for item in truth_table() if ".arm." not in item.name}
    nominal = load_truth(0)
    draws = [load_truth(seed) for seed in range(1, 60)]
    assert load_truth(7) == draws[6] and len(set(draws)) == len(draws)
    for name, (middle, low, high) in table.items():
        assert np.all(np.array(getattr(nominal, name)) == middle), name
        drawn = np.array([getattr(truth, name) for truth in draws])
        none = drawn == 0.0 if name.startswith("servo_") else np.zeros(drawn.shape, dtype=bool)
        assert np.all((drawn >= low) & (drawn <= high) | none), name
        assert np.all(np.ptp(np.where(none, low, drawn), axis=0) >= 0.7 * (high - low)), name


def test_drawn_servos_are_of_every_family_and_gains_from_end_to_end() -> None:
    """Speed loops of the twin's own only would leave what friction does to a P servo unseen."""
    drawn = [load_truth(seed) for seed in range(1, 301)]
    own = [one for one in drawn if one.servo_gain == 0.0]
    p_servos = [one.servo_gain for one in drawn if one.servo_gain > 0.0 and one.servo_reset == 0.0]
    resets = [one.servo_reset for one in drawn if one.servo_gain > 0.0 and one.servo_reset > 0.0]
    assert all(70 <= count <= 130 for count in (len(own), len(p_servos), len(resets)))
    assert min(p_servos) >= 1.5 and max(p_servos) <= 8.0 and min(resets) >= 0.03 and max(resets) <= 0.5
    # Evenly in the logarithm: half of them below the geometric mean.
    assert 0.35 < np.mean(np.array(p_servos) < np.sqrt(1.5 * 8.0)) < 0.65
    assert 0.35 < np.mean(np.array(resets) < np.sqrt(0.03 * 0.5)) < 0.65


def test_equal_bounds_give_every_robot_that_servo_and_a_logarithm_of_nothing_is_refused() -> None:
    table = {item.name: item.default for item in truth_table()}
    for gain in (0.0, 3.0):
        fixed = {**table, "truth.servo_gain": (gain,) * 3, "truth.servo_reset": (0.1,) * 3}
        assert {(one.servo_gain, one.servo_reset) for one in (draw_truth(fixed, seed) for seed in range(20))} == {
            (gain, 0.1)
        }
    with pytest.raises(ParameterError, match=r"servo_gain: got lowest 0; expected above 0, or bounds"):
        draw_truth({**table, "truth.servo_gain": (0.0, 0.0, 8.0)}, 1)


@pytest.mark.parametrize("seed", [-1, 1.5, np.nan, "one", None, [1]])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    for load in (load_truth, load_arm_truth):
        with pytest.raises(InputError, match="^seed: got .*; expected a whole number of at least 0"):
            load(seed)


def test_bounds_that_cross_are_refused() -> None:
    table = {item.name: item.default for item in truth_table()}
    with pytest.raises(ParameterError, match="lowest 0.3 above highest 0.1"):
        draw_truth({**table, "truth.lag": (0.2, 0.3, 0.1)}, 1)


def test_a_truth_file_that_lacks_or_invents_a_quantity_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = config_path("mock.yaml").read_text(encoding="utf-8")
    path = tmp_path / "m.yaml"
    path.write_text(text.replace("      lag: [0.02, 0.005, 0.06]\n", ""))
    assert truth_table(path) == truth_table()  # a robot file has those of config/mock.yaml that it does not give
    with monkeypatch.context() as patch:
        patch.setattr("youbot_dynamics.simulation.truth.config_path", lambda name: path)
        with pytest.raises(ParameterError, match=r"truth\.lag in .*no value"):
            truth_table()
    path.write_text(text.replace("lag:", "lagg:"))
    with pytest.raises(ParameterError, match=r"did you mean truth\.lag"):
        truth_table(path)
    path.write_text(text.replace("[0.02, 0.005, 0.06]", "[0.02, 0.06]"))
    with pytest.raises(ParameterError, match="3 elements"):
        truth_table(path)


def test_the_base_of_the_facts_moves_by_them() -> None:
    """Four wheels with 0.5 N m each: force over effective mass, less the Coulomb and viscous friction."""
    base = load_robot().base
    dynamics = base.dynamics()
    radius = base.geometry.wheel_radius
    effective = base.mass + 4.0 * base.wheel_inertia / radius**2
    at_rest = dynamics.acceleration(np.zeros(3), np.full(4, 0.5))
    np.testing.assert_allclose(at_rest, [2.0 / radius / effective, 0.0, 0.0], atol=1e-12)
    rolling = dynamics.acceleration(np.array([0.4, 0.0, 0.0]), np.zeros(4))
    brake = 4.0 * base.friction.wheel_coulomb / radius + 0.4 * base.friction.viscous_x
    np.testing.assert_allclose(rolling, [-brake / effective, 0.0, 0.0], atol=1e-9)
