"""A DC motor with temperatures, and the same motor behind a gear. Source: document 000, systems 1 to 6."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, number, read_only, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.thermal_motor import _network as heat_network
from youbot_dynamics.errors import InputError, ModelError

_ABSOLUTE_ZERO = -273.15  # degC


@compiled
def winding_resistance(
    winding: float, resistance: float, temperature_coefficient: float, reference_temperature: float
) -> float:
    """R(T) = R_ref (1 + alpha (T - T_ref)) [Ohm] of a winding at T [degC], unchecked. Source: system 2; D-000-2."""
    return resistance * (1.0 + temperature_coefficient * (winding - reference_temperature))


@compiled
def drivable_current(current: float, limit: float, supply: float, back_emf: float, resistance: float) -> float:
    """Current [A] that a controller can give of the one it wants: within what the supply drives, then its own limit.

    Supply [V], back-EMF [V] and resistance [Ohm] are those of the motor as fast and its winding as warm as they are.
    """
    lowest, highest = (-supply - back_emf) / resistance, (supply - back_emf) / resistance
    return min(max(min(max(current, lowest), highest), -limit), limit)


class Armature(NamedTuple):
    """Measurable quantities of a motor: current [A], torque before friction [N m] and back-EMF [V]."""

    current: float
    torque: float
    back_emf: float


class MotorRise(NamedTuple):
    """Temperatures of winding and housing above the ambient [K]."""

    winding: float
    housing: float


class MotorTemperatures(NamedTuple):
    """Temperatures of winding and housing [degC]."""

    winding: float
    housing: float


@dataclass(frozen=True)
class ThermalMotor(MadeOfArguments):
    """Quasi-static armature, rotor with viscous friction, and two thermal nodes; state (speed, winding, housing).

    The methods raise InputError for a wrong shape or a value that is not finite, and ModelError for a temperature of
    the winding at which R(T) is not positive.

        i = (V - K w) / R(T_w),   R(T) = R_ref (1 + alpha (T - T_ref))
        J w' = K i - D w - load
        C_w T_w' = R(T_w) i^2 - (T_w - T_h) / R_wh
        C_h T_h' = (T_w - T_h) / R_wh - (T_h - T_amb) / R_ha + D w^2

    One constant K serves torque and back-EMF: in SI units they are equal, otherwise energy is not conserved. A load is
    positive when it opposes a positive speed. The friction heat D w^2 of the bearings enters the housing, so the
    balance V i = d/dt (J w^2 / 2 + C_w T_w + C_h T_h) + load w + (T_h - T_amb) / R_ha is exact. The capacities follow
    from the time constants of a data sheet: C_w = tau_w / R_wh (winding with the housing at constant temperature) and
    C_h = tau_h / R_ha (housing to the ambient, without the winding). The c-parameter form of document 000 (D-000-4,
    D-000-5) is not offered.

    Args:
        torque_constant: K [N m/A = V s/rad], positive.
        resistance: R_ref at the reference temperature [Ohm], positive.
        temperature_coefficient: alpha [1/K], not negative; 0.00393 for copper.
        rotor_inertia: J [kg m^2]; 0 where it is unknown, then the rotor has no motion of its own.
        rotor_friction: D [N m s/rad], not negative.
        winding_housing_resistance: R_wh [K/W], positive.
        housing_ambient_resistance: R_ha [K/W], positive.
        winding_time_constant: tau_w [s], positive.
        housing_time_constant: tau_h [s], positive.
        reference_temperature: T_ref of the resistance [degC].
        ambient_temperature: T_amb [degC].

    Raises:
        ModelError: a constant outside its range, or R(T_amb) not positive.

    Example:
        >>> motor = yd.load_robot().arm.motors()[0].motor
        >>> round(motor.steady_state_rise(2.0).winding, 1)
        44.5

    Source: document 000, systems 1-5; D-000-1 (current without back-EMF), D-000-2 (sign in R), D-000-3 (K missing in
    the back-EMF term), D-000-6 (its temperature row is not a rate).
    """

    torque_constant: float
    resistance: float
    temperature_coefficient: float
    rotor_inertia: float
    rotor_friction: float
    winding_housing_resistance: float
    housing_ambient_resistance: float
    winding_time_constant: float
    housing_time_constant: float
    reference_temperature: float
    ambient_temperature: float
    heat_constants: Vector = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the constants and store those of the thermal network, read-only."""
        not_negative = {"temperature_coefficient": "1/K", "rotor_inertia": "kg m^2", "rotor_friction": "N m s/rad"}
        temperatures = ("reference_temperature", "ambient_temperature")
        positive = {
            "torque_constant": "N m/A",
            "resistance": "Ohm",
            "winding_housing_resistance": "K/W",
            "housing_ambient_resistance": "K/W",
            "winding_time_constant": "s",
            "housing_time_constant": "s",
        }
        for constant in (known for known in fields(self) if known.init):
            name, value = constant.name, getattr(self, constant.name)
            if name in temperatures:
                checked = number(name, value, "degC", above=_ABSOLUTE_ZERO)
            elif name in positive:
                checked = number(name, value, positive[name], above=0.0)
            else:
                checked = number(name, value, not_negative[name], low=0.0)
            object.__setattr__(self, name, checked)
        network = np.array(
            [
                self.resistance_at(self.ambient_temperature),
                self.temperature_coefficient * self.resistance,
                1.0 / self.winding_housing_resistance,
                1.0 / self.housing_ambient_resistance,
                self.winding_capacity,
                self.housing_capacity,
                self.ambient_temperature,
            ]
        )
        object.__setattr__(self, "heat_constants", read_only(network))

    @property
    def winding_capacity(self) -> float:
        """C_w = tau_w / R_wh [J/K]."""
        return self.winding_time_constant / self.winding_housing_resistance

    @property
    def housing_capacity(self) -> float:
        """C_h = tau_h / R_ha [J/K]."""
        return self.housing_time_constant / self.housing_ambient_resistance

    @property
    def thermal_resistance(self) -> float:
        """R_wh + R_ha [K/W], from the winding to the ambient."""
        return self.winding_housing_resistance + self.housing_ambient_resistance

    @property
    def runaway_current(self) -> float:
        """1 / sqrt(alpha R_ref (R_wh + R_ha)) [A]: from this current on there is no thermal steady state.

        It does not depend on the ambient temperature; it is infinite for alpha = 0.
        Source: system 5.
        """
        slope = self.temperature_coefficient * self.resistance * self.thermal_resistance
        return 1.0 / math.sqrt(slope) if slope > 0.0 else math.inf

    def resistance_at(self, temperature: float) -> float:
        """R(T) = R_ref (1 + alpha (T - T_ref)) [Ohm] of a winding at T [degC]; it increases with T.

        Raises:
            ModelError: R would not be positive: T must be above T_ref - 1/alpha.

        Source: system 2; D-000-2.
        """
        warm = scalar("temperature", temperature)
        resistance: float = winding_resistance(
            warm, self.resistance, self.temperature_coefficient, self.reference_temperature
        )
        if not resistance > 0.0:
            limit = self.reference_temperature - 1.0 / self.temperature_coefficient
            raise ModelError(
                f"winding temperature {warm:g} degC",
                got=f"resistance {resistance:g} Ohm",
                expected=f"a temperature above reference_temperature - 1/temperature_coefficient = {limit:g} degC",
            )
        return resistance

    def observe(self, state: ArrayLike, voltage: float) -> Armature:
        """Outputs i = (V - K w) / R(T), K i and K w; V i = (K i) w + R i^2 holds in all four quadrants.

        Args:
            state: (3,) rotor speed [rad/s], winding and housing temperature [degC].
            voltage: at the terminals [V].

        Source: document 000, observation h, system 1; D-000-1.
        """
        speed, winding, _ = array("state", state, (3,)).tolist()
        resistance = self.resistance_at(winding)
        back_emf = self.torque_constant * speed
        current = (scalar("voltage", voltage) - back_emf) / resistance
        return Armature(current, self.torque_constant * current, back_emf)

    def derivative(self, state: ArrayLike, voltage: float, load: float) -> Vector:
        """Rates (3,) [rad/s^2, K/s, K/s] of the state at a terminal voltage, by the equations of the class.

        Args:
            state: (3,) rotor speed [rad/s], winding and housing temperature [degC].
            voltage: at the terminals [V].
            load: torque that opposes a positive speed [N m], at the rotor.

        Source: systems 3, 5; D-000-3, D-000-6.
        """
        return self._rates(array("state", state, (3,)), self.observe(state, voltage).current, load)

    def derivative_from_current(self, state: ArrayLike, current: float, load: float) -> Vector:
        """Rates (3,) [rad/s^2, K/s, K/s] of the state for a current [A] set by the driver; otherwise as `derivative`.

        Use this for logs of the youBot: its drivers report current or effort, not voltage.

        Args:
            state: (3,) rotor speed [rad/s], winding and housing temperature [degC].
            current: in the winding [A].
            load: torque that opposes a positive speed [N m], at the rotor.
        """
        state = array("state", state, (3,))
        self.resistance_at(float(state[1]))
        return self._rates(state, scalar("current", current), load)

    def _rates(self, state: Vector, current: float, load: float) -> Vector:
        speed, winding, housing = state.tolist()
        number("rotor_inertia", self.rotor_inertia, "kg m^2", above=0.0)
        friction = self.rotor_friction * speed
        torque = self.torque_constant * current - friction - scalar("load", load)
        heating = heat_network.heat_rates(self.heat_constants, winding, housing, current**2, friction * speed)
        return np.array([torque / self.rotor_inertia, *heating])

    def steady_state_rise(self, current: float, speed: float = 0.0) -> MotorRise:
        """Steady-state rises [K] above the ambient for a constant current [A]: Maxon's formula plus friction heat.

        x = (R_th R(T_amb) i^2 + R_ha D w^2) / (1 - alpha R_th R_ref i^2) with R_th = R_wh + R_ha, and for the housing
        y = R_ha (R(T) i^2 + D w^2). Document 000 prints a steady state like x as a rate.

        Args:
            current: constant current [A].
            speed: constant rotor speed [rad/s].

        Raises:
            InputError: the current reaches `runaway_current`, so that there is no steady state.

        Source: system 5; D-000-6.
        """
        held = scalar("current", current)
        if not abs(held) < self.runaway_current:
            raise InputError(
                "current",
                got=f"{held:g} A",
                expected=f"less than the run-away current {self.runaway_current:g} A",
                remedy="there is no steady state: the winding temperature grows without bound",
            )
        friction_power = self.rotor_friction * scalar("speed", speed) ** 2
        loss_at_ambient = float(self.heat_constants[0]) * held**2
        feedback = 1.0 - self.thermal_resistance * float(self.heat_constants[1]) * held**2
        winding = (
            self.thermal_resistance * loss_at_ambient + self.housing_ambient_resistance * friction_power
        ) / feedback
        copper_loss = loss_at_ambient + float(self.heat_constants[1]) * winding * held**2
        return MotorRise(winding, self.housing_ambient_resistance * (copper_loss + friction_power))

    def locked_rise(self, voltage: float) -> MotorRise:
        """Rises [K] above the ambient of a locked rotor at constant voltage [V]; always finite, because R grows.

        x solves a x^2 + x = P, a = alpha R_ref / R(T_amb), P = (R_wh + R_ha) U^2 / R(T_amb).

        Source: system 5.
        """
        cold, slope = float(self.heat_constants[0]), float(self.heat_constants[1])
        without_feedback = self.thermal_resistance * scalar("voltage", voltage) ** 2 / cold
        # This form of the root of the quadratic is accurate for a small coefficient and valid for zero.
        winding = 2.0 * without_feedback / (1.0 + math.sqrt(1.0 + 4.0 * slope / cold * without_feedback))
        return MotorRise(winding, winding * self.housing_ambient_resistance / self.thermal_resistance)

    def advance_heat(
        self, winding: float, housing: float, mean_square_current: float, dt: float, speed: float = 0.0
    ) -> MotorTemperatures:
        """Temperatures [degC] after dt [s], exact for constant mean square current [A^2] and speed [rad/s].

        Stable for any dt, also above the run-away current. Compiled loops use `heat_step`.

        Raises:
            InputError: a square or dt is negative, or the temperatures overflow.
        """
        self.resistance_at(winding)
        square, step = _not_negative("mean_square_current", mean_square_current), _not_negative("dt", dt)
        friction_power = self.rotor_friction * scalar("speed", speed) ** 2
        start = scalar("housing", housing)
        with np.errstate(over="ignore", invalid="ignore"):  # needed without numba; an overflow is refused below
            after = heat_network.heat_step(self.heat_constants, winding, start, square, friction_power, step)
        if not (math.isfinite(after[0]) and math.isfinite(after[1])):
            raise _burnt(f"{square:g} A^2 held for {step:g} s")
        return MotorTemperatures(*after)

    def heat_history(
        self, winding: float, housing: float, current: ArrayLike, dt: ArrayLike, speed: ArrayLike = 0.0
    ) -> Vector:
        """Temperatures (n, 2) [degC] of winding and housing after each step of a log, from the start temperatures.

        Args:
            winding: at the start [degC].
            housing: at the start [degC].
            current: (n,) constant over each step [A].
            dt: () or (n,) length of each step [s].
            speed: () or (n,) rotor speed over each step [rad/s], for the heat of friction.

        Raises:
            InputError: a negative dt, or temperatures that overflow.
        """
        held = array("current", current, (None,))
        steps, speeds = _along("dt", dt, len(held)), _along("speed", speed, len(held))
        if np.any(steps < 0.0):
            raise InputError("dt", got=f"{steps.min():g} s", expected="steps of at least 0 s")
        self.resistance_at(winding)
        temperatures = np.empty((len(held), 2))
        start, power = scalar("housing", housing), self.rotor_friction * speeds**2
        with np.errstate(over="ignore", invalid="ignore"):  # as in advance_heat
            heat_network.heat_history(self.heat_constants, float(winding), start, held, power, steps, temperatures)
        if not np.isfinite(temperatures).all():
            raise _burnt(f"step {int(np.argmin(np.isfinite(temperatures).all(axis=1)))} of the log")
        return temperatures


