"""The arm's estimators on a whole log, without ROS: states, friction, temperatures, and checks of their consistency."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector, smallest_change
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation import arm_health as intake
from youbot_dynamics.estimation.arm_ekf import ArmBelief, ArmEkf, ArmTrack
from youbot_dynamics.estimation.arm_estimator import LOST, SAME_TIME, ArmEstimator, elapsed
from youbot_dynamics.estimation.arm_health import ERROR, VOLTAGES_OFF_CLOCK, Finding, JointReading
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.motor_heat import PERIOD, HeatBelief
from youbot_dynamics.robot import Robot


@dataclass(frozen=True, eq=False)
class MotorReadings:
    """Measurements of the motors other than efforts."""

    stamp: Vector  # (m,) [s]
    value: Vector  # (m, n) [V or degC], NaN where missing


@dataclass(frozen=True, eq=False)
class ArmLog:
    """t messages of an arm of n joints; NaN for missing values.

    Raises:
        InputError: shapes that do not match, or no messages.
    """

    joints: tuple[str, ...]  # names (n,)
    stamp: Vector  # (t,) [s]
    received: Vector  # (t,) [s]; equal to the stamps if unknown
    position: Vector  # (t, n) [rad]
    velocity: Vector  # (t, n) as reported by the driver [rad/s]
    effort: Vector  # (t, n) [N m]
    voltage: MotorReadings | None = None  # of the motors, None if not measured
    temperature: MotorReadings | None = None  # of the motors, None if not measured
    # Messages that were not read: reason -> number of messages
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the shapes."""
        t, n = len(self.stamp), len(self.joints)
        if t == 0:
            raise InputError("log of the arm", got="no messages", expected="at least one")
        for name, shape in (("received", (t,)), ("position", (t, n)), ("velocity", (t, n)), ("effort", (t, n))):
            if getattr(self, name).shape != shape:
                raise InputError(f"log of the arm, {name}", got=f"{getattr(self, name).shape}", expected=f"{shape}")

    @property
    def counts(self) -> Mapping[str, int]:
        """Messages that were not read, and messages without a number in their positions or efforts."""
        no_effort = ~np.isfinite(self.effort)
        flagged = {
            intake.NO_EFFORT: no_effort.all(axis=1),
            intake.NAN_EFFORT: no_effort.any(axis=1) & ~no_effort.all(axis=1),
            intake.NAN_POSITION: ~np.isfinite(self.position).all(axis=1),
        }
        return {**self.left_out, **{name: int(rows.sum()) for name, rows in flagged.items()}}


# Changes of readings are those of steps if this share of so many at least is so near, in steps, to a multiple of the
# smallest; those of larger multiples show nothing.
_ALL_BUT, _FEWEST_CHANGES, _NEAR_MULTIPLE, _MOST_MULTIPLE = 0.9, 50, 0.1, 20.0
_BETWEEN_LIMITS = 10  # steps: the limits cost far more computation than the temperature


@dataclass(frozen=True, eq=False)
class HeatTrack:
    """Temperatures at h times, and the remaining capability of the motors at l of them."""

    time: Vector  # (h,) stamps [s]
    winding: Vector  # (h, n) [degC]
    winding_deviation: Vector  # (h, n) [K]
    housing: Vector  # (h, n) [degC]
    housing_deviation: Vector  # (h, n) [K]
    limit_time: Vector  # (l,) stamps [s]
    seconds: Vector  # (l, n) until the winding reaches its limit at the load of the last 10 s; infinite if never
    torque: Vector  # (l, n) largest permissible torque [N m]
    counts: Mapping[str, int]  # numbers of voltages and sensor readings by outcome


