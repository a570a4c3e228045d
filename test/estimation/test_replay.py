"""`youbot replay` and the library behind it: what it says of a log is what filters and truth say, or a refusal."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from arm_runs import NOMINAL, PLACE, ROBOT, SHEETS, Run, drawn_truth, loaded, rms, sensors, swing
from command_line import exit_code
from replay_logs import ARM, STATES, WHEELS, nanoseconds, write_log, write_text
from scipy.signal import lfilter

from youbot_dynamics.commands._replay import LEFT_OUT, open_log, read_node
from youbot_dynamics.errors import InputError, YoubotDynamicsError
from youbot_dynamics.estimation.arm_ekf import ArmEkf, ArmEkfTuning, ArmSensors
from youbot_dynamics.estimation.arm_estimator import ArmEstimator
from youbot_dynamics.estimation.arm_health import VOLTAGES_OFF_CLOCK
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.motor_heat import ArmTemperatures
from youbot_dynamics.estimation.replay import ArmLog, ArmReplay, MotorReadings, replay_arm
from youbot_dynamics.estimation.support import Carried, SupportModel
from youbot_dynamics.messages.arm import ArmMessages
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, jazzy_types


@pytest.fixture(scope="module")
def run() -> Run:
    """Eight seconds at 50 Hz."""
    return swing(3, drawn_truth(3, travel=1e-3), seconds=8.0).every(10)


def log_of(run: Run, **changed: object) -> ArmLog:
    log = ArmLog(ARM, run.stamp, run.stamp, run.position, run.velocity, run.effort)
    return dataclasses.replace(log, **changed)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def replay(run: Run) -> ArmReplay:
    return replay_arm(log_of(run), ROBOT)


@pytest.fixture(scope="module")
def bag(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("bags") / "swing", run)


# ---- the library


@pytest.mark.parametrize("every", [2, 10])
def test_steps_of_an_encoder_are_found_in_the_log(every: int) -> None:
    """4096 steps a turn at the joint, 150 times those of the robot's driver: .07 to .4 rad/s off without them."""
    run, step = swing(3, drawn_truth(3, travel=1e-3), seconds=8.0).every(every), 2.0 * np.pi / 4096.0
    coarse = replay_arm(log_of(run, position=step * np.round(run.position / step)), ROBOT)
    assert not coarse.track.refused.any()
    late = len(run.stamp) // 4
    assert np.all(rms(coarse.track.speed[late:] - run.true_speed[late:]) < 0.03)


def test_it_believes_what_the_filter_believes_message_by_message(run: Run, replay: ArmReplay) -> None:
    ekf = ArmEkf(SHEETS, ArmSensors.of_robot(ROBOT, 0.02, ROBOT.driver.stamp_jitter))
    for k in range(len(run.stamp)):
        assert ekf.predict(run.stamp[k], run.effort[k])
        ekf.update(run.position[k])
        state = ekf.state
        np.testing.assert_array_equal(state.speed, replay.track.speed[k])
        np.testing.assert_allclose(state.friction_torque, replay.track.friction_torque[k], rtol=1e-12)
    np.testing.assert_array_equal(np.sqrt(np.diag(state.covariance))[5:10], replay.deviations.speed[-1])
    assert replay.counts["messages taken in"] == len(run.stamp)


