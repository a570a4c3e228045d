"""Compile hot loops with numba where it is installed; without it the same functions run as plain Python."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import config, njit

    settings: Any = config
    _njit: Any = njit
    HAVE_NUMBA = True
except ImportError:
    HAVE_NUMBA = False

_PACKAGE = Path(__file__).resolve().parent
_IMPORTS = re.compile(rf"^from ({_PACKAGE.name}[.\w]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_KEPT = 2  # earlier versions of a file whose machine code stays: a program that still runs with it may be writing


def compiled(function: F) -> F:
    """Decorator: `numba.njit(cache=True)` where numba is installed, else the function itself.

    What is compiled is kept on disk and found again by the text of the function's file and of all files of the package
    that it imports. numba by itself asks for the file alone, and would go on with old code where a function called
    from another file has changed.
    """
    if not HAVE_NUMBA:
        return function
    file = Path(function.__code__.co_filename)
    folder = _cache() / f"{file.parent.name}.{file.stem}-{version_of(file)}"
    fast: F
    if not _made(folder):
        fast = _njit(function)
        return fast
    # numba looks at its configuration now, when it decorates, and never again.
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        fast = _njit(function, cache=True)
    finally:
        settings.CACHE_DIR = before
    return fast


@cache
def version_of(file: Path) -> str:
    """Digest of a file and of all files of this package that it imports, and they in turn."""
    content = file.read_bytes()
    digest = hashlib.sha256(content)
    for module, names in _IMPORTS.findall(content.decode("utf-8")):
        place = _PACKAGE.joinpath(*module.split(".")[1:])
        for source in (place, *(place / name for name in re.findall(r"\w+", names))):
            imported = source.with_suffix(".py")
            if imported.is_file() and imported != file:
                digest.update(version_of(imported).encode())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _cache() -> Path:
    """Folder of machine code: the user's, beside the package, in the home, or where nothing else can be written."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / _PACKAGE.name
    if os.access(_PACKAGE, os.W_OK):
        return _PACKAGE / "__pycache__" / "compiled"
    home = Path(os.path.expanduser("~"))
    if os.access(home, os.W_OK):
        return home / ".cache" / _PACKAGE.name
    return Path(tempfile.gettempdir()) / f"{_PACKAGE.name}_numba_{os.getuid()}"


def _made(folder: Path) -> bool:
    """Make the folder of one version, and remove those of versions long gone; False where nothing can be written."""
    if folder.is_dir():
        return True
    try:
        others = folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*")
        for old in sorted(others, key=lambda other: other.stat().st_mtime)[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return folder.is_dir()
    return True
