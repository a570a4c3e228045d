"""Odometry for a node or a scenario: with gyro, slip test and check of the wheel velocities.

The roller phases of each wheel follow from the ripple of a gyro while the base drives.

With the roller of wheel i at the angle phi_i from the lowest point, its row differs from the mean row by

    e_i = slant_i / R_i (vy + x_i wz) (m / cos(phi_i) - 1) - depth_i / R_i wz tan(phi_i)

(`kinematics.roller_phase`; m is the mean factor). phi_i is the angle w_i of the wheel plus its phase p_i, modulo the
pitch 2 pi / n. Only the first harmonic is used, which is linear in z_i = (cos(n p_i), sin(n p_i)):

    m / cos(phi_i) - 1 ~ a cos(n (w_i + p_i)),    tan(phi_i) ~ b sin(n (w_i + p_i))

Each step gives two measurements: the turn of the gyro minus that of the wheels by their mean rows, and the residual of
the wheels. A Kalman filter of the eight constants z uses both. The constraint that z_i is on the unit circle is not
used. With real rollers the estimate gets there anyway; on smooth wheels, or with a wrong number of rollers, z goes to
0.
Source: systems 31, 56.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import cos, inf, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.control.stamp_rhythm import StampRhythm
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.gyro_fault import gyro_fault
from youbot_dynamics.estimation.odometry._gyro import GyroCheck, GyroSettings, GyroTurn, GyroYaw
from youbot_dynamics.estimation.odometry._odometry import Odometry, OdometryState, SignCheck
from youbot_dynamics.estimation.odometry._slip import SlipSettings
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import mean_factor
from youbot_dynamics.kinematics.roller_phase import RollingWheels
from youbot_dynamics.robot import Robot

_PIECE = 0.4  # [s] over which speeds are summed
_MEMORY = 10.0  # [s] time constant of forgetting: a twentieth is left after three of them
_LONGEST_STEP = 0.2  # [s] between readings
_WILD = 1e9  # [rad, rad/s] beyond which a reading is no reading
_FEWEST = 10  # pieces in motion before a result
_MOTION = 0.02  # [rad] or [rad/s] in a piece: smaller motions are ignored, so that they do not reduce the error
_SURE = 3.0  # standard errors
_SCALE_OFF = 0.1  # relative tolerance between a speed and the derivative of the position
_LAG, _LAG_OFF = 0.01, 0.02  # [s] lag of a speed: that of the motor controllers' filter, and its tolerance


@dataclass(frozen=True, eq=False)
class SpeedChannels:
    """Consistency of the wheels' speeds and positions; arrays are read-only, NaN if unknown."""

    # (n,) reported speed over derivative of the position [1]: 1 if both are right, -1 for a sign error of the
    # driver
    scale: Vector
    scale_error: Vector  # (n,) standard error
    lag: Vector  # (n,) of the speeds behind the positions [s]
    lag_error: Vector  # (n,) standard error [s]


