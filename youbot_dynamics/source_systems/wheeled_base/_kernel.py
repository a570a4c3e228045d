"""Inner loop of the simulation of a wheeled base; all unknowns but three are eliminated analytically.

A wheel acts on the base only by its friction along the first direction (n; f of a mecanum wheel) and the second (t).
Both are affine in the acceleration of the steering axis along that direction, because Omega' depends only on the first
and alpha'' only on the second: T = -(k a + b), k = kappa dt/(1 + kappa dt R^2/J_W), kappa = mu N/sqrt(..), and with
e^2/J_C for the second. This leaves 3 x 3 systems for the body and for the plate that shares the weight.

With numba the wheels are records of an array, which are free to pass (named tuples of arrays made a step 2.5 times
slower); without numba they are objects in a list. All other arrays are flat, or lists of floats.
Source: systems 42-56.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from math import cos, inf, sin, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.compiled import compiled
from youbot_dynamics.source_systems.wheeled_base._lifted_wheels import plate_with_lifted_wheels

Numbers = MutableSequence[float] | NDArray[np.float64]
Symmetric = tuple[float, float, float, float, float, float]  # upper triangle of a 3 x 3 matrix, by rows

# Kinetic energy, relative to the energy put in, above which the result of a run is invalid and not only inaccurate.
_GAIN = 4.0


class Run(NamedTuple):
    """Parameters of a run."""

    dt: float  # step [s]
    slip_square: float  # square of the slip speed [m2/s2]
    mass: float  # m [kg]
    yaw_inertia: float  # about the vertical through the centre of the base, with the wheels that do not steer [kg m2]
    cx: float  # x of the centre of mass [m], with cy and height
    cy: float  # see cx
    height: float  # see cx
    product_xz: float  # [kg m2]
    product_yz: float  # [kg m2]
    gravity: float  # [m/s2]
    swings: bool  # whether contact points move relative to the body


# Fields of a wheel: its constants,
_CONSTANTS = (
    "spin_inertia",  # J_W [kg m2]
    "steering_inertia",  # J_C; 1 without steering [kg m2]
    "axis_x",  # point that moves with the yaw rate only: steering axis, or contact of a wheel without steering [m]
    "axis_y",
    "trail",  # e; 0 without steering [m]
    "trail_per_inertia",  # e / J_C
    "rolled",  # R times the cosine of the roller angle [m]
    "rolled_per_inertia",  # the same over J_W
    "stiffness",  # of the spring under the plate
    "grip",  # mu stiffness dt: times the height of the plate it is mu N dt
    "mount",  # angle of the rolling direction at steering angle 0 [rad]
    "lateral",  # 0 for a mecanum wheel, which pushes only along its first direction; else 1
    "steers",  # 1 if it steers, else 0
)
# and its variables.
_VARIABLES = (
    "spin",  # Omega [rad/s]
    "angle",  # of the steering [rad]
    "rate",  # of the steering [rad/s]
    "drive",  # torque over J_W [rad/s2]
    "steer",  # steering torque over J_C [rad/s2]
    "head_x",  # rolling direction n
    "head_y",
    "dir_x",  # first direction
    "dir_y",
    "point_x",  # contact from the centre of mass [m]
    "point_y",
    "gain_1",  # k and b of the friction T = -(k a + b), along the first direction
    "bias_1",
    "gain_2",  # and along the second
    "bias_2",
    "carries",  # work space of the plate
)
WHEEL = np.dtype([(name, np.float64) for name in (*_CONSTANTS, *_VARIABLES)])


@compiled
def _inverse(a: float, b: float, c: float, d: float, e: float, f: float) -> Symmetric:
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
def _compliance(run: Run, wheels: Any) -> Symmetric:
    """Height and slopes of the plate on springs for a unit of each component of the load; writes the contact points."""
    s00 = s01 = s02 = s11 = s12 = s22 = 0.0
    for i in range(len(wheels)):
        wheel = wheels[i]
        dx = wheel.axis_x - wheel.trail * wheel.head_x - run.cx
        dy = wheel.axis_y - wheel.trail * wheel.head_y - run.cy
        wheel.point_x, wheel.point_y = dx, dy
        spring = wheel.stiffness
        s00 += spring
        s01 += spring * dx
        s02 += spring * dy
        s11 += spring * dx * dx
        s12 += spring * dx * dy
        s22 += spring * dy * dy
    return _inverse(s00, s01, s02, s11, s12, s22)


@compiled
def _accelerate_body(
    run: Run, wheels: Any, twist: tuple[float, float, float], plate: tuple[float, float, float], reaction: float
) -> tuple[float, float, float]:
    """Derivative of the twist in body axes under the friction of the wheels; writes their gains and biases."""
    vx, vy, yaw_rate = twist
    l0, lx, ly = plate
    square, per_step, slip_square = yaw_rate * yaw_rate, 1.0 / run.dt, run.slip_square
    mass, cx, cy = run.mass, run.cx, run.cy
    a00, a01, a02, a11, a12, a22 = mass, 0.0, -mass * cy, mass, mass * cx, run.yaw_inertia
    b0, b1, b2 = mass * square * cx, mass * square * cy, -reaction
    for i in range(len(wheels)):
        wheel = wheels[i]
        load = l0 + lx * wheel.point_x + ly * wheel.point_y
        if load <= 0.0:
            wheel.gain_1 = wheel.gain_2 = wheel.bias_1 = wheel.bias_2 = 0.0
            continue
        x, y, r = wheel.axis_x, wheel.axis_y, wheel.rolled
        c, s, spin = wheel.dir_x, wheel.dir_y, wheel.spin
        ux, uy = vx - yaw_rate * y, vy + yaw_rate * x
        v = ux * c + uy * s - r * spin
        if wheel.lateral == 0.0:
            kappa = wheel.grip * load / sqrt(v * v + slip_square)
            drift = yaw_rate * (vy * c - vx * s)
            g2 = f2 = 0.0
        else:
            w = uy * c - ux * s
            drift = -square * (x * c + y * s)
            if wheel.steers == 0.0:
                kappa = wheel.grip * load / sqrt(v * v + w * w + slip_square)
                g2 = kappa
                f2 = kappa * (w * per_step + square * (x * s - y * c) - r * spin * yaw_rate)
            else:
                e, rate = wheel.trail, yaw_rate + wheel.rate
                w -= e * rate
                kappa = wheel.grip * load / sqrt(v * v + w * w + slip_square)
                g2 = kappa / (1.0 + kappa * e * wheel.trail_per_inertia)
                f2 = g2 * (w * per_step + square * (x * s - y * c) - r * spin * rate - e * wheel.steer)
                drift += e * rate * rate
        g1 = kappa / (1.0 + kappa * r * wheel.rolled_per_inertia)
        f1 = g1 * (v * per_step + drift - r * wheel.drive)
        wheel.gain_1, wheel.bias_1 = g1, f1
        wheel.gain_2, wheel.bias_2 = g2, f2
        # Resistance of the contact in body axes, [[xx, xy], [xy, yy]], and its lever arms about the centre.
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
    return i00 * b0 + i01 * b1 + i02 * b2, i01 * b0 + i11 * b1 + i12 * b2, i02 * b0 + i12 * b1 + i22 * b2


@compiled
def _advance_wheels(
    run: Run, wheels: Any, yaw_rate: float, acceleration: tuple[float, float, float]
) -> tuple[float, float]:
    """Advance spins, angles and rates by a step; return the rate of the horizontal momentum of body and wheels."""
    ax, ay, az = acceleration
    dt, square = run.dt, yaw_rate * yaw_rate
    momentum_x = run.product_xz * az - run.product_yz * square
    momentum_y = run.product_yz * az + run.product_xz * square
    for i in range(len(wheels)):
        wheel = wheels[i]
        c, s, spin, rate = wheel.dir_x, wheel.dir_y, wheel.spin, yaw_rate
        axle_x, axle_y = ax - az * wheel.axis_y, ay + az * wheel.axis_x
        push = wheel.gain_1 * (axle_x * c + axle_y * s) + wheel.bias_1
        answer = wheel.drive + wheel.rolled_per_inertia * push
        wheel.spin = spin + dt * answer
        if wheel.steers != 0.0:
            swinging = wheel.rate
            rate += swinging
            push = wheel.gain_2 * (axle_y * c - axle_x * s) + wheel.bias_2
            later = swinging + dt * (wheel.steer + wheel.trail_per_inertia * push - az)
            wheel.angle += 0.5 * dt * (swinging + later)
            wheel.rate = later
        inertia, wobble = wheel.spin_inertia, spin * rate
        momentum_x -= inertia * (answer * wheel.head_y + wobble * wheel.head_x)
        momentum_y += inertia * (answer * wheel.head_x - wobble * wheel.head_y)
    return momentum_x, momentum_y


@compiled
def advance(
    record: Numbers,
    plate: Numbers,
    steps: int,
    drive: Numbers,
    steer: Numbers,
    reaction: Numbers,
    run: Run,
    wheels: Any,
) -> None:
    """Fill rows 1 to `steps` of the record from row 0; equations as in `WheeledBase.equations`.

    Args:
        record: (steps + 1 rows) pose (3), twist (3), moments of the load about the centre of mass (2), wheel speeds
            (n), steering angles (n), steering rates (n).
        plate: (steps + 1 rows) output: height at the centre of mass and slopes of the plate that shares the weight.
        steps: their number.
        drive: (steps rows of n) torques over J_W [rad/s2].
        steer: (steps rows of n) steering torques over J_C [rad/s2].
        reaction: (steps,) sum of the steering torques [N m].
        run: parameters of the run.
        wheels: (n,) of `WHEEL`, with their initial directions; changed.
    """
    dt, cx, cy, n = run.dt, run.cx, run.cy, len(wheels)
    lean, weight = run.height * run.mass, run.mass * run.gravity
    p00 = p01 = p02 = p11 = p12 = p22 = 0.0
    size = 8 + 3 * n
    for i in range(n):
        wheels[i].spin, wheels[i].angle, wheels[i].rate = record[8 + i], record[8 + n + i], record[8 + 2 * n + i]
    cos_yaw, sin_yaw = cos(record[2]), sin(record[2])
    for k in range(steps + 1):
        now, new = k * size, (k + 1) * size
        vx, vy, yaw_rate = record[now + 3], record[now + 4], record[now + 5]
        square = yaw_rate * yaw_rate

        # Directions of the wheels that steer; the plate on springs that shares the weight.
        for i in range(n):
            wheel = wheels[i]
            if wheel.steers != 0.0:
                angle = wheel.mount + wheel.angle
                c, s = cos(angle), sin(angle)
                wheel.head_x = wheel.dir_x = c
                wheel.head_y = wheel.dir_y = s
        if k == 0 or run.swings:
            p00, p01, p02, p11, p12, p22 = _compliance(run, wheels)
        load_x, load_y = record[now + 6], record[now + 7]
        l0 = p00 * weight + p01 * load_x + p02 * load_y
        lx = p01 * weight + p11 * load_x + p12 * load_y
        ly = p02 * weight + p12 * load_x + p22 * load_y
        lowest = l0
        for i in range(n):
            lowest = min(lowest, l0 + lx * wheels[i].point_x + ly * wheels[i].point_y)
        if lowest < 0.0:
            l0, lx, ly = plate_with_lifted_wheels(weight, load_x, load_y, wheels)
        plate[3 * k] = l0
        plate[3 * k + 1] = lx
        plate[3 * k + 2] = ly
        if k == steps:
            break

        for i in range(n):
            wheels[i].drive, wheels[i].steer = drive[k * n + i], steer[k * n + i]
        ax, ay, az = _accelerate_body(run, wheels, (vx, vy, yaw_rate), (l0, lx, ly), reaction[k])
        momentum_x, momentum_y = _advance_wheels(run, wheels, yaw_rate, (ax, ay, az))
        for i in range(n):
            wheel, at = wheels[i], new + 8 + i
            record[at], record[at + n], record[at + 2 * n] = wheel.spin, wheel.angle, wheel.rate
        record[new + 6] = lean * (square * cx - ax + az * cy) - momentum_y
        record[new + 7] = lean * (square * cy - ay - az * cx) + momentum_x

        # The velocity is transformed by the fixed frame: turning the axes must not change its magnitude.
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
def has_gained(record: Numbers, steps: int, drive: Numbers, steer: Numbers, run: Run, wheels: Any) -> bool:
    """True if a row has over four times the initial kinetic energy plus the work put in, or no finite energy.

    Friction only dissipates energy, so this detects runs of `advance` with too long steps; arguments as there.
    """
    n, dt = len(wheels), run.dt
    mass, yaw_inertia, cx, cy = run.mass, run.yaw_inertia, run.cx, run.cy
    put_in = 0.0
    for k in range(steps + 1):
        now = k * (8 + 3 * n)
        spins, rates = now + 8, now + 8 + 2 * n
        vx, vy, yaw_rate = record[now + 3], record[now + 4], record[now + 5]
        doubled = mass * (vx * vx + vy * vy + 2.0 * yaw_rate * (vy * cx - vx * cy)) + yaw_inertia * yaw_rate * yaw_rate
        for i in range(n):
            wheel, spin, turn = wheels[i], record[spins + i], yaw_rate + record[rates + i]
            doubled += wheel.spin_inertia * spin * spin + wheel.steers * wheel.steering_inertia * turn * turn
            if k > 0:
                command = (k - 1) * n + i
                work = abs(drive[command] * wheel.spin_inertia * spin)
                work += abs(steer[command] * wheel.steering_inertia * record[rates + i])
                put_in += 2.0 * dt * work
        if k == 0:
            put_in = doubled
        elif not doubled <= _GAIN * put_in or doubled == inf:
            return True
    return False
