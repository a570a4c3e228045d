"""Rows of the joints of an arm in windows with settled friction, and the equations of all, which share the bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_gegenbauer

from youbot_dynamics.arrays import Vector, rms
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.identification.arm_friction._regressors import (
    UNKNOWN_ROTOR,
    BaseParameters,
    columns_of_joints,
    felt_parameters,
    inertial_parameters,
    regressor,
    uncertainty,
)
from youbot_dynamics.identification.arm_friction._windows import (
    HALF_WIDTH,
    SLOWEST,
    ArmWindows,
    arm_windows,
    on_its_way,
)
from youbot_dynamics.identification.least_squares import (
    NEGLIGIBLE,
    SIGNIFICANT,
    Fit,
    Kind,
    Reason,
    Rows,
    Unknown,
    least_squares,
)
from youbot_dynamics.identification.signals import TRAVEL, ArmSignals

NO_EFFORT = Reason(Kind.NOT_MEASURED, "the recording holds no efforts of this joint; needed: its efforts and positions")
ZERO_EFFORT = Reason(
    Kind.NOT_MEASURED,
    "every effort of this joint is exactly 0 or missing: it was not driven, or its driver does not measure efforts",
)
WRAPPED = Reason(
    Kind.WRONG_SIGNALS,
    "the efforts jump from one end of their range to the other while the joint goes on: their integers overflow; read "
    "them as wider integers",
)
_FEWEST_WRAPS, _END_OF_RANGE = 5, 0.85  # jumps; share of the range within which its ends are
UNSIGNED = Reason(
    Kind.WRONG_SIGNALS,
    "the efforts never change their sign, although motion and weight of the links do: these are magnitudes, to be "
    "recorded with their sign, or the arm is not mounted as in its URDF, as at a wall: give it a root_link with z up",
)
STOOD = Reason(
    Kind.NOT_EXCITED,
    "the joint never slid: it was at rest, moved too slowly, or reversed all the time; "
    f"needed: motion faster than {SLOWEST:g} rad/s, at least {TRAVEL:g} rad away from a reversal",
)

# Smallest relative variation of the speed in one direction that separates Coulomb from viscous friction.
_LEAST_VARIATION = 0.15
_LEAST_REVERSE_SHARE = 0.1  # share of the windows that must slide in the other direction
_NO_TORQUE = 1e-9  # [N m] below any reading
_WEIGHED = 0.5  # least mean torque of the links, over that of efforts of one sign, that may be the weight behind it
_WEIGHT_SHARE = 0.95  # share of a constant not explained by the bodies below which weight may replace friction
_ROUNDING = 1e-12  # share of a squared torque that is none
_OFFSET_SHARE = 0.1  # share of a constant not explained by weight and friction that an offset needs

# Unknowns of the friction of a joint; "bend" is stribeck times the error of log(v_s). `_fit` refers to the first
# three by their position, and "bend" is last, since it is no result.
PARTS = ("coulomb", "viscous", "stribeck", "offset", "bend")
# Nodes in a window, -1 to 1, and weights of a quadrature for means with the weight of `_windows`, (1 - x^2)^2
_NODES, _NODE_WEIGHTS = roots_gegenbauer(5, 2.5)
MOST_COUPLED = 3  # joints: the weight of more has more columns than a minute of readings determines
# Units of joints that slide by those of joints that turn
_OF_SLIDING = {"N m": "N", "N m s/rad": "N s/m", "N m/rad": "N/m"}


@dataclass(frozen=True, eq=False)
class ArmFrictionModel:
    """Model of n joints, and how their readings are smoothed and selected."""

    joint_names: tuple[str, ...]  # [n]
    # Nominal bodies of the arm, on level ground; the parameter combinations that the data determine are free. None for
    # single joints that do not affect each other: inertia, and the weight of a pendulum
    tree: Tree | None = None
    # Without a tree, whether the joint lifts a weight: False for a vertical axis
    weighed: bool = True
    # Without a tree, whether the joints affect each other: the weight that each lifts depends on the angles of others
    coupled: bool = False
    half_width: float = HALF_WIDTH  # largest half-width of the windows [s], see `arm_windows`
    stribeck_speeds: tuple[float, ...] = ()  # (n,) v_s of the Stribeck curve of each joint [rad/s], 0 for none

    def unit(self, joint: str, unit: str) -> str:
        """Unit of a quantity of a joint by its name: that of a joint that turns, or of one that slides."""
        slides = self.tree is not None and self.tree.slides[self.joint_names.index(joint)]
        return _OF_SLIDING.get(unit, unit) if slides else unit

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
        return replace(self, free=columns, offset=_unexplained_constant(table) > _OFFSET_SHARE)

    def linearised(self, values: Vector, scale: float) -> JointRows:
        """The same about a scale, and about the values (p,) of unknowns that begin with those of the bodies (b,)."""
        columns = self.body[:, self.free]
        return replace(self, load=self.nominal + columns @ values[: columns.shape[1]], scale=scale)

    @property
    def one_speed(self) -> bool:
        """Whether |v| hardly varies, so that Coulomb and viscous friction cannot be separated."""
        magnitude = np.abs(self.speed)
        return float(np.std(magnitude)) < _LEAST_VARIATION * float(np.mean(magnitude))

    @property
    def one_sign(self) -> bool:
        """Whether its efforts never change their sign."""
        return not (np.any(self.torque > 0.0) and np.any(self.torque < 0.0))

    @property
    def unsigned(self) -> bool:
        """Whether its efforts never change their sign although neither motion nor weight has one sign."""
        rising = np.mean([self.speed > 0.0, self.nominal > 0.0], axis=1)
        both = bool(np.all(np.minimum(rising, 1.0 - rising) >= _LEAST_REVERSE_SHARE))
        return self.one_sign and both and abs(np.mean(self.nominal)) < _WEIGHED * abs(np.mean(self.torque))

    @property
    def one_way(self) -> bool:
        """Whether the joint slid in one direction only."""
        return bool(0.5 - abs(np.mean(self.speed < 0.0) - 0.5) < _LEAST_REVERSE_SHARE)

    @property
    def hidden_by_weight(self) -> bool:
        """Whether the joint slid in one direction only, so that the bodies can replace friction."""
        return self.one_way and _unexplained_constant(self.body[:, self.free]) < _WEIGHT_SHARE

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
        return np.asarray(np.sign(self.speed) * (_NODE_WEIGHTS / _NODE_WEIGHTS.sum() @ speeds**exponent))

    def by_direction(self) -> Vector:
        """Column (r,) of |v|: half the difference of viscous friction by direction; 0 if there is only one speed."""
        return np.abs(self.speed) * (not self.one_speed)

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
        return np.asarray(self.friction()[:, PARTS.index(quantity)] * (2.0 * self.progress() - 1.0))

    def pieces(self, table: Vector, target: Vector, block: float) -> list[Rows]:
        """Rows of each recording, of columns (r, p) and targets (r,), with blocks of this duration [s]."""
        own = [(int(number), self.recording == number) for number in np.unique(self.recording)]
        return [Rows(self.time[rows], table[rows], target[rows], None, number, block) for number, rows in own]

    def explained(self, change: Vector) -> float:
        """R^2 of the torque, with `change` (r,) the identified torque in addition to the nominal bodies."""
        residual, spread = self.torque - self.known - change, self.torque - self.torque.mean()
        power = float(spread @ spread)
        return 1.0 - float(residual @ residual) / power if power > 0.0 else math.nan

    def factor_of(self, links: Vector, rotor: Vector) -> tuple[float, float]:
        """Factor k of the torque over `links` (r,) [N m], and the rms of what tells it over that of the torque.

        torque = k links + a sign(v) + b v + c + J rotor by least squares, `rotor` (r,) the acceleration: what the
        others explain of the links tells nothing of k; a rotor behind a gear may have more inertia than all links. Each
        joint stands for itself, so that k holds where the efforts are in a unit that is far off. k is NaN if the links
        did not move.
        """
        friction = [column for column in replace(self, offset=True).friction().T if np.any(column)]
        others = np.linalg.qr(np.column_stack([*friction, rotor]))[0]
        moved = links - others @ (others.T @ links)
        power, torque = float(moved @ moved), float(np.linalg.norm(self.torque))
        if power <= _ROUNDING * float(links @ links) or torque == 0.0:
            return math.nan, 0.0
        return float(moved @ self.torque) / power, math.sqrt(power) / torque


def _unexplained(table: Vector, target: Vector, rcond: float) -> Vector:
    """Residual (r,) of a target (r,) by columns (r, m), which are scaled to equal length."""
    lengths = np.linalg.norm(table, axis=0)
    scaled = table[:, lengths > 0.0] / lengths[lengths > 0.0]
    return np.asarray(target - scaled @ np.linalg.lstsq(scaled, target, rcond=rcond)[0])


def _unexplained_constant(table: Vector) -> float:
    """Share of a constant that columns (r, m) cannot explain."""
    return rms(_unexplained(table, np.ones(len(table)), 1e-9))


# Blocks of the scatter: longest and shortest length [s], and the wanted excess of their number over the unknowns.
_BLOCK, _SHORTEST_BLOCK, _SPARE_BLOCKS = 1.0, 0.2, 12
# Effect on the torques below which a combination of inertial parameters is not included in the first fit [N m].
_FIRST_EFFECT = 0.005
_HIDDEN = "weight or friction hide it in these data"
_NO_STRIBECK = "no Stribeck speed was given"
_REFERENCE_JOINT = "the scales of the other joints are relative to this one, or these data do not determine its scale"


@dataclass(frozen=True, eq=False)
class ArmEquations:
    """Equations of k joints; unknowns are bodies, then with a tree readings, then the friction of each joint."""

    model: ArmFrictionModel
    rows: tuple[JointRows, ...]  # [k]
    refused: dict[str, Reason]  # why each other joint cannot be identified, by name
    # Combinations of inertial parameters that the data determine, as differences from the nominal tree; None without
    # a tree: inertia and weight of each joint
    base: BaseParameters | None = None
    # Whether the efforts of each joint have a scale, and whether they have a delay (k + 1); empty without a tree
    scaled: tuple[bool, ...] = ()

    @property
    def bodies(self) -> slice:
        """Places of the unknowns of the bodies."""
        return slice(0, len(self.base.columns) if self.base else sum(row.body.shape[1] for row in self.rows))

    @property
    def readings(self) -> slice:
        """Places of the scale of each joint's efforts less 1, then of their delay [s]."""
        return slice(self.bodies.stop, self.bodies.stop + len(self.scaled))

    def link_factors(self) -> dict[str, tuple[float, float]]:
        """`JointRows.factor_of` the nominal links, of each joint, that of the largest first; empty without a tree."""
        tree = self.model.tree
        if tree is None:
            return {}
        links = inertial_parameters(tree)
        links[-tree.nv :] = 0.0
        rows = sorted(self.rows, key=lambda row: -float(np.mean(row.nominal**2)))
        return {row.name: row.factor_of(row.body @ links, row.body[:, -tree.nv + row.joint]) for row in rows}

    def friction(self, k: int) -> slice:
        """Places of PARTS of the k-th joint."""
        first = self.readings.stop + len(PARTS) * k
        return slice(first, first + len(PARTS))

    def table(self, k: int, row: JointRows | None = None) -> Vector:
        """All regressors (r, p) of the rows of the k-th joint, or of others of it.

        The efforts of a joint are currents times a torque constant that is some percent off, so bodies that act on
        several joints have a different scale in each; the joint with the largest torques is the reference. A delay of
        the efforts appears as minus the rate of the torque; where gravity grows with the angle, that looks like viscous
        friction.
        """
        row = row or self.rows[k]
        if self.base is None:
            parts = [self._of_joint(k, row.bodies())]
        else:
            late = -row.slew * self.scaled[-1]
            parts = [row.bodies(), self._of_joint(k, self.scaled[k] * row.load[:, None]), late[:, None]]
        return np.hstack([*parts, self._of_joint(k, row.friction())])

    def unexplained(self) -> Vector:
        """Torque (k,) of each joint that its own columns leave open, RMS [N m]."""
        tables = ((row, np.column_stack([row.body, row.friction()])) for row in self.rows)
        return np.array([rms(_unexplained(table, row.torque, 1e-6)) for row, table in tables])

    def _of_joint(self, k: int, columns: Vector) -> Vector:
        """Columns (r, c) of the k-th joint among those (r, c k) of all joints, which are 0."""
        count = columns.shape[1]
        wide = np.zeros((len(columns), count * len(self.rows)))
        wide[:, count * k : count * (k + 1)] = columns
        return wide

    def solution(self, further: Sequence[Vector] = ()) -> Fit:
        """One fit of all joints; `further` (r,) is one more column of each joint, with the unknown `further_term`.

        Raises:
            IdentificationError: too few blocks of time.
        """
        unknowns = [*self._unknowns(), *(Unknown(further_term(row.name), "") for row in self.rows if further)]
        block = block_length(self.rows, len(unknowns))
        pieces = []
        for k, row in enumerate(self.rows):
            table, target = self.table(k), row.torque - row.known
            weight = noise_weight(table, target)
            if further:
                table = np.hstack([table, self._of_joint(k, further[k][:, None])])
            pieces += row.pieces(weight * table, weight * target, block)
        return least_squares(pieces, unknowns)

    def _unknowns(self) -> list[Unknown]:
        names, unknowns, tree = [row.name for row in self.rows], list[Unknown](), self.model.tree
        if self.base is not None and tree is not None:
            known = uncertainty(tree)
            known[-tree.nv :][tree.layout.rotor_inertias == 0.0] /= UNKNOWN_ROTOR  # the inertia of the links
            sizes = zip(self.base.names, self.base.units, known[self.base.columns], strict=True)
            unknowns += [Unknown(f"{name}_change", unit, resolution=float(size)) for name, unit, size in sizes]
            unknowns += [
                Unknown(f"{name}_scale", "1", resolution=NEGLIGIBLE, unexcited=_REFERENCE_JOINT) for name in names
            ]
            unknowns.append(Unknown("effort_delay", "s", unexcited="these data do not determine it"))
        for name in names if self.base is None else ():
            unknowns.append(Unknown(f"{name}_inertia", "kg m2", low=0.0, unexcited="the joint never changed its speed"))
            weight = f"{name}_weight"
            parts = ("sin", "cos") if self.model.weighed else ()
            unknowns += [Unknown(f"{weight}_{part}", "N m", resolution=0.02, whole=weight) for part in parts]
            others = range(self.bodies.stop // len(names) - 1 - len(parts))
            unknowns += [Unknown(f"{name}_of_others_{k}", "", resolution=0.02, whole=weight) for k in others]
        for name in names:
            torque, per_speed = (self.model.unit(name, unit) for unit in ("N m", "N m s/rad"))
            unknowns += [
                Unknown(f"{name}_coulomb", torque, low=0.0, resolution=0.01, whole=name),
                Unknown(f"{name}_viscous", per_speed, low=0.0, resolution=0.02, whole=name),
                Unknown(f"{name}_stribeck", torque, low=0.0, resolution=0.02, unexcited=_NO_STRIBECK, whole=name),
                Unknown(f"{name}_offset", torque, resolution=0.05, unexcited=_HIDDEN, whole=name, beside=True),
                Unknown(f"{name}_bend", torque, unexcited=_NO_STRIBECK),
            ]
        return unknowns

    def without(self, refused: dict[str, Reason]) -> ArmEquations:
        """Equations without these joints, by name; the bodies, which all joints share, are those of the others."""
        rows = tuple(replace(row, offset=True) for row in self.rows if row.name not in refused)
        return _with_bodies(replace(self, rows=rows, refused=self.refused | refused))

    def linearised(self, fit: Fit, scaled: tuple[bool, ...]) -> ArmEquations:
        """The same about the solution of a fit, with other scales: a scale times a change of bodies is not linear."""
        scales = np.nan_to_num([estimate.value for estimate in fit.estimates[self.readings]]) * scaled
        values = np.nan_to_num(fit.values)
        rows = tuple(row.linearised(values, scale) for row, scale in zip(self.rows, scales.tolist(), strict=False))
        return replace(self, rows=rows, scaled=scaled)


def further_term(joint: str) -> str:
    """Name of the unknown of one more column of a joint, see `ArmEquations.solution`."""
    return f"{joint}_further"


def block_length(rows: Sequence[JointRows], unknowns: int) -> float:
    """Duration of the blocks [s]: 1 s, or shorter if a recording is too short for enough blocks."""
    block = _BLOCK
    time, recording = (np.concatenate([getattr(row, name) for row in rows]) for name in ("time", "recording"))
    while block > _SHORTEST_BLOCK:
        if len(np.unique(recording + 1j * (time // block))) >= unknowns + _SPARE_BLOCKS:  # pairs of the two
            break
        block *= 0.8
    return max(block, _SHORTEST_BLOCK)


def arm_equations(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmEquations:
    """Equations of the joints that slid with efforts; with a tree, scales and delay of the efforts are unknown."""
    windows = [arm_windows(signals, model.half_width) for signals in recordings]
    reasons = [_refusal(recordings, windows, joint) for joint in range(len(model.joint_names))]
    refused = {name: reason for name, reason in zip(model.joint_names, reasons, strict=True) if reason is not None}
    tables = [_body_columns(window, model) for window in windows] if len(refused) < len(reasons) else []
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
        body, nominal, states = bodies[:, :-1], bodies[:, -1], (speed, spread, torque, slew)
        free, curve = np.arange(body.shape[1]), model.stribeck_speed(j)
        rows.append(JointRows(j, name, time, recording, body, nominal, *states, nominal, free, curve))
    if any(row.unsigned for row in rows):
        refused |= {row.name: UNSIGNED for row in rows if row.one_sign}
    return _with_bodies(ArmEquations(model, tuple(row for row in rows if row.name not in refused), refused))


def _refusal(recordings: Sequence[ArmSignals], windows: Sequence[ArmWindows], joint: int) -> Reason | None:
    """Reason why joint number `joint` cannot be identified, None if it may be."""
    torques = [signals.torque[:, joint] for signals in recordings if len(signals.time)]
    if not torques:
        return NO_EFFORT
    if not any(np.any(np.abs(torque) > _NO_TORQUE) for torque in torques):
        return ZERO_EFFORT
    if sum(_wraps(signals.position[:, joint], signals.torque[:, joint]) for signals in recordings) >= _FEWEST_WRAPS:
        return WRAPPED
    return None if any(np.any(window.sliding[:, joint]) for window in windows) else STOOD


def _wraps(position: Vector, torque: Vector) -> int:
    """How often a torque (s,) jumps from one end of its range to the other; just behind a reversal friction does."""
    largest = float(np.max(np.abs(torque), initial=0.0))
    ends = np.abs(np.diff(torque)) > 2.0 * _END_OF_RANGE * largest
    return int(np.count_nonzero(ends & on_its_way(position)[1:])) if np.any(ends) else 0


def _body_columns(window: ArmWindows, model: ArmFrictionModel) -> Vector:
    """Columns (k, n, m + 1) of weight and inertia; the last one is the torque of the nominal bodies."""
    tree = model.tree
    if tree is not None:
        table = regressor(tree, window.position, window.speed, window.acceleration)
        return np.concatenate([table, (table @ inertial_parameters(tree))[:, :, None]], axis=2)
    return columns_of_joints(window.position, window.acceleration, model.weighed, model.coupled)


def _with_bodies(equations: ArmEquations) -> ArmEquations:
    """The equations with the unknowns of the bodies that their rows determine."""
    model, rows, base = equations.model, equations.rows, None
    if model.tree is not None and rows:
        base = _determined_bodies(model.tree, rows)
    scaled = () if base is None else (True,) * (len(rows) + 1)
    rows = tuple(row.with_free(row.free if base is None else base.columns) for row in rows)
    return replace(equations, rows=rows, base=base, scaled=scaled)


def _determined_bodies(tree: Tree, rows: Sequence[JointRows]) -> BaseParameters:
    """Combinations of inertial parameters with an effect that exceeds the residual's standard error over all rows.

    Others keep their nominal values, which biases the friction of a small joint.
    """
    preliminary = felt_parameters(tree, np.concatenate([row.body for row in rows]), _FIRST_EFFECT)
    weighted = []
    for row in rows:
        columns = np.hstack([row.body[:, preliminary.columns], row.friction()])
        weighted.append(noise_weight(columns, row.torque - row.known) * row.body)
    table = np.concatenate(weighted)
    return felt_parameters(tree, table, SIGNIFICANT / math.sqrt(len(table)))


def noise_weight(table: Vector, target: Vector) -> float:
    """1 / residual [1/(N m)] of a joint alone, columns (r, p), target (r,): so a large one does not dominate."""
    return 1.0 / max(rms(_unexplained(table, target, 1e-6)), 1e-3)
