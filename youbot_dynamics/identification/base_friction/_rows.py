"""Rows of the base's equation of motion over windows of a recording, from sums over half windows in one pass.

Two neighbouring halves form a window with triangular weight. The weight of the acceleration is the derivative of this
weight, and both are symmetric about the same time. The noise of a reading therefore enters speed and acceleration
without correlation. With the backward difference of document 003 it enters both with the same sign, which makes the
identified friction negative.

Source: system 36, finding 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Flags, Vector, usual_step
from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.identification.base_friction._signals import FrictionSignals
from youbot_dynamics.identification.least_squares import Rows, Unknown
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot_base import WHEELS

_SAMPLES_AT_ONCE = 8192  # samples processed at a time, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class HalfWindows:
    """Sums over k half windows of samples of n wheels."""

    span: float  # duration of a half [s]
    number: NDArray[np.int64]  # (k,) of each half; it starts at number x span
    count: Vector  # (k,) samples in it
    moment: Vector  # (k,) sum of x, the relative position of each sample in the half, 0 to 1
    speed: Vector  # (2, k, n) sums of the wheel speeds [rad/s], and of x times the speeds
    torque: Vector  # (2, k, n) the same for the torques [N m]
    lowest: Vector  # (k, n + m) smallest of the wheel speeds, then of the m sideways speeds
    highest: Vector  # (k, n + m) largest of them

    @property
    def sound(self) -> Flags:
        """Windows (k - 1,) without gaps: their halves are adjacent and evenly filled."""
        median_count = float(np.median(self.count)) if len(self.count) else 0.0
        mean_position: Vector = self.moment / self.count
        full = (self.count >= max(2.0, 0.5 * median_count)) & (np.abs(mean_position - 0.5) < 0.2)
        return np.asarray(full[:-1] & full[1:] & (np.diff(self.number) == 1))

    @property
    def time(self) -> Vector:
        """Middle of each window (k - 1,) [s]."""
        return self.number[1:].astype(np.float64) * self.span

    def averaged(self, sums: Vector) -> Vector:
        """Mean (k - 1, n) with triangular weight, of sums (2, k, n)."""
        total, moment = sums
        weight = self.moment[:-1] + self.count[1:] - self.moment[1:]
        return np.asarray((moment[:-1] + total[1:] - moment[1:]) / weight[:, None])

    def rate(self, sums: Vector) -> Vector:
        """Mean derivative (k - 1, n) in time with the same triangular weight, of sums (2, k, n)."""
        mean = sums[0] / self.count[:, None]
        interval = self.span * (1.0 + np.diff(self.moment / self.count))
        return np.asarray(np.diff(mean, axis=0) / interval[:, None], dtype=np.float64)

    def rolling(self, deadband: Vector) -> Vector:
        """Sign (k - 1, n + m) of each speed that stays beyond its deadband (n + m,) during the whole window, else 0."""
        low = np.minimum(self.lowest[:-1], self.lowest[1:])
        high = np.maximum(self.highest[:-1], self.highest[1:])
        return (low > deadband).astype(np.float64) - (high < -deadband)


def half_windows(time: Vector, speeds: Vector, torques: Vector, sideways: Vector, span: float) -> HalfWindows:
    """Sum wheel speeds (s, n) [rad/s] and torques (s, n) [N m] over half windows of duration `span` [s].

    Samples with values that are not finite are left out. Times (s,) [s] increase; `sideways` (m, n) is the matrix from
    wheel speeds to sideways speeds of the rollers.
    """
    number = np.floor(time[[0, -1]] / span).astype(np.int64) if len(time) else np.zeros(2, dtype=np.int64)
    halves = int(number[1] - number[0]) + 1 if len(time) else 0
    wheels, limits = speeds.shape[1], (halves, speeds.shape[1] + len(sideways))
    sums, lowest, highest = np.zeros((halves, 2 + 4 * wheels)), np.full(limits, np.inf), np.full(limits, -np.inf)
    for begin in range(0, len(time), _SAMPLES_AT_ONCE):
        piece = slice(begin, begin + _SAMPLES_AT_ONCE)
        stamps, w, torque = time[piece], speeds[piece], torques[piece]
        if not np.isfinite(w.sum() + torque.sum()):
            sound = np.isfinite(w).all(axis=1) & np.isfinite(torque).all(axis=1)
            stamps, w, torque = stamps[sound], w[sound], torque[sound]
        if not len(stamps):
            continue
        position = stamps / span - float(number[0])
        half = position.astype(np.int64)
        starts = np.flatnonzero(np.concatenate([[True], np.diff(half) > 0]))
        x, rows = position - half, half[starts]
        # Transposed, so that each sum is over contiguous memory.
        w, torque = np.ascontiguousarray(w.T), np.ascontiguousarray(torque.T)
        columns, extremes = np.vstack([np.ones_like(x), x, w, x * w, torque, x * torque]), np.vstack([w, sideways @ w])
        sums[rows] += np.add.reduceat(columns, starts, axis=1).T
        lowest[rows] = np.minimum(lowest[rows], np.minimum.reduceat(extremes, starts, axis=1).T)
        highest[rows] = np.maximum(highest[rows], np.maximum.reduceat(extremes, starts, axis=1).T)
    filled = np.flatnonzero(sums[:, 0] > 0.0)
    count, moment = sums[filled, :2].T
    tables = sums[filled, 2:].reshape(len(filled), 4, wheels).swapaxes(0, 1)
    return HalfWindows(span, number[0] + filled, count, moment, tables[:2], tables[2:], lowest[filled], highest[filled])


HALF_WINDOW = 0.15  # [s] several readings of a 50 Hz driver, a fraction of the period of usual motions
_FEWEST_IN_HALF = 4
_RATE_SAMPLES = 10_000  # samples used to determine the rate
# Below these speeds the sign of the friction is noise and the bristle deflection has not settled: no rows.
WHEEL_DEADBAND = 0.2  # [rad/s]
ROLLER_DEADBAND = 0.012  # [m/s]
# [s] several periods of the torque variation of a rolling wheel, which dominates the residual.
BLOCK = 1.6
_MOST_BLOCKS = 200  # per recording; longer ones get longer blocks, so that their sums stay below 2 MB
_WINDOWS_AT_ONCE = 4000  # half windows processed at a time, to bound the memory

_SIDEWAYS = "the robot never moved sideways in these data"
_WHOLE = "friction"
_FORWARD = "the robot never moved forward in these data"


@dataclass(frozen=True, eq=False)
class FrictionModel:
    """Coefficients of the rows for a base of n wheels.

    Common to all wheels: viscous_x (xi_L), viscous_y (xi_T), wheel_coulomb (F1), roller_coulomb (F2 / r; only this
    ratio acts, and the roller radius r is not published). With `each_wheel`, each wheel has its own Coulomb torque
    instead of F1, and a deviation of its viscous torque from their mean.

    The inertia is the effective one, with J' J_w J of wheels and rotors. Its effect on the efforts is nevertheless free
    on each axis. A load adds to it. A motor loop that answers each command within a few milliseconds pushes between two
    readings, so that efforts read in phase with the commands miss part of the push, or show it early or late.
    `missed_inertia` and `missed_impulse`, coefficients of the commanded acceleration and its rate, keep these effects
    out of the friction; a late effort would otherwise look like viscous friction. They are not masses.

    `constant_force`, a force and moment that the direction of motion does not change, stands for zero errors of the
    efforts and for a floor that is not level. If a wheel turns in one direction only, it looks like Coulomb friction.

    With `exponents`, wheels and rollers also have friction proportional to these powers of their speed, which shows
    whether friction follows the law of the other coefficients.

    With `effort_lag`, the force is F + T F' where F is measured: efforts behind a filter of first order with the time
    constant T or, to first order, efforts that are late by T.
    """

    base: MecanumBase  # kinematics
    mass: float  # of the body [kg]
    yaw_inertia: float  # of the body about the vertical [kg m2]
    wheel_inertia: float  # J_w of a wheel with its reflected rotor [kg m2]
    each_wheel: bool = False  # separate Coulomb and viscous friction of each wheel
    exponents: tuple[float, ...] = ()  # of the speed, of additional friction of wheels and rollers
    effort_lag: bool = False  # whether the efforts may lag behind the motion

    @property
    def wheel_names(self) -> tuple[str, ...]:
        """Wheels by name: FL, FR, RL, RR or the first of them; numbers for more."""
        count = len(self.base.radii)
        return WHEELS[:count] if count <= len(WHEELS) else tuple(str(k + 1) for k in range(count))

    @property
    def across(self) -> Vector:
        """Rows (n, 3) from the twist to the speed of each wheel's centre across its drive, which turns its rollers."""
        (x, y), (c, s) = self.base.positions.T, self.base.drives.T
        return np.column_stack([-s, c, x * c + y * s])

    @property
    def coefficients(self) -> int:
        """Number of friction coefficients, the first of the unknowns."""
        return len(self._friction())

    def _friction(self) -> list[Unknown]:
        coulomb = [f"wheel_coulomb_{name}" for name in self.wheel_names] if self.each_wheel else ["wheel_coulomb"]
        return [
            Unknown("viscous_x", "N s/m", low=0.0, resolution=0.5, unexcited=_FORWARD, whole=_WHOLE),
            Unknown("viscous_y", "N s/m", low=0.0, resolution=0.5, unexcited=_SIDEWAYS, whole=_WHOLE),
            Unknown("roller_coulomb", "N", low=0.0, resolution=0.02, unexcited=_SIDEWAYS, whole=_WHOLE),
            *(
                Unknown(name, "N m", low=0.0, resolution=0.005, unexcited="no wheel ever turned", whole=_WHOLE)
                for name in coulomb
            ),
        ]

    def power_unknowns(self) -> list[Unknown]:
        """Unknowns of the friction that is proportional to powers of the speed."""
        unknowns = []
        for exponent in self.exponents:
            unknowns += [
                Unknown(f"wheel_power_{exponent:g}", f"N m (s/rad)^{exponent:g}", unexcited="no wheel ever turned"),
                Unknown(f"roller_power_{exponent:g}", f"N (s/m)^{exponent:g}", unexcited=_SIDEWAYS),
            ]
        return unknowns

    def unknowns(self) -> tuple[Unknown, ...]:
        """Unknowns p in the order of the columns."""
        unknowns = self._friction()
        steady = "the robot never changed its speed on this axis"
        no_command = "no command is known, or its acceleration never changed on this axis"
        axes = (("x", "kg"), ("y", "kg"), ("yaw", "kg m2"))
        unknowns += [Unknown(f"missed_inertia_{axis}", unit, unexcited=steady) for axis, unit in axes]
        unknowns += [Unknown(f"missed_impulse_{axis}", f"{unit} s", unexcited=no_command) for axis, unit in axes]
        unknowns += [
            Unknown(f"constant_force_{axis}", unit, unexcited=reason)
            for axis, unit, reason in (("x", "N", _FORWARD), ("y", "N", _SIDEWAYS), ("yaw", "N m", _SIDEWAYS))
        ]
        unknowns += self.power_unknowns()
        if self.effort_lag:
            unknowns.append(Unknown("effort_lag", "s", unexcited="the efforts never changed"))
        if self.each_wheel:
            indistinct = "the motion does not distinguish the wheels: turn while driving"
            unknowns += [
                Unknown(f"viscous_pattern_{k + 1}", "N m s", unexcited=indistinct)
                for k in range(len(self.wheel_names) - 1)
            ]
        return tuple(unknowns)

    def patterns(self) -> Vector:
        """Orthogonal patterns (n, n - 1) of deviations of the wheels' viscous torques from their mean."""
        count = len(self.wheel_names)
        basis = np.linalg.svd(np.ones((1, count)))[2][1:].T
        if count == 4:
            basis = 0.5 * np.array([[-1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]])
        return basis

    def columns(
        self, twist: Vector, rates: tuple[Vector, Vector, Vector], wheel_signs: Vector, roller_signs: Vector
    ) -> Vector:
        """Regressors (k, 3, p) of k windows for the rows x, y, yaw.

        Args:
            twist: (k, 3) mean body twist [m/s, m/s, rad/s].
            rates: (k, 3) the commanded acceleration and its rate (k, 3), the measured one and zeros if no command is
                known, and the derivative (k, 3) in time of the measured force [N/s, N/s, N m/s].
            wheel_signs: (k, n).
            roller_signs: (k, n) of the speed of each wheel's centre across its drive, V_T + Omega x for the youBot's.
        """
        base = self.base
        x, y = base.positions[:, 0], base.positions[:, 1]
        jacobian = base.inverse_matrix
        zero = np.zeros(len(twist))
        vx, vy, wz = twist.T
        along = np.stack([vx - y.mean() * wz, zero, np.mean(y * y) * wz - y.mean() * vx], axis=1)
        across = np.stack([zero, vy + x.mean() * wz, x.mean() * vy + np.mean(x * x) * wz], axis=1)
        rollers = roller_signs @ (base.roller_gains[:, None] * self.across)
        parts = [along[:, :, None], across[:, :, None], rollers[:, :, None]]
        coulomb = wheel_signs[:, None, :] * jacobian.T
        parts.append(coulomb if self.each_wheel else coulomb.sum(axis=2, keepdims=True))
        *pushes, force_rate = rates
        parts += [push[:, :, None] * np.eye(3) for push in pushes]
        parts.append(np.broadcast_to(np.eye(3), (len(twist), 3, 3)))
        wheel_speeds, sideways = twist @ jacobian.T, twist @ self.across.T
        for exponent in self.exponents:
            wheels = wheel_signs * np.maximum(np.abs(wheel_speeds), WHEEL_DEADBAND) ** exponent @ jacobian
            slides = roller_signs * np.maximum(np.abs(sideways), ROLLER_DEADBAND) ** exponent
            parts += [wheels[:, :, None], (slides @ (base.roller_gains[:, None] * self.across))[:, :, None]]
        if self.effort_lag:
            parts.append(-force_rate[:, :, None])
        if self.each_wheel:
            parts.append(np.einsum("kn,na,np->kap", wheel_speeds, jacobian, self.patterns(), optimize=True))
        return np.concatenate(parts, axis=2)

    def known_force(self, twist: Vector, rate: Vector) -> Vector:
        """M V' + m Omega x V (k, 3) at twists (k, 3) and their rates (k, 3) [N, N, N m]; M is the effective inertia.

        The centripetal term has the mass of the body only.

        Source: system 35.
        """
        inertia = effective_inertia(self.base, self.mass, self.yaw_inertia, self.wheel_inertia)
        vx, vy, wz = twist.T
        turning = self.mass * np.stack([-wz * vy, wz * vx, np.zeros(len(twist))], axis=1)
        return rate @ inertia.T + turning


