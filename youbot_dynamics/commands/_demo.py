"""`youbot demo` and `youbot try`: drive the digital twin and identify it; a demo drives it again compensated."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.live import Live

from youbot_dynamics.bringup_plan import option_words, ros_arguments
from youbot_dynamics.commands._terminal import CONSOLE, announce, print_answer, print_rows, steps
from youbot_dynamics.commands._warm_up import warm_up
from youbot_dynamics.commands.identify import recorded
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.errors import ParameterError, RecordingError, ResourceError
from youbot_dynamics.files import check_folder, occupied, place_to_write, write_atomically
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, PathComparison, RecordedPath, recorded_path
from youbot_dynamics.identification.delay.stage import effective_delays
from youbot_dynamics.identification.pipeline import compare, identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.kinematics import planar
from youbot_dynamics.nodes.processes import node_command, start, stop
from youbot_dynamics.parameter_file import write_parameters
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.report import Rows, reveal, write_outputs
from youbot_dynamics.resources import PROGRAMS, program_path, short_path
from youbot_dynamics.robot import Robot, load_robot, robot_from_values, values_of
from youbot_dynamics.simulation.truth import load_truth

if TYPE_CHECKING:
    from youbot_dynamics.nodes.watch import Watch

IDENTIFICATION = "combined"
_DT = 0.02  # [s] for which a line of a program is commanded
OPEN_LOOP_SETTINGS = "open_loop.yaml"
STABILISED_SETTINGS = "stabilised.yaml"  # the same twin, driven with feedback

_CONNECT = 90.0  # timeout for the first messages [s]; a new installation compiles the twin first
_FLOWING = ("/driver/joint_states", "/ground_truth", "/odom")
_LONGEST_DRIVE = 60.0  # [s]


def demo(out: Path, seed: int, robot_file: Path | None = None) -> int:
    """Drive a digital twin, record, identify and drive again. The processes use DDS on this machine only.

    The twin is that of the youBot, or of a robot file. Bags, result and report go into `out` and replace an earlier
    demo there. Returns 0, or 3 if a part of geometry, delays or response is not identifiable.

    Raises:
        YoubotDynamicsError: a step failed; the message names the log to read.
    """
    began = time.monotonic()
    robot = load_robot(robot_file=robot_file)
    if not robot.base.geometry.moves_sideways:
        got, expected = f"{robot.robot_id}, which cannot move sideways", "a base that can: the demo's programs do it"
        remedy = "use bringup --robot mock, record, play excitation and identify"
        raise ParameterError(f"--robot-file {robot_file}", got=got, expected=expected, remedy=remedy)
    with folder_of_demo(out, seed):
        warm_up()
        code = _story(out, seed, robot, robot_file)
    announce(f"{out / 'report.html'} shows the results; took {time.monotonic() - began:.0f} s")
    return code


@contextmanager
def folder_of_demo(out: Path, seed: int) -> Iterator[None]:
    """Prepare a folder with the settings of a twin, remove an earlier demo's bags and lock out a second demo.

    Raises:
        YoubotDynamicsError: the seed is invalid, or the folder cannot be used.
    """
    if not 0 <= seed < 2**31:
        raise ParameterError("--seed", got=str(seed), expected=f"0 to {2**31 - 1}")
    got, expected = "a folder with other files in it", "a new or empty folder, or that of an earlier demo"
    refusal = RecordingError(f"--out {out}", got=got, expected=expected)
    check_folder(out, occupied(out) and not (out / ".demo").exists(), refusal)
    out.mkdir(parents=True, exist_ok=True)
    with place_to_write(out / ".demo").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            got = "a folder that another demo is writing to"
            raise RecordingError(f"--out {out}", got=got, remedy="choose another --out") from None
        for name in ("identification", *(f"{p}_{kind}" for p in PROGRAMS for kind in ("open_loop", "feedback"))):
            shutil.rmtree(out / name, ignore_errors=True)
        _write_settings(out, seed)
        yield


def _story(out: Path, seed: int, robot: Robot, robot_file: Path | None) -> int:
    """Drive, identify, drive again, compare, print."""
    environment = private_network()
    title = f"youbot demo: digital twin of {robot.robot_id}, seed {seed} (simulated, not a robot)"
    with steps(title) as step:
        with twin(out, environment, OPEN_LOOP_SETTINGS, None, robot_file):
            step("driving the identification program, open loop")
            drive(out, environment, IDENTIFICATION, "identification", robot_file)
            for program in PROGRAMS:
                step(f"driving {program}, open loop")
                drive(out, environment, program, f"{program}_open_loop", robot_file)
        step("identifying geometry, delays and response from the recording")
        identification = identify([out / "identification"], robot, Options())
        write_outputs(out, identification, (), title)
        with twin(out, environment, STABILISED_SETTINGS, out / "result.yaml", robot_file):
            for program in PROGRAMS:
                step(f"driving {program}, with the identified values and feedback")
                drive(out, environment, program, f"{program}_feedback", robot_file)
        step("comparing the drives")
        better = identification.result.applied_to(robot)
        comparisons = [_compare(out, program, better) for program in PROGRAMS]
        truth = true_values(seed, out / "identification", robot_file)
        own = [robot_file] if robot_file else []
        write_outputs(out, identification, comparisons, title, truth, same_twin(out, robot_file), own)
    print_answer(identification.result)
    _print_tracking(comparisons)
    print_truth(identification.result, truth, seed)
    return 0 if identification.result.complete else 3


def private_network() -> dict[str, str]:
    """Environment in which the demo cannot reach any robot."""
    environment = dict(os.environ)
    environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 101))
    environment.pop("ROS_STATIC_PEERS", None)
    return environment


def _write_settings(out: Path, seed: int) -> None:
    """Write a parameter file for each of the two bringups."""
    twin = f"/**/mock_youbot:\n  ros__parameters:\n    seed: {seed}\n"
    tracker = "/**/trajectory_tracker:\n  ros__parameters:\n    feedback: false\n"
    write_atomically(out / OPEN_LOOP_SETTINGS, twin + tracker)
    write_parameters(out / STABILISED_SETTINGS, "/**/mock_youbot", {"seed": seed})


def same_twin(out: Path, robot_file: Path | None = None) -> str:
    """Options of `youbot bringup` that start the twin of this demo again."""
    twin = short_path(out / STABILISED_SETTINGS)
    return shlex.join(option_words(robot="mock", params_file=twin, robot_file=short_path(robot_file)))


@contextmanager
def twin(
    out: Path, environment: dict[str, str], settings: str, result: Path | None, robot_file: Path | None = None
) -> Iterator[None]:
    """Run a bringup of the twin during some drives; raise an error if it ends by itself."""
    log = out / f"bringup_{Path(settings).stem}.log"
    command = [sys.executable, "-m", "youbot_dynamics.commands.main", "bringup"]
    command += option_words(robot="mock", params_file=out / settings, result_file=result, robot_file=robot_file)
    with place_to_write(log).open("wb") as stream:
        process = start(command, environment, stream.fileno())
        try:
            yield
            if process.poll() is not None:
                raise ResourceError("bringup", got=f"exit code {process.returncode}", remedy=f"read {log}")
        finally:
            stop(process)


Begin = Callable[[], "subprocess.Popen[bytes]"]


def drive(
    out: Path,
    environment: dict[str, str],
    program: str,
    name: str,
    robot_file: Path | None = None,
    follow: Callable[[Begin], int] = lambda begin: begin().wait(_LONGEST_DRIVE),
) -> None:
    """Record one program into the bag `name`; an error names the log in which recorder or player failed.

    `follow` starts the player once messages are recorded, and returns its exit code.
    """
    log = out / f"{name}.log"
    scale = read_program(program_path(program), _DT).fitting_time_scale(load_robot(robot_file=robot_file).base)
    words = [program, *option_words(dt=_DT, time_scale=f"{scale:g}")]
    words += ros_arguments("", str(robot_file or ""), None)
    with place_to_write(log).open("wb") as stream:
        recorder = start(node_command("recorder", ["--out", str(out / name)]), environment, stream.fileno())
        players: list[subprocess.Popen[bytes]] = []

        def begin() -> subprocess.Popen[bytes]:
            players.append(start(node_command("program_player", words), environment, stream.fileno()))
            return players[0]

        try:
            _wait_for_recorder(out / name, recorder, log)
            code = follow(begin)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            for player in players:
                stop(player)
            stop(recorder)
    if code != 0:
        raise RecordingError(f"drive {name}", got=f"exit code {code}", expected="0", remedy=f"read {log}")


def _wait_for_recorder(bag: Path, recorder: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the bag receives the robot's topics: DDS takes up to three seconds to connect them."""
    deadline = time.monotonic() + _CONNECT
    while not all(recorded(bag).get(topic, 0) > 0 for topic in _FLOWING):
        if recorder.poll() is not None or time.monotonic() > deadline:
            expected = ", ".join(_FLOWING)
            raise RecordingError(f"recorder of {bag.name}", got="no messages", expected=expected, remedy=f"read {log}")
        time.sleep(0.1)


