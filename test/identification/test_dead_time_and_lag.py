"""Dead time and lag of drawn bases that are nothing else, found by both stages that estimate them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from delay_and_lag import delays_of, drawn, response_of
from repository import ROOT

from youbot_dynamics.robot import load_robot

ROBOT = load_robot(robot_file=ROOT / "config" / "robots" / "rosbot_xl.yaml")
DEAD_TIMES = ("dead_time_x", "dead_time_y", "dead_time_yaw")
IN_STEP = 12  # no lag, and jumps of the command at the rate of the readings


def share_held(seeds, found, true=lambda base: base.dead_time) -> float:
    """Share of the identified intervals of `found`(base) that hold what is `true` of it, by default the dead time."""
    held = [
        one.interval[0] - 1e-6 <= true(base) <= one.interval[1] + 1e-6
        for base in map(drawn, seeds)
        for one in found(base)
        if one.identified
    ]
    assert len(held) > 2 * len(seeds), "most dead times of these bases are identified"
    return float(np.mean(held))


def by_response(base):
    response = response_of(base, ROBOT)
    assert response.usable
    return [response[name] for name in DEAD_TIMES]


def by_delay(base):
    return [one.dead_time for one in delays_of(base, ROBOT)]


@pytest.mark.parametrize("seed", [0, IN_STEP])
def test_wheels_that_follow_exactly_after_a_dead_time_have_no_lag(seed):
    base = drawn(seed)
    assert base.lag == 0.0
    response = response_of(base, ROBOT)
    for name in DEAD_TIMES:
        assert response[name].identified and response[name].value == pytest.approx(base.dead_time, abs=1e-4)
        assert response[name].interval[0] <= base.dead_time <= response[name].interval[1]
    assert response["lag"].interval[0] == response["lag"].value == 0.0


def test_dead_times_of_some_mixtures_hold():
    assert share_held(range(1, 4), by_response) >= 0.9
    assert share_held(range(12), by_delay) >= 0.9


@pytest.mark.parametrize("seed", [1, 5])
def test_axes_with_lags_of_their_own_do_not_share_their_dead_times(seed):
    """Those of one lag for all were ticked 3 to 11 errors off."""
    base = replace(drawn(seed), lag=0.12, lag_in_yaw=0.05)
    response = response_of(base, ROBOT)
    for found in (response[name] for name in DEAD_TIMES):
        assert found.identified and found.interval[0] <= base.dead_time <= found.interval[1], found


def whole(base) -> float:
    return base.dead_time + base.lag


def test_effective_delays_of_some_mixtures_hold_dead_time_plus_lag():
    """A lag of .1 s made them 1 to 4 ms too short, several half-widths."""
    assert share_held(range(12), lambda base: delays_of(base, ROBOT), whole) >= 0.9


@pytest.mark.slow
def test_effective_delays_of_many_mixtures_hold_dead_time_plus_lag():
    assert 0.90 <= share_held(range(100), lambda base: delays_of(base, ROBOT), whole) <= 0.99


@pytest.mark.slow
def test_effective_delays_of_long_drives_in_jumps_at_speeds_that_scatter_hold_dead_time_plus_lag():
    """The shift that fits best is shorter than that, and where the two are not told apart it was ticked: 92 % held."""
    bases = [
        replace(drawn(k), lag=float(lag), steepest=(100.0, 100.0, 100.0), scatter=scatter)
        for k, lag, scatter in zip(
            range(30), np.random.default_rng(62).uniform(0.03, 0.15, 30), 10 * (0.0, 0.01, 0.02), strict=True
        )
    ]
    errors = [
        (one.value - whole(base), one) for base in bases for one in delays_of(base, ROBOT, 90.0) if one.identified
    ]
    held = [one.interval[0] <= one.value - error <= one.interval[1] for error, one in errors]
    assert len(held) > 60 and np.mean(held) >= 0.95
    assert np.mean([abs(error) < 3.0 * one.standard_error for error, one in errors]) >= 0.97


@pytest.mark.slow
def test_dead_times_of_many_mixtures_hold():
    assert 0.90 <= share_held(range(100), by_response) <= 0.99
    assert 0.90 <= share_held(range(100), by_delay) <= 0.99