def test_it_shows_what_the_node_would_have_published(run: Run, replay: ArmReplay) -> None:
    """The estimator of the node gets the messages one by one, wheels and arm on one topic as from the driver."""
    node, states = ArmEstimator(ROBOT), jazzy_types().deserialize_cdr
    messages = ArmMessages(ROBOT, node.settings, "", "base_footprint")
    speeds, windings = [], []
    for k in range(len(run.stamp)):
        stamp, still = float(run.stamp[k]), [np.zeros(4)] * 2
        assert not list(messages.of(node.take_states(stamp, WHEELS, (*still, ()), stamp, stamp)))
        fields = run.position[k], run.velocity[k], run.effort[k]
        made = list(messages.of(node.take_states(stamp, ARM, fields, stamp, stamp)))
        speeds += [states(cdr, kind).velocity for _, topic, kind, cdr in made if "estimated" in topic]
        windings += [states(cdr, kind).temperature for _, topic, kind, cdr in made if f"{ARM[1]}/winding" in topic]
    np.testing.assert_array_equal(speeds, replay.track.speed)
    np.testing.assert_allclose(windings, replay.heat.winding[1:, 1], rtol=1e-12)
    shared = {name: count for name, count in replay.counts.items() if name != LEFT_OUT}
    assert {name: node.counts[name] for name in shared} == shared
    assert not node.findings(float(run.stamp[-1])) and node.lowest is not None
    took = replay.track.readings > 0
    nis = replay.track.nis[took] / replay.track.readings[took]  # each message is a fiftieth of the mean
    assert node.nis == pytest.approx(lfilter([0.02], [1.0, -0.98], nis, zi=[0.98 * nis[0]])[0][-1])


def test_its_speeds_are_nearer_to_the_truth_than_the_drivers(run: Run, replay: ArmReplay) -> None:
    later = run.stamp > 1.0
    ours, drivers = (rms((speed - run.true_speed)[later]) for speed in (replay.track.speed, run.velocity))
    assert ours < 0.6 * drivers
    for k, one in enumerate(replay.summary):
        expected = rms(replay.track.speed[:, k] - run.velocity[:, k])
        assert one.joint == ARM[k] and one.speed_difference == pytest.approx(expected)
        assert 0.7 < one.coverage <= 1.0 and one.refused == 0
    assert not replay.findings


def test_bands_hold_the_truth_as_often_as_they_say(run: Run, replay: ArmReplay) -> None:
    """Two standard deviations hold 95 %; parameters here are 20 % off, so errors last and a run is few of them."""
    deviations = replay.deviations
    rows = deviations.row[run.stamp[deviations.row] > 1.0]
    use = run.stamp[deviations.row] > 1.0
    for values, truth, deviation, least in (
        (replay.track.speed, run.true_speed, deviations.speed, 0.9),
        (replay.track.position, run.true_position, deviations.position, 0.9),
        (replay.track.friction_torque, run.true_friction, deviations.friction, 0.75),
    ):
        inside = np.abs((values - truth)[rows]) < 2.0 * deviation[use]
        assert inside.mean() > least


def test_the_deviation_of_the_friction_is_that_of_friction_of_drawn_states(run: Run) -> None:
    """All of a torque error is friction's here; the states are drawn from a hundredth of the covariance."""
    ekf = ArmEkf(SHEETS, sensors(), ArmEkfTuning(load_error=0.0))
    ekf.replay(run.stamp[:150], run.position[:150], run.effort[:150])
    state, found = ekf.state, ekf.friction_deviation()
    random = np.random.default_rng(0)
    drawn = random.multivariate_normal(state.mean, 1e-4 * state.covariance, 20_000)
    for k, friction in enumerate(SHEETS.friction):
        torque = friction.torque(drawn[:, 10 + k].copy(), drawn[:, 5 + k].copy()) - drawn[:, 15 + k]
        assert found[k] == pytest.approx(100.0 * torque.std(), rel=0.05)


