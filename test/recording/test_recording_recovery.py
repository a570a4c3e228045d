"""Damaged recordings: what is complete is read, the rest is said, and no untyped exception escapes."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.recording.bag._source import RosbagsSource
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import jazzy_types, twist_cdr

START = 1_700_000_000_000_000_000
STEP = 50_000_000
TWIST = "geometry_msgs/msg/Twist"

KILLED_RECORDER = """
import sys, time
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import twist_cdr
writer = BagWriter(sys.argv[1], {"robot_id": "yb-7"})
writer.add_topic("/cmd_vel", "geometry_msgs/msg/Twist")
count = 0
while True:
    writer.write("/cmd_vel", twist_cdr((count, 0, 0)), time.time_ns())
    count += 1
    print(count, flush=True)
    time.sleep(0.005)
"""


def record(folder: Path, count: int = 200) -> Path:
    """A bag of ten chunks, its .mcap file."""
    with BagWriter(folder, {"robot_id": "yb-7"}) as writer:
        writer.add_topic("/cmd_vel", TWIST)
        writer.add_topic("/other", TWIST)
        for row in range(count):
            writer.write("/cmd_vel", twist_cdr((row, 0, 0)), START + row * STEP)
            writer.write("/other", twist_cdr((0, row, 0)), START + row * STEP)
    return folder / f"{folder.name}_0.mcap"


def recovered(recording: Recording) -> int:
    return recording.twists("/cmd_vel").received.size if "/cmd_vel" in recording.topics else 0


def test_a_killed_recorder_loses_at_most_the_last_second(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", KILLED_RECORDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    request.addfinalizer(process.stdout.close)
    request.addfinalizer(process.kill)
    deadline = time.monotonic() + 20.0
    started = None
    while time.monotonic() < deadline:
        written = int(process.stdout.readline())
        started = started or time.monotonic()
        if time.monotonic() - started > 2.6:
            break
    killed = time.time()
    process.send_signal(signal.SIGKILL)
    written = int((process.stdout.read().split() or [written])[-1])
    process.wait()
    assert (folder / "metadata.yaml").exists()
    for removed in (False, True):
        if removed:
            (folder / "metadata.yaml").unlink()
        recording = open_bag(folder)
        twists = recording.twists("/cmd_vel")
        assert "no footer" in recording.lost and "\n" not in recording.lost
        assert recording.metadata["robot_id"] == "yb-7"
        assert twists.twist[:, 0].tolist() == list(range(twists.received.size))
        assert 0 < twists.received.size < written
        last = recording.origin * 1e-9 + twists.received[-1]
        assert killed - last < 1.3


def test_the_number_recovered_grows_with_the_bytes_that_are_left(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole").read_bytes()
    rng = np.random.default_rng(5)
    cuts = sorted({0, 4, 8, 20, len(whole) - 1, *rng.integers(0, len(whole), 120).tolist()})
    cut_file = tmp_path / "cut.mcap"
    counts = []
    for cut in cuts:
        cut_file.write_bytes(whole[:cut])
        try:
            recording = open_bag(cut_file)
            counts.append(recovered(recording))
            assert "cut.mcap" in recording.lost
        except RecordingError as error:
            assert "\n" not in str(error) and "cut.mcap" in str(error) and error.remedy
            counts.append(0)
    assert counts == sorted(counts)
    assert counts[0] == 0 and counts[-1] == 200
    assert len(set(counts)) > 5


def test_nothing_to_recover_is_said(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(whole[:60])
    with pytest.raises(RecordingError, match="0 messages recovered from 60 bytes"):
        open_bag(tmp_path / "cut.mcap")


def test_a_damaged_chunk_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    file = record(tmp_path / "scratched")
    data = bytearray(file.read_bytes())
    middle = len(data) // 3
    data[middle : middle + 40] = bytes(40)
    file.write_bytes(data)
    recording = open_bag(file.parent)
    count = recovered(recording)
    assert 100 <= count < 200
    assert "1 of 10 chunks are damaged and lost" in recording.lost
    assert recovered(open_bag(file)) == count


def test_garbage_anywhere_never_raises_an_untyped_exception(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole", 60).read_bytes()
    rng = np.random.default_rng(8)
    file = tmp_path / "garbage.mcap"
    for place in rng.integers(8, len(whole) - 16, 60).tolist():
        data = bytearray(whole)
        data[place : place + 8] = rng.bytes(8)
        file.write_bytes(data)
        try:
            assert recovered(open_bag(file)) <= 60
        except RecordingError as error:
            assert "\n" not in str(error)


def test_a_flipped_bit_never_changes_a_value(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole", 60).read_bytes()
    rng = np.random.default_rng(9)
    file = tmp_path / "flipped.mcap"
    for place in rng.integers(8, len(whole) // 2, 150).tolist():
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(data)
        try:
            values = open_bag(file).twists("/cmd_vel").twist
        except RecordingError:
            continue
        assert set(values[:, 0].tolist()) <= set(range(60)) and not values[:, 1:].any()


def test_a_split_recording_with_a_cut_last_file_is_read_and_the_loss_named(tmp_path: Path) -> None:
    folder = tmp_path / "split"
    folder.mkdir()
    first, second = record(tmp_path / "a"), record(tmp_path / "b")
    shutil.copy(first, folder / "split_0.mcap")
    (folder / "split_1.mcap").write_bytes(second.read_bytes()[: second.stat().st_size // 2])
    recording = open_bag(folder)
    assert 200 < recovered(recording) < 400
    assert "split_1.mcap" in recording.lost and "split_0.mcap" not in recording.lost
    (folder / "split_1.mcap").write_bytes(b"nothing")
    recording = open_bag(folder)
    assert recovered(recording) == 200 and "split_1.mcap" in recording.lost


def test_a_file_named_by_metadata_but_missing_is_said(tmp_path: Path) -> None:
    file = record(tmp_path / "moved")
    file.rename(file.with_name("renamed_0.mcap"))
    recording = open_bag(file.parent)
    assert recovered(recording) == 200
    assert "moved_0.mcap" in recording.lost


def test_metadata_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    file = record(tmp_path / "run")
    listing = file.with_name("metadata.yaml")
    listing.write_text(listing.read_text().replace("message_count: ", "message_count: &count ", 1) + "  more: *count\n")
    recording = open_bag(tmp_path / "run")
    assert recovered(recording) > 0 and recording.lost.startswith("metadata.yaml is not used: ")


def test_a_file_that_metadata_list_twice_counts_once(tmp_path: Path) -> None:
    file = record(tmp_path / "run")
    listing = file.with_name("metadata.yaml")
    entry = f"  - {file.name}\n"
    text = listing.read_text()
    assert text.count(entry) == 1
    listing.write_text(text.replace(entry, 2 * entry))
    recording = open_bag(tmp_path / "run")
    assert recovered(recording) == 200 and "listed twice" in recording.lost


def test_a_repaired_copy_beside_the_original_is_not_read_twice(tmp_path: Path) -> None:
    file = record(tmp_path / "twice")
    shutil.copy(file, file.with_name("repaired.mcap"))
    assert recovered(open_bag(file.parent)) == 200
    file.write_bytes(file.read_bytes()[:-30])
    assert recovered(open_bag(file.parent)) == 200


def sqlite_bag(folder: Path) -> Path:
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection("/cmd_vel", TWIST, typestore=jazzy_types())
        for row in range(2000):
            writer.write(connection, START + row * STEP, twist_cdr((row, 0, 0)))
    return folder / f"{folder.name}.db3"


def test_a_cut_sqlite_bag_is_refused_with_the_way_to_repair_it(tmp_path: Path) -> None:
    file = sqlite_bag(tmp_path / "cut")
    whole = file.read_bytes()
    for share in (0.02, 0.3, 0.7, 0.95):
        file.write_bytes(whole[: int(len(whole) * share)])
        for path in (file, file.parent):
            with pytest.raises(RecordingError) as caught:
                open_bag(path).twists("/cmd_vel")
            assert "\n" not in str(caught.value) and "sqlite3 cut.db3 .recover" in str(caught.value)


def test_a_sqlite_bag_with_damaged_rows_is_read_once_more_and_then_refused(tmp_path: Path, monkeypatch) -> None:
    file = sqlite_bag(tmp_path / "rows")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE messages SET data = zeroblob(3) WHERE id = 1000")
    database.close()
    recording = open_bag(file)
    passes, read = [], RosbagsSource.messages

    def counted(source: RosbagsSource, topic: str):
        passes.append(topic)
        if len(passes) > 9:
            pytest.fail("it is read again and again")
        return read(source, topic)

    monkeypatch.setattr(RosbagsSource, "messages", counted)
    with pytest.raises(RecordingError, match="sqlite3 rows.db3 .recover") as caught:
        recording.twists("/cmd_vel")
    assert "\n" not in str(caught.value)
    assert len(passes) <= 4  # decoder and bytes, of two passes


def test_rows_left_in_a_write_ahead_log_are_said(tmp_path: Path) -> None:
    file = sqlite_bag(tmp_path / "wal")
    file.with_name("wal.db3-wal").write_bytes(b"rows")
    recording = open_bag(file)
    assert recovered(recording) == 2000
    assert "wal.db3-wal" in recording.lost and "wal_checkpoint" in recording.lost


def test_a_cut_ros1_bag_is_refused_with_the_way_to_repair_it(tmp_path: Path) -> None:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    file = tmp_path / "old.bag"
    with Writer(file) as writer:
        connection = writer.add_connection("/cmd_vel", TWIST, typestore=store)
        for row in range(200):
            raw = store.cdr_to_ros1(twist_cdr((row, 0, 0)), TWIST)
            writer.write(connection, START + row * STEP, raw)
    assert recovered(open_bag(file)) == 200
    whole = file.read_bytes()
    for share in (0.01, 0.3, 0.7, 0.99):
        file.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(RecordingError) as caught:
            open_bag(file).twists("/cmd_vel")
        assert "\n" not in str(caught.value) and "rosbag reindex old.bag" in str(caught.value)
