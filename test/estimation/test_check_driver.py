"""The check of the driver: figures against readings made up for them, then over DDS against the simulated robot."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from youbot_dynamics.estimation.driver_check import (
    DriverFinding,
    GyroHeard,
    JointsHeard,
    OdometryHeard,
    Times,
    Verdict,
    gyro_heard,
    joints_heard,
    judge_arm_effort,
    judge_clock,
    judge_driver,
    judge_gyro,
    judge_names,
    judge_odometry,
    judge_rate,
    judge_signs,
    judge_wheel_effort,
    odometry_heard,
    worst,
)
from youbot_dynamics.kinematics.steering import rolling
from youbot_dynamics.robot import Driver, load_robot

DRIVER = load_robot().driver
OK, WARNING, NOT_TOLD, ERROR = Verdict
N = 300


def times(rate: float = 50.0, late: float = 0.004, jitter: float = 0.0, count: int = N) -> Times:
    stamp = 1e9 + np.arange(count) / rate + jitter * np.random.default_rng(1).standard_normal(count)
    return Times(stamp, stamp + late, stamp - 9e8)


def test_a_rate_is_told_of_readings_that_last_less_than_a_second() -> None:
    assert times(50.0, count=11).rate(50.0) == pytest.approx(50.0)
    assert times(50.0, count=1).rate(50.0) == 0.0


def wheels(twist=(0.2, 0.1, 0.3), signs=None, effort: float = np.nan, when: Times | None = None) -> JointsHeard:
    """As the youBot's driver tells a steady twist; `signs` (4,) turns positions round."""
    when = times() if when is None else when
    ours = np.tile(DRIVER.mecanum().wheel_speeds(np.array(twist)), (when.count, 1))
    position = ours * (when.stamp - when.stamp[0])[:, None] * DRIVER.position_sign
    position = position if signs is None else position * signs
    return JointsHeard(
        DRIVER.wheel_joints, when, position, ours * DRIVER.velocity_sign, np.full((when.count, 4), effort)
    )


def arm(effort: float) -> JointsHeard:
    when = times()
    zero = np.zeros((when.count, 5))
    return JointsHeard(DRIVER.arm_joints, when, zero, zero, np.full((when.count, 5), effort))


def odometry(twist=(0.2, 0.1, 0.3), scale: float = 1.0) -> OdometryHeard:
    when = times()
    return OdometryHeard(when, scale * np.tile(twist, (when.count, 1)))


def turning() -> JointsHeard:
    """The base turns to and fro at up to 0.6 rad/s, and drives at 0.2 m/s."""
    when = times()
    rate = 0.6 * np.sin(1.5 * (when.stamp - when.stamp[0]))
    twists = np.column_stack([np.full(N, 0.2), np.zeros(N), rate])
    ours = np.array([DRIVER.mecanum().wheel_speeds(twist) for twist in twists])
    return JointsHeard(
        DRIVER.wheel_joints, when, np.zeros((N, 4)), ours * DRIVER.velocity_sign, np.full((N, 4), np.nan)
    )


def gyro(scale: float = 1.0, bias: float = 0.0) -> GyroHeard:
    when = times(200.0, count=4 * N)
    rate = 0.6 * np.sin(1.5 * (when.stamp - when.stamp[0]))
    return GyroHeard(when, scale * rate + bias + 0.003 * np.random.default_rng(2).standard_normal(4 * N))


def test_a_driver_as_it_should_be_passes_every_item():
    names = (DRIVER.wheel_joints, DRIVER.arm_joints)
    findings = judge_driver(wheels(), arm(0.4), odometry(), gyro_heard([]), names, DRIVER)
    assert [(f.item, f.verdict) for f in findings if f.verdict != OK] == []
    assert worst(findings) == OK and len({f.item for f in findings}) == len(findings)


