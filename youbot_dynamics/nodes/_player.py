"""Shared by program_player, arm_player and tape_player: play one motion, by a tracker or the arm's driver, and end."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.node import Node

from youbot_dynamics.errors import RecordingError, YoubotDynamicsError
from youbot_dynamics.interrupts import INTERRUPTED
from youbot_dynamics.nodes._runtime import init, leave_imports_out_of_collection, without_shared_memory
from youbot_dynamics.nodes.processes import StopFlag
from youbot_dynamics.robot import Robot

DISCOVERY_TIMEOUT = 10.0  # [s] to find the node that takes the motion


def start_first(robot: Robot) -> str:
    """What to do where a robot does not run: a command with the robot of the options of this program."""
    from youbot_dynamics.bringup_plan import option_words  # only here: most players find their robot

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    files = ("robot_file", "params_file", "namespace")
    for name in files:
        parser.add_argument(f"--{name.replace('_', '-')}")
    given = {name: value for name, value in vars(parser.parse_known_args(sys.orig_argv)[0]).items() if value}
    command = shlex.join(["youbot", "bringup", *option_words(robot="mock", **given)])
    real = command.replace(" mock", " real", 1)
    other = "" if given or robot.is_youbot else ", with the --robot-file of this robot"
    return f"start the robot first, in another terminal: {command}{other}; for a real robot: {real}{other}"


def unusable_wheels(node: Node, moved: str = "") -> RecordingError:
    """Error for wheels that `moved` in a wrong way, or whose positions did not arrive."""
    topic = node.resolve_topic_name("driver/joint_states")
    remedy = "start the robot if it does not run; then youbot check-driver says what is wrong"
    return RecordingError(f"topic {topic}", got=moved or "no positions of the wheels", remedy=remedy)


class Player(Node, ABC):
    """Plays one motion."""

    completed = "completed"  # printed at its end

    @abstractmethod
    def motion(self, given: argparse.Namespace) -> Any:
        """The motion that the options of the command line ask for."""

    @abstractmethod
    def play(self, motion: Any, flag: StopFlag) -> bool:
        """Send the motion and wait for its end; False if a signal came first.

        Raises:
            TrajectoryError: no subscriber or server for it, a refusal, or a motion that was not followed.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Stop the robot, if the motion was sent."""

    def wait(self, condition: Callable[[], bool], timeout: float, flag: StopFlag) -> bool:
        """Spin until a condition holds, for `timeout` [s] at most or to a signal; whether it holds."""
        deadline = time.monotonic() + timeout
        while not condition() and time.monotonic() < deadline and not flag.set:
            rclpy.spin_once(self, timeout_sec=0.05)
        return condition()


def play_once(make: Callable[[], Player], given: argparse.Namespace) -> int:
    """Play one motion: exit code 0 if it was followed to its end, 1 after an error, 130 after a signal."""
    done, code = False, 1
    player: Player | None = None
    try:
        flag = init()
        with without_shared_memory():
            player = make()
        motion = player.motion(given)
        leave_imports_out_of_collection()
        done = player.play(motion, flag)
        code = 0 if done else INTERRUPTED
        print(player.completed if done else "stopped", file=sys.stderr)
    except YoubotDynamicsError as problem:
        print(f"error: {problem}", file=sys.stderr)
    finally:
        if player is not None and not done:
            player.cancel()  # after any error: the robot must not move on without supervision
    if player is not None:
        player.destroy_node()
    rclpy.try_shutdown()
    return code