class SpeedChannelCheck:
    """Fits the reported speed of each wheel to its position, over pieces of time.

        position(t2) - position(t1) = (sum of speed dt + lag (speed(t2) - speed(t1))) / scale

    This is the integral, to first order, of a speed that is scale times the derivative of the position a lag ago. Sums
    of speeds need no numerical derivatives, in which the jitter of the stamps would hide the lag. Data fade with a
    time constant of 10 s, so one jump of an encoder does not remain as a wrong gear ratio. `joints` are the names of
    the wheels, for the report.
    """

    def __init__(self, joints: tuple[str, ...]) -> None:
        n = len(joints)
        self.joints = joints
        self._pieces = np.zeros(n)
        # Per wheel: products of the regressors with each other and with the turn, and of the turn with itself.
        self._squares, self._products, self._power = np.zeros((n, 2, 2)), np.zeros((n, 2)), np.zeros(n)
        self._last: tuple[float, Sequence[float], Sequence[float]] | None = None
        self._start: tuple[float, Sequence[float], Sequence[float]] | None = None
        self._sum = [0.0] * n

    def update(self, stamp: float, angles: Sequence[float], speeds: Sequence[float]) -> None:
        """Process one reading in our signs: (n,) angles [rad] and speeds [rad/s].

        A gap, a NaN, or a number beyond 1e9, whose square would stay in the sums for ever, starts a new piece.
        """
        if not sum(map(abs, (*angles, *speeds))) <= _WILD:
            self._last = self._start = None
            return
        last, self._last = self._last, (stamp, angles, speeds)
        if self._start is None or last is None or not 0.0 < stamp - last[0] <= _LONGEST_STEP:
            self._start, self._sum = self._last, [0.0] * len(self.joints)
            return
        half = 0.5 * (stamp - last[0])
        self._sum = [total + half * (a + b) for total, a, b in zip(self._sum, last[2], speeds, strict=True)]
        if stamp - self._start[0] >= _PIECE:
            self._add(np.subtract(angles, self._start[1]), np.subtract(speeds, self._start[2]))
            self._start, self._sum = self._last, [0.0] * len(self.joints)

    def _add(self, turned: Vector, gained: Vector) -> None:
        fade = np.exp(-_PIECE / _MEMORY)
        for sums in (self._squares, self._products, self._power, self._pieces):
            sums *= fade
        columns = np.column_stack([self._sum, gained])
        self._squares += columns[:, :, None] * columns[:, None, :]
        self._products += columns * turned[:, None]
        self._power += turned**2
        self._pieces += (np.abs(columns) > _MOTION).any(axis=1)

    def channels(self) -> SpeedChannels:
        """Present estimates."""
        n = len(self.joints)
        scale, scale_error, lag, lag_error = (np.full(n, np.nan) for _ in range(4))
        for k in range(n):
            squares = self._squares[k]
            if self._pieces[k] < _FEWEST or np.linalg.det(squares) <= 1e-9 * squares[0, 0] * squares[1, 1]:
                continue
            inverse, late = np.linalg.solve(squares, self._products[k]).tolist()
            variance = max(float(self._power[k] - self._products[k] @ [inverse, late]), 0.0) / (self._pieces[k] - 2)
            errors = np.sqrt(np.diag(np.linalg.inv(squares)) * variance)
            if inverse == 0.0:
                continue
            scale[k], scale_error[k] = 1.0 / inverse, errors[0] / inverse**2
            lag[k], lag_error[k] = late / inverse, errors[1] / abs(inverse)
        return SpeedChannels(*(read_only(values) for values in (scale, scale_error, lag, lag_error)))

    def complaints(self) -> tuple[str, ...]:
        """One text for each wheel with inconsistent speed and position, for the diagnostics."""
        texts = []
        known = self.channels()
        for k, name in enumerate(self.joints):
            scale, lag = float(known.scale[k]), float(known.lag[k])
            if abs(scale - 1.0) > _SCALE_OFF + _SURE * known.scale_error[k]:
                cause = "one of them has the wrong sign" if scale < 0.0 else "a gear ratio or unit is wrong"
                texts.append(f"{name}: speed over derivative of the position is {scale:.2f}, expected 1: {cause}")
            elif abs(lag - _LAG) > _LAG_OFF + _SURE * known.lag_error[k]:
                texts.append(f"{name}: speed lags by {1e3 * lag:.0f} ms, expected {1e3 * _LAG:.0f} ms")
        return tuple(texts)


_NEAR = 0.02  # [rad] by which a gyro that has not agreed with the wheels may differ: their slip in a drive, and a push
_WINDOW = 30.0  # [s] that a complaint stays after the last fault of a gyro
_TURNS = 3.0  # times the turn at the limit of the wheels, which a push or slipping wheels may exceed


