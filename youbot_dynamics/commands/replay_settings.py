"""Robot and tuning of `youbot replay` out of the parameter files that node arm_ekf is started with."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.estimation.replay import ReplaySettings
from youbot_dynamics.nodes.arm_ekf_settings import ArmEkfSettings
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Value, check_names, settings_table
from youbot_dynamics.robot import PREFIX, Robot, load_robot, robot_from_values, robot_table, values_of

NODE = "arm_ekf"
# Of the node and of no concern to a log: frames, and what ROS gives to every node.
_ELSEWHERE = ("base_frame", "frame_prefix", "use_sim_time", "start_type_description_service")


def read_node(result_file: Path | None, params_file: Path | None) -> tuple[Robot, ArmEkfSettings]:
    """Robot and settings that node arm_ekf would have, in no namespace, with these files: the latter wins.

    Args:
        result_file: of `youbot identify`.
        params_file: a ROS parameter file; its sections `/**`, `/**/arm_ekf` and `/arm_ekf` apply.

    Raises:
        ParameterError: as `load_robot`; a parameter that the node does not have, with the nearest one, or a value
            that it refuses.
    """
    robot = load_robot(result_file, params_file)
    facts = {one.name: one for one in robot_table()}
    table = {one.name: one for one in settings_table(ArmEkfSettings)}
    told: dict[str, Value] = {}
    for path in (result_file, params_file):
        if path is None:
            continue
        for name, value in read_parameters(path, NODE).items():
            if name in _ELSEWHERE or name.startswith("qos_overrides."):
                continue
            try:
                check_names([name], [*facts, *table])
                told[name] = {**facts, **table}[name].check(value)
            except ParameterError as refused:
                place = f"parameter file {path}, node {NODE}: {refused.thing}"
                raise ParameterError(place, got=refused.got, expected=refused.expected, remedy=refused.remedy) from None
    own = {name: value for name, value in told.items() if name.split(".")[0] == PREFIX}
    settings = {name: value for name, value in told.items() if name in table}
    return robot_from_values({**values_of(robot), **own}), ArmEkfSettings(**settings)  # type: ignore[arg-type]


def replay_settings(settings: ArmEkfSettings) -> ReplaySettings:
    """How a log is filtered, of how the node filters."""
    same = {one.name for one in dataclasses.fields(ReplaySettings)} & {
        one.name for one in dataclasses.fields(ArmEkfSettings)
    }
    return ReplaySettings(
        tuning=settings.tuning(),
        heat=settings.heat_tuning(),
        first_temperature=settings.first_temperature(),
        payload=settings.payload_tuning(),
        **{name: getattr(settings, name) for name in same},
    )
