"""Joint fit of dead time and lag, with a covariance for residuals that are correlated in time."""

from __future__ import annotations

from dataclasses import replace
from math import exp, hypot, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Indices, Vector, rms, usual_step
from youbot_dynamics.compiled import compiled
from youbot_dynamics.identification.delay._reasons import FASTER, NEGATIVE, NO_RESPONSE
from youbot_dynamics.identification.least_squares import (
    NEGLIGIBLE,
    Estimate,
    Kind,
    Model,
    Reason,
    Rows,
    Unknown,
    block_covariance,
    judge,
    search_costly,
    search_ended,
    student,
    unsettled,
)
from youbot_dynamics.identification.signals import HeldCommand

LEAD = 0.2  # negative range of the search [s]: motion before its command means wrong clocks or topics
LONGEST = 0.8  # largest delay, dead time and lag considered [s]
CLOCK = 2e-6  # [s] standard error of any delay: clocks and stamps are no better, however exact the fit
BLOCK = 0.8  # [s] several correlation times of the residual (0.1-0.3 s), so that blocks are independent


def covariance_in_blocks(columns: Vector, residual: Vector, time: Vector, length: float = BLOCK) -> tuple[Vector, int]:
    """`block_covariance` of a residual (m,) at times (m,) that do not decrease, for columns (m, p); blocks in [s]."""
    passed = time - time[0]
    # Otherwise a last block of a few samples would count as a full one.
    last = max(1, round(passed[-1] / length)) - 1
    return block_covariance(Rows(np.minimum(passed, (last + 0.5) * length), columns, residual, block=length))


class LagResponse(NamedTuple):
    """Response of a first-order lag at some times, and its derivatives."""

    motion: Vector  # (m,) position, or mean speed over the window of the command
    rate: Vector  # (m,) its time derivative
    widening: Vector  # (m,) its derivative with respect to lag^2 / 2 for constant dead time + lag


@compiled
def _responses_at_samples(times: Vector, values: Vector, lag: float) -> tuple[Vector, Vector]:
    """Response y (n,) and dy/dlag (n,) at each command sent at `times` (n,); steady state at the first."""
    response, slope = np.empty_like(values), np.empty_like(values)
    response[0], slope[0] = values[0], 0.0
    for k in range(len(times) - 1):
        hold_time = times[k + 1] - times[k]
        decay, deviation = exp(-hold_time / lag), response[k] - values[k]
        response[k + 1] = values[k] + deviation * decay
        slope[k + 1] = (slope[k] + deviation * hold_time / (lag * lag)) * decay
    return response, slope


class LaggedCommand:
    """Response of lag y' + y = u to a held command u, in steady state at its first sample; the lag [s] is above 0."""

    def __init__(self, command: HeldCommand, lag: float) -> None:
        self.command = command
        self.lag = lag
        self._response, self._slope = _responses_at_samples(command.times, command.values, lag)

    def at(self, query: ArrayLike) -> LagResponse:
        """Motion and its derivatives at `query` (m,) [s].

        y = u_k + (y_k - u_k) exp(-r / lag), r the time since sample k. The integral of y is that of u minus lag (y -
        y_0), which is exact: no numerical integration is needed.
        """
        return LagResponse(*self.command.over_window(self._position, query))

    def motion(self, query: ArrayLike) -> Vector:
        """Position, or mean speed over the window of the command, at `query` (m,) [s]."""
        return self.at(query).motion

    def twice(self, query: ArrayLike) -> Vector:
        """Response of two such lags in series to the command at `query` (m,): 1 / (1 + lag s)^2 = y + lag dy/dlag."""
        return self.command.over_window(self._double_response, query)

    def position_twice(self, query: ArrayLike) -> Vector:
        """Motion of two such lags in series at `query` (m,): the integral of u, minus lag (y + z).

        z = y + lag dy/dlag is the response of both: 1 / (s (1 + lag s)^2) = 1 / s - lag / (1 + lag s) - lag / (1 + lag
        s)^2.
        """
        return self.command.over_window(self._double_position, query)

    def _position(self, query: Vector) -> Vector:
        response, slope = self._response_at(query)
        return np.array([self.command.integral(query) - self.lag * response, response, -slope])

    def _double_response(self, query: Vector) -> Vector:
        response, slope = self._response_at(query)
        return response + self.lag * slope

    def _double_position(self, query: Vector) -> Vector:
        response, slope = self._response_at(query)
        return self.command.integral(query) - self.lag * (2.0 * response + self.lag * slope)

    def _response_at(self, query: Vector) -> tuple[Vector, Vector]:
        """Response y and dy/dlag at `query`, (m,) each."""
        k, elapsed = self.command.place(query)
        # The command before the first sample is unknown; it is assumed to be the same.
        decay = np.exp(-np.maximum(elapsed, 0.0) / self.lag)
        steady, deviation = self.command.values[k], (self._response - self.command.values)[k]
        return steady + deviation * decay, (self._slope[k] + deviation * elapsed / self.lag**2) * decay


