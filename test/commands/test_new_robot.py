"""`youbot new-robot`: a robot file from a recording, a URDF and answers, which the next command takes as it is."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from command_line import exit_code
from own_base import OwnBase
from repository import ROOT
from stage_bags import Row, TypedRow, nanoseconds, write_rows

import youbot_dynamics as yd
from youbot_dynamics.recording.message_types import (
    ODOMETRY,
    POSE_STAMPED,
    TWIST,
    TWIST_STAMPED,
    joint_state_cdr,
    odometry_cdr,
    pose_stamped_cdr,
    twist_cdr,
    twist_stamped_cdr,
)

MIXED = ("motor_3", "motor_1", "motor_4", "motor_2")  # front left, front right, rear left, rear right
SIGNS = (1.0, -1.0, 1.0, -1.0)  # of their positions; their velocities are not reversed
TICK = 2.0 * np.pi / 1024
BASE = yd.MecanumBase.rectangular(0.06, 0.15, 0.25)


def drive(
    folder: Path,
    odometry: tuple[float, ...] | None = (1.0, 1.0, 1.0),
    amplitudes: tuple[float, ...] = (0.4, 0.3, 0.6),
    together: bool = False,
    poses: float | None = None,
    noise: float = 0.0,
    skids: float | None = None,
    commands: Mapping[str, str] = MappingProxyType({"/cmd_vel": TWIST_STAMPED}),
    ordered: tuple[float, ...] = (),
    base: yd.MecanumBase = BASE,
    lasting: float = 12.0,
) -> Path:
    """Bag of a drive at 50 Hz; an arm swings meanwhile.

    Args:
        folder: where to write it.
        odometry: its signs on x, y and yaw, None for none.
        amplitudes: largest speeds.
        together: in curves of nearly one radius.
        poses: heading of a tracked body on the base [rad], None for none.
        noise: standard deviation of its places [m].
        skids: speed at which a base with four wheels without rollers slides to the side [m/s], None for a mecanum base.
        commands: topics and types of the commands.
        ordered: signs of commanded speeds of the wheels, empty for a driver that takes twists.
        base: its wheels.
        lasting: how long it lasts [s].
    """
    sent = np.arange(0.0, lasting, 0.02)
    speeds = np.array(amplitudes) * np.sin(np.array([[1.0], [1.7], [2.3]]) * sent).T
    if together:
        speeds[:, 2] = 1.5 * speeds[:, 0] + 0.05 * speeds[:, 2]
    wheels, made = base.inverse_matrix * [1.0, float(skids is None), 1.0], speeds.copy()
    mixed, signs = MIXED[: len(wheels)], SIGNS[: len(wheels)]
    if skids is not None:
        made[:, 1] = skids * np.sin(3.1 * sent)
    angles = TICK * np.round(np.cumsum(speeds, axis=0) * 0.02 @ wheels.T * signs / TICK)
    order = np.argsort(mixed)
    names = [*sorted(mixed), "shoulder"]
    told = made * (odometry or 1.0)
    headings = np.cumsum(told[:, 2]) * 0.02 - 0.01 * told[:, 2]
    c, s = np.cos(headings), np.sin(headings)
    path = np.cumsum([c * told[:, 0] - s * told[:, 1], s * told[:, 0] + c * told[:, 1], told[:, 2]], axis=1).T * 0.02
    seen = path + noise * np.random.default_rng(0).standard_normal(path.shape) * [1.0, 1.0, 0.0]
    rows: list[Row | TypedRow] = []
    for k, time in enumerate(sent.tolist()):
        later, stamp = time + 0.1, nanoseconds(time + 0.1)
        position, velocity = np.append(angles[k, order], np.sin(0.9 * time)), speeds[k] @ wheels.T
        velocity = np.append(velocity[order], 0.9 * np.cos(0.9 * time))
        rows.append((later, "/joint_states", joint_state_cdr(stamp, names, position, velocity)))
        if ordered:
            cdr = joint_state_cdr(nanoseconds(time), mixed, None, speeds[k] @ wheels.T * ordered)
            rows.append((time, "/driver/wheel_velocity_command", cdr))
        for topic, kind in commands.items():
            stamped = twist_stamped_cdr(nanoseconds(time), "", speeds[k])
            rows.append((time, topic, kind, stamped if kind == TWIST_STAMPED else twist_cdr(speeds[k])))
        if odometry:
            rows.append((later, "/odom", ODOMETRY, odometry_cdr(stamp, "odom", "base_link", path[k], told[k])))
        if poses is not None:
            cdr = pose_stamped_cdr(stamp, "world", seen[k] + [0.0, 0.0, poses])
            rows.append((later, "/mocap", POSE_STAMPED, cdr))
    return write_rows(folder / "drive", rows, robot_id="")


def error(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line of an error."""
    capsys.readouterr()
    assert exit_code("new-robot", *words) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


