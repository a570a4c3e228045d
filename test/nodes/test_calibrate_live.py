"""`youbot calibrate --tape` over DDS: the twin drives, and the test reads the ends as a person with a tape would."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy")

from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import Observer, Processes, environment  # noqa: E402

from youbot_dynamics.nodes._messages import pose_vector  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402
from youbot_dynamics.simulation.truth import load_truth  # noqa: E402

pytestmark = pytest.mark.ros

SEED = 3


class Dialog:
    """A child that asks, and what it has said."""

    def __init__(self, processes: Processes, observer: Observer, *words: str) -> None:
        command = [sys.executable, "-m", "youbot_dynamics.commands.main", "calibrate", "--tape", *words]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
        processes.children.append(self.child)
        os.set_blocking(self.child.stdout.fileno(), False)
        self.observer, self.said = observer, ""

    def hears(self, words: str) -> None:
        """Wait until it says these words after all that was heard before."""
        self.said = ""

        def heard() -> bool:
            self.said += (self.child.stdout.read() or b"").decode()
            assert self.child.poll() in (None, 0), self.said
            return words in self.said

        self.observer.wait(heard, words)

    def answers(self, line: str) -> None:
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()


def pose(observer: Observer) -> np.ndarray:
    observer.hear("ground_truth")
    return pose_vector(observer.received["ground_truth"][-1].pose.pose)


def test_nobody_is_asked_to_mark_the_floor_before_wheel_positions_arrive():
    command = [sys.executable, "-m", "youbot_dynamics.commands.main", "calibrate", "--tape"]
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and "got no positions of the wheels; start the robot" in done.stderr
    assert "Enter" not in done.stderr


def test_measured_ends_of_three_legs_give_the_twins_geometry(tmp_path):
    (tmp_path / "own.yaml").write_text(f"/**/mock_youbot:\n  ros__parameters:\n    seed: {SEED}\n")
    written = tmp_path / "geometry.yaml"
    with Processes() as processes, Observer() as observer:
        observer.listen(Odometry, "ground_truth")
        processes.youbot("bringup", "--robot", "mock", "--params-file", str(tmp_path / "own.yaml"))
        observer.wait(lambda: observer.received["ground_truth"], "the twin")
        person = Dialog(processes, observer, "--distance", "1.0", "--turns", "1", "--write", str(written))
        for _ in range(2):
            person.hears("press Enter")
            begin = pose(observer)
            person.answers("")
            person.hears("Distance from that mark")
            person.answers(f"{np.hypot(*(pose(observer) - begin)[:2]):.4f}")
        person.hears("press Enter")
        begin, turned = pose(observer), len(observer.received["ground_truth"])
        person.answers("")
        person.hears("Full turns")
        pose(observer)
        yaws = [pose_vector(message.pose.pose)[2] for message in observer.received["ground_truth"][turned - 1 :]]
        person.answers(f"0 {np.degrees(np.unwrap(yaws)[-1] - begin[2]):.2f}")
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
