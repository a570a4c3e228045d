"""The container job builds what the package says it needs. No container runs here: its files are checked."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from repository import ROOT

from youbot_dynamics.resources import launch_path

DOCKERFILE = ROOT / "docker" / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile: lines joined, comments left out."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line]


def of(name: str) -> list[str]:
    return [text for instruction, text in instructions() if instruction == name]


def test_it_starts_from_the_image_of_ros_and_goes_through_rosdep_and_colcon():
    assert (of("ARG"), of("FROM")) == (["ROS_DISTRO=jazzy"], ["ros:${ROS_DISTRO}"])
    assert "SETUP_EXTRA=test" in " ".join(of("RUN")) and "/opt/ros/jazzy" not in DOCKERFILE.read_text(encoding="utf-8")
    steps = " ; ".join([*of("RUN"), *of("CMD")])
    wanted = ("rosdep update", "rosdep install", "environment.sh", "colcon build", '"colcon", "test"')
    places = [steps.index(step) for step in wanted]
    assert places == sorted(places)
    assert "--return-code-on-test-failure" in steps


def test_colcon_itself_is_told_to_leave_out_slow_tests():
    """It overwrites PYTEST_ADDOPTS."""
    (command,) = of("CMD")
    assert json.loads(command)[-3:] == ["--pytest-args", " -m", "not slow"]
    assert "PYTEST_ADDOPTS" not in " ".join(of("ENV"))


def test_pip_never_touches_the_python_of_the_system():
    """PEP 668: Ubuntu's Python refuses; the packages without a rosdep key go into the .venv of the scripts."""
    assert not re.search(r"\bpip3? install|break-system-packages", DOCKERFILE.read_text(encoding="utf-8"))
    script = (ROOT / "scripts" / "environment.sh").read_text(encoding="utf-8")
    assert "--system-site-packages" in script and ".[program${SETUP_EXTRA:+,$SETUP_EXTRA}]" in script
    (path,) = [text for text in of("ENV") if text.startswith("PATH=")]
    assert path.startswith("PATH=/workspace/src/youbot_dynamics/.venv/bin:")


def test_every_copied_file_is_there():
    for text in of("COPY"):
        source = text.split()[0]
        assert (ROOT / source).exists(), source
    entrypoint = ROOT / "docker" / "entrypoint.sh"
    assert of("ENTRYPOINT") == ['["/entrypoint.sh"]'] and os.access(entrypoint, os.X_OK)
    subprocess.run(["bash", "-n", entrypoint], check=True)


def test_environments_and_builds_of_the_host_stay_out():
    ignored = (ROOT / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {".git", "**/.venv", "build", "install", "log"} <= set(ignored)
    assert not any(name in ignored for name in ("docs", "test", "scripts", "config", "docker"))


def test_the_job_does_what_the_dockerfile_says():
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "ros.yml").read_text(encoding="utf-8"))
    assert True in job, "`on:` is the truth value of YAML 1.1; GitHub reads it all the same"
    (work,) = job["jobs"].values()
    assert work["strategy"]["matrix"] == {"ros_distro": ["jazzy", "kilted"]}
    commands = [step["run"] for step in work["steps"] if "run" in step]
    build = "docker build -f docker/Dockerfile --build-arg ROS_DISTRO=${{ matrix.ros_distro }} -t youbot_dynamics ."
    assert commands == [build, "docker run --rm youbot_dynamics"]
    assert job["permissions"] == {"contents": "read"}


def depends() -> set[str]:
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    return {element.text or "" for tag in ("exec_depend", "depend") for element in package.iter(tag)}


def test_packages_of_gazebo_are_asked_for_by_their_debian_names():
    """Gazebo is not in package.xml: a robot's computer shall not install it. The launch file names what is missing."""
    tree = ast.parse(launch_path("gazebo.launch.py").read_text(encoding="utf-8"))
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "NEEDED"
    )
    needed = ast.literal_eval(table)
    assert needed == {package: f"ros-jazzy-{package.replace('_', '-')}" for package in needed}
    started = {
        keyword.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "package" and isinstance(keyword.value, ast.Constant)
    }
    assert started <= set(needed)
    assert not {"ros_gz_sim", "gz_ros2_control"} & depends()


@pytest.mark.parametrize("package", ["robot_state_publisher", "launch_ros", "ros2launch", "tf2_msgs"])
def test_what_every_bringup_needs_is_in_package_xml(package):
    assert package in depends()
