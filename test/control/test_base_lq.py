"""LQ law of the base: an axis behind lag and delay follows a reference, and the loop stands errors of its model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from youbot_dynamics.control.tracker import LqFeedback, axis_law
from youbot_dynamics.control.tracker._base_lq import AxisLaw, LqSettings, delayed_system
from youbot_dynamics.errors import InputError

PERIOD = 0.02
DELAYS = [(0.05, 0.0), (0.1, 0.03), (0.237, 0.06), (0.3, 0.0)]


def model_of(dead: float, lag: float) -> tuple[np.ndarray, np.ndarray]:
    """Sampled axis with states position, speed (lag above 0) and commands on their way."""
    if lag > 0.0:
        model = delayed_system([[0.0, 1.0], [0.0, -1.0 / lag]], [[0.0], [1.0 / lag]], dead, PERIOD)
    else:
        model = delayed_system([[0.0]], [[1.0]], dead, PERIOD)
    return model.A, model.B[:, 0]


def follow(law: AxisLaw, desired: np.ndarray, nominal: np.ndarray, start: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Errors and commands while an axis exactly as modelled follows positions by the full law."""
    A, B = model_of(law.dead_time, law.lag)
    states, preview = len(A) - len(law.held), len(law.path)
    x = np.zeros(len(A))
    x[0] = desired[0] + start
    errors, commands = [], []
    for k in range(len(desired) - preview - 1):
        errors.append(x[0] - desired[k])
        steps = np.diff(desired[k : k + preview + 1])
        speed = float(x[1]) if states == 2 else 0.0
        commands.append(law.command(errors[-1], speed, x[states:], nominal[k : k + preview], steps))
        x = A @ x + B * commands[-1]
    return np.array(errors), np.array(commands)


def start_and_stop(law: AxisLaw) -> tuple[np.ndarray, np.ndarray]:
    """A smooth drive of 0.4 m, and the nominal commands of one that answers an effective delay late."""
    time = PERIOD * np.arange(400 + len(law.path))

    def position(t: np.ndarray) -> np.ndarray:
        s = np.clip((t - 1.0) / 3.0, 0.0, 1.0)
        return 0.4 * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)

    ahead = law.dead_time + law.lag
    return position(time), (position(time + ahead + PERIOD) - position(time + ahead)) / PERIOD


@pytest.mark.parametrize(("dead", "lag"), DELAYS)
def test_a_known_reference_is_followed_without_a_delay(dead: float, lag: float) -> None:
    law = axis_law(dead, lag, PERIOD, 0.3)
    desired, nominal = start_and_stop(law)
    errors, commands = follow(law, desired, nominal)
    assert np.abs(errors).max() < 1.5e-4
    assert np.abs(commands).max() < 0.27
    late = axis_law(0.0, 0.0, PERIOD, 0.3)  # the same law, made for a robot that answers at once
    blind = AxisLaw(dead, lag, late.error, 0.0, np.zeros(len(law.held)), late.ahead, late.path)
    desired, nominal = desired[: 400 + len(blind.path)], np.diff(desired, append=desired[-1]) / PERIOD
    assert np.abs(follow(blind, desired, nominal)[0]).max() > 0.2 * (dead + lag) * 0.25


@pytest.mark.parametrize(("dead", "lag"), DELAYS)
def test_an_error_decays_once_commands_act_and_costs_what_the_riccati_matrix_says(dead: float, lag: float) -> None:
    law = axis_law(dead, lag, PERIOD, 0.3)
    desired = np.zeros(600 + len(law.path))
    errors, _ = follow(law, desired, np.zeros(len(desired)), start=0.01)
    acting = int(np.ceil((dead + lag) / PERIOD))
    assert errors[acting + int(0.35 / PERIOD)] < 0.01 / np.e * 1.05
    assert errors[-1] < 1e-8 and errors.min() > -1e-4


@pytest.mark.parametrize(("dead", "lag"), DELAYS)
def test_feedback_of_the_delayed_model_is_that_of_the_plain_one_on_the_predicted_state(dead: float, lag: float) -> None:
    """What lets `LqFeedback` leave the delay to a predictor: K x = K_0 x(t + dead time), whatever is on its way."""
    law, plain = axis_law(dead, lag, PERIOD, 0.3), axis_law(0.0, lag, PERIOD, 0.3)
    past = np.random.default_rng(0).normal(size=len(law.held))
    speed = 0.7 if lag > 0.0 else 0.0
    x, v, now = 0.4, speed, 0.0
    pieces = [(dead - PERIOD * (i + 1), u) for i, u in enumerate(past)][::-1]  # the first sent acts first
    for i, (begin, u) in enumerate(pieces):
        until = pieces[i + 1][0] if i + 1 < len(pieces) else dead
        span = until - max(begin, now)
        fade = np.exp(-span / lag) if lag > 0.0 else 0.0
        x += u * span + (v - u) * lag * (1.0 - fade)
        v = u + (v - u) * fade
        now = until
    feedback = law.error * 0.4 + law.speed * speed + law.held @ past
    whole = abs(dead / PERIOD - round(dead / PERIOD)) < 1e-9
    assert feedback == pytest.approx(plain.error * x + plain.speed * v, rel=1e-9 if whole else 1e-3)


