"""Build description: what is installed where, for pip and for colcon alike."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "youbot_dynamics"
ROOT = Path(__file__).resolve().parent
README = ROOT / "README.md"

# Extras. The numerical core needs none of them.
BAGS = ["rosbags>=0.11,<0.12", "mcap>=1.2"]
REPORT = ["jinja2>=3.1", "matplotlib"]
PROGRAM = [*BAGS, *REPORT, "rich", "argcomplete>=3"]  # all that `youbot` needs without ROS
# Message packages of ROS 2 Jazzy as they stand on PyPI; a sourced ROS 2 brings its own.
COMMON_INTERFACES = ("std", "geometry", "sensor", "nav", "trajectory", "diagnostic")
ROS_WHEELS = [
    "ros-rclpy[fastrtps]==7.1.6",
    *(f"ros-{name}-msgs==5.3.6" for name in COMMON_INTERFACES),
    "ros-std-srvs==5.3.6",
    "ros-rcl-interfaces",
    "ros-builtin-interfaces",
    "ros-rosgraph-msgs",
]

NODES = (
    "base_controller",
    "odometry",
    "trajectory_tracker",
    "mock_youbot",
    "identification",
    "arm_ekf",
    "recorder",
    "program_player",
    "stop_base",
    "check_driver",
)


# In a ROS installation the console scripts stand in lib/youbot_dynamics (setup.cfg), which is not on PATH as bin is;
# pip puts them into bin.
OF_ROS = [] if {"bdist_wheel", "editable_wheel"} & set(sys.argv) else [("bin", ["resource/youbot"])]


def shared(folder: str, *patterns: str) -> list[tuple[str, list[str]]]:
    """List the files of a folder, subfolders kept, as data files under share/youbot_dynamics.

    Args:
        folder: name of a folder beside this file; a missing one adds nothing.
        *patterns: glob patterns of the files to install.

    Returns:
        Pairs of target folder and source files, both relative, as setuptools wants them.
    """
    targets: dict[str, list[str]] = {}
    for pattern in patterns:
        for path in sorted((ROOT / folder).rglob(pattern)):
            relative = path.relative_to(ROOT)
            target = f"share/{PACKAGE}/{relative.parent.as_posix()}"
            targets.setdefault(target, []).append(relative.as_posix())
    return sorted(targets.items())


setup(
    name=PACKAGE,
    version="1.0.0",
    description=(
        "Identifies how a KUKA youBot really moves (delay, friction, geometry) and uses that "
        "to drive it accurately and to know its state"
    ),
    long_description=(ROOT / "README.md").read_text(encoding="utf-8") if (ROOT / "README.md").is_file() else "",
    long_description_content_type="text/markdown",
    author="youbot_dynamics developers",
    author_email="youbot_dynamics@example.org",
    maintainer="youbot_dynamics developers",
    maintainer_email="youbot_dynamics@example.org",
    license="Apache-2.0",
    keywords=["ROS 2", "youBot", "mecanum", "system identification", "odometry", "trajectory tracking"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering",
    ],
    packages=find_packages(exclude=["test", "test.*"]),
    package_data={PACKAGE: ["py.typed"], f"{PACKAGE}.report": ["templates/*.j2", "assets/*"]},
    data_files=[
        *OF_ROS,
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        *shared("launch", "*.launch.py"),
        *shared("config", "*.yaml", "*.txt", "*.rviz", "*.json", "*.xml", "*.sdf"),
        *shared("urdf", "*.urdf"),
    ],
    zip_safe=False,
    python_requires=">=3.10",
    install_requires=[
        "numpy>=1.26,<3",
        "scipy",
        "numba",
        "PyYAML",
    ],
    extras_require={
        "bags": BAGS,
        "report": REPORT,
        "program": PROGRAM,
        "ros": [*PROGRAM, *ROS_WHEELS],
        "sim": ["mujoco>=3.12"],
        "drake": ["drake>=1.51"],  # slow tests only: a second opinion on MuJoCo's contacts
        "fleet": [*PROGRAM, "distributed>=2024.1"],
        # Pinocchio and MuJoCo judge the dynamics; the package itself never imports Pinocchio.
        "test": [
            *PROGRAM,
            "pytest>=7.4,<10",
            "pytest-xdist",
            "pytest-rerunfailures>=12",
            "hypothesis",
            "ruff",
            "mypy",
            "types-PyYAML",
            "pin",
            "mujoco>=3.12",
            "distributed>=2024.1",
        ],
        # The theme is that of docs.ros.org, which rosdoc2 has as well.
        "docs": [*PROGRAM, "pytest>=7.4,<10", "hypothesis", "sphinx>=7", "myst-parser>=3", "sphinx-rtd-theme>=3"],
        "bench": [*PROGRAM, "pin", "mujoco>=3.12", "casadi", "filterpy"],
    },
    entry_points={
        "console_scripts": [
            f"youbot = {PACKAGE}.commands.main:main",
            f"identify_robot = {PACKAGE}.commands.identify:main",
            *(f"{node} = {PACKAGE}.nodes.{node}:main" for node in NODES),
        ],
    },
)
