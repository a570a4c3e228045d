"""The robot as one frozen object; its values stand in config/youbot.yaml and in identification results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import rounded
from youbot_dynamics.errors import ModelError, ParameterError, ResourceError, doubled
from youbot_dynamics.kinematics.mecanum import FEWEST_ROLLERS, MecanumBase, mean_factor
from youbot_dynamics.parameter_file import read_checked, read_parameters
from youbot_dynamics.parameters import Parameter, Value, build, fact, fact_table, facts_of, is_unknown, values_in
from youbot_dynamics.resources import config_path, robot_path
from youbot_dynamics.robot_arm import Arm, ArmJoint, check_arm, defaults_of_urdf
from youbot_dynamics.robot_base import (
    NEUTRAL,
    WHEELS,
    Base,
    check_drives,
    check_same_wheels,
    drive_angles_fact,
    kinematics_of,
    track_fact,
    wheel_distance_fact,
    wheelbase_fact,
)

ResultFiles: TypeAlias = Path | str | tuple[Path | str, ...] | None
PREFIX = "robot"
UNNAMED = ("unnamed base", "unnamed robot", "unnamed base with joints")  # of recordings: the second of a text log
_ROLLERS, _LATERAL_FACTOR = f"{PREFIX}.base.geometry.rollers", f"{PREFIX}.base.geometry.lateral_factor"
_WHEEL_JOINTS = f"{PREFIX}.driver.wheel_joints"
_ARM_JOINTS, _JOINT, _URDF = f"{PREFIX}.driver.arm_joints", f"{PREFIX}.arm.joint", f"{PREFIX}.arm.urdf"
_DRIVER = "youbot/youbot_driver@814989d config/youbot-base.cfg"
_WRAPPER = "a2s-institute/youbot_driver_ros_interface@4c6795f YouBotOODLWrapper.cpp"
_READINGS = f"{_WRAPPER} computeOODLSensorReadings"
ARM_FACTS = (f"{PREFIX}.arm.", f"{PREFIX}.driver.arm_", f"{PREFIX}.driver.motor_")  # begin the names of an arm's facts
_OF_WHEELS = ("wheel", "half_", "drive_", "track", "position_", "velocity_", "command_", "array_", "stamped_")
BASE_FACTS = (f"{PREFIX}.base.", *(f"{PREFIX}.driver.{name}" for name in _OF_WHEELS))  # those of a base
_ROOT, _TIP = f"{PREFIX}.arm.root_link", f"{PREFIX}.arm.tip_link"
_ROTOR = "motor.rotor_inertia"
_OWN = (f"{PREFIX}.base.geometry.wheel_radius", f"{PREFIX}.driver.", _URDF)  # one begins a fact of each robot file
_UNKNOWN_AT_ZERO = (_ROTOR, "driver.wheel_torque_constant")
_ID, _YOUBOT = f"{PREFIX}.robot_id", "youbot"
_HAS_ARM, _HAS_BASE = f"{PREFIX}.has_arm", f"{PREFIX}.has_base"
# Geometry of the base and of its driver alike: where a robot file gives one of both, it is the other's default.
_OF_BOTH = ("wheel_radius", "half_length", "half_width", "wheel_distance", "track", "wheelbase", "drive_angles")
_TICK = 1.534e-3  # [rad] assumed step of a wheel's position: 4096 for a turn
_RPM = "Rajagopal 2018 (MSc thesis, H-BRS), logs of arm joints 4 and 5: 15 rpm, one encoder tick per ms"


@dataclass(frozen=True)
class Driver:
    """How the youBot driver speaks: names, its own geometry and its signs (value x sign = ours)."""

    wheel_joints: tuple[str, ...] = fact("Joint names of FL, FR, RL, RR, or wheel and its steering.", source=_WRAPPER)
    arm_joints: tuple[str, ...] = fact("Names of the arm's joints from the base on.", source=_WRAPPER)
    wheel_radius: float = fact("Wheel radius in the driver's configuration.", "m", (0.02, 0.5), source=_DRIVER)
    half_length: float = fact("Half of the wheelbase in the driver's configuration.", "m", (0.05, 1.0), source=_DRIVER)
    half_width: float = fact("Half of the track in the driver's configuration.", "m", (0.05, 1.0), source=_DRIVER)
    wheel_distance: float = wheel_distance_fact()
    drive_angles: tuple[float, ...] = drive_angles_fact()
    track: float = track_fact()
    wheelbase: float = wheelbase_fact()
    position_sign: tuple[float, ...] = fact(
        "Sign of the wheel positions: the wrapper inverts FL and BL.", "1", (-1.0, 1.0), source=_READINGS
    )
    velocity_sign: tuple[float, ...] = fact(
        "Sign of the wheel velocities: the wrapper does not invert them.", "1", (-1.0, 1.0), source=_READINGS
    )
    command_sign: tuple[float, ...] = fact(
        "Sign of the wheel speed commands that the driver expects (see docs/source_systems/deviations.md, D-003-1).",
        "1",
        (-1.0, 1.0),
        source="youbot/youbot_driver@814989d FourSwedishWheelOmniBaseKinematic.cpp",
    )
    position_quantum: float = fact(
        "Step of the wheel position: 2 pi / (4000 x 9405 / 364).", "rad", (0.0, 0.1), source=_DRIVER
    )
    velocity_quantum: float = fact("Step of the wheel velocity: 15 motor rpm.", "rad/s", (0.0, 1.0), source=_RPM)
    motor_position_quantum: float = fact(
        "Step of a motor's position, before the gear: 2 pi / 4000.", "rad", (0.0, 1.0), source=_DRIVER
    )
    motor_velocity_quantum: float = fact(
        "Step of a motor's speed, before the gear: 15 rpm.", "rad/s", (0.0, 10.0), source=_RPM
    )
    stamped_twist: bool = fact(
        "Whether the driver takes TwistStamped instead of Twist.",
        source="a2s-institute/youbot_driver_ros_interface@4c6795f: takes Twist alone",
    )
    rate: float = fact(
        "Rate of the driver's loop, in which it reads the wheels.",
        "Hz",
        (1.0, 1000.0),
        source="a2s-institute/youbot_driver_ros_interface@4c6795f, parameter youBotDriverCycleFrequencyInHz",
    )
    wheel_torque_constant: float = fact(
        "Wheel torque for each ampere of its motor; 0: unknown.", "N m/A", (0.0, 100.0), source="chosen: unknown"
    )
    wheel_speed_limit: float = fact(
        "Wheel speed to which each motor controller limits its own wheel.",
        "rad/s",
        (0.1, 200.0),
        source="KUKA youBot specification: 0.8 m/s on wheels of 47.5 mm, 4156 motor rpm; base.cfg of the maker has "
        "4000 rpm for ramps to positions",
    )
    array_order: tuple[str, ...] = fact(
        "Order of the wheels in which the driver takes an array of speeds: fl, fr, rl, rr in any order.",
        source="chosen: as wheel_joints; in ros2_control the list `joints` of the controller",
    )
    stamp_jitter: float = fact(
        "Standard deviation of the stamps of the 50 Hz loop.",
        "s",
        (0.0, 0.05),
        source="chosen: within the 0.3 to 2 ms of a 50 Hz loop on Linux without real time",
    )

    def __post_init__(self) -> None:
        """Refuse a joint that stands twice: its readings would count for two."""
        for what, names in (
            ("wheel_joints", self.wheel_joints),
            ("arm_joints", self.arm_joints),
            ("array_order", self.array_order),
            ("wheel_joints and arm_joints", (*self.wheel_joints, *self.arm_joints)),
        ):
            if twice := doubled(names):
                thing, remedy = f"parameter robot.driver.{what}", "give each joint its own name"
                raise ParameterError(thing, got=f"{', '.join(twice)} twice", expected="each once", remedy=remedy)

        check_drives("parameter robot.driver", self)
        wheels = WHEELS[: len(self.drive_angles)]
        for what in ("wheel_joints", "position_sign", "velocity_sign", "command_sign", "array_order"):
            if (count := len(getattr(self, what))) != len(wheels):
                got, expected = f"{count} elements", f"{len(wheels)}, as robot.driver.drive_angles"
                remedy = "give each wheel one; omni wheels need wheel_distance and drive_angles of robot.driver too, "
                remedy += "the two wheels of a differential base their track, a steered wheel its wheelbase"
                raise ParameterError(f"parameter robot.driver.{what}", got=got, expected=expected, remedy=remedy)
        if set(self.array_order) != set(wheels):
            got, expected = ", ".join(self.array_order), f"{', '.join(wheels)} in any order"
            raise ParameterError("parameter robot.driver.array_order", got=got, expected=expected)

    def array_places(self) -> list[int]:
        """Index, in `wheel_joints`, of each wheel of an array of speeds."""
        return [WHEELS.index(wheel) for wheel in self.array_order]

    def mecanum(self) -> MecanumBase:
        """Kinematics the driver itself uses; it knows no lateral factor."""
        return kinematics_of(self, 1.0, np.zeros(len(self.drive_angles)))


@dataclass(frozen=True)
class Robot:
    """Everything the package knows of one robot, in SI units; docs/parameters.md lists each value with its source.

    Args:
        base: geometry, limits, masses, friction, delays and response of the base.
        arm: URDF, friction and motor of each joint.
        driver: names and signs of the joints, rate and resolution of the readings.
        has_arm: whether the robot has this arm.
        has_base: whether the robot has this base.
        robot_id: its name; results of another robot are refused.

    Raises:
        ParameterError: other wheels of the driver than of the base, or lists that do not fit the joints of the arm.

    Example:
        >>> yd.load_robot().base.geometry.mecanum().wheel_speeds([0.1, 0.0, 0.0]).round(2)
        array([2.11, 2.11, 2.11, 2.11])
    """

    base: Base
    arm: Arm
    driver: Driver
    has_arm: bool = fact("Whether the robot has the arm described here.", source="KUKA youBot manual V6")
    has_base: bool = fact("Whether the robot has the base described here.", source="KUKA youBot manual V6")
    robot_id: str = fact("Name of this robot; results of another robot are refused.", source="chosen: set your own")

    def __post_init__(self) -> None:
        """Refuse a driver of other wheels, and lists of the arm that have not one element for each of its joints."""
        n = len(self.arm.joints)
        check_same_wheels(self.driver, self.base.geometry, self.has_arm)
        for name in ("driver.arm_joints", "arm.rest_position", "arm.excitation_centre", "arm.excitation_reach"):
            if len(given := attrgetter(name)(self)) != n:
                got, expected = f"{len(given)} elements", f"one for each of the {n} joints of the arm"
                raise ParameterError(f"parameter {PREFIX}.{name}", got=got, expected=expected)

    @property
    def is_youbot(self) -> bool:
        """Whether it is a youBot, by its name: one with another name has nothing of the youBot that its file lacks."""
        return self.robot_id.startswith(_YOUBOT)

    def arm_quanta(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps of the arm's positions (n,) [rad] and velocities (n,) [rad/s], as the driver reports them."""
        ratios = np.array([joint.motor.gear_ratio for joint in self.arm.joints])
        return self.driver.motor_position_quantum / ratios, self.driver.motor_velocity_quantum / ratios