def _replay_heat(log: ArmLog, track: ArmTrack, estimator: ArmEstimator) -> HeatTrack:
    """Run the heat filters, which are changed; of the log's t messages those with stamps out of order are ignored."""
    heat, rows = estimator.temperatures, np.flatnonzero(track.taken)
    stamp, received, effort = log.stamp[rows], log.received[rows], log.effort[rows]
    passed = elapsed(np.diff(stamp, prepend=stamp[:1]), np.diff(received, prepend=received[:1]))
    passing = np.cumsum(passed)
    pairs, unpaired, off_clock = _paired(log.voltage, stamp)
    volts, sensors = deque(pairs), deque[tuple[float, Vector]]()
    if log.temperature is not None:
        sensors.extend(zip(log.temperature.stamp.tolist(), log.temperature.value, strict=True))
    start = float(stamp[0]) if len(rows) else float(log.stamp[0])
    times, records = [start], [estimator.temperature_rows()]
    limit_times, limits = [start], [estimator.limits_now()]
    begun, first = 0.0, 0
    while first < len(rows):
        # Up to the message that fills the period; if rounding misses it, one more message at a time.
        end = max(int(np.searchsorted(passing, begun + PERIOD)), first) + 1
        while volts and volts[0][0] < end:
            row, volt = volts.popleft()
            heat.add_voltage(volt, effort[row], track.speed[rows[row]])
        taken, stepped = heat.follow(passed[first:end], effort[first:end])
        first += taken
        if not stepped:
            continue
        now, begun = float(stamp[first - 1]), float(passing[first - 1])
        while sensors and sensors[0][0] <= now:
            heat.add_temperature(sensors.popleft()[1])
        times.append(now)
        records.append(estimator.temperature_rows())
        if (len(times) - 1) % _BETWEEN_LIMITS == 0:
            limit_times.append(now)
            limits.append(estimator.limits_now())
    if (len(times) - 1) % _BETWEEN_LIMITS:
        limit_times.append(times[-1])
        limits.append(estimator.limits_now())
    counts = {**heat.counts, "voltages without an effort": unpaired, VOLTAGES_OFF_CLOCK: off_clock}
    left = np.array([[(motor.seconds, motor.torque) for motor in motors] for motors in limits])
    of = np.moveaxis(np.array(records), 2, 0)  # windings and housings, each with its deviations
    at = np.array(limit_times)
    return HeatTrack(np.array(times), of[0], of[1], of[2], of[3], at, left[..., 0], left[..., 1], counts)


def _paired(voltage: MotorReadings | None, stamp: Vector) -> tuple[list[tuple[int, Vector]], int, int]:
    """Voltages with the message (t,) of the same time: (message, volts).

    Also the numbers of voltages without one, and of those after `LOST` in a row.
    """
    if voltage is None or not len(stamp):
        return [], 0, 0
    order = np.argsort(stamp, kind="stable")
    nearest = order[np.searchsorted(0.5 * (stamp[order][1:] + stamp[order][:-1]), voltage.stamp)]
    near = np.abs(stamp[nearest] - voltage.stamp) <= SAME_TIME
    pairs = zip(nearest[near].tolist(), voltage.value[near], strict=True)
    places = np.arange(len(near))
    in_row = places - np.maximum.accumulate(np.where(near, places, -1))
    alone, off_clock = (int(np.count_nonzero(in_row > fewest)) for fewest in (0, LOST))
    return sorted(pairs, key=lambda pair: pair[0]), alone, off_clock


_CHECKS_RATE = 50.0  # [Hz] at which messages are checked: that of the driver, for which the thresholds are set
_LOOK = 1.0  # [s] between checks for findings
_OF_SIGNS = ("sign trap", "effort sign")


def _findings_of_log(
    log: ArmLog, track: ArmTrack, heat: HeatTrack, estimator: ArmEstimator, counts: Mapping[str, int]
) -> tuple[Finding, ...]:
    """All findings of the live node, the worst first; `counts` are numbers of messages and readings by outcome."""
    health = estimator.health
    findings: dict[str, Finding] = {}
    last_heard = last_look = -np.inf
    for row in np.flatnonzero(track.taken & np.isfinite(track.speed).all(axis=1)).tolist():
        now = float(log.received[row])
        if 0.0 <= now - last_heard < 1.0 / _CHECKS_RATE - 1e-9:
            continue
        last_heard = now
        stamp = float(log.stamp[row])
        health.hear(JointReading(stamp, log.position[row], log.velocity[row], log.effort[row]), now, now)
        effort = np.where(np.isfinite(log.effort[row]), log.effort[row], 0.0)
        health.compare(effort, track.torque_error[row], track.speed[row])
        if not 0.0 <= now - last_look < _LOOK:
            last_look = now
            load = estimator.arm.tree.gravity_forces(track.position[row])
            findings |= {finding.name: finding for finding in health.findings(now, load, {})}
    if np.isfinite(last_heard):
        health.count(counts, last_heard)
        latest = health.findings(last_heard, np.full(len(log.joints), np.nan), {})
        # The check of signs is most reliable at the end.
        findings = {name: finding for name, finding in findings.items() if name not in _OF_SIGNS}
        findings |= {finding.name: finding for finding in latest}
    if "effort sign" in findings:
        remedy = "replay the log with those efforts inverted, and invert them in the driver"
        findings["effort sign"] = dataclasses.replace(findings["effort sign"], remedy=remedy)
    found = [*findings.values(), *_of_heat(heat, estimator)]
    return tuple(sorted(found, key=lambda finding: finding.level != ERROR))


def _of_heat(heat: HeatTrack, estimator: ArmEstimator) -> tuple[Finding, ...]:
    """Findings on the motors at their highest temperatures."""
    beliefs, seconds = [], []
    for k, row in enumerate(np.argmax(heat.winding, axis=0).tolist()):
        winding = float(heat.winding[row, k]), float(heat.winding_deviation[row, k])
        housing = float(heat.housing[row, k]), float(heat.housing_deviation[row, k])
        beliefs.append(HeatBelief(float(heat.time[row]), *winding, *housing, math.nan))
        near = int(np.argmin(np.abs(heat.limit_time - heat.time[row])))
        seconds.append(float(heat.seconds[near, k]))
    return estimator.heat_findings(beliefs, seconds)


