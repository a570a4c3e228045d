"""package.xml, setup.py and the tree agree with each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from repository import ROOT

SCRIPTS = ROOT / "scripts"
# What package.xml does not name because no rosdep key installs it without pip.
PIP_ONLY = {"rosbags", "mcap"}


@pytest.fixture(scope="module")
def setup_arguments(tmp_path_factory):
    """The arguments setup.py hands to setuptools."""
    code = (
        "import runpy, setuptools; kept = {}\n"
        "setuptools.setup = lambda **arguments: kept.update(arguments)\n"
        "runpy.run_path('setup.py'); print(repr(kept))"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return ast.literal_eval(answer.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def package_xml():
    return ElementTree.parse(ROOT / "package.xml").getroot()


def keys(package_xml, *tags):
    return {element.text for tag in tags for element in package_xml.iter(tag)}


def names(requirements):
    return {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements}


def test_package_xml_and_setup_agree(package_xml, setup_arguments):
    assert package_xml.get("format") == "3"
    for tag in ("name", "version", "license", "maintainer"):
        assert package_xml.findtext(tag) == setup_arguments[tag]
    assert package_xml.find("maintainer").get("email") == setup_arguments["maintainer_email"]
    assert package_xml.findtext("export/build_type") == "ament_python"
    assert "todo" not in package_xml.findtext("description").lower()


def test_every_python_requirement_has_its_rosdep_key(package_xml, setup_arguments):
    depends = keys(package_xml, "exec_depend", "depend")
    required = {name.lower().removeprefix("py") for name in names(setup_arguments["install_requires"])}
    assert {f"python3-{name}" for name in required - PIP_ONLY} <= depends
    assert not any(name in key for name in PIP_ONLY for key in depends)


def test_every_wheel_has_its_ros_package(package_xml, setup_arguments):
    wheels = {name.removeprefix("ros-").replace("-", "_") for name in names(setup_arguments["extras_require"]["ros"])}
    # rosgraph_msgs comes with rclpy in every ROS installation.
    assert wheels - {"rosgraph_msgs"} <= keys(package_xml, "exec_depend", "depend")


def test_every_file_of_config_and_launch_is_installed(setup_arguments):
    installed = {source for _, sources in setup_arguments["data_files"] for source in sources}
    present = {
        path.relative_to(ROOT).as_posix()
        for folder in ("config", "launch", "urdf")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert present <= installed
    for target, sources in setup_arguments["data_files"]:
        for source in sources:
            if target.startswith("share/youbot_dynamics/"):
                assert target == f"share/youbot_dynamics/{Path(source).parent.as_posix()}"


def test_every_program_has_its_module(setup_arguments):
    for entry in setup_arguments["entry_points"]["console_scripts"]:
        name, module, function = re.fullmatch(r"(\w+) = ([\w.]+):(\w+)", entry).groups()
        path = ROOT / (module.replace(".", "/") + ".py")
        assert path.is_file(), f"{name} points at {path}, which does not exist"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        imported = {
            alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        assert function in defined | imported, f"{name}: {path} has no function {function}"


def test_every_package_is_installed(setup_arguments):
    present = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for path in (ROOT / "youbot_dynamics").rglob("__init__.py")
    }
    assert present == set(setup_arguments["packages"])
    folders = {path.parent for path in (ROOT / "youbot_dynamics").rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_every_requirement_is_pinned(setup_arguments):
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins if "==" in pin}
    extras = [name for extra in setup_arguments["extras_require"].values() for name in extra]
    assert {name.lower() for name in names(setup_arguments["install_requires"] + extras)} <= pinned
    assert all(re.fullmatch(r"#.*|[\w.-]+==[\w.]+(; python_version [<>=]+ \"[\d.]+\")?", pin) for pin in pins)


def test_build_system_table_stands_alone():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^\[(.+)\]$", text, re.MULTILINE) == ["build-system"]


def test_changelog_has_the_form_bloom_reads():
    lines = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "Changelog for package youbot_dynamics"
    assert set(lines[0]) == set(lines[2]) == {"^"}
    assert "Forthcoming" in lines or any(re.match(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", line) for line in lines)
