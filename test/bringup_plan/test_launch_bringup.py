"""bringup.launch.py starts what the plan says, and stop_base has the last word however the bringup ends.

The programs are stand-ins that write down how they were started, except in the last test: it takes the real nodes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is not installed")

from ros_processes import PATIENCE, Observer, environment  # noqa: E402

from youbot_dynamics.bringup_plan import ARGUMENTS, BringupOptions, plan  # noqa: E402
from youbot_dynamics.resources import launch_path  # noqa: E402

NAMES = ("mock_youbot", "stop_base", "base_controller", "odometry", "arm_ekf")
REAL = ("stop_base", "base_controller", "odometry", "arm_ekf", "check_driver")
# stop_base ends when base_controller has gone, and takes its time for it.
STAND_IN = """#!/usr/bin/env bash
name="$(basename "$0")"
echo "$name $*" >>"{log}"
obey() {{
    trap '' INT TERM
    if [[ "$name" == stop_base ]]; then
        for ((i = 0; i < 80; i++)); do kill -0 "$(<"{log}.base_controller")" 2>/dev/null || break; sleep 0.05; done
        sleep 0.5
        echo sent >"{log}.sent"
    fi
    exit 0
}}
trap obey INT TERM
[[ "$name" == base_controller ]] && {on_start}
echo $$ >"{log}.$name.new" && mv "{log}.$name.new" "{log}.$name"
while true; do sleep 0.05; done
"""
REAL_NODE = """#!/usr/bin/env bash
echo $$ >"{log}.$(basename "$0")"
exec "{python}" -m "youbot_dynamics.nodes.$(basename "$0")" "$@"
"""
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import GroupAction, IncludeLaunchDescription, SetLaunchConfiguration
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import PushRosNamespace

path, pushed, *arguments = sys.argv[1:]
include = IncludeLaunchDescription(
    PythonLaunchDescriptionSource(path), launch_arguments=[a.split(":=", 1) for a in arguments]
)
service = LaunchService(noninteractive=True)
push = [PushRosNamespace(pushed)] if pushed else []
patience = [SetLaunchConfiguration(f"{name}_timeout", "0.1") for name in ("sigterm", "sigkill")]
service.include_launch_description(LaunchDescription([*patience, GroupAction([*push, include])]))
sys.exit(service.run())
"""