def _compare(out: Path, program: str, robot: Robot) -> PathComparison:
    before, after = (_path(out / f"{program}_{kind}", robot) for kind in ("open_loop", "feedback"))
    drives = [replace(before, label=OPEN_LOOP), replace(after, label=FEEDBACK)]
    return compare(program, drives, robot)


def _path(bag: Path, robot: Robot) -> RecordedPath:
    recording = open_bag(bag)
    path = recorded_path(recording, base_signals(recording, robot, {}), {})
    if path is None:
        raise RecordingError(str(bag), got="no poses", expected="ground_truth or odom")
    return path


def _print_tracking(comparisons: list[PathComparison]) -> None:
    def cell(before: float, after: float, unit: str) -> str:
        return f"{1e3 * before:.2f} -> {1e3 * after:.2f} {unit}, {before / after:.0f} x"

    rows: list[tuple[str, ...]] = []
    for one in comparisons:
        before, after = one.statistics(OPEN_LOOP), one.statistics(FEEDBACK)
        position = cell(before.position_rmse, after.position_rmse, "mm")
        rows.append((one.name, position, cell(before.heading_rmse, after.heading_rmse, "mrad")))
    columns = ("program", "position, open loop -> stabilised", "heading")
    print_rows("RMS tracking error of each program, against ground truth", Rows(columns, rows, ""))


