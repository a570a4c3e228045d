"""Rows of the joints of an arm: torque, bodies and friction in the windows in which friction is settled."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_gegenbauer

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.identification.arm_friction._regressors import inertial_parameters, regressor
from youbot_dynamics.identification.arm_friction._windows import HALF_WIDTH, SLOWEST, ArmWindows, arm_windows
from youbot_dynamics.identification.least_squares import Kind, Reason, Rows
from youbot_dynamics.identification.signals import TRAVEL, ArmSignals

NO_EFFORT = Reason(Kind.NOT_MEASURED, "the recording holds no efforts of this joint; needed: its efforts and positions")
ZERO_EFFORT = Reason(
    Kind.NOT_MEASURED,
    "every effort of this joint is exactly 0: it was not driven, or its driver does not measure efforts",
)
STOOD = Reason(
    Kind.NOT_EXCITED,
    "the joint never slid: it was at rest, moved too slowly, or reversed all the time; "
    f"needed: motion faster than {SLOWEST:g} rad/s, at least {TRAVEL:g} rad away from a reversal",
)

# Smallest relative variation of the speed in one direction that separates Coulomb from viscous friction.
_LEAST_VARIATION = 0.15
_LEAST_REVERSE_SHARE = 0.1  # share of the windows that must slide in the other direction
_WEIGHT_SHARE = 0.95  # share of a constant not explained by the bodies below which weight may replace friction
_OFFSET_SHARE = 0.3  # share of a constant not explained by weight and friction that an offset needs

# Unknowns of the friction of a joint; "bend" is stribeck times the error of log(v_s). `_joint_fit` refers to the first
# three by their position, and "bend" is last, since it is no result.
PARTS = ("coulomb", "viscous", "stribeck", "offset", "bend")
# Nodes in a window, -1 to 1, and weights of a quadrature for means with the weight of `_windows`, (1 - x^2)^2
_NODES, _NODE_WEIGHTS = roots_gegenbauer(5, 2.5)


@dataclass(frozen=True, eq=False)
class ArmFrictionModel:
    """Model of n joints, and how their readings are smoothed and selected."""

    joint_names: tuple[str, ...]  # [n]
    # Nominal bodies of the arm, on level ground; the parameter combinations that the data determine are free. None for
    # single joints that do not affect each other: inertia, and the weight of a pendulum
    tree: Tree | None = None
    # Without a tree, whether the joint lifts a weight: False for a vertical axis
    weighed: bool = True
    half_width: float = HALF_WIDTH  # largest half-width of the windows [s], see `arm_windows`
    stribeck_speeds: tuple[float, ...] = ()  # (n,) v_s of the Stribeck curve of each joint [rad/s], 0 for none

    def stribeck_speed(self, joint: int) -> float:
        """v_s of a joint [rad/s], 0 if its Coulomb torque does not depend on the speed."""
        return self.stribeck_speeds[joint] if self.stribeck_speeds else 0.0


def stribeck_share(speed: Vector, stribeck_speed: float, spread: Vector | float = 0.0) -> tuple[Vector, Vector]:
    """Factors (k,) of the Stribeck term, exp(-(v/v_s)^2), and of an error of log(v_s), its derivative; v_s > 0.

    They are means over windows with mean speeds (k,), in which the speed changes by +-`spread` (k,) [rad/s]: in a
    window of 0.1 s a joint may pass the whole curve, and its mean is not that at the mean speed.

    Source: system 9.
    """
    square = ((speed + np.multiply.outer(_NODES, spread)) / stribeck_speed) ** 2
    shares, weights = np.exp(-square), _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
    return weights @ shares, weights @ (2.0 * square * shares)


@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows of one joint in all recordings."""

    joint: int  # its number
    name: str
    time: Vector  # (r,) [s]
    recording: NDArray[np.int64]  # (r,) numbers
    body: Vector  # (r, m) columns of weight and inertia
    nominal: Vector  # (r,) torque of the nominal bodies [N m]
    speed: Vector  # (r,) [rad/s]
    spread: Vector  # (r,) change of the speed from the middle of a window to its end [rad/s]
    torque: Vector  # (r,) [N m]
    slew: Vector  # (r,) rate of the torque [N m/s]
    load: Vector  # (r,) torque of the bodies as far as they are known [N m]
    free: NDArray[np.intp]  # (b,) columns of `body` that are unknowns
    stribeck_speed: float = 0.0  # v_s [rad/s], 0 for none
    scale: float = 0.0  # of its efforts less 1, as far as it is known
    offset: bool = True  # whether the efforts may have an offset: a constant that bodies and friction cannot explain

    def with_free(self, columns: NDArray[np.intp]) -> JointRows:
        """The same with the columns (b,) of the bodies that are unknowns."""
        table = np.column_stack([self.body[:, columns], np.sign(self.speed)])
        return dataclasses.replace(self, free=columns, offset=_unexplained_constant(table) > _OFFSET_SHARE)

    def linearised(self, values: Vector, scale: float) -> JointRows:
        """The same about a scale, and about the values (p,) of unknowns that begin with those of the bodies (b,)."""
        columns = self.body[:, self.free]
        return dataclasses.replace(self, load=self.nominal + columns @ values[: columns.shape[1]], scale=scale)

    @property
    def one_speed(self) -> bool:
        """Whether |v| hardly varies, so that Coulomb and viscous friction cannot be separated."""
        magnitude = np.abs(self.speed)
        return float(np.std(magnitude)) < _LEAST_VARIATION * float(np.mean(magnitude))

    @property
    def hidden_by_weight(self) -> bool:
        """Whether the joint slid in one direction only, so that the bodies can replace friction."""
        backward = float(np.mean(self.speed < 0.0))
        one_way = min(backward, 1.0 - backward) < _LEAST_REVERSE_SHARE
        return one_way and _unexplained_constant(self.body[:, self.free]) < _WEIGHT_SHARE

    @property
    def known(self) -> Vector:
        """Torque (r,) of the linearised model with all unknowns 0 [N m]; see `bodies`."""
        return self.nominal - self.scale * (self.load - self.nominal)

    def bodies(self) -> Vector:
        """Columns (r, b) of changes of the bodies.

        The efforts (1 + s)(nominal + B b), linearised about a scale s0 and bodies b0, are
        nominal - s0 B b0 + (1 + s0) B b + s (nominal + B b0).
        """
        return (1.0 + self.scale) * self.body[:, self.free]

    def friction(self) -> Vector:
        """Columns (r, 5) of PARTS: Coulomb torque, viscous friction, Stribeck term, offset, error of its speed.

        If there is only one speed, the first column represents all friction and the second is 0.
        """
        sign, rising, bend = np.sign(self.speed), np.zeros(len(self.speed)), np.zeros(len(self.speed))
        constant = np.full(len(sign), float(self.offset))
        if self.one_speed:
            return np.column_stack([sign, rising, rising, constant, bend])
        if self.stribeck_speed > 0.0:
            rising, bend = stribeck_share(self.speed, self.stribeck_speed, self.spread)
        return np.column_stack([sign, self.speed, sign * rising, constant, sign * bend])

    def power(self, exponent: float) -> Vector:
        """Column (r,) of |v|^exponent sign v, its mean over each window; 0 if there is only one speed."""
        if self.one_speed:
            return np.zeros(len(self.speed))
        speeds = np.maximum(np.abs(self.speed + np.multiply.outer(_NODES, self.spread)), SLOWEST)
        column: Vector = np.sign(self.speed) * (_NODE_WEIGHTS / _NODE_WEIGHTS.sum() @ speeds**exponent)
        return column

    def progress(self) -> Vector:
        """Time (r,) in each recording, from 0 at the first of its rows to 1 at the last."""
        progress = np.zeros(len(self.time))
        for number in np.unique(self.recording):
            selected = self.recording == number
            time = self.time[selected]
            progress[selected] = (time - time.min()) / max(float(np.ptp(time)), 1e-9)
        return progress

    def drift(self, quantity: str) -> Vector:
        """Column (r,) of the regressor of one of PARTS times -1 to 1 from begin to end of each recording."""
        column: Vector = self.friction()[:, PARTS.index(quantity)] * (2.0 * self.progress() - 1.0)
        return column

    def pieces(self, table: Vector, target: Vector, block: float) -> list[Rows]:
        """Rows of each recording, of columns (r, p) and targets (r,), with blocks of this duration [s]."""
        own = [(int(number), self.recording == number) for number in np.unique(self.recording)]
        return [Rows(self.time[rows], table[rows], target[rows], None, number, block) for number, rows in own]

    def explained(self, change: Vector) -> float:
        """R^2 of the torque, with `change` (r,) the identified torque in addition to the nominal bodies."""
        residual, spread = self.torque - self.known - change, self.torque - self.torque.mean()
        power = float(spread @ spread)
        return 1.0 - float(residual @ residual) / power if power > 0.0 else math.nan

    def factor_of(self, links: Vector) -> tuple[float, float]:
        """Factor k of the torque over `links` (r,) [N m], and the rms of `links` over that of the torque.

        torque = k links + a sign(v) + b v + c by least squares. Each joint stands for itself, so that k holds where the
        efforts are in a unit that is far off. k is NaN if the links did not move.
        """
        friction = dataclasses.replace(self, offset=True).friction()
        others = np.linalg.qr(friction[:, [PARTS.index(part) for part in ("coulomb", "viscous", "offset")]])[0]
        moved = links - others @ (others.T @ links)
        power, torque = float(moved @ moved), float(np.linalg.norm(self.torque))
        ratio = float(np.linalg.norm(links)) / torque if torque > 0.0 else math.inf
        return float(moved @ self.torque) / power if power > 0.0 else math.nan, ratio


