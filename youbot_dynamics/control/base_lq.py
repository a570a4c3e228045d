"""LQ law of the mecanum base: each axis an integrator behind a first-order lag and a transport delay.

The error of an axis obeys eps' = v - v_desired + b, lag v' = u(t - dead_time) - v with b an unknown steady speed.
Sampled exactly with the commands on their way as states (`held_delay`), the cost eps^2 + (response_time (u - w))^2,
with w a nominal command, has constant gains and a preview (`lq_preview`): that is `AxisLaw`. `LqFeedback` is the same
law for a tracker that has a feed-forward and a predictor of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only, scalar
from youbot_dynamics.control.held_delay import delayed_system
from youbot_dynamics.control.lq_preview import preview_discrete
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.parameters import setting

_FADED = 7.0  # response times after which what comes next no longer matters: exp(-7) is 1e-3


@dataclass(frozen=True)
class LqSettings:
    """Behaviour of the LQ law of the base that can be tuned."""

    response: float = setting(
        2.4,
        "Time in which an error falls to 1/e once commands act, over the delay of the loop.",
        unit="1",
        low=0.8,
        high=20.0,
        source="chosen: at 1.5 times the delay and half the gain 1.8 and 4 swing for ever behind a predictor",
    )
    disturbance: float = setting(
        6.0,
        "Time in which a steady disturbance is learned, over the delay of the loop.",
        unit="1",
        low=1.5,
        high=100.0,
        source="chosen, as response",
    )

    def quicker(self, factor: float) -> LqSettings:
        """Settings that answer errors and disturbances so much sooner.

        Args:
            factor: above 0; 1 changes nothing.
        """
        return LqSettings(self.response / factor, self.disturbance / factor)


@dataclass(frozen=True, eq=False)
class AxisLaw:
    """Constant law of one axis, u = w_k + error eps + speed v + held . u_past + ahead . w + path . s.

    Args:
        dead_time: of the model [s].
        lag: of the model [s].
        error: gain of the error [1/s].
        speed: gain of the speed [1]; 0 where there is no lag.
        held: (h,) gains of the commands on their way, the last sent first [1].
        ahead: (l,) weights of the nominal commands w of this step and the next ones [1].
        path: (l,) weights of the desired displacements s over this step and the next ones [1/s].
    """

    dead_time: float
    lag: float
    error: float
    speed: float
    held: Vector
    ahead: Vector
    path: Vector

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
    if not scalar("response_time", response_time) > 0.0:
        raise InputError("response_time", got=f"{response_time:g} s", expected="a time above 0")
    if late > 0.0:
        model = delayed_system([[0.0, 1.0], [0.0, -1.0 / late]], [[0.0], [1.0 / late]], dead_time, period)
    else:
        model = delayed_system([[0.0]], [[1.0]], dead_time, period)
    position = np.eye(1, len(model.A))
    steps = ceil((dead_time + late + _FADED * response_time) / period)
    gains = preview_discrete(model.A, model.B, position, [[1.0]], [[response_time**2]], steps)
    drifts = gains.drift_kernel
    assert drifts is not None
    return AxisLaw(
        dead_time=float(dead_time),
        lag=late,
        error=float(gains.K[0, 0]),
        speed=float(gains.K[0, 1]) if late > 0.0 else 0.0,
        held=read_only(gains.K[0, model.states :].copy()),
        ahead=read_only(drifts[:, 0] @ model.B[:, 0]),
        path=read_only(-drifts[:, 0, 0].copy()),
    )


def response_times(delays: ArrayLike, period: float, settings: LqSettings) -> tuple[Vector, Vector]:
    """Times to settle an error and to learn a disturbance, (3,) each [s], for the delays of the axes.

    The delay of the loop, by which the settings are scaled, holds two periods besides: a command waits for the next one
    and is held.

    Args:
        delays: (3,) effective delays of x, y, yaw [s].
        period: for which a command is held [s].
        settings: multiples of the delay of the loop.
    """
    loop = array("delays", delays, (3,)) + 2.0 * scalar("period", period)
    return settings.response * loop, settings.disturbance * loop


class LqFeedback:
    """LQ law of the three axes behind a predictor, with the same face as `Pid`.

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
        respond, self._learning = response_times(dead + lag, period, settings or LqSettings())
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
        """Twist correction for the error to come when it acts.

        Args:
            error: (3,) predicted actual - desired in the body frame [m, m, rad], of all commands sent before.
            time: when the command leaves [s]; periods follow each other, a time that is no new one repeats the last.
            cut: (3,) sent minus requested twist of the last command [m/s, m/s, rad/s].

        Returns:
            (3,) correction in the body frame [m/s, m/s, rad/s].
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
