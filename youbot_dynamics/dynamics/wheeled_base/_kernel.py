"""Inner loop of the simulation of a wheeled base: every unknown but three eliminated by hand (systems 42-56)."""

from __future__ import annotations

from collections.abc import MutableSequence
from math import cos, inf, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.normal_forces import plate_with_lifted_wheels

Numbers = MutableSequence[float] | NDArray[np.float64]

# Kinetic energy, over all that was put in, from which a run is no coarse solution but none.
_GAIN = 4.0


@compiled
def _inverse(
    a: float, b: float, c: float, d: float, e: float, f: float
) -> tuple[float, float, float, float, float, float]:
    """Inverse of the symmetric matrix [[a, b, c], [b, d, e], [c, e, f]], in the same order."""
    u, v, w = d * f - e * e, c * e - b * f, b * e - c * d
    scale = 1.0 / (a * u + b * v + c * w)
    return (
        u * scale,
        v * scale,
        w * scale,
        (a * f - c * c) * scale,
        (b * c - a * e) * scale,
        (a * d - b * b) * scale,
    )


@compiled
def advance(
    record: Numbers,
    plate: Numbers,
    steps: int,
    n: int,
    dt: float,
    slip_square: float,
    drive: Numbers,
    steer: Numbers,
    reaction: Numbers,
    body: Numbers,
    spin_inertia: Numbers,
    steering_inertia: Numbers,
    axis_x: Numbers,
    axis_y: Numbers,
    trail: Numbers,
    trail_per_inertia: Numbers,
    rolled: Numbers,
    rolled_per_inertia: Numbers,
    stiffness: Numbers,
    grip: Numbers,
    mount: Numbers,
    lateral: Numbers,
    steers: Numbers,
    head_x: Numbers,
    head_y: Numbers,
    dir_x: Numbers,
    dir_y: Numbers,
    point_x: Numbers,
    point_y: Numbers,
    gain_1: Numbers,
    gain_2: Numbers,
    bias_1: Numbers,
    bias_2: Numbers,
    carries: Numbers,
) -> None:
    """Fill rows 1 to `steps` of the record from row 0; equations as in `WheeledBase.equations`.

    Of a wheel only its friction along the first direction (n; f of a mecanum wheel) and the second (t) matter. Both
    are affine in the acceleration of the steering axis along that direction, because Omega' answers to the first
    alone and alpha'' to the second: T = -(k a + b), k = kappa dt/(1 + kappa dt R^2/J_W), kappa = mu N/sqrt(..), and
    with e^2/J_C for the second. What is left is 3 x 3 for the body and 3 x 3 for the plate that shares the weight.
    Runs on 1-D arrays under numba, on lists of floats without it. The last seven are work space.
    """
    mass, yaw_inertia, cx, cy, height = body[0], body[1], body[2], body[3], body[4]
    product_xz, product_yz, gravity, swings = body[5], body[6], body[7], body[8]
    lean, weight, per_step = height * mass, mass * gravity, 1.0 / dt
    p00 = p01 = p02 = p11 = p12 = p22 = 0.0
    cos_yaw, sin_yaw = cos(record[2]), sin(record[2])
    size = 8 + 3 * n
    for k in range(steps + 1):
        now, command = k * size, k * n
        new, spins, angles, rates = now + size, now + 8, now + 8 + n, now + 8 + 2 * n
        vx, vy, yaw_rate = record[now + 3], record[now + 4], record[now + 5]
        square = yaw_rate * yaw_rate

        # Directions of the wheels that steer; the plate on springs that shares the weight.
        for i in range(n):
            if steers[i] != 0.0:
                angle = mount[i] + record[angles + i]
                c, s = cos(angle), sin(angle)
                head_x[i] = dir_x[i] = c
                head_y[i] = dir_y[i] = s
        if k == 0 or swings != 0.0:
            s00 = s01 = s02 = s11 = s12 = s22 = 0.0
            for i in range(n):
                dx, dy = axis_x[i] - trail[i] * head_x[i] - cx, axis_y[i] - trail[i] * head_y[i] - cy
                point_x[i], point_y[i] = dx, dy
                spring = stiffness[i]
                s00 += spring
                s01 += spring * dx
                s02 += spring * dy
                s11 += spring * dx * dx
                s12 += spring * dx * dy
                s22 += spring * dy * dy
            p00, p01, p02, p11, p12, p22 = _inverse(s00, s01, s02, s11, s12, s22)
        load_x, load_y = record[now + 6], record[now + 7]
        l0 = p00 * weight + p01 * load_x + p02 * load_y
        lx = p01 * weight + p11 * load_x + p12 * load_y
        ly = p02 * weight + p12 * load_x + p22 * load_y
        lowest = l0
        for i in range(n):
            lowest = min(lowest, l0 + lx * point_x[i] + ly * point_y[i])
        if lowest < 0.0:
            l0, lx, ly = plate_with_lifted_wheels(weight, load_x, load_y, stiffness, point_x, point_y, carries)
        plate[3 * k] = l0
        plate[3 * k + 1] = lx
        plate[3 * k + 2] = ly
        if k == steps:
            break

        # Body with what the wheels leave of their friction.
        a00, a01, a02, a11, a12, a22 = mass, 0.0, -mass * cy, mass, mass * cx, yaw_inertia
        b0, b1, b2 = mass * square * cx, mass * square * cy, -reaction[k]
        for i in range(n):
            load = l0 + lx * point_x[i] + ly * point_y[i]
            if load <= 0.0:
                gain_1[i] = gain_2[i] = bias_1[i] = bias_2[i] = 0.0
                continue
            x, y, r = axis_x[i], axis_y[i], rolled[i]
            c, s, spin = dir_x[i], dir_y[i], record[spins + i]
            ux, uy = vx - yaw_rate * y, vy + yaw_rate * x
            v = ux * c + uy * s - r * spin
            if lateral[i] == 0.0:
                kappa = grip[i] * load / sqrt(v * v + slip_square)
                drift = yaw_rate * (vy * c - vx * s)
                g2 = f2 = 0.0
            else:
                w = uy * c - ux * s
                drift = -square * (x * c + y * s)
                if steers[i] == 0.0:
                    kappa = grip[i] * load / sqrt(v * v + w * w + slip_square)
                    g2 = kappa
                    f2 = kappa * (w * per_step + square * (x * s - y * c) - r * spin * yaw_rate)
                else:
                    e, rate = trail[i], yaw_rate + record[rates + i]
                    w -= e * rate
                    kappa = grip[i] * load / sqrt(v * v + w * w + slip_square)
                    g2 = kappa / (1.0 + kappa * e * trail_per_inertia[i])
                    f2 = g2 * (w * per_step + square * (x * s - y * c) - r * spin * rate - e * steer[command + i])
                    drift += e * rate * rate
            g1 = kappa / (1.0 + kappa * r * rolled_per_inertia[i])
            f1 = g1 * (v * per_step + drift - r * drive[command + i])
            gain_1[i] = g1
            bias_1[i] = f1
            gain_2[i] = g2
            bias_2[i] = f2
            # Resistance of the contact in body axes, [[xx, xy], [xy, yy]], and its levers about the centre.
            c_more = (g1 - g2) * c
            xx, xy = g2 + c_more * c, c_more * s
            yy = g1 + g2 - xx
            lever_x, lever_y = x * xy - y * xx, x * yy - y * xy
            a00 += xx
            a01 += xy
            a11 += yy
            a02 += lever_x
            a12 += lever_y
            a22 += x * lever_y - y * lever_x
            fx, fy = f1 * c - f2 * s, f1 * s + f2 * c
            b0 -= fx
            b1 -= fy
            b2 -= x * fy - y * fx
        i00, i01, i02, i11, i12, i22 = _inverse(a00, a01, a02, a11, a12, a22)
        ax = i00 * b0 + i01 * b1 + i02 * b2
        ay = i01 * b0 + i11 * b1 + i12 * b2
        az = i02 * b0 + i12 * b1 + i22 * b2

        # Wheels, and the horizontal angular momentum they take up.
        momentum_x = product_xz * az - product_yz * square
        momentum_y = product_yz * az + product_xz * square
        for i in range(n):
            c, s, spin = dir_x[i], dir_y[i], record[spins + i]
            rate = yaw_rate
            axle_x, axle_y = ax - az * axis_y[i], ay + az * axis_x[i]
            push = gain_1[i] * (axle_x * c + axle_y * s) + bias_1[i]
            answer = drive[command + i] + rolled_per_inertia[i] * push
            record[spins + size + i] = spin + dt * answer
            if steers[i] != 0.0:
                swinging = record[rates + i]
                rate += swinging
                push = gain_2[i] * (axle_y * c - axle_x * s) + bias_2[i]
                later = swinging + dt * (steer[command + i] + trail_per_inertia[i] * push - az)
                record[angles + size + i] = record[angles + i] + 0.5 * dt * (swinging + later)
                record[rates + size + i] = later
            inertia, wobble = spin_inertia[i], spin * rate
            momentum_x -= inertia * (answer * head_y[i] + wobble * head_x[i])
            momentum_y += inertia * (answer * head_x[i] - wobble * head_y[i])
        record[new + 6] = lean * (square * cx - ax + az * cy) - momentum_y
        record[new + 7] = lean * (square * cy - ay - az * cx) + momentum_x

        # The velocity is carried over in the fixed frame: turning the axes must not change its size.
        old_x, old_y = cos_yaw * vx - sin_yaw * vy, sin_yaw * vx + cos_yaw * vy
        new_x, new_y = old_x + dt * (cos_yaw * ax - sin_yaw * ay), old_y + dt * (sin_yaw * ax + cos_yaw * ay)
        yaw = record[now + 2] + dt * (yaw_rate + 0.5 * dt * az)
        cos_yaw, sin_yaw = cos(yaw), sin(yaw)
        record[new] = record[now] + 0.5 * dt * (old_x + new_x)
        record[new + 1] = record[now + 1] + 0.5 * dt * (old_y + new_y)
        record[new + 2] = yaw
        record[new + 3] = cos_yaw * new_x + sin_yaw * new_y
        record[new + 4] = cos_yaw * new_y - sin_yaw * new_x
        record[new + 5] = yaw_rate + dt * az


