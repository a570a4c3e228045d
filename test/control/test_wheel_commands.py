"""From a wished twist to four wheel speeds: limits between any two steps, refusal, priority, timeout."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.control.wheel_commands import (
    REFUSAL_FACTOR,
    WheelCommand,
    WheelCommander,
    limit_acceleration,
    limit_speed,
    limit_wheels,
    refusal,
)
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot

ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
LIMITS = ROBOT.base.limits
PERIOD = 0.02
TIMEOUT = 0.5
SLACK = 1e-9

SPEED = st.floats(-3.0, 3.0)
TWIST = st.tuples(SPEED, SPEED, st.floats(-6.0, 6.0))


def commander() -> WheelCommander:
    return WheelCommander(BASE, LIMITS, TIMEOUT)


def run(
    base: WheelCommander, start: float, end: float, source: str = "", twist: tuple = (0.0, 0.0, 0.0)
) -> list[WheelCommand]:
    """Steps from `start` to `end` at the nominal period, with a fresh command before each where one is named."""
    commands = []
    for k in range(round((end - start) / PERIOD)):
        now = start + k * PERIOD
        if source:
            assert base.offer(source, twist, now) == ""
        command = base.step(now, PERIOD)
        if command is not None:
            commands.append(command)
    return commands


@given(speeds=st.lists(st.floats(-40.0, 40.0), min_size=4, max_size=4))
def test_wheel_speeds_beyond_the_limit_are_scaled_as_a_whole(speeds: list) -> None:
    wish = np.array(speeds)
    limited = limit_wheels(wish, LIMITS.wheel_speed)
    if np.max(np.abs(wish)) <= LIMITS.wheel_speed:
        assert np.array_equal(limited, wish)
    else:
        assert np.max(np.abs(limited)) == pytest.approx(LIMITS.wheel_speed)
        np.testing.assert_allclose(limited * np.max(np.abs(wish)), wish * LIMITS.wheel_speed, atol=1e-9)


@given(twist=TWIST)
@settings(max_examples=200)
def test_a_twist_beyond_the_wheel_limit_is_scaled_and_keeps_its_direction(twist: tuple) -> None:
    wish = np.array(twist)
    limited = limit_speed(wish, BASE, LIMITS)
    fastest = np.max(np.abs(BASE.wheel_speeds(wish)))
    if fastest <= LIMITS.wheel_speed:
        assert np.array_equal(limited, wish)
    else:
        assert np.max(np.abs(BASE.wheel_speeds(limited))) == pytest.approx(LIMITS.wheel_speed)
        scale = np.linalg.norm(limited) / np.linalg.norm(wish)
        assert 0.0 < scale < 1.0
        np.testing.assert_allclose(limited, scale * wish, atol=1e-12)


@given(previous=TWIST, wish=TWIST, dt=st.floats(1e-3, 0.1))
@settings(max_examples=200)
def test_a_step_stays_on_the_line_towards_the_wish_and_within_the_acceleration(
    previous: tuple, wish: tuple, dt: float
) -> None:
    start, end = np.array(previous), np.array(wish)
    reached = limit_acceleration(end, start, LIMITS, dt)
    step, whole = reached - start, end - start
    slowing, braking = start[:2] @ whole[:2] < 0.0, start[2] * whole[2] < 0.0
    linear = (LIMITS.deceleration if slowing else LIMITS.acceleration) * dt
    angular = (LIMITS.angular_deceleration if braking else LIMITS.angular_acceleration) * dt
    assert np.hypot(*step[:2]) <= linear + SLACK and abs(step[2]) <= angular + SLACK
    share = step @ whole / (whole @ whole) if whole @ whole > 0.0 else 1.0
    assert -SLACK <= share <= 1.0 + SLACK
    np.testing.assert_allclose(step, share * whole, atol=1e-9)
    # Nothing is held back that the limits allow.
    at_limit = np.hypot(*step[:2]) > linear - SLACK or abs(step[2]) > angular - SLACK
    assert at_limit or np.allclose(reached, end)


EVENT = st.tuples(st.sampled_from(["operator", "tracker", "silence", "off", "on"]), TWIST, st.floats(1e-4, 1.5))


@given(events=st.lists(EVENT, min_size=3, max_size=40))
@settings(max_examples=100)
def test_no_sequence_of_commands_and_pauses_breaks_a_limit_between_two_steps(events: list) -> None:
    base, now, previous, last = commander(), 0.0, np.zeros(3), None
    for kind, twist, pause in events:
        now += pause if pause > 0.5 else 0.1 * pause
        if kind in ("operator", "tracker"):
            base.offer(kind, twist, now)
        elif kind != "silence":
            base.enabled = kind == "on"
        command = base.step(now, PERIOD)
        if command is None:
            continue
        elapsed = PERIOD if last is None else min(now - last, 2.0 * PERIOD)
        step = command.twist - previous
        assert np.hypot(*step[:2]) <= max(LIMITS.acceleration, LIMITS.deceleration) * elapsed + SLACK
        turn = max(LIMITS.angular_acceleration, LIMITS.angular_deceleration)
        assert abs(step[2]) <= turn * elapsed + SLACK
        if np.hypot(*command.twist[:2]) > np.hypot(*previous[:2]) and previous[:2] @ step[:2] >= 0.0:
            assert np.hypot(*step[:2]) <= LIMITS.acceleration * elapsed + SLACK
        assert np.max(np.abs(command.wheel_speeds)) <= LIMITS.wheel_speed + SLACK
        np.testing.assert_allclose(command.wheel_speeds, BASE.wheel_speeds(command.twist))
        previous, last = command.twist, now


def test_speeding_up_takes_the_acceleration_and_slowing_down_the_deceleration() -> None:
    base = commander()
    speeds = [command.twist[0] for command in run(base, 0.0, 0.5, "operator", (0.4, 0.0, 0.0))]
    np.testing.assert_allclose(np.diff(speeds)[:15], LIMITS.acceleration * PERIOD)
    assert speeds[-1] == pytest.approx(0.4)
    braking = [command.twist[0] for command in run(base, 0.5, 1.0, "operator", (0.0, 0.0, 0.0))]
    np.testing.assert_allclose(np.diff(braking)[:10], -LIMITS.deceleration * PERIOD)
    assert braking[-1] == 0.0


def test_nothing_is_sent_before_the_first_valid_command() -> None:
    base = commander()
    assert run(base, 0.0, 1.0) == []
    base.offer("operator", (np.nan, 0.0, 0.0), 1.0)
    assert base.step(1.0, PERIOD) is None
    base.enabled = False
    base.offer("operator", (0.1, 0.0, 0.0), 1.1)
    assert base.step(1.1, PERIOD) is None
    base.enabled = True
    base.offer("operator", (0.0, 0.0, 0.0), 1.2)
    assert base.step(1.2, PERIOD) is not None


def test_the_first_step_starts_from_rest() -> None:
    base = commander()
    base.offer("operator", (0.5, 0.0, 0.0), 100.0)
    first = base.step(100.0, PERIOD)
    assert first is not None
    np.testing.assert_allclose(first.twist, [LIMITS.acceleration * PERIOD, 0.0, 0.0])


BAD = [
    (np.nan, 0.0, 0.0),
    (0.0, np.inf, 0.0),
    (0.0, 0.0, -np.inf),
    (11.0 * LIMITS.wheel_speed * 0.0475, 0.0, 0.0),
    (0.0, 1e30, 0.0),
    (0.0, 0.0, 1e308),
]


@pytest.mark.parametrize("bad", BAD)
def test_a_refused_command_changes_nothing_and_does_not_feed_the_watchdog(bad: tuple) -> None:
    def drive(disturbed: bool) -> tuple[list[np.ndarray], list[str], int]:
        base = commander()
        run(base, 0.0, 1.0, "operator", (0.3, 0.1, 0.2))
        twists, sources = [], []
        for k in range(60):
            now = 1.0 + k * PERIOD
            if disturbed:
                reason = base.offer("operator", bad, now)
                assert "twist [" in reason
            command = base.step(now, PERIOD)
            assert command is not None
            twists.append(command.twist)
            sources.append(command.source)
        return twists, sources, base.refused

    calm, sources, none = drive(False)
    shaken, sources_shaken, refused = drive(True)
    assert np.array_equal(calm, shaken) and sources == sources_shaken
    assert (none, refused) == (0, 60)
    assert sources[0] == "operator" and sources[-1] == "none"
    assert np.all(shaken[-1] == 0.0)


# With two infinite products of opposite signs the speed of a wheel is NaN, which is not above any limit.
EXTREMES = (0.0, 0.3, 5e-324, -5e-324, 1e300, -1e300, 1e308, -1e308)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("source", ["operator", "tracker"])
def test_of_all_extreme_twists_each_is_refused_or_driven_within_the_limits(source: str) -> None:
    refused = 0
    for twist in itertools.product(EXTREMES, repeat=3):
        base = commander()
        reason = base.offer(source, twist, 0.0)
        commands = [base.step(k * PERIOD, PERIOD) for k in range(30)]
        if max(map(abs, twist)) > 1.0:
            refused += 1
            assert "more than 168 rad/s" in reason, twist
            assert commands == [None] * 30
            continue
        assert reason == ""
        for command in commands:
            assert command is not None
            assert np.all(np.abs(command.wheel_speeds) <= LIMITS.wheel_speed), twist
            assert np.all(np.abs(command.twist) <= np.abs(twist) + SLACK), twist
    assert refused == 8**3 - 4**3


def test_two_operators_who_contradict_each_other_are_told_from_one_who_reverses_quickly() -> None:
    def turning(speed: Callable[[int], float], rate: float, seconds: float = 3.0) -> bool:
        base = commander()
        for k in range(round(seconds * rate)):
            assert base.offer("operator", (speed(k), 0.0, 0.0), k / rate) == ""
        return base.turns.contradict(seconds)

    noise = np.random.default_rng(1).normal(0.0, 0.02, 300)
    assert turning(lambda k: 0.3 * (-1) ** k, 100.0)  # 50 Hz each
    assert turning(lambda k: 0.3 * (-1) ** k, 100.0, 0.3)
    assert turning(lambda k: 0.3 * (k % 2), 40.0)  # one of them commands zero
    assert turning(lambda k: 0.3 if k % 4 < 2 else -0.3, 100.0)  # one passes the other now and then
    assert not turning(lambda k: 0.8 if k % 12 < 6 else -0.8, 50.0)  # to and fro eight times a second, by one hand
    assert not turning(lambda k: 0.3 + noise[k], 100.0)  # a joystick that trembles
    assert not turning(lambda k: 0.3 + 0.05 * (k % 2), 100.0)  # two who nearly agree
    assert not turning(lambda k: 0.8 * np.sin(0.2 * k), 100.0)
    base = commander()
    for k in range(100):
        assert base.offer("operator", (0.3 * (-1) ** k, 0.0, 0.0), 0.01 * k) == ""
    assert base.turns.contradict(1.0) and not base.turns.contradict(2.0)


def test_ten_times_the_limit_is_scaled_and_a_hair_more_is_refused() -> None:
    edge = REFUSAL_FACTOR * LIMITS.wheel_speed * ROBOT.base.geometry.wheel_radius
    assert refusal((edge * (1 - 1e-9), 0.0, 0.0), BASE, LIMITS) == ""
    assert "more than 168 rad/s" in refusal((edge * (1 + 1e-9), 0.0, 0.0), BASE, LIMITS)


def test_a_command_is_not_shared_with_its_sender() -> None:
    base, twist = commander(), np.array([0.1, 0.0, 0.0])
    base.offer("operator", twist, 0.0)
    twist[:] = np.nan
    command = base.step(0.0, PERIOD)
    assert command is not None and np.all(np.isfinite(command.twist))


def test_when_commands_stop_the_wheels_begin_to_fall_in_time_and_reach_zero_at_the_limit() -> None:
    base = commander()
    run(base, 0.0, 2.0, "operator", (0.3, -0.2, 0.4))
    last_offer = 2.0 - PERIOD
    cruise = np.max(np.abs(BASE.wheel_speeds((0.3, -0.2, 0.4))))
    times = [2.0 + k * PERIOD for k in range(60)]
    commands = [base.step(now, PERIOD) for now in times]
    speeds = np.array([np.max(np.abs(command.wheel_speeds)) for command in commands if command])
    falling = np.flatnonzero(speeds < cruise - 1e-9)[0]
    assert times[falling] - last_offer <= 0.55
    assert np.all(np.diff(speeds) <= 1e-12)
    stopping = max(np.hypot(0.3, 0.2) / LIMITS.deceleration, 0.4 / LIMITS.angular_deceleration)
    zero = np.flatnonzero(speeds == 0.0)[0]
    assert times[zero] - times[falling] <= stopping + PERIOD
    steps = np.diff([command.twist for command in commands if command], axis=0)
    assert np.max(np.hypot(steps[:, 0], steps[:, 1])) <= LIMITS.deceleration * PERIOD + SLACK
    # The path while stopping keeps its direction.
    for command in commands[:zero]:
        assert command is not None
        assert abs(command.twist[0] * -0.2 - command.twist[1] * 0.3) < 1e-12


def test_the_operator_wins_while_his_command_is_young_and_the_tracker_follows() -> None:
    base = commander()
    base.offer("tracker", (0.2, 0.0, 0.0), 0.0)
    base.offer("operator", (0.0, 0.1, 0.0), 0.0)
    base.offer("tracker", (0.2, 0.0, 0.0), 0.01)
    first = base.step(0.02, PERIOD)
    assert first is not None and first.source == "operator" and first.twist[0] == 0.0
    base.offer("tracker", (0.2, 0.0, 0.0), 0.49)
    held = base.step(0.499, PERIOD)
    assert held is not None and held.source == "operator"
    later = base.step(0.51, PERIOD)
    assert later is not None and later.source == "tracker"
    gone = base.step(1.5, PERIOD)
    assert gone is not None and gone.source == "none"


def test_an_operator_who_commands_zero_still_holds_the_base() -> None:
    base = commander()
    base.offer("operator", (0.0, 0.0, 0.0), 0.0)
    commands = run(base, 0.02, 0.4, "tracker", (0.3, 0.0, 0.0))
    assert all(command.source == "operator" and np.all(command.twist == 0.0) for command in commands)


def test_disabling_brakes_within_the_limits_and_holds_zero() -> None:
    base = commander()
    run(base, 0.0, 1.0, "operator", (0.3, 0.0, 0.0))
    base.enabled = False
    commands = run(base, 1.0, 2.0, "operator", (0.3, 0.0, 0.0))
    speeds = [command.twist[0] for command in commands]
    np.testing.assert_allclose(np.diff([0.3, *speeds])[:9], -LIMITS.deceleration * PERIOD)
    assert {command.source for command in commands} == {"none"} and speeds[-1] == 0.0


def test_a_long_pause_between_two_steps_makes_no_jump() -> None:
    base = commander()
    run(base, 0.0, 0.1, "operator", (0.5, 0.0, 0.0))
    before = base.step(0.1, PERIOD)
    base.offer("operator", (0.5, 0.0, 0.0), 60.0)
    after = base.step(60.0, PERIOD)
    assert before is not None and after is not None
    assert after.twist[0] - before.twist[0] <= 2.0 * PERIOD * LIMITS.acceleration + SLACK


def test_a_command_says_whether_a_limit_cut_it() -> None:
    base = commander()
    commands = run(base, 0.0, 1.0, "operator", (0.3, 0.0, 0.0))
    assert commands[0].limited and not commands[-1].limited
    assert all(command.limited for command in run(base, 1.0, 3.0, "operator", (1.5, 0.0, 0.0)))


def test_age_is_that_of_the_youngest_valid_command() -> None:
    base = commander()
    assert base.age(5.0) == np.inf
    base.offer("tracker", (0.0, 0.0, 0.0), 1.0)
    base.offer("operator", (0.0, 0.0, 0.0), 2.0)
    base.offer("operator", (np.nan, 0.0, 0.0), 3.0)
    assert base.age(5.0) == 3.0


# A base that cannot move sideways

BURGER = load_robot(robot_file=robot_path("turtlebot3_burger"))


def differential() -> WheelCommander:
    return WheelCommander(BURGER.base.geometry.mecanum(), BURGER.base.limits, TIMEOUT)


@given(twist=TWIST)
@settings(max_examples=50)
def test_the_sideways_part_of_a_command_never_reaches_fixed_wheels(twist: tuple) -> None:
    told, alone = differential(), differential()
    vx, vy, wz = 0.3 * np.array(twist)
    ahead = run(alone, 0.0, 0.4, "operator", (vx, 0.0, wz))[-1]
    both = run(told, 0.0, 0.4, "operator", (vx, vy, wz))[-1]
    np.testing.assert_array_equal(both.wheel_speeds, ahead.wheel_speeds)
    assert both.twist[1] == 0.0 and both.limited == ahead.limited


def test_commands_with_a_sideways_part_are_counted_and_rounding_is_not() -> None:
    base = differential()
    for twist in ((0.1, 0.0, 0.2), (0.1, 1e-12, 0.2), (0.1, 0.05, 0.2), (0.0, -0.05, 0.0)):
        assert base.offer("operator", twist, 0.0) == ""
    assert base.dropped == 2
    mecanum = commander()
    mecanum.offer("operator", (0.1, 0.05, 0.2), 0.0)
    assert mecanum.dropped == 0


def steered_commander(steering: float) -> WheelCommander:
    base = load_robot(robot_file="optiodom_tricycle").base
    return WheelCommander(base.geometry.mecanum(), replace(base.limits, steering=steering), TIMEOUT)


def test_a_steered_wheel_gets_a_speed_and_an_angle_and_its_steering_keeps_its_speed() -> None:
    base = steered_commander(1.571)
    commands = run(base, 0.0, 3.0, "operator", (0.1, 0.2, 0.3))
    assert base.dropped == len(commands)  # no sideways axis
    angles = np.array([0.0, *(command.steering for command in commands)])
    assert np.max(np.abs(np.diff(angles))) <= base.limits.steering_speed * PERIOD + SLACK
    last = commands[-1]
    assert last.twist == pytest.approx([0.1, 0.0, 0.3])
    assert last.steering == pytest.approx(np.arctan2(0.3 * 0.15, 0.1))
    assert np.hypot(*last.wheel_speeds) == pytest.approx(np.hypot(0.1, 0.3 * 0.15) / 0.0325)
    back = run(base, 3.0, 6.0, "operator", (-0.1, 0.0, -0.3))[-1]
    assert back.steering == pytest.approx(last.steering), "backwards, not turned by half a turn"
    stopped = run(base, 6.0, 9.0)[-1]
    assert (stopped.steering, *stopped.twist) == pytest.approx((last.steering, 0.0, 0.0, 0.0), abs=1e-9)


def test_a_turn_on_the_spot_needs_a_quarter_turn_of_the_steering() -> None:
    commands = run(steered_commander(1.571), 0.0, 4.0, "operator", (0.0, 0.0, 1.0))
    assert commands[-1].twist == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    assert abs(PERIOD * sum(command.twist[0] for command in commands)) < 0.04, "it hardly drives off while it steers"
    assert run(steered_commander(0.5), 0.0, 2.0, "operator", (0.0, 0.0, 1.0))[-1].twist == pytest.approx(np.zeros(3))


@pytest.mark.parametrize("limit", [0.6, 1.4, 1.57, 2.5])
def test_every_twist_that_is_held_is_reached_from_any_other(limit: float) -> None:
    """Commands a step ahead of the last twist, not the one that is wanted, once turned the steering to and fro."""
    base, random, now = steered_commander(limit), np.random.default_rng(1), 0.0
    for _ in range(60):
        twist = random.uniform(-1.0, 1.0, 3) * (0.1, 0.0, 0.7) * (random.random(3) < 0.8)
        last = run(base, now, now + 4.0, "operator", tuple(twist))[-1]
        now += 4.0
        most = abs(twist[0]) * np.tan(limit) / 0.15 if limit < 1.5 else np.inf
        assert last.twist == pytest.approx([twist[0], 0.0, np.clip(twist[2], -most, most)], abs=2e-3)


def test_the_wheel_waits_while_more_than_a_quarter_turn_of_the_steering_is_left() -> None:
    base = steered_commander(1.57)
    run(base, 0.0, 4.0, "operator", (0.0, 0.0, 0.7))
    commands = run(base, 4.0, 8.0, "operator", (0.02, 0.0, -0.7))
    assert min(command.twist[0] for command in commands) > -0.01, "hardly backwards when told forward"


def test_the_steering_begins_where_it_stands_but_not_while_it_moves() -> None:
    base = steered_commander(1.571)
    base.stand_at(1.2 - 2.0 * np.pi)
    first = run(base, 0.0, PERIOD, "operator", (0.1, 0.0, 0.0))[0]
    assert first.steering == pytest.approx(1.2 - base.limits.steering_speed * PERIOD)
    base.stand_at(0.0)
    assert run(base, PERIOD, 2 * PERIOD, "operator", (0.1, 0.0, 0.0))[0].steering > 1.0


def test_a_turn_beyond_the_steering_is_cut_and_the_way_is_kept() -> None:
    last = run(steered_commander(0.5), 0.0, 3.0, "operator", (0.1, 0.0, 3.0))[-1]
    assert last.limited
    assert last.twist == pytest.approx([0.1, 0.0, 0.1 * np.tan(0.5) / 0.15])
    assert last.steering == pytest.approx(0.5)


def test_a_twist_of_a_steered_wheel_is_limited_by_the_speed_of_its_rim() -> None:
    last = run(steered_commander(1.571), 0.0, 5.0, "operator", (1.0, 0.0, 1.0 / 0.15))[-1]
    assert np.hypot(*last.wheel_speeds) == pytest.approx(6.6)
    assert last.twist[2] * 0.15 == pytest.approx(last.twist[0])
