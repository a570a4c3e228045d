"""The crash-safe writer: what it writes other readers read, and what it refuses."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.mcap_writer import BagWriter, TopicQos
from youbot_dynamics.recording.message_types import (
    LAST_STAMP,
    MULTI_DOF_TRAJECTORY,
    definition_of,
    float_cdr,
    jazzy_types,
    joint_state_cdr,
    odometry_cdr,
    stamped_cdr,
    trajectory_cdr,
    twist_cdr,
)

START = 1_700_000_000_000_000_000
JOINT_STATE = "sensor_msgs/msg/JointState"
ODOMETRY = "nav_msgs/msg/Odometry"
TWIST = "geometry_msgs/msg/Twist"


def test_a_bag_is_read_back_by_the_reader_of_rosbags(tmp_path: Path) -> None:
    from rosbags.highlevel import AnyReader
    from rosbags.interfaces import QosDurability, QosReliability

    covariance = np.arange(36.0)
    with BagWriter(tmp_path / "run", {"robot_id": "yb-7"}) as writer:
        writer.add_topic("/joints", JOINT_STATE, qos=TopicQos(reliable=False, transient_local=True, depth=5))
        writer.add_topic("/odom", ODOMETRY)
        writer.write("/joints", joint_state_cdr(START + 7, ["a", "b"], [1.0, 2.0], None, [3.0, 4.0], "base"), START)
        writer.write("/odom", odometry_cdr(START, "odom", "base", (1, 2, 0.5), (3, 4, 5), covariance), START + 9)
    with AnyReader([tmp_path / "run"]) as reader:
        found = [(c.topic, time, reader.deserialize(raw, c.msgtype)) for c, time, raw in reader.messages()]
        qos = next(c for c in reader.connections if c.topic == "/joints").ext.offered_qos_profiles[0]
        custom = reader.readers[0].storage.metadata.custom
    assert [(topic, time) for topic, time, _ in found] == [("/joints", START), ("/odom", START + 9)]
    joints, odometry = found[0][2], found[1][2]
    assert joints.name == ["a", "b"] and joints.header.stamp.nanosec == 7 and joints.header.frame_id == "base"
    assert joints.position.tolist() == [1.0, 2.0] and joints.velocity.size == 0 and joints.effort.tolist() == [3.0, 4.0]
    assert odometry.child_frame_id == "base" and odometry.twist.twist.angular.z == 5.0
    np.testing.assert_array_equal(odometry.pose.covariance, covariance)
    assert qos.reliability == QosReliability.BEST_EFFORT and qos.depth == 5
    assert qos.durability == QosDurability.TRANSIENT_LOCAL
    assert custom == {"robot_id": "yb-7"}


def test_messages_are_serialized_as_by_rosbags() -> None:
    """With texts of every length modulo the alignment, and lists that are empty."""
    store = jazzy_types()

    def again(cdr: bytes, kind: str) -> bytes:
        return bytes(store.serialize_cdr(store.deserialize_cdr(cdr, kind), kind))

    for k in range(6):
        frame, names, values = "f" * k, [f"{'j' * n}{n}" for n in range(k)], np.arange(float(k))
        poses = np.arange(3.0 * k).reshape(k, 3)
        for cdr, kind in (
            (joint_state_cdr(START, names, values, None, values, frame), JOINT_STATE),
            (stamped_cdr(START, frame, 1.0, 2.0), "sensor_msgs/msg/Temperature"),
            (stamped_cdr(START, frame, *range(10)), "geometry_msgs/msg/InertiaStamped"),
            (float_cdr(0.1), "std_msgs/msg/Float64"),
            (odometry_cdr(START, frame, "b" * (k + 1), (1, 2, 3), (4, 5, 6)), ODOMETRY),
            (trajectory_cdr(START, frame, "b" * k, values, poses, poses if k % 2 else None), MULTI_DOF_TRAJECTORY),
        ):
            assert cdr == again(cdr, kind)


def test_metadata_has_the_fields_and_kinds_rosbag2_reads(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    with BagWriter(tmp_path / "run", {"robot_id": "12", "yes": 'a "quote": \u00b5 #x\n'}) as writer:
        writer.add_topic("/cmd_vel", TWIST)
        writer.write("/cmd_vel", twist_cdr((0, 0, 0)), START)
        writer.write("/cmd_vel", twist_cdr((0, 0, 0)), START + 5)
    text = (tmp_path / "run" / "metadata.yaml").read_text(encoding="utf-8")
    information = yaml.safe_load(text)["rosbag2_bagfile_information"]
    assert information["version"] == 9 and information["storage_identifier"] == "mcap"
    assert information["relative_file_paths"] == ["run_0.mcap"]
    assert information["duration"] == {"nanoseconds": 5}
    assert information["starting_time"] == {"nanoseconds_since_epoch": START}
    assert information["files"][0]["message_count"] == information["message_count"] == 2
    assert information["custom_data"] == {"robot_id": "12", "yes": 'a "quote": \u00b5 #x\n'}
    topic = information["topics_with_message_count"][0]
    assert topic["message_count"] == 2
    assert topic["topic_metadata"]["type_description_hash"] == jazzy_types().hash_rihs01(TWIST)
    assert topic["topic_metadata"]["offered_qos_profiles"][0]["deadline"]["sec"] == 9223372036


def test_every_second_of_receive_time_reaches_the_disk(tmp_path: Path) -> None:
    writer = BagWriter(tmp_path / "run", {})
    writer.add_topic("/cmd_vel", TWIST)
    for row in range(101):
        writer.write("/cmd_vel", twist_cdr((row, 0, 0)), START + row * 50_000_000)
    recording = open_bag(tmp_path / "run")
    assert recording.twists("/cmd_vel").received[-1] == pytest.approx(4.15, abs=0.2)
    assert "no footer" in recording.lost
    writer.flush()
    assert open_bag(tmp_path / "run").twists("/cmd_vel").received[-1] == pytest.approx(5.0)
    writer.close()
    assert open_bag(tmp_path / "run").lost == ""


def test_an_exception_inside_with_still_finishes_the_bag(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), BagWriter(tmp_path / "run", {}) as writer:
        writer.add_topic("/cmd_vel", TWIST)
        writer.write("/cmd_vel", twist_cdr((0, 0, 0)), START)
        raise KeyboardInterrupt
    assert open_bag(tmp_path / "run").lost == ""


def test_a_bag_without_messages_opens_and_says_so_for_each_topic(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "run", {"robot_id": "yb-7"}) as writer:
        writer.add_topic("/cmd_vel", TWIST)
    recording = open_bag(tmp_path / "run")
    assert recording.origin == 0 and recording.metadata == {"robot_id": "yb-7"}
    with pytest.raises(RecordingError, match="no messages"):
        recording.twists("/cmd_vel")


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    BagWriter(tmp_path / "run", {}).close()
    with pytest.raises(RecordingError, match="choose another --out") as caught:
        BagWriter(tmp_path / "run", {})
    assert str(tmp_path / "run") in str(caught.value) and "\n" not in str(caught.value)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecordingError, match="choose another --out"):
        BagWriter(tmp_path / "file", {})


def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="embedded null byte; expected a path of a folder; choose another --out"):
        BagWriter("null\0byte", {})
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(RecordingError, match="choose another --out"):
        BagWriter(tmp_path / "loop", {})


def test_topics_are_announced_once_with_one_type(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "run", {}) as writer:
        writer.add_topic("/cmd_vel", TWIST)
        writer.add_topic("/cmd_vel", TWIST)
        with pytest.raises(RecordingError, match="got nav_msgs/msg/Odometry; expected geometry_msgs/msg/Twist"):
            writer.add_topic("/cmd_vel", ODOMETRY)
        with pytest.raises(RecordingError, match="pass the text of its definition"):
            writer.add_topic("/special", "my_msgs/msg/Special")
        writer.add_topic("/special", "my_msgs/msg/Special", "float64 value\n")
        with pytest.raises(RecordingError, match="/unknown"):
            writer.write("/unknown", b"", START)
        with pytest.raises(RecordingError, match="-1 ns"):
            writer.write("/cmd_vel", twist_cdr((0, 0, 0)), -1)
    with pytest.raises(RecordingError, match="a closed bag"):
        writer.write("/cmd_vel", twist_cdr((0, 0, 0)), START)


def test_definitions_hold_the_types_they_contain() -> None:
    text = definition_of(ODOMETRY)
    parts = text.split("=" * 80 + "\n")
    assert parts[0].startswith("std_msgs/Header header\n")
    assert {part.splitlines()[0] for part in parts[1:]} >= {
        "MSG: std_msgs/Header",
        "MSG: geometry_msgs/Twist",
    }


FULL_DISK = """
import resource, sys
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import joint_state_cdr
import random
writer = BagWriter(sys.argv[1], {})
writer.add_topic("/joints", "sensor_msgs/msg/JointState")
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
errors = []
for row in range(3000):
    try:
        values = [random.random() for _ in range(9)]
        writer.write("/joints", joint_state_cdr(row, [str(n) for n in range(9)], values), row * 20_000_000)
    except RecordingError as error:
        errors.append(str(error))
