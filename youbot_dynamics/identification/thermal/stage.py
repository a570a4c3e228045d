"""Stage `thermal`: resistance, back-EMF and heat of the arm's motors, from efforts, voltages and temperatures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector, rms, usual_step
from youbot_dynamics.errors import IdentificationError, RecordingError
from youbot_dynamics.identification.arm_friction import EffortScale, recorded_effort_scale
from youbot_dynamics.identification.finding import Finding, FitCurve, Row, StageResult, Table, joint_words
from youbot_dynamics.identification.least_squares import NORMAL, Estimate, Kind, Unknown, judge
from youbot_dynamics.identification.reading import Opened, motor_readings
from youbot_dynamics.identification.signals import NO_EFFORT, recorded_arm
from youbot_dynamics.identification.stages import Taken
from youbot_dynamics.identification.thermal._armature import (
    Armature,
    identify_armature,
    signs_of,
    winding_from_voltage,
)
from youbot_dynamics.identification.thermal._fit import BRUSHED, Heat, identify_heat, refused_heat
from youbot_dynamics.identification.thermal._run import HeatRun
from youbot_dynamics.parameters import is_unknown
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.robot import Robot

MEAN = 0.2  # averaging time [s], ten readings of a 50 Hz driver; V = R i + K w is valid for means too
STEP = 0.5  # time step of the heat model [s], a fraction of the winding's time constant
_GAP = 0.5  # interval without readings above which a mean is unknown [s]
_MISSING = 2.5  # the same in usual intervals, where readings are slower
_SLOW = (
    0.1  # interval between voltages above which the speed at each, not its mean over the interval, belongs to it [s]
)

NOTHING_MEASURED = (
    "neither motor voltages nor motor temperatures: record them on arm_1/motor_voltage and arm_1/motor_temperature, or "
    "as voltage, winding_temperature and housing_temperature of a DynamicJointState, where a robot measures them; a "
    "plain temperature of these states needs --topic motor_temperature=NAME or --topic housing_temperature=NAME"
)


@dataclass(frozen=True, eq=False)
class Electric:
    """Means over b intervals of `MEAN` for n joints; NaN without readings."""

    time: Vector  # (b,) [s]
    voltage: Vector  # (b, n) at the terminals [V]
    current: Vector  # (b, n) [A]
    speed: Vector  # (b, n) of the rotors [rad/s]
    winding: Vector  # (b, n) temperature [degC]; NaN throughout if not measured
    speed_error: Vector  # (b, n) of the speeds, from the interval between readings [rad/s]


@dataclass(frozen=True, eq=False)
class MotorSignals:
    """Motors of n joints of one recording; NaN without readings."""

    electric: Electric | None  # None if no voltage was measured
    heat_time: Vector  # (h,) every `STEP` [s]
    heat_current: Vector  # (h, n) RMS until the next time [A], since heat is proportional to the square
    winding: Vector | None  # (h, n) [degC]; None if not measured
    housing: Vector | None  # (h, n) [degC]; None if not measured
    efforts: EffortScale  # of the efforts, of which the currents are computed

    def run(self, joint: int) -> HeatRun:
        """Heat data of joint number `joint`, from a cold start."""
        winding, housing = (None if table is None else table[:, joint] for table in (self.winding, self.housing))
        return HeatRun(self.heat_time, self.heat_current[:, joint], winding, housing)


def recorded_motors(recording: Recording, robot: Robot, chosen: Mapping[str, str]) -> MotorSignals:
    """Motors of a bag: i = effort / (Kt N), w = N d(position)/dt, and measured voltages and temperatures.

    Efforts are currents times the torque constant in the driver's configuration, which is that of the robot. `chosen`
    is role -> topic, given by the user.

    Raises:
        RecordingError: no states or efforts of the arm, or neither voltages nor temperatures.
        IdentificationError: stamps that decrease.
    """
    roles = ("motor_voltage", "motor_temperature", "housing_temperature")
    joints = robot.driver.arm_joints
    read = [motor_readings(recording, role, joints, chosen) for role in roles]
    if not any(read):
        raise RecordingError(f"{recording.path}", got=NOTHING_MEASURED)
    signals = recorded_arm(recording, robot, chosen).signals
    if len(signals.time) < 2:
        raise RecordingError(f"{recording.path}", got=NO_EFFORT.text)
    motors = [joint.motor for joint in robot.arm.joints]
    gears = np.array([motor.gear_ratio for motor in motors])
    at_joint = np.array([motor.torque_constant for motor in motors]) * gears
    if np.all(np.isnan(at_joint)):
        got = "no torque constant and gear ratio of any motor"
        remedy = "give both in a robot file, as for one motor on a bench in docs/new_robot.md"
        raise RecordingError(f"motors of robot '{robot.robot_id}'", got=got, expected="both", remedy=remedy)
    current = signals.torque / at_joint
    time = signals.time
    voltage, winding, housing = (one and one[1:] for one in read)
    steps = np.arange(time[0], time[-1], STEP)
    edges = np.append(steps, steps[-1] + STEP)
    heat_current = _filled(np.sqrt(_means(edges, time, current**2)))
    warm, around = (None if table is None else _means(edges - 0.5 * STEP, *table) for table in (winding, housing))
    electric = None
    if voltage is not None:
        electric = _electric(voltage, time, gears * signals.position, current, winding)
    return MotorSignals(electric, steps, heat_current, warm, around, recorded_effort_scale(signals, robot))


def _electric(
    voltage: tuple[Vector, Vector], time: Vector, angle: Vector, current: Vector, winding: tuple[Vector, Vector] | None
) -> Electric:
    """Short-time means of current and speed at the times of the voltages; a time offset of 10 ms would change R by 1 %.

    Voltages and temperatures are pairs of times (v,) and values (v, n); rotor angles and currents are (s, n) at the
    times (s,) of the joint states.
    """
    times, first = np.unique(voltage[0], return_index=True)  # two publishers may send every reading twice
    volts = voltage[1][first]
    # Speeds from the angles at the middles between voltages, so that their mean covers the whole time without gaps.
    interval, step = usual_step(times, 2.0 * MEAN), usual_step(time)
    # Of slow readings the speed at each voltage by differences of fourth order; those of second order are 7 % too small
    # where a joint turns back within eight readings.
    half = max(step, 0.5 * _SLOW) if interval > _SLOW else 0.5 * interval
    reach = (2.0 if interval > _SLOW else 1.0) * half
    covered = _without_gap(times - reach, time) & _without_gap(times + reach, time)
    times, volts = times[covered], volts[covered]

    def speed_over(side: float) -> Vector:
        return (_interpolated(times + side, time, angle) - _interpolated(times - side, time, angle)) / (2.0 * side)

    speed = speed_over(half)
    error = (speed - speed_over(reach)) / 3.0
    temperature = np.full(volts.shape, np.nan) if winding is None else _interpolated(times, *winding)
    table = np.hstack([volts, _interpolated(times, time, current), speed + error, temperature, error, times[:, None]])
    edges = times[0] + MEAN * np.arange(int((times[-1] - times[0]) / MEAN) + 2) if len(times) else np.zeros(1)
    means = _means(edges, times, table)
    means = means[np.isfinite(means[:, -1])]
    n = volts.shape[1]
    return Electric(means[:, -1], *(means[:, k * n : (k + 1) * n] for k in range(5)))


def _means(edges: Vector, time: Vector, values: Vector) -> Vector:
    """Means (b, n) of values (m, n) at times (m,) between edges (b + 1,); NaN without values."""
    index = np.searchsorted(edges, time, side="right") - 1
    inside = (index >= 0) & (index < len(edges) - 1)
    means = np.empty((len(edges) - 1, values.shape[1]))
    for k, column in enumerate(values.T):
        valid = inside & np.isfinite(column)
        counts = np.bincount(index[valid], minlength=len(means))
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, k] = np.bincount(index[valid], column[valid], minlength=len(means)) / counts
    return means


def _without_gap(moments: Vector, time: Vector) -> NDArray[np.bool_]:
    """Flags (b,) of `moments` (b,) between two times of `time` (m,) without a gap."""
    after = np.clip(np.searchsorted(time, moments), 1, len(time) - 1)
    inside = (moments >= time[0]) & (moments <= time[-1])
    longest = max(_GAP, _MISSING * usual_step(time))
    return np.asarray(inside & (time[after] - time[after - 1] < longest))


def _interpolated(moments: Vector, time: Vector, values: Vector) -> Vector:
    """Values (b, n) interpolated at `moments` (b,), since temperatures change slowly."""
    interpolated = np.full((len(moments), values.shape[1]), np.nan)
    for k, column in enumerate(values.T):
        valid = np.isfinite(column)
        if np.any(valid):
            interpolated[:, k] = np.interp(moments, time[valid], column[valid])
    return interpolated


def _filled(table: Vector) -> Vector:
    """Table (h, n) with missing values replaced by the last value; 0 before the first."""
    filled = table.copy()
    for column in filled.T:
        known = np.isfinite(column)
        last = np.maximum.accumulate(np.where(known, np.arange(len(column)), -1))
        column[:] = np.where(last >= 0, column[np.maximum(last, 0)], 0.0)
    return filled


STAGE = "thermal"
_QUIET: dict[str, Any] = {"told": ("heat of the motor of {joint}",), "quiet": True}
FINDINGS = Table(
    Row("robot.arm.{joint}.motor.resistance", "Ohm", "winding resistance of {joint}", told=("{joint}", "resistance")),
    Row(
        "robot.arm.{joint}.motor.torque_constant",
        "N m/A",
        "torque constant of {joint}",
        told=("{joint}", "torque constant"),
    ),
    Row(
        "robot.arm.{joint}.motor.winding_housing_resistance",
        "K/W",
        "thermal resistance, winding to housing, {joint}",
        **_QUIET,
    ),
    Row(
        "robot.arm.{joint}.motor.housing_ambient_resistance",
        "K/W",
        "thermal resistance, housing to air, {joint}",
        **_QUIET,
    ),
    Row("robot.arm.{joint}.motor.winding_time_constant", "s", "time constant of the winding of {joint}", **_QUIET),
    Row("robot.arm.{joint}.motor.housing_time_constant", "s", "time constant of the housing of {joint}", **_QUIET),
    Row("arm.{joint}.motor.heating", "K/(A2 s)", "heating of the winding of {joint}"),
    Row("arm.{joint}.motor.capacity_ratio", "1", "ratio of the heat capacities of {joint}"),
    Row("arm.{joint}.motor.winding_capacity", "J/K", "heat capacity of the winding of {joint}"),
    Row("arm.{joint}.motor.housing_capacity", "J/K", "heat capacity of the housing of {joint}"),
)
_COLD_ERROR = 0.02  # relative error of a cold resistance from the first windows
_UNMEASURED_ERROR = 0.05  # relative error of a resistance at an unknown winding temperature, equal to 12 K
_AIR_RANGE = 5.0  # largest difference of an unknown air temperature from the reference [K]
# [degC] motors at the start of a recording, and the air, as cold as the coldest of them: 20 degC are 293 K or 68 F
_COLDEST, _HOTTEST, _WARMEST_AIR = -50.0, 200.0, 60.0
_WARM_START = 5.0  # [K] above the coldest recording, above which the housing temperature is unknown
_RECORDING_GAP = 10.0  # gap inserted between two recordings [s]
_ONLY_RATIOS = (
    "thermal resistances and capacities need the resistance of the winding, from its voltage; current and "
    "temperature alone give four ratios: heating, two time constants and the ratio of the capacities"
)
_TORQUE_CONSTANT_NOTE = (
    "the torque constants are identified from the back-EMF; the driver computes its efforts with the constants of its "
    "own configuration: change both together, otherwise the currents are wrong"
)


def extract(opened: Opened, robot: Robot) -> MotorSignals:
    """Motors of one recording.

    Raises:
        RecordingError: no states of the arm with efforts, or neither voltages nor temperatures.
    """
    return recorded_motors(opened.bag(), robot, opened.options.topics)


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Motors of all recordings, joint by joint."""
    parts: list[MotorSignals] = [recording.part for recording in taken]
    measured = any(part.electric is not None for part in parts)
    unmeasured = any(part.winding is None for part in parts if part.electric is not None)
    coefficient = robot.arm.temperature_coefficient
    warm = any(part.winding is not None or part.housing is not None for part in parts)
    initial = [_initial_temperature(part) for part in parts]
    ambient = _air(initial)
    findings, fits, notes, cold = list[Finding](), list[FitCurve](), list[str](), list[MotorSignals]()
    for recording, temperature in zip(taken, initial, strict=True):
        if temperature - ambient > _WARM_START:
            difference = f"its motors were {temperature - ambient:.0f} K warmer than in the coldest recording"
            notes.append(f"{recording.name} left out of the thermal model: {difference}")
        else:
            cold.append(recording.part)
    called = joint_words(robot.driver.arm_joints)
    for k, joint in enumerate(robot.arm.joints):
        name = f"joint_{k + 1}"
        armature = _armature(parts, k, robot)
        at_ambient = 1.0 + coefficient * (ambient - robot.arm.reference_temperature) if math.isfinite(ambient) else 1.0
        winding = armature.resistance
        resistance = (winding.value * at_ambient, winding.standard_error * at_ambient) if winding.identified else None
        runs = [part.run(k) for part in cold]
        if unmeasured and winding.identified:
            back_emf, resistance = _back_emf(armature.constant), None
            if back_emf is not None:
                resistance_runs, resistance = _runs_from_resistance(
                    cold, k, back_emf, armature.brushes, coefficient / at_ambient
                )
                runs = runs if warm else resistance_runs
            air_error = 0.0 if math.isfinite(ambient) else coefficient * _AIR_RANGE
            winding = _at_reference(winding, resistance, at_ambient, air_error)
            armature = replace(armature, resistance=winding)
        rows, explained = 0 if armature.fit is None else armature.fit.rows, {"explained": armature.explained}
        constant = replace(armature.constant, name="torque_constant", unit="N m/A")  # the same as V s/rad
        for estimate in (armature.resistance, constant):
            findings.append(Finding(FINDINGS.row(estimate.name, name), estimate, rows, "", explained))
        if unmeasured and not warm and armature.brushes[0] > 0.0:
            heat = refused_heat(BRUSHED, coefficient / at_ambient)
        else:
            heat = identify_heat(runs, coefficient=coefficient / at_ambient, resistance=resistance)
        for estimate in (*heat.ratios, *heat.constants):
            details = {"residual": heat.residual}
            findings.append(Finding(FINDINGS.row(estimate.name, name), estimate, details=details))
        if heat.disagreeing:
            notes.append(f"{called[name]}: parts of the recordings disagree about {', '.join(heat.disagreeing)}")
        fits += _curves(runs, called[name], heat)
        if winding.identified and not is_unknown(joint.motor.resistance):
            change = winding.value / joint.motor.resistance - 1.0
            notes.append(
                f"{called[name]}: winding {winding.value:.3g} Ohm, {100.0 * change:+.0f} % relative to the data sheet"
            )
    for part in parts:
        findings = part.efforts.judged(findings)
    if measured:
        notes.append(_TORQUE_CONSTANT_NOTE)
        if unmeasured:
            notes.append("winding temperatures were not recorded: resistances are those of the cold start")
    if warm and not measured:
        notes.append(_ONLY_RATIOS)
    if measured and not warm:
        notes.append("winding temperatures are computed from their resistance, relative to a cold start")
    air = f", at {ambient:.0f} degC" if warm else ""
    notes.append(f"the motors are assumed to start at air temperature{air}: let them cool before a recording")
    return StageResult(STAGE, tuple(findings), fits=tuple(fits), notes=tuple(notes))


