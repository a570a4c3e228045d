"""Option and package checks that several commands share."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Sequence

from youbot_dynamics.errors import ParameterError, missing_package


def named_topics(words: Sequence[str], roles: Collection[str]) -> dict[str, str]:
    """Return role -> topic from the values ROLE=NAME of --topic."""
    topics = {}
    for word in words:
        role, _, name = word.partition("=")
        if role not in roles or not name:
            raise ParameterError(f"--topic {word}", expected=f"ROLE=NAME, ROLE one of {', '.join(roles)}")
        topics[role] = name
    return topics


def need_ros() -> None:
    """Raise an error that says how to install ROS if it is missing."""
    if importlib.util.find_spec("rclpy") is None:
        raise missing_package("rclpy", "this command", "ROS 2 Jazzy or Kilted")