def robot_table(given: Mapping[str, Any] | None = None, own: Mapping[str, Any] | None = None) -> tuple[Parameter, ...]:
    """Parameter table of all robot facts, with the values of config/youbot.yaml as defaults.

    Args:
        given: dotted names and values of files, the URDF by its path. They say how many joints the arm has. Friction
            and motors of an arm with another URDF are NaN, unknown, where no file gives them, its rotor inertias 0.
            The lateral factor of wheels with given rollers follows from these. A `robot_id` that does not begin with
            youbot is of another robot, which has the defaults of `_assumed`.
        own: those of the robot's own files, without what was identified; `given` by default.

    Raises:
        ParameterError: a joint of such an arm has a value that its parameter refuses.
    """
    values, given = read_parameters(config_path("youbot.yaml"), ""), given or {}
    own = given if own is None else own
    if not str(own.get(_ID, _YOUBOT)).startswith(_YOUBOT):
        values |= _assumed(values, own)
    same_arm = (urdf := given.get(_URDF, values[_URDF])) == values[_URDF]
    if not same_arm and isinstance(urdf, str):
        of_urdf = defaults_of_urdf(urdf, given.get(_ROOT), given.get(_TIP), given.get(_ARM_JOINTS))
        values |= {f"{PREFIX}.{name}": value for name, value in of_urdf.items()}
    names = given.get(_ARM_JOINTS, values[_ARM_JOINTS])
    defaults = {name: value for name, value in values.items() if not name.startswith(_JOINT)}
    rollers = given.get(_ROLLERS)
    if isinstance(rollers, int | float) and rollers >= FEWEST_ROLLERS:
        defaults[_LATERAL_FACTOR] = round(mean_factor(rollers), 4)  # not that of the youBot's wheels
    for k in range(len(names)):
        for leaf, _, metadata in facts_of(ArmJoint, ""):
            name = f"{_JOINT}_{k + 1}{leaf}"
            if same_arm and name in values:
                defaults[name] = values[name]
            elif name in given and not is_unknown(given[name]):
                defaults[name] = Parameter(name, values[f"{_JOINT}_1{leaf}"], **metadata).check(given[name])
            else:
                defaults[name] = 0.0 if leaf.endswith(_ROTOR) else math.nan
    return fact_table(Robot, PREFIX, defaults, len(names))