_LOADS_RATE = 20.0  # [Hz] at which messages are used; payload and wheel loads change more slowly
_EACH = 2  # one of so many results is recorded


@dataclass(frozen=True, eq=False)
class SupportTrack:
    """Payload and wheel loads at s times; the loads are NaN where the arm's URDF has no base."""

    time: Vector  # (s,) stamps [s]
    payload: Vector  # (s,) mass [kg], NaN while its deviation is too large
    payload_centre: Vector  # (s, 3) in the frame of the last link [m]
    normal_forces: Vector  # (s, 4) of FL, FR, RL, RR [N]
    centre_of_mass: Vector  # (s, 3) of the whole robot in base_footprint [m]


def _replay_support(log: ArmLog, track: ArmTrack, estimator: ArmEstimator) -> SupportTrack:
    """Estimate the payload, without prior data, and the wheel loads."""
    rows, last, looked = [], -np.inf, 0
    for row in np.flatnonzero(track.taken & np.isfinite(track.speed).all(axis=1)).tolist():
        stamp = float(log.stamp[row])
        if 0.0 <= stamp - last < 1.0 / _LOADS_RATE - 1e-3:
            continue
        last = stamp
        belief = _belief(stamp, track, row)
        estimator.weigh(belief)
        looked += 1
        if looked % _EACH:
            continue
        payload, support = estimator.payload.state, estimator.support_at(belief)
        loads = np.full(7, np.nan) if support is None else np.r_[support.normal_forces, support.centre_of_mass]
        mass = payload.mass if payload.identifiable else np.nan
        rows.append(np.r_[stamp, mass, payload.centre, loads])
    table = np.array(rows).reshape(-1, 12)
    return SupportTrack(table[:, 0], table[:, 1], table[:, 2:5], table[:, 5:9], table[:, 9:])


def _belief(stamp: float, track: ArmTrack, row: int) -> ArmBelief:
    """Estimate of the filter; only the diagonal of its covariance was stored."""
    variance = track.variance[row]
    estimates = (track.position[row], track.speed[row], track.bristle[row], track.torque_error[row])
    states = estimates if len(variance) == 4 * len(estimates[0]) else (*estimates[:2], estimates[3])
    mean = np.concatenate(states)[: len(variance)]
    return ArmBelief(stamp, mean, np.diag(variance), *estimates, track.friction_torque[row])


_MOST_STOPS = 1000  # largest number of instants with full covariances
_MOVING = 0.02  # [rad/s] below which a joint counts as standing
_WITHIN = 1.959964  # standard deviations of a two-sided 95 % interval


@dataclass(frozen=True, eq=False)
class Deviations:
    """Standard deviations at s instants of a log."""

    row: NDArray[np.int64]  # (s,) indices of their messages
    position: Vector  # (s, n) [rad]
    speed: Vector  # (s, n) [rad/s]
    friction: Vector  # (s, n) [N m]
    bristle: Vector  # (s, n) of the bristles' torque, sigma0 z [N m]; NaN if bristles are not estimated


@dataclass(frozen=True, eq=False)
class JointSummary:
    """Summary of one joint over a log."""

    joint: str  # name
    nis: float  # mean squared innovation over its expected variance; 1 for a consistent filter
    coverage: float  # fraction of the innovations within their 95 % intervals
    refused: int  # number of readings beyond the gate
    speed_difference: float  # RMS of the estimated speed minus the driver's [rad/s], NaN if that is not reported
    friction: float  # RMS of the friction torque while the joint moves [N m], NaN if it never does
    winding: float  # highest temperature of the winding [degC]
    winding_deviation: float  # at that time [K]
    seconds_to_limit: float  # time to the limit at the end of the log, at its load [s]; infinite if it is never reached


@dataclass(frozen=True, eq=False)
class ArmReplay:
    """A filtered log."""

    log: ArmLog  # input of the filters
    track: ArmTrack  # estimates for each message
    bristle_torque: Vector  # (t, n) sigma0 z [N m], the elastic part of the friction
    deviations: Deviations  # of some of the estimates
    heat: HeatTrack  # temperatures
    support: SupportTrack  # payload, and wheel loads of a standing base
    settings: ArmSettings  # of the filters
    summary: tuple[JointSummary, ...]  # one for each joint
    findings: tuple[Finding, ...]  # faults of the messages, and hot motors
    counts: Mapping[str, int]  # numbers of messages and readings by outcome


