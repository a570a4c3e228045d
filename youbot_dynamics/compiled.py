"""Compile hot loops with numba where it is installed; without it the same functions run as plain Python."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple, TypeVar

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
_WAIT, _TELL = 120.0, 10.0  # [s] for a process that compiles: it may be stopped; and until a message says so
not_kept: list[str] = []  # why machine code of this process was not kept on disk
_in_vain: list[Path] = []  # a lock that was waited for: no other one is then


def compiled(function: F) -> F:
    """Decorator: `numba.njit(cache=True)` where numba is installed, else the function itself.

    What is compiled is kept on disk and found again by the text of the function's file and of all files of the package
    that it imports. numba by itself asks for the file alone, and would go on with old code where a function called
    from another file has changed. Nothing is kept where it cannot be written (`not_kept` says why), or once a file has
    changed under a running program: what runs is then no longer what stands there.
    """
    if not HAVE_NUMBA:
        return function
    file = Path(function.__code__.co_filename)
    fast: F
    folder = _folder_of(file)
    if folder is None or _changed(_version_of(file)):
        fast = _njit(function)
        return fast
    lock = folder / f"{function.__name__}.lock"
    # numba looks at its configuration now, when it decorates, and never again.
    with _turn:
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            fast = _njit(function, cache=True, no_cfunc_wrapper=True)  # no C code calls it
        finally:
            settings.CACHE_DIR = before
    if not settings.DISABLE_JIT:
        cache = fast._cache  # type: ignore[attr-defined]
        fast.compile = _one_process_at_a_time(fast, lock)  # type: ignore[attr-defined]
        cache.save_overload = _where_there_is_room(cache.save_overload)
    return fast


def _where_there_is_room(save: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Go on without keeping what a full disk does not take."""

    def save_or_not(signature: Any, data: Any) -> None:
        try:
            save(signature, data)
        except OSError as problem:
            not_kept.append(str(problem))

    return save_or_not


def _one_process_at_a_time(fast: Any, lock: Path) -> Callable[[Any], Any]:
    """Let other processes wait while one compiles a function, two minutes at most: they find it on disk then.

    Functions lock those they call, in that order in every process, so that no two can wait for each other.
    """
    inside, compile_or_load = False, fast.compile

    def on_disk(signature: Any) -> bool:
        with suppress(OSError, EOFError, ValueError, AttributeError):  # an index that is damaged, or of another numba
            files = fast._cache._cache_file
            name = files._load_index().get(fast._cache._index_key(signature, fast.targetctx.codegen()))
            return name is not None and Path(files._data_path(name)).exists()
        return False

    def alone(signature: Any) -> Any:
        nonlocal inside
        with global_compiler_lock, ExitStack() as held:  # the threads of this process first
            if not inside:  # else it is compiled for types of two kinds, or calls itself
                with suppress(ImportError, OSError):  # where files cannot be locked, each compiles for itself
                    _wait_for(held.enter_context(lock.open("a")), lock, partial(on_disk, signature))
            outer, inside = inside, True
            try:
                return compile_or_load(signature)
            finally:
                inside = outer

    return alone


def _wait_for(file: IO[str], lock: Path, on_disk: Callable[[], bool]) -> None:
    """Lock a file; go on without where another process, such as a stopped one, keeps it for too long.

    One that only loads what is `on_disk` may be slow, at a low priority: it is not waited for.
    """
    import fcntl

    began, announced = time.monotonic(), False
    while not _in_vain:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if on_disk():
            return
        waited = time.monotonic() - began
        if waited > _TELL and not announced:
            announced = True
            print(f"another process compiles {lock.stem}: waiting for it, {_WAIT:g} s at most", file=sys.stderr)
        if waited > _WAIT:
            _in_vain.append(lock)
        time.sleep(0.02)


class _Version(NamedTuple):
    """What a file and all that it imports from this package were when they were first looked at."""

    digest: str  # of their texts
    stamps: dict[Path, tuple[int, int]]  # time of change [ns] and size of each


@cache
def _version_of(file: Path) -> _Version:
    """Version of a file with all files of this package that it imports, and they in turn."""
    digest, stamps = hashlib.sha256(), {}
    waiting = [file]
    while waiting:
        source = waiting.pop()
        if source not in stamps:
            stamps[source], content, imported = _source(source)
            digest.update(content)
            waiting += imported
    return _Version(digest.hexdigest()[:16], stamps)


@cache
def _source(file: Path) -> tuple[tuple[int, int], bytes, list[Path]]:
    """Stamp, hash and imports from this package of a file."""
    stamp, content = _stamp(file), file.read_bytes()
    imported = []
    for module, names in _IMPORTS.findall(content.decode("utf-8")):
        place = _PACKAGE.joinpath(*module.split(".")[1:])
        for source in (place, place / "__init__", *(place / name for name in re.findall(r"\w+", names))):
            if source.with_suffix(".py").is_file():
                imported.append(source.with_suffix(".py"))
    return stamp, hashlib.sha256(content).digest(), imported


def _changed(version: _Version) -> bool:
    """Tell whether a file is no longer what it was when it was first looked at."""
    try:
        return any(_stamp(file) != stamp for file, stamp in version.stamps.items())
    except OSError:
        return True


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@cache
def _folder_of(file: Path) -> Path | None:
    """Folder for the machine code of a file, made if needed; None where nothing can be written."""
    try:
        root = kept_in()
        folder = root / f"{file.parent.name}.{file.stem}-{_version_of(file).digest}"
        if not folder.is_dir():
            _remove_old(folder)
            folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        # A power cut can leave empty files, which numba could not read.
        for kept in folder.rglob("*.nb?"):
            if kept.stat().st_size == 0:
                kept.unlink()
    except OSError as problem:
        not_kept.append(str(problem))
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
    status = last.lstat()
    if last.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{last} belongs to another user")
    return last


def _remove_old(folder: Path) -> None:
    """Remove the folders of versions of the same file that are long gone."""
    others = folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*")
    for old in sorted(others, key=lambda other: other.stat().st_mtime)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
