"""Delay of the efforts of an arm behind its motion, as by a filter of its driver or by late stamps.

A column of the rate of the torque stands for a small delay only: in windows of +-25 ms, efforts that are 10 ms late
gave 5 ms. The efforts are therefore taken back by their delay before anything else is fitted; the column then tells
what is left of it, and its error. Noise of the efforts as large as the efforts pulls what the column tells to 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from youbot_dynamics.identification.arm_friction._fit import ArmFriction, fitted_arm
from youbot_dynamics.identification.arm_friction._rows import ArmEquations, arm_equations
from youbot_dynamics.identification.least_squares import SIGNIFICANT
from youbot_dynamics.identification.signals import ArmSignals

_NO_TORQUE = 1e-9  # [N m] below any reading
_TRIED = np.arange(-10, 51, 10) * 1e-3  # [s]
# Of the logarithm of the likelihood by another delay than 0, over the square root of the rows: other windows have other
# noise. Of 1271 rows, noise as large as the efforts gained 35, and 214 are wanted.
_LEAST_GAIN = 6.0
_NEAR, _PRECISE = 0.005, 2e-4  # [s] from the best of those tried, and error of the likeliest one
_MOST_STEPS = 4  # to a delay of which nothing significant is left


def with_prompt_efforts(
    recordings: Sequence[ArmSignals], equations: ArmEquations
) -> tuple[Sequence[ArmSignals], ArmFriction]:
    """The recordings with the delay of their efforts, and the fit with efforts taken back by it, as `taken_back` tells.

    Without a tree, or where nothing significant is found, both are those of the recordings as they are.
    """
    fit, model, prompt = fitted_arm(equations), equations.model, recordings
    if equations.base is None or fit.fit is None:
        return recordings, fit
    delay = _likeliest(recordings, equations)
    for _ in range(_MOST_STEPS):
        if delay != 0.0:
            prompt = [replace(signals, delay=delay) for signals in recordings]
            fit = replace(fitted_arm(arm_equations(prompt, model)), taken_back=delay)
        left = fit.readings[-1] if fit.readings else None
        if left is None or not abs(left.value) > SIGNIFICANT * left.standard_error:
            break
        delay += left.value
    late = delay if delay > _TRIED[-1] - _NEAR else 0.0
    return prompt, replace(fit, late=late)


def _likeliest(recordings: Sequence[ArmSignals], prompt: ArmEquations) -> float:
    """Delay [s] with which the columns of each joint explain its torques best; 0, as in `prompt`, for little gain."""

    def cost(delay: float) -> float:
        late = [replace(signals, delay=delay) for signals in recordings]
        return -_likelihood(arm_equations(late, prompt.model))

    costs = {delay: cost(delay) for delay in _TRIED.tolist() if delay != 0.0}
    best, rows = min(costs, key=lambda delay: costs[delay]), sum(len(row.time) for row in prompt.rows)
    if costs[best] > -_likelihood(prompt) - _LEAST_GAIN * math.sqrt(rows):
        return 0.0
    bounds = max(best - _NEAR, _TRIED[0]), min(best + _NEAR, _TRIED[-1])
    return float(minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": _PRECISE}).x)


def _likelihood(equations: ArmEquations) -> float:
    """Logarithm of the likelihood of the torques, each joint with bodies of its own: no scale of theirs counts."""
    counts = np.array([len(row.time) for row in equations.rows])
    return -float(counts @ np.log(np.maximum(equations.unexplained(), _NO_TORQUE)))
