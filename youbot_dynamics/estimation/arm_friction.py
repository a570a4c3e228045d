"""Friction of the joints by what the arm's filter believes, with its standard deviation: compiled for `arm_ekf`."""

from __future__ import annotations

import math

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.bristle import friction_torque, friction_torque_slopes
from youbot_dynamics.estimation.arm_process import BRISTLE, ERROR, JOINTS, SPEED


@compiled
def friction_share(friction_error: float, load_part: float) -> float:
    """Most likely share of a torque error that is friction's, by its variance beside that of the load [N2 m2]."""
    own = friction_error * friction_error
    return own / (own + load_part) if own > 0.0 else 0.0


@compiled
def friction_rows(frictions: Vector, speeds: Vector, bristles: Vector, parts: Vector, torques: Vector) -> None:
    """Write friction torques: LuGre's (seed 001 (9)) less the part of the torque error that is friction's.

        tau_f = sigma0 z + sigma1 dz/dt + viscous v - w_f;    less, since the error drives and friction brakes

    Args:
        frictions: (5, 6) LuGre constants.
        speeds: (t, 5) [rad/s], NaN where unknown.
        bristles: (t, 5) [rad].
        parts: (t, 5) w_f [N m].
        torques: (t, 5) written [N m].
    """
    for t in range(len(speeds)):
        for i in range(JOINTS):
            c = frictions[i]
            lugre = friction_torque(bristles[t, i], speeds[t, i], c[0], c[1], c[2], c[3], c[4], c[5])
            torques[t, i] = lugre - parts[t, i]


@compiled
def friction_deviations(
    frictions: Vector,
    mean: Vector,
    covariance: Vector,
    bristles: int,
    errors: int,
    friction_error: Vector,
    load_part: Vector,
    found: Vector,
) -> None:
    """Write standard deviations of the friction torques, to first order; what is not among the states counts as known.

        tau_f = sigma0 z + sigma1 dz/dt + viscous v - s w,  s the friction's share;  its slopes over v, z, w are h
        variance = h P h' + s (1 - s) var(w): how w divides is itself not known

    Args:
        frictions: (5, 6) LuGre constants.
        mean: (4, 5) of the filter.
        covariance: P (m, m).
        bristles: first row of the bristles, 0 where they are not estimated.
        errors: first row of the torque errors, 0 where there are none.
        friction_error: (5,) standard deviation of the friction's part of an error [N m].
        load_part: (5,) variance of the load's part [N2 m2].
        found: (5,) written [N m].
    """
    for i in range(JOINTS):
        c = frictions[i]
        over_z, over_v = friction_torque_slopes(mean[BRISTLE, i], mean[SPEED, i], c[0], c[1], c[2], c[3], c[4], c[5])
        v = JOINTS + i
        variance = over_v * over_v * covariance[v, v]
        if bristles > 0:
            z = bristles + i
            variance += over_z * (over_z * covariance[z, z] + 2.0 * over_v * covariance[z, v])
        if errors > 0:
            w = errors + i
            share = friction_share(friction_error[i], load_part[i])
            # s^2 var(w) of the slope and s (1 - s) (var(w) + w^2) of the division.
            variance += share * covariance[w, w] - 2.0 * share * over_v * covariance[w, v]
            variance += share * (1.0 - share) * mean[ERROR, i] ** 2
            if bristles > 0:
                variance -= 2.0 * share * over_z * covariance[w, bristles + i]
        found[i] = math.sqrt(max(variance, 0.0))
