"""Payload of the gripper, from the torque errors of the arm's filter.

A body of mass m with its centre at c in the frame of the last link drives the joints with

    w = -J' [m a + wd x m c + w x (w x m c); m c x a] = Y(q, v, v') (m, m c)

where J is the Jacobian of that link, a the acceleration of its origin minus gravity, w and wd its angular velocity and
acceleration. This is linear in m and m c. The inertia of the body about the joint, c x m (wd x c) and its own inertia,
is neglected: about 1 % of the gravity torque.

The torque errors alone do not distinguish a payload from a wrong model. So the errors of the model are estimated, too:
relative mass errors of links and rotors, Coulomb and viscous friction of each joint. The deviation therefore stays
large until the arm has been in poses where these differ, or until `tare` is called for an empty arm that has moved
before. The base is assumed to be level and without acceleration.
Source: systems 7, 18, 20.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.tree import Layout
from youbot_dynamics.estimation.arm_ekf import ESTIMATED, ArmBelief, ArmEkfTuning
from youbot_dynamics.estimation.ekf import correct
from youbot_dynamics.parameters import setting

if TYPE_CHECKING:
    from youbot_dynamics.robot_arm import Arm

PAYLOAD = 4  # columns of its mass and its first moment


@compiled
def torque_rows(layout: Layout, poses: Vector, speed: Vector, acceleration: Vector) -> Vector:
    """Derivatives (n, 4 + 4 n) of the additional torques on n revolute joints by their possible causes.

    Columns: mass and first moment (3,) of the payload; relative mass errors of each link and each rotor; errors of the
    Coulomb torque and viscous coefficient of each joint. `poses` (n, 4, 4) are those of the bodies, `speed` and
    `acceleration` (n,) those of the joints.
    """
    n = len(speed)
    rows = np.zeros((n, PAYLOAD + 4 * n))
    axes, places = np.zeros((n, 3)), np.zeros((n, 3))
    spin, spin_rate, pull = np.zeros(3), np.zeros(3), -layout.gravity
    turn = np.eye(3)
    for k in range(n):
        turn = np.ascontiguousarray(poses[k, :3, :3])
        axes[k], places[k] = turn @ layout.axes[k], poses[k, :3, 3]
        if k > 0:
            pull = pull + carried(spin, spin_rate, places[k] - places[k - 1])
        turning = axes[k] * speed[k]
        spin_rate = spin_rate + axes[k] * acceleration[k] + np.cross(spin, turning)
        spin = spin + turning
        first, second = turn @ layout.first_moments[k], turn @ layout.inertias[k] @ turn.T
        force = layout.masses[k] * pull + carried(spin, spin_rate, first)
        moment = second @ spin_rate + np.cross(spin, second @ spin) + np.cross(first, pull)
        drive(axes, places, k, force, moment, rows[:, PAYLOAD + k])
        rows[k, PAYLOAD + n + k] = -layout.rotor_inertias[k] * acceleration[k]
        rows[k, PAYLOAD + 2 * n + k] = -np.sign(speed[k])
        rows[k, PAYLOAD + 3 * n + k] = -speed[k]
    drive(axes, places, n - 1, pull, np.zeros(3), rows[:, 0])
    for axis in range(3):
        unit = np.ascontiguousarray(turn[:, axis])
        drive(axes, places, n - 1, carried(spin, spin_rate, unit), np.cross(unit, pull), rows[:, 1 + axis])
    return rows


@compiled
def carried(spin: Vector, spin_rate: Vector, arm: Vector) -> Vector:
    """Acceleration (3,) of the end of an arm (3,) relative to its start, on a body with spin (3,) and its rate (3,)."""
    return np.cross(spin_rate, arm) + np.cross(spin, np.cross(spin, arm))


@compiled
def drive(axes: Vector, places: Vector, body: int, force: Vector, moment: Vector, torques: Vector) -> None:
    """Write the joint torques (n,) of the force (3,) and the moment (3,) about its joint that a body needs.

    Only joints up to the body's own have torques; their axes (n, 3) and positions (n, 3) [m] are in the world frame.
    """
    for j in range(body + 1):
        torques[j] = -axes[j] @ (moment + np.cross(places[body] - places[j], force))


_LONGEST_GAP = 0.5  # [s] between stamps, after which the derivative is unknown


class SpeedRate:
    """Derivative of n speeds with a first-order lag, a = (v - u) / T with u' = a; exact on a ramp with the delay T.

    Args:
        lag: T [s].

    Raises:
        ModelError: a lag that is not positive.
    """

    def __init__(self, lag: float) -> None:
        self._lag = number("lag", lag, "s", above=0.0)
        self._stamp = np.nan
        self._before: Vector = np.zeros(0)
        self._behind: Vector = np.zeros(0)
        self._rate: Vector = np.zeros(0)

    def take(self, stamp: float, speeds: ArrayLike) -> Vector:
        """Accelerations (n,) after speeds (n,) at a stamp [s]; 0 at first, after a gap and for late stamps.

        Speeds are linear between two stamps. A speed that is not finite changes nothing.
        """
        values = np.array(speeds, dtype=np.float64)
        if not np.isfinite(values).all():
            return self._rate if len(self._rate) else np.zeros(len(values))
        elapsed = stamp - self._stamp
        if not 0.0 < elapsed <= _LONGEST_GAP:
            self._behind = values
        else:
            decay, lead = exp(-elapsed / self._lag), (self._lag / elapsed) * (values - self._before)
            self._behind = values - lead + decay * (self._behind - self._before + lead)
        self._stamp, self._before = stamp, values
        self._rate = (values - self._behind) / self._lag
        return self._rate


_MASS, _MOMENT = 0, slice(1, 4)
_SLIDING = 0.03  # [rad/s] below which a torque error and a bristle cannot be distinguished
_INTERVAL = 0.5  # time constants of the torque errors between two rows: a filter with small variance forgets sooner
_RATE_LAG = 0.1  # [s] about the lag of the torque errors
_EMPTY = 1e-6  # variance of the payload in an empty gripper, relative to its prior
_SHARE = 0.5  # largest variance of a torque error with information, relative to its prior


@dataclass(frozen=True)
class PayloadTuning:
    """Prior knowledge of a payload; deviations are standard deviations.

    Raises:
        ModelError: a value outside its range.
    """

    mass_deviation: float = 0.5  # [kg]; the youBot may carry 0.5 kg, see `of_arm` for other arms
    # (3,) expected centre of a payload, in the frame of the last link [m]
    grip_point: tuple[float, float, float] = (0.0, 0.0, 0.07)
    grip_deviation: float = 0.03  # deviation of the centre from there [m]
    memory: float = 60.0  # time constant of forgetting a payload [s], which may have been put down
    # Noise of the torque errors by effects that are not modelled, relative to the Coulomb torque
    model_noise: float = 0.2
    payload_share: float = setting(
        0.4,
        "Standard deviation of the payload's mass, relative to robot.arm.payload, above which it counts as not "
        "identifiable and is not published.",
        "1",
        (1e-3, 1.0),
        source="chosen: 0.2 kg of the youBot's permitted payload",
    )

    def __post_init__(self) -> None:
        """Check all values."""
        number("mass_deviation", self.mass_deviation, "kg", above=0.0)
        number("grip_deviation", self.grip_deviation, "m", above=0.0)
        number("memory", self.memory, "s", above=0.0)
        number("model_noise", self.model_noise, "1", above=0.0)
        number("payload_share", self.payload_share, "1", above=0.0)
        for axis, value in zip("xyz", self.grip_point, strict=True):
            number(f"grip_point.{axis}", value, "m")

    def of_arm(self, arm: Arm) -> PayloadTuning:
        """The same for the permitted payload and the grip point of an arm."""
        x, y, z = arm.grip_point
        return replace(self, mass_deviation=arm.payload, grip_point=(x, y, z))


@dataclass(frozen=True, eq=False)
class PayloadBelief:
    """Estimate of the payload."""

    mass: float  # [kg]; may be negative within its deviation
    mass_deviation: float  # [kg]
    centre: Vector  # (3,) in the frame of the last link [m]; the grip point if the mass is too small to estimate it
    identifiable: bool  # whether the mass is known well enough
    reason: str  # why it is not; empty if it is


class Payload:
    """Bayesian linear regression of torque errors on payload, link masses and friction, with forgetting of the payload.

    Args:
        arm: of n revolute joints, the model of the filter.
        filter_tuning: of the filter that gives the beliefs: the uncertainty of its model.
        tuning: prior knowledge of the payload.
    """

    def __init__(self, arm: ArmModel, filter_tuning: ArmEkfTuning, tuning: PayloadTuning | None = None) -> None:
        self.tuning = PayloadTuning() if tuning is None else tuning
        self._arm, self._filter = arm, filter_tuning
        n = arm.tree.nv
        self._coulomb = np.array([friction.coulomb for friction in arm.friction])
        grip, mass, place = np.array(self.tuning.grip_point), self.tuning.mass_deviation, self.tuning.grip_deviation
        size = 4 + 4 * n
        prior = np.zeros((size, size))
        prior[_MASS, _MASS] = mass**2
        prior[_MASS, _MOMENT] = prior[_MOMENT, _MASS] = mass**2 * grip
        prior[_MOMENT, _MOMENT] = mass**2 * (np.outer(grip, grip) + place**2 * np.eye(3))
        self._viscous = np.array([friction.viscous for friction in arm.friction])
        rubbing = filter_tuning.friction_error * np.r_[self._coulomb, self._viscous]
        own = np.r_[np.full(2 * n, filter_tuning.load_error), rubbing]
        prior[range(4, size), range(4, size)] = np.maximum(own, 1e-6) ** 2
        self._prior = read_only(prior)
        self.reset()

    @property
    def state(self) -> PayloadBelief:
        """Present estimate."""
        mass, deviation = float(self._mean[_MASS]), float(np.sqrt(self._covariance[_MASS, _MASS]))
        tuning = self.tuning
        if not self._rows:
            reason = "no joint has slid yet: move the arm"
        elif deviation > tuning.payload_share * tuning.mass_deviation:
            reason = f"known to {deviation:.2f} kg only: move the joints that lift it both ways with the forearm level"
        else:
            reason = ""
        centre = np.array(tuning.grip_point)
        if mass > 2.0 * deviation:
            centre = self._mean[_MOMENT] / mass
        return PayloadBelief(mass, deviation, read_only(centre), not reason, reason)

    def reset(self) -> None:
        """Discard the payload and the estimated errors of the model."""
        self._mean, self._covariance = np.zeros(len(self._prior)), self._prior.copy()
        self._stamp = np.nan
        self._rate = SpeedRate(_RATE_LAG)
        self._rows = 0

    def tare(self) -> bool:
        """Declare the gripper empty: torque errors so far are errors of the model, not a payload.

        Returns whether there was any data so far.
        """
        if not self._rows:
            return False
        for k in range(4):
            unit = np.zeros(len(self._mean))
            unit[k] = 1.0
            self._correct(unit, 0.0, _EMPTY * self._prior[k, k])
        self._mean[:4] = 0.0
        self._covariance[:4, :] = self._covariance[:, :4] = 0.0
        self._covariance[:4, :4] = self._prior[:4, :4]
        return True

    def add(self, belief: ArmBelief) -> bool:
        """Process an estimate of the filter, at most two in each time constant of its correlated torque errors.

        The attenuation by their prior, see `shown_part`, is compensated. Returns whether the estimate contained
        information.
        """
        acceleration = self._rate.take(belief.stamp, belief.speed)
        elapsed = belief.stamp - self._stamp
        if 0.0 <= elapsed < _INTERVAL * self._filter.torque_memory:
            return False
        n = len(self._coulomb)
        if len(belief.mean) < (4 if self._filter.bristles == ESTIMATED else 3) * n or np.isnan(belief.stamp):
            return False
        self._stamp = belief.stamp
        self._fade(float(elapsed) if elapsed > 0.0 else 0.0)
        spread = np.diag(belief.covariance)[-n:]
        layout, poses = self._arm.tree.layout, self._arm.tree.poses(belief.position)
        rows = torque_rows(layout, poses, belief.speed, acceleration)
        load = rows[:, 4 : 4 + n].sum(axis=1) + belief.torque_error
        own = (self._filter.friction_error * self._coulomb) ** 2 + (self._filter.load_error * load) ** 2
        informative = False
        for i in range(n):
            if abs(belief.speed[i]) < _SLIDING or spread[i] > _SHARE * own[i]:
                continue
            shown = shown_part(float(own[i]), float(spread[i]))
            noise = spread[i] / shown**2 + (self.tuning.model_noise * self._coulomb[i]) ** 2
            self._correct(rows[i], float(belief.torque_error[i]) / shown, float(noise))
            self._rows += 1
            informative = True
        return informative

    def _fade(self, elapsed: float) -> None:
        """Relax the payload to its prior; the estimated errors of the model stay."""
        remaining = np.exp(-elapsed / self.tuning.memory)
        kept = np.ones(len(self._prior))
        kept[:4] = remaining
        self._mean *= kept
        self._covariance *= np.outer(kept, kept)
        self._covariance[:4, :4] += (1.0 - remaining**2) * self._prior[:4, :4]

    def _correct(self, row: Vector, value: float, noise: float) -> None:
        shift = self._covariance @ row
        total = float(row @ shift) + noise
        gain = shift / total
        self._mean += gain * (value - float(row @ self._mean))
        correct(self._covariance, row, noise, shift, gain)


def shown_part(prior: float, posterior: float) -> float:
    """Fraction of a constant error that appears in a filter which models it as decaying.

    With x' = -x / T + noise of variance S (`prior`) and a measurement of noise r, the filter's variance P (`posterior`)
    converges to 2 (S - P) / T = P^2 / r, and its mean to the fraction k / (k + 1 / T) of the constant, k = P / r.
    Without r and T this is 2 (S - P) / (2 S - P).
    """
    return 2.0 * (prior - posterior) / (2.0 * prior - posterior)
