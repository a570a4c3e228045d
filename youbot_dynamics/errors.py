"""Typed errors: every one names the thing, what was got, what was expected and what to do next."""

from __future__ import annotations

import difflib
import re
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from pathlib import Path

_LONGEST = 2000  # characters of each part of an error
_WORD = re.compile(r"(?:--\S+ )?(?:'[^']*'|[^\s'])+")  # of a command: an option and its value stay together


def printable(text: str) -> str:
    """A text as a terminal may get it: control characters, marks of direction and the like as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines that are broken between words."""
    options = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(printable(text), width, **options)  # type: ignore[arg-type]


def command_lines(command: str, width: int, first: str = " ") -> list[str]:
    """A command in lines of at most `width` characters, which a shell reads as one; behind the word `first`."""
    lines, line = list[str](), first
    for word in _WORD.findall(printable(command)):
        if len(line) + len(word) + 3 > width and line.strip():
            lines.append(f"{line} \\")
            line = "   "
        line += f" {word}"
    return [*lines, line]


def doubled(names: Sequence[str]) -> tuple[str, ...]:
    """Names that stand there more than once, sorted."""
    return () if len(set(names)) == len(names) else tuple(sorted({name for name in names if names.count(name) > 1}))


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Question that names the known name nearest to another one; "" where none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else ""


def listed(names: Sequence[str], comma: str = ", ", most: int = 8) -> str:
    """Some names with commas, of many the first ones and how many more there are."""
    more = f"{comma.strip(', ')} and {len(names) - most} more" if len(names) > most else ""
    return f"{comma.join(names[:most])}{more}"


def counted(count: int, one: str, more: str) -> str:
    """A number of things with the words of one or of more, such as "1 message is" and "2 messages are"."""
    return f"{count} {one if count == 1 else more}"


class YoubotDynamicsError(Exception):
    """Base of every error a user can cause or meet; its text is one line.

    Args:
        thing: what the error is about (file, topic, joint, parameter), named as the user knows it.
        got: what was found there.
        expected: what should have been there.
        remedy: what to do next, as an imperative sentence.
    """

    def __init__(self, thing: str, *, got: str = "", expected: str = "", remedy: str = "") -> None:
        self.thing = thing
        self.got = got
        self.expected = expected
        self.remedy = remedy
        parts = [f"got {got}" if got else "", f"expected {expected}" if expected else "", remedy]
        short, *details = (p if len(p) <= _LONGEST else f"{p[:_LONGEST]} ..." for p in (thing, *parts))
        detail = "; ".join(part for part in details if part)
        super().__init__(printable(" ".join(f"{short}: {detail}".split()) if detail else short))

    def __reduce__(self) -> tuple[Callable[..., YoubotDynamicsError], tuple[object, ...]]:
        """Keep its parts when it comes from another process."""
        return partial(type(self), got=self.got, expected=self.expected, remedy=self.remedy), (self.thing,)


class RecordingError(YoubotDynamicsError):
    """A bag or log that is missing, cannot be read, or lacks what a command needs of it."""


class ProgramError(YoubotDynamicsError):
    """A motion program that is missing, empty, malformed or beyond the limits of the robot."""


class ParameterError(YoubotDynamicsError):
    """A parameter that is unknown, of the wrong type, out of range, or a file ROS would refuse."""


class TrajectoryError(YoubotDynamicsError):
    """A trajectory that cannot be followed: times, frames or values are wrong."""


class IdentificationError(YoubotDynamicsError):
    """Data from which nothing can be identified, with the reason.

    Args:
        thing, got, expected, remedy: as of every error.
        kind: of the reason, a `Kind` of `identification.least_squares`; None if no number's reason depends on it.
        count: what was counted, such as blocks of time, where too few are the reason.
        needed: least count.
    """

    def __init__(self, thing: str, *, kind: Enum | None = None, count: int = 0, needed: int = 0, **words: str) -> None:
        super().__init__(thing, **words)
        self.kind, self.count, self.needed = kind, count, needed

    def __reduce__(self) -> tuple[Callable[..., YoubotDynamicsError], tuple[object, ...]]:
        """Keep its numbers when it comes from another process."""
        make, things = super().__reduce__()
        return partial(make, kind=self.kind, count=self.count, needed=self.needed), things


class ModelError(YoubotDynamicsError, ValueError):
    """A physical model that cannot be: a body, joint, motor, friction or wheel with values no real one has."""


class InputError(YoubotDynamicsError, ValueError):
    """An argument of a computation that has the wrong shape or holds values that are not finite."""


class ResourceError(YoubotDynamicsError):
    """A file of the package that is not where any kind of install puts it, or a missing optional package."""


# What brings an optional package: the extra of setup.py, and where Ubuntu has it a Debian package.
_EXTRAS = {
    "rosbags": ("bags", ""),
    "mcap": ("bags", ""),
    "jinja2": ("report", "python3-jinja2"),
    "matplotlib": ("report", "python3-matplotlib"),
    "rich": ("program", "python3-rich"),
    "mujoco": ("sim", ""),
    "distributed": ("fleet", ""),
}
_EXTERNALLY_MANAGED = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")  # PEP 668: pip refuses to install there


def missing_package(package: str, thing: str, expected: str = "") -> ResourceError:
    """Make the error for a Python package that is not installed; its remedy is one that this Python allows.

    Args:
        package: its name; one that is not of an extra belongs to ROS.
        thing: what cannot be done without it.
        expected: what it would be there for.
    """
    extra, debian = _EXTRAS.get(package, ("ros", ""))
    ways = ["source /opt/ros/jazzy/setup.bash"] if extra == "ros" else []
    install = f"pip install 'youbot_dynamics[{extra}]'"
    if sys.prefix == sys.base_prefix and _EXTERNALLY_MANAGED.exists():
        ways += [f"sudo apt install {debian}"] if debian else []
        install = (
            f"python3 -m venv --system-site-packages youbot_env && . youbot_env/bin/activate && {install} "
            "(this Python takes no packages from pip, PEP 668)"
        )
    remedy = ", or ".join([*ways, install])
    return ResourceError(thing, got=f"no Python package {package}", expected=expected, remedy=remedy)


class OutputError(YoubotDynamicsError):
    """A place where no file may be written: a folder, pipe, socket or device stands there."""