@pytest.mark.parametrize(
    ("rate", "verdict", "told"),
    [(50.0, OK, "50.0"), (40.0, WARNING, "40.0"), (15.0, WARNING, "15.0"), (100.0, WARNING, "100.0")],
)
def test_rates_are_compared_with_the_loop_of_the_driver(rate, verdict, told):
    found = judge_rate("x", times(rate), 50.0)
    assert found.verdict == verdict and told in found.text
    assert found.values["rate_hz"] == pytest.approx(rate, rel=1e-3)


def test_messages_that_waited_for_their_reader_to_start_are_neither_a_rate_nor_a_gap():
    """A right rate was doubted: the first .7 s of 5 s came at once, and .07 s of them later on."""
    whole = times(100.0, count=500)
    arrived = whole.arrived.copy()
    arrived[:70] = arrived[70]
    arrived[300:307] = arrived[300] + 0.11
    found = judge_rate("x", dataclasses.replace(whole, arrived=arrived), 100.0)
    assert found.verdict == OK and found.values["rate_hz"] == pytest.approx(100.0, abs=0.1)
    lost = np.delete(np.arange(500), range(300, 311))
    some = Times(whole.stamp[lost], whole.received[lost], whole.arrived[lost])
    assert "1 gap of" in judge_rate("x", some, 100.0).text
    unstamped = dataclasses.replace(some, stamp=np.zeros(some.count))
    assert "1 gap of" in judge_rate("x", unstamped, 100.0).text


def test_odometry_of_a_driver_may_come_at_another_rate_than_its_joints_but_without_gaps():
    told = odometry()
    for rows, verdict in ((np.arange(0, N, 2), OK), (np.delete(np.arange(0, N, 2), range(20, 40)), WARNING)):
        when = Times(told.times.stamp[rows], told.times.received[rows], told.times.arrived[rows])
        heard = OdometryHeard(when, told.twist[rows])
        findings = judge_driver(wheels(), None, heard, gyro_heard([]), (DRIVER.wheel_joints,), DRIVER)
        assert {f.item: f.verdict for f in findings}["odometry of the driver"] == verdict


def test_nothing_is_said_of_the_arm_of_a_robot_without_one():
    findings = judge_driver(wheels(), None, odometry(), gyro_heard([]), (DRIVER.wheel_joints,), DRIVER)
    assert worst(findings) == OK
    assert not [f for f in findings if "arm" in f"{f.item} {f.text} {f.remedy}"]


def test_the_rate_is_that_of_the_robot_at_hand():
    """A driver at 5 Hz has no gap where one at 50 Hz would, and its signs are checked."""
    slow = dataclasses.replace(DRIVER, rate=5.0)
    when = times(5.0)
    assert judge_rate("x", when, slow.rate).verdict == OK
    assert judge_signs(wheels(when=when), slow).verdict == OK
    assert judge_signs(wheels(when=when), DRIVER).verdict == NOT_TOLD


def test_silence_is_an_error_where_nothing_works_without_and_else_not_told():
    empty = joints_heard(DRIVER.wheel_joints, []).times
    assert judge_rate("x", empty, 50.0).verdict == ERROR
    assert judge_rate("x", empty, 50.0, needed=False).verdict == NOT_TOLD
    assert odometry_heard([]).twist.shape == (0, 3)


def test_gaps_are_told_at_the_right_rate():
    whole = times()
    arrived = whole.arrived.copy()
    arrived[150:] += 0.25
    found = judge_rate("x", dataclasses.replace(whole, arrived=arrived), 50.0)
    assert found.verdict == WARNING and "1 gap of" in found.text
    assert found.values["longest_gap_s"] == pytest.approx(0.27)


@pytest.mark.parametrize(
    ("late", "verdict"), [(0.004, OK), (0.2, WARNING), (-0.05, WARNING), (5.0, ERROR), (-3600.0, ERROR)]
)
def test_clocks_that_differ_are_told_by_their_offset(late, verdict):
    found = judge_clock("x", times(late=late))
    assert found.verdict == verdict and found.values["offset_s"] == pytest.approx(late, abs=1e-6)


