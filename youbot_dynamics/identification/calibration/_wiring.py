"""Find exchanged or reversed wheels, and poses of the wrong handedness, where poses do not follow the wheels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.calibration._model import Guess
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._start import (
    TURNING_RADIUS,
    advances,
    best_offset,
    common_times,
    displacements,
    has_readings,
)
from youbot_dynamics.identification.comparison import sample_poses
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot_base import WHEELS

_MOST_WHEELS = 4  # above, there are too many orders to try all
_FITS = 0.2  # largest relative misfit of the right assignment: radii, lateral factor and slip differ by less
_WRONG = 0.4  # smallest relative misfit of a wrong one: one reversed wheel of four has 0.8
_EQUAL = 0.05  # difference of misfits below which two assignments explain the motion equally well
_SCALE = 2.0  # factor by which all radii may differ from the configured ones
_FARTHEST = 1.0  # [m] distance of the tracked body from the centre of the base
_FEWEST = 50  # rows
_FLAT = 0.02  # ratio of singular values of the motion below which an axis is missing
_LEAST_ROTATION = 0.05  # [rad] of all wheels in half a second
_JUMP = 4.0  # factor of the usual motion per rotation above which a tracker jumped, below which it froze
_STRAIGHT = 0.5  # [rad] of the tracked body on the robot, below which it is mounted as the robot looks
_KEPT = 0.8  # share of the rows, with the smallest residuals, for the second fit: trackers jump, counters restart
# What would be right with the poses if their y and yaw had these signs.
_HANDS = {
    "the poses had z up": (-1.0, -1.0),
    "yaw had the opposite sign (positive to the left)": (1.0, -1.0),
    "y had the opposite sign (positive to the left of x)": (-1.0, 1.0),
}


def miswired(recordings: Sequence[CalibrationSignals], start: Guess) -> Reason | None:
    """Which wheels are exchanged or reversed, or which sign of the poses is wrong; None if none of it explains them.

    The angles of all wheels over half a second are a linear function of the motion of the tracked body. Its matrix
    (n, 3), fitted without any assumption, is compared with the rolling constraints of every order and all signs of the
    wheels, for a body with any yaw and place on the robot. The motion of a body on a base that cannot move sideways
    does not determine this matrix, so of two such wheels the motion is a function of the angles. Nothing is said if the
    configured order fits nearly as well, if the robot did not move along all its axes, or if two orders that are
    equally simple fit equally well.

    `start` has the configured base with n wheels (more than four are not tried), and clock offsets that fit it. A
    motion to and fro with an offset of half a period looks like reversed wheels, so these offsets are tried first.
    """
    base, count = start.base, len(start.base.radii)
    if count > _MOST_WHEELS:
        return None
    as_configured = tuple(range(count)), (1.0,) * count
    offsets = [_offset(signals) for signals in recordings]
    sideways = base.motions.shape[1] == 3
    if not (sideways or count == 2):
        return None
    fitted_to, matrix_of = (_fitted, _rolling_matrix) if sideways else (_fitted_to_two, _moving_matrix)
    by_signs, matrix = (matrix_of(recordings, one, (1.0, 1.0)) for one in (start.offsets.tolist(), offsets))
    known = [one for one in (by_signs, matrix) if one is not None]
    if matrix is None or any(fitted_to(one, base, *as_configured).misfit < _WRONG for one in known):
        return None
    tried = [
        fitted_to(matrix, base, order, signs)
        for order in permutations(range(count))
        for signs in product((1.0, -1.0), repeat=count)
    ]
    mirrored = {name: matrix_of(recordings, offsets, hand) for name, hand in _HANDS.items()}
    hands = {name: fitted_to(seen, base, *as_configured).misfit for name, seen in mirrored.items() if seen is not None}
    least = min([*(fitted.misfit for fitted in tried), *hands.values()])
    if least > _FITS:
        return None
    # Turning the tracked body by a quarter turn has the same effect as moving all wheels on by one corner.
    ranked = sorted(
        (fitted for fitted in tried if fitted.misfit <= least + _EQUAL),
        key=lambda fitted: (fitted.changes, round(abs(fitted.yaw), 1)),
    )
    unique = not any(other.changes == ranked[0].changes and not other.turned(ranked[0]) for other in ranked[1:])
    causes = [name for name, misfit in hands.items() if misfit <= least + _EQUAL]
    causes += [ranked[0].in_words()] if ranked and unique else []
    # Who has not turned the tracked body has rather exchanged wheels.
    straight = [fitted for fitted in ranked if abs(fitted.yaw) < _STRAIGHT]
    if straight and straight[0] is not ranked[0] and all(one.changes > straight[0].changes for one in straight[1:]):
        causes.append(straight[0].in_words())
    if not causes:
        return None
    would = f"the poses do not follow the wheels, but would if {', or if '.join(causes)}"
    return Reason(Kind.WRONG_SIGNALS, would)


class _Assignment(NamedTuple):
    """Column i of the readings is wheel `order[i]`, with the sign `signs[i]`."""

    order: tuple[int, ...]
    signs: tuple[float, ...]
    misfit: float  # relative
    yaw: float  # [rad] of the tracked body on the robot

    @property
    def changes(self) -> int:
        """Reversed wheels, and twice the moved ones: a sign is wrong more often than an order."""
        return sum(2 * (k != i) + (sign < 0.0) for i, (k, sign) in enumerate(zip(self.order, self.signs, strict=True)))

    def turned(self, other: _Assignment) -> bool:
        """Whether this needs a tracked body with a clearly larger yaw than another assignment."""
        return round(abs(self.yaw), 1) > round(abs(other.yaw), 1) + 0.5

    def in_words(self) -> str:
        """The changed wheels, and the parameters that correct them."""
        in_place = self.order == tuple(range(len(self.order)))
        changed = [
            f"the readings of {WHEELS[i]} were {'reversed' if k == i else f'those of {WHEELS[k]}'}"
            f"{' reversed' if k != i and sign < 0.0 else ''}"
            for i, (k, sign) in enumerate(zip(self.order, self.signs, strict=True))
            if k != i or sign < 0.0
        ]
        if in_place and max(self.signs) < 0.0:
            changed = ["all readings were reversed"]
        settings = [
            *([] if in_place else ["robot.driver.wheel_joints"]),
            *(["robot.driver.position_sign"] if min(self.signs) < 0.0 else []),
        ]
        turned = f"the tracked body turned by {round(float(np.rad2deg(self.yaw)))} deg on the robot"
        return f"{', '.join(changed)} and {turned} (correct {' and '.join(settings)})"


def _fitted(matrix: Vector, base: MecanumBase, order: tuple[int, ...], signs: tuple[float, ...]) -> _Assignment:
    """Misfit of a measured matrix (n, 3) to the rolling constraints of wheels in this order, with these signs.

    A body turned by b and placed at p on the robot moves with R(-b) (v + w x p). So the first two columns of the matrix
    are those of the constraints, turned by b, and p adds a combination of them to the third.
    """
    rows = np.array(signs)[:, None] * base.inverse_matrix[list(order)]
    constraints, measured = rows[:, :2] @ [1.0, 1j], matrix[:, :2] @ [1.0, 1j]
    turn = np.vdot(constraints, measured) / np.vdot(constraints, constraints)
    scale, yaw = abs(turn), -float(np.angle(turn))
    turned = turn * constraints
    translations = np.column_stack([turned.real, turned.imag])
    rest = matrix[:, 2] - scale / TURNING_RADIUS * rows[:, 2]
    place = np.linalg.lstsq(translations, rest, rcond=None)[0]
    residual = np.column_stack([np.abs(measured - turned), rest - translations @ place])
    likely = 1.0 / _SCALE < scale < _SCALE and np.hypot(*place) * TURNING_RADIUS < _FARTHEST
    misfit = float(np.linalg.norm(residual) / np.linalg.norm(matrix)) if likely else np.inf
    return _Assignment(order, signs, misfit, yaw)


def _fitted_to_two(matrix: Vector, base: MecanumBase, order: tuple[int, ...], signs: tuple[float, ...]) -> _Assignment:
    """The same for a matrix (3, 2) of motions per angle of two wheels, on a base that moves forward and turns.

    The place of the body and its yaw on the robot explain any motion of it but its turns, which are those of the base.
    """
    along, turning = (np.array(signs) * base.forward_matrix[:, list(order)])[[0, 2]]
    turns = matrix[2] / TURNING_RADIUS
    scale = float(turning @ turns / (turning @ turning))
    if not 1.0 / _SCALE < scale < _SCALE:
        return _Assignment(order, signs, np.inf, 0.0)
    turn, place = np.linalg.solve(np.column_stack([along, scale * turning]), matrix[0] + 1j * matrix[1])
    likely = 1.0 / _SCALE < abs(turn) < _SCALE and abs(place) < _FARTHEST
    misfit = float(np.linalg.norm(turns - scale * turning) / np.linalg.norm(turns)) if likely else np.inf
    return _Assignment(order, signs, misfit, -float(np.angle(turn)))


def _rolling_matrix(
    recordings: Sequence[CalibrationSignals], offsets: Sequence[float], hand: tuple[float, float]
) -> Vector | None:
    """Wheel angles per motion of the tracked body (n, 3) [1/m], with clock offsets [s] and signs of y and yaw.

    Turns count as distances at `TURNING_RADIUS`. None if the robot did not move enough along all axes.
    """
    return _per_column(*_all_steps(recordings, offsets, hand))


def _moving_matrix(
    recordings: Sequence[CalibrationSignals], offsets: Sequence[float], hand: tuple[float, float]
) -> Vector | None:
    """Motion of the tracked body per wheel angle (3, n) [m], else as `_rolling_matrix`."""
    motion, rotation = _all_steps(recordings, offsets, hand)
    return _per_column(rotation, motion)


def _per_column(causes: Vector, effects: Vector) -> Vector | None:
    """Effects (r, k) per cause (r, m), a matrix (k, m), by the most likely rows; None if a direction is missing."""
    for last in (False, True):
        if len(causes) < _FEWEST:
            return None
        singular = np.linalg.svd(causes, compute_uv=False)
        if singular[-1] < _FLAT * singular[0]:
            return None
        solution: Vector = np.asarray(np.linalg.lstsq(causes, effects, rcond=None)[0], dtype=np.float64)
        if not last:
            misfit = np.sum((effects - causes @ solution) ** 2, axis=1)
            kept = misfit <= np.quantile(misfit, _KEPT)
            causes, effects = causes[kept], effects[kept]
    return solution.T


def _all_steps(
    recordings: Sequence[CalibrationSignals], offsets: Sequence[float], hand: tuple[float, float]
) -> tuple[Vector, Vector]:
    """Motions (k, 3) [m] and rotations (k, n) [rad] of all recordings, see `_steps`."""
    pairs = [_steps(signals, offset, hand) for signals, offset in zip(recordings, offsets, strict=True)]
    motion = np.vstack([np.zeros((0, 3)), *(motion for motion, _ in pairs)])
    rotation = np.vstack([np.zeros((0, recordings[0].wheel_angles.shape[1])), *(rotation for _, rotation in pairs)])
    return motion, rotation


def _offset(signals: CalibrationSignals) -> float:
    """Delay [s] of the poses after the wheels, by the sizes of both motions: whatever the wheels' order and signs."""
    offset = 0.0
    for _ in range(2):
        times = _times(signals, offset)
        if not len(times):
            return 0.0
        path = sample_poses(signals.pose_time, signals.poses, times + offset) * [1.0, 1.0, TURNING_RADIUS]
        moved = np.linalg.norm(advances(path), axis=1)
        rolled = np.linalg.norm(advances(signals.angles_at(times)), axis=1)
        if not np.median(rolled) > 0.0:
            return 0.0
        offset = best_offset((rolled * np.mean(moved) / np.mean(rolled))[:, None], moved[:, None])
    return offset


