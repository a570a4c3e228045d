"""Programs and folders of other ROS packages, found as a sourced ROS 2 announces them, without importing any of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from youbot_dynamics.errors import ResourceError


def program(package: str, name: str) -> Path | None:
    """Find a program of an installed package.

    Args:
        package: name of the package.
        name: name of the program.

    Returns:
        Absolute path of the program, or None where the package or its program is not installed.
    """
    for prefix in _prefixes():
        path = prefix / "lib" / package / name
        if os.access(path, os.X_OK) and path.is_file():
            return path
    return None


def needed_program(package: str, name: str, remedy: str) -> Path:
    """Find a program that the user has asked for.

    Args:
        package: name of the package.
        name: name of the program.
        remedy: what to do where it is not installed.

    Returns:
        Absolute path of the program.

    Raises:
        ResourceError: when it is not installed.
    """
    path = program(package, name)
    if path is None:
        raise ResourceError(
            f"package {package}",
            got=f"no program {name} of it in any folder of AMENT_PREFIX_PATH",
            expected="the package installed and its setup.bash sourced",
            remedy=remedy,
        )
    return path


def share_folder(package: str) -> Path | None:
    """Find the folder with the data of an installed package; None where it is not installed."""
    for prefix in _prefixes():
        path = prefix / "share" / package
        if path.is_dir():
            return path
    return None


def _prefixes() -> Iterator[Path]:
    """Yield the folders that a sourced ROS 2 and its workspaces announce."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(prefix).absolute()
