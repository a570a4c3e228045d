"""`youbot demo` in separate processes over DDS: the story holds, with twice the bounds of the lock-step runs."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from delay_runs import drive_open_loop, true_delays  # noqa: E402
from ros_processes import environment  # noqa: E402

from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.identification.comparison import error_statistics, path_errors, recorded_path  # noqa: E402
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.parameter_file import read_parameters  # noqa: E402
from youbot_dynamics.recording.bag import open_bag  # noqa: E402
from youbot_dynamics.resources import program_path  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402
from youbot_dynamics.simulation.truth import load_truth  # noqa: E402

pytestmark = pytest.mark.ros

SEED = 1


def errors(bag):
    robot = load_robot()
    recording = open_bag(bag)
    path = recorded_path(recording, base_signals(recording, robot, {}), {})
    return path.label, error_statistics(path_errors(path.actual, path.desired_poses()))


@pytest.mark.slow  # four minutes; scripts/demo.sh is the same
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
    program = read_program(program_path("combined"), 0.02)
    shift = true_delays(drive_open_loop(program, load_robot(), truth.without_noise(), SEED))
    for axis, expected in zip(("x", "y", "yaw"), shift, strict=True):
        # The true shift of the twin; processes and DDS add some milliseconds that the delay rightly contains.
        assert -0.005 < found[f"robot.base.delay.effective_{axis}"] - expected < 0.02
    radii = load_robot(out / "result.yaml").base.geometry.mecanum().radii
    np.testing.assert_allclose(radii / truth.wheel_radii(), 1.0, atol=2e-3)
    for program in ("translation", "rotation", "combined"):
        label, before = errors(out / f"{program}_open_loop")
        assert label == "open loop"
        label, after = errors(out / f"{program}_feedback")
        assert label == "feedback"
        assert after.position_rmse <= 2.0 * max(before.position_rmse / 8.0, 2e-3), program
        assert after.heading_rmse <= 2.0 * max(before.heading_rmse / 8.0, 2e-3), program
    assert "identified values have the truth within their interval" in done.stdout
    report = (out / "report.html").read_text()
    assert "The hidden truth" in report
    assert all(name in report for name in ("translation", "rotation", "combined", "simulated feedback", "restored"))
    assert np.all([(out / name).is_file() for name in ("result.json", "result.yaml")])
