"""The arm's filter as a user would write it: numpy with Pinocchio, and filterpy with a Jacobian from differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from youbot_dynamics.dynamics.arm import ArmBody
from youbot_dynamics.estimation.arm_ekf._model import BENDING, DRIVE, READING, SWING

Array = NDArray[np.float64]

_STEPS = np.repeat([1e-6, 1e-6, 1e-8], 5)  # of the differences: positions, speeds, bristles


class NumpyArm:
    """The implicit step of the arm, friction in numpy, rigid bodies by Pinocchio.

    Args:
        model: Pinocchio's.
        body: constants of the arm.
        joints: constants of the filter.
        jitter: of the stamps [s].
    """

    def __init__(self, model: Any, body: ArmBody, joints: Array, jitter: float) -> None:
        self.model, self.data = model, model.createData()
        self.rotors = body.joints[:, 10].copy()
        self.coulomb, self.viscous, self.sigma0, self.sigma1 = body.joints[:, :4].T.copy()
        self.reach = self.coulomb / self.sigma0
        self.joints = joints
        self.jitter = jitter

    def friction(self, z: Array, v: Array, after: Array, dt: float) -> tuple[Array, ...]:
        """Bristle after a step, its slopes over z, v, v+, mean torque and its slopes; a reversal is split."""
        turning = v * after < 0.0
        to_zero = np.where(turning, dt * v / np.where(turning, v - after, 1.0), dt)
        before = np.where(turning, 0.5 * v * to_zero, 0.5 * (v + after) * dt)
        z1, left1 = self._slide(z, before)
        then = np.where(turning, 0.5 * after * (dt - to_zero), 0.0)
        z2, left2 = self._slide(z1, then)
        sign1, sign2 = np.sign(before), np.sign(then)
        slope1 = left1 * (1.0 - sign1 * z / self.reach)
        slope2 = np.where(turning, left2 * (1.0 - sign2 * z1 / self.reach), 0.0)
        share = to_zero / dt
        by_start = np.where(turning, share * (1.0 - 0.5 * share), 0.5) * dt
        by_end = np.where(turning, 0.5 * share**2, 0.5) * dt
        then_start = 0.5 * (1.0 - share) ** 2 * dt
        then_end = 0.5 * (1.0 - share) * (1.0 + share) * dt
        over_z = left1 * np.where(turning, left2, 1.0)
        over_start = np.where(turning, left2 * slope1 * by_start + slope2 * then_start, slope1 * by_start)
        over_end = np.where(turning, left2 * slope1 * by_end + slope2 * then_end, slope1 * by_end)
        stiff = 0.5 * self.sigma0 + self.sigma1 / dt
        torque = 0.5 * self.sigma0 * (z + z2) + self.sigma1 * (z2 - z) / dt + 0.5 * self.viscous * (v + after)
        torque_z = 0.5 * self.sigma0 - self.sigma1 / dt + stiff * over_z
        return (
            z2,
            over_z,
            over_start,
            over_end,
            torque,
            torque_z,
            stiff * over_start + 0.5 * self.viscous,
            stiff * over_end + 0.5 * self.viscous,
        )

    def _slide(self, z: Array, displacement: Array) -> tuple[Array, Array]:
        left = np.exp(-np.abs(displacement) / self.reach)
        end = np.sign(displacement) * self.reach
        return end + (z - end) * left, left

    def step(self, x: Array, a: Array, torque: Array, dt: float, slopes: bool) -> tuple[Array, Array, Any]:
        """State (15,), accelerations and, where wanted, what its Jacobian needs."""
        q, v, z = x[:5], x[5:10], x[10:]
        middle = q + 0.5 * dt * v
        for _ in range(8):
            parts = self.friction(z, v, v + dt * a, dt)
            stiffness = dt * parts[7]
            self.model.armature = self.rotors + stiffness
            load = torque - parts[4] + stiffness * a
            found = pin.aba(self.model, self.data, middle, v + 0.5 * dt * a, load)
            change = np.abs(found - a).max() * dt
            a = np.array(found)
            if change < 1e-6:
                break
        parts = self.friction(z, v, v + dt * a, dt)
        moved = np.concatenate([q + dt * (v + 0.5 * dt * a), v + dt * a, parts[0]])
        if not slopes:
            return moved, a, None
        stiffness = dt * parts[7]
        self.model.armature = self.rotors + stiffness
        load = torque - parts[4] + stiffness * a
        pin.computeABADerivatives(self.model, self.data, middle, v + 0.5 * dt * a, load)
        by_q, by_v, inverse = self.data.ddq_dq, self.data.ddq_dv, np.array(self.data.Minv)
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        rows = np.hstack([by_q, 0.5 * dt * by_q + by_v - inverse * (parts[6] + parts[7]), -inverse * parts[5], inverse])
        return moved, a, (np.linalg.solve(np.eye(5) - 0.5 * dt * by_v, rows), parts)

    def jacobian(self, found: Any, dt: float) -> tuple[Array, Array]:
        """Jacobian (15, 15) of the step, and that over the torque (15, 5)."""
        over, parts = found
        f = np.zeros((15, 20))
        f[:5, :5] = f[5:10, 5:10] = np.eye(5)
        f[:5, 5:10] = dt * np.eye(5)
        f[:5] += 0.5 * dt * dt * over
        f[5:10] += dt * over
        f[10:] = parts[3][:, None] * f[5:10]
        f[10:, 5:10] += np.diag(parts[2])
        f[10:, 10:15] += np.diag(parts[1])
        return f[:, :15], f[:, 15:]

    def noise(self, change: Array) -> Array:
        """Variances of the torque (5,)."""
        return np.asarray(self.joints[DRIVE] + (self.joints[SWING] * change) ** 2)

    def wandering(self, x: Array, p: Array, dt: float) -> Array:
        """Variances (15,) that a step adds."""
        doubt = np.exp(-np.minimum(x[5:10] ** 2 / (18.0 * np.diag(p)[5:10]), 700.0))
        added = (doubt + 1e-6) * self.joints[BENDING]
        return np.concatenate([np.full(5, 1e-14), np.full(5, 1e-10), added]) * dt

    def reading_noise(self, v: Array) -> Array:
        """Covariance (5, 5) of a message's positions."""
        return np.asarray(np.diag(self.joints[READING]) + self.jitter**2 * np.outer(v, v))


