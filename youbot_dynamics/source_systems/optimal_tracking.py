"""Optimal tracking of a known reference by a linear system, in continuous and in discrete time.

`track` minimises J = e(tf)' Sf e(tf) + int e'Q e + (u - w)'R (u - w) dt with e = z - C x and
x' = A x + B u + d. Beside the document's problem a nominal input w and a known drift d are allowed, both 0 by default;
whatever is affine in the state joins it as the constant 1, xx = [x; 1], so that one Riccati equation gives all:

    SS = [[S, -g], [-g', c]],   J* = xx' SS xx = x'S x - 2 g'x + c.

`track_discrete` does the same for held commands, where a transport delay is exact:
J = e_N' Sf e_N + sum_{k<N} e_k'Q e_k + (u_k - w_k)'R (u_k - w_k), x_{k+1} = A x_k + B u_k + d_k.
`preview` is the first over an infinite time, `control.lq_tracking.preview_discrete` the second.

Source: document 002 A.4; Anderson and Moore 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm, solve_continuous_are

from youbot_dynamics.arrays import Vector, array, positive_time, read_only, scalar
from youbot_dynamics.control.lq_tracking import linear_problem, matrix, riccati, unsteered, weight
from youbot_dynamics.errors import InputError


def _with_constant(A: Vector, drift: Vector, last: float) -> Vector:
    """Dynamics (n + 1, n + 1) of the state, A (n, n), and a constant 1 that feeds the drift (n,) to it.

    `last` is what the constant becomes: 1 in discrete time, its rate 0 in continuous time.
    """
    n = len(A)
    extended = np.zeros((n + 1, n + 1))
    extended[:n, :n], extended[:n, n], extended[n, n] = A, drift, last
    return extended


def _error_output(C: Vector, reference: Vector) -> Vector:
    """Matrix (p, n + 1) that forms the negative error C x - z of the state and a constant 1; C (p, n), z (p,)."""
    return np.column_stack([C, -reference])


# A matrix of the problem: constant, or a function of time [s].
Timed = ArrayLike | Callable[[float], ArrayLike]


@dataclass(frozen=True, eq=False)
class TrackingProblem:
    """Linear system of n states and m inputs whose p outputs are to follow a reference.

    In continuous time any of the fields but Sf may be a function of time. In discrete time A, B, C, Q and R are one for
    all N steps or one for each, as (N, ...); the last C also weighs the end.
    """

    A: Timed  # (n, n)
    B: Timed  # (n, m)
    C: Timed  # (p, n)
    Q: Timed  # (p, p) weight of the error, symmetric, at least 0
    R: Timed  # (m, m) weight of the input, symmetric, above 0
    Sf: ArrayLike  # (p, p) weight of the error at the end, symmetric, at least 0
    reference: Timed  # z (p,) as a function of time, or (N + 1, p) of each step and the end
    drift: Timed | None = None  # d (n,), or (N, n) in discrete time; none by default
    nominal: Timed | None = None  # w (m,), or (N, m) in discrete time; 0 by default


@dataclass(frozen=True, eq=False)
class DiscreteGains:
    """Optimal law u_k = K_k x_k + p_k of N steps, as `track_discrete` finds it (D-002-8)."""

    K: Vector  # (N, m, n)
    p: Vector  # (N, m)
    S: Vector  # (N + 1, n, n)
    g: Vector  # (N + 1, n)
    c: Vector  # (N + 1,); the least cost from step k on is x'S x - 2 g'x + c

    def command(self, step: int, state: ArrayLike) -> Vector:
        """Optimal input (m,) of a step from its state (n,)."""
        optimal: Vector = self.K[step] @ array("state", state, (self.K.shape[2],)) + self.p[step]
        return optimal

    def cost(self, step: int, state: ArrayLike) -> float:
        """Least cost from a step and its state (n,) on."""
        x = array("state", state, (self.K.shape[2],))
        return float(x @ self.S[step] @ x - 2.0 * self.g[step] @ x + self.c[step])


def track_discrete(problem: TrackingProblem) -> DiscreteGains:
    """Optimal tracking of z_0 ... z_N, by Riccati's recursion backwards from the last one.

    H = R + B'S B, K = -H^-1 B'S A, p = w + H^-1 B'(g - S (d + B w)) with S and g of the next step; then
    S_k = C'Q C + (A + B K)'S (A + B K) + K'R K, the sum of squares that keeps S positive whatever the rounding.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, weights that leave no minimum, or no step.

    Source: document 002 A.4, D-002-8.
    """
    z = array("reference", _sampled("reference", problem.reference), (None, None))
    steps, outputs = len(z) - 1, z.shape[1]
    if steps < 1:
        raise InputError("reference", got=f"{len(z)} rows", expected="2 or more: the state of each step and of the end")
    inputs_of = _stack("B", problem.B, steps, (None, None))
    n, m = inputs_of.shape[1:]
    rates_of = _stack("A", problem.A, steps, (n, n))
    outputs_of = _stack("C", problem.C, steps, (outputs, n))
    errors_weight = _weights("Q", problem.Q, steps, outputs)
    inputs_weight = _weights("R", problem.R, steps, m, definite=True)
    known = array("drift", _sampled("drift", problem.drift, (steps, n)), (steps, n))
    wanted = array("nominal", _sampled("nominal", problem.nominal, (steps, m)), (steps, m))

    laws = np.empty((steps, m, n + 1))
    values = np.empty((steps + 1, n + 1, n + 1))
    errors = _error_output(outputs_of[-1], z[-1])
    values[-1] = errors.T @ weight("Sf", problem.Sf, outputs) @ errors
    for k in range(steps - 1, -1, -1):
        moved = _with_constant(rates_of[k], known[k] + inputs_of[k] @ wanted[k], 1.0)
        steered = np.vstack([inputs_of[k], np.zeros((1, m))])
        pull = steered.T @ values[k + 1]
        laws[k] = -np.linalg.solve(inputs_weight[k] + pull @ steered, pull @ moved)
        closed = moved + steered @ laws[k]
        errors = _error_output(outputs_of[k], z[k])
        value = errors.T @ errors_weight[k] @ errors + laws[k].T @ inputs_weight[k] @ laws[k]
        value += closed.T @ values[k + 1] @ closed
        values[k] = 0.5 * (value + value.T)
    parts = laws[:, :, :-1], laws[:, :, -1] + wanted, values[:, :-1, :-1], -values[:, :-1, -1], values[:, -1, -1]
    return DiscreteGains(*(read_only(part.copy()) for part in parts))


def _sampled(thing: str, value: Timed | None, shape: tuple[int, int] = (0, 0)) -> ArrayLike:
    """Values of a discrete system, which are no function of time; zeros where there are none."""
    if callable(value):
        raise InputError(thing, got="a function of time", expected="values for the steps of a discrete system")
    return np.zeros(shape) if value is None else value


def _stack(thing: str, given: Timed, steps: int, shape: tuple[int | None, int | None]) -> Vector:
    """One matrix for each step, (steps, a, b), of a matrix (a, b) for all of them or of a stack."""
    value = _sampled(thing, given)
    if np.ndim(value) == 3:
        return array(thing, value, (steps, *shape))
    constant = matrix(thing, value, shape)
    return np.broadcast_to(constant, (steps, *constant.shape))


def _weights(thing: str, given: Timed, steps: int, size: int, *, definite: bool = False) -> Vector:
    """One checked weight for each step, (steps, a, a)."""
    value = _sampled(thing, given)
    if np.ndim(value) == 3:
        each = array(thing, value, (steps, size, size))
        return np.array([weight(f"{thing}[{k}]", of_step, size, definite=definite) for k, of_step in enumerate(each)])
    return np.broadcast_to(weight(thing, value, size, definite=definite), (steps, size, size))


_GAUSS = sqrt(3.0) / 6.0  # Gauss points of a step stand at 1/2 -+ this part of it
_SMALL = 0.25  # norm of the logarithm of a transition that keeps its digits


class Legs(NamedTuple):
    """Optimal motion over k legs of time, as that of a discrete system: seen from the end of each.

    xx_end = motion xx - reach ll_end and ll = spent xx + motion' ll_end with ll = SS xx. In these three, unlike in the
    transition itself, nothing grows over a long leg, and SS stays positive.
    """

    motion: Vector  # (k, n + 1, n + 1) without any input
    reach: Vector  # (k, n + 1, n + 1) of the inputs, symmetric, at least 0
    spent: Vector  # (k, n + 1, n + 1) cost without any input, symmetric, at least 0

    def doubled(self) -> Legs:
        """Each leg followed by another one like it."""
        motion, reach, spent = self
        turned = motion.swapaxes(1, 2)
        middle = _solved(np.eye(motion.shape[1]) + reach @ spent, np.concatenate([motion, reach @ turned], axis=2))
        met, pushed = np.split(middle, 2, axis=2)
        return Legs(motion @ met, reach + motion @ pushed, spent + turned @ spent @ met)

    def closed(self, leg: int, value: Vector) -> Vector:
        """Optimal motion (n + 1, n + 1) over a leg, from SS (n + 1, n + 1) at its end: xx_end = it xx."""
        return _solved(np.eye(len(value)) + self.reach[leg] @ value, self.motion[leg])

    def value(self, leg: int, value: Vector) -> Vector:
        """SS (n + 1, n + 1) at the start of a leg from that at its end: spent + motion' SS (1 + reach SS)^-1 motion."""
        start: Vector = self.spent[leg] + self.motion[leg].T @ value @ self.closed(leg, value)
        return 0.5 * (start + start.T)


