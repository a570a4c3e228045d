"""Estimate the roller phases of each wheel from wheel angles and poses of one recording.

Each wheel is fitted separately: the turn that its constraint predicts from the poses is compared with its measured
turn. Over a short piece, with the angle phi = w + phase - its nearest multiple of the pitch from the lowest point,

    dx = R dw - s tan(d) [sec] (dy + x dpsi) + (y + b tan(d) [tan]) dpsi

where [sec] and [tan] are the means of 1 / cos(phi) and tan(phi) over the turn of the wheel in the piece, exact across
roller changes by their antiderivatives asinh(tan(phi)) and -ln(cos(phi)). The equation is linear in radius R, sideways
scale s, lever y and depth b, which are free within their tolerances, so that an uncalibrated robot does not bias the
phase. The phase is the only nonlinear unknown; it is searched over the whole pitch.

Phases and geometry affect each other's fit. The mean constraint leaves the ripple of the rollers in the poses, which
biases radii, size and lateral factor by a few parts in a thousand. Once the phases are known, the ripple is removed
from the wheel angles: each step becomes the turn that wheels with the mean constraint would have made. Geometry and
phases are then fitted again.

Source: system 31.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import asinh, hypot, tan

import numpy as np

from youbot_dynamics.arrays import Vector, usual_step
from youbot_dynamics.errors import IdentificationError, YoubotDynamicsError
from youbot_dynamics.identification.calibration._fit import Calibration, calibrate
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.comparison import sample_poses
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Kind,
    Reason,
    Unknown,
    jackknife_error,
    judge,
    student,
    undetermined,
)
from youbot_dynamics.identification.signals import even_stamps
from youbot_dynamics.identification.stages import EXCERPT
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.roller_phase import NO_PHASES, RollingWheels

_PIECE = 0.3  # length of a piece [s], about half the contact time of a roller
_TRIAL_PHASES = 96  # trial phases over the pitch: 0.6 degrees apart for 6 rollers
_BLOCKS = 12  # blocks of the recording for the jackknife
_STILL = 1e-6  # [rad] turn below which a wheel is at rest
_FEWEST_READINGS = 200
_JUMP, _TIMES_USUAL = 0.1, 10.0  # [rad] from reading to reading beyond the usual turn, and over its 99 % quantile
_LARGEST_STEP = 0.5  # largest interval between readings in a piece [s]
# Tolerances (standard deviations) of R, s, y, b; radius and sideways scale relative, the others in m.
_TOLERANCES = np.array([0.03, 0.03, 0.02, 0.005])
# A phase error of a sixth of the pitch leaves as much ripple as the mean constraint: |2 sin(pi / 6)| = 1.
_WORTHLESS = 1.0 / 6.0
_LEAST_RIPPLE = 0.5  # share of the predicted ripple below which the mean constraint is more accurate
# Share of the pitch, standard deviation, by which contacts that creep and bounce move a phase in all blocks alike: in
# six drives in MuJoCo the worst phases were off by 10 mrad where the blocks showed 3 to 6.
_MOVED = 0.01
_CREEP = 1e-4  # contact creep over a piece [m], a lower bound of the residual


@dataclass(frozen=True, eq=False)
class RollerPhaseFit:
    """Roller phases with intervals and verdicts."""

    wheels: RollingWheels  # as given, with the identified phases; without phases unless all were identified
    # Phase of each wheel [rad], in [-pitch/2, pitch/2), at wheel angle 0 of this recording. Valid until the driver
    # restarts its count.
    estimates: tuple[Estimate, ...]

    @property
    def identified(self) -> bool:
        """Whether the phases of all wheels are identified."""
        return all(estimate.identified for estimate in self.estimates)


def fit_roller_phases(signals: CalibrationSignals, wheels: RollingWheels) -> RollerPhaseFit:
    """Fit the phase of each wheel by least squares over pieces of 0.3 s; see the module.

    Intervals are 95 %, from a jackknife over blocks of the recording. A phase is identified if its interval is narrower
    than +- a sixth of the pitch, beyond which it is no better than the mean constraint, and if it beats the mean
    constraint in nearly every block. The signals are on one clock, with the poses of the base. The phases of `wheels`
    are not used.

    Raises:
        IdentificationError: fewer than 200 readings with poses around them, or wheel counts that jump.
    """
    times, moments = signals.wheel_time, signals.pose_time
    inside = (times >= moments[0]) & (times <= moments[-1]) if len(moments) else np.zeros(len(times), dtype=bool)
    if np.sum(inside) < _FEWEST_READINGS:
        raise IdentificationError(
            "roller phases",
            got=f"{int(np.sum(inside))} wheel readings with poses around them",
            expected=f"{_FEWEST_READINGS} or more",
            remedy="make a longer recording, with poses and wheels together",
        )
    angles = signals.wheel_angles[inside]
    times = even_stamps(times, signals.wheel_angles)[inside]
    _check_counts(times, angles)
    path = sample_poses(moments, signals.poses, times)
    pieces = _Pieces.cut(times, angles, planar.steps_of_path(path))
    estimates = tuple(_WheelFit(pieces, wheels, wheel).estimate() for wheel in range(angles.shape[1]))
    complete = all(estimate.identified for estimate in estimates)
    phases = np.array([estimate.value for estimate in estimates]) if complete else None
    return RollerPhaseFit(wheels.at_phases(phases), estimates)


def _check_counts(times: Vector, angles: Vector) -> None:
    """Refuse wheel angles (m, n) at times (m,) [s] that jump: before and after, the phases are different ones.

    Raises:
        IdentificationError: such angles.
    """
    period = usual_step(times)
    rates = np.diff(angles, axis=0) / np.maximum(np.diff(times), period)[:, None]  # some stamps are irregular
    changes = np.abs(np.diff(rates, axis=0)).max(axis=1) * period
    jumps = np.flatnonzero(changes > max(_JUMP, _TIMES_USUAL * float(np.quantile(changes, 0.99))))
    if len(jumps):
        raise IdentificationError(
            "roller phases",
            got=f"wheel angles that jump, first by {changes[jumps[0]]:.2g} rad at {times[jumps[0] + 2]:.3f} s",
            expected="one count of each wheel for the whole recording",
            remedy="cut the recording there, or record again with a driver that loses no counts",
        )


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Steps of a recording, and the pieces over which they are summed."""

    angles: Vector  # (m, n) of the wheels at the readings
    steps: Vector  # (m - 1, 3) body displacements from reading to reading
    first: Vector  # (p,) readings at which the pieces start
    last: Vector  # (p,) readings at which they end

    @classmethod
    def cut(cls, times: Vector, angles: Vector, steps: Vector) -> _Pieces:
        """All pieces of 0.3 s without a gap."""
        first = np.arange(len(times))
        last = np.searchsorted(times, times + _PIECE)
        inside = last < len(times)
        breaks = np.concatenate([[0], np.cumsum(np.diff(times) > _LARGEST_STEP)])
        first, last = first[inside], last[inside]
        whole = breaks[first] == breaks[last]
        return cls(angles, steps, first[whole], last[whole])

    def sums(self, values: Vector) -> Vector:
        """Sums (p, ...) over the pieces of values (m - 1, ...) of the steps."""
        total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
        return np.asarray(total[self.last] - total[self.first])


