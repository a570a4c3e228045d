"""Files from outside that were made to hang, fill or break their reader, and places no file may be written over."""

from __future__ import annotations

import bz2
import errno
import io
import json
import os
import resource
import shutil
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from lz4.frame import LZ4FrameCompressor, LZ4FrameDecompressor
from lz4.frame import compress as lz4_compress
from named_findings import named_finding
from report_pages import Report, render
from rich.console import Console

from youbot_dynamics.commands import _terminal as terminal
from youbot_dynamics.commands._terminal import announce, print_answer
from youbot_dynamics.commands.identify import recorded
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.dynamics.tree import read_urdf
from youbot_dynamics.errors import OutputError, ParameterError, RecordingError, YoubotDynamicsError, printable
from youbot_dynamics.files import FACTOR_VARIABLE, write_atomically
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason
from youbot_dynamics.identification.pipeline import Identification
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.result_file import read_result
from youbot_dynamics.parameter_file import read_sections, write_parameters
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.bounds import ALLOWANCE, LARGEST_CHUNK
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import twist_cdr
from youbot_dynamics.recording.text_log import read_text_log
from youbot_dynamics.report import write_outputs
from youbot_dynamics.robot import load_robot

START = 1_700_000_000_000_000_000
TWIST = "geometry_msgs/msg/Twist"

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "bag of mcap": ("x.mcap", open_bag),
    "bag of sqlite3": ("x.db3", open_bag),
    "bag of ROS 1": ("x.bag", open_bag),
    "program": ("x.txt", lambda path: read_program(path, 0.02)),
    "text log": ("x.csv", lambda path: read_text_log(path, "time,command.x")),
    "URDF": ("x.urdf", lambda path: read_urdf(path)),
    "parameter file": ("x.yaml", read_sections),
    "result.json": ("x.json", read_result),
    "metadata.yaml": ("metadata.yaml", lambda path: recorded(path.parent)),
    "folder of a bag": ("metadata.yaml", lambda path: open_bag(path.parent)),
}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> tuple[str, Callable[[Path], object]]:
    return READERS[request.param]


def test_a_pipe_is_refused_at_once(tmp_path: Path, reader) -> None:
    name, read = reader
    os.mkfifo(tmp_path / name)
    with pytest.raises(YoubotDynamicsError, match=f"{name}.*got a pipe; expected .*regular file"):
        read(tmp_path / name)


def test_a_device_is_refused_at_once(tmp_path: Path, reader) -> None:
    name, read = reader
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(YoubotDynamicsError, match=f"{name}.*got a device"):
        read(tmp_path / name)


