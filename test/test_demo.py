"""`youbot demo` in separate processes over DDS: the story holds, with twice the bounds of the lock-step runs."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from ros_processes import environment  # noqa: E402

from youbot_dynamics.identification.base_signals import base_signals  # noqa: E402
from youbot_dynamics.identification.comparison import error_statistics, path_errors  # noqa: E402
from youbot_dynamics.identification.recorded_path import recorded_path  # noqa: E402
from youbot_dynamics.parameter_file import read_parameters  # noqa: E402
from youbot_dynamics.recording.bag import open_bag  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402
from youbot_dynamics.simulation.truth import load_truth  # noqa: E402

pytestmark = pytest.mark.ros

SEED = 1


def errors(bag):
    robot = load_robot()
    recording = open_bag(bag)
    path = recorded_path(recording, base_signals(recording, robot, {}), {})
    return path.label, error_statistics(path_errors(path.actual, path.desired_poses()))


def test_demo_identifies_and_cuts_the_error_over_dds(tmp_path):
    out = tmp_path / "demo"
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "youbot_dynamics.commands.main", "demo", "--out", str(out), "--seed", str(SEED)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=360.0,
    )
    took = time.monotonic() - began
    print(f"\n{done.stdout}\ntook {took:.0f} s")
    assert done.returncode == 0, done.stderr + "".join(log.read_text()[-2000:] for log in out.glob("*.log"))
    truth = load_truth(SEED)
    found = read_parameters(out / "result.yaml", "")
    for axis, dead_time in zip(("x", "y", "yaw"), truth.dead_times(), strict=True):
        # Friction adds to dead time and lag; how much stands in the lock-step tests.
        excess = found[f"robot.base.delay.effective_{axis}"] - dead_time - truth.lag
        assert -0.005 < excess < 0.04
    for program in ("translation", "rotation", "combined"):
        label, before = errors(out / f"{program}_open_loop")
        assert label == "open loop"
        label, after = errors(out / f"{program}_feedback")
        assert label == "feedback"
        assert after.position_rmse <= 2.0 * max(before.position_rmse / 8.0, 2e-3), program
        assert after.heading_rmse <= 2.0 * max(before.heading_rmse / 8.0, 2e-3), program
    report = (out / "report.html").read_text()
    assert all(name in report for name in ("translation", "rotation", "combined", "simulated feedback", "restored"))
    assert np.all([(out / name).is_file() for name in ("result.json", "result.yaml")])
