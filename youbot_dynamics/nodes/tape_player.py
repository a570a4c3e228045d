"""Drives the legs of a calibration with a tape measure, and asks for the reading after each."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rclpy

from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import InputError, RecordingError
from youbot_dynamics.identification.calibration import TapeLeg, read_distance, read_turn, standstill, tape_program
from youbot_dynamics.nodes._listening import listen_joints
from youbot_dynamics.nodes._player import play_once, unusable_wheels
from youbot_dynamics.nodes._runtime import DRIVER_QOS, parse
from youbot_dynamics.nodes.processes import StopFlag
from youbot_dynamics.nodes.program_player import GivenUpError, ProgramPlayer

# Standstill before and after a leg [s], by its readings, and how long to wait for it [s]: a busy machine loses
# messages, and DDS repeats them after up to 3 s. A leg whose begin or end is missing would look shorter than it was.
_STANDSTILL, _TIMEOUT = (0.5, 1.0), 10.0
_LEAST_TRAVEL = 1.0  # [rad] that a wheel turns at least in a leg
_MARKS = {
    "forward": "Mark the floor below the middle of the front edge of the base",
    "sideways": "Mark the floor below the middle of the left edge of the base",
    "turn": "Mark the floor along the front edge of the base",
}
_QUESTIONS = {
    "forward": "Distance from that mark to the same point now, such as 1.512, 151.2 cm or 59.53 in: ",
    "sideways": "Distance from that mark to the same point now, such as 1.512, 151.2 cm or 59.53 in: ",
    "turn": "Full turns to the left, and the degrees beyond them from the mark to the front edge now, such as 3 -4.5: ",
}


class TapePlayer(ProgramPlayer):
    """Plays one leg after the other.

    Args:
        plan: kind and length [m] or [rad] of each leg.
        errors: kind -> standard error of its reading [m] or [rad].
    """

    def __init__(self, plan: Sequence[tuple[str, float]], errors: dict[str, float]) -> None:
        super().__init__()
        self.legs: list[TapeLeg] = []
        self._plan, self._errors = plan, errors
        self._times: list[float] = []
        self._angles: list[np.ndarray] = []
        driver = self.config.robot().driver
        self._joints, self._signs = driver.wheel_joints, np.array(driver.position_sign)
        listen_joints(self, "driver/joint_states", self._on_joints, DRIVER_QOS)

    def _on_joints(self, stamp: float, names: tuple[str, ...], position: Sequence[float], *_: Sequence[float]) -> None:
        if set(self._joints) <= set(names) and len(position) == len(names):
            angles = np.array([position[names.index(joint)] for joint in self._joints]) * self._signs
            if np.all(np.isfinite(angles)):
                self._times.append(time.monotonic())
                self._angles.append(angles)

    def _standstill(self, duration: float, least_travel: float, flag: StopFlag) -> bool:
        """Wait until the wheels stand for a duration [s] by their last readings; False if a signal came first.

        One of them must have turned by `least_travel` [rad] before.

        Raises:
            RecordingError: no state of the wheels, or wheels that do not come to rest, or did not turn.
        """

        def travel() -> float:
            return float(np.ptp(self._angles, axis=0).max()) if self._angles else 0.0

        def stand() -> bool:
            return standstill(np.array(self._times), np.array(self._angles)) >= duration and travel() >= least_travel

        if self.wait(stand, _TIMEOUT, flag) or flag.set:
            return not flag.set
        moved = "wheels that do not come to rest" if travel() >= least_travel else "wheels that did not turn"
        raise self._unusable(moved)

    def _unusable(self, moved: str = "") -> RecordingError:
        """Error for wheels that moved in a wrong way, or whose positions did not arrive."""
        return unusable_wheels(self, moved if self._angles else "")

    def motion(self, given: argparse.Namespace) -> Any:
        """Programs of the legs, each with its kind."""
        base = self.config.robot().base
        return [(kind, tape_program(kind, amount, base)) for kind, amount in self._plan]

    def play(self, motion: Any, flag: StopFlag) -> bool:
        """Play each leg and take its reading, again where it was given up; False if a signal came first.

        Raises:
            RecordingError: as `_standstill`, or the input has ended.
            TrajectoryError: as for a program, but for one that was given up.
        """
        # Before anybody is asked to mark the floor.
        if not self.wait(lambda: bool(self._angles), _TIMEOUT, flag):
            if flag.set:
                return False
            raise self._unusable()
        while len(self.legs) < len(motion):
            kind, program = motion[len(self.legs)]
            begin = f"Leg {len(self.legs) + 1} of {len(motion)}, {kind}. {_MARKS[kind]}, then press Enter: "
            if self._ask(begin, flag, _enter) is None:
                return False
            try:
                angles = self._drive(program, flag)
            except GivenUpError as problem:
                self.cancel()  # where only the word of it was lost, the base drives on
                print(f"{problem}\nThis leg does not count: drive it again.", file=sys.stderr)
                continue
            if angles is None:
                return False
            reading = self._ask(_QUESTIONS[kind], flag, read_turn if kind == "turn" else read_distance)
            if reading is None:
                return False
            self.legs.append(TapeLeg(kind, angles, reading, self._errors[kind]))
        return True

    def _drive(self, program: Program, flag: StopFlag) -> np.ndarray | None:
        """Drive one leg; angles of the wheels (n, 4) [rad] from standstill to standstill, None if a signal came first.

        Raises:
            RecordingError: as `_standstill`.
            TrajectoryError: as for a program; GivenUpError among them.
        """
        self._times.clear()
        self._angles.clear()
        if not self._standstill(_STANDSTILL[0], 0.0, flag):
            return None
        del self._times[:-1], self._angles[:-1]  # the base may have been pushed to its mark
        self._last_error = float("-inf")  # else the last leg would count as one that is being followed
        if not super().play(program, flag) or not self._standstill(_STANDSTILL[1], _LEAST_TRAVEL, flag):
            return None
        return np.array(self._angles)

    def _ask(self, question: str, flag: StopFlag, parse_answer: Callable[[str], float]) -> float | None:
        """Ask the operator until the answer can be parsed; None if a signal came first.

        Raises:
            RecordingError: the input has ended.
        """
        while not flag.set:
            print(question, end="", file=sys.stderr, flush=True)
            while not flag.set and not select.select([sys.stdin], [], [], 0.0)[0]:
                rclpy.spin_once(self, timeout_sec=0.05)
            if flag.set:
                break
            line = _read_line()
            try:
                return parse_answer(line)
            except InputError as problem:
                print(f"not understood: {problem}", file=sys.stderr)
        return None


def _read_line() -> str:
    """Read one line of the input, unbuffered: the next one must stay visible to `select`."""
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := os.read(sys.stdin.fileno(), 1)):
            raise RecordingError("answer", got="the end of the input", expected="a line", remedy="use a terminal")
        line += byte
    return line.decode(errors="replace")


def _enter(line: str) -> float:
    """Nothing but Enter: an answer to another question must not start the base."""
    if line.strip():
        raise InputError("answer", got=line.strip(), expected="Enter alone: the reading is asked for after the drive")
    return 0.0


def drive_legs(
    plan: Sequence[tuple[str, float]], errors: dict[str, float], ros_arguments: Sequence[str]
) -> tuple[list[TapeLeg], int]:
    """Drive a plan on the running robot: the finished legs with their readings, and the exit code of `play_once`.

    `plan` and `errors` as in `TapePlayer`; `ros_arguments` of the command line, from --ros-args on.
    """
    players: list[TapePlayer] = []

    def make() -> TapePlayer:
        players.append(TapePlayer(plan, errors))
        return players[0]

    code = play_once(make, parse(argparse.ArgumentParser(prog="calibrate"), ros_arguments))
    return players[0].legs if players else [], code
