"""A URDF as it stands, read by MuJoCo with every body of its own kept."""

from __future__ import annotations

from pathlib import Path

import pytest

_COMPILER = '<mujoco><compiler fusestatic="false" balanceinertia="false" discardvisual="true"/></mujoco>'


def in_mujoco(path: Path):
    """The module mujoco, and the model; a test without MuJoCo is skipped."""
    mujoco = pytest.importorskip("mujoco")
    head, robot, rest = path.read_text(encoding="utf-8").partition('<robot name="youbot">')
    assert robot, "the robot has another name"
    return mujoco, mujoco.MjModel.from_xml_string(head + robot + _COMPILER + rest)
