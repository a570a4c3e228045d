"""Turn of the base from a gyro: bias at standstill, and the rate integrated between two wheel readings."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import hypot, isfinite, sqrt

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.gyro_fault import gyro_fault
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameters import Settings, setting

_KEPT = 5.0  # [s] of rates that are stored for later wheel readings
_GATE = 5.0  # standard deviations; a larger rate at standstill means that something turns the base
_LATE_MEANS_RESTART = 10  # rates in a row
_RANGE = 35.0  # [rad/s] of common MEMS gyros, 2000 deg/s


@dataclass(frozen=True)
class GyroSettings(Settings):
    """Noise and bias of the gyro."""

    gyro_noise: float = setting(
        2e-4,
        "Noise density of the yaw rate.",
        "rad/s/sqrt(Hz)",
        (1e-7, 0.1),
        source="chosen: 0.011 deg/s/sqrt(Hz), as small MEMS gyros have",
    )
    gyro_largest_bias: float = setting(
        0.05,
        "Standard deviation of the bias before it is measured at standstill.",
        "rad/s",
        (1e-4, 1.0),
        source="chosen: 3 deg/s, zero-rate offset of small MEMS gyros",
    )
    gyro_bias_drift: float = setting(
        2e-5,
        "Drift of the bias: its standard deviation after one second.",
        "rad/s/sqrt(s)",
        (0.0, 0.01),
        source="chosen: 0.01 deg/s in a minute",
    )
    gyro_scale_error: float = setting(
        0.01,
        "Standard deviation of the scale of its rates: standstill shows the bias, but not the scale.",
        "1",
        (0.0, 0.2),
        source="chosen: 1 %, sensitivity tolerance of small MEMS gyros",
    )
    gyro_standstill: float = setting(
        1.0,
        "Total time at rest before the gyro is used.",
        "s",
        (0.1, 60.0),
        source="chosen: fifty messages at 50 Hz",
    )
    gyro_longest_gap: float = setting(
        0.1,
        "Longest time between two rates; the turn in a longer gap counts as unknown.",
        "s",
        (0.002, 1.0),
        source="chosen: five periods at 50 Hz",
    )


@dataclass(frozen=True)
class GyroTurn:
    """Turn of the base between two times."""

    angle: float  # [rad], positive to the left
    variance: float  # of its noise, which is independent in each turn [rad2]
    bias_error: float  # standard deviation of the bias times the time [rad]: the same error in all following turns
    # Standard deviation of the scale times the angle, with its sign [rad]: cancels when the base turns back
    scale_error: float = 0.0


# Turn [rad] that is compared, after how many of them a gyro is doubted, and distance [m] within which one must end: on
# longer ways radii of wheels that differ by 1 % turn the base by more.
_COMPARED, _COMPARISONS, _WITHIN = 0.1, 3, 1.0
_AGREE = 0.1  # slip of the wheels against each other over their turn, below which they agree


class GyroCheck:
    """Compares the turns of a gyro with those of wheels that agree, until it has turned with them once.

    A gyro with another sign, unit or axis shows at the first turns, and would steer a base the wrong way. Later on it
    is the wheels that may slip. Three omni wheels, or two fixed ones, cannot disagree with each other.

    Args:
        base: mean rows of the wheels.

    Attributes:
        agreed: whether it has turned with the wheels.
        ratio: turn of a gyro that does not turn as the wheels do over theirs [1]; None while there is no such doubt.
        redundant: whether the wheels could disagree with each other.
    """

    def __init__(self, base: MecanumBase) -> None:
        self.agreed = False
        self.ratio: float | None = None
        self._base, self.redundant = base, len(base.radii) > base.motions.shape[1]
        self._steps, self._turn = np.zeros(len(base.radii)), 0.0
        self._turns: list[tuple[float, float]] = []

    def update(self, step: Vector, turn: float) -> None:
        """Compare a step (n,) of the wheels [rad] with the turn of the gyro [rad]."""
        if self.agreed:
            return
        self._steps, self._turn = self._steps + step, self._turn + turn
        forward, sideways, turned = (self._base.forward_matrix @ self._steps).tolist()
        if abs(turned) < _COMPARED and hypot(forward, sideways) < _WITHIN:
            return
        slip = float(np.linalg.norm(self._base.slip(self._steps)))
        alike = slip <= _AGREE * float(np.linalg.norm(self._steps))
        measured, self._steps, self._turn = self._turn, np.zeros(len(step)), 0.0
        if abs(turned) < _COMPARED or not alike:
            return
        self._turns = [*self._turns, (turned, measured)][-_COMPARISONS:]
        ratio = sum(wheels * gyro for wheels, gyro in self._turns) / sum(wheels**2 for wheels, _ in self._turns)
        # One turn is enough to trust a gyro, as no fault looks like a turn with the wheels; not to accuse it, as all
        # wheels may slip at a start. A gyro that was wrong must turn with them as often as it did not.
        self.agreed = gyro_fault(ratio) is None
        if self.agreed or len(self._turns) == _COMPARISONS:
            self.ratio = None if self.agreed else ratio


class GyroYaw:
    """Integrates yaw rates and estimates their bias.

    Rates are linear between their stamps. The bias is a random walk. While the wheels stand, a Kalman filter of one
    state observes it: at standstill rate = bias + noise, of variance density^2 / dt.

    Args:
        settings: noise, bias and gaps.
        fastest: turn that can be [rad/s]; rates beyond it and the largest bias are lost ones.

    Attributes:
        refused: rates at standstill that were beyond the gate: the base was turned, or the bias jumped.
        late: rates with a stamp that is not after the previous one.
        gaps: gaps longer than allowed.
        impossible: rates that are not finite or too fast.
    """

    def __init__(self, settings: GyroSettings, fastest: float = _RANGE) -> None:
        self.settings = settings
        self._fastest = fastest
        self.refused = self.late = self.gaps = self.impossible = 0
        self._late_in_a_row = 0
        self._bias, self._bias_variance = 0.0, settings.gyro_largest_bias**2
        self._rested = 0.0
        # Stamps, rates and their integral since the first stored one; a gap resets them.
        self._stamps: list[float] = []
        self._rates: list[float] = []
        self._angles: list[float] = []
        self._last_turn: tuple[float, float] | None = None  # end of the last turn [s], and the integral there

    @property
    def bias(self) -> tuple[float, float] | None:
        """Bias and its standard deviation [rad/s]; None until the base has stood long enough."""
        if self._rested < self.settings.gyro_standstill:
            return None
        return self._bias, sqrt(self._bias_variance)

    def update(self, stamp: float, rate: float, standing: bool) -> None:
        """Process a rate about the vertical [rad/s], positive to the left; an impossible one is ignored and counted.

        Args:
            stamp: on the clock of the wheel readings [s]; late ones are ignored and counted. Ten in a row mean another
                clock, on which the integration restarts with the present bias.
            rate: as above.
            standing: whether the wheels stand.
        """
        if not (isfinite(stamp) and abs(rate) <= self._fastest + _GATE * self.settings.gyro_largest_bias):
            self.impossible += 1
            return
        dt = stamp - self._stamps[-1] if self._stamps else 0.0
        if self._stamps and dt <= 0.0:
            self.late += 1
            self._late_in_a_row += 1
            if self._late_in_a_row < _LATE_MEANS_RESTART:
                return
            self._forget()
        self._late_in_a_row = 0
        if self._stamps and dt > self.settings.gyro_longest_gap:
            self.gaps += 1
            self._forget()
        if not self._stamps:
            self._stamps, self._rates, self._angles = [stamp], [rate], [0.0]
            return
        if standing:
            self._look_at_bias(rate, dt)
        self._bias_variance += self.settings.gyro_bias_drift**2 * dt
        self._angles.append(self._angles[-1] + 0.5 * (self._rates[-1] + rate) * dt)
        self._stamps.append(stamp)
        self._rates.append(rate)
        old = bisect_left(self._stamps, stamp - _KEPT)
        del self._stamps[:old], self._rates[:old], self._angles[:old]

    def turn(self, start: float, end: float) -> GyroTurn | None:
        """Turn of the base from `start` to `end` [s]; None if the bias or the rates are unknown.

        After the newest rate its value is extrapolated, for at most the longest gap. A turn that starts where the last
        one ended corrects that extrapolation.
        """
        known = self.bias
        if known is None or not self._stamps or start < self._stamps[0] or end < start:
            return None
        if end > self._stamps[-1] + self.settings.gyro_longest_gap:
            return None
        dt = end - start
        last = self._last_turn
        begun = last[1] if last is not None and last[0] == start else self._angle_at(start)
        ended = self._angle_at(end)
        self._last_turn = (end, ended)
        angle = ended - begun - known[0] * dt
        settings = self.settings
        return GyroTurn(angle, settings.gyro_noise**2 * dt, known[1] * dt, settings.gyro_scale_error * angle)

    def _forget(self) -> None:
        self._stamps, self._rates, self._angles, self._late_in_a_row = [], [], [], 0
        self._last_turn = None

    def _look_at_bias(self, rate: float, dt: float) -> None:
        noise = self.settings.gyro_noise**2 / dt
        innovation, variance = rate - self._bias, self._bias_variance + noise
        if innovation**2 > _GATE**2 * variance:
            self.refused += 1
            return
        gain = self._bias_variance / variance
        self._bias += gain * innovation
        self._bias_variance *= 1.0 - gain
        self._rested += dt

    def _angle_at(self, moment: float) -> float:
        k = bisect_left(self._stamps, moment)
        if k == len(self._stamps):
            return self._angles[-1] + self._rates[-1] * (moment - self._stamps[-1])
        if k == 0:
            return self._angles[0]
        before, dt = self._stamps[k - 1], self._stamps[k] - self._stamps[k - 1]
        share = (moment - before) / dt
        rate = self._rates[k - 1] + 0.5 * share * (self._rates[k] - self._rates[k - 1])
        return self._angles[k - 1] + rate * (moment - before)
