"""Read currents, speeds, voltages and temperatures of the arm's motors from a recording, as short-time means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading import find_topic, times_of
from youbot_dynamics.identification.signals import NO_EFFORT, recorded_arm
from youbot_dynamics.identification.thermal._fit import HeatRun
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.robot import Robot

MEAN = 0.2  # averaging time [s], ten readings of a 50 Hz driver; V = R i + K w is valid for means too
STEP = 0.5  # time step of the heat model [s], a fraction of the winding's time constant
_GAP = 0.5  # interval without readings above which a mean is unknown [s]

NOTHING_MEASURED = (
    "neither motor voltages nor motor temperatures: the youBot reports none; record them on "
    "arm_1/motor_voltage and arm_1/motor_temperature where a robot measures them"
)


@dataclass(frozen=True, eq=False)
class Electric:
    """Means over b intervals of `MEAN` for n joints; NaN without readings."""

    time: Vector  # (b,) [s]
    voltage: Vector  # (b, n) at the terminals [V]
    current: Vector  # (b, n) [A]
    speed: Vector  # (b, n) of the rotors [rad/s]
    winding: Vector  # (b, n) temperature [degC]; NaN throughout if not measured


@dataclass(frozen=True, eq=False)
class MotorSignals:
    """Motors of n joints of one recording; NaN without readings."""

    electric: Electric | None  # None if no voltage was measured
    heat_time: Vector  # (h,) every `STEP` [s]
    heat_current: Vector  # (h, n) RMS until the next time [A], since heat is proportional to the square
    winding: Vector | None  # (h, n) [degC]; None if not measured
    housing: Vector | None  # (h, n) [degC]; None if not measured

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
    topics = [find_topic(recording, role, chosen) for role in roles]
    if not any(topics):
        raise RecordingError(f"{recording.path}", got=NOTHING_MEASURED)
    signals = recorded_arm(recording, robot, chosen).signals
    if len(signals.time) < 2:
        raise RecordingError(f"{recording.path}", got=NO_EFFORT)
    motors = [joint.motor for joint in robot.arm.joints]
    gears = np.array([motor.gear_ratio for motor in motors])
    current = signals.torque / (np.array([motor.torque_constant for motor in motors]) * gears)
    time = signals.time
    voltage, winding, housing = (_read(recording, topic, robot.driver.arm_joints) for topic in topics)
    steps = np.arange(time[0], time[-1], STEP)
    edges = np.append(steps, steps[-1] + STEP)
    heat_current = _filled(np.sqrt(_means(edges, time, current**2)))
    warm = [None if one is None else _means(edges - 0.5 * STEP, *one) for one in (winding, housing)]
    electric = None
    if voltage is not None:
        electric = _electric(voltage, time, gears * signals.position, current, winding)
    return MotorSignals(electric, steps, heat_current, *warm)


def _electric(
    voltage: tuple[Vector, Vector], time: Vector, angle: Vector, current: Vector, winding: tuple[Vector, Vector] | None
) -> Electric:
    """Short-time means of current and speed at the times of the voltages; a time offset of 10 ms would change R by 1 %.

    Voltages and temperatures are pairs of times (v,) and values (v, n); rotor angles and currents are (s, n) at the
    times (s,) of the joint states.
    """
    at, volts = voltage
    # Speeds from the angles at the middles between voltages, so that their mean covers the whole time without gaps.
    around = 0.5 * float(np.median(np.diff(at))) if len(at) > 1 else MEAN
    known = _near(at - around, time) & _near(at + around, time)
    at, volts = at[known], volts[known]
    turned = _interpolated(at + around, time, angle) - _interpolated(at - around, time, angle)
    warmth = np.full(volts.shape, np.nan) if winding is None else _interpolated(at, *winding)
    together = np.hstack([volts, _interpolated(at, time, current), turned / (2.0 * around), warmth, at[:, None]])
    edges = at[0] + MEAN * np.arange(int((at[-1] - at[0]) / MEAN) + 2) if len(at) else np.zeros(1)
    means = _means(edges, at, together)
    means = means[np.isfinite(means[:, -1])]
    n = volts.shape[1]
    return Electric(means[:, -1], *(means[:, k * n : (k + 1) * n] for k in range(4)))


def _read(recording: Recording, topic: str | None, joints: tuple[str, ...]) -> tuple[Vector, Vector] | None:
    """Times (m,) [s] and values (m, n) of a topic with the values in its effort field; None without one."""
    if topic is None:
        return None
    states = recording.joint_states(topic, joints)
    return times_of(states), states.effort


def _means(edges: Vector, time: Vector, values: Vector) -> Vector:
    """Means (b, n) of values (m, n) at times (m,) between edges (b + 1,); NaN without values."""
    place = np.searchsorted(edges, time, side="right") - 1
    inside = (place >= 0) & (place < len(edges) - 1)
    out = np.empty((len(edges) - 1, values.shape[1]))
    for k, column in enumerate(values.T):
        use = inside & np.isfinite(column)
        counts = np.bincount(place[use], minlength=len(out))
        with np.errstate(invalid="ignore", divide="ignore"):
            out[:, k] = np.bincount(place[use], column[use], minlength=len(out)) / counts
    return out


def _near(moments: Vector, time: Vector) -> NDArray[np.bool_]:
    """Whether each of `moments` (b,) lies between two times of `time` (m,) without a gap."""
    after = np.clip(np.searchsorted(time, moments), 1, len(time) - 1)
    inside = (moments >= time[0]) & (moments <= time[-1])
    near: NDArray[np.bool_] = inside & (time[after] - time[after - 1] < _GAP)
    return near


def _interpolated(moments: Vector, time: Vector, values: Vector) -> Vector:
    """Values (b, n) interpolated at `moments` (b,), since temperatures change slowly."""
    out = np.full((len(moments), values.shape[1]), np.nan)
    for k, column in enumerate(values.T):
        use = np.isfinite(column)
        if np.any(use):
            out[:, k] = np.interp(moments, time[use], column[use])
    return out


def _filled(table: Vector) -> Vector:
    """Table (h, n) with missing values replaced by the last value; 0 before the first."""
    out = table.copy()
    for column in out.T:
        known = np.isfinite(column)
        last = np.maximum.accumulate(np.where(known, np.arange(len(column)), -1))
        column[:] = np.where(last >= 0, column[np.maximum(last, 0)], 0.0)
    return out
