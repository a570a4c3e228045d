"""Drives of bodies without wheel states, at 20 Hz with speeds in steps of 0.01: the twin, and plants of other kinds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from effective_delay import effective_delay
from kept import kept
from stage_bags import nanoseconds, write_rows

from youbot_dynamics.identification.least_squares import Estimate
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
    poses: np.ndarray  # (m, 3), exact
    delays: np.ndarray  # (3,) true effective delays [s]
    gains: np.ndarray  # (3,) true gains


def ramps(seed: int, duration: float = 60.0, period: float = PERIOD) -> np.ndarray:
    """Twists (n, 3) that ramp to random speeds, all axes at once."""
    random, steps = np.random.default_rng([seed, 7]), round(duration / period)
    twists = np.zeros((steps, 3))
    for axis, (fastest, steepest) in enumerate(zip(FASTEST, _STEEPEST, strict=True)):
        speed, goal, left = 0.0, 0.0, 0
        for k in range(steps):
            if left <= 0:
                goal, left = random.uniform(-fastest, fastest), int(random.uniform(0.2, 0.8) / period)
            speed += np.clip(goal - speed, -steepest * period, steepest * period)
            twists[k, axis], left = speed, left - 1
    return twists


def steps(seed: int, fastest: float, duration: float = 60.0) -> np.ndarray:
    """Speeds (n,) in steps up to `fastest`."""
    random, speeds = np.random.default_rng([seed, 9]), []
    while len(speeds) * PERIOD < duration:
        speeds += [random.uniform(-fastest, fastest)] * int(random.uniform(0.6, 2.0) / PERIOD)
    return np.array(speeds[: round(duration / PERIOD)])


def quantised(speeds: np.ndarray, quantum: float = QUANTUM) -> np.ndarray:
    return np.round(speeds / quantum) * quantum


@kept
def twin_drive(seed: int, twists: np.ndarray, period: float = PERIOD) -> Drive:
    """The twin of a seed under twists of a period; the truth is what maps them onto its noise-free motion."""
    robot = load_robot()
    truth = load_truth(seed).with_geometry(robot.base.geometry)
    twists = np.vstack([twists, np.zeros((round(_REST / period), 3))])
    sent = np.arange(len(twists)) * period
    phase = PERIOD * float(np.random.default_rng([seed, 2]).random())
    readings = phase + PERIOD * np.arange(round(len(sent) * period / PERIOD))
    plant, fine = BasePlant(truth, robot.driver, seed), BasePlant(truth.without_noise(), robot.driver, seed)
    speeds, stamps, poses, motion = [], [], [], []
    for time, twist in zip(sent.tolist(), twists, strict=True):
        for one in (plant, fine):
            one.advance(time)
            one.command_twist(twist)
        for reading in readings[(readings >= time) & (readings < time + period)].tolist():
            plant.advance(reading)
            stamps.append(plant.time)
            speeds.append(plant.twist)
            poses.append(plant.pose)
        for k in range(5):
            fine.advance(time + 0.2 * k * period)
            motion.append(fine.twist)
    at = 0.2 * period * np.arange(len(motion))
    steps = 0.1 * period * (np.array(motion[1:]) + np.array(motion[:-1]))
    path = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    delays = np.array([effective_delay(sent, twists[:, k], at, path[:, k]) for k in range(3)])
    gains = np.array([_gain(sent, twists[:, k], at, path[:, k], delays[k]) for k in range(3)])
    return Drive(sent, twists, np.array(stamps), quantised(np.array(speeds)), np.array(poses), delays, gains)


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
    servo: float = 0.0  # natural frequency of a servo with a damping of 0.8, instead of the lags [rad/s]
    overshoots: bool = False  # whether it is a PI servo; else its feedback alone is proportional
    acceleration: float = np.inf  # largest [m/s2]
    braking: float = 1.0  # largest deceleration, as a multiple of it
    fastest: float = np.inf  # largest speed that the axis follows [m/s]
    band: float = 0.0  # commands up to this size have no effect
    loss: float = 0.0  # speed that friction takes
    loss_back: float | None = None  # the same backward, if it is another
    noise: float = 0.0
    lost: float = 0.0  # share of lost readings
    rate: float = 1.0 / PERIOD  # of the readings [1/s]
    quantum: float = QUANTUM
    jitter: float = 0.0  # standard deviation of stamps, which come late [s]
    means: bool = False  # whether a reading is the mean speed since the one before

    @property
    def delay(self) -> float:
        """First moment of the response to an impulse beyond the dead band."""
        late = self.jitter * np.sqrt(2.0 / np.pi) + (0.5 / self.rate if self.means else 0.0)
        servo = 0.0 if self.overshoots else 1.6 / max(self.servo, 1e-9)
        return self.dead_time + late + (servo if self.servo else self.lag + self.second_lag)

    @property
    def silent(self) -> float:
        """Largest command without effect."""
        return max(self.band, self.loss, self.loss_back or 0.0)

    def settled(self, command: np.ndarray) -> np.ndarray:
        size, loss = np.abs(command), np.where(command < 0.0, self.loss_back or self.loss, self.loss)
        return np.where(size > np.maximum(self.band, loss), np.sign(command) * self.gain * (size - loss), 0.0)

    def drive(self, command: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times of the commands, stamps and quantised speeds of the readings."""
        random, step = np.random.default_rng([seed, 5]), 1e-3
        sent = PERIOD * np.arange(len(command))
        time = np.arange(0.0, sent[-1], step)
        before = np.searchsorted(sent, time - self.dead_time, side="right") - 1
        goals = np.clip(self.settled(np.where(before >= 0, command[before], 0.0)), -self.fastest, self.fastest)
        speeds, first, second, summed = np.zeros(len(time)), 0.0, 0.0, 0.0
        for k, goal in enumerate(goals.tolist()):
            speeds[k] = second
            if self.servo:
                push = summed + 1.6 * self.servo * ((goal if self.overshoots else 0.0) - second)
                summed += step * self.servo**2 * (goal - second)
                second += step * push
            else:
                most = self.acceleration * (self.braking if (goal - first) * first < 0.0 else 1.0)
                rate = min(max((goal - first) / self.lag, -most), most)
                second += step * ((first - second) / self.second_lag if self.second_lag else rate)
                first += step * rate
        period = 1.0 / self.rate
        stamps = np.arange(period * (1.0 + random.random()), time[-1], period)
        stamps = stamps[random.random(len(stamps)) >= self.lost]
        read = np.interp(stamps, time, speeds)
        if self.means:
            path = step * np.append(0.0, np.cumsum(0.5 * (speeds[1:] + speeds[:-1])))
            read = (np.interp(stamps, time, path) - np.interp(stamps - period, time, path)) / period
        read += random.normal(0.0, self.noise, len(stamps))
        late = np.abs(random.normal(0.0, self.jitter, len(stamps))) if self.jitter else 0.0
        return sent, np.maximum.accumulate(stamps + late), quantised(read, self.quantum)


