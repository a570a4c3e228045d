"""Export the result: mecanum_drive_controller, Nav2, a URDF with friction and bodies, motors and robot for MuJoCo."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from youbot_dynamics import __version__
from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.thermal_motor import GearedMotor, ThermalMotor
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import ModelError
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification._controllers import controllers_of_axles, mean_radius
from youbot_dynamics.identification.arm_friction import OF_BODY, ConsistentInertia, inertial_parameters
from youbot_dynamics.identification.base_friction.stage import WHEEL_COULOMB, WHEEL_VISCOUS
from youbot_dynamics.identification.body.stage import ACCELERATION, SPEED
from youbot_dynamics.identification.delay.stage import DEAD_TIME, EFFECTIVE, LAG
from youbot_dynamics.identification.finding import BODIES, CASES, TWIST_ERROR, Row
from youbot_dynamics.identification.response import stage as response
from youbot_dynamics.identification.result import SCHEMA_VERSION, Result
from youbot_dynamics.identification.thermal import HEAT_CONSTANTS
from youbot_dynamics.parameter_file import write_parameters
from youbot_dynamics.parameters import Value
from youbot_dynamics.robot import Robot


def export_all(
    folder: Path,
    result: Result,
    robot: Robot,
    products: Mapping[str, object],
    whole_robot: Callable[[Robot], str] = lambda robot: "",
) -> tuple[Path, ...]:
    """Write exports/ with the files below into an existing folder, each completely or not at all.

    mecanum_drive_controller.yaml, nav2.yaml, nav2_velocity_smoother.yaml, the URDF of the arm, motors.xml, youbot.xml.

    The files hold only identified values. If there is nothing to export, the file of an earlier identification is
    deleted, since it would not match the result beside it.

    Args:
        folder: that of result.yaml.
        result: the identification result.
        robot: the robot before the result was applied to it.
        products: of the stages, by name; "arm_bodies" is a ConsistentInertia, "twist_error" an array (3,).
        whole_robot: MJCF of a robot, "" if there is none; the arm of the robot it gets has the identified bodies.

    Returns:
        Paths of the files written.

    Raises:
        OSError: the folder cannot be written.
    """
    place = folder / "exports"
    place.mkdir(exist_ok=True)
    head = _provenance(result)
    written = []
    for name, (section, values, about) in _parameter_files(result, robot, products.get(TWIST_ERROR)).items():
        path = place / name
        if values:
            write_parameters(path, section, values, [*head, *about])
            written.append(path)
        else:
            path.unlink(missing_ok=True)
    texts = {"motors.xml": _mujoco_text(result, robot, head)}
    if robot.arm.urdf:
        texts[Path(robot.arm.urdf).name] = _urdf_text(result, robot, products.get(BODIES), head)
    for name, text in texts.items():
        _put(place / name, text, written)
    if robot.arm.urdf:
        _put(place / "youbot.xml", _robot_text(result, robot, written, whole_robot, head), written)
    if not any(place.iterdir()):
        place.rmdir()
    return tuple(written)


def _put(path: Path, text: str, written: list[Path]) -> None:
    """Write a file and list it, or delete that of an earlier identification if there is no text."""
    if text:
        write_atomically(path, text)
        written.append(path)
    else:
        path.unlink(missing_ok=True)


def _provenance(result: Result) -> list[str]:
    """Comment lines with the origin of a file: tool, robot and recordings."""
    robot_id = "".join(c if c.isprintable() else " " for c in result.robot_id)
    count = len(result.sources)
    recordings = f"{count} recording{'s' if count != 1 else ''}"
    return [
        f"Identified by youbot_dynamics {__version__} (schema {SCHEMA_VERSION}), robot '{robot_id}', {recordings};",
        "intervals, verdicts, ranges and hashes of the recordings: result.json beside this folder.",
    ]


def _comment(lines: list[str]) -> str:
    return "\n    " + "\n    ".join(line.replace("--", "- -") for line in lines) + "\n  "


def _numbers(*values: float) -> str:
    return " ".join(repr(float(value)) for value in values)


def _parameter_files(
    result: Result, robot: Robot, twist_error: object
) -> dict[str, tuple[str, dict[str, Value], list[str]]]:
    """File name -> node pattern, parameters (empty if nothing was identified) and comments."""
    # Largest speed of each axis alone [m/s, m/s, rad/s]: reached, or wheel speed limit times geometry.
    limits = {**_limits_of_wheels(result, robot), **_reached(result, SPEED)}
    return {
        "mecanum_drive_controller.yaml": (
            "/**/mecanum_drive_controller",
            *_mecanum_controller(result, robot, limits, twist_error),
        ),
        **controllers_of_axles(result, robot),
        "nav2.yaml": (
            "/**/controller_server",
            _nav2_parameters(result),
            [
                "Dead times [s] of the base for Nav2's MPPI controller, which rounds them to its model_dt.",
                f"Load it after your own Nav2 parameters; replace {_PLUGIN} if your plugin has another name.",
            ],
        ),
        "nav2_velocity_smoother.yaml": (
            "/**/velocity_smoother",
            *_smoother(limits, _reached(result, ACCELERATION), robot),
        ),
    }


# mecanum_drive_controller and the velocity smoother of Nav2

_GEOMETRY, _FRICTION = "base.geometry", "base.friction"
_AXES = ("linear.x", "linear.y", "angular.z")
_FLAT = 1e-6  # variance of z, roll and pitch of a base on a floor, as the node odometry publishes it
_NO_ACCELERATIONS = "The largest accelerations of all axes are not known: no command exceeded what the base can do."


def _lever(robot: Robot) -> float:
    """Distance K [m] in R w = vx - vy / lateral_factor - K wz; half_length + half_width if the factor is 1."""
    geometry = robot.base.geometry
    return geometry.half_length / geometry.lateral_factor + geometry.half_width


def _reached(result: Result, limit: Row) -> dict[str, float]:
    """Axis -> largest acceleration [m/s2, rad/s2] or speed [m/s, rad/s], where a drive asked for more."""
    names = dict(zip(CASES["axis"], _AXES, strict=True))
    return {names[one.row.of["axis"]]: one.estimate.value for one in result.of(limit) if one.identified}


def _limits_of_wheels(result: Result, robot: Robot) -> dict[str, float]:
    """Axis -> its speed at the largest one of the wheels, with identified geometry, or a faster one that was driven.

    The largest speed of the wheels may be assumed.
    """
    identified, base = result.parameters_of(_GEOMETRY), result.applied_to(robot).base.geometry.mecanum()
    if "wheel_radius" not in identified:
        return {}
    sideways = bool(base.free_axes[1]) and ("lateral_factor" in identified or not base.all_forward)
    levers = ("half_length", "wheel_distance", "track", *(["wheelbase"] if robot.base.limits.steering > 1.57 else []))
    known = True, sideways, any(name in identified for name in levers)
    rows = zip(_AXES, np.max(np.abs(base.inverse_matrix), axis=0).tolist(), known, strict=True)
    names = dict(zip(CASES["axis"], _AXES, strict=True))
    delays = {names[one.row.of["axis"]]: one.details for one in result.of(EFFECTIVE) if one.identified}
    driven = {
        axis: float(found["gain"]) * float(found["fastest"]) for axis, found in delays.items() if "fastest" in found
    }
    most = robot.base.limits.wheel_speed
    return {axis: max(most / row, driven.get(axis, 0.0)) for axis, row, told in rows if told}


def _mecanum_controller(
    result: Result, robot: Robot, limits: Mapping[str, float], twist_error: object
) -> tuple[dict[str, Value], list[str]]:
    """Kinematics, speed limits and twist covariance for mecanum_drive_controller, and what to know about them.

    Its kinematics are R w = vx -+ vy -+ K wz with one radius and no lateral factor. A base on other wheels gets none.

    Source: ros2_controllers 6.9.0, src/mecanum_drive_controller.yaml and .cpp; robot_localization issue 246.
    """
    identified, better = result.parameters_of(_GEOMETRY), result.applied_to(robot)
    if "wheel_radius" not in identified or not robot.base.geometry.mecanum().all_forward:
        return {}, []
    values: dict[str, Value] = {"kinematics.wheels_radius": mean_radius(better)}
    comments = [
        "Load it after your own parameters of the controller, which name the joints; rename the node if needed."
    ]
    if "half_length" in identified:
        values["kinematics.sum_of_robot_center_projection_on_X_Y_axis"] = _lever(better)
    else:
        comments.append("The sum of the half lengths is left out: the lever of turns was not identified.")
    if "lateral_factor" in identified:
        factor = better.base.geometry.lateral_factor
        comments += [
            f"The controller has no lateral factor: the base moves sideways at {factor:.4g} of the commanded",
            "speed, and of the speed in its odometry. Divide sideways commands by it.",
        ]
    for axis, limit in limits.items():
        values |= {f"{axis}.max_velocity": limit, f"{axis}.min_velocity": -limit}
    comments.append("Speed limits need version 6.8, or one of Jazzy or Kilted of mid-2026; older ones ignore them.")
    accelerations = _reached(result, ACCELERATION)
    for axis, limit in accelerations.items():
        values |= {f"{axis}.max_acceleration": limit, f"{axis}.max_deceleration": -limit}
    comments += [] if len(accelerations) == len(_AXES) else [_NO_ACCELERATIONS]
    if isinstance(twist_error, np.ndarray):
        forward = better.base.geometry.mecanum().forward_matrix
        rounding = robot.driver.velocity_quantum**2 / 12.0 * np.sum(forward**2, axis=1)
        x, y, yaw = (twist_error**2 + rounding).tolist()
        values["twist_covariance_diagonal"] = (x, y, _FLAT, _FLAT, _FLAT, yaw)
        comments += [
            "Covariance of the twist: RMS errors of odometry over 2 s against the recorded poses, their noise",
            "included, and the rounding of the wheel speeds that the driver reports.",
            "robot_localization reads it from the odometry message: let it fuse the twist.",
        ]
    else:
        comments.append("Covariance of the twist is left out: no recorded poses show the error of the odometry.")
    comments.append(
        "Covariance of the pose is left out: the controller publishes a constant, the error grows on the way."
    )
    return values, comments


def _smoother(
    speeds: Mapping[str, float], accelerations: Mapping[str, float], robot: Robot
) -> tuple[dict[str, Value], list[str]]:
    """Limits for Nav2's velocity smoother, which needs all three axes.

    Source: Nav2 documentation, velocity smoother: velocities, accelerations and decelerations of x, y and theta.
    """
    values: dict[str, Value] = {}
    comments = []
    none = {} if robot.base.geometry.moves_sideways else {"linear.y": 0.0}
    speeds, accelerations = ({**none, **known} if known else known for known in (speeds, accelerations))
    if set(speeds) == set(_AXES):
        most = tuple(speeds[axis] for axis in _AXES)
        values |= {"max_velocity": most, "min_velocity": tuple(0.0 - limit for limit in most)}
        comments.append(
            f"Speed of each axis alone [m/s, m/s, rad/s]: reached by the drive, or at {robot.base.limits.wheel_speed:g}"
            " rad/s of the wheels (base.limits.wheel_speed of the robot file, or assumed); together they need more."
        )
    if set(accelerations) == set(_AXES):
        most = tuple(accelerations[axis] for axis in _AXES)
        values |= {"max_accel": most, "max_decel": tuple(0.0 - limit for limit in most)}
    else:
        comments.append(
            f"{_NO_ACCELERATIONS} Set max_accel and max_decel: by default the smoother allows no sideways acceleration."
        )
    return values, comments


# Nav2 controllers

_PLUGIN = "FollowPath"


def _nav2_parameters(result: Result) -> dict[str, Value]:
    """Identified dead times [s] of the base as parameters of Nav2's controller server.

    model_delay_vx, model_delay_vy and model_delay_wz are the times from a published command to its effect; predictions
    start with the commands sent during that time. Nav2 only shifts the commands and does not low-pass filter them, so
    these values are dead times without lag: with a lag included, the predicted base would stand still and then jump.

    Two stages estimate dead times: `delay` per axis, `response` with friction. The estimate with the smaller interval
    is used. A dead time is left out if it is usable only as part of the whole response, or if the lag of its axis is
    refused, since Nav2 uses the dead time alone.

    Source: Nav2 plugin nav2_mppi_controller, navigation2 pull request 6154 (mid-2026).
    """
    delays: dict[str, Value] = {}
    for axis, velocity in (("x", "vx"), ("y", "vy"), ("yaw", "wz")):
        known = [
            finding.estimate
            for dead_time, lag in ((DEAD_TIME, LAG), (response.DEAD_TIME, response.LAG))
            for finding in result.of(dead_time.at(axis=axis))
            if finding.identified and all(one.identified for one in result.of(lag.at(axis=axis)))
        ]
        if known:
            surest = min(known, key=lambda estimate: estimate.standard_error)
            delays[f"{_PLUGIN}.model_delay_{velocity}"] = surest.value
    return delays


# URDF


def _urdf_text(result: Result, robot: Robot, bodies: object, head: list[str]) -> str:
    """A copy of the URDF of the arm with the identified friction and bodies; "" if there are none."""
    dynamics = _joint_dynamics(result, robot)
    inertias = _link_inertias(bodies, robot) if isinstance(bodies, ConsistentInertia) else {}
    if not dynamics and not inertias:
        return ""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(robot.arm.urdf_file(), parser).getroot()
    for joint in root.findall("joint"):
        if values := dynamics.get(joint.get("name", "")):
            element = ElementTree.SubElement(joint, "dynamics", {key: repr(value) for key, value in values.items()})
            element.tail = "\n  "
    for link in root.findall("link"):
        parameters = inertias.get(link.get("name", ""))
        if parameters is not None:
            _put_inertia(link, parameters)
    about = [
        f"Friction of: {', '.join(dynamics) or 'no joint'}. Bodies of: {', '.join(inertias) or 'no link'}.",
        f"All other values are those of {Path(robot.arm.urdf).name}, which names their sources.",
    ]
    comment = ElementTree.Comment(_comment([*head, *about]))
    comment.tail = "\n  "
    root.insert(0, comment)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _joint_dynamics(result: Result, robot: Robot) -> dict[str, dict[str, float]]:
    """Attributes damping [N m s/rad] and friction [N m] of <dynamics> by joint name; only identified values.

    URDF models Coulomb and viscous friction. A wheel gets its own Coulomb and viscous torque if they were identified
    per wheel. Otherwise it gets the common Coulomb torque, and as damping its share of the forward viscous friction of
    the base, xi_L R^2 / 4, since 4 d w / R = xi_L R w on a straight line. The sideways friction of the rollers is left
    out, because the wheels of the URDF are plain cylinders.
    """
    better = result.applied_to(robot).base
    corners, coulomb = better.geometry.wheel_names, better.friction.wheel_coulomb
    straight = better.friction.viscous_x * better.geometry.wheel_radius**2 / len(corners)
    dynamics: dict[str, dict[str, Any]] = {}
    for k, name in enumerate(robot.driver.arm_joints):
        found = result.parameters_of(f"arm.joint_{k + 1}.friction")
        pairs = (("damping", "viscous"), ("friction", "coulomb"))
        dynamics[name] = {key: found[of] for key, of in pairs if of in found}
    found = result.parameters_of(_FRICTION)
    for key, name, common, row in (
        ("damping", "viscous_x", straight, WHEEL_VISCOUS),
        ("friction", "wheel_coulomb", coulomb, WHEEL_COULOMB),
    ):
        values = dict.fromkeys(corners, common) if name in found else {}
        values |= {one.row.of["wheel"]: max(0.0, one.estimate.value) for one in result.of(row) if one.identified}
        for joint, corner in zip(robot.driver.wheel_joints, corners, strict=True):
            dynamics.setdefault(joint, {}).update({key: values[corner]} if corner in values else {})
    return {name: values for name, values in dynamics.items() if values}


def _link_inertias(bodies: ConsistentInertia, robot: Robot) -> dict[str, Vector]:
    """Inertial parameters (10,) of each moving link of the arm: m, m c, inertia about the origin of the link.

    The identified bodies include the parts fixed to them, the fingers of the gripper; these are subtracted.
    """

    def of_links(parameters: Vector, tree: Tree) -> dict[str, Vector]:
        return dict(zip(tree.names, parameters[: OF_BODY * len(tree.names)].reshape(-1, OF_BODY), strict=True))

    arm, rotors = robot.arm, robot.arm.reflected_rotor_inertia()
    whole = arm.tree()
    alone = Tree.from_urdf(arm.urdf_file(), root=arm.root_link, tip=arm.tip_link, rotor_inertias=rotors)
    drawn, own = of_links(inertial_parameters(whole), whole), of_links(inertial_parameters(alone), alone)
    return {name: own[name] + values - drawn[name] for name, values in of_links(bodies.parameters, whole).items()}


def _put_inertia(link: ElementTree.Element, parameters: Vector) -> None:
    """Write inertial parameters (10,) into the <inertial> of a link."""
    mass, moment = float(parameters[0]), parameters[1:4]
    centre = moment / mass
    xx, xy, xz, yy, yz, zz = parameters[4:]
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - point_inertia(mass, centre)
    inertial = link.find("inertial")
    assert inertial is not None  # every moving link of the arm has one
    tail = inertial.tail
    inertial.clear()
    inertial.tail = tail
    ElementTree.SubElement(inertial, "origin", {"xyz": _numbers(*centre), "rpy": "0 0 0"})
    ElementTree.SubElement(inertial, "mass", {"value": repr(mass)})
    places = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ElementTree.SubElement(inertial, "inertia", {key: repr(float(central[at])) for key, at in places.items()})
    inertial.text = "\n      "
    for child in inertial:
        child.tail = "\n      "
    inertial[-1].tail = "\n    "


# MuJoCo

_MOTOR = ("torque_constant", "resistance")
_BRISTLES = ("coulomb", "sigma0", "sigma1")


def _one_node(motor: ThermalMotor) -> tuple[float, float]:
    """Thermal resistance [K/W] and capacity [J/K] of a single node that replaces winding and housing.

    Its resistance is R = R_wh + R_ha, so that every constant current leads to the same final winding temperature. Its
    time constant is tau = C_w R + C_h R_ha^2 / R, the mean time of the heat flow, so that both step responses have the
    same area. The first seconds differ, because the winding heats up before its housing.
    """
    both = motor.thermal_resistance
    away = motor.housing_ambient_resistance
    time_constant = motor.winding_capacity * both + motor.housing_capacity * away**2 / both
    return both, time_constant / both


def _dcmotor(name: str, geared: GearedMotor, friction: LuGre, identified: set[str]) -> ElementTree.Element:
    """Element <dcmotor> of a joint with voltage input; thermal and friction values only if any of them was identified.

    The MuJoCo motor is on the rotor side of the gear with ratio N. Joint friction torques are therefore divided by N,
    torques per angle or speed by N^2, and speeds are multiplied by N. The winding is its only thermal node; see
    `_one_node`.

    Source: technical note "MuJoCo DC Motor Model", MuJoCo 3.7.
    """
    motor, ratio = geared.motor, geared.ratio
    element = ElementTree.Element("dcmotor", {"name": name, "joint": name, "gear": repr(ratio)})
    element.set("motorconst", f"{motor.torque_constant!r} {motor.torque_constant!r}")
    element.set("resistance", repr(motor.resistance))
    if identified & set(HEAT_CONSTANTS):
        temperatures = (motor.temperature_coefficient, motor.reference_temperature, motor.ambient_temperature)
        element.set("thermal", _numbers(*_one_node(motor), 0.0, *temperatures))
    coulomb, viscous, sigma0, sigma1, static, stribeck_speed = friction.constants
    if identified & set(_BRISTLES):
        square = ratio**2
        bristles = (sigma0 / square, sigma1 / square, coulomb / ratio, static / ratio, stribeck_speed * ratio)
        element.set("lugre", _numbers(*bristles))
    if "viscous" in identified:
        element.set("damping", repr(viscous / ratio**2))
    return element


def _mujoco_text(result: Result, robot: Robot, head: list[str]) -> str:
    """MJCF with the motors of the joints for which anything was identified; "" if there are none, or of unknown motors.

    Values of these motors that were not identified are those of the robot; the comment at the start lists them.
    """
    better = result.applied_to(robot)
    if not better.arm.is_known:
        return ""
    actuator = ElementTree.Element("actuator")
    comments = list(head)
    motors, frictions = better.arm.motors(), better.arm.friction()
    for k, name in enumerate(robot.driver.arm_joints):
        group = f"arm.joint_{k + 1}"
        identified = {*result.parameters_of(f"{group}.friction"), *result.parameters_of(f"{group}.motor")}
        if not identified:
            continue
        element = _dcmotor(name, motors[k], frictions[k], identified)
        actuator.append(element)
        written = list(_MOTOR)
        written += [*HEAT_CONSTANTS, "temperature_coefficient"] if element.get("thermal") else []
        written += list(_BRISTLES) if element.get("lugre") else []
        own = ", ".join(what for what in written if what not in identified)
        comments.append(
            f"{name}: identified {', '.join(sorted(identified))}" + (f"; the robot's own {own}" if own else "")
        )
    if not len(actuator):
        return ""
    comments += [
        "Use: <include file='motors.xml'/> in a model with these joints; controls are voltages [V] of the windings.",
        "Rotor inertias (armature) are left out: they are not identified.",
    ]
    root = ElementTree.Element("mujoco")
    root.append(ElementTree.Comment(_comment(comments)))
    root.append(actuator)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _robot_text(
    result: Result, robot: Robot, written: list[Path], whole_robot: Callable[[Robot], str], head: list[str]
) -> str:
    """MJCF of the whole robot; "" if nothing of its mechanics was identified, or no such robot can be."""
    parameters = result.parameters()
    mechanics = [one for one in result.findings if one.row.group in (_GEOMETRY, _FRICTION) or "joint" in one.row.of]
    identified = [finding.name for finding in mechanics if finding.name in parameters]
    better = result.applied_to(robot)
    urdf = next((path for path in written if path.name == robot.arm.urdf_file().name), robot.arm.urdf_file())
    better = replace(better, arm=replace(better.arm, urdf=str(urdf.absolute())))
    try:
        text = whole_robot(better) if identified else ""
    except ModelError:
        return ""
    comments = [
        f"Identified: {', '.join(identified)}; bodies of the arm as in {urdf.name}. All else: the robot's own values.",
        "Wheels of free rollers, from which the lateral factor comes. The motors of the wheels take torques [N m].",
    ]
    return text.replace("<mujoco ", f"<!--{_comment([*head, *comments])}-->\n<mujoco ", 1)