def replay_arm(
    log: ArmLog, robot: Robot, settings: ArmSettings | None = None, step: Callable[[str], None] | None = None
) -> ArmReplay:
    """Run the filters of node arm_ekf over a log.

    Args:
        log: of an arm. Steps of its positions and velocities that are larger than those of the driver are used.
        robot: parameters of that arm and its driver.
        settings: of the filters; by default those of node arm_ekf.
        step: called with a text at the start of each step.

    Raises:
        InputError: a log of another number of joints than the robot's arm.
    """
    used, report = ArmSettings() if settings is None else settings, (lambda _: None) if step is None else step
    steps = zip(robot.arm_quanta(), (log.position, log.velocity), strict=True)
    position_step, velocity_step = (np.maximum(known, _step_of(readings)) for known, readings in steps)
    estimator = ArmEstimator(robot, used, "the log", (position_step, velocity_step))
    report("filtering the joints")
    stiffness = np.array([friction.sigma0 for friction in estimator.arm.friction])
    track, deviations = _follow(estimator.ekf, log, stiffness)
    report("computing the motor temperatures")
    heat = _replay_heat(log, track, estimator)
    report("estimating the payload")
    support = _replay_support(log, track, estimator)
    report("checking for faults")
    counts = {**estimator.counts_of_filter, **log.counts, **heat.counts}
    findings = _findings_of_log(log, track, heat, estimator, counts)
    summary = tuple(_summary(k, log, track, heat) for k in range(len(log.joints)))
    bristle = stiffness * track.bristle
    return ArmReplay(log, track, bristle, deviations, heat, support, used, summary, findings, counts)


def _step_of(readings: Vector) -> Vector:
    """Step (n,) of quantised readings (t, n): the smallest change, where nearly all are multiples of it; else 0."""
    step, steps = smallest_change(readings), np.zeros(readings.shape[1])
    for joint in np.flatnonzero(step > 0.0):
        changes = np.abs(np.diff(readings[:, joint])) / step[joint]
        few = changes[(changes > 0.0) & (changes < _MOST_MULTIPLE)]
        multiples = np.abs(few - np.round(few)) < _NEAR_MULTIPLE
        if len(few) >= _FEWEST_CHANGES and np.mean(multiples) > _ALL_BUT:
            steps[joint] = step[joint]
    return steps


def sound_innovations(track: ArmTrack, joint: int) -> NDArray[np.bool_]:
    """Messages (t,) with an accepted innovation of a joint."""
    there: NDArray[np.bool_] = (
        track.taken
        & (track.innovation_variance[:, joint] > 0.0)
        & np.isfinite(track.innovation[:, joint])
        & (track.refused[:, joint] == 0)
    )
    return there


def _follow(ekf: ArmEkf, log: ArmLog, stiffness: Vector) -> tuple[ArmTrack, Deviations]:
    """Filter in pieces, and store the full covariance after each."""
    t = len(log.stamp)
    edges = np.unique(np.linspace(0, t, min(t, _MOST_STOPS) + 1).astype(np.int64))
    tracks, rows, n = [], [], ekf.arm.tree.nv
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        part = slice(int(first), int(last))
        tracks.append(ekf.replay(log.stamp[part], log.position[part], log.effort[part]))
        deviation = np.sqrt(np.diag(ekf.state.covariance))
        bristle = stiffness * deviation[2 * n : 3 * n] if ekf.bristles_estimated else np.full(n, np.nan)
        known = np.where(np.isnan(ekf.state.stamp), np.nan, 1.0)
        rows.append(known * np.array([deviation[:n], deviation[n : 2 * n], ekf.friction_deviation(), bristle]))
    names = [field.name for field in dataclasses.fields(ArmTrack)]
    whole = ArmTrack(**{name: np.concatenate([getattr(track, name) for track in tracks]) for name in names})
    table = np.array(rows)
    return whole, Deviations(edges[1:] - 1, *(table[:, k] for k in range(4)))


def _summary(k: int, log: ArmLog, track: ArmTrack, heat: HeatTrack) -> JointSummary:
    sound = sound_innovations(track, k)
    squares = track.innovation[sound, k] ** 2 / track.innovation_variance[sound, k]
    speed, reported = track.speed[:, k], log.velocity[:, k]
    moving = track.taken & (np.abs(speed) > _MOVING)
    hottest = int(np.argmax(heat.winding[:, k]))
    return JointSummary(
        log.joints[k],
        _mean(squares),
        _mean(squares < _WITHIN**2),
        int(track.refused[:, k].sum()),
        float(np.sqrt(_mean((speed - reported)[track.taken & np.isfinite(speed - reported)] ** 2))),
        float(np.sqrt(_mean(track.friction_torque[moving, k] ** 2))),
        float(heat.winding[hottest, k]),
        float(heat.winding_deviation[hottest, k]),
        float(heat.seconds[-1, k]),
    )


def _mean(values: Vector | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
