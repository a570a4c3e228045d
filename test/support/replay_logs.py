"""Logs of the twin's arm for the tests of `youbot replay`: as arrays, as bags, as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from arm_runs import ROBOT, Run
from numpy.typing import NDArray

from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, joint_state_cdr

Array = NDArray[np.float64]

ARM, WHEELS = ROBOT.driver.arm_joints, ROBOT.driver.wheel_joints
ORIGIN = 1_700_000_000  # [s]
STATES = "/driver/joint_states"


def nanoseconds(time: float) -> int:
    return ORIGIN * 1_000_000_000 + round(float(time) * 1e9)


def write_log(
    folder: Path,
    run: Run,
    *,
    names: tuple[str, ...] = ARM,
    effort: Array | None = None,
    position: Array | None = None,
    stamp: Array | None = None,
    robot_id: str = "youbot",
    voltages: Mapping[int, Array] | None = None,
) -> Path:
    """A bag as the driver's messages make it: wheels and arm on one topic; `voltages` by row of the run."""
    told = run.effort if effort is None else effort
    read = run.position if position is None else position
    stamps = run.stamp if stamp is None else stamp
    with BagWriter(folder, {"robot_id": robot_id}) as bag:
        bag.add_topic(STATES, JOINT_STATE)
        bag.add_topic("/arm_1/motor_voltage", JOINT_STATE)
        for k, time in enumerate(run.stamp):
            received = nanoseconds(time + 1e-3)
            wheels = joint_state_cdr(nanoseconds(time), WHEELS, np.zeros(4), np.zeros(4))
            bag.write(STATES, wheels, received)
            efforts = told[k] if told.shape[1] else ()
            ns = nanoseconds(stamps[k]) if np.isfinite(stamps[k]) else 0
            bag.write(STATES, joint_state_cdr(ns, names, read[k], run.velocity[k], efforts), received)
            if voltages is not None and k in voltages:
                bag.write("/arm_1/motor_voltage", joint_state_cdr(ns, ARM, effort=voltages[k]), received)
    return folder


def write_text(path: Path, run: Run) -> str:
    """A text log in milliseconds and degrees with a header; returns the description of its columns."""
    table = np.column_stack([1e3 * run.stamp, np.rad2deg(run.position), run.velocity, run.effort])
    np.savetxt(path, table, delimiter=";", header="t;q;v;tau", fmt="%.15g", comments="")
    roles = [f"position.{name}:deg" for name in ARM] + [f"velocity.{name}:rad/s" for name in ARM]
    return ",".join(["time:ms", *roles, *(f"effort.{name}:Nm" for name in ARM)])
