"""Stages of an identification on bags of the twin: what they find is the hidden truth, what they lack they name."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arm_motions import ROBOT, is_consistent, true_friction, true_stiffness, truth_of
from friction_runs import COEFFICIENTS, STRAIGHT, TURNING, calibrated_truth, coasts, drive, stairs
from stage_bags import arm_rows, base_rows, heat_rows, swing, torque_rows, write_rows

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.arm_friction import ConsistentInertia, inertial_parameters
from youbot_dynamics.identification.arm_friction.stage import BODIES
from youbot_dynamics.identification.finding import StageResult
from youbot_dynamics.identification.pipeline._extraction import stage_of
from youbot_dynamics.identification.reading import Options, look_at, open_recording
from youbot_dynamics.identification.signals import ArmSignals, recorded_arm
from youbot_dynamics.identification.stages import Taken, within_an_hour
from youbot_dynamics.recording.bag import open_bag


def run(name: str, bags: Path | list[Path], options: Options | None = None) -> StageResult:
    """One stage over bags, as the pipeline runs it; its parts are sent through pickle as to another process."""
    stage, paths = stage_of(name), bags if isinstance(bags, list) else [bags]

    def opened(number: int):
        return open_recording(paths[number], number, ROBOT, options or Options())

    parts = [pickle.loads(pickle.dumps(stage.extract(opened(k), ROBOT))) for k in range(len(paths))]
    taken = [Taken(k, path.name, part) for k, (path, part) in enumerate(zip(paths, parts, strict=True))]
    return stage.finish(taken, ROBOT, opened)


def values(result: StageResult) -> dict[str, float]:
    return {finding.name: finding.estimate.value for finding in result.findings if finding.identified}


def verdicts(result: StageResult) -> dict[str, str]:
    return {finding.name: finding.estimate.verdict for finding in result.findings}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("stages")


@pytest.fixture(scope="module")
def arm_bag(folder) -> Path:
    return write_rows(folder / "arm", arm_rows(truth_of(1), swing(), 1))


@pytest.fixture(scope="module")
def arm(arm_bag) -> StageResult:
    return run("arm_friction", arm_bag)


@pytest.fixture(scope="module")
def base_bag(folder) -> Path:
    return write_rows(folder / "base", base_rows(drive(stairs(60.0, STRAIGHT + TURNING), calibrated_truth(3), 3)))


@pytest.fixture(scope="module")
def base(base_bag) -> StageResult:
    return run("base_friction", base_bag)


# Arm


def test_friction_of_each_joint_is_that_of_the_twin(arm):
    found, truth = {finding.name: finding for finding in arm.findings}, true_friction(truth_of(1))
    speeds = 0.3
    for k in range(5):
        coulomb, viscous = (found[f"robot.arm.joint_{k + 1}.friction.{what}"] for what in ("coulomb", "viscous"))
        assert coulomb.identified and "rad/s" in coulomb.valid_for and coulomb.samples > 50
        total = coulomb.estimate.value + speeds * viscous.estimate.value
        assert total == pytest.approx(truth[k] @ [1.0, speeds], rel=0.05)


def test_stiffness_of_the_bristles_is_told_at_50_hz_and_their_damping_is_not(arm):
    found, truth = {finding.name: finding for finding in arm.findings}, true_stiffness(truth_of(1))
    told = 0
    for k in range(5):
        stiffness = found[f"robot.arm.joint_{k + 1}.friction.sigma0"].estimate
        if stiffness.identified:
            told += 1
            assert abs(stiffness.value - truth[k]) < 4.0 * stiffness.standard_error
        damping = found[f"robot.arm.joint_{k + 1}.friction.sigma1"].estimate
        assert "500 Hz is needed" in damping.verdict
    assert told >= 2


def test_bodies_for_an_export_can_exist_and_differ_from_the_drawings(arm):
    bodies = arm.products[BODIES]
    assert isinstance(bodies, ConsistentInertia)
    drawn = inertial_parameters(arm_tree(ROBOT.arm.reflected_rotor_inertia()))
    assert bodies.parameters.shape == drawn.shape and not np.allclose(bodies.parameters, drawn)
    assert all(is_consistent(row) for row in bodies.parameters[:50].reshape(5, 10))
    assert min(bodies.explained.values()) > 0.99


def test_curves_hold_what_was_measured_and_a_band_that_is_not_wider_than_the_torque(arm):
    assert [curve.title for curve in arm.fits] == [f"Arm, joint {k + 1}" for k in range(5)]
    for curve in arm.fits:
        assert np.all(np.diff(curve.time) > 0.0) and curve.whiteness is not None
        left = curve.measured - curve.modelled
        assert np.std(left) < 0.1 * np.std(curve.measured)
        assert curve.band is not None and 0.0 < np.median(curve.band) < 0.2 * np.std(curve.measured)
    (correlation,) = arm.correlations
    assert correlation.matrix.shape == (len(correlation.names),) * 2
    assert np.diag(correlation.matrix) == pytest.approx(1.0)


def test_a_joint_that_stood_is_refused_and_the_others_are_not(folder):
    result = run("arm_friction", write_rows(folder / "one", arm_rows(truth_of(1), swing(30.0, (0, 0, 0, 1, 1)), 1)))
    told = verdicts(result)
    assert told["robot.arm.joint_5.friction.coulomb"] == "identified"
    assert "never slid" in told["robot.arm.joint_1.friction.coulomb"] and not result.missing


def test_an_arm_at_rest_without_efforts_or_not_in_the_bag_is_missing_with_its_reason(folder, base_bag):
    still = write_rows(folder / "still", arm_rows(truth_of(1), swing(5.0, (0, 0, 0, 0, 0)), 1))
    assert run("arm_friction", still).missing == "the arm never moved"
    bare = write_rows(folder / "bare", arm_rows(truth_of(1), swing(5.0), 1, effort=False))
    refused = run("arm_friction", bare)
    assert "no efforts" in refused.missing and not values(refused)
    assert all("no efforts" in verdict for verdict in verdicts(refused).values())
    with pytest.raises(RecordingError, match="no states of arm_joint_1"):
        run("arm_friction", base_bag)


def test_two_recordings_are_fitted_together(folder, arm_bag, arm):
    more = write_rows(folder / "more", arm_rows(truth_of(1), swing(20.0), 5))
    both = run("arm_friction", [arm_bag, more])
    name = "robot.arm.joint_4.friction.coulomb"
    assert {f.name: f for f in both.findings}[name].samples > 1.3 * {f.name: f for f in arm.findings}[name].samples


def test_speeds_stay_beside_their_readings_where_every_message_was_recorded_twice(folder):
    rows = arm_rows(truth_of(1), swing(5.0), 1)
    bags = write_rows(folder / "once", rows), write_rows(folder / "twice", rows * 2)
    once, twice = (recorded_arm(open_bag(bag), ROBOT, {}) for bag in bags)
    np.testing.assert_array_equal(twice.signals.time, once.signals.time)
    np.testing.assert_array_equal(twice.speed, once.speed)
    assert twice.left_out == 0


def test_a_recording_beyond_the_hour_keeps_out_no_shorter_one():
    spans = {"first": 1200.0, "long": 3000.0, "last": 1200.0}
    signals = [ArmSignals([0.0, span], np.zeros((2, 5)), np.zeros((2, 5))) for span in spans.values()]
    parts = [SimpleNamespace(arm=SimpleNamespace(signals=one)) for one in signals]
    taken = [Taken(k, *pair) for k, pair in enumerate(zip(spans, parts, strict=True))]
    used, left_out = within_an_hour(taken, lambda part: part.arm.signals.time)
    assert [one.name for one in used] == ["first", "last"]
    assert left_out == ["long left out: the limit of one hour of readings is reached"]


def test_angles_in_degrees_are_refused_and_those_of_another_zero_are_told(folder):
    degrees = write_rows(folder / "degrees", arm_rows(truth_of(1), swing(5.0), 1, scale=180.0 / np.pi))
    with pytest.raises(RecordingError, match="look like degrees"):
        run("arm_friction", degrees)
    shifted = write_rows(folder / "shifted", arm_rows(truth_of(1), swing(5.0), 1, shift=-2.95))
    assert any("zeros other than" in warning for warning in run("arm_friction", shifted).warnings)


def test_starts_out_of_rest_under_torques_tell_how_late_a_joint_follows_them(folder, arm_bag):
    truth = truth_of(1)
    result = run("arm_friction", write_rows(folder / "torques", torque_rows(truth, 1)))
    found = {finding.name: finding for finding in result.findings}
    base = found["arm.joint_1.torque_delay"]
    # Dead time of the commands, lag of the reported speeds, and what the current loop takes.
    least = truth.command_delay + truth.speed_lag
    assert base.identified and least - 2e-3 < base.estimate.value < least + 10e-3
    standing = found["arm.joint_3.torque_delay"].estimate
    assert standing.verdict.startswith("not identifiable") and np.isnan(standing.value)
    assert not [name for name in verdicts(run("arm_friction", arm_bag)) if "torque_delay" in name]


# Motors


@pytest.fixture(scope="module")
def motors(folder) -> StageResult:
    return run("thermal", write_rows(folder / "heat", heat_rows(truth_of(3), 3, 600.0)))


def test_resistance_and_back_emf_are_those_of_the_twin(motors):
    found = {finding.name: finding.estimate for finding in motors.findings}
    for k, motor in enumerate(truth_of(3).model(ROBOT).motors):
        prefix = f"robot.arm.joint_{k + 1}.motor"
        assert found[f"{prefix}.resistance"].value == pytest.approx(motor.motor.resistance, rel=0.02)
        assert found[f"{prefix}.torque_constant"].value == pytest.approx(motor.motor.torque_constant, rel=0.01)
        assert found[f"{prefix}.torque_constant"].unit == "N m/A"


def test_heat_is_that_of_the_twin_where_it_is_called_identified(motors):
    wrong, told = [], 0
    for finding in motors.findings:
        joint, what = int(finding.name.split("joint_")[1][0]) - 1, finding.name.rsplit(".", 1)[1]
        motor = truth_of(3).model(ROBOT).motors[joint].motor
        if not finding.identified or "resistance" not in what[7:] and "time" not in what:
            continue
        told += 1
        if abs(finding.estimate.value - getattr(motor, what)) > 3.5 * finding.estimate.standard_error:
            wrong.append((finding.name, finding.estimate, getattr(motor, what)))
    assert told >= 6 and not wrong, wrong
    assert any("the motors are assumed to start at air temperature" in note for note in motors.notes)


def test_a_minute_of_heat_leaves_the_housing_open_and_says_which_ratio(folder):
    result = run("thermal", write_rows(folder / "minute", heat_rows(truth_of(3), 3, 60.0)))
    told = verdicts(result)
    assert "not identifiable" in told["robot.arm.joint_2.motor.housing_time_constant"]
    assert "these runs do not determine" in told["robot.arm.joint_2.motor.housing_ambient_resistance"]


def test_temperature_alone_tells_ratios_and_a_youbot_tells_nothing(folder, arm_bag):
    rows = [row for row in heat_rows(truth_of(3), 3, 300.0) if row[1] != "/arm_1/motor_voltage"]
    result = run("thermal", write_rows(folder / "warm", rows))
    told = verdicts(result)
    assert told["arm.joint_2.motor.heating"] == "identified"
    assert "no motor voltage" in told["robot.arm.joint_2.motor.resistance"]
    assert "only ratios" in told["robot.arm.joint_2.motor.winding_housing_resistance"]
    assert any("four ratios" in note for note in result.notes)
    with pytest.raises(RecordingError, match="neither motor voltages nor motor temperatures"):
        run("thermal", arm_bag)


def test_a_voltage_alone_tells_the_heat_of_a_motor_that_gets_warm(folder):
    truth = truth_of(1)
    rows = [row for row in heat_rows(truth, 1, 600.0, stretched=True) if not row[1].endswith("_temperature")]
    result = run("thermal", write_rows(folder / "voltage", rows))
    found, motor = {finding.name: finding.estimate for finding in result.findings}, truth.model(ROBOT).motors[1].motor
    heating = found["arm.joint_2.motor.heating"]
    true = motor.resistance_at(motor.ambient_temperature) / motor.winding_capacity
    assert heating.identified and heating.value == pytest.approx(true, rel=0.25)
    assert found["robot.arm.joint_2.motor.winding_housing_resistance"].value == pytest.approx(
        motor.winding_housing_resistance, rel=0.2
    )
    assert any("computed from their resistance" in note for note in result.notes)
    # On average the winding was 10 K warmer than the reference: a fit over all of it is dozens of its errors off.
    cold = found["robot.arm.joint_2.motor.resistance"]
    assert cold.identified and abs(cold.value - motor.resistance) < 3.0 * cold.standard_error
    assert cold.value == pytest.approx(motor.resistance, rel=0.03)


# Base


def test_friction_of_the_base_is_that_of_the_twin_and_each_wheel_is_told(base):
    truth, found = calibrated_truth(3), values(base)
    for name in ("viscous_x", "wheel_coulomb"):
        assert name in COEFFICIENTS
        assert found[f"robot.base.friction.{name}"] == pytest.approx(getattr(truth, name), rel=0.15)
    wheels = [found[f"base.friction.wheel_coulomb_{wheel}"] for wheel in ("fl", "fr", "rl", "rr")]
    assert np.mean(wheels) == pytest.approx(found["robot.base.friction.wheel_coulomb"], rel=0.05)
    assert {curve.title for curve in base.fits} == {f"Base {way}, base" for way in ("forward", "sideways", "turning")}
    forward = base.fits[0]
    assert forward.band is not None and np.corrcoef(forward.measured, forward.modelled)[0, 1] > 0.9


def test_a_base_without_efforts_is_told_of_the_way_out(folder):
    bag = write_rows(folder / "standard", base_rows(drive(stairs(20.0), calibrated_truth(3), 3), effort=False))
    result = run("base_friction", bag)
    assert "--motors-off" in result.missing and "switch the motors off" in result.missing
    assert set(verdicts(result).values()) == {f"not identifiable: {result.missing}"}


def test_coasting_tells_friction_over_mass_where_there_is_no_effort(folder):
    twists, off = coasts()
    truth = calibrated_truth(3)
    run_of = drive(twists, truth, 3, off=off)
    bag = write_rows(folder / "coast", base_rows(run_of, effort=False))
    first = float(run_of.stamps[0])
    # A little inside: the motors' own lag, and being switched on again.
    spans = tuple((begin - first + 0.05, end - first) for begin, end in off)
    result = run("base_friction", bag, Options(motors_off=spans))
    assert not result.missing and any("over effective mass" in note for note in result.notes)
    found = values(result)
    mass = ROBOT.base.mass + 4.0 * ROBOT.base.wheel_inertia / ROBOT.base.geometry.wheel_radius**2
    assert found["base.friction.wheel_coulomb_over_mass"] == pytest.approx(truth.wheel_coulomb / mass, rel=0.15)
    with pytest.raises(RecordingError, match="--motors-off 500,501"):
        run("base_friction", bag, Options(motors_off=((500.0, 501.0),)))


def test_wheel_angles_in_degrees_are_refused(folder):
    rows = wheel_rows(180.0 / np.pi, 1.0)
    bag = write_rows(folder / "wheel_degrees", rows)
    with pytest.raises(RecordingError, match="look like degrees"):
        run("base_friction", bag)
    assert any("look like degrees" in warning for warning in quality(bag))


# What looks wrong


def wheel_rows(angle: float, speed: float, nan_from: int = 10**9, jump_at: float = 1e9):
    """Wheels that turn, with units, holes and clocks of one's choice."""
    from stage_bags import WHEELS, joint_state_cdr, nanoseconds

    rows = []
    for k in range(600):
        time = 0.02 * k
        turned = np.array([1.0, 1.1, 0.9, 1.2]) * (1.0 - np.cos(time)) * 5.0
        speeds = np.array([1.0, 1.1, 0.9, 1.2]) * np.sin(time) * 5.0
        signs, ways = np.array(ROBOT.driver.position_sign), np.array(ROBOT.driver.velocity_sign)
        positions = angle * signs * turned
        if k >= nan_from:
            positions[1] = np.nan
        stamp = nanoseconds(time + (3.0 if time > jump_at else 0.0))
        rows.append((time, "/driver/joint_states", joint_state_cdr(stamp, WHEELS, positions, speed * speeds * ways)))
    return rows