def numpy_filter(
    arm: NumpyArm, stamps: Array, positions: Array, efforts: Array, mean: Array, covariance: Array
) -> Array:
    """Filter a log by numpy and Pinocchio's analytic derivatives; the means (t, 15), the first as given."""
    x, p, a = mean.copy(), covariance.copy(), np.zeros(5)
    h, out = np.eye(5, 15), np.empty((len(stamps), 15))
    out[0] = x
    for t in range(1, len(stamps)):
        dt = stamps[t] - stamps[t - 1]
        x, a, found = arm.step(x, a, 0.5 * (efforts[t] + efforts[t - 1]), dt, True)
        f, g = arm.jacobian(found, dt)
        p = f @ p @ f.T + (g * arm.noise(efforts[t] - efforts[t - 1])) @ g.T
        p[np.diag_indices(15)] += arm.wandering(x, p, dt)
        noise = arm.reading_noise(x[5:10])
        gain = np.linalg.solve(p[:5, :5] + noise, p[:5]).T
        x = x + gain @ (positions[t] - x[:5])
        rest = np.eye(15) - gain @ h
        p = rest @ p @ rest.T + gain @ noise @ gain.T
        x[10:] = np.clip(x[10:], -arm.reach, arm.reach)
        out[t] = x
    return out


def filterpy_filter(
    arm: NumpyArm, stamps: Array, positions: Array, efforts: Array, mean: Array, covariance: Array
) -> Array:
    """Filter a log by filterpy with a Jacobian from central differences; the means (t, 15)."""
    from filterpy.kalman import ExtendedKalmanFilter

    ekf = ExtendedKalmanFilter(15, 5)
    ekf.x, ekf.P = mean.copy(), covariance.copy()
    a, h, out = np.zeros(5), np.eye(5, 15), np.empty((len(stamps), 15))
    out[0] = ekf.x
    for t in range(1, len(stamps)):
        dt = stamps[t] - stamps[t - 1]
        torque = 0.5 * (efforts[t] + efforts[t - 1])
        columns, before = [], ekf.x.copy()
        for k in range(15):
            change = np.zeros(15)
            change[k] = _STEPS[k]
            up, down = (arm.step(before + sign * change, a, torque, dt, False)[0] for sign in (1.0, -1.0))
            columns.append((up - down) / (2.0 * _STEPS[k]))
        ekf.x, a, found = arm.step(before, a, torque, dt, True)
        _, g = arm.jacobian(found, dt)
        ekf.F = np.column_stack(columns)
        ekf.P = ekf.F @ ekf.P @ ekf.F.T + (g * arm.noise(efforts[t] - efforts[t - 1])) @ g.T
        ekf.P[np.diag_indices(15)] += arm.wandering(ekf.x, ekf.P, dt)
        ekf.R = arm.reading_noise(ekf.x[5:10])
        ekf.update(positions[t], lambda _: h, lambda x: x[:5])
        ekf.x[10:] = np.clip(ekf.x[10:], -arm.reach, arm.reach)
        out[t] = ekf.x
    return out
