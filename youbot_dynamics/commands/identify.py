"""`youbot identify`, `youbot compare`, and the session that `identify.launch.py` starts beside a bringup."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from youbot_dynamics.bringup_plan import IDENTIFY_ARGUMENTS, new_folder, option_words, positive
from youbot_dynamics.commands._terminal import announce, print_answer, print_rows, robot_words, steps
from youbot_dynamics.errors import ParameterError, RecordingError, TrajectoryError, YoubotDynamicsError
from youbot_dynamics.files import check_folder, lying_in, read_text, write_atomically
from youbot_dynamics.identification.excitation import check_size
from youbot_dynamics.identification.pipeline import compare, fleet_worker, identify
from youbot_dynamics.identification.reading import ROLES, Options, columns_of, named_topics
from youbot_dynamics.identification.result import result_json
from youbot_dynamics.identification.result_file import read_result
from youbot_dynamics.identification.stages import chosen_stages
from youbot_dynamics.nodes.processes import StopFlag, node_command, start, stop
from youbot_dynamics.recording.bounds import LARGEST_METADATA, load_yaml
from youbot_dynamics.report import changes_page, changes_shown, write_outputs
from youbot_dynamics.resources import EXCITATION, robot_path, short_path
from youbot_dynamics.robot import UNNAMED, assumptions, load_robot

_OUTPUTS = ("result.json", "result.yaml", "robot.yaml", "report.html", "exports")


def identify_command(given: argparse.Namespace) -> int:
    """Run the command; return 3 if a value is not identifiable.

    Raises:
        YoubotDynamicsError: a recording, option or folder cannot be used.
    """
    only = chosen_stages("--only", given.only)
    earlier, present = _is_result(given.out / "result.json"), lying_in(given.out, *_OUTPUTS)
    got, remedy = "the result of an earlier identification in it", "name another one, or add --overwrite"
    if not earlier:
        got, remedy = f"{' and '.join(present)} in it, of something else", "name another one, or move these away"
    refusal = RecordingError(f"--out {given.out}", got=got, expected="a folder without one", remedy=remedy)
    check_folder(given.out, bool(present) and not (earlier and given.overwrite), refusal)
    topics, coasted = named_topics(given.topic, ROLES), _spans(given.motors_off)
    options = Options(topics, given.columns, given.pose_topic, coasted, given.rate)
    robot_files = [path for path in (robot_path(given.robot_file), given.params_file) if path is not None]
    robot = load_robot(params_file=given.params_file, robot_file=robot_path(given.robot_file))
    for path in given.bags:
        if (log := columns_of(path, given.columns, given.rate, robot)) is not None and log.told:
            announce(f"note: {log.told}")
    with steps("youbot identify") as step:
        with fleet_worker(given.bags, given.scheduler, step.count, given.trust_scheduler) as worker:
            identification = identify(given.bags, robot, options, step, only=only, worker=worker)
        files = (given.robot_file, given.params_file)
        if assumed := assumptions(*files, most=sys.maxsize):
            identification = dataclasses.replace(identification, notes=(*identification.notes, assumed))
        better = identification.result.applied_to(identification.robot)
        if identification.paths:
            step("simulating the stabilised drives")
        comparisons = [compare(name, [path], better) for name, path in identification.paths.items()]
        step("writing the report")
        names = ", ".join(path.name for path in given.bags)
        title, words = f"Identification of {names}", robot_words(given) if robot.has_base else ""
        write_outputs(given.out, identification, comparisons, title, None, words, robot_files)
    if given.json:
        sys.stdout.write(result_json(identification.result))
    else:
        print_answer(identification.result, short_path(given.out / "result.yaml"), words, given.verbose)
        for note in identification.notes if given.verbose else filter(None, [assumptions(*files)]):
            announce(f"note: {note}")
        robot_yaml = "" if identification.robot.robot_id in UNNAMED else ", robot.yaml"
        more = "" if given.verbose else " (more: --verbose)"
        announce(f"wrote {given.out / 'result.yaml'}{robot_yaml}, result.json and report.html{more}")
    return 0 if identification.result.complete else 3


def _is_result(path: Path) -> bool:
    try:
        read_result(path)
    except YoubotDynamicsError:
        return False
    return True


def compare_command(before: Path, after: Path, out: Path, verbose: bool = False) -> int:
    """Print what changed and write it to `out`/report.html. The results are folders or their result.json.

    Raises:
        YoubotDynamicsError: a result cannot be read, or the page cannot be written.
    """
    old, new = (read_result(place / "result.json" if place.is_dir() else place) for place in (before, after))
    report = lying_in(out, "report.html") and lying_in(out, "result.json", "estimates")
    got, expected = f"{' and '.join(report)} in it, to which its report.html belongs", "a folder of its own"
    refusal = RecordingError(f"--out {out}", got=got, expected=expected, remedy="name another one")
    check_folder(out, bool(report), refusal)
    table = changes_shown(old, new, few=not verbose)
    print_rows(f"from {before} to {after}", table, numbers=0 if verbose else 1)
    for note in table.notes:
        announce(f"note: {note}")
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "report.html", changes_page(old, new, (str(before), str(after))))
    announce(f"wrote {out / 'report.html'}")
    return 0


def _spans(given: Sequence[str]) -> tuple[tuple[float, float], ...]:
    """Parse the time spans of --motors-off BEGIN,END [s]."""
    spans = []
    for text in given:
        begin, _, end = text.partition(",")
        try:
            span = float(begin), float(end)
        except ValueError:
            span = math.nan, math.nan
        if not 0.0 <= span[0] < span[1] < math.inf:
            expected = "BEGIN,END in seconds after the first wheel state, BEGIN before END"
            raise ParameterError(f"--motors-off {text}", expected=expected)
        spans.append(span)
    return tuple(spans)


_TOPICS = ("wheel_commands", "driver/cmd_vel", "driver/joint_states", "odom", "trajectory")
_OF_ARM = ("arm_1/arm_controller/joint_trajectory",)

_NEEDED = ("driver/joint_states", "odom")  # a robot at rest publishes them too
_NUMBERS = ("duration", "room", "wait")
_LOOK = 0.1  # interval between checks of a process or the bag [s]


class _Session:
    """Record the robot while it drives an excitation, then identify it; for `identify.launch.py`.

    Recorder, players and `youbot identify` are separate processes, started one after the other.
    """

    def __init__(self, given: argparse.Namespace, ros_arguments: Sequence[str]) -> None:
        self._given = given
        self._ros = list(ros_arguments)  # passed to recorder and players
        self._flag = StopFlag()
        self._bag: Path = given.out / "recording"

    def run(self) -> int:
        """Record, drive and fit; return the exit code of ``youbot identify``, or 1 if a signal came first.

        Raises:
            YoubotDynamicsError: no robot, an aborted motion, an output folder that is not new, or an invalid option.
        """
        given = self._given
        # Find these errors now instead of after minutes of driving.
        chosen_stages("--only", given.only)
        for name in _NUMBERS:
            positive(f"--{name}", f"{getattr(given, name):g}")
        check_size(given.duration, given.room)
        new_folder("--out", str(given.out))
        moved = (*_TOPICS, *(_OF_ARM if given.arm else ()))
        topics = [self._resolved(name) for name in (*moved, *given.topics, *filter(None, [given.pose_topic]))]
        recorder = start(node_command("recorder", ["--out", str(self._bag), *topics, *self._ros]))
        try:
            self._wait_for_robot(recorder)
            words = [EXCITATION, "--duration", str(given.duration), "--room", str(given.room)]
            prefix = ["-p", f"frame_prefix:={json.dumps(given.frame_prefix)}"] if given.frame_prefix else []
            self._move("program_player", words, prefix)
            if given.arm:
                self._move("arm_player", ["--duration", str(given.duration)])
        finally:
            # Not SIGINT: a process that is still importing would print a traceback.
            stop(recorder, signal.SIGTERM)
        code = 1 if self._flag.set else self._fit()
        return 1 if self._flag.set else code

    def _resolved(self, name: str) -> str:
        """Full name of a topic of this robot."""
        namespace = self._given.namespace.strip("/")
        return name if name.startswith("/") else f"/{namespace}/{name}" if namespace else f"/{name}"

    def _wait_for_robot(self, recorder: subprocess.Popen[bytes]) -> None:
        """Wait until the bag receives the topics that a robot at rest publishes."""
        needed = [self._resolved(name) for name in _NEEDED]
        deadline = time.monotonic() + self._given.wait
        while not self._flag.set and not all(recorded(self._bag).get(topic, 0) > 0 for topic in needed):
            if recorder.poll() is not None:
                raise RecordingError(str(self._bag), got="a recorder that ended", remedy="see its message above")
            if time.monotonic() > deadline:
                raise RecordingError(
                    str(self._bag),
                    got=f"nothing on {' or '.join(t for t in needed if not recorded(self._bag).get(t))}",
                    expected="a running robot",
                    remedy="start it with bringup.launch.py, in this namespace and domain",
                )
            time.sleep(_LOOK)

    def _move(self, player: str, words: list[str], more: Sequence[str] = ()) -> None:
        """Play one motion to its end."""
        if self._flag.set:
            return
        code = self._wait(start(node_command(player, [*words, *self._ros, *more])), signal.SIGTERM)
        if code != 0 and not self._flag.set:
            expected, remedy = "a completed motion", "see its message above"
            raise TrajectoryError(player, got=f"exit code {code}", expected=expected, remedy=remedy)

    def _fit(self) -> int:
        given = self._given
        pose = self._resolved(given.pose_topic) if given.pose_topic else ""
        files = {"params_file": given.params_file, "robot_file": given.robot_file}
        words = [str(self._bag), *option_words(out=given.out, only=given.only, pose_topic=pose, **files)]
        return self._wait(start([sys.executable, "-m", "youbot_dynamics.commands.main", "identify", *words]))

    def _wait(self, process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> int:
        """Return the exit code of a process; a signal to this process stops it with the signal `number`."""
        while process.poll() is None and not self._flag.set:
            time.sleep(_LOOK)
        return stop(process, number)


def recorded(bag: Path) -> dict[str, int]:
    """Return the messages of each topic so far, from the metadata that the recorder keeps up to date.

    Raises:
        RecordingError: our recorder did not write this metadata.
    """
    listing = bag / "metadata.yaml"
    if not listing.exists():
        return {}
    try:
        content = load_yaml(read_text(listing, RecordingError, str(listing), "a bag's metadata", LARGEST_METADATA))
        topics = content["rosbag2_bagfile_information"]["topics_with_message_count"]
        return {str(entry["topic_metadata"]["name"]): int(entry["message_count"]) for entry in topics}
    except (LookupError, TypeError, ValueError, OverflowError) as problem:
        raise RecordingError(str(listing), got=f"{problem!r}", expected="metadata of our recorder") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="identify_robot", description=_Session.__doc__)
    known = {argument.name: argument for argument in IDENTIFY_ARGUMENTS}
    parser.add_argument("--out", required=True, type=Path, help=known["out"].description)
    parser.add_argument("--params-file", type=Path, help=known["params_file"].description)
    parser.add_argument("--robot-file", default="", help=known["robot_file"].description)
    parser.add_argument("--arm", action="store_true", help=known["arm"].description)
    for name in ("namespace", "frame_prefix", "duration", "room", "wait", "only", "pose_topic"):
        word, kind = f"--{name.replace('_', '-')}", float if name in _NUMBERS else str
        parser.add_argument(word, type=kind, default=known[name].default, help=known[name].description)
    parser.add_argument("--topics", nargs="*", default=[], help="topics to record in addition to the usual ones")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one session; exit code as of ``youbot identify``: 0 done, 1 failed, 3 something is not identifiable."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    cut = words.index("--ros-args") if "--ros-args" in words else len(words)
    given = _parser().parse_args(words[:cut])
    try:
        code = _Session(given, words[cut:]).run()
    except YoubotDynamicsError as problem:
        announce(f"error: {problem}")
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