def test_a_file_beyond_its_limit_is_refused_unread_and_the_limit_can_be_raised(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("/**:\n  ros__parameters:\n    robot_id: 'x'\n" + "# a comment\n" * 100_000)
    with pytest.raises(ParameterError, match=f"got 1200042 bytes; expected at most 1000000 bytes.*{FACTOR_VARIABLE}"):
        read_sections(file)
    assert read_sections(file, limit=2_000_000)["/**"]["robot_id"].value == "x"
    monkeypatch.setenv(FACTOR_VARIABLE, "2.5")
    assert read_sections(file)["/**"]["robot_id"].value == "x"
    monkeypatch.setenv(FACTOR_VARIABLE, "much")
    with pytest.raises(ParameterError, match=f"{FACTOR_VARIABLE}: got 'much'; expected a number above 0"):
        read_sections(file)
    monkeypatch.delenv(FACTOR_VARIABLE)
    for name, read in READERS.values():
        sparse = tmp_path / name
        sparse.unlink(missing_ok=True)
        with sparse.open("wb") as stream:
            stream.truncate(700_000_000)
        with pytest.raises(YoubotDynamicsError):
            read(sparse)
        sparse.unlink()


def test_many_keys_take_time_in_proportion(tmp_path: Path) -> None:
    times = []
    for count in (2_000, 20_000):
        lines = "".join(f"    k{number}: 1.0\n" for number in range(count))
        (tmp_path / "many.yaml").write_text(f"/**:\n  ros__parameters:\n{lines}")
        before = os.times()
        assert len(read_sections(tmp_path / "many.yaml")["/**"]) == count
        times.append(os.times().user - before.user)
    assert times[1] < 40 * times[0]


@pytest.mark.parametrize("depth", [40, 3_000, 200_000])
@pytest.mark.parametrize("brackets", [True, False])
def test_deep_yaml_is_refused_in_one_line(tmp_path: Path, depth: int, brackets: bool) -> None:
    text = "a: " + "[" * depth if brackets else "".join(f"{' ' * d}a:\n" for d in range(min(depth, 1_300)))
    (tmp_path / "deep.yaml").write_text(text)
    with pytest.raises(ParameterError, match="line .*nested more than 32 deep"):
        read_sections(tmp_path / "deep.yaml")
    (tmp_path / "metadata.yaml").write_text(text)
    with pytest.raises(RecordingError):
        recorded(tmp_path)
    (tmp_path / "bag_0.mcap").write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(RecordingError):
        open_bag(tmp_path)


def test_section_names_of_many_wildcards_do_not_multiply(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"{'/**' * 300}/x:\n  ros__parameters:\n    a: 1.0\n")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path\n"
            "from youbot_dynamics.parameter_file import read_parameters\n"
            "print(read_parameters(Path(sys.argv[1]), 'y', 'a/b'))",
            str(tmp_path / "x.yaml"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "{}\n", done.stderr


def test_numbers_of_thousands_of_digits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"/**:\n  ros__parameters:\n    a: {'9' * 5000}\n")
    with pytest.raises(ParameterError, match="an integer of 64 bits"):
        read_sections(tmp_path / "x.yaml")
    (tmp_path / "x.json").write_text(f'{{"robot_id": {"9" * 5000}}}')
    with pytest.raises(YoubotDynamicsError, match="x.json"):
        read_result(tmp_path / "x.json")


# --- bombs


def mcap_record(opcode: int, content: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(content)) + content


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def chunk(packed: bytes, kind: str, size: int) -> bytes:
    return mcap_record(6, struct.pack("<QQQI", 0, 1, size, 0) + text(kind) + struct.pack("<Q", len(packed)) + packed)


def zeros(kind: str, size: int) -> bytes:
    """Compressed zeros, made a megabyte at a time."""
    if kind == "zstd":
        packer = zstandard.ZstdCompressor(level=3).compressobj()
        return b"".join(packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)) + packer.flush()
    packer = LZ4FrameCompressor()
    parts = [packer.begin()] + [packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)]
    return b"".join(parts) + packer.flush()


def with_bomb(folder: Path, bomb: bytes) -> Path:
    """A bag of ours with a chunk more behind its own, its .mcap file; without index, as of a killed recorder."""
    with BagWriter(folder, {}) as writer:
        writer.add_topic("/cmd_vel", TWIST)
        for row in range(100):
            writer.write("/cmd_vel", twist_cdr((row, 0, 0)), START + row * 50_000_000)
    file = folder / f"{folder.name}_0.mcap"
    whole = file.read_bytes()
    end = whole.rindex(mcap_record(15, bytes(4))[:9])  # data end, then the summary
    file.write_bytes(whole[:end] + bomb + mcap_record(15, bytes(4)) + mcap_record(2, bytes(20)) + b"\x89MCAP0\r\n")
    return file