def _assumed(youbot: Mapping[str, Value], given: Mapping[str, Any]) -> dict[str, Value]:
    """Defaults of a robot that is no youBot: a driver that changes nothing, masses and friction of the robot's size.

    The mass is that of a youBot on the floor between the wheels; friction and inertia follow from it and the wheels.
    A value of another type than the youBot's, or out of its range, is left to the check of its parameter.
    """
    facts = {name: metadata for name, _, metadata in facts_of(Robot, PREFIX)}
    arm_alone = _URDF in given and not any(name.startswith(BASE_FACTS) for name in given)
    known: dict[str, Any] = {_HAS_ARM: _URDF in given, _HAS_BASE: not arm_alone, _LATERAL_FACTOR: 1.0}

    def default(name: str, value: Any) -> Any:
        """Set a default; return the value that holds, of the file or this."""
        known[name] = value
        of_file = given.get(name)
        if type(of_file) is not type(value) or not of_file:
            return value
        try:
            return Parameter(name, youbot[name], **facts[name]).check(of_file)
        except ParameterError:
            return value

    base, driver = f"{PREFIX}.base", f"{PREFIX}.driver"
    geometry: dict[str, Any] = {}
    for leaf in _OF_BOTH:
        if leaf == "drive_angles" and geometry["track"] + geometry["wheelbase"] > 0.0:
            youbot = {**youbot, f"{driver}.{leaf}": (0.0, 0.0)}
        value = default(f"{driver}.{leaf}", youbot[f"{driver}.{leaf}"])
        geometry[leaf] = value = default(f"{base}.geometry.{leaf}", value)
        known[f"{driver}.{leaf}"] = value
    count = min(len(geometry["drive_angles"]), len(WHEELS))
    for name in ("position_sign", "velocity_sign", "command_sign"):
        known[f"{driver}.{name}"] = (1.0,) * count
    known |= {f"{driver}.array_order": WHEELS[:count], f"{driver}.wheel_joints": youbot[_WHEEL_JOINTS][:count]}  # type: ignore[index]
    known |= {f"{driver}.position_quantum": _TICK, f"{driver}.velocity_quantum": 0.0}

    def of_youbot(leaf: str) -> float:
        return float(youbot[f"{base}.{leaf}"])  # type: ignore[arg-type]

    size = of_youbot("geometry.half_length"), of_youbot("geometry.half_width")
    length, width = (geometry["half_length"], geometry["half_width"])
    if geometry["wheel_distance"] > 0.0:
        length = width = geometry["wheel_distance"] / np.sqrt(2.0)
    if (across := geometry["track"] + geometry["wheelbase"]) > 0.0:
        length = width = across / 2.0
    larger = length * width / (size[0] * size[1])
    heavier = default(f"{base}.mass", rounded(of_youbot("mass") * larger)) / of_youbot("mass")
    wider = (length**2 + width**2) / (size[0] ** 2 + size[1] ** 2)
    higher = geometry["wheel_radius"] / of_youbot("geometry.wheel_radius")
    for leaf, factor in (
        ("geometry.roller_depth", higher),
        ("yaw_inertia", heavier * wider),
        ("wheel_inertia", heavier * higher**2),
        ("friction.wheel_coulomb", heavier * higher),
        ("friction.roller_coulomb", 0.0 if across > 0.0 else heavier),
        ("friction.viscous_x", heavier),
        ("friction.viscous_y", heavier),
    ):
        default(f"{base}.{leaf}", rounded(of_youbot(leaf) * factor))
    known[f"{base}.centre_of_mass"] = (0.0, 0.0)
    speed = default(f"{base}.limits.wheel_speed", rounded(of_youbot("limits.wheel_speed") / higher))
    known[f"{driver}.wheel_speed_limit"] = speed
    return known


