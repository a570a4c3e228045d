"""Live monitor of the response: known responses, delays that grow in mid-drive, healthy robots."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from delay_runs import PERIOD, estimates
from response_runs import ROBOT, with_response
from tracking_runs import ContactBaseOnly, excited, knowing

from youbot_dynamics.control.wheel_commands import limit_acceleration, limit_speed
from youbot_dynamics.estimation.response_monitor import AxisResponse, ResponseMonitor
from youbot_dynamics.identification.response import identify_response
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.faults import BASE, parse_faults
from youbot_dynamics.simulation.robot_driver import RobotDriver
from youbot_dynamics.simulation.truth import BaseTruth, load_truth
from youbot_dynamics.simulation.youbot import BaseOnly

KINEMATICS = ROBOT.base.geometry.mecanum()
SIGNS = np.array(ROBOT.driver.position_sign)
AXES = ("x", "y", "yaw")
STYLES = [(speed, way) for speed in (0.1, 0.2, 0.4) for way in ("from goal to goal", "sines")]
GROWS_AT = 40.0  # [s]
PLANTS = pytest.mark.parametrize("plant", ["twin", pytest.param("mujoco", marks=pytest.mark.slow)])


def commands(speed: float, way: str, seed: int, duration: float) -> np.ndarray:
    """Twists (n, 3) within the limits of the base: an operator's, or smooth ones."""
    random, count = np.random.default_rng([seed, 11]), round(duration / PERIOD)
    most = speed * np.array([1.0, 1.0, 2.5])
    time = PERIOD * np.arange(count)[:, None]
    waves = [(random.uniform(0.3, 2.5, 3), random.uniform(0.0, 6.3, 3)) for _ in range(4)]
    wishes = 0.5 * most * sum(np.sin(rate * time + phase) for rate, phase in waves)
    if way == "from goal to goal":
        wishes, begin = np.zeros((count, 3)), 0
        while begin < count:
            end = begin + int(random.uniform(0.5, 4.0) / PERIOD)
            wishes[begin:end] = random.uniform(-1.0, 1.0, 3) * most * (random.random(3) < 0.6)
            begin = end
    twists, limits = np.zeros((count, 3)), ROBOT.base.limits
    for k in range(1, count):
        wish = limit_speed(wishes[k], KINEMATICS, limits)
        twists[k] = limit_acceleration(wish, twists[k - 1], limits, PERIOD)
    return twists


def body_of(plant: str, truth: BaseTruth, seed: int) -> BaseOnly:
    if plant == "mujoco":
        pytest.importorskip("mujoco")
        return ContactBaseOnly(truth, seed)
    return BaseOnly(truth, ROBOT.driver, seed)


def judged(
    robot: Robot, body: BaseOnly, seed: int, twists: np.ndarray, faults: str = "", late: float = 0.0
) -> Iterator[tuple[float, tuple[AxisResponse, ...]]]:
    """Time [s] and figures at each new judgement; a share of the stamps is 2 to 18 ms late."""
    driver = RobotDriver(body, robot.driver, seed, arm=False)
    driver.set_faults(parse_faults(faults, robot.driver))
    monitor, geometry = ResponseMonitor(robot), robot.driver.mecanum()
    random = np.random.default_rng([seed, 5])
    phase = PERIOD * random.random()
    for k, twist in enumerate(twists):
        now, before = k * PERIOD, monitor.axes
        driver.advance(now)
        driver.command_twist(geometry.twist(robot.base.geometry.mecanum().wheel_speeds(twist)), now)
        monitor.sent(now, twist)
        driver.advance(now + phase)
        for channel, report in driver.read():
            if channel == BASE:
                stamp = report.stamp + random.uniform(0.002, 0.018) * (random.random() < late)
                monitor.read(stamp, report.position[:4] * SIGNS)
        if monitor.axes is not before:
            yield now, monitor.axes


def identified(plant: str, truth: BaseTruth, seed: int) -> Robot:
    """Our robot with delays and response as they are found from the recommended motion."""
    run, _ = excited(body_of(plant, truth, seed).base, seed)
    run = dataclasses.replace(run, positions=run.positions @ KINEMATICS.forward_matrix.T)
    delays = np.array([one.value if one.identified else 0.0 for one in estimates(run, ROBOT)])
    signals = DriveSignals(run.command_time, run.twist, run.stamps, rolled_path(run.positions))
    return with_response(identify_response([signals], ROBOT.base.dynamics(), delays), delays)


