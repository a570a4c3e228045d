"""The delay estimator on synthetic signals: what it must find, and what it must refuse and why."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.delay import DelayEstimate, LaggedCommand, estimate_delay, stage, stopping
from youbot_dynamics.identification.delay._estimator import combine
from youbot_dynamics.identification.delay.stage import _curve
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.signals import HeldCommand, MotionSignals

PERIOD = 0.02


def estimate(command, delay, *, gain=1.0, jitter=1e-3, measured_is="position", duration=40.0, seed=0) -> DelayEstimate:
    """Estimate of one channel whose motion repeats the held command `delay` later."""
    sent = np.arange(0.0, duration, PERIOD)
    generator = np.random.default_rng(seed)
    seen = sent + PERIOD * generator.random()
    window = 0.5 * PERIOD if measured_is == "velocity" else 0.0
    motion = gain * HeldCommand(sent, command(sent), window).motion(seen - delay)
    stamps = seen + jitter * generator.standard_normal(len(seen))
    return estimate_delay(sent, command(sent), stamps, motion, measured_is=measured_is)[0]


def rich(time):
    return 0.2 * np.sin(0.63 * time) + 0.1 * np.sin(1.7 * time + 0.4)


def steady(period):
    return lambda time: 0.2 * np.sin(2.0 * np.pi * time / period)


@pytest.mark.parametrize("measured_is", ["position", "velocity"])
@pytest.mark.parametrize("delay", [0.0, 0.0013, 0.05, 0.1234, 0.3])
@pytest.mark.parametrize("gain", [1.0, 0.9, 60.0])
def test_planted_delay_is_found_far_below_a_sample(measured_is, delay, gain):
    found = estimate(rich, delay, gain=gain, jitter=0.0, measured_is=measured_is)
    assert found.value == pytest.approx(delay, abs=2e-5)
    assert found.gain == pytest.approx(gain, rel=1e-3)


@pytest.mark.parametrize(("begin", "changed"), [(5.5, True), (5.85, False)])
def test_a_change_of_the_command_counts_up_to_the_longest_delay_before_the_first_reading(begin, changed):
    sent = np.arange(0.0, 20.0, PERIOD)
    command = np.where(sent < 5.0, 0.2, 0.1)
    seen = sent[sent > begin] + 0.3 * PERIOD
    found = estimate_delay(sent, command, seen, 0.1 * seen, measured_is="position")[0]  # longest: 0.8 s
    assert ("the command never changed" not in found.verdict) == changed


@pytest.mark.parametrize("lead", [0.02, 0.1, 0.2])
def test_motion_that_leads_its_command_is_refused(lead):
    found = estimate(rich, -lead)
    assert not found.identified
    assert "leads the command" in found.verdict or "bound of the search" in found.verdict


def test_no_delay_at_all_is_zero_with_an_interval_from_zero_on():
    found = [estimate(rich, 0.0, seed=seed) for seed in range(10)]
    assert all(one.identified and one.value >= 0.0 and one.interval[0] == 0.0 for one in found if one.value < 1e-4)
    assert max(one.value for one in found) < 1e-3


@pytest.mark.parametrize("period", [0.4975, 0.5, 0.5025, 0.6025])
def test_motion_that_repeats_itself_is_refused(period):
    found = estimate(steady(period), 0.1525)
    assert not found.identified
    assert "is periodic" in found.verdict


@pytest.mark.parametrize("seed", range(3))
def test_an_axis_with_a_largest_acceleration_is_not_periodic(seed):
    """Its misfit is rough at the bottom; two minima without a rise between them were taken for a period."""
    sent, fine = np.arange(0.0, 60.0, 0.05), np.arange(0.0, 60.0, 0.002)
    goals = np.repeat(np.random.default_rng(seed).uniform(-0.5, 0.5, 60), 20)
    asked, speed = goals[np.maximum(np.searchsorted(sent, fine - 0.1, side="right") - 1, 0)], np.zeros(len(fine))
    for k in range(1, len(fine)):
        speed[k] = speed[k - 1] + 0.002 * np.clip((asked[k] - speed[k - 1]) / 0.1, -2.0, 2.0)
    (found,) = estimate_delay(sent, goals, fine[::10], speed[::10])
    assert found.identified and 0.2 < found.value < 0.3, "dead time and lag, and what the limit adds"


@pytest.mark.parametrize(("period", "delay"), [(1.0, 0.1), (0.9, 0.1), (1.2, 0.3)])
def test_half_a_period_later_is_neither_a_delay_nor_a_wrong_sign(period, delay):
    found = estimate(steady(period), delay)
    assert "against" not in found.verdict
    if found.identified:
        assert found.value == pytest.approx(delay, abs=1e-3)
    else:
        assert "is periodic" in found.verdict  # a whole period later lies inside the search


def test_reversed_sign_is_named():
    found = estimate(rich, 0.15, gain=-1.0)
    assert not found.identified
    assert "opposite to the command" in found.verdict


def test_noise_that_does_not_follow_the_command_is_not_identified():
    generator = np.random.default_rng(3)
    time = np.arange(0.0, 40.0, PERIOD)
    found = estimate_delay(time, rich(time), time, generator.standard_normal(len(time)))[0]
    assert not found.identified


def test_no_delay_beyond_the_longest_is_told():
    sent = np.arange(0.0, 40.0, PERIOD)
    late = HeldCommand(sent, rich(sent), 0.0).motion(sent - 0.31)
    found = estimate_delay(sent, rich(sent), sent, late, measured_is="position", longest=0.3)[0]
    assert found.value <= 0.3


def test_too_little_in_common_is_an_error_that_says_how_much():
    time = np.arange(0.0, 3.0, PERIOD)
    with pytest.raises(IdentificationError, match=r"expected 5.8 s or more in common; .*longer recording"):
        estimate_delay(time, rich(time), time, rich(time))
    later = time + 100.0
    with pytest.raises(IdentificationError, match="in common"):
        estimate_delay(time, rich(time), later, rich(time))


def test_shapes_and_kinds_are_checked():
    time = np.arange(0.0, 20.0, PERIOD)
    with pytest.raises(InputError, match="measured_is: got 'acceleration'; expected 'velocity' or 'position'"):
        estimate_delay(time, rich(time), time, rich(time), measured_is="acceleration")
    with pytest.raises(InputError, match="model: got 'pade'; expected 'delay' or 'fopdt'"):
        estimate_delay(time, rich(time), time, rich(time), model="pade")
    with pytest.raises(InputError, match=r"command: got shape \(999, 1\) at times of shape \(1000,\); .*same length"):
        estimate_delay(time, rich(time)[:-1], time, rich(time))
    with pytest.raises(InputError, match="measured: got shape"):
        estimate_delay(time, rich(time), time, rich(time)[None, None])
    with pytest.raises(InputError, match="measured_time: got 'now'; expected an array of numbers"):
        estimate_delay(time, rich(time), "now", rich(time))
    with pytest.raises(InputError, match="longest: got -1 s; expected a time above 0"):
        estimate_delay(time, rich(time), time, rich(time), longest=-1.0)
    with pytest.raises(InputError, match="channels: got 1 commands, 1 motions and 2 names; expected equal numbers"):
        estimate_delay(time, rich(time), time, rich(time), channels=["x", "y"])


@pytest.mark.parametrize("name", ["model", "measured_is"])
def test_a_choice_that_is_no_text_is_refused_by_name(name):
    rows = np.arange(4.0)
    with pytest.raises(InputError, match=f"{name}: got array"):
        estimate_delay(rows, rows, rows, rows, **{name: rows})


def test_a_channel_that_is_commanded_only_after_the_last_reading_is_refused_alone():
    sent = np.arange(0.0, 60.0, PERIOD)
    seen = sent[sent < 35.0]
    late = np.where(sent < 40.0, 0.0, rich(sent))
    motion = HeldCommand(sent, rich(sent), 0.0).motion(seen - 0.15)
    still = 1e-4 * np.random.default_rng(0).standard_normal(len(seen))
    commands, motions = np.column_stack([rich(sent), late]), np.column_stack([motion, still])
    x, y = estimate_delay(sent, commands, seen, motions, model="fopdt", measured_is="position")
    assert x.identified and x.value == pytest.approx(0.15, abs=1e-3)
    assert "never changed before the last reading" in y.verdict and y.dead_time.verdict == y.verdict


@pytest.mark.parametrize("measured_is", ["position", "velocity"])
def test_channels_may_be_commanded_in_rows_of_their_own(measured_is):
    sent = np.arange(0.0, 40.0, PERIOD)
    time = np.sort(np.concatenate([sent, sent + 0.007]))
    commands = np.full((len(time), 3), np.nan)
    commands[::2, 0], commands[1::2, 1] = rich(sent), rich(sent + 3.0)
    commands[:40, 2] = 0.1  # too few to tell anything
    window = 0.5 * PERIOD if measured_is == "velocity" else 0.0
    motions = np.full((len(time), 3), np.nan)
    motions[::2, 0] = motions[::2, 2] = HeldCommand(sent, rich(sent), window).motion(sent - 0.145)
    motions[::2, 1] = HeldCommand(sent + 0.007, rich(sent + 3.0), window).motion(sent - 0.2)
    a, b, c = estimate_delay(time, commands, time, motions, measured_is=measured_is)
    assert a.identified and a.value == pytest.approx(0.145, abs=1e-3)
    assert b.identified and b.value == pytest.approx(0.2, abs=1e-3)
    assert "0 readings while 5.8 s or more of its commands are known" in c.verdict


@pytest.mark.parametrize("which", ["command_time", "measured_time"])
def test_times_that_go_back_are_an_error_that_names_the_row(which):
    time = np.arange(0.0, 20.0, PERIOD)
    back = time.copy()
    back[700:] -= 1.0
    back[3] = np.nan  # left out; rows are counted as given
    sent, seen = (back, time) if which == "command_time" else (time, back)
    with pytest.raises(
        InputError, match=rf"{which}\[700\]: got a time 0.98 s before that of row 699; .*cut the recording"
    ):
        estimate_delay(sent, rich(time), seen, rich(time))


GOOD = estimate(rich, 0.15)


def shifted(value, error=1e-3, reason=None):
    return dataclasses.replace(
        GOOD, value=value, standard_error=error, interval=(value - 2.1 * error, value + 2.1 * error), reason=reason
    )


def test_recordings_that_agree_narrow_the_interval():
    both = combine([shifted(0.150), shifted(0.1505)])
    assert both.identified and both.value == pytest.approx(0.15025)
    assert both.standard_error == pytest.approx(1e-3 / np.sqrt(2.0))


def test_recordings_together_are_valid_up_to_the_fastest_command_of_any():
    both = [dataclasses.replace(shifted(0.15), fastest=fastest, samples=100) for fastest in (0.3, 0.8)]
    together = combine(both)
    assert together.fastest == 0.8 and together.samples == 200


def test_recordings_that_disagree_have_an_interval_that_holds_them_all():
    """Two equal drives that told 263.1 to 265.6 and 268.1 to 270.9 ms: nobody knows where a third would be."""
    two = combine([shifted(0.26435, error=6e-4), shifted(0.2695, error=7e-4)])
    assert two.interval[0] < 0.2631 and two.interval[1] > 0.2709
    five = combine([shifted(0.267 + 1e-3 * k, error=6e-4) for k in (-3, -1, 0, 2, 2)])
    assert five.interval[1] - five.interval[0] < 0.4 * (two.interval[1] - two.interval[0])
    assert five.standard_error > 2.0 * 6e-4 / np.sqrt(5.0)


def test_recordings_that_disagree_are_not_identifiable():
    both = combine([shifted(0.05), shifted(0.30)])
    assert both.reason.kind is Kind.TOO_WIDE


def test_a_refused_recording_leaves_the_others_alone_and_exact_ones_do_no_harm():
    refused = shifted(0.9, reason=Reason(Kind.UNEXPLAINED, "x"))
    assert combine([shifted(0.15), refused]).value == 0.15
    assert combine([shifted(0.15, error=0.0), shifted(0.15, error=0.0)]).value == pytest.approx(0.15)
    assert not combine([refused]).identified


def test_an_axis_that_others_move_is_refused_whatever_its_gain():
    time = np.arange(0.0, 40.0, PERIOD)
    moved = HeldCommand(time, rich(time), 0.0).motion(time - 0.15) + 0.3 * np.sin(0.31 * time)
    found = estimate_delay(time, rich(time), time, moved, measured_is="position")[0]
    assert not found.identified and "hardly driven" in found.verdict


@pytest.mark.parametrize("damage", [np.nan, np.inf, 1e300])
def test_damaged_rows_are_left_out(damage):
    time = np.arange(0.0, 40.0, PERIOD)
    command, motion = rich(time), HeldCommand(time, rich(time), 0.0).motion(time - 0.15)
    command[700], motion[900] = damage, damage
    found = estimate_delay(time, command, time, motion, measured_is="position")[0]
    assert found.identified and found.value == pytest.approx(0.15, abs=2e-3)


@pytest.mark.parametrize("duration", [60.0, 4000.0])
def test_the_curve_of_a_channel_keeps_the_window_of_the_fit_and_survives_a_reading_that_is_no_number(duration):
    time = np.arange(0.0, duration, PERIOD)
    asked = np.sin(time) + 0.5 * np.sin(2.3 * time)
    motion = HeldCommand(time, asked, 0.5 * PERIOD).motion(time - 0.2)
    motion[500] = np.nan
    (found,) = estimate_delay(time[:3000], asked[:3000], time[:3000], motion[:3000], channels=["a"])
    table = asked[:, None], time, motion[:, None]
    curve = _curve(MotionSignals(("a",), ("m",), time, *table, "velocity", None, "stamps", "log"), 0, found, "log")
    later = curve.time > 1.0
    assert np.all(np.isfinite(curve.measured)) and found.value == pytest.approx(0.2, abs=1e-3)
    np.testing.assert_allclose(curve.modelled[later], curve.measured[later], atol=0.01)


@pytest.mark.parametrize("more", [5.0, 5.9, 6.1])
def test_a_short_piece_behind_a_gap_does_not_cost_the_long_one(more, monkeypatch):
    monkeypatch.setattr(stage, "_SHORTEST_PIECE", min(more, stage._SHORTEST_PIECE))  # also one that is admitted
    sent = np.concatenate([np.arange(0.0, 40.0, PERIOD), np.arange(42.0, 42.0 + more, PERIOD)])
    motion = HeldCommand(sent, rich(sent), 0.0).motion(sent - 0.15)
    table = sent, rich(sent)[:, None], sent, motion[:, None]
    signals = MotionSignals(("x",), ("m",), *table, "position", None, "stamps", "log")
    assert stage.effective_delays(signals)["x"] == pytest.approx(0.15, abs=1e-3)


@pytest.mark.parametrize("measured_is", ["position", "velocity"])
@pytest.mark.parametrize(("period", "stop"), [(0.263, 0.15), (0.5, 0.2), (0.26, 0.3), (1.0, np.inf)])
def test_motion_that_stops_before_the_next_command_is_refused(measured_is, period, stop):
    """A dead man's switch shorter than the period of the commands: half the delay was identified, with gain .58."""
    random = np.random.default_rng(3)
    sent = np.arange(0.0, 60.0, period)
    speeds = random.uniform(-0.3, 0.3, len(sent)) * (random.random(len(sent)) < 0.8)
    seen = np.arange(0.01, 60.0, PERIOD)
    if stop < period:
        ends = np.sort(np.concatenate([sent, sent + stop]))
        held = HeldCommand(ends, np.repeat(speeds, 2) * np.tile([1.0, 0.0], len(sent)), 0.0)
    else:
        held = HeldCommand(sent, speeds, 0.0)
    motion = held.motion(seen - 0.11) if measured_is == "position" else held.rate(seen - 0.11)
    motion = motion + 1e-3 * random.standard_normal(len(seen))
    found = estimate_delay(sent, speeds, seen, motion, measured_is=measured_is)[0]
    if stop < period:
        assert found.reason.kind is Kind.UNEXPLAINED and f"stops about {stop:.2g} s after each command" in found.verdict
    else:
        assert found.identified and found.value == pytest.approx(0.11, abs=0.011)