def _air(initial: Sequence[float]) -> float:
    """Temperature of the air [degC], that of the coldest motors at the start of a recording; NaN if unknown.

    Raises:
        IdentificationError: temperatures that are not degrees Celsius.
    """
    known = [temperature for temperature in initial if math.isfinite(temperature)]
    ambient = min(known, default=math.nan)
    impossible = [temperature for temperature in known if not _COLDEST <= temperature <= _HOTTEST]
    impossible += [ambient] if ambient > _WARMEST_AIR else []
    if impossible:
        raise IdentificationError(
            "motor temperatures",
            got=f"{impossible[0]:.4g} at the start",
            expected=f"degrees Celsius, {_COLDEST:g} to {_WARMEST_AIR:g} of motors as cold as the air",
            remedy="convert them if they are in kelvin or degrees Fahrenheit; otherwise let the motors cool first",
        )
    return ambient


def _armature(parts: Sequence[MotorSignals], k: int, robot: Robot) -> Armature:
    """V = R (1 + a (T - T_ref)) i + K w of one joint over all recordings, with measured T, or T_ref if not measured."""
    rows: list[Vector] = []
    start = 0.0
    for part in parts:
        electric = part.electric
        if electric is None or not len(electric.time):
            continue
        rise = np.nan_to_num(electric.winding[:, k] - robot.arm.reference_temperature)
        current = electric.current[:, k] * (1.0 + robot.arm.temperature_coefficient * rise)
        time = electric.time - electric.time[0] + start
        speeds = electric.speed[:, k], electric.speed_error[:, k]
        table = np.column_stack([time, electric.voltage[:, k], current, *speeds])
        rows.append(table[np.all(np.isfinite(table), axis=1)])
        start = float(time[-1]) + _RECORDING_GAP
    if not rows or not sum(len(table) for table in rows):
        return identify_armature([], None, [], [])
    time, voltage, current, speed, error = np.concatenate(rows).T
    return identify_armature(time, voltage, current, speed, mean=0.5 * MEAN, speed_error=error)