def robot_from_values(values: dict[str, Value]) -> Robot:
    """Robot of a complete set of dotted names (`robot.base.geometry.wheel_radius`, ...)."""
    return build(Robot, PREFIX, values)


def values_of(robot: Robot) -> dict[str, Value]:
    """Dotted names and values of a robot, the inverse of `robot_from_values`."""
    return values_in(robot, PREFIX)


def unnamed_robot(name: str, joints: Sequence[str], has_base: bool) -> Robot:
    """A robot of which no more is known than the joints of its arm; nothing of it is a youBot's."""
    given: dict[str, Value] = {_ID: name, _HAS_BASE: has_base, _HAS_ARM: bool(joints)}
    given |= {_URDF: "", _ARM_JOINTS: tuple(joints)} if joints else {}
    return robot_from_values({one.name: given.get(one.name, one.default) for one in robot_table(given)})


def _results(paths: Sequence[Path], table: Mapping[str, Parameter], own_id: Value) -> dict[str, Value]:
    """Values of results of the robot `own_id`; each in one of them only."""
    result, source = dict[str, Value](), dict[str, Path]()
    for path in paths:
        found = _placed(path, read_checked(path, PREFIX, table))
        if foreign := next((name for name in found if name.startswith((f"{PREFIX}.driver.", f"{PREFIX}.has_"))), ""):
            raise ParameterError(
                f"result file {path}",
                got=f"a robot file: it has {foreign}",
                expected="result.yaml of youbot identify",
                remedy="give it as robot_file=, or on the command line as --robot-file",
            )
        if (result_id := found.pop(_ID, own_id)) != own_id:
            got, expected = f"a result of robot '{result_id}'", f"one of robot '{own_id}'"
            remedy = f"give the file that names robot '{result_id}': --robot-file, or --params-file"
            if result_id in UNNAMED:
                remedy = "identify its recording again with the --robot-file of the robot that drove"
            raise ParameterError(f"result file {path}", got=got, expected=expected, remedy=remedy)
        if twice := next((name for name in found if name in result), ""):
            got, remedy = f"{twice} in both", "give each value in one of them, and take it out of the other"
            raise ParameterError(f"result files {source[twice]} and {path}", got=got, remedy=remedy)
        result |= found
        source |= dict.fromkeys(found, path)
    return result


