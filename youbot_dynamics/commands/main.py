"""The program `youbot`; each command has a module."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from youbot_dynamics import __version__
from youbot_dynamics.bringup_plan import ARGUMENTS, TRUTH_VALUES, BringupOptions, option_words
from youbot_dynamics.commands._options import (
    ROBOT_FILE,
    add_columns,
    add_namespace,
    add_number,
    add_repeated,
    add_robot_files,
    add_verb,
    path_of,
)
from youbot_dynamics.commands._ros import need_ros, node_words
from youbot_dynamics.commands._spelling import check_spelling
from youbot_dynamics.errors import ParameterError, YoubotDynamicsError, missing_package
from youbot_dynamics.identification.stages import STAGES
from youbot_dynamics.interrupts import INTERRUPTED, imported, run
from youbot_dynamics.resources import ARM_EXCITATION, robot_path

_EPILOG = """\
examples:
  youbot warm-up                                  compile in advance (one minute), so that the first start is fast
  youbot try                                      drive the digital twin once and see its delay live; one minute
  youbot demo                                     drive, record, identify and drive better, on the digital twin
  youbot bringup --robot mock                     start the robot (Ctrl-C stops it)
  youbot new-robot --bag drive_1 --out my.yaml    a robot file from a recording, a URDF and a few questions
  youbot record --out drive_1                     record every topic until Ctrl-C
  youbot watch                                    see the robot live in a browser
  youbot play combined                            drive one of the three test paths
  youbot identify drive_1 --out found             delays, friction, ...: report.html, result.yaml
  youbot compare found found_2                    what changed between two results
  youbot replay drive_1 --out replayed            state of the arm: report.html, a bag of estimates
  youbot check-driver                             what is wrong with a real robot's driver, and what to do
  youbot calibrate --tape --write geometry.yaml   wheel radius, lateral factor and lever with a tape measure
  youbot bringup --robot mock --result-file found/result.yaml

exit codes: 0 done, 1 refused or failed (one line gives the reason), 2 wrong usage,
            3 finished, but at least one value is not identifiable, 130 interrupted
