"""Temperatures of the arm's motors from the messages of a running robot: efforts, voltages and sensors.

This adds to the filters of `motor_heat`: it keeps time under irregular stamps, pairs voltages with currents, and
computes how long and how strongly a motor can still run.
Source: systems 1, 2, 5.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.estimation.ekf import REFUSED
from youbot_dynamics.estimation.motor_heat._heat import HeatBelief, HeatTuning, MotorHeat
from youbot_dynamics.estimation.motor_heat._model import BEGUN, LAST, average, gather
from youbot_dynamics.robot_arm import Arm

PERIOD = 0.5  # [s] of the filters' steps and results
_LONGEST = 1800.0  # [s] after which a motor has reached its steady temperature
_LOAD_TIME = 10.0  # [s] over which the present load is averaged: a winding's time constant
_LEAST_CURRENT = 0.02  # of the current limit: at less, a voltage contains no information on the resistance
_COLDEST, _HOTTEST = -60.0, 300.0  # [degC] that a motor can have: the air of the Antarctic, insulation that chars
# A reading that stays the same for this long [s] is of a stuck sensor if the model alone changes by this much [K]
# meanwhile. With its resistances and capacities wrong by half, the motor changes by several steps of a coarse sensor.
_STUCK_TIME, _STUCK = 60.0, 10.0
_PATIENCE = 10  # refusals of a sensor in a row after which the filter restarts from it


@dataclass(frozen=True)
class MotorLimits:
    """Remaining capability of a motor."""

    seconds: float  # time until the winding reaches its limit at the present load; infinite if it never does
    torque: float  # largest torque at the joint for the requested time [N m]
    load: float  # torque at the joint [N m] with the same heat as the present load


class ArmTemperatures:
    """Winding and housing temperatures of an arm of n motors, from the robot's messages.

    Its time is the sum of the `elapsed` arguments of `add`, so a jump of the clock neither cools nor heats a motor.

    Args:
        arm: data of the joints, with their limits.
        start: temperature of all motors at the start [degC]; None is a cold start, see `MotorHeat`.
        tuning: see `MotorHeat`.
        sensor: temperature that the robot's sensors measure, "winding" or "housing".
        sensor_deviation: standard deviation of those sensors [K].
    """

    def __init__(
        self,
        arm: Arm,
        start: float | None = None,
        tuning: HeatTuning | None = None,
        sensor: str = "winding",
        sensor_deviation: float = 1.0,
    ) -> None:
        self._tuning, self._sensor, self._deviation = tuning, sensor, sensor_deviation
        self._heats = [MotorHeat(motor, 0.0, start, tuning) for motor in arm.motors()]
        self._time, self._clock = 0.0, np.zeros(2)  # [s]; the clock is that of `gather`
        motors = [joint.motor for joint in arm.joints]
        self._torque_of_current = np.array([motor.torque_constant * motor.gear_ratio for motor in motors])
        self._current_limits = np.array([motor.current_limit for motor in motors])
        self._limits = tuple(motor.winding_temperature_limit for motor in motors)
        n = len(motors)
        self._current, self._charge = np.zeros(n), np.zeros(n)  # the last [A], and the integral of i^2 [A^2 s]
        self._squares, self._weights = np.zeros(n), np.zeros(n)  # i^2 [A^2] and 1, both with exponential forgetting
        self._sums = np.zeros((4, n))  # of i^2, i V, i v and of their number, since the last step
        self._refusals = np.zeros(n, dtype=int)
        self._alone: list[MotorHeat | None] = [None] * n  # filters that no sensor corrects, of motors with a sensor
        # The last reading, the temperature of `_alone` when it first came [degC], and when that was [s].
        self._reading, self._modelled, self._since = np.full((3, n), math.nan)
        self._stuck = np.zeros(n, dtype=bool)
        self._believed = 0
        self._refused = 0

    @property
    def state(self) -> tuple[HeatBelief, ...]:
        """Estimate of each motor; stamps are of this object's own time [s]."""
        return tuple(heat.state for heat in self._heats)

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers of refused voltages and temperatures, and of motors restarted from their sensors."""
        return {"motor sensor readings beyond the gate": self._refused, "motors restarted": self._believed}

    def add(self, elapsed: float, effort: ArrayLike) -> bool:
        """Process the efforts (n,) of a message [N m], NaN if missing, `elapsed` [s] after the last message.

        Times that are not above 0 change nothing. Returns whether the filters made a step, every 0.5 s.
        """
        return self.follow(np.array([float(elapsed)]), np.asarray(effort, dtype=np.float64)[None])[1]

    def follow(self, elapsed: Vector, effort: Vector) -> tuple[int, bool]:
        """Process messages until the filters make a step.

        Args:
            elapsed: (t,) since the previous message [s]; values that are not above 0 change nothing.
            effort: (t, n) at the joints [N m], NaN where missing.

        Returns:
            Number of processed messages, and whether the filters made a step.
        """
        passed = np.where((elapsed > 0.0) & (elapsed < np.inf), np.minimum(elapsed, _LONGEST), 0.0)
        stamps = self._time + np.cumsum(passed)
        currents = effort / self._torque_of_current
        taken, stepped = gather(stamps, currents, PERIOD, self._clock, self._current, self._charge)
        self._time = float(stamps[taken - 1]) if taken else self._time
        average(passed[:taken], currents[:taken], _LOAD_TIME, self._squares, self._weights)
        if stepped:
            last, begun = float(self._clock[LAST]), float(self._clock[BEGUN])
            for heat, charge in zip(self._heats, self._charge.tolist(), strict=True):
                heat.predict(last, charge / (last - begun))
            for alone, charge in zip(self._alone, self._charge.tolist(), strict=True):
                if alone is not None:
                    alone.predict(last, charge / (last - begun))
            self._clock[BEGUN], self._charge[:] = last, 0.0
            self._use_voltages()
        return taken, stepped

    def add_voltage(self, voltage: ArrayLike, effort: ArrayLike, speed: ArrayLike) -> None:
        """Store motor voltages for the next step.

        Over a step V = R i + K N v is summed with the currents as weights. Divided by their root mean square, this is
        one equation of the same form, in which readings with little current have little weight.

        Args:
            voltage: (n,) [V], NaN where missing.
            effort: (n,) at the same time [N m].
            speed: (n,) of the joints [rad/s].

        Raises:
            InputError: a wrong shape.
        """
        n = len(self._torque_of_current)
        measured = [np.asarray(values, dtype=np.float64) for values in (voltage, effort, speed)]
        for name, values in zip(("voltage", "effort", "speed"), measured, strict=True):
            array(name, np.nan_to_num(values), (n,), math.inf)
        current = measured[1] / self._torque_of_current
        rows = np.array([current * current, current * measured[0], current * measured[2], np.ones(n)])
        self._sums += np.where(np.isfinite(rows).all(axis=0), rows, 0.0)

    def add_temperature(self, temperature: ArrayLike) -> None:
        """Correct by the motors' temperature sensors.

        If a sensor stays beyond the gate for ten readings, the motor's filter restarts from it. A reading that no motor
        can have, as of a sensor that is torn off or short-circuited, is refused for as long as it lasts. So is one that
        does not change for a minute although the motor's model alone warms or cools by 10 K and more: the filter then
        goes on from that model, without what the stuck sensor told it.

        Args:
            temperature: (n,) [degC], NaN where missing.

        Raises:
            InputError: a wrong shape.
        """
        readings = np.asarray(temperature, dtype=np.float64)
        array("temperature", np.nan_to_num(readings), (len(self._refusals),), math.inf)
        for k, value in enumerate(readings.tolist()):
            if not math.isfinite(value):
                continue
            if not _COLDEST <= value <= _HOTTEST:
                self._refused += 1
                continue
            if self._is_stuck(k, value):
                self._refused += 1
                continue
            heat = self._heats[k]
            winding, housing = (value, math.nan) if self._sensor == "winding" else (math.nan, value)
            fate = heat.update_temperature(winding, housing, self._deviation).fate
            self._refusals[k] = self._refusals[k] + 1 if fate == REFUSED else 0
            self._refused += fate == REFUSED
            if self._refusals[k] >= _PATIENCE:
                self._heats[k] = MotorHeat(heat.motor, heat.state.stamp, value, self._tuning)
                self._alone[k] = None
                self._refusals[k] = 0
                self._believed += 1

    def _is_stuck(self, k: int, reading: float) -> bool:
        """Whether the sensor of motor k shows the same for too long; the filter of the motor forgets it then."""
        alone = self._alone[k] = self._alone[k] or copy.deepcopy(self._heats[k])
        modelled = alone.state.housing if self._sensor == "housing" else alone.state.winding
        if reading != self._reading[k]:
            self._reading[k], self._modelled[k], self._since[k] = reading, modelled, self._time
            self._stuck[k] = False
        elif not self._stuck[k] and self._time - self._since[k] >= _STUCK_TIME:
            self._stuck[k] = abs(modelled - self._modelled[k]) > _STUCK
            self._heats[k] = copy.deepcopy(alone) if self._stuck[k] else self._heats[k]
        return bool(self._stuck[k])

    def limits(self, hold_time: float, deviations: float) -> tuple[MotorLimits, ...]:
        """Remaining capability of each motor at its temperature and load.

        Args:
            hold_time: duration of the torque [s].
            deviations: safety margin, in standard deviations of the winding temperatures.
        """
        load = np.divide(self._squares, self._weights, out=np.zeros_like(self._squares), where=self._weights > 0.0)
        return tuple(
            MotorLimits(
                heat.seconds_to(self._limits[k], float(load[k]), deviations),
                heat.torque_available(self._limits[k], hold_time, float(self._current_limits[k]), deviations),
                math.sqrt(load[k]) * float(self._torque_of_current[k]),
            )
            for k, heat in enumerate(self._heats)
        )

    def _use_voltages(self) -> None:
        for k, (squares, volts, speeds, count) in enumerate(self._sums.T.tolist()):
            effective = math.sqrt(squares / count) if count > 0.0 else 0.0
            if effective > _LEAST_CURRENT * self._current_limits[k]:
                scale = 1.0 / (count * effective)
                fate = self._heats[k].update_voltage(volts * scale, effective, speeds * scale).fate
                self._refused += fate == REFUSED
        self._sums[:] = 0.0
