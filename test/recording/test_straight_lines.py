"""Commands of a log that was resampled on straight lines, as pandas and MATLAB do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from youbot_dynamics.identification.delay import estimate_delay
from youbot_dynamics.recording.text_log import read_text_log

DURATION, PERIOD = 40.0, 0.05  # [s] of a log; between commands


def sent(rng: np.random.Generator, kind: str, period: float) -> np.ndarray:
    """Commands (n,) that are sent a period apart."""
    time = np.arange(0.0, DURATION, period)
    if kind == "sine":
        return 0.4 * np.sin(1.9 * time) + 0.1 * np.sin(5.7 * time + 1.0)
    goals = np.repeat(rng.uniform(-0.4, 0.4, len(time) // 10 + 1), 10)[: len(time)]
    if kind == "steps":
        return goals
    ramps = [0.0]  # with a largest acceleration of 0.5 m/s2
    for goal in goals[1:]:
        ramps.append(ramps[-1] + float(np.clip(goal - ramps[-1], -0.5 * period, 0.5 * period)))
    return np.array(ramps)


def held(times: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values (k,) that were sent at times (k,) [s] and held, at some times of any shape [s]."""
    return values[np.clip(np.searchsorted(times, at, side="right") - 1, 0, None)]


def log_of(path, columns: dict[str, np.ndarray], digits: int = 9):
    """A text log of columns (n,)."""
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", fmt=f"%.{digits}f")
    return read_text_log(path, ",".join(columns))


@pytest.mark.parametrize("kind", ["steps", "sine"])
@pytest.mark.parametrize("row", [0.005, 0.01])
@pytest.mark.parametrize("late", [0.0, 0.1])
def test_commands_that_were_joined_by_lines_are_held_between_the_corners(tmp_path, kind, row, late):
    """Each row has the mean of what was held until the next; `late` is how unevenly they were sent, in periods."""
    rng = np.random.default_rng(1)
    values = sent(rng, kind, PERIOD)
    times = PERIOD * (np.arange(len(values)) + rng.uniform(0.0, 1.0) + late * rng.uniform(0.0, 1.0, len(values)))
    time = np.arange(0.2, DURATION - 0.2, row)
    log = log_of(tmp_path / "log.csv", {"time": time, "command.x": np.interp(time, times, values)})
    mean = np.mean(held(times, values, time[:, None] + row * (np.arange(50) + 0.5) / 50), axis=1)
    assert log.joined == pytest.approx(PERIOD, rel=0.05)
    assert np.sqrt(np.mean((log.command["x"] - mean)[:-10] ** 2)) < 0.02 * np.std(mean)


def test_an_axis_with_steps_of_one_size_is_held_as_the_others_of_its_table(tmp_path):
    """Its lines alone may be ramps of a largest acceleration."""
    rng = np.random.default_rng(2)
    values = sent(rng, "steps", PERIOD)
    times, time = PERIOD * np.arange(len(values)), np.arange(0.2, DURATION - 0.2, 0.01)
    square = 0.3 * (np.arange(len(values)) // 15 % 2)
    lines = {"command.x": np.interp(time, times, values), "command.yaw": np.interp(time, times, square)}
    alone = log_of(tmp_path / "alone.csv", {"time": time, "command.yaw": lines["command.yaw"]})
    both = log_of(tmp_path / "both.csv", {"time": time, **lines})
    assert math.isnan(alone.joined) and both.joined == pytest.approx(PERIOD, rel=0.01)
    assert np.mean(np.abs(both.command["yaw"] - held(times, square, time)) > 0.01) < 0.002
    assert dict(both.commands_are) == {"x": "held", "yaw": "held"}


@pytest.mark.parametrize("kind", ["steps", "sine", "ramps"])
@pytest.mark.parametrize("digits", [3, 9])
def test_commands_in_rows_of_their_own_rate_are_as_they_are(tmp_path, kind, digits):
    """Nor those that repeat a held command, nor those that the user has named sampled."""
    rng, time = np.random.default_rng(3), np.arange(0.0, DURATION, 0.01)
    slow, fast = sent(rng, kind, PERIOD), sent(rng, kind, 0.01)
    columns = {"command.x": held(PERIOD * np.arange(len(slow)), slow, time), "command.y": fast}
    for name, column in columns.items():
        log = log_of(tmp_path / "log.csv", {"time": time, name: column}, digits)
        assert math.isnan(log.joined) and not log.commands_are
        np.testing.assert_allclose(log.command[name[-1]], column, atol=10.0**-digits)
    lines = np.interp(time, PERIOD * np.arange(len(slow)), sent(rng, "steps", PERIOD))
    log = log_of(tmp_path / "log.csv", {"time": time, "command_sampled.x": lines})
    assert math.isnan(log.joined) and dict(log.commands_are) == {"x": "sampled"}


def test_the_delay_of_a_resampled_log_is_that_of_the_commands_that_were_held(tmp_path):
    """It was half the time between commands longer, 25 ms here."""
    rng = np.random.default_rng(4)
    values = sent(rng, "steps", PERIOD)
    times, time = PERIOD * np.arange(len(values)), np.arange(0.2, DURATION - 0.2, 0.01)
    lines = np.interp(time, times, values)
    path = np.cumsum(held(times + 0.1, values, np.arange(0.0, DURATION, 1e-3))) * 1e-3
    moved = np.interp(time, np.arange(1e-3, DURATION + 1e-3, 1e-3)[: len(path)], path)
    log = log_of(tmp_path / "log.csv", {"time": time, "command.x": lines, "measured_position.x": moved})
    command = log.command["x"][:, None]
    (found,) = estimate_delay(time, command, time, moved[:, None], measured_is="position")
    assert found.value == pytest.approx(0.1, abs=0.002)
