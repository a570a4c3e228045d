"""Payload and load of the wheels over a log of the arm; it tells nothing of the base, which counts as standing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.arm_ekf import ArmBelief, ArmTrack
from youbot_dynamics.estimation.arm_log import ArmLog
from youbot_dynamics.estimation.payload import Payload
from youbot_dynamics.estimation.support_estimator import SupportEstimator
from youbot_dynamics.robot import Robot

_RATE = 20.0  # [Hz] at which messages are looked at; payload and wheels change more slowly
_EACH = 2  # of those looked at, one is told


@dataclass(frozen=True, eq=False)
class SupportTrack:
    """Payload and load of the wheels at s times.

    Args:
        time: (s,) stamps [s].
        payload: (s,) mass [kg], NaN while it is not known well enough to be told.
        payload_centre: (s, 3) in the frame of the last link [m].
        normal_forces: (s, 4) of FL, FR, RL, RR [N].
        centre_of_mass: (s, 3) of the whole robot in base_footprint [m].
    """

    time: Vector
    payload: Vector
    payload_centre: Vector
    normal_forces: Vector
    centre_of_mass: Vector


def replay_support(log: ArmLog, track: ArmTrack, robot: Robot, payload: Payload, lag: float) -> SupportTrack:
    """Weigh the payload and follow what the wheels carry.

    Args:
        log: of the arm, t messages.
        track: of its joints.
        robot: whose masses and wheels these are.
        payload: nothing felt yet, changed.
        lag: see `SupportEstimator`.
    """
    support, rows, last, looked = SupportEstimator(robot, lag), [], -np.inf, 0
    for row in np.flatnonzero(track.taken & np.isfinite(track.speed).all(axis=1)).tolist():
        stamp = float(log.stamp[row])
        if 0.0 <= stamp - last < 1.0 / _RATE - 1e-3:
            continue
        last = stamp
        payload.add(_belief(stamp, track, row))
        support.take_arm(stamp, track.speed[row])
        looked += 1
        if looked % _EACH:
            continue
        felt = payload.state
        support.carry(felt)
        found = support.support(stamp, track.position[row], track.speed[row])
        mass = felt.mass if felt.identifiable else np.nan
        rows.append(np.r_[stamp, mass, felt.centre, found.normal_forces, found.centre_of_mass])
    table = np.array(rows).reshape(-1, 12)
    return SupportTrack(table[:, 0], table[:, 1], table[:, 2:5], table[:, 5:9], table[:, 9:])


def _belief(stamp: float, track: ArmTrack, row: int) -> ArmBelief:
    """What the filter believed; of its covariance the diagonal, the rest was not kept."""
    variance = track.variance[row]
    told = (track.position[row], track.speed[row], track.bristle[row], track.torque_error[row])
    states = told if len(variance) == 4 * len(told[0]) else (*told[:2], told[3])
    mean = np.concatenate(states)[: len(variance)]
    return ArmBelief(stamp, mean, np.diag(variance), *told, track.friction_torque[row])
