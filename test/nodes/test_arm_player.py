"""The arm by the action FollowJointTrajectory: what the player makes of a server's answers.

control_msgs is in no pip package. Where it is missing, a double stands in for the client of the action: it answers as
rclpy's does. Where it is installed, the player also moves the simulated robot by the action itself.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy")

from rclpy.task import Future  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from youbot_dynamics.errors import TrajectoryError  # noqa: E402
from youbot_dynamics.identification.excitation import ArmExcitation, MultiSine  # noqa: E402
from youbot_dynamics.nodes import arm_player  # noqa: E402
from youbot_dynamics.nodes.arm_player import ActionInterface, ArmPlayer  # noqa: E402

UPRIGHT = np.array([2.95, 1.13, -2.55, 1.79, 2.92])
pytestmark = pytest.mark.ros


def done(value: object) -> Future:
    future = Future()
    future.set_result(value)
    return future


@dataclass
class Result:
    error_code: int = 0
    error_string: str = ""
    SUCCESSFUL: int = 0


@dataclass
class Ended:
    result: Result


@dataclass
class Goal:
    trajectory: JointTrajectory | None = None


@dataclass
class Server:
    """Double of an action client and of the goal handle it gives."""

    accepted: bool = True
    result: Result | None = None
    answers: bool = True
    cancelled: int = 0
    goals: list[Goal] = field(default_factory=list)

    def server_is_ready(self) -> bool:
        return True

    def send_goal_async(self, goal: Goal) -> Future:
        self.goals.append(goal)
        return done(self) if self.answers else Future()

    def get_result_async(self) -> Future:
        return Future() if self.result is None else done(Ended(self.result))

    def cancel_goal_async(self) -> Future:
        self.cancelled += 1
        return done(None)


@pytest.fixture
def player():
    rclpy.init()
    node = ArmPlayer()
    yield node
    node.destroy_node()
    rclpy.try_shutdown()


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server(), ""),
        (Server(result=Result()), ""),
        (Server(accepted=False), "the goal was rejected"),
        (Server(result=Result(-4, "joint 3 left the path")), "error -4: joint 3 left the path"),
        (Server(answers=False), ""),
    ],
)
def test_answers_of_the_server_are_reported(player, server, expected):
    interface = ActionInterface(player, server, Goal)
    interface.send(JointTrajectory(joint_names=["a"]))
    interface.problem()
    assert expected in interface.problem() and bool(expected) == bool(interface.problem())
    assert server.goals[0].trajectory.joint_names == ["a"]


def test_stopping_cancels_an_accepted_goal_and_does_not_wait_for_a_server_that_is_gone(player):
    idle, running, refused, gone = Server(), Server(), Server(accepted=False), Server(answers=False)
    assert ActionInterface(player, idle, Goal).stop() == ""
    for server in (running, refused, gone):
        interface = ActionInterface(player, server, Goal)
        interface.send(JointTrajectory())
        begun = time.monotonic()
        problem = interface.stop()
        assert time.monotonic() - begun < 1.5
        assert ("emergency stop" in problem) == (server is gone)
    assert [server.cancelled for server in (idle, running, refused, gone)] == [0, 1, 0, 0]


class Flag:
    """A stop that a test can ask for."""

    def __init__(self) -> None:
        self.set = False


def swing(duration: float) -> ArmExcitation:
    times = np.linspace(0.0, duration, round(10 * duration) + 1)
    x, v, a = MultiSine(duration, np.full((5, 1), 0.5), np.full((5, 1), 0.2), np.zeros((5, 1))).at(times)
    return ArmExcitation(times, UPRIGHT + x, v, a)


def test_a_rejected_goal_ends_the_play_with_what_to_look_at(player):
    player._interfaces = (ActionInterface(player, Server(accepted=False), Goal),)
    player.position = UPRIGHT
    with pytest.raises(TrajectoryError, match="rejected.*arm_joints"):
        player.play(swing(4.0), Flag())
    player.cancel()


def test_nobody_to_take_trajectories_is_reported_with_what_was_not_tried(player, monkeypatch):
    monkeypatch.setattr(arm_player, "DISCOVERY_TIMEOUT", 0.3)
    monkeypatch.setattr(arm_player, "_GRACE", 0.1)
    player.position = UPRIGHT
    lacking = importlib.util.find_spec("control_msgs") is None
    with pytest.raises(TrajectoryError, match="no node that takes trajectories") as refused:
        player.play(swing(4.0), Flag())
    assert ("control_msgs is not installed" in str(refused.value)) == lacking


if importlib.util.find_spec("control_msgs") is not None:

    def test_the_player_moves_the_simulated_robot_by_the_action_and_cancels_it(player):
        from ros_processes import Processes

        with Processes() as processes:
            processes.node("mock_youbot", "-p", "seed:=1")
            deadline = time.monotonic() + 40.0
            while player.position is None and time.monotonic() < deadline:
                rclpy.spin_once(player, timeout_sec=0.1)
            assert player.play(swing(4.0), Flag())
            assert isinstance(player._active, ActionInterface)
            assert player.position == pytest.approx(UPRIGHT, abs=0.05)
            flag = Flag()
            timer = threading.Timer(2.0, lambda: setattr(flag, "set", True))
            timer.start()
            assert not player.play(swing(20.0), flag)
            assert player._active.stop() == ""
            after = []
            for wait in (1.5, 0.5):
                end = time.monotonic() + wait
                while time.monotonic() < end:
                    rclpy.spin_once(player, timeout_sec=0.05)
                after.append(player.position)
            assert after[1] == pytest.approx(after[0], abs=0.01), "it stands"
