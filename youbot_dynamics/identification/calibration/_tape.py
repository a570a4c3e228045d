"""Geometry of a base from a tape measure: wheel angles compared with measured distances and turns.

A leg starts and ends at rest: forward, sideways, or turns on the spot. Its wheel angles are integrated exactly on
SE(2) with radius R, lever K and lateral factor f common to all wheels; the distance between its ends, or its turn, is
compared with the reading. To first order a straight leg forward shows R, one sideways R f, and turns R / K. A reading
has a known error. What the model leaves out adds to it: rollers that end anywhere on their length, and creep.

Source: Borenstein and Feng 1996, calibration of odometry by measured ends; systems 29-31, 34.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, degrees, hypot, nan

import numpy as np
from scipy.special import chdtri

from youbot_dynamics.arrays import Indices, Vector, array, number, read_only
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import InputError, RecordingError
from youbot_dynamics.identification.calibration._findings import geometry_findings
from youbot_dynamics.identification.calibration._fit import (
    LATERAL_FACTOR,
    LEVER,
    LIKELY,
    RADIUS,
    Calibration,
)
from youbot_dynamics.identification.calibration._model import STEP, Guess, lever, odometry, ratios
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._start import NO_FACTOR
from youbot_dynamics.identification.calibration._weights import UNEQUAL
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import (
    NORMAL,
    Estimate,
    Kind,
    Reason,
    Unknown,
    judge,
    undetermined,
    unsettled,
)
from youbot_dynamics.identification.reading import find_wheel_states
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_base import Base

FORWARD, SIDEWAYS, TURN = KINDS = ("forward", "sideways", "turn")

_SPEED, _TURN_RATE = 0.3, 0.8  # [m/s], [rad/s] of a leg: slow enough for wheels not to slip
_ACCELERATION_SHARE = 0.5  # share of the acceleration limits that a leg uses
_REST = 1.0  # [s] for which the wheels are at rest between two legs
_REST_MARGIN = 0.3  # [s] of this rest that belong to a leg, at each end
_STANDSTILL_RATE = 0.02  # [rad/s] below which a wheel is at rest
_LEAST_TURN = 1.0  # [rad] that some wheel turns in a leg; less is no leg
_CREEP = 0.0004  # of the way of a leg: contacts creep under unequal loads by 0.0002 to 0.0004 in MuJoCo
_ROLLERS = 0.0005  # [m] of a leg: rollers of the youBot move its end by up to 0.4 mm
_ROUNDS = 20
_CONVERGED = 1e-9  # change of a logarithm at which the fit has converged
_CONTRADICTION = 0.999  # probability of the misfit above which readings contradict each other
_STRAIGHT = 0.5  # [rad] that a straight leg turns at most; how far it goes aside, over its length
_RETURN = 0.8  # of its greatest distance or turn that a leg has at its end
_ROLLED = 0.5  # of the mean way of the wheels that a leg covers at least; mecanum wheels cover all of it


_PER_METRE = {100.0: "centimetres", 1000.0: "millimetres", 39.37: "inches", 3.281: "feet"}
# Rollers give a lateral factor of at most 1, and at an angle of 46 degrees 1.036.
_LARGEST_FACTOR = 1.04
_FINEST, _LONGEST = 1e-6, 1e3  # [m] or [rad]: what is measured with a tape, and how well


@dataclass(frozen=True, eq=False)
class TapeLeg:
    """One leg and the reading after it.

    Raises:
        InputError: an unknown kind, wheel angles that are not finite, or a single reading of the wheels.
        ModelError: a measure or an error that is not positive or beyond what a tape measures, `_FINEST` and `_LONGEST`.
    """

    kind: str  # FORWARD, SIDEWAYS or TURN
    wheel_angles: Vector  # (m, n) readings of the wheels from rest to rest [rad], positive forward
    measured: float  # distance between the ends [m], positive; of a TURN the whole turn, positive to the left [rad]
    error: float  # standard error of the reading [m] or [rad]

    def __post_init__(self) -> None:
        """Check the values."""
        if self.kind not in (FORWARD, SIDEWAYS, TURN):
            raise InputError("kind of a leg", got=self.kind, expected=f"{FORWARD}, {SIDEWAYS} or {TURN}")
        angles = array("wheel_angles", self.wheel_angles, (None, None))
        if len(angles) < 2:
            raise InputError("wheel_angles", got=f"{len(angles)} readings", expected="at least 2")
        unit = "rad" if self.kind == TURN else "m"
        measure = abs(self.measured) if self.kind == TURN else self.measured
        number(f"measured {self.kind}", measure, unit, above=0.0, high=_LONGEST)
        number(f"error of the measured {self.kind}", self.error, unit, above=0.0, low=_FINEST, high=_LONGEST)
        object.__setattr__(self, "wheel_angles", read_only(angles.copy()))

    def rolled(self, base: MecanumBase) -> float:
        """Distance [m] or turn [rad] that a tape would show for a base of this geometry."""
        x, y, yaw = _path(self.wheel_angles, base)[-1].tolist()
        return yaw if self.kind == TURN else hypot(x, y)


def _path(wheel_angles: Vector, base: MecanumBase) -> Vector:
    """Poses (m, 3) [m, m, rad] at the readings (m, n), from the first one on."""
    time = np.arange(len(wheel_angles), dtype=float)
    return odometry(CalibrationSignals(time, wheel_angles, np.zeros(0), np.zeros((0, 3))), base, time)


def calibrate_by_tape(legs: Sequence[TapeLeg], base: MecanumBase) -> Calibration:
    """Radius, lever and lateral factor from legs whose ends were measured.

    Args:
        legs: at least one; several of a kind are combined.
        base: configured base: its ratios of radii and of positions are kept.

    Returns:
        Estimates of the three with intervals and verdicts, by the names of `calibrate`. A tape measure does not show
        the radii of single wheels.

    Raises:
        InputError: no leg, another number of wheels, wheels that show another motion than the leg is, or a reading in
            another unit.
    """
    n = len(base.radii)
    if not legs or any(leg.wheel_angles.shape[1] != n for leg in legs):
        got = ", ".join(str(leg.wheel_angles.shape[1]) for leg in legs) or "no leg"
        raise InputError("legs", got=f"wheels {got}", expected=f"{n} wheels in each")
    for k, leg in enumerate(legs, start=1):
        _check_kind(k, leg, base)
        _check_unit(k, leg, base)
    guess, determined = Guess(base, np.zeros(3), np.zeros(0)), _determined(legs, base)
    reasons, covariance = _reasons(legs, base), np.full((3, 3), nan)
    if len(determined):
        guess, solved_covariance, misfit, settled = _solve(legs, guess, determined)
        covariance[np.ix_(determined, determined)] = solved_covariance
        inconsistency = _inconsistency(guess.base, base, len(legs) - len(determined), misfit)
        failure = inconsistency or (None if settled else unsettled(f"{_ROUNDS} steps"))
        reasons = [failure or reason for reason in reasons]
    values = (float(np.mean(guess.base.radii)), lever(guess.base), guess.base.lateral_factor)
    errors = np.array(values) * np.sqrt(np.diag(covariance))
    names = zip((RADIUS, LEVER, LATERAL_FACTOR), ("m", "m", "1"), values, errors.tolist(), reasons, strict=True)
    estimates = [_estimate(Unknown(name, unit), value, error, cause) for name, unit, value, error, cause in names]
    if not estimates[0].identified:
        guess = replace(guess, base=base)
    size = float(np.sum(np.abs(guess.base.positions)) / np.sum(np.abs(base.positions)))
    return Calibration(tuple(estimates), guess.base, guess.sensor, guess.offsets, 0.0, size_factor=size)


def _check_kind(number: int, leg: TapeLeg, base: MecanumBase) -> None:
    """Refuse a leg whose wheels show no motion of its kind, or a turn to the other side than was measured.

    Raises:
        InputError: such wheels.
    """
    path, kind = _path(leg.wheel_angles, base), KINDS.index(leg.kind)
    x, y, yaw = reached = np.abs(path).max(axis=0).tolist()
    length = lever(base) if leg.kind == TURN else 1.0
    rolled = float(np.mean(base.radii * np.abs(leg.wheel_angles[-1] - leg.wheel_angles[0])))
    fits = bool(length * abs(path[-1, kind]) > max(_ROLLED * rolled, length * _RETURN * reached[kind]))
    if leg.kind == TURN:
        fits = fits and hypot(x, y) <= length * yaw and bool(path[-1, 2] * leg.measured > 0.0)
        expected, sign = (
            f"a turn of {degrees(leg.measured):.0f} degrees on the spot",
            "its sign (positive to the left), ",
        )
    else:
        fits = fits and min(x, y) <= _STRAIGHT * reached[kind] and yaw <= _STRAIGHT
        expected, sign = f"a straight motion {leg.kind}", ""
    if not fits:
        ahead, left, turned = (round(value, 2) + 0.0 for value in (*path[-1, :2], degrees(path[-1, 2])))
        raise InputError(
            f"leg {number}",
            got=f"wheels that end {ahead:.2f} m ahead, {left:.2f} m to the left and {turned:.0f} degrees turned",
            expected=expected,
            remedy=f"check {sign}the order of the legs ({', '.join(KINDS)}), and the order and signs of the wheels",
        )


def _check_unit(number: int, leg: TapeLeg, base: MecanumBase) -> None:
    """Refuse a reading that differs from what the wheels rolled by more than a geometry can.

    Raises:
        InputError: such a reading.
    """
    rolled, turn = abs(leg.rolled(base)), leg.kind == TURN
    ratio = abs(leg.measured) / rolled
    if 1.0 / LIKELY < ratio < LIKELY:
        return
    units = {1.0 / degrees(1.0): "radians"} if turn else _PER_METRE
    close = [unit for factor, unit in units.items() if 0.8 < ratio / factor < 1.25]
    expected, shown = (
        (f"{degrees(rolled):.0f} degrees", degrees(leg.measured)) if turn else (f"{rolled:.3g} m", leg.measured)
    )
    raise InputError(
        f"leg {number}",
        got=f"a reading of {shown:.4g} {'degrees' if turn else 'm'} {leg.kind}",
        expected=f"about {expected}, as the wheels rolled",
        remedy=("give it in degrees" if turn else "give it in m, or with its unit")
        + (f"; were these {close[0]}?" if close else ""),
    )


def _determined(legs: Sequence[TapeLeg], base: MecanumBase) -> Indices:
    """Which of radius, lever and lateral factor the legs determine together."""
    kinds = {leg.kind for leg in legs}
    scale = FORWARD in kinds or (SIDEWAYS in kinds and not base.all_forward)
    factor = scale and SIDEWAYS in kinds and base.all_forward
    return np.flatnonzero([scale, scale and TURN in kinds, factor])


_NO_FORWARD = Reason(
    Kind.NOT_MEASURED,
    "no leg forward was measured; sideways legs do not distinguish it from the lateral factor, nor turns from the "
    "lever",
)
_NO_TURN = Reason(Kind.NOT_MEASURED, "no turn was measured")
_NO_SIDEWAYS = Reason(Kind.NOT_MEASURED, "no leg sideways was measured")


def _reasons(legs: Sequence[TapeLeg], base: MecanumBase) -> list[Reason | None]:
    """Why radius, lever and lateral factor stay unknown, None for those that are determined."""
    kinds = {leg.kind for leg in legs}
    determined = _determined(legs, base)
    scale = None if 0 in determined else _NO_FORWARD
    turns = scale or (None if TURN in kinds else _NO_TURN)
    factor = scale or (None if SIDEWAYS in kinds else _NO_SIDEWAYS)
    return [scale, turns, factor if base.all_forward else NO_FACTOR]


def _solve(legs: Sequence[TapeLeg], guess: Guess, determined: Indices) -> tuple[Guess, Vector, float, bool]:
    """Gauss-Newton over logarithms: guess, covariance of the determined values, weighted squared misfit, convergence.

    Two errors are common to several legs: radii that differ between the wheels act on all of them, creep on all legs of
    a kind. On mecanum wheels unequal radii have an effect of second order; on omni wheels each leg shows another mean.
    """
    n = len(guess.base.radii)
    radius_changes = np.eye(n + 6)[:n]
    common = np.vstack([radius_changes.sum(axis=0), np.eye(n + 6)[n : n + 2]])[determined]
    for _ in range(_ROUNDS):
        rolled = np.array([leg.rolled(guess.base) for leg in legs])
        unequal = _slopes(legs, guess, radius_changes - radius_changes.mean(axis=0)) * UNEQUAL
        creep = _CREEP * np.array([[leg.measured * (leg.kind == kind) for kind in KINDS] for leg in legs])
        shared_errors = np.hstack([unequal, creep])
        lever_length = lever(guess.base)
        variances = [leg.error**2 + (_ROLLERS / (lever_length if leg.kind == TURN else 1.0)) ** 2 for leg in legs]
        root = np.linalg.cholesky(np.diag(variances) + shared_errors @ shared_errors.T)
        residual = np.linalg.solve(root, np.array([leg.measured for leg in legs]) - rolled)
        slopes = np.linalg.solve(root, _slopes(legs, guess, common))
        step = np.linalg.lstsq(slopes, residual, rcond=None)[0]
        guess = guess.moved(step @ common)
        if np.max(np.abs(step)) < _CONVERGED:
            break
    covariance: Vector = np.asarray(np.linalg.inv(slopes.T @ slopes), dtype=np.float64)
    settled = bool(np.max(np.abs(step)) < _CONVERGED)
    return guess, covariance, float(np.sum((residual - slopes @ step) ** 2)), settled


def _slopes(legs: Sequence[TapeLeg], guess: Guess, changes: Vector) -> Vector:
    """Slopes (k, p) of what the legs roll over changes (p, n + 6) of `Guess.moved`."""
    columns = []
    for change in changes:
        after, before = guess.moved(STEP * change).base, guess.moved(-STEP * change).base
        columns.append([(leg.rolled(after) - leg.rolled(before)) / (2.0 * STEP) for leg in legs])
    return np.array(columns).T


def _inconsistency(fitted: MecanumBase, base: MecanumBase, freedom: int, misfit: float) -> Reason | None:
    """Why the readings cannot be those of this base, None if they can."""
    if freedom > 0 and misfit > chdtri(freedom, 1.0 - _CONTRADICTION):
        return Reason(
            Kind.WRONG_SIGNALS,
            f"the readings contradict each other by {np.sqrt(misfit / freedom):.2g} times their errors: "
            "check the full turns and the distances",
        )
    if fitted.lateral_factor > max(_LARGEST_FACTOR, base.lateral_factor):
        return Reason(
            Kind.WRONG_SIGNALS,
            f"with these readings the lateral factor is {fitted.lateral_factor:.4f}, and rollers give at most 1: "
            "check whether the readings forward and sideways were exchanged",
        )
    for name, ratio in ratios(fitted, base).items():
        if not 1.0 / LIKELY < ratio < LIKELY:
            return Reason(
                Kind.WRONG_SIGNALS,
                f"with these readings the {name} is {ratio:.3g} times the configured one: "
                "check distances in m, full turns, and the wheels' order, signs and unit",
            )
    return None


def _estimate(unknown: Unknown, value: float, error: float, reason: Reason | None) -> Estimate:
    if reason is not None:
        return undetermined(unknown, reason)
    return judge(unknown, value, error, NORMAL * error)


def tape_findings(legs: Sequence[TapeLeg], robot: Robot) -> tuple[Finding, ...]:
    """Findings of `calibrate_by_tape` by their names in a result."""
    geometry = robot.base.geometry
    calibration = calibrate_by_tape(legs, geometry.mecanum())
    return tuple(geometry_findings(calibration, geometry, len(legs)))


def tape_program(kind: str, amount: float, base: Base, dt: float = 0.02) -> Program:
    """Program of one leg: from rest to rest, within the limits of the base.

    Args:
        kind: FORWARD, SIDEWAYS or TURN.
        amount: distance [m] or turn [rad], positive forward and to the left.
        base: its limits.
        dt: time each line is held [s].

    Raises:
        InputError: an unknown kind.
        ModelError: an amount of 0, or one that is not finite.
    """
    if kind not in KINDS:
        raise InputError("kind of a leg", got=kind, expected=", ".join(KINDS))
    number(f"length of the leg {kind}", abs(amount), "rad" if kind == TURN else "m", above=0.0)
    limits = base.limits
    speed = _TURN_RATE if kind == TURN else _SPEED
    ramp = speed / (_ACCELERATION_SHARE * (limits.angular_acceleration if kind == TURN else limits.acceleration))
    count = ceil((abs(amount) / speed + ramp) / dt)
    time = (np.arange(count) + 0.5) * dt
    shape = np.clip(np.minimum(time, count * dt - time) / ramp, 0.0, 1.0)
    twists = np.zeros((count, 3))
    twists[:, KINDS.index(kind)] = shape * (amount / (np.sum(shape) * dt))
    program = Program(f"leg {kind}", twists, dt)
    return program.scaled(program.fitting_time_scale(base))


def standstill(time: Vector, angles: Vector) -> float:
    """Time [s] for which the wheels have been standing by the last of readings at (m,) [s] of their angles (m, n)."""
    if len(time) < 2:
        return 0.0
    moving = _moving(time, angles)
    return float(time[-1] - time[moving[-1] if len(moving) else 0])


def _moving(time: Vector, angles: Vector) -> Indices:
    """Readings (m,) at which a wheel turns.

    Over a tenth of a second, since a tick of an encoder looks fast from one reading to the next; over one step where
    readings are missing.
    """
    before = np.minimum(np.searchsorted(time, time - 0.1), np.maximum(np.arange(len(time)) - 1, 0))
    step, span = np.abs(angles - angles[before]).max(axis=1), np.maximum(time - time[before], 1e-3)
    return np.flatnonzero(step / span > _STANDSTILL_RATE)


def recorded_legs(recording: Recording, robot: Robot, count: int) -> list[Vector]:
    """Wheel angles (m, n) [rad] of the legs in a recording, in their order: all motion between two rests is a leg.

    Raises:
        RecordingError: no wheel states, or another number of whole legs than the `count` of those that were measured.
    """
    joints = robot.driver.wheel_joints
    states = recording.joint_states(find_wheel_states(recording, joints, {}), joints)
    finite = np.isfinite(states.received) & np.isfinite(states.position).all(axis=1)
    time, angles = states.received[finite], states.position[finite] * np.array(robot.driver.position_sign)
    if len(time) < 2:
        raise RecordingError(f"{recording.path}", got=f"{len(time)} readings of the wheels", expected="a drive")
    moving = _moving(time, angles)
    breaks = np.flatnonzero(np.diff(time[moving]) > _REST) + 1
    legs = []
    for part in np.split(moving, breaks):
        # A motion that had begun before the first reading, or goes on after the last, is no leg.
        if len(part) and time[part[0]] - time[0] > _REST_MARGIN and time[-1] - time[part[-1]] > _REST_MARGIN:
            first, last = np.searchsorted(time, [time[part[0]] - _REST_MARGIN, time[part[-1]] + _REST_MARGIN])
            rows = angles[first:last]
            if np.abs(rows[-1] - rows[0]).max() > _LEAST_TURN:
                legs.append(rows)
    if len(legs) != count:
        raise RecordingError(
            f"{recording.path}",
            got=f"{len(legs)} whole legs between rests of {_REST:g} s",
            expected=f"{count}, one for each reading",
            remedy=f"give a reading for each leg, and record nothing else; their order is {', '.join(KINDS)}",
        )
    return legs
