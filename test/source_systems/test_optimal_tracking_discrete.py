"""Optimal tracking in discrete time, with transport delay and with preview: against quadratic programmes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, solve_discrete_are

from youbot_dynamics.control.lq_tracking import PreviewGains, preview_discrete
from youbot_dynamics.control.tracker._base_lq import delayed_system
from youbot_dynamics.errors import InputError
from youbot_dynamics.simulation.base import DelayLine
from youbot_dynamics.source_systems.optimal_tracking import DiscreteGains, TrackingProblem, track, track_discrete

STEPS = 30
X0 = np.array([1.0, -0.5, 0.3])


def example(seed: int = 0) -> dict[str, np.ndarray]:
    """An unstable system of 3 states, 2 inputs, 2 outputs, other matrices at each step."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(STEPS, 2, 2))
    return {
        "A": np.eye(3) + 0.3 * rng.normal(size=(STEPS, 3, 3)),
        "B": rng.normal(size=(STEPS, 3, 2)),
        "C": rng.normal(size=(STEPS, 2, 3)),
        "Q": root @ root.swapaxes(1, 2),
        "R": 0.5 * np.eye(2) + root.swapaxes(1, 2) @ root,
        "Sf": np.diag([4.0, 0.0]),
        "reference": rng.normal(size=(STEPS + 1, 2)),
        "drift": rng.normal(size=(STEPS, 3)),
        "nominal": rng.normal(size=(STEPS, 2)),
    }


def constant(seed: int = 0) -> dict[str, np.ndarray]:
    problem = example(seed)
    return {key: value[0] if key in "ABCQR" else value for key, value in problem.items()}


def each(problem: dict[str, np.ndarray], key: str, k: int) -> np.ndarray:
    value = problem[key]
    return value[min(k, len(value) - 1)] if value.ndim == 3 else value


