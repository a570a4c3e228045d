"""The LuGre bristle: its law, its exact motion over a step, and the derivatives of both.

These are compiled functions of one joint for use in other compiled loops. They check nothing; `LuGre` does. The law is

    dz/dt = v - sigma0 |v| z / g(v),    g(v) = coulomb + (static - coulomb) exp(-(v / stribeck_speed)^2)
    tau_f = sigma0 z + sigma1 dz/dt + viscous v

The constants are always coulomb, viscous, sigma0, sigma1, static, stribeck_speed. Units: z bristle deflection [rad],
v speed [rad/s], sigma0 [N m/rad], sigma1 and viscous [N m s/rad], coulomb and static [N m], stribeck_speed [rad/s].
Without a Stribeck curve static = coulomb, and stribeck_speed is any positive number.

Steps are stable at any stiffness. Along the travelled path s, with |ds| = |v| dt, time cancels:

    dz/ds = sign(v) - sigma0 z / g

For constant g a step is therefore exact for any speed profile without reversal (`slide`). With a Stribeck curve the
step is exponential, with g linear along the path (`exponential_part`).
Source: Canudas de Wit et al. 1995; document 001 (9), system 9.
"""

from __future__ import annotations

import math

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled

Constants = tuple[float, float, float, float, float, float]


@compiled
def friction_level(v: float, constants: Constants) -> float:
    """Friction level g(v) [N m] of steady sliding, between coulomb and static (Stribeck curve). Source: system 9."""
    coulomb, _, _, _, static, stribeck_speed = constants
    if static == coulomb:
        return coulomb
    ratio = v / stribeck_speed
    return coulomb + (static - coulomb) * math.exp(-ratio * ratio)


@compiled
def friction_level_slope(v: float, constants: Constants) -> float:
    """Derivative dg/dv [N m s/rad] of the friction level."""
    coulomb, _, _, _, static, stribeck_speed = constants
    if static == coulomb:
        return 0.0
    ratio = v / stribeck_speed
    return -2.0 * ratio / stribeck_speed * (static - coulomb) * math.exp(-ratio * ratio)


@compiled
def sign_of(v: float) -> float:
    """Sign of a speed, 0 at rest."""
    return 1.0 if v > 0.0 else (-1.0 if v < 0.0 else 0.0)


@compiled
def sliding_bristle(v: float, constants: Constants) -> float:
    """Bristle [rad] after long sliding at v: sign(v) g(v) / sigma0; 0 at rest. Source: document 001 (15)."""
    return sign_of(v) * friction_level(v, constants) / constants[2]


@compiled
def sliding_torque(v: float, constants: Constants) -> float:
    """Torque [N m] after long sliding at v: sign(v) g(v) + viscous v; 0 at rest. Source: document 001 (16)."""
    return sign_of(v) * friction_level(v, constants) + constants[1] * v


@compiled
def sliding_rate(z: float, v: float, constants: Constants) -> float:
    """Rate dz/dt [rad/s] = v - sigma0 |v| z / g(v). Source: document 001 (9)."""
    return v - constants[2] * abs(v) * z / friction_level(v, constants)


@compiled
def sliding_rate_slopes(z: float, v: float, constants: Constants) -> tuple[float, float]:
    """Derivatives (d z-dot/dz [1/s], d z-dot/dv [1]) with sign(0) = 0.

    At v = 0 the one-sided derivatives by v are 1 -+ sigma0 z / g, which differ by 2 sigma0 |z| / g; this is their mean.
    Source: document 001 (12); D-001-3.
    """
    sigma0, level = constants[2], friction_level(v, constants)
    bend = abs(v) * friction_level_slope(v, constants) / level
    return -sigma0 * abs(v) / level, 1.0 - sigma0 * z / level * (sign_of(v) - bend)


@compiled
def friction_torque(z: float, v: float, constants: Constants) -> float:
    """Friction torque [N m], tau_f = sigma0 z + sigma1 dz/dt + viscous v; it opposes the motion.

    The joint moves by q'' = M^-1 (tau - bias - tau_f): tau_f has the sign of v in steady sliding.
    Source: document 001 (9).
    """
    _, viscous, sigma0, sigma1, _, _ = constants
    return sigma0 * z + sigma1 * sliding_rate(z, v, constants) + viscous * v


@compiled
def friction_torque_slopes(z: float, v: float, constants: Constants) -> tuple[float, float]:
    """Derivatives (d tau_f/dz [N m/rad], d tau_f/dv [N m s/rad]) of `friction_torque`; sign(0) = 0.

    Source: document 001 (13).
    """
    _, viscous, sigma0, sigma1, _, _ = constants
    over_z, over_v = sliding_rate_slopes(z, v, constants)
    return sigma0 + sigma1 * over_z, sigma1 * over_v + viscous


@compiled
def clamp_bristle(z: float, constants: Constants) -> float:
    """Clamp a bristle [rad] to |z| <= static / sigma0, the invariant set in which friction is passive."""
    reach = constants[4] / constants[2]
    return min(max(z, -reach), reach)


