"""Machine code on disk: used again, and never where anything it was made of has changed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from repository import ROOT

pytest.importorskip("numba")

SHIM = ROOT / "youbot_dynamics" / "compiled.py"
INNER = "from youbot_dynamics.compiled import compiled\n{more}\n@compiled\ndef inner(x):\n    return {result}\n"
OUTER = (
    "from youbot_dynamics.compiled import compiled\n"
    "from youbot_dynamics.parts.inside import inner\n\n"
    "@compiled\ndef outer(x):\n    return inner(x)\n"
)
ASK = (
    "from youbot_dynamics.parts.outside import outer\n"
    "value = outer(2.0)\n"
    "print(value, sum(outer.stats.cache_hits.values()), outer.stats.cache_path)"
)


class Package:
    """A package of two compiled files, one calling the other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.parts = root / "youbot_dynamics" / "parts"
        self.parts.mkdir(parents=True)
        (root / "youbot_dynamics" / "compiled.py").write_text(SHIM.read_text(encoding="utf-8"))
        for folder in (self.parts, self.parts.parent):
            (folder / "__init__.py").write_text("")
        (self.parts / "outside.py").write_text(OUTER)
        self.inside("x + 1.0")

    def inside(self, result: str, more: str = "") -> None:
        (self.parts / "inside.py").write_text(INNER.format(result=result, more=more))

    def ask(self, **environment: str) -> tuple[float, int, Path]:
        """Value of outer(2), how often its code came from the cache, and where that is."""
        # Python itself takes a file of the same second and size for unchanged.
        settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.root), **environment}
        if "NUMBA_CACHE_DIR" not in environment:
            settings.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", ASK], cwd=self.root, env=settings, capture_output=True, text=True, check=True
        )
        value, hits, place = done.stdout.split()
        return float(value), int(hits), Path(place)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)


def test_a_second_process_finds_what_the_first_compiled(package: Package) -> None:
    assert package.ask()[:2] == (3.0, 0)
    value, hits, place = package.ask()
    assert (value, hits) == (3.0, 1)
    assert package.parts.parent / "__pycache__" in place.parents


def test_of_two_processes_at_once_one_compiles_and_the_other_waits(package: Package) -> None:
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: package.ask(), range(2)))
    assert sorted(hits for _, hits, _ in both) == [0, 1]
    assert {value for value, _, _ in both} == {3.0}


def test_a_change_in_a_called_file_reaches_its_callers(package: Package) -> None:
    package.ask()
    package.inside("x + 5.0")
    assert package.ask()[:2] == (7.0, 0)


def test_a_constant_imported_from_a_third_file_counts_too(package: Package) -> None:
    (package.parts / "constants.py").write_text("STEP = 10.0\n")
    package.inside("x + STEP", "from youbot_dynamics.parts.constants import (\n    STEP,\n)")
    assert package.ask()[0] == 12.0
    (package.parts / "constants.py").write_text("STEP = 20.0\n")
    assert package.ask()[0] == 22.0


def test_old_versions_are_removed_but_for_the_last(package: Package) -> None:
    for k in range(4):
        package.inside(f"x + {k}.0")
        package.ask()
    kept = list((package.parts.parent / "__pycache__" / "compiled").glob("parts.inside-*"))
    assert len(kept) == 3


def test_the_folder_the_user_chose_is_used(package: Package, tmp_path: Path) -> None:
    assert tmp_path / "mine" in package.ask(NUMBA_CACHE_DIR=str(tmp_path / "mine"))[2].parents


def test_where_nothing_can_be_written_it_compiles_all_the_same(package: Package, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    ask = "from youbot_dynamics.parts.outside import outer; print(outer(2.0))"
    settings = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, env=settings, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "3.0"


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
from youbot_dynamics.compiled import not_kept
from youbot_dynamics.parts.outside import outer
print(outer(2.0), not_kept)
"""


def test_on_a_full_disk_it_compiles_and_tells_that_nothing_is_kept(package: Package) -> None:
    settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(package.root)}
    settings.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=package.root, env=settings, capture_output=True, text=True, check=True
    )
    value, told = done.stdout.split(" ", 1)
    assert value == "3.0"
    assert "File too large" in told
    assert package.ask()[:2] == (3.0, 0)


HOLD = """
import fcntl, sys
files = [open(name) for name in sys.argv[1:]]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_a_process_that_is_stopped_is_waited_for_only_while_it_compiles_and_not_for_ever(
    package: Package, compiled: bool
) -> None:
    shim = package.root / "youbot_dynamics" / "compiled.py"
    shim.write_text(shim.read_text().replace("_WAIT, _TELL = 120.0, 10.0", "_WAIT, _TELL = 1.0, 0.1"))
    package.ask()
    kept = package.parts.parent / "__pycache__" / "compiled"
    locks = [str(lock) for lock in kept.rglob("*.lock")]
    assert len(locks) == 2
    for file in () if compiled else kept.rglob("*.nbc"):
        file.unlink()
    command = [sys.executable, "-c", HOLD, *locks]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stopped:
        assert stopped.stdout is not None and stopped.stdout.readline() == "held\n"
        settings = {**os.environ, "PYTHONPATH": str(package.root)}
        settings.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", ASK], cwd=package.root, env=settings, capture_output=True, text=True, check=True
        )
        assert stopped.poll() is None
        stopped.kill()
    assert done.stdout.startswith("3.0 ")
    assert done.stderr.count("another process compiles") == (0 if compiled else 1)


RELOAD = """
import importlib, sys
from pathlib import Path
from youbot_dynamics.parts import inside, outside
file = Path(inside.__file__)
old = file.read_text()
file.write_text(old.replace("1.0", "50.0"))
importlib.reload(inside)
importlib.reload(outside)
print(outside.outer(2.0))
file.write_text(old)
"""


def test_what_is_edited_and_reloaded_leaves_nothing_behind(package: Package) -> None:
    settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(package.root)}
    settings.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", RELOAD], cwd=package.root, env=settings, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "52.0"
    assert package.ask()[0] == 3.0


def test_empty_files_of_a_power_cut_are_compiled_anew(package: Package) -> None:
    package.ask()
    kept = list((package.parts.parent / "__pycache__" / "compiled").rglob("*.nb?"))
    assert len(kept) >= 4
    for file in kept:
        file.write_bytes(b"")
    assert package.ask()[:2] == (3.0, 0)
    assert package.ask()[:2] == (3.0, 1)


def test_a_folder_that_cannot_be_written_is_not_used_nor_any_other(package: Package, monkeypatch) -> None:
    """numba by itself would go on to folders that are keyed by one file alone."""
    spec = importlib.util.spec_from_file_location("shim", package.parts.parent / "compiled.py")
    shim = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shim)
    file = package.parts / "inside.py"
    assert shim._folder_of(file) is not None
    shim._folder_of.cache_clear()

    def refuse(**kind: object) -> None:
        raise PermissionError

    monkeypatch.setattr(shim.tempfile, "TemporaryFile", refuse)
    assert shim._folder_of(file) is None


def test_a_last_resort_that_is_not_ours_is_not_used(package: Package, tmp_path: Path, monkeypatch) -> None:
    spec = importlib.util.spec_from_file_location("shim", package.parts.parent / "compiled.py")
    shim = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shim)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(shim.os, "access", lambda path, mode: False)
    monkeypatch.setattr(shim.tempfile, "gettempdir", lambda: str(tmp_path))
    place = shim.kept_in()
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o777)
    shim.kept_in.cache_clear()
    with pytest.raises(PermissionError, match="belongs to another user"):
        shim.kept_in()