def quadratic_programme(problem: dict[str, np.ndarray], x0: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """States (N + 1, n), inputs (N, m) and cost by one dense KKT system; no recursion in it."""
    steps = len(problem["reference"]) - 1
    n, m = each(problem, "B", 0).shape
    drift, nominal = problem.get("drift", np.zeros((steps, n))), problem.get("nominal", np.zeros((steps, m)))
    weights = [each(problem, "Q", k) for k in range(steps)] + [problem["Sf"]]
    outputs = block_diag(*(each(problem, "C", k) for k in range(steps + 1)))
    of_states = outputs.T @ block_diag(*weights)
    hessian = block_diag(of_states @ outputs, *(each(problem, "R", k) for k in range(steps)))
    linear = np.concatenate(
        [-of_states @ problem["reference"].ravel(), *(-each(problem, "R", k) @ nominal[k] for k in range(steps))]
    )
    constraints = np.zeros(((steps + 1) * n, hessian.shape[0]))
    constraints[:, : (steps + 1) * n] = np.eye((steps + 1) * n)
    for k in range(steps):
        rows = slice((k + 1) * n, (k + 2) * n)
        constraints[rows, k * n : (k + 1) * n] = -each(problem, "A", k)
        constraints[rows, (steps + 1) * n + k * m : (steps + 1) * n + (k + 1) * m] = -each(problem, "B", k)
    zero = np.zeros((len(constraints), len(constraints)))
    whole = np.block([[hessian, constraints.T], [constraints, zero]])
    found = np.linalg.solve(whole, np.concatenate([-linear, x0, drift.ravel()]))[: len(hessian)]
    states, inputs = found[: (steps + 1) * n].reshape(-1, n), found[(steps + 1) * n :].reshape(-1, m)
    return states, inputs, cost_of(problem, states, inputs)


def cost_of(problem: dict[str, np.ndarray], states: np.ndarray, inputs: np.ndarray) -> float:
    nominal = problem.get("nominal", np.zeros_like(inputs))
    total = 0.0
    for k, u in enumerate(inputs):
        error, effort = problem["reference"][k] - each(problem, "C", k) @ states[k], u - nominal[k]
        total += error @ each(problem, "Q", k) @ error + effort @ each(problem, "R", k) @ effort
    error = problem["reference"][-1] - each(problem, "C", len(inputs)) @ states[-1]
    return float(total + error @ problem["Sf"] @ error)


def drive(problem: dict[str, np.ndarray], gains: DiscreteGains, x0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    drift = problem.get("drift", np.zeros((len(gains.K), len(x0))))
    states, inputs = [x0], []
    for k in range(len(gains.K)):
        inputs.append(gains.command(k, states[-1]))
        states.append(each(problem, "A", k) @ states[-1] + each(problem, "B", k) @ inputs[-1] + drift[k])
    return np.array(states), np.array(inputs)


@pytest.mark.parametrize("problem", [example(0), example(1), constant(2)], ids=["varying", "varying too", "constant"])
def test_states_inputs_and_cost_are_those_of_a_dense_quadratic_programme(problem: dict[str, np.ndarray]) -> None:
    gains = track_discrete(TrackingProblem(**problem))
    wanted_states, wanted_inputs, wanted_cost = quadratic_programme(problem, X0)
    states, inputs = drive(problem, gains, X0)
    np.testing.assert_allclose(states, wanted_states, atol=1e-9)
    np.testing.assert_allclose(inputs, wanted_inputs, atol=1e-9)
    assert gains.cost(0, X0) == pytest.approx(wanted_cost, rel=1e-10)
    assert cost_of(problem, states, inputs) == pytest.approx(wanted_cost, rel=1e-10)


def test_another_programme_of_casadi_agrees() -> None:
    casadi = pytest.importorskip("casadi")
    problem = constant(3)
    n, m = problem["B"].shape
    opti = casadi.Opti("conic")
    x, u = opti.variable(n, STEPS + 1), opti.variable(m, STEPS)
    opti.subject_to(x[:, 0] == X0)
    cost = 0
    for k in range(STEPS):
        error, effort = problem["reference"][k] - problem["C"] @ x[:, k], u[:, k] - problem["nominal"][k]
        cost += error.T @ problem["Q"] @ error + effort.T @ problem["R"] @ effort
        opti.subject_to(x[:, k + 1] == problem["A"] @ x[:, k] + problem["B"] @ u[:, k] + problem["drift"][k])
    error = problem["reference"][-1] - problem["C"] @ x[:, STEPS]
    opti.minimize(cost + error.T @ problem["Sf"] @ error)
    opti.solver("qrqp", {"print_iter": False, "print_header": False, "print_info": False, "print_time": False})
    solution = opti.solve()
    _, inputs = drive(problem, track_discrete(TrackingProblem(**problem)), X0)
    np.testing.assert_allclose(inputs, np.asarray(solution.value(u)).T, atol=1e-6)


def test_values_are_symmetric_and_positive_and_the_value_falls_by_what_is_spent() -> None:
    problem = example()
    gains = track_discrete(TrackingProblem(**problem))
    states, inputs = drive(problem, gains, X0)
    for k in range(STEPS):
        np.testing.assert_array_equal(gains.S[k], gains.S[k].T)
        assert np.linalg.eigvalsh(gains.S[k])[0] >= -1e-12 * np.abs(gains.S[k]).max()
        error = problem["reference"][k] - problem["C"][k] @ states[k]
        effort = inputs[k] - problem["nominal"][k]
        spent = error @ problem["Q"][k] @ error + effort @ problem["R"][k] @ effort
        assert gains.cost(k, states[k]) - gains.cost(k + 1, states[k + 1]) == pytest.approx(spent, abs=1e-8)


def test_every_other_input_costs_more() -> None:
    problem = example()
    gains = track_discrete(TrackingProblem(**problem))
    best = gains.cost(0, X0)
    rng = np.random.default_rng(4)
    _, inputs = drive(problem, gains, X0)
    for _ in range(20):
        disturbed = inputs + 1e-3 * rng.normal(size=inputs.shape)
        states = [X0]
        for k, u in enumerate(disturbed):
            states.append(problem["A"][k] @ states[-1] + problem["B"][k] @ u + problem["drift"][k])
        assert cost_of(problem, np.array(states), disturbed) > best


def test_short_steps_lead_to_the_law_of_continuous_time() -> None:
    """The cost of held inputs falls to that of free ones with the square of the step."""
    A, B = np.array([[0.0, 1.0], [2.0, -0.5]]), np.array([[0.0], [1.0]])
    x0 = np.array([0.5, -0.3])
    best = track(TrackingProblem(A, B, np.eye(2), np.eye(2), 0.1, np.eye(2), lambda t: np.zeros(2)), 0.0, 1.0)
    K = []
    for steps in (50, 100, 200):
        sampled = delayed_system(A, B, 0.0, 1.0 / steps)
        weights = np.eye(2) / steps, 0.1 / steps, np.eye(2)
        gains = track_discrete(
            TrackingProblem(sampled.A, sampled.B, np.eye(2), *weights, reference=np.zeros((steps + 1, 2)))
        )
        K.append(gains.K[0] @ x0 - best.K(0.0) @ x0)
    assert 1.7 < K[0] / K[1] < 2.3 and 1.7 < K[1] / K[2] < 2.3
    assert abs(2.0 * K[2] - K[1]) < 0.02 * abs(K[2])


def known_ahead(gains: PreviewGains, references: np.ndarray, drifts: np.ndarray) -> np.ndarray:
    of_references = np.einsum("lmp,lp->m", gains.reference_kernel, references)
    return of_references + np.einsum("lmn,ln->m", gains.drift_kernel, drifts)


def test_far_from_the_end_the_gains_are_those_of_an_infinite_time() -> None:
    problem = constant(5)
    steps = 400
    still = {key: problem[key] for key in ("A", "B", "C", "Q", "R", "Sf")}
    z, d = np.array([0.4, -1.0]), np.array([0.2, 0.1, -0.3])
    gains = track_discrete(TrackingProblem(**still, reference=np.tile(z, (steps + 1, 1)), drift=np.tile(d, (steps, 1))))
    A, B, C, Q, R = (problem[key] for key in "ABCQR")
    forever = solve_discrete_are(A, B, C.T @ Q @ C, R)
    np.testing.assert_allclose(gains.S[0], forever, rtol=1e-9, atol=1e-9 * np.abs(forever).max())
    endless = preview_discrete(A, B, C, Q, R, 3)
    np.testing.assert_allclose(gains.K[0], endless.K, atol=1e-9)
    np.testing.assert_allclose(gains.p[0], known_ahead(endless, np.tile(z, (3, 1)), np.tile(d, (3, 1))), atol=1e-8)


def test_preview_of_an_infinite_time_is_the_law_of_a_long_finite_one() -> None:
    problem = constant(6)
    A, B, C, Q, R = (problem[key] for key in "ABCQR")
    known, steps = 25, 500
    z = np.vstack([problem["reference"][: known + 1], np.tile(problem["reference"][known], (steps - known, 1))])
    d = np.vstack([problem["drift"][:known], np.tile(problem["drift"][known - 1], (steps - known, 1))])
    gains = track_discrete(TrackingProblem(A, B, C, Q, R, problem["Sf"], z, drift=d))
    endless = preview_discrete(A, B, C, Q, R, known)
    np.testing.assert_allclose(known_ahead(endless, z[1 : known + 1], d[:known]), gains.p[0], atol=1e-8)


def simulate_delayed(dead: float, lag: float, period: float, commands: np.ndarray, fine: int) -> np.ndarray:
    """Position and speed of x' = v, lag v' = u(t - dead) - v at each sample, in small exact pieces."""
    line = DelayLine([dead])
    for k, command in enumerate(commands):
        line.push(k * period, [command])
    dt = period / fine
    pushes = line.means(0.0, dt, fine * len(commands))[:, 0]
    x, v, rows = 0.0, 0.0, [(0.0, 0.0)]
    fade = np.exp(-dt / lag)
    for i, u in enumerate(pushes):
        x, v = x + u * dt + (v - u) * lag * (1.0 - fade), u + (v - u) * fade
        if (i + 1) % fine == 0:
            rows.append((x, v))
    return np.array(rows)


@pytest.mark.parametrize(("dead", "held"), [(0.0, 0), (0.02, 1), (0.1, 5), (0.005, 1), (0.047, 3), (0.2999, 15)])
def test_a_delay_is_exact_whether_or_not_it_is_a_whole_number_of_periods(dead: float, held: int) -> None:
    period, lag = 0.02, 0.08
    commands = np.random.default_rng(1).normal(size=60)
    model = delayed_system([[0.0, 1.0], [0.0, -1.0 / lag]], [[0.0], [1.0 / lag]], dead, period)
    assert model.held == held and model.A.shape == (2 + held, 2 + held)
    state, rows = np.zeros(2 + held), [np.zeros(2)]
    for command in commands:
        state = model.A @ state + model.B[:, 0] * command
        rows.append(state[:2])
    wanted = simulate_delayed(dead, lag, period, commands, 200)
    np.testing.assert_allclose(np.array(rows), wanted, atol=1e-12 + 1e-9 * np.abs(wanted).max())


def test_a_law_that_knows_the_delay_beats_the_best_one_that_does_not() -> None:
    """0.15 s behind an integrator: the ignorant law of the same weights swings up, the other settles."""
    period, dead = 0.02, 0.15
    model = delayed_system([[0.0]], [[1.0]], dead, period)
    plain = delayed_system([[0.0]], [[1.0]], 0.0, period)
    weights = ([[100.0]], [[0.5]])
    aware = preview_discrete(model.A, model.B, np.eye(1, len(model.A)), *weights, 1).K
    ignorant = np.zeros_like(aware)
    ignorant[0, 0] = preview_discrete(plain.A, plain.B, [[1.0]], *weights, 1).K[0, 0]
    radii = [np.abs(np.linalg.eigvals(model.A + model.B @ K)).max() for K in (aware, ignorant)]
    assert radii[0] < 0.9 and radii[1] > 1.0


def test_bad_shapes_and_delays_are_refused_by_name() -> None:
    problem = constant()
    with pytest.raises(InputError, match=r"drift: got shape \(2, 3\)"):
        track_discrete(TrackingProblem(**(problem | {"drift": np.zeros((2, 3))})))
    with pytest.raises(InputError, match="reference: got 1 rows"):
        track_discrete(TrackingProblem(**(problem | {"reference": np.zeros((1, 2))})))
    with pytest.raises(InputError, match=r"R: .*positive definite"):
        track_discrete(TrackingProblem(**(problem | {"R": np.zeros((2, 2))})))
    with pytest.raises(InputError, match="reference: got a function of time"):
        track_discrete(TrackingProblem(**(problem | {"reference": np.sin})))
    with pytest.raises(InputError, match=r"Q\[1\]: .*positive semidefinite"):
        track_discrete(TrackingProblem(**(example() | {"Q": -np.arange(STEPS)[:, None, None] * np.eye(2)})))
    with pytest.raises(InputError, match=r"delay: got -0.1 s"):
        delayed_system([[0.0]], [[1.0]], -0.1, 0.02)
    with pytest.raises(InputError, match="stable optimal law"):
        preview_discrete([[1.0]], [[1.0]], [[0.0]], [[1.0]], [[1.0]], 5)