LEAST_LAG = 5e-4  # [s] a smaller lag is zero: between two readings the response would be a step
_FIRST_LAGS = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)  # start values of the search [s]
_FRICTION_LAGS = (0.03, 0.1)  # double lags for the response of a speed loop to a change of friction [s]
_BUDGET = 400  # evaluations of the search
_SETTLED = 1e-3  # distance of the best values, in standard errors for white residuals, at which the search ends
_RESOLVED = 1e-6  # residual, as a share of the motion, that no reading resolves: the noise is never taken to be smaller
# Shares of the residual and of the friction displacement that may look like dead time or lag after any averaging.
_HIDDEN_NOISE, _HIDDEN_FRICTION = 0.02, 1.5
# Order c of the loop: the response of one lag (0) or two equal lags (1), and in proportion between and beyond. A PI
# loop whose response overshoots is below 0, three equal lags are at 1.8.
_ORDERS = (-0.5, 1.8)
# Two lags with the same q have a sum that is longer than the single lag by this share of it.
_DOUBLE_LAG_EXCESS = sqrt(2.0) - 1.0
_LARGEST_PART = 5e-3  # half-width above which that of no dead time or lag is negligible [s]
_INDISTINGUISHABLE = -0.9  # correlation of dead time and lag below which it is given as the reason of a wide interval


def negligible_part(delay: float) -> float:
    """Half-width [s] that suffices for any dead time or lag of a delay [s]."""
    return min(NEGLIGIBLE * delay, _LARGEST_PART)


class Fopdt(NamedTuple):
    """Dead time and lag of a motion."""

    dead_time: Estimate
    lag: Estimate
    whole: Estimate | None  # their sum, to be judged where both are identified; None where nothing was fitted
    residual: Vector  # (m,) of the model


def fit_fopdt(
    command: HeldCommand,
    time: Vector,
    motion: Vector,
    delay: float,
    friction: HeldCommand | None,
    longest: float,
    block: float = BLOCK,
) -> Fopdt:
    """Fit motion(t) = a + K x(t - tau) + friction, T x'' + x' = u, u the held command, by least squares over tau and T.

    The transfer function from command to motion is K exp(-tau s) / (1 + T s), a first-order lag with dead time. x is
    exact between the samples of the command (`LaggedCommand`). This is an output-error fit, so noise of the motion does
    not bias it as in an equation-error fit. The search uses the delay d = tau + T and q = T^2 / 2, in which slow motion
    is nearly linear: exp(-tau s) / (1 + T s) = exp(-d s) (1 + q s^2 + ...). Slow commands determine only d.

    Friction reduces the motion until the speed loop has compensated it, which looks like a lag. The response of the
    loop to friction is unknown; it is modelled by two double lags, and by the integral of one for a loop with a steady
    error. If `friction` is not given, the sign of the command replaces it.

    Interval: that of d and q by the jackknife over blocks, plus errors that no averaging removes: 2 % of the residual
    and 1.5 times the friction displacement may each, as one standard error, look like a change of d or q. (On the
    simulated base, roller friction, viscous friction and centripetal forces do; the response of the loop to friction
    determines how much.) Two equal lags can have the d and q of one, with a dead time that is shorter by 0.41 T; on
    slow motion the two differ by some micrometres. The order of the loop is therefore fitted as well, and both
    intervals cover all orders that the data allow, between a PI loop that overshoots and three equal lags.

    The limits of q are converted to lags, and combined with those of d for the dead time (Zou's recovery of variances).
    Both intervals remain valid if that of the lag reaches zero. Either both are identified or neither.

    Args:
        command: of the channel, with the window of the motion.
        time: (m,) [s], not decreasing.
        motion: (m,) position or mean speed, not constant.
        delay: start value, the effective delay [s].
        friction: expected friction (any unit) held from each command on, with the same window; None for the sign.
        longest: largest dead time and lag considered [s].
        block: length of the blocks of the jackknife [s], several correlation times of the residual.

    Returns:
        Dead time tau, lag d - tau (T of one lag, the sum of several), d, and the residual (m,) of the model with
        friction.
    """
    search = _Search(command, time, motion, friction, delay, longest, block)
    dead_time, lag, settled = search.best()
    _, residual, _ = search.linearised(dead_time, lag)
    # Lags much shorter than the hold time of the command have hardly any effect; use the slopes of a longer lag.
    slope_lag = max(lag, 0.5 * usual_step(command.times))
    slopes, linear_residual, _ = search.linearised(dead_time + lag - slope_lag, slope_lag)
    covariance, freedom = search.covariance(slopes, linear_residual)
    known = bool(np.all(np.isfinite(covariance)))
    if not (known and settled):
        reason = unsettled(f"{_BUDGET} evaluations") if known else NO_RESPONSE
        return Fopdt(*refused(reason, dead_time, lag), None, residual)
    hidden = hypot(_HIDDEN_NOISE * rms(residual), _HIDDEN_FRICTION * rms(search.friction_at(dead_time, lag)))
    covariance = covariance[-2:, -2:] + np.diag([(hidden / orthogonal_size(slopes, k)) ** 2 for k in (-2, -1)])
    covariance[0, 0] += CLOCK**2
    q = 0.5 * lag**2
    if lag < 1.001 * LEAST_LAG:  # at its bound q is not at the minimum of the misfit; the slopes give the minimum
        q = min(q, 0.5 * slope_lag**2 + float(np.linalg.lstsq(slopes, linear_residual, rcond=None)[0][-1]))
    orders = _orders(search, dead_time, lag, hidden)
    return Fopdt(*_judged(dead_time + lag, q, orders, covariance, freedom, longest), residual)