def load_robot(
    result_file: ResultFiles = None, params_file: Path | str | None = None, robot_file: Path | str | None = None
) -> Robot:
    """Robot of config/youbot.yaml < robot_file < result_file < params_file, each a ROS parameter file.

    A relative `robot.arm.urdf` becomes an absolute path where such a file is beside the file that names it. Joints of
    the arm that have the names of its URDF are put in the order of its chain.

    Args:
        result_file: result.yaml of an identification, or a tuple of several without a value in common.
        params_file: your own values; they have priority over all others.
        robot_file: what differs from the youBot, the name of a robot of config/robots, or the URDF of an arm; None for
            the youBot. Friction and motors of another arm that no file gives are NaN.

    Raises:
        ParameterError: a file that rcl would refuse, an unknown robot parameter or one out of range, a robot file
            without any or of a base without sizes and names, a robot file given as result file, a value in two result
            files, or a result that belongs to another robot; names the file, and the line of a parameter.
        ModelError: a URDF as robot file that is none, or has no arm.
        ResourceError: no robot of that name.

    Example:
        >>> yd.load_robot().base.limits.deceleration
        1.5
        >>> yd.load_robot(robot_file="rosbot_xl").base.geometry.wheel_radius
        0.047
    """
    named = robot_path(robot_file) if isinstance(robot_file, str) else robot_file
    facts_file = config_path("youbot.yaml") if named is None else named
    own_files = [facts_file, *result_files(params_file)]
    results = result_files(result_file)
    own, identified = (_merged(_placed(path, _given(path)) for path in paths) for paths in (own_files, results))
    table = {parameter.name: parameter for parameter in robot_table(own | identified, own)}
    facts, *others = (_placed(path, _given(path, table)) for path in own_files)
    params = _merged(others)
    result = _results(results, table, (facts | params).get(_ID, table[_ID].default))
    robot = robot_from_values({name: parameter.default for name, parameter in table.items()} | facts | result | params)
    of_another = named is not None and robot.has_base and not robot.is_youbot
    if not facts or (of_another and not any(name.startswith(_OWN) for name in (*facts, *result, *params))):
        got = "neither its wheel_radius nor its wheel_joints nor a URDF" if facts else "nothing about a robot"
        expected = f"/**: ros__parameters: {PREFIX}: NAME: VALUE, with at least its robot_id and geometry, or a URDF"
        remedy = "a result.yaml goes with --result-file, beside --robot-file; a robot.yaml holds both"
        raise ParameterError(f"robot file {robot_file}", got=got, expected=expected, remedy=remedy)
    return _in_chain_order(robot) if {_URDF, _ARM_JOINTS} & {*(facts if named else ()), *params} else robot


