"""Node program_player: sends a motion program as a trajectory and waits until it has been followed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import MultiDOFJointTrajectory

from youbot_dynamics.control.trajectory import Program, TrajectoryLimits, read_program
from youbot_dynamics.errors import ProgramError, TrajectoryError, did_you_mean
from youbot_dynamics.nodes._parameters import FRAME_TABLE, NodeParameters
from youbot_dynamics.nodes._player import DISCOVERY_TIMEOUT, Player, play_once, start_first
from youbot_dynamics.nodes._runtime import LATCHED_QOS, STATE_QOS, acknowledged, parse
from youbot_dynamics.nodes._trajectory_message import GIVEN_UP, OF_STAMP, stamp_text
from youbot_dynamics.nodes.processes import StopFlag
from youbot_dynamics.parameters import settings_table
from youbot_dynamics.recording.message_types import trajectory_cdr
from youbot_dynamics.resources import ARM_EXCITATION, EXCITATION, PROGRAMS, program_path

_SLOWEST = 1000.0  # times slower than written
_LISTEN = 0.4  # [s] to check whether a trajectory is being followed
_LEAD = 1.2  # [s] between sending and start: longer than any delay that can be previewed
_ACCEPT = 2.0  # [s] for it to begin
# Time without a tracking error after which it has ended [s]: after its due time, and before it, when it was given up.
# A busy machine loses messages, and DDS repeats them after up to 3 s.
_QUIET, _GIVEN_UP = 1.0, 3.5
_EARLY = 0.2  # [s] by which the last tracking error may come before the due time


class GivenUpError(TrajectoryError):
    """A trajectory that the tracker accepted and gave up, or of which nothing is heard any more before its end."""


class ProgramPlayer(Player):
    """Plays one program on the trajectory tracker."""

    def __init__(self) -> None:
        super().__init__("program_player")
        self.config = NodeParameters(self, (*FRAME_TABLE, *settings_table(TrajectoryLimits)))
        self._last_error = float("-inf")
        self._sent = self._ended = ""  # stamp of the trajectory, and what the tracker says of its refusal or end
        # Latched, so that a recorder which DDS connects late still receives it.
        self._trajectory = self.create_publisher(MultiDOFJointTrajectory, "trajectory", LATCHED_QOS)
        self.create_subscription(JointState, "trajectory_tracker/error", self._on_error, STATE_QOS)
        self._tracker = self.resolve_topic_name("trajectory_tracker")
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            stamp = {value.key: value.value for value in status.values}.get(OF_STAMP)
            if status.name == f"{self._tracker}: trajectory" and stamp == self._sent:
                self._ended = status.message

    def _on_error(self, message: JointState) -> None:
        self._last_error = time.monotonic()

    def motion(self, given: argparse.Namespace) -> Program:
        """Program of a file, one that comes with the package, or the recommended excitation.

        Raises:
            ProgramError: no such program, a malformed or too fast one, or a time scale that is not positive.
        """
        robot = self.config.robot()
        if given.program == EXCITATION:
            from youbot_dynamics.identification.excitation import base_program  # only here: it takes two seconds

            print("choosing the motion", file=sys.stderr)
            program = base_program(robot, given.duration, given.room, given.dt).scaled(given.time_scale)
        elif not 0.0 < given.time_scale <= _SLOWEST:
            expected = f"more than 0, at most {_SLOWEST:g}"
            raise ProgramError("--time-scale", got=f"{given.time_scale:g}", expected=expected)
        else:
            path = Path(given.program)
            if not path.suffix and not path.exists() and path.name == given.program:
                path = _path_of(given.program)
            program = read_program(path, given.dt).scaled(given.time_scale)
        program.check(robot.base)
        return program

    def play(self, program: Program, flag: StopFlag) -> bool:
        """Send the program and wait for its end; False if a signal came first.

        Raises:
            TrajectoryError: a program beyond the limits, no tracker, or one that refused the program.
            GivenUpError: the tracker gave it up, or its errors ceased: the base may drive on if they were only lost.
        """
        limits = self.config.settings(TrajectoryLimits)
        limits.check(points=len(program.twists) + 1, duration=program.duration)
        if not self.wait(self._connected, DISCOVERY_TIMEOUT, flag) and not flag.set:
            raise TrajectoryError(
                f"topic {self.resolve_topic_name('trajectory')}",
                got="no trajectory_tracker that listens and reaches a base_controller",
                remedy=start_first(self.config.robot()),
            )
        if flag.set:
            return False
        name = f"program {program.name}"
        if self.wait(lambda: self._last_error > 0.0, _LISTEN, flag):
            remedy = "wait for its end, or stop it with Ctrl-C where it was started"
            raise TrajectoryError(name, got="a trajectory that is being followed already", remedy=remedy)
        print(f"driving {program.name}: {program.duration:.1f} s; Ctrl-C stops the base", file=sys.stderr)
        message = self._message(program)
        self._sent, self._ended = stamp_text(message), ""
        sent = time.monotonic()
        self._trajectory.publish(message)
        self.wait(lambda: self._last_error > sent or bool(self._ended), _LEAD + _ACCEPT, flag)
        if self._ended and not self._ended.startswith(GIVEN_UP):
            raise TrajectoryError(name, got=self._ended)
        if self._last_error <= sent and not self._ended and not flag.set:
            remedy = "see what it says in the terminal of the bringup, and /diagnostics"
            raise TrajectoryError(name, got="no answer of trajectory_tracker", remedy=remedy)
        due = sent + _LEAD + program.duration
        while not flag.set and not self._ended:
            early = self._last_error < due - _EARLY
            if time.monotonic() - self._last_error > (_GIVEN_UP if early else _QUIET):
                break
            # First process all messages: a delay of this process must not count as the tracker's silence.
            last = -1.0
            while last != self._last_error:
                last = self._last_error
                rclpy.spin_once(self, timeout_sec=0.02)
        if not flag.set and (self._ended or early):
            followed = max(0.0, self._last_error - sent - _LEAD)
            got = f"{followed:.1f} s of {program.duration:.1f} s followed; {self._ended or 'no word since'}"
            raise GivenUpError(name, got=got, remedy="see the log of trajectory_tracker and /diagnostics")
        return not flag.set

    def _connected(self) -> bool:
        """Whether DDS has connected us with the tracker both ways, and the tracker with a base controller.

        A recorder may subscribe as well: all subscriptions must be matched, so that the tracker's is among them.
        """
        subscriptions = self.get_subscriptions_info_by_topic(self._trajectory.topic_name)
        return (
            any(info.node_name == "trajectory_tracker" for info in subscriptions)
            and self._trajectory.get_subscription_count() >= len(subscriptions)
            and self.count_publishers("trajectory_tracker/error") > 0
            and self.count_subscribers("trajectory_tracker/cmd_vel") > 0
        )

    def cancel(self) -> None:
        """Stop the tracker with an empty trajectory, if ours was sent: it may follow that of another program."""
        if self._sent:
            self._trajectory.publish(MultiDOFJointTrajectory())
            acknowledged(self._trajectory)

    def _message(self, program: Program) -> bytes:
        _, base = self.config.frames()
        trajectory = program.trajectory()
        # A start time of our own, not the tracker's choice: so the bag contains when the program began.
        start = self.get_clock().now().nanoseconds + round(_LEAD * 1e9)
        return trajectory_cdr(start, base, base, trajectory.times, trajectory.poses)


def _path_of(name: str) -> Path:
    if name not in PROGRAMS:
        names = [*PROGRAMS, EXCITATION, ARM_EXCITATION]
        expected = f"a file, or one of {', '.join(names)}"
        raise ProgramError(
            f"program {name}", got="no such file or program", expected=expected, remedy=did_you_mean(name, names)
        )
    return program_path(name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play one program; exit code 0 when it was followed to its end."""
    parser = argparse.ArgumentParser(prog="program_player", description=__doc__)
    parser.add_argument(
        "program",
        help="text file with lines Vx Vy Omega [m/s, m/s, rad/s], or translation, rotation, combined, excitation",
    )
    parser.add_argument("--dt", type=float, default=0.02, help="time each line is held [s]")
    parser.add_argument("--time-scale", type=float, default=1.0, help="same path, this many times slower")
    parser.add_argument("--duration", type=float, default=60.0, help="of the excitation [s]")
    parser.add_argument("--room", type=float, default=1.0, help="farthest the excitation goes from the start [m]")
    sys.exit(play_once(ProgramPlayer, parse(parser, arguments)))


if __name__ == "__main__":
    main()