@compiled
def dissipated_power(z: float, v: float, constants: Constants) -> float:
    """Dissipated power [W], v tau_f - d/dt (sigma0 z^2 / 2); the rest is stored in the bristle. Source: system 10."""
    _, viscous, sigma0, sigma1, _, _ = constants
    rate = sliding_rate(z, v, constants)
    return v * (sigma0 * z + sigma1 * rate + viscous * v) - sigma0 * z * rate


# Beyond this many Stribeck speeds exp(-(v / stribeck_speed)^2) is below 2e-16: g is constant.
STRIBECK_ENDS = 6.0
# Largest change of speed in a part of a step, in Stribeck speeds.
STRIBECK_PART = 0.05


@compiled
def slide(z: float, displacement: float, reach: float) -> float:
    """Bristle after a displacement [rad] without reversal at constant friction level g; reach = g / sigma0 [rad].

    The solution is exact: z+ = z + (sign(displacement) reach - z) (1 - exp(-|displacement| / reach)).
    Source: system 9.
    """
    path = abs(displacement) / reach
    # 1 - exp(-path) without cancellation; far from 0 the direct form is accurate and faster.
    slid = 1.0 - math.exp(-path) if path > 0.5 else -math.expm1(-path)
    if displacement >= 0.0:
        return z + (reach - z) * slid
    return z - (reach + z) * slid


@compiled
def advance_bristle(z: float, v_start: float, v_end: float, dt: float, constants: Constants) -> float:
    """Bristle [rad] after a step in which the speed changes linearly from v_start to v_end.

    A step with a reversal is split where the speed is zero. Without a Stribeck curve the result is exact; with one it
    is that of `advance_with_slopes`.
    Source: system 9.
    """
    coulomb, _, sigma0, _, static, _ = constants
    if static != coulomb:
        return advance_with_slopes(z, v_start, v_end, dt, constants)[0]
    reach = coulomb / sigma0
    if v_start * v_end >= 0.0:
        return slide(z, 0.5 * (v_start + v_end) * dt, reach)
    to_zero = dt * v_start / (v_start - v_end)
    return slide(slide(z, 0.5 * v_start * to_zero, reach), 0.5 * v_end * (dt - to_zero), reach)


@compiled
def exponential_part(
    z: float, v_start: float, v_end: float, time: float, constants: Constants
) -> tuple[float, float, float, float, float]:
    """Bristle [rad] after `time` [s] of linearly changing speed without reversal, with g linear along the path.

    With A = integral of sigma0 |v| / g dt (trapezoid), phi = (1 - exp(-A)) / A and g from g_a to g_b

        z+ = z exp(-A) + sign(v) / sigma0 ((1 - phi) g_b + (phi - exp(-A)) g_a).

    Returns:
        z [rad] and its derivatives by z [1], v_start [s], v_end [s] and time [rad/s]. At rest the one-sided derivatives
        by a speed differ; their mean is returned.
    """
    sigma0, sign = constants[2], sign_of(v_start + v_end)
    g_a = friction_level(v_start, constants)
    g_b = friction_level(v_end, constants)
    bend_a = friction_level_slope(v_start, constants)
    bend_b = friction_level_slope(v_end, constants)
    rate = 0.5 * sigma0 * (abs(v_start) / g_a + abs(v_end) / g_b)
    path = rate * time
    slid = -math.expm1(-path)
    decay = 1.0 - slid
    if path > 1e-4:
        phi = slid / path
        phi_slope = (decay - phi) / path
    else:
        phi = 1.0 - path / 2.0 + path * path / 6.0
        phi_slope = -0.5 + path / 3.0 - path * path / 8.0
    lag = phi - decay  # weight of the friction level at the start
    goal = sign * g_b / sigma0
    rise = sign * (g_b - g_a) / sigma0
    if sign == 0.0:
        return z, 1.0, 0.5 * time, 0.5 * time, 0.0
    over_path = (goal - z) * decay - rise * (phi_slope + decay)
    rate_a = 0.5 * sigma0 * (sign - abs(v_start) * bend_a / g_a) / g_a
    rate_b = 0.5 * sigma0 * (sign - abs(v_end) * bend_b / g_b) / g_b
    over_a = over_path * time * rate_a + sign * lag * bend_a / sigma0
    over_b = over_path * time * rate_b + sign * (slid - lag) * bend_b / sigma0
    return z + (goal - z) * slid - rise * lag, decay, over_a, over_b, over_path * rate