def alarms(axes: tuple[AxisResponse, ...]) -> list[str]:
    """Figures that left the identified ones."""
    return [
        f"{name} of {axis}: {(figure := getattr(response, name)).value:.3f} +- {figure.deviation:.3f}, "
        f"identified {figure.identified:.3f}"
        for axis, response in zip(AXES, axes, strict=True)
        for name in ("delay", "gain", "lag")
        if getattr(response, name).off
    ]


def ideal(
    dead_time: float, lag: float, gain: float, twist_at: Callable[[float], np.ndarray], monitor: ResponseMonitor
) -> None:
    """Feed a monitor 30 s of wheels that answer exactly to first order, read 7 ms after each command."""
    speed, moved, sent = np.zeros(3), np.zeros(3), []
    for k in range(30_000):
        if k % 20 == 0:
            sent.append(twist_at(1e-3 * k))
            monitor.sent(1e-3 * k, sent[-1])
        late = (k - round(1e3 * dead_time)) // 20
        answer = gain * sent[late] if late >= 0 else np.zeros(3)
        before, speed = speed, answer + (speed - answer) * np.exp(-1e-3 / lag)
        moved = moved + 1e-3 * answer + (before - speed) * lag
        if k % 20 == 6:
            monitor.read(1e-3 * (k + 1), KINEMATICS.inverse_matrix @ moved)


@pytest.mark.parametrize(("dead_time", "lag", "gain"), [(0.15, 0.02, 1.0), (0.05, 0.06, 0.9), (0.3, 0.04, 1.1)])
def test_delay_gain_and_lag_of_a_known_response_are_measured(dead_time: float, lag: float, gain: float) -> None:
    monitor = ResponseMonitor(ROBOT)
    ideal(dead_time, lag, gain, lambda t: np.array([0.2 * np.sin(t) + 0.1 * np.sin(2.3 * t), 0.0, 0.3]), monitor)
    along, across, turning = monitor.axes
    assert along.delay.valid and along.delay.value == pytest.approx(dead_time + lag, abs=0.002)
    assert along.gain.valid and along.gain.value == pytest.approx(gain, abs=0.01)
    assert along.lag.valid and along.lag.value == pytest.approx(lag, abs=0.004)
    assert not any(figure.valid for figure in (across.delay, across.gain, across.lag)), "it was not driven"
    # A turn at one speed shows the gain alone.
    assert turning.gain.valid and turning.gain.value == pytest.approx(gain, abs=0.01)
    assert not turning.delay.valid and not turning.lag.valid
    # Nothing is identified, so nothing can leave it.
    assert np.isnan(along.delay.identified) and not alarms(monitor.axes)


def test_readings_without_a_command_tell_nothing() -> None:
    monitor = ResponseMonitor(ROBOT)
    for k in range(200):
        monitor.read(PERIOD * k, np.full(4, 0.1 * k))
    assert all(axis.stamp == -np.inf for axis in monitor.axes)


def test_damaged_readings_and_other_clocks_begin_anew() -> None:
    monitor, random = ResponseMonitor(ROBOT), np.random.default_rng(3)
    for k in range(6000):
        stamp = PERIOD * k + (1e6 if k > 2000 else 0.0) - (3e6 if k > 4000 else 0.0)
        twist = np.array([0.2 * np.sin(stamp), 0.0, 0.0])
        twist[1] = np.nan if k % 71 == 0 else 1e300 if k % 73 == 0 else 0.0
        monitor.sent(stamp, twist)
        angles = 4.0 * np.ones(4) * np.sin(stamp) + (100.0 * random.integers(5) if k % 50 == 0 else 0.0)
        angles[2] = np.nan if k % 60 == 0 else angles[2]
        monitor.read(stamp, angles)
    assert all(axis.stamp == -np.inf for axis in monitor.axes)
    ideal(0.15, 0.02, 1.0, lambda t: np.array([0.2 * np.sin(t), 0.0, 0.0]), monitor)
    assert monitor.axes[0].delay.valid