class _Order(NamedTuple):
    """An order of the loop that the data allow, and the minimum of the misfit with it less that with order 0."""

    order: float
    delay: float  # [s]
    q: float  # [s2]


def _orders(search: _Search, dead_time: float, lag: float, hidden: float) -> tuple[_Order, ...]:
    """Orders of the loop that the data allow: the one nearest to 0, the lowest and the highest."""
    slope = search.order_slope(dead_time, lag)
    slopes, residual, _ = search.linearised(dead_time, lag)
    columns = np.column_stack([search.nuisance, slopes, slope])
    covariance, freedom = search.covariance(np.column_stack([slopes, slope]), residual)
    low, high = _ORDERS
    if np.all(np.isfinite(covariance)):
        best_order = float(np.linalg.lstsq(columns, residual, rcond=None)[0][-1])
        error = hypot(sqrt(covariance[-1, -1]), hidden / orthogonal_size(columns, -1))
        half_width = student(freedom) * error
        low, high = (
            min(max(end, _ORDERS[0]), _ORDERS[1]) for end in (best_order - half_width, best_order + half_width)
        )
    delay, q = np.linalg.lstsq(columns[:, :-1], slope, rcond=None)[0][-2:].tolist()
    nearest = min(max(0.0, low), high)
    return tuple(_Order(order, -order * delay, -order * q) for order in (nearest, low, high))


def orthogonal_size(columns: Vector, k: int) -> float:
    """RMS of the part of column k of (m, p) that no other column explains."""
    regressors = np.delete(columns, k, axis=1)
    own = columns[:, k] - regressors @ np.linalg.lstsq(regressors, columns[:, k], rcond=None)[0]
    return max(rms(own), 1e-300)