CLAIMS = {"as it is": 400_000_000, "a little": 1_000, "all there is": 1 << 63}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("kind", ["zstd", "lz4"])
def test_a_chunk_that_unfolds_beyond_the_limit_is_left_out_and_the_others_are_read(
    tmp_path: Path, kind: str, claim: str
) -> None:
    bomb = chunk(zeros(kind, 400_000_000), kind, CLAIMS[claim])
    file = with_bomb(tmp_path / "bag", bomb)
    assert file.stat().st_size < 3_000_000
    code = (
        "import resource, sys\n"
        "from youbot_dynamics.recording.bag import open_bag\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "bag = open_bag(sys.argv[1])\n"
        "print(bag.twists('/cmd_vel').received.size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        "print(bag.lost)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    numbers, lost = done.stdout.splitlines()
    count, grown = map(int, numbers.split())
    assert count == 100
    assert grown < 250_000  # kB: libraries, and at most one chunk
    assert "1 of " in lost and "bytes unpacked or more" in lost and FACTOR_VARIABLE in lost


def test_many_chunks_within_the_limit_are_bounded_together(tmp_path: Path) -> None:
    size = LARGEST_CHUNK // 2 // 1_000_000 * 1_000_000
    file = with_bomb(tmp_path / "bag", chunk(zeros("zstd", size), "zstd", size) * 40)
    recording = open_bag(file)
    assert recording.twists("/cmd_vel").received.size == 100
    assert "chunks are damaged and lost" in recording.lost and FACTOR_VARIABLE in recording.lost


@pytest.mark.parametrize("in_chunks", [False, True])
def test_records_without_contents_are_bounded_by_the_size_of_the_file(tmp_path: Path, in_chunks: bool) -> None:
    empty = mcap_record(0x80, b"") * 400_000
    bombs = chunk(zstandard.compress(empty), "zstd", len(empty)) * 20 if in_chunks else empty * 5
    file = with_bomb(tmp_path / "bag", bombs)
    recording = open_bag(file)
    assert recording.twists("/cmd_vel").received.size == 100
    assert "its records: got more than allowed" in recording.lost and FACTOR_VARIABLE in recording.lost


def test_a_sound_bag_of_that_size_is_read_where_the_limits_are_raised(tmp_path: Path, monkeypatch) -> None:
    filler = mcap_record(0x80, bytes(60_000_000))  # a record of a private kind
    packed = zstandard.compress(filler)
    file = with_bomb(tmp_path / "bag", chunk(packed, "zstd", len(filler)))
    assert open_bag(file).lost
    monkeypatch.setenv(FACTOR_VARIABLE, "20")
    recording = open_bag(file)
    assert recording.twists("/cmd_vel").received.size == 100 and not recording.lost


def ros1_bag(path: Path, compression: str, packed: bytes) -> Path:
    """A ROS 1 bag of one chunk, whose contents are never looked at."""

    def record(data: bytes, **fields: bytes) -> bytes:
        header = b"".join(struct.pack("<I", len(k) + 1 + len(v)) + k.encode() + b"=" + v for k, v in fields.items())
        return struct.pack("<I", len(header)) + header + struct.pack("<I", len(data)) + data

    u32, u64 = struct.Struct("<I").pack, struct.Struct("<Q").pack
    magic = b"#ROSBAG V2.0\n"
    body = record(packed, op=b"\x05", compression=compression.encode(), size=u32(1))
    index = record(struct.pack("<III", 1, 0, 0), op=b"\x04", ver=u32(1), conn=u32(0), count=u32(1))
    told = record(b"", topic=b"/x", type=b"std_msgs/Empty", md5sum=b"*", message_definition=b"")
    head_size = len(record(b"", op=b"\x03", index_pos=u64(0), conn_count=u32(1), chunk_count=u32(1)))
    position = len(magic) + head_size
    head = record(
        b"", op=b"\x03", index_pos=u64(position + len(body) + len(index)), conn_count=u32(1), chunk_count=u32(1)
    )
    connection = record(told[4 : 4 + struct.unpack("<I", told[:4])[0]], op=b"\x07", conn=u32(0), topic=b"/x")
    info = record(
        u32(0) + u32(1),
        op=b"\x06",
        ver=u32(1),
        chunk_pos=u64(position),
        start_time=bytes(8),
        end_time=bytes(8),
        count=u32(1),
    )
    path.write_bytes(magic + head + body + index + connection + info)
    return path


@pytest.mark.parametrize("compression", ["bz2", "lz4"])
def test_a_ros1_chunk_that_unfolds_beyond_the_limit_is_refused(tmp_path: Path, compression: str) -> None:
    pack = bz2.compress if compression == "bz2" else lz4_compress
    file = ros1_bag(tmp_path / "x.bag", compression, pack(bytes(60_000_000)))
    recording = open_bag(file)
    _, messages = recording._sources[0].messages("/x")
    with pytest.raises(RecordingError, match="x.bag.*bytes unpacked or more.*at most "):
        list(messages)


@pytest.mark.parametrize(("frames", "said"), [(64, ""), (65, "too many compressed frames")])
def test_a_chunk_of_many_compressed_frames_is_refused(frames: int, said: str) -> None:
    packed = frames * lz4_compress(b"x")
    with ALLOWANCE.of(1000):
        if not said:
            assert ALLOWANCE.unpack(LZ4FrameDecompressor, packed) == frames * b"x"
            return
        with pytest.raises(RecordingError, match=said):
            ALLOWANCE.unpack(LZ4FrameDecompressor, packed)


def sqlite_bag(path: Path, values: tuple[object, ...]) -> Path:
    with sqlite3.connect(path) as base:
        base.executescript(
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT);"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);"
            f"INSERT INTO topics VALUES(1, '/cmd_vel', '{TWIST}', 'cdr');"
        )
        base.execute("INSERT INTO messages VALUES(1, 1, ?, ?)", values)
    base.close()
    return path


@pytest.mark.parametrize("stamp", ["yesterday", -5, 1.5, b"12", None])
def test_a_db3_with_a_strange_timestamp_is_refused(tmp_path: Path, stamp: object) -> None:
    file = sqlite_bag(tmp_path / "x.db3", (stamp, twist_cdr((1, 2, 3))))
    with pytest.raises(RecordingError, match="x.db3"):
        open_bag(file).twists("/cmd_vel")


