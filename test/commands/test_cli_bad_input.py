"""Bad input: one line that names the thing and what to do, exit code 1, nothing half-written."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code
from ros_processes import environment

from youbot_dynamics.commands.main import parser
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import joint_state_cdr, odometry_cdr, twist_cdr

WHEELS = ["wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br"]
JOINT_STATE = "sensor_msgs/msg/JointState"
SECOND = 1_000_000_000
ORIGIN = 1_700_000_000 * SECOND


def youbot(*words: object, code: int = 1) -> subprocess.CompletedProcess:
    """Run a verb; in this process if it starts no node, which is as it would be in its own and saves a start each."""
    if words[0] in ("identify", "bringup", "demo") or (words[0] == "play" and words[1] != "combined"):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            ended = exit_code(*words)
        done = subprocess.CompletedProcess(words, ended, out.getvalue(), err.getvalue())
        assert done.returncode == code, done.stdout + done.stderr
        return done
    return in_its_own_process(*words, code=code)


def in_its_own_process(*words: object, code: int) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "-m", "youbot_dynamics.commands.main", *map(str, words)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def refusal(*words: object) -> str:
    """The one line of an error."""
    lines = youbot(*words).stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    return lines[0]


def write_bag(folder: Path, duration: float = 20.0, delay: float = 0.15, **other) -> Path:
    """A bag whose wheels repeat their commands `delay` later; other topics by name -> type, without messages."""
    period = 0.02
    time = np.arange(0.0, duration, period)
    speed = np.sin(1.3 * time) + 0.5 * np.sin(0.7 * time)
    angle = np.concatenate([[0.0], np.cumsum(speed[:-1]) * period])
    pattern = np.array([1.0, 1.1, 0.9, 1.3])
    with BagWriter(folder, {"robot_id": other.pop("robot_id", "youbot")}) as bag:
        bag.add_topic("/wheel_commands", JOINT_STATE)
        bag.add_topic("/driver/joint_states", JOINT_STATE)
        for name, kind in other.items():
            bag.add_topic(f"/{name}", kind)
        for k, moment in enumerate(time):
            sent = ORIGIN + round(moment * SECOND)
            bag.write("/wheel_commands", joint_state_cdr(sent, WHEELS, velocity=pattern * speed[k]), sent)
            seen = sent + round(delay * SECOND)
            bag.write("/driver/joint_states", joint_state_cdr(seen, WHEELS, position=pattern * angle[k]), seen)
    return folder


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    return write_bag(tmp_path_factory.mktemp("bags") / "good")


def test_good_bag_gives_its_delay(bag, tmp_path):
    done = in_its_own_process("identify", bag, "--out", tmp_path / "found", "--json", "--only", "delay", code=0)
    assert '"verdict": "identified"' in done.stdout
    text = (tmp_path / "found" / "result.yaml").read_text()
    values = [float(line.split(":")[1]) for line in text.splitlines() if "effective_" in line]
    assert values == pytest.approx([0.15] * 3, abs=1e-4)


def test_missing_recording(tmp_path):
    line = refusal("identify", tmp_path / "absent", "--out", tmp_path / "found")
    assert "absent" in line and "check the path" in line
    assert not (tmp_path / "found").exists()


def test_not_a_recording(tmp_path):
    (tmp_path / "notes.txt").write_text("hello\n")
    line = refusal("identify", tmp_path / "notes.txt", "--out", tmp_path / "found")
    assert "notes.txt" in line
    assert not (tmp_path / "found").exists()


def test_an_empty_path_is_wrong_usage_and_not_the_present_folder(tmp_path):
    for words in (("", "--out", tmp_path / "found"), (tmp_path, "--out", "")):
        assert "an empty path; is a shell variable not set?" in youbot("identify", *words, code=2).stderr


def test_a_misspelt_stage_is_answered_with_the_nearest_one(bag, tmp_path):
    assert "did you mean delay?" in refusal("identify", bag, "--out", tmp_path / "found", "--only", "Delays")


def test_bag_cut_before_its_first_chunk(bag, tmp_path):
    short = tmp_path / "short.mcap"
    short.write_bytes(next(bag.glob("*.mcap")).read_bytes()[:600])
    line = refusal("identify", short, "--out", tmp_path / "found")
    assert "short.mcap" in line and "0 messages" in line
    assert not (tmp_path / "found").exists()


def test_bag_cut_in_the_middle_is_used_and_the_loss_is_told(bag, tmp_path):
    data = next(bag.glob("*.mcap")).read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(data[: int(0.8 * len(data))])
    done = youbot("identify", cut, "--out", tmp_path / "found", "--only", "delay", code=0)
    assert "no footer" in " ".join(done.stdout.split())


def test_no_messages_on_a_needed_topic(tmp_path):
    with BagWriter(tmp_path / "bag", {}) as writer:
        writer.add_topic("/wheel_commands", JOINT_STATE)
        writer.add_topic("/driver/joint_states", JOINT_STATE)
        writer.write("/wheel_commands", joint_state_cdr(ORIGIN, WHEELS, velocity=[0.0] * 4), ORIGIN)
    line = refusal("identify", tmp_path / "bag", "--out", tmp_path / "found")
    assert "wheel_joint_fl" in line and "driver/joint_states" in line


def test_wrong_type_on_a_named_topic(tmp_path):
    with BagWriter(tmp_path / "bag", {}) as writer:
        writer.add_topic("/states", "geometry_msgs/msg/Twist")
        writer.write("/states", twist_cdr([0.1, 0.0, 0.0]), ORIGIN)
    line = refusal("identify", tmp_path / "bag", "--out", tmp_path / "f", "--topic", "wheel_states=/states")
    assert "/states" in line and "JointState" in line and "Twist" in line


def test_no_command_in_the_bag(tmp_path):
    with BagWriter(tmp_path / "bag", {}) as writer:
        writer.add_topic("/driver/joint_states", JOINT_STATE)
        writer.write("/driver/joint_states", joint_state_cdr(ORIGIN, WHEELS, position=[0.0] * 4), ORIGIN)
    line = refusal("identify", tmp_path / "bag", "--out", tmp_path / "found")
    assert "wheel_commands" in line and "cmd_vel" in line


def test_a_robot_at_rest_is_told_in_a_few_words_that_nothing_was_driven(tmp_path):
    with BagWriter(tmp_path / "rest", {}) as writer:
        for k in range(24):
            writer.add_topic(f"/arm_1/topic_{k}", JOINT_STATE)
            writer.write(f"/arm_1/topic_{k}", joint_state_cdr(ORIGIN, ["finger"], position=[0.0]), ORIGIN)
        writer.add_topic("/driver/joint_states", JOINT_STATE)
        for k in range(1000):
            sent = ORIGIN + k * SECOND // 50
            writer.write("/driver/joint_states", joint_state_cdr(sent, WHEELS, position=[0.001] * 4), sent)
    line = refusal("identify", tmp_path / "rest", "--out", tmp_path / "found")
    expected = "got no message on wheel_commands, driver/cmd_vel or cmd_vel; record while `youbot play excitation` runs"
    assert f"nothing was driven in {tmp_path / 'rest'}: {expected}" in line and len(line) < 300 + len(str(tmp_path))


def test_few_topics_are_listed_for_what_is_missing(tmp_path):
    with BagWriter(tmp_path / "bag", {}) as writer:
        for k in range(24):
            writer.add_topic(f"/arm_1/topic_{k}", JOINT_STATE)
            writer.write(f"/arm_1/topic_{k}", joint_state_cdr(ORIGIN, ["arm_joint_1"], position=[0.0]), ORIGIN)
    line = refusal("identify", tmp_path / "bag", "--out", tmp_path / "found", "--only", "delay")
    assert line.count("/arm_1/topic_") == 8 and " with arm_joint_1; and 16 more)" in line
    line = refusal("identify", tmp_path / "bag", "--out", tmp_path / "found", "--only", "body")
    assert line.count("/arm_1/topic_") == 8 and " and 16 more)" in line


def test_two_robots_in_one_bag(tmp_path):
    with BagWriter(tmp_path / "bag", {}) as writer:
        for name in ("/a", "/b"):
            writer.add_topic(f"{name}/driver/joint_states", JOINT_STATE)
            message = joint_state_cdr(ORIGIN, WHEELS, position=[0.0] * 4)
            writer.write(f"{name}/driver/joint_states", message, ORIGIN)
    line = refusal("identify", tmp_path / "bag", "--out", tmp_path / "found")
    assert "--topic wheel_states=/a/driver/joint_states" in line


def test_recording_of_another_robot(tmp_path):
    bag = write_bag(tmp_path / "bag", robot_id="other")
    line = refusal("identify", bag, "--out", tmp_path / "found")
    assert "'other'" in line and "'youbot'" in line
    mine = write_bag(tmp_path / "mine")
    line = refusal("identify", mine, "--out", tmp_path / "found", "--robot-file", "rosbot_xl")
    assert "got robot 'youbot'; expected robot 'rosbot_xl'; name its robot with --robot-file (without it:" in line


def test_too_short_a_recording(tmp_path):
    line = refusal("identify", write_bag(tmp_path / "bag", duration=3.0), "--out", tmp_path / "found")
    assert "longer recording" in line


def test_readings_of_another_clock_than_an_unstamped_command_are_taken_when_they_came(tmp_path):
    with BagWriter(tmp_path / "bag", {}) as writer:
        writer.add_topic("/driver/joint_states", JOINT_STATE)
        writer.add_topic("/driver/cmd_vel", "geometry_msgs/msg/Twist")
        for k in range(1000):
            moment = ORIGIN + k * SECOND // 50
            speed, angle = 0.1 * np.sin(0.02 * k + 1e-4 * k**2), 0.2 * np.cos(0.02 * (k - 8) + 1e-4 * (k - 8) ** 2)
            states = joint_state_cdr(moment - 5 * SECOND, WHEELS, position=[angle] * 4)
            writer.write("/driver/joint_states", states, moment)
            writer.write("/driver/cmd_vel", twist_cdr([speed, 0.0, 0.0]), moment)
    done = youbot("identify", tmp_path / "bag", "--out", tmp_path / "found", "--only", "delay", code=3)
    assert "from different clocks: they differ by 5 s" in " ".join((done.stdout + done.stderr).split())
    assert "receive times of /driver/joint_states" in (tmp_path / "found" / "result.json").read_text()


def test_bag_begun_in_mid_drive_still_has_its_path(tmp_path):
    with BagWriter(write_bag(tmp_path / "bag").parent / "late", {}) as writer:
        for name in ("/wheel_commands", "/driver/joint_states"):
            writer.add_topic(name, JOINT_STATE)
        writer.add_topic("/odom", "nav_msgs/msg/Odometry")
        for k in range(1000):
            moment = ORIGIN + k * SECOND // 50
            speed = np.sin(0.02 * k) * np.ones(4)
            writer.write("/wheel_commands", joint_state_cdr(moment, WHEELS, velocity=speed), moment)
            writer.write("/driver/joint_states", joint_state_cdr(moment, WHEELS, position=speed), moment)
            if k > 100:
                pose = odometry_cdr(moment, "odom", "base_footprint", [0.0] * 3, [0.0] * 3)
                writer.write("/odom", pose, moment)
    done = youbot("identify", tmp_path / "late", "--out", tmp_path / "found", code=3)
    assert "no path" not in done.stderr


def test_output_that_cannot_be_written(bag, tmp_path):
    (tmp_path / "file").write_text("")
    assert "--out" in refusal("identify", bag, "--out", tmp_path / "file")


def test_an_output_folder_behind_a_link_to_nothing_is_refused_before_the_work(bag, tmp_path):
    (tmp_path / "found").symlink_to("nowhere")
    for out in ("found", "found/below"):
        assert "a link to nothing" in refusal("identify", bag, "--out", tmp_path / out)


def test_unknown_stage_topic_role_and_column(bag, tmp_path):
    out = ("--out", tmp_path / "found")
    assert "'heat'" in refusal("identify", bag, *out, "--only", "heat")
    assert "wheel_commands" in refusal("identify", bag, *out, "--topic", "wheels=/x")
    (tmp_path / "log.csv").write_text("0;1;2\n")
    assert "speed" in refusal("identify", tmp_path / "log.csv", *out, "--columns", "time,speed.x")


def test_parameter_file_with_a_typo(bag, tmp_path):
    wrong = tmp_path / "robot.yaml"
    wrong.write_text(
        "/**:\n  ros__parameters:\n    robot:\n      base:\n        geometry:\n          wheel_radus: 0.05\n"
    )
    line = refusal("identify", bag, "--out", tmp_path / "found", "--params-file", wrong)
    assert "wheel_radus" in line and "did you mean robot.base.geometry.wheel_radius?" in line
    assert "wheel_radius?" in refusal("bringup", "--params-file", wrong)


def test_bringup_refuses_a_missing_result_and_one_of_another_robot(tmp_path):
    assert "absent.yaml" in refusal("bringup", "--result-file", tmp_path / "absent.yaml")
    other = tmp_path / "result.yaml"
    other.write_text("/**:\n  ros__parameters:\n    robot:\n      robot_id: other\n")
    line = refusal("bringup", "--result-file", other)
    assert "'other'" in line and "'youbot'" in line
    mine = write_bag(tmp_path / "mine")
    line = refusal("identify", mine, "--out", tmp_path / "found", "--robot-file", "rosbot_xl")
    assert "got robot 'youbot'; expected robot 'rosbot_xl'; name its robot with --robot-file (without it:" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ("absent.txt",)),
        ("", ("no lines",)),
        ("# only words\n", ("no lines",)),
        ("0.1 0.0\n", ("line 1", "three numbers")),
        ("0.1 0 0\n0.1 nan 0\n", ("line 2",)),
        ("0.1 zero 0\n", ("line 1", "zero")),
        ("5.0 0 0\n", ("wheel speed", "--time-scale")),
        ("0.0 0 0\n0.5 0 0\n", ("acceleration", "--time-scale")),
    ],
)
def test_program_that_cannot_be_driven(tmp_path, content, words):
    pytest.importorskip("rclpy")
    program = tmp_path / ("absent.txt" if content is None else "program.txt")
    if content is not None:
        program.write_text(content)
    line = refusal("play", program)
    assert all(word in line for word in (program.name.removesuffix(".txt"), *words)), line


@pytest.mark.parametrize(
    "words", [("combined", "--duration", "30"), ("combined", "--room", "1"), ("arm_excitation", "--room", "2")]
)
def test_a_program_takes_no_number_that_it_would_ignore(words):
    line = refusal("play", *words)
    assert f"{words[1]} with {words[0]}: got {words[2]}; expected it for excitation" in line
    assert "leave it out" in line and ("--time-scale slows" in line) == (words[1] == "--duration")


def test_play_without_a_robot_says_how_to_start_one():
    pytest.importorskip("rclpy")
    assert "youbot bringup" in refusal("play", "combined")


def test_record_into_a_folder_in_use(bag):
    pytest.importorskip("rclpy")
    before = sorted(path.name for path in bag.iterdir())
    assert "choose another --out" in refusal("record", "--out", bag)
    assert sorted(path.name for path in bag.iterdir()) == before


def test_demo_leaves_a_folder_with_other_things_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "other files" in refusal("demo", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_unknown_verb_gets_the_nearest_one_and_the_list():
    line = youbot("--version", "identfy", code=2).stderr.splitlines()[-1]
    assert "no command identfy: did you mean identify? the commands are " in line
    assert "record" in line and "warm-up" in line
    assert "did you mean" not in youbot("quux", code=2).stderr


def test_an_unknown_option_gets_the_nearest_one():
    line = youbot("identify", "log.csv", "--colums", "time,command.x", code=2).stderr.splitlines()[-1]
    assert "no option --colums: did you mean --columns?" in line
    assert "did you mean" not in youbot("identify", "log.csv", "--quux", code=2).stderr


def test_an_unknown_program_gets_the_nearest_one_and_the_list():
    pytest.importorskip("rclpy")
    line = refusal("play", "combind")
    assert "did you mean combined?" in line
    assert "translation, rotation, combined, excitation, arm_excitation" in line


def test_a_result_is_replaced_only_where_that_is_asked_for(bag, tmp_path):
    words = ("identify", bag, "--out", tmp_path / "found", "--only", "delay")
    youbot(*words, code=0)
    kept = tmp_path / "found" / "result.json"
    earlier = kept.stat().st_mtime_ns
    line = refusal(*words)
    assert "earlier identification" in line and "--overwrite" in line
    assert kept.stat().st_mtime_ns == earlier
    youbot(*words, "--overwrite", code=0)
    assert kept.stat().st_mtime_ns != earlier
    kept.write_text("mine")
    assert "of something else" in refusal(*words, "--overwrite")
    assert kept.read_text() == "mine"


def test_a_recording_of_nothing_ends_and_says_why(tmp_path):
    pytest.importorskip("rclpy")
    for topics in ((), ("/odom",)):
        line = refusal("record", "--out", tmp_path / "drive", *topics, "--wait", "2")
        assert "nothing to record" in line and "youbot bringup" in line
        assert f"ROS_DOMAIN_ID {os.environ['ROS_DOMAIN_ID']}" in line
        assert not (tmp_path / "drive").exists()
    assert "/odom" in line
    for wait in ("0", "-1", "nan"):
        assert "--wait" in refusal("record", "--out", tmp_path / "drive", "--wait", wait)


# What is being imported when Ctrl-C comes, from the first line of ours to the end; exit code and output.
PROGRAM = ("youbot_dynamics.commands.main", "identify", "x", "--out", "y")
MOMENTS = {
    "the package": (PROGRAM, "youbot_dynamics.interrupts", 130, ["interrupted"]),
    "the errors": (PROGRAM, "youbot_dynamics.errors", 130, ["interrupted"]),
    "the commands": (PROGRAM, "youbot_dynamics.commands", 130, ["interrupted"]),
    "numpy": (PROGRAM, "numpy._core._multiarray_umath", 130, ["interrupted"]),
    "a command": (PROGRAM, "youbot_dynamics.identification.signals", 130, ["interrupted"]),
    "a node": (("youbot_dynamics.nodes.base_controller",), "youbot_dynamics.errors", 0, []),
}


@pytest.mark.parametrize(("words", "moment", "code", "lines"), MOMENTS.values(), ids=MOMENTS.keys())
def test_ctrl_c_while_a_program_is_imported_is_no_traceback(words, moment, code, lines):
    child = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", *words],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not child.stderr.readline().rstrip().endswith(f" {moment}"):
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    said = [line for line in child.communicate(timeout=60)[1].splitlines() if not line.startswith("import time:")]
    assert (child.returncode, said) == (code, lines)


@pytest.mark.parametrize("name", ["youbot", "identify_robot", "stop_base"])
@pytest.mark.parametrize(("place", "ours"), [("lib/youbot_dynamics", True), ("somewhere", False)])
def test_a_program_of_somebody_else_with_the_name_of_one_of_ours_keeps_ctrl_c(name, place, ours, tmp_path):
    program = tmp_path / place / name
    program.parent.mkdir(parents=True)
    program.write_text(
        "import signal\nimport youbot_dynamics\nprint(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (f"{not ours}\n", "")


INTERRUPTED = {
    "an import that raises another error": "raise ImportError('as numpy does')",
    "a package that seems to be missing": "raise ModuleNotFoundError(name='rosbags')",
    "nothing else": "raise",
}


@pytest.mark.parametrize("then", INTERRUPTED.values(), ids=INTERRUPTED.keys())
@pytest.mark.parametrize("where", ["command", "callback"])
def test_ctrl_c_is_one_line_whatever_becomes_of_it(then, where):
    script = f"""
