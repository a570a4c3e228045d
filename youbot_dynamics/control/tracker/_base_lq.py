"""LQ tracking of a base with delayed commands: each axis an integrator behind a first-order lag and a transport delay.

The error of an axis obeys eps' = v - v_desired + b, lag v' = u(t - dead_time) - v with b an unknown steady speed.
Sampled exactly with the commands on their way as states (`delayed_system`), the cost eps^2 + (response_time (u - w))^2,
with w a nominal command, has constant gains over an infinite time and a preview of the reference (`preview_discrete`):
that is `AxisLaw`. Known future values enter through kernels. Beyond the preview the last known values are held for
ever, so a reference that ends at rest needs no preview beyond its end. `LqFeedback` is the same law for a tracker with
its own feed-forward and predictor.

Source: document 002 A.4 over an infinite time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from youbot_dynamics.arrays import Vector, array, positive_time, read_only, scalar
from youbot_dynamics.control.lq_tracking import matrix, preview_discrete
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics import planar

# A delay is a whole number of periods if it is one to this part of a period.
_WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class DelayedSystem:
    """Sampled system xx_{k+1} = A xx_k + B u_k with xx = [x; u_{k-1}; ... u_{k-h}], the h commands still to act."""

    A: Vector  # (n + h m, n + h m)
    B: Vector  # (n + h m, m)
    states: int  # n, those of the system without its delay
    held: int  # h


def delayed_system(A: ArrayLike, B: ArrayLike, delay: float, period: float) -> DelayedSystem:
    """Exact samples of x' = A x + B u(t - delay), u held for a period from each sample on.

    delay = (j + f) period with 0 <= f < 1: within a step u_{k-j-1} acts for f, then u_{k-j}; so that j commands are on
    their way, and one more where the delay is no whole number of periods. x_{k+1} = E(T) x_k + E((1-f) T) G(f T)
    u_{k-j-1} + G((1-f) T) u_{k-j} with E(t) = exp(A t), G(t) = int_0^t E(s) ds B.

    Args:
        A: (n, n) [1/s].
        B: (n, m).
        delay: [s], not negative.
        period: T [s], above 0.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, a negative delay or no period.
    """
    b = matrix("B", B, (None, None))
    n, m = b.shape
    a = matrix("A", A, (n, n))
    late, step = scalar("delay", delay), positive_time("period", period)
    if late < 0.0:
        raise InputError("delay", got=f"{late:g} s", expected="0 or more")
    whole = floor(late / step + _WHOLE)
    part = max(0.0, late / step - whole)
    if part < _WHOLE:
        part = 0.0
    held = whole + (1 if part else 0)
    early_motion, early_push = _sampled(a, b, part * step)
    late_motion, late_push = _sampled(a, b, (1.0 - part) * step)
    pushes = np.zeros((n, (held + 1) * m))  # by u_k, u_{k-1} ... u_{k-held}
    pushes[:, whole * m : (whole + 1) * m] = late_push
    if part:
        pushes[:, held * m :] = late_motion @ early_push
    size = n + held * m
    moved, steered = np.zeros((size, size)), np.zeros((size, m))
    moved[:n, :n] = late_motion @ early_motion
    moved[:n, n:], steered[:n] = pushes[:, m:], pushes[:, :m]
    if held:
        steered[n : n + m] = np.eye(m)
        moved[n + m :, n:-m] = np.eye((held - 1) * m)
    return DelayedSystem(read_only(moved), read_only(steered), n, held)


def _sampled(a: Vector, b: Vector, time: float) -> tuple[Vector, Vector]:
    """exp(A t) (n, n) and int_0^t exp(A s) ds B (n, m)."""
    n, m = b.shape
    both = np.zeros((n + m, n + m))
    both[:n, :n], both[:n, n:] = a, b
    grown: Vector = expm(both * time)
    return grown[:n, :n], grown[:n, n:]


_FADED = 7.0  # response times after which what comes next no longer matters: exp(-7) is 1e-3


@dataclass(frozen=True)
class LqSettings:
    """Times of the LQ law of the base, divided by the delay of the loop.

    With 1.8 and 4 a loop with predictor oscillates at 1.5 times the delay and half the gain.
    """

    response: float = 2.4  # in which an error falls to 1/e once commands act
    disturbance: float = 6.0  # in which a steady disturbance is estimated

    def quicker(self, factor: float) -> LqSettings:
        """Settings that answer errors and disturbances sooner by a factor above 0."""
        return LqSettings(self.response / factor, self.disturbance / factor)


@dataclass(frozen=True, eq=False)
class AxisLaw:
    """Constant law of one axis, u = w_k + error eps + speed v + held . u_past + ahead . w + path . s."""

    dead_time: float  # of the model [s]
    lag: float  # of the model [s]
    error: float  # gain of the error [1/s]
    speed: float  # gain of the speed [1]; 0 where there is no lag
    held: Vector  # (h,) gains of the commands on their way, the last sent first [1]
    ahead: Vector  # (l,) weights of the nominal commands w of this step and the next ones [1]
    path: Vector  # (l,) weights of the desired displacements s over this step and the next ones [1/s]

    def command(self, error: float, speed: float, held: ArrayLike, nominal: ArrayLike, steps: ArrayLike) -> float:
        """Speed to command.

        Args:
            error: actual - desired when the command leaves [m or rad].
            speed: of the model then [m/s or rad/s].
            held: (h,) commands on their way, the last sent first.
            nominal: (l,) w of this step and the next ones.
            steps: (l,) desired displacements over this step and the next ones [m or rad].
        """
        w = array("nominal", nominal, self.ahead.shape)
        past = self.held @ array("held", held, self.held.shape)
        known = self.ahead @ w + self.path @ array("steps", steps, self.path.shape)
        return float(w[0] + self.error * error + self.speed * speed + past + known)


@lru_cache(maxsize=32)
def axis_law(dead_time: float, lag: float, period: float, response_time: float) -> AxisLaw:
    """Optimal law of an axis for held commands; the last ones are kept, each takes some 10 ms.

    Without delay and lag it is u = w - eps / response_time (for periods short beside the response time).

    Args:
        dead_time: [s], not negative.
        lag: [s]; 0 for none.
        period: for which a command is held [s].
        response_time: in which an error falls [s].

    Raises:
        InputError: a negative lag or delay, or a time that is not above 0.
    """
    late = scalar("lag", lag)
    if late < 0.0:
        raise InputError("lag", got=f"{late:g} s", expected="0 or more")
    positive_time("response_time", response_time)
    if late > 0.0:
        model = delayed_system([[0.0, 1.0], [0.0, -1.0 / late]], [[0.0], [1.0 / late]], dead_time, period)
    else:
        model = delayed_system([[0.0]], [[1.0]], dead_time, period)
    position = np.eye(1, len(model.A))
    steps = ceil((dead_time + late + _FADED * response_time) / period)
    gains = preview_discrete(model.A, model.B, position, [[1.0]], [[response_time**2]], steps)
    return AxisLaw(
        dead_time=float(dead_time),
        lag=late,
        error=float(gains.K[0, 0]),
        speed=float(gains.K[0, 1]) if late > 0.0 else 0.0,
        held=read_only(gains.K[0, model.states :].copy()),
        ahead=read_only(gains.drift_kernel[:, 0] @ model.B[:, 0]),
        path=read_only(-gains.drift_kernel[:, 0, 0].copy()),
    )


class LqFeedback:
    """LQ law of the three axes behind a predictor, with the same methods as `Pid`.

    K [eps; v; u_past] of the delayed model is K_0 [eps; v] of the model without dead time at the moment the command
    acts (exactly for dead times of whole periods, else to 1e-3, since errors are summed at other moments of a period):
    where a predictor gives the error to come, that is all there is to do. The speed is that of the
    corrections behind the lag; a disturbance b is learned from what they do not explain, and taken back.

    Args:
        dead_times: (3,) between a command and its effect, by which the predictor looks ahead [s].
        lags: (3,) that follow [s].
        period: for which a command is held [s].
        settings: defaults if not given.
        unseen: (3,) for how long a disturbance adds up that the error to come does not show [s]; the dead times if not
            given. A predictor that believes a reading only in part is behind the disturbance by some periods more.
    """

    def __init__(
        self,
        dead_times: ArrayLike,
        lags: ArrayLike,
        period: float,
        settings: LqSettings | None = None,
        unseen: ArrayLike | None = None,
    ) -> None:
        dead = array("dead_times", dead_times, (3,))
        self._unseen = dead if unseen is None else array("unseen", unseen, (3,))
        lag = array("lags", lags, (3,))
        tuning = settings or LqSettings()
        # The delay of the loop holds two periods besides: a command waits for the next one and is held.
        loop = dead + lag + 2.0 * period
        respond, self._learning = tuning.response * loop, tuning.disturbance * loop
        laws = [axis_law(0.0, late, period, time) for late, time in zip(lag.tolist(), respond.tolist(), strict=True)]
        self.axes = (laws[0], laws[1], laws[2])
        self._period = float(period)
        self._fade = np.exp(-self._period / np.maximum(lag, 1e-9 * self._period))
        self._lag = lag
        self._speed: Vector = np.zeros(3)
        self._correction: Vector = np.zeros(3)
        self._disturbance: Vector = np.zeros(3)
        self._expected: tuple[float, Vector] | None = None

    @property
    def slope(self) -> Vector:
        """Rate of the error (3,) as the model has it [m/s, m/s, rad/s]."""
        return self._speed + self._disturbance

    @property
    def disturbance(self) -> Vector:
        """Steady twist (3,) that no command explains, as learned [m/s, m/s, rad/s]."""
        return self._disturbance.copy()

    def correct(self, error: ArrayLike, time: float, cut: ArrayLike) -> Vector:
        """Twist correction (3,) [m/s, m/s, rad/s] for the error to come when it acts; see `Feedback`.

        Periods follow each other; a time that is no new one repeats the last correction.
        """
        ahead = array("error", error, (3,))
        if self._expected is not None and time <= self._expected[0]:
            return self._correction.copy()
        if self._expected is not None:
            acted = self._correction + array("cut", cut, (3,))
            moved = acted * self._period + (self._speed - acted) * self._lag * (1.0 - self._fade)
            missed = ahead - self._expected[1] - moved
            missed[2] = planar.wrap(float(missed[2]))
            self._speed = acted + (self._speed - acted) * self._fade
            # What was missed holds this period's disturbance, of which the estimate is a mean over the learning time.
            share = self._period / (self._learning + self._period)
            self._disturbance = self._disturbance + share * (missed / self._period - self._disturbance)
        # The prediction knows no disturbance: until the command acts it adds up, then it is part of what acts.
        there = ahead + self._disturbance * self._unseen
        speed = self._speed + self._disturbance
        gains = np.array([[axis.error, axis.speed] for axis in self.axes])
        correction: Vector = gains[:, 0] * there + gains[:, 1] * speed - self._disturbance
        self._correction, self._expected = correction, (time, ahead)
        return correction.copy()