@dataclass(frozen=True, eq=False)
class _OfTime:
    """The problem as functions of time, with its numbers of states, inputs and outputs."""

    A: Callable[[float], Vector]
    B: Callable[[float], Vector]
    C: Callable[[float], Vector]
    Q: Callable[[float], Vector]
    R: Callable[[float], Vector]
    reference: Callable[[float], Vector]
    drift: Callable[[float], Vector]
    nominal: Callable[[float], Vector]

    @classmethod
    def of(cls, problem: TrackingProblem, start: float) -> _OfTime:
        """Checked functions of a problem that begins at `start` [s]."""
        n, m = matrix("B", _at(problem.B, start), (None, None)).shape
        p = len(matrix("C", _at(problem.C, start), (None, n)))
        drift = np.zeros(n) if problem.drift is None else problem.drift
        nominal = np.zeros(m) if problem.nominal is None else problem.nominal
        return cls(
            A=_timed(problem.A, lambda value: matrix("A", value, (n, n))),
            B=_timed(problem.B, lambda value: matrix("B", value, (n, m))),
            C=_timed(problem.C, lambda value: matrix("C", value, (p, n))),
            Q=_timed(problem.Q, lambda value: weight("Q", value, p)),
            R=_timed(problem.R, lambda value: weight("R", value, m, definite=True)),
            reference=_timed(problem.reference, lambda value: array("reference", np.atleast_1d(value), (p,))),
            drift=_timed(drift, lambda value: array("drift", value, (n,))),
            nominal=_timed(nominal, lambda value: array("nominal", np.atleast_1d(value), (m,))),
        )

    def hamiltonian(self, time: float) -> Vector:
        """Rate of [xx; SS xx] (2 n + 2, 2 n + 2) along an optimal motion: Hamilton's equations of the problem."""
        B = self.B(time)
        n = len(B)
        rates = _with_constant(self.A(time), self.drift(time) + B @ self.nominal(time), 0.0)
        errors = _error_output(self.C(time), self.reference(time))
        whole = np.zeros((2 * n + 2, 2 * n + 2))
        whole[: n + 1, : n + 1] = rates
        whole[n + 1 :, n + 1 :] = -rates.T
        whole[:n, n + 1 : -1] = -B @ _solved(self.R(time), B.T)
        whole[n + 1 :, : n + 1] = -errors.T @ self.Q(time) @ errors
        return whole

    def legs(self, starts: Vector, ends: Vector) -> Legs:
        """Legs of [xx; SS xx] from each of the starts (k,) to its end (k,) [s].

        Magnus' expansion of fourth order gives the transition of a leg, exactly for constant matrices. It is taken over
        so small a part of the leg that it keeps its digits, then doubled as legs are joined.
        """
        spans = (ends - starts)[:, None, None]
        early, late = (
            np.array([self.hamiltonian(float(time)) for time in starts + (0.5 + side * _GAUSS) * (ends - starts)])
            for side in (-1.0, 1.0)
        )
        turn = late @ early - early @ late
        back = -0.5 * spans * (early + late) - 0.5 * _GAUSS * spans**2 * turn
        doublings = max(0, ceil(log2(max(1.0, float(np.max(np.abs(back).sum(axis=1))) / _SMALL))))
        transition = expm(back / 2.0**doublings)
        size = back.shape[1] // 2
        motion = _solved(transition[:, :size, :size], np.broadcast_to(np.eye(size), (len(back), size, size)))
        legs = Legs(motion, motion @ transition[:, :size, size:], transition[:, size:, :size] @ motion)
        for _ in range(doublings):
            legs = legs.doubled()
        return legs