import signal, sys
sys.argv[0] = "/somewhere/lib/youbot_dynamics/youbot"
signal.signal(signal.SIGINT, signal.default_int_handler)
from youbot_dynamics.commands import main
class Callback:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def command(given):
    main.imported()
    if {where == "callback"}:
        Callback()
        return 0
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        {then}
main._run = command
main.main(["compare", "a", "b"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_the_shell_completes_verbs_and_options(tmp_path):
    pytest.importorskip("argcomplete")

    def completed(line: str) -> set[str]:
        asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": " "}
        asked["_ARGCOMPLETE_STDOUT_FILENAME"] = str(tmp_path / "answer")
        subprocess.run(
            [sys.executable, "-m", "youbot_dynamics.commands.main"], env=environment() | asked, check=True, timeout=60
        )
        return set((tmp_path / "answer").read_text().split())

    assert completed("youbot re") == {"replay", "record"}
    assert "--pose-topic" in completed("youbot identify --p")


@pytest.mark.parametrize("plugin", ["SQLITE3", "MCAP"])
def test_bags_of_rosbag2s_own_storages_give_the_same_delay(bag, tmp_path, plugin):
    from rosbags.rosbag2 import Reader, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    copy = tmp_path / "copy"
    with Reader(bag) as reader, Writer(copy, version=9, storage_plugin=StoragePlugin[plugin]) as writer:
        connections = {c.id: writer.add_connection(c.topic, c.msgtype, typestore=store) for c in reader.connections}
        for connection, time, data in reader.messages():
            writer.write(connections[connection.id], time, data)
    youbot("identify", copy, "--out", tmp_path / "found", "--only", "delay", code=0)
    text = (tmp_path / "found" / "result.yaml").read_text()
    values = [float(line.split(":")[1]) for line in text.splitlines() if "effective_" in line]
    assert values == pytest.approx([0.15] * 3, abs=1e-4)


def test_bags_are_combined_and_a_folder_of_bags_is_taken_apart(tmp_path):
    (tmp_path / "day").mkdir()
    write_bag(tmp_path / "day" / "first", delay=0.15)
    write_bag(tmp_path / "day" / "second", delay=0.15)
    done = youbot("identify", tmp_path / "day", "--out", tmp_path / "found", "--json", "--only", "delay", code=0)
    assert done.stdout.count('"sha256"') == 2


# Each command that takes a robot, parameter or result file, with words that would otherwise start something.
WITH_FILES = {
    "identify": ("absent", "--out", "found"),
    "replay": ("absent",),
    "play": ("combined",),
    "bringup": (),
    "check-driver": ("--duration", "2"),
    "calibrate": ("--tape",),
    "demo": ("--out", "demo"),
}
FILE_OPTIONS = ("--robot-file", "--params-file", "--result-file")
WRONG_FILES = {
    "a text": "Read me first.\n\nA robot is described in another file.\n",
    "a text of one word": "readme",
    "another mapping": "name: rosbot\nwheels: [1, 2]\n",
    "values of no robot": "/**:\n  ros__parameters:\n    robot: {base: {geometry: {wheel_radus: 0.05}}}\n",
}


def test_every_command_with_a_robot_parameter_or_result_file_is_in_the_table():
    verbs = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
    taking = {verb for verb, one in verbs.items() if {*FILE_OPTIONS} & {*one._option_string_actions}}
    assert taking == WITH_FILES.keys()


@pytest.mark.parametrize("verb", WITH_FILES)
@pytest.mark.parametrize("content", WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_a_wrong_file_is_refused_before_anything_starts(verb, content, tmp_path, monkeypatch):
    pytest.importorskip("rclpy")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "readme.txt").write_text(content)
    verbs = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
    for option in {*FILE_OPTIONS} & {*verbs[verb]._option_string_actions}:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = exit_code(verb, *WITH_FILES[verb], option, "readme.txt")
        lines = err.getvalue().strip().splitlines()
        assert (code, len(lines), out.getvalue()) == (1, 1, ""), (option, err.getvalue(), out.getvalue())
        assert lines[0].startswith("error: ") and "readme.txt" in lines[0], (option, lines)
        assert [path.name for path in tmp_path.iterdir()] == ["readme.txt"], option


def test_an_empty_robot_file_is_no_youbot(tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    assert exit_code("check-driver", "--duration", "2", "--robot-file", tmp_path / "empty.yaml") == 1


@pytest.mark.parametrize("name", ["result.yaml", "report.html", "exports"])
@pytest.mark.parametrize("link", [False, True], ids=["file", "link"])
@pytest.mark.parametrize("more", [(), ("--overwrite",)], ids=["plain", "overwrite"])
def test_files_that_no_identification_wrote_are_not_replaced(bag, tmp_path, name, link, more):
    out, mine = tmp_path / "found", tmp_path / "mine"
    out.mkdir()
    mine.write_text("years of work")
    if link:
        (out / name).symlink_to(mine)
    else:
        (out / name).write_text("years of work")
    line = refusal("identify", bag, "--out", out, "--only", "delay", *more)
    assert f"{name} in it, of something else" in line
    assert (out / name).read_text() == mine.read_text() == "years of work"
    assert [path.name for path in out.iterdir()] == [name]


def test_a_report_of_another_command_is_not_replaced(bag, tmp_path):
    out = tmp_path / "found"
    youbot("identify", bag, "--out", out, "--only", "delay", code=0)
    before = (out / "report.html").read_bytes()
    assert exit_code("compare", out, out, "--out", out) == 1
    assert exit_code("replay", bag, "--out", out) == 1
    assert (out / "report.html").read_bytes() == before
    assert exit_code("compare", out, out, "--out", tmp_path / "compared") == 0
    assert exit_code("compare", out, out, "--out", tmp_path / "compared") == 0


@pytest.mark.parametrize("words", [("link",), ("link/below",), ("loop",)], ids=lambda words: words[0])
def test_a_recording_behind_a_link_to_nothing_names_the_link(words, tmp_path):
    pytest.importorskip("rclpy")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    line = refusal("record", "--out", tmp_path / words[0], "--wait", "2")
    assert f"a link to nothing, {tmp_path / words[0].split('/')[0]}" in line