@PLANTS
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_delay_that_grows_by_50_ms_is_reported_within_20_s_of_driving(plant: str, seed: int) -> None:
    truth = load_truth(seed)
    robot, twists = knowing(ROBOT, truth), commands(0.2, STYLES[seed % 2][1], seed, GROWS_AT + 20.0)
    fault = f"late delay=0.05 after={GROWS_AT} of=commands"
    found = ""
    for time, axes in judged(robot, body_of(plant, truth, seed), seed, twists, fault, late=0.2):
        grown = [axis.delay for axis in axes if axis.delay.off]
        assert time > GROWS_AT or not alarms(axes), f"false alarm at {time:.1f} s: {alarms(axes)}"
        if grown and not found:
            found = f"{plant}, seed {seed}: after {time - GROWS_AT:.1f} s {alarms(axes)}"
            assert 0.02 < grown[0].value - grown[0].identified < 0.08
    assert found, "the delay that grew was not seen"
    print(f"\n{found}")


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(begin, end), id=f"{begin}-{end - 1}", marks=[pytest.mark.slow] if begin > 1 else [])
        for begin, end in ((1, 2), (2, 8), (8, 13), (13, 18))
    ],
)
@PLANTS
def test_no_healthy_robot_raises_an_alarm(plant: str, seeds: range) -> None:
    """Two minutes each: any delay, lag and friction, late stamps, late and lost messages; as identified."""
    driven, valid = 0.0, 0
    for seed in seeds:
        truth = load_truth(seed)
        robot = identified(plant, truth, seed)
        truth = dataclasses.replace(truth, stamp_jitter=(truth.stamp_jitter, 0.004)[seed % 2])
        messages = ("", "lost share=0.2 of=base", "late delay=0.1 share=0.2 of=base")[seed % 3]
        for part in range(2):
            speed, way = STYLES[(2 * seed + part) % len(STYLES)]
            body = body_of(plant, truth, seed + 100 * (1 + part))
            twists = commands(speed, way, seed + 100 * part, 60.0)
            for time, axes in judged(robot, body, seed, twists, messages, late=0.2 * (seed % 4 == 1)):
                assert not alarms(axes), f"seed {seed}, {speed} m/s {way}, {time:.1f} s: {alarms(axes)}"
                valid += sum(axis.delay.valid for axis in axes)
            driven += 60.0
    assert valid > 0.2 * driven, "a monitor that reports nothing raises no alarm either"
    print(f"\n{plant}: {driven / 60.0:.0f} minutes without an alarm, {valid} delays reported")


@pytest.mark.ros
def test_the_diagnostic_of_the_running_drive_appears_and_warns_over_dds() -> None:
    pytest.importorskip("rclpy")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from geometry_msgs.msg import Twist
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters
    from ros_processes import Observer, Processes, twist_message
    from sensor_msgs.msg import JointState

    from youbot_dynamics.nodes._messages import seconds

    response = dataclasses.asdict(knowing(ROBOT, load_truth(0)).base.response)
    known = [word for name, value in response.items() for word in ("-p", f"robot.base.response.{name}:={value}")]
    with Processes() as processes, Observer() as observer:
        processes.node("mock_youbot", "-p", "seed:=0")
        processes.node("base_controller")
        processes.node("odometry", *known)
        observer.listen(DiagnosticArray, "/diagnostics")
        observer.listen(JointState, "wheel_commands")
        wish = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: wish.get_subscription_count() > 1, "the controller and the tracker")
        heard, statuses = observer.received["wheel_commands"], observer.received["/diagnostics"]
        observer.send(wish, twist_message((0.01, 0.0, 0.0)), lambda: heard, "wheel_commands")

        def told() -> DiagnosticStatus | None:
            found = [s for array in statuses for s in array.status if s.name == "/odometry: response"]
            return found[-1] if found else None

        def drive_until(level: bytes, words: str, shown: str = "") -> DiagnosticStatus:
            """Sway to and fro until the status says so and has this value, five minutes by the stamps at most."""
            begin = seconds(heard[-1].header.stamp)
            while (t := seconds(heard[-1].header.stamp) - begin) < 300.0:
                wish.publish(twist_message((0.2 * np.sin(1.5 * t), 0.15 * np.sin(1.1 * t), 0.4 * np.sin(0.9 * t))))
                observer.hear("wheel_commands", 2)
                status = told()
                has = status is not None and any(pair.key == shown and "+-" in pair.value for pair in status.values)
                if status is not None and status.level == level and words in status.message and (has or not shown):
                    print(f"\nafter {t:.1f} s of driving: {status.message}")
                    return status
            raise AssertionError(f"no status {words!r}: {told()}")

        status = drive_until(DiagnosticStatus.OK, "measured: x", "x_delay")
        values = {pair.key: pair.value for pair in status.values}
        assert " +- " in values["x_delay"] and ", identified 1" in values["x_delay"]
        parameter = Parameter(name="fault")
        fault = "late delay=0.05 of=commands"
        parameter.value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=fault)
        request = SetParameters.Request(parameters=[parameter])
        assert observer.call(SetParameters, "mock_youbot/set_parameters", request).results[0].successful
        drive_until(DiagnosticStatus.WARN, "the response of the base differs from the identified one: delay of ")