class _Search:
    """Misfit of one channel over dead time and lag, see `fit_fopdt`; offset, gain and friction are solved for.

    Attributes:
        nuisance: (m, p) orthonormal columns of offset and friction.
    """

    def __init__(
        self,
        command: HeldCommand,
        time: Vector,
        motion: Vector,
        friction: HeldCommand | None,
        delay: float,
        longest: float,
        block: float,
    ) -> None:
        self._command, self._time, self._delay, self._longest, self._block = command, time, delay, longest, block
        held = friction or HeldCommand(command.times, np.sign(command.values), command.half_window)
        displaced = [LaggedCommand(held, lag).twice(time - delay) for lag in _FRICTION_LAGS]
        displaced.append(LaggedCommand(held, _FRICTION_LAGS[0]).at(time - delay).motion)
        # Constant friction is already part of the offset.
        columns = [np.ones(len(time)), *(f - f.mean() for f in displaced if np.ptp(f) > 0.0)]
        self.nuisance: Vector = np.linalg.qr(np.column_stack(columns))[0]
        self._measured, self._motion = motion, self._cleared(motion)

    def _cleared(self, signal: Vector) -> Vector:
        """Signal (m,) without offset and friction."""
        return signal - self.nuisance @ (self.nuisance.T @ signal)

    def covariance(self, columns: Vector, residual: Vector) -> tuple[Vector, int]:
        """`covariance_in_blocks` of offset, friction and columns (m, c), for a residual (m,)."""
        return covariance_in_blocks(np.column_stack([self.nuisance, columns]), residual, self._time, self._block)

    def linearised(self, dead_time: float, lag: float) -> tuple[Vector, Vector, float]:
        """Columns (m, 3) of gain, d and q, the residual (m,), and the gain."""
        response = LaggedCommand(self._command, lag).at(self._time - dead_time)
        model = self._cleared(response.motion)
        power = float(model @ model)
        gain = float(model @ self._motion) / power if power > 0.0 else 0.0
        slopes = [self._cleared(-gain * response.rate), self._cleared(gain * response.widening)]
        return np.column_stack([model, *slopes]), self._motion - gain * model, gain

    def order_slope(self, dead_time: float, lag: float) -> Vector:
        """Response (m,) of two equal lags, with the d and q of this dead time and lag, less that of the one lag."""
        half_lag = lag / sqrt(2.0)
        doubled = LaggedCommand(self._command, half_lag).position_twice(self._time - (dead_time + lag - 2.0 * half_lag))
        single = LaggedCommand(self._command, lag).at(self._time - dead_time).motion
        return self._cleared(self.linearised(dead_time, lag)[2] * (doubled - single))

    def friction_at(self, dead_time: float, lag: float) -> Vector:
        """Displacement (m,) by friction, without the part of another gain, from the fit at this dead time and lag."""
        model = LaggedCommand(self._command, lag).at(self._time - dead_time).motion
        gain = self.linearised(dead_time, lag)[2]
        residual = self._measured - gain * model
        friction = self.nuisance[:, 1:]
        displaced, level = friction @ (friction.T @ residual), model - model.mean()
        displaced -= level * (float(level @ displaced) / max(float(level @ level), 1e-300))
        return np.asarray(displaced)

    def best(self) -> tuple[float, float, bool]:
        """Dead time and lag of the smallest misfit [s], from the best of a few, and whether the search settled."""

        def parts(values: Vector) -> tuple[float, float]:
            lag = sqrt(2.0 * float(values[1]))
            return float(values[0]) - lag, lag

        def residual(values: Vector) -> Vector:
            return self.linearised(*parts(values))[1]

        def slopes(values: Vector, _: Vector, free: Indices) -> Vector:
            columns = self.linearised(*parts(values))[0]
            model, changes = columns[:, :1], -columns[:, 1:]
            return np.asarray(changes - model @ (model.T @ changes) / max(float(np.sum(model**2)), 1e-300))

        def feasible(values: Vector) -> Vector:
            lag = parts(values)[1]
            return np.array([min(max(float(values[0]), lag), lag + self._longest), float(values[1])])

        lags = [lag for lag in _FIRST_LAGS if lag <= min(self._longest, self._delay)] or [LEAST_LAG]
        starts = [np.array([self._delay, 0.5 * lag**2]) for lag in lags]
        first = min(starts, key=lambda start: float(np.sum(residual(start) ** 2)))
        least = _RESOLVED**2 * float(self._motion @ self._motion)
        model = Model(
            residual,
            slopes,
            np.array([0.0, 0.5 * LEAST_LAG**2]),
            np.array([2.0 * self._longest, 0.5 * self._longest**2]),
            lambda misfit: max(misfit, least) / len(self._time),
            _SETTLED,
            feasible=feasible,
        )
        found = search_costly(model, first, np.arange(2), _BUDGET)
        return *parts(found.values), found.settled


def _correlation(covariance: Vector, lag: float) -> float:
    """Correlation of dead time d - T and lag T = sqrt(2 q) from the covariance (2, 2) of d and q."""
    lag_variance, delay_lag_covariance = covariance[1, 1] / lag**2, covariance[0, 1] / lag
    dead_time_variance = covariance[0, 0] - 2.0 * delay_lag_covariance + lag_variance
    return float((delay_lag_covariance - lag_variance) / sqrt(max(dead_time_variance * lag_variance, 1e-300)))