def _not_negative(thing: str, value: float) -> float:
    number = scalar(thing, value)
    if number < 0.0:
        raise InputError(thing, got=f"{number:g}", expected="at least 0")
    return number


def _along(thing: str, value: ArrayLike, length: int) -> Vector:
    """Return one number for each step, from one number or from an array (n,)."""
    return np.full(length, array(thing, value, ())) if np.ndim(value) == 0 else array(thing, value, (length,))


def _burnt(got: str) -> InputError:
    return InputError(
        "winding temperature",
        got=got,
        expected="a heating that stays within floating-point numbers",
        remedy="the current is above the run-away current for too long",
    )


@dataclass(frozen=True)
class GearedMotor:
    """Joint torque, current and speed of a motor behind a gear of ratio N and efficiency eta; no change of direction.

    The methods raise InputError for a value that is not finite.

    The gear loses the fraction 1 - eta of the power at its input, in both directions and in all four quadrants:

        joint torque = N eta K i      while K i and the speed have one sign, or at standstill (motoring)
        joint torque = N K i / eta    while the joint drives the motor (generating)

    The torques are static: the inertia of the rotor is added at the joint as `reflected_inertia`. If the joint's
    friction was fitted to effort = N K i, it already contains the losses of the gear; then the efficiency must be 1,
    the only value `arm.ArmModel` accepts. Document 000 does not define sign and gear side of its external load; here a
    load torque opposes a positive speed.

    Args:
        motor: the motor.
        ratio: N, rotor turns for one turn of the joint [1], positive.
        efficiency: eta [1], above 0 and at most 1.

    Raises:
        ModelError: ratio or efficiency outside its range.

    Source: document 000, system 6.
    """

    motor: ThermalMotor
    ratio: float
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        """Check ratio and efficiency."""
        object.__setattr__(self, "ratio", number("ratio", self.ratio, "rotor/joint", above=0.0))
        object.__setattr__(self, "efficiency", number("efficiency", self.efficiency, above=0.0, high=1.0))

    @property
    def reflected_inertia(self) -> float:
        """N^2 J [kg m^2], the inertia that the rotor adds to the joint (for an ideal gear)."""
        return self.ratio**2 * self.motor.rotor_inertia

    def motor_speed(self, joint_speed: float) -> float:
        """Rotor speed N w [rad/s] of a joint speed [rad/s]."""
        return self.ratio * scalar("joint_speed", joint_speed)

    def joint_torque(self, current: float, joint_speed: float) -> float:
        """Torque [N m] at the joint from the current [A] while the joint turns at joint_speed [rad/s]."""
        ideal = self.ratio * self.motor.torque_constant * scalar("current", current)
        motoring = ideal * scalar("joint_speed", joint_speed) >= 0.0
        return ideal * self.efficiency if motoring else ideal / self.efficiency

    def motor_torque(self, joint_torque: float, joint_speed: float) -> float:
        """Torque [N m] at the rotor that balances a joint torque [N m]: the load of `ThermalMotor.derivative`.

        Joint torque and load are positive where the motor drives the joint in the positive direction.
        """
        ideal = scalar("joint_torque", joint_torque) / self.ratio
        motoring = ideal * scalar("joint_speed", joint_speed) >= 0.0
        return ideal / self.efficiency if motoring else ideal * self.efficiency

    def current(self, joint_torque: float, joint_speed: float) -> float:
        """Current [A] for a joint torque [N m] at joint_speed [rad/s]: the inverse of `joint_torque`."""
        return self.motor_torque(joint_torque, joint_speed) / self.motor.torque_constant
