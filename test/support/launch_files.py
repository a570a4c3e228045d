"""Launch files where launch is not installed: what they import of it are stand-ins that keep their arguments."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

from youbot_dynamics.resources import launch_path

_MODULES = ("launch", "launch.actions", "launch.events", "launch.events.process", "launch.launch_description_sources")
_MODULES += ("launch_ros", "launch_ros.actions", "launch_ros.parameter_descriptions", "launch_ros.substitutions")
_MODULES += ("launch_ros.utilities", "ament_index_python", "ament_index_python.packages")


class StandIn:
    """An action, event or description; of each name there is a class of its own."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named


class LogInfo(StandIn):
    def __init__(self, *, msg: str) -> None:
        assert isinstance(msg, str), f"LogInfo of {msg!r}"
        super().__init__(msg=msg)


class _Module(ModuleType):
    def __getattr__(self, name: str) -> type[StandIn]:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (StandIn,), {}))
        return getattr(self, name)


def prefix_namespace(pushed: str | None, own: str | None) -> str | None:
    """As launch_ros has it: an absolute namespace wins over a pushed one."""
    return own if pushed is None or (own or "").startswith("/") else f"{pushed.rstrip('/')}/{own or ''}".rstrip("/")


def loaded(name: str) -> SimpleNamespace:
    """The names of a launch file."""
    modules = {module: _Module(module) for module in _MODULES}
    modules["launch.actions"].LogInfo = LogInfo
    modules["launch_ros.utilities"].prefix_namespace = prefix_namespace
    with mock.patch.dict(sys.modules, modules):
        return SimpleNamespace(**runpy.run_path(str(launch_path(name))))


def declared(file: SimpleNamespace) -> dict[str, str]:
    """Arguments of a launch file with their defaults."""
    (actions,) = file.generate_launch_description().given
    return {a.named["name"]: a.named["default_value"] for a in actions if type(a).__name__ == "DeclareLaunchArgument"}


def started(file: SimpleNamespace, pushed: str | None = None, **values: str) -> list[StandIn]:
    """Actions that a launch file makes of its arguments, each of them one and none a list."""
    configurations = {**declared(file), **values} | ({"ros_namespace": pushed} if pushed is not None else {})
    return flat(file.start(SimpleNamespace(launch_configurations=configurations, argv=[])))


def flat(actions: Any) -> list[StandIn]:
    """Actions as launch wants them from a function."""
    assert isinstance(actions, list) and all(isinstance(action, StandIn) for action in actions), actions
    return actions


def of_kind(actions: list[StandIn], kind: str) -> list[dict[str, Any]]:
    """What the actions of a kind were made with."""
    return [action.named for action in actions if type(action).__name__ == kind]