def _judged(
    delay: float, q: float, orders: tuple[_Order, ...], covariance: Vector, freedom: int, longest: float
) -> tuple[Estimate, Estimate, Estimate]:
    """Dead time and lag with intervals and verdicts, and their sum.

    `delay` is the estimate of d [s] with order 0, `q` lag^2 / 2 [s^2] at the minimum of the misfit with it, possibly
    negative; `covariance` (2, 2) is theirs. Values are with the first order, intervals cover all of them. `longest`
    is the upper bound of the search [s].
    """
    multiple = student(freedom)
    half_width_d, half_width_q = multiple * np.sqrt(np.diag(covariance))
    correlation_d_q = covariance[0, 1] / sqrt(covariance[0, 0] * covariance[1, 1])

    def half_width_of_difference(side: float) -> float:
        return sqrt(max(0.0, half_width_d**2 + side**2 - 2.0 * correlation_d_q * half_width_d * side))

    def lag_of(squares: float, order: _Order) -> float:
        return sqrt(max(0.0, 2.0 * squares)) * (1.0 + _DOUBLE_LAG_EXCESS * order.order)

    bounds = []
    for order in orders:
        lag = lag_of(q + order.q, order)
        low, high = lag_of(q + order.q - half_width_q, order), lag_of(q + order.q + half_width_q, order)
        dead_time = delay + order.delay - lag
        shortest = dead_time - half_width_of_difference(max(high - lag, 0.0))
        latest = dead_time + half_width_of_difference(max(lag - low, 0.0))
        bounds.append((low, high, shortest, latest, lag, dead_time))
    low, high, shortest, latest = (
        extreme(bound[k] for bound in bounds) for k, extreme in enumerate((min, max, min, max))
    )
    lag, dead_time = bounds[0][4:]
    reason = None
    if lag >= longest:
        reason = search_ended("s", longest)
    elif q + half_width_q < 0.0:
        reason = FASTER
    elif latest < 0.0:
        reason = NEGATIVE
    hint = ""
    correlation = _correlation(covariance, lag) if lag > 0.0 else -1.0
    if correlation < _INDISTINGUISHABLE:
        hint = (
            f"; dead time and lag cannot be distinguished (correlation {correlation:.3f}): the command changes "
            "too slowly for the size of the residuals"
        )
    elif orders[2].order - orders[1].order > 1.0:
        hint = "; the data do not show whether the speed loop has one lag or several"
    judged, negligible = [], negligible_part(delay)
    if -negligible < dead_time < 0.0:  # there is none, and the lag is the whole delay
        dead_time, lag = 0.0, lag + dead_time
    for name, value, interval in (
        ("dead_time", dead_time, (shortest, latest)),
        ("lag", lag, (low, high)),
    ):
        half_width = 0.5 * (interval[1] - interval[0])
        unknown = Unknown(name, "s", low=0.0, resolution=negligible)
        one = judge(unknown, value, half_width / multiple, half_width, hint, interval)
        judged.append(one if reason is None else one.refused(reason))
    sums = [delay + order.delay for order in orders]
    interval = min(sums) - float(half_width_d), max(sums) + float(half_width_d)
    whole = Estimate("delay", "s", sums[0], 0.5 * (interval[1] - interval[0]) / multiple, interval)
    return *identified_together(*judged), whole


def identified_together(dead_time: Estimate, lag: Estimate) -> tuple[Estimate, Estimate]:
    """Refuse both dead time and lag if one is refused: an error of one is compensated by the other.

    Otherwise the larger part of their sum would pass alone, for any division of the sum.
    """
    for estimate, partner in ((dead_time, lag), (lag, dead_time)):
        if estimate.identified and not partner.identified:
            only = f"only its sum with the {partner.name}, the effective delay, is identified"
            assert partner.reason is not None
            estimate = estimate.refused(Reason(Kind.DEPENDS, f"{only}; {partner.name}: {partner.reason.text}"))
            return (estimate, partner) if partner is lag else (partner, estimate)
    return dead_time, lag


def refused(reason: Reason, dead_time: float = nan, lag: float = nan) -> tuple[Estimate, Estimate]:
    """Dead time and lag that the data do not determine, with the reason."""
    estimate = Estimate("dead_time", "s", dead_time, nan, (nan, nan), reason)
    return estimate, replace(estimate, name="lag", value=lag)
