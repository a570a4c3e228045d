"""What the gripper carries, from the torque errors of the arm's filter (gravity of systems 7 and 18; system 20).

A body of mass m whose centre stands at c in the frame of the last link drives the joints with

    w = -J' [m a + wd x m c + w x (w x m c); m c x a] = Y(q, v, v') (m, m c)

where J is the Jacobian of that link, a the acceleration of its origin less that of gravity, w and wd its angular
velocity and acceleration: linear in m and m c. What its spread about the joint adds, c x m (wd x c) and its own
inertia, is left out: some 1 % of its pull.

Nothing else tells a payload from a wrong model, so what the model may have wrong is estimated along: links and rotors
heavier by a share, Coulomb and viscous friction of each joint. The deviation therefore stays large until the arm has
been where these differ, or until `tare` was told that an arm that has swung before is empty. The base is taken for
level and unaccelerated.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, number, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.tree import Layout
from youbot_dynamics.estimation.arm_ekf import ESTIMATED, ArmBelief, ArmEkfTuning
from youbot_dynamics.estimation.ekf import correct
from youbot_dynamics.parameters import setting

PAYLOAD = 4  # columns of its mass and its first moment


@compiled
def torque_rows(layout: Layout, poses: Vector, speed: Vector, acceleration: Vector) -> Vector:
    """Slopes (n, 4 + 4 n) of the torques that drive n revolute joints beside the motors, over what may cause them.

    Columns: mass and first moment (3,) of the payload; shares by which each link and each rotor is heavier than known;
    Coulomb torque and viscous coefficient by which the friction of each joint is larger. `poses` (n, 4, 4) are those of
    the bodies, `speed` and `acceleration` (n,) those of the joints.
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
    """Acceleration (3,) of the end of an arm (3,) over that of its begin, on a body of spin (3,) and its rate (3,)."""
    return np.cross(spin_rate, arm) + np.cross(spin, np.cross(spin, arm))


@compiled
def drive(axes: Vector, places: Vector, body: int, force: Vector, moment: Vector, torques: Vector) -> None:
    """Write the torques (n,) by which a body that needs a force (3,) and moment (3,) about its joint drives joints.

    Only joints up to the body's own are driven; their axes (n, 3) and places (n, 3) [m] are in the world.
    """
    for j in range(body + 1):
        torques[j] = -axes[j] @ (moment + np.cross(places[body] - places[j], force))


_LONGEST_GAP = 0.5  # [s] between stamps, after which nothing is known of the slope