class Bringup:
    """A running bringup; `program` is the text of every executable."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        pushed: str = "",
        on_start: str = "true",
        program: str = STAND_IN,
        launch: str = LAUNCH,
        others: tuple[str, ...] = (),
    ) -> None:
        self.log = folder / "started"
        for name in (*NAMES, "check_driver", "identification", "recorder", *others):
            path = folder / "lib" / (name if name in others else "youbot_dynamics") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(program.format(log=self.log, on_start=on_start, python=sys.executable))
            path.chmod(0o755)
        index = folder / "share" / "ament_index" / "resource_index" / "packages"
        index.mkdir(parents=True)
        for package in ("youbot_dynamics", *others):
            (index / package).touch()
        settings = {
            **environment(),
            "AMENT_PREFIX_PATH": os.pathsep.join([str(folder), os.environ.get("AMENT_PREFIX_PATH", "")]),
            "ROS_LOG_DIR": str(folder / "log"),
        }
        command = [sys.executable, "-c", launch, str(launch_path("bringup.launch.py")), pushed, *arguments]
        with (folder / "output").open("w") as output:
            self.process = subprocess.Popen(
                command, env=settings, cwd="/", stdout=output, stderr=output, start_new_session=True
            )
        self.output = folder / "output"

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def started(self) -> dict[str, str]:
        # launch_ros ends every command line with another --ros-args.
        lines = (line for line in self.lines() if " " in line and line.split(" ", 1)[0].isidentifier())
        return dict(line.removesuffix(" --ros-args").split(" ", 1) for line in lines)

    def has_stopped_the_base(self) -> bool:
        """Tell whether the stand-in of stop_base ran to its end, uninterrupted."""
        return Path(f"{self.log}.sent").is_file()

    def wait_for(self, *names: str) -> None:
        self.wait_until(lambda: all(Path(f"{self.log}.{name}").is_file() for name in names), "processes start")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited for: {what}\n{self.output.read_text()}")
            time.sleep(0.05)

    def pid(self, name: str) -> int:
        return self.process.pid if name == "launch" else int(Path(f"{self.log}.{name}").read_text())

    def left(self) -> list[str]:
        """Names of the processes that still run."""
        return [n for n in (*NAMES, "check_driver") if Path(f"{self.log}.{n}").is_file() and runs(self.pid(n))]

    def end(self) -> str:
        self.wait_until(lambda: self.process.poll() is not None, "the bringup ends")
        return self.output.read_text()

    def clean_up(self) -> None:
        for name in self.left():
            os.kill(self.pid(name), signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def bringup(tmp_path):
    started = []

    def start(*arguments: str, folder: Path = tmp_path / "pre fix", **options: str) -> Bringup:
        started.append(Bringup(folder, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.clean_up()


def tokens(**arguments) -> dict[str, str]:
    return {process.executable: " ".join(process.arguments) for process in plan(BringupOptions.read(arguments))}


def test_every_argument_is_declared_with_description_and_choices():
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    description = get_launch_description_from_python_launch_file(str(launch_path("bringup.launch.py")))
    declared = {argument.name: argument for argument in description.get_launch_arguments()}
    assert list(declared) == [argument.name for argument in ARGUMENTS]
    for argument in ARGUMENTS:
        assert declared[argument.name].description.startswith(argument.description)
        assert tuple(declared[argument.name].choices or ()) == argument.choices


def test_twin_starts_the_processes_of_the_plan_and_interrupt_ends_them(bringup):
    running = bringup("robot:=mock")
    running.wait_for(*NAMES)
    assert running.started() == tokens(robot="mock")
    os.killpg(running.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
    time.sleep(0.2)
    os.killpg(running.process.pid, signal.SIGINT)  # and once more
    output = running.end()
    assert running.has_stopped_the_base(), output
    assert running.process.returncode == 0
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "name, number",
    [
        ("base_controller", signal.SIGKILL),
        ("base_controller", signal.SIGTERM),
        ("odometry", signal.SIGKILL),
        ("mock_youbot", signal.SIGKILL),
    ],
)
def test_end_of_any_process_ends_the_bringup_after_stop_base(bringup, name, number):
    running = bringup("robot:=mock")
    running.wait_for(*NAMES)
    os.kill(running.pid(name), number)
    output = running.end()
    assert running.has_stopped_the_base(), output
    assert not running.left()
    assert running.process.returncode == 1
    assert len(running.lines()) == len(NAMES)


def test_end_of_stop_base_ends_the_bringup(bringup):
    running = bringup("robot:=real", "stabilize:=false")
    running.wait_for(*REAL)
    assert running.started() == tokens(robot="real", stabilize=False)
    os.kill(running.pid("stop_base"), signal.SIGKILL)
    running.end()
    assert not running.left()


def test_base_controller_deaf_to_signals_is_killed_while_stop_base_still_listens(bringup):
    running = bringup("robot:=real", on_start="trap '' INT TERM")
    running.wait_for(*REAL)
    started = time.monotonic()
    running.process.send_signal(signal.SIGINT)
    output = running.end()
    assert running.has_stopped_the_base(), output
    assert "process[stop_base-1] failed to terminate" not in output
    assert time.monotonic() - started < 4.5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_a_launch_that_leaves_them_behind(bringup, number):
    running = bringup("robot:=mock")
    running.wait_for(*NAMES)
    running.process.send_signal(number)
    running.end()
    running.wait_until(lambda: not running.left(), "the processes end")
    assert running.has_stopped_the_base()


def test_namespace_of_an_including_launch_file_comes_first(bringup):
    running = bringup("robot:=real", "namespace:=base", pushed="fleet")
    running.wait_for("base_controller")
    command = running.started()["base_controller"]
    assert "-r __ns:=/fleet/base" in command
    assert command.index("__ns:=/fleet/base") <= command.index("__ns:=/fleet")  # the first rule wins
    assert "-r /tf:=tf" in command


TWICE = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import ExecuteProcess, GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import PushRosNamespace

path, pushed, *arguments = sys.argv[1:]
del sys.argv[1:]  # as of another launch file, which includes this one
robots = []
for name, own in (("yb1", {"params_file": arguments[0]}), ("yb2", {"stabilize": "false"})):
    values = {"robot": "mock", "estimate_arm": "false", "namespace": name, **own}
    include = IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=values.items())
    robots.append(GroupAction([include]))
service = LaunchService(noninteractive=True)
service.include_launch_description(LaunchDescription(robots))
sys.exit(service.run())
"""
# The stand-in of one robot must not be taken for the other's.
OF_ROBOT = STAND_IN.replace('name="$(basename "$0")"', 'name="$(basename "$0")"; [[ "$*" == *ns:=/yb2* ]] && name+=_2')
OF_ROBOT = OF_ROBOT.replace("{log}.base_controller", "{log}.base_controller${{name#stop_base}}")
OF_ROBOT = OF_ROBOT.replace('"$name" == stop_base', '"$name" == stop_base*')
TWO_ROBOTS = ("mock_youbot", "stop_base", "base_controller", "odometry")


