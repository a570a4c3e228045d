"""Temperatures of the arm's motors over a log, with voltages and sensors where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.arm_ekf import ArmTrack
from youbot_dynamics.estimation.arm_log import ArmLog, MotorReadings
from youbot_dynamics.estimation.arm_temperatures import PERIOD, ArmTemperatures

_LONGEST_GAP = 1.0  # [s] between stamps; what is longer is a jump of the clock, and the receive times tell how long
_SAME_TIME = 0.01  # [s] by which stamps of a voltage and an effort may differ
_BETWEEN_LIMITS = 10  # steps: what a motor can still do costs far more than its temperature


@dataclass(frozen=True, eq=False)
class HeatTrack:
    """Temperatures at h times, and at l of them what the motors can still do.

    Args:
        time: (h,) stamps [s].
        winding: (h, 5) [degC].
        winding_deviation: (h, 5) [K].
        housing: (h, 5) [degC].
        housing_deviation: (h, 5) [K].
        limit_time: (l,) stamps [s].
        seconds: (l, 5) until the winding reaches its limit at the load of the last 10 s; infinite where never.
        torque: (l, 5) largest that can be held [N m].
        counts: what became of voltages and sensors.
    """

    time: Vector
    winding: Vector
    winding_deviation: Vector
    housing: Vector
    housing_deviation: Vector
    limit_time: Vector
    seconds: Vector
    torque: Vector
    counts: Mapping[str, int]


def replay_heat(log: ArmLog, track: ArmTrack, heat: ArmTemperatures, hold_time: float, deviations: float) -> HeatTrack:
    """Follow the heat; messages whose stamps are out of order count for nothing.

    Args:
        log: of the arm.
        track: of its joints, t messages as the log's (t,).
        heat: of the motors at the begin, changed.
        hold_time: see `ArmTemperatures.limits`.
        deviations: see `ArmTemperatures.limits`.
    """
    rows = np.flatnonzero(track.taken)
    stamp, effort = log.stamp[rows], log.effort[rows]
    elapsed = passed(stamp, log.received[rows])
    passing = np.cumsum(elapsed)
    volts, unpaired = paired(log.voltage, stamp)
    sensors = log.temperature
    next_volt, next_sensor = 0, 0
    records, told = [_record(float(stamp[0]), heat)] if len(rows) else [], []
    limits = [heat.limits(hold_time, deviations)]
    times = [float(stamp[0])] if len(rows) else [float(log.stamp[0])]
    begun, first = 0.0, 0
    while first < len(rows):
        # Up to the message that fills the period; where rounding lets it miss by a hair, one more at a time.
        end = max(int(np.searchsorted(passing, begun + PERIOD)), first) + 1
        while next_volt < len(volts) and volts[next_volt][0] < end:
            row, volt = volts[next_volt]
            heat.add_voltage(volt, effort[row], track.speed[rows[row]])
            next_volt += 1
        taken, stepped = heat.follow(elapsed[first:end], effort[first:end])
        first += taken
        if not stepped:
            continue
        now = float(stamp[first - 1])
        begun = float(passing[first - 1])
        while sensors is not None and next_sensor < len(sensors.stamp) and sensors.stamp[next_sensor] <= now:
            heat.add_temperature(sensors.value[next_sensor])
            next_sensor += 1
        records.append(_record(now, heat))
        told.append(now)
        if len(told) % _BETWEEN_LIMITS == 0:
            limits.append(heat.limits(hold_time, deviations))
            times.append(now)
    if len(told) % _BETWEEN_LIMITS:
        limits.append(heat.limits(hold_time, deviations))
        times.append(told[-1])
    if not records:
        records.append(_record(times[0], heat))
    table = np.array(records)
    counts = {**heat.counts, "voltages without an effort": unpaired}
    return HeatTrack(
        table[:, 0, 0],
        table[:, 1],
        table[:, 2],
        table[:, 3],
        table[:, 4],
        np.array(times),
        np.array([[one.seconds for one in motors] for motors in limits]),
        np.array([[one.torque for one in motors] for motors in limits]),
        counts,
    )


def passed(stamp: Vector, received: Vector) -> Vector:
    """Times (t,) since the message before [s]: by stamps (t,), and where those jump by receive times (t,); 0 first."""
    by_stamp, by_arrival = np.diff(stamp, prepend=stamp[:1]), np.diff(received, prepend=received[:1])
    return np.where((by_stamp > 0.0) & (by_stamp <= _LONGEST_GAP), by_stamp, np.maximum(by_arrival, 0.0))


def paired(voltage: MotorReadings | None, stamp: Vector) -> tuple[list[tuple[int, Vector]], int]:
    """Voltages with the message (t,) of the same time each: (message, volts), and how many have none."""
    if voltage is None or not len(stamp):
        return [], 0
    order = np.argsort(stamp, kind="stable")
    times = stamp[order]
    after = np.minimum(np.searchsorted(times, voltage.stamp), len(stamp) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(times[after] - voltage.stamp) < np.abs(times[before] - voltage.stamp), after, before)
    near = np.abs(times[nearest] - voltage.stamp) <= _SAME_TIME
    found = [(int(order[row]), volts) for row, volts in zip(nearest[near], voltage.value[near], strict=True)]
    return sorted(found, key=lambda pair: pair[0]), int(np.count_nonzero(~near))


def _record(stamp: float, heat: ArmTemperatures) -> list[list[float]]:
    beliefs = heat.state
    return [
        [stamp] * len(beliefs),
        [belief.winding for belief in beliefs],
        [belief.winding_deviation for belief in beliefs],
        [belief.housing for belief in beliefs],
        [belief.housing_deviation for belief in beliefs],
    ]