def test_heat_over_a_log_is_that_of_its_messages_one_by_one(run: Run) -> None:
    """Voltages, gaps, missing efforts and a clock that jumps among them."""
    effort, stamp = 3.0 * run.effort, run.stamp.copy()
    effort[50:60, 2] = np.nan
    stamp[200:] += 100.0
    random = np.random.default_rng(1)
    rows = np.arange(5, 380, 3)
    voltage = MotorReadings(stamp[rows] + 1e-3, 2.0 + random.random((len(rows), 5)))
    log = log_of(run, stamp=stamp, effort=effort, voltage=voltage)
    found = replay_arm(log, ROBOT)
    heat = ArmTemperatures(ROBOT.arm)
    times, windings = [float(stamp[0])], [[motor.winding for motor in heat.state]]
    for k in range(len(stamp)):
        elapsed = run.stamp[k] - run.stamp[k - 1] if k else 0.0
        if k in rows:
            heat.add_voltage(voltage.value[list(rows).index(k)], effort[k], found.track.speed[k])
        if heat.add(elapsed, effort[k]):
            times.append(stamp[k])
            windings.append([motor.winding for motor in heat.state])
    np.testing.assert_array_equal(found.heat.time, times)
    np.testing.assert_allclose(found.heat.winding, windings, rtol=1e-9)
    last = heat.limits(60.0, 2.0)
    np.testing.assert_allclose(found.heat.torque[-1], [one.torque for one in last], rtol=1e-9)
    assert [one.seconds_to_limit for one in found.summary] == pytest.approx([one.seconds for one in last], rel=1e-9)
    assert found.counts["voltages without an effort"] == 0


def test_voltages_far_from_every_effort_are_counted(run: Run) -> None:
    voltage = MotorReadings(run.stamp[:7] + np.r_[np.zeros(4), np.full(3, 0.5)] - 1.0, np.full((7, 5), 3.0))
    found = replay_arm(log_of(run, voltage=voltage), ROBOT)
    assert found.counts["voltages without an effort"] == 7
    assert VOLTAGES_OFF_CLOCK not in {finding.name for finding in found.findings}
    early = MotorReadings(run.stamp - 1000.0, np.full((len(run.stamp), 5), 3.0))
    told = replay_arm(log_of(run, voltage=early), ROBOT).findings
    assert VOLTAGES_OFF_CLOCK in {finding.name for finding in told}


def test_whatever_is_wrong_with_messages_is_counted_and_told(run: Run) -> None:
    stamp, position, effort = run.stamp.copy(), run.position.copy(), run.effort.copy()
    stamp[40], stamp[60] = stamp[39], stamp[59] - 0.01
    position[80, 1] += 0.5
    position[90, 3] = np.nan
    effort[100] = np.nan
    effort[110, 2] = np.inf
    stamp[300:] += 5.0
    found = replay_arm(log_of(run, stamp=stamp, position=position, effort=effort), ROBOT)
    counts = found.counts
    for name, count in (
        ("repeated stamps", 1),
        ("late stamps", 1),
        ("readings beyond the gate", 1),
        ("messages with a position that is missing or not a number", 1),
        ("messages without efforts", 1),
        ("messages with an effort that is not a number", 1),
        ("starts after a gap", 1),
    ):
        assert counts[name] == count, name
        assert name in {one.name for one in found.findings}
    assert np.isfinite(found.track.speed).all() and np.isfinite(found.deviations.friction).all()
    assert found.track.refused.sum() == 1 and np.flatnonzero(~found.track.taken).tolist() == [40, 60]