@compiled
def has_gained(
    record: Numbers,
    steps: int,
    n: int,
    dt: float,
    drive: Numbers,
    steer: Numbers,
    body: Numbers,
    spin_inertia: Numbers,
    steering_inertia: Numbers,
    steers: Numbers,
) -> bool:
    """True if a row has over four times the kinetic energy of the start and the work put in, or no finite one.

    Friction only takes energy, so this tells a run that `advance` took in steps too long; arguments as there.
    """
    mass, yaw_inertia, cx, cy = body[0], body[1], body[2], body[3]
    put_in = 0.0
    for k in range(steps + 1):
        now = k * (8 + 3 * n)
        spins, rates = now + 8, now + 8 + 2 * n
        vx, vy, yaw_rate = record[now + 3], record[now + 4], record[now + 5]
        doubled = mass * (vx * vx + vy * vy + 2.0 * yaw_rate * (vy * cx - vx * cy)) + yaw_inertia * yaw_rate * yaw_rate
        for i in range(n):
            spin, turn = record[spins + i], yaw_rate + record[rates + i]
            doubled += spin_inertia[i] * spin * spin + steers[i] * steering_inertia[i] * turn * turn
            if k > 0:
                command = (k - 1) * n + i
                work = abs(drive[command] * spin_inertia[i] * spin)
                work += abs(steer[command] * steering_inertia[i] * record[rates + i])
                put_in += 2.0 * dt * work
        if k == 0:
            put_in = doubled
        elif not doubled <= _GAIN * put_in or doubled == inf:
            return True
    return False
