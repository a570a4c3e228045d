"""Response of a body without wheel states: on the twin, on plants of other kinds, in bags, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from body_runs import (
    KINDS,
    PERIOD,
    Drive,
    Plant,
    any_plant,
    body_bag,
    body_log,
    drawn_plant,
    gain_of,
    holds,
    ramps,
    steps,
    twin_drive,
)
from command_line import exit_code
from repository import DATA
from stage_bags import BASE, ROBOT, WHEELS, nanoseconds, write_rows

from youbot_dynamics.errors import IdentificationError, InputError, RecordingError
from youbot_dynamics.identification.body import BodyAxis, identify_axis
from youbot_dynamics.identification.body._fit import _doubtful, _widened, combined, commands_known
from youbot_dynamics.identification.body._model import LONGEST, Readings
from youbot_dynamics.identification.delay._fopdt import LaggedCommand
from youbot_dynamics.identification.excitation import base_program
from youbot_dynamics.identification.least_squares import Kind, Unknown, judge, student
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.signals import HeldCommand
from youbot_dynamics.recording.message_types import (
    IMU,
    ODOMETRY,
    POSE_STAMPED,
    TWIST,
    TWIST_STAMPED,
    jazzy_types,
    joint_state_cdr,
    odometry_cdr,
    pose_stamped_cdr,
    twist_cdr,
    twist_stamped_cdr,
)

AXES = ("x", "y", "yaw")


def judge_twins(seeds: range, excited: bool, period: float = PERIOD) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors of delays [s] and gains [1], (runs, 3), and whether both lie in their intervals (runs, 3, 2)."""
    program = np.array(base_program(ROBOT, 60.0, 1.0, period).twists)
    late, scaled, inside = [], [], []
    for seed in seeds:
        drive = twin_drive(seed, program if excited else ramps(seed, period=period), period)
        found = [axis_of(drive, k) for k in range(3)]
        assert all(one["effective"].identified and one["gain"].identified for one in found)
        late.append([one["effective"].value - true for one, true in zip(found, drive.delays, strict=True)])
        scaled.append([one["gain"].value - true for one, true in zip(found, drive.gains, strict=True)])
        truths = zip(found, drive.delays, drive.gains, strict=True)
        inside.append([[holds(one["effective"], delay), holds(one["gain"], gain)] for one, delay, gain in truths])
    late, scaled, inside = np.array(late), np.array(scaled), np.array(inside)
    print(f"\nworst delay {1e3 * np.abs(late).max():.1f} ms, gain {100.0 * np.abs(scaled).max():.2f} %")
    print(f"inside their intervals: {inside.mean(axis=(0, 1))}")
    return late, scaled, inside


def axis_of(drive: Drive, k: int) -> BodyAxis:
    return identify_axis(AXES[k], "m/s", drive.sent, drive.twists[:, k], drive.stamps, drive.speeds[:, k])


@pytest.mark.parametrize("excited", [False, True])
def test_delay_and_gain_of_twins_are_found_from_coarse_odometry(excited):
    late, scaled, inside = judge_twins(range(1, 2), excited)
    assert np.abs(late).max() <= 0.010
    assert np.abs(scaled).max() <= 0.010
    assert np.all(inside[:, :, 0])


