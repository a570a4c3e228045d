"""Slip of the wheels against each other: which part of it grows with the motion, and what that means for the values.

n > 3 wheels can turn against each other in n - 3 directions U that move no base. Wheels that roll do so only as far as
their radii differ; wheels whose speed loops are stiff turn as commanded, as if they were equal, and what their radii
demand of them becomes slip. How stiff the loops are is unknown, so slip would tell radii only as well as the poses
confirm it: the poses alone determine them. With relative radius errors e, rim speeds A of a motion (`MecanumBase`),

    slip over motion = U diag(e) A - turning of the wheels against each other = share x U diag(e) A

with a share from 0 (wheels that roll) to 1 (stiff loops). Slip that no share explains means another geometry.

Source: systems 29-31.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.calibration._model import Guess, Windows, motions
from youbot_dynamics.kinematics.mecanum import MecanumBase

_SIGNIFICANT = 4.0  # standard errors above which slip is not explained; by chance 1 robot in 100 exceeds 3
# Chosen: share of their slip by which unequal loads of the wheels move the base off the mean of what they demand.
_UNEQUAL_LOADS = 0.05


class Slip(NamedTuple):
    """Slip of the wheels, in rad of a mean wheel."""

    growth: Vector  # ((n - 3) x 3,) of each direction over forward, sideways [rad/m] and turn [1]
    # ((n - 3) x 3, n) what the logarithms of the radii demand of it where wheels turn as if they were equal
    over_radii: Vector
    share: float  # of what the radii demand, 0 to 1
    left: list[Vector]  # (m, n) of each recording, beyond this share


class SlipErrors(NamedTuple):
    """Relative errors (standard deviations) of the radius of a single wheel."""

    loads: float  # because the wheels do not move the base alike while they slip
    unexplained: float  # by slip that radii do not explain; 0 if it is not significant


def slip_of(windows: Sequence[Windows], guess: Guess, slips: Sequence[Vector], weights: Sequence[Vector]) -> Slip:
    """How the slips (m, n) of each recording, without means and with weights (m,), grow with the motion."""
    base, mean = guess.base, float(np.mean(guess.base.radii))
    rim_speeds = base.inverse_matrix * base.radii[:, None]
    directions = np.linalg.svd(rim_speeds.T)[2][3:]  # (n - 3, n), orthonormal
    squares, products, moved = np.zeros((3, 3)), np.zeros((3, len(directions))), []
    for part, offset, slip, weight in zip(windows, guess.offsets.tolist(), slips, weights, strict=True):
        motion = motions(part, base, offset)
        weighted_mean = part.sums(weight[:, None] * motion) / np.maximum(part.sums(weight), 1e-300)[:, None]
        motion -= part.spread(weighted_mean)
        weighted = motion * weight[:, None]
        squares, products = squares + weighted.T @ motion, products + weighted.T @ slip @ directions.T
        moved.append(motion)
    growth = (np.linalg.pinv(squares) @ products).T
    over_radii = np.einsum("ki,ij->kji", directions * (base.radii / mean), rim_speeds / mean)
    demanded = over_radii @ np.log(base.radii / mean)
    # The share is that of the slip itself: a motion that is rare counts little.
    together = float(np.sum(demanded * (demanded @ squares)))
    share = min(max(float(np.sum(demanded * products.T)) / max(together, 1e-300), 0.0), 1.0)
    left = [slip - share * motion @ demanded.T @ directions for slip, motion in zip(slips, moved, strict=True)]
    return Slip(growth.ravel(), over_radii.reshape(-1, len(base.radii)), share, left)


def slip_errors(slip: Slip, base: MecanumBase, covariance: Vector, excited: Sequence[bool]) -> SlipErrors:
    """Errors of the radii of a fitted base that the growth of its slip shows.

    Args:
        slip: of the wheels.
        base: as fitted.
        covariance: (n, n) of the logarithms of the radii.
        excited: whether there was enough motion forward, sideways and turning; of others, the growth is unknown.
    """
    known = np.tile(excited, len(slip.growth) // 3)
    found, over_radii = slip.growth[known], slip.over_radii[known]
    if not len(found):
        return SlipErrors(0.0, 0.0)
    left = found - slip.share * over_radii @ np.log(base.radii / np.mean(base.radii))
    variances = np.einsum("ki,ij,kj->k", over_radii, np.nan_to_num(covariance), over_radii)
    significant = bool(np.any(np.abs(left) > _SIGNIFICANT * (1.0 - slip.share) * np.sqrt(variances)))
    as_radii = np.linalg.pinv(over_radii)
    slipping, unexplained = (math.sqrt(float(np.mean((as_radii @ part) ** 2))) for part in (found, left))
    return SlipErrors(_UNEQUAL_LOADS * slipping, unexplained if significant else 0.0)
