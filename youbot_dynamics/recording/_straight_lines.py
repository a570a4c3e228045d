"""Commands that were resampled on straight lines, as `resample().interpolate()`, `interp1` and `retime` do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Indices, Vector

_LONGEST = 0.15  # [s] between two commands; longer lines may be ramps that were sent
_FEWEST_ROWS = 2.8  # rows between two commands, of which at least two steps lie on one line
_FEWEST = 12  # lines that rise or fall
_OF_ONE_LENGTH = 0.85  # share of them that are as long as the usual one, by up to
_ROWS, _PERIODS = 0.75, 0.15  # this many rows and this share of the usual length
_OF_ONE_SLOPE = 0.5  # largest share of them: with a largest acceleration they have one slope and many lengths
_ON_LINES = 0.35  # share of the steps with a change that lie on lines, at least: 0.5 at 2.8 rows, by chance 0.2
_ALIKE = 1e-5  # of the steepest slope: relative difference of slopes of one line, beside that of rounded values
_CLEAR = 10.0  # usual slope of these lines, of the difference that is that of rounded values
_DIGITS = range(2, 9)  # decimals that a file may have
_FEWEST_VALUES = 20


def held_between_lines(time: Vector, commands: Mapping[str, Vector]) -> tuple[dict[str, Vector], float]:
    """What was commanded, where columns (n,) at times (n,) [s] join the commands by straight lines.

    A held command jumps within a row; one that was resampled takes one and the same time for each change, however
    large, so that its delay would be half of this time too long. The corners of the lines are the times of the
    commands. If one column shows it, all are taken so, since a table is resampled as a whole.

    Returns:
        Channel -> mean in each row (n,), up to the next, of what was held; and the time between commands [s], NaN if
        the columns join none, which then are unchanged.
    """
    found = {name: lines for name, column in commands.items() if (lines := _lines_of(time, column)) is not None}
    period = min((lines.period for lines in found.values() if not math.isnan(lines.period)), default=math.nan)
    if math.isnan(period):
        return dict(commands), period
    held = {name: _held(time, commands[name], lines, period) for name, lines in found.items()}
    return {**commands, **held}, period


@dataclass(frozen=True, eq=False)
class _Lines:
    """Lines (k,) of two steps or more in a column."""

    first: Indices  # (k,) known rows where they begin
    last: Indices  # (k,) and where they end
    slope: Vector  # (k,) [1/s], 0 of a constant command
    starts: Vector  # (k,) when they begin: where the line before meets them, otherwise with their first row [s]
    ends: Vector  # (k,) [s]
    period: float  # usual time from corner to corner [s]; NaN if they may be other than commands that were joined


def _lines_of(time: Vector, column: Vector) -> _Lines | None:
    """The lines of a column (n,) at times (n,) [s]; None if it has none."""
    known = np.isfinite(column)
    t, u = time[known], column[known]
    if len(t) < _FEWEST_VALUES or np.ptp(u) == 0.0:
        return None
    steps = np.diff(t)
    row, slopes = float(np.median(steps)), np.diff(u) / steps
    alike = _ALIKE * float(np.abs(slopes).max()) + 2.0 * _resolution(u) / row
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.abs(np.diff(slopes)) <= alike, [0]])))
    first, last = edges[::2], edges[1::2] + 1
    if not len(first):
        return None
    slope = (u[last] - u[first]) / (t[last] - t[first])
    slope[np.abs(slope) <= alike] = 0.0

    # Two lines meet within a step at most between the last row of one and the first of the next.
    before, after = last[:-1], first[1:]
    gap, change = t[after] - t[before], np.diff(slope)
    since = np.full(len(change), np.nan)
    np.divide(u[before] - u[after] + slope[1:] * gap, change, out=since, where=(after - before <= 1) & (change != 0.0))
    corner = t[before] + np.clip(since, 0.0, gap)
    starts = np.append(t[first[0]], np.where(np.isfinite(corner), corner, t[after]))
    ends = np.append(np.where(np.isfinite(corner), corner, t[before]), t[last[-1]])

    on_lines = np.sum((last - first)[slope != 0.0]) / max(np.count_nonzero(np.abs(slopes) > alike), 1)
    lengths = np.diff(corner)
    usable = (slope[1:-1] != 0.0) & np.isfinite(lengths)
    lengths, steep = lengths[usable], np.abs(slope[1:-1][usable])
    if len(lengths) < _FEWEST:
        return _Lines(first, last, slope, starts, ends, math.nan)
    usual = float(np.median(lengths))
    of_one_length = np.mean(np.abs(lengths - usual) <= _ROWS * row + _PERIODS * usual)
    of_one_slope = np.mean(np.abs(steep[:, None] - steep) <= alike, axis=1).max()
    clear = float(np.median(steep)) >= _CLEAR * alike and on_lines >= _ON_LINES
    likely = clear and of_one_length >= _OF_ONE_LENGTH and of_one_slope <= _OF_ONE_SLOPE
    joined = bool(likely and _FEWEST_ROWS * row < usual < _LONGEST)
    return _Lines(first, last, slope, starts, ends, usual if joined else math.nan)


def _held(time: Vector, column: Vector, lines: _Lines, period: float) -> Vector:
    """A column (n,) at times (n,) [s] as means of commands that are sent a `period` [s] apart and held."""
    known = np.flatnonzero(np.isfinite(column))
    t, u = time[known], column[known]
    count = np.where(lines.slope != 0.0, np.maximum(np.round((lines.ends - lines.starts) / period), 1), 1).astype(int)
    line = np.repeat(np.arange(len(count)), count)  # several commands on one line share its length
    piece = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    times = lines.starts[line] + piece * ((lines.ends - lines.starts) / count)[line]
    begins = lines.first[line]
    inside = np.zeros(len(t) + 1, dtype=int)
    np.add.at(inside, lines.first, 1)
    np.add.at(inside, lines.last + 1, -1)
    alone = np.flatnonzero(np.cumsum(inside[:-1]) == 0)  # rows that are on no line
    sent = np.concatenate([t[:1], t[alone], times])
    values = np.concatenate([u[:1], u[alone], u[begins] + lines.slope[line] * (times - t[begins])])
    order = np.argsort(sent, kind="stable")
    sent, values = sent[order], values[order]
    area = np.concatenate([[0.0], np.cumsum(np.diff(sent) * values[:-1])])
    bounds = np.append(t, 2.0 * t[-1] - t[-2])
    until = np.interp(bounds, sent, area) + np.maximum(bounds - sent[-1], 0.0) * values[-1]
    held = column.copy()
    held[known] = np.diff(until) / np.diff(bounds)
    return held


def _resolution(values: Vector) -> float:
    """Largest error of values (n,) by the decimals with which they were written; 0 if they have more than eight."""
    for digits in _DIGITS:
        if np.all(np.abs(values - np.round(values, digits)) < 1e-4 * 10.0**-digits):
            return 0.5 * 10.0**-digits
    return 0.0