@dataclass(frozen=True, eq=False)
class OptimalMotion:
    """Optimal motion from a state, at s + 1 times."""

    times: Vector  # (s + 1,) [s]
    states: Vector  # (s + 1, n)
    inputs: Vector  # (s + 1, m)
    cost: float  # J of it, from the value function


@dataclass(frozen=True, eq=False)
class TrackingGains:
    """Optimal law u = K(t) x + p(t) over a finite time, as `track` finds it.

    Document 002 prints u = K(t) + p(t), which adds a matrix to a vector: D-002-8.
    """

    times: Vector  # (s + 1,) of the steps [s]
    values: Vector  # (s + 1, n + 1, n + 1) SS at them
    _problem: _OfTime
    _legs: Legs

    def K(self, time: float) -> Vector:
        """Feedback K = -R^-1 B'S, (m, n), at a time [s]."""
        return self._law(time)[:, :-1]

    def p(self, time: float) -> Vector:
        """Feed-forward p = w + R^-1 B'g, (m,), at a time [s]."""
        return self._law(time)[:, -1]

    def S(self, time: float) -> Vector:
        """Riccati matrix (n, n) at a time [s].

        S' + S A + A'S - S B R^-1 B'S + C'Q C = 0, at the end S = C'Sf C.
        """
        return self._value(time)[:-1, :-1]

    def g(self, time: float) -> Vector:
        """Pull of the reference (n,) at a time [s].

        g' + (A + B K)'g + C'Q z - S (d + B w) = 0, at the end g = C'Sf z.
        """
        return -self._value(time)[:-1, -1]

    def command(self, time: float, state: ArrayLike) -> Vector:
        """Optimal input u = K x + p (m,) at a time [s] and state x (n,)."""
        optimal: Vector = self._law(time) @ self._extended(state)
        return optimal

    def cost(self, time: float, state: ArrayLike) -> float:
        """Least cost from a time [s] and state (n,) on, x'S x - 2 g'x + c: what every law is judged by."""
        extended = self._extended(state)
        return float(extended @ self._value(time) @ extended)

    def motion(self, state: ArrayLike) -> OptimalMotion:
        """Optimal motion from a state x(t0) (n,) at the first of `times`, without integrating again."""
        states = [self._extended(state)]
        for leg, value in enumerate(self.values[1:]):
            states.append(np.append((self._legs.closed(leg, value) @ states[-1])[:-1], 1.0))
        laws = [self._law_of(float(time), value) for time, value in zip(self.times, self.values, strict=True)]
        inputs = np.array([law @ extended for law, extended in zip(laws, states, strict=True)])
        cost = float(states[0] @ self.values[0] @ states[0])
        return OptimalMotion(self.times, read_only(np.array(states)[:, :-1]), read_only(inputs), cost)

    def _extended(self, state: ArrayLike) -> Vector:
        return np.append(array("state", state, (self.values.shape[1] - 1,)), 1.0)

    def _value(self, time: float) -> Vector:
        at = scalar("time", time)
        slack = 1e-9 * float(self.times[-1] - self.times[0])
        if not self.times[0] - slack <= at <= self.times[-1] + slack:
            span = f"{self.times[0]:g} to {self.times[-1]:g} s"
            raise InputError(
                "time", got=f"{at:g} s", expected=f"a time within {span}, for which the gains were computed"
            )
        k = int(np.searchsorted(self.times, at - slack))
        if self.times[min(k, len(self.times) - 1)] - at <= slack:
            return np.array(self.values[min(k, len(self.times) - 1)])
        return self._problem.legs(np.array([at]), self.times[k : k + 1]).value(0, self.values[k])

    def _law(self, time: float) -> Vector:
        return self._law_of(time, self._value(time))

    def _law_of(self, time: float, value: Vector) -> Vector:
        law = _solved(self._problem.R(time), -self._problem.B(time).T @ value[:-1])
        law[:, -1] += self._problem.nominal(time)
        return law


