"""Numbers whose unit looks wrong: degrees for radians, revolutions a minute for radians a second, a flipped sign."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

_TOLERANCE = 0.15  # share by which a ratio may miss the one of a unit
_SLACK = 0.2  # [rad] a joint may read beyond its limits: its zero is set by hand
_MOVING = 0.05  # [rad/s]
_FEWEST = 20  # readings in motion
_DEGREES = 180.0 / math.pi
_RPM = 60.0 / (2.0 * math.pi)
# d(position)/dt over velocity, and what it tells.
_RATIOS = (
    (_DEGREES, "the positions look like degrees"),
    (1.0 / _DEGREES, "the velocities look like degrees a second"),
    (1.0 / _RPM, "the velocities look like revolutions a minute"),
    (_DEGREES / _RPM, "the positions look like degrees, the velocities like revolutions a minute"),
)


def angles_beyond(position: ArrayLike, lower: Sequence[float], upper: Sequence[float]) -> float:
    """How far angles go beyond the mechanical limits of their joints [rad]; 0 within `_SLACK` of them.

    Args:
        position: (s, n) [rad]; what is not finite does not count.
        lower: [n] limits [rad].
        upper: [n] limits [rad].
    """
    angles = np.asarray(position, dtype=float)
    beyond = np.maximum(np.asarray(lower) - angles, angles - np.asarray(upper))
    farthest = float(np.max(beyond[np.isfinite(beyond)], initial=0.0))
    return farthest if farthest > _SLACK else 0.0


def speed_ratio(time: ArrayLike, position: ArrayLike, velocity: ArrayLike) -> float:
    """d(position)/dt over velocity, by least squares; NaN where the joint hardly moved or one of both is missing.

    Args:
        time: (s,) increasing [s].
        position: (s,) [rad].
        velocity: (s,) as reported [rad/s].
    """
    stamps = np.asarray(time, dtype=float)
    angle, told = np.asarray(position, dtype=float), np.asarray(velocity, dtype=float)
    steps = np.diff(stamps)
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.diff(angle) / steps
    mean = 0.5 * (told[1:] + told[:-1])
    usual = float(np.median(steps)) if len(steps) else 0.0
    # Near a gap the two are not of the same time.
    use = np.isfinite(speed) & np.isfinite(mean) & (steps > 0.5 * usual) & (steps < 1.5 * usual)
    use &= (np.abs(speed) > _MOVING) | (np.abs(mean) > _MOVING)
    power = float(mean[use] @ mean[use])
    if np.count_nonzero(use) < _FEWEST or power == 0.0:
        return math.nan
    return float(speed[use] @ mean[use]) / power


def ratio_tells(ratio: float) -> str:
    """What a ratio of `speed_ratio` says is wrong, "" where nothing is, or nothing is known."""
    if not math.isfinite(ratio) or abs(ratio - 1.0) < _TOLERANCE:
        return ""
    for wrong, words in _RATIOS:
        if abs(abs(ratio) / wrong - 1.0) < _TOLERANCE:
            return words
    if abs(ratio + 1.0) < _TOLERANCE:
        return "velocities and positions have opposite signs: see robot.driver.position_sign and velocity_sign"
    return "positions and velocities do not belong together: one of them has another unit, or lags far behind"


def positions_in_degrees(ratio: float) -> bool:
    """Whether a ratio of `speed_ratio` says that the positions are degrees, not radians."""
    return any(abs(abs(ratio) / wrong - 1.0) < _TOLERANCE for wrong in (_DEGREES, _DEGREES / _RPM))