class BaseEstimator:
    """Odometry with the known roller phases and a gyro if there is one, and the checks of its input.

    The node `odometry` and lock-step drives use the same class.

    Args:
        robot: geometry, roller phases if known, joints and resolution of the driver.
        slip: settings of the slip test.
        gyro: noise and bias of the gyro.
        find_phases: whether to estimate roller phases that are unknown or lost, with the gyro. Use it if the controller
            uses the phases, too: with commands by the mean rows wheels slip more than expected for known phases.

    Attributes:
        odometry: of the wheels alone until the gyro has turned with them once, then with the gyro. Until then the
            poses are the gyro's only while its yaw stays near that of the wheels.
        gyro: turn and bias of the gyro.
        gyro_used: whether the newest step used the turn of the gyro.
        gyro_missed: steps without the gyro although its bias was known: its stamps are too old, or of another clock.
        found_phases: (n,) roller phases estimated from gyro and wheels [rad]; None if there are none or they are as
            given.

    Raises:
        ModelError: phases are to be found on omni wheels.
    """

    def __init__(
        self,
        robot: Robot,
        slip: SlipSettings | None = None,
        gyro: GyroSettings | None = None,
        find_phases: bool = False,
    ) -> None:
        wheels = robot.base.geometry.wheels()
        if find_phases and not wheels.base.all_forward:
            got = "true on omni wheels or ones without rollers"
            raise ModelError("find_roller_phases", got=got, expected="false: they have no roller phases")
        self.odometry = Odometry(robot, wheels, slip)
        fastest = robot.base.limits.wheel_speed * float(np.abs(wheels.base.forward_matrix[2]).sum())
        self.gyro = GyroYaw(gyro or GyroSettings(), _TURNS * fastest)
        self._gyro_check = GyroCheck(wheels.base)
        self._with_gyro: Odometry | None = None  # what `odometry` becomes once the gyro has agreed
        self._near = True  # whether its yaw has stayed near that of the wheels
        self.gyro_used, self.gyro_missed = False, 0
        self._joints = robot.driver.wheel_joints
        # Stamps [s]: now, last fault of the gyro, last reading with roller phases.
        self._now, self._faulty_at, self._lost_at = 0.0, -inf, -inf
        self._faults = 0
        self._rhythm = StampRhythm()
        self._signs = SignCheck(self._joints)
        self._speeds = SpeedChannelCheck(self._joints)
        self.found_phases: Vector | None = None
        self._given = robot.base.geometry.roller_phases is not None
        self._finder = PhaseFinder(wheels, robot.base.wheel_weights()) if find_phases else None
        self._breaks = (0, "")  # number of jumps, and reason for lost phases, when the finder started

    def take_wheels(self, stamp: float, position: ArrayLike, velocity: ArrayLike | None = None) -> OdometryState | None:
        """Process a reading of the wheels in our signs at a stamp [s]; None if it makes no step, see `Odometry.update`.

        Position (n,) is in rad; velocity (n,) [rad/s] is optional and only checked. If the stamps scatter about the
        driver's period, the stamp of the state is regular: see `StampRhythm`.
        """
        angles: list[float] = np.asarray(position, dtype=float).tolist()
        stamp = self._rhythm.take(stamp, angles)
        if velocity is not None:
            speeds: list[float] = np.asarray(velocity, dtype=float).tolist()
            self._signs.update(stamp, angles, speeds)
            self._speeds.update(stamp, angles, speeds)
        begin = self.odometry.last_stamp
        turn = None if begin is None else self.gyro.turn(begin, stamp)
        before = self.odometry.last_angles
        used = self._gyro_check.agreed
        state = self._update_both(stamp, position, turn) if not used else self.odometry.update(stamp, position, turn)
        doubted = self._gyro_check.ratio is not None
        if self._finder is not None and state is not None and before is not None and turn is not None and not doubted:
            self._find_phases(self._finder, before, np.asarray(position, dtype=float) - before, turn)
        if state is not None:
            self.gyro_used = turn is not None and (self._gyro_check.agreed or (self._near and not doubted))
            self.gyro_missed += turn is None and self.gyro.bias is not None and not doubted
        self._now, faults = stamp, self.gyro_missed + self.gyro.gaps + self.gyro.late + self.gyro.impossible
        if faults > self._faults:
            self._faults, self._faulty_at = faults, stamp
        if not self.odometry.phases_lost:
            self._lost_at = stamp
        return state

    def _update_both(self, stamp: float, position: ArrayLike, turn: GyroTurn | None) -> OdometryState | None:
        """Process a reading by the wheels alone, and with a gyro that has not agreed with them yet.

        A gyro of another sign would steer the base the wrong way until its turns show it. So it gives the poses only
        while its yaw is near that of the wheels, which then cannot be far off; and no wheel is tested against it. One
        that agrees gives the pose that it would have given from the start.
        """
        check, before = self._gyro_check, self.odometry.last_angles
        doubted = check.ratio is not None
        if self._with_gyro is None and turn is not None and not doubted:
            self._with_gyro = deepcopy(self.odometry)
        state = self.odometry.update(stamp, position)
        other = None if self._with_gyro is None else self._with_gyro.update(stamp, position, turn)
        if state is None or before is None:
            return state
        if turn is not None:
            check.update(np.asarray(position, dtype=float) - before, turn.angle)
        if other is not None:
            self._near = self._near and abs(planar.wrap(float(other.pose[2] - state.pose[2]))) <= _NEAR
            state = other if self._near or check.agreed else state
        if check.agreed and self._with_gyro is not None:
            self.odometry = self._with_gyro
        if check.agreed or check.ratio is not None:
            self._with_gyro = None
        if check.ratio is not None and not doubted and self._finder is not None:
            self._finder.clear()
        return state

    def _find_phases(self, finder: PhaseFinder, before: Vector, step: Vector, turn: GyroTurn) -> None:
        """Estimate the roller phases in a step, unless valid ones are given, and pass them on to odometry."""
        breaks = (self.odometry.jumps, self.odometry.phases_lost)
        if breaks != self._breaks:
            self._breaks, self._given, self.found_phases = breaks, self._given and not breaks[1], None
            finder.clear()
        if self._given:
            return
        phases = finder.update(before, step, turn.angle, turn.variance)
        if phases is not None:
            for odometry in filter(None, (self.odometry, self._with_gyro)):
                odometry.take_phases(phases)
            self._breaks, self.found_phases = (breaks[0], ""), phases

    def reset(self) -> None:
        """Begin a new pose at the origin; see `Odometry.reset`."""
        for odometry in filter(None, (self.odometry, self._with_gyro)):
            odometry.reset()

    def take_rate(self, stamp: float, rate: float) -> None:
        """Process a yaw rate [rad/s] of the gyro, positive to the left, at its stamp [s] on the clock of the wheels."""
        self.gyro.update(stamp, rate, self.odometry.standing)

    def contradictions(self) -> tuple[str, ...]:
        """Names of the wheel joints whose position and velocity move in opposite directions."""
        return self._signs.contradicting()

    def complaints(self) -> tuple[str, ...]:
        """Faults and avoidable losses of accuracy, one text each, the worst first.

        A fault of the gyro is reported for 30 s; lost roller phases are reported all the time.
        """
        odometry, gyro = self.odometry, self.gyro
        texts = [odometry.slip.text(self._joints)] if odometry.slip.alarm else []
        if odometry.phases_lost:
            texts.append(
                f"roller phases are no longer valid: {odometry.phases_lost} {self._now - self._lost_at:.0f} s ago; "
                "using mean kinematics: record a bag with a pose and identify the phases again"
            )
        ratio = self._gyro_check.ratio
        if ratio is not None and (fault := gyro_fault(ratio)) is not None:
            agreeing = ", which agree with each other" if self._gyro_check.redundant else ""
            texts.append(
                f"gyro: left out, since {fault.words}: its turn is {ratio:.2g} times that of the wheels{agreeing}; "
                f"{fault.remedy}"
            )
        texts.extend(self._speeds.complaints())
        if 0.0 <= (age := self._now - self._faulty_at) < _WINDOW:
            texts.append(
                f"gyro: {self.gyro_missed} steps without its yaw rate, {gyro.gaps} gaps, {gyro.late} late "
                f"rates, {gyro.impossible} impossible rates, the last one {age:.0f} s ago: check that its stamps are "
                f"on the clock of the wheels, that it comes regularly and that it is in rad/s"
            )
        return tuple(texts)


