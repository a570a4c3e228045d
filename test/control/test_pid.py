"""The PID law of system 38 on integrators with a delay: signs, limits of stability, windup."""

from __future__ import annotations

from math import e, pi

import numpy as np
import pytest

from youbot_dynamics.control.tracker import Pid, TrackerSettings, gains_for_delay
from youbot_dynamics.control.tracker._pid import PidGains
from youbot_dynamics.errors import ParameterError

DT = 5e-3
TAU = 0.2
NOTHING = (0.0, 0.0, 0.0)


def gains(kp: float = 0.0, ki: float = 0.0, kd: float = 0.0, filter_time: float = 0.1) -> PidGains:
    return PidGains((kp,) * 3, (ki,) * 3, (kd,) * 3, filter_time)


def follow(
    law: Pid,
    duration: float,
    *,
    start: float = 0.0,
    speed: float = 0.0,
    feed_forward: bool = True,
    limit: float = np.inf,
    anti_windup: bool = True,
    held: float = 0.0,
) -> np.ndarray:
    """Error of x' = u(t - TAU) behind x* = speed t; the plant is held for the first `held` seconds."""
    position, error = start, []
    waiting = [0.0] * round(TAU / DT)
    cut = np.zeros(3)
    for k in range(round(duration / DT)):
        time = k * DT
        error.append(position - speed * time)
        wish = (speed if feed_forward else 0.0) + law.correct((error[-1], 0.0, 0.0), time, cut)[0]
        sent = float(np.clip(wish, -limit, limit))
        cut = np.array([sent - wish if anti_windup else 0.0, 0.0, 0.0])
        waiting.append(sent)
        delayed = waiting.pop(0)
        position += 0.0 if time < held else delayed * DT
    return np.array(error)


def test_a_positive_error_is_corrected_backwards_on_every_axis() -> None:
    for axis in range(3):
        law = Pid(gains(kp=2.0, ki=1.0, kd=0.5))
        error = np.zeros(3)
        error[axis] = 0.1
        law.correct(error, 0.0, NOTHING)
        correction = law.correct(2.0 * error, 0.1, NOTHING)
        assert correction[axis] < 0.0 and np.count_nonzero(correction) == 1
        # Kp e + Ki int e + Kd de/dt with the trapezoid and the filter of one step.
        expected = 2.0 * 0.2 + 1.0 * 0.015 + 0.5 * (1.0 - np.exp(-1.0)) * 1.0
        assert correction[axis] == pytest.approx(-expected)


def test_with_the_error_of_seed_003_the_same_law_is_positive_feedback() -> None:
    """dX = ideal - real put into u = -Kp e drives the robot away (D-003-11); e = actual - desired returns it."""

    class Printed(Pid):
        def correct(self, error, time, cut):
            return super().correct(-np.asarray(error), time, cut)

    assert abs(follow(Pid(gains(kp=1.0)), 8.0, start=0.1)[-1]) < 1e-3
    assert abs(follow(Printed(gains(kp=1.0)), 8.0, start=0.1)[-1]) > 10.0


@pytest.mark.parametrize("kp", [0.5, 1.0, 1.5])
def test_dropping_the_feed_forward_leaves_a_steady_lag(kp: float) -> None:
    """Document 003 drops x*' where it is constant: then e = -x*'/Kp stays (D-003-12); zero only for x*' = 0."""
    speed = 0.2
    assert follow(Pid(gains(kp=kp)), 30.0, speed=speed, feed_forward=False)[-1] == pytest.approx(-speed / kp, rel=1e-3)
    # The delay itself still costs speed x TAU until the feedback has worked it off.
    assert abs(follow(Pid(gains(kp=kp)), 30.0, speed=speed)[-1]) < 1e-3


def test_an_integral_part_works_the_lag_off() -> None:
    error = follow(Pid(gains(kp=1.0, ki=0.3)), 40.0, speed=0.2, feed_forward=False)
    assert abs(error[-1]) < 1e-3 < 0.1 < np.max(np.abs(error))


def envelope(error: np.ndarray) -> float:
    """Largest error of the last fifth over that of the first."""
    part = len(error) // 5
    return float(np.max(np.abs(error[-part:])) / np.max(np.abs(error[:part])))


def test_the_proportional_loop_is_stable_up_to_pi_half() -> None:
    # The held command adds half a step to the delay.
    limit = pi / 2 / (TAU + DT / 2)
    assert envelope(follow(Pid(gains(kp=0.95 * limit)), 20.0, start=0.1)) < 0.2
    assert envelope(follow(Pid(gains(kp=1.05 * limit)), 20.0, start=0.1)) > 5.0


def test_the_proportional_loop_does_not_overshoot_up_to_one_over_e() -> None:
    limit = 1.0 / e / (TAU + DT / 2)
    assert np.min(follow(Pid(gains(kp=0.99 * limit)), 10.0, start=0.1)) > 0.0
    assert np.min(follow(Pid(gains(kp=1.5 * limit)), 10.0, start=0.1)) < -1e-3


