"""Motion that stops between its commands, as under a dead man's switch shorter than their period."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from scipy.optimize import minimize_scalar

from youbot_dynamics.arrays import Vector, usual_step
from youbot_dynamics.identification.delay._channel import Channel
from youbot_dynamics.identification.delay._fopdt import LEAD, LaggedCommand
from youbot_dynamics.identification.delay._reasons import stops
from youbot_dynamics.identification.least_squares import Reason
from youbot_dynamics.identification.signals import HeldCommand

_STEP = 1.2  # ratio of the times after a command at which motion may stop
_TIMES = 0.05 * _STEP ** np.arange(21)  # [s]
_SEEN = 2.0  # periods of the readings in the shortest of these times that they show
_LEFT = 0.5  # share of the squared residual above which an end of the commands explains nothing
_LAGS = 0.0, 0.05, 0.1, 0.2  # that the motion may have [s]; the pulses of motion are round then
_GRID = 0.02  # step of the coarse search [s]
_FEWEST, _MOST = 10, 2000  # readings that are used


def stop_after_commands(channel: Channel) -> Reason | None:
    """Why an axis that stops between its commands shows no delay, None if it does not stop.

    It stops if commands that end some time after they were sent, although the next one comes later, leave less than
    half of the squared residual, for motion with one lag, of some or none.
    """
    if len(channel.time) < _FEWEST or len(channel.command.times) < _FEWEST:
        return None
    command, gaps = channel.command, np.diff(channel.command.times)
    usual = float(np.quantile(gaps, 0.95))
    tried = _TIMES[(_TIMES < usual) & (_TIMES > _SEEN * usual_step(channel.time))].tolist()
    if not tried:
        return None
    # At uneven steps: even ones may be in step with the commands, and always meet the motion at the same moment.
    place = np.random.default_rng(0).random(_MOST) + np.arange(_MOST)
    used = np.unique((place * len(channel.time) / _MOST).astype(int))
    readings = Channel(channel.time[used], channel.motion[used], channel.longest, command)

    def left(after: float) -> float:
        early = np.flatnonzero(gaps > after)
        times = np.insert(command.times, early + 1, command.times[early] + after)
        values = np.insert(command.values, early + 1, 0.0)
        return _least_squares(readings, HeldCommand(times, values, command.half_window))

    squares = [left(after) for after in tried]
    best = int(np.argmin(squares))
    if squares[best] >= _LEFT * _least_squares(readings, command):
        return None
    bounds = tried[best] / _STEP, min(tried[best] * _STEP, usual)
    return stops(float(minimize_scalar(left, bounds=bounds, method="bounded", options={"xatol": 1e-3}).x))


def stopping(
    sent: Vector, commanded: Vector, time: Vector, motion: Vector, longest: float, measured_is: str = "position"
) -> Reason | None:
    """The same for commands (n,) sent at times (n,), motion (m,) at times (m,), and the others of `estimate_delay`."""
    if np.count_nonzero(np.isfinite(commanded)) < _FEWEST:
        return None
    return stop_after_commands(Channel(time, motion, longest, HeldCommand.beside(sent, commanded, time, measured_is)))


def _least_squares(readings: Channel, command: HeldCommand) -> float:
    """Squares of the motion that a command leaves for the best shift and lag."""
    centred = readings.centred

    def against(shift: float, one: HeldCommand | LaggedCommand) -> float:
        return -readings.explained(centred, shift, one)

    shifts = np.arange(-LEAD, readings.longest, _GRID).tolist()
    commands = [LaggedCommand(command, lag) if lag else command for lag in _LAGS]
    _, shift, one = min(((against(shift, one), shift, one) for one in commands for shift in shifts), key=itemgetter(0))
    bounds = shift - _GRID, shift + _GRID
    return float(centred @ centred + minimize_scalar(against, bounds=bounds, args=(one,), method="bounded").fun)