def _back_emf(constant: Estimate) -> float | None:
    """K [V s/rad] by which a voltage is corrected: any for a motor that never turned, None if it is unknown."""
    if constant.identified:
        return constant.value
    return 0.0 if constant.reason is not None and constant.reason.kind is Kind.NOT_EXCITED else None


def _runs_from_resistance(
    parts: Sequence[MotorSignals], k: int, constant: float, brushes: tuple[float, float], coefficient: float
) -> tuple[list[HeatRun], tuple[float, float] | None]:
    """Heat data of one joint whose winding temperature comes only from its resistance, and its cold resistance.

    The voltage of brushes and its error [V] are no part of it.
    """
    runs, colds = list[HeatRun](), list[tuple[float, float]]()
    for part in parts:
        electric = part.electric
        if electric is None:
            continue
        table = np.column_stack([electric.time, electric.voltage[:, k], electric.current[:, k], electric.speed[:, k]])
        sound = table[np.all(np.isfinite(table), axis=1)]
        time, voltage, current, speed = sound.T
        at_winding = voltage - brushes[0] * signs_of(current)
        times, rises, cold = winding_from_voltage(time, at_winding, current, speed, constant, coefficient)
        winding = np.full(len(part.heat_time), np.nan)
        index = np.searchsorted(part.heat_time, times)
        inside = index < len(winding)
        winding[index[inside]] = rises[inside]
        runs.append(HeatRun(part.heat_time, part.heat_current[:, k], winding))
        if cold is not None:
            colds.append((cold[0], math.hypot(cold[1], brushes[1] / max(rms(current), 1e-9))))
    if not colds:
        return runs, None
    coldest, error = min(colds)  # another recording may begin warm
    return runs, (coldest, math.hypot(_COLD_ERROR * coldest, error))