def unexplained(table: Vector, target: Vector, rcond: float) -> Vector:
    """Residual (r,) of a target (r,) by columns (r, m), which are scaled to equal length."""
    lengths = np.linalg.norm(table, axis=0)
    scaled = table[:, lengths > 0.0] / lengths[lengths > 0.0]
    residual: Vector = target - scaled @ np.linalg.lstsq(scaled, target, rcond=rcond)[0]
    return residual


def _unexplained_constant(table: Vector) -> float:
    """Share of a constant that columns (r, m) cannot explain."""
    ones = np.ones(len(table))
    return float(np.linalg.norm(unexplained(table, ones, 1e-9)) / np.linalg.norm(ones))


def joint_rows(
    recordings: Sequence[ArmSignals], model: ArmFrictionModel
) -> tuple[tuple[JointRows, ...], dict[str, Reason]]:
    """Rows of the joints that slid with efforts, and why each of the others cannot be identified."""
    windows = [arm_windows(signals, model.half_width) for signals in recordings]
    reasons = [_refusal(recordings, windows, joint) for joint in range(len(model.joint_names))]
    refused = {name: reason for name, reason in zip(model.joint_names, reasons, strict=True) if reason is not None}
    if len(refused) == len(reasons):
        return (), refused
    tables = [_body_columns(window, model) for window in windows]
    rows = []
    for j, name in enumerate(model.joint_names):
        if name in refused:
            continue
        pieces = []
        for window, table in zip(windows, tables, strict=True):
            keep = window.sliding[:, j] != 0.0
            recording = np.full(int(keep.sum()), window.recording, dtype=np.int64)
            measured = window.speed, window.half_width * window.acceleration, window.torque, window.slew
            pieces.append((window.time[keep], recording, table[keep, j], *(state[keep, j] for state in measured)))
        columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        time, recording, bodies, speed, spread, torque, slew = columns
        body, nominal, curve = bodies[:, :-1], bodies[:, -1], model.stribeck_speed(j)
        free = np.arange(body.shape[1])
        states = speed, spread, torque, slew
        rows.append(JointRows(j, name, time, recording, body, nominal, *states, nominal, free, curve))
    return tuple(rows), refused


def _refusal(recordings: Sequence[ArmSignals], windows: Sequence[ArmWindows], joint: int) -> Reason | None:
    """Reason why joint number `joint` cannot be identified, None if it may be."""
    torques = [signals.torque[:, joint] for signals in recordings if len(signals.time)]
    if not torques:
        return NO_EFFORT
    if not any(np.any(torque) for torque in torques):
        return ZERO_EFFORT
    return None if any(np.any(window.sliding[:, joint]) for window in windows) else STOOD


def _body_columns(window: ArmWindows, model: ArmFrictionModel) -> Vector:
    """Columns (k, n, m + 1) of weight and inertia; the last one is the torque of the nominal bodies."""
    tree = model.tree
    if tree is not None:
        table = regressor(tree, window.position, window.speed, window.acceleration)
        return np.concatenate([table, (table @ inertial_parameters(tree))[:, :, None]], axis=2)
    parts = [window.acceleration]
    parts += [np.sin(window.position), np.cos(window.position)] if model.weighed else []
    return np.stack([*parts, np.zeros_like(window.position)], axis=2)
