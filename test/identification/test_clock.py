"""Stamps against receive times: drift, jitter, jumps, lost messages and foreign rhythms, each told by itself."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.arrays import burst_length
from youbot_dynamics.identification.reading._clock import ClockCheck, check_clock, on_one_clock

PERIOD = 0.02


def topic(*, seed=0, duration=60.0, drift=0.0, jitter=1e-3, offset=0.0, period=PERIOD):
    """Stamps and receive times of a sender at a steady rhythm; ways are 1 ms and now and then much longer."""
    random = np.random.default_rng(seed)
    sent = np.arange(5.0, 5.0 + duration, period)
    way = 1e-3 + random.exponential(jitter, len(sent))
    return sent * (1.0 + drift) + offset, np.maximum.accumulate(sent + way)


def told(check: ClockCheck, words: str) -> bool:
    return any(words in warning for warning in check.warnings)


@pytest.mark.parametrize("seed", range(10))
def test_a_steady_topic_gives_no_warning(seed):
    check = check_clock(*topic(seed=seed))
    assert check.warnings == ()
    assert check.rate == pytest.approx(50.0, rel=1e-6)
    assert check.missing == 0 and check.jumps == ()
    assert check.jitter == pytest.approx(0.7e-3, rel=0.2)  # of 1 ms of exponential ways: 1.48 times their MAD of 0.48
    assert abs(check.drift) < 5e-6


@pytest.mark.parametrize("drift", [-300e-6, -150e-6, 150e-6, 1e-3])
def test_drift_is_found_with_its_sign(drift):
    check = check_clock(*topic(drift=drift))
    assert check.drift == pytest.approx(drift, abs=5e-6)
    assert told(check, "faster" if drift > 0.0 else "slower")
    assert not check.jumps


def test_the_interval_of_the_drift_holds_it():
    found = [check_clock(*topic(seed=seed, drift=50e-6)).drift_interval for seed in range(40)]
    assert 0.85 <= np.mean([low <= 50e-6 <= high for low, high in found])


def test_a_constant_offset_is_no_drift():
    check = check_clock(*topic(offset=-0.3))
    assert check.offset == pytest.approx(0.301, abs=1e-3)
    assert abs(check.drift) < 5e-6 and check.warnings == ()
    assert told(check_clock(*topic(offset=1e4)), "different clocks")


@pytest.mark.parametrize("size", [-3.0, -0.1, 0.05, 0.5, 100.0])
def test_a_jump_of_the_stamps_is_placed_and_measured(size):
    stamp, received = topic(drift=50e-6)
    stamp[1200:] += size
    check = check_clock(stamp, received)
    assert len(check.jumps) == 1
    jump = check.jumps[0]
    assert jump.clock == "stamp" and jump.time == received[1200]
    assert jump.size == pytest.approx(size, abs=5e-3)
    assert told(check, f"clock of the stamps jumps {'forward' if size > 0.0 else 'back'}")
    assert check.drift == pytest.approx(50e-6, abs=1e-4)
    assert check.missing == 0 and not told(check, "missing")


def test_a_jump_of_the_receiver_is_not_blamed_on_the_sender():
    stamp, received = topic()
    received[2000:] += 0.7
    check = check_clock(stamp, received)
    assert [(jump.clock, round(jump.size, 2)) for jump in check.jumps] == [("receive", 0.7)]
    assert told(check, "clock of the receiver jumps forward")


def test_jumps_there_and_back_are_two():
    stamp, received = topic()
    stamp[800:1900] += 0.4
    assert [round(jump.size, 2) for jump in check_clock(stamp, received).jumps] == [0.4, -0.4]


def test_a_stall_of_the_network_is_no_jump():
    stamp, received = topic()
    stalled = (received > 20.0) & (received < 21.0)
    received[stalled] = 21.0
    check = check_clock(stamp, received)
    assert check.jumps == () and check.missing == 0
    assert check.jitter < 1e-3 and not check.warnings


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("late", "lasting"), [(0.012, 5.0), (0.03, 8.0), (0.03, 20.0), (0.1, 4.0)])
def test_a_machine_that_is_loaded_for_seconds_is_no_clock_that_jumped(seed, late, lasting):
    """All messages come later for a while, with their stamps in rhythm; then the load is gone."""
    stamp, received = topic(seed=seed)
    random = np.random.default_rng([seed, 1])
    loaded = (received > 20.0) & (received < 20.0 + lasting)
    received = received + loaded * (late + random.exponential(0.3 * late, len(received)))
    check = check_clock(stamp, np.maximum.accumulate(received))
    assert check.jumps == () and check.warnings == ()


def test_ways_that_scatter_by_more_than_half_a_period_are_told():
    stamp, received = topic()
    random = np.random.default_rng(2)
    check = check_clock(stamp, received + random.uniform(0.0, 0.05, len(stamp)))
    assert told(check, "messages arrive with a jitter of")


def drained(received, begin, wait, chunk=1):
    """Receive times where nothing is delivered for `wait` [s] from `begin`, then `chunk` messages every 1 ms."""
    held = np.flatnonzero((received >= begin) & (received < begin + wait))
    behind = received.copy()
    behind[held] = begin + wait + 1e-3 * (np.arange(len(held)) // chunk)
    return np.maximum.accumulate(behind)


@pytest.mark.parametrize(
    ("begin", "wait"), [(0.0, 5.3), (0.0, 8.0), (0.0, 15.0), (20.0, 1.0), (20.0, 4.0), (61.0, 3.5)]
)
@pytest.mark.parametrize("chunk", [1, 7])
def test_a_backlog_that_is_drained_is_no_clock_that_jumped(begin, wait, chunk):
    """At the start, in the middle and near the end of a recording: of 0.3 to 10 s of messages."""
    stamp, received = topic(drift=50e-6)
    check = check_clock(stamp, drained(received, begin, wait, chunk))
    assert check.jumps == () and not told(check, "jumps") and check.missing == 0
    assert check.drift == pytest.approx(50e-6, abs=2e-5)


def test_a_backlog_drained_at_twice_the_rate_is_no_clock_that_jumped():
    stamp, received = topic()
    check = check_clock(stamp, np.maximum(received, 12.0 + 0.5 * (received - 5.0)))
    assert check.jumps == () and not told(check, "jumps")


@pytest.mark.parametrize("size", [-0.05, -0.5, -30.0])
@pytest.mark.parametrize("wait", [0.0, 4.0])
def test_a_receiver_that_jumps_back_is_told_also_beside_a_backlog(size, wait):
    stamp, received = topic()
    received = drained(received, 20.0, wait)
    received[2000:] += size
    check = check_clock(stamp, received)
    assert [(jump.clock, jump.size) for jump in check.jumps] == [("receive", pytest.approx(size, abs=5e-3))]
    assert told(check, "clock of the receiver jumps back")


def test_a_slow_start_of_some_milliseconds_is_no_clock_that_jumped():
    stamp, received = topic()
    received[:100] += 0.006
    received[100:220] += 0.015
    assert check_clock(stamp, received).jumps == ()


def test_missing_messages_are_counted_and_the_longest_gap_named():
    stamp, received = topic()
    keep = np.ones(len(stamp), bool)
    keep[[100, 500, 501]] = False
    keep[1000:1050] = False
    check = check_clock(stamp[keep], received[keep])
    assert check.missing == 53
    assert told(check, "53 messages are missing in 3 gaps, the longest of 1.02 s")


def test_a_rate_that_changes_half_way_is_neither_loss_nor_two_senders():
    slow, fast = topic(duration=30.0), topic(duration=30.0, period=0.01)
    stamp, received = (np.concatenate([a, b + 30.0]) for a, b in zip(slow, fast, strict=True))
    check = check_clock(stamp, received)
    assert [words for words in check.warnings if "rate changes between 50 and 100 Hz" in words] == list(check.warnings)


@pytest.mark.parametrize(("period", "shift"), [(0.02, 0.006), (0.02, 0.0085), (0.03, 0.0), (0.05, 0.003)])
def test_two_senders_on_one_topic_are_told(period, shift):
    first, second = topic(seed=1), topic(seed=2, period=period)
    stamp = np.concatenate([first[0], second[0] + shift])
    received = np.concatenate([first[1], second[1] + shift])
    order = np.argsort(received, kind="stable")
    check = check_clock(stamp[order], received[order])
    assert told(check, "two senders")
    assert not told(check, "rate changes") and check.jumps == ()


def test_bursts_are_told_by_their_length_and_neither_gaps_nor_losses_nor_jitter_are_bursts():
    even, random = np.arange(0.0, 60.0, 0.02), np.random.default_rng(1)
    for length in (3, 5, 12, 40):
        burst = np.arange(len(even)) // length
        stamps = 0.02 * length * burst + 2e-4 * (np.arange(len(even)) % length)
        assert burst_length(stamps) == length
        checked = check_clock(stamps, stamps + 1e-3)
        assert checked.missing == 0 and checked.rate == pytest.approx(50.0, rel=0.01)
        assert f"bursts of {length}, every {20 * length:.3g} ms" in " ".join(checked.warnings)
    kept = random.random(len(even)) > 0.3
    pauses = even + 100.0 * (np.arange(len(even)) // 1000)
    jittering = np.sort(even + 0.004 * random.standard_normal(len(even)))
    rates = np.cumsum(np.tile(np.repeat([0.01, 1.0], (20, 8)), 30))  # 20 messages at 100 Hz and 8 at 1 Hz in turn
    at_changes = np.cumsum(random.exponential(0.06, 3000))
    for stamps in (even, even[kept], pauses, jittering, even[:10], rates, at_changes):
        assert burst_length(stamps) == 1


def test_jittering_stamps_are_not_two_senders():
    random = np.random.default_rng(3)
    stamp, received = topic()
    check = check_clock(stamp + 2e-3 * random.standard_normal(len(stamp)), received + 0.02)
    assert check.warnings == ()


def test_a_topic_without_stamps_has_a_rate_and_no_clock():
    _, received = topic()
    check = check_clock(np.full(len(received), np.nan), received)
    assert told(check, "no message carries a stamp")
    assert np.isnan(check.drift) and check.rate == pytest.approx(50.0, rel=0.1)


def test_repeated_and_disordered_stamps_are_told_apart():
    stamp, received = topic()
    stamp[700] = stamp[699]
    assert told(check_clock(stamp, received), "1 message repeats the stamp")
    stamp[900] = stamp[898] - 0.001
    assert told(check_clock(stamp, received), "earlier than the one before")


def test_a_blink_of_a_topic_has_a_rate_and_no_verdict_on_its_clock():
    stamp, received = topic(duration=0.2)
    check = check_clock(stamp, received)
    assert check.warnings == () and check.rate == pytest.approx(50.0) and np.isnan(check.drift)


def both(commands=None, motion=None):
    """Command and motion stamped by one clock, or by others: what `on_one_clock` gets of them."""
    named = ("/cmd", "/odom")
    return on_one_clock(topic(seed=1) if commands is None else commands, motion or topic(seed=2), named)


def test_stamps_of_one_clock_are_used_although_the_recorder_has_another():
    drifting = [topic(seed=seed, drift=100e-6, duration=300.0) for seed in (1, 2)]
    for pair in ((topic(seed=1), topic(seed=2)), drifting):
        times = both(*pair)
        assert times.command is pair[0][0] and times.motion is pair[1][0] and "stamps of /cmd and /odom" in times.words


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize(
    "motion", [{"drift": 100e-6}, {"drift": -100e-6}, {"size": 0.05}, {"size": -0.05}, {"size": -0.025}]
)
def test_a_clock_that_drifts_or_jumps_is_put_on_that_of_the_recorder(stamped, motion):
    """Delays were 31 ms off by 100 ppm over ten minutes: the stamps were kept beside receive times of commands."""
    size = motion.pop("size", 0.0)
    sent, came = topic(seed=1, duration=300.0)
    stamp, arrived = topic(seed=2, duration=300.0, **motion)
    true, late = stamp / (1.0 + motion.get("drift", 0.0)), stamp > 150.0
    motion["size"] = size
    times = both((sent if stamped else None, came), (stamp + size * late, arrived))
    assert times.stamped and "put on the clock of the recorder" in times.words
    assert np.max(np.abs(times.motion - true - 1e-3)) < 1.5e-3, "1 ms of travel is the shortest"
    assert np.max(np.abs(times.command - sent)) < (2.5e-3 if stamped else 0.02)


def test_stamps_later_than_their_reception_are_not_used():
    stamp, arrived = topic(seed=2)
    times = both((None, topic(seed=1)[1]), (stamp + 0.2, arrived))
    assert times.motion is arrived and not times.stamped


def test_a_jump_behind_which_messages_were_left_out_is_one_of_the_stamps():
    """A recording leaves messages out whose stamps decrease: the gap looked like a jump of the receiver."""
    stamp, received = topic()
    stamp = stamp - 0.05 * (np.arange(len(stamp)) >= 1500)
    kept = np.maximum.accumulate(stamp) == stamp
    (jump,) = check_clock(stamp[kept], received[kept]).jumps
    assert jump.clock == "stamp" and jump.size == pytest.approx(-0.05, abs=5e-3)


@pytest.mark.parametrize("stamp", [np.zeros(3000), 25.0 * (np.arange(3000) >= 1500), -np.arange(3000.0)])
def test_stamps_that_never_advance_are_told_and_break_nothing(stamp):
    assert check_clock(stamp, 0.02 * np.arange(3000)).warnings


def test_a_jump_that_returns_is_a_jump_and_one_of_both_clocks_is_none():
    (sent, came), (taken, arrived) = topic(seed=1), topic(seed=2)
    away = both((sent, came), (taken + 0.5 * ((taken > 25.0) & (taken < 45.0)), arrived))
    assert "put on the clock of the recorder" in away.words
    assert np.max(np.abs(away.motion - taken)) < 3e-3
    alike = both((sent + 0.5 * (sent > 25.0), came), (taken + 0.5 * (taken > 25.0), arrived))
    assert alike.words == "stamps of /cmd and /odom"


def test_a_short_recording_says_that_its_receive_times_are_used():
    (sent, came), (taken, arrived) = topic(seed=1, duration=9.0), topic(seed=2, duration=9.0)
    times = both((sent, came), (taken + 0.5 * (taken > 9.0), arrived))
    assert times.motion is arrived and not times.stamped and times.words.startswith("receive times of /cmd and /odom")
