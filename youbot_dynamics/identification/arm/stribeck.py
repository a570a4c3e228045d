"""How friction falls with speed: the Stribeck speed of each joint, where the data show one (system 9)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from youbot_dynamics.identification.arm.arm_rows import ArmFrictionModel
from youbot_dynamics.identification.arm.arm_windows import ArmSignals
from youbot_dynamics.identification.arm_friction import ArmFriction, identify_arm_friction

SPEEDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)  # [rad/s] v_s that are tried
_SEEN = 0.5  # v_s over the fastest motion: above, only a part of the curve is in the data
_WORTH = 0.9  # share of the unexplained torque that may be left for the curve to be believed


def with_stribeck(found: ArmFriction, recordings: Sequence[ArmSignals]) -> ArmFriction:
    """The identification with a Stribeck curve in those joints whose torque it explains better.

    (coulomb + stribeck exp(-(v/v_s)^2)) sign v; v_s enters nonlinearly and is tried in steps, joint after joint. It is
    kept where it takes a tenth or more of what the joint left unexplained, friction within its physical bounds. Static
    friction, at no speed, is then coulomb + stribeck; verdicts say whether the parts can be told apart.

    Args:
        found: without Stribeck curves.
        recordings: that it was identified from.
    """
    best = found
    for row in found.rows:
        name = found.model.joint_names[row.joint]
        fastest = float(np.max(np.abs(row.speed)))
        tried = [
            identify_arm_friction(recordings, _with_speed(best.model, row.joint, speed))
            for speed in SPEEDS
            if speed <= _SEEN * fastest
        ]
        better = max(tried, key=lambda one: one[name].explained, default=best)
        if 1.0 - better[name].explained < _WORTH * (1.0 - best[name].explained):
            best = better
    return best


def _with_speed(model: ArmFrictionModel, joint: int, speed: float) -> ArmFrictionModel:
    speeds = [model.stribeck_speed(j) for j in range(len(model.joint_names))]
    speeds[joint] = speed
    return dataclasses.replace(model, stribeck_speeds=tuple(speeds))
