"""Extended Kalman filter of an arm: positions, speeds, bristles and torque errors of its joints.

    x = [q, v, z, w],   q, v, z by the implicit step of the arm driven by tau + w (see `_model`),   w' = -w / T

Document 001 does not define state, H, Q, R and discretisation, and assumes that z is known. With q measured the state
q, v, z is observable, so z is estimated. Positions are sufficient; the driver's speeds are filtered, late and coarse.
Source: document 001, system 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.dynamics.arm import ArmModel, step_work
from youbot_dynamics.dynamics.lugre import friction_torque_slopes
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation.arm_ekf import _joints as joint
from youbot_dynamics.estimation.arm_ekf import _loop as loop
from youbot_dynamics.estimation.arm_ekf._model import (
    BRISTLE,
    ERROR,
    FRICTION_ERROR,
    POSITION,
    SPEED,
    friction_rows,
    friction_share,
    work_for,
)
from youbot_dynamics.estimation.arm_ekf._tuning import ArmEkfTuning, ArmSensors

_COUNTED = (
    "messages taken in",
    "late stamps",
    "repeated stamps",
    "invalid stamps",
    "missing efforts",
    "missing positions",
    "readings beyond the gate",
    "joints restarted",
    "starts",
    "steps without a solution",
)

_SMALLEST = 1e-300
# Empty arrays for logs and outputs that are not wanted.
_NOTHING, _NO_MEANS = np.empty((0, 1)), np.empty((0, 5, 1))
_NO_VARIANCES, _NO_COVARIANCE = np.empty((0, 1)), np.empty((0, 1, 1))


@dataclass(frozen=True, eq=False)
class ArmBelief:
    """Estimate of the filter at a stamp; n joints, m = 2 n + n for bristles + n for torque errors, in that order."""

    stamp: float  # [s], NaN before the first message
    # (m,) positions [rad], speeds [rad/s], bristles [rad] and torque errors [N m]; the last two only if estimated
    mean: Vector
    covariance: Vector  # (m, m)
    position: Vector  # (n,) [rad]
    speed: Vector  # (n,) [rad/s]
    bristle: Vector  # (n,) [rad]
    # (n,) [N m] additional torque on the joints, from errors of the parameters, payload and contact
    torque_error: Vector
    friction_torque: Vector  # (n,) [N m], with the friction component of the torque error; it opposes the motion


@dataclass(frozen=True, eq=False)
class Innovation:
    """Difference between the positions of a message and the expected ones."""

    # (n,) [rad]; NaN for a missing position and for a joint's second reading, which gives its first speed
    difference: Vector
    variance: Vector  # (n,) expected variance of the difference [rad2]
    refused: Vector  # (n,) bool: rejected by the gate
    nis: float  # normalised innovation squared of the accepted readings
    count: int  # number of those, the degrees of freedom of the chi-squared distribution of NIS


@dataclass(frozen=True, eq=False)
class ArmTrack:
    """A filtered log of t messages."""

    position: Vector  # (t, n) [rad]
    speed: Vector  # (t, n) [rad/s]
    bristle: Vector  # (t, n) [rad]
    torque_error: Vector  # (t, n) [N m]
    friction_torque: Vector  # (t, n) [N m]
    variance: Vector  # (t, m) diagonal of the covariance, m as in `ArmBelief`
    innovation: Vector  # (t, n) [rad], NaN as in `Innovation`
    innovation_variance: Vector  # (t, n) [rad2]
    nis: Vector  # (t,) normalised innovation squared
    readings: NDArray[np.int64]  # (t,) number of readings in it
    refused: NDArray[np.int64]  # (t, n) number of readings rejected by the gate
    taken: NDArray[np.bool_]  # (t,) bool: whether the message's stamp was in order


class ArmEkf:
    """Filter of an arm of n joints. For each message call `predict` with its stamp, then `update` with its readings.

    The first message with all positions starts the filter, the second gives speeds. Messages with late or repeated
    stamps change nothing; missing efforts and readings are NaN. All of these are counted.

    Args:
        arm: model of the arm.
        sensors: resolution and noise of its driver.
        tuning: uncertainty of the model.

    Raises:
        ModelError: sensors of another number of joints than the arm.

    Example:
        >>> from youbot_dynamics.estimation.arm_ekf import ArmSensors
        >>> robot = yd.load_robot()
        >>> arm, q = robot.arm.model(), np.array([2.9, 1.1, -2.5, 1.8, 2.9])
        >>> ekf = yd.ArmEkf(arm, ArmSensors.of_robot(robot))
        >>> for k in range(50):  # stamp [s], efforts [N m], positions [rad]
        ...     taken = ekf.predict(0.02 * k, arm.tree.gravity_forces(q))
        ...     innovation = ekf.update(q)
        >>> bool(np.all(np.abs(ekf.state.speed) < 1e-3))
        True

    Source: document 001, system 13.
    """

    def __init__(self, arm: ArmModel, sensors: ArmSensors, tuning: ArmEkfTuning | None = None) -> None:
        self.arm = arm
        self.tuning = ArmEkfTuning() if tuning is None else tuning
        self._rules = self.tuning.rules(arm, sensors)
        self._step, self._work = step_work(arm.body), work_for(self._rules)
        self._estimate = joint.nothing_known(self._rules)
        self._no_reading = np.full((1, arm.tree.nv), np.nan)
        self._taken = False

    @property
    def size(self) -> int:
        """Number of states m."""
        return self._rules.size

    @property
    def bristles_estimated(self) -> bool:
        """Whether the state contains bristles, after positions and speeds."""
        return self._rules.bristles > 0

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers of messages and readings by outcome, since the filter was made."""
        return dict(zip(_COUNTED, self._estimate.counts.tolist(), strict=True))

    @property
    def state(self) -> ArmBelief:
        """Estimate at the stamp of the last message."""
        estimate, rules = self._estimate, self._rules
        rows = [POSITION, SPEED] + [BRISTLE] * (rules.bristles > 0) + [ERROR] * (rules.errors > 0)
        mean = estimate.mean.copy()
        if np.isnan(estimate.clock[joint.LAST]):
            mean[:] = np.nan
        own = np.square(rules.joints[FRICTION_ERROR])
        part = mean[ERROR] * (own / np.maximum(own + estimate.memory[joint.LOAD_PART], _SMALLEST))
        friction = self._friction(mean[None, SPEED], mean[None, BRISTLE], part[None])[0]
        return ArmBelief(
            float(estimate.clock[joint.LAST]),
            read_only(np.concatenate([mean[row] for row in rows])),
            read_only(estimate.covariance[: rules.size, : rules.size].copy()),
            read_only(mean[POSITION]),
            read_only(mean[SPEED]),
            read_only(mean[BRISTLE]),
            read_only(mean[ERROR]),
            read_only(friction),
        )

    def reset(self) -> None:
        """Discard the state and keep the counts."""
        self._estimate.clock[joint.LAST] = np.nan

    def predict(self, stamp: float, effort: ArrayLike) -> bool:
        """Advance to a message at a stamp [s]; torques are linear from the last efforts to these (n,) [N m].

        Missing efforts are NaN. Returns whether the message is accepted; it is not if its stamp is not after the last
        one.

        Raises:
            InputError: a wrong shape.
        """
        effort = _rows("effort", effort, (self.arm.tree.nv,))
        reading = np.empty((1, joint.RECORD_ROWS, self.arm.tree.nv))
        message = loop.Messages(np.array([float(stamp)]), self._no_reading, _NOTHING, effort[None])
        self._follow(loop.PREDICT, message, reading)
        self._taken = bool(reading[0, joint.FATE, 0] == joint.TAKEN)
        return self._taken

    def update(self, position: ArrayLike, velocity: ArrayLike | None = None) -> Innovation:
        """Correct by the readings of the message of the last `predict`; no effect if that was not accepted.

        Args:
            position: (n,) [rad], NaN where missing.
            velocity: (n,) [rad/s] from the driver, with its lag; unused by default.

        Raises:
            InputError: a wrong shape.
        """
        n = self.arm.tree.nv
        positions = _rows("position", position, (n,))
        velocities = _NOTHING if velocity is None else _rows("velocity", velocity, (n,))[None]
        readings = np.full((1, joint.RECORD_ROWS, n), np.nan)
        readings[:, joint.REFUSED :] = 0.0
        if self._taken:
            self._follow(loop.READ, loop.Messages(np.zeros(1), positions[None], velocities, self._no_reading), readings)
        self._taken = False
        reading = readings[0]
        return Innovation(
            reading[joint.INNOVATION],
            reading[joint.VARIANCE],
            reading[joint.REFUSED] > 0.0,
            float(reading[joint.SQUARES, 0]),
            int(reading[joint.USED, 0]),
        )

    def replay(
        self,
        stamp: ArrayLike,
        position: ArrayLike,
        effort: ArrayLike,
        velocity: ArrayLike | None = None,
        covariances: Vector | None = None,
    ) -> ArmTrack:
        """Filter a log in one compiled call, starting from the present state.

        Args:
            stamp: (t,) [s].
            position: (t, n) [rad], NaN where missing.
            effort: (t, n) [N m], NaN where missing.
            velocity: (t, n) [rad/s]; unused by default.
            covariances: (t, k, k), k up to m; optional output: the leading part of each covariance.

        Raises:
            InputError: wrong shapes.
        """
        stamps = np.array(stamp, dtype=np.float64)  # a copy: for one that cannot be written numba would compile anew
        if stamps.ndim != 1:
            raise InputError("stamp", got=f"shape {stamps.shape}", expected="shape (t,)")
        t, n = len(stamps), self.arm.tree.nv
        positions, efforts = _rows("position", position, (t, n)), _rows("effort", effort, (t, n))
        velocities = _NOTHING if velocity is None else _rows("velocity", velocity, (t, n))
        messages = loop.Messages(stamps, positions, velocities, efforts)
        means, variances, readings = (
            np.empty((t, 5, n)),
            np.empty((t, self.size)),
            np.empty((t, joint.RECORD_ROWS, n)),
        )
        wanted = _NO_COVARIANCE if covariances is None else covariances
        self._follow(loop.WHOLE, messages, readings, means, variances, wanted)
        return ArmTrack(
            means[:, POSITION],
            means[:, SPEED],
            means[:, BRISTLE],
            means[:, ERROR],
            self._friction(means[:, SPEED], means[:, BRISTLE], means[:, 4]),
            variances,
            readings[:, joint.INNOVATION],
            readings[:, joint.VARIANCE],
            readings[:, joint.SQUARES, 0],
            readings[:, joint.USED, 0].astype(int),
            readings[:, joint.REFUSED].astype(int),
            readings[:, joint.FATE, 0] == joint.TAKEN,
        )

    def friction_deviation(self) -> Vector:
        """Standard deviations (n,) of the friction torques of `state` [N m]; NaN before the first message.

            tau_f = sigma0 z + sigma1 dz/dt + viscous v - s w,  s: friction's share;  h: derivatives of tau_f by v, z, w
            variance = h P h' + s (1 - s) (var(w) + w^2), where the last term is the uncertainty of s

        to first order. Quantities that are not in the state count as known.
        """
        estimate, rules, variances = self._estimate, self._rules, np.full(self.arm.tree.nv, np.nan)
        if np.isnan(estimate.clock[joint.LAST]):
            return variances
        mean, covariance = estimate.mean, estimate.covariance
        for i, constants in enumerate(self.arm.body.joints[:, :6].tolist()):
            over_z, over_v = friction_torque_slopes(mean[BRISTLE, i], mean[SPEED, i], tuple(constants))
            states, slopes, division = [self.arm.tree.nv + i], [over_v], 0.0
            if rules.bristles > 0:
                states.append(rules.bristles + i)
                slopes.append(over_z)
            if rules.errors > 0:
                w = rules.errors + i
                share = friction_share(rules.joints[FRICTION_ERROR, i], estimate.memory[joint.LOAD_PART, i])
                states.append(w)
                slopes.append(-share)
                division = share * (1.0 - share) * (covariance[w, w] + mean[ERROR, i] ** 2)
            h = np.array(slopes)
            variances[i] = h @ covariance[np.ix_(states, states)] @ h + division
        deviations: Vector = np.sqrt(np.maximum(variances, 0.0))
        return deviations

    def _friction(self, speeds: Vector, bristles: Vector, parts: Vector) -> Vector:
        torques = np.empty(speeds.shape)
        friction_rows(self.arm.body.joints, speeds, bristles, parts, torques)
        return torques

    def _follow(
        self,
        task: int,
        messages: loop.Messages,
        readings: Vector,
        means: Vector = _NO_MEANS,
        variances: Vector = _NO_VARIANCES,
        covariances: Vector = _NO_COVARIANCE,
    ) -> None:
        body, step, work, rules, estimate = self.arm.body, self._step, self._work, self._rules, self._estimate
        loop.follow(body, step, work, rules, task, messages, estimate, means, variances, readings, covariances)


def _rows(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Vector:
    """Return numbers of one shape, with NaN for those that are not finite."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != shape:
        raise InputError(name, got=f"shape {numbers.shape}", expected=f"shape {shape}")
    return np.where(np.isfinite(numbers), numbers, np.nan)
