"""Searches of nonlinear models end at the same values as scipy's, within bounds and budget, and are linearised once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import least_squares as scipy_least_squares

from youbot_dynamics.identification.least_squares import (
    Model,
    covariance_of_scores,
    rows_of,
    search,
    search_costly,
    slopes_of,
)

TIME = np.linspace(0.0, 3.0, 200)
TRUTH, START = np.array([2.0, 0.7]), np.array([0.5, 3.0])
LOW, HIGH = np.array([0.0, 0.01]), np.array([10.0, 5.0])
READ = TRUTH[0] * np.exp(-TIME / TRUTH[1]) + 0.01 * np.random.default_rng(4).standard_normal(len(TIME))
BOTH = np.arange(2)


def residual(values: np.ndarray) -> np.ndarray:
    return READ - values[0] * np.exp(-TIME / values[1])


def differences(values: np.ndarray, at: np.ndarray, free: np.ndarray) -> np.ndarray:
    return slopes_of(residual, values, np.where(np.isin(BOTH, free), 1e-5, 0.0), at, HIGH)


MODEL = Model(residual, differences, LOW, HIGH, lambda misfit: misfit / len(TIME), 1e-3)


def test_both_searches_end_where_that_of_scipy_does():
    best = scipy_least_squares(residual, START).x
    found = search(residual, [START, np.array([5.0, 0.1])], (LOW, HIGH), 100)
    costly = search_costly(MODEL, START, BOTH, 100)
    assert found.settled and costly.settled
    np.testing.assert_allclose(found.values, best, atol=1e-6)
    np.testing.assert_allclose(costly.values, best, atol=1e-5)  # of errors of 3e-3
    np.testing.assert_allclose(costly.residual, residual(costly.values))


@pytest.mark.parametrize("budget", [1, 4, 8])
def test_a_search_that_spends_its_budget_says_so(budget):
    costly = search_costly(MODEL, START, BOTH, budget)
    assert not costly.settled and costly.evaluations <= budget
    assert not search(residual, [START], (LOW, HIGH), 1).settled


def test_values_stay_within_bounds_and_end_on_them():
    short = dataclasses.replace(MODEL, high=np.array([10.0, 0.5]))
    found = search_costly(short, START, BOTH, 100)
    assert found.settled and found.values[1] == 0.5
    level = float(np.linalg.lstsq(np.exp(-TIME / 0.5)[:, None], READ, rcond=None)[0][0])
    assert found.values[0] == pytest.approx(level, abs=1e-4)


def test_bounds_may_depend_on_each_other():
    tied = dataclasses.replace(MODEL, feasible=lambda x: np.array([x[0], min(x[1], 0.4 * x[0])]))
    found = search_costly(tied, np.array([1.0, 0.1]), BOTH, 200)
    assert found.values[1] <= 0.4 * found.values[0] + 1e-12


def test_only_free_values_move():
    found = search_costly(MODEL, START, np.array([0]), 100)
    assert found.values[1] == START[1] and found.values[0] != START[0]


def test_a_prior_counts_as_one_reading_of_its_deviation():
    def priors(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (values[:1] - 1.0) / 0.1, np.array([[10.0, 0.0]])

    level = np.exp(-TIME / START[1])
    model = dataclasses.replace(MODEL, priors=priors, noise=lambda misfit: 0.04)
    found = search_costly(model, START, np.array([0]), 100)
    weight = 0.04 / 0.1**2  # of the prior in the normal equation
    assert found.values[0] == pytest.approx((level @ READ + weight * 1.0) / (level @ level + weight), abs=1e-4)


def test_a_hopeless_search_stops_at_once():
    model = dataclasses.replace(MODEL, hopeless=lambda at, remaining: bool(remaining * np.sum(at**2) > 1e-9))
    found = search_costly(model, np.array([2.0, 0.7]), BOTH, 100)
    assert not found.settled and found.evaluations == 3


def test_slopes_are_central_or_away_from_the_upper_bound():
    values = np.array([2.0, 5.0])
    exact = np.column_stack([-np.exp(-TIME / 5.0), -2.0 * np.exp(-TIME / 5.0) * TIME / 25.0])
    np.testing.assert_allclose(slopes_of(residual, values, np.full(2, 1e-4)), exact, atol=1e-8)
    tried = []

    def seen(tested: np.ndarray) -> np.ndarray:
        tried.append(tested.copy())
        return residual(tested)

    one_sided = slopes_of(seen, values, np.array([0.0, 1e-4]), residual(values), HIGH)
    np.testing.assert_allclose(one_sided, exact[:, 1:], atol=1e-4)
    np.testing.assert_array_equal(tried, [[2.0, 5.0 - 1e-4]])


def test_rows_belong_to_their_recordings():
    slopes, target = np.arange(10.0).reshape(5, 2), np.arange(5.0)
    first, second = rows_of(slopes, target, [np.arange(3.0), np.arange(2.0)], 0.5, [7, 9])
    assert (first.recording, second.recording, second.block) == (7, 9, 0.5)
    np.testing.assert_array_equal(second.regressors, slopes[3:])
    np.testing.assert_array_equal(second.target, target[3:])


def test_the_covariance_of_overlapping_rows_is_that_of_the_scatter_of_their_scores():
    random = np.random.default_rng(5)
    columns, off = random.standard_normal((600, 2)) * [1.0, 50.0], random.standard_normal(600)
    scores = (columns * off[:, None]).reshape(60, 10, 2).sum(axis=1)
    covariance, freedom = covariance_of_scores(columns, scores)
    inverse = np.linalg.inv(columns.T @ columns)
    np.testing.assert_allclose(covariance, 60 / 58 * inverse @ scores.T @ scores @ inverse, rtol=1e-9)
    assert freedom == 58
    assert np.all(np.isinf(covariance_of_scores(columns, scores[:2])[0]))
