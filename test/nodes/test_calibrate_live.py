"""`youbot calibrate --tape` over DDS: the twin drives, and the test reads the ends as a person with a tape would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import Observer, Processes, environment  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from youbot_dynamics.nodes._messages import pose_vector  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402
from youbot_dynamics.simulation.truth import load_truth  # noqa: E402

pytestmark = pytest.mark.ros

SEED = 3
AGAIN = "drive it again"


class Dialog:
    """A child that asks, and what it has said."""

    def __init__(self, processes: Processes, observer: Observer, *words: str) -> None:
        command = [sys.executable, "-m", "youbot_dynamics.commands.main", "calibrate", "--tape", *words]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
        processes.children.append(self.child)
        os.set_blocking(self.child.stdout.fileno(), False)
        self.observer, self.said = observer, ""

    def hears(self, *words: str) -> str:
        """Wait until it says one of these words after all that was heard before; which."""

        def said() -> str:
            self.said += (self.child.stdout.read() or b"").decode()
            assert self.child.poll() in (None, 0), self.said
            return next((word for word in words if word in self.said), "")

        self.observer.wait(said, " or ".join(words))
        word = said()
        self.said = self.said.split(word, 1)[1]
        return word

    def drives(self, question: str) -> tuple[np.ndarray, float]:
        """Let it drive a leg until it asks for the reading, again where the leg was given up: path (2,) and turn."""
        while True:
            self.hears("press Enter")
            self.observer.follow("ground_truth", 1.0)  # after a leg that was given up the base brakes
            begin = len(self.observer.received["ground_truth"])
            self.observer.hear("ground_truth")
            self.answers("")
            if self.hears(question, AGAIN) == question:
                break
        self.observer.hear("ground_truth")
        poses = [pose_vector(message.pose.pose) for message in self.observer.received["ground_truth"][begin:]]
        yaws = np.unwrap([pose[2] for pose in poses])
        return poses[-1][:2] - poses[0][:2], yaws[-1] - yaws[0]

    def answers(self, line: str) -> None:
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()


def test_nobody_is_asked_to_mark_the_floor_before_wheel_positions_arrive():
    command = [sys.executable, "-m", "youbot_dynamics.commands.main", "calibrate", "--tape"]
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and "got no positions of the wheels; start the robot" in done.stderr
    assert "Enter" not in done.stderr


def bringup(processes: Processes, observer: Observer, folder: Path) -> None:
    """Of the twin."""
    own = folder / "own.yaml"
    own.write_text(f"/**/mock_youbot:\n  ros__parameters:\n    seed: {SEED}\n", encoding="utf-8")
    observer.listen(Odometry, "ground_truth")
    processes.youbot("bringup", "--robot", "mock", "--params-file", str(own))
    observer.wait(lambda: observer.received["ground_truth"], "the twin")
    observer.listen(Odometry, "odom")  # without it the tracker refuses a leg, and the command ends
    observer.hear("odom")


def test_a_leg_that_is_given_up_says_why_and_is_driven_again(tmp_path):
    with Processes() as processes, Observer() as observer:
        bringup(processes, observer, tmp_path)
        written = tmp_path / "geometry.yaml"
        person = Dialog(processes, observer, "--distance", "0.3", "--turns", "1", "--write", str(written))
        observer.listen(JointState, "trajectory_tracker/error")
        person.hears("press Enter")
        person.answers("0.998")  # meant for another question
        person.hears("not understood: answer: got 0.998; expected Enter alone")
        person.hears("press Enter")
        person.answers("")
        observer.hear("trajectory_tracker/error")
        assert observer.call(Trigger, "trajectory_tracker/cancel", Trigger.Request()).success
        person.hears("trajectory given up: cancelled")
        person.hears(AGAIN)
        path, _ = person.drives("Distance from that mark")
        assert np.hypot(*path) == pytest.approx(0.3, abs=0.03)
        person.answers(f"{100.0 * np.hypot(*path):.2f} cm")
        person.hears("Leg 2 of 3, sideways")
        person.child.send_signal(signal.SIGINT)  # the reading of the finished leg is kept
        observer.wait(lambda: person.child.poll() is not None, "the end")
        said = person.said + (person.child.stdout.read() or b"").decode()
        assert person.child.returncode == 130 and "finished legs, 1 of 3" in said, said
        assert load_robot(written).base.geometry.wheel_radius == pytest.approx(load_truth(SEED).wheel_radius, rel=0.03)
        person.child.stdin.close()


@pytest.mark.slow  # a minute; what the ends of driven legs tell is in test_tape.py
def test_measured_ends_of_three_legs_give_the_twins_geometry(tmp_path):
    written = tmp_path / "geometry.yaml"
    with Processes() as processes, Observer() as observer:
        bringup(processes, observer, tmp_path)
        person = Dialog(processes, observer, "--distance", "1.0", "--turns", "1", "--write", str(written))
        for _ in range(2):
            path, _ = person.drives("Distance from that mark")
            person.answers(f"{np.hypot(*path):.4f}")
        _, turn = person.drives("Full turns")
        person.answers(f"1 {np.degrees(turn) - 360.0:.2f}")
        person.hears("wrote")
        observer.wait(lambda: person.child.poll() is not None, "the end")
        person.child.stdin.close()
        assert person.child.returncode == 0
    truth, found = load_truth(SEED), load_robot(written).base.geometry
    ours, true = found.mecanum(), truth.mecanum()
    # Exact readings; rollers and creep remain.
    assert found.wheel_radius == pytest.approx(np.mean(truth.wheel_radii()), rel=2e-3)
    assert found.lateral_factor == pytest.approx(truth.lateral_factor, rel=3e-3)
    levers = [np.mean(np.abs(base.inverse_matrix[:, 2]) * base.radii) for base in (ours, true)]
    assert levers[0] == pytest.approx(levers[1], rel=4e-3)
