"""Optimal tracking in continuous time: against quadratic programmes, its own laws, and document 002's printed forms."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm, solve_continuous_are

from youbot_dynamics.errors import InputError
from youbot_dynamics.source_systems.optimal_tracking import TrackingGains, TrackingProblem, preview, track

T0, TF = 0.3, 2.3


def example(seed: int = 0) -> dict[str, object]:
    """An unstable system of 3 states, 2 inputs and 2 outputs that follows a smooth reference against a drift."""
    rng = np.random.default_rng(seed)
    return {
        "A": rng.normal(size=(3, 3)),
        "B": rng.normal(size=(3, 2)),
        "C": rng.normal(size=(2, 3)),
        "Q": np.array([[30.0, 3.0], [3.0, 10.0]]),
        "R": np.array([[1.0, 0.2], [0.2, 0.5]]),
        "Sf": np.diag([4.0, 0.0]),
        "reference": lambda t: np.array([np.sin(3.0 * t), erf(2.0 * (t - 1.0))]),
        "drift": np.array([0.5, -1.0, 0.3]),
        "nominal": lambda t: np.array([np.cos(t), -0.5]),
    }


def solve(problem: dict[str, object], steps: int = 400) -> TrackingGains:
    return track(TrackingProblem(**problem), T0, TF, steps)


def of_time(value: object, t: float) -> np.ndarray:
    return np.asarray(value(t) if callable(value) else value, dtype=float)


def differentiation(nodes: np.ndarray) -> np.ndarray:
    """Matrix that differentiates the polynomial through values at the nodes."""
    weights = np.array([1.0 / np.prod(node - np.delete(nodes, i)) for i, node in enumerate(nodes)])
    with np.errstate(divide="ignore"):
        matrix = weights[None, :] / weights[:, None] / (nodes[:, None] - nodes[None, :])
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def quadratic_programme(problem: dict[str, object], x0: np.ndarray, points: int) -> tuple[np.ndarray, ...]:
    """Times, states, inputs, cost and end of the discretised problem: Gauss collocation, one dense KKT system.

    No Riccati equation in it: states and inputs at the points are unknowns, the dynamics equality constraints, the
    state at the end the start plus the integral of the dynamics.
    """
    nodes, quadrature = np.polynomial.legendre.leggauss(points)
    half = (TF - T0) / 2.0
    times, quadrature = T0 + (nodes + 1.0) * half, quadrature * half
    slope = differentiation(np.append(-1.0, nodes))[1:] / half  # of the polynomial through the start and the points
    n, m = 3, 2
    count = points * (n + m)
    hessian, linear, constant = np.zeros((count, count)), np.zeros(count), 0.0
    constraints, right = np.zeros((points * n, count)), np.zeros(points * n)
    end, end_constant = np.zeros((n, count)), x0.copy()
    for i, t in enumerate(times):
        A, B, C, Q, R, z, d, w = (
            of_time(problem[key], t) for key in ("A", "B", "C", "Q", "R", "reference", "drift", "nominal")
        )
        x, u = slice(i * n, (i + 1) * n), slice(points * n + i * m, points * n + (i + 1) * m)
        hessian[x, x] = quadrature[i] * C.T @ Q @ C
        linear[x] = -quadrature[i] * C.T @ Q @ z
        hessian[u, u] = quadrature[i] * R
        linear[u] = -quadrature[i] * R @ w
        constant += quadrature[i] * (z @ Q @ z + w @ R @ w)
        for j in range(points):
            constraints[x, j * n : (j + 1) * n] = slope[i, j + 1] * np.eye(n)
        constraints[x, x] -= A
        constraints[x, u] = -B
        right[x] = d - slope[i, 0] * x0
        end[:, x], end[:, u] = quadrature[i] * A, quadrature[i] * B
        end_constant = end_constant + quadrature[i] * d
    Cf, zf, Sf = of_time(problem["C"], TF), of_time(problem["reference"], TF), np.asarray(problem["Sf"])
    off = Cf @ end_constant - zf
    hessian += end.T @ Cf.T @ Sf @ Cf @ end
    linear += end.T @ Cf.T @ Sf @ off
    constant += off @ Sf @ off
    whole = np.block([[hessian, constraints.T], [constraints, np.zeros((points * n, points * n))]])
    found = np.linalg.solve(whole, np.append(-linear, right))[:count]
    cost = found @ hessian @ found + 2.0 * linear @ found + constant
    states, inputs = found[: points * n].reshape(points, n), found[points * n :].reshape(points, m)
    return times, states, inputs, cost, end @ found + end_constant


def running_cost(problem: dict[str, object], t: float, x: np.ndarray, u: np.ndarray) -> float:
    C, Q, R, z, w = (of_time(problem[key], t) for key in ("C", "Q", "R", "reference", "nominal"))
    return float((z - C @ x) @ Q @ (z - C @ x) + (u - w) @ R @ (u - w))


def driven_cost(problem: dict[str, object], x0: np.ndarray, law: object) -> float:
    """Cost of driving the system by u = law(t, x), by an integrator that knows nothing of Riccati."""

    def rates(t: float, state: np.ndarray) -> np.ndarray:
        u = law(t, state[:3])
        x_rate = of_time(problem["A"], t) @ state[:3] + of_time(problem["B"], t) @ u + of_time(problem["drift"], t)
        return np.append(x_rate, running_cost(problem, t, state[:3], u))

    end = solve_ivp(rates, (T0, TF), np.append(x0, 0.0), rtol=1e-8, atol=1e-10).y[:, -1]
    error = of_time(problem["reference"], TF) - of_time(problem["C"], TF) @ end[:3]
    return float(end[3] + error @ np.asarray(problem["Sf"]) @ error)


X0 = np.array([1.0, -0.5, 0.3])


@pytest.mark.parametrize("seed", range(3))
def test_states_inputs_and_cost_are_those_of_an_independent_quadratic_programme(seed: int) -> None:
    problem = example(seed)
    gains = solve(problem)
    motion = gains.motion(X0)
    times, states, inputs, cost, end = quadratic_programme(problem, X0, 40)
    assert motion.cost == pytest.approx(cost, rel=1e-7)
    np.testing.assert_allclose(motion.states[-1], end, atol=1e-6)
    for t, x, u in zip(times, states, inputs, strict=True):
        np.testing.assert_allclose(gains.command(t, x), u, atol=1e-6)


def test_a_system_that_varies_in_time_is_solved_as_well() -> None:
    problem = example(1)
    A, B = problem["A"], problem["B"]
    problem |= {
        "A": lambda t: A * (1.0 + 0.5 * np.sin(4.0 * t)),
        "B": lambda t: B * (1.5 + np.cos(3.0 * t)),
        "Q": lambda t: np.diag([20.0 + 10.0 * t, 5.0]),
        "R": lambda t: np.diag([1.0 + t, 2.0]),
    }
    motion = solve(problem).motion(X0)
    _, _, _, cost, end = quadratic_programme(problem, X0, 44)
    assert motion.cost == pytest.approx(cost, rel=1e-7)
    np.testing.assert_allclose(motion.states[-1], end, atol=1e-6)


def test_steps_of_half_the_length_leave_a_sixteenth_of_the_error() -> None:
    fine = solve(example(), 640).values[0]
    errors = [np.abs(solve(example(), steps).values[0] - fine).max() for steps in (10, 20, 40)]
    assert 10.0 < errors[0] / errors[1] < 24.0
    assert 10.0 < errors[1] / errors[2] < 24.0


def test_the_riccati_equations_hold_at_any_time() -> None:
    problem = example()
    gains = solve(problem)
    A, B, C, Q, R = (np.asarray(problem[key]) for key in "ABCQR")
    h = 1e-4
    for t in (0.5, 1.2345, 2.2):
        S, g, K = gains.S(t), gains.g(t), gains.K(t)
        push = np.asarray(problem["drift"]) + B @ problem["nominal"](t)
        S_rate = (gains.S(t + h) - gains.S(t - h)) / (2.0 * h)
        g_rate = (gains.g(t + h) - gains.g(t - h)) / (2.0 * h)
        left = S_rate + S @ A + A.T @ S - S @ B @ np.linalg.solve(R, B.T @ S) + C.T @ Q @ C
        np.testing.assert_allclose(left, 0.0, atol=1e-5 * np.abs(S).max())
        left = g_rate + (A + B @ K).T @ g + C.T @ Q @ problem["reference"](t) - S @ push
        np.testing.assert_allclose(left, 0.0, atol=1e-5 * np.abs(g).max())
        np.testing.assert_allclose(K, -np.linalg.solve(R, B.T @ S), atol=1e-12)
        np.testing.assert_allclose(gains.p(t), problem["nominal"](t) + np.linalg.solve(R, B.T @ g), atol=1e-12)
    Sf = np.asarray(problem["Sf"])
    np.testing.assert_allclose(gains.S(TF), C.T @ Sf @ C, atol=1e-14)
    np.testing.assert_allclose(gains.g(TF), C.T @ Sf @ problem["reference"](TF), atol=1e-14)


def test_values_are_symmetric_and_positive_at_every_step_stiff_problems_included() -> None:
    for R in (1e-6, 1.0, 1e6):
        gains = solve(example() | {"R": R * np.eye(2)})
        for value in gains.values:
            np.testing.assert_array_equal(value, value.T)
            assert np.linalg.eigvalsh(value)[0] > -1e-9 * np.abs(value).max()


def test_the_cost_of_the_optimal_motion_is_the_value_function_and_every_other_law_costs_more() -> None:
    problem = example()
    gains = solve(problem)
    best = gains.cost(T0, X0)
    assert driven_cost(problem, X0, gains.command) == pytest.approx(best, rel=1e-7)
    assert gains.motion(X0).cost == pytest.approx(best, rel=1e-12)
    rng = np.random.default_rng(3)
    for _ in range(2):
        push, frequency = rng.normal(size=2), rng.uniform(0.5, 8.0)

        def disturbed(size: float, push: np.ndarray = push, frequency: float = frequency) -> float:
            return driven_cost(problem, X0, lambda t, x: gains.command(t, x) + size * push * np.sin(frequency * t))

        extra = [disturbed(size) - best for size in (0.02, 0.04)]
        assert extra[0] > 0.0
        assert extra[1] / extra[0] == pytest.approx(4.0, rel=1e-3)  # a minimum: no slope, only curvature


def test_the_value_falls_along_the_optimal_motion_by_what_is_spent() -> None:
    problem = example()
    gains = solve(problem)
    motion = gains.motion(X0)
    spent = [running_cost(problem, *at) for at in zip(motion.times, motion.states, motion.inputs, strict=True)]
    left = [gains.cost(t, x) for t, x in zip(motion.times, motion.states, strict=True)]
    slopes = np.gradient(left, motion.times, edge_order=2)
    np.testing.assert_allclose(slopes[1:-1], -np.array(spent)[1:-1], rtol=1e-2, atol=1e-2 * max(spent))


def test_far_from_the_end_the_gains_are_those_of_an_infinite_time() -> None:
    problem = example() | {"reference": lambda t: np.array([0.7, -0.2]), "drift": None, "nominal": None}
    gains = track(TrackingProblem(**problem), 0.0, 60.0, 600)
    A, B, C, Q, R = (np.asarray(problem[key]) for key in "ABCQR")
    forever = solve_continuous_are(A, B, C.T @ Q @ C, R)
    np.testing.assert_allclose(gains.S(0.0), forever, rtol=1e-9, atol=1e-9 * np.abs(forever).max())
    endless = preview(A, B, C, Q, R, 1.0)
    np.testing.assert_allclose(gains.K(0.0), endless.K, atol=1e-9)
    references = np.tile([0.7, -0.2], (len(endless.offsets), 1))
    np.testing.assert_allclose(gains.p(0.0), endless.feed_forward(references), atol=1e-9)


def test_preview_of_an_infinite_time_is_the_law_of_a_long_finite_one() -> None:
    """The reference ends at rest, at 1.6 s; the endless law sees 1.7 s of it, the finite one runs for 40 s."""
    problem = example() | {"drift": None, "nominal": None}
    moving = problem["reference"]
    problem["reference"] = lambda t: np.asarray(moving(0.0)) + np.sin(np.pi * min(t, 1.6) / 3.2) ** 4 * np.ones(2)
    gains = track(TrackingProblem(**problem), 0.0, 40.0, 4000)
    endless = preview(*(problem[key] for key in "ABCQR"), 1.7)
    references = np.array([problem["reference"](t) for t in endless.offsets])
    np.testing.assert_allclose(endless.feed_forward(references), gains.p(0.0), atol=1e-6)
    blind = preview(*(problem[key] for key in "ABCQR"), 0.05)
    shortsighted = blind.feed_forward(np.array([problem["reference"](t) for t in blind.offsets]))
    assert np.abs(shortsighted - gains.p(0.0)).max() > 0.05


def test_what_inputs_cost_decides_how_much_is_done() -> None:
    problem = example() | {"drift": None, "nominal": None}
    efforts = [np.abs(solve(problem | {"R": r * np.eye(2)}).motion(X0).inputs).max() for r in (1.0, 1e4, 1e8)]
    assert efforts[0] > 30.0 * efforts[1] > 900.0 * efforts[2]


def test_d_002_8_the_printed_law_has_no_meaning_and_without_the_state_it_is_not_optimal() -> None:
    """u = K(t) + p(t) adds a matrix (m, n) to a vector (m,); numpy would even do it where m = n = 1."""
    gains = solve(example())
    with pytest.raises(ValueError, match="broadcast"):
        gains.K(T0) + gains.p(T0)
    one = {"A": 1.0, "B": 1.0, "C": 1.0, "Q": 10.0, "R": 1.0, "Sf": 1.0, "reference": lambda t: np.sin(t)}
    scalar_gains = track(TrackingProblem(**one), 0.0, 2.0)

    def cost(law: object) -> float:
        def rates(t: float, s: np.ndarray) -> list[float]:
            u = float(np.ravel(law(t, s[0]))[0])
            return [s[0] + u, 10.0 * (np.sin(t) - s[0]) ** 2 + u**2]

        end = solve_ivp(rates, (0.0, 2.0), [0.5, 0.0], rtol=1e-9, atol=1e-11).y[:, -1]
        return float(end[1] + (np.sin(2.0) - end[0]) ** 2)

    best = scalar_gains.cost(0.0, [0.5])
    assert cost(lambda t, x: scalar_gains.command(t, [x])) == pytest.approx(best, rel=1e-7)
    assert cost(lambda t, x: scalar_gains.K(t) + scalar_gains.p(t)) > 100.0 * best


def test_a_weight_that_is_only_semidefinite_suffices() -> None:
    """Document 002 asks for Q > 0; with Q = 0 the end alone is steered to, as the minimum-energy law of the Gramian."""
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    goal = np.array([1.0, 0.0])
    gains = track(TrackingProblem(A, B, np.eye(2), np.zeros((2, 2)), 1.0, 1e9 * np.eye(2), lambda t: goal), 0.0, 1.0)
    motion = gains.motion([0.0, 0.0])
    np.testing.assert_allclose(motion.states[-1], goal, atol=1e-6)
    gramian = np.array([[1.0 / 3.0, 0.5], [0.5, 1.0]])
    eta = np.linalg.solve(gramian, goal)
    wanted = [(B.T @ expm(A.T * (1.0 - t)) @ eta)[0] for t in motion.times]
    np.testing.assert_allclose(motion.inputs[:, 0], wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"R": np.diag([1.0, 0.0])}, "R: .*positive definite"),
        ({"Q": np.diag([1.0, -1.0])}, "Q: .*positive semidefinite"),
        ({"Q": np.array([[1.0, 1.0], [0.0, 1.0]])}, "Q: .*symmetric"),
        ({"Q": 1e308 * np.array([[1.0, 1.0], [1.0, -1.0]])}, r"Q\[0, 0\]: got 1e\+308"),
        ({"Sf": np.eye(3)}, r"Sf: got shape \(3, 3\)"),
        ({"B": np.zeros((2, 2))}, r"C: got shape \(2, 3\)"),
        ({"reference": lambda t: [t]}, r"reference: got shape \(1,\)"),
        ({"drift": np.array([0.0, np.nan, 0.0])}, r"drift\[1\]"),
    ],
)
def test_problems_without_a_minimum_are_refused_by_name(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        solve(example() | change)


def test_times_outside_and_backwards_are_refused() -> None:
    with pytest.raises(InputError, match="tf: got 0 s"):
        track(TrackingProblem(**example()), 1.0, 0.0)
    with pytest.raises(InputError, match="steps: got 0"):
        solve(example(), 0)
    with pytest.raises(InputError, match="time: got 9 s"):
        solve(example(), 5).K(9.0)
    with pytest.raises(InputError, match="stable optimal law"):
        preview([[1.0]], [[0.0]], [[1.0]], [[1.0]], [[1.0]], 1.0)