def test_included_twice_each_robot_has_its_own_and_ends_alone(bringup, tmp_path):
    own = tmp_path / "own.yaml"
    own.touch()
    running = bringup(str(own), program=OF_ROBOT, launch=TWICE)
    both = (*TWO_ROBOTS, *(f"{name}_2" for name in TWO_ROBOTS))
    running.wait_for(*both)
    first, second = (
        tokens(namespace=f"/{name}", estimate_arm=False, **more)
        for name, more in (("yb1", {"params_file": str(own)}), ("yb2", {"stabilize": False}))
    )
    started = running.started()
    assert {name: started[name] for name in TWO_ROBOTS} == first
    assert {name: started[f"{name}_2"] for name in TWO_ROBOTS} == second
    os.kill(running.pid("odometry"), signal.SIGKILL)
    running.wait_until(lambda: not [n for n in TWO_ROBOTS if runs(running.pid(n))], "the first robot's processes end")
    time.sleep(0.5)
    assert all(runs(running.pid(f"{name}_2")) for name in TWO_ROBOTS)
    assert running.process.poll() is None
    os.kill(running.pid("odometry_2"), signal.SIGKILL)
    output = running.end()
    assert not [name for name in both if runs(running.pid(name))], output


def test_closed_window_ends_nothing_and_what_is_not_installed_is_said(bringup):
    running = bringup("robot:=mock", "rviz:=true", others=("rviz2",))
    running.wait_for(*NAMES, "rviz2")
    os.kill(running.pid("rviz2"), signal.SIGTERM)
    running.wait_until(lambda: not runs(running.pid("rviz2")), "the window closes")
    time.sleep(0.5)
    assert running.left() == list(NAMES)
    assert running.output.read_text().count("robot_state_publisher is not installed") == 1


def test_robot_state_publisher_and_recorder_start_where_they_can(bringup, tmp_path):
    running = bringup("robot:=mock", f"record:={tmp_path / 'drive'}", others=("robot_state_publisher",))
    running.wait_for(*NAMES, "robot_state_publisher", "recorder")
    started = running.started()
    assert started["recorder"].startswith(f"--out {tmp_path / 'drive'} --ros-args")
    assert "-p robot_description:=" in running.log.read_text()


def test_passive_bringup_starts_no_one_who_commands(bringup):
    running = bringup("robot:=real", "passive:=true")
    running.wait_for("odometry", "arm_ekf", "identification")
    assert set(running.started()) == {"odometry", "arm_ekf", "identification"}


def test_missing_result_file_ends_the_bringup_with_its_name(bringup):
    running = bringup("result_file:=/absent/result.yaml")
    output = running.end()
    assert running.process.returncode == 1
    assert not running.lines()
    assert any("result_file: got /absent/result.yaml" in line for line in output.splitlines())


