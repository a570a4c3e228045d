"""One process of a bringup, and the ROS arguments it is started with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from youbot_dynamics.errors import ParameterError

RESTART_PAUSE = 2.0  # [s]
RESTARTS = 3
OUR_PACKAGE = "youbot_dynamics"

# rcl takes no two underscores in a row.
_PART = r"(?!\w*__)[A-Za-z_][A-Za-z0-9_]*"
_NAMESPACE = re.compile(rf"{_PART}(/{_PART})*")
_TF_REMAPPINGS = ("/tf:=tf", "/tf_static:=tf_static")


@dataclass(frozen=True)
class Process:
    """One process of a bringup.

    Args:
        executable: console script of the package.
        node_names: nodes the process contains.
        ros_arguments: what follows ``--ros-args`` on its command line.
        last: whether it ends after all others: it has the last word to the robot.
        words: arguments of its own, before ``--ros-args``.
        package: the package it belongs to.
        vital: whether its end ends the bringup: the base moves by it, or is watched by it.
        restarts: how often it is started again, where it is not vital.
        missed: whether its end is told, where it is not vital.
    """

    executable: str
    node_names: tuple[str, ...]
    ros_arguments: tuple[str, ...]
    last: bool = False
    words: tuple[str, ...] = ()
    package: str = OUR_PACKAGE
    vital: bool = True
    restarts: int = 0
    missed: bool = True

    @property
    def arguments(self) -> tuple[str, ...]:
        """Command-line tokens behind the executable."""
        return (*self.words, "--ros-args", *self.ros_arguments)

    def loss(self, code: int | None, restarted: int) -> tuple[str, bool]:
        """Say what the end of a process means that is not vital.

        Args:
            code: its exit code.
            restarted: how often it has been started again.

        Returns:
            What is told, and whether it is started again, after `RESTART_PAUSE`.
        """
        again = restarted < self.restarts
        text = f"started again, time {restarted + 1} of {self.restarts}" if again else "its log may say why"
        return f"ended with exit code {code}, and the rest goes on without it: {text}", again


def file_arguments(*files: Path | None) -> tuple[str, ...]:
    """Return the tokens that load parameter files, the later one winning."""
    return tuple(token for file in files if file is not None for token in ("--params-file", str(file)))


def parameter_arguments(**values: str | bool | float) -> tuple[str, ...]:
    """Return the tokens that set parameters."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    return tuple(token for name, text in texts.items() for token in ("-p", f"{name}:={text}"))


def remap_arguments(rules: dict[str, str]) -> tuple[str, ...]:
    """Return the tokens that remap names; of several rules for one name the first wins."""
    return tuple(token for name, other in rules.items() for token in ("-r", f"{name}:={other}"))


def namespace_arguments(namespace: str) -> tuple[str, ...]:
    """Return the tokens that put a process and its tf into a namespace.

    Args:
        namespace: with or without a leading slash; empty for none.

    Returns:
        Tokens for ``--ros-args``.

    Raises:
        ParameterError: when the namespace is malformed.
    """
    name = namespace.strip("/")
    if not name:
        return ()
    if not _NAMESPACE.fullmatch(name):
        raise ParameterError(
            "namespace",
            got=repr(namespace),
            expected="letters, digits and single underscores, parts joined by /",
            remedy="write for example namespace:=youbot_1",
        )
    remappings = (f"__ns:=/{name}", *_TF_REMAPPINGS)
    return tuple(token for rule in remappings for token in ("-r", rule))