def friction_rows(model: FrictionModel, signals: FrictionSignals) -> Iterator[Rows]:
    """Rows of the windows in which every relevant wheel turns in one direction, in pieces of bounded size.

    A row needs the signs of all wheels; the rows y and yaw also need those of all rollers. Windows with an unclear sign
    are left out: with 0 instead, xi_L becomes -18 N s/m where the true value is 15. Fixed wheels have no rollers and no
    row of y, along which the floor holds them. The commanded speeds of the signals, which have torques, are noise-free,
    shifted by the delay, and give the instruments; the rate of the force, for efforts that lag, is its own.

    Source: system 36.
    """
    time, speeds, torques, commanded = signals.time, signals.speeds, signals.torques, signals.commanded
    assert torques is not None  # refusal() checks it
    if commanded is not None:
        sound = np.all([np.isfinite(column).all(axis=1) for column in (speeds, torques, commanded)], axis=0)
        time, speeds, torques, commanded = time[sound], speeds[sound], torques[sound], commanded[sound]
    base = model.base
    directions, direction_index = np.unique(model.across, axis=0, return_inverse=True)
    sideways = directions @ base.forward_matrix
    period = usual_step(time[:_RATE_SAMPLES], 0.0)
    span = max(HALF_WINDOW, _FEWEST_IN_HALF * period)
    deadband = np.concatenate([np.full(len(base.radii), WHEEL_DEADBAND), np.full(len(directions), ROLLER_DEADBAND)])
    first, last = np.floor(time[[0, -1]] / span) if len(time) else (0.0, -1.0)
    duration = float(time[-1] - time[0]) if len(time) else 0.0
    block = max(BLOCK, duration / _MOST_BLOCKS)
    for begin in np.arange(first, last + 1.0, float(_WINDOWS_AT_ONCE)):
        # The outer windows of a piece need neighbours: it includes one half before and two halves after it.
        a, b = np.searchsorted(time, [(begin - 1.0) * span, (begin + _WINDOWS_AT_ONCE + 2.0) * span])
        piece = slice(int(a), int(b))
        measured = half_windows(time[piece], speeds[piece], torques[piece], sideways, span)
        command = None if commanded is None else commanded[piece]
        command_windows = None if command is None else half_windows(time[piece], command, command, sideways, span)
        yield _window_rows(
            model, measured, command_windows, deadband, direction_index.ravel(), signals.recording, block
        )