@pytest.mark.parametrize(("stop", "lag"), [(0.12, 0.06), (0.15, 0.1), (0.15, 0.0)])
def test_one_channel_that_stops_before_the_next_command_refuses_all_of_them(stop, lag):
    """A joystick at 5 Hz: a lag fills the pauses. Gains of .6 to .75 were identified, with too short delays."""
    random = np.random.default_rng(5)
    sent = np.arange(0.0, 60.0, 0.2)
    knots = np.arange(0.0, 61.0, 1.5)
    speeds = np.column_stack([np.interp(sent, knots, random.uniform(-0.3, 0.3, len(knots))) for _ in range(2)])
    speeds = np.column_stack([speeds, np.zeros(len(sent))])
    ends, seen = np.sort(np.append(sent, sent + stop)), np.arange(0.01, 60.0, PERIOD)
    motion = []
    for column in speeds.T:
        held = HeldCommand(ends, np.ravel(np.column_stack([column, 0.0 * column])), 0.5 * PERIOD)
        motion.append((LaggedCommand(held, lag) if lag else held).motion(seen - 0.08))
    motion = np.column_stack(motion) + 1e-3 * random.standard_normal((len(seen), 3))
    x, y, yaw = estimate_delay(sent, speeds, seen, motion, measured_is="velocity")
    assert x.verdict == y.verdict and "after each command" in x.verdict
    assert yaw.reason.kind is Kind.NOT_EXCITED, "what was never commanded is told so"


