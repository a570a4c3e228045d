"""Keiser's recording of a real youBot arm, the model of an arm with its friction, and a test of whiteness."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from arm_runs import SHEETS
from numpy.typing import NDArray
from repository import DATA
from scipy.optimize import nnls
from scipy.signal import butter, filtfilt

from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.lugre import LuGre

Array = NDArray[np.float64]

STEP = 0.002  # [s]
SIGNS = np.array([1.0, 1.0, -1.0, 1.0, 1.0])  # the driver turns joint 3 round, but not its effort
EFFORT_LATE = 2  # rows by which the efforts come behind the positions: found with the tuning
# One tuning for all joints, found by search on this recording. The joints twist: near 27 Hz, where the robot vibrates
# all the time, links and rotors move against each other with torques of the size of the load that no rigid arm has.
TRAVEL = 0.0327  # [rad] of the bristles


class Recording(NamedTuple):
    """Positions [rad], driver's speeds, reference speeds [rad/s] and efforts [N m], each (t, 5); times (t,) [s]."""

    time: Array
    position: Array
    velocity: Array
    reference: Array
    effort: Array


def smooth(values: Array, cutoff: float) -> Array:
    """Zero-phase Butterworth low-pass of 4th order, cutoff in Hz."""
    return np.asarray(filtfilt(*butter(4, 2.0 * cutoff * STEP), values, axis=0))


def keiser_recording() -> Recording:
    position, velocity, effort = (
        np.loadtxt(DATA / "youbot_arm_keiser" / f"{name}.txt") for name in ("act_pos", "act_vel", "ef_tor")
    )
    reference = smooth(np.gradient(position, STEP, axis=0), 40.0)
    effort = np.vstack([effort[EFFORT_LATE:], np.repeat(effort[-1:], EFFORT_LATE, axis=0)]) * SIGNS
    return Recording(STEP * np.arange(len(position)), position, velocity, reference, effort)


def keiser_arm(keiser: Recording) -> ArmModel:
    """The arm of the sheets with this robot's friction: its Coulomb and viscous torques, 0.5 to 3 times the sheets'."""
    acceleration = smooth(np.gradient(keiser.reference, STEP, axis=0), 10.0)
    rows = range(0, len(keiser.time), 10)
    rigid = np.array(
        [SHEETS.tree.inverse_dynamics(keiser.position[k], keiser.reference[k], acceleration[k]) for k in rows]
    )
    frictions = list(SHEETS.friction)
    for joint in range(4):
        speed = keiser.reference[::10, joint]
        columns = np.column_stack([rigid[:, joint], np.tanh(speed / 0.01), speed])
        _, coulomb, viscous = nnls(columns, keiser.effort[::10, joint])[0]
        sheet, sigma0 = SHEETS.friction[joint], coulomb / TRAVEL
        frictions[joint] = LuGre(coulomb, viscous, sigma0, sheet.sigma1 * np.sqrt(sigma0 / sheet.sigma0))
    return dataclasses.replace(SHEETS, friction=tuple(frictions))


def ljung_box(values: Array, lags: int = 20) -> tuple[float, Array]:
    """Q and the first three autocorrelations."""
    x = values - values.mean()
    r = np.array([np.sum(x[k:] * x[:-k]) for k in range(1, lags + 1)]) / np.sum(x * x)
    n = len(x)
    return float(n * (n + 2) * np.sum(r**2 / (n - np.arange(1, lags + 1)))), r[:3]
