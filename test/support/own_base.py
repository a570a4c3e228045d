"""A newcomer's own simulator of a mecanum base: a dead time, a lag, gains, another geometry than its robot file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from delay_and_lag import followed, ramps
from stage_bags import Row, TypedRow, nanoseconds, write_rows

from youbot_dynamics.recording.message_types import ODOMETRY, TWIST, joint_state_cdr, odometry_cdr, twist_cdr
from youbot_dynamics.robot import load_robot

WHEELS = ("front_left", "front_right", "back_left", "back_right")
# What the owner wrote: radius and lever are 2 and 1 % smaller than those of the base.
FILE = f"""\
/**:
  ros__parameters:
    robot:
      robot_id: own_base
      base: {{geometry: {{wheel_radius: 0.06, half_length: 0.23, half_width: 0.20, lateral_factor: 1.0}}}}
      driver: {{wheel_joints: [{", ".join(WHEELS)}]}}
"""
_RADIUS, _HALF_LENGTH = 0.0612, 0.235  # [m] of the base


@dataclass(frozen=True)
class OwnBase:
    """The base, and what it reports."""

    seed: int
    dead_time: float = 0.12  # [s]
    lag: float = 0.06  # [s], 0 for none
    gains: tuple[float, float, float] = (0.96, 0.98, 1.0)  # motion over command of x, y, yaw
    rate: float = 50.0  # of its readings [1/s]
    quantum: float = 0.0  # of the wheel angles [rad], 0 for exact ones
    wheel_states: bool = True
    differences: bool = False  # whether its speeds are differences of positions, else instantaneous
    ahead: float = 0.0  # of the clock of its stamps before that of the recorder [s]
    drift: float = 0.0  # how much faster this clock runs [1]
    lags: int = 1  # equal ones in series
    bursts: float = 0.0  # [s] between those in which its readings reach the recorder and are stamped; 0 for none

    def write(self, folder: Path, duration: float = 60.0) -> tuple[Path, Path]:
        """The robot file, and a bag of a drive with cmd_vel at 50 Hz, odom and, if it has them, wheel states."""
        (file := folder / "own_base.yaml").write_text(FILE)
        believed = load_robot(robot_file=file).base.geometry
        to_wheels = replace(believed, wheel_radius=_RADIUS, half_length=_HALF_LENGTH).mecanum().inverse_matrix.T
        random = np.random.default_rng([self.seed, 62])
        sent = np.arange(0.0, duration, 0.02)
        limits = zip((0.4, 0.35, 0.9), (2.0, 2.0, 5.0), strict=True)
        twists = np.column_stack([ramps(random, sent, *limit) for limit in limits])
        stamps = np.arange(random.uniform(0.0, 1.0 / self.rate), duration - 0.1, 1.0 / self.rate)
        # In the frame of the base: sums of its steps, which its wheels show.
        acted, speeds = sent + self.dead_time, twists * self.gains
        for _ in range(self.lags - 1):
            fine = np.arange(acted[0], acted[-1], 1e-3)
            speeds = np.diff(followed(acted, speeds, self.lag, fine), axis=0) / 1e-3
            acted = fine[:-1] + 0.5e-3  # each speed is a mean over a step that was held over the step before
        moved = followed(acted, speeds, self.lag, stamps)
        step = 1.0 / self.rate if self.differences else 1e-6
        before = followed(acted, speeds, self.lag, stamps - step)
        speeds = (moved - before) / step
        rows: list[Row | TypedRow] = [
            (time, "/cmd_vel", TWIST, twist_cdr(twist)) for time, twist in zip(sent.tolist(), twists, strict=True)
        ]
        heading = moved[:, 2]
        steps = np.diff(moved[:, :2], axis=0, prepend=0.0)
        c, s = np.cos(heading), np.sin(heading)
        path = np.cumsum(
            np.column_stack([c * steps[:, 0] - s * steps[:, 1], s * steps[:, 0] + c * steps[:, 1]]), axis=0
        )
        if self.bursts:
            each = np.ceil(stamps / self.bursts)
            stamps = self.bursts * each + 2e-4 * (np.arange(len(stamps)) - np.searchsorted(each, each))
        for time, place, turn, speed in zip(stamps.tolist(), path, heading, speeds, strict=True):
            cdr = odometry_cdr(
                nanoseconds(time * (1.0 + self.drift) + self.ahead), "odom", "base_link", (*place, turn), speed
            )
            rows.append((time, "/odom", ODOMETRY, cdr))
        if self.wheel_states:
            angles = moved @ to_wheels
            if self.quantum:
                angles = self.quantum * np.round(angles / self.quantum)
            for time, row, speed in zip(stamps.tolist(), angles, speeds @ to_wheels, strict=True):
                rows.append(
                    (
                        time,
                        "/joint_states",
                        joint_state_cdr(nanoseconds(time * (1.0 + self.drift) + self.ahead), WHEELS, row, speed),
                    )
                )
        return file, write_rows(folder / f"drive_{self.seed}", rows, robot_id="")