@pytest.mark.parametrize(("kd", "grows"), [(0.9, False), (1.1, True)])
def test_an_unfiltered_derivative_beyond_one_is_unstable_with_any_delay(kd: float, grows: bool) -> None:
    """With a velocity command the D term is the loop u(t) = ... - Kd u(t - tau): gain Kd (system 38)."""
    for tau in (2, 20):
        waiting, position, previous, path = [0.0] * tau, 0.01, 0.01, []
        for _ in range(150 * tau):
            command = -0.2 * position - kd * (position - previous) / DT
            waiting.append(command)
            previous = position
            position += waiting.pop(0) * DT
            path.append(command)
        assert (envelope(np.array(path)) > 10.0) is grows


@pytest.mark.parametrize(
    "bad",
    [
        {"kd": 1.0},
        {"kd": 1.7},
        {"kp": -0.1},
        {"ki": -0.1},
        {"kd": -0.1},
        {"filter_time": 0.0},
        {"filter_time": float("nan")},
        {"kp": float("nan")},
        {"kd": float("nan")},
    ],
)
def test_gains_that_cannot_be_meant_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError):
        gains(**bad)


def test_one_bad_axis_is_enough() -> None:
    with pytest.raises(ValueError, match="below 1"):
        PidGains((1.0, 1.0, 1.0), NOTHING, (0.1, 0.1, 1.0), 0.1)


def test_the_settings_offer_no_derivative_that_is_unstable() -> None:
    with pytest.raises(ParameterError, match="derivative: got 1"):
        TrackerSettings(derivative=1.0)


def test_after_saturation_the_loop_returns_quicker_with_anti_windup() -> None:
    def settling(anti_windup: bool) -> tuple[float, float]:
        law = Pid(gains(kp=1.0, ki=0.5))
        error = follow(law, 60.0, start=-1.0, limit=0.2, anti_windup=anti_windup, held=5.0)
        outside = np.flatnonzero(np.abs(error) > 0.02)
        return float(outside[-1] * DT), float(np.max(error))

    with_it, overshoot = settling(True)
    without, far = settling(False)
    assert with_it < 0.6 * without
    assert overshoot < 0.3 * far


def test_the_integral_may_always_shrink() -> None:
    law = Pid(gains(ki=1.0))
    law.correct((1.0, 0.0, 0.0), 0.0, NOTHING)
    law.correct((1.0, 0.0, 0.0), 1.0, NOTHING)
    # e > 0 asks for u < 0; the limit cuts it: sent - requested > 0.
    stopped = law.correct((1.0, 0.0, 0.0), 2.0, (0.5, 0.0, 0.0))
    assert stopped[0] == pytest.approx(-1.0)
    released = law.correct((-1.5, 0.0, 0.0), 3.0, (0.5, 0.0, 0.0))
    assert released[0] == pytest.approx(-0.75)


def test_a_stale_measurement_adds_nothing_to_the_memory() -> None:
    law = Pid(gains(kp=1.0, ki=1.0, kd=0.5))
    law.correct((0.1, 0.0, 0.0), 0.0, NOTHING)
    first = law.correct((0.2, 0.0, 0.0), 0.1, NOTHING)
    again = law.correct((0.2, 0.0, 0.0), 0.1, NOTHING)
    older = law.correct((0.2, 0.0, 0.0), 0.05, NOTHING)
    assert np.array_equal(first, again) and np.array_equal(first, older)
    law.correct((9.0, 9.0, 9.0), 0.1, NOTHING)  # the first error at a time stays
    other = Pid(gains(kp=1.0, ki=1.0, kd=0.5))
    other.correct((0.1, 0.0, 0.0), 0.0, NOTHING)
    other.correct((0.2, 0.0, 0.0), 0.1, NOTHING)
    assert np.array_equal(law.correct((0.3, 0.0, 0.0), 0.2, NOTHING), other.correct((0.3, 0.0, 0.0), 0.2, NOTHING))


def test_the_filtered_slope_converges_to_the_rate_of_the_error() -> None:
    law = Pid(gains(kd=0.5, filter_time=0.1))
    for k in range(400):
        law.correct((0.3 * k * DT, 0.0, -0.1 * k * DT), k * DT, NOTHING)
        if k == round(0.1 / DT):
            assert law.slope[0] == pytest.approx(0.3 * (1.0 - np.exp(-1.0)), rel=0.02)
    np.testing.assert_allclose(law.slope, [0.3, 0.0, -0.1], rtol=1e-6)


@pytest.mark.parametrize("aggressiveness", [1.0, 1.5, 3.0])
def test_gains_for_a_delay_give_a_stable_loop_with_all_three_parts(aggressiveness: float) -> None:
    made = gains_for_delay((TAU, TAU, TAU), aggressiveness, 0.25, 0.1)
    assert made.proportional[0] * TAU == pytest.approx(aggressiveness / e)
    # 3.0 is the most the settings allow.
    assert envelope(follow(Pid(made), 20.0, start=0.1)) < 0.2


def test_each_axis_gets_the_gains_of_its_own_delay() -> None:
    made = gains_for_delay((0.1, 0.2, 0.4), 1.0, 0.2, 0.1)
    np.testing.assert_allclose(made.proportional, np.array([4.0, 2.0, 1.0]) * made.proportional[2])
    np.testing.assert_allclose(made.integral, np.array([16.0, 4.0, 1.0]) * made.integral[2])
