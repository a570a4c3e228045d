"""Yaw and place of a tracked body on a base without wheel states, from its path and the commanded twists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.body._fit import BodyAxis, commands_known
from youbot_dynamics.identification.body._model import GRID, HIDDEN, Readings
from youbot_dynamics.identification.delay import LONGEST, negligible_part, orthogonal_size
from youbot_dynamics.identification.least_squares import (
    SIGNIFICANT,
    Kind,
    Reason,
    Rival,
    Unknown,
    jackknife_error,
    widened,
)
from youbot_dynamics.identification.signals import HeldCommand, MotionSignals

_STRIDE = 0.2  # [s] between the windows that are compared
_FEWEST = 60  # windows
_BLOCKS = 12  # of the jackknife
_LEAST_GAIN = 0.3  # factor of a followed command, as a share of the larger factor
_ONE_YAW = 0.3  # [rad] by which the yaws that x and y show may differ: more means a wrong sign or another frame
_SPAN = 5  # steps of the delay over which a command is differentiated
_TINY = 1e-9
_HALF_WIDTH = 2.0  # of an interval [standard errors]
_USELESS = 0.1  # error of the gain from which the mounting is unknown
_EXPLAINED = 0.5  # share of the motion that commands and turns must explain
Complexes = NDArray[np.complex128]


class Mounting(NamedTuple):
    """Pose of the tracked body on the base, and what its errors do to gain and delay of x and y."""

    yaw: float  # [rad]
    place: complex  # x + i y [m]
    errors: tuple[float, float]  # standard errors of yaw [rad] and place [m]
    gain_errors: tuple[float, ...]  # of the axes x, y [1]
    delay_errors: tuple[float, ...]  # of the axes x, y [s]

    @property
    def clear(self) -> bool:
        """Whether the body is turned or displaced by more than the errors."""
        return abs(self.yaw) > SIGNIFICANT * self.errors[0] or abs(self.place) > SIGNIFICANT * self.errors[1]

    def in_words(self) -> str:
        """Where the body is, with 95 % intervals."""
        return (
            f"the tracked body is turned by {np.rad2deg(self.yaw):.1f} +-{np.rad2deg(2.0 * self.errors[0]):.2g} deg on "
            f"the base and lies at x {self.place.real:.3f}, y {self.place.imag:.3f} +-{2.0 * self.errors[1]:.2g} m; "
            "delays and gains are those of the base"
        )


def mounting(signals: MotionSignals) -> Mounting | None:
    """Pose of the tracked body on the base; None if the data do not show it.

    A body turned by b, at p on the base, moves by s = exp(-i b) (gx ux + i gy uy + i p yaw) along its own axes, as a
    complex number, with the commanded motions ux and uy, their gains, and the measured turn. The factors of the three
    are fitted to means over 1.2 s, for each pair of delays of x and y on a grid. Errors come from a jackknife over
    blocks of time.
    """
    commanded = np.isfinite(signals.command_time) & np.all(np.isfinite(signals.command), axis=1)
    finite = np.isfinite(signals.measured_time) & np.all(np.isfinite(signals.measured), axis=1)
    sent, command = signals.command_time[commanded], signals.command[commanded]
    time, path = signals.measured_time[finite], signals.measured[finite]
    known = commands_known(sent, time)
    time, path = time[known], path[known]
    if len(time) < _FEWEST or np.ptp(path[:, 2]) == 0.0:
        return None
    readings = Readings(time, path[:, 2], False)
    kept = np.flatnonzero(np.diff(np.floor(readings.at / _STRIDE), prepend=-np.inf) > 0.0)
    if len(kept) < _FEWEST:
        return None
    moved = readings.means(path[np.searchsorted(time, readings.time)] - path[0])[kept]
    asked = [_delayed(HeldCommand(sent, command[:, axis], 0.0), readings, kept) for axis in range(2)]
    seen, turn = moved[:, 0] + 1j * moved[:, 1], moved[:, 2]
    fit = _Fit.of(asked, turn, seen)
    followed = fit.followed
    if not all(followed):  # an axis that the base lacks or does not follow shows no yaw
        asked = [table if moves else 0.0 * table[:1] for table, moves in zip(asked, followed, strict=True)]
        fit = _Fit.of(asked, turn, seen)
    if fit.unexplained > (1.0 - _EXPLAINED) * float(np.mean(np.abs(seen) ** 2)):
        return None
    if all(followed) and abs(np.angle(fit.factors[0][1] / 1j / fit.factors[0][0])) > _ONE_YAW:
        return None
    poses = [_pose(fit.columns, factors) for factors in fit.factors]
    # What the model lacks repeats with the commands, so no scatter shows it.
    unmodelled = HIDDEN * sqrt(fit.unexplained) / orthogonal_size(fit.columns, 2)
    turned = np.angle(np.exp(1j * np.array([yaw - poses[0][0] for yaw, _ in poses])))
    errors = jackknife_error(turned[1:]), hypot(jackknife_error([place for _, place in poses[1:]]), unmodelled)
    on_base = [_on_base(seen, turn, yaw, place) for yaw, place in poses]
    gain_errors, delay_errors = [], []
    for k, table, motions in zip(fit.best, asked, ([m.real for m in on_base], [m.imag for m in on_base]), strict=True):
        along = table[k]
        slope = (table[max(k - 1, 0)] - table[min(k + 1, len(table) - 1)]) / (2.0 * GRID)
        gains = [float(along @ motion) / max(float(along @ along), _TINY) for motion in motions]
        delays = [float(slope @ motion) / max(float(slope @ slope), _TINY) for motion in motions]
        per_place = [float(one @ turn) / max(float(one @ one), _TINY) for one in (along, slope)]
        gain_errors.append(hypot(jackknife_error(gains[1:]), per_place[0] * unmodelled))
        delay_errors.append(hypot(jackknife_error(delays[1:]), per_place[1] * unmodelled) / max(abs(gains[0]), _TINY))
    return Mounting(*poses[0], errors, tuple(gain_errors), tuple(delay_errors))


class _Fit(NamedTuple):
    """Regression of the motion of the body on commands and turns."""

    best: tuple[int, int]  # rows of the delayed commands along x and y
    columns: Vector  # (k, 7) commands along x and y, turn, differences of the commands over the delay
    factors: list[Complexes]  # (7,) each: of all data, then without one block each
    unexplained: float  # mean square of the residual

    @classmethod
    def of(cls, asked: Sequence[Vector], turn: Vector, seen: Complexes) -> _Fit:
        """Fit delays and factors to the motion (k,), with a jackknife over blocks of time."""
        best = _best_delays(asked, turn, seen)
        columns = np.column_stack([asked[0][best[0]], asked[1][best[1]], turn, *_shapes(asked, best)])
        block = np.floor(np.linspace(0.0, _BLOCKS, len(seen), endpoint=False))
        kept = [np.ones(len(seen), dtype=bool), *(block != one for one in range(_BLOCKS))]
        factors = [np.linalg.lstsq(columns[rows], seen[rows], rcond=None)[0] for rows in kept]
        return cls(best, columns, factors, float(np.mean(np.abs(seen - columns @ factors[0]) ** 2)))

    @property
    def followed(self) -> list[bool]:
        """Whether the body follows the commands along x and y."""
        sizes = np.abs(self.factors[0][:2])
        deviations = [jackknife_error([factors[axis] for factors in self.factors[1:]]) for axis in range(2)]
        return [
            bool(size > SIGNIFICANT * deviation and size > _LEAST_GAIN * np.max(sizes))
            for size, deviation in zip(sizes, deviations, strict=True)
        ]


def _shapes(asked: Sequence[Vector], best: Sequence[int]) -> list[Vector]:
    """First and second differences over the delay, (k,) each: a response with lags changes the motion by these."""
    neighbours = [
        (table[max(k - _SPAN, 0)], table[k], table[min(k + _SPAN, len(table) - 1)])
        for k, table in zip(best, asked, strict=True)
    ]
    return [part for early, middle, late in neighbours for part in (early - late, early - 2.0 * middle + late)]


def _delayed(held: HeldCommand, readings: Readings, kept: Indices) -> Vector:
    """Commanded motion (d, k) in each window, for each delay; one row of zeros if there is none."""
    if not np.any(held.values):
        return np.zeros((1, len(kept)))
    delays = np.arange(-_SPAN * GRID, LONGEST, GRID)
    return np.array([readings.means(held.integral(readings.time - delay))[kept] for delay in delays])


def _best_delays(asked: Sequence[Vector], turn: Vector, seen: Complexes) -> tuple[int, int]:
    """Rows of the delayed commands along x and y, (d, k) each, with the smallest misfit to the motion (k,)."""
    x, y = asked
    normal = np.empty((len(x), len(y), 3, 3))
    moment = np.empty((len(x), len(y), 3), dtype=np.complex128)
    normal[..., 0, 0], normal[..., 1, 1] = np.sum(x**2, axis=1)[:, None], np.sum(y**2, axis=1)
    normal[..., 0, 1] = normal[..., 1, 0] = x @ y.T
    normal[..., 0, 2] = normal[..., 2, 0] = (x @ turn)[:, None]
    normal[..., 1, 2] = normal[..., 2, 1] = y @ turn
    normal[..., 2, 2] = turn @ turn
    moment[..., 0], moment[..., 1], moment[..., 2] = (x @ seen)[:, None], y @ seen, turn @ seen
    size = np.sqrt(np.maximum(np.einsum("...ii->...i", normal), _TINY))
    normal = normal / (size[..., :, None] * size[..., None, :]) + _TINY * np.eye(3)
    moment = moment / size
    solved = np.linalg.solve(normal, moment[..., None])[..., 0]
    explained = np.sum(np.conj(moment) * solved, axis=-1).real
    i, j = np.unravel_index(np.argmax(explained), explained.shape)
    return int(i), int(j)


def _on_base(seen: Complexes, turn: Vector, yaw: float, place: complex) -> Complexes:
    """Motion (k,) of the centre of the base, from that of a body with this pose on it, and from the turn (k,)."""
    return np.asarray(np.exp(1j * yaw) * seen - 1j * place * turn, dtype=np.complex128)


def _pose(columns: Vector, factors: Complexes) -> tuple[float, complex]:
    """Yaw [rad] and place x + i y [m] of the body, from the factors (7,) of columns (k, 7): x, y, turn, differences."""
    energies = np.sum(columns[:, :2] ** 2, axis=0)
    yaw = -float(np.angle(energies[0] * factors[0] - 1j * energies[1] * factors[1]))
    return yaw, complex(factors[2] / 1j * np.exp(1j * yaw))


def on_the_base(path: Vector, mounted: Mounting) -> Vector:
    """Path (n, 3) [m, m, rad] of the centre of the base along its axes, from that of the body along its own."""
    motion = _on_base(path[:, 0] + 1j * path[:, 1], path[:, 2], mounted.yaw, mounted.place)
    return np.column_stack([motion.real, motion.imag, path[:, 2]])


def with_errors(axis: BodyAxis, mounted: Mounting, index: int) -> BodyAxis:
    """The response of axis x (0) or y (1) with the errors of the mounting in delay and gain."""
    gain_error, delay_error = mounted.gain_errors[index], mounted.delay_errors[index]
    extra = dict.fromkeys(("effective", "dead_time", "lag"), delay_error) | {"gain": gain_error}
    if gain_error <= _USELESS:
        resolution = negligible_part(axis["effective"].value)
        unknowns = [Unknown(one.name, one.unit, low=0.0, resolution=resolution) for one in axis.estimates[:3]]
        return replace(axis, estimates=widened(axis.estimates, unknowns, [Rival(None, extra)], _HALF_WIDTH))
    reason = Reason(
        Kind.CONFUSED,
        f"the tracked body may be anywhere on the base, and turns go together with the motion along {axis.channel} in "
        "these data: drive without turning too",
    )
    return replace(axis, estimates=tuple(one.refused_if_identified(reason) for one in axis.estimates))