@pytest.mark.ros
@pytest.mark.parametrize(
    "name, number",
    [("base_controller", signal.SIGKILL), ("launch", signal.SIGTERM)],
    ids=["base_controller killed", "launch terminated"],
)
def test_driver_hears_zero_last_from_the_real_nodes(bringup, name, number):
    from geometry_msgs.msg import Twist
    from nav_msgs.msg import Odometry

    running = bringup("robot:=mock", program=REAL_NODE)
    with Observer() as observer:
        observer.listen(Odometry, "odom")
        observer.listen(Twist, "driver/cmd_vel")
        commands, times = observer.received["driver/cmd_vel"], observer.times["driver/cmd_vel"]
        operator = observer.node.create_publisher(Twist, "cmd_vel", 1)
        forward = Twist()
        forward.linear.x = 0.2

        def wait_driving(condition: Callable[[], bool], what: str) -> None:
            """Drive on meanwhile: the zero must be nobody's who merely missed the operator."""

            def driven() -> bool:
                operator.publish(forward)
                return condition()

            observer.wait(driven, f"{what}\n{running.output.read_text()}")

        observer.wait(lambda: len(observer.received["odom"]) > 0, "odom")
        # base_controller and stop_base are both there, and the robot is driving.
        wait_driving(lambda: observer.node.count_publishers("driver/cmd_vel") == 2, "two publishers")
        wait_driving(lambda: len(commands) > 100, "commands")
        assert moves(commands[-1])
        killed = time.monotonic()
        os.kill(running.pid(name), number)
        wait_driving(lambda: running.process.poll() is not None and not running.left(), "the end")
        observer.drain("driver/cmd_vel")
    moving = [index for index, command in enumerate(commands) if moves(command)]
    assert moving[-1] < len(commands) - 1, running.output.read_text()
    delay = times[moving[-1] + 1] - killed
    print(f"zero {delay:.3f} s after the end of {name}")
    assert delay < 2.0


def interrupted(running: Bringup, presses: int) -> tuple[bool, float]:
    """Drive, and press Ctrl-C so often: whether the last command moves the base, and when all had gone [s]."""
    from geometry_msgs.msg import Twist

    forward = Twist()
    forward.linear.x = 0.2
    with Observer() as observer:
        observer.listen(Twist, "driver/cmd_vel")
        operator = observer.node.create_publisher(Twist, "cmd_vel", 1)
        commands = observer.received["driver/cmd_vel"]
        observer.wait(lambda: operator.get_subscription_count() > 1, "the controller and the tracker")
        observer.send(operator, forward, lambda: len(commands) > 20 and moves(commands[-1]), "a drive")
        pressed = time.monotonic()
        for _ in range(presses):
            os.killpg(running.process.pid, signal.SIGINT)
            observer.spin(0.1)
        observer.send(operator, forward, lambda: running.process.poll() is not None and not running.left(), "the end")
        took = time.monotonic() - pressed
        observer.drain("driver/cmd_vel")
    return moves(commands[-1]), took


@pytest.mark.ros
@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_ctrl_c_leaves_zero_and_nobody_and_no_complaint(bringup, tmp_path, rounds):
    """As a terminal sends it to all processes at once: once, twice, three times. All are gone within 3 s.

    That promise is judged where no other program waits for the processors.
    """
    for k in range(rounds):
        running = bringup("robot:=mock", folder=tmp_path / f"round {k}", program=REAL_NODE)
        moving, took = interrupted(running, 1 + k % 3)
        output, load = running.output.read_text(), os.getloadavg()[0]
        print(f"round {k}: {1 + k % 3} x Ctrl-C, all gone after {took:.2f} s, load {load:.1f}")
        assert not moving, output
        assert running.process.returncode == 0, output
        for complaint in ("Traceback", "exit code -2"):
            assert complaint not in output, output
        assert took < 3.0 or load > (os.cpu_count() or 1), output


def moves(command) -> bool:
    return any((command.linear.x, command.linear.y, command.angular.z))