def track(problem: TrackingProblem, t0: float, tf: float, steps: int = 200) -> TrackingGains:
    """Optimal tracking of z(t) from t0 to tf: Riccati's equation, solved backwards from tf.

    S' + S A + A'S - S B R^-1 B'S + C'Q C = 0 and g' + (A + B K)'g + C'Q z - S (d + B w) = 0 are solved together, step
    by step, by Hamilton's equations. Error of a step: fifth order in it for smooth matrices and
    references, none where all of them are constant. Steps should meet the kinks of the reference. The reference has to
    be known to tf, and the final weight is on the outputs: C'Sf C on the states.

    Args:
        problem: in continuous time; its reference may be a function z(t).
        t0: start [s].
        tf: end [s], after the start.
        steps: of equal length, s.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, weights that leave no minimum, an end that is
            not after the start, or no step.

    Source: document 002 A.4, D-002-8.
    """
    start, end = scalar("t0", t0), scalar("tf", tf)
    if not end > start:
        raise InputError("tf", got=f"{end:g} s", expected=f"a time after t0 = {start:g} s")
    if steps < 1:
        raise InputError("steps", got=str(steps), expected="1 or more")
    of_time = _OfTime.of(problem, start)
    times = np.linspace(start, end, steps + 1)
    errors = _error_output(of_time.C(end), of_time.reference(end))
    values = np.empty((steps + 1, errors.shape[1], errors.shape[1]))
    values[-1] = errors.T @ weight("Sf", problem.Sf, len(errors)) @ errors
    legs = of_time.legs(times[:-1], times[1:])
    for k in range(steps - 1, -1, -1):
        values[k] = legs.value(k, values[k + 1])
    return TrackingGains(read_only(times), read_only(values), of_time, legs)


