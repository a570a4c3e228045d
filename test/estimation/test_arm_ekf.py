"""The arm's filter: the step it predicts with, its slopes, what it does with a message, and how it bears bad ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from arm_runs import JITTER, MIDDLE, NOMINAL, ROBOT, SHEETS, Run, drawn_truth, sensors, swing
from plain_python import numbers_without_numba

from youbot_dynamics.dynamics.arm import (
    DONE,
    ROW,
    ArmModel,
    ArmState,
    StepWork,
    arm_step,
    arm_tree,
    step_work,
)
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.estimation.arm_ekf import PROPAGATED, ArmEkf, ArmEkfTuning, ArmSensors
from youbot_dynamics.estimation.arm_ekf import _model as process
from youbot_dynamics.estimation.arm_ekf._loop import forget

KNOWN = ArmEkfTuning(friction_error=0.0, load_error=0.0)
REACH = np.array([friction.reach for friction in SHEETS.friction])
WARM = np.full(5, 25.0)
EACH = ((),) * 5  # as in `Rules`


@pytest.fixture(scope="module")
def run() -> Run:
    return swing(0, drawn_truth(0), seconds=3.0)


def draw_state(random: np.random.Generator) -> np.ndarray:
    """Rows of the filter's mean (4, 5)."""
    speed = 10.0 ** random.uniform(-2.0, 0.0) * random.normal(size=5)
    error = 0.1 * random.normal(size=5)
    return np.array([MIDDLE + random.uniform(-0.5, 0.5, 5), speed, REACH * random.uniform(-1.0, 1.0, 5), error])


