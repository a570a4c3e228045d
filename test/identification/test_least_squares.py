"""Least squares on block sums: the same solution as numpy, honest intervals, refusals that name their reason."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_python import numbers_without_numba
from scipy.signal import lfilter
from scipy.stats import chi2
from scipy.stats import t as student

from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.least_squares import (
    BlockSums,
    Kind,
    Reason,
    Rows,
    Unknown,
    accumulate,
    fit,
    judge,
    least_squares,
    merge,
    too_little,
)
from youbot_dynamics.identification.least_squares._block_sums import BLOCK
from youbot_dynamics.identification.least_squares._recordings import between, widening

RATE = 50.0
TRUTH = np.array([2.0, 1.0, 0.5])
UNKNOWNS = tuple(Unknown(name, "N") for name in "abc")


def regressors(count: int, pace: float = 1.0) -> np.ndarray:
    t = pace * np.arange(count) / RATE
    return np.column_stack([np.sin(2.1 * t), np.sign(np.sin(2.1 * t)), np.cos(1.7 * t)])


def rows(count: int = 6000, seed: int = 0, noise: float = 0.1, memory: float = 0.0, pace: float = 1.0, **more) -> Rows:
    """Rows with residuals that are correlated over about memory / (1 - memory) samples."""
    random = np.random.default_rng(seed)
    wander = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], random.normal(size=count + 500))[500:]
    table = regressors(count, pace)
    return Rows(np.arange(count) / RATE, table, table @ TRUTH + noise * wander, **more)


def part(whole: Rows, first: int, last: int) -> Rows:
    kept = {name: getattr(whole, name)[first:last] for name in ("time", "regressors", "target")}
    instruments = None if whole.instruments is None else whole.instruments[first:last]
    return dataclasses.replace(whole, instruments=instruments, **kept)


def test_without_weights_the_solution_is_that_of_numpy():
    data = rows()
    found = least_squares([data], UNKNOWNS, robust=False)
    expected = np.linalg.lstsq(data.regressors, data.target, rcond=None)[0]
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    residual = data.target - data.regressors @ expected
    assert found.explained == pytest.approx(1.0 - residual @ residual / (data.target @ data.target), rel=1e-9)
    lengths = np.linalg.norm(data.regressors, axis=0)
    assert found.condition == pytest.approx(np.linalg.cond(data.regressors / lengths), rel=1e-9)
    assert (found.rows, len(found.weights), found.freedom) == (6000, 120, 117)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 3000), max_size=30), st.randoms(use_true_random=False), st.booleans())
def test_sums_of_pieces_in_any_order_and_grouping_are_those_of_the_whole(cuts, random, with_instruments):
    data = rows(3000, noise=0.3)
    if with_instruments:
        data = dataclasses.replace(data, instruments=data.regressors + 0.1)
    whole = accumulate(data)
    edges = [0, *sorted(cuts), 3000]
    sums = [accumulate(part(data, a, b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    random.shuffle(sums)
    while len(sums) > 1:
        sums = [merge(sums[:2]), *sums[2:]]
        random.shuffle(sums)
    for name in ("keys", "rows", "gram", "cross"):
        expected, got = getattr(whole, name), getattr(sums[0], name)
        assert (expected is None) == (got is None)
        if expected is not None:
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    one, other = fit(whole, UNKNOWNS), fit(sums[0], UNKNOWNS)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-9)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-6)


def test_blocks_of_two_recordings_stay_apart_and_both_count():
    one, other = rows(seed=1, recording=0), rows(seed=2, recording=1)
    both = merge([accumulate(one), accumulate(other)])
    assert len(both) == 240
    stacked = np.vstack([one.regressors, other.regressors]), np.concatenate([one.target, other.target])
    np.testing.assert_allclose(fit(both, UNKNOWNS, robust=False).values, np.linalg.lstsq(*stacked, rcond=None)[0])


def test_an_hour_of_four_unknowns_stays_below_a_megabyte_whatever_the_rate():
    def hour(rate: float) -> BlockSums:
        # One second at the rate, told 3600 times over.
        time = np.arange(int(rate)) / rate
        table = np.ones((len(time), 4))
        return merge([accumulate(Rows(time + second, table, time)) for second in range(3600)])

    assert len(hour(50.0)) == 3600
    slow, fast = (hour(rate).gram.nbytes for rate in (50.0, 200.0))
    assert slow == fast < 1e6
    copy = pickle.loads(pickle.dumps(hour(50.0)))
    assert np.array_equal(copy.gram, hour(50.0).gram)


def test_intervals_are_those_of_student_at_95_percent():
    found = least_squares([rows(noise=0.3)], UNKNOWNS)
    for one in found.estimates:
        expected = student.interval(0.95, found.freedom, one.value, one.standard_error)
        np.testing.assert_allclose(one.interval, expected, rtol=1e-9)


def test_intervals_hold_where_the_plain_covariance_is_several_times_too_narrow():
    """Residuals correlated over 0.5 s: the textbook formula takes each of 50 samples a second for a new one."""
    inside, plain_inside, too_narrow = [], [], []
    for seed in range(150):
        data = rows(6000, seed, noise=0.5, memory=0.96, pace=0.4)
        found = least_squares([data], UNKNOWNS)
        left = data.target - data.regressors @ found.values
        plain = np.linalg.inv(data.regressors.T @ data.regressors) * np.mean(left**2)
        errors = np.sqrt(np.diag(plain))
        inside.append([e.interval[0] <= t <= e.interval[1] for e, t in zip(found.estimates, TRUTH, strict=True)])
        plain_inside.append(np.abs(found.values - TRUTH) <= 1.96 * errors)
        too_narrow.append(np.sqrt(np.diag(found.covariance)) / errors)
    print(f"\ncoverage {np.mean(inside):.3f}, plain {np.mean(plain_inside):.3f}, ratio {np.median(too_narrow, axis=0)}")
    assert 0.90 <= np.mean(inside) <= 0.99
    assert np.mean(plain_inside) < 0.60
    assert np.all(np.median(too_narrow, axis=0) > 3.0)


def test_the_covariance_is_that_of_fits_without_one_block_each_and_half_of_what_neighbours_share():
    random = np.random.default_rng(4)
    time = np.arange(0.0, 20.0 * BLOCK, BLOCK / 30.0)
    time = time[(time < 7.0 * BLOCK) | (time > 9.0 * BLOCK)]  # those on either side of a gap are no neighbours
    table = np.column_stack([np.ones(len(time)), np.sin(0.9 * time)])
    target = table @ [1.0, 2.0] + lfilter([0.2], [1.0, -0.98], random.normal(size=len(time)))
    unknowns = (Unknown("a", "N"), Unknown("b", "N"))
    found = least_squares([Rows(time, table, target)], unknowns, robust=False, between=False)
    number = np.floor(time / BLOCK + 1e-9).astype(int)
    there = np.unique(number)
    whole = np.linalg.lstsq(table, target, rcond=None)[0]
    without = [np.linalg.lstsq(table[number != k], target[number != k], rcond=None)[0] - whole for k in there]
    moved = dict(zip(there.tolist(), without, strict=True))
    expected = sum(np.outer(change, change) for change in moved.values())
    for k in there.tolist():
        if k + 1 in moved:
            shared = np.outer(moved[k], moved[k + 1])
            expected = expected + 0.5 * (shared + shared.T)
    np.testing.assert_allclose(found.covariance, expected * (len(there) - 1) / len(there), rtol=1e-6)


def test_a_block_that_slips_is_left_out_of_the_result():
    data = rows(noise=0.05)
    target = data.target.copy()
    slipping = (data.time > 30.0) & (data.time < 33.0)
    target[slipping] = -20.0
    spoilt = dataclasses.replace(data, target=target)
    clean, robust = least_squares([data], UNKNOWNS), least_squares([spoilt], UNKNOWNS)
    naive = least_squares([spoilt], UNKNOWNS, robust=False)
    assert np.abs(naive.values - TRUTH).max() > 0.1
    assert np.abs(robust.values - TRUTH).max() < 0.01
    assert np.all(robust.weights[30:33] < 1e-4) and np.all(clean.weights == 1.0)


def test_instruments_free_the_estimate_of_the_noise_in_its_regressors():
    random = np.random.default_rng(0)
    data = rows(noise=0.1)
    clean = data.regressors
    noisy = clean + np.array([0.4, 0.0, 0.4]) * random.normal(size=clean.shape)
    biased = least_squares([dataclasses.replace(data, regressors=noisy)], UNKNOWNS)
    freed = least_squares([dataclasses.replace(data, regressors=noisy, instruments=clean)], UNKNOWNS)
    assert np.abs(biased.values - TRUTH).max() > 0.3
    assert np.abs(freed.values - TRUTH).max() < 0.05
    errors = np.sqrt(np.diag(freed.covariance))
    assert np.all(np.abs(freed.values - TRUTH) < 3.0 * errors)


def ill_conditioned(gap: float) -> Rows:
    data = rows(noise=0.0)
    table = data.regressors.copy()
    table[:, 2] = table[:, 0] + gap * table[:, 2]
    return dataclasses.replace(data, regressors=table, target=table @ TRUTH)


def test_above_a_scaled_condition_of_1e3_qr_takes_over_and_keeps_the_digits():
    mild, hard = ill_conditioned(1e-2), ill_conditioned(1e-5)
    assert least_squares([mild], UNKNOWNS, robust=False).method == "block sums"
    pieces = [part(hard, 0, 2500), part(hard, 2500, 6000)]
    by_qr = least_squares(pieces, UNKNOWNS, robust=False)
    by_sums = fit(accumulate(hard), UNKNOWNS, robust=False)
    assert (by_qr.method, by_sums.method) == ("chunked QR", "block sums")
    scaled = hard.regressors / np.linalg.norm(hard.regressors, axis=0)
    assert by_qr.condition == pytest.approx(np.linalg.cond(scaled), rel=1e-3)
    assert np.abs(by_qr.values - TRUTH).max() < 1e-9
    assert np.abs(np.array([one.value for one in by_qr.estimates]) - TRUTH).max() < 1e-9
    assert np.abs(by_sums.values - TRUTH).max() > 1e-7


def test_qr_weighs_the_blocks_as_the_sums_do():
    data = ill_conditioned(3e-4)
    noise = 1e-4 * np.random.default_rng(0).normal(size=len(data.time))
    spoilt = np.where((data.time > 30.0) & (data.time < 33.0), -1.0, data.target + noise)
    data = dataclasses.replace(data, target=spoilt)
    by_qr, by_sums = least_squares([data], UNKNOWNS), fit(accumulate(data), UNKNOWNS)
    assert by_qr.method == "chunked QR" and 1e-12 < by_qr.weights.min() < 1e-3
    np.testing.assert_allclose(by_qr.values, by_sums.values, rtol=1e-6)


def test_qr_with_instruments_solves_the_same_equations():
    data = ill_conditioned(1e-4)
    data = dataclasses.replace(data, instruments=data.regressors * [1.0, 2.0, 1.0])
    found = least_squares([part(data, 0, 1000), part(data, 1000, 6000)], UNKNOWNS)
    assert found.method == "chunked QR"
    np.testing.assert_allclose(found.values, TRUTH, rtol=1e-7)


def test_a_column_of_zeros_is_refused_with_the_reason_of_its_unknown():
    data = rows()
    table = np.column_stack([data.regressors[:, :2], np.zeros(len(data.time))])
    unknowns = (*UNKNOWNS[:2], Unknown("c", "N", unexcited="the robot never moved sideways in this bag"))
    found = least_squares([dataclasses.replace(data, regressors=table)], unknowns)
    assert found["c"].verdict == "not identifiable: the robot never moved sideways in this bag"
    assert np.isnan(found["c"].value) and found["a"].identified and found["b"].identified


def test_motion_nobody_asked_for_excites_nothing():
    data = rows()
    table, asked = data.regressors.copy(), data.regressors.copy()
    table[:, 2] = 1e-3 * np.random.default_rng(0).normal(size=len(table))
    asked[:, 2] = 0.0
    found = least_squares([dataclasses.replace(data, regressors=table, instruments=asked)], UNKNOWNS)
    assert not found["c"].identified and found["a"].identified


def test_unknowns_whose_columns_are_one_are_refused_by_name_and_the_others_stand():
    data = rows()
    table = np.column_stack([data.regressors, 2.0 * data.regressors[:, 0] - data.regressors[:, 1]])
    unknowns = (*UNKNOWNS, Unknown("d", "N"))
    found = least_squares([dataclasses.replace(data, regressors=table)], unknowns)
    assert found["d"].verdict == "not identifiable: it cannot be distinguished from a, b in these data"
    assert [estimate.identified for estimate in found.estimates] == [False, False, True, False]
    assert found["c"].value == pytest.approx(0.5, abs=0.02)


def test_the_verdict_is_that_of_the_interval_and_names_what_correlates():
    data = rows(noise=1.5, memory=0.9)
    table = np.column_stack([data.regressors[:, 0], 1.0 + 0.05 * data.regressors[:, 2]])
    target = table @ [0.01, 1.0] + data.target - data.regressors @ TRUTH
    narrow = Unknown("a", "N", resolution=10.0)
    data = dataclasses.replace(data, regressors=table, target=target)
    wide = least_squares([data], UNKNOWNS[:2])
    assert wide["a"].verdict.startswith("not identifiable: the interval of +-")
    assert least_squares([data], (narrow, UNKNOWNS[1]))["a"].identified
    twins = np.column_stack([np.ones(len(table)), 1.0 + 0.02 * rows().regressors[:, 2]])
    found = least_squares([dataclasses.replace(data, regressors=twins, target=target)], UNKNOWNS[:2])
    assert found["a"].verdict.endswith("; it cannot be distinguished from b in these data")
    assert abs(found.correlation[0, 1]) > 0.99


def test_a_bound_is_said_when_active_and_never_counts_as_identified():
    data = rows(noise=0.05)
    unknowns = (UNKNOWNS[0], UNKNOWNS[1], Unknown("c", "N", low=1.0))
    found = least_squares([data], unknowns)
    assert found.active_bounds == ("c",) and found["c"].value == 1.0 and found["c"].bound == 1.0
    assert "beyond its physical bound 1" in found["c"].verdict and not found["c"].identified
    assert found.values[2] == pytest.approx(0.5, abs=0.01)
    held = np.linalg.lstsq(data.regressors[:, :2], data.target - data.regressors[:, 2], rcond=None)[0]
    free = least_squares([data], unknowns, robust=False)
    np.testing.assert_allclose([free["a"].value, free["b"].value], held, rtol=1e-9)
    assert not least_squares([data], UNKNOWNS).active_bounds


def test_one_block_that_carries_everything_is_no_evidence():
    data = rows(noise=0.05)
    table = data.regressors.copy()
    table[:, 2] = np.where((data.time > 20.0) & (data.time < 20.9), 1.0, 0.0)
    found = least_squares([dataclasses.replace(data, regressors=table, target=table @ TRUTH)], UNKNOWNS)
    told = "not identifiable: only one block of the recording contains information on it; several are needed"
    assert found["c"].verdict == told
    assert found["a"].identified and found["b"].identified


def test_combinations_have_their_own_interval():
    found = least_squares([rows(noise=0.3)], UNKNOWNS)
    sum_, first = found.combination([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [Unknown("a + b", "N"), Unknown("again", "N")])
    assert sum_.value == pytest.approx(found.values[0] + found.values[1])
    assert sum_.standard_error == pytest.approx(np.sqrt(found.covariance[:2, :2].sum()))
    assert first.interval == pytest.approx(found["a"].interval)


def test_too_little_data_and_wrong_shapes_are_refused():
    with pytest.raises(IdentificationError, match="3 usable time blocks; expected 7 or more") as short:
        least_squares([rows(150)], UNKNOWNS)
    elsewhere = pickle.loads(pickle.dumps(short.value))  # as from another process
    assert (elsewhere.kind, elsewhere.count, elsewhere.needed) == (Kind.TOO_LITTLE_DATA, 3, 7)
    assert too_little(elsewhere, "coasts") == Reason(Kind.TOO_LITTLE_DATA, "3 coasts; needed: 7 or more")
    with pytest.raises(InputError, match="unknowns: got 2 of them; expected 3"):
        least_squares([rows()], UNKNOWNS[:2])
    with pytest.raises(InputError, match="target"):
        Rows(np.zeros(3), np.zeros((3, 2)), np.array([1.0, np.nan, 0.0]))
    with pytest.raises(InputError, match="sums of 2 models"):
        merge([accumulate(rows()), accumulate(Rows(np.zeros(3), np.zeros((3, 2)), np.zeros(3)))])
    with pytest.raises(InputError, match="block"):
        Rows(np.zeros(3), np.zeros((3, 2)), np.zeros(3), block=0.0)


def sums_of_rows_in_disorder() -> np.ndarray:
    data = rows(2000)
    order = np.random.default_rng(0).permutation(2000)
    sums = accumulate(Rows(data.time[order], data.regressors[order], data.target[order], data.regressors[order] + 0.2))
    return np.concatenate([np.ravel(part) for part in (sums.keys, sums.rows, sums.gram, sums.cross)])


def test_without_numba_the_sums_are_the_same() -> None:
    plain = numbers_without_numba(sums_of_rows_in_disorder)
    np.testing.assert_allclose(plain, sums_of_rows_in_disorder(), rtol=1e-12)


def test_a_half_width_of_more_than_half_the_value_is_too_wide():
    assert judge(Unknown("a", "N"), -2.0, 0.5, 1.0).identified
    assert judge(Unknown("a", "N"), -2.0, 0.5, 1.01).reason.kind is Kind.TOO_WIDE


def test_a_value_at_its_bound_is_never_identified_however_near_the_data_come():
    estimate = judge(Unknown("viscous", "N m s/rad", low=0.0, resolution=0.02), -1e-4, 1e-3, 2e-3)
    assert estimate.bound == 0.0 and not estimate.identified
    assert "beyond its physical bound 0" in estimate.verdict


@pytest.mark.parametrize(
    ("value", "reach", "ends"),
    [(5.0, 1.0, (4.0, 6.0)), (1.0, 3.0, (0.0, 4.0)), (-1.0, 3.0, (0.0, 2.0)), (-1.0, 0.5, (0.0, 0.0))]
    + [(9.0, 3.0, (6.0, 10.0)), (12.0, 5.0, (7.0, 10.0)), (12.0, 1.0, (10.0, 10.0)), (5.0, np.inf, (0.0, 10.0))],
)
def test_an_interval_ends_at_the_physical_bounds(value: float, reach: float, ends: tuple[float, float]):
    found = judge(Unknown("a", "N", low=0.0, high=10.0), value, 1.0, reach)
    assert found.interval == ends and found.value == min(max(value, 0.0), 10.0)


# Several recordings


@pytest.mark.parametrize("recordings", [2, 3, 5])
def test_intervals_of_several_recordings_hold_the_scatter_between_them(recordings: int):
    """Values drawn anew for each recording, a few of its errors apart: the blocks of a recording do not show that."""
    random = np.random.default_rng(recordings)
    inside = []
    for _ in range(60):
        pieces = []
        for k in range(recordings):
            time = np.arange(0.0, 30.0, 0.05)
            columns = np.column_stack([np.sin(1.3 * time + k), np.ones(len(time))])
            drawn = np.array([1.0, 2.0]) + random.standard_normal(2) * [0.3, 0.1]
            target = columns @ drawn + 0.5 * random.standard_normal(len(time))
            pieces.append(Rows(time, columns, target, recording=k))
        unknowns = (Unknown("a", "1", resolution=9.0), Unknown("b", "1", resolution=9.0))
        found = least_squares(pieces, unknowns)
        for estimate, true in zip(found.estimates, (1.0, 2.0), strict=True):
            inside.append(estimate.interval[0] <= true <= estimate.interval[1])
        alone = least_squares(pieces, unknowns, between=False)
        assert np.all(np.diag(found.covariance) >= 0.999 * np.diag(alone.covariance))
        np.testing.assert_array_equal(found.values, alone.values)
    print(f"{recordings} recordings: {np.mean(inside):.3f}")
    assert np.mean(inside) >= 0.85


def test_the_scatter_between_two_recordings_is_the_one_whose_misfit_is_the_median_of_chi_square():
    values, variances = np.array([5.0, 5.8]), np.array([0.01, 0.03])
    found = between(values, variances)
    assert found == pytest.approx(0.8**2 / chi2.median(1) / 2.0 - 0.02, rel=1e-6)
    assert between(values, 100.0 * variances) == 0.0


def test_a_recording_that_hardly_determines_a_value_does_not_widen_its_interval():
    two = widening(np.array([1.0, 2.0]), np.array([0.01, 0.01]), 0.005, 30.0)
    assert two > 3.0
    assert widening(np.array([1.0, 2.0, 9.0]), np.array([0.01, 0.01, 0.2]), 0.005, 30.0) == two
    assert widening(np.array([1.0, 2.0, 9.0]), np.array([0.01, 0.01, 0.05]), 0.005, 30.0) > two


def test_a_value_that_one_recording_alone_determines_keeps_its_interval():
    time = np.arange(0.0, 30.0, 0.05)
    noise = np.random.default_rng(1).standard_normal((2, len(time)))
    both = np.column_stack([np.ones(len(time)), np.sin(time)])
    one = np.column_stack([np.ones(len(time)), np.zeros(len(time))])
    pieces = [
        Rows(time, rows, rows @ [1.0, 2.0] + n, recording=k)
        for k, (rows, n) in enumerate(zip((both, one), noise, strict=True))
    ]
    unknowns = (Unknown("level", "1"), Unknown("swing", "1"))
    found, alone = (least_squares(pieces, unknowns, between=between)["swing"] for between in (True, False))
    assert found == alone


def test_a_refusal_says_no_unit_where_there_is_none() -> None:
    wide = judge(Unknown("factor", "1"), 0.57, 0.17, 0.34, ())
    assert "the interval of +-0.34 is too wide for a value of 0.57" in wide.verdict
    assert "the interval of +-0.34 N m is too wide" in judge(Unknown("f", "N m"), 0.57, 0.17, 0.34, ()).verdict
    beyond = judge(Unknown("share", "1", high=1.0), 1.5, 0.05, 0.1, ())
    assert "gives 1.5 +-0.1, beyond its physical bound 1" in beyond.verdict


def test_a_value_of_a_rare_motion_is_not_identified_by_its_small_effect() -> None:
    """Only values that came out too large passed: those beyond their bound are refused."""
    for seed in range(10):
        random, time = np.random.default_rng(seed), np.arange(0.0, 200.0, 0.1)
        forward, sideways = 0.3 + 0.15 * np.sin(0.5 * time), np.where(time % 40.0 < 1.0, 0.02, 0.0)
        noise = np.repeat(1.5 * random.standard_normal(len(time) // 5), 5)
        target = 20.0 + 60.0 * forward + 8.0 * sideways + noise
        names = {"coulomb": np.ones_like(time), "viscous_x": forward, "viscous_y": sideways}
        unknowns = [Unknown(name, "N", low=0.0, resolution=0.5, whole="friction") for name in names]
        solved = least_squares([Rows(time, np.column_stack([*names.values()]), target)], unknowns)
        assert solved["viscous_x"].identified and not solved["viscous_y"].identified
