"""Dynamics of the mecanum base under Coulomb and viscous friction (system 35), in small exact-response steps."""

from __future__ import annotations

from math import cos, exp, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics import mecanum_dynamics
from youbot_dynamics.dynamics.mecanum_dynamics import accelerate, friction_forces
from youbot_dynamics.simulation.truth import BaseTruth

Vector = NDArray[np.float64]

STEP = 1e-3  # [s] of simulated time

# Layout of the state vector.
POSE = slice(0, 3)  # x, y, yaw in the world [m, m, rad]
TWIST = slice(3, 6)  # body twist [m/s, m/s, rad/s]
REFERENCE = slice(6, 9)  # first-order answer of the motor loop to the delayed command
LAGGING = slice(9, 12)  # integral of reference - twist [m, m, rad]
WHEELS = slice(12, 16)  # wheel angles [rad], positive forward
NOISE = slice(16, 20)  # wandering torque of the rolling wheels: rollers, joints between them, floor [N m]
STATE_SIZE = 20

_BUMP_ANGLE = 0.3  # correlation of the wandering torque over the turn of the wheel [rad]: a third of a roller pitch


def effective_inertia(truth: BaseTruth) -> Vector:
    """Mass matrix (3, 3) felt by the motors of this robot; see `mecanum_dynamics.effective_inertia` (D-003-10)."""
    return mecanum_dynamics.effective_inertia(truth.mecanum(), truth.mass, truth.yaw_inertia, truth.wheel_inertia)


@compiled
def advance(
    state: Vector,
    commands: Vector,
    normals: Vector,
    dt: float,
    inertia: Vector,
    wheels_of_twist: Vector,
    positions: Vector,
    mass: float,
    lag: float,
    torque_noise: float,
    wheel_coulomb: float,
    roller_coulomb: float,
    viscous: Vector,
    powered: bool,
) -> None:
    """Advance the base in place by len(commands) steps of `dt`.

    The motor loop answers a command exactly to first order (time constant `lag`) and holds the answer against
    friction with a PI law of the same bandwidth:
    F = M dVr/dt + M/lag (Vr - V) + M/(4 lag^2) int (Vr - V), with M the effective inertia.
    The base answers with M dV/dt = F - friction + m Omega (V_T, -V_L), `mecanum_dynamics.accelerate` with the centre of
    mass over the centre of the base (the real one lies 35 mm ahead: 0.9 % of the yaw inertia); its friction is
    `mecanum_dynamics.friction_forces` (D-003-9) with a torque that wanders as the wheels turn.

    Args:
        state: (20,) as laid out above; changed in place.
        commands: (k, 3) delayed twist command, mean over each step [m/s, m/s, rad/s].
        normals: (k, 4) standard normal numbers that drive the wandering torque.
        dt: step [s].
        inertia: (3, 3) effective inertia.
        wheels_of_twist: (4, 3) matrix J from twist to wheel speeds.
        positions: (4, 2) wheel centres [m].
        mass: of the whole robot [kg].
        lag: time constant of the motor loop [s].
        torque_noise: standard deviation of the wandering torque [N m]; it acts on rolling wheels only.
        wheel_coulomb: F1 [N m].
        roller_coulomb: F2 / r [N].
        viscous: (2,) xi_L, xi_T [N s/m].
        powered: False lets the base coast.
    """
    inverse_inertia = np.zeros((3, 3))
    inverse_inertia[:] = np.linalg.inv(inertia)
    decay = exp(-dt / lag)
    force = np.zeros(3)
    friction = np.zeros(3)
    gap = np.zeros(3)
    slope = np.zeros(3)
    gain = np.zeros(3)
    roller_gains = np.full(4, sqrt(2.0))
    for k in range(commands.shape[0]):
        vx, vy, wz = state[3], state[4], state[5]
        for i in range(4):
            speed = wheels_of_twist[i, 0] * vx + wheels_of_twist[i, 1] * vy + wheels_of_twist[i, 2] * wz
            memory = exp(-abs(speed) * dt / _BUMP_ANGLE)
            state[16 + i] = memory * state[16 + i] + torque_noise * sqrt(1.0 - memory * memory) * normals[k, i]
        friction_forces(
            vx,
            vy,
            wz,
            wheels_of_twist,
            positions,
            roller_gains,
            wheel_coulomb,
            roller_coulomb,
            viscous,
            state[16:20],
            friction,
        )
        force[:] = 0.0
        if powered:
            for axis in range(3):
                answer = commands[k, axis] + (state[6 + axis] - commands[k, axis]) * decay
                slope[axis] = (answer - state[6 + axis]) / dt
                gap[axis] = state[6 + axis] - state[3 + axis]
                state[6 + axis] = answer
            for row in range(3):
                for axis in range(3):
                    force[row] += inertia[row, axis] * (
                        slope[axis] + gap[axis] / lag + state[9 + axis] / (4.0 * lag * lag)
                    )
            for axis in range(3):
                state[9 + axis] += gap[axis] * dt
        accelerate(vx, vy, wz, inverse_inertia, mass, 0.0, 0.0, force, friction, gain)
        for axis in range(3):
            state[3 + axis] += dt * gain[axis]
        if not powered:
            for axis in range(3):
                state[6 + axis] = state[3 + axis]
                state[9 + axis] = 0.0
        # Mean twist over the step, so that a position lags its speed by nothing, then the exact arc on SE(2).
        mx, my, mw = 0.5 * (vx + state[3]), 0.5 * (vy + state[4]), 0.5 * (wz + state[5])
        middle = state[2] + 0.5 * mw * dt
        chord = 1.0 - (mw * dt) ** 2 / 24.0
        state[0] += dt * chord * (mx * cos(middle) - my * sin(middle))
        state[1] += dt * chord * (mx * sin(middle) + my * cos(middle))
        state[2] += dt * mw
        for i in range(4):
            state[12 + i] += dt * (wheels_of_twist[i, 0] * mx + wheels_of_twist[i, 1] * my + wheels_of_twist[i, 2] * mw)