@pytest.mark.parametrize("every", [1, 10])
def test_a_filter_that_begins_while_the_arm_moves_knows_its_speeds_soon(every: int) -> None:
    """One that first steps from a speed of 0 believes that bristles hold the joints, and is off for seconds."""
    log = swing(3, drawn_truth(3, travel=1e-3), seconds=8.0).every(every)
    rows = slice(3000 // every, None)
    ekf = ArmEkf(SHEETS, ArmSensors.of_robot(ROBOT, 0.02, ROBOT.driver.stamp_jitter))
    track = ekf.replay(log.stamp[rows], log.position[rows], log.effort[rows])
    assert np.abs(log.true_speed[rows][0]).max() > 0.5
    assert ekf.counts["readings beyond the gate"] == 0 and ekf.counts["joints restarted"] == 0
    error = np.abs(track.speed - log.true_speed[rows])
    soon = log.stamp[rows] - log.stamp[rows][0] > 0.1
    assert error[soon].max() < 0.06
    within = error[1:] < 3.0 * np.sqrt(track.variance[1:, 5:10])
    assert within.mean() > 0.97


def test_a_first_reading_that_is_wild_is_not_taken_for_a_speed(run: Run) -> None:
    position = run.position[:50].copy()
    position[0, 2] += 1.0
    ekf = ArmEkf(SHEETS, sensors())
    track = ekf.replay(run.stamp[:50], position, run.effort[:50])
    assert ekf.counts["readings beyond the gate"] == 1 and track.refused[1, 2] == 1
    assert np.abs(track.speed[6:, 2] - run.true_speed[6:50, 2]).max() < 0.1


def test_an_effort_of_the_wrong_sign_and_one_that_is_dead_are_found(run: Run) -> None:
    effort = run.effort.copy()
    effort[:, 1] *= -1.0
    named = {one.name: one for one in replay_arm(log_of(run, effort=effort), ROBOT).findings}
    assert ARM[1] in named["effort sign"].cause and named["effort sign"].level == "error"
    names = {one.name for one in replay_arm(log_of(run, effort=0.0 * effort), ROBOT).findings}
    assert "zero efforts" in names


def test_a_motor_near_its_limit_is_told(run: Run) -> None:
    long = swing(2, NOMINAL, seconds=2.0).every(10)
    laps = 200
    stamp = np.concatenate([long.stamp + 2.0 * lap for lap in range(laps)])
    table = [np.tile(column, (laps, 1)) for column in (long.position, long.velocity, long.effort)]
    table[2][:, 3] = 6.0
    found = replay_arm(ArmLog(ARM, stamp, stamp, *table), ROBOT)
    assert f"hot {ARM[3]}" in {one.name for one in found.findings}
    assert found.summary[3].winding > 115.0


def test_a_log_of_another_shape_is_refused(run: Run) -> None:
    with pytest.raises(InputError, match="effort"):
        log_of(run, effort=run.effort[:, :4])
    with pytest.raises(InputError, match="no messages"):
        ArmLog(ARM, *(np.empty((0, 5)[: 1 + (k > 1)]) for k in range(5)))


def test_propagated_bristles_have_no_band(run: Run) -> None:
    settings = ArmSettings(ArmEkfTuning(bristles="propagated"))
    found = replay_arm(log_of(run), ROBOT, settings)
    assert np.isnan(found.deviations.bristle).all() and np.isfinite(found.deviations.friction).all()


# ---- the command


def youbot(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    """Output and errors of a verb that ends with an exit code."""
    ended = exit_code(*words)
    told = capsys.readouterr()
    assert ended == code, told
    return told.out, told.err


def test_a_bag_gives_table_report_and_a_bag_of_estimates(
    bag: Path, run: Run, replay: ArmReplay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = youbot(capsys, "replay", bag, "--out", tmp_path / "out")
    assert all(name in out for name in ARM) and "NIS" in out
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    estimates = open_bag(tmp_path / "out" / "estimates")
    assert not estimates.lost
    states = estimates.joint_states("/arm_1/estimated_joint_states", ARM)
    np.testing.assert_allclose(states.velocity, replay.track.speed, atol=1e-6)
    np.testing.assert_allclose(states.stamp + estimates.origin * 1e-9, run.stamp + nanoseconds(0.0) * 1e-9, atol=1e-6)
    friction = estimates.joint_states("/arm_1/friction", ARM)
    assert len(friction.stamp) == pytest.approx(len(run.stamp), abs=2)
    for joint in ARM:
        for part in ("winding", "housing"):
            topic = estimates.topics[f"/arm_1/{joint}/{part}_temperature"]
            assert topic.type == "sensor_msgs/msg/Temperature" and topic.count == len(replay.heat.time)
    assert "/arm_1/torque_available" in estimates.topics
    wheels = estimates.joint_states("/wheel_normal_forces", WHEELS)
    np.testing.assert_allclose(wheels.effort, replay.support.normal_forces, atol=1e-9)
    assert estimates.topics["/tip_over_margin"].count == len(wheels.stamp) == len(replay.support.time) > 60
    known = int(np.isfinite(replay.support.payload).sum())
    assert known and 0 < estimates.topics["/payload"].count <= known and "/centre_of_mass" in estimates.topics
    # What was made once is not overwritten.
    _, err = youbot(capsys, "replay", bag, "--out", tmp_path / "out", code=1)
    assert "estimates and report.html in it" in err


def test_a_log_tells_what_was_carried_and_how_the_wheels_felt_it() -> None:
    carried = swing(1, loaded(dataclasses.replace(NOMINAL, stamp_jitter=3e-4), 0.4), 12.0).every(10)
    found = replay_arm(log_of(carried), ROBOT).support
    assert found.payload[-1] == pytest.approx(0.4, rel=0.1) and found.payload_centre[-1] == pytest.approx(
        PLACE, abs=0.02
    )
    model = SupportModel(ROBOT)
    model.carry(Carried(0.4, PLACE))
    row = int(np.argmin(np.abs(carried.stamp - found.time[-1])))
    true = model.support(carried.true_position[row])
    np.testing.assert_allclose(found.centre_of_mass[-1], true.centre_of_mass, atol=3e-3)
    np.testing.assert_allclose(found.normal_forces[-1], true.normal_forces, rtol=0.05)


def test_the_tuning_of_a_parameter_file_is_that_of_the_node(
    bag: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sections apply as they do to the node, the file of parameters over that of the result."""
    result, params = tmp_path / "result.yaml", tmp_path / "params.yaml"
    result.write_text(
        "/**:\n  ros__parameters:\n    robot:\n      base:\n        mass: 31.0\n    friction_error: 0.1\n"
    )
    params.write_text(
        "/**:\n  ros__parameters:\n    use_sim_time: false\n"
        "/**/arm_ekf:\n  ros__parameters:\n    friction_error: 0.05\n    cold_start: false\n"
        "    feedforward_share: 0.5\n    robot:\n      base:\n        mass: 32.0\n"
        "arm_ekf:\n  ros__parameters:\n    gate: 8.0\n"
        "/yb1/arm_ekf:\n  ros__parameters:\n    gate: 9.0\n"
        "/**/odometry:\n  ros__parameters:\n    publish_tf: false\n"
    )
    robot, settings = read_node(result, params)
    assert robot.base.mass == 32.0
    tuning = ArmEkfTuning(friction_error=0.05, gate=8.0)
    assert settings == ArmSettings(tuning, cold_start=False, feedforward_share=0.5)
    assert settings.first_temperature == settings.start_temperature
    assert read_node(None, None) == (ROBOT, ArmSettings())
    tuned = replay_arm(log_of(run), robot, settings)
    assert tuned.heat.winding[0, 0] == pytest.approx(settings.start_temperature)
    given = json.loads(youbot(capsys, "replay", bag, "--json", "--params-file", params, "--result-file", result)[0])
    for told, one in zip(given["joints"], tuned.summary, strict=True):
        assert told["nis"] == pytest.approx(one.nis, rel=1e-3) and told["winding"] == pytest.approx(one.winding)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "/**/arm_ekf:\n  ros__parameters:\n    frictin_error: 0.1\n",
            ("frictin_error", "did you mean friction_error?"),
        ),
        ("arm_ekf:\n  ros__parameters:\n    gate: 1.0\n", ("gate", "2 to 100")),
        ("/**:\n  ros__parameters:\n    gate: true\n", ("gate", "decimal point")),
    ],
)
def test_a_tuning_that_the_node_would_refuse_is_refused(
    body: str, words: tuple[str, ...], bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "params.yaml").write_text(body)
    _, err = youbot(capsys, "replay", bag, "--params-file", tmp_path / "params.yaml", code=1)
    assert "params.yaml" in err and all(word in err for word in words), err


def test_its_summary_as_json(bag: Path, replay: ArmReplay, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(youbot(capsys, "replay", bag, "--json")[0])
    for told, one in zip(found["joints"], replay.summary, strict=True):
        assert told["joint"] == one.joint
        assert told["nis"] == pytest.approx(one.nis, rel=1e-3)
        assert told["friction"] == pytest.approx(one.friction, rel=1e-3)
        assert told["seconds_to_limit"] is None  # never
    assert found["findings"] == [] and found["counts"]["messages taken in"] == len(replay.log.stamp)


def test_a_text_log_says_the_same_as_the_bag(bag: Path, run: Run, tmp_path: Path) -> None:
    columns = write_text(tmp_path / "log.csv", run)
    text = open_log(tmp_path / "log.csv", ROBOT, columns, {})
    from_bag = open_log(bag, ROBOT, "", {})
    for name in ("position", "velocity", "effort"):
        np.testing.assert_allclose(getattr(text.arm, name), getattr(from_bag.arm, name), atol=1e-12)
    shift = from_bag.arm.stamp - text.arm.stamp
    assert np.ptp(shift) < 1e-6
    again = open_log(tmp_path / "log.csv", ROBOT, columns, {}, [ARM[2]])
    np.testing.assert_array_equal(again.arm.effort, text.arm.effort * [1.0, 1.0, -1.0, 1.0, 1.0])


def test_a_text_log_may_begin_before_0_and_have_the_voltage_of_one_joint_alone(tmp_path: Path) -> None:
    times = 0.02 * np.arange(50) - 3.0
    table = np.column_stack([times, *[np.full(50, 0.5)] * 5, *[np.zeros(50)] * 5, np.arange(50.0)])
    np.savetxt(tmp_path / "log.csv", table, fmt="%.9g", delimiter=",")
    names = [*(f"position.{name}" for name in ARM), *(f"effort.{name}" for name in ARM), f"voltage.{ARM[1]}"]
    opened = open_log(tmp_path / "log.csv", ROBOT, ",".join(["time", *names]), {})
    assert opened.origin == 3_000_000_000  # of the estimates: no stamp may be before 1970
    assert opened.arm.stamp == pytest.approx(times)
    assert opened.arm.voltage is not None and opened.arm.temperature is None
    np.testing.assert_array_equal(opened.arm.voltage.value[:, 1], np.arange(50.0))
    assert np.isnan(np.delete(opened.arm.voltage.value, 1, axis=1)).all()


def test_voltages_of_a_bag_are_used(run: Run, tmp_path: Path) -> None:
    volts = {k: np.full(5, 4.0) for k in range(10, 100)}
    opened = open_log(write_log(tmp_path / "bag", run, voltages=volts), ROBOT, "", {})
    assert opened.arm.voltage is not None and opened.arm.voltage.value.shape == (90, 5)
    with_them, without = (replay_arm(log, ROBOT) for log in (opened.arm, dataclasses.replace(opened.arm, voltage=None)))
    assert np.abs(with_them.heat.winding[-1] - without.heat.winding[-1]).max() > 0.1


def test_stamps_that_jump_are_used_as_far_as_they_go(run: Run, tmp_path: Path) -> None:
    stamp = run.stamp.copy()
    stamp[250:] -= 100.0
    stamp[20] = np.nan
    opened = open_log(write_log(tmp_path / "bag", run, stamp=stamp), ROBOT, "", {})
    assert opened.arm.left_out[LEFT_OUT] == len(stamp) - 250 + 1
    assert "left out" in opened.warnings[0]


def test_a_log_without_stamps_goes_by_receive_times(run: Run, tmp_path: Path) -> None:
    opened = open_log(write_log(tmp_path / "bag", run, stamp=np.full(len(run.stamp), np.nan)), ROBOT, "", {})
    assert "no stamp" in opened.warnings[0]
    np.testing.assert_array_equal(opened.arm.stamp, opened.arm.received)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no efforts", ("without efforts", "use a driver that reports effort")),
        ("nan efforts", ("without efforts",)),
        ("nan positions", ("no message with the positions", "encoders")),
        ("degrees", ("look like degrees", "deg")),
        ("other joints", ("no states of arm_joint_1", "driver/joint_states")),
        ("other robot", ("'somebody'", "--params-file")),
        ("another topic", ("no such topic", "/nowhere")),
        ("role", ("ROLE=NAME", "arm_states")),
        ("joint to invert", ("--invert-effort wheel", ARM[0])),
    ],
)
def test_a_bag_that_cannot_be_used_is_refused(
    case: str, words: tuple[str, ...], run: Run, tmp_path: Path, capsys
) -> None:
    few = Run(
        **{f.name: getattr(run, f.name)[:30] for f in dataclasses.fields(run) if f.name != "model"}, model=run.model
    )
    changed = {
        "no efforts": {"effort": np.empty((len(few.stamp), 0))},
        "nan efforts": {"effort": np.full((len(few.stamp), 5), np.nan)},
        "nan positions": {"position": np.full((len(few.stamp), 5), np.nan)},
        "degrees": {"position": np.rad2deg(few.position)},
        "other joints": {"names": tuple(f"finger_{k}" for k in range(5))},
        "other robot": {"robot_id": "somebody"},
    }
    options = {
        "another topic": ["--topic", "arm_states=/nowhere"],
        "role": ["--topic", "wheels=/a"],
        "joint to invert": ["--invert-effort", "wheel"],
    }
    path = write_log(tmp_path / "bag", few, **changed.get(case, {}))
    _, err = youbot(capsys, "replay", path, "--out", tmp_path / "out", *options.get(case, []), code=1)
    lines = err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    assert all(word in err for word in words), err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("time,position.arm_joint_1", ("no position of arm_joint_2",)),
        ("time,angle.arm_joint_1", ("angle.arm_joint_1", "position, velocity, effort")),
        ("time,position.arm_joint_9", ("arm_joint_9",)),
        ("time:min,position.arm_joint_1", ("min",)),
        ("position.arm_joint_1,effort.arm_joint_1", ("no column time",)),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("0,0.1,0.2\n0.02,0.1,0.2\n")
    with pytest.raises(YoubotDynamicsError) as told:
        open_log(tmp_path / "log.csv", ROBOT, columns, {})
    assert all(word in str(told.value) for word in words)


def test_a_text_log_whose_clock_goes_back_is_refused_with_its_line(run: Run, tmp_path: Path) -> None:
    columns = write_text(tmp_path / "log.csv", run)
    lines = (tmp_path / "log.csv").read_text().splitlines()
    lines[11] = lines[9]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    with pytest.raises(YoubotDynamicsError, match="line 12"):
        open_log(tmp_path / "log.csv", ROBOT, columns, {})


def test_what_is_not_there_or_in_the_way_is_named(bag: Path, tmp_path: Path, capsys) -> None:
    assert "absent" in youbot(capsys, "replay", tmp_path / "absent", code=1)[1]
    (tmp_path / "file").write_text("")
    assert "a file" in youbot(capsys, "replay", bag, "--out", tmp_path / "file", code=1)[1]
    (tmp_path / "notes.txt").write_text("hello\n")
    assert "notes.txt" in youbot(capsys, "replay", tmp_path / "notes.txt", code=1)[1]
    with BagWriter(tmp_path / "empty", {}) as writer:
        writer.add_topic(STATES, JOINT_STATE)
    assert "error: " in youbot(capsys, "replay", tmp_path / "empty", code=1)[1]
