"""The locator finds the files of the running code in every kind of install, and those of no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from youbot_dynamics import resources
from youbot_dynamics.errors import ResourceError
from youbot_dynamics.resources import robot_path, short_path

SOURCE = Path(resources.__file__).resolve().parent
SHARE = Path("share") / "youbot_dynamics"
SHOW = "from youbot_dynamics.resources import config_path; print(config_path('youbot.yaml'))"


def install_module(folder: Path) -> None:
    """Put the modules the locator consists of below a folder, as an installer would."""
    package = folder / "youbot_dynamics"
    package.mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "interrupts.py", "resources.py"):
        shutil.copy(SOURCE / name, package / name)


def install_data(share: Path) -> Path:
    config = share / "config"
    config.mkdir(parents=True)
    (share / "package.xml").write_text("<package/>")
    (config / "youbot.yaml").write_text("{}")
    return config / "youbot.yaml"


def make_source(root: Path) -> Path:
    install_module(root)
    (root / "setup.py").touch()
    (root / "resource").mkdir()
    (root / "resource" / "youbot_dynamics").touch()
    return install_data(root)


def run(module_path: Path, *prefixes: Path, code: str = SHOW) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "AMENT_PREFIX_PATH"}
    environment["PYTHONPATH"] = str(module_path)
    if prefixes:
        environment["AMENT_PREFIX_PATH"] = os.pathsep.join(map(str, prefixes))
    return subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", capture_output=True, text=True)


def found(module_path: Path, *prefixes: Path) -> Path:
    answer = run(module_path, *prefixes)
    assert answer.returncode == 0, answer.stderr
    return Path(answer.stdout.strip())


@pytest.mark.parametrize(
    "site",
    ["lib/python3.11/site-packages", "lib/python3/dist-packages", "local/lib/python3.12/dist-packages"],
)
def test_wheel_finds_files_of_the_prefix_above_it(tmp_path, site):
    expected = install_data(tmp_path / "prefix" / SHARE)
    install_module(tmp_path / "prefix" / site)
    if site.startswith("local"):  # Debian keeps the data one level deeper as well
        expected = install_data(tmp_path / "prefix" / "local" / SHARE)
    assert found(tmp_path / "prefix" / site) == expected


def test_a_command_names_a_file_by_its_shortest_path_and_a_robot_of_the_package_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert short_path(tmp_path / "a" / "mine.yaml") == "a/mine.yaml" and short_path("../x.yaml") == "../x.yaml"
    assert short_path("/x.yaml") == "/x.yaml" and short_path(None) == short_path("") == ""
    assert short_path(robot_path("rosbot_xl")) == "rosbot_xl"
    assert short_path(tmp_path / "robots" / "rosbot_xl.yaml") == "robots/rosbot_xl.yaml"


def test_target_install_finds_files_beside_the_package(tmp_path):
    install_module(tmp_path / "target")
    expected = install_data(tmp_path / "target" / SHARE)
    assert found(tmp_path / "target") == expected


def test_colcon_install_finds_files_of_its_prefix(tmp_path):
    site = tmp_path / "install" / "lib" / "python3.12" / "site-packages"
    install_module(site)
    expected = install_data(tmp_path / "install" / SHARE)
    install_data(tmp_path / "other" / SHARE)
    assert found(site, tmp_path / "other", tmp_path / "install") == expected


def test_symlink_install_finds_files_of_its_prefix(tmp_path):
    make_source(tmp_path / "source")
    build = tmp_path / "build"
    build.mkdir()
    share = tmp_path / "install" / SHARE
    (share / "config").mkdir(parents=True)
    for name in ("youbot_dynamics", "setup.py", "resource", "package.xml", "config"):
        (build / name).symlink_to(tmp_path / "source" / name)
    for name in ("package.xml", "config/youbot.yaml"):
        (share / name).symlink_to(build / name)
    assert found(build, tmp_path / "install") == share / "config" / "youbot.yaml"


def test_source_tree_finds_its_own_files(tmp_path):
    expected = make_source(tmp_path / "source")
    assert found(tmp_path / "source") == expected


def test_stale_ament_prefix_does_not_win_over_the_source_tree(tmp_path):
    expected = make_source(tmp_path / "source")
    install_data(tmp_path / "stale" / SHARE)
    assert found(tmp_path / "source", tmp_path / "stale") == expected


def test_stale_ament_prefix_does_not_win_over_a_wheel(tmp_path):
    site = tmp_path / "prefix" / "lib" / "python3.11" / "site-packages"
    install_module(site)
    expected = install_data(tmp_path / "prefix" / SHARE)
    install_data(tmp_path / "stale" / SHARE)
    assert found(site, tmp_path / "stale") == expected


def test_linked_site_folder_finds_files_of_the_real_prefix(tmp_path):
    site = tmp_path / "store" / "lib" / "python3.11" / "site-packages"
    install_module(site)
    expected = install_data(tmp_path / "store" / SHARE)
    (tmp_path / "view").symlink_to(site)
    assert found(tmp_path / "view") == expected


def test_missing_file_error_names_file_places_and_passed_over_prefixes(tmp_path):
    site = tmp_path / "prefix" / "lib" / "python3.11" / "site-packages"
    install_module(site)
    install_data(tmp_path / "stale" / SHARE)
    answer = run(site, tmp_path / "stale")
    message = answer.stderr.strip().splitlines()[-1]
    assert answer.returncode == 1
    assert "config/youbot.yaml" in message
    assert str(tmp_path / "stale" / SHARE) in message
    assert "another installation" in message


def test_missing_file_error_lists_what_there_is():
    with pytest.raises(ResourceError, match=r"programs/circle\.txt.*combined\.txt, rotation\.txt") as caught:
        resources.program_path("circle")
    assert "\n" not in str(caught.value)


def test_files_of_the_package_are_found():
    assert resources.config_path("youbot.yaml").is_file()
    assert resources.config_path("mock.yaml").is_file()
    assert resources.program_path("combined") == resources.program_path("combined.txt")
    assert resources.urdf_path("youbot.urdf").is_file()
    assert resources.launch_path("bringup.launch.py").is_file()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("mine.yml", "mine.yaml"), ("rosbotxl", "rosbot_xl"), ("rosbot_xl.yml", "rosbot_xl"), ("arm.urd", "arm.urdf")],
)
def test_a_robot_file_that_is_not_there_may_be_one_beside_it(name: str, meant: str, tmp_path, monkeypatch):
    for file in ("mine.yaml", "arm.urdf", "other.txt"):
        (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResourceError, match=f"did you mean {meant}[?]"):
        robot_path(name)
