"""The way to files: read from regular ones alone and up to a limit, written whole or not at all."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from youbot_dynamics.errors import OutputError, ParameterError, YoubotDynamicsError

FACTOR_VARIABLE = "YOUBOT_FILE_LIMITS"
RAISE_LIMITS = f"pass another file; if this one is valid, multiply all limits: {FACTOR_VARIABLE}=10"

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}  # the others are devices


def scaled(limit: int) -> int:
    """A limit times the environment variable YOUBOT_FILE_LIMITS, 1 where it is not set.

    Raises:
        ParameterError: the variable is no number above 0.
    """
    text = os.environ.get(FACTOR_VARIABLE, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0.0 < factor < 1e9:
        raise ParameterError(f"environment variable {FACTOR_VARIABLE}", got=repr(text), expected="a number above 0")
    return int(limit * factor)


def beyond_limit(size: str, limit: int) -> dict[str, str]:
    """Parts of the error about something larger than a limit [bytes] that was scaled already."""
    return {"got": size, "expected": f"at most {limit} bytes", "remedy": RAISE_LIMITS}


def open_file(path: Path | str, error: type[YoubotDynamicsError], thing: str, expected: str) -> BinaryIO:
    """Open a regular file for reading; a link to one is followed.

    Args:
        path: of the file.
        error: class of what is raised.
        thing: the file as the error names it.
        expected: what it should be, in the error.

    Raises:
        YoubotDynamicsError: missing, not permitted, or a folder, pipe, socket or device; of the class `error`.
    """
    try:  # Without waiting for somebody who writes into a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError, TypeError) as problem:  # a name with a null character; no name
        got = getattr(problem, "strerror", None) or str(problem)
        raise error(thing, got=got, expected=expected, remedy="check the path and its permissions") from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        got = _KINDS.get(stat.S_IFMT(mode), "a device")
        raise error(thing, got=got, expected=f"{expected}, in a regular file", remedy="copy its contents into a file")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path | str, error: type[YoubotDynamicsError], thing: str, expected: str, limit: int) -> bytes:
    """Contents of a regular file of at most `limit` bytes, before `scaled`; other arguments as `open_file`.

    Raises:
        YoubotDynamicsError: as `open_file`, or a file beyond the limit; of the class `error`.
    """
    most = scaled(limit)
    with open_file(path, error, thing, expected) as file:
        size = os.fstat(file.fileno()).st_size
        try:  # One byte more than it should have: it may be growing.
            content = file.read(size + 1) if size <= most else b""
        except OSError as problem:
            raise error(thing, got=f"{problem.strerror}", expected=expected, remedy="check the disk") from None
    if size > most or len(content) > most:
        raise error(thing, **beyond_limit(f"{max(size, len(content))} bytes", most))
    return content


def read_text(path: Path | str, error: type[YoubotDynamicsError], thing: str, expected: str, limit: int) -> str:
    """Text of a regular file in UTF-8, with or without a byte order mark; arguments and errors of `read_bytes`."""
    try:
        return read_bytes(path, error, thing, expected, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(thing, got="not a UTF-8 text", expected=expected) from None


def place_to_write(path: Path | str) -> Path:
    """Where a file may be written: the path with links followed.

    Raises:
        OutputError: there is something that is no regular file.
    """
    try:
        target = Path(os.path.realpath(path))
    except ValueError as problem:  # a null byte
        raise OutputError(str(path), got=str(problem), expected="a path", remedy="choose another name") from None
    if target.exists() and not target.is_file():
        got = _KINDS.get(stat.S_IFMT(target.stat().st_mode), "a device")
        raise OutputError(str(path), got=got, expected="a regular file, or a new name", remedy="choose another name")
    return target


def write_atomically(path: Path | str, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file so that a reader, or a crash, never meets half of it; its mode is that of the user's umask.

    Args:
        path: new, or a regular file to replace; a link is followed, and stays.
        content: text, or bytes.
        durable: wait until it is on the disk itself.

    Raises:
        OutputError: there is something that is no regular file.
        OSError: the folder or the disk refuses.
    """
    target = place_to_write(path)
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        # Exclusive: nothing that somebody has put there is written to.
        with open(draft, "xb") as stream:
            stream.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def occupied(folder: Path) -> bool:
    """Whether something is there that is no empty folder."""
    return os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir()))


def lying_in(folder: Path, *names: str) -> list[str]:
    """Those of some names that are taken in a folder, by a link to nothing too."""
    return [name for name in names if os.path.lexists(folder / name)]


def check_folder(folder: Path, taken: bool, refusal: YoubotDynamicsError) -> None:
    """Check, before any work starts, that results can be written into a folder, or that it can be made.

    Args:
        folder: its path.
        taken: whether what is in it must stay.
        refusal: error about a folder that is taken; the other errors are of its class, about the same thing.

    Raises:
        YoubotDynamicsError: the folder or one above it is none, is not writable, or is taken.
    """
    place = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not place.is_dir():
        got = f"{'a file' if place.exists() else 'a link to nothing'}, {place}, instead of a folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        got = f"a folder without permission to write: {place}"
    elif taken:
        raise refusal
    else:
        return
    raise type(refusal)(refusal.thing, got=got, expected="a folder to write into", remedy="name another one")


@contextmanager
def written_together(folder: Path, folders: tuple[str, ...] = ()) -> Iterator[Path]:
    """Write several files so that all arrive, or, after an error such as a full disk, none.

    Args:
        folder: for the files, made if needed.
        folders: names of folders in it that are replaced as a whole; the draft begins with copies of them.

    Yields:
        A hidden draft in `folder`; at the end its contents replace those of the same names.

    Raises:
        OutputError: there is something that is no regular file.
        OSError: the folder or the disk refuses.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp(prefix=".", suffix=".tmp", dir=folder))
    draft, old = hidden / "draft", hidden / "old"
    try:
        draft.mkdir()
        old.mkdir()
        for name in folders:
            if (folder / name).is_dir():
                shutil.copytree(folder / name, draft / name)
        yield draft
        parts = sorted(draft.iterdir(), key=Path.is_file)  # folders first: a file in their place refuses them
        places = [folder / part.name if part.is_dir() else place_to_write(folder / part.name) for part in parts]
        for name in folders:
            if (folder / name).is_dir():
                (folder / name).rename(old / name)
        for part, place in zip(parts, places, strict=True):
            shutil.move(part, place) if part.is_file() else part.rename(place)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if made:
            with suppress(OSError):  # not empty: all went well
                folder.rmdir()