def draw_torque(random: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    return SHEETS.tree.gravity_forces(mean[0]) + random.normal(size=5) * [3.0, 2.0, 1.0, 0.5, 0.3]


def stepped(
    arm: ArmModel, mean: np.ndarray, torque: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray, StepWork, np.ndarray]:
    """Mean (4, 5) after a step, its accelerations (5,), what was worked out for it, and its slopes (4, 5, 5)."""
    body = arm.body
    work, moved, a, slopes = step_work(body), mean.copy(), np.zeros(5), np.zeros((4, 5, 5))
    process.begin_step(EACH, mean, a, torque, work.table)
    # Straight-line code by plain iterations, loops by the line search.
    constants = (process.ITERATIONS, process.CONVERGED, False) if body.layout is None else (0, 0.0, True)
    assert arm_step(body.layout, body.joints, body.halfway, *constants, dt, True, work) == DONE
    assert process.total_slopes(EACH, work.derivatives, work.table, dt, slopes)
    process.move(EACH, moved, a, work.table, dt)
    return moved, a, work, slopes


def test_friction_is_as_uncertain_at_the_start_whatever_the_load() -> None:
    """Only the friction's part of a torque error is friction; what the load adds to the error is told apart again."""
    deviations = []
    for effort in (0.0, 8.0):
        ekf = ArmEkf(SHEETS, sensors(), ArmEkfTuning())
        ekf.predict(0.0, np.full(5, effort))
        ekf.update(MIDDLE)
        deviations.append(ekf.friction_deviation())
    np.testing.assert_allclose(deviations[1], deviations[0], rtol=1e-9)


def test_the_loads_part_of_a_torque_error_goes_to_its_own_variance_in_two_steps_as_in_one() -> None:
    torque, table, joints = np.array([3.0, -8.0, 4.0, 1.0, 0.5]), np.zeros((22, 5)), np.full((8, 5), 0.2)
    one, two, settled = np.full(5, 0.7), np.full(5, 0.7), np.full(5, 0.7)
    for left, parts in ((0.6 * 0.9, [one]), (0.6, [two]), (0.9, [two]), (1e-9, [settled])):
        for part in parts:
            forget(EACH, left, joints, torque, table, np.zeros((4, 5)), part)
    np.testing.assert_allclose(two, one, rtol=1e-12)
    np.testing.assert_allclose(settled, (0.2 * torque) ** 2, rtol=1e-12)


@pytest.mark.parametrize("dt", [1e-3, 2e-3, 2e-2])
def test_its_step_is_that_of_the_arm(dt: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        mean = draw_state(random)
        torque = draw_torque(random, mean)
        moved, _, _, _ = stepped(SHEETS, mean, torque, dt)
        there = SHEETS.step(ArmState(*mean[:3], WARM, WARM), dt, torque=torque + mean[3])
        np.testing.assert_allclose(moved[0], there.position, atol=1e-8)
        np.testing.assert_allclose(moved[1], there.speed, atol=1e-7)
        np.testing.assert_allclose(moved[2], there.bristle, atol=1e-8)


@pytest.mark.parametrize("dt", [2e-3, 2e-2])
@pytest.mark.parametrize("tilted", [False, True])
def test_slopes_of_a_step_are_those_of_its_differences(dt: float, tilted: bool) -> None:
    """An arm on a tilted floor has no straight-line code: it takes the loops."""
    gravity = (1.0, 0.0, -9.7) if tilted else (0.0, 0.0, -9.81)
    arm = dataclasses.replace(SHEETS, tree=arm_tree(SHEETS.tree.layout.rotor_inertias, gravity=gravity))
    assert arm.tree.is_written_out != tilted
    random = np.random.default_rng(1)
    for _ in range(3 if tilted else 12):
        mean = draw_state(random)
        torque = draw_torque(random, mean)
        _, _, _, all_slopes = stepped(arm, mean, torque, dt)
        for row, change in enumerate((1e-6, 1e-6, 1e-8, 1e-4)):
            slopes = all_slopes[row]
            for joint in range(5):
                up, down = mean.copy(), mean.copy()
                up[row, joint] += change
                down[row, joint] -= change
                turning = np.any(up[1] * down[1] <= 0.0)
                difference = (stepped(arm, up, torque, dt)[1] - stepped(arm, down, torque, dt)[1]) / (2.0 * change)
                if not turning:
                    tolerance = (2e-3 if tilted else 2e-4) * np.abs(slopes).max()
                    np.testing.assert_allclose(slopes[:, joint], difference, atol=tolerance)


def dense(
    table: np.ndarray, slopes: np.ndarray, dt: float, left: float, size: int, bristles: int, errors: int
) -> np.ndarray:
    """Jacobian (m, m) of a step, put together block by block apart from the filter."""
    eye, n = np.eye(5), 5
    over = np.zeros((5, size))
    over[:, :n], over[:, n : 2 * n] = slopes[0], slopes[1]
    if bristles:
        over[:, bristles : bristles + n] = slopes[2]
    if errors:
        over[:, errors : errors + n] = slopes[3]
    f = np.zeros((size, size))
    f[:n, :n], f[:n, n : 2 * n], f[n : 2 * n, n : 2 * n] = eye, dt * eye, eye
    f[:n] += 0.5 * dt * dt * over
    f[n : 2 * n] += dt * over
    if bristles:
        own = slice(bristles, bristles + n)
        f[own, own] = np.diag(table[ROW.after_z])
        f[own, n : 2 * n] = np.diag(table[ROW.after_start])
        f[own] += table[ROW.after_end][:, None] * f[n : 2 * n]
    if errors:
        f[errors : errors + n, errors : errors + n] = left * eye
    return f


@pytest.mark.parametrize(
    ("tuning", "size"),
    [
        (ArmEkfTuning(), 20),
        (KNOWN, 15),
        (ArmEkfTuning(bristles=PROPAGATED), 15),
        (dataclasses.replace(KNOWN, bristles=PROPAGATED), 10),
    ],
)
def test_the_covariance_moves_by_the_dense_jacobian(tuning: ArmEkfTuning, size: int) -> None:
    quiet = dataclasses.replace(tuning, bristle_noise=0.0, effort_swing=0.0)
    ekf = ArmEkf(SHEETS, ArmSensors(np.full(5, 1e-5), np.full(5, 0.01), np.full(5, 1e-9)), quiet)
    assert ekf.size == size
    random = np.random.default_rng(2)
    mean = draw_state(random)
    torque = draw_torque(random, mean)
    root = random.normal(size=(size, size))
    start = root @ root.T
    if ekf._rules.errors == 0:
        mean[3] = 0.0
    ekf._estimate.mean[:] = mean
    ekf._estimate.covariance[:size, :size] = start
    ekf._estimate.memory[1] = torque
    ekf._estimate.clock[:] = 0.0
    assert ekf.predict(0.004, torque) and ekf.counts["steps without a solution"] == 0
    left = np.exp(-0.004 / tuning.torque_memory)
    f = dense(ekf._step.table, ekf._work.slopes, 0.004, left, size, ekf._rules.bristles, ekf._rules.errors)
    found = ekf._estimate.covariance[:size, :size]
    errors = slice(ekf._rules.errors, ekf._rules.errors + 5 if ekf._rules.errors else 0)
    expected = f @ start @ f.T
    grown = np.diag(found - expected)[errors]
    assert np.all(grown >= 0.0)
    found = found.copy()
    found[errors, errors] -= np.diag(grown)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_an_update_is_that_of_all_readings_at_once_with_their_common_jitter() -> None:
    ekf = ArmEkf(SHEETS, sensors(), ArmEkfTuning(gate=1e6))
    random = np.random.default_rng(3)
    ekf.predict(0.0, np.zeros(5))
    ekf.update(MIDDLE)
    mean = draw_state(random)
    mean[2] *= 0.1
    root = random.normal(size=(20, 20)) * np.repeat([1e-4, 1e-2, 1e-5, 1e-1], 5)[:, None]
    start = root @ root.T
    ekf._estimate.mean[:] = mean
    ekf._estimate.covariance[:20, :20] = start
    ekf._taken = True
    reading = mean[0] + 1e-4 * random.normal(size=5)
    found = ekf.update(reading)
    v = mean[1]
    noise = np.diag(ROBOT.arm_quanta()[0] ** 2 / 12.0) + JITTER**2 * np.outer(v, v)
    h = np.eye(5, 20)
    s = h @ start @ h.T + noise
    gain = start @ h.T @ np.linalg.inv(s)
    state = ekf.state
    np.testing.assert_allclose(state.mean, mean.ravel() + gain @ (reading - mean[0]), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(state.covariance, (np.eye(20) - gain @ h) @ start, atol=1e-8 * np.abs(start).max())
    off = reading - mean[0]
    assert found.nis == pytest.approx(off @ np.linalg.solve(s, off), rel=1e-6) and found.count == 5
    np.testing.assert_allclose(found.variance, np.diag(s), rtol=1e-9)


def test_message_by_message_and_a_whole_log_give_the_same(run: Run) -> None:
    one, other = ArmEkf(run.model, sensors()), ArmEkf(run.model, sensors())
    track = one.replay(run.stamp[:200], run.position[:200], run.effort[:200])
    for k in range(200):
        assert other.predict(run.stamp[k], run.effort[k])
        found = other.update(run.position[k])
    np.testing.assert_array_equal(other.state.position, track.position[-1])
    np.testing.assert_array_equal(np.diag(other.state.covariance), track.variance[-1])
    np.testing.assert_allclose(other.state.friction_torque, track.friction_torque[-1], rtol=1e-12)
    assert found.nis == track.nis[-1] and one.counts == other.counts
    assert one.counts["messages taken in"] == 200 and one.counts["starts"] == 1


def test_it_begins_with_the_first_message_that_has_all_positions() -> None:
    ekf = ArmEkf(SHEETS, sensors())
    assert np.isnan(ekf.state.stamp) and np.isnan(ekf.state.mean).all()
    partial = MIDDLE.copy()
    partial[2] = np.nan
    assert ekf.predict(1.0, np.zeros(5)) and ekf.update(partial).count == 0
    assert np.isnan(ekf.state.stamp)
    ekf.predict(1.02, np.zeros(5))
    ekf.update(MIDDLE)
    assert ekf.state.stamp == 1.02
    np.testing.assert_array_equal(ekf.state.position, MIDDLE)
    ekf.reset()
    assert np.isnan(ekf.state.stamp) and ekf.counts["starts"] == 1


def test_late_and_repeated_messages_change_nothing_and_are_counted(run: Run) -> None:
    ekf = ArmEkf(run.model, sensors())
    ekf.replay(run.stamp[:50], run.position[:50], run.effort[:50])
    before = ekf.state
    for stamp in (run.stamp[49], run.stamp[40], np.nan):
        assert not ekf.predict(stamp, np.zeros(5))
        assert ekf.update(MIDDLE).count == 0
    after = ekf.state
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.covariance, before.covariance)
    counts = ekf.counts
    assert (counts["repeated stamps"], counts["late stamps"], counts["invalid stamps"]) == (1, 1, 1)


def test_a_clock_that_was_set_back_begins_anew(run: Run) -> None:
    ekf = ArmEkf(run.model, sensors())
    ekf.replay(run.stamp[:50] + 1e9, run.position[:50], run.effort[:50])
    ekf.replay(run.stamp[:50], run.position[:50], run.effort[:50])
    assert ekf.state.stamp == run.stamp[49] and ekf.counts["starts"] == 2


def test_one_wild_reading_is_shut_out_and_a_lasting_one_believed(run: Run) -> None:
    ekf = ArmEkf(run.model, sensors())
    positions = run.position[:400].copy()
    positions[200, 3] += 0.3
    track = ekf.replay(run.stamp[:400], positions, run.effort[:400])
    assert ekf.counts["readings beyond the gate"] == 1 and ekf.counts["joints restarted"] == 0
    np.testing.assert_allclose(track.position, run.true_position[:400], atol=1e-3)
    moved = run.position[:400].copy()
    moved[200:, 3] += 0.3
    other = ArmEkf(run.model, sensors())
    track = other.replay(run.stamp[:400], moved, run.effort[:400])
    assert other.counts["joints restarted"] == 1
    assert track.position[-1, 3] == pytest.approx(moved[-1, 3], abs=1e-3)


def test_turns_of_a_joint_are_wrapped(run: Run) -> None:
    ekf = ArmEkf(run.model, sensors())
    positions = run.position[:100].copy()
    positions[50:, 0] += 2.0 * np.pi
    track = ekf.replay(run.stamp[:100], positions, run.effort[:100])
    assert ekf.counts["readings beyond the gate"] == 0
    np.testing.assert_allclose(track.position, run.true_position[:100], atol=1e-3)


def test_efforts_that_are_missing_widen_the_covariance(run: Run) -> None:
    efforts = run.effort[:500].copy()
    efforts[300:310] = np.nan
    gap = ArmEkf(run.model, sensors()).replay(run.stamp[:500], run.position[:500], efforts)
    whole = ArmEkf(run.model, sensors()).replay(run.stamp[:500], run.position[:500], run.effort[:500])
    assert np.all(gap.variance[309, 5:10] > 1.2 * whole.variance[309, 5:10])
    assert np.all(np.isfinite(gap.position)) and np.all(np.isfinite(gap.variance))
    np.testing.assert_allclose(gap.speed[-1], whole.speed[-1], atol=2e-3)


@pytest.mark.parametrize("gap", [0.15, 0.35])
def test_a_gap_in_the_log_is_walked_in_steps_and_caught_up(run: Run, gap: float) -> None:
    keep = (run.stamp < 1.2) | (run.stamp > 1.2 + gap)
    ekf = ArmEkf(run.model, sensors(), KNOWN)
    track = ekf.replay(run.stamp[keep], run.position[keep], run.effort[keep])
    first = int(np.searchsorted(run.stamp[keep], 1.2))
    assert ekf.counts["starts"] == 1 and ekf.counts["steps without a solution"] == 0
    error = track.position[first + 50] - run.true_position[keep][first + 50]
    assert np.all(np.abs(error) < 5e-4)
    assert np.all(np.abs(track.speed[first + 50] - run.true_speed[keep][first + 50]) < 0.02)


def test_after_a_long_gap_all_begins_anew(run: Run) -> None:
    ekf = ArmEkf(run.model, sensors())
    keep = (run.stamp < 0.5) | (run.stamp > 2.0)
    ekf.replay(run.stamp[keep], run.position[keep], run.effort[keep])
    assert ekf.counts["starts"] == 2


def test_speeds_of_the_driver_are_used_with_their_lag(run: Run) -> None:
    """Taken for undelayed, lag x acceleration of 0.01 rad/s would stand in the estimate; positions barely read here."""
    coarse = ArmSensors(np.full(5, 0.1), ROBOT.arm_quanta()[1], np.full(5, 0.02), JITTER)
    error = {}
    for name, velocity, lag in (
        ("with", run.velocity, 0.01),
        ("undelayed", run.velocity, 0.0),
        ("without", None, 0.01),
    ):
        ekf = ArmEkf(run.model, dataclasses.replace(coarse, velocity_lag=lag), KNOWN)
        track = ekf.replay(run.stamp, run.position, run.effort, velocity)
        late = run.stamp > 1.0
        error[name] = float(np.sqrt(np.mean((track.speed - run.true_speed)[late, :4] ** 2)))
    assert error["with"] < 0.8 * error["undelayed"] and error["with"] < 0.8 * error["without"]


def thrown(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A log with everything a log can suffer: t stamps, positions and efforts (t, 5)."""
    random = np.random.default_rng(seed)
    base = swing(seed, NOMINAL, seconds=4.0)
    t = len(base.stamp)
    laps = -(-count // t)
    stamp = np.concatenate([base.stamp + lap * 4.0 for lap in range(laps)])[:count]
    position, effort = np.tile(base.position, (laps, 1))[:count], np.tile(base.effort, (laps, 1))[:count]
    fate = random.random(count)
    stamp = np.where(fate < 0.01, np.roll(stamp, 1), stamp)  # repeated
    stamp = np.where((fate >= 0.01) & (fate < 0.02), stamp - 0.005, stamp)  # out of order
    stamp[(fate >= 0.02) & (fate < 0.021)] = np.nan
    position[random.random((count, 5)) < 0.01] = np.nan
    position[random.random((count, 5)) < 0.002] += 0.5
    effort[random.random((count, 5)) < 0.01] = np.nan
    effort[random.random((count, 5)) < 0.001] *= -30.0
    keep = random.random(count) > 0.01
    keep[1000:1100] = False
    return stamp[keep], position[keep], effort[keep]


def bear(count: int) -> None:
    stamp, position, effort = thrown(4, count)
    ekf = ArmEkf(SHEETS, sensors())
    for part in np.array_split(np.arange(len(stamp)), max(1, count // 2000)):
        track = ekf.replay(stamp[part], position[part], effort[part])
        for values in (track.position, track.speed, track.bristle, track.torque_error, track.friction_torque):
            assert np.all(np.isfinite(values))
        assert np.all(track.variance > 0.0) and np.all(np.isfinite(track.variance))
        assert np.all(np.abs(track.bristle) <= REACH * (1.0 + 1e-9))
        covariance = ekf.state.covariance
        assert np.array_equal(covariance, covariance.T)
        scale = np.sqrt(np.diag(covariance))
        assert np.linalg.eigvalsh(covariance / np.outer(scale, scale))[0] > 0.0
    counts = ekf.counts
    judged = ("messages taken in", "late stamps", "repeated stamps", "invalid stamps")
    assert sum(counts[name] for name in judged) == len(stamp)
    assert all(counts[name] > 0 for name in judged)
    taken = np.isfinite(stamp)
    assert (
        counts["missing efforts"] <= np.isnan(effort).sum()
        and counts["missing efforts"] > 0.9 * np.isnan(effort[taken]).sum() * 0.95
    )
    assert counts["missing positions"] > 0 and counts["readings beyond the gate"] > 0


def test_it_bears_drop_outs_outliers_and_disorder() -> None:
    bear(20_000)


@pytest.mark.slow
def test_it_bears_a_million_messages_with_drop_outs_outliers_and_disorder() -> None:
    bear(1_000_000)


def short_run() -> list[float]:
    """Numbers of a few messages with a missing reading, a late one and a gap, on readings made here."""
    random = np.random.default_rng(5)
    ekf = ArmEkf(SHEETS, sensors())
    for stamp in [*(0.002 * np.arange(1, 12)), 0.01, 0.08]:
        position = MIDDLE + 0.2 * stamp + 1e-5 * random.normal(size=5)
        position[2] = np.nan if 0.009 < stamp < 0.011 else position[2]
        effort = SHEETS.tree.gravity_forces(MIDDLE) + random.normal(size=5)
        ekf.predict(stamp, effort)
        ekf.update(position, np.full(5, 0.2))
    state = ekf.state
    return [*state.mean.tolist(), *np.diag(state.covariance).tolist(), *state.friction_torque.tolist()]


def test_without_numba_it_believes_the_same() -> None:
    plain = numbers_without_numba(short_run)
    np.testing.assert_allclose(plain, short_run(), rtol=1e-6, atol=1e-9)


def test_what_makes_no_filter_is_refused() -> None:
    with pytest.raises(ModelError, match="bristles"):
        ArmEkfTuning(bristles="guessed")
    with pytest.raises(ModelError, match="friction_error"):
        ArmEkfTuning(friction_error=-0.1)
    with pytest.raises(ModelError, match="position_quantum"):
        ArmSensors(np.zeros(5), np.ones(5), np.ones(5))
    ekf = ArmEkf(SHEETS, sensors())
    with pytest.raises(InputError, match="effort"):
        ekf.predict(0.0, np.zeros(4))
    with pytest.raises(InputError, match="position"):
        ekf.replay(np.zeros(3), np.zeros((2, 5)), np.zeros((3, 5)))