def test_jitter_is_the_standard_deviation_of_the_stamps():
    true, count = 0.002, 3000
    found = judge_clock("x", times(jitter=true, count=count))
    assert found.verdict == OK
    assert found.values["jitter_s"] == pytest.approx(true, rel=0.1)
    assert judge_clock("x", times(jitter=0.007, rate=30.0)).verdict == WARNING


def test_a_clock_that_is_set_and_stamps_that_are_missing_are_errors():
    whole = times()
    for step in (-3.0, 2.0):
        stamp = whole.stamp.copy()
        stamp[150:] += step
        assert judge_clock("x", dataclasses.replace(whole, stamp=stamp)).verdict == ERROR
    assert "without a stamp" in judge_clock("x", dataclasses.replace(whole, stamp=np.zeros(N))).text


@pytest.mark.parametrize("after", [3, 150, N - 30])
def test_messages_that_were_held_up_are_no_clock_that_jumped(after):
    """A busy machine: nothing is delivered for 0.4 s, then all of it at once."""
    whole = times()
    arrived = whole.arrived.copy()
    held = (arrived > arrived[after]) & (arrived < arrived[after] + 0.4)
    arrived[held] = arrived[after] + 0.4
    assert judge_clock("x", dataclasses.replace(whole, arrived=arrived)).values["jumps"] == 0.0


@pytest.mark.parametrize("count", [3, 20])
def test_messages_that_waited_before_the_first_or_after_the_last_look_are_no_jump(count):
    whole = times()
    for part, late in ((slice(None, count), 0.5), (slice(-count, None), 0.5)):
        arrived = whole.arrived.copy()
        arrived[part] += late
        assert judge_clock("x", dataclasses.replace(whole, arrived=arrived)).values["jumps"] == 0.0