def _times(signals: CalibrationSignals, offset: float) -> Vector:
    """Times (m,) [s] at which wheels and body are known; none if that is too short."""
    times = common_times(signals, offset) if has_readings(signals) else np.zeros(0)
    return times if len(times) > _FEWEST else np.zeros(0)


def _steps(signals: CalibrationSignals, offset: float, hand: tuple[float, float]) -> tuple[Vector, Vector]:
    """Motions (k, 3) [m] of the tracked body over half a second, in its frame, and of the wheels (k, n) [rad]."""
    times = _times(signals, offset)
    if not len(times):
        return np.zeros((0, 3)), np.zeros((0, signals.wheel_angles.shape[1]))
    poses = sample_poses(signals.pose_time, signals.poses, times + offset) * [1.0, *hand]
    motions = displacements(poses) * [1.0, 1.0, TURNING_RADIUS]
    angles = signals.angles_at(times)
    rotations = angles[len(times) - len(motions) :] - angles[: len(motions)]
    moved, rolled = (np.linalg.norm(steps, axis=1) for steps in (motions, rotations))
    turning = rolled > _LEAST_ROTATION
    ratio = moved / np.maximum(rolled, _LEAST_ROTATION)
    typical = np.median(ratio[turning]) if np.any(turning) else 0.0
    kept = turning & (ratio < _JUMP * typical) & (ratio > typical / _JUMP)
    return motions[kept], rotations[kept]