def suggested_by(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Words of the command that a new robot file is suggested for."""
    return shlex.split(capsys.readouterr().err.split("next: youbot ")[-1].split(", or ")[0])


class Terminal(io.StringIO):
    """A terminal on which a user types lines, and then Ctrl-C."""

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        if line := super().readline():
            return line
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drive(tmp_path_factory.mktemp("usual"))


def test_wheels_in_any_order_with_reversed_readings_are_found_by_the_odometry(usual: Path, tmp_path, capsys) -> None:
    out = tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", usual, "--out", out) == 0
    robot = yd.load_robot(robot_file=out)
    driver, geometry = robot.driver, robot.base.geometry
    assert robot.robot_id == "mine" and driver.wheel_joints == MIXED
    assert driver.position_sign == SIGNS and driver.velocity_sign == (1.0,) * 4 and driver.stamped_twist
    assert driver.position_quantum == pytest.approx(TICK, rel=1e-3) and driver.rate == pytest.approx(50.0, rel=1e-3)
    assert geometry.wheel_radius == pytest.approx(0.06, rel=2e-3) and geometry.lateral_factor == 1.0
    assert geometry.half_length + geometry.half_width == pytest.approx(0.4, rel=5e-3)
    told = capsys.readouterr().err
    assert (
        "guessed: length and width alike, with the sum found by odometry, /odom: half_length" in told
        and "also turned: shoulder; if it is an arm, give its URDF" in told
    )
    assert "found by odometry, /odom" in out.read_text() and f"--robot-file {out}" in told


def test_the_delay_by_the_new_file_is_that_by_the_file_of_its_owner(tmp_path: Path) -> None:
    own, bag = OwnBase(1, quantum=1e-3).write(tmp_path, duration=20.0)
    assert exit_code("new-robot", "--bag", bag, "--out", tmp_path / "new.yaml") == 0
    found, expected = (
        yd.identify(bag, yd.load_robot(robot_file=file), only=["delay"]).result for file in (tmp_path / "new.yaml", own)
    )
    for axis in ("x", "y", "yaw"):
        name = f"robot.base.delay.effective_{axis}"
        assert found[name].identified
        assert found[name].estimate.value == pytest.approx(expected[name].estimate.value, abs=2e-4)


def test_commands_tell_order_and_signs_but_no_sizes(tmp_path: Path, capsys) -> None:
    bag, out = drive(tmp_path, odometry=None), tmp_path / "mine.yaml"
    assert "--wheel-radius: got nothing" in error(capsys, "--bag", bag, "--out", out)
    assert not out.exists()
    sizes = ["--wheel-radius", "60 mm", "--wheelbase", "0.3", "--track", "0.5"]
    assert exit_code("new-robot", "--bag", bag, "--out", out, *sizes) == 0
    robot = yd.load_robot(robot_file=out)
    assert robot.driver.wheel_joints == MIXED and robot.driver.position_sign == SIGNS
    geometry = robot.base.geometry
    assert (geometry.wheel_radius, geometry.half_length, geometry.half_width) == (0.06, 0.15, 0.25)


@pytest.mark.parametrize(
    "motion",
    [{"amplitudes": (0.4, 0.0, 0.6)}, {"amplitudes": (0.4, 0.3, 0.0)}, {"together": True}],
    ids=["never sideways", "never turned", "forward and turning together"],
)
def test_what_the_motion_leaves_open_is_asked_not_guessed(motion: dict, tmp_path: Path, capsys) -> None:
    bag, out = drive(tmp_path, **motion), tmp_path / "mine.yaml"
    told = error(capsys, "--bag", bag, "--out", out)
    assert "--wheels: got nothing; expected joints of the wheels front left, front right" in told
    # Of wheels that drive in curves of one radius, or only straight on, not even the sides are known.
    sides = ("right", "left", "right", "left") if motion.get("amplitudes") == (0.4, 0.0, 0.6) else ()
    named = [f"motor_{k} ({side})" for k, side in zip((1, 3, 2, 4), sides, strict=False)] or [
        "motor_1, motor_2, motor_3"
    ]
    assert all(one in told for one in named) and not out.exists()


def test_odometry_that_contradicts_the_commands_is_not_used_and_named(tmp_path: Path, capsys) -> None:
    bag, out = drive(tmp_path, odometry=(1.0, -1.0, 1.0)), tmp_path / "mine.yaml"
    sizes = ["--wheel-radius", "0.06", "--wheelbase", "0.3", "--track", "0.5"]
    assert exit_code("new-robot", "--bag", bag, "--out", out, *sizes) == 0
    assert yd.load_robot(robot_file=out).driver.wheel_joints == MIXED
    assert "found by commands" in out.read_text()
    assert "note: /odom contradicts /cmd_vel about how the base moved, and is not used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("heading", "told"), [(0.04, ""), (0.5, "29 deg to the left"), (-2.0, "115 deg to the right"), (np.pi, "180 deg")]
)
def test_poses_give_the_sizes_whichever_way_the_tracked_body_looks(heading: float, told: str, tmp_path, capsys) -> None:
    """Sizes were asked for where it looked another way, and wheels of omni bases were placed by its heading."""
    bag, out = drive(tmp_path, odometry=None, poses=heading), tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    assert f"looks {told}" in capsys.readouterr().err or not told
    robot = yd.load_robot(robot_file=out)
    geometry = robot.base.geometry
    assert robot.driver.wheel_joints == MIXED and robot.driver.position_sign == SIGNS
    assert geometry.wheel_radius == pytest.approx(0.06, rel=5e-3)
    assert geometry.half_length + geometry.half_width == pytest.approx(0.4, rel=0.01)


def test_omni_wheels_are_where_the_commands_turn_them_whichever_way_a_tracked_body_looks(tmp_path: Path) -> None:
    """Every wheel was placed by the heading of the body: the base drove aside by it."""
    placed = (0.3, 2.4, -1.8)
    base, out = yd.MecanumBase.omni_circle(0.05, 0.2, placed, [0.0] * 3), tmp_path / "omni.yaml"
    bag = drive(tmp_path, odometry=None, poses=0.7, base=base)
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    robot = yd.load_robot(robot_file=out)
    found = np.array(robot.base.geometry.mecanum().inverse_matrix) * np.array(robot.driver.position_sign)[:, None]
    order = [robot.driver.wheel_joints.index(name) for name in MIXED[:3]]
    np.testing.assert_allclose(found[order], base.inverse_matrix * np.array(SIGNS[:3])[:, None], atol=0.1)


def test_noise_of_poses_makes_no_wheel_larger(tmp_path: Path) -> None:
    """Of a localisation, sizes were up to 30 % too large: noise was taken for motion that no wheel made."""
    bag, out = drive(tmp_path, odometry=None, poses=0.0, noise=0.04), tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    geometry = yd.load_robot(robot_file=out).base.geometry
    assert geometry.wheel_radius == pytest.approx(0.06, rel=0.02)
    assert geometry.half_length + geometry.half_width == pytest.approx(0.4, rel=0.03)


def test_poses_alone_are_enough_without_a_warning_of_numpy(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    bag, out = drive(tmp_path, odometry=None, poses=0.0, commands={}), tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    assert yd.load_robot(robot_file=out).driver.wheel_joints == MIXED and not recwarn.list


@pytest.mark.parametrize("slides", [0.0, 0.15], ids=["never sideways", "sliding"])
def test_of_four_wheels_that_do_not_obey_a_sideways_command_one_of_each_side_counts(
    slides: float, tmp_path: Path, capsys
) -> None:
    bag, out = drive(tmp_path, skids=slides), tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    robot = yd.load_robot(robot_file=out)
    sides = {"motor_3": "left", "motor_1": "right", "motor_4": "left", "motor_2": "right"}
    assert [sides[name] for name in robot.driver.wheel_joints] == ["left", "right"]
    assert robot.base.geometry.track == pytest.approx(0.8, rel=5e-3)
    assert robot.base.geometry.wheel_radius == pytest.approx(0.06, rel=5e-3)
    assert "of four wheels, one of each side is in the file" in capsys.readouterr().err
    assert exit_code("identify", bag, "--robot-file", out, "--out", tmp_path / "found", "--only", "delay") == 0


@pytest.mark.parametrize(
    ("commands", "stamped", "how"),
    [
        ({"/nav/cmd_vel": TWIST, "/driver/cmd_vel": TWIST_STAMPED}, True, "found by /driver/cmd_vel"),
        ({"/nav/cmd_vel": TWIST_STAMPED, "/driver/cmd_vel": TWIST}, False, ""),
        ({"/nav/cmd_vel": TWIST, "/base/reference": TWIST_STAMPED}, True, "guessed: /base/reference has TwistStamped"),
        ({"/nav/cmd_vel": TWIST}, False, ""),
    ],
)
def test_the_kind_of_command_is_that_of_the_driver(commands: dict, stamped: bool, how: str, tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", drive(tmp_path, commands=commands), "--out", out) == 0
    assert yd.load_robot(robot_file=out).driver.stamped_twist is stamped
    assert how in out.read_text() and ("stamped_twist" in out.read_text()) == stamped


def test_the_next_command_runs_as_it_is_suggested_for_topics_of_any_name(tmp_path: Path, capsys, monkeypatch) -> None:
    bag, out = drive(tmp_path, commands={"/base/reference": TWIST}), tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    assert "Topics of drive: joints /joint_states; commands /base/reference; odometry /odom" in out.read_text()
    monkeypatch.chdir(tmp_path)
    assert exit_code(*suggested_by(capsys), "--only", "delay") == 0
    # The same drive with speeds of the wheels for commands, in the signs of its driver.
    speeds = drive(tmp_path / "speeds", ordered=(-1.0, 1.0, 1.0, 1.0), commands={}, poses=0.0, lasting=24.0)
    for own, size in (("own.yaml", ()), ("wrong.yaml", ("--wheel-radius", "0.12"))):
        assert exit_code("new-robot", "--bag", speeds, "--out", own, *size) == 0
    words = suggested_by(capsys)
    assert "wheel_commands=/driver/wheel_velocity_command" in words
    assert exit_code(*words, "--only", "delay", "--overwrite") == 0
    assert "turns against" not in capsys.readouterr().out
    # Without its topic, a lack of commands is told with it, but not before a robot file that contradicts the poses.
    place = words.index("--topic")
    del words[place : place + 2]
    for stages, code in ((["--only", "delay"], 1), ([], 3)):
        assert exit_code(*words, "--overwrite", *stages) == code
    told = capsys.readouterr()
    assert "takes --topic wheel_commands=/driver/wheel_velocity_command" in told.err
    answer = " ".join(told.out.split())
    assert "0.5 times the configured wheel radius" in answer and "no result: delays" in answer


def test_the_name_of_a_youbot_is_refused_for_another_robot(usual: Path, tmp_path: Path, capsys) -> None:
    told = error(capsys, "--bag", usual, "--out", tmp_path / "youbot_2.yaml")
    assert "robot_id: got youbot_2, of other wheels" in told and "name another file" in told
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_asked_on_a_terminal_until_it_is_understood(tmp_path: Path, capsys, monkeypatch) -> None:
    bag, out = drive(tmp_path, odometry=None, amplitudes=(0.4, 0.0, 0.6)), tmp_path / "mine.yaml"
    monkeypatch.setattr(sys, "stdin", Terminal("motor_3, motr_1\nmotor_3, motor_1\na hand\n60\n6 cm\n0.5\n"))
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    robot, told = yd.load_robot(robot_file=out), capsys.readouterr().err
    assert robot.driver.wheel_joints == ("motor_3", "motor_1") and robot.driver.position_sign == (1.0, -1.0)
    assert (robot.base.geometry.wheel_radius, robot.base.geometry.track) == (0.06, 0.5)
    assert (
        "did you mean motor_1?" in told
        and told.count("not understood") == 3
        and "got 60 m, given; expected 0.02 to 0.5 m" in told
        and told.count("wheel radius [m, or such as 97 mm]: ") == 3
    )


def test_answers_may_come_from_a_pipe(tmp_path: Path, capsys, monkeypatch) -> None:
    bag, out = drive(tmp_path, odometry=None, amplitudes=(0.4, 0.0, 0.6)), tmp_path / "mine.yaml"
    monkeypatch.setattr(sys, "stdin", io.StringIO("motor_3,motor_1\n6 feet\n6 cm\n0.5"))
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    geometry, told = yd.load_robot(robot_file=out).base.geometry, capsys.readouterr().err
    assert (geometry.wheel_radius, geometry.track) == (0.06, 0.5)
    assert "or such as 97 mm]: 6 cm\n" in told and told.count("not understood") == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("motor_3,motor_1\n"))
    assert exit_code("new-robot", "--bag", bag, "--out", tmp_path / "other.yaml") == 1
    assert "--wheel-radius: got nothing" in capsys.readouterr().err and not (tmp_path / "other.yaml").exists()


@pytest.mark.parametrize("ordered", [(1.0, 1.0, 1.0, 1.0), (1.0, -1.0, 1.0, -1.0), (-1.0, 1.0, 1.0, 1.0)])
def test_commanded_speeds_of_wheels_tell_their_signs_and_how_the_driver_is_commanded(
    ordered: tuple[float, ...], tmp_path: Path, capsys
) -> None:
    twists = {"/cmd_vel": TWIST_STAMPED} if ordered[1] < 0.0 else {}
    bag, out = drive(tmp_path, ordered=ordered, commands=twists), tmp_path / "mine.yaml"
    assert exit_code("new-robot", "--bag", bag, "--out", out) == 0
    driver, told = yd.load_robot(robot_file=out).driver, capsys.readouterr().err
    assert (driver.wheel_joints, driver.position_sign, driver.command_sign) == (MIXED, SIGNS, ordered)
    assert ("found in /driver/wheel_velocity_command: command_sign" in told) == (min(ordered) < 0.0)
    section = (
        "/**/base_controller:\n  ros__parameters:\n    command_interface: 'joint_state'  # found in /driver/wheel_"
    )
    assert section in out.read_text() and "commands /driver/wheel_velocity_command" in out.read_text()


def test_the_limit_of_the_joints_of_a_urdf_is_the_largest_speed_of_the_wheels(tmp_path: Path) -> None:
    limit = '<limit effort="2" velocity="{}"/>'
    for speed, known in (("7.5", True), ("1e9", False), ("0", False)):
        text = DIFFERENTIAL.replace('<axis xyz="0 1 0"/>', f'<axis xyz="0 1 0"/>{limit.format(speed)}')
        (tmp_path / "d.urdf").write_text(text)
        words = ["--urdf", tmp_path / "d.urdf", "--out", tmp_path / "d.yaml", "--wheel-radius", "0.04", "--overwrite"]
        assert exit_code("new-robot", *words, "--track", "0.2") == 0
        robot = yd.load_robot(robot_file=tmp_path / "d.yaml")
        assert (robot.base.limits.wheel_speed == 7.5) == known
        assert ("wheel_speed" in (tmp_path / "d.yaml").read_text()) == known


def test_ctrl_c_at_a_question_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    bag = drive(tmp_path, odometry=None)
    monkeypatch.setattr(sys, "stdin", Terminal("0.06\n"))
    assert exit_code("new-robot", "--bag", bag, "--out", tmp_path / "mine.yaml") == 130
    assert list(tmp_path.iterdir()) == [bag]


def test_a_urdf_gives_sizes_masses_and_the_arm(tmp_path: Path) -> None:
    urdf, arm, base = ROOT / "urdf" / "youbot.urdf", tmp_path / "arm.yaml", tmp_path / "base.yaml"
    wheels = "wheel_joint_fl,wheel_joint_fr,wheel_joint_bl,wheel_joint_br"
    assert exit_code("new-robot", "--urdf", urdf, "--wheels", wheels, "--out", base) == 0
    robot = yd.load_robot(robot_file=base)
    geometry = robot.base.geometry
    assert (geometry.wheel_radius, geometry.half_length, geometry.half_width) == (0.0475, 0.235, 0.15)
    assert robot.base.mass == pytest.approx(29.95, abs=0.01) and robot.has_arm and robot.has_base
    assert robot.driver.arm_joints == tuple(f"arm_joint_{k}" for k in range(1, 6))
    (tmp_path / "ur5e.urdf").write_bytes((ROOT / "test" / "robots" / "ur5e.urdf").read_bytes())
    assert exit_code("new-robot", "--urdf", tmp_path / "ur5e.urdf", "--out", arm) == 0
    robot = yd.load_robot(robot_file=arm)
    assert len(robot.arm.joints) == 6 and not robot.has_base and "urdf: 'ur5e.urdf'" in arm.read_text()


def test_a_joint_that_steers_is_no_wheel_and_the_docs_have_its_file(tmp_path: Path, capsys) -> None:
    urdf, text = tmp_path / "tricycle.urdf", (ROOT / "urdf" / "youbot.urdf").read_text(encoding="utf-8")
    urdf.write_text(text.replace("wheel_joint_fr", "steering_joint"), encoding="utf-8")
    told = error(capsys, "--urdf", urdf, "--out", tmp_path / "mine.yaml")
    assert "for a steered wheel docs/new_robot.md has a file of six lines" in told
    told = error(capsys, "--urdf", urdf, "--wheels", "wheel_joint_fl,steering_joint", "--out", tmp_path / "mine.yaml")
    assert "got steering_joint; expected wheels that do not steer" in told


DIFFERENTIAL = """\
<robot name="d"><link name="base"><inertial><mass value="4"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="a"><collision><geometry><cylinder radius="0.04" length="0.02"/></geometry></collision></link>
<link name="b"/><joint name="turns_a" type="continuous"><parent link="base"/><child link="a"/><origin xyz="0 -0.1 0"/>
<axis xyz="0 -1 0"/></joint>
<joint name="turns_b" type="continuous"><parent link="base"/><child link="b"/><origin xyz="0 0.1 0"/><axis xyz="0 1 0"/>
</joint></robot>"""


def test_two_wheels_of_a_urdf_are_those_of_a_differential_base(tmp_path: Path, capsys) -> None:
    (tmp_path / "d.urdf").write_text(DIFFERENTIAL)
    words = ["--urdf", tmp_path / "d.urdf", "--out", tmp_path / "d.yaml"]
    assert "--wheel-radius" in error(capsys, *words)  # one wheel is not drawn
    assert exit_code("new-robot", *words, "--wheel-radius", "0.04") == 0
    robot = yd.load_robot(robot_file=tmp_path / "d.yaml")
    assert robot.driver.wheel_joints == ("turns_b", "turns_a") and robot.driver.position_sign == (1.0, -1.0)
    assert (robot.base.geometry.track, robot.base.mass, robot.has_arm) == (0.2, 4.0, False)


@pytest.mark.parametrize("measured", [False, True], ids=["commands", "measured speeds"])
def test_a_text_log_is_a_recording(measured: bool, tmp_path: Path, capsys, monkeypatch) -> None:
    time = np.arange(0.0, 15.0, 0.05)
    speeds = np.column_stack([0.2 * np.sin(time), 0.0 * time, 0.5 * np.sin(1.6 * time)])
    turned = np.cumsum(speeds, axis=0) * 0.05 @ yd.MecanumBase.differential(0.3, 1.08).inverse_matrix.T
    table = np.column_stack([time, speeds[:, [0, 2]], -turned[:, 1], turned[:, 0], speeds[:, [0, 2]]])
    log, out = tmp_path / "log.csv", tmp_path / "d.yaml"
    header = "time,command.x,command.yaw,position.b,position.a" + ",measured.x,measured.yaw" * measured
    np.savetxt(log, table[:, : 7 if measured else 5], delimiter=",", header=header, comments="", fmt="%.6f")
    words = ["--bag", log, "--columns", header, "--out", out]
    if not measured:
        assert "--wheel-radius: got nothing" in error(capsys, *words)
        words += ["--wheel-radius", "0.3", "--track", "1.08"]
    assert exit_code("new-robot", *words) == 0
    robot = yd.load_robot(robot_file=out)
    assert robot.driver.wheel_joints == ("a", "b") and robot.driver.position_sign == (1.0, -1.0)
    assert robot.driver.rate == 20.0
    assert robot.base.geometry.wheel_radius == pytest.approx(0.3, rel=0.01)
    assert robot.base.geometry.track == pytest.approx(1.08, rel=0.01)
    assert "stamped" not in out.read_text() and "/" not in out.read_text().split("ros__parameters")[1]  # no topic
    suggested = capsys.readouterr().err.split("next: youbot ")[1].split(", or ")[0]
    monkeypatch.chdir(tmp_path)
    assert "--columns" in suggested and exit_code(*shlex.split(suggested), "--only", "delay") in (0, 3)


def test_the_distance_of_omni_wheels_by_commands_is_a_guess(tmp_path: Path, capsys) -> None:
    base = yd.MecanumBase.omni_circle(0.05, 0.2, [1.0472, 3.1416, -1.0472], [0.0] * 3)
    time = np.arange(0.0, 15.0, 0.05)
    speeds = np.array([0.3, 0.25, 0.6]) * np.sin(np.array([[1.0], [1.7], [2.3]]) * time).T
    turned = np.cumsum(speeds, axis=0) * 0.05 @ base.inverse_matrix.T
    log, header = tmp_path / "log.csv", "time,command.x,command.y,command.yaw,position.a,position.b,position.c"
    np.savetxt(log, np.column_stack([time, speeds, turned]), delimiter=",", header=header, comments="", fmt="%.6f")
    words = ["--bag", log, "--columns", header, "--wheel-radius", "0.05", "--out", tmp_path / "omni.yaml"]
    assert exit_code("new-robot", *words) == 0
    assert yd.load_robot(robot_file=tmp_path / "omni.yaml").base.geometry.wheel_distance == pytest.approx(0.2, rel=0.02)
    assert "guessed from commands: wheel_distance" in capsys.readouterr().err


def test_bad_input_is_refused_in_one_line_and_leaves_no_file(usual: Path, tmp_path: Path, capsys) -> None:
    out, other = tmp_path / "mine.yaml", tmp_path / "other.txt"
    other.write_text("no recording\n")
    assert "got neither --bag nor --urdf" in error(capsys, "--out", out)
    assert "other.txt" in error(capsys, "--bag", other, "--out", out)
    assert "got no XML" in error(capsys, "--urdf", other, "--out", out)
    assert "no such file" in error(capsys, "--bag", tmp_path / "none", "--out", out).lower()
    _, still = OwnBase(2, wheel_states=False).write(tmp_path, duration=5.0)
    assert "got no joint that turned" in error(capsys, "--bag", still, "--out", out)
    assert "got 5 m, given; expected 0.02 to 0.5 m" in error(
        capsys, "--bag", usual, "--out", out, "--wheel-radius", "5"
    )
    assert "did you mean motor_1?" in error(capsys, "--bag", usual, "--out", out, "--wheels", "motor_2,motr_1")
    swapped = error(capsys, "--bag", usual, "--out", out, "--wheels", "motor_1,motor_3,motor_2,motor_4")
    assert "got motor_1, right; motor_3, left;" in swapped
    assert "got 2 joints; expected two or four different" in error(
        capsys, "--bag", usual, "--out", out, "--wheels", "motor_1,motor_1"
    )
    assert "got no such folder" in error(capsys, "--bag", usual, "--out", tmp_path / "none" / "mine.yaml")
    assert not out.exists()
    out.write_text("mine")
    assert "got an existing file" in error(capsys, "--bag", usual, "--out", out)
    assert out.read_text() == "mine"
    assert exit_code("new-robot", "--bag", usual, "--out", out, "--overwrite") == 0
    assert yd.load_robot(robot_file=out).driver.wheel_joints == MIXED