def test_stops_are_found_in_a_drive_of_any_length():
    """Every 25th reading of 1000 s at 50 Hz is in step with commands at 2 Hz, and never saw a stop."""
    sent = np.arange(0.0, 1000.0, 0.5)
    speeds = np.random.default_rng(6).uniform(-0.3, 0.3, len(sent))
    ends, seen = np.sort(np.append(sent, sent + 0.3)), np.arange(0.01, 1000.0, PERIOD)
    held = HeldCommand(ends, np.ravel(np.column_stack([speeds, 0.0 * speeds])), 0.5 * PERIOD)
    reason = stopping(sent, speeds, seen, held.motion(seen - 0.1), 0.8, "velocity")
    assert reason is not None and "stops about 0.3 s after each command" in reason.text


def slow_errors(
    seed: int, *, mixed: bool, scatter: float = 0.006, limit: float = 9.0, gain: float = 0.0, lag: float = 0.0
) -> tuple[DelayEstimate, float]:
    """Two long legs, if `mixed` quick motion behind them, of an axis whose speed scatters; its dead time + lag [s].

    Its speed is at most `limit`, and by the share `gain` larger above .45.
    """
    random, sent, step = np.random.default_rng(seed), np.arange(0.0, 120.0, PERIOD), 2e-3
    command = np.zeros(len(sent))
    for begin, length, speed, rise in (
        (4.0, random.uniform(4.0, 7.0), random.uniform(0.3, 0.6), 0.8),
        (15.0, random.uniform(15.0, 25.0), random.uniform(0.5, 0.9) * random.choice([-1.0, 1.0]), 1.5),
    ):
        passed = sent - begin
        command += speed * np.clip(np.minimum(passed, length - passed) * rise / abs(speed), 0.0, 1.0)
    if mixed:
        waves = np.sin(np.outer(random.uniform(0.5, 3.0, 4), sent) + random.uniform(0.0, 6.0, 4)[:, None])
        command += 0.25 * waves.sum(axis=0) * ((sent > 55.0) & (sent < 112.0))
    delay, fine = random.uniform(0.08, 0.25), np.arange(0.0, 120.0, step)
    speed = np.clip(HeldCommand(sent, command, 0.0).rate(fine - delay), -limit, limit)
    speed = lfilter([step / lag], [1.0, step / lag - 1.0], speed) if lag > 0.0 else speed
    share = lfilter([1.0], [1.0, step / 0.3 - 1.0], np.sqrt(2.0 * step / 0.3) * random.standard_normal(len(fine)))
    position = np.cumsum(speed * (1.0 + scatter * share + gain * (np.abs(speed) > 0.45))) * step
    seen = np.arange(0.01, 119.9, 0.025)
    read = 5e-4 * np.round(np.interp(seen, fine, position) / 5e-4)
    return estimate_delay(sent, command, seen, read, measured_is="position", model="fopdt")[0], delay + lag


@pytest.mark.parametrize("mixed", [False, True], ids=["legs", "legs and quick motion"])
def test_slow_errors_of_the_speed_are_no_delay(mixed):
    """A speed that scatters by .6 or 2 %, that is 3 % larger on fast legs, that is limited: 30 % of intervals held."""
    held, parts = [], set[Kind]()
    kinds = ({"scatter": 0.006}, {"scatter": 0.02}, {"gain": 0.03}, {"limit": 0.5}, {"gain": 0.03, "lag": 0.15})
    for kind in kinds:
        for seed in range(6):
            found, delay = slow_errors(seed, mixed=mixed, **kind)
            if found.identified:
                held.append(found.interval[0] <= delay <= found.interval[1])
                parts |= {found.dead_time.reason.kind} if found.dead_time.reason else set()
    print(f"{np.mean(held):.2f} of {len(held)} hold")
    assert len(held) >= 25 and np.mean(held) >= 0.8
    assert mixed or Kind.UNEXPLAINED in parts  # where both fits contradict each other