def test_a_db3_whose_rows_are_made_while_reading_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.db3"
    with sqlite3.connect(file) as base:
        base.executescript(
            "CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT);"
            "CREATE TABLE messages(id INTEGER, topic_id INTEGER, timestamp INTEGER,"
            " data BLOB GENERATED ALWAYS AS (zeroblob(900000000)));"
            f"INSERT INTO topics VALUES(1, '/cmd_vel', '{TWIST}', 'cdr');"
            "INSERT INTO messages(id, topic_id, timestamp) VALUES(1, 1, 5);"
        )
    base.close()
    with pytest.raises(RecordingError, match="x.db3"):
        open_bag(file).twists("/cmd_vel")


def test_a_db3_whose_rows_multiply_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.db3"
    with sqlite3.connect(file) as base:
        base.executescript(
            "CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT);"
            "CREATE TABLE messages(id INTEGER, topic_id INTEGER, timestamp INTEGER, data BLOB);"
        )
        base.executemany("INSERT INTO topics VALUES(1, '/cmd_vel', ?, 'cdr')", [(TWIST,)] * 5000)
        base.executemany("INSERT INTO messages VALUES(1, 1, ?, ?)", [(k, b"") for k in range(5000)])
    base.close()
    with pytest.raises(RecordingError, match="too many rows"):
        open_bag(file)


@pytest.mark.parametrize("cut", [0, 20])
def test_a_message_with_a_time_beyond_63_bits_is_left_out(tmp_path: Path, cut: int) -> None:
    late = mcap_record(5, struct.pack("<HIQQ", 1, 0, (1 << 64) - 5, 0) + twist_cdr((1, 2, 3)))
    file = with_bomb(tmp_path / "bag", late)
    os.truncate(file, file.stat().st_size - cut)
    assert open_bag(file).twists("/cmd_vel").received.size == 100


# --- result.json


RESULT = {
    "robot_id": "yb",
    "parameters": [
        {
            "stage": "delay",
            "name": "robot.base.delay.effective_x",
            "verdict": "identified",
            "value": 0.1,
            "unit": "s",
            "standard_error": 0.01,
            "interval_95": [0.0, 0.2],
            "samples": 9,
            "valid_for": {},
        }
    ],
    "missing": {"thermal": "no temperatures"},
    "warnings": ["a clock jumped"],
}


def test_a_result_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    assert read_result(tmp_path / "result.json") == RESULT


@pytest.mark.parametrize(
    "content",
    [
        "",
        "null",
        "[]",
        "{",
        "{}",
        pytest.param("[" * 100_000, id="brackets"),
        '{"parameters": 3}',
        json.dumps({**RESULT, "missing": []}),
        json.dumps({**RESULT, "parameters": [{}]}),
        json.dumps({**RESULT, "parameters": {"a": 1}}),
        json.dumps({**RESULT, "robot_id": 7}),
        json.dumps({**RESULT, "warnings": [None]}),
        json.dumps({**RESULT, "robot_id": "\ud800"}),
        json.dumps({**RESULT, "warnings": ["\x1b[2J"]}),
    ],
)
def test_a_result_that_youbot_identify_did_not_write_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(YoubotDynamicsError, match="result.json"):
        read_result(tmp_path / "result.json")


# --- writing


@pytest.fixture
def places(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "pipe")
        yield [tmp_path / name for name in ("pipe", "socket", "folder", "link")]


def test_nothing_but_a_regular_file_is_written_over(places: list[Path]) -> None:
    kinds = [stat.S_IFMT(place.lstat().st_mode) for place in places]
    for place in places:
        with pytest.raises(OutputError, match=f"{place.name}: got a .*regular file, or a new name"):
            write_atomically(place, "x")
        with pytest.raises(OutputError):
            write_parameters(place, "/**", {"a": 1.0})
    with pytest.raises(OutputError, match="embedded null byte; expected a path"):
        write_atomically("null\0byte", "x")
    assert [stat.S_IFMT(place.lstat().st_mode) for place in places] == kinds
    assert sorted(path.name for path in places[0].parent.iterdir()) == ["folder", "link", "pipe", "socket"]