@pytest.mark.slow
@pytest.mark.parametrize("excited", [False, True])
def test_delay_and_gain_of_twenty_twins_are_found_from_coarse_odometry(excited):
    late, scaled, inside = judge_twins(range(20), excited)
    assert np.abs(late).max() <= 0.011
    assert np.abs(scaled).max() <= 0.010
    assert np.all(inside.mean(axis=(0, 1)) >= 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("excited", [False, True])
def test_commands_of_another_rhythm_than_the_readings_leave_smaller_errors(excited):
    """Commands 50 times a second, readings 20 times: no reading falls on the same phase of every period."""
    late, scaled, inside = judge_twins(range(20), excited, 0.02)
    assert np.abs(late).max() <= 0.010 and np.sqrt(np.mean(late**2)) <= 0.003
    assert np.abs(scaled).max() <= 0.010
    assert np.all(inside.mean(axis=(0, 1)) >= 0.9)


def judge_plants(kind: str, seeds: range) -> tuple[float, float, float]:
    """Worst error of delay [s] and gain [1] and share of delays inside their intervals."""
    late, scaled, inside = [], [], []
    for seed in seeds:
        plant, command = drawn_plant(kind, seed), ramps(seed)[:, 0]
        found = identify_axis(
            "x",
            "m/s",
            command=command,
            **dict(zip(("sent", "stamps", "motion"), plant.drive(command, seed), strict=True)),
        )
        assert found["effective"].identified and found["gain"].identified
        gain = gain_of(plant, command)
        late.append(found["effective"].value - plant.delay)
        scaled.append(found["gain"].value - gain)
        inside.append(holds(found["effective"], plant.delay))
    worst = float(np.abs(late).max()), float(np.abs(scaled).max())
    print(f"\n{kind}: worst delay {1e3 * worst[0]:.1f} ms, gain {100.0 * worst[1]:.2f} %, inside {np.mean(inside):.2f}")
    return *worst, float(np.mean(inside))


@pytest.mark.parametrize("kind", KINDS)
def test_delay_and_gain_of_plants_of_other_kinds_are_found(kind):
    late, scaled, _ = judge_plants(kind, range(1))
    assert late <= 0.012 and scaled <= 0.012


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_the_delays_of_plants_of_other_kinds(kind):
    late, scaled, inside = judge_plants(kind, range(20))
    assert late <= 0.012 and scaled <= 0.01 and inside >= 0.9


@pytest.mark.slow
def test_intervals_of_each_value_hold_for_plants_and_readings_of_any_kind():
    held: dict[str, list[bool]] = {"effective": [], "gain": [], "dead_band": []}
    for seed in range(72):
        plant, command = any_plant(seed), ramps(seed)[:, 0]
        sent, stamps, speeds = plant.drive(command, seed)
        found = identify_axis("x", "m/s", sent, command, stamps, speeds)
        truth = {"effective": plant.delay, "gain": gain_of(plant, command), "dead_band": plant.silent}
        for kind, true in truth.items():
            if found[kind].identified:
                held[kind].append(holds(found[kind], true))
    print({kind: (len(each), float(np.mean(each))) for kind, each in held.items()})
    assert all(len(each) > 30 and np.mean(each) >= 0.9 for each in held.values())


def test_dead_time_and_lag_of_fine_readings_are_told_apart():
    axes = []
    for seed in (1, 2):
        command = ramps(seed)[:, 0]
        sent, stamps = PERIOD * np.arange(len(command)), np.sort(np.random.default_rng(seed).uniform(1.0, 59.0, 4000))
        speed = LaggedCommand(HeldCommand(sent, command, 0.0), 0.15).at(stamps - 0.12).rate
        axes.append(identify_axis("x", "m/s", sent, command, stamps, speed))
    both = combined(axes)
    for kind, truth in (("effective", 0.27), ("dead_time", 0.12), ("lag", 0.15), ("gain", 1.0)):
        for found in (*axes, both):
            assert found[kind].identified and holds(found[kind], truth)
            assert found[kind].value == pytest.approx(truth, abs=0.005)
        assert both[kind].standard_error == pytest.approx(0.5 * np.ptp(both[kind].interval) / student(30.0))


def test_readings_at_a_thousand_hertz_are_all_used_and_give_a_point_in_eight_milliseconds():
    time, random = np.arange(0.0, 60.0, 1e-3), np.random.default_rng(5)
    sent, command = np.arange(0.0, 60.0, 0.02), ramps(5, 60.0, 0.02)[:, 0]
    motion = LaggedCommand(HeldCommand(sent, command, 0.0), 0.08).at(time - 0.12).rate
    # The noise of two consecutive readings has opposite signs: it averages out only if every reading is used.
    noise = random.normal(0.0, 0.2, 30000).repeat(2) * np.tile([1.0, -1.0], 30000)
    axis = identify_axis("x", "m/s", sent, command, time, motion + noise)
    assert axis["effective"].identified and abs(axis["effective"].value - 0.20) < 0.001
    assert axis["effective"].standard_error < 0.001 and axis.samples > 59000
    assert len(axis.time) <= 60.0 / 0.008 + 1


def test_readings_count_where_the_commands_of_the_longest_delay_before_them_are_known():
    sent = np.concatenate([np.arange(0.0, 5.0, PERIOD), np.arange(12.0, 20.0, PERIOD)])
    stamps = np.arange(-1.0, 22.0, 0.1) + 0.01
    expected = ((stamps > LONGEST) & (stamps < 5.0)) | ((stamps > 12.0 + LONGEST) & (stamps < sent[-1]))
    np.testing.assert_array_equal(commands_known(sent, stamps), expected)


@pytest.fixture(scope="module")
def drive() -> Drive:
    return twin_drive(1, ramps(1))


def axis_with(drive: Drive, command: np.ndarray | None = None, speed: np.ndarray | None = None) -> BodyAxis:
    """The x axis with another command or another speed."""
    command = drive.twists[:, 0] if command is None else command
    speed = drive.speeds[:, 0] if speed is None else speed
    return identify_axis("x", "m/s", drive.sent, command, drive.stamps, speed)


def of_stamps(drive: Drive, seed: int) -> np.ndarray:
    """Motion that has nothing to do with the command."""
    return np.cumsum(np.random.default_rng(seed).normal(0.0, 0.02, len(drive.stamps)))


REFUSED = {
    "never commanded": (lambda d: axis_with(d, command=0.0 * d.twists[:, 0]), "this axis was never commanded"),
    "constant": (lambda d: axis_with(d, command=np.full(len(d.sent), 0.2)), "the command never changed"),
    "not measured": (lambda d: axis_with(d, speed=np.full(len(d.stamps), np.nan)), "this axis was not measured"),
    "at rest": (lambda d: axis_with(d, speed=0.0 * d.stamps), "the axis never moved under commands of up to"),
    "opposite": (lambda d: axis_with(d, speed=-d.speeds[:, 0]), "the motion is opposite to the command"),
    "pushed": (lambda d: axis_with(d, speed=of_stamps(d, 1)), "of the motion; 90% is needed"),
    "early": (lambda d: identify_axis("x", "m/s", d.sent, d.twists[:, 0], d.stamps - 0.35, d.speeds[:, 0]), "leads"),
    "periodic": (
        lambda d: axis_with(d, 0.2 * np.sin(10.0 * d.sent), 0.2 * np.sin(10.0 * (d.stamps - 0.2))),
        "the motion is periodic",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_data_do_not_show_is_refused_with_its_reason(drive, case):
    make, words = REFUSED[case]
    for estimate in make(drive).estimates:
        assert not estimate.identified and words in estimate.verdict, estimate


def test_too_short_a_recording_and_shapes_that_do_not_fit_are_errors(drive):
    with pytest.raises(IdentificationError, match=r" s of .* s in which .* known.*expected 20 s or more, with 100"):
        identify_axis("x", "m/s", drive.sent[:150], drive.twists[:150, 0], drive.stamps[:150], drive.speeds[:150, 0])
    few = slice(None, None, 6)  # 3 of them a second
    with pytest.raises(IdentificationError, match="0 of .* readings amid 1.2 s without a gap of 0.25 s"):
        identify_axis("x", "m/s", drive.sent, drive.twists[:, 0], drive.stamps[few], drive.speeds[few, 0])
    with pytest.raises(InputError, match="motion: got shape"):
        identify_axis("x", "m/s", drive.sent, drive.twists[:, 0], drive.stamps, drive.speeds)


@pytest.mark.parametrize("band", [0.0, 0.04])
def test_the_dead_band_lies_in_its_interval(band):
    command = ramps(3)[:, 0]
    sent, stamps, speeds = Plant(band=band).drive(command, 3)
    found = identify_axis("x", "m/s", sent, command, stamps, speeds)["dead_band"]
    assert found.identified and holds(found, band)
    assert found.value == (pytest.approx(band, abs=0.01) if band else 0.0)


def test_what_the_model_lacks_does_not_pass_for_a_dead_band():
    """Two lags, and a tenth of the motion of another axis: both repeat with the command, no scatter shows them."""
    seconds = PERIOD * np.arange(800)
    random, other = np.random.default_rng([39, 8]), np.random.default_rng([539, 8])
    command, across = (waves(one, seconds) for one in (random, other))
    plant = Plant(gain=1.1, dead_time=0.3, lag=0.268, second_lag=0.112, band=0.03, rate=10.0, quantum=0.001)
    sent, stamps, speeds = plant.drive(command, 39)
    speeds = speeds + 0.1 * plant.drive(across, 39)[2]
    found = identify_axis("x", "m/s", sent, command, stamps, speeds)["dead_band"]
    assert holds(found, plant.band)


def waves(random: np.random.Generator, time: np.ndarray) -> np.ndarray:
    """Speeds up to 0.5 m/s of six sines."""
    sines = [(random.uniform(0.3, 1.0), random.uniform(0.05, 0.8), random.uniform(0.0, 6.3)) for _ in range(6)]
    speeds = np.sum([size * np.sin(2.0 * np.pi * rate * time + phase) for size, rate, phase in sines], axis=0)
    return 0.5 * speeds / np.abs(speeds).max()


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_speeds_rounded_in_the_same_way_every_time_are_no_limit(seed):
    """0.97 times 0.125, 0.25 and 0.5 m/s read 0.1, 0.25 and 0.5 m/s in steps of 0.05 m/s."""
    random, command = np.random.default_rng([seed, 10]), []
    while len(command) * PERIOD < 120.0:
        speed = float(random.choice([-0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5]))
        command += [speed] * int(random.uniform(0.6, 3.0) / PERIOD)
    found = limits_of(Plant(gain=0.97, dead_time=0.05, lag=0.15, rate=10.0, quantum=0.05), np.array(command))
    assert not found["speed"].identified and found["speed"].interval[1] == np.inf


def few_speeds(seed: int) -> np.ndarray:
    """Speeds (n,) of a keyboard: four sizes, both ways, with rests."""
    random, speeds = np.random.default_rng([seed, 13]), []
    while len(speeds) * PERIOD < 70.0:
        speeds += [float(random.choice([-1, 1]) * random.choice([0.12, 0.18, 0.24, 0.3]))] * random.integers(14, 60)
        speeds += [0.0] * random.integers(0, 30)
    return np.array(speeds)


@pytest.mark.parametrize("noise", [0.0, 0.006])
def test_a_gain_holds_the_rounding_of_steady_speeds_unless_noise_averages_it(noise):
    """Of 0.9459, 0.9384 +-0.0041 was identified."""
    sizes = []
    for seed, gain in enumerate(np.linspace(0.86, 1.06, 5).tolist()):
        sent, stamps, speeds = Plant(gain=gain, noise=noise, rate=20.0).drive(command := few_speeds(seed), seed)
        found = identify_axis("x", "m/s", sent, command, stamps, speeds)["gain"]
        assert found.identified and holds(found, gain), (gain, found)
        sizes.append(0.5 * float(np.ptp(found.interval)))
    assert np.median(sizes) < (0.005 if noise else 0.02)


def limits_of(plant: Plant, command: np.ndarray, asked: np.ndarray | None = None) -> BodyAxis:
    sent, stamps, speeds = plant.drive(command, 3)
    return identify_axis("x", "m/s", sent, command if asked is None else asked, stamps, speeds)


ONE_SIZE = np.tile(np.concatenate([np.full(50, 0.4), np.zeros(12), np.full(50, -0.4), np.zeros(30)]), 9)  # for 64 s


@pytest.mark.parametrize(
    ("steepest", "command"),
    [(0.8, steps(2, 0.4)), (2.0, steps(3, 0.4)), (0.5, ramps(2)[:, 0]), (0.5, ONE_SIZE)],
)
def test_the_largest_acceleration_is_found_where_the_drive_asks_for_more(steepest, command):
    found = limits_of(Plant(acceleration=steepest), command)
    assert found["acceleration"].identified and holds(found["acceleration"], steepest)
    assert found["acceleration"].value == pytest.approx(steepest, rel=0.15)
    assert not found["speed"].identified and found["gain"].value == pytest.approx(1.0, abs=0.01)
    assert "the commands exceeded" in found["effective"].verdict


@pytest.mark.parametrize("steepest", [0.6, 0.7, 0.9])
def test_a_limit_that_a_lag_imitates_is_not_said_to_be_larger(steepest):
    """It was said to be at least 1.48 m/s2, by jumps of one size."""
    found = limits_of(Plant(acceleration=steepest), ONE_SIZE)["acceleration"]
    assert found.interval[0] <= steepest <= found.interval[1]


@pytest.mark.parametrize("fastest", [0.2, 0.3])
def test_the_largest_speed_is_found_where_the_drive_asks_for_more(fastest):
    asked = steps(7, 0.4)
    found = limits_of(Plant(), np.clip(asked, -fastest, fastest), asked)
    assert found["speed"].identified and holds(found["speed"], fastest)
    assert found["effective"].identified and holds(found["effective"], Plant().delay)


def two_speeds(seed: int) -> np.ndarray:
    """Steps between rest and two speeds, both ways."""
    random, command = np.random.default_rng([seed, 6]), []
    while len(command) * PERIOD < 60.0:
        command += [float(random.choice([-0.8, -0.4, 0.0, 0.4, 0.8]))] * int(random.uniform(0.6, 2.0) / PERIOD)
    return np.array(command)


@pytest.mark.parametrize(("steepest", "fastest", "seed"), [(1.5, 0.6, 0), (2.5, 0.65, 1)])
def test_limits_of_speed_and_acceleration_are_found_together(steepest, fastest, seed):
    """A delay twice the true one was identified, and an acceleration twice the true one."""
    random, command = np.random.default_rng([seed, 8]), []
    while len(command) * PERIOD < 70.0:
        command += [float(random.choice([-1.0, -0.5, 0.0, 0.5, 1.0]))] * int(
            random.choice([0.4, 0.8, 1.2, 1.6]) / PERIOD
        )
    found = limits_of(Plant(acceleration=steepest, fastest=fastest), np.array(command))
    assert found["speed"].identified and holds(found["speed"], fastest)
    assert found["acceleration"].identified and holds(found["acceleration"], steepest)
    assert not found["effective"].identified and holds(found["gain"], 1.0)


def slow_ramps(seed: int) -> np.ndarray:
    """Speeds (n,) that change by 0.6 m/s2 to goals held for seconds, as of a navigation."""
    random, speeds, speed, goal, left = np.random.default_rng([seed, 12]), [], 0.0, 0.0, 0
    while len(speeds) * PERIOD < 70.0:
        if left <= 0:
            goal, left = 0.6 * random.choice([0.0, 0.5, 1.0, 0.8, -0.3]), int(random.uniform(1.2, 5.0) / PERIOD)
        speed += np.clip(goal - speed, -0.6 * PERIOD, 0.6 * PERIOD)
        left -= 1
        speeds.append(speed)
    return np.array(speeds)


@pytest.mark.parametrize("seed", range(3))
def test_an_axis_that_brakes_faster_than_it_speeds_up_has_no_dead_band(seed):
    """Commands up to 0.16 m/s were said to have no effect."""
    found = limits_of(Plant(acceleration=0.4, braking=2.5), slow_ramps(seed))
    assert holds(found["gain"], 1.0) and not found["effective"].identified and not found["acceleration"].identified
    assert "brakes" in found["effective"].verdict
    assert not found["dead_band"].identified or holds(found["dead_band"], 0.0)


@pytest.mark.parametrize("noise", [0.3, *(pytest.param(noise, marks=pytest.mark.slow) for noise in (0.2, 0.5))])
def test_a_limit_that_noise_hides_does_not_pass_for_a_delay(noise):
    plant, refused = Plant(acceleration=2.5, noise=noise), 0
    for seed in range(4):
        sent, stamps, speeds = plant.drive(command := two_speeds(seed), seed)
        delay = identify_axis("x", "m/s", sent, command, stamps, speeds)["effective"]
        assert not delay.identified or holds(delay, plant.delay), (seed, delay)
        refused += not delay.identified
    assert refused >= 2


@pytest.mark.parametrize("fastest", [0.72, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.64, 0.76))])
def test_a_speed_limit_between_two_speeds_widens_delay_and_gain(fastest):
    """Gain 1 and a limit of 0.76 m/s give the same motion as a gain of 1.19 and a limit of 0.64 m/s."""
    for seed in range(2):
        asked = two_speeds(seed)
        sent, stamps, speeds = Plant(noise=0.01).drive(np.clip(asked, -fastest, fastest), seed)
        found = identify_axis("x", "m/s", sent, asked, stamps, speeds)
        assert holds(found["speed"], fastest)
        assert holds(found["gain"], 1.0) and holds(found["effective"], Plant().delay)


def test_a_limit_that_changes_a_delay_negligibly_leaves_it_identified():
    unknown = Unknown("effective", "s", low=0.0, resolution=0.005)
    short = judge(unknown, 0.004, 0.001, 0.002)
    wider = _widened(short, unknown, 0.0075, "speed")
    assert wider.identified and wider.interval == (0.002, 0.0075)
    assert not _widened(short, unknown, 0.0225, "speed").identified


def test_what_is_negligible_follows_from_all_readings_not_from_the_thinned_path():
    time = np.arange(0.0, 10.0, 1e-3)
    readings = Readings(time, np.sin(time), True)
    assert len(readings.time) < len(time) / 4
    assert readings.negligible_delay == pytest.approx(0.25e-3)


def test_an_axis_with_one_speed_does_not_show_its_response():
    """A relay drives it: of the command only the sign has an effect. Any smaller limit gives the same motion."""
    for seed in range(4):
        asked = two_speeds(seed)
        sent, stamps, speeds = Plant(noise=0.01).drive(0.3 * np.sign(asked), seed)
        found = identify_axis("x", "m/s", sent, asked, stamps, speeds)
        assert not any(one.identified for one in found.estimates)


def test_limits_of_several_recordings_keep_to_what_one_of_them_reached():
    shown = limits_of(Plant(acceleration=0.8), steps(2, 0.4))
    free = limits_of(Plant(), steps(2, 0.4))
    little = limits_of(Plant(), ramps(2)[:, 0])
    assert combined([little, free])["acceleration"].interval == free["acceleration"].interval
    assert combined([free, little])["acceleration"] == free["acceleration"]
    both = combined([shown, free])["acceleration"]
    assert not both.identified and "another recording shows a limit of 0.8" in both.verdict
    assert both.interval == free["acceleration"].interval


@pytest.mark.parametrize("kind", ["two_lags", "servo", "slow_servo", "overshoot", "noise", "dead_band"])
def test_a_drive_that_the_axis_follows_tells_only_what_it_reaches_at_least(kind):
    for seed in range(3):
        command = steps(seed, 0.3) if seed else ramps(seed)[:, 0]
        found = limits_of(drawn_plant(kind, seed), command)
        for name, largest in (("acceleration", 6.0), ("speed", 0.3)):
            told = f"the commands never exceeded the largest {name} of the axis, at least"
            assert not found[name].identified and told in found[name].verdict
            assert 0.0 < found[name].interval[0] <= largest and found[name].interval[1] == np.inf


def test_short_drives_with_rests_that_were_not_recorded_are_told_how_long_they_are():
    drive = np.concatenate([np.arange(0.0, 1.96, PERIOD) + 5.0 * k for k in range(40)])
    speeds = np.sin(drive)
    with pytest.raises(IdentificationError, match=r"0 of 1600 readings.*lasts 1.95 s; expected .*well over 2 s"):
        identify_axis("x", "m/s", drive, speeds, drive + 1e-3, speeds)


@pytest.mark.parametrize("steps", [1, 2, 4, 26])
@pytest.mark.parametrize(("late", "period"), [(0.203, 0.1), (0.283, 0.1), (0.2, 0.05), (0.205, 0.05)])
def test_changes_in_step_with_the_readings_leave_the_delay_open_by_as_much(late, period, steps):
    """Commands at 10 or 20 Hz of a body without a lag, read at 10 or 50 Hz: +-1 ms was told of errors of 5 ms."""
    sent, seen = np.arange(0.0, 30.0, period), np.arange(0.004, 30.0, 0.1 if period == 0.1 else 0.02)
    at = np.linspace(3.0, 26.0, steps + 1)[:-1]
    command = 0.3 * (np.searchsorted(at, sent + 1e-9) % 2)
    motion = HeldCommand(sent, command, 0.0).held(seen - late)
    found = identify_axis("x", "m/s", sent, command, seen, motion)["effective"]
    slack = 0.02 * (seen[1] - seen[0])  # what the fit finds of a lag that is none
    assert not found.identified or found.interval[0] - slack <= late <= found.interval[1] + slack


def test_changes_at_any_time_leave_no_more_open_than_their_scatter():
    """A joystick that sends when it moves: +-25 ms were told, by the pauses between its commands."""
    random = np.random.default_rng(2)
    sent = np.cumsum(random.uniform(0.2, 1.2, 90))
    command, seen = random.uniform(-0.3, 0.3, 90), np.arange(0.0, 60.0, 0.02)
    motion = LaggedCommand(HeldCommand(sent, command, 0.0), 0.06).at(seen - 0.1).rate
    found = identify_axis("x", "m/s", sent, command, seen, motion)["effective"]
    assert found.identified and found.interval[0] < 0.16 < found.interval[1] and np.ptp(found.interval) < 0.006


def test_a_body_that_stops_before_the_next_command_has_no_response():
    sent = np.arange(0.0, 60.0, 0.263)
    speeds = np.random.default_rng(3).uniform(-0.3, 0.3, len(sent))
    held = HeldCommand(np.sort(np.append(sent, sent + 0.15)), np.ravel(np.column_stack([speeds, 0.0 * speeds])), 0.0)
    seen = np.arange(0.01, 60.0, 0.02)
    found = identify_axis("x", "m/s", sent, speeds, seen, held.held(seen - 0.11))
    assert all("stops about 0.15 s after each command" in estimate.verdict for estimate in found.estimates)


def test_a_step_between_readings_of_the_same_rhythm_widens_the_interval():
    """A lag far below the period of commands and readings: nothing shows when within a period the step happened."""
    command = ramps(4)[:, 0]
    plant = Plant(lag=0.002)
    sent, stamps, speeds = plant.drive(command, 4)
    same = identify_axis("x", "m/s", sent, command, stamps, speeds)["effective"]
    time = np.sort(np.random.default_rng(1).uniform(1.0, stamps[-1], len(stamps)))
    before = np.searchsorted(sent, time - plant.dead_time, side="right") - 1
    spread = identify_axis("x", "m/s", sent, command, time, np.round(command[before], 2))["effective"]
    assert same.interval[1] - same.interval[0] > 0.04 > 0.02 > spread.interval[1] - spread.interval[0]
    assert holds(same, plant.delay) and holds(spread, plant.dead_time)


def test_a_bag_with_twist_and_odometry_gives_delays_for_a_relaunch(drive, tmp_path):
    bag = body_bag(tmp_path / "bag", drive)
    assert exit_code("identify", bag, "--out", tmp_path / "found") == 0
    told = json.loads((tmp_path / "found" / "result.json").read_text())
    values = {one["name"]: one for one in told["parameters"]}
    for name, true in zip(AXES, drive.delays, strict=True):
        assert values[f"robot.base.delay.effective_{name}"]["value"] == pytest.approx(true, abs=0.01)
        assert values[f"base.body.gain_{name}"]["verdict"] == "identified"
        assert values[f"base.body.dead_band_{name}"]["stage"] == "body"
    assert "receive times of /cmd_vel, stamps of /odom" in told["sources"][0]["clock"]
    assert "effective_yaw" in (tmp_path / "found" / "result.yaml").read_text()
    assert "Body yaw" in (tmp_path / "found" / "report.html").read_text()


def test_several_recordings_are_combined(drive, tmp_path):
    other = twin_drive(1, ramps(2))
    bags = [body_bag(tmp_path / str(k), one) for k, one in enumerate((drive, other))]
    found = identify(bags, ROBOT, Options(), only=("body",)).result
    alone = [identify([bag], ROBOT, Options(), only=("body",)).result for bag in bags]
    name = "robot.base.delay.effective_x"
    values = sorted(one[name].estimate.value for one in alone)
    assert values[0] <= found[name].estimate.value <= values[1]
    assert found[name].samples == sum(one[name].samples for one in alone)


def test_a_gyro_and_a_stamped_twist_give_the_yaw_axis(drive, tmp_path):
    rows = []
    for time, twist in zip(drive.sent.tolist(), drive.twists, strict=True):
        cdr = twist_stamped_cdr(nanoseconds(time), "base_link", twist)
        rows.append((time + 0.3, "/cmd_vel", TWIST_STAMPED, cdr))  # received late: the stamps count
    kinds = jazzy_types().types
    vector, still = kinds["geometry_msgs/msg/Vector3"], np.zeros(9)
    for stamp, speed in zip(drive.stamps.tolist(), drive.speeds, strict=True):
        time = kinds["builtin_interfaces/msg/Time"](*divmod(nanoseconds(stamp), 1_000_000_000))
        head, rate = kinds["std_msgs/msg/Header"](time, "imu"), vector(0.0, 0.0, speed[2] + 0.02)  # an offset
        pose = kinds["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
        message = kinds[IMU](head, pose, still, rate, still, vector(0.0, 0.0, 9.81), still)
        rows.append((stamp + 0.002, "/imu/data", IMU, bytes(jazzy_types().serialize_cdr(message, IMU))))
    found = identify([write_rows(tmp_path / "bag", rows)], ROBOT, Options(), only=("body",)).result
    yaw = found["robot.base.delay.effective_yaw"].estimate
    assert yaw.identified and yaw.value == pytest.approx(drive.delays[2], abs=0.01)
    assert "not measured" in found["robot.base.delay.effective_x"].estimate.verdict
    assert found.sources[0].clock == "stamps of /cmd_vel and /imu/data"


@pytest.mark.parametrize("rate", [30.0, 20.0])
def test_readings_that_a_faster_log_repeats_are_not_taken_for_later_ones(rate, tmp_path):
    """Readings at 30 Hz, held in rows at 100 Hz, gave 317.6 (316.7 to 318.6) ms for 307."""
    plant, command = Plant(rate=rate, noise=0.004, quantum=1e-5), ramps(3)[:, 0]
    sent, stamps, speeds = plant.drive(command, 3)
    rows = np.arange(stamps[0], stamps[-1], 0.01)
    held = speeds[np.searchsorted(stamps, rows, side="right") - 1]
    asked = command[np.searchsorted(sent, rows, side="right") - 1]
    np.savetxt(tmp_path / "log.csv", np.column_stack([rows, asked, held]), delimiter=",", fmt="%.6f")
    options = Options(columns="time,command.x,measured.x")
    result = identify([tmp_path / "log.csv"], ROBOT, options, only=("body",)).result
    found = result["robot.base.delay.effective_x"].estimate
    assert found.identified and holds(found, plant.delay) and np.ptp(found.interval) < 0.04


def stamped_bag(folder: Path, drive: Drive, topic: str, kind: str, messages: list[bytes]) -> Path:
    """A bag with stamped commands and a topic of another kind."""
    sent = zip(drive.sent.tolist(), drive.twists, strict=True)
    rows = [(time, "/cmd_vel", TWIST_STAMPED, twist_stamped_cdr(nanoseconds(time), "base_link", u)) for time, u in sent]
    rows += [(stamp + 0.002, topic, kind, cdr) for stamp, cdr in zip(drive.stamps.tolist(), messages, strict=True)]
    return write_rows(folder, rows)


def assert_same_findings(one, other) -> None:
    assert [finding.name for finding in one.findings] == [finding.name for finding in other.findings]
    for mine, theirs in zip(one.findings, other.findings, strict=True):
        assert mine.identified == theirs.identified
        assert mine.estimate.value == pytest.approx(theirs.estimate.value, rel=1e-4, abs=1e-6, nan_ok=True)
        assert mine.estimate.interval == pytest.approx(theirs.estimate.interval, rel=1e-3, abs=1e-6, nan_ok=True)


def test_poses_of_a_tracker_do_as_well_as_odometry_in_a_bag_and_in_a_text_log(drive, tmp_path):
    poses = drive.poses + np.random.default_rng(4).normal(0.0, [5e-4, 5e-4, 2e-3], drive.poses.shape)
    poses[:, 2] = (poses[:, 2] + np.pi) % (2.0 * np.pi) - np.pi
    stamps = [nanoseconds(stamp) for stamp in drive.stamps.tolist()]
    messages = [pose_stamped_cdr(stamp, "map", pose) for stamp, pose in zip(stamps, poses, strict=True)]
    bag = stamped_bag(tmp_path / "bag", drive, "/mocap/base", POSE_STAMPED, messages)
    columns = body_log(tmp_path / "log.csv", drive, poses, ["pose.x", "pose.y", "pose.yaw"])
    found = identify([bag], ROBOT, Options(), only=("body",)).result
    for name, true, gain in zip(AXES, drive.delays, drive.gains, strict=True):
        delay = found[f"robot.base.delay.effective_{name}"].estimate
        assert delay.identified and delay.value == pytest.approx(true, abs=0.01) and holds(delay, true)
        assert found[f"base.body.gain_{name}"].estimate.value == pytest.approx(gain, abs=0.01)
        assert found[f"base.body.dead_band_{name}"].identified
    text = identify([tmp_path / "log.csv"], ROBOT, Options(columns=columns), only=("body",)).result
    assert_same_findings(text, found)


def test_speeds_in_a_text_log_give_what_odometry_in_a_bag_does(drive, tmp_path):
    stamps = zip(drive.stamps.tolist(), drive.speeds, strict=True)
    messages = [odometry_cdr(nanoseconds(stamp), "odom", "base_link", np.zeros(3), speed) for stamp, speed in stamps]
    bag = stamped_bag(tmp_path / "bag", drive, "/odom", ODOMETRY, messages)
    columns = body_log(tmp_path / "log.csv", drive, drive.speeds, ["measured.x", "measured.y", "measured.yaw"])
    found = identify([bag], ROBOT, Options(), only=("body",)).result
    text = identify([tmp_path / "log.csv"], ROBOT, Options(columns=columns), only=("body",)).result
    assert_same_findings(text, found)
    everything = identify([tmp_path / "log.csv"], ROBOT, Options(columns=columns)).result
    assert everything.complete and everything["base.body.gain_yaw"].identified


@pytest.mark.parametrize("named", [False, True])
def test_the_pose_serves_where_the_twist_of_odometry_is_empty_or_when_it_is_named(drive, tmp_path, named):
    rows = zip(drive.stamps.tolist(), np.round(drive.poses, 3), strict=True)
    speed = np.full(3, 0.3) if named else np.zeros(3)
    messages = [odometry_cdr(nanoseconds(stamp), "odom", "base_link", pose, speed) for stamp, pose in rows]
    bag = stamped_bag(tmp_path / "bag", drive, "/odom", ODOMETRY, messages)
    found = identify([bag], ROBOT, Options(pose_topic="/odom" if named else ""), only=("body",)).result
    for name, true in zip(AXES, drive.delays, strict=True):
        delay = found[f"robot.base.delay.effective_{name}"].estimate
        assert delay.identified and delay.value == pytest.approx(true, abs=0.01) and holds(delay, true)
        assert found[f"base.body.dead_band_{name}"].estimate.interval[0] == 0.0


def test_odometry_that_reports_neither_speed_nor_pose_never_moved(drive, tmp_path):
    messages = [odometry_cdr(nanoseconds(t), "odom", "base_link", np.zeros(3), np.zeros(3)) for t in drive.stamps]
    bag = stamped_bag(tmp_path / "bag", drive, "/odom", ODOMETRY, messages)
    found = identify([bag], ROBOT, Options(), only=("body",)).result
    assert "the axis never moved" in found["robot.base.delay.effective_x"].estimate.verdict


def wheels_bag(folder: Path, plant: Plant, command: np.ndarray) -> Path:
    """A bag of a base with wheel states that drives forward."""
    sent, stamps, speeds = plant.drive(command, 1)
    path = np.append(0.0, np.cumsum(0.5 * (speeds[1:] + speeds[:-1]) * np.diff(stamps)))
    turns = BASE.wheel_speeds([1.0, 0.0, 0.0])
    rows = [
        (time, "/driver/joint_states", joint_state_cdr(nanoseconds(time), WHEELS, at * turns))
        for time, at in zip(stamps.tolist(), path.tolist(), strict=True)
    ]
    for time, speed in zip(sent.tolist(), command.tolist(), strict=True):
        rows.append((time, "/wheel_commands", joint_state_cdr(nanoseconds(time), WHEELS, velocity=speed * turns)))
    return write_rows(folder, rows)


def test_wheel_states_show_limits_where_the_drive_asks_for_more_and_nothing_else(tmp_path):
    plant = Plant(acceleration=0.8, rate=50.0, quantum=1e-4)
    bag = wheels_bag(tmp_path / "limited", plant, steps(2, 0.4))
    found = identify([bag], ROBOT, Options(), only=("body",)).result
    assert {finding.name.rpartition(".")[0] for finding in found.findings} == {"base.limits"}
    most = found["base.limits.acceleration_x"].estimate
    assert most.identified and holds(most, 0.8)
    bag = wheels_bag(tmp_path / "free", Plant(rate=50.0, quantum=1e-4), ramps(1)[:, 0])
    free = identify([bag], ROBOT, Options(), only=("delay", "body")).result
    assert free["robot.base.delay.effective_x"].identified
    missing = free.missing["body"]
    assert "no command exceeded what the base can do: largest acceleration forward at least 0.6" in missing


def test_a_largest_acceleration_hides_the_delay_of_the_wheels_too(tmp_path):
    """512 ms were ticked for jumps of 0.4 m/s, and 213 ms for those of 0.1 m/s."""
    bag = wheels_bag(tmp_path / "limited", Plant(acceleration=1.5, rate=50.0, quantum=1e-4), steps(3, 0.4))
    alone, both = (identify([bag], ROBOT, Options(), only=only).result for only in (("delay",), ("delay", "body")))
    assert both["base.limits.acceleration_x"].identified
    delays = [one["robot.base.delay.effective_x"].estimate for one in (alone, both)]
    assert delays[0].identified, "the stage delay alone cannot know"
    assert not delays[1].identified and delays[1].reason.kind is Kind.OTHER_EXPLANATION


def test_only_a_limit_that_may_explain_a_refusal_and_is_not_known_is_doubtful():
    known, unknown = (judge(Unknown("largest speed", "m/s"), 0.5, error, 2.0 * error) for error in (0.01, 0.4))
    assert _doubtful(known, "largest speed") == known and _doubtful(unknown, "largest acceleration") == unknown
    assert _doubtful(unknown, "largest speed").reason.kind is Kind.CONFUSED


def test_a_recording_without_odometry_is_refused(drive, tmp_path):
    rows = [(time, "/cmd_vel", TWIST, twist_cdr(np.zeros(3))) for time in drive.sent.tolist()]
    with pytest.raises(RecordingError, match="no odometry, pose or gyro .topics: /cmd_vel.*--topic odom=NAME"):
        identify([write_rows(tmp_path / "bag", rows)], ROBOT, Options(), only=("body",))


@pytest.mark.parametrize("bag", ["husky_robot_localization/test1.bag", "mecanum_polimi/bag3.bag"])
def test_real_recordings_without_a_command_are_refused(bag: str):
    if not (DATA / bag).exists():
        pytest.skip("data folder absent")
    with pytest.raises(RecordingError, match="no command .topics: /"):
        identify([Path(DATA / bag)], ROBOT, Options(), only=("body",))