# Relative noise of the wheels' turn, where contacts give way: in the turn of the base, and in the residual of the
# wheels.
_SHARE_OF_TURN, _SHARE_OF_SLIP = 0.02, 0.05
_LEAST_TURN, _LEAST_SLIP = 3e-5, 2.4e-4  # [rad] of noise in a step
_LEAST_STEP = 1e-4  # [rad] of the fastest wheel: smaller steps are ignored
_SMALLEST, _LARGEST = 0.6, 1.4  # norm of z for rollers as assumed
_GOOD = 1.0 / 20.0  # standard error over the pitch below which phases are useful: a third of the ripple is left
_BETTER = 0.5  # ratio to the last reported error at which new phases are reported


class _Constants(NamedTuple):
    """Constants of a base."""

    rollers: float  # of a wheel, n
    turn_of: Vector  # (4,) turn of the base from the turns of its wheels, mean rows [1]
    sideways_of: Vector  # (4,) its sideways displacement for a known turn [m]
    turning: Vector  # (4,) column of the mean rows for the turn [1]
    slip_of: Vector  # (4,) slip direction of the wheels [1]
    slants: Vector  # (4,) a slant_i / R_i [1/m]
    depths: Vector  # (4,) b depth_i / R_i [1]
    ahead: Vector  # (4,) x_i [m]