def test_the_program_refuses_to_write_over_a_pipe(places: list[Path]) -> None:
    words = ["play", "arm_excitation", "--duration", "20", "--write", str(places[0])]
    command = [sys.executable, "-m", "youbot_dynamics.commands.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "pipe: got a pipe" in done.stderr and "Traceback" not in done.stderr
    assert stat.S_ISFIFO(places[0].stat().st_mode)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_mode_of_the_users_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "x", "old")
        write_atomically(tmp_path / "x", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode
    assert (tmp_path / "x").read_text() == "new" and len(list(tmp_path.iterdir())) == 1


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"


def outputs(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_of_the_outputs_on_a_full_disk_none_is_written_and_an_earlier_result_stays(tmp_path: Path) -> None:
    found = Identification(Result("youbot", (), ("delay",), {}, {}, ()), (), {}, (), (), load_robot())
    (tmp_path / "old" / "exports").mkdir(parents=True)
    for name in ("result.yaml", "result.json", "exports/nav2.yaml", "exports/my_notes.txt"):
        (tmp_path / "old" / name).write_text("mine")
    before = outputs(tmp_path / "old")
    write_outputs(tmp_path / "first", found, (), "x")  # imports all: Python would keep half of its bytecode
    shutil.rmtree(tmp_path / "first")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, most[1]))  # report.html is larger, the others are not
    try:
        for place in ("new", "old"):
            with pytest.raises(RecordingError, match=f"{place}: got File too large.*nothing was written"):
                write_outputs(tmp_path / place, found, (), "x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert list(tmp_path.iterdir()) == [tmp_path / "old"] and outputs(tmp_path / "old") == before
    write_outputs(tmp_path / "old", found, (), "x")
    after = outputs(tmp_path / "old")
    assert set(after) == {"result.yaml", "robot.yaml", "result.json", "report.html", "exports/my_notes.txt"}
    assert "mine" not in (after["result.yaml"], after["result.json"])


# --- the terminal


NASTY = "/a\x1b]0;owned\x07\x9b2J\u202eb\nc"


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, capsys) -> None:
    with BagWriter(tmp_path / "bag", {}) as writer:
        writer.add_topic(NASTY, TWIST)
        writer.write(NASTY, twist_cdr((1, 2, 3)), START)
    recording = open_bag(tmp_path / "bag")
    assert NASTY in recording.topics
    with pytest.raises(RecordingError) as caught:
        recording.twists("/cmd_vel")
    assert "\\x1b]0;owned\\x07\\x9b2J\\u202eb" in str(caught.value)
    announce(f"warning: {NASTY}")
    shown = str(caught.value) + "".join(capsys.readouterr())
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert printable("plain") == "plain"


def test_a_log_on_a_full_disk_ends_no_command(monkeypatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(terminal, "CONSOLE", Console(file=Full()))
    announce("all is well")


def test_a_message_is_wrapped_in_a_terminal_and_one_line_in_a_log(monkeypatch) -> None:
    message = "note: " + " ".join(["assumed"] * 20)
    for terminal_is, lines in ((True, 5), (False, 1)):
        shown = io.StringIO()
        monkeypatch.setattr(terminal, "CONSOLE", Console(file=shown, force_terminal=terminal_is, width=40))
        announce(message)
        assert len(shown.getvalue().splitlines()) == lines
        assert terminal_is == all(len(line) <= 40 for line in shown.getvalue().splitlines())


def test_the_tables_of_a_result_hold_no_control_characters(capsys) -> None:
    estimate = Estimate("base.x", "m", 0.1, 1e-3, (0.09, 0.11), Reason(Kind.UNEXPLAINED, f"{NASTY} [bold]x"))
    name = "robot.base.delay.effective_x"
    found = Result(
        "yb", (named_finding(name, estimate),), ("delay",), {"body": NASTY}, {name: "delay"}, (), (), (NASTY,)
    )
    print_answer(found, "found/result.yaml", f"--robot real --robot-file {NASTY}", verbose=True)
    shown = capsys.readouterr().out
    assert shown.count("owned") == 5  # warning, reason, next command, table and stage without a result
    assert "owned" in shown and "[bold]" in shown
    assert not set(shown) & set("\x1b\x07\x9b\u202e")


def test_a_report_holds_no_control_characters() -> None:
    report = Report("Nasty", Result("yb", (), (), {}, {}, ()), warnings=(NASTY + "<b>",))
    assert "<li>/a\\x1b]0;owned\\x07\\x9b2J\\u202eb\nc&lt;b&gt;</li>" in render(report)


def test_an_infinite_count_in_the_metadata_of_a_running_bag_is_refused(tmp_path: Path) -> None:
    entry = "{topic_metadata: {name: /x}, message_count: .inf}"
    (tmp_path / "metadata.yaml").write_text(
        f"rosbag2_bagfile_information:\n  topics_with_message_count: [{entry}]\n", encoding="utf-8"
    )
    with pytest.raises(RecordingError, match="metadata.yaml"):
        recorded(tmp_path)