@compiled
def one_way_part(
    z: float, v_start: float, v_end: float, time: float, constants: Constants
) -> tuple[float, float, float, float]:
    """`exponential_part` for a constant friction level, at half the cost and without the derivative by time."""
    coulomb, sigma0, sign = constants[0], constants[2], sign_of(v_start + v_end)
    if sign == 0.0:
        return z, 1.0, 0.5 * time, 0.5 * time
    path = 0.5 * sigma0 * (abs(v_start) / coulomb + abs(v_end) / coulomb) * time
    slid = -math.expm1(-path)
    decay = 1.0 - slid
    distance = sign * coulomb / sigma0 - z
    over_speed = distance * decay * time * (0.5 * sigma0 * sign / coulomb)
    return z + distance * slid, decay, over_speed, over_speed


@compiled
def next_cut(here: float, v_end: float, stribeck_end: float) -> float:
    """First speed between `here` and v_end [rad/s] where the law changes: 0, +-stribeck_end, or v_end."""
    cut = v_end
    for speed in (-stribeck_end, 0.0, stribeck_end):
        if here < speed < cut or cut < speed < here:
            cut = speed
    return cut


@compiled
def advance_with_slopes(
    z: float, v_start: float, v_end: float, dt: float, constants: Constants
) -> tuple[float, float, float, float]:
    """Bristle [rad] after a step of linearly changing speed, and its derivatives by z, v_start and v_end.

    The step is split where the speed is zero and where the Stribeck curve ends, and inside the curve into parts of at
    most `STRIBECK_PART` Stribeck speeds; each is an `exponential_part`. Its weights of z, g_a and g_b are positive and
    sum to 1, so |z| <= static / sigma0 holds for every dt. The step is exact for constant g, otherwise of second order
    in the parts: the error is at most 1e-3 (static - coulomb) [N m]. The derivatives are those of the scheme for a
    fixed number of parts, by the chain rule. An estimator needs them instead of 1 + (d z-dot/dz) dt, which is unstable
    at 1 ms. At v_start = v_end = 0 the derivative by each speed is dt / 2 (sign(0) = 0).

    Returns:
        z [rad], dz/dz [1], dz/dv_start [s], dz/dv_end [s].

    Source: system 9.
    """
    coulomb, _, _, _, static, stribeck_speed = constants
    curved = static != coulomb
    if not curved and v_start * v_end >= 0.0:
        return one_way_part(z, v_start, v_end, dt, constants)
    over_z, over_start, over_end = 1.0, 0.0, 0.0
    change = v_end - v_start
    stribeck_end = STRIBECK_ENDS * stribeck_speed if curved else 0.0

    # Go through the speeds from split to split. Each speed and each fraction of dt has its derivatives by v_start and
    # v_end: a split has a fixed speed, but its time varies.
    here, here_start, here_end = v_start, 1.0, 0.0
    share, share_start, share_end = 0.0, 0.0, 0.0
    arrived = False
    while not arrived:
        cut = next_cut(here, v_end, stribeck_end)
        arrived = not (cut < v_end or cut > v_end)  # also true for NaN, which ends the loop
        if arrived:
            cut_start, cut_end = 0.0, 1.0
            there, there_start, there_end = 1.0, 0.0, 0.0
        else:
            cut_start, cut_end = 0.0, 0.0
            there = (cut - v_start) / change
            there_start, there_end = (there - 1.0) / change, -there / change
        inside = curved and abs(here + cut) < 2.0 * stribeck_end
        parts = max(1, math.ceil(abs(cut - here) / (STRIBECK_PART * stribeck_speed))) if inside else 1
        time = dt * (there - share) / parts
        time_start, time_end = dt * (there_start - share_start) / parts, dt * (there_end - share_end) / parts
        for part in range(parts):
            a, b = part / parts, (part + 1) / parts
            v_a, v_b = here + a * (cut - here), here + b * (cut - here)
            z, decay, over_a, over_b, over_time = exponential_part(z, v_a, v_b, time, constants)
            over_z *= decay
            a_start, b_start = here_start + a * (cut_start - here_start), here_start + b * (cut_start - here_start)
            a_end, b_end = here_end + a * (cut_end - here_end), here_end + b * (cut_end - here_end)
            over_start = decay * over_start + over_a * a_start + over_b * b_start + over_time * time_start
            over_end = decay * over_end + over_a * a_end + over_b * b_end + over_time * time_end
        here, here_start, here_end = cut, cut_start, cut_end
        share, share_start, share_end = there, there_start, there_end
    return z, over_z, over_start, over_end


@compiled
def follow_speeds(z: float, speeds: Vector, steps: Vector, constants: Constants, out: Vector) -> None:
    """Write the bristle [rad] at each sample of a speed log (n,) into out (n,); steps (n - 1,) are in s."""
    out[0] = z
    for k in range(len(steps)):
        z = advance_bristle(z, speeds[k], speeds[k + 1], steps[k], constants)
        out[k + 1] = z


@compiled
def follow_positions(z: float, positions: Vector, reach: float, out: Vector) -> None:
    """Write the bristle [rad] at each sample of a position log (n,) into out (n,); no reversal between samples."""
    out[0] = z
    before = positions[0]
    for k in range(1, len(positions)):
        here = positions[k]
        z = slide(z, here - before, reach)
        out[k] = z
        before = here
