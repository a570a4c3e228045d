"""Parameter tables on a ROS node: declared with descriptors, checked on set; unknown names are refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Parameter, Value, check_names, fixed_parameter, settings_from_values
from youbot_dynamics.robot import ARM_FACTS, PREFIX, Robot, robot_from_values, robot_table

_FROM_ROS = ("use_sim_time", "start_type_description_service")

FRAME_TABLE = (
    Parameter("odom_frame", "odom", "Frame of the odometry.", read_only=True, source="REP-105"),
    fixed_parameter(
        "base_frame",
        "base_footprint",
        "Frame of the base on the floor.",
        source="a2s-institute/youbot_driver_ros_interface@4c6795f YouBotOODLWrapper.cpp",
    ),
    Parameter("frame_prefix", "", "Prefix of both frame names.", read_only=True, source="chosen: one robot needs none"),
)

STAMPED_CMD_VEL = fixed_parameter(
    "enable_stamped_cmd_vel",
    False,
    "Whether cmd_vel is TwistStamped instead of Twist.",
    source="Nav2 documentation, parameter of the same name",
)

FIND_ROLLER_PHASES = fixed_parameter(
    "find_roller_phases",
    False,
    "Whether odometry finds unknown roller phases with a gyro, and base_controller uses them.",
    source="chosen: needs a gyro and robot.base.geometry.rollers and roller_depth of the real wheels",
)


class NodeParameters:
    """Parameters of one node, its own `table` and the robot's facts, as valid plain values.

    `check` raises a ParameterError for a name and value that the table allows and the node refuses.

    Raises:
        ParameterError: an override outside the table, of the wrong type or out of range.
    """

    def __init__(
        self, node: Node, table: Sequence[Parameter], check: Callable[[str, Any], None] = lambda name, value: None
    ) -> None:
        self.values: dict[str, Value] = {}
        self._extra_check = check
        overrides = node._parameter_overrides
        if (has_arm := overrides.get(f"{PREFIX}.has_arm")) is not None and not has_arm.value:
            for name in [name for name in overrides if name.startswith(ARM_FACTS)]:  # of an arm that is no matter here
                del overrides[name]
        given = {name: override.value for name, override in overrides.items()}
        self._table = {parameter.name: parameter for parameter in (*robot_table(given, {}), *table)}
        own = [n for n in overrides if n not in _FROM_ROS and not n.startswith("qos_overrides.")]
        check_names(own, self._table)
        for name, parameter in self._table.items():
            value = overrides[name].value if name in overrides else parameter.default
            self.values[name] = parameter.check(value)
            default: Any = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            node.declare_parameter(name, default, _descriptor(parameter))
        self._simulated = node.get_parameter("use_sim_time").value
        self._changed: list[Callable[[], None]] = []
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._take)

    def __getitem__(self, name: str) -> Any:
        """Value of a parameter by its dotted name."""
        return self.values[name]

    def below(self, prefix: str) -> dict[str, Value]:
        """Values of the parameters whose names begin with a prefix and a dot."""
        return {name: value for name, value in self.values.items() if name.startswith(f"{prefix}.")}

    def robot(self) -> Robot:
        """The robot these parameters describe."""
        return robot_from_values(self.below(PREFIX))

    def settings(self, kind: type) -> Any:
        """Dataclass of settings filled from the parameters of the same names."""
        return settings_from_values(kind, self.values)

    def frames(self) -> tuple[str, str]:
        """Odometry and base frame, prefix included."""
        prefix = str(self.values["frame_prefix"])
        return prefix + str(self.values["odom_frame"]), prefix + str(self.values["base_frame"])

    def on_change(self, rebuild: Callable[[], None]) -> None:
        """Call `rebuild` after parameters have changed."""
        self._changed.append(rebuild)

    def _check(self, parameters: Sequence[Any]) -> SetParametersResult:
        try:
            for parameter in parameters:
                if parameter.name == "use_sim_time" and parameter.value != self._simulated:
                    got, remedy = f"{parameter.value} while the node runs", "relaunch with it: stamps would jump"
                    raise ParameterError("parameter use_sim_time", got=got, expected="no change", remedy=remedy)
                if parameter.name in self._table:
                    self._extra_check(parameter.name, self._table[parameter.name].check(parameter.value))
        except ParameterError as problem:
            return SetParametersResult(successful=False, reason=str(problem))
        return SetParametersResult(successful=True)

    def _take(self, parameters: Sequence[Any]) -> None:
        own = [parameter for parameter in parameters if parameter.name in self._table]
        for parameter in own:
            self.values[parameter.name] = self._table[parameter.name].check(parameter.value)
        for rebuild in self._changed if own else ():
            rebuild()


def given_files() -> tuple[Path, ...]:
    """Parameter files in the arguments of this process, the later one winning."""
    return tuple(Path(file) for word, file in pairwise(sys.argv) if word == "--params-file")


def value_for(node: Node, name: str, parameter: Parameter) -> Value:
    """What the files of this process give to the node `name` beside `node`, whether or not it runs.

    Raises:
        ParameterError: a value that the parameter refuses.
    """
    space = node.get_namespace().strip("/")
    values = {key: value for file in given_files() for key, value in read_parameters(file, name, space).items()}
    return parameter.check(values.get(parameter.name, parameter.default))


def _descriptor(parameter: Parameter) -> ParameterDescriptor:
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    choices = f" One of {', '.join(parameter.choices)}." if parameter.choices else ""
    descriptor = ParameterDescriptor(
        description=f"{parameter.description}{unit}{choices}",
        additional_constraints=f"source: {parameter.source}" if parameter.source else "",
        read_only=parameter.read_only,
    )
    if parameter.low is not None and parameter.high is not None:
        if isinstance(parameter.default, float):
            descriptor.floating_point_range = [FloatingPointRange(from_value=parameter.low, to_value=parameter.high)]
        elif isinstance(parameter.default, int):
            low, high = int(parameter.low), int(parameter.high)
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
    return descriptor