@compiled
def _take(
    base: _Constants, state: Vector, covariance: Vector, before: Vector, step: Vector, turn: float, variance: float
) -> None:
    """Update z (8,), cosines first, and its covariance (8, 8) by a step; arguments as `PhaseFinder.update`."""
    n = len(step)
    sideways, seen, slipped, moved, fastest = 0.0, turn, 0.0, 0.0, 0.0
    for i in range(n):
        sideways += base.sideways_of[i] * (step[i] - base.turning[i] * turn)
        seen -= base.turn_of[i] * step[i]
        slipped += base.slip_of[i] * step[i]
        moved += abs(base.turn_of[i] * step[i])
        fastest = max(fastest, abs(step[i]))
    row, gain = np.zeros(2 * n), np.zeros(2 * n)
    for reading in range(2):
        for i in range(n):
            angle = base.rollers * (before[i] + 0.5 * step[i])
            secant, tangent = base.slants[i] * (sideways + base.ahead[i] * turn), -base.depths[i] * turn
            share = -base.turn_of[i] if reading == 0 else base.slip_of[i]
            row[i] = share * (secant * cos(angle) + tangent * sin(angle))
            row[i + n] = share * (tangent * cos(angle) - secant * sin(angle))
        if reading == 0:
            total = variance + _LEAST_TURN**2 + (_SHARE_OF_TURN * moved) ** 2
            innovation = seen
        else:
            total = _LEAST_SLIP**2 + (_SHARE_OF_SLIP * fastest) ** 2
            innovation = slipped
        for i in range(2 * n):
            gain[i] = 0.0
            for j in range(2 * n):
                gain[i] += covariance[i, j] * row[j]
            innovation -= row[i] * state[i]
        for i in range(2 * n):
            total += row[i] * gain[i]
        for i in range(2 * n):
            state[i] += gain[i] * innovation / total
            for j in range(2 * n):
                covariance[i, j] -= gain[i] * gain[j] / total


class PhaseFinder:
    """Estimates the roller phases of a base of four wheels, whose given phases are ignored.

    `weights` (4,) are those of the wheels in the least squares of their motion.
    """

    def __init__(self, wheels: RollingWheels, weights: Vector) -> None:
        base, mean = wheels.base, wheels.base.inverse_matrix
        self._pitch = wheels.pitch
        roots, tangents = np.sqrt(weights), base.slants
        phi = wheels.pitch * ((np.arange(256) + 0.5) / 256 - 0.5)
        secant = 2.0 * float(np.mean((mean_factor(wheels.rollers) / np.cos(phi) - 1.0) * np.cos(wheels.rollers * phi)))
        tangent = 2.0 * float(np.mean(np.tan(phi) * np.sin(wheels.rollers * phi)))
        self._base = _Constants(
            float(wheels.rollers),
            np.ascontiguousarray((np.linalg.pinv(roots[:, None] * mean) * roots)[2]),
            np.ascontiguousarray((np.linalg.pinv(roots[:, None] * mean[:, :2]) * roots)[1]),
            np.ascontiguousarray(mean[:, 2]),
            np.ascontiguousarray(base.slip(np.eye(len(mean)))[:, 0]),
            secant * tangents / base.lateral_factor / base.radii,
            tangent * wheels.depth * tangents / base.radii,
            np.ascontiguousarray(base.positions[:, 0]),
        )
        self.clear()
        # Compile now: a node that compiles while driving would not respond for seconds.
        self.update(np.zeros(len(mean)), np.full(len(mean), _LEAST_STEP), 0.0, 0.0)
        self.clear()

    def clear(self) -> None:
        """Restart: the wheel counts jumped, or estimated phases turned out wrong."""
        size = 2 * len(self._base.ahead)
        self._state, self._covariance = np.zeros(size), 0.5 * np.eye(size)
        self._reported_error = np.inf

    @property
    def errors(self) -> Vector:
        """Standard errors (4,) of the phases [rad]; infinite if no rollers of this number are visible."""
        (c, s), own = self._state.reshape(2, -1), np.arange(len(self._base.ahead))
        p, behind = self._covariance, own + len(own)
        across = s**2 * p[own, own] - 2.0 * s * c * p[own, behind] + c**2 * p[behind, behind]
        square = c**2 + s**2
        there = (square > _SMALLEST**2) & (square < _LARGEST**2)
        errors: Vector = np.where(there, np.sqrt(np.maximum(across, 0.0)) / np.maximum(square, _SMALLEST**2), np.inf)
        return errors / self._base.rollers

    def update(self, before: Vector, step: Vector, turn: float, variance: float) -> Vector | None:
        """Process wheel angles (4,) [rad], their step (4,) and the turn of a gyro in it [rad] with its variance.

        Returns:
            The phases (4,) [rad] once all are known to a twentieth of the pitch, and again when their error has halved.
        """
        if np.abs(step).max() < _LEAST_STEP:
            return None
        _take(self._base, self._state, self._covariance, before, step, turn, variance)
        error = float(self.errors.max())
        if error > min(_GOOD * self._pitch, _BETTER * self._reported_error):
            return None
        self._reported_error = error
        c, s = self._state.reshape(2, -1)
        return np.arctan2(s, c) / self._base.rollers
