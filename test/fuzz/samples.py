"""Sound inputs of every reader, and how each is changed and read."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import mutations
import numpy as np
from mcap.writer import CompressionType, Writer

from youbot_dynamics.commands._replay import open_log
from youbot_dynamics.commands.identify import recorded
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.identification.result_file import read_result
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.recording import message_types
from youbot_dynamics.recording import message_types as types
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.text_log import read_text_log
from youbot_dynamics.resources import config_path, program_path, urdf_path
from youbot_dynamics.robot import load_robot

START = 1_700_000_000_000_000_000
STEP = 20_000_000
ROBOT = load_robot()
ARM = [f"arm_joint_{k}" for k in range(1, 6)]


@dataclass(frozen=True)
class Reader:
    """One reader.

    Args:
        name: of it.
        file: name of the file that is changed, below the folder of an input.
        sample: its sound contents.
        mutate: changes them.
        read: reads the folder of an input.
        beside: other files that belong to it.
        share: of all inputs, beside those of the others: readers that cost little get more.
    """

    name: str
    file: str
    sample: bytes
    mutate: Callable[[bytes, Random], bytes]
    read: Callable[[Path], object]
    beside: Mapping[str, bytes]
    share: int = 1


def messages(rows: int = 12) -> list[tuple[str, str, bytes, int]]:
    """Topic, type, bytes and time of a short drive."""
    found = []
    for row in range(rows):
        now = START + row * STEP
        wheels = message_types.joint_state_cdr(now, ["wheel_joint_fl", "wheel_joint_fr"], [0.1 * row, 0.2], [1.0, 2.0])
        arm = message_types.joint_state_cdr(now, ARM, [1.0] * 5, [0.1] * 5, [0.2] * 5)
        found += [
            ("/driver/joint_states", types.JOINT_STATE, wheels if row % 2 else arm, now),
            ("/cmd_vel", types.TWIST, message_types.twist_cdr((row, 0, 1)), now),
        ]
        if row % 8 == 0:
            found += [
                ("/odom", types.ODOMETRY, message_types.odometry_cdr(now, "odom", "base", (1, 2, 3), (1, 2, 3)), now),
                ("/stamped", types.TWIST_STAMPED, message_types.twist_stamped_cdr(now, "b", (1, 2, 3)), now),
                ("/pose", types.POSE_STAMPED, message_types.pose_stamped_cdr(now, "map", (1, 2, 0.5)), now),
                (
                    "/trajectory",
                    types.MULTI_DOF_TRAJECTORY,
                    message_types.trajectory_cdr(now, "odom", "base", [0.0, 1.0], [(0, 0, 0), (1, 0, 0)]),
                    now,
                ),
            ]
    return found


def read_everything(recording: Recording) -> None:
    """Every topic, by each face that takes its type; and what concerns the whole."""
    faces: dict[str, Callable[[str], object]] = {
        types.JOINT_STATE: lambda topic: [recording.joint_states(topic, j) for j in recording.joint_names(topic)],
        types.TWIST: recording.twists,
        types.TWIST_STAMPED: recording.twists,
        types.MULTI_DOF_TRAJECTORY: recording.trajectories,
    }
    faces |= dict.fromkeys(
        (types.ODOMETRY, types.POSE_STAMPED, types.POSE_WITH_COVARIANCE_STAMPED, types.TRANSFORM_STAMPED),
        recording.poses,
    )
    for info in list(recording.topics.values())[:40]:
        try:
            faces.get(info.type, recording.twists)(info.name)
        except YoubotDynamicsError as refused:
            check_error(refused)
    assert recording.lost is not None and recording.sha256 and recording.metadata is not None


def check_error(refused: YoubotDynamicsError) -> None:
    """One printable line of a sensible length."""
    assert str(refused).isprintable() and len(str(refused)) < 20_000, str(refused)[:300]


def read_bag(name: str, folder: Path) -> None:
    recording = open_bag(folder / name)
    read_everything(recording)
    if int(recording.sha256[:2], 16) % 4 == 0:
        open_log(folder / name, ROBOT, "", {})


def mcap_sample(folder: Path, compression: CompressionType, chunked: bool = True) -> bytes:
    """Without checksums, which would keep what is changed from being looked at."""
    file = folder / "x.mcap"
    with file.open("wb") as stream:
        writer = Writer(stream, chunk_size=3000, compression=compression, enable_crcs=False, use_chunking=chunked)
        writer.start(profile="ros2", library="")
        writer.add_metadata("youbot_dynamics", {"robot_id": "youbot", "feedback": "true"})
        channels: dict[str, int] = {}
        for topic, kind, data, now in messages():
            if topic not in channels:
                schema = writer.register_schema(kind, "ros2msg", types.definition_of(kind).encode())
                channels[topic] = writer.register_channel(topic, "cdr", schema, {"offered_qos_profiles": "- depth: 3"})
            writer.add_message(channels[topic], now, data, now)
        writer.finish()
    return file.read_bytes()


def sqlite_sample(folder: Path) -> bytes:
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2

    shutil.rmtree(folder / "s", ignore_errors=True)
    with Writer2(folder / "s", version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        made = {}
        for topic, kind, data, now in messages(10):
            if topic not in made:
                made[topic] = writer.add_connection(topic, kind, typestore=types.jazzy_types())
            writer.write(made[topic], now, data)
    return (folder / "s" / "s.db3").read_bytes()


def ros1_sample(folder: Path, compression: str) -> bytes:
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    file = folder / "x.bag"
    file.unlink(missing_ok=True)
    writer = Writer1(file)
    if compression:
        writer.set_compression(writer.CompressionFormat[compression])
    header, time = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
    with writer:
        joints = writer.add_connection("/driver/joint_states", types.JOINT_STATE, typestore=store)
        for row in range(8):
            values = np.full(5, 0.1 * row)
            state = store.types[types.JOINT_STATE](header(row, time(row, 0), "f"), ARM, values, values, values)
            writer.write(joints, START + row * STEP, store.serialize_ros1(state, types.JOINT_STATE))
    return file.read_bytes()


STATEMENTS = (
    "UPDATE messages SET timestamp = 'yesterday'",
    "UPDATE messages SET timestamp = 1.5",
    "UPDATE messages SET timestamp = NULL",
    "UPDATE messages SET timestamp = -9e18",
    "UPDATE messages SET data = 'text'",
    "UPDATE messages SET data = NULL",
    "UPDATE messages SET data = zeroblob(50000)",
    "UPDATE messages SET data = randomblob(200)",
    "UPDATE messages SET data = substr(data, 1, 30)",
    "UPDATE messages SET topic_id = 99",
    "UPDATE topics SET name = NULL",
    "UPDATE topics SET name = printf('%.*c', 100000, 'x')",
    "UPDATE topics SET type = 'x'",
    "UPDATE topics SET type = 5",
    "UPDATE topics SET id = id + 1",
    "UPDATE topics SET offered_qos_profiles = '[[[[[['",
    "DELETE FROM topics",
    "UPDATE topics SET offered_qos_profiles = 'a: &a [*a]'",
    "UPDATE topics SET serialization_format = x'00ff'",
    "DELETE FROM messages",
    "DROP TABLE messages",
    "DROP TABLE schema",
    "UPDATE schema SET schema_version = 'x'",
    "UPDATE schema SET schema_version = 1",
    "UPDATE message_definitions SET encoding = 'x'",
    "DROP TABLE messages; CREATE VIEW messages AS SELECT 1 AS id, 1 AS topic_id, 1 AS timestamp, 1 AS data",
    "DROP TABLE messages; CREATE TABLE messages(id, topic_id, timestamp AS (zeroblob(100000000)), data)",
    "DROP TABLE topics; CREATE TABLE topics(id, name, type, serialization_format, offered_qos_profiles)",
    "INSERT INTO messages SELECT NULL, a.topic_id, a.timestamp, a.data FROM messages a, messages b, messages LIMIT 999",
)


def mutate_sqlite(folder: Path, data: bytes, rng: Random) -> bytes:
    """Statements that a hostile author would run, or bytes changed."""
    if rng.random() < 0.5:
        return mutations.mutate_bytes(data, rng)
    file = folder / "changed.db3"
    file.write_bytes(data)
    base = sqlite3.connect(file, isolation_level=None)
    base.execute(f"PRAGMA max_page_count = {mutations.LARGEST // 4096}")  # rows multiply to gigabytes otherwise
    for statement in rng.sample(STATEMENTS, rng.choice((1, 1, 2, 3))):
        try:
            base.executescript(statement)
        except sqlite3.Error:
            continue
    base.close()
    changed = file.read_bytes()
    return mutations.mutate_bytes(changed, rng) if rng.random() < 0.2 else changed


RESULT = b"""{"schema_version": 2, "robot_id": "youbot", "missing": {"thermal": "no temperatures"},
"warnings": ["a clock jumped"],
"parameters": [{"stage": "delay", "name": "robot.base.delay.effective_x", "value": 0.1, "unit": "s",
"standard_error": 0.01, "interval_95": [0.08, 0.12], "verdict": "identified", "at_bound": false, "samples": 960,
"valid_for": "x", "part_of": ""}],
"sources": [{"path": "bag", "sha256": "00", "clock": "stamps", "signals": "",
"robot_id": "youbot", "lost": ""}],
"versions": {}}"""


def readers(folder: Path) -> dict[str, Reader]:
    """Every reader by name; `folder` is for samples that are made there."""
    bag = folder / "bag"
    shutil.rmtree(bag, ignore_errors=True)
    with BagWriter(bag, {"robot_id": "youbot"}) as writer:
        for topic, kind, data, now in messages():
            writer.add_topic(topic, kind)
            writer.write(topic, data, now)
    whole, listing = (bag / "bag_0.mcap").read_bytes(), (bag / "metadata.yaml").read_bytes()
    log = "".join(f"{0.02 * k:.2f},{0.1 * k},{-k}\n" for k in range(40))
    columns = "time,command.x,measured.x"
    text, yaml = mutations.as_bytes(mutations.mutate_text), mutations.as_bytes(mutations.mutate_yaml)
    none, zstd, lz4 = CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4
    mcap, sqlite = mutations.mutate_mcap, partial(mutate_sqlite, folder)

    def robot_file(path: Path) -> None:
        read_parameters(path / "x.yaml", "odometry", "left")
        load_robot(params_file=path / "x.yaml")

    table = [
        Reader("mcap", "x.mcap", mcap_sample(folder, none), mcap, partial(read_bag, "x.mcap"), {}, 4),
        Reader("mcap_zstd", "x.mcap", mcap_sample(folder, zstd), mcap, partial(read_bag, "x.mcap"), {}, 4),
        Reader("mcap_lz4", "x.mcap", mcap_sample(folder, lz4), mcap, partial(read_bag, "x.mcap"), {}, 4),
        Reader("mcap_plain", "x.mcap", mcap_sample(folder, none, False), mcap, partial(read_bag, "x.mcap"), {}, 4),
        Reader("bag_metadata", "bag/metadata.yaml", listing, yaml, partial(read_bag, "bag"), {"bag/bag_0.mcap": whole}),
        Reader("bag_data", "bag/bag_0.mcap", whole, mcap, partial(read_bag, "bag"), {"bag/metadata.yaml": listing}),
        Reader("sqlite", "x.db3", sqlite_sample(folder), sqlite, partial(read_bag, "x.db3"), {}),
        Reader("ros1", "x.bag", ros1_sample(folder, ""), mutations.mutate_bytes, partial(read_bag, "x.bag"), {}, 8),
        Reader(
            "ros1_bz2", "x.bag", ros1_sample(folder, "BZ2"), mutations.mutate_bytes, partial(read_bag, "x.bag"), {}, 8
        ),
        Reader(
            "ros1_lz4", "x.bag", ros1_sample(folder, "LZ4"), mutations.mutate_bytes, partial(read_bag, "x.bag"), {}, 8
        ),
        Reader("text_log", "x.csv", log.encode(), text, lambda p: read_text_log(p / "x.csv", columns), {}, 20),
        Reader(
            "columns",
            "x.txt",
            columns.encode(),
            text,
            lambda p: read_text_log(p / "x.csv", (p / "x.txt").read_text(errors="replace")),
            {"x.csv": log.encode()},
            20,
        ),
        Reader(
            "program",
            "x.txt",
            b"".join(program_path("rotation").read_bytes().splitlines(keepends=True)[:60]),
            text,
            lambda p: read_program(p / "x.txt", 0.02),
            {},
            20,
        ),
        Reader(
            "urdf",
            "x.urdf",
            urdf_path("youbot.urdf").read_bytes(),
            mutations.as_bytes(mutations.mutate_urdf),
            lambda p: Tree.from_urdf(p / "x.urdf"),
            {},
            4,
        ),
        Reader("parameters", "x.yaml", config_path("youbot.yaml").read_bytes(), yaml, robot_file, {}),
        Reader(
            "result_json",
            "x.json",
            RESULT,
            mutations.as_bytes(mutations.mutate_json),
            lambda p: read_result(p / "x.json"),
            {},
            30,
        ),
        Reader("running_bag", "metadata.yaml", listing, yaml, recorded, {}, 10),
    ]
    return {reader.name: reader for reader in table}
