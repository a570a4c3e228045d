"""Bases that are nothing but a dead time and a lag: drawn at random, with the signals that their wheels show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.identification.delay import DelayEstimate, estimate_delay
from youbot_dynamics.identification.response import Response, identify_response
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.robot import Robot

FASTEST = (0.4, 0.35, 0.9)  # commands [m/s, m/s, rad/s]


@dataclass(frozen=True)
class DelayAndLag:
    """A base of which each wheel follows its command after a dead time, through a lag."""

    seed: int
    dead_time: float  # [s]
    lag: float  # [s], 0 for none
    rate: float  # of the wheel states [1/s]
    command_rate: float  # [1/s]
    quantum: float  # of the wheel angles [rad]
    steepest: tuple[float, ...] = (1.0, 1.0, 2.5)  # acceleration of the commands [m/s2, m/s2, rad/s2]
    lag_in_yaw: float | None = None  # [s], if it is another one
    scatter: float = 0.0  # standard deviation of its speed over what it should be, for half a second each


def drawn(seed: int) -> DelayAndLag:
    """One of many mixtures: a third of the bases has no lag, a third a short one.

    A quarter is sent jumps at the rate of its readings: between two of them a short lag is over.
    """
    random = np.random.default_rng([seed, 60])
    lag = (0.0, float(random.uniform(0.0, 0.03)), float(random.uniform(0.03, 0.15)))[seed % 3]
    rate, commands = random.uniform(10.0, 50.0), random.choice([20.0, 30.0, 50.0])
    in_step = seed % 4 == 0
    return DelayAndLag(
        seed,
        float(random.uniform(0.03, 0.2)),
        lag,
        float(commands if in_step else rate),
        float(commands),
        float(random.uniform(3e-4, 3e-3)),
        (100.0, 100.0, 100.0) if in_step else (1.0, 1.0, 2.5),
    )


def signals_of(base: DelayAndLag, robot: Robot, duration: float = 40.0) -> tuple[np.ndarray, ...]:
    """Times (c,) and twists (c, 3) of the commands, stamps (m,) and body positions (m, 3) by the wheels, of a drive."""
    random = np.random.default_rng([base.seed, 61])
    sent = np.arange(0.0, duration, 1.0 / base.command_rate)
    twists = np.column_stack([ramps(random, sent, *limits) for limits in zip(FASTEST, base.steepest, strict=True)])
    stamps = np.arange(random.uniform(0.0, 1.0 / base.rate), duration - 0.1, 1.0 / base.rate)
    geometry = robot.base.geometry.mecanum()
    moved = followed(sent + base.dead_time, twists, base.lag, stamps)
    if base.lag_in_yaw is not None:
        moved[:, 2] = followed(sent + base.dead_time, twists, base.lag_in_yaw, stamps)[:, 2]
    kept, factors = np.exp(-1.0 / (0.5 * base.rate)), np.ones(len(stamps))
    for k, drawn_ in enumerate(random.normal(size=len(stamps))):
        before = factors[k - 1] - 1.0 if k else 0.0
        factors[k] = 1.0 + kept * before + base.scatter * np.sqrt(1.0 - kept**2) * drawn_
    moved = np.cumsum(np.diff(moved, axis=0, prepend=0.0) * factors[:, None], axis=0)
    angles = moved @ geometry.inverse_matrix.T
    return sent, twists, stamps, base.quantum * np.round(angles / base.quantum) @ geometry.forward_matrix.T


def followed(acting: np.ndarray, speeds: np.ndarray, lag: float, stamps: np.ndarray) -> np.ndarray:
    """Exact positions (m, k) at `stamps` (m,) of a lag under speeds (c, k) that act from times (c,) on, from rest."""
    speed, positions, speeds_before = np.zeros(speeds.shape[1]), np.zeros(speeds.shape), np.zeros(speeds.shape)
    for k in range(len(acting) - 1):
        held = acting[k + 1] - acting[k]
        kept = np.exp(-held / lag) if lag > 0.0 else 0.0
        speeds_before[k], away = speed, speed - speeds[k]
        positions[k + 1] = positions[k] + held * speeds[k] + lag * away * (1.0 - kept)
        speed = speeds[k] + away * kept
    speeds_before[-1] = speed
    place = np.maximum(np.searchsorted(acting, stamps, side="right") - 1, 0)
    elapsed = np.maximum(stamps - acting[place], 0.0)[:, None]
    faded = 1.0 - np.exp(-elapsed / lag) if lag > 0.0 else 1.0
    return positions[place] + elapsed * speeds[place] + lag * (speeds_before - speeds)[place] * faded


def ramps(random: np.random.Generator, sent: np.ndarray, fastest: float, steepest: float) -> np.ndarray:
    """Speeds (c,) at times (c,): every 0.5 to 1.6 s a ramp to another one, at rest in the first and last seconds."""
    goals, speed, column, until, goal = sent[-1] - 3.0, 0.0, np.zeros(len(sent)), 2.0, 0.0
    for k, now in enumerate(sent):
        if now >= until:
            goal, until = random.uniform(-fastest, fastest) * (random.random() > 0.15), now + random.uniform(0.5, 1.6)
        step = steepest * (now - sent[k - 1] if k else 0.0)
        speed += np.clip((goal if now < goals else 0.0) - speed, -step, step)
        column[k] = speed
    return column


def delays_of(base: DelayAndLag, robot: Robot, duration: float = 40.0) -> tuple[DelayEstimate, ...]:
    """Effective delay, dead time and lag of x, y, yaw, by a drive of a duration [s]."""
    sent, twists, stamps, moved = signals_of(base, robot, duration)
    geometry = robot.base.geometry.mecanum()
    friction = np.tanh(twists @ geometry.inverse_matrix.T / 0.1) @ geometry.inverse_matrix
    channels = ("x", "y", "yaw")
    return estimate_delay(
        sent, twists, stamps, moved, model="fopdt", measured_is="position", channels=channels, friction=friction
    )


def response_of(base: DelayAndLag, robot: Robot) -> Response:
    """Response, searched from the true effective delays."""
    sent, twists, stamps, moved = signals_of(base, robot)
    drive = DriveSignals(sent, twists, stamps, rolled_path(moved))
    return identify_response([drive], robot.base.dynamics(), np.full(3, base.dead_time + base.lag))