def _solved(matrix: Vector, right: Vector) -> Vector:
    """Solution (..., n, k) of matrix (..., n, n) times it = right (..., n, k)."""
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _at(value: Timed, time: float) -> ArrayLike:
    return value(time) if callable(value) else value


def _timed(value: Timed, check: Callable[[ArrayLike], Vector]) -> Callable[[float], Vector]:
    """Checked function of time; a constant is checked once."""
    if callable(value):
        return lambda time: check(value(time))
    constant = check(value)
    return lambda time: constant


_PANEL = 8  # Gauss points of a panel of the continuous preview


@dataclass(frozen=True, eq=False)
class ContinuousPreview:
    """Law u = K x + p of constant gains, with p from what is known of the future."""

    K: Vector  # (m, n)
    S: Vector  # (n, n) of the infinite time
    offsets: Vector  # (l,) how far ahead each reference is needed [s]
    kernel: Vector  # (l, m, p) that weighs them

    def feed_forward(self, references: ArrayLike) -> Vector:
        """Feed-forward p (m,) from the reference (l, p) at each of the `offsets` from now on.

        Raises:
            InputError: a wrong shape, or a number that is not finite.
        """
        count, _, outputs = self.kernel.shape
        known = array("references", references, (count, outputs))
        feed_forward: Vector = np.einsum("lmp,lp->m", self.kernel, known)
        return feed_forward


def preview(A: ArrayLike, B: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike, horizon: float) -> ContinuousPreview:
    """Gains and preview in continuous time, u(t) = K x(t) + R^-1 B' g(t).

    A'S + S A - S B R^-1 B'S + C'Q C = 0 and g(t) = int_0^T exp(F's) C'Q z(t + s) ds - F'^-1 exp(F'T) C'Q z(t + T) with
    F = A + B K and T the horizon; the integral by Gauss' rule on panels no longer than the loop's fastest mode.

    Args:
        A: (n, n).
        B: (n, m).
        C: (p, n).
        Q: (p, p) weight of the error, symmetric, at least 0.
        R: (m, m) weight of the input, symmetric, above 0.
        horizon: how far ahead the reference is known [s], above 0.

    Raises:
        InputError: as `track`; a horizon of no length, or a system whose unstable modes cannot be steered or do not
            show in the cost.
    """
    a, b, c, q, r = linear_problem(A, B, C, Q, R)
    length = positive_time("horizon", horizon)
    S = riccati(solve_continuous_are, a, b, c.T @ q @ c, r)
    K = np.asarray(-np.linalg.solve(r, b.T @ S), dtype=np.float64)
    closed = a + b @ K
    modes = np.linalg.eigvals(closed)
    if not np.max(modes.real) < 0.0:
        raise unsteered()
    panels = int(np.ceil(length * float(np.max(np.abs(modes)))))
    points, weights = np.polynomial.legendre.leggauss(_PANEL)
    width = length / panels
    offsets = np.append((width * (np.arange(panels)[:, None] + 0.5 + 0.5 * points)).ravel(), length)
    pulls = expm(offsets[:, None, None] * closed.T) @ (c.T @ q)
    pulls[:-1] *= np.tile(0.5 * width * weights, panels)[:, None, None]
    pulls[-1] = -np.linalg.solve(closed.T, pulls[-1])
    kernel = np.asarray(np.linalg.solve(r, b.T) @ pulls, dtype=np.float64)
    return ContinuousPreview(*(read_only(part) for part in (K, S, offsets, kernel)))
