"""Who hears the nodes of a bringup: discovery range and domain of ROS 2."""

from __future__ import annotations

from collections.abc import Mapping

_RANGE, _DOMAIN = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_DOMAIN_ID"


def network(robot: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to add for the processes of a robot: `mock` and `mujoco` stay on this machine unless told otherwise."""
    return {_RANGE: "LOCALHOST"} if robot in ("mock", "mujoco") and not environment.get(_RANGE) else {}


def reach(robot: str, environment: Mapping[str, str]) -> str:
    """Who can command the real robot, in one line; empty for a simulated one."""
    if robot != "real":
        return ""
    place = f"{_RANGE} {environment.get(_RANGE) or 'SUBNET'}, {_DOMAIN} {environment.get(_DOMAIN) or 0}"
    return f"{place}: every ROS 2 program within can command this robot (docs/security.md)"
