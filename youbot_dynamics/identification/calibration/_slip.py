"""Slip of the wheels against each other: which part of it grows with the motion, and what that means for the values.

n > 3 wheels can turn against each other in n - 3 directions U that move no base. Wheels that roll do so only as far as
their radii differ; wheels whose speed loops are stiff turn as commanded, as if they were equal, and what their radii
demand of them becomes slip. How stiff the loops are is unknown, so slip would tell radii only as well as the poses
confirm it: the poses alone determine them. With relative radius errors e, rim speeds A of a motion (`MecanumBase`),

    slip over motion = U diag(e) A - turning of the wheels against each other = share x U diag(e) A

with a share from 0 (wheels that roll) to 1 (stiff loops). Slip that no share explains means another geometry, or
contacts that creep. Creep moves the base off what its wheels roll by as much as it turns them against each other.

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

# Chosen: share of their slip by which unequal loads of the wheels move the base off the mean of what they demand.
_UNEQUAL_LOADS = 0.05
_ALIKE = 0.00006  # by which contacts of all wheels creep alike, which slip does not show: on twins up to 0.0001


class Slip(NamedTuple):
    """Slip of the wheels, in rad of a mean wheel."""

    growth: Vector  # ((n - 3) x 3,) of each direction over forward, sideways [rad/m] and turn [1]
    # ((n - 3) x 3, n) what the logarithms of the radii demand of it where wheels turn as if they were equal
    over_radii: Vector
    share: float  # of what the radii demand, 0 to 1
    left: list[Vector]  # (m, n) of each recording, beyond this share


class SlipErrors(NamedTuple):
    """Relative errors (standard deviations) of what the wheels roll, of each and of all."""

    loads: float  # because the wheels do not move the base alike while they slip
    unexplained: float  # by slip that radii do not explain, and by creep


def slip_of(windows: Sequence[Windows], guess: Guess, slips: Sequence[Vector], weights: Sequence[Vector]) -> Slip:
    """How the slips (m, n) of each recording, without means and with weights (m,), grow with the motion."""
    base, mean = guess.base, float(np.mean(guess.base.radii))
    rim_speeds = base.inverse_matrix * base.radii[:, None]
    directions = np.linalg.svd(rim_speeds.T)[2][3:]  # (n - 3, n), orthonormal
    squares, products, moved = np.zeros((3, 3)), np.zeros((3, len(directions))), []
    for part, offset, slip, weight in zip(windows, guess.offsets.tolist(), slips, weights, strict=True):
        motion = motions(part.signals, base, part.signals.pose_time[part.rows] - offset)
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
    """Errors that the growth of the slip of a fitted base shows.

    Args:
        slip: of the wheels.
        base: as fitted.
        covariance: (n, n) of the logarithms of the radii, which leave slip too.
        excited: whether there was enough motion forward, sideways and turning; of others, the growth is unknown.
    """
    known = np.tile(excited, len(slip.growth) // 3)
    found, over_radii = slip.growth[known], slip.over_radii[known]
    if not len(found):
        return SlipErrors(0.0, _ALIKE)
    left = found - slip.share * over_radii @ np.log(base.radii / np.mean(base.radii))
    as_radii = np.linalg.pinv(over_radii)
    seen = (1.0 - slip.share) * as_radii @ over_radii
    by_radii = float(np.mean(np.einsum("ki,ij,kj->k", seen, np.nan_to_num(covariance), seen)))
    slipping, unexplained = (float(np.mean((as_radii @ part) ** 2)) for part in (found, left))
    return SlipErrors(_UNEQUAL_LOADS * math.sqrt(slipping), math.sqrt(max(unexplained - by_radii, 0.0) + _ALIKE**2))