def quality(bag: Path) -> tuple[str, ...]:
    return look_at(open_recording(bag, 0, ROBOT, Options()), ROBOT)


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("sound", wheel_rows(1.0, 1.0), None),
        ("rpm", wheel_rows(1.0, 60.0 / (2.0 * np.pi)), "revolutions per minute"),
        ("degrees", wheel_rows(1.0, 180.0 / np.pi), "degrees per second"),
        ("other", wheel_rows(3.0, 1.0), "another unit"),
        ("sign", wheel_rows(-1.0, 1.0), "opposite signs"),
        (
            "nan",
            wheel_rows(1.0, 1.0, nan_from=500),
            "100 of 600 messages have positions that are not finite numbers, of wheel",
        ),
        ("jump", wheel_rows(1.0, 1.0, jump_at=6.0), "jumps forward by 3"),
    ],
)
def test_what_looks_wrong_has_its_own_message(folder, name, rows, words):
    told = quality(write_rows(folder / f"quality_{name}", rows))
    if words is None:
        assert told == ()
    else:
        assert any(words in warning for warning in told), told
        assert all(f"quality_{name}" in warning for warning in told)


def test_parts_are_plain_data_and_small(base_bag, arm_bag):
    for name, bag in (("base_friction", base_bag), ("arm_friction", arm_bag)):
        part = stage_of(name).extract(open_recording(bag, 0, ROBOT, Options()), ROBOT)
        assert len(pickle.dumps(part)) < 500_000
    json.dumps(vars(run("base_friction", base_bag).findings[0].estimate))


