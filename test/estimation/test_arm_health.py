"""Messages with something wrong are counted, and each finding names its cause and what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from repository import DATA

from youbot_dynamics.estimation import arm_health as intake
from youbot_dynamics.estimation.arm_ekf import ArmEkf, ArmSensors
from youbot_dynamics.estimation.arm_estimator import ArmEstimator
from youbot_dynamics.estimation.arm_health import ERROR, WARNING, ArmHealth, JointIntake, JointReading, heat_findings
from youbot_dynamics.estimation.motor_heat import HeatBelief
from youbot_dynamics.robot import load_robot

ARM = tuple(f"arm_joint_{k}" for k in range(1, 6))
WHEELS = tuple(f"wheel_joint_{place}" for place in ("fl", "fr", "bl", "br"))
FINGERS = ("gripper_finger_joint_l", "gripper_finger_joint_r")
COULOMB = np.array([1.25, 0.7, 0.5, 0.24, 0.16])
LOAD = np.array([0.0, 3.0, 2.0, 1.0, 0.0])


def take(reader: JointIntake, names=(*ARM, *FINGERS), stamp=1.0, **fields) -> JointReading | None:
    n = len(names)
    values = {"position": np.arange(n), "velocity": np.zeros(n), "effort": np.ones(n), **fields}
    return reader.take(stamp, list(names), values["position"], values["velocity"], values["effort"])


def test_joints_are_found_by_name_in_any_order() -> None:
    reader = JointIntake(ARM, WHEELS)
    reading = take(reader, (*FINGERS, *ARM[::-1]))
    assert reading.position.tolist() == [6.0, 5.0, 4.0, 3.0, 2.0]
    assert sum(reader.counts.values()) == 0


@pytest.mark.parametrize(
    "kind, taken, message",
    [
        (intake.OTHERS, False, {"names": (*WHEELS, "caster_joint_fl")}),
        (intake.FOREIGN, False, {"names": ("elbow", "wrist")}),
        (intake.FOREIGN, False, {"names": ()}),
        (intake.PARTIAL, False, {"names": ARM[:4]}),
        (intake.TWICE, False, {"names": (*ARM, ARM[2])}),
        (intake.UNSTAMPED, False, {"stamp": 0.0}),
        (intake.UNSTAMPED, False, {"stamp": math.nan}),
        (intake.NO_EFFORT, True, {"effort": []}),
        (intake.NAN_EFFORT, True, {"effort": [1.0, math.nan, 1.0, math.inf, 1.0, 0.0, 0.0]}),
        (intake.NAN_EFFORT, True, {"effort": [1.0, 1.0, 1.0, 1e300, 1.0, 0.0, 0.0]}),
        (intake.NAN_EFFORT, True, {"effort": [1.0, 1.0]}),
        (intake.NAN_POSITION, True, {"position": [1.0, math.nan, 1.0, 1.0, 1.0, 0.0, 0.0]}),
        (intake.NAN_POSITION, True, {"position": [1.0, -1e300, 1.0, 1.0, 1.0, 0.0, 0.0]}),
        (intake.NAN_POSITION, True, {"position": []}),
    ],
)
def test_whatever_is_wrong_with_a_message_is_counted_once(kind: str, taken: bool, message: dict) -> None:
    reader = JointIntake(ARM, WHEELS)
    reading = take(reader, **message)
    assert (reading is not None) == taken
    assert {name: count for name, count in reader.counts.items() if count} == {kind: 1}
    if kind == intake.NAN_EFFORT:
        assert reading.effort[0] == 1.0 and np.isnan(reading.effort[3])


def test_ever_new_names_do_not_fill_the_memory() -> None:
    reader = JointIntake(ARM, WHEELS)
    for k in range(1000):
        take(reader, (f"joint_{k}",))
    assert len(reader._places) <= 50
    assert reader.counts[intake.FOREIGN] == 1000 and reader.names[intake.FOREIGN] == ("joint_999",)


def reading(stamp: float, position=0.0, velocity=0.0, effort=1.0) -> JointReading:
    return JointReading(
        stamp, *(np.broadcast_to(np.float64(value), 5).copy() for value in (position, velocity, effort))
    )


def watched(count: int = 60, lag: float = 0.0, **fields) -> ArmHealth:
    """After `count` messages at 50 Hz; fields are values or functions of time."""
    health = ArmHealth(ARM, COULOMB, "/driver/joint_states")
    for k in range(count):
        at = 0.02 * k
        values = {name: value(at) if callable(value) else value for name, value in fields.items()}
        health.hear(reading(100.0 + at, **values), at, 100.0 + at + lag)
    return health


def found(health: ArmHealth, now: float = 1.2, names=None) -> dict[str, str]:
    findings = health.findings(now, LOAD, names or {})
    assert all(one.cause and one.remedy and one.level in (WARNING, ERROR) for one in findings)
    levels = [one.level for one in findings]
    assert levels == sorted(levels, key=lambda level: level != ERROR)
    return {one.name: str(one) for one in findings}


def test_a_driver_that_is_well_finds_nothing() -> None:
    assert found(watched(velocity=1.0, position=lambda t: t)) == {}


def test_silence_is_an_error_that_names_the_topic_and_what_was_heard_instead() -> None:
    text = found(watched(), 3.0, {intake.FOREIGN: ("elbow",)})["silence"]
    assert "/driver/joint_states for 1.8 s" in text and "received elbow" in text and "running" in text


def test_a_first_message_has_the_time_that_discovery_takes() -> None:
    health = ArmHealth(ARM, COULOMB, "/x")
    assert found(health, 100.0) == {} == found(health, 104.0)
    assert "silence" in found(health, 105.1)
    health.hear(reading(1.0), 106.0, 1.0)
    assert found(health, 106.1) == {}
    assert "silence" in found(health, 107.0)


def test_the_sign_trap_is_told_with_its_joints() -> None:
    slopes = np.array([1.0, 1.0, 1.0, 1.0, -1.0])
    text = found(watched(position=lambda t: t * slopes, velocity=1.0))["sign trap"]
    assert "arm_joint_5 move in opposite directions" in text


def test_zero_efforts_of_all_and_of_one_loaded_joint_are_told_apart() -> None:
    assert "motors off" in found(watched(effort=0.0))["zero efforts"]
    one = found(watched(effort=np.array([1.0, 1.0, 0.0, 1.0, 1.0])))
    assert set(one) == {"zero effort"} and "arm_joint_3" in one["zero effort"]
    # A joint without load may rest without effort.
    assert found(watched(effort=np.array([0.0, 1.0, 1.0, 1.0, 1.0]))) == {}
    assert found(watched(count=10, effort=0.0), 0.2) == {}


@pytest.mark.parametrize(("lag", "side"), [(3.0, "3.0 s behind"), (-3.0, "3.0 s ahead of")])
def test_stamps_off_the_clock_are_stale(lag: float, side: str) -> None:
    text = found(watched(lag=lag))["stale stamps"]
    assert side in text and "use_sim_time" in text


def test_efforts_of_the_wrong_sign_are_found_by_torque_errors_of_twice_their_negative() -> None:
    health = watched()
    effort, speed = np.array([3.0, 4.0, 3.0, 2.0, 0.1]), np.full(5, 0.3)
    error = np.array([0.3, -0.5, -5.6, 0.1, -0.2])
    for _ in range(30):
        health.compare(effort, error, speed)
    assert list(found(health)) == ["effort sign"]
    assert "arm_joint_3 seem to have the wrong sign: invert" in found(health)["effort sign"]
    health.compare(effort, np.full(5, np.nan), speed)
    health.forget_signs()
    assert found(health) == {}


@pytest.mark.skipif(not DATA.is_dir(), reason="data folder absent")
@pytest.mark.parametrize(("sign", "expected"), [(1.0, ["effort sign"]), (-1.0, [])])
def test_a_real_youbot_whose_joint_3_reports_its_effort_the_wrong_way_round_is_found(
    sign: float, expected: list
) -> None:
    """Keiser's arm, every tenth row of 500 Hz; with joint 3 put right nothing is found."""
    position, velocity, effort = (
        np.loadtxt(DATA / "youbot_arm_keiser" / f"{name}.txt")[::10] for name in ("act_pos", "act_vel", "ef_tor")
    )
    effort[:, 2] *= sign
    robot = load_robot()
    arm = robot.arm.model()
    ekf = ArmEkf(arm, ArmSensors.of_robot(robot, 0.02, robot.driver.stamp_jitter))
    health = ArmHealth(ARM, np.array([friction.coulomb for friction in arm.friction]), "/driver/joint_states")
    for k in range(len(position)):
        stamp = 1.0 + 0.02 * k
        ekf.predict(stamp, effort[k])
        ekf.update(position[k])
        health.hear(JointReading(stamp, position[k], velocity[k], effort[k]), stamp, stamp)
        health.compare(effort[k], ekf.state.torque_error, ekf.state.speed)
    findings = health.findings(stamp, np.zeros(5), {})
    assert [one.name for one in findings] == expected
    assert all("arm_joint_3 seem" in one.cause for one in findings)


