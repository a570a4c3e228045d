"""Delay of the efforts of an arm behind its motion, as by a filter of its driver or by late stamps.

A column of the rate of the torque stands for a small delay only: in windows of +-25 ms, efforts that are 10 ms late
gave 5 ms. The efforts are therefore taken back by their delay before anything else is fitted; the column then tells
what is left of it, and its error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from youbot_dynamics.identification.arm_friction._fit import ArmFriction, fitted_arm
from youbot_dynamics.identification.arm_friction._rows import ArmEquations, ArmFrictionModel, arm_equations
from youbot_dynamics.identification.least_squares import SIGNIFICANT
from youbot_dynamics.identification.signals import ArmSignals, even_stamps

_NO_TORQUE = 1e-9  # [N m] below any reading
_TRIED = np.arange(-10, 51, 10) * 1e-3  # [s]
_LEAST_GAIN = 10.0  # of the logarithm of the likelihood by another delay than 0; neighbours of the right one lose 500
_MOST_STEPS = 4  # to a delay of which nothing significant is left


def taken_back(signals: ArmSignals, delay: float) -> ArmSignals:
    """Signals whose efforts (s, n) are those `delay` [s] later, at even times; those beyond the recording end it."""
    time = even_stamps(signals.time, signals.position)
    inside = (time + delay >= time[:1]) & (time + delay <= time[-1:])
    torques = [np.interp(time[inside] + delay, time, torque) for torque in signals.torque.T]
    table = np.column_stack(torques) if torques else signals.torque[inside]
    return replace(signals, time=time[inside], position=signals.position[inside], torque=table)


def with_prompt_efforts(
    recordings: Sequence[ArmSignals], equations: ArmEquations
) -> tuple[Sequence[ArmSignals], ArmFriction]:
    """The recordings with efforts taken back by their delay, and the fit of those, which has it in `taken_back`.

    Without a tree, or where the motion does not determine the delay, both are those of the recordings as they are.
    """
    found = fitted_arm(equations)
    if equations.base is None or found.fit is None:
        return recordings, found
    delay = _likeliest(recordings, equations.model)
    prompt, fit = recordings, found
    for _ in range(_MOST_STEPS):
        if delay != 0.0:
            prompt = [taken_back(signals, delay) for signals in recordings]
            fit = replace(fitted_arm(arm_equations(prompt, equations.model)), taken_back=delay)
        if not fit.readings or not math.isfinite(fit.readings[-1].value):
            return recordings, found
        left = fit.readings[-1]
        if abs(left.value) <= SIGNIFICANT * left.standard_error:
            break
        delay += left.value
    return prompt, fit


def _likeliest(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> float:
    """Delay [s] among those tried with which the columns of each joint explain its torques best; 0 if none gains."""
    of = {0.0: _likelihood(arm_equations(recordings, model))}
    for delay in _TRIED[_TRIED != 0.0].tolist():
        of[delay] = _likelihood(arm_equations([taken_back(signals, delay) for signals in recordings], model))
    best = max(of, key=lambda delay: of[delay])
    return best if of[best] > of[0.0] + _LEAST_GAIN else 0.0


def _likelihood(equations: ArmEquations) -> float:
    """Logarithm of the likelihood of the torques, each joint with bodies of its own: no scale of theirs counts."""
    counts = np.array([len(row.time) for row in equations.rows])
    return -float(counts @ np.log(np.maximum(equations.unexplained(), _NO_TORQUE)))
