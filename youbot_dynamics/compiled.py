"""Compile hot loops with numba where it is installed; without it the same functions run as plain Python."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import config, njit
    from numba.core.compiler_lock import global_compiler_lock

    settings: Any = config
    _njit: Any = njit
    HAVE_NUMBA = True
except ImportError:
    HAVE_NUMBA = False

_PACKAGE = Path(__file__).resolve().parent
_IMPORTS = re.compile(rf"^from ({_PACKAGE.name}[.\w]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_KEPT = 2  # earlier versions of a file whose machine code stays: a program that still runs with it may be writing
_turn = Lock()


def compiled(function: F) -> F:
    """Decorator: `numba.njit(cache=True)` where numba is installed, else the function itself.

    What is compiled is kept on disk and found again by the text of the function's file and of all files of the package
    that it imports. numba by itself asks for the file alone, and would go on with old code where a function called
    from another file has changed. Nothing is kept where it cannot be written, or once a file has changed under a
    running program: what runs is then no longer what stands there.
    """
    if not HAVE_NUMBA:
        return function
    file = Path(function.__code__.co_filename)
    fast: F
    folder = _folder_of(file)
    if folder is None or _changed(version_of(file)):
        fast = _njit(function)
        return fast
    lock = folder / f"{function.__name__}.lock"
    # numba looks at its configuration now, when it decorates, and never again.
    with _turn:
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            fast = _njit(function, cache=True, no_cfunc_wrapper=True)  # nobody calls from C
        finally:
            settings.CACHE_DIR = before
    if not settings.DISABLE_JIT:
        fast.compile = _one_process_at_a_time(fast.compile, lock)  # type: ignore[attr-defined]
    return fast


def _one_process_at_a_time(compile_or_load: Callable[[Any], Any], lock: Path) -> Callable[[Any], Any]:
    """Let other processes wait while one compiles a function: they find it on disk then.

    Functions lock those they call, in that order in every process, so that no two can wait for each other.
    """
    inside = False

    def alone(signature: Any) -> Any:
        nonlocal inside
        with global_compiler_lock, ExitStack() as held:  # the threads of this process first
            if not inside:  # else it is compiled for types of two kinds, or calls itself
                with suppress(ImportError, OSError):  # where files cannot be locked, each compiles for itself
                    import fcntl

                    fcntl.flock(held.enter_context(lock.open("a")), fcntl.LOCK_EX)
            outer, inside = inside, True
            try:
                return compile_or_load(signature)
            finally:
                inside = outer

    return alone


class Version(NamedTuple):
    """What a file and all that it imports from this package were when they were first looked at.

    Attributes:
        digest: of their texts.
        stamps: time of change [ns] and size of each.
    """

    digest: str
    stamps: dict[Path, tuple[int, int]]


@cache
def version_of(file: Path) -> Version:
    """Version of a file with all files of this package that it imports, and they in turn."""
    stamps = {file: _stamp(file)}
    content = file.read_bytes()
    digest = hashlib.sha256(content)
    for module, names in _IMPORTS.findall(content.decode("utf-8")):
        place = _PACKAGE.joinpath(*module.split(".")[1:])
        for source in (place, *(place / name for name in re.findall(r"\w+", names))):
            imported = source.with_suffix(".py")
            if imported.is_file() and imported != file:
                version = version_of(imported)
                digest.update(version.digest.encode())
                stamps |= version.stamps
    return Version(digest.hexdigest()[:16], stamps)


def _changed(version: Version) -> bool:
    """Tell whether a file is no longer what it was when it was first looked at."""
    try:
        return any(_stamp(file) != stamp for file, stamp in version.stamps.items())
    except OSError:
        return True


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size


@cache
def _folder_of(file: Path) -> Path | None:
    """Folder for the machine code of a file, made if needed; None where nothing can be written."""
    try:
        root = kept_in()
        folder = root / f"{file.parent.name}.{file.stem}-{version_of(file).digest}"
        if not folder.is_dir():
            _remove_old(folder)
            folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        # A power cut can leave empty files, which numba could not read.
        for each in folder.rglob("*.nb?"):
            if each.stat().st_size == 0:
                each.unlink()
    except OSError:
        return None
    return folder


@cache
def kept_in() -> Path:
    """Folder of all machine code: the user's, beside the package, in the home, or where nothing else can be written.

    Raises:
        OSError: what stands in that last place is not ours: who else can write there could make us run anything.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / _PACKAGE.name
    if os.access(_PACKAGE, os.W_OK):
        return _PACKAGE / "__pycache__" / "compiled"
    home = Path(os.path.expanduser("~"))
    if os.access(home, os.W_OK):
        return home / ".cache" / _PACKAGE.name
    last = Path(tempfile.gettempdir()) / f"{_PACKAGE.name}_numba_{os.getuid()}"
    last.mkdir(mode=0o700, exist_ok=True)
    found = last.lstat()
    if last.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{last} belongs to somebody else")
    return last


def _remove_old(folder: Path) -> None:
    """Remove the folders of versions of the same file that are long gone."""
    others = folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*")
    for old in sorted(others, key=lambda other: other.stat().st_mtime)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
