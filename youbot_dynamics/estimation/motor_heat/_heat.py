"""Temperatures of the arm's motors without temperature sensors: a slow filter beside the filter of the joints.

Each motor has one filter, with steps at 1 to 10 Hz on the mean square of the current. Its thermal resistances,
capacities, ambient temperature and winding resistance are uncertain and therefore states, so the published variance
contains their error. The motors' torques follow from currents at any temperature, so the filter of the joints needs no
feedback. With measured voltages, R = (V - K N v) / i corrects the temperature of the winding; its scale is estimated
while the motor is at air temperature.
Source: systems 1, 2, 5.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector, made_of, number, positive_time, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.thermal_motor import GearedMotor, heat_step
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation.ekf import Ekf, Innovation, Step, positions_of
from youbot_dynamics.estimation.motor_heat import _model as model
from youbot_dynamics.estimation.motor_heat._model import AMBIENT, HOUSING, RESISTANCE, STATES, WINDING
from youbot_dynamics.parameters import fixed_setting

_LONGEST = 86400.0  # [s] of a step
_PART = 0.1  # longest step, relative to the winding's time constant
_PARTS = 1 << 30  # of an interval that holds a root
_PROBES = np.geomspace(0.01, 1.0, 12)  # fractions of a time at which the temperature of a hot motor is evaluated


@compiled
def _hottest(constants: Vector, winding: float, housing: float, square: float, seconds: float) -> float:
    """Highest temperature of the winding [degC] while a current, given squared [A2], acts for a time [s]."""
    highest = -math.inf
    for probe in _PROBES:
        highest = max(highest, heat_step(constants, winding, housing, square, 0.0, seconds * probe)[0])
    return highest


@dataclass(frozen=True)
class HeatTuning:
    """Uncertainties of a motor, as standard deviations.

    Raises:
        ModelError: a value that is not positive.
    """

    ambient_deviation: float = fixed_setting(
        5.0,
        "Standard deviation of the air temperature from robot.arm.ambient_temperature.",
        "K",
        (0.1, 50.0),
        source="chosen: rooms of 15 to 35 degC within two deviations",
    )
    heat_error: float = fixed_setting(
        0.2,
        "Relative error of thermal resistances, heat capacities and winding resistance.",
        "1",
        (0.001, 1.0),
        source="chosen: editions of the maxon sheets differ by up to 35 %, two deviations",
    )
    voltage_noise: float = fixed_setting(
        0.05,
        "Standard deviation of motor voltages, where a robot has them.",
        "V",
        (1e-3, 10.0),
        source="chosen: 0.2 % of the 24 V supply",
    )
    start: float = 1.0  # error of winding and housing at the start, relative to the air or the given temperature [K]
    wander: float = 0.02  # process noise of the winding [K/sqrt(s)], for what two nodes do not model
    drift: float = 0.01  # of the air temperature [K/sqrt(s)]
    torque_constant: float = 0.02  # relative error of that constant, for the back-EMF
    gate: float = 6.0  # standard deviations; see `Ekf`

    def __post_init__(self) -> None:
        """Check all values."""
        for name, value in vars(self).items():
            number(name, value, above=0.0)


@dataclass(frozen=True)
class HeatBelief:
    """Temperatures of a motor with standard deviations."""

    stamp: float  # [s]
    winding: float  # [degC]
    winding_deviation: float  # [K]
    housing: float  # [degC]
    housing_deviation: float  # [K]
    resistance: float  # of the winding at its temperature [Ohm]


def _crossing(rising: Callable[[float], float], limit: float, low: float, high: float) -> float:
    """Where a rising function reaches a limit in an interval; `scipy.optimize` would take 21 MB and 0.7 s."""
    place = bisect_left(range(_PARTS), limit, key=lambda k: rising(low + (high - low) * k / _PARTS))
    return low + (high - low) * place / _PARTS


def _reading(thing: str, value: float) -> float:
    """A reading as a finite number, or NaN for none."""
    return math.nan if isinstance(value, float) and math.isnan(value) else scalar(thing, value)


class MotorHeat:
    """Filter of one motor's temperatures: call `predict` with each mean square current, then read `state`.

    Args:
        motor: with its gear, from the data sheet.
        stamp: of the start [s].
        temperature: of winding and housing at the start [degC]. None is a cold start: the motor is at air temperature,
            and its first voltages determine its resistance.
        tuning: uncertainties of the motor.

    Raises:
        InputError: no motor with its gear, or a stamp or temperature that is no finite number.

    Example:
        >>> heat = yd.MotorHeat(yd.load_robot().arm.motors()[1], stamp=0.0)
        >>> heat.predict(60.0, 4.0)  # a minute at 2 A
        >>> round(float(heat.state.winding))
        51

    Source: systems 1 to 6.
    """

    def __init__(
        self, motor: GearedMotor, stamp: float, temperature: float | None = None, tuning: HeatTuning | None = None
    ) -> None:
        made_of("motor", motor, GearedMotor)
        stamp, begun = scalar("stamp", stamp), None if temperature is None else scalar("temperature", temperature)
        self.motor = motor
        self.tuning = HeatTuning() if tuning is None else tuning
        inside, uncertainty = motor.motor, self.tuning
        self._sheet = np.array(
            [
                inside.resistance,
                inside.temperature_coefficient,
                inside.reference_temperature,
                inside.winding_housing_resistance,
                inside.housing_ambient_resistance,
                inside.winding_capacity,
                inside.housing_capacity,
            ]
        )
        air = inside.ambient_temperature
        mean, covariance = np.zeros(STATES), np.zeros((STATES, STATES))
        mean[:3] = [air if begun is None else begun] * 2 + [air]
        covariance[AMBIENT, AMBIENT] = uncertainty.ambient_deviation**2
        if temperature is None:
            covariance[:3, :3] = uncertainty.ambient_deviation**2
        covariance[WINDING, WINDING] += uncertainty.start**2
        covariance[HOUSING, HOUSING] += uncertainty.start**2
        covariance[range(3, STATES), range(3, STATES)] = uncertainty.heat_error**2
        self._filter = Ekf(mean, covariance, stamp, self._step, gate=uncertainty.gate)

    @property
    def state(self) -> HeatBelief:
        """Estimate at the last stamp."""
        mean, deviation = self._filter.mean, np.sqrt(np.diag(self._filter.covariance))
        winding, housing = ((float(mean[k]), float(deviation[k])) for k in (WINDING, HOUSING))
        return HeatBelief(self._filter.stamp, *winding, *housing, self._resistance(mean))

    def predict(self, stamp: float, mean_square_current: float) -> None:
        """Advance to a stamp [s] with the mean of i^2 since the last one [A^2]; an earlier stamp changes nothing.

        Raises:
            InputError: a value that is not finite, a negative square, a step of more than a day, or one after which the
                temperatures would overflow; the estimate stays as it was.
        """
        square, now = scalar("mean_square_current", mean_square_current), scalar("stamp", stamp)
        if square < 0.0:
            raise InputError("mean_square_current", got=f"{square:g}", expected="at least 0 A^2")
        if now - self._filter.stamp > _LONGEST:
            got, expected = f"{now - self._filter.stamp:g} s after the last one", f"at most {_LONGEST:g} s"
            remedy = "start a new MotorHeat: the motor has cooled down"
            raise InputError("stamp", got=got, expected=expected, remedy=remedy)
        try:
            self._filter.predict(now, square)
        except ArithmeticError:
            got = f"{square:g} A^2 held for {now - self._filter.stamp:g} s"
            expected = "a load after which the temperatures are finite"
            raise InputError("mean_square_current", got=got, expected=expected, remedy="check its unit, A^2") from None

    def update_voltage(self, voltage: float, current: float, joint_speed: float) -> Innovation:
        """Correct by a voltage [V], current [A] and joint speed v [rad/s] of one time, or by their means over a period.

        V = R(T) i + K N v; without a current there is no information. A voltage of NaN is none.

        Raises:
            InputError: values that are no numbers, or a current or speed that is not finite.
        """
        volts, current, joint_speed = (
            _reading("voltage", voltage),
            scalar("current", current),
            scalar("joint_speed", joint_speed),
        )
        inside, uncertainty = self.motor.motor, self.tuning
        back_emf = inside.torque_constant * self.motor.ratio * joint_speed

        def sensor(mean: Vector) -> tuple[Vector, Vector]:
            resistance = self._resistance(mean)
            jacobian = np.zeros((1, STATES))
            scale = math.exp(mean[RESISTANCE]) * inside.resistance * inside.temperature_coefficient
            jacobian[0, WINDING] = scale * current
            jacobian[0, RESISTANCE] = resistance * current
            return np.array([resistance * current + back_emf]), jacobian

        variance = uncertainty.voltage_noise**2 + (uncertainty.torque_constant * back_emf) ** 2
        return self._filter.update(np.array([volts]), sensor, np.array([variance]))

    def update_temperature(self, winding: float, housing: float, deviation: float) -> Innovation:
        """Correct by sensors of winding and housing [degC], NaN if there is none; deviation [K].

        Raises:
            InputError: temperatures that are no numbers, or infinite.
            ModelError: a deviation that is not finite and above 0.
        """
        readings = np.array([_reading("winding", winding), _reading("housing", housing)])
        variance = number("deviation", deviation, "K", above=0.0) ** 2
        sensor = positions_of((WINDING, HOUSING), STATES)
        return self._filter.update(readings, sensor, np.full(2, variance))

    def seconds_to(self, limit: float, mean_square_current: float, deviations: float = 0.0) -> float:
        """Time until the winding reaches a limit under a constant load [s]; infinite if it never does.

        Args:
            limit: [degC].
            mean_square_current: [A^2].
            deviations: safety margin, in standard deviations of the winding temperature.

        Raises:
            InputError: a value that is not finite.
        """
        limit, mean_square_current = scalar("limit", limit), scalar("mean_square_current", mean_square_current)
        mean, margin = self._filter.mean, self._margin(deviations)
        constants = model.network(self._sheet, mean)

        def winding(time: float) -> float:
            return float(heat_step(constants, mean[WINDING], mean[HOUSING], mean_square_current, 0.0, time)[0]) + margin

        if winding(0.0) >= limit:
            return 0.0
        late = 0.1 * self.motor.motor.winding_time_constant
        early = 0.0
        while winding(late) < limit:
            early, late = late, 1.5 * late
            if late > 1e6:
                return math.inf
        return _crossing(winding, limit, early, late)

    def torque_available(self, limit: float, seconds: float, current_limit: float, deviations: float = 0.0) -> float:
        """Largest torque at the joint [N m] for a given time with the winding below its limit.

        Args:
            limit: [degC].
            seconds: duration.
            current_limit: of the motor controller [A].
            deviations: safety margin, in standard deviations of the winding temperature.

        Raises:
            InputError: a value that is not finite, or a duration that is not above 0.
        """
        limit, seconds = scalar("limit", limit), positive_time("seconds", seconds)
        mean, margin = self._filter.mean, self._margin(deviations)
        constants = model.network(self._sheet, mean)

        def hottest(current: float) -> float:
            return _hottest(constants, mean[WINDING], mean[HOUSING], current * current, seconds) + margin

        largest = scalar("current_limit", current_limit)
        if hottest(largest) > limit:
            reachable = hottest(0.0) < limit
            largest = _crossing(hottest, limit, 0.0, largest) if reachable else 0.0
        return float(largest * self.motor.motor.torque_constant * self.motor.ratio)

    def _margin(self, deviations: float) -> float:
        return scalar("deviations", deviations) * math.sqrt(float(self._filter.covariance[WINDING, WINDING]))

    def _resistance(self, mean: Vector) -> float:
        inside = self.motor.motor
        warmer = 1.0 + inside.temperature_coefficient * (mean[WINDING] - inside.reference_temperature)
        return float(inside.resistance * math.exp(mean[RESISTANCE]) * warmer)

    def _step(self, mean: Vector, dt: float, square: float) -> Step:
        longest = _PART * self.motor.motor.winding_time_constant
        parts = max(1, math.ceil(dt / longest))
        jacobian = np.eye(STATES)
        for _ in range(parts):
            model.warm(self._sheet, mean, 0.0 if square is None else float(square), dt / parts, jacobian)
        noise = np.zeros((STATES, STATES))
        noise[WINDING, WINDING] = noise[HOUSING, HOUSING] = self.tuning.wander**2 * dt
        noise[AMBIENT, AMBIENT] = self.tuning.drift**2 * dt
        return Step(mean, jacobian, noise)