def true_values(seed: int, bag: Path, robot_file: Path | None = None) -> dict[str, float]:
    """True values of the twin of a seed, by the names of the findings.

    The true delays compare the commands of the drive with the exact motion in the recording (topic `ground_truth`).
    """
    truth, recording = load_truth(seed, robot_file).as_found(), open_bag(bag)
    known = values_of(load_robot(robot_file=robot_file))
    robot = robot_from_values({name: truth.get(name, value) for name, value in known.items()})
    poses = recording.poses("/ground_truth")
    path = np.vstack([np.zeros(3), np.cumsum(planar.steps_of_path(poses.pose), axis=0)])
    signals = base_signals(recording, robot, {})
    exact = replace(signals, measured_time=poses.stamp, measured=path, measured_is="position")
    delays = {f"robot.base.delay.effective_{axis}": delay for axis, delay in effective_delays(exact).items()}
    # The pose sensor is at the centre of the twin, uses its clock and does not filter.
    of_sensor = ("sensor_x", "sensor_y", "sensor_yaw", "time_offset", "pose_smoothing")
    tracked = dict.fromkeys((f"base.geometry.{name}" for name in of_sensor), 0.0)
    return {**tracked, **delays, **truth}


def print_truth(result: Result, truth: Mapping[str, float], seed: int) -> None:
    """Print the findings beside the truth, with hit or miss."""
    print_rows(f"the hidden truth of twin {seed}", reveal(result, truth, few=True))


_COUNT = 3  # countdown [s]


def try_twin(out: Path, seed: int) -> int:
    """Count down, drive the twin of a seed once, show its delay live, identify it, and show the truth.

    Raises:
        YoubotDynamicsError: a step failed; the message names the log to read.
    """
    began = time.monotonic()
    with folder_of_demo(out, seed):
        warm_up()
        environment = private_network()
        os.environ.update(environment)
        live: dict[str, str] = {}
        announce(f"a simulated robot, twin {seed}: its delays, wheels and friction are hidden from the identification")
        with twin(out, environment, OPEN_LOOP_SETTINGS, None):
            drive(out, environment, IDENTIFICATION, "identification", follow=lambda begin: _follow(begin, live))
        title = f"youbot try: digital twin, seed {seed} (simulated, not a robot)"
        with steps("youbot try") as step:
            step("identifying delays and geometry from the recording")
            identification = identify([out / "identification"], load_robot(), Options(), only=("calibration", "delay"))
            truth = true_values(seed, out / "identification")
            write_outputs(out, identification, (), title, truth, same_twin(out))
    for axis, text in live.items():
        true = 1e3 * truth[f"robot.base.delay.effective_{axis}"]
        announce(f"live estimate at the end: delay of {axis} {text}; truth over the whole drive: {true:.0f} ms")
    print_truth(identification.result, truth, seed)
    announce(f"took {time.monotonic() - began:.0f} s; next: `youbot demo` drives again with compensation")
    _open(out / "report.html")
    return 0 if identification.result.complete else 3


def _follow(begin: Begin, live: dict[str, str]) -> int:
    """Count down, start the player, and show the delay while it drives; `live` receives the last values."""
    from youbot_dynamics.nodes.watch import AXES, live_delays, watch

    with Live(console=CONSOLE, transient=True) as view:
        for seconds in range(_COUNT, 0, -1):
            view.update(f"drive starts in {seconds} s")
            time.sleep(1.0)
        player = begin()

        def show(node: Watch) -> None:
            live.update(live_delays(node.statuses))
            x, y, yaw = node.pose
            known = [f"delay of {axis} {live.get(axis, 'not known yet')}" for axis in AXES]
            view.update("\n".join([f"driving; pose {x:.2f} m, {y:.2f} m, {yaw:.2f} rad", *known]))

        watch(lambda: player.poll() is not None, show)
    return player.wait()


def _open(page: Path) -> None:
    """Open a page in a browser if there is a display; otherwise print its path."""
    display = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not (display and webbrowser.open(page.resolve().as_uri())):
        announce(f"open {page} in a browser")
