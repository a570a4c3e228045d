"""Currents and temperatures of a motor in one run, and how a thermal model differs from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.thermal_motor import heat_history
from youbot_dynamics.errors import InputError

_LARGEST_RESIDUAL = 1e6  # residuals beyond this are clipped [K]: the search may try constants with thermal runaway
# Standard deviations of errors that all readings of a run share; they do not average out. All are chosen.
_AIR = 0.2  # of the air at the start, relative to the motor's first reading or to the given temperature [K]
_DRIFT = 0.005  # of the air or of the sensor, in the square root of a second [K]: 0.2 K in half an hour
LAG = 0.5  # of a sensor behind its part, or between the clocks of current and temperature [s]
_GROWTH = 0.1  # relative, of the coefficient: leads and connectors stay cold


@compiled
def _follow(memory: Vector, table: Vector) -> None:
    """Replace a table (n, 2) by its first-order lag, which keeps the share memory (n - 1,) in each step."""
    for k in range(len(memory)):
        for part in range(2):
            table[k + 1, part] += memory[k] * (table[k, part] - table[k + 1, part])


@dataclass(frozen=True, eq=False)
class HeatRun:
    """Currents and temperatures of a motor at times (n,) [s]; NaN where a temperature was not read."""

    time: Vector  # (n,) increasing [s]
    current: Vector  # (n,) held until the next time [A]
    winding: Vector | None = None  # (n,) [degC], None if not measured
    housing: Vector | None = None  # (n,) [degC], None if not measured
    # [degC]; None: the motor started at the unknown air temperature, so readings are relative to a constant
    ambient: float | None = None
    trend: bool = False  # whether a sensor may drift, or the air slowly, so that readings are relative to a line
    warming: bool = False  # whether the air may warm linearly, which the housing follows with its time constant
    _readings: Vector = field(init=False, repr=False)  # (n, 2) of winding and housing

    def __post_init__(self) -> None:
        """Check shapes, times and currents; any temperature may be missing."""
        time = array("time", self.time, (None,))
        readings = np.full((len(time), 2), np.nan)
        for k, (name, column) in enumerate((("winding", self.winding), ("housing", self.housing))):
            if column is not None:
                array(name, np.nan_to_num(column), time.shape)
                readings[:, k] = column
        object.__setattr__(self, "_readings", readings)
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "current", array("current", self.current, time.shape))
        if np.any(np.diff(time) < 0.0):
            raise InputError("time", got="times that decrease", expected="increasing times [s]")

    def first(self) -> float:
        """Initial temperature [degC]: the first reading."""
        read = self._readings.T[np.isfinite(self._readings.T)]
        return float(read[0]) if len(read) else math.nan

    def rises(self, values: Vector, coefficient: float) -> Vector:
        """Temperatures (n, 2) [degC] of winding and housing for heating, time constants and capacity ratio (4,)."""
        heating, tau_winding, tau_housing, ratio = values
        first, winding, housing = self._start()
        ambient = winding if self.ambient is None else self.ambient
        # Capacities relative to the winding's; the resistance at ambient temperature is then h.
        constants = np.array(
            [heating, coefficient * heating, 1.0 / tau_winding, 1.0 / (ratio * tau_housing), 1.0, 1.0 / ratio, ambient]
        )
        rises = np.empty((len(self.time) - 1 - first, 2))
        steps = np.diff(self.time[first:])
        current = np.ascontiguousarray(self.current[first:-1])
        heat_history(constants, winding, housing, current, np.zeros(len(steps)), steps, rises)
        return np.vstack([np.tile([winding, housing], (first + 1, 1)), rises])

    def _start(self) -> tuple[int, float, float]:
        """Index from which the model is computed, and the temperatures of winding and housing there [degC].

        With a given ambient temperature that is the first reading of either; one that was not read then has the
        temperature of the other. Otherwise the motor starts cold with the first current, whenever it is first read.
        """
        start = self.first()
        if self.ambient is None:
            return 0, start, start
        table = self._readings
        first = int(np.argmax(np.any(np.isfinite(table), axis=1)))
        known = table[first][np.isfinite(table[first])]
        winding, housing = np.where(np.isfinite(table[first]), table[first], known[0] if len(known) else start).tolist()
        return first, winding, housing

    def misfit(self, values: Vector, coefficient: float, lag: float = 0.0) -> Vector:
        """Model minus reading (m,) [K] for all readings; without its mean if the ambient temperature is unknown.

        The readings lag with a time constant of `lag` [s]. With `warming`, less the response to air that warms, too.
        """
        residuals = self.at_readings(self.lagging(self.rises(values, coefficient), lag) - self._readings)
        if self.warming:
            response = self.at_readings(self._response_to_warming(values))
            residuals = residuals - response * float(response @ residuals) / (float(response @ response) or 1.0)
        return np.nan_to_num(np.clip(residuals, -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL), nan=_LARGEST_RESIDUAL)

    def _response_to_warming(self, values: Vector) -> Vector:
        """Change (n, 2) of the temperatures by air that warms by 1 K/s, the integral of that by air 1 K warmer [K]."""
        idle = replace(self, current=np.zeros(len(self.time)))
        cold, warm = (replace(idle, ambient=self.first() + rise).rises(values, 0.0) for rise in (0.0, 1.0))
        return np.cumsum((warm - cold) * np.diff(self.time, prepend=self.time[0])[:, None], axis=0)

    def lagging(self, table: Vector, lag: float) -> Vector:
        """A table (n, 2) of temperatures as sensors read it that follow with a time constant `lag` [s]."""
        read = table.copy()
        if lag > 0.0:
            _follow(np.exp(-np.diff(self.time) / lag), read)
        return read

    def at_readings(self, table: Vector) -> Vector:
        """Values (m,) of a table (n, 2) at the readings, less their mean if the ambient temperature is unknown.

        With `trend`, less their linear trend, too.
        """
        values: Vector = table.T[np.isfinite(self._readings.T)]
        if not self.trend:
            return values - values.mean() if self.ambient is None and len(values) else values
        passed = self.read_times() - self.time[0]
        basis = np.column_stack([passed, np.ones(len(passed))][: 2 if self.ambient is None else 1])
        values -= basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
        return values

    def shared_errors(self, values: Vector, coefficient: float) -> tuple[Vector, Vector]:
        """Changes of the readings by one standard deviation of the errors that they share [K].

        Those by this run's air and its drift (2, m), and by the sensor's lag and the coefficient (2, m), which are the
        same in all runs.
        """
        model = self.rises(values, coefficient)
        air = self.first() if self.ambient is None else self.ambient
        warmer = replace(self, ambient=air + _AIR).rises(values, coefficient)
        read_times = self.read_times()
        drift = _DRIFT * (self.time - read_times.min()) / math.sqrt(float(np.ptp(read_times)) or 1.0)
        late = np.column_stack([np.interp(self.time - LAG, self.time, column) for column in model.T])
        steeper = self.rises(values, (1.0 + _GROWTH) * coefficient)
        changes = [warmer - model, np.column_stack([drift, drift]), late - model, steeper - model]
        rows = np.array([self.at_readings(change) for change in changes])
        return rows[:2], rows[2:]

    def only(self, half: int) -> HeatRun:
        """The run with only the first (0) or second (1) half of its readings, by time, and its initial temperature."""
        read_times = self.read_times()
        second_half = self.time >= 0.5 * (read_times.min() + read_times.max())

        def selected(column: Vector) -> Vector:
            part: Vector = np.where(second_half == bool(half), column, np.nan)
            first = int(np.argmax(np.isfinite(column)))
            part[first] = column[first]
            return part

        winding, housing = (selected(column) for column in self._readings.T)
        return replace(self, winding=winding, housing=housing)

    def spread(self) -> Vector:
        """Each reading (m,) minus the mean of its column [K], in the order of `misfit`."""
        columns = [column[np.isfinite(column)] for column in self._readings.T]
        return np.concatenate([column - column.mean() for column in columns if len(column)] or [np.zeros(0)])

    def read_times(self) -> Vector:
        """Time (m,) of each reading, in the order of `misfit` [s]."""
        return np.concatenate([self.time[np.isfinite(column)] for column in self._readings.T])
