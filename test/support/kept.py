"""Simulated drives, kept on disk for the other workers and the next runs of the tests.

A drive is found again by its arguments and by the text of all that makes it: the file of the function and every file of
the package and of test/support that it imports, the robot's files, and the versions of Python and numpy.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from repository import ROOT

F = TypeVar("F", bound=Callable[..., Any])

_IMPORTS = re.compile(r"^\s*(?:from|import) ([\w.]+)(?: import (\([^)]*\)|[^\n]*))?", re.MULTILINE)
_UNUSED = 7 * 86400.0  # [s] after which a drive that nobody reads is removed


def kept(function: F) -> F:
    """Decorator of a function that simulates: whoever calls it with these arguments gets a copy of what it returned.

    Arguments and result are values that pickle takes; equal ones that are pickled otherwise are simulated once more.
    """

    @wraps(function)
    def found_or_made(*arguments: Any, **named: Any) -> Any:
        what = pickle.dumps((function.__qualname__, arguments, sorted(named.items())))
        digest = hashlib.sha256(version(Path(function.__code__.co_filename)).encode() + what).hexdigest()
        place = _folder() / f"{function.__name__}-{digest[:32]}"
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            content = place.read_bytes()
            os.utime(place)
            return pickle.loads(content)
        made = function(*arguments, **named)
        with tempfile.NamedTemporaryFile(dir=_folder(), delete=False) as file:
            file.write(pickle.dumps(made))
        os.replace(file.name, place)  # another worker sees all of it or nothing
        return made

    return found_or_made  # type: ignore[return-value]


@cache
def version(file: Path) -> str:
    """Of a file and of all that it imports from the package and from test/support, and they in turn."""
    digest, seen, waiting = hashlib.sha256(f"{sys.version} {np.__version__}".encode()), {file}, [file]
    while waiting:
        text = waiting.pop().read_text(encoding="utf-8")
        digest.update(text.encode())
        for module, names in _IMPORTS.findall(text):
            for base in (ROOT.joinpath(*module.split(".")), ROOT.joinpath("test", "support", module)):
                for place in (base, base / "__init__", *(base / name for name in re.findall(r"\w+", names))):
                    source = place.with_suffix(".py")
                    if source not in seen and source.is_file():
                        seen.add(source)
                        waiting.append(source)
    for source in sorted(path for folder in ("config", "urdf") for path in (ROOT / folder).rglob("*.*")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


@cache
def _folder() -> Path:
    """Where they are kept: a folder of this user alone, since reading one may run what it holds."""
    folder = Path(tempfile.gettempdir()) / f"youbot_dynamics_drives_{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        return Path(tempfile.mkdtemp())  # somebody else has taken that name
    for drive in folder.iterdir():
        with suppress(OSError):  # another worker has removed it
            if time.time() - drive.stat().st_mtime > _UNUSED:
                drive.unlink()
    return folder
