"""Recordings of a simulated robot and their identification, for the tests of the report."""

from __future__ import annotations

from pathlib import Path

import friction_runs
import numpy as np

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.identification.comparison import PathComparison
from youbot_dynamics.identification.pipeline import Identification, compare, identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.messages.drive_bag import write_bag
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, joint_state_cdr
from youbot_dynamics.resources import program_path
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.youbot import BaseOnly

ROBOT = friction_runs.ROBOT
TRUTH = friction_runs.calibrated_truth(1)
_ORIGIN = 1_500_000_000_000_000_000  # [ns]


def path_bag(folder: Path) -> Path:
    """The program "combined" driven open loop; the driver reports no efforts, as the youBot's."""
    trajectory = read_program(program_path("combined"), friction_runs.PERIOD).trajectory()
    run = drive(trajectory, ROBOT, BaseOnly(TRUTH, ROBOT.driver, 1), 1, TrackerSettings(feedback=False))
    write_bag(run, ROBOT, folder, feedback=False)
    return folder


def effort_bag(folder: Path, duration: float = 40.0) -> Path:
    """Stairs of speed and sines, with wheel efforts."""
    half = 0.5 * duration
    run = friction_runs.drive(np.vstack([friction_runs.stairs(half), friction_runs.multi_sine(half)]), TRUTH, 1)
    base, driver = ROBOT.base.geometry.mecanum(), ROBOT.driver
    rows = []
    for time, twist in zip(run.command_time, run.twist, strict=True):
        rows.append((_ns(time), "/wheel_commands", {"velocity": base.wheel_speeds(twist)}))
    # The driver's signs, which reading the bag takes away again.
    angles, efforts = run.positions * np.array(driver.position_sign), run.efforts * np.array(driver.velocity_sign)
    for time, angle, effort in zip(run.stamps, angles, efforts, strict=True):
        rows.append((_ns(time), "/driver/joint_states", {"position": angle, "effort": effort}))
    with BagWriter(folder, {"robot_id": ROBOT.robot_id}) as bag:
        bag.add_topic("/wheel_commands", JOINT_STATE)
        bag.add_topic("/driver/joint_states", JOINT_STATE)
        for stamp, topic, columns in sorted(rows, key=lambda row: row[0]):
            bag.write(topic, joint_state_cdr(stamp, driver.wheel_joints, **columns), stamp)
    return folder


def _ns(time: float) -> int:
    return _ORIGIN + round(float(time) * 1e9)


def identified(folder: Path) -> tuple[Identification, list[PathComparison]]:
    """What the two bags tell of delays and friction of the base, and how the program was followed."""
    bags = [effort_bag(folder / "staircase_and_sines"), path_bag(folder / "combined")]
    found = identify(bags, ROBOT, Options(), only=("delay", "base_friction"))
    better = found.result.applied_to(ROBOT)
    return found, [compare(name, [path], better) for name, path in found.paths.items()]