writer.close()
assert len(set(errors)) == 1 and len(errors) > 100, errors[:3]
print(errors[0])
"""


def test_a_full_disk_is_a_typed_error_and_what_was_flushed_stays_readable(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert os.strerror(27) in done.stdout and "free space" in done.stdout and "full_0.mcap" in done.stdout
    recording = open_bag(folder)
    assert recording.joint_states("/joints", ["0"]).position.shape[0] > 100
    assert recording.lost


FULL_AT_CLOSE = """
import resource, sys
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import twist_cdr
writer = BagWriter(sys.argv[1], {})
writer.add_topic("/cmd_vel", "geometry_msgs/msg/Twist")
writer.write("/cmd_vel", twist_cdr((0, 0, 0)), 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    writer.close()
except RecordingError as error:
    print(error)
"""


def test_a_disk_that_fills_up_at_the_end_is_an_error_of_close(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_AT_CLOSE, str(tmp_path / "end")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "free space" in done.stdout and done.stdout.count("\n") == 1, done.stderr


def test_recorded_numbers_survive_exactly(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(50, 2))
    with BagWriter(tmp_path / "run", {}) as writer:
        writer.add_topic("/joints", JOINT_STATE)
        for row, (position, velocity) in enumerate(values):
            writer.write("/joints", joint_state_cdr(row + 1, ["a"], [position], [velocity]), row)
    series = open_bag(tmp_path / "run").joint_states("/joints", ["a"])
    np.testing.assert_array_equal(np.column_stack((series.position, series.velocity)), values)


def test_an_hour_of_a_bag_takes_little_memory_and_its_index_names_every_topic(tmp_path: Path) -> None:
    from mcap.reader import make_reader

    topics = [f"/topic_{k}" for k in range(40)]
    with BagWriter(tmp_path / "bag", {}) as writer:
        for topic in topics:
            writer.add_topic(topic, "std_msgs/msg/String")
        tracemalloc.start()
        sizes = []
        for second in range(180):
            for topic in topics:
                writer.write(topic, b"\0" * 60, 10**18 + second * 10**9)
            writer.flush()
            if second % 60 == 59:
                gc.collect()  # in a process with many objects, cycles wait long
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert (sizes[2] - sizes[1]) / 1024 < 50.0, "kB a minute"
    with next((tmp_path / "bag").glob("*.mcap")).open("rb") as file:
        summary = make_reader(file).get_summary()
    assert len(summary.chunk_indexes) == 180
    assert all(len(chunk.message_index_offsets) == len(topics) for chunk in summary.chunk_indexes)


def test_a_stamp_beyond_what_a_header_can_hold_becomes_the_latest_one():
    assert joint_state_cdr(2**63, ["a"]) == joint_state_cdr(LAST_STAMP, ["a"]) != joint_state_cdr(LAST_STAMP - 1, ["a"])
