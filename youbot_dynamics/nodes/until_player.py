"""Drives stretch after stretch of excitation until wished values are known narrowly enough, see `until_narrow`."""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from youbot_dynamics import __version__
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.until_narrow import (
    Bounds,
    Next,
    Plan,
    Wished,
    check_signals,
    drive_until,
    read_wish,
)
from youbot_dynamics.nodes._player import play_once, start_first, unusable_wheels
from youbot_dynamics.nodes._runtime import parse
from youbot_dynamics.nodes._topic_recorder import TopicRecorder
from youbot_dynamics.nodes.processes import StopFlag
from youbot_dynamics.nodes.program_player import ProgramPlayer
from youbot_dynamics.recording.bag import POSE_TYPES
from youbot_dynamics.recording.mcap_writer import BagWriter, TopicQos
from youbot_dynamics.recording.message_types import JOINT_TYPES, ODOMETRY, TWIST, TWIST_STAMPED
from youbot_dynamics.robot import Robot

_Result = TypeVar("_Result")
Look = Callable[[Path, Robot, Sequence[Wished], Options], Sequence[Wished]]
_KINDS = {*JOINT_TYPES, TWIST, TWIST_STAMPED, *POSE_TYPES}  # of topics that are recorded
_ANYWHERE = {*POSE_TYPES} - {ODOMETRY}  # poses, which a tracking system publishes outside of the robot's namespace
_HEARD, _TIMEOUT = 2.0, 10.0  # [s] for which the robot is heard at rest before it moves, and how long to wait for it


class UntilPlayer(ProgramPlayer):
    """Drives stretches, records them in the bag `out`, and fits them between the stretches."""

    def __init__(self, look: Look, out: Path) -> None:
        super().__init__()
        self._look, self._out = look, out
        self.ended: Plan | None = None
        self._heard = False  # whether a message has come
        self._kinds: dict[str, str] = {}
        self._robot, self._options = self.config.robot(), Options()

    def _is_wanted(self, topic: str) -> bool:
        if topic not in self._kinds:
            self._kinds = {name: kinds[0] for name, kinds in self.get_topic_names_and_types()}
        kind, own = self._kinds.get(topic, ""), topic.startswith(f"{self.get_namespace().rstrip('/')}/")
        return kind in (_KINDS if own else _ANYWHERE) or topic == self._options.pose_topic

    def _take(self, topic: str, type_name: str, quality: TopicQos, data: bytes) -> None:
        self._bag.add_topic(topic, type_name, None, quality)
        self._bag.write(topic, data, time.time_ns())
        self._heard = True

    def motion(self, given: argparse.Namespace) -> Any:
        """The wish and the bounds of the drive.

        Raises:
            ParameterError, ProgramError: a wish that is not understood, or a bound out of range.
        """
        self._options = Options(pose_topic=given.pose_topic)
        bounds = Bounds(given.duration, given.room, given.dt, given.time_scale)
        return read_wish(given.until, self._robot.base), bounds

    def play(self, motion: Any, flag: StopFlag) -> bool:
        """Drive until the wish is met or cannot be met; False if a signal came first.

        Raises:
            RecordingError: no messages, or not those that the wish needs; or the bag cannot be written.
            TrajectoryError: as for a program.
        """
        self._bag = BagWriter(self._out, {"youbot_dynamics": __version__, "robot_id": self._robot.robot_id})
        recorder = TopicRecorder(self, self._is_wanted, self._take)
        try:
            if not self.wait(lambda: bool(recorder.topics), _TIMEOUT, flag) and not flag.set:
                got = "no states of wheels, commands or poses"
                raise RecordingError("topics of the robot", got=got, remedy=start_first(self._robot))
            wished, bounds = motion
            return self._drive(wished, bounds, flag)
        finally:
            recorder.close()
            self._bag.close()
            if not self._sent:  # nothing was driven: the same command may be given again
                shutil.rmtree(self._out, ignore_errors=True)

    def _drive(self, wished: Sequence[Wished], bounds: Bounds, flag: StopFlag) -> bool:
        self._check(wished, flag)

        def drive(program: Program) -> bool:
            self._last_error = float("-inf")  # else the last stretch would count as one that is being followed
            return super(UntilPlayer, self).play(program, flag)

        def see() -> Sequence[Wished] | None:
            return self._on_recording(lambda bag: self._look(bag, self._robot, wished, self._options), flag)

        if not flag.set:
            self.ended = drive_until(wished, self._robot.base, bounds, drive, see, lambda line: print(line, flush=True))
            if self.ended is not None and self.ended.next is not Next.MET:
                self.completed = "ended"
        return self.ended is not None

    def _check(self, wished: Sequence[Wished], flag: StopFlag) -> None:
        """Hear the robot at rest, until the signals that the wish needs have come: topics are found one after another.

        Raises:
            RecordingError: they have not come in time.
        """
        latest = time.monotonic() + _TIMEOUT
        while not flag.set:
            self.wait(lambda: False, _HEARD, flag)
            try:
                if not self._heard:  # publishers alone, as of a bringup whose driver does not run
                    raise unusable_wheels(self)
                return self._on_recording(lambda bag: check_signals(bag, self._robot, wished, self._options), flag)
            except RecordingError:
                if time.monotonic() > latest:
                    raise

    def _on_recording(self, work: Callable[[Path], _Result], flag: StopFlag) -> _Result | None:
        """Result of work on the bag, while further messages arrive; None if a signal came.

        Raises:
            RecordingError: as of the work, or the disk is full.
        """
        self._bag.flush()
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work, self._out)
            self.wait(future.done, math.inf, flag)
            return None if flag.set else future.result()


def play_until(given: argparse.Namespace, ros_arguments: Sequence[str], look: Look) -> int:
    """Drive on the running robot; exit code as of `play_once`, or 3 if the wish was not met.

    Args:
        given: until, out, duration, room, dt, time_scale and pose_topic of the command line.
        ros_arguments: of the command line, from --ros-args on.
        look: `until_narrow.look`.
    """
    players: list[UntilPlayer] = []

    def make() -> UntilPlayer:
        players.append(UntilPlayer(look, given.out))
        return players[0]

    parse(argparse.ArgumentParser(prog="play"), ros_arguments)
    code = play_once(make, given)
    ended = players[0].ended if players else None
    return 3 if code == 0 and ended is not None and ended.next is not Next.MET else code
