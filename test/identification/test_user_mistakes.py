"""Mistakes in recordings and robot files: their values are not identified, or a message names the mistake."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from arm_motions import TREE, excited, recommended, true_friction, truth_of
from body_runs import ramps
from calibration_runs import BASE, drawn_run, drawn_tracker
from friction_runs import COEFFICIENTS, PERIOD, STRAIGHT, TURNING, calibrated_truth, drive, stairs
from scipy.signal import lfilter
from stage_bags import ARM, ROBOT, WHEELS, Row, base_rows, heat_rows, joint_state_cdr, nanoseconds, write_rows

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.base_friction._signals import wheel_signals
from youbot_dynamics.identification.body._fit import identify_axis
from youbot_dynamics.identification.calibration import CalibrationSignals
from youbot_dynamics.identification.calibration._model import odometry
from youbot_dynamics.identification.calibration.stage import finish as finish_calibration
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.identification.pipeline import Identification, identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.stages import Taken
from youbot_dynamics.identification.thermal.stage import finish as finish_thermal
from youbot_dynamics.identification.thermal.stage import recorded_motors
from youbot_dynamics.recording.bag import open_bag

STATES = "/driver/joint_states"
DELAYS = [f"robot.base.delay.effective_{axis}" for axis in ("x", "y", "yaw")]


@pytest.fixture(scope="module")
def run():
    return drive(stairs(40.0, STRAIGHT + TURNING), calibrated_truth(3), 3)


def delays(bags: list[Path]) -> Identification:
    return identify(bags, ROBOT, Options(), only=("delay",))


@pytest.fixture(scope="module")
def right(run, tmp_path_factory) -> Path:
    return write_rows(tmp_path_factory.mktemp("right") / "drive", base_rows(run))


@pytest.fixture(scope="module")
def alone(right) -> Identification:
    """Delays of the right recording."""
    return delays([right])


def test_copies_of_a_recording_are_no_other_drives(right, alone, tmp_path):
    copies = [shutil.copytree(right, tmp_path / f"copy_{k}") for k in range(3)]
    together = delays([right, *copies])
    assert len(together.result.sources) == 1
    assert sum("they count once" in note for note in together.notes) == 3
    for name in DELAYS:
        assert together.result[name].estimate.interval == alone.result[name].estimate.interval


@pytest.mark.parametrize(
    "wrong",
    [lambda t: 0.4, lambda t: 0.2 * (t > 20.0), lambda t: -0.2 * (t > 20.0), lambda t: 0.005 * t],
    ids=["offset", "jump", "jump back", "drift"],
)
def test_stamps_of_another_clock_do_not_become_delay(run, alone, tmp_path, wrong):
    rows: list[Row] = []
    for time, topic, cdr in base_rows(run):
        if topic == STATES:
            k = int(np.argmin(np.abs(run.stamps - time)))
            stamp = nanoseconds(float(run.stamps[k] + wrong(run.stamps[k])))
            cdr = joint_state_cdr(stamp, WHEELS, run.positions[k] * ROBOT.driver.position_sign)
        rows.append((time, topic, cdr))
    found = delays([write_rows(tmp_path / "bag", rows)]).result
    for name in DELAYS:
        estimate, true = found[name].estimate, alone.result[name].estimate
        assert not estimate.identified or abs(estimate.value - true.value) < 0.005
    which = "receive times" if wrong(0.0) else "stamps, put on the clock of the recorder,"
    assert which in found.sources[0].clock and "clocks of their stamps differ" in found.sources[0].clock


@pytest.mark.parametrize("recorder", [0.0, -0.5, 3.0])
def test_readings_that_a_driver_sends_late_keep_their_stamps_whatever_the_recorders_clock(
    run, alone, tmp_path, recorder
):
    rows = [(time + 0.06 * (topic == STATES) + recorder, topic, cdr) for time, topic, cdr in base_rows(run)]
    late = delays([write_rows(tmp_path / "bag", rows)]).result
    assert late.sources[0].clock.startswith("stamps")
    for name in DELAYS:
        assert late[name].estimate.value == pytest.approx(alone.result[name].estimate.value, abs=1e-6, nan_ok=True)


def test_efforts_of_another_scale_are_warned_of(run, tmp_path):
    def identified(scale: float) -> Identification:
        scaled = dataclasses.replace(run, efforts=scale * run.efforts)
        return identify(
            [write_rows(tmp_path / f"{scale}", base_rows(scaled))], ROBOT, Options(), only=("base_friction",)
        )

    assert not [warning for warning in identified(1.0).warnings if "efforts and accelerations" in warning]
    doubled = identified(2.5)
    assert [warning for warning in doubled.warnings if "efforts and accelerations show" in warning]
    for scale in (0.1, 1000.0):
        wrong = identified(scale).result
        assert not any(finding.identified for finding in wrong.findings if finding.is_parameter)
        assert not wrong.complete


@pytest.mark.parametrize("wrong", ["angles in turns", "slow stamps", "one wheel in other units"])
def test_a_base_of_several_times_its_mass_gives_no_friction(run, tmp_path, wrong):
    mistakes = {
        "angles in turns": {"positions": run.positions / (2.0 * np.pi)},
        "slow stamps": {"stamps": 2.0 * run.stamps, "command_time": 2.0 * run.command_time},
        "one wheel in other units": {"efforts": run.efforts * [1.0, 20.0, 1.0, 1.0]},
    }
    bag = write_rows(tmp_path / "bag", base_rows(dataclasses.replace(run, **mistakes[wrong])))
    result = identify([bag], ROBOT, Options(), only=("base_friction",)).result
    friction = [finding.estimate for finding in result.findings if finding.is_parameter]
    assert not any(estimate.identified for estimate in friction)
    assert any("kg, but the robot file has" in estimate.verdict for estimate in friction)


def test_poses_that_were_computed_from_the_wheels_calibrate_nothing():
    run = drawn_run(3, drawn_tracker(3), 40.0)
    signals = run.signals()
    times = signals.wheel_time[5:-5]
    own = CalibrationSignals(signals.wheel_time, signals.wheel_angles, times, odometry(signals, BASE, times))
    found = finish_calibration([Taken(0, "own", own)], ROBOT, lambda number: pytest.fail("not opened again"))
    assert not any(finding.identified for finding in found.findings)
    assert "computed from the wheels" in found.findings[0].estimate.verdict
    tracked = finish_calibration([Taken(0, "tracked", signals)], ROBOT, lambda number: pytest.fail("not opened again"))
    assert any(finding.identified for finding in tracked.findings)


@pytest.mark.parametrize(("unit", "hint"), [(180.0 / np.pi, "57.3: degrees"), (1e-3, "1000: mm")])
def test_a_motion_in_another_unit_than_its_command_is_no_gain(unit, hint):
    time = 0.05 * np.arange(1200)
    command = 0.3 * np.sin(0.9 * time) + 0.2 * np.sin(2.1 * time)
    motion = unit * np.interp(time - 0.15, time, command)
    axis = identify_axis("yaw", "rad/s", time, command, time, motion)
    assert not axis["gain"].identified and hint in axis["gain"].verdict
    assert axis["effective"].identified and axis["effective"].value == pytest.approx(0.15, abs=0.03)


@pytest.mark.parametrize(("factor", "zero"), [(1.0, 273.15), (1.8, 32.0)], ids=["kelvin", "Fahrenheit"])
def test_motor_temperatures_in_another_unit_are_refused(tmp_path, factor, zero):
    bag = open_bag(write_rows(tmp_path / "bag", heat_rows(truth_of(1), 1, 60.0)))
    motors = recorded_motors(bag, ROBOT, {})
    other = dataclasses.replace(motors, winding=factor * motors.winding + zero)
    with pytest.raises(IdentificationError, match="convert them if they are in kelvin or degrees Fahrenheit"):
        finish_thermal([Taken(0, "bag", other)], ROBOT, lambda number: pytest.fail("not opened again"))


@pytest.mark.parametrize("seed", range(3))
def test_exchanged_columns_are_no_wrong_clocks(seed):
    one, other = ramps(seed)[:, :2].T
    time = 0.05 * np.arange(len(one))
    axis = identify_axis("x", "m/s", time, one, time, np.interp(time - 0.15, time, other))
    assert "explains only" in axis["effective"].verdict and "columns are exchanged" in axis["effective"].verdict


def test_a_wheel_smaller_than_its_rollers_are_deep_is_no_error_where_no_phase_is_known():
    geometry = dataclasses.replace(ROBOT.base.geometry, wheel_radius=0.02)
    assert geometry.wheels().depth <= 0.02 < geometry.roller_depth


@pytest.mark.parametrize("wheels", [(0, 1), (0, 2), (0, 3), (1, 3)])
def test_efforts_of_exchanged_wheels_give_no_friction(run, wheels):
    base = ROBOT.base.geometry.mecanum()

    def refusal(efforts: np.ndarray) -> str:
        reason = wheel_signals(run.stamps, run.positions, efforts, None, np.zeros(3), base).refusal()
        assert reason is None or reason.kind is Kind.WRONG_SIGNALS
        return "" if reason is None else reason.text

    assert refusal(run.efforts) == ""
    exchanged = run.efforts.copy()
    exchanged[:, list(wheels)] = exchanged[:, list(wheels[::-1])]
    assert f"the effort of wheel {wheels[0] + 1} acts with the motion of wheel" in refusal(exchanged)
    reversed_one = run.efforts * np.where(np.arange(4) == wheels[1], -1.0, 1.0)
    assert f"the effort of wheel {wheels[1] + 1} acts against its own motion" in refusal(reversed_one)


def test_exchanged_efforts_of_a_bag_are_named_by_their_joints(run, tmp_path):
    exchanged = dataclasses.replace(run, efforts=run.efforts[:, [1, 0, 2, 3]])
    bag = write_rows(tmp_path / "bag", base_rows(exchanged))
    missing = identify([bag], ROBOT, Options(), only=("base_friction",)).result.missing["base_friction"]
    assert f"the effort of {WHEELS[0]} acts with the motion of {WHEELS[1]}, not with its own" in missing


@pytest.mark.parametrize("frozen", [0.0, 0.4, np.nan])
def test_an_effort_that_never_changes_gives_no_friction(run, tmp_path, frozen):
    efforts = run.efforts.copy()
    efforts[:, 2] = frozen
    bag = write_rows(tmp_path / "bag", base_rows(dataclasses.replace(run, efforts=efforts)))
    missing = identify([bag], ROBOT, Options(), only=("base_friction",)).result.missing["base_friction"]
    assert f"the effort of {WHEELS[2]} is missing, or never changes" in missing


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
@pytest.mark.parametrize("time_constant", [0.0, 0.2])
def test_filtered_efforts_of_the_wheels_give_no_wrong_friction(seed, time_constant, tmp_path):
    run, smoothing = drive(stairs(40.0, STRAIGHT + TURNING), calibrated_truth(seed), seed), PERIOD + time_constant
    efforts = lfilter([PERIOD / smoothing], [1.0, -time_constant / smoothing], run.efforts, axis=0)
    bag = write_rows(tmp_path / "bag", base_rows(dataclasses.replace(run, efforts=efforts)))
    result = identify([bag], ROBOT, Options(), only=("base_friction",)).result
    estimates = {name: result[f"robot.base.friction.{name}"].estimate for name in COEFFICIENTS}
    for name, estimate in estimates.items():
        assert not estimate.identified or abs(estimate.value - getattr(calibrated_truth(seed), name)) < 4.0 * (
            estimate.standard_error
        )
    behind = [estimate for estimate in estimates.values() if "ms behind the motion, and the value" in estimate.verdict]
    assert bool(behind) == (time_constant > 0.0)


def few_motions(random: np.random.Generator) -> np.ndarray:
    """Commands of somebody who drives for 40 s and only ever does two to five things."""
    scale = [0.5, 0.4, 1.0] * random.choice([0.2, 0.5, 1.0], (random.integers(2, 6), 1))
    motions = scale * random.uniform(-1.0, 1.0, scale.shape) * (random.random(scale.shape) < 0.6)
    pieces = []
    while sum(map(len, pieces)) * PERIOD < 40.0:
        count = int(random.uniform(50, 250))
        ramp = np.minimum(np.minimum(np.arange(count), count - np.arange(count)) / 20.0, 1.0)
        pieces.append(ramp[:, None] * motions[random.integers(len(motions))])
    return np.vstack(pieces)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_a_drive_of_few_motions_shows_no_exchanged_efforts(seed):
    random, truth = np.random.default_rng(seed), calibrated_truth(seed)
    names = ("wheel_coulomb", "roller_coulomb", "viscous_x", "viscous_y")
    changed = {name: getattr(truth, name) * 10.0 ** random.uniform(-1.0, 1.0) for name in names}
    run = drive(few_motions(random), dataclasses.replace(truth, **changed), seed)
    base = ROBOT.base.geometry.mecanum()
    assert wheel_signals(run.stamps, run.positions, run.efforts, None, np.zeros(3), base).refusal() is None


@pytest.fixture(scope="module")
def arm_run():
    return excited(truth_of(1), recommended(), 1)


def arm_result(signals, tmp_path):
    rows: list[Row] = [
        (stamp, STATES, joint_state_cdr(nanoseconds(stamp), ARM, position, np.zeros(5), torque))
        for stamp, position, torque in zip(signals.time, signals.position, signals.torque, strict=True)
    ]
    return identify([write_rows(tmp_path / "arm", rows)], ROBOT, Options(), only=("arm_friction",))


def identified_joints(found: Identification) -> set[int]:
    """Numbers of the joints with friction that was identified."""
    names = [finding.name for finding in found.result.findings if finding.is_parameter and finding.identified]
    return {int(name.split(".")[2].removeprefix("joint_")) for name in names if "friction" in name}


def has_bodies(found: Identification) -> bool:
    return any("physically consistent bodies" in note for note in found.notes)


GEARS = [156, 156, 100, 71, 71]


@pytest.mark.parametrize(
    ("scale", "factor", "joints"),
    [
        (1.0, "", {1, 2, 3, 4, 5}),
        pytest.param(2.0, "1.96", {1, 2, 3, 4, 5}, marks=pytest.mark.slow),
        (3.5, "3.44", set()),
        pytest.param(0.102, "0.1", set(), marks=pytest.mark.slow),  # kgf m
        pytest.param(1000.0, "981", set(), marks=pytest.mark.slow),  # N mm
        pytest.param(1.0 / np.array(GEARS), "0.00629", set(), marks=pytest.mark.slow),  # torques of the motors
    ],
    ids=["right", "twice", "3.5 times", "kgf m", "N mm", "motors"],
)
def test_efforts_of_the_arm_in_another_unit_are_named_and_give_no_friction_beyond_a_factor_of_three(
    arm_run, tmp_path, scale, factor, joints
):
    found = arm_result(dataclasses.replace(arm_run, torque=scale * arm_run.torque), tmp_path)
    assert len(found.warnings) == bool(factor)
    assert all(f"show {factor} times the weight" in warning for warning in found.warnings)
    assert identified_joints(found) == joints
    assert has_bodies(found) == bool(joints)
    assert any("bodies of the arm were not identified: the efforts" in note for note in found.notes) != bool(joints)


@pytest.mark.parametrize(
    ("joint", "scale"),
    [(4, 4.0), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 4.0), (3, 100.0), (1, 5.0)))],
)
def test_efforts_of_one_joint_in_another_unit_refuse_that_joint_alone(arm_run, tmp_path, joint, scale):
    efforts = arm_run.torque * np.where(np.arange(1, 6) == joint, scale, 1.0)
    found = arm_result(dataclasses.replace(arm_run, torque=efforts), tmp_path)
    assert f"efforts of joint {joint} are +" in found.warnings[0] and len(found.warnings) == 1
    assert identified_joints(found) == {1, 2, 3, 4, 5} - {joint}
    assert has_bodies(found)


def test_efforts_without_weight_are_named_and_give_no_bodies(arm_run, tmp_path):
    weight = np.array([TREE.gravity_forces(position) for position in arm_run.position])
    found = arm_result(dataclasses.replace(arm_run, torque=arm_run.torque - weight), tmp_path)
    assert any("do not show the weight of the links" in warning for warning in found.warnings)
    assert not has_bodies(found)
    assert identified_joints(found)  # friction has no need of weight


@pytest.mark.parametrize("delay", [0.1, pytest.param(0.2, marks=pytest.mark.slow)])
def test_efforts_far_behind_the_motion_give_no_viscous_friction(arm_run, tmp_path, delay):
    late = [np.interp(arm_run.time - delay, arm_run.time, torque) for torque in arm_run.torque.T]
    found = arm_result(dataclasses.replace(arm_run, torque=np.column_stack(late)), tmp_path)
    values = [found.result[f"robot.arm.joint_{k}.friction.viscous"] for k in range(1, 6)]
    assert not any(value.identified for value in values)
    assert "ms behind the motion, which looks like viscous friction" in values[1].estimate.verdict


@pytest.mark.parametrize(
    ("step", "joints"), [pytest.param(0.05, {1, 2, 3, 4, 5}, marks=pytest.mark.slow), (1.0, {2, 3})]
)
def test_efforts_in_coarse_steps_give_no_wrong_friction(arm_run, tmp_path, step, joints):
    found = arm_result(dataclasses.replace(arm_run, torque=step * np.round(arm_run.torque / step)), tmp_path)
    for (joint, name), true in np.ndenumerate(true_friction(truth_of(1))[:, :2]):
        estimate = found.result[f"robot.arm.joint_{joint + 1}.friction.{('coulomb', 'viscous')[name]}"].estimate
        assert not estimate.identified or abs(estimate.value - true) < 4.0 * estimate.standard_error
    assert identified_joints(found) == joints
    coulomb = found.result["robot.arm.joint_1.friction.coulomb"].estimate
    assert coulomb.identified or "depends on the steps of the readings" in coulomb.verdict


def test_much_friction_hides_no_weight(arm_run, tmp_path):
    speed = np.gradient(arm_run.position, arm_run.time, axis=0)
    friction = 1.5 * np.sqrt(np.mean(arm_run.torque**2, axis=0)) * np.tanh(speed / 0.02)
    found = arm_result(dataclasses.replace(arm_run, torque=arm_run.torque + friction), tmp_path)
    assert not any("weight" in warning for warning in found.warnings)
    assert {2, 3, 4} <= identified_joints(found)


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_joint_that_lifts_nothing_although_it_should_is_named_and_refused(seed, tmp_path):
    right, order = excited(truth_of(seed), recommended(), seed), [0, 1, 2, 4, 3]
    exchanged = dataclasses.replace(right, torque=right.torque[:, order], position=right.position[:, order])
    found = arm_result(exchanged, tmp_path)
    assert any("efforts of joint 4 do not show the weight" in warning for warning in found.warnings)
    assert 4 not in identified_joints(found)


@pytest.mark.parametrize(
    "joints", [(2, 3), *(pytest.param(pair, marks=pytest.mark.slow) for pair in ((0, 1), (0, 4), (1, 2), (3, 4)))]
)
def test_exchanged_joints_of_the_arm_are_warned_of(arm_run, tmp_path, joints):
    order = np.arange(5)
    order[list(joints)] = order[list(joints[::-1])]
    exchanged = dataclasses.replace(arm_run, torque=arm_run.torque[:, order], position=arm_run.position[:, order])
    warnings = arm_result(exchanged, tmp_path).warnings
    assert any("order of joints" in warning or "torque constant" in warning for warning in warnings), warnings


def test_a_base_that_moves_a_thousandth_of_its_command_is_warned_of_and_keeps_its_delay(run, alone, tmp_path):
    log = tmp_path / "drive.csv"
    sent = np.column_stack(
        [run.command_time, 1000.0 * run.twist[:, :2], run.twist[:, 2], np.full((len(run.twist), 4), np.nan)]
    )
    read = np.column_stack([run.stamps, np.full((len(run.stamps), 3), np.nan), run.positions])
    rows = np.concatenate([sent, read])
    np.savetxt(log, rows[np.argsort(rows[:, 0], kind="stable")], delimiter=",")
    columns = ",".join(
        ["time", *(f"command.{axis}" for axis in ("x", "y", "yaw")), *(f"position.{name}" for name in WHEELS)]
    )
    found = identify([log], ROBOT, Options(columns=columns), only=("delay",))
    assert sum("times as far as commanded" in warning for warning in found.warnings) == 2
    assert not any("times as far as commanded" in warning for warning in alone.warnings)
    for name in DELAYS:
        assert found.result[name].estimate.value == pytest.approx(alone.result[name].estimate.value, abs=0.01)
