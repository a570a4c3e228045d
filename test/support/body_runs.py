"""Drives of bodies without wheel states, at 20 Hz with speeds in steps of 0.01: the twin, and plants of other kinds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
from effective_delay import effective_delay
from stage_bags import nanoseconds, write_rows

from youbot_dynamics.recording.message_types import ODOMETRY, TWIST, odometry_cdr, twist_cdr
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import load_truth

PERIOD = 0.05
QUANTUM = 0.01
FASTEST = (0.3, 0.3, 0.6)
_STEEPEST = (0.7, 0.7, 1.8)
_REST = 2.0


class Drive(NamedTuple):
    """Commands and what odometry says of the body, with the truth."""

    sent: np.ndarray
    twists: np.ndarray  # (n, 3)
    stamps: np.ndarray
    speeds: np.ndarray  # (m, 3), quantised
    delays: np.ndarray  # (3,) true effective delays [s]
    gains: np.ndarray  # (3,) true gains


def ramps(seed: int, duration: float = 60.0) -> np.ndarray:
    """Twists (n, 3) that ramp to random speeds, all axes at once."""
    random, steps = np.random.default_rng([seed, 7]), round(duration / PERIOD)
    twists = np.zeros((steps, 3))
    for axis, (fastest, steepest) in enumerate(zip(FASTEST, _STEEPEST, strict=True)):
        speed, goal, left = 0.0, 0.0, 0
        for k in range(steps):
            if left <= 0:
                goal, left = random.uniform(-fastest, fastest), int(random.uniform(0.2, 0.8) / PERIOD)
            speed += np.clip(goal - speed, -steepest * PERIOD, steepest * PERIOD)
            twists[k, axis], left = speed, left - 1
    return twists


def quantised(speeds: np.ndarray) -> np.ndarray:
    return np.round(speeds / QUANTUM) * QUANTUM


def twin_drive(seed: int, twists: np.ndarray, phase: float | None = None) -> Drive:
    """The twin of a seed under these twists; the truth is what maps them onto its noise-free motion."""
    robot = load_robot()
    truth = load_truth(seed).with_geometry(robot.base.geometry)
    twists = np.vstack([twists, np.zeros((round(_REST / PERIOD), 3))])
    sent = np.arange(len(twists)) * PERIOD
    phase = PERIOD * float(np.random.default_rng([seed, 2]).random()) if phase is None else phase
    plant, fine = BasePlant(truth, robot.driver, seed), BasePlant(truth.without_noise(), robot.driver, seed)
    speeds, stamps, motion = [], [], []
    for time, twist in zip(sent.tolist(), twists, strict=True):
        for one in (plant, fine):
            one.advance(time)
            one.command_twist(twist)
        plant.advance(time + phase)
        stamps.append(plant.time)
        speeds.append(plant.twist)
        for k in range(5):
            fine.advance(time + 0.2 * k * PERIOD)
            motion.append(fine.twist)
    at = 0.2 * PERIOD * np.arange(len(motion))
    steps = 0.1 * PERIOD * (np.array(motion[1:]) + np.array(motion[:-1]))
    path = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    delays = np.array([effective_delay(sent, twists[:, k], at, path[:, k]) for k in range(3)])
    gains = np.array([_gain(sent, twists[:, k], at, path[:, k], delays[k]) for k in range(3)])
    return Drive(sent, twists, np.array(stamps), quantised(np.array(speeds)), delays, gains)


def _gain(sent: np.ndarray, command: np.ndarray, time: np.ndarray, path: np.ndarray, delay: float) -> float:
    """Noise-free displacement over 3 s over that of the delayed command, by least squares."""
    corners = np.concatenate([[0.0], np.cumsum(np.diff(sent) * command[:-1])])
    wished = np.interp(time - delay, sent, corners)  # linear between the samples, as a held command is
    span = round(3.0 / (time[1] - time[0]))
    asked, moved = wished[span:] - wished[:-span], path[span:] - path[:-span]
    return float(asked @ moved / (asked @ asked))


@dataclasses.dataclass(frozen=True)
class Plant:
    """One axis that is none of the fitted models: more lags, a servo, a limited acceleration, friction, noise, losses.

    Simulated in steps of 1 ms, by Euler's method.
    """

    gain: float = 1.0
    dead_time: float = 0.1
    lag: float = 0.05
    second_lag: float = 0.0
    servo: float = 0.0  # natural frequency of a PI servo with a damping of 0.8, instead of the lags [rad/s]
    acceleration: float = np.inf  # largest [m/s2]
    band: float = 0.0  # commands up to this size have no effect
    loss: float = 0.0  # speed that friction takes
    noise: float = 0.0
    lost: float = 0.0  # share of lost readings

    @property
    def delay(self) -> float:
        """First moment of the response to an impulse beyond the dead band."""
        return self.dead_time + (1.6 / self.servo if self.servo else self.lag + self.second_lag)

    def settled(self, command: np.ndarray) -> np.ndarray:
        size = np.abs(command)
        return np.where(size > max(self.band, self.loss), np.sign(command) * self.gain * (size - self.loss), 0.0)

    def drive(self, command: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times of the commands, stamps and quantised speeds of the readings."""
        random, step = np.random.default_rng([seed, 5]), 1e-3
        sent = PERIOD * np.arange(len(command))
        time = np.arange(0.0, sent[-1], step)
        before = np.searchsorted(sent, time - self.dead_time, side="right") - 1
        goals = self.settled(np.where(before >= 0, command[before], 0.0))
        speeds, first, second, summed = np.zeros(len(time)), 0.0, 0.0, 0.0
        for k, goal in enumerate(goals.tolist()):
            if self.servo:
                summed += step * self.servo**2 * (goal - second)
                second += step * (summed - 1.6 * self.servo * second)
            else:
                rate = (goal - first) / self.lag
                first += step * min(max(rate, -self.acceleration), self.acceleration)
                second = second + step * (first - second) / self.second_lag if self.second_lag else first
            speeds[k] = second
        stamps = np.arange(PERIOD * random.random(), time[-1], PERIOD)
        stamps = stamps[random.random(len(stamps)) >= self.lost]
        read = np.interp(stamps, time, speeds) + random.normal(0.0, self.noise, len(stamps))
        return sent, stamps, quantised(read)


