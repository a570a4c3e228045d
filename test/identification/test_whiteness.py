"""The test of whiteness: right as often as it says, on white noise, on colours, and across gaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.least_squares import whiteness

TIME = np.arange(0.0, 20.0, 0.02)


def noise(seed, size=1000):
    return np.random.default_rng(seed).standard_normal(size)


def test_white_noise_is_refused_as_often_as_the_level_says():
    found = [whiteness(TIME, noise(seed)) for seed in range(400)]
    assert stats.kstest([one.p_value for one in found], "uniform").pvalue > 1e-3
    assert stats.kstest([one.uneven_p_value for one in found], "uniform").pvalue > 1e-3


def test_what_a_regression_leaves_of_white_noise_is_refused_as_often_as_the_level_says():
    """Parameters of the motion take no degrees of freedom away: with them taken, level 1 % was 4 %."""
    table = np.column_stack([np.ones(len(TIME)), np.sin(TIME), np.cos(0.7 * TIME)])
    left = [noise(seed) - table @ np.linalg.lstsq(table, noise(seed), rcond=None)[0] for seed in range(600)]
    found = [whiteness(TIME, each) for each in left]
    assert stats.kstest([one.uneven_p_value for one in found], "uniform").pvalue > 1e-3
    assert np.mean([not one.white for one in found]) < 0.025


def test_noise_that_swells_and_fades_is_white_by_the_test_that_allows_for_it():
    strength = 1.0 + 0.95 * np.sin(TIME)
    found = [whiteness(TIME, strength * noise(seed)) for seed in range(400)]
    assert stats.kstest([one.uneven_p_value for one in found], "uniform").pvalue > 1e-3
    assert np.mean([one.white for one in found]) > 0.97
    assert np.mean([one.p_value < 0.05 for one in found]) > 0.1  # the plain test is wrong more often than it says


def test_statistic_is_that_of_the_textbook():
    x = noise(1)
    x = x - x.mean()
    r = np.array([x[k:] @ x[:-k] for k in range(1, 21)]) / (x @ x)
    n = len(x)
    # With every reading there, pairs n - k instead of n in r change Q by a factor n / (n - k) a lag.
    textbook = n * (n + 2.0) * np.sum(r**2 / (n - np.arange(1, 21)))
    found = whiteness(TIME, x)
    assert found.q == pytest.approx(textbook, rel=1e-9)
    assert found.p_value == pytest.approx(stats.chi2.sf(textbook, 20), rel=1e-9)
    assert found.correlations[:3] == pytest.approx(r[:3], rel=5e-3)


@pytest.mark.parametrize("memory", [0.15, 0.5, -0.3])
def test_coloured_noise_is_found_with_its_correlation(memory):
    x = noise(2, 5000)
    for k in range(1, len(x)):
        x[k] += memory * x[k - 1]
    found = whiteness(0.02 * np.arange(len(x)), x)
    assert not found.white
    assert found.correlations[0] == pytest.approx(memory, abs=0.05)


def test_a_slow_wave_far_below_the_noise_is_found():
    assert whiteness(TIME, noise(3)).white
    assert not whiteness(TIME, noise(3) + 0.5 * np.sin(TIME)).white


def test_gaps_and_jitter_do_not_colour_white_noise():
    keep = np.ones(len(TIME), bool)
    keep[100:300] = False
    keep[np.random.default_rng(4).choice(len(TIME), 150, replace=False)] = False
    stamps = TIME + 1e-3 * noise(5)
    stamps[400:] += 1e7  # a gap of months needs no memory
    p = [whiteness(stamps[keep], noise(seed)[keep]).p_value for seed in range(100, 300)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_too_little_is_not_judged():
    found = whiteness(TIME[:10], noise(6, 10))
    assert np.isnan(found.p_value) and found.lags == 0 and not found.white
    assert whiteness(TIME, np.zeros(len(TIME))).lags == 0


def test_times_that_decrease_are_refused():
    with pytest.raises(InputError, match=r"time\[1\]"):
        whiteness([1.0, 0.5, 2.0], [0.0, 1.0, 2.0])


def test_a_lag_of_which_the_recording_has_no_pair_says_nothing():
    """Six readings, then nothing for long: from a lag of six on there are no pairs."""
    time = np.concatenate([0.02 * np.arange(6) + 100.0 * block for block in range(40)])
    found = whiteness(time, noise(3, len(time)))
    assert 0.0 < found.uneven_p_value <= 1.0 and found.white
    assert found.correlations[5:] == (0.0,) * 15
