"""Slip test: detects wheels whose turn does not fit the others, and bounds the effect on the pose.

Four wheels and three speeds leave one residual, n.w with n = (1, 1, -1, -1) / 2; three wheels leave none. It shows that
a wheel slips or has a wrong count or radius, but not which wheel: each of the four gives the same number. A gyro adds a
second residual, the turn. Two wheels on one diagonal then differ only in its sign. If slipping wheels always turn
further than they roll, the sign identifies the wheel as soon as the two turn in the same direction, that is, not while
the base turns on the spot.

If all wheels fit each other but creep over the floor, there is no residual. Without a gyro or a pose that slip is
unobservable.
Source: system 31.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.estimation.odometry._gyro import GyroTurn
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.roller_phase import RollingWheels, contact_angle, contact_row
from youbot_dynamics.parameters import Settings, fixed_setting

_GRID = 24  # tested phases of a roller of unknown phase: 2.5 degrees apart for 6 rollers
_SURE = 4.0  # standard deviations of random terms in a bound
_ROUNDING = 1e-9  # [rad] of sums, for sensors without a quantum
_CREEP = 0.002  # [rad/s] of each wheel, 0.1 mm/s at a rim; in MuJoCo wheels at rest creep by 0.7 mrad/s
_OF_ANOTHER = 0.8  # sine of the angle between a residual and that of a wheel, above which the wheel is excluded


@dataclass(frozen=True)
class SlipSettings(Settings):
    """Settings of the slip test, by which a frozen encoder is reported: fixed while it runs."""

    slip_window: float = fixed_setting(
        0.25,
        "Time over which the residual is summed.",
        "s",
        (0.05, 5.0),
        source="chosen: a 20 % error is to be seen within 0.3 s",
    )
    slip_hold: float = fixed_setting(
        2.0,
        "How long the residual must be small until a slip counts as over.",
        "s",
        (0.0, 60.0),
        source="chosen: several windows",
    )
    slip_tolerance: float = fixed_setting(
        0.01,
        "Error of a wheel's radius, including creep, that does not count as slip.",
        "1",
        (0.0, 0.5),
        source="chosen: wheels differ by up to 1 %",
    )
    channel_delay: float = fixed_setting(
        0.001,
        "Delay between the channels of two wheels in one message.",
        "s",
        (0.0, 0.1),
        source="youbot/youbot_driver@814989d config/youbot-ethercat.cfg: cycle of 1 ms",
    )
    phase_tolerance: float = fixed_setting(
        0.05, "Error of a known roller phase.", "rad", (0.0, 0.5), source="chosen: accuracy of the phases from a bag"
    )
    wheels_overrun: bool = fixed_setting(
        False,
        "Whether a wheel that does not fit the others always turns further than it rolls; with a gyro this "
        "identifies the wheel.",
        source="chosen: a wheel may slip either way",
    )


@dataclass(frozen=True, eq=False)
class SlipReport:
    """Result of the slip test after one step."""

    alarm: bool  # whether a wheel does not fit, now or within the hold time
    level: float  # largest residual sum over its bound, in this step
    # (n,) excess turn [rad] of each wheel if it were the only cause: of this step; in the step in which the alarm
    # starts, of the whole window; zeros without alarm
    excess: Vector
    wheel: int | None  # index of that wheel, if gyro and known sign identify it
    highest: float = 0.0  # largest level since the alarm began
    of_turn: bool = False  # whether only the turn of a gyro has shown it since then: the wheels agree with each other

    def text(self, joints: Sequence[str]) -> str:
        """Text of the alarm for the diagnostics; empty without one. `joints`: names of the wheels."""
        if not self.alarm:
            return ""
        if self.of_turn and self.wheel is None:
            return (
                f"the turn by the wheels does not fit that by the gyro: up to {self.highest:.1f} times the bound; "
                "slip, a wrong size or distance of the wheels, or late stamps of the gyro or the wheels"
            )
        which = "a wheel" if self.wheel is None else joints[self.wheel]
        unknown = f"; which of {', '.join(joints)} is unknown" if self.wheel is None else ""
        why = "by slip, a wrong count or a wrong radius"
        return f"{which} does not fit the other wheels, {why}: up to {self.highest:.1f} times the bound{unknown}"


# A row of the window: sums from the start up to one step, then the terms of the bounds of that step; from _WHEELS on
# residual, turned, travel and speeds (n,) each, and the ripple (n, k).
_TIME, _TURN, _TURN_VARIANCE, _BIAS_ERROR, _RATE, _WHEELS = range(6)


@compiled
def _sum_up(
    wheels: Vector,
    offsets: Vector,
    dt: float,
    before: Vector,
    step: Vector,
    move: Vector,
    residual: Vector,
    variance: float,
    bias: float,
    limits: Vector,
    last: Vector,
    row: Vector,
    oldest: Vector,
    directions: Vector,
    of_wheels_alone: int,
    total: Vector,
) -> tuple[float, float]:
    """Write the row (w,) after the last one (w,), and test the window from the `oldest` row (w,) to it.

    `wheels` (n, 10) are x, y, radius and part of vx of each, then slant, depth and phase as supposed, whose rollers may
    be off by `offsets` (k,) [rad], and those in use; `limits` (7,) the terms of the bounds and the pitches of both, in
    arrays since each item of a tuple takes a call as long as the sums of a wheel. From `dt` to `bias` it is the step.
    `directions` (m, n) span the residual space; one after those `of_wheels_alone` is that of a turn. The sums along
    them [rad] are written into `total` (m,). Returns the largest ratio of a sum to its bound, of the wheels and of the
    turn.
    """
    tolerance, delay, quantum, jitter, lever, pitch, used_pitch = limits
    n, count = len(step), len(offsets)
    row[_TIME] = last[_TIME] + dt
    row[_TURN] = last[_TURN] + abs(move[2])
    row[_TURN_VARIANCE] = last[_TURN_VARIANCE] + variance
    row[_BIAS_ERROR] = last[_BIAS_ERROR] + bias
    row[_RATE] = move[2] / dt
    of_wheels = np.zeros(n)
    for i in range(n):
        at, ripple, widest = _WHEELS + i, _WHEELS + 4 * n + i * count, 0.0
        row[at] = last[at] + residual[i]
        row[at + n] = last[at + n] + step[i]
        row[at + 2 * n] = last[at + 2 * n] + abs(step[i])
        row[at + 3 * n] = step[i] / dt
        x, y, radius, along, slant, depth, phase, used_slant, used_depth, used_phase = wheels[i]
        angle = before[i] + 0.5 * step[i]
        a, b, c = contact_row(x, y, radius, along, used_slant, used_depth, contact_angle(angle, used_phase, used_pitch))
        expected = a * move[0] + b * move[1] + c * move[2]
        for h in range(count):
            phi = contact_angle(angle + offsets[h], phase, pitch)
            a, b, c = contact_row(x, y, radius, along, slant, depth, phi)
            row[ripple + h] = last[ripple + h] + (a * move[0] + b * move[1] + c * move[2] - expected)
            widest = max(widest, abs(row[ripple + h] - oldest[ripple + h]))
        swing = delay * abs(row[at + 3 * n] - oldest[at + 3 * n])
        travel, creep = row[at + 2 * n] - oldest[at + 2 * n], _CREEP * (row[_TIME] - oldest[_TIME])
        of_wheels[i] = widest + tolerance * travel + creep + swing + quantum
    level, level_of_turn = 0.0, 0.0
    for m in range(len(directions)):
        total[m], bound = 0.0, 0.0
        for i in range(n):
            total[m] += directions[m, i] * (row[_WHEELS + i] - oldest[_WHEELS + i])
            bound += abs(directions[m, i]) * of_wheels[i]
        if m >= of_wheels_alone:
            # Noise is independent in each step; the bias is the same in all steps.
            noise = row[_TURN_VARIANCE] - oldest[_TURN_VARIANCE] + (jitter * row[_RATE]) ** 2
            noise += (row[_BIAS_ERROR] - oldest[_BIAS_ERROR]) ** 2 + (jitter * oldest[_RATE]) ** 2
            bound += lever * (tolerance * (row[_TURN] - oldest[_TURN]) + _SURE * sqrt(noise))
            level_of_turn = abs(total[m]) / bound
        else:
            level = max(level, abs(total[m]) / bound)
    return level, level_of_turn


class SlipTest:
    """Compares sums of the residual over a window with their bound for wheels that roll.

    For a direction g (n,) of the residual space, |g.sum(r)| is compared with

        sum |g_i| (max over phases |e_i| + tolerance travel_i + creep T + delay |w_i(end) - w_i(start)| + quantum)

    where e_i is the ripple: the extra turn of wheel i in the displacements of the window, relative to the rows in use,
    for any position of its roller (unknown phases) or within the tolerance (known phases), and T the length of the
    window; the creep [rad/s] is what wheels at rest may turn against each other. The jitter of the stamps is
    not included, because all wheels of a message share it. The direction of a gyro's turn adds 4 standard deviations of
    its noise and bias and of the stamp jitter, and the tolerance of the turn. `wheels` have the rows in use, `quantum`
    is that of the wheel angles [rad], `stamp_jitter` the standard deviation of the stamps [s].
    """

    def __init__(self, wheels: RollingWheels, settings: SlipSettings, quantum: float, stamp_jitter: float) -> None:
        self.settings = settings
        base = wheels.base
        n = len(base.radii)
        self._null = np.ascontiguousarray(np.array([base.slip(unit) for unit in np.eye(n)]).T)
        plane = base.inverse_matrix[:, :2]
        spread = np.linalg.pinv(plane)
        across: Vector = base.inverse_matrix[:, 2] - plane @ (spread @ base.inverse_matrix[:, 2])
        lever = float(np.linalg.norm(across))
        self._turning = across / lever
        self._with_turn = np.vstack([self._null, self._turning])
        known = wheels.phases is not None or not base.all_forward  # the contact of omni wheels stays where it is
        used = wheels.constants
        supposed = used if known else wheels.at_phases(np.zeros(n)).constants
        of_both = [column for rows in (supposed, used) for column in (rows.slants, rows.depths, rows.phases)]
        self._wheels = np.column_stack([used.positions, used.radii, used.along, *of_both])
        tolerance = settings.phase_tolerance
        self._offsets = np.array([-tolerance, tolerance]) if known else np.arange(_GRID) * wheels.pitch / _GRID
        terms = (settings.slip_tolerance, settings.channel_delay, max(quantum, _ROUNDING), stamp_jitter, lever)
        self._limits = np.array([*terms, supposed.pitch, used.pitch])
        self._window: deque[Vector] = deque()
        self._alarm, self._calm = False, 0.0
        self._highest, self._of_turn = 0.0, True  # since the alarm began
        self._suspects = np.ones(n, dtype=bool)
        self.clear()

    def clear(self) -> None:
        """Discard the window, as after a jump of the encoders; an alarm lasts until the residual stays small."""
        n = len(self._turning)
        self._window = deque([np.zeros(_WHEELS + 4 * n + n * len(self._offsets))])

    def update(
        self,
        dt: float,
        before: Vector,
        step: Vector,
        displacement: Vector,
        residual: Vector,
        turn: GyroTurn | None = None,
    ) -> SlipReport:
        """Process one step.

        Args:
            dt: [s].
            before: (n,) wheel angles at the start [rad].
            step: (n,) turn of each wheel [rad].
            displacement: (3,) of the base, from the wheels (and the gyro).
            residual: (n,) turn minus that of the base motion [rad], with the gyro's turn if it is given.
            turn: of the gyro, if it was used.
        """
        window, last = self._window, self._window[-1]
        row = np.empty(len(last))
        row[_TIME] = last[_TIME] + dt
        window.append(row)
        while len(window) > 2 and row[_TIME] - window[1][_TIME] >= self.settings.slip_window - 1e-6:
            window.popleft()
        variance, bias = (0.0, 0.0) if turn is None else (turn.variance, turn.bias_error)
        directions = self._null if turn is None else self._with_turn
        total, moved = np.empty(len(directions)), (dt, before, step, displacement, residual, variance, bias)
        ways = directions, len(self._null), total
        of_wheels, of_turn = _sum_up(self._wheels, self._offsets, *moved, self._limits, last, row, window[0], *ways)
        level = max(of_wheels, of_turn)
        begins = level > 1.0 and not self._alarm
        self._calm = 0.0 if level > 1.0 else self._calm + dt
        self._alarm = begins or (self._alarm and self._calm <= self.settings.slip_hold)
        if not self._alarm:
            return SlipReport(False, level, np.zeros(len(step)), None)
        if begins:
            self._suspects[:] = True
            self._highest, self._of_turn = 0.0, True
        self._highest, self._of_turn = max(self._highest, level), self._of_turn and of_wheels <= 1.0
        if turn is not None and self.settings.wheels_overrun and level > 1.0:
            n = len(step)
            turned = (row - window[0])[_WHEELS + n : _WHEELS + 2 * n]
            self._suspects &= _could_have_left(directions, total, turned)
        wheel = int(np.argmax(self._suspects)) if np.sum(self._suspects) == 1 else None
        excess = _excess(directions, total if begins else directions @ residual)
        return SlipReport(True, level, excess, wheel, self._highest, self._of_turn)


def _excess(directions: Vector, total: Vector) -> Vector:
    """Turn (n,) [rad] of each single wheel that fits residuals (m,) along directions (m, n) best."""
    turns: Vector = (total @ directions) / (directions * directions).sum(axis=0)
    return turns


def _could_have_left(directions: Vector, total: Vector, turned: Vector) -> NDArray[np.bool_]:
    """Wheels (n,) that turned by (n,) and could have caused residuals (m,) along directions (m, n) by turning."""
    excess = _excess(directions, total)
    excess[excess * turned <= 0.0] = 0.0
    missed = np.linalg.norm(total[:, None] - directions * excess, axis=0)
    possible: NDArray[np.bool_] = missed < _OF_ANOTHER * np.linalg.norm(total)
    return possible


_quotients = compiled(planar.arc_quotients)


@compiled
def displacement_jacobians(displacement: Vector) -> tuple[Vector, Vector]:
    """Jacobians of `pose_next = compose(pose, exponential(d))` for errors in the body frame.

    A pose error e_k in the body frame becomes e_(k+1) = A e_k + B d_error with A = Ad(exp(-d)) and B the right Jacobian
    of SE(2). B is taken to first order, B = I - ad(d)/2. For odometry steps, |turn| < 0.1 rad, the relative error of
    the noise is below 2e-3. `displacement` (3,) is d, body twist x time [m, m, rad]; A and B (3, 3) are returned.
    """
    dx, dy, turn = displacement[0], displacement[1], displacement[2]
    c, s, half = cos(turn), sin(turn), 0.5 * turn
    along, across = _quotients(turn)
    x, y = dx * along - dy * across, dx * across + dy * along
    # A yaw error rotates the displacement: velocity of the point (x, y) under a unit yaw rate.
    adjoint = np.array([[c, s, s * x - c * y], [-s, c, s * y + c * x], [0.0, 0.0, 1.0]])
    return adjoint, np.array([[1.0, half, -0.5 * dy], [-half, 1.0, 0.5 * dx], [0.0, 0.0, 1.0]])


@compiled
def _move(pose: Vector, errors: Vector, closed: Vector, displacement: Vector, added: Vector, noise: Vector) -> Vector:
    a, b = displacement_jacobians(displacement)
    errors[:] = errors @ a.T + added @ b.T
    closed[:] = a @ closed @ a.T + (b * noise) @ b.T
    along, across = _quotients(displacement[2])
    x = displacement[0] * along - displacement[1] * across
    y = displacement[0] * across + displacement[1] * along
    c, s = cos(pose[2]), sin(pose[2])
    return np.array([pose[0] + c * x - s * y, pose[1] + s * x + c * y, pose[2] + displacement[2]])


@compiled
def _covariance(errors: Vector, closed: Vector, yaw: float) -> Vector:
    c, s = cos(yaw), sin(yaw)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    rotated: Vector = turn @ (closed + errors.T @ errors) @ turn.T
    return 0.5 * (rotated + rotated.T)


class CoherentErrors:
    """Pose errors that grow in the same direction from step to step: a slipping wheel, a bias of the gyro.

    They are not a random walk. Each is one vector in the body frame that moves with the base, e <- A e + B d; their
    covariance is the sum of e e'. So the error of any one of them stays within one standard deviation. Independent
    noise of each step, and errors that have ended, form a separate covariance, P <- A P A' + B Q B'.
    """

    def __init__(self, count: int) -> None:
        self.errors = np.zeros((count, 3))
        self._closed: NDArray[np.float64] = np.zeros((3, 3))

    def move(
        self, pose: Vector, displacement: Vector, added: Vector, noise: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> Vector:
        """Propagate the m errors over a displacement (3,) [m, m, rad]; returns the pose (3,) after it.

        They grow by `added` (m, 3) in the body frame [m, m, rad]; `noise` (3,) are the variances of independent noise.
        """
        moved: Vector = _move(pose, self.errors, self._closed, displacement, added, np.array(noise))
        return moved

    def close(self, which: slice = slice(None)) -> None:
        """Freeze some errors, independent of later ones: another slip is an error of another wheel."""
        chosen = self.errors[which]
        self._closed += chosen.T @ chosen
        self.errors[which] = 0.0

    def covariance(self, yaw: float = 0.0) -> Vector:
        """Covariance (3, 3) of the pose, in a frame from which the body is turned by `yaw` [rad]."""
        covariance: Vector = _covariance(self.errors, self._closed, yaw)
        return covariance
