"""The law of the LuGre bristle at an instant: compiled functions of one joint, for use inside other compiled loops.

Equation (seed 001 (9), one joint):

    dz/dt = v - sigma0 |v| z / g(v),    g(v) = coulomb + (static - coulomb) exp(-(v / stribeck_speed)^2)
    tau_f = sigma0 z + sigma1 dz/dt + viscous v

Units: z bristle deflection [rad], v speed [rad/s], sigma0 [N m/rad], sigma1 and viscous [N m s/rad], coulomb and
static [N m], stribeck_speed [rad/s]. The functions check nothing; `lugre.LuGre` does. Without a Stribeck curve
static = coulomb, and stribeck_speed is any positive number.
"""

from __future__ import annotations

import math

from youbot_dynamics.compiled import compiled


@compiled
def friction_level(v: float, coulomb: float, static: float, stribeck_speed: float) -> float:
    """Friction level g(v) [N m] of steady sliding, between coulomb and static (system 9, Stribeck curve)."""
    if static == coulomb:
        return coulomb
    ratio = v / stribeck_speed
    return coulomb + (static - coulomb) * math.exp(-ratio * ratio)


@compiled
def friction_level_slope(v: float, coulomb: float, static: float, stribeck_speed: float) -> float:
    """Slope dg/dv [N m s/rad] of the friction level."""
    if static == coulomb:
        return 0.0
    ratio = v / stribeck_speed
    return -2.0 * ratio / stribeck_speed * (static - coulomb) * math.exp(-ratio * ratio)


@compiled
def sign_of(v: float) -> float:
    """Sign of a speed, 0 at rest."""
    return 1.0 if v > 0.0 else (-1.0 if v < 0.0 else 0.0)


@compiled
def sliding_bristle(v: float, coulomb: float, sigma0: float, static: float, stribeck_speed: float) -> float:
    """Bristle [rad] after long sliding at v, sign(v) g(v) / sigma0 (seed 001 (15)); 0 at rest."""
    return sign_of(v) * friction_level(v, coulomb, static, stribeck_speed) / sigma0


@compiled
def sliding_torque(v: float, coulomb: float, viscous: float, static: float, stribeck_speed: float) -> float:
    """Torque [N m] after long sliding at v, sign(v) g(v) + viscous v (seed 001 (16)); 0 at rest."""
    return sign_of(v) * friction_level(v, coulomb, static, stribeck_speed) + viscous * v


@compiled
def sliding_rate(z: float, v: float, coulomb: float, sigma0: float, static: float, stribeck_speed: float) -> float:
    """Rate dz/dt [rad/s] = v - sigma0 |v| z / g(v) (seed 001 (9))."""
    return v - sigma0 * abs(v) * z / friction_level(v, coulomb, static, stribeck_speed)


@compiled
def sliding_rate_slopes(
    z: float, v: float, coulomb: float, sigma0: float, static: float, stribeck_speed: float
) -> tuple[float, float]:
    """Slopes (d z-dot/dz [1/s], d z-dot/dv [1]); sign(0) = 0 (seed 001 (12); D-001-3).

    At v = 0 the one-sided slopes over v are 1 -+ sigma0 z / g: they differ by 2 sigma0 |z| / g, and the value given
    here is their mean.
    """
    level = friction_level(v, coulomb, static, stribeck_speed)
    bend = abs(v) * friction_level_slope(v, coulomb, static, stribeck_speed) / level
    return -sigma0 * abs(v) / level, 1.0 - sigma0 * z / level * (sign_of(v) - bend)


@compiled
def friction_torque(
    z: float,
    v: float,
    coulomb: float,
    viscous: float,
    sigma0: float,
    sigma1: float,
    static: float,
    stribeck_speed: float,
) -> float:
    """Torque [N m] of friction, tau_f = sigma0 z + sigma1 dz/dt + viscous v (seed 001 (9)); it opposes the motion.

    The joint moves by q'' = M^-1 (tau - bias - tau_f): tau_f has the sign of v in steady sliding.
    """
    return sigma0 * z + sigma1 * sliding_rate(z, v, coulomb, sigma0, static, stribeck_speed) + viscous * v


@compiled
def friction_torque_slopes(
    z: float,
    v: float,
    coulomb: float,
    viscous: float,
    sigma0: float,
    sigma1: float,
    static: float,
    stribeck_speed: float,
) -> tuple[float, float]:
    """Slopes (d tau_f/dz [N m/rad], d tau_f/dv [N m s/rad]) of `friction_torque` (seed 001 (13)); sign(0) = 0."""
    over_z, over_v = sliding_rate_slopes(z, v, coulomb, sigma0, static, stribeck_speed)
    return sigma0 + sigma1 * over_z, sigma1 * over_v + viscous


@compiled
def clamp_bristle(z: float, sigma0: float, static: float) -> float:
    """Nearest bristle [rad] with |z| <= static / sigma0: the set that motion never leaves and that is passive."""
    reach = static / sigma0
    return min(max(z, -reach), reach)


@compiled
def dissipated_power(
    z: float,
    v: float,
    coulomb: float,
    viscous: float,
    sigma0: float,
    sigma1: float,
    static: float,
    stribeck_speed: float,
) -> float:
    """Power [W] turned into heat, v tau_f - d/dt (sigma0 z^2 / 2) (system 10); the rest is stored in the bristle."""
    rate = sliding_rate(z, v, coulomb, sigma0, static, stribeck_speed)
    return v * (sigma0 * z + sigma1 * rate + viscous * v) - sigma0 * z * rate
