"""Kinematics for the controllers of ros2_control that drive bases on a fixed axle."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.identification.result import Result
from youbot_dynamics.parameters import Value
from youbot_dynamics.robot import Robot

_LOAD = ["Load it after your own parameters of the controller; rename the node if needed."]


def mean_radius(robot: Robot) -> float:
    """Mean radius of the wheels [m]."""
    geometry = robot.base.geometry
    return geometry.wheel_radius * (1.0 + float(np.mean(geometry.wheel_radius_errors)))


def controllers_of_axles(result: Result, robot: Robot) -> dict[str, tuple[str, dict[str, Value], list[str]]]:
    """File name -> node pattern, parameters and comments; without parameters for other bases than that controller's.

    `tricycle_controller` has no parameter for an offset of the steering.

    Source: ros2_controllers, diff_drive_controller/src/diff_drive_controller_parameter.yaml and
    tricycle_controller/src/tricycle_controller_parameter.yaml.
    """
    identified, better = result.parameters_of("base.geometry"), result.applied_to(robot)
    geometry, two, steered = better.base.geometry, dict[str, Value](), dict[str, Value]()
    if "wheel_radius" in identified and geometry.track > 0.0:
        two["wheel_radius"] = radius = mean_radius(better)
        if "track" in identified:
            two |= {"wheel_separation": geometry.track, "wheel_separation_multiplier": 1.0}
        if "wheel_radius_error_{wheel}" in identified:
            left, right = (geometry.mecanum().radii / radius).tolist()
            two |= {"left_wheel_radius_multiplier": left, "right_wheel_radius_multiplier": right}
    if "wheel_radius" in identified and "wheelbase" in identified:
        steered = {"wheelbase": geometry.wheelbase, "wheel_radius": geometry.wheel_radius}
    return {
        "diff_drive_controller.yaml": ("/**/diff_drive_controller", two, _LOAD),
        "tricycle_controller.yaml": ("/**/tricycle_controller", steered, _LOAD),
    }
