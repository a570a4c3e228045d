"""The one locator for the files that are installed with the package: config/, urdf/, launch/.

An installation keeps them in one of three places: in the share folder of a colcon prefix, in the share
folder of a Python prefix (wheel), or beside the source (``pip install -e``, a plain checkout). Data
always belong to the code that runs: the share folder of *another* installation, left behind in
``AMENT_PREFIX_PATH`` or in an older prefix, is never read, and an error says that it was passed over.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from youbot_dynamics.errors import ResourceError, did_you_mean

PACKAGE = "youbot_dynamics"
PROGRAMS = ("translation", "rotation", "combined")  # that come with the package, in config/programs
EXCITATION, ARM_EXCITATION = "excitation", "arm_excitation"  # made for the robot, for identification

_HERE = Path(__file__).absolute().parent
_SITE_FOLDERS = ("site-packages", "dist-packages")


def config_path(name: str) -> Path:
    """Path of a file below config/, such as ``youbot.yaml``; ResourceError where it is missing."""
    return _resource_path("config", name)


def robot_path(name: str) -> Path | None:
    """Robot file that a name such as ``rosbot_xl``, or a path, stands for; None for ``""``, the youBot.

    Raises:
        ResourceError: there is no such file; it lists the robots there are.
    """
    path = Path(name).expanduser().absolute()
    if not name or path.is_file():
        return path if name else None
    if os.sep in name or path.exists():
        got = "a path that is not a file" if path.exists() else "no such file"
        expected = "a robot of the package by its name, such as rosbot_xl, or the path of a robot file"
        raise ResourceError(f"robot file {name}", got=got, expected=expected, remedy="check the path")
    known = [file.removesuffix(".yaml") for file in _present(list(_share_folders()), "config/robots", ".yaml")]
    stem = name.removesuffix(".yaml")
    if known and stem not in known:
        raise ResourceError(
            f"robot file {name}",
            got="no such robot of the package, and no such file here",
            expected=f"one of {', '.join(known)}, or the path of your own file",
            remedy=did_you_mean(name, [*_files_beside(path), *known]),
        )
    return _resource_path("config/robots", f"{stem}.yaml")


def _files_beside(path: Path) -> list[str]:
    """Names of the robot files and URDFs in the folder of a path."""
    return sorted(file.name for file in path.parent.glob("*") if file.suffix in (".yaml", ".yml", ".urdf"))


def short_path(file: Path | str | None) -> str:
    """Shortest text that names a file from the working folder, or a robot of the package; "" for None."""
    if file is None or not (path := Path(file)).is_absolute():
        return str(file or "")
    ours = path.parent.name == "robots" and path == config_path("robots/rosbot_xl.yaml").with_name(path.name)
    return path.stem if ours else min(str(path), os.path.relpath(path), key=len)


def program_path(name: str) -> Path:
    """Path of a motion program of the package, with or without its ``.txt``; ResourceError where it is missing."""
    return _resource_path("config/programs", name if name.endswith(".txt") else f"{name}.txt")


def urdf_path(name: str) -> Path:
    """Path of a robot description below urdf/, such as ``youbot.urdf``; ResourceError where it is missing."""
    return _resource_path("urdf", name)


def launch_path(name: str) -> Path:
    """Path of a launch file, such as ``bringup.launch.py``; ResourceError where it is missing."""
    return _resource_path("launch", name)


def _resource_path(folder: str, name: str) -> Path:
    """Absolute path of an existing file of the package, `name` below `folder` as both stand beside the source.

    Raises:
        ResourceError: no place of this installation has the file; it lists the places.
    """
    places = list(_share_folders())
    for place in places:
        candidate = place / folder / name
        if candidate.is_file():
            return candidate
    looked = ", ".join(str(place / folder) for place in places) or "no share folder of this installation"
    foreign = [str(share) for share in _ament_shares() if not _belongs_to_us(share)]
    passed_over = f" (ignored, because of another installation: {', '.join(foreign)})" if foreign else ""
    present = _present(places, folder, Path(name).suffix)
    raise ResourceError(
        f"{folder}/{name} of {PACKAGE}",
        got=f"no such file in {looked}{passed_over}",
        expected=f"one of {', '.join(present)}" if present else "a file there",
        remedy=f"{did_you_mean(name, present)} check the name, or install the package again",
    )


def _share_folders() -> Iterator[Path]:
    """Existing folders with config/, urdf/ and launch/ of the running code: of ament, the Python prefix, the source."""
    seen: set[Path] = set()
    for share in (*_ament_shares(), *_prefix_shares(), *_source_trees()):
        if share not in seen and share.is_dir() and _belongs_to_us(share):
            seen.add(share)
            yield share


def _ament_shares() -> Iterator[Path]:
    """Share folder of the package in each prefix of ``AMENT_PREFIX_PATH`` that has one."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        share = Path(prefix).absolute() / "share" / PACKAGE
        if prefix and share.is_dir():
            yield share


def _prefix_shares() -> Iterator[Path]:
    """Share folders a wheel may have filled: above the module, then of the interpreter.

    The prefix above the module also serves ``--user``, ``--prefix``, ``--target`` and modules reached
    through a path entry, where ``sys.prefix`` is somebody else's.
    """
    for package in _package_folders():
        if not _is_source(package.parent):
            for prefix in package.parents[: 4 if package.parent.name in _SITE_FOLDERS else 1]:
                yield prefix / "share" / PACKAGE
    yield Path(sys.prefix) / "share" / PACKAGE


def _source_trees() -> Iterator[Path]:
    """The source tree the running module lies in, if it lies in one."""
    for package in _package_folders():
        if _is_source(package.parent):
            yield package.parent


def _belongs_to_us(share: Path) -> bool:
    """Whether a share folder was installed together with the running module.

    So it is when the module lies in the same prefix, or, after ``colcon build --symlink-install``, when
    the share folder links to the source tree the module runs from.
    """
    sources = list(_source_trees())
    if sources:
        package_file = (share / "package.xml").resolve()
        return any(package_file == (source / "package.xml").resolve() for source in sources)
    if share.parent.name != "share":
        return False
    prefix = share.parent.parent
    prefixes = {prefix, prefix.resolve()}
    return any(not prefixes.isdisjoint(package.parents) for package in _package_folders())


def _package_folders() -> tuple[Path, ...]:
    """Folder of the running package, as imported and with links followed."""
    return tuple(dict.fromkeys((_HERE, _HERE.resolve())))


def _is_source(folder: Path) -> bool:
    """Whether a folder is the root of the source tree of this package."""
    return (folder / "setup.py").is_file() and (folder / "resource" / PACKAGE).is_file()


def _present(places: list[Path], folder: str, suffix: str) -> list[str]:
    """Names of the files of the same kind that there are."""
    return sorted({path.name for place in places for path in (place / folder).glob(f"*{suffix}")})
