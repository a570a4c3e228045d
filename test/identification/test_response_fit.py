"""Dead times, lag and friction by output error: the twin's own numbers, and what bags cannot tell."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from delay_runs import calibrated_truth, drive_open_loop
from response_runs import ROBOT, excitation, response_of, true_response, with_own_loops

from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.response import Response, identify_response, stage
from youbot_dynamics.identification.response._fit import combined_response, fitted_again, left_out
from youbot_dynamics.identification.response._problem import base_of
from youbot_dynamics.identification.response._signals import DriveSignals, displacements, rolled_path
from youbot_dynamics.identification.stages import Taken

HOLD = 0.02


def check(seeds: range) -> None:
    """Print and hold how far the estimates are from the truth, in their own standard errors."""
    off: dict[str, list[float]] = {}
    inside = near = total = 0
    for seed in seeds:
        truth = calibrated_truth(seed)
        found, _ = response_of(excitation(), truth, seed)
        assert found.usable
        identified = {one.name for one in found.estimates if one.identified and not one.name.startswith("gain_")}
        assert identified <= {"dead_time_x", "dead_time_y", "dead_time_yaw", "lag"}
        for name, true in true_response(truth).items():
            if not (name == "lag" or name.startswith("dead_time")):
                continue
            one = found[name]
            off.setdefault(name, []).append((one.value - true) / one.standard_error)
            if one.identified:
                total += 1
                inside += one.interval[0] <= true <= one.interval[1]
                near += abs(off[name][-1]) <= 3.0
    everything = np.mean(np.abs(np.concatenate(list(off.values()))) <= 3.0)
    print(
        f"\n{len(seeds)} seeds: within 3 standard errors {near / total:.3f} of {total} identified values, "
        f"{everything:.3f} of all; identified intervals cover {inside / total:.3f}"
    )
    for name, values in off.items():
        print(f"  {name:15s} {np.mean(np.abs(values) <= 3.0):.3f}, bias {np.mean(values):+.2f} standard errors")
    assert near / total >= 0.97
    assert 0.90 <= inside / total


def test_the_twins_numbers_lie_within_three_standard_errors() -> None:
    check(range(2, 3))


@pytest.mark.slow
def test_the_twins_numbers_lie_within_three_standard_errors_on_many_robots() -> None:
    check(range(60))


@pytest.mark.parametrize(
    ("lag", "gain"), [(0.085, 3.7), pytest.param(0.033, 6.8, marks=pytest.mark.slow)], ids=["lag", "short_lag"]
)
def test_servos_so_stiff_that_load_hardly_shows_do_not_narrow_the_dead_times(lag: float, gain: float) -> None:
    """Wheels that follow whatever the load explained them with fewer unknowns: 120.0 +-1.9 and 149 +-32 for 115.4."""
    truth = dataclasses.replace(calibrated_truth(2), lag=lag, servo_gain=gain, servo_reset=0.06, stamp_jitter=0.002)
    found, _ = response_of(excitation(30.0), truth, 2)
    for name, dead_time in zip(("dead_time_x", "dead_time_y", "dead_time_yaw"), truth.dead_times(), strict=True):
        assert found[name].interval[0] <= dead_time <= found[name].interval[1], name


def still_and_moving(axis: int | None) -> Program:
    """Slow sines on one axis, or none."""
    time = HOLD * np.arange(1500)
    twists = np.zeros((len(time), 3))
    if axis is not None:
        twists[:, axis] = (0.25, 0.25, 0.6)[axis] * np.sin(time) * np.sin(0.31 * time)
    return Program("one axis", twists, HOLD)


def test_one_axis_tells_nothing_of_the_others() -> None:
    found, _ = response_of(still_and_moving(0), calibrated_truth(3), 3)
    assert np.isfinite(found["dead_time_x"].value)
    for name in ("dead_time_y", "dead_time_yaw", "roller_coulomb", "viscous_y", "turn_factor", "gain_y", "gain_yaw"):
        assert found[name].verdict.startswith("not identifiable"), name
    # The robot takes its response only with all three dead times: none of these values is used as part of it.
    result = finished(found, np.full(2, np.nan))
    assert found.usable and not any(finding.part_of for finding in result.findings)
    assert "is not used" in result.notes[0] and "that of y and yaw was not found" in result.notes[0]


def finished(found: Response, left_out: np.ndarray):
    part = SimpleNamespace(response=found, fits=(), samples=1, fastest=np.ones(3), left_out=left_out)
    return stage.finish([Taken(0, "drive", part)], ROBOT, NotImplemented)


def test_the_curves_of_a_drive_that_moves_as_the_model_has_it_are_equal_wherever_it_began() -> None:
    base, time = ROBOT.base.driven(), HOLD * np.arange(200)
    twists = np.outer(np.sin(2.0 * time), [0.2, 0.1, 0.4])
    stamps = time[50:]  # it moves when the first pose is read
    drive = DriveSignals(time, twists, stamps, base.path(time, twists, stamps) + [1.0, 2.0, 0.0])
    curves = stage._curves(SimpleNamespace(base=base), drive, "drive")
    assert len(curves) == 3
    for curve in curves:
        np.testing.assert_allclose(curve.measured, curve.modelled, atol=1e-12)


def test_at_rest_nothing_is_told() -> None:
    found, _ = response_of(still_and_moving(None), calibrated_truth(3), 3)
    assert not found.usable and not any(one.identified for one in found.estimates)
    assert "commands never moved the robot" in found["lag"].verdict


def test_a_base_that_somebody_else_moves_is_refused() -> None:
    run = drive_open_loop(still_and_moving(0), ROBOT, calibrated_truth(3), 3)
    pushed = rolled_path(run.positions) + np.outer(0.1 * np.sin(3.0 * run.stamps), [1.0, 1.0, 0.0])
    found = identify_response(
        [DriveSignals(run.command_time, run.twist, run.stamps, pushed)], ROBOT.base.dynamics(), np.full(3, 0.1)
    )
    assert not found.usable and "unexplained" in found["lag"].verdict


def test_readings_that_are_damaged_or_go_back_are_left_out() -> None:
    stamps = np.array([0.0, 0.02, 0.02, 0.01, 0.04, np.nan, 0.06])
    poses = np.zeros((7, 3))
    poses[4, 0] = np.inf
    signals = DriveSignals(np.array([0.0, 0.1]), np.zeros((2, 3)), stamps, poses)
    np.testing.assert_array_equal(signals.stamps, [0.0, 0.02, 0.06])


# On loops whose every number shows in 30 s: of stiff servos the priors say more than a drive.
SLOW_LOOPS = with_own_loops(calibrated_truth(1))


@pytest.fixture(scope="module")
def two() -> list[Response]:
    return [response_of(excitation(30.0), SLOW_LOOPS, seed)[0] for seed in (4, 5)]


def test_two_drives_tell_more_than_one_and_one_stands_alone(two: list[Response]) -> None:
    first, second = two
    both = combined_response(two)
    assert combined_response([first]) is first
    assert both["rate"].standard_error < min(first["rate"].standard_error, second["rate"].standard_error)
    low, high = sorted((first["rate"].value, second["rate"].value))
    assert low - 0.1 * high <= both["rate"].value <= 1.1 * high
    assert both.base is not None and both.base.rate == both["rate"].value and both.usable


def test_recordings_together_are_no_surer_than_their_noise_lets_them(two: list[Response]) -> None:
    """Weighted by inverse covariances two recordings came out up to three times as sure as each, not sqrt(2) times.

    What one recording of 30 s hardly tells by itself the other may tell, so it is the truth that judges.
    """
    both = combined_response(two)
    ratios = []
    for name, true in true_response(SLOW_LOOPS).items():
        assert abs(both[name].value - true) < 3.0 * both[name].standard_error, name
        ratios.append(both[name].standard_error / min(one[name].standard_error for one in two))
    # Each is uncertain by a tenth, since it comes from the scatter between some forty blocks.
    assert max(ratios) < 1.2 and np.mean(ratios) < 0.9
    # What each tells by itself already must come out about sqrt(2) times as sure, not three times.
    for name in ("gain_x", "gain_y", "gain_yaw", "turn_factor", "roller_coulomb"):
        assert both[name].standard_error > 0.4 * min(one[name].standard_error for one in two), name


def test_loops_fitted_to_the_first_half_of_a_drive_predict_the_second(two: list[Response]) -> None:
    drive = two[0].problem.drives[0]
    middle = 0.5 * (drive.stamps[0] + drive.stamps[-1])
    early, later = drive.sent < middle, drive.stamps >= middle
    half = DriveSignals(drive.sent[early], drive.twists[early], drive.stamps[~later], drive.poses[~later])
    again = fitted_again(two[0], half)
    assert again is not None and again.kind.feed == two[0].base.feed
    base = base_of(again.values, again.kind, ROBOT.base.dynamics())
    assert np.any(base.dead_times != two[0].base.dead_times), "it was not fitted again"
    span = two[0].problem.spans[0]
    modelled = displacements(base.path(drive.sent, drive.twists, drive.stamps)[later], span)
    off = np.sqrt(np.mean((displacements(drive.poses[later], span) - modelled) ** 2, axis=0))
    assert np.all(off < 1.5 * two[0].residual), (off, two[0].residual)
    still = DriveSignals(drive.sent[:2], drive.twists[:2], drive.stamps[:2], drive.poses[:2])
    assert fitted_again(two[0], still) is None
    of_response, of_delays = left_out(two[0], again, half, middle)
    assert of_response < 0.5 * of_delays, "the loops predict more of the second half than delays alone"


def test_a_response_that_predicts_less_than_delays_alone_is_not_used(two: list[Response]) -> None:
    good, bad = (finished(two[0], np.array(squares)) for squares in ([1.0, 4.0], [4.0, 1.0]))
    assert any(finding.part_of for finding in good.findings) and not good.notes
    assert not any(finding.usable for finding in bad.findings)
    (note,) = bad.notes
    assert "no better than delays alone: 2.00 times their error" in note and "effective delays are used instead" in note


def test_drives_on_different_axes_tell_of_both_together() -> None:
    truth = SLOW_LOOPS
    x, yaw = (response_of(still_and_moving(axis), truth, seed)[0] for axis, seed in ((0, 4), (2, 5)))
    both = combined_response([x, yaw])
    for name, true in true_response(truth).items():
        if name in ("dead_time_y", "viscous_y", "turn_factor", "roller_coulomb", "centre_x"):
            continue
        one = both[name]
        assert not one.identified or abs(one.value - true) < 3.0 * one.standard_error, name
    assert both["dead_time_x"].identified and both["dead_time_yaw"].identified and both.usable
    assert "hardly moved on this axis" in both["dead_time_y"].verdict


def test_a_value_at_the_end_of_the_search_is_not_identified() -> None:
    run = drive_open_loop(still_and_moving(0), ROBOT, calibrated_truth(3), 3)
    path = rolled_path(run.positions) * [1.55, 1.55, 1.0]
    found = identify_response(
        [DriveSignals(run.command_time, run.twist, run.stamps, path)], ROBOT.base.dynamics(), np.full(3, 0.1)
    )
    assert "bound of the search, 1.5" in found["gain_x"].verdict


def test_a_command_that_cannot_be_read_is_no_command_to_stop() -> None:
    twists = np.full((3, 3), 0.2)
    twists[1, 2] = np.nan
    signals = DriveSignals(np.array([0.0, 0.1, 0.2]), twists, np.array([0.0, 0.1]), np.zeros((2, 3)))
    np.testing.assert_array_equal(signals.sent, [0.0, 0.2])
    np.testing.assert_array_equal(signals.twists, np.full((2, 3), 0.2))
    with pytest.raises(InputError, match="one per command"):
        DriveSignals(np.array([0.0, 0.1]), twists, np.array([0.0, 0.1]), np.zeros((2, 3)))


def test_commands_missing_from_a_stream_are_not_taken_for_held() -> None:
    run = drive_open_loop(excitation(30.0), ROBOT, calibrated_truth(4), 4)
    whole = DriveSignals(run.command_time, run.twist, run.stamps, rolled_path(run.positions))
    lost = (whole.sent - whole.sent[0] > 8.0) & (whole.sent - whole.sent[0] < 9.0)
    holed = DriveSignals(whole.sent[~lost], whole.twists[~lost], whole.stamps, whole.poses)
    known = holed.commands_known(25)
    assert 1.0 < (1.0 - known).sum() * np.median(np.diff(whole.stamps)) < 2.5
    assert np.all(whole.commands_known(25) == 1.0)
    found, before = (identify_response([one], ROBOT.base.dynamics(), [0.15] * 3) for one in (holed, whole))
    assert found.usable
    for name in ("dead_time_x", "dead_time_y", "lag"):
        assert found[name].value == pytest.approx(before[name].value, abs=3.0 * before[name].standard_error)


def test_commands_sent_only_when_they_change_are_held() -> None:
    sent = np.cumsum([0.02, 0.4, 0.1, 3.0, 0.05, 0.7])
    stamps = np.linspace(0.0, sent[-1], 300)
    assert np.all(DriveSignals(sent, np.zeros((6, 3)), stamps, np.zeros((300, 3))).commands_known(10) == 1.0)


TICKS = 0.02 * np.arange(300)
FORWARD = np.column_stack([0.2 * TICKS, 0.0 * TICKS, 0.0 * TICKS])


@pytest.mark.parametrize(
    ("sent", "moves", "stamps", "poses"),
    [
        # 1 kHz for 0.3 s: shorter than the span that is compared.
        (TICKS[:15], slice(None), 0.05 * TICKS, 0.05 * FORWARD),
        # All but the first command and the last half second are lost.
        (np.r_[0.0, TICKS[275:]], slice(None), TICKS, FORWARD),
        # What is left of the commands asks for nothing, but the last one before the gap.
        (np.r_[TICKS[:150], TICKS[-50:]], slice(149, 150), TICKS, np.r_[0.0 * FORWARD[:150], FORWARD[:150]]),
        (TICKS[:1], slice(None), TICKS, FORWARD),
        (np.ones(20), slice(None), TICKS, FORWARD),
        (TICKS, slice(None), np.ones(300), FORWARD),
    ],
)
def test_what_a_damaged_bag_leaves_is_refused_with_a_reason(sent, moves, stamps, poses) -> None:
    twists = np.zeros((len(sent), 3))
    twists[moves, 0] = 0.2
    response = identify_response([DriveSignals(sent, twists, stamps, poses)], ROBOT.base.dynamics(), [0.1, 0.1, 0.1])
    assert not response.usable
    assert all(one.verdict.startswith("not identifiable: ") for one in response.estimates)


def test_displacements_know_no_fixed_frame() -> None:
    random = np.random.default_rng(0)
    poses = np.cumsum(0.01 * random.standard_normal((50, 3)), axis=0)
    turned = poses.copy()
    c, s = np.cos(0.7), np.sin(0.7)
    turned[:, :2] = poses[:, :2] @ np.array([[c, s], [-s, c]]) + [3.0, -2.0]
    turned[:, 2] += 0.7
    np.testing.assert_allclose(displacements(turned, 5), displacements(poses, 5), atol=1e-12)