class _WheelFit:
    """The fit of one wheel, by its index."""

    def __init__(self, pieces: _Pieces, wheels: RollingWheels, wheel: int) -> None:
        base = wheels.base
        self._pieces, self._wheels, self._wheel = pieces, wheels, wheel
        self._slant, self._x = tan(base.roller_angles[wheel]), float(base.positions[wheel, 0])
        reference = wheels.at_phases(np.zeros(len(base.radii))).constants
        scale = float(reference.slants[wheel]) / self._slant
        self._nominal = np.array([base.radii[wheel], scale, base.positions[wheel, 1], wheels.depth])
        self._deviations = _TOLERANCES * np.array([base.radii[wheel], 1.0, 1.0, 1.0])
        angles, steps = pieces.angles[:, wheel], pieces.steps
        self._turned, self._along = pieces.sums(np.diff(angles)), pieces.sums(steps[:, 0])
        self._angles = angles
        self._trial_phases = (np.arange(_TRIAL_PHASES) / _TRIAL_PHASES - 0.5) * wheels.pitch
        self._block = np.minimum(np.arange(len(self._along)) * _BLOCKS // max(1, len(self._along)), _BLOCKS - 1)

    def estimate(self) -> Estimate:
        """Phase with interval and verdict."""
        wheel, pitch = self._wheel, self._wheels.pitch
        name = f"roller_phase_{wheel}"
        if len(self._along) < _FEWEST_READINGS // 2 or np.ptp(self._angles) < pitch:
            little = f"wheel {wheel} turned by only {np.ptp(self._angles):.2g} rad; {pitch:.2g} rad are needed"
            return undetermined(Unknown(name, "rad"), Reason(Kind.NOT_EXCITED, little))
        squares = np.array([self._squares(phase) for phase in self._trial_phases])
        ridge = self._ridge(squares)
        value = self._lowest(squares.sum(axis=1), ridge)
        replicates = np.array([self._lowest(squares.sum(axis=1) - squares[:, k], ridge) for k in range(_BLOCKS)])
        error = hypot(jackknife_error((replicates - value + 0.5 * pitch) % pitch), _MOVED * pitch)
        multiple = student(_BLOCKS - 1)
        half_width = multiple * error
        residual, mean_residual = self._residuals(value, ridge), self._residuals(None, ridge)
        share, share_error = self._ripple_share(mean_residual - residual, mean_residual)
        wrapped = (value + 0.5 * pitch) % pitch - 0.5 * pitch
        unknown = Unknown(name, "rad", resolution=_WORTHLESS * pitch, share=0.0)
        estimate = judge(unknown, wrapped, error, half_width)
        if share - multiple * share_error > _LEAST_RIPPLE:
            return estimate
        shown = f"the data show {share:.2f} +-{multiple * share_error:.2f} of the ripple that the phase predicts"
        below = f"below {_LEAST_RIPPLE:g} the mean of all phases is more accurate"
        return estimate.refused_if_identified(Reason(Kind.UNEXPLAINED, f"{shown}; {below}"))

    def _ripple_share(self, predicted: Vector, measured: Vector) -> tuple[float, float]:
        """Regress the residual (r,) of the mean constraint on the predicted ripple (r,): slope and standard error."""
        powers = np.bincount(self._block, predicted**2, _BLOCKS)
        products = np.bincount(self._block, predicted * measured, _BLOCKS)
        replicates = (products.sum() - products) / (powers.sum() - powers)
        return float(products.sum() / powers.sum()), jackknife_error(replicates)

    def _squares(self, phase: float) -> Vector:
        """Products (blocks, 5, 5) of scaled columns and right-hand side, summed over the pieces of each block."""
        scaled, target = self._table(phase)
        rows = np.column_stack([scaled, target])
        edges = np.searchsorted(self._block, np.arange(_BLOCKS + 1))
        return np.array([rows[i:j].T @ rows[i:j] for i, j in zip(edges[:-1], edges[1:], strict=True)])

    def _ridge(self, squares: Vector) -> float:
        """Variance [m2] of the best fit, one piece counted for all that overlap it; the tolerances have weight 1."""
        count = len(self._along)
        overlap = float(np.mean(self._pieces.last - self._pieces.first))
        ridge = overlap * max(float(np.min(squares.sum(axis=1)[:, 4, 4])) / count, _CREEP**2)
        for _ in range(2):
            best = min(_cost(products, ridge) for products in squares.sum(axis=1))
            ridge = overlap * max(best / count, _CREEP**2)
        return ridge

    def _lowest(self, squares: Vector, ridge: float) -> float:
        """Phase [rad] of least cost, from a parabola through the best of those tried (t, 5, 5) and its neighbours."""
        costs = np.array([_cost(products, ridge) for products in squares])
        k = int(np.argmin(costs))
        before, here, after = costs[k - 1], costs[k], costs[(k + 1) % _TRIAL_PHASES]
        bend = before - 2.0 * here + after
        shift = 0.5 * (before - after) / bend if bend > 0.0 else 0.0
        return float(self._trial_phases[k] + shift * self._wheels.pitch / _TRIAL_PHASES)

    def _residuals(self, phase: float | None, ridge: float) -> Vector:
        """Residuals (r,) [m] of the pieces with the best R, s, y, b; for the mean constraint if the phase is None."""
        scaled, target = self._table(phase)
        return target - scaled @ np.linalg.solve(scaled.T @ scaled + ridge * np.eye(4), scaled.T @ target)

    def _table(self, phase: float | None) -> tuple[Vector, Vector]:
        """Columns (r, 4) of R, s, y, b over their tolerances, and the right-hand side (r,) [m]."""
        secants, tangents = self._means(phase)
        steps = self._pieces.steps
        sideways = -self._slant * self._pieces.sums(secants * (steps[:, 1] + self._x * steps[:, 2]))
        turning, lifting = self._pieces.sums(steps[:, 2]), self._slant * self._pieces.sums(tangents * steps[:, 2])
        table = np.column_stack([self._turned, sideways, turning, lifting])
        return table * self._deviations, self._along - table @ self._nominal

    def _means(self, phase: float | None) -> tuple[Vector, Vector]:
        """Means (m - 1,) of 1 / cos(phi) and tan(phi) over the wheel's turn in each step."""
        pitch = self._wheels.pitch
        if phase is None:
            steps = len(self._angles) - 1
            # The lateral factor corresponds to the mean of cos(phi) over uniform turning.
            mean = 0.5 * pitch / np.sin(0.5 * pitch)
            return np.full(steps, mean), np.zeros(steps)
        angle = self._angles + phase
        rollers = np.floor(angle / pitch + 0.5)
        phi = angle - pitch * rollers
        secant_sum = np.arcsinh(np.tan(phi)) + 2.0 * asinh(tan(0.5 * pitch)) * rollers
        tangent_sum = -np.log(np.cos(phi))
        step = np.diff(self._angles)
        at_rest = np.abs(step) < _STILL
        safe = np.where(at_rest, 1.0, step)
        secants = np.where(at_rest, 1.0 / np.cos(phi[:-1]), np.diff(secant_sum) / safe)
        tangents = np.where(at_rest, np.tan(phi[:-1]), np.diff(tangent_sum) / safe)
        return secants, tangents


def _cost(squares: Vector, ridge: float) -> float:
    """Minimum of |rhs - columns p|^2 + ridge |p|^2 [m2], from products (5, 5) of columns and right-hand side."""
    moment = squares[:4, 4]
    return float(squares[4, 4] - moment @ np.linalg.solve(squares[:4, :4] + ridge * np.eye(4), moment))


@dataclass(frozen=True, eq=False)
class RollerCalibration:
    """Geometry and phases."""

    calibration: Calibration  # the geometry
    phases: RollerPhaseFit | str  # at the wheel counts of the newest recording, or why they could not be estimated


def calibrate_with_rollers(
    recordings: Sequence[CalibrationSignals], wheels: RollingWheels, weights: Vector | None = None
) -> RollerCalibration:
    """Calibrate a base and estimate its roller phases.

    Phases refer to the driver's count of the wheels, which may restart with each recording. They are estimated in each
    recording, in the order of time; those of the newest are reported. The phases of `wheels`, which are as configured,
    are not used; `weights` (n,) are those of the wheels when they slip against each other, ones if not given.

    Raises:
        InputError: as `calibrate`.
    """
    calibration = calibrate(recordings, wheels.base)
    if not wheels.base.all_forward:
        return RollerCalibration(calibration, NO_PHASES)
    fits = _phases(recordings, calibration, wheels)
    if not any(isinstance(fit, RollerPhaseFit) and fit.identified for fit in fits):
        return RollerCalibration(calibration, fits[-1])
    smooth = [
        signals if isinstance(fit, str) or not fit.identified else without_ripple(signals, fit.wheels, weights)
        for signals, fit in zip(recordings, fits, strict=True)
    ]
    refined = calibrate(smooth, wheels.base)
    return RollerCalibration(refined, _phases(recordings, refined, wheels)[-1])


def without_ripple(
    signals: CalibrationSignals, wheels: RollingWheels, weights: Vector | None = None
) -> CalibrationSignals:
    """Signals with the wheel angles that the mean constraint would give on the same path; other slip is kept.

    The wheels have known phases; `weights` (n,) are as in `RollingWheels.roll`.
    """
    angles = signals.wheel_angles.copy()
    slip_projection = np.eye(len(wheels.base.radii)) - wheels.base.inverse_matrix @ wheels.base.forward_matrix
    for k in range(1, len(angles)):
        rolled = wheels.roll(signals.wheel_angles[k - 1], signals.wheel_angles[k], weights=weights)
        angles[k] = angles[k - 1] + wheels.base.wheel_speeds(rolled.displacement) + slip_projection @ rolled.residual
    return replace(signals, wheel_angles=angles)


def _phases(
    recordings: Sequence[CalibrationSignals], calibration: Calibration, wheels: RollingWheels
) -> list[RollerPhaseFit | str]:
    """Phases in each recording, or why they could not be estimated."""
    fits: list[RollerPhaseFit | str] = []
    nominal = RollingWheels(calibration.base, wheels.rollers, wheels.depth)
    for signals, offset in zip(recordings, calibration.offsets.tolist(), strict=True):
        try:
            recent = signals.wheel_time >= signals.wheel_time[-1] - EXCERPT
            times, angles = signals.wheel_time[recent], signals.wheel_angles[recent]
            yaw = np.unwrap(signals.poses[:, 2]) - calibration.sensor[2]
            poses = np.column_stack([signals.poses[:, :2] - planar.turned(calibration.sensor[:2], yaw), yaw])
            base_signals = CalibrationSignals(times, angles, signals.pose_time - offset, poses)
            fits.append(fit_roller_phases(base_signals, nominal))
        except YoubotDynamicsError as error:
            fits.append(str(error))
    return fits