# Over many robots


@pytest.mark.slow
def test_intervals_hold_over_a_dozen_drawn_robots(folder):
    """Values of arm and motors that are called identified, in standard errors from the truth."""
    friction, motors, errors = [], [], []
    for seed in range(1, 13):
        truth = truth_of(seed)
        bag = write_rows(folder / f"many_{seed}", arm_rows(truth, swing(60.0), seed))
        expected = true_friction(truth)
        for finding in run("arm_friction", bag).findings:
            what = finding.name.rsplit(".", 1)[1]
            if not finding.identified or what not in ("coulomb", "viscous") and "total_at" not in finding.name:
                continue
            joint = int(finding.name.split("joint_")[1][0]) - 1
            speed = float(finding.name.split("total_at_")[1]) if "total_at" in finding.name else 0.0
            true = expected[joint, 1] if what == "viscous" else expected[joint] @ [1.0, speed]
            friction.append((finding.estimate.value - true) / finding.estimate.standard_error)
            if speed:
                errors.append(abs(finding.estimate.value / true - 1.0))
        heat = write_rows(folder / f"heat_{seed}", heat_rows(truth, seed, 600.0))
        models = [motor.motor for motor in truth.model(ROBOT).motors]
        for finding in run("thermal", heat).findings:
            what = finding.name.rsplit(".", 1)[1]
            if finding.identified and finding.is_parameter:
                true = getattr(models[int(finding.name.split("joint_")[1][0]) - 1], what)
                motors.append((finding.estimate.value - true) / finding.estimate.standard_error)
    within = {name: float(np.mean(np.abs(z) < 3.0)) for name, z in (("friction", friction), ("motors", motors))}
    print(f"within 3 standard errors: {within}; of {len(friction)} and {len(motors)} values")
    print(f"total friction: median error {np.median(errors):.3%}, 95 % {np.quantile(errors, 0.95):.3%}")
    assert min(within.values()) >= 0.9
    assert np.quantile(errors, 0.95) < 0.05