@pytest.mark.parametrize("by", [-0.5, 0.5, 3.0])
def test_a_clock_that_jumps_between_two_messages_is_told(by):
    whole = times()
    stamp = whole.stamp.copy()
    stamp[N // 2 :] += by
    assert judge_clock("x", dataclasses.replace(whole, stamp=stamp)).verdict == ERROR


def test_two_publishers_show_by_equal_stamps():
    whole = times()
    twice = Times(*(np.repeat(field, 2) for field in (whole.stamp, whole.received, whole.arrived)))
    assert judge_clock("x", twice).verdict == WARNING


def test_the_drivers_own_sign_trap_is_no_error_and_any_other_sign_is():
    found = judge_signs(wheels(), DRIVER)
    assert found.verdict == OK
    # It flips the position of the left wheels, and not their velocity.
    assert [np.sign(found.values[f"slope_{name}"]) for name in DRIVER.wheel_joints] == [-1, 1, -1, 1]
    for wheel, name in enumerate(DRIVER.wheel_joints):
        signs = np.ones(4)
        signs[wheel] = -1.0
        found = judge_signs(wheels(signs=signs), DRIVER)
        assert found.verdict == ERROR and name in found.text and "position_sign" in found.remedy
        known = dataclasses.replace(DRIVER, position_sign=tuple(signs))
        assert judge_signs(wheels(signs=signs), known).verdict == OK, "where the map says so, it is right"
    mended = dataclasses.replace(DRIVER, velocity_sign=DRIVER.position_sign)
    assert judge_signs(wheels(), mended).verdict == ERROR


def test_signs_are_not_told_of_wheels_that_stand_nor_of_quantisation_noise():
    assert judge_signs(wheels((0.0, 0.0, 0.0)), DRIVER).verdict == NOT_TOLD
    creeping = wheels((0.002, 0.0, 0.0))
    assert judge_signs(creeping, DRIVER).verdict == NOT_TOLD
    turned = wheels((0.2, 0.0, 0.0))
    velocity, position = turned.velocity.copy(), turned.position.copy()
    velocity[:, 2:], position[:, 2:] = 0.0, 0.0
    half = dataclasses.replace(turned, velocity=velocity, position=position)
    found = judge_signs(half, DRIVER)
    assert found.verdict == NOT_TOLD and "wheel_joint_bl, wheel_joint_br" in found.text
    assert "wheel_joint_fl" not in found.text and "by hand" in found.remedy


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_none_are_an_error_and_never_agree(value):
    whole = wheels()
    for field in ("position", "velocity"):
        broken = getattr(whole, field).copy()
        broken[5, 1] = value
        found = judge_signs(dataclasses.replace(whole, **{field: broken}), DRIVER)
        assert found.verdict == ERROR and found.text.startswith("wheel_joint_fr: NaN"), found
    twist = odometry().twist.copy()
    twist[7, 0] = value
    found = judge_odometry(whole, OdometryHeard(times(), twist), DRIVER)
    assert found.verdict == ERROR and not found.values, found


def test_velocities_that_are_missing_or_in_another_unit_are_told():
    silent = dataclasses.replace(wheels(), velocity=np.full((N, 4), np.nan))
    assert judge_signs(silent, DRIVER).verdict == NOT_TOLD
    degrees = dataclasses.replace(wheels(), position=np.degrees(wheels().position))
    assert judge_signs(degrees, DRIVER).verdict == WARNING


def test_the_drivers_odometry_betrays_signs_order_and_scale():
    assert judge_odometry(wheels(), odometry(), DRIVER).verdict == OK
    found = judge_odometry(wheels(), odometry(scale=0.05 / 0.0475), DRIVER)
    assert found.verdict == WARNING and found.values["ratio_vx"] == pytest.approx(0.05 / 0.0475)
    wrong = dataclasses.replace(DRIVER, velocity_sign=tuple(-s for s in DRIVER.velocity_sign))
    assert judge_odometry(wheels(), odometry(), wrong).verdict == ERROR
    assert judge_odometry(wheels((0.0, 0.0, 0.0)), odometry((0.0, 0.0, 0.0)), DRIVER).verdict == NOT_TOLD
    assert judge_odometry(wheels(), odometry_heard([]), DRIVER).verdict == NOT_TOLD


def test_odometry_without_a_twist_contradicts_no_wheel():
    assert judge_odometry(wheels(), odometry(scale=0.0), DRIVER).verdict == NOT_TOLD


@pytest.mark.parametrize(
    ("scale", "verdict", "told"),
    [
        (1.0, OK, "as the wheels do"),
        (-1.0, ERROR, "upside down"),
        (57.296, ERROR, "degrees"),
        (0.0, ERROR, "on its side"),
        (0.12, ERROR, "scale"),
    ],
)
def test_a_gyro_of_another_sign_unit_or_axis_is_named_and_its_bias_is_none(scale, verdict, told):
    found = judge_gyro(turning(), gyro(scale, bias=0.04), DRIVER)
    assert found.verdict == verdict and told in f"{found.text} {found.remedy}"
    assert found.values["ratio"] == pytest.approx(scale, abs=0.02, rel=0.02)


def test_no_gyro_is_told_of_where_nothing_turned_or_none_is_there():
    assert judge_gyro(wheels(), gyro(), DRIVER).verdict == NOT_TOLD
    assert judge_gyro(turning(), gyro_heard([]), DRIVER).verdict == OK


def steered(wheel_sign: float = 1.0) -> tuple[Driver, JointsHeard, OdometryHeard, GyroHeard]:
    """A tricycle whose driver tells no speed of the steering and now and then none of its angle."""
    driver, when = load_robot(robot_file="optiodom_tricycle").driver, times(20.0)
    steering = 0.6 * np.sin(when.stamp - when.stamp[0])
    readings = np.column_stack([np.zeros(N), steering])
    twist = driver.mecanum().twist(rolling([3.0, 0.0], readings))
    readings[7::50, 1], readings[57, 1] = np.nan, np.inf
    velocity = np.tile([3.0 * wheel_sign, np.nan], (N, 1))
    heard = JointsHeard(driver.wheel_joints, when, readings, velocity, np.full((N, 2), np.nan))
    return driver, heard, OdometryHeard(when, twist), GyroHeard(when, twist[:, 2])


def test_a_steered_wheel_is_compared_by_the_messages_that_tell_its_speed_and_angle():
    driver, heard, odom, turn = steered()
    for found in (judge_odometry(heard, odom, driver), judge_gyro(heard, turn, driver)):
        assert found.verdict == OK and all(c == pytest.approx(1.0, abs=1e-3) for c in found.values.values())
    blind = dataclasses.replace(heard, position=np.full((N, 2), np.nan))
    for found in (judge_odometry(blind, odom, driver), judge_gyro(blind, turn, driver)):
        assert found.verdict == NOT_TOLD and "no angles of its steering" in found.text


def test_the_owner_of_a_steered_wheel_reads_the_names_of_its_joints():
    driver, heard, odom, turn = steered(-1.0)
    findings = judge_odometry(heard, odom, driver), judge_gyro(heard, turn, driver), judge_names(driver, [["x"]], False)
    for found in findings:
        assert found.verdict == ERROR and "FL" not in found.remedy
        assert "drive_wheel_joint" in found.remedy and "steering_joint" in found.remedy


def test_efforts_say_what_can_be_identified():
    assert "coasting" in judge_wheel_effort(wheels()).text
    assert judge_wheel_effort(wheels(effort=0.0)).verdict == WARNING
    assert judge_wheel_effort(wheels(effort=0.3)).verdict == OK
    assert judge_arm_effort(arm(np.nan)).verdict == WARNING
    zero = judge_arm_effort(arm(0.0))
    assert zero.verdict == WARNING and "switchOnMotors" in zero.remedy
    assert judge_arm_effort(arm(0.2)).verdict == OK


def test_other_names_are_told_with_those_that_were_heard():
    found = judge_names(DRIVER, [["temp"]], arm=False)
    assert found.verdict == ERROR and "received temp" in found.text and "wheel_joints" in found.remedy
    assert judge_names(DRIVER, [], arm=False).verdict == NOT_TOLD
    assert judge_names(DRIVER, [DRIVER.wheel_joints], arm=True).verdict == WARNING


def test_joints_of_another_robot_are_told_to_need_its_file():
    names = ("wheel_fl", "wheel_fr")
    unmapped = judge_names(DRIVER, (), True, names, "/joint_states")
    assert unmapped.verdict == ERROR and unmapped.text.endswith("on /joint_states those of wheel_fl, wheel_fr")
    for found in (unmapped, judge_names(DRIVER, [names], True)):
        assert "youbot new-robot" in found.remedy and "--robot-file" in found.remedy
    own = judge_names(DRIVER, [DRIVER.wheel_joints[1:]], False)
    assert "new-robot" not in own.remedy and own.verdict == ERROR


def test_joints_that_stand_twice_in_a_message_are_named():
    found = judge_names(DRIVER, [DRIVER.wheel_joints, (*DRIVER.arm_joints, "arm_joint_2")], arm=True)
    assert found.verdict == ERROR and found.text == "arm_joint_2 named twice in one message, which is refused"


def test_an_error_weighs_more_than_what_is_not_told_and_that_more_than_a_warning():
    def of(*verdicts: Verdict) -> Verdict:
        return worst(DriverFinding("x", verdict, "") for verdict in verdicts)

    assert of(OK, WARNING, NOT_TOLD, ERROR) == ERROR
    assert of(OK, WARNING, NOT_TOLD) == NOT_TOLD
    assert of(OK, WARNING) == WARNING and of(OK) == OK


# Over DDS

# A machine that holds up the twin makes it a driver that loses its pace, and that is rightly told. How a pace is judged
# stands above, on made-up stamps.
PACED = {"states of the wheels", "states of the arm", "odometry of the driver"}
CODES = {OK: 0, WARNING: 0, ERROR: 1, NOT_TOLD: 3}


def checked(child) -> dict[str, dict]:
    """Findings by item of `youbot check-driver --json`, without those of a pace."""
    from ros_processes import PATIENCE

    output = child.communicate(timeout=PATIENCE)[0]
    findings = {finding["item"]: finding for finding in json.loads(output[output.index("{\n") :])["findings"]}
    assert child.returncode == CODES[worst(DriverFinding(i, Verdict(f["verdict"]), "") for i, f in findings.items())]
    assert set(findings) >= PACED
    assert all(findings[item]["verdict"] in ("ok", "warning") for item in PACED), findings
    return {item: finding for item, finding in findings.items() if item not in PACED}


@pytest.mark.ros
def test_the_twin_passes_and_its_signs_are_told_once_it_drives():
    pytest.importorskip("rclpy")
    from geometry_msgs.msg import Twist
    from ros_processes import Observer, Processes
    from sensor_msgs.msg import JointState

    with Processes() as processes, Observer("operator") as operator:
        processes.node("mock_youbot", "-p", "seed:=2")
        command = operator.node.create_publisher(Twist, "driver/cmd_vel", 1)
        operator.wait(lambda: command.get_subscription_count() > 0, "the twin")
        operator.listen(JointState, "driver/joint_states")
        operator.wait(lambda: len(operator.received["driver/joint_states"]) > 100, "a second of its states")
        untold = {"signs of the wheels", "wheels against the driver's odometry"}
        for item, finding in checked(processes.youbot("check-driver", "--json", "--duration", "3")).items():
            assert finding["verdict"] == ("not checked" if item in untold else "ok"), finding
        twist = Twist()
        twist.linear.x, twist.linear.y, twist.angular.z = 0.2, 0.1, 0.3
        child = processes.youbot("check-driver", "--json", "--duration", "6")
        operator.send(command, twist, lambda: child.poll() is not None, "the end of the check")
        driven = checked(child)
        assert {finding["verdict"] for finding in driven.values()} == {"ok"}, driven
        assert "positions move as" in driven["signs of the wheels"]["text"]
        assert "one motion" in driven["wheels against the driver's odometry"]["text"]


@pytest.mark.ros
def test_an_unmapped_driver_is_an_error_with_its_remaps_and_so_it_stands_on_diagnostics():
    pytest.importorskip("rclpy")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from geometry_msgs.msg import Twist
    from ros_processes import Observer, Processes, end
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Empty

    def statuses() -> dict[str, DiagnosticStatus]:
        return {s.name: s for array in driver.received["/diagnostics"] for s in array.status}

    with Processes() as processes, Observer("youbot_oodl_driver") as driver:
        driver.node.create_subscription(Twist, "cmd_vel", lambda message: None, 10)
        driver.node.create_publisher(JointState, "base/joint_states", 1)
        # Whatever its type: the graph shows who is on /tf even where tf2_msgs is not installed.
        driver.node.create_publisher(Empty, "/tf", 1)
        driver.listen(DiagnosticArray, "/diagnostics")
        node = processes.node("check_driver")
        driver.wait(lambda: "/check_driver: broadcasters of tf" in statuses(), "the findings")
        for item, remedy in (
            ("listeners of the operator", "-r cmd_vel:=driver/cmd_vel"),
            ("publishers of joint states", "-r base/joint_states:=driver/joint_states"),
            ("broadcasters of tf", "-r /tf:=driver/tf"),
            ("commands to the driver", "-r cmd_vel:=driver/cmd_vel"),
            ("states of the wheels", "start the driver"),
        ):

            def told(item: str = item, remedy: str = remedy) -> bool:
                status = statuses().get(f"/check_driver: {item}")
                return status is not None and status.level == DiagnosticStatus.ERROR and remedy in status.message

            driver.wait(told, f"{remedy} as the remedy of {item}")
        assert "youbot_oodl_driver" in statuses()["/check_driver: broadcasters of tf"].message
        driver.hear("/diagnostics", 3)
        assert end(node).count("-r /tf:=driver/tf") == 1


@pytest.mark.ros
def test_a_duration_that_tells_nothing_is_refused():
    from ros_processes import PATIENCE, Processes

    with Processes() as processes:
        child = processes.youbot("check-driver", "--duration", "1")
        assert "--duration: got 1 s; expected 2 to 120 s" in child.communicate(timeout=PATIENCE)[0]
        assert child.returncode == 1
