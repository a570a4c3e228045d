"""Motion programs of the lab: lines `Vx Vy Omega`, each held for one time step (seed 003, system 28)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.files import read_text
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot_base import Base

Vector = NDArray[np.float64]

LARGEST = 5_000_000  # [bytes] of a program file
_SHORTEST_HOLD, _LONGEST_HOLD = 1e-3, 60.0  # [s]


@dataclass(frozen=True, eq=False)
class Program:
    """Body twists, each held for `dt`.

    Args:
        name: what it is called in messages and reports.
        twists: (n, 3) [m/s, m/s, rad/s].
        dt: time each line is held [s].
        time_scale: how many times slower than written this already is [1].
    """

    name: str
    twists: Vector
    dt: float
    time_scale: float = 1.0

    @property
    def duration(self) -> float:
        """Length [s]."""
        return len(self.twists) * self.dt

    def trajectory(self) -> Trajectory:
        """Poses reached by the held twists from the origin: exact on SE(2), not the lab's Euler sum."""
        poses: list[Vector] = [np.zeros(3)]
        for twist in self.twists:
            poses.append(planar.integrate(poses[-1], twist, self.dt))
        return Trajectory(np.arange(len(poses), dtype=float) * self.dt, np.array(poses))

    def scaled(self, time_scale: float) -> Program:
        """Same path in `time_scale` times the time: every line is held longer and driven slower."""
        return Program(self.name, self.twists / time_scale, self.dt * time_scale, self.time_scale * time_scale)

    def check(self, base: Base) -> None:
        """Refuse a program that the base cannot follow.

        Raises:
            ProgramError: names the line, the wheel speed or acceleration it needs, and the time scale that fits.
        """
        limits = base.limits
        wheel = np.abs(self.twists @ base.geometry.mecanum().inverse_matrix.T).max(axis=1)
        steps = np.diff(np.vstack([np.zeros(3), self.twists, np.zeros(3)]), axis=0) / self.dt
        linear = np.hypot(steps[:, 0], steps[:, 1])
        angular = np.abs(steps[:, 2])
        needs = (
            ("a wheel speed", wheel, limits.wheel_speed, "rad/s", 1.0),
            ("an acceleration", linear, limits.acceleration, "m/s2", 0.5),
            ("an angular acceleration", angular, limits.angular_acceleration, "rad/s2", 0.5),
        )
        slower = max(float((values.max() / limit) ** power) for _, values, limit, _, power in needs)
        for what, values, limit, unit, _ in needs:
            line = int(np.argmax(values))
            if values[line] > limit * (1.0 + 1e-9):
                raise ProgramError(
                    f"program {self.name}, line {min(line + 1, len(self.twists))}",
                    got=f"{what} of {values[line]:.3g} {unit}",
                    expected=f"at most {limit:g} {unit}",
                    remedy=f"drive it slower with --time-scale {np.ceil(self.time_scale * slower * 100.0) / 100.0:.4g}",
                )


def read_program(path: Path | str, dt: float, limit: int = LARGEST) -> Program:
    """Read a program file; empty lines and lines that begin with # are skipped.

    Args:
        path: text file, three numbers a line: Vx Vy Omega [m/s, m/s, rad/s].
        dt: time each line is held [s].
        limit: most bytes the file may have, before `files.scaled`.

    Raises:
        ProgramError: missing file, one beyond the limit, no lines, or a line that is not three finite numbers.
    """
    if not _SHORTEST_HOLD <= dt <= _LONGEST_HOLD:
        raise ProgramError("--dt", got=f"{dt:g} s", expected=f"{_SHORTEST_HOLD:g} to {_LONGEST_HOLD:g} s")
    text = read_text(path, ProgramError, f"program {path}", "a text file with lines Vx Vy Omega", limit)
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].split()
        if not content:
            continue
        try:
            row = [float(word) for word in content]
        except ValueError:
            row = []
        if len(row) != 3 or not np.all(np.isfinite(row)):
            raise ProgramError(
                f"program {path}, line {number}",
                got=repr(line.strip()[:60]),
                expected="three numbers: Vx Vy Omega",
            )
        rows.append(row)
    if not rows:
        raise ProgramError(f"program {path}", got="no lines", expected="lines Vx Vy Omega, one a time step")
    return Program(Path(path).stem, np.array(rows), dt)