KINDS = ("two_lags", "servo", "acceleration", "friction", "dead_band", "noise", "lost")


def drawn_plant(kind: str, seed: int) -> Plant:
    random = np.random.default_rng([seed, KINDS.index(kind)])
    plant = Plant(random.uniform(0.85, 1.1), random.uniform(0.03, 0.3), random.uniform(0.02, 0.2))
    changes = {
        "two_lags": {"second_lag": random.uniform(0.01, 0.1)},
        "servo": {"servo": random.uniform(8.0, 30.0)},
        "acceleration": {"acceleration": random.uniform(1.0, 2.5)},
        "friction": {"loss": random.uniform(0.0, 0.02)},
        "dead_band": {"band": random.uniform(0.02, 0.05)},
        "noise": {"noise": 0.01},
        "lost": {"lost": 0.1},
    }
    return dataclasses.replace(plant, **changes[kind])


def body_bag(folder: Path, drive: Drive) -> Path:
    """A bag with cmd_vel and odom, and no wheel states; as of a driver that stamps its odometry."""
    rows = [(time, "/cmd_vel", TWIST, twist_cdr(u)) for time, u in zip(drive.sent.tolist(), drive.twists, strict=True)]
    for stamp, speed in zip(drive.stamps.tolist(), drive.speeds, strict=True):
        cdr = odometry_cdr(nanoseconds(stamp), "odom", "base_link", np.zeros(3), speed)
        rows.append((stamp + 0.002, "/odom", ODOMETRY, cdr))
    return write_rows(folder, rows)