class SpeedRate:
    """Slope of n speeds behind a first-order lag, a = (v - u) / T with u' = a; it is exact, T late, on a ramp.

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
        """Accelerations (n,) after speeds (n,) at a stamp [s]: 0 at first, after a gap and where stamps do not go on.

        Speeds run straight between two stamps. One that is no number leaves everything as it was.
        """
        told = np.array(speeds, dtype=np.float64)
        if not np.isfinite(told).all():
            return self._rate if len(self._rate) else np.zeros(len(told))
        elapsed = stamp - self._stamp
        if not 0.0 < elapsed <= _LONGEST_GAP:
            self._behind = told
        else:
            left, lead = exp(-elapsed / self._lag), (self._lag / elapsed) * (told - self._before)
            self._behind = told - lead + left * (self._behind - self._before + lead)
        self._stamp, self._before = stamp, told
        self._rate = (told - self._behind) / self._lag
        return self._rate


_MASS, _MOMENT = 0, slice(1, 4)
_SLIDING = 0.03  # [rad/s] below it a torque error and a bristle cannot be told apart
_INTERVAL = 0.5  # memories of the torque errors from one row to the next: a filter that is sure forgets sooner
_RATE_LAG = 0.1  # [s] about that of the torque errors behind what causes them
_EMPTY = 1e-6  # of the prior variance of a payload, left of it in an empty gripper
_SHARE = 0.5  # of its own prior variance that a torque error's may have, to say anything


@dataclass(frozen=True)
class PayloadTuning:
    """What is known of a payload before it is felt; deviations are standard deviations.

    Args:
        mass_deviation: [kg]; the youBot may carry 0.5 kg.
        grip_point: (3,) where a payload's centre is expected, in the frame of the last link [m].
        grip_deviation: how far from there it may be [m].
        memory: time constant with which a payload is forgotten [s]: it may have been put down.
        model_noise: share of the Coulomb torque by which a torque error strays for reasons not modelled.
        payload_limit: deviation of the mass [kg] above which it counts as not identifiable.

    Raises:
        ModelError: a value outside its range.
    """

    mass_deviation: float = 0.5
    grip_point: tuple[float, float, float] = (0.0, 0.0, 0.07)
    grip_deviation: float = 0.03
    memory: float = 60.0
    model_noise: float = 0.2
    payload_limit: float = setting(
        0.2,
        "Standard deviation of the payload's mass above which it counts as not identifiable and is not published.",
        "kg",
        (1e-3, 10.0),
        source="chosen: 40 % of the youBot's permitted payload",
    )

    def __post_init__(self) -> None:
        """Check all values."""
        number("mass_deviation", self.mass_deviation, "kg", above=0.0)
        number("grip_deviation", self.grip_deviation, "m", above=0.0)
        number("memory", self.memory, "s", above=0.0)
        number("model_noise", self.model_noise, "1", above=0.0)
        number("payload_limit", self.payload_limit, "kg", above=0.0)
        for axis, value in zip("xyz", self.grip_point, strict=True):
            number(f"grip_point.{axis}", value, "m")


@dataclass(frozen=True, eq=False)
class PayloadBelief:
    """What is believed of the payload.

    Args:
        mass: [kg]; may be below 0 by as much as its deviation.
        mass_deviation: [kg].
        centre: (3,) in the frame of the last link [m]; the grip point where the mass is too small to tell.
        identifiable: whether the mass is known well enough.
        reason: why it is not; empty where it is.
    """

    mass: float
    mass_deviation: float
    centre: Vector
    identifiable: bool
    reason: str


class Payload:
    """Bayesian linear regression of torque errors on payload, link masses and friction, with a payload that fades.

    Args:
        arm: of n revolute joints, as the filter takes it.
        filter_tuning: of the filter whose beliefs it gets: how wrong its model may be.
        tuning: what is known beforehand.
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
        """What is believed now."""
        mass, deviation = float(self._mean[_MASS]), float(np.sqrt(self._covariance[_MASS, _MASS]))
        tuning = self.tuning
        if not self._rows:
            reason = "no joint has slid yet: move the arm"
        elif deviation > tuning.payload_limit:
            reason = f"known to {deviation:.2f} kg only: move joints 2 to 4 both ways with the forearm level"
        else:
            reason = ""
        centre = np.array(tuning.grip_point)
        if mass > 2.0 * deviation:
            centre = self._mean[_MOMENT] / mass
        return PayloadBelief(mass, deviation, read_only(centre), not reason, reason)

    def reset(self) -> None:
        """Forget the payload and what was learned of the model."""
        self._mean, self._covariance = np.zeros(len(self._prior)), self._prior.copy()
        self._stamp = np.nan
        self._rate = SpeedRate(_RATE_LAG)
        self._rows = 0

    def tare(self) -> bool:
        """Take the gripper for empty: what was felt so far is the model's error, and is no payload from now on.

        Tells whether anything was felt so far.
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
        """Take in a belief of the filter; two for each time constant of its torque errors, which repeat till then.

        What their prior takes from them, see `shown_part`, is given back. Tells whether the belief said anything.
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
        said = False
        for i in range(n):
            if abs(belief.speed[i]) < _SLIDING or spread[i] > _SHARE * own[i]:
                continue
            shown = shown_part(float(own[i]), float(spread[i]))
            noise = spread[i] / shown**2 + (self.tuning.model_noise * self._coulomb[i]) ** 2
            self._correct(rows[i], float(belief.torque_error[i]) / shown, float(noise))
            self._rows += 1
            said = True
        return said

    def _fade(self, elapsed: float) -> None:
        """Let the payload go back to what is known beforehand; what was learned of the model stays."""
        left = np.exp(-elapsed / self.tuning.memory)
        kept = np.ones(len(self._prior))
        kept[:4] = left
        self._mean *= kept
        self._covariance *= np.outer(kept, kept)
        self._covariance[:4, :4] += (1.0 - left**2) * self._prior[:4, :4]

    def _correct(self, row: Vector, value: float, noise: float) -> None:
        shift = self._covariance @ row
        total = float(row @ shift) + noise
        gain = shift / total
        self._mean += gain * (value - float(row @ self._mean))
        correct(self._covariance, row, noise, shift, gain)


def shown_part(prior: float, left: float) -> float:
    """Part of a lasting error that a filter shows which takes it for one that fades.

    With x' = -x / T + noise of variance S (`prior`) and a measurement of noise r, the filter's variance P (`left`)
    settles where 2 (S - P) / T = P^2 / r, and its mean at the part k / (k + 1 / T) of what lasts, k = P / r. Without r
    and T that is 2 (S - P) / (2 S - P).
    """
    return 2.0 * (prior - left) / (2.0 * prior - left)