def regulate(
    believed: tuple[float, float],
    true: tuple[float, float],
    gain: float,
    push: float,
    steps: int = 1000,
    **settings: float,
) -> tuple[np.ndarray, LqFeedback]:
    """Errors of an axis that starts 10 mm off and is pushed, behind a predictor that believes another delay."""
    dead, lag = believed
    feedback = LqFeedback([dead] * 3, [lag] * 3, PERIOD, LqSettings(**settings))
    A, B = model_of(*true)
    model, entry = model_of(dead, lag)
    x, belief = np.zeros(len(A)), np.zeros(len(model))
    x[0], errors = 0.01, []
    for k in range(steps):
        errors.append(x[0])
        belief[0] = x[0]
        # Prediction: what is on its way goes on to act, nothing new is sent.
        ahead = belief.copy()
        for _ in range(round(dead / PERIOD)):
            ahead = model @ ahead
        u = feedback.correct([ahead[0]] * 3, k * PERIOD, np.zeros(3))[0]
        belief = model @ belief + entry * u
        x = A @ x + B * gain * u
        x[0] += push * PERIOD
    return np.array(errors), feedback


@pytest.mark.parametrize("dead", [0.04, 0.1, 0.3])
def test_a_steady_disturbance_is_learned_and_leaves_no_error(dead: float) -> None:
    errors, feedback = regulate((dead, 0.0), (dead, 0.0), 1.0, 0.01, steps=round(1000 * max(1.0, dead / 0.2)))
    assert abs(errors[-1]) < 1e-6
    assert feedback.disturbance[0] == pytest.approx(0.01, rel=1e-3)
    assert errors.min() > -2e-3


@pytest.mark.parametrize(("share", "gain"), list(product((0.5, 1.5), (0.5, 1.5))))
@pytest.mark.parametrize("dead", [0.04, 0.12, 0.32])
def test_the_loop_stands_half_and_one_and_a_half_times_its_delay_and_gain(dead: float, share: float, gain: float):
    errors, _ = regulate((dead, 0.0), (share * dead, 0.0), gain, 0.01)
    assert np.abs(errors).max() < 0.03
    assert (
        np.abs(errors[-100:]).max() < 2e-3 and np.abs(errors[-100:]).max() < 0.5 * np.abs(errors[200:300]).max() + 1e-5
    )


def test_a_quicker_law_makes_more_effort_and_leaves_less_error() -> None:
    """The curve of error against effort: the response time moves along it."""
    areas = [np.abs(regulate((0.1, 0.0), (0.1, 0.0), 1.0, 0.0, response=r)[0]).sum() for r in (0.8, 1.5, 3.0)]
    gains = [LqFeedback([0.1] * 3, [0.0] * 3, PERIOD, LqSettings(response=r)).axes[0].error for r in (0.8, 1.5, 3.0)]
    assert areas[0] < areas[1] < areas[2]
    assert gains[0] < gains[1] < gains[2] < 0.0


def test_the_same_moment_asked_twice_changes_nothing_and_a_cut_is_taken_for_what_was_sent() -> None:
    feedback = LqFeedback([0.1] * 3, [0.05] * 3, PERIOD)
    first = feedback.correct([0.01, -0.02, 0.03], 0.0, np.zeros(3))
    np.testing.assert_array_equal(feedback.correct([0.5, 0.5, 0.5], 0.0, np.zeros(3)), first)
    # All of it cut: the error stays, and no disturbance is seen in that.
    feedback.correct([0.01, -0.02, 0.03], PERIOD, -first)
    np.testing.assert_allclose(feedback.disturbance, 0.0, atol=1e-15)


def test_each_axis_has_the_law_of_its_own_delay_and_lag() -> None:
    dead, lag = [0.1, 0.2, 0.3], [0.02, 0.05, 0.08]
    together = LqFeedback(dead, lag, PERIOD).axes
    for axis in range(3):
        alone = LqFeedback([dead[axis]] * 3, [lag[axis]] * 3, PERIOD).axes[axis]
        assert (together[axis].lag, together[axis].error) == (lag[axis], alone.error)
    assert len({law.error for law in together}) == 3


def test_no_response_time_and_negative_lags_are_refused() -> None:
    with pytest.raises(InputError, match="response_time: got 0 s"):
        axis_law(0.1, 0.0, PERIOD, 0.0)
    with pytest.raises(InputError, match="lag: got -0.1 s"):
        axis_law(0.1, -0.1, PERIOD, 0.3)
    with pytest.raises(InputError, match=r"dead_times: got shape \(2,\)"):
        LqFeedback([0.1, 0.1], [0.0] * 3, PERIOD)