"""


_SEVERAL = "give the option once for each of several files, which must not have a value in common"


def parser() -> argparse.ArgumentParser:
    """The parser of `youbot`, with a subparser for each command."""
    whole = argparse.ArgumentParser(
        prog="youbot",
        description="Identify how a mobile robot (KUKA youBot or another base) really moves, and drive it accurately.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"youbot_dynamics {__version__}")
    verbs = whole.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    _add_identify(verbs)
    _add_new_robot(verbs)
    _add_compare(verbs)
    _add_replay(verbs)
    _add_record(verbs)
    _add_play(verbs)
    _add_bringup(verbs)
    _add_watch(verbs)
    _add_check_driver(verbs)
    _add_calibrate(verbs)
    _add_twin(
        verbs,
        "demo",
        "drive the digital twin, identify it, and drive it again with the result; about 4 minutes, on this "
        "machine's network only",
    ).add_argument("--robot-file", default="", metavar="NAME", help=ROBOT_FILE)
    _add_twin(
        verbs,
        "try",
        "drive the digital twin for a minute, see its delay and then its true values; on this machine's network only",
    )
    add_verb(
        verbs,
        "warm-up",
        "compile all code in advance, so that the nodes start fast; run it after an installation or an update",
        "  youbot warm-up\n",
    )
    return whole


def _add_identify(verbs) -> None:
    parser = add_verb(
        verbs,
        "identify",
        "identify delays, friction, geometry and motor constants from recordings",
        "  youbot identify drive_1 --out found\n"
        "  youbot identify drive_1 --out found --only delay,base_friction\n"
        "  youbot identify mocap_1 --out found --only calibration --pose-topic /mocap/base\n"
        "  youbot identify translation rotation --out found --json\n"
        "  youbot identify log.csv --out found                columns by the names in its header\n"
        "  youbot identify log.csv --columns time:ms,command.x,measured.x --out found\n"
        "  youbot identify log.csv --columns time=t:ms,position.wheel_joint_fl=enc_1:turn/4096,... --out found\n",
    )
    bags = "bag (mcap, sqlite3, ROS 1), folder of bags, or text log"
    parser.add_argument("bags", nargs="+", type=path_of, metavar="BAG", help=bags)
    parser.add_argument("--out", required=True, type=path_of, metavar="DIR", help="folder for the result and report")
    stages = f"stages to run, separated by commas: {', '.join(STAGES)} (default: all that have data)"
    parser.add_argument("--only", default="", metavar="LIST", help=stages)
    parser.add_argument("--pose-topic", default="", metavar="TOPIC", help="topic with the pose of the base")
    roles = (
        "wheel_commands, driver_cmd_vel, cmd_vel, wheel_states, odom, imu, ground_truth, trajectory, arm_states, "
        "arm_torque_commands, motor_voltage, motor_temperature, housing_temperature"
    )
    add_repeated(parser, "--topic", "ROLE=NAME", f"topic to use for a role: {roles}")
    coasted = (
        "time span in which the base coasted with its motors switched off, in seconds after the first wheel state of "
        "each recording; give the option once for each span"
    )
    add_repeated(parser, "--motors-off", "BEGIN,END", coasted)
    add_columns(parser)
    add_robot_files(parser)
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="dask scheduler whose workers read the recordings: HOST:PORT on this machine, or tls://HOST:PORT",
    )
    trust = "let a scheduler on another machine answer without TLS; it, and others in the network, can run code here"
    parser.add_argument("--trust-scheduler", action="store_true", help=trust)
    parser.add_argument("--overwrite", action="store_true", help="replace the result of an earlier identification")
    parser.add_argument("--verbose", action="store_true", help="also print every value with its verdict, and all notes")
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")


def _add_new_robot(verbs) -> None:
    parser = add_verb(
        verbs,
        "new-robot",
        "make the robot file of a base, an arm or both from a recording, a URDF and at most four answers",
        "  youbot new-robot --bag drive_1 --out my_robot.yaml\n"
        "  youbot new-robot --bag drive_1 --urdf my_robot.urdf --out my_robot.yaml\n"
        "  youbot new-robot --bag drive_1 --wheel-radius '33 mm' --track 0.16 --out my_robot.yaml\n",
    )
    parser.add_argument("--bag", type=path_of, metavar="BAG", help="recording of a drive along all axes, or a text log")
    parser.add_argument("--urdf", type=path_of, metavar="FILE", help="URDF of the base, of the arm, or of both")
    parser.add_argument("--out", required=True, type=path_of, metavar="FILE", help="robot file to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file of --out")
    order = "front left, front right, rear left, rear right; two, left and right, for wheels without rollers"
    parser.add_argument("--wheels", metavar="NAMES", help=f"joints of the wheels, with commas: {order}")
    axles, sides = "distance between front and rear axle", "distance between left and right wheels"
    for name, what in (("wheel-radius", "radius of the wheels"), ("wheelbase", axles), ("track", sides)):
        parser.add_argument(f"--{name}", metavar="LENGTH", help=f"{what} [m], or such as 97 mm")
    add_columns(parser)


def _add_compare(verbs) -> None:
    parser = add_verb(
        verbs,
        "compare",
        "show what changed between two results of identify, and which changes are within their errors",
        "  youbot compare found found_2\n  youbot compare found found_2 --out compared       compared/report.html\n",
    )
    parser.add_argument(
        "before", type=path_of, metavar="BEFORE", help="folder of the earlier result, or its result.json"
    )
    parser.add_argument("after", type=path_of, metavar="AFTER", help="folder of the later result, or its result.json")
    parser.add_argument(
        "--out",
        type=path_of,
        default=Path("compared"),
        metavar="DIR",
        help="folder for report.html (default: compared)",
    )
    parser.add_argument("--verbose", action="store_true", help="also print the values within their errors, by name")


def _add_replay(verbs) -> None:
    parser = add_verb(
        verbs,
        "replay",
        "estimate the state of the arm from a recording: joint states, friction, motor temperatures",
        "  youbot replay drive_1 --out replayed            then replayed/report.html\n"
        "  youbot replay drive_1 --result-file found/result.yaml --json\n"
        "  youbot replay log.csv --columns time:ms,position.arm_joint_1:deg,effort.arm_joint_1,... --out replayed\n",
    )
    parser.add_argument("log", type=path_of, metavar="LOG", help="bag (mcap, sqlite3, ROS 1) or text log")
    parser.add_argument("--out", type=path_of, metavar="DIR", help="folder for report.html and a bag of the estimates")
    add_columns(parser)
    add_robot_files(parser, " and of arm_ekf")
    add_repeated(parser, "--result-file", "FILE", f"result.yaml of youbot identify; {_SEVERAL}")
    roles = "arm_states, motor_voltage, motor_temperature"
    add_repeated(parser, "--topic", "ROLE=NAME", f"topic to use for a role: {roles}")
    wrong = "joint whose efforts have the wrong sign in the log; give the option once for each joint"
    add_repeated(parser, "--invert-effort", "JOINT", wrong)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of a table")


def _add_record(verbs) -> None:
    parser = add_verb(
        verbs,
        "record",
        "record topics into an mcap bag, readable even if the recorder is killed; ends if no topic appears",
        "  youbot record --out drive_1\n  youbot record --out drive_2 /wheel_commands /driver/joint_states\n",
    )
    parser.add_argument("--out", required=True, metavar="BAG", help="folder of the bag, new or empty")
    every = "topics to record (default: all; with --namespace, all topics of this robot)"
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=every)
    add_number(
        parser, "--wait", 30.0, "how long to wait for a first topic before giving up [s]; a warning comes after 5 s"
    )
    add_namespace(parser)


def _add_play(verbs) -> None:
    parser = add_verb(
        verbs,
        "play",
        "drive a motion program on the running robot",
        "  youbot play combined\n  youbot play my_program.txt --dt 0.02 --time-scale 1.5\n"
        "  youbot play excitation --duration 60 --room 1.0      the recommended motion to identify the base\n"
        "  youbot play excitation --until 'delay 2 %, radius 0.1 %' --out drive_1\n"
        "  youbot play arm_excitation --duration 60             the same for the arm, as a joint trajectory\n"
        "  youbot play arm_excitation --write goal.yaml         as a goal that another program sends to the driver\n",
    )
    parser.add_argument(
        "program",
        metavar="FILE",
        help="file of lines Vx Vy Omega [m/s, m/s, rad/s, body frame], or one of translation, rotation, combined, "
        "excitation, arm_excitation",
    )
    add_number(parser, "--dt", 0.02, "time for which each line is commanded [s]")
    add_number(parser, "--time-scale", 1.0, "factor by which to slow down the path")
    parser.add_argument(
        "--duration",
        type=float,
        help="duration of an excitation [s], 20 to 600 (default: 60; with --until the longest, default: 600)",
    )
    parser.add_argument(
        "--room", type=float, help="largest distance of an excitation of the base from its start [m] (default: 1)"
    )
    until = (
        "drive the excitation of the base until 95 %% intervals are within these shares of the values; NAME is delay, "
        "radius, lever, track or lateral; the drive is recorded in --out; exit code 3 if that cannot be reached"
    )
    parser.add_argument("--until", metavar="'NAME NUMBER %, ...'", help=until)
    poses = "topic with the pose of the base, for --until with radius, lever, track or lateral (default: found)"
    parser.add_argument("--pose-topic", default="", metavar="TOPIC", help=poses)
    parser.add_argument("--out", type=path_of, metavar="BAG", help="folder of the recording of --until, new or empty")
    parser.add_argument(
        "--write",
        type=path_of,
        metavar="FILE",
        help="write an excitation to a file instead of playing it: a program, or a goal of FollowJointTrajectory",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file of --write")
    add_robot_files(parser, " (limits)")
    add_namespace(parser)


def _add_bringup(verbs) -> None:
    parser = add_verb(
        verbs,
        "bringup",
        "start the nodes of a robot; Ctrl-C stops them all",
        "  youbot bringup --robot mock\n  youbot bringup --robot mujoco --viewer\n"
        "  youbot bringup --robot real --result-file found/result.yaml\n",
    )
    for argument in ARGUMENTS:
        if argument.name == "result_file":
            add_repeated(parser, "--result-file", "FILE", f"{argument.description} {_SEVERAL}")
            continue
        truth = argument.default in TRUTH_VALUES
        parser.add_argument(
            f"--{argument.name.replace('_', '-')}",
            default=argument.default,
            choices=argument.choices or (TRUTH_VALUES if truth else None),
            nargs="?" if truth else None,
            const="true" if truth else None,
            help=f"{argument.description.replace('%', '%%')} (default: {argument.default or 'none'})",
        )


def _add_watch(verbs) -> None:
    parser = add_verb(
        verbs,
        "watch",
        "show the robot live in a browser: pose, path, tracking error, delay, motor temperatures, check of the driver",
        "  youbot watch                          then open http://127.0.0.1:8642; Ctrl-C ends\n"
        "  youbot watch --namespace robot_1 --port 8643\n",
    )
    add_number(parser, "--port", 8642, "port on 127.0.0.1")
    add_namespace(parser)


def _add_check_driver(verbs) -> None:
    parser = add_verb(
        verbs,
        "check-driver",
        "listen to the robot's driver, report what is wrong, and say what to do",
        "  youbot check-driver\n  youbot check-driver --duration 30 --json\n\n"
        "exit codes: 0 nothing wrong, 1 an error, 3 something could not be checked, such as the signs of wheels at "
        "rest\n",
    )
    add_number(parser, "--duration", 10.0, "how long to listen [s]")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON instead of a table")
    add_robot_files(parser)
    add_namespace(parser)


def _add_calibrate(verbs) -> None:
    parser = add_verb(
        verbs,
        "calibrate",
        "calibrate the wheels with a tape measure: drive forward, sideways and around on the running robot, ask for "
        "the measured distances and angle, and give wheel radius, lateral factor and lever",
        "  youbot calibrate --tape --write geometry.yaml\n"
        "  youbot calibrate --tape --bag legs --forward 1.512 --sideways 1.438 --turn 1074\n",
    )
    parser.add_argument(
        "--tape", action="store_true", required=True, help="measure with a tape (required: it is the only method)"
    )
    add_number(parser, "--distance", 1.5, "length of the straight legs [m]")
    add_number(parser, "--turns", 3, "full turns of the last leg")
    parser.add_argument("--bag", type=path_of, metavar="BAG", help="recording of the legs instead of a drive")
    for leg in ("forward", "sideways"):
        parser.add_argument(f"--{leg}", metavar="LENGTH", help=f"distance of the leg {leg} [m], or such as 59.53 in")
    parser.add_argument("--turn", metavar="ANGLE", help="turn to the left: degrees, or turns and degrees, such as 3 -6")
    add_number(parser, "--distance-error", 0.002, "standard error of a distance [m]")
    add_number(parser, "--angle-error", 1.0, "standard error of a turn [degree]")
    parser.add_argument("--write", type=path_of, metavar="FILE", help="write what is identified to a parameter file")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file of --write")
    add_robot_files(parser)
    add_namespace(parser)


def _add_twin(verbs, name: str, text: str) -> argparse.ArgumentParser:
    out = f"{name}_output"
    parser = add_verb(verbs, name, text, f"  youbot {name}\n  youbot {name} --out {out} --seed 7\n")
    parser.add_argument(
        "--out",
        type=path_of,
        default=Path(out),
        metavar="DIR",
        help=f"folder for the results; an earlier demo in it is replaced (default: {out})",
    )
    add_number(parser, "--seed", 1, "random seed that selects the twin and its hidden values")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its exit code."""
    given = _parse(sys.argv[1:] if arguments is None else arguments)
    code = 1
    try:
        code = run(_run, given)
    except YoubotDynamicsError as problem:
        print(f"error: {problem}", file=sys.stderr)
    except ModuleNotFoundError as problem:
        package = (problem.name or "").split(".")[0]
        if package in ("", "youbot_dynamics"):
            raise
        print(f"error: {missing_package(package, f'youbot {given.verb}')}", file=sys.stderr)
    except BrokenPipeError:  # the reader of our output closed the pipe, as `head` does
        sys.stderr.close()
    except OSError as problem:
        print(f"error: {problem.filename or 'output'}: {problem.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    whole = parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions; argcomplete answers and exits
        with suppress(ImportError):
            from argcomplete import autocomplete

            autocomplete(whole)
    check_spelling(whole, words)
    return whole.parse_args(words)


def _run(given: argparse.Namespace) -> int:
    """Run the command with as few imports as it needs."""
    if given.verb in ("identify", "replay"):
        from youbot_dynamics.commands._terminal import announce
        from youbot_dynamics.warm_up import first_use

        with first_use(announce):
            if given.verb == "identify":
                from youbot_dynamics.commands.identify import identify_command as command
            else:
                from youbot_dynamics.commands._replay import replay_command as command
            imported()
            return command(given)
    if given.verb == "new-robot":
        from youbot_dynamics.commands._new_robot import new_robot_command

        imported()
        return new_robot_command(given)
    if given.verb == "compare":
        from youbot_dynamics.commands.identify import compare_command

        imported()
        return compare_command(given.before, given.after, given.out, given.verbose)
    if given.verb == "warm-up":
        from youbot_dynamics.commands._warm_up import warm_up

        imported()
        return warm_up()
    return _run_robot(given) if given.verb in ("bringup", "demo", "try") else _run_nodes(given)


def _run_robot(given: argparse.Namespace) -> int:
    """Run a command that starts a robot with all its nodes."""
    need_ros()
    if given.verb == "bringup":
        from youbot_dynamics.commands.bringup import bringup

        return bringup(BringupOptions.read({item.name: getattr(given, item.name) for item in ARGUMENTS}))
    from youbot_dynamics.commands._demo import demo, try_twin

    imported()
    if given.verb == "demo":
        return demo(given.out, given.seed, robot_path(given.robot_file))
    return try_twin(given.out, given.seed)


def _run_nodes(given: argparse.Namespace) -> int:
    """Run a command that is a node beside those of a robot, or writes what one would play."""
    if given.verb == "play":
        from youbot_dynamics.commands._excitation import check_numbers, write_excitation

        given.duration, given.room = check_numbers(given)
        if given.write is not None:
            imported()
            return write_excitation(given)
        if given.until is not None:
            from youbot_dynamics.commands._until import until_command

            imported()
            return until_command(given)
    ros = node_words(given)
    if given.verb != "calibrate" or given.bag is None:
        need_ros()
    if given.verb == "calibrate":
        from youbot_dynamics.commands._calibrate import calibrate_command

        imported()
        return calibrate_command(given, ros)
    if given.verb == "check-driver":
        from youbot_dynamics.commands._check_driver import check_driver_command

        return check_driver_command(given.duration, given.json, ros)
    if given.verb == "watch":
        from youbot_dynamics.commands._watch import watch_command

        return watch_command(given.port, ros)
    if given.verb == "record":
        if not given.wait > 0.0:
            raise ParameterError("--wait", got=f"{given.wait:g} s", expected="more than 0 s")
        from youbot_dynamics.nodes.recorder import main as record

        record([*given.topics, "--out", given.out, "--wait", str(given.wait), *ros])
    elif given.program == ARM_EXCITATION:
        from youbot_dynamics.nodes.arm_player import main as move

        move(["--duration", str(given.duration), *ros])
    else:
        from youbot_dynamics.nodes.program_player import main as play

        names = ("dt", "time_scale", "duration", "room")
        play([given.program, *option_words(**{name: getattr(given, name) for name in names}), *ros])
    return 0


if __name__ == "__main__":
    main()