def test_a_count_that_rises_is_told_for_ten_seconds_with_its_number() -> None:
    health = watched()
    health.count({"late stamps": 0, "messages taken in": 5}, 0.0)
    assert found(health) == {}
    health.count({"late stamps": 3, "messages taken in": 9}, 1.0)
    assert "[3]" in found(health)["late stamps"]
    health.count({"late stamps": 3}, 5.0)
    health.hear(reading(200.0), 11.5, 200.0)
    assert found(health, 11.6) == {}


@pytest.mark.parametrize(
    "name",
    [
        *(kind for kind in intake.KINDS if kind != intake.OTHERS),
        "repeated stamps",
        "readings beyond the gate",
        "joints restarted",
        "steps without a solution",
        "starts after a gap",
        intake.VOLTAGES_OFF_CLOCK,
        "motor sensor readings beyond the gate",
        "motors restarted",
        "motor messages refused",
    ],
)
def test_every_refusal_has_a_finding(name: str) -> None:
    health = watched()
    health.count({name: 1}, 1.0)
    assert list(found(health, names={name: ("arm_joint_3",)})) == [name]
    assert "arm_joint_3" in found(health, names={name: ("arm_joint_3",)})[name]


@pytest.mark.parametrize("shift, lost, found_off_clock", [(0.0, 40, False), (0.0, 60, True), (5.0, 0, True)])
def test_voltages_are_off_the_clock_where_more_come_alone_than_lost_messages_explain(
    shift: float, lost: int, found_off_clock: bool
) -> None:
    """Five seconds at 50 Hz, some messages of the efforts lost in a row, or the voltages stamped earlier by a shift."""
    estimator = ArmEstimator(load_robot())
    for k in range(250):
        stamp = 10.0 + 0.02 * k
        estimator.take_voltages(stamp - shift, ARM, np.ones(5))
        if not 100 <= k < 100 + lost:
            estimator.take_states(stamp, ARM, [np.zeros(5), np.zeros(5), np.ones(5)], stamp, stamp)
    named = {finding.name for finding in estimator.findings(15.0)}
    assert (intake.VOLTAGES_OFF_CLOCK in named) == found_off_clock
    assert estimator.counts["voltages without an effort"] == (250 if shift else lost)