def _at_reference(fitted: Estimate, cold: tuple[float, float] | None, at_ambient: float, air: float) -> Estimate:
    """Resistance at the reference temperature of a winding whose temperature was not measured.

    `fitted`, from the fit over a whole recording, is the resistance at the mean temperature, 10 % or more above the
    cold resistance. `cold` is the resistance and its error [Ohm] at the start, at air temperature, None if unknown. It
    is `at_ambient` times the resistance at the reference temperature, with a relative error `air`.
    """
    value, error = fitted.value, math.hypot(fitted.standard_error, _UNMEASURED_ERROR * fitted.value)
    if cold is not None:
        value, error = cold[0] / at_ambient, cold[1] / at_ambient
    error = math.hypot(error, air * value)
    return judge(Unknown(fitted.name, fitted.unit, low=0.0), value, error, NORMAL * error)


def _initial_temperature(part: MotorSignals) -> float:
    """Median of the initial temperatures of the motors of a recording [degC]; NaN if there are none."""
    firsts = [part.run(k).first() for k in range(part.heat_current.shape[1])]
    known = [first for first in firsts if math.isfinite(first)]
    return float(np.median(known)) if known else math.nan


def _curves(runs: Sequence[HeatRun], joint: str, heat: Heat) -> list[FitCurve]:
    """Temperature of one joint in the longest recording, measured and modelled."""
    if not runs or not np.all(np.isfinite(heat.values)):
        return []
    run = max(runs, key=lambda candidate: len(candidate.time))
    model = run.rises(heat.values, heat.coefficient)
    curves = []
    for column_number, (what, column) in enumerate((("winding", run.winding), ("housing", run.housing))):
        if column is None:
            continue
        read = np.flatnonzero(np.isfinite(column))
        if len(read) < 2:
            continue
        measured = column[read]
        # The start temperature is known only up to the constant of the fit.
        modelled = model[read, column_number] + float(np.mean(measured - model[read, column_number]))
        curves.append(
            FitCurve(
                title=f"Motor of {joint}, {what}",
                quantity="temperature",
                unit="degC",
                time=run.time[read] - run.time[0],
                measured=measured,
                modelled=modelled,
                modelled_is="two-node model, heated by the current",
                caption=f"Root mean square of the residuals: {heat.residual:.2f} K.",
            )
        )
    return curves