KINDS = ("two_lags", "servo", "acceleration", "friction", "dead_band", "noise", "lost", "slow_servo", "overshoot")


def any_plant(seed: int) -> Plant:
    """A plant of any kind, with readings of any rate, quantum and jitter."""
    random = np.random.default_rng([seed, 20])
    plant = drawn_plant(KINDS[seed % len(KINDS)], seed)
    losses = random.uniform(0.001, 0.02, 2).tolist() if random.random() < 0.3 else (plant.loss, None)
    return dataclasses.replace(
        plant,
        loss=losses[0],
        loss_back=losses[1],
        rate=random.choice([10.0, 20.0, 30.0, 50.0]),
        quantum=random.choice([0.001, 0.005, 0.01, 0.02]),
        jitter=random.choice([0.0, 0.002, 0.006]),
        means=bool(random.integers(2)),
    )


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
        "slow_servo": {"servo": random.uniform(4.0, 8.0)},
        "overshoot": {"servo": random.uniform(8.0, 30.0), "overshoots": True, "dead_time": random.uniform(0.1, 0.3)},
    }
    return dataclasses.replace(plant, **changes[kind])


def gain_of(plant: Plant, command: np.ndarray) -> float:
    """Motion over command, where it moves."""
    return float(plant.settled(command) @ command / np.sum(command[np.abs(command) > plant.silent] ** 2))


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether the interval of an estimate contains the truth."""
    return estimate.interval[0] <= truth <= estimate.interval[1]


def body_bag(folder: Path, drive: Drive) -> Path:
    """A bag with cmd_vel and odom, and no wheel states; as of a driver that stamps its odometry."""
    rows = [(time, "/cmd_vel", TWIST, twist_cdr(u)) for time, u in zip(drive.sent.tolist(), drive.twists, strict=True)]
    for stamp, speed, pose in zip(drive.stamps.tolist(), drive.speeds, drive.poses, strict=True):
        cdr = odometry_cdr(nanoseconds(stamp), "odom", "base_link", pose, speed)
        rows.append((stamp + 0.002, "/odom", ODOMETRY, cdr))
    return write_rows(folder, rows)


def body_log(path: Path, drive: Drive, motion: np.ndarray, names: Sequence[str]) -> str:
    """A text log with a motion (m, 3) of a drive, one row for each message, and its columns."""
    lacking = [np.nan] * 3
    lines = [(time, *twist, *lacking) for time, twist in zip(drive.sent.tolist(), drive.twists.tolist(), strict=True)]
    lines += [(time, *lacking, *row) for time, row in zip(drive.stamps.tolist(), motion.tolist(), strict=True)]
    np.savetxt(path, np.array(sorted(lines)), delimiter=",", fmt="%.9f")
    return ",".join(["time,command.x,command.y,command.yaw", *names])
