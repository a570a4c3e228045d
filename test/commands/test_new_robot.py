"""`youbot new-robot`: a robot file from a recording, a URDF and answers, which the next command takes as it is."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code
from own_base import OwnBase
from repository import ROOT
from stage_bags import nanoseconds, write_rows

import youbot_dynamics as yd
from youbot_dynamics.recording.message_types import ODOMETRY, TWIST_STAMPED, joint_state_cdr, odometry_cdr, twist_cdr

MIXED = ("motor_3", "motor_1", "motor_4", "motor_2")  # front left, front right, rear left, rear right


def mecanum_drive(folder: Path, odometry: bool = True, sideways: float = 1.0, together: bool = False, arm: bool = False):
    """Bag of a drive of a base of radius 0.06 m and lever 0.4 m: mixed names, two wheels reversed, velocities not."""
    time_, step = np.arange(0.0, 20.0, 0.02), 2.0 * np.pi / 1024
    speeds = np.column_stack([0.4 * np.sin(time_), 0.3 * sideways * np.sin(1.7 * time_), 0.6 * np.sin(2.3 * time_)])
    if together:
        speeds[:, 2] = 1.5 * speeds[:, 0]
    ways = np.cumsum(speeds, axis=0) * 0.02
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    to_wheels = yd.MecanumBase.rectangular(0.06, 0.2, 0.2).inverse_matrix.T
    angles, rates = step * np.round(ways @ to_wheels * signs / step), speeds @ to_wheels
    order = np.argsort(MIXED)
    names = sorted(MIXED) + (["shoulder"] if arm else [])
    rows = []
    x = y = 0.0
    for k, now in enumerate(time_.tolist()):
        heading = ways[k, 2] - 0.5 * 0.02 * speeds[k, 2]
        x += 0.02 * (np.cos(heading) * speeds[k, 0] - np.sin(heading) * speeds[k, 1])
        y += 0.02 * (np.sin(heading) * speeds[k, 0] + np.cos(heading) * speeds[k, 1])
        turned, rate = angles[k, order], rates[k, order]
        if arm:
            turned, rate = np.append(turned, np.sin(0.9 * now)), np.append(rate, 0.9 * np.cos(0.9 * now))
        rows.append((now + 0.1, "/joint_states", joint_state_cdr(nanoseconds(now + 0.1), names, turned, rate)))
        rows.append((now, "/cmd_vel", TWIST_STAMPED, nanoseconds_header(now) + twist_cdr(speeds[k])[4:]))
        if odometry:
            cdr = odometry_cdr(nanoseconds(now + 0.1), "odom", "base_link", (x, y, ways[k, 2]), speeds[k])
            rows.append((now + 0.1, "/odom", ODOMETRY, cdr))
    return write_rows(folder / "drive", rows, robot_id="")
