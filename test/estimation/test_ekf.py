"""The general filter against a plain Kalman filter, an endless gap and bad numbers."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation.ekf import REFUSED, TAKEN, UNUSABLE, Ekf, Innovation, Step, likely, positions_of

DT = 0.1
NOISE = np.diag([1e-4, 4e-3])
VARIANCE = np.array([0.04])


def drifting(mean: np.ndarray, dt: float, drive: float | None) -> Step:
    """A mass under an acceleration: position, speed."""
    jacobian = np.array([[1.0, dt], [0.0, 1.0]])
    push = 0.0 if drive is None else drive
    return Step(jacobian @ mean + push * np.array([0.5 * dt * dt, dt]), jacobian, NOISE * dt)


def read(ekf: Ekf, value: float, variance: np.ndarray = VARIANCE) -> Innovation:
    return ekf.update(np.array([value]), positions_of([0], 2), variance)


def fresh(**options: float) -> Ekf:
    return Ekf([0.0, 1.0], np.diag([1.0, 2.0]), 0.0, drifting, **options)


def plain_filter(values: np.ndarray, drives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Textbook Kalman filter, whole matrices, written apart from the package."""
    x, p = np.array([0.0, 1.0]), np.diag([1.0, 2.0])
    f, h = np.array([[1.0, DT], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    for y, u in zip(values, drives, strict=True):
        x, p = f @ x + u * np.array([0.5 * DT * DT, DT]), f @ p @ f.T + NOISE * DT
        s = h @ p @ h.T + np.diag(VARIANCE)
        k = p @ h.T @ np.linalg.inv(s)
        x, p = x + k @ (np.array([y]) - h @ x), (np.eye(2) - k @ h) @ p
    return x, p


def test_on_a_linear_model_it_is_the_kalman_filter() -> None:
    random = np.random.default_rng(0)
    values, drives = random.normal(size=60), random.normal(size=60)
    ekf = fresh()
    for k in range(60):
        ekf.predict((k + 1) * DT, drives[k])
        read(ekf, values[k])
    x, p = plain_filter(values, drives)
    np.testing.assert_allclose(ekf.mean, x, rtol=1e-10)
    np.testing.assert_allclose(ekf.covariance, p, rtol=1e-10)
    assert ekf.counts[TAKEN] == 60


def test_a_missing_reading_is_as_if_it_had_not_been_there() -> None:
    one, other = fresh(), fresh()
    one.update(np.array([0.7, np.nan]), positions_of([0, 1], 2), np.array([0.04, 0.1]))
    read(other, 0.7)
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.covariance, other.covariance)
    assert read(one, np.nan).fate == UNUSABLE and one.counts[UNUSABLE] == 1


def test_the_gate_shuts_an_outlier_out_and_lets_its_neighbours_in() -> None:
    ekf = fresh(gate=5.0)
    for k in range(1, 20):
        ekf.predict(k * DT)
        fate = read(ekf, k * DT + (100.0 if k == 10 else 0.0)).fate
        assert fate == (REFUSED if k == 10 else TAKEN)
    assert abs(ekf.mean[0] - 1.9) < 0.1


def test_the_gate_is_passed_as_rarely_as_its_deviations_say() -> None:
    draws = np.random.default_rng(1).normal(size=(200_000, 6))
    for count in (1, 3, 6):
        assert np.mean(np.sum(draws[:, :count] ** 2, axis=1) > likely(2.0, count)) == pytest.approx(0.0228, rel=0.12)


def test_the_covariance_stays_symmetric_and_positive_where_readings_are_almost_exact() -> None:
    """The short form (1 - k h) P is not even symmetric after its first step here."""
    tight = np.array([1e-18])
    ekf = Ekf([0.0, 1.0], np.diag([1e6, 1e6]), 0.0, drifting)
    for k in range(3000):
        ekf.predict((k + 1) * 1e-3)
        read(ekf, 0.0, tight)
        covariance = ekf.covariance
        assert np.array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance)[0] > 0.0
    assert ekf.counts[TAKEN] == 3000


def test_what_makes_no_filter_is_refused() -> None:
    with pytest.raises(InputError, match="covariance"):
        Ekf([0.0, 0.0], np.eye(3), 0.0, drifting)