def result_files(given: ResultFiles) -> tuple[Path, ...]:
    """Files as they are given: none, one, or several."""
    paths = given if isinstance(given, tuple) else () if given is None else (given,)
    return tuple(Path(path) if isinstance(path, str) else path for path in paths)


def _merged(files: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Values of all files, the later one winning."""
    return {name: value for values in files for name, value in values.items()}


def _given(path: Path, table: Mapping[str, Parameter] | None = None) -> dict[str, Value]:
    """Values of a robot file, checked by a table if there is one; those of a URDF are its name and itself."""
    if str(path).lower().endswith(".urdf"):
        check_arm(path)
        return {_ID: path.stem, _URDF: str(path.absolute())}
    return read_parameters(path, "") if table is None else read_checked(path, PREFIX, table)


def _placed(path: Path, values: dict[str, Value]) -> dict[str, Value]:
    """Values of a file, with the absolute path of a URDF beside it."""
    beside = path.absolute().parent / str(values.get(_URDF, ""))
    return values | {_URDF: str(beside)} if _URDF in values and beside.is_file() else values


def open_facts(
    robot_file: Path | str | None, params_file: Path | None = None, result_file: ResultFiles = None
) -> dict[str, Value]:
    """Names and assumed values of all facts that the files of a robot leave open, NaN for unknown; none of a youBot.

    Raises:
        ParameterError, ResourceError: as `load_robot`.
    """
    robot = load_robot(None, params_file, robot_file)
    if robot.is_youbot or not robot_file:
        return {}
    named = robot_path(robot_file) if isinstance(robot_file, str) else robot_file
    paths = named, params_file, *result_files(result_file)
    given = {name for path in paths if path is not None for name in _given(path)}
    return {name: value for name, value in values_of(robot).items() if name not in given}


def assumptions(
    robot_file: Path | str | None,
    params_file: Path | None = None,
    result_file: ResultFiles = None,
    most: int = 2,
) -> str:
    """One line with what is assumed of a robot since its files do not say it; "" for nothing.

    A part that the robot lacks is left out, and what only an identification can find. Of more than `most` facts the
    others are counted.

    Raises:
        ParameterError, ResourceError: as `load_robot`.
    """
    values = open_facts(robot_file, params_file, result_file)
    if not values:
        return ""
    robot = load_robot(None, params_file, robot_file)
    geometry, base, driver = robot.base.geometry, f"{PREFIX}.base.", f"{PREFIX}.driver."
    places = f"{base}geometry.", f"{base}limits.", driver
    unasked = (_HAS_ARM, _HAS_BASE, *(place + leaf for place in places for leaf in geometry.unused()))
    if _ROLLERS not in values:  # from which it follows
        unasked += (_LATERAL_FACTOR,)
    if not robot.has_arm:
        unasked += ARM_FACTS
    elif not robot.has_base or f"{base}geometry.wheel_radius" in values:  # an arm, of whose base nothing is said
        unasked += BASE_FACTS
    unknown = dict.fromkeys(name.split(".")[3] for name, value in values.items() if is_unknown(value))
    table = facts_of(Robot, PREFIX, len(robot.arm.joints))
    identified = {name for name, _, about in table if about["source"].startswith(NEUTRAL)}
    texts = [
        f"{name.removeprefix(f'{PREFIX}.')} {_shown(value)}"
        for name, value in values.items()
        if not (name.startswith(unasked) or name in identified or is_unknown(value) or name.endswith(_UNKNOWN_AT_ZERO))
    ]
    more = f"; and {len(texts) - most} more, which youbot identify lists with --verbose" if len(texts) > most else ""
    told = [f"assumed, since {robot_file} does not say: {'; '.join(texts[:most])}{more}"] if texts else []
    told += [f"unknown until identified or given: {' and '.join(unknown)} of its joints"] if unknown else []
    motors = {f"joint_{k}": joint.motor for k, joint in enumerate(robot.arm.joints, 1)}
    idle = [name for name, motor in motors.items() if motor.rotor_inertia > 0.0 and math.isnan(motor.gear_ratio)]
    told += [f"rotor_inertia of {', '.join(idle)} counts as 0: it needs the gear_ratio"] if idle else []
    return "; ".join(told)


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _in_chain_order(robot: Robot) -> Robot:
    """The robot with its arm joints from the base on, where a driver lists the URDF's own names in another order."""
    try:
        names = robot.arm.joint_names()
    except (ModelError, ResourceError):  # named where the arm is used: a base has no need of it
        return robot
    known = robot.driver.arm_joints
    return replace(robot, driver=replace(robot.driver, arm_joints=names)) if {*names} == {*known} else robot