def test_messages_of_the_base_are_no_finding() -> None:
    health = watched()
    health.count({intake.OTHERS: 50}, 1.0)
    assert found(health) == {}


def test_hot_windings_are_told_with_their_time_and_beyond_the_limit_as_an_error() -> None:
    beliefs = [HeatBelief(0.0, winding, 4.0, 60.0, 3.0, 1.0) for winding in (40.0, 114.9, 115.1, 124.0, 126.0)]
    seconds = [math.inf, 200.0, 42.0, math.inf, 0.0]
    findings = heat_findings(ARM, beliefs, [125.0] * 5, seconds, 10.0)
    assert [(one.name, one.level) for one in findings] == [
        ("hot arm_joint_5", ERROR),
        ("hot arm_joint_3", WARNING),
        ("hot arm_joint_4", WARNING),
    ]
    assert "within 10 K" in str(findings[1]) and "limit reached in 42 s" in str(findings[1])
    assert "not at this load" in str(findings[2]) and "beyond its limit" in str(findings[0])


def test_temperatures_of_the_motors_are_the_last_field_of_joint_states() -> None:
    estimator = ArmEstimator(load_robot())
    for k in range(1, 30):
        estimator.take_temperatures(float(k), ARM, [], [], [60.0] * 5)
    np.testing.assert_allclose([row[0] for row in estimator.temperature_rows()], 60.0, atol=1.5)
