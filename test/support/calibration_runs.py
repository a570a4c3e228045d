"""Drives of plants with drawn geometry under a tracker with noise, a lever arm and a clock of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from friction_runs import PERIOD, ROBOT, STRAIGHT, TURNING, multi_sine, stairs
from kept import kept
from scipy.signal import lfilter

from youbot_dynamics.identification.calibration import Calibration, CalibrationSignals, calibrate
from youbot_dynamics.identification.calibration._fit import WHEELS
from youbot_dynamics.identification.calibration._poses import calibration_signals
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

BASE = ROBOT.base.geometry.mecanum()
LEGS = stairs(60.0, STRAIGHT + TURNING)  # twists (k, 3), one a period: straight, turning, and mixtures


@dataclass(frozen=True)
class Tracker:
    """What sees the robot: a body at `sensor` on it, with noise [m, rad], at `rate` [Hz], stamped `late` [s]."""

    sensor: tuple[float, float, float] = (0.0, 0.0, 0.0)
    place_noise: float = 0.001
    yaw_noise: float = 0.005
    rate: float = 100.0
    late: float = 0.0


@dataclass
class TrackedRun:
    wheel_time: np.ndarray
    angles: np.ndarray
    pose_time: np.ndarray
    poses: np.ndarray

    def signals(self, recording: int = 0) -> CalibrationSignals:
        return calibration_signals(self.wheel_time, self.angles, self.pose_time, self.poses, recording)


def drawn_tracker(seed: int) -> Tracker:
    random = np.random.default_rng([seed, 11])
    x, y = random.uniform(-0.2, 0.2, 2)
    return Tracker((x, y, random.uniform(-3.0, 3.0)), late=random.uniform(-0.1, 0.1))


@kept
def drawn_run(seed: int, tracker: Tracker, duration: float = 60.0, twists: np.ndarray | None = None) -> TrackedRun:
    """Drive the twin of a seed, its geometry drawn, and track it."""
    plant = BasePlant(load_truth(seed), ROBOT.driver, seed)
    asked = multi_sine(duration, seed) if twists is None else twists
    return track(plant, asked, seed, tracker)


def track(plant: BasePlant, twists: np.ndarray, seed: int, tracker: Tracker) -> TrackedRun:
    """Send twists (k, 3), one a period; read the wheels once a period and the tracker at its rate."""
    random = np.random.default_rng([seed, 12])
    commands = twists @ BASE.inverse_matrix.T @ ROBOT.driver.mecanum().forward_matrix.T
    phase = PERIOD * random.random()
    events: list[tuple[float, int, Callable[[], None]]] = []
    stamps, angles, times, places = [], [], [], []

    def read() -> None:
        reading = plant.read()
        stamps.append(reading.stamp)
        angles.append(reading.position * np.array(ROBOT.driver.position_sign))

    def look() -> None:
        times.append(plant.time + tracker.late)
        places.append(plant.pose)

    for k, command in enumerate(commands):
        events.append((k * PERIOD, 0, lambda command=command: plant.command_twist(command)))
        events.append((k * PERIOD + phase, 1, read))
    events += [(k / tracker.rate, 2, look) for k in range(int(len(twists) * PERIOD * tracker.rate))]
    for time, _, act in sorted(events, key=lambda event: event[:2]):
        plant.advance(time)
        act()
    robot, (x, y, yaw) = np.array(places), tracker.sensor
    c, s = np.cos(robot[:, 2]), np.sin(robot[:, 2])
    poses = robot + np.column_stack([c * x - s * y, s * x + c * y, np.full(len(robot), yaw)])
    seen = poses + random.normal(size=(len(poses), 3)) * [
        tracker.place_noise,
        tracker.place_noise,
        tracker.yaw_noise,
    ]
    return TrackedRun(np.array(stamps), np.array(angles), np.array(times), seen)


def foreign_robot(seed: int) -> tuple[BaseTruth, Tracker, int, float]:
    """A robot that is built otherwise than ours: its truth, its tracker, readings between two states, quantum [rad].

    Speed loops range from soft to stiff, radii differ by up to 2 %.
    """
    random = np.random.default_rng([seed, 77])
    unequal = random.uniform(-0.01, 0.01, 4)
    truth = dataclasses.replace(
        load_truth(seed),
        wheel_radius_error=tuple((unequal - np.mean(unequal)).tolist()),
        servo_gain=0.0 if random.random() < 0.25 else float(np.exp(random.uniform(np.log(0.3), np.log(30.0)))),
        servo_reset=0.0 if random.random() < 0.5 else float(random.uniform(0.05, 0.4)),
        wheel_coulomb=float(random.uniform(0.02, 0.2)),
    )
    place = (*random.uniform(-0.2, 0.2, 2).tolist(), float(random.uniform(-3.0, 3.0)))
    tracker = Tracker(place, yaw_noise=0.003, late=float(random.uniform(-0.1, 0.1)))
    return truth, tracker, int(random.choice([1, 2, 5])), float(random.choice([1e-9, 0.001, 0.01]))


def foreign_drive(seed: int, twists: np.ndarray) -> CalibrationSignals:
    """What a tracker and the wheels of a `foreign_robot` show of twists (k, 3), one a period."""
    truth, tracker, every, quantum = foreign_robot(seed)
    run = track(BasePlant(truth, ROBOT.driver, seed), twists, seed, tracker)
    angles = quantum * np.round(run.angles[::every] / quantum)
    return dataclasses.replace(run, wheel_time=run.wheel_time[::every], angles=angles).signals()


def errands(duration: float, seed: int, axes: tuple[float, float, float] = (0.3, 0.3, 0.8)) -> np.ndarray:
    """Twists (k, 3), one a period: some seconds along one axis or all, up to speeds `axes`, or at rest, and so on."""
    random = np.random.default_rng([seed, 16])
    ways = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0]])
    twists = np.zeros((round(duration / PERIOD), 3))
    begin = 0
    while begin < len(twists):
        end = begin + int(random.uniform(2.0, 6.0) / PERIOD)
        twists[begin:end] = random.choice(ways) * random.uniform(-1.0, 1.0, 3) * axes
        begin = end
    kept = np.exp(-PERIOD / 0.3)
    return np.asarray(lfilter([1.0 - kept], [1.0, -kept], twists, axis=0))


def localised(poses: np.ndarray, period: float, noise: tuple[float, float], seed: int) -> np.ndarray:
    """Poses (k, 3), one a period [s], as a localisation sees them, with noise [m, rad].

    Half of its variance wanders with a time constant of 2 s. Up to three times it jumps by some 0.3 m for up to 8 s.
    """
    random = np.random.default_rng([seed, 13])
    kept = np.exp(-period / 2.0)
    wander = lfilter([np.sqrt(1.0 - kept**2)], [1.0, -kept], random.normal(size=poses.shape), axis=0)
    seen = poses + (random.normal(size=poses.shape) + wander) / np.sqrt(2.0) * (noise[0], noise[0], noise[1])
    for _ in range(random.integers(0, 4)):
        first = random.integers(0, len(poses))
        seen[first : first + random.integers(1, max(2, int(8.0 / period)))] += random.normal(size=3) * (0.3, 0.3, 0.2)
    return seen


def held(
    true: MecanumBase, twists: np.ndarray, stiffness: float = 1.0, weights: np.ndarray | None = None
) -> CalibrationSignals:
    """Signals, without noise, of wheels whose speed loops hold a command of equal wheels against the floor.

    Of what unequal radii demand, the share `stiffness` is slip, the rest makes the wheels turn differently; the base
    moves as the wheels do on the mean, with `weights` (n,). Twists (k, 3) are held for 20 ms each.
    """
    n = len(true.radii)
    equal = dataclasses.replace(true, radii=np.full(n, np.mean(true.radii)))
    rolling = true.inverse_matrix @ true.forward_matrix
    rows = np.sqrt(np.ones(n) if weights is None else weights)[:, None] * true.inverse_matrix
    moves = np.linalg.pinv(rows) * np.sqrt(np.ones(n) if weights is None else weights)
    speeds = (twists @ equal.inverse_matrix.T) @ (rolling + stiffness * (np.eye(n) - rolling)).T
    poses = [np.zeros(3)]
    for twist in speeds @ moves.T:
        poses.append(planar.integrate(poses[-1], twist, PERIOD))
    angles = np.vstack([np.zeros(n), np.cumsum(PERIOD * speeds, axis=0)])
    time = PERIOD * np.arange(len(poses))
    return CalibrationSignals(time, angles, time + 0.013, np.array(poses))


def true_values(truth: BaseTruth, tracker: Tracker) -> dict[str, float]:
    radii = truth.wheel_radii()
    named = {f"wheel_radius_{wheel}": radius for wheel, radius in zip(WHEELS, radii.tolist(), strict=True)}
    errors = (radii / np.mean(radii) - 1.0).tolist()
    named |= {f"wheel_radius_error_{wheel}": error for wheel, error in zip(WHEELS, errors, strict=True)}
    return {
        "wheel_radius": float(np.mean(radii)),
        "lever": truth.half_length / truth.lateral_factor + truth.half_width,
        "lateral_factor": truth.lateral_factor,
        "sensor_x": tracker.sensor[0],
        "sensor_y": tracker.sensor[1],
        "sensor_yaw": tracker.sensor[2],
        "time_offset": tracker.late,
        **named,
    }


def calibrated(seed: int, duration: float = 60.0, base: MecanumBase = BASE) -> tuple[Calibration, dict[str, float]]:
    tracker = drawn_tracker(seed)
    found = calibrate([drawn_run(seed, tracker, duration).signals()], base)
    return found, true_values(load_truth(seed), tracker)
