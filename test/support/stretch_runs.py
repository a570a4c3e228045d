"""A simulated base that is driven stretch after stretch, and what it publishes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from acceptance_bags import (
    PERIOD,
    POSE_NOISE,
    BaseRun,
    Row,
    drawn_base,
    truths_of_delay,
    truths_of_geometry,
)
from stage_bags import BASE, ROBOT, WHEELS, nanoseconds, write_rows

from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.until_narrow import Wished, look
from youbot_dynamics.recording.message_types import JOINT_STATE, ODOMETRY, joint_state_cdr, odometry_cdr
from youbot_dynamics.simulation.base import BasePlant

PAUSE = 3.0  # [s] between stretches: the player waits for the tracker


class StretchRun:
    """The base of one seed on its way, and the messages of all stretches so far."""

    def __init__(self, seed: int, folder: Path, poses: bool = True) -> None:
        self._truth = drawn_base(seed)
        self._base = BasePlant(self._truth, ROBOT.driver, seed)
        self._plain = BasePlant(self._truth.without_noise(), ROBOT.driver, seed)  # for the true delays
        self._twists: list[np.ndarray] = []
        self._angles: list[np.ndarray] = []
        self._random = np.random.default_rng([seed, 2])
        self._phase = PERIOD * float(self._random.random())
        self._folder, self._poses = folder, poses
        self._rows: list[Row] = []
        self._ticks = self._bags = 0
        self.stretches: list[Program] = []
        self.poses: list[np.ndarray] = []  # true poses (3,) [m, m, rad]

    @property
    def time(self) -> float:
        """Time so far, with the pauses [s]."""
        return self._ticks * PERIOD

    def drive(self, program: Program) -> bool:
        """Send the twists of a program, and zeros in the pause after it."""
        self.stretches.append(program)
        for twist in np.vstack([program.twists, np.zeros((round(PAUSE / PERIOD), 3))]):
            self._tick(twist)
        return True

    def _tick(self, twist: np.ndarray) -> None:
        sent, base = self._ticks * PERIOD, self._base
        base.advance(sent)
        speeds = BASE.wheel_speeds(twist)
        base.command_twist(ROBOT.driver.mecanum().twist(speeds))
        self._add(sent, "/wheel_commands", JOINT_STATE, joint_state_cdr(nanoseconds(sent), WHEELS, velocity=speeds))
        self._plain.advance(sent)
        self._plain.command_twist(ROBOT.driver.mecanum().twist(speeds))
        self._plain.advance(sent + self._phase)
        self._twists.append(twist)
        self._angles.append(self._plain.wheel_angles)
        base.advance(sent + self._phase)
        read = base.read()
        state = joint_state_cdr(nanoseconds(read.stamp), WHEELS, read.position, read.velocity)
        self._add(read.stamp, "/driver/joint_states", JOINT_STATE, state)
        self.poses.append(base.pose)
        if self._poses:
            at, seen = sent + self._phase, base.pose + POSE_NOISE * self._random.standard_normal(3)
            pose = odometry_cdr(nanoseconds(at), "odom", "base_footprint", seen, base.twist)
            self._add(at, "/ground_truth", ODOMETRY, pose)
        self._ticks += 1

    def _add(self, *row: object) -> None:
        self._rows.append(row)  # type: ignore[arg-type]

    def truths(self) -> dict[str, float]:
        """Geometry of this robot, and the delays that it has in the motion so far."""
        times = PERIOD * np.arange(self._ticks) + self._phase
        run = BaseRun([], times, np.array(self._angles))
        return truths_of_geometry(self._truth) | truths_of_delay(run, np.array(self._twists))

    def bag(self) -> Path:
        """Recording of all so far."""
        self._bags += 1
        return write_rows(self._folder / f"until_{self._bags}", self._rows)

    def seeing(self, wished: Sequence[Wished]) -> Callable[[], Sequence[Wished]]:
        """What its recording shows of the wished values, when it is called."""
        return lambda: look(self.bag(), ROBOT, wished, Options())
