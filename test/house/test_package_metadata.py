"""package.xml, setup.py and the tree agree with each other."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from package_imports import imports
from repository import ROOT

import youbot_dynamics

# What package.xml does not name because no rosdep key installs it without pip: rosdep's pip keys (python3-rosbags-pip,
# python3-mujoco-pip) end `rosdep install` on Ubuntu 24.04, whose Python takes no packages from pip (PEP 668), unless
# the user overrides that; for mcap and distributed there is no key. rosbag2_py reads bags there.
PIP_ONLY = {"rosbags", "mcap", "mujoco", "distributed"}
# Imported where it is installed, and released for no ROS distribution after Noetic.
UNRELEASED = {"brics_actuator"}
# Looked up on 2026-11-23 in ros/rosdistro at 8468e88: rosdep/python.yaml for Ubuntu, {jazzy,kilted}/distribution.yaml.
PYTHON_KEYS = {
    "python3-argcomplete",
    "python3-hypothesis",
    "python3-jinja2",
    "python3-matplotlib",
    "python3-numba",
    "python3-numpy",
    "python3-pytest",
    "python3-rich",
    "python3-scipy",
    "python3-yaml",
}
RELEASED = {
    "ament_index_python",
    "builtin_interfaces",
    "control_msgs",
    "diagnostic_msgs",
    "geometry_msgs",
    "launch",
    "launch_ros",
    "nav_msgs",
    "rcl_interfaces",
    "rclpy",
    "robot_state_publisher",
    "ros2launch",
    "rosbag2_py",
    "rosbag2_storage_default_plugins",
    "rosgraph_msgs",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "tf2_msgs",
    "trajectory_msgs",
}


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


def test_youbot_stands_in_bin_of_a_ros_installation_where_colcon_puts_it_on_path(setup_arguments):
    assert ("bin", ["resource/youbot"]) in setup_arguments["data_files"]
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    answer = subprocess.run([ROOT / "resource" / "youbot", "--version"], env=here, capture_output=True, text=True)
    assert answer.stdout == f"youbot_dynamics {youbot_dynamics.__version__}\n", answer.stderr


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
    required = [*setup_arguments["install_requires"], *setup_arguments["extras_require"]["program"]]
    required = {name.lower().removeprefix("py") for name in names(required)}
    assert {f"python3-{name}" for name in required - PIP_ONLY} <= depends
    assert not any(name in key for name in PIP_ONLY for key in depends)


def test_every_wheel_has_its_ros_package(package_xml, setup_arguments):
    wheels = [name for name in names(setup_arguments["extras_require"]["ros"]) if name.startswith("ros-")]
    packages = {name.removeprefix("ros-").replace("-", "_") for name in wheels}
    assert len(packages) > 9 and packages <= keys(package_xml, "exec_depend", "depend")


def imported_packages():
    """Whatever package and launch files import that is neither Python's own nor ours, with one place."""
    files = [*(ROOT / "youbot_dynamics").rglob("*.py"), *(ROOT / "launch").rglob("*.py")]
    found = {name.split(".")[0]: path.name for path in files for name, _ in imports(path)}
    return {name: place for name, place in found.items() if name not in {*sys.stdlib_module_names, "youbot_dynamics"}}


def test_every_package_that_is_imported_is_declared(package_xml):
    needs = keys(package_xml, "exec_depend", "depend")
    declared = needs | {key.removeprefix("python3-") for key in needs} | PIP_ONLY | UNRELEASED
    of_others = {"markupsafe": "jinja2", "glfw": "mujoco"}
    found = imported_packages()
    missing = {name: place for name, place in found.items() if of_others.get(name, name) not in declared}
    assert not missing and {"rosgraph_msgs", "builtin_interfaces", "control_msgs", "launch_ros"} <= set(found)


def test_every_key_of_package_xml_was_looked_up(package_xml):
    assert keys(package_xml, "exec_depend", "depend", "test_depend") == PYTHON_KEYS | RELEASED


def test_the_numerical_core_needs_no_extra(setup_arguments):
    """What the core imports where a module is loaded is in install_requires."""
    core = {"numpy", "scipy", "numba", "yaml"}
    assert {name.lower().removeprefix("py") for name in names(setup_arguments["install_requires"])} == core
    needed = {}
    for path in (ROOT / "youbot_dynamics").rglob("*.py"):
        if path.relative_to(ROOT).parts[1] not in ("nodes", "commands", "report"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            guarded = {id(node) for block in tree.body if isinstance(block, ast.If) for node in ast.walk(block)}
            for node in (node for node in tree.body if id(node) not in guarded):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module] if isinstance(node, ast.ImportFrom) else []
                needed |= {module.split(".")[0]: path.name for module in modules}
    assert not {
        n: place for n, place in needed.items() if n not in {*sys.stdlib_module_names, "youbot_dynamics", *core}
    }


def test_one_version_stands_in_all_places(package_xml, setup_arguments):
    changelog = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    version, date = re.search(r"^(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE).groups()
    assert setup_arguments["version"] == package_xml.findtext("version") == youbot_dynamics.__version__ == version
    assert (citation["version"], str(citation["date-released"])) == (version, date)
    for name, place in (
        ("QUALITY_DECLARATION.md", f"youbot_dynamics {version}"),
        ("README.md", f"version = {{{version}}}"),
    ):
        assert place in (ROOT / name).read_text(encoding="utf-8"), name


def test_an_address_that_is_nobodys_is_explained(package_xml):
    urls, address = package_xml.findall("url"), package_xml.find("maintainer").get("email")
    text = (ROOT / "package.xml").read_text(encoding="utf-8") + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert (urls and not address.endswith("example.org")) or ("RFC 2606" in text and "## Publishing" in text)


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
