"""The recommended motions: as files that can be played again, and over DDS on the simulated robot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from command_line import exit_code

from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.errors import ProgramError, RecordingError
from youbot_dynamics.identification.excitation import (
    ArmExcitation,
    MultiSine,
    base_program,
    from_here,
    write_goal,
    write_program,
)
from youbot_dynamics.robot import load_robot

ROBOT = load_robot()
UPRIGHT = np.array([2.95, 1.13, -2.55, 1.79, 2.92])


def swing(duration: float = 4.0) -> ArmExcitation:
    frequencies, amplitudes = np.full((5, 1), 0.5), np.full((5, 1), 0.2)
    times = np.linspace(0.0, duration, round(10 * duration) + 1)
    x, v, a = MultiSine(duration, frequencies, amplitudes, np.zeros((5, 1))).at(times)
    return ArmExcitation(times, UPRIGHT + x, v, a)


def test_a_written_program_is_read_back_and_within_limits(tmp_path):
    program = base_program(ROBOT, 20.0, 0.8, 0.02)
    program.check(ROBOT.base)
    write_program(tmp_path / "drive.txt", program)
    again = read_program(tmp_path / "drive.txt", 0.02)
    np.testing.assert_allclose(again.twists, program.twists, atol=1e-6)
    poses = program.trajectory().poses
    assert np.all(np.abs(poses[-1] - poses[0]) < 0.6), "it comes back to where it began, but for its turning"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("excitation", "--dt", "0"), "--dt: got 0 s; expected 0.001 to 0.1 s"),
        (("excitation", "--dt", "5"), "--dt: got 5 s"),
        (("excitation", "--time-scale", "0"), "--time-scale: got 0;"),
        (("excitation", "--time-scale", "-1"), "--time-scale: got -1;"),
        (("excitation", "--time-scale", "nan"), "--time-scale: got nan;"),
        (("excitation", "--time-scale", "0.1", "--duration", "20"), "wheel speed"),
        (("arm_excitation", "--time-scale", "3"), "--time-scale with arm_excitation"),
    ],
)
def test_numbers_that_make_no_motion_write_no_file(tmp_path, capsys, words, expected):
    assert exit_code("play", *words, "--write", tmp_path / "drive.txt") == 1
    assert expected in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path, capsys):
    wanted = tmp_path / "nowhere" / "drive.txt"
    assert exit_code("play", "excitation", "--duration", "20", "--write", wanted) == 1
    assert f"--write {wanted}: got no such folder" in capsys.readouterr().err


def test_the_way_to_the_start_is_slow_smooth_and_from_rest():
    motion, here = swing(), UPRIGHT + np.array([1.0, -0.5, 0.2, 0.0, -1.5])
    whole = from_here(motion, here, np.full(5, 1.57))
    assert whole.positions[0] == pytest.approx(here) and not whole.velocities[0].any()
    assert np.all(np.diff(whole.times) > 0.0)
    before = whole.times < whole.times[-1] - motion.times[-1]
    assert np.abs(whole.velocities[before]).max() <= 0.2 * 1.57 * 1.001
    slopes = np.gradient(whole.positions, whole.times, axis=0)
    np.testing.assert_allclose(slopes[2:-2], whole.velocities[2:-2], atol=0.03)
    np.testing.assert_array_equal(whole.positions[-len(motion.times) :], motion.positions)


def test_a_goal_for_the_driver_is_yaml_with_every_field_the_driver_wants(tmp_path):
    write_goal(tmp_path / "goal.yaml", swing(), ROBOT.driver.arm_joints)
    trajectory = yaml.safe_load((tmp_path / "goal.yaml").read_text())["trajectory"]
    assert trajectory["joint_names"] == list(ROBOT.driver.arm_joints)
    last = trajectory["points"][-1]
    assert {key: len(last[key]) for key in ("positions", "velocities", "accelerations")} == {
        "positions": 5,
        "velocities": 5,
        "accelerations": 5,
    }
    assert last["time_from_start"] == {"sec": 4, "nanosec": 0}


def test_the_base_excitation_is_written_without_ros_and_other_programs_are_not(tmp_path, capsys):
    target = tmp_path / "drive.txt"
    assert exit_code("play", "excitation", "--duration", "20", "--room", "0.5", "--write", target) == 0
    assert str(target) in capsys.readouterr().err.replace("\n", "") and len(target.read_text().splitlines()) == 1001
    before = target.read_text()
    words = ("play", "excitation", "--duration", "21", "--room", "0.5", "--write", target)
    assert exit_code(*words) == 1
    assert "drive.txt: got an existing file; expected a new one" in capsys.readouterr().err
    assert target.read_text() == before
    assert exit_code(*words, "--overwrite") == 0
    assert target.read_text() != before
    capsys.readouterr()
    assert exit_code("play", "combined", "--write", tmp_path / "other") == 1
    assert "excitation or arm_excitation" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("duration", "room"), [(5.0, 1.0), (1e4, 1.0), (60.0, 0.1), (60.0, 50.0), (float("nan"), 1.0)])
def test_senseless_durations_and_rooms_are_refused(duration, room):
    with pytest.raises(ProgramError, match="--duration|--room"):
        base_program(ROBOT, duration, room, 0.02)


# Over DDS


class Flag:
    """A stop that a test can ask for."""

    def __init__(self) -> None:
        self.set = False


@pytest.mark.ros
def test_the_arm_of_the_mock_follows_and_stops_when_told(monkeypatch):
    rclpy = pytest.importorskip("rclpy")
    from ros_processes import PATIENCE, Processes

    from youbot_dynamics.errors import TrajectoryError
    from youbot_dynamics.nodes import arm_player

    rclpy.init()
    try:
        player = arm_player.ArmPlayer()
        monkeypatch.setattr(arm_player, "DISCOVERY_TIMEOUT", 0.5)
        with pytest.raises(TrajectoryError, match="no states of the arm"):
            player.play(swing(), Flag())
        monkeypatch.setattr(arm_player, "DISCOVERY_TIMEOUT", 30.0)
        with Processes() as processes:
            near = "[2.65, 0.83, -2.25, 1.49, 2.62]"  # from where the arm rests folded, the way there takes 18 s
            processes.node("mock_youbot", "-p", "seed:=1", "-p", f"robot.arm.rest_position:={near}")
            assert player.play(swing(), Flag())
            assert player.position == pytest.approx(UPRIGHT, abs=0.05)
            flag = Flag()
            timer = threading.Timer(1.5, lambda: setattr(flag, "set", True))
            timer.start()
            assert not player.play(swing(20.0), flag)
            player.cancel()
            after = []
            patience = time.monotonic() + PATIENCE
            while len(after) < 2 or np.abs(after[-1] - after[-2]).max() > 0.01:
                assert time.monotonic() < patience, "it does not stand"
                end = time.monotonic() + 0.5
                while time.monotonic() < end:
                    rclpy.spin_once(player, timeout_sec=0.05)
                after.append(np.array(player.position))
        player.destroy_node()
    finally:
        rclpy.try_shutdown()


@pytest.mark.ros
@pytest.mark.slow
def test_youbot_play_drives_the_recommended_excitations(tmp_path):
    pytest.importorskip("rclpy")
    from ros_processes import Processes

    with Processes() as processes:
        for name in ("mock_youbot", "base_controller", "odometry"):
            processes.node(name)
        base = processes.youbot("play", "excitation", "--duration", "20", "--room", "0.5")
        arm = processes.youbot("play", "arm_excitation", "--duration", "20")
        for child in (base, arm):
            output = child.communicate(timeout=120)[0]
            assert child.returncode == 0, output
            assert "completed" in output


@pytest.mark.ros
@pytest.mark.slow
def test_youbot_play_drives_until_it_is_narrow_enough_and_stops_when_told(tmp_path):
    pytest.importorskip("rclpy")
    import signal

    from ros_processes import PATIENCE, Processes

    with Processes() as processes:
        for name in ("mock_youbot", "base_controller", "odometry"):
            processes.node(name)
        until = ("play", "excitation", "--until")
        drive, out = tmp_path / "drive_1", str(tmp_path / "drive_2")
        child = processes.youbot(*until, "delay 5 %, radius 0.5 %", "--out", str(drive))
        output = child.communicate(timeout=PATIENCE)[0]
        assert child.returncode == 0, output
        assert "mean radius of the wheels 0.04" in output and "the wish is met" in output
        assert f"youbot identify {drive} --out found" in output.replace("\n  ", " ")
        exit_code("identify", str(drive), "--out", str(tmp_path / "found"), "--only", "delay,calibration")
        assert "wheel_radius" in (tmp_path / "found" / "robot.yaml").read_text(encoding="utf-8")
        unseen = processes.youbot(*until, "radius 0.5 %", "--pose-topic", "/driver/joint_states", "--out", out)
        output = unseen.communicate(timeout=PATIENCE)[0]
        assert unseen.returncode == 1 and "driving" not in output
        assert "--pose-topic /driver/joint_states" in output and "a topic of type sensor_msgs/msg/JointState" in output
        told = processes.youbot(*until, "delay 5 %", "--out", out)  # nothing was driven into it
        assert told.stdout is not None and "driving excitation" in told.stdout.readline()
        time.sleep(3.0)
        told.send_signal(signal.SIGINT)
        output = told.communicate(timeout=PATIENCE)[0]
        assert told.returncode == 130 and "stopped" in output and "Traceback" not in output


@pytest.mark.parametrize("heard_after", [1, 3])
def test_signals_that_are_found_late_are_waited_for(heard_after):
    pytest.importorskip("rclpy")
    from youbot_dynamics.nodes.until_player import UntilPlayer

    looks: list[str] = []

    def look(*_: object) -> None:
        looks.append("look")
        if len(looks) < heard_after:
            raise RecordingError("the drive so far", got="no topic with poses")

    player = SimpleNamespace(wait=lambda *_: False, _on_recording=look, _heard=True)
    UntilPlayer._check(player, (), Flag())  # type: ignore[arg-type]
    assert len(looks) == heard_after


def test_a_robot_of_which_nothing_is_heard_is_told_to_lack_the_states_of_its_wheels(monkeypatch):
    """The bag was said to be damaged."""
    pytest.importorskip("rclpy")
    from youbot_dynamics.nodes import until_player

    monkeypatch.setattr(until_player, "_TIMEOUT", -1.0)
    player = SimpleNamespace(wait=lambda *_: False, _heard=False, resolve_topic_name=lambda name: f"/{name}")
    with pytest.raises(RecordingError, match="^topic /driver/joint_states: got no positions of the wheels; start"):
        until_player.UntilPlayer._check(player, (), Flag())  # type: ignore[arg-type]


def test_a_player_that_fails_leaves_no_robot_on_its_way(monkeypatch):
    """Also by an error of ours: it is shown, after the robot was stopped."""
    pytest.importorskip("rclpy")
    from youbot_dynamics.nodes import _player

    done: list[str] = []

    def play(*arguments: object) -> bool:
        raise ZeroDivisionError

    player = SimpleNamespace(motion=lambda given: None, play=play, cancel=lambda: done.append("cancelled"))
    monkeypatch.setattr(_player, "init", lambda: None)
    monkeypatch.setattr(_player, "without_shared_memory", nullcontext)
    monkeypatch.setattr(_player, "leave_imports_out_of_collection", lambda: None)
    with pytest.raises(ZeroDivisionError):
        _player.play_once(lambda: player, SimpleNamespace())
    assert done == ["cancelled"]


@pytest.mark.ros
def test_a_program_that_is_refused_stops_nobody_elses_trajectory():
    rclpy = pytest.importorskip("rclpy")
    from youbot_dynamics.nodes.program_player import ProgramPlayer

    rclpy.init()
    try:
        player = ProgramPlayer()
        sent: list[object] = []
        player._trajectory = SimpleNamespace(publish=sent.append)
        with pytest.raises(ProgramError, match="--duration"):
            player.motion(SimpleNamespace(program="excitation", duration=5.0, room=1.0, dt=0.02, time_scale=1.0))
        player.cancel()
        assert sent == []
        player.destroy_node()
    finally:
        rclpy.try_shutdown()


@pytest.mark.ros
def test_the_player_tells_why_its_own_trajectory_was_given_up_before_it_began():
    """Not why another one was: the tracker repeats that once a second."""
    rclpy = pytest.importorskip("rclpy")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

    from youbot_dynamics.nodes._trajectory_message import OF_STAMP
    from youbot_dynamics.nodes.program_player import GivenUpError, ProgramPlayer

    def told(stamp: str, reason: str) -> DiagnosticArray:
        value = KeyValue(key=OF_STAMP, value=stamp)
        name, message = f"{player._tracker}: trajectory", f"trajectory given up: {reason}"
        return DiagnosticArray(status=[DiagnosticStatus(name=name, message=message, values=[value])])

    def wait(condition: Callable[[], bool], timeout: float, flag: object) -> bool:
        player._on_diagnostics(told("1.000000000", "the earlier reason"))
        assert not player._ended
        if player._sent:
            player._on_diagnostics(told(player._sent, "cancelled"))
        return condition()

    rclpy.init()
    try:
        player = ProgramPlayer()
        player._connected, player.wait = lambda: True, wait
        with pytest.raises(GivenUpError, match="0.0 s of 1.0 s followed; trajectory given up: cancelled"):
            player.play(Program("short", np.full((50, 3), 0.01), 0.02), SimpleNamespace(set=False))
        player.destroy_node()
    finally:
        rclpy.try_shutdown()


@pytest.mark.ros
def test_a_base_whose_leg_was_given_up_is_stopped_before_anybody_is_asked_to_go_there():
    """Where only the word of the tracker was lost, it drives on."""
    rclpy = pytest.importorskip("rclpy")
    from youbot_dynamics.nodes.program_player import GivenUpError
    from youbot_dynamics.nodes.tape_player import TapePlayer

    done: list[str] = []

    def drive(program: object, flag: object) -> np.ndarray:
        done.append("driven")
        if done.count("driven") == 1:
            raise GivenUpError("program leg", got="0.5 s of 2.0 s followed")
        return np.zeros((5, 4))

    def ask(question: str, *_: object) -> float:
        done.append("asked")
        return 1.0

    rclpy.init()
    try:
        player = TapePlayer([("forward", 1.0)], {"forward": 1e-3})
        player._angles.append(np.zeros(4))
        player._drive, player._ask, player.cancel = drive, ask, lambda: done.append("stopped")
        assert player.play([("forward", None)], SimpleNamespace(set=False)) and len(player.legs) == 1
        assert done == ["asked", "driven", "stopped", "asked", "driven", "asked"]
        player.destroy_node()
    finally:
        rclpy.try_shutdown()


def test_a_fit_whose_log_has_vanished_is_reported(tmp_path):
    pytest.importorskip("rclpy")
    from youbot_dynamics.nodes.identification import IdentificationNode

    said: list[str] = []
    node = SimpleNamespace(
        _child=SimpleNamespace(poll=lambda: 1, returncode=1),
        _fit_folder=tmp_path,
        get_logger=lambda: SimpleNamespace(error=said.append),
    )
    IdentificationNode._watch(node)
    assert len(said) == 1 and "the fit failed" in said[0] and "fit.log" in said[0]
    assert node._status.message == said[0] and node._child is None
