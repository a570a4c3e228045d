"""The robot file that the owner of a home-made mecanum base writes first, and drives of any robot's twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import youbot_dynamics as yd
from youbot_dynamics.identification.excitation import base_program

WHEELS = ("front_left", "front_right", "back_left", "back_right")
LEAST = f"""\
/**:
  ros__parameters:
    robot:
      robot_id: homemade
      base: {{geometry: {{wheel_radius: 0.05, half_length: 0.14, half_width: 0.16}}}}
      driver: {{wheel_joints: [{", ".join(WHEELS)}]}}
"""


def write_least(folder: Path) -> Path:
    """The six lines as `homemade.yaml` in a folder."""
    file = folder / "homemade.yaml"
    file.write_text(LEAST)
    return file


def drive_of(robot_file: Path, bag: Path, seed: int = 1, duration: float = 30.0, named: bool = True) -> Path:
    """Bag of an excitation, driven by the twin of a robot file in the names and signs of its driver.

    A bag that is not `named` does not tell its robot, as those of other recorders.
    """
    robot = yd.load_robot(robot_file=robot_file)
    plant = yd.BaseOnly(yd.load_truth(seed, robot_file), robot.driver, seed)
    program = base_program(robot, duration, 1.0, 0.02).trajectory()
    run = yd.drive(program, robot, plant, seed, tracker_settings=yd.TrackerSettings(feedback=False))
    yd.write_bag(run, robot if named else replace(robot, robot_id=""), bag, feedback=False)
    return bag
