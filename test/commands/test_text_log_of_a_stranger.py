"""A text log of somebody's own robot, in his own names, without a robot file: what needs none is identified.

The logs are of physics of their own, not of the package's simulators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code

JOINTS = ((0.45, 0.30, 0.08, 1.2), (0.9, 0.5, 0.2, 4.0), (0.2, 0.1, 0.05, 0.8))  # Coulomb, viscous, inertia, weight
AMPERE = (5.0, 4.0, 2.5)  # [N m/A] at each joint
PERIOD = 0.01


def path_of(time: np.ndarray, joint: int = 0) -> np.ndarray:
    """Slow and fast swings, others for each joint."""
    return 0.9 * np.sin(0.6 * time + 6.0 * np.sin(0.1 * time + joint) + 0.7 * joint)


def torque_of(time: np.ndarray, position: np.ndarray, joint: int = 0) -> np.ndarray:
    coulomb, viscous, inertia, weight = JOINTS[joint]
    speed = np.gradient(position, time)
    noise = 0.02 * np.random.default_rng(joint).standard_normal(len(time))
    torque = inertia * np.gradient(speed, time) + weight * np.sin(position)
    return torque + coulomb * np.tanh(speed / 0.002) + viscous * speed + noise


def base(time: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Commanded and reported speeds of an axis: 100 ms dead time, then a lag of 60 ms."""
    random, fine = np.random.default_rng(seed), 5
    commanded = np.repeat(random.uniform(-0.4, 0.4, len(time) // 60 + 1), 60)[: len(time)]
    step = (time[1] - time[0]) / fine
    sent = np.concatenate([np.zeros(round(0.1 / step)), np.repeat(commanded, fine)])
    speed, speeds = 0.0, []
    for k in range(len(time) * fine):
        if k % fine == 0:
            speeds.append(speed)
        speed += step * (0.95 * sent[k] - speed) / 0.06
    return commanded, np.array(speeds) + 0.004 * random.standard_normal(len(time))


def write(path: Path, columns: Mapping[str, np.ndarray]) -> Path:
    table = np.column_stack(list(columns.values()))
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.6f")
    return path


def identified(log: Path, capsys, *words: object) -> tuple[dict[str, dict], str]:
    """Findings by name, and all that the command printed and wrote."""
    out = log.parent / "found"
    code = exit_code("identify", log, "--out", out, "--overwrite", *words)
    printed = capsys.readouterr()
    said = printed.err + printed.out
    assert code in (0, 3), said
    result = json.loads((out / "result.json").read_text())
    assert result["robot_id"] in ("unnamed base", "unnamed robot") or "--robot-file" in words
    page = re.sub(r"<[^>]*>", "", re.sub(r"<(style|script).*?</\1>", "", (out / "report.html").read_text(), flags=re.S))
    return {entry["name"]: entry for entry in result["parameters"]}, said + page + json.dumps(result)


def holds(entry: dict, true: float, margin: float) -> bool:
    low, high = entry["interval_95"]
    return entry["verdict"] == "identified" and low - margin <= true <= high + margin


def check_friction(found: dict[str, dict], joints: int) -> None:
    for joint in range(joints):
        for name, true in zip(("coulomb", "viscous"), JOINTS[joint], strict=False):
            assert holds(found[f"robot.arm.joint_{joint + 1}.friction.{name}"], true, 0.01 * true)


def check_no_youbot(said: str) -> None:
    """Nothing speaks of a youBot but the names of program and package."""
    said = re.sub(r"youbot_dynamics|\byoubot\s+(identify|new-robot|play|record|warm-up)\b", "", said)
    assert "youbot" not in said.lower()
    assert "wheel_joint" not in said and "arm_joint" not in said


@pytest.mark.parametrize("in_degrees", [False, True])
def test_one_joint_in_the_units_of_its_header(tmp_path: Path, capsys, in_degrees: bool) -> None:
    time = np.arange(0.0, 60.0, PERIOD)
    position = path_of(time)
    columns = {"t": time, "q1": position, "dq1": np.gradient(position, time), "tau1": torque_of(time, position)}
    if in_degrees:
        columns = {"time_ms": 1e3 * time, "Angle [deg]": np.degrees(position), "Torque [mNm]": 1e3 * columns["tau1"]}
    found, said = identified(write(tmp_path / "log.csv", columns), capsys)
    check_friction(found, 1)
    check_no_youbot(said)
    told = "Angle [deg] = position.joint:deg" if in_degrees else "q1 = position.joint_1"
    assert told in said and said.index(told) < said.index("wrote ")
    assert not (tmp_path / "found" / "robot.yaml").exists()


def test_the_weight_that_a_joint_lifts_depends_on_those_that_move_with_it(tmp_path: Path, capsys) -> None:
    """Two links in a vertical plane: each alone would have half as much friction again."""
    time = np.arange(0.0, 60.0, PERIOD)
    q1, q2 = 1.1 * path_of(time) + 0.6, 1.2 * path_of(time[::-1], 1) - 0.9
    (v1, v2), s2, c2 = (np.gradient(q, time) for q in (q1, q2)), np.sin(q2), np.cos(q2)
    a1, a2, weight = np.gradient(v1, time), np.gradient(v2, time), 3.0 * np.cos(q1 + q2)
    torques = (
        (0.5 + 0.16 * c2) * a1 + (0.04 + 0.08 * c2) * a2 - 0.08 * s2 * (2.0 * v1 + v2) * v2 + 9.0 * np.cos(q1) + weight,
        (0.04 + 0.08 * c2) * a1 + 0.04 * a2 + 0.08 * s2 * v1**2 + weight,
    )
    columns = {"t": time, "q1": q1, "q2": q2}
    for k, (torque, speed) in enumerate(zip(torques, (v1, v2), strict=True)):
        coulomb, viscous, *_ = JOINTS[k]
        noise = 0.02 * np.random.default_rng(k).standard_normal(len(time))
        columns[f"tau{k + 1}"] = torque + coulomb * np.tanh(speed / 0.002) + viscous * speed + noise
    found, _ = identified(write(tmp_path / "log.csv", columns), capsys)
    check_friction(found, 2)


@pytest.mark.parametrize(("head", "milli"), [("{}_current", ""), ("{}_i [mA]", "/1000"), ("i{}", "")])
def test_three_joints_and_their_currents(head: str, milli: str, tmp_path: Path, capsys) -> None:
    time = np.arange(0.0, 60.0, PERIOD)
    columns = {"timestamp": 1.79e9 + time}
    names = [f"{'joint_' if head == 'i{}' else 'joint'}{k + 1}" for k in range(3)]
    for k, name in enumerate(names):
        position = path_of(time, k)
        current = torque_of(time, position, k) / AMPERE[k] * (1000.0 if milli else 1.0)
        columns |= {f"{name}_pos": position, head.format(name if len(head) > 3 else k + 1): current}
    log = write(tmp_path / "log.csv", columns)
    assert exit_code("identify", log, "--out", tmp_path / "found") == 1
    said = capsys.readouterr().err
    assert "torque constant times gear ratio" in said
    described = said.rpartition("--columns '")[2].partition("'")[0]  # as the error tells, after the note
    for name, constant in zip(names, AMPERE, strict=True):
        described = described.replace(f"effort.{name}:K*Nm{milli}", f"effort.{name}:{constant}*Nm{milli}")
    found, said = identified(log, capsys, "--columns", described)
    check_friction(found, 3)
    check_no_youbot(said)
    assert "joint_" in names[0] or "joint_2 is joint2" in said


def test_the_constants_of_a_robot_file_convert_currents(tmp_path: Path, capsys) -> None:
    lines = [
        "/**:",
        "  ros__parameters:",
        "    robot:",
        "      robot_id: bench",
        "      arm:",
        "        urdf: arm.urdf",
    ]
    lines += ["        joint_1: {motor: {torque_constant: 0.05, gear_ratio: 100.0}}"]
    (tmp_path / "bench.yaml").write_text("\n".join(lines) + "\n")
    inertial = (
        '<inertial><origin xyz="0.1 0 0"/><mass value="1.0"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>'
    )
    limit = '<limit lower="-2" upper="2" velocity="3" effort="50"/>'
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="bench"><link name="base"/><link name="l1">{inertial}</link><joint name="elbow" type="revolute">'
        f'<parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>{limit}</joint></robot>'
    )
    time = np.arange(0.0, 60.0, PERIOD)
    position = path_of(time)
    torque = torque_of(time, position) - JOINTS[0][3] * np.sin(position)  # about an upright axis
    columns = {"t": time, "q1": position, "current1 [mA]": 1e3 * torque / 5.0}
    log = write(tmp_path / "log.csv", columns)
    found, said = identified(log, capsys, "--robot-file", tmp_path / "bench.yaml")
    check_friction(found, 1)
    assert "q1 = position.elbow" in said


def test_a_base_of_which_only_commands_and_speeds_are_logged(tmp_path: Path, capsys) -> None:
    time = np.arange(0.0, 60.0, 0.02)
    commanded, measured = base(time, 1)
    log = write(tmp_path / "log.csv", {"time_ms": 1e3 * time, "cmd_vx": commanded, "vx": measured})
    found, said = identified(log, capsys)
    assert holds(found["robot.base.delay.effective_x"], 0.16, 0.002)
    check_no_youbot(said)
    assert "nothing found" not in said  # of wheels or an arm that nobody spoke of
    log = write(tmp_path / "untimed.csv", {"cmd_vx": commanded, "vx": measured})
    found, said = identified(log, capsys, "--rate", 50)
    assert holds(found["robot.base.delay.effective_x"], 0.16, 0.002)


def test_delay_and_friction_of_a_servo_come_from_one_log(tmp_path: Path, capsys) -> None:
    time = np.arange(0.0, 60.0, PERIOD)
    reached = path_of(time - 0.08)
    columns = {"t": time, "q_des": path_of(time), "q": reached, "tau": torque_of(time, reached)}
    found, said = identified(write(tmp_path / "log.csv", columns), capsys)
    check_friction(found, 1)
    assert holds(found["delay.effective_joint"], 0.08, 1e-3)
    check_no_youbot(said)


def test_a_log_that_determines_nothing_says_what_is_needed(tmp_path: Path, capsys) -> None:
    time = np.arange(0.0, 10.0, PERIOD)
    log = write(tmp_path / "log.csv", {"t": time, "q1": path_of(time)})
    assert exit_code("identify", log, "--out", tmp_path / "found") == 1
    said = capsys.readouterr().err
    assert (
        "got position, time; expected command with a motion for a delay, or position with effort for friction" in said
    )
    log = write(
        tmp_path / "hot.csv", {"t": time, "q": path_of(time), "tau": path_of(time), "temp_housing": 20.0 + time}
    )
    assert exit_code("identify", log, "--out", tmp_path / "found", "--only", "thermal") == 1
    said = capsys.readouterr().err
    assert "temp_housing = housing.joint" in said and "no torque constant and gear ratio of any motor" in said


def test_joints_of_the_youbot_are_those_of_a_youbot(tmp_path: Path, capsys) -> None:
    time = np.arange(0.0, 60.0, PERIOD)
    position = 2.9 + path_of(time)
    columns = {"t": time, "arm_joint_1_pos": position, "arm_joint_1_torque": torque_of(time, position)}
    assert exit_code("identify", write(tmp_path / "log.csv", columns), "--out", tmp_path / "found") == 3
    assert json.loads((tmp_path / "found" / "result.json").read_text())["robot_id"] == "youbot"


def test_a_joint_without_efforts_costs_the_others_nothing(tmp_path: Path, capsys) -> None:
    time = np.arange(0.0, 60.0, PERIOD)
    columns = {"t": time, "q1": path_of(time), "q2": path_of(time, 1), "tau1": torque_of(time, path_of(time))}
    found, _ = identified(write(tmp_path / "log.csv", columns), capsys)
    check_friction(found, 1)
    verdict = found["robot.arm.joint_2.friction.coulomb"]["verdict"]
    assert "every effort of this joint is exactly 0 or missing" in verdict