def _window_rows(
    model: FrictionModel,
    measured: HalfWindows,
    commanded: HalfWindows | None,
    deadband: Vector,
    direction_index: NDArray[np.intp],
    recording: int,
    block: float,
) -> Rows:
    """Rows of the sound windows; deadband (n + m,); direction_index (n,) of each wheel's sideways speed among m."""
    base, count = model.base, len(direction_index)
    signs = measured.rolling(deadband)
    # The rate of the acceleration needs a neighbour on either side.
    inner = measured.sound & np.concatenate([[False], measured.sound[:-1]]) & np.append(measured.sound[1:], False)
    rolling = inner & np.all(signs[:, :count] != 0.0, axis=1)
    sliding = np.all(signs[:, count:] != 0.0, axis=1) | (not np.any(base.roller_gains))
    keep = np.flatnonzero(rolling)
    # Of wheels that drive forward, the row of x is free of the rollers.
    straight = rolling if base.all_forward else rolling & sliding
    usable = np.stack([straight, rolling & sliding, rolling & sliding], axis=1)[keep] & base.free_axes
    twist = measured.averaged(measured.speed)[keep] @ base.forward_matrix.T
    rate = measured.rate(measured.speed)[keep] @ base.forward_matrix.T
    force = measured.averaged(measured.torque)[keep] @ base.inverse_matrix
    force_rate = measured.rate(measured.torque)[keep] @ base.inverse_matrix
    target = force - model.known_force(twist, rate)
    time = np.repeat(measured.time[keep][:, None], 3, axis=1)[usable]
    wheels, rollers = signs[keep, :count], signs[keep, count:][:, direction_index]
    if commanded is None:
        regressors = model.columns(twist, (rate, np.zeros_like(rate), force_rate), wheels, rollers)[usable]
        return Rows(time, regressors, target[usable], None, recording, block)
    commanded_twist = commanded.averaged(commanded.speed)[keep] @ base.forward_matrix.T
    pushes = commanded.rate(commanded.speed) @ base.forward_matrix.T
    rates = pushes[keep], (pushes[keep + 1] - pushes[keep - 1]) / (2.0 * commanded.span), force_rate
    commanded_wheel_signs = np.sign(commanded_twist @ base.inverse_matrix.T)
    commanded_roller_signs = np.sign(commanded_twist @ model.across.T)
    regressors = model.columns(twist, rates, wheels, rollers)[usable]
    instruments = model.columns(commanded_twist, rates, commanded_wheel_signs, commanded_roller_signs)[usable]
    return Rows(time, regressors, target[usable], instruments, recording, block)
