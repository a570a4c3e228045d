"""Dead time and lag told apart: on exact answers, by scipy's simulation, and where nothing can tell them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from youbot_dynamics.identification.delay import DelayEstimate, estimate_delay
from youbot_dynamics.identification.delay._estimator import combine
from youbot_dynamics.identification.delay._fopdt import (
    BLOCK,
    LaggedCommand,
    _judged,
    _Order,
    covariance_in_blocks,
    orthogonal_size,
)
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.identification.signals import HeldCommand

PERIOD = 0.02


def ramps(duration=60.0, seed=0, *, hold=(0.2, 0.8), fastest=0.2, steepest=0.8):
    """Times and command that ramps to speeds at random: every change of slope tells of the lag."""
    random, sent = np.random.default_rng(seed), np.arange(0.0, duration, PERIOD)
    command, speed, left, goal = np.zeros(len(sent)), 0.0, 0, 0.0
    for k in range(len(sent)):
        if left == 0:
            left, goal = int(random.uniform(*hold) / PERIOD), random.uniform(-fastest, fastest)
        speed += np.clip(goal - speed, -steepest * PERIOD, steepest * PERIOD)
        command[k], left = speed, left - 1
    return sent, command


def estimate(sent, command, dead_time, lag, *, measured_is="position", jitter=1e-3, seed=0, **more) -> DelayEstimate:
    """Estimate of one channel whose motion answers with a dead time and a lag; readings at a random phase."""
    random = np.random.default_rng([seed, 1])
    seen = sent + PERIOD * random.random()
    half = 0.5 * PERIOD if measured_is == "velocity" else 0.0
    held = HeldCommand(sent, command, half)
    motion = LaggedCommand(held, lag).at(seen - dead_time).motion if lag > 0.0 else held.motion(seen - dead_time)
    stamps = seen + jitter * random.standard_normal(len(seen))
    return estimate_delay(sent, command, stamps, motion, model="fopdt", measured_is=measured_is, **more)[0]


def test_the_answer_between_the_samples_is_that_of_the_differential_equation():
    sent, command = ramps(8.0)
    fine = np.arange(0.0, 5.5, 1e-4)
    lag = 0.043
    held = HeldCommand(sent, command, 0.0)
    system = signal.cont2discrete(([1.0], [lag, 1.0]), 1e-4)
    # Held values half a step on: the step of the simulation in which the command changes takes the new one.
    speed = signal.lfilter(system[0].ravel(), system[1].ravel(), held.held(fine + 5e-5))
    position = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * 1e-4)])
    answer = LaggedCommand(held, lag).at(fine)
    late = fine > 2.0  # the simulation starts at rest, the answer settled
    assert answer.rate[late] == pytest.approx(speed[late], abs=1e-9)
    moved = position - position[late][0]
    assert answer.motion[late] - answer.motion[late][0] == pytest.approx(moved[late], abs=1e-6)


@pytest.mark.parametrize("half", [0.0, 0.01])
def test_derivatives_are_those_of_the_motion(half):
    held = HeldCommand(*ramps(8.0), half)
    query, d, q, small = np.linspace(1.0, 7.0, 97), 0.13, 0.5 * 0.03**2, 1e-8

    def motion(d, q):
        lag = np.sqrt(2.0 * q)
        return LaggedCommand(held, lag).at(query - d + lag).motion

    answer = LaggedCommand(held, np.sqrt(2.0 * q)).at(query - d + np.sqrt(2.0 * q))
    assert -answer.rate == pytest.approx((motion(d + small, q) - motion(d - small, q)) / (2.0 * small), abs=1e-5)
    assert answer.widening == pytest.approx((motion(d, q + small) - motion(d, q - small)) / (2.0 * small), abs=1e-3)


def test_two_lags_in_a_row_are_one_lag_after_another():
    sent, command = ramps(8.0)
    held, lag, query = HeldCommand(sent, command, 0.0), 0.05, np.linspace(1.0, 7.0, 97)
    fine = np.arange(0.0, 8.0, 2e-4)
    once = LaggedCommand(held, lag).at(fine + 1e-4).rate
    again = LaggedCommand(HeldCommand(fine, once, 0.0), lag).at(query).rate
    assert LaggedCommand(held, lag).twice(query) == pytest.approx(again, abs=2e-5)


@pytest.mark.parametrize("measured_is", ["position", "velocity"])
@pytest.mark.parametrize(("dead_time", "lag"), [(0.05, 0.02), (0.15, 0.0333), (0.30, 0.06), (0.1, 0.005), (0.0, 0.1)])
def test_planted_dead_time_and_lag_are_found_far_below_a_sample(dead_time, lag, measured_is):
    found = estimate(*ramps(), dead_time, lag, jitter=0.0, measured_is=measured_is)
    assert found.dead_time.value == pytest.approx(dead_time, abs=1e-4)
    assert found.lag.value == pytest.approx(lag, abs=1e-4)
    assert found.dead_time.identified and found.lag.identified


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_delay_of_speeds_that_answer_jumps_is_dead_time_and_lag_together(seed):
    sent = np.arange(0.0, 60.0, 0.02)
    command = np.repeat(0.3 * np.random.default_rng(seed).standard_normal(60), 50)
    found = estimate(sent, command, 0.14, 0.06, measured_is="velocity", seed=seed)
    assert found.identified and found.interval[0] < 0.2 < found.interval[1], found
    assert found.standard_error < 4e-3


def test_intervals_hold_whether_a_speed_is_a_mean_over_a_step_or_of_an_instant():
    """At 20 Hz, speeds of an instant that were taken for means gave 12.8 +-3.5 ms for a lag of 28.4 ms."""
    inside = []
    for seed in range(12):
        random = np.random.default_rng([seed, 7])
        sent = np.arange(0.0, 60.0, 0.05)
        command = np.clip(np.cumsum(random.normal(0.0, 0.015, len(sent))), -0.5, 0.5)
        dead_time, lag = random.uniform(0.03, 0.15), random.uniform(0.02, 0.08)
        for half in (0.025, 1e-6):
            motion = LaggedCommand(HeldCommand(sent, command, half), lag).at(sent - dead_time).motion
            motion = motion + 0.001 * random.standard_normal(len(sent))
            found = estimate_delay(sent, command, sent, motion, model="fopdt")[0]
            for part, true in ((found.dead_time, dead_time), (found.lag, lag)):
                if part.identified:
                    inside.append(part.interval[0] <= true <= part.interval[1])
    assert len(inside) >= 20 and np.mean(inside) >= 0.9


def test_the_jackknife_is_that_of_fits_without_one_block_each():
    random = np.random.default_rng(2)
    time = np.sort(random.uniform(3.0, 3.0 + 10.3 * BLOCK, 400))  # the last 0.3 belong to the block before
    columns, residual = random.standard_normal((400, 2)) * [1.0, 30.0], random.standard_normal(400)
    blocks = np.minimum(np.floor((time - time[0]) / BLOCK), 9)
    whole = np.linalg.lstsq(columns, residual, rcond=None)[0]
    without = [np.linalg.lstsq(columns[blocks != b], residual[blocks != b], rcond=None)[0] - whole for b in range(10)]
    covariance, freedom = covariance_in_blocks(columns, residual, time)
    np.testing.assert_allclose(covariance, 0.9 * np.transpose(without) @ without, rtol=1e-9)
    assert freedom == 8


def test_the_own_size_of_a_column_is_what_others_cannot_replace():
    columns = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 3.0], [1.0, 1.0, 0.0], [1.0, -1.0, -3.0]])
    assert [orthogonal_size(columns, k) for k in (-2, -1)] == pytest.approx([1.0, np.sqrt(4.5)])
    assert [orthogonal_size(columns + [[0.0, 5.0, 7.0]], k) for k in (-2, -1)] == pytest.approx([1.0, np.sqrt(4.5)])


def test_a_pure_delay_has_a_lag_from_zero_on():
    found = estimate(*ramps(), 0.15, 0.0, jitter=2e-4)
    assert found.dead_time.identified and found.dead_time.value == pytest.approx(0.15, abs=5e-3)
    assert found.lag.interval[0] == 0.0 and found.lag.interval[1] < 0.01


def test_intervals_hold_the_truth_as_often_as_they_should():
    inside, near = [], []
    for seed in range(30):
        lag = 0.005 + 0.055 * (seed % 10) / 9.0
        found = estimate(*ramps(30.0, seed), 0.12, lag, seed=seed)
        for part, truth in ((found.dead_time, 0.12), (found.lag, lag)):
            inside.append(part.interval[0] <= truth <= part.interval[1])
            near.append(abs(part.value - truth) <= 3.0 * part.standard_error)
    assert np.mean(inside) >= 0.9
    assert np.mean(near) >= 0.97


def test_a_slow_command_leaves_the_delay_and_tells_neither_part():
    sent = np.arange(0.0, 60.0, PERIOD)
    slow = 0.2 * np.sin(0.4 * sent) + 0.1 * np.sin(0.23 * sent + 1.0)
    found = estimate(sent, slow, 0.03, 0.03)
    assert found.identified and found.value == pytest.approx(0.06, abs=3e-3)
    assert not found.dead_time.identified and not found.lag.identified
    assert "cannot be distinguished" in found.lag.verdict and "cannot be distinguished" in found.dead_time.verdict


def test_an_axis_that_others_move_tells_neither_part():
    sent, command = ramps()
    moved = HeldCommand(sent, command, 0.0).motion(sent - 0.15) + 0.3 * np.sin(0.31 * sent)
    found = estimate_delay(sent, command, sent, moved, model="fopdt", measured_is="position")[0]
    assert "hardly driven" in found.dead_time.verdict and "hardly driven" in found.lag.verdict


def test_friction_that_holds_the_motion_back_is_not_taken_for_lag():
    sent, command = ramps(seed=3)
    signs = np.tanh(command / 0.01)
    seen = sent + 0.4 * PERIOD
    clean = LaggedCommand(HeldCommand(sent, command, 0.0), 0.02).at(seen - 0.15).motion
    held_back = 3e-3 * LaggedCommand(HeldCommand(sent, signs, 0.0), 0.05).twice(seen - 0.17)
    stamps = seen + 1e-3 * np.random.default_rng(0).standard_normal(len(seen))
    known, unknown = (
        estimate_delay(sent, command, stamps, clean - held_back, model="fopdt", measured_is="position", friction=f)[0]
        for f in (signs, None)
    )
    for found in (known, unknown):
        assert abs(found.lag.value - 0.02) < 3e-3
        assert found.lag.interval[0] <= 0.02 <= found.lag.interval[1]
        assert found.dead_time.interval[0] <= 0.15 <= found.dead_time.interval[1]


@pytest.mark.parametrize(("dead_time", "lag", "droop"), [(0.178, 0.1, 4e-3), (0.2, 0.06, 2e-3), (0.09, 0.03, 4e-3)])
def test_a_loop_that_friction_holds_back_at_any_speed_tells_neither_dead_time_nor_lag(dead_time, lag, droop):
    """A servo without integral action: how its friction acts is unknown, and feigns tens of milliseconds of lag."""
    sent = np.arange(0.0, 60.0, PERIOD)
    slow = 0.12 * np.sin(0.8 * sent) + 0.1 * np.sin(2.1 * sent + 1.0) + 0.05 * np.sin(3.7 * sent + 2.0)
    fine = np.arange(0.0, sent[-1], 1e-3)
    speed = LaggedCommand(HeldCommand(sent, slow, 0.0), lag).at(fine - dead_time).rate
    moved = np.cumsum(np.sign(speed) * np.maximum(np.abs(speed) - droop, 0.0)) * 1e-3
    seen = sent[25:-1] + 7e-3
    found = estimate_delay(sent, slow, seen, np.interp(seen, fine, moved), model="fopdt", measured_is="position")[0]
    assert found.identified and abs(found.value - dead_time - lag) < 0.02
    for part in (found.dead_time, found.lag):
        assert not part.identified, part


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_what_recordings_have_in_common_does_not_average_out(orders):
    """Slow commands hide the second and third lag: every recording alike takes them for one, and so does the mean."""
    total, sent = 0.08, np.arange(0.0, 60.0, PERIOD)
    lag = total / np.sqrt(orders)  # with the same q
    fine, held = np.arange(0.0, 60.0, 1e-3), []
    for seed in range(4):
        random = np.random.default_rng([seed, 9])
        phases = random.uniform(0.0, 6.28, 3)
        command = 0.1 * np.sin(np.outer(sent, (0.7, 1.9, 3.1)) + phases).sum(axis=1)
        motion = LaggedCommand(HeldCommand(sent, command, 0.0), lag).at(fine - 0.15).motion
        for _ in range(orders - 1):
            numerator, denominator, _ = signal.cont2discrete(([1.0], [lag, 1.0]), 1e-3)
            motion = signal.lfilter(numerator.ravel(), denominator, motion)
        seen = sent[100:-1] + 0.4 * PERIOD
        moved = np.interp(seen, fine, motion) + 5e-5 * random.standard_normal(len(seen))
        held.append(estimate_delay(sent, command, seen, moved, model="fopdt", measured_is="position")[0])
    found = combine(held)
    for one in (*held, found):
        assert one.dead_time.identified and one.lag.identified
        assert one.dead_time.interval[0] <= 0.15 <= one.dead_time.interval[1]
        assert one.lag.interval[0] <= orders * lag <= one.lag.interval[1]
    assert np.ptp(found.dead_time.interval) > 0.9 * min(np.ptp(one.dead_time.interval) for one in held)


def test_dead_time_and_lag_are_identified_together_or_not_at_all():
    found = [
        estimate(*ramps(30.0, seed, steepest=steepest), 0.15, lag, jitter=jitter, seed=seed)
        for seed in range(4)
        for lag in (0.0, 0.01, 0.04)
        for steepest, jitter in ((0.1, 4e-3), (0.8, 4e-3), (0.8, 2e-4))
    ]
    told = [one.lag.identified for one in found]
    assert told == [one.dead_time.identified for one in found]
    assert any(told) and not all(told)
    refused = next(one for one in found if not one.lag.identified)
    assert "only its sum with the lag, the effective delay" in refused.dead_time.verdict or not refused.identified


@pytest.mark.parametrize("seed", range(4))
def test_two_lags_without_a_dead_time_have_none_that_is_negative(seed):
    """A negative dead time, which two lags look like, is refused beyond what is negligible, and none within it."""
    sent, command = ramps(60.0, seed)
    seen = sent + PERIOD * np.random.default_rng(seed).random()
    held = HeldCommand(sent, command, 0.0)
    fine = np.arange(0.0, sent[-1], 1e-3)
    system = signal.cont2discrete(([1.0], [0.03**2, 0.06, 1.0]), 1e-3)
    speed = signal.lfilter(system[0].ravel(), system[1].ravel(), held.held(fine))
    motion = np.interp(seen, fine, np.cumsum(speed) * 1e-3)
    found = estimate_delay(sent, command, seen, motion, model="fopdt", measured_is="position")[0]
    assert found.identified and found.value == pytest.approx(0.06, abs=2e-3)
    assert not found.dead_time.identified or 0.0 <= found.dead_time.value <= 2e-3


def test_a_dead_time_far_below_zero_is_refused():
    """It was identified in [0, 3.5] ms, outside its interval, since that was judged after it was cut at 0."""
    covariance = np.diag([1e-3, 1e-5]) ** 2
    orders = tuple(_Order(order, 0.0, 0.0) for order in (0.0, -0.5, 1.8))
    dead_time, lag, _ = _judged(0.06, 0.5 * 0.068**2, orders, covariance, 30, 1.0)
    assert dead_time.reason.kind is Kind.AT_BOUND and lag.reason.kind is Kind.DEPENDS
    dead_time, lag, _ = _judged(0.06, 0.5 * 0.0605**2, (orders[0],) * 3, covariance, 30, 1.0)
    assert dead_time.identified and dead_time.value == 0.0 and dead_time.interval[1] > 0.0
    assert lag.value == pytest.approx(0.06)  # the whole delay, as before


SINE = np.arange(0.0, 60.0, PERIOD)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (0.2 * np.sin(2.0 * np.pi * SINE / 0.5), "is periodic"),
        (np.full(len(SINE), 0.2), "never changed"),
        (np.zeros(len(SINE)), "never changed"),
    ],
    ids=["aliased", "constant speed", "rest"],
)
def test_what_tells_nothing_of_the_delay_tells_nothing_of_its_parts(command, reason):
    found = estimate(SINE, command, 0.15, 0.01)
    for verdict in (found.verdict, found.dead_time.verdict, found.lag.verdict):
        assert verdict.startswith("not identifiable: ") and reason in verdict


def test_one_slow_sine_tells_no_lag():
    found = estimate(SINE, 0.2 * np.sin(1.3 * SINE), 0.15, 0.02)
    assert not found.lag.identified


def test_the_effective_delay_of_a_lag_is_the_sum_where_its_parts_are_known():
    """The shift that fits best is shorter, and depends on how fast the command changes."""
    sent, command = ramps()
    seen = sent + 0.3 * PERIOD
    motion = LaggedCommand(HeldCommand(sent, command, 0.0), 0.03).at(seen - 0.1).motion
    alone, both = (
        estimate_delay(sent, command, seen, motion, model=model, measured_is="position")[0]
        for model in ("delay", "fopdt")
    )
    assert alone.dead_time is None and alone.lag is None
    assert alone.value < 0.12995 and both.value == pytest.approx(0.13, abs=1e-6)
    assert both.value == pytest.approx(both.dead_time.value + both.lag.value, abs=1e-12) and both.identified
    with pytest.raises(ValueError, match="model: got"):
        estimate_delay(sent, command, seen, motion, model="second order")


def test_the_residual_is_white_where_the_model_holds_and_coloured_where_it_does_not():
    sent, command = ramps(steepest=4.0, fastest=0.4)
    assert np.mean([estimate(sent, command, 0.1, 0.06, seed=seed).whiteness.white for seed in range(10)]) >= 0.9
    seen = sent + 0.3 * PERIOD
    motion = LaggedCommand(HeldCommand(sent, command, 0.0), 0.06).at(seen - 0.1).motion
    motion = motion + 1e-4 * np.random.default_rng(0).standard_normal(len(seen))
    assert not estimate_delay(sent, command, seen, motion, measured_is="position")[0].whiteness.white


def test_recordings_combine_dead_time_and_lag_by_their_own_verdicts():
    good = [estimate(*ramps(seed=seed), 0.15, 0.03, seed=seed) for seed in (1, 2)]
    slow = estimate(SINE, 0.2 * np.sin(0.2 * SINE) + 0.05 * np.sin(0.13 * SINE), 0.15, 0.01)
    assert slow.identified and not slow.lag.identified
    both = combine([*good, slow])
    assert both.lag.identified and both.lag.value == pytest.approx(0.03, abs=2e-3)
    assert np.ptp(both.lag.interval) <= 1.01 * max(np.ptp(one.lag.interval) for one in good)
    assert combine([slow]).lag == slow.lag
    assert combine([good[0]]).whiteness == good[0].whiteness
