"""Bags as time series: selection by joint name, stamps, errors."""

from __future__ import annotations

import builtins
import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from mcap.writer import Writer

from youbot_dynamics.errors import RecordingError, ResourceError
from youbot_dynamics.recording.bag import _decode, _source, open_bag
from youbot_dynamics.recording.bag._angles import unwrapped
from youbot_dynamics.recording.bag._decode import longest_nondecreasing
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import (
    DYNAMIC_JOINT_STATE,
    JOINT_STATE,
    definition_of,
    jazzy_types,
    joint_state_cdr,
    odometry_cdr,
    pose_stamped_cdr,
    twist_cdr,
    twist_stamped_cdr,
)

START = 1_700_000_000_250_000_000
STEP = 20_000_000
WHEELS = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")
ARM = tuple(f"arm_joint_{number}" for number in range(1, 6))
TYPES = {
    "/driver/joint_states": "sensor_msgs/msg/JointState",
    "/odom": "nav_msgs/msg/Odometry",
    "/cmd_vel": "geometry_msgs/msg/Twist",
    "/cmd_vel_stamped": "geometry_msgs/msg/TwistStamped",
    "/mocap": "geometry_msgs/msg/PoseStamped",
    "/silent": "geometry_msgs/msg/Twist",
}


def drive(count: int = 100) -> list[tuple[str, bytes, int]]:
    """Messages of a drive: wheel and arm messages take turns on one topic."""
    messages = []
    for row in range(count):
        stamp = START + row * STEP
        received = stamp + 1_000_000
        wheels = joint_state_cdr(stamp, WHEELS, np.full(4, row), np.full(4, 2.0 * row))
        arm = joint_state_cdr(stamp + 5, ARM, np.full(5, -row), np.full(5, 0.5), np.full(5, 3.0))
        messages += [
            ("/driver/joint_states", wheels, received),
            ("/driver/joint_states", arm, received + 10),
            (
                "/odom",
                odometry_cdr(stamp, "odom", "base_footprint", (row, 2, 3.5), (0.1, 0.2, 0.3)),
                received,
            ),
            ("/cmd_vel", twist_cdr((row, -row, 0.5)), received),
            ("/cmd_vel_stamped", twist_stamped_cdr(stamp, "base_footprint", (row, 0, 0)), received),
            ("/mocap", pose_stamped_cdr(stamp, "world", (1, 2, -math.pi)), received),
        ]
    return messages


def record(folder: Path, messages: list[tuple[str, bytes, int]], metadata: dict[str, str] | None = None) -> Path:
    with BagWriter(folder, metadata or {}) as writer:
        for topic, type_name in TYPES.items():
            writer.add_topic(topic, type_name)
        for topic, data, received in messages:
            writer.write(topic, data, received)
    return folder


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("bags") / "drive", drive(), {"robot_id": "yb-7", "note": "a: b\n'c\""})


def rosbags_copy(folder: Path, messages: list[tuple[str, bytes, int]], storage: str, compression: str = "NONE") -> Path:
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    writer = Writer(folder, version=9, storage_plugin=StoragePlugin[storage])
    writer.set_compression(CompressionMode[compression], CompressionFormat.ZSTD)
    with writer:
        connections = {
            topic: writer.add_connection(topic, type_name, typestore=jazzy_types())
            for topic, type_name in TYPES.items()
        }
        for topic, data, received in messages:
            writer.write(connections[topic], received, data)
    return folder


def one_line(error: RecordingError, *parts: str) -> None:
    text = str(error)
    assert "\n" not in text
    for part in parts:
        assert part in text, f"{part!r} is missing in: {text}"
    assert error.remedy


def test_joints_are_selected_by_name_and_messages_without_them_skipped(bag: Path) -> None:
    wheels = open_bag(bag).joint_states("/driver/joint_states", ["wheel_joint_br", "wheel_joint_fl"])
    assert wheels.names == ("wheel_joint_br", "wheel_joint_fl")
    assert wheels.position.shape == (100, 2)
    np.testing.assert_array_equal(wheels.velocity[:, 1], 2.0 * np.arange(100))
    assert np.isnan(wheels.effort).all()
    assert wheels.rejected == 0


def test_joint_names_of_a_topic_are_those_named_together(bag: Path) -> None:
    assert open_bag(bag).joint_names("/driver/joint_states") == {WHEELS, ARM}


def test_times_are_seconds_after_a_whole_second_and_exact(bag: Path) -> None:
    recording = open_bag(bag)
    wheels = recording.joint_states("/driver/joint_states", WHEELS)
    assert recording.origin == 1_700_000_000_000_000_000
    np.testing.assert_allclose(wheels.stamp, 0.25 + 0.02 * np.arange(100), rtol=0, atol=1e-12)
    np.testing.assert_allclose(wheels.received - wheels.stamp, 0.001, rtol=0, atol=1e-12)


def test_twists_and_poses_are_planar(bag: Path) -> None:
    recording = open_bag(bag)
    unstamped = recording.twists("/cmd_vel")
    assert unstamped.stamp is None
    assert unstamped.twist[7].tolist() == [7.0, -7.0, 0.5]
    stamped = recording.twists("/cmd_vel_stamped")
    assert stamped.stamp is not None and stamped.stamp[0] == pytest.approx(0.25)
    odometry = recording.poses("/odom")
    np.testing.assert_allclose(odometry.pose[5], [5, 2, 3.5 - 2 * math.pi])
    mocap = recording.poses("/mocap")
    np.testing.assert_allclose(mocap.pose[0], [1, 2, math.pi])


def test_results_are_read_only(bag: Path) -> None:
    wheels = open_bag(bag).joint_states("/driver/joint_states", WHEELS)
    with pytest.raises(ValueError, match="read-only"):
        wheels.position[0, 0] = 1.0


def test_a_topic_is_decoded_once(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = open_bag(bag)
    recording.joint_states("/driver/joint_states", WHEELS)
    recording.twists("/cmd_vel")
    monkeypatch.setattr(recording, "_messages", lambda *_: pytest.fail("decoded again"))
    recording.joint_states("/driver/joint_states", ARM)
    recording.twists("/cmd_vel")


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
@pytest.mark.parametrize("form", ["folder", "file", "folder without metadata.yaml"])
def test_bags_of_other_writers_give_the_same_series(tmp_path: Path, bag: Path, storage: str, form: str) -> None:
    folder = rosbags_copy(tmp_path / "other", drive(), storage)
    data = next(path for path in folder.iterdir() if path.suffix in (".mcap", ".db3"))
    if form == "folder without metadata.yaml":
        (folder / "metadata.yaml").unlink()
    other, ours = open_bag(data if form == "file" else folder), open_bag(bag)
    assert dict(other.topics) == dict(ours.topics)
    assert other.lost == ""
    for mine, theirs in (
        (
            ours.joint_states("/driver/joint_states", WHEELS),
            other.joint_states("/driver/joint_states", WHEELS),
        ),
        (ours.joint_states("/driver/joint_states", ARM), other.joint_states("/driver/joint_states", ARM)),
    ):
        np.testing.assert_array_equal(mine.stamp, theirs.stamp)
        np.testing.assert_array_equal(mine.position, theirs.position)
        np.testing.assert_array_equal(mine.effort, theirs.effort)
    np.testing.assert_array_equal(ours.poses("/odom").pose, other.poses("/odom").pose)


@pytest.mark.parametrize(
    ("storage", "compression"),
    [("MCAP", "FILE"), ("MCAP", "MESSAGE"), ("MCAP", "STORAGE"), ("SQLITE3", "FILE"), ("SQLITE3", "MESSAGE")],
)
def test_compressed_bags_are_read(tmp_path: Path, storage: str, compression: str) -> None:
    recording = open_bag(rosbags_copy(tmp_path / "small", drive(20), storage, compression))
    assert recording.joint_states("/driver/joint_states", WHEELS).position.shape == (20, 4)
    data = next(path for path in recording.path.iterdir() if path.name != "metadata.yaml")
    assert recording.sha256 == hashlib.sha256(data.read_bytes()).hexdigest()


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
def test_a_compressed_file_without_its_metadata_asks_to_be_unpacked(tmp_path: Path, storage: str) -> None:
    folder = rosbags_copy(tmp_path / "small", drive(20), storage, "FILE")
    (folder / "metadata.yaml").unlink()
    file = next(folder.iterdir())
    for path in (folder, file):
        with pytest.raises(RecordingError, match=f"{file.name}: got a file compressed as a whole.*zstd -d {file.name}"):
            open_bag(path)


def test_a_name_too_long_for_any_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no such file or folder"):
        open_bag(tmp_path / ("x" * 300))


def test_fast_joint_decoder_agrees_with_rosbags_for_every_kind_of_message(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    messages, expected = [], []
    for row in range(200):
        size = int(rng.integers(0, 4))
        names = [f"joint_{'x' * int(rng.integers(0, 3))}{number}" for number in range(size)] + ["last"]
        fields = [rng.normal(size=size + 1) if rng.random() < 0.6 else None for _ in range(3)]
        frame = "f" * int(rng.integers(0, 3))
        messages.append(
            (
                "/driver/joint_states",
                joint_state_cdr(START + row, names, *fields, frame_id=frame),
                START + row,
            )
        )
        expected.append([np.nan if field is None else field[-1] for field in fields])
    series = open_bag(record(tmp_path / "kinds", messages)).joint_states("/driver/joint_states", ["last"])
    found = np.column_stack((series.position, series.velocity, series.effort))
    np.testing.assert_array_equal(found, np.array(expected, dtype=float))


def test_big_endian_messages_are_read(tmp_path: Path) -> None:
    store = jazzy_types()
    little = joint_state_cdr(START, WHEELS, np.arange(4.0), np.arange(4.0))
    message = store.deserialize_cdr(little, "sensor_msgs/msg/JointState")
    big = bytes(store.serialize_cdr(message, "sensor_msgs/msg/JointState", little_endian=False))
    messages = [("/driver/joint_states", data, START) for data in (little, big, little)]
    series = open_bag(record(tmp_path / "endian", messages)).joint_states("/driver/joint_states", WHEELS)
    assert series.position.tolist() == [[0.0, 1.0, 2.0, 3.0]] * 3


@pytest.mark.parametrize("joints", [WHEELS, ARM])
def test_messages_decoded_together_equal_those_decoded_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joints: tuple[str, ...]
) -> None:
    store, kind, messages = jazzy_types(), "sensor_msgs/msg/JointState", []
    for row in range(1200):
        values = np.random.default_rng(row).normal(size=(3, len(joints)))
        values[0, row % 3] = (np.nan, _decode._MARK, 0.0)[row % 7 % 3]
        names = joints if row % 5 else tuple(reversed(joints))  # the same size, other texts
        effort = values[2] if row % 4 else None
        data = joint_state_cdr(START + row, names, values[0], values[1], effort, frame_id=("abc", "abd")[row % 2])
        if row % 11 == 0:
            data = bytes(store.serialize_cdr(store.deserialize_cdr(data, kind), kind, little_endian=False))
        messages.append(("/driver/joint_states", data, START + row))
    bag = record(tmp_path / "mixed", messages)
    together = open_bag(bag).joint_states("/driver/joint_states", joints)
    monkeypatch.setattr(_decode, "_MOST_LAYOUTS", 0)
    alone = open_bag(bag).joint_states("/driver/joint_states", joints)
    assert len(alone.stamp) == 1200
    for field in ("stamp", "received", "position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(together, field), getattr(alone, field))


@pytest.mark.parametrize("apart", [1000, 0, -500], ids=["apart", "at one time", "overlapping"])
def test_chunks_give_the_messages_in_the_order_of_rosbags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    writer = Writer(str(tmp_path / "chunks.mcap"), chunk_size=4000)
    writer.start("ros2", "")
    schema = writer.register_schema(TYPES["/cmd_vel"], "ros2msg", definition_of(TYPES["/cmd_vel"]).encode())
    channel = writer.register_channel("/cmd_vel", "cdr", schema)
    for row in range(400):
        time = START + row // 40 * (1000 + apart) + row % 40 * 1000 // 39
        writer.add_message(channel, time, twist_cdr((row, 0, 0)), time)
    writer.finish()
    fast = open_bag(tmp_path / "chunks.mcap").twists("/cmd_vel").twist
    monkeypatch.setattr(_source, "_chunked", lambda reader: [])
    assert len(fast) == 400
    np.testing.assert_array_equal(fast, open_bag(tmp_path / "chunks.mcap").twists("/cmd_vel").twist)


def test_messages_are_sorted_by_receive_time_across_split_files(tmp_path: Path) -> None:
    messages = drive(30)
    for number, part in enumerate((messages[:60], messages[60:120], messages[120:])):
        folder = record(tmp_path / f"part{number}", part)
        target = tmp_path / "split" / f"split_{number + 8}.mcap"
        target.parent.mkdir(exist_ok=True)
        (folder / f"part{number}_0.mcap").rename(target)
    recording = open_bag(tmp_path / "split")
    assert recording.topics["/odom"].count == 30
    assert recording.poses("/odom").pose[:, 0].tolist() == list(range(30))
    assert recording.lost == ""


def test_messages_received_out_of_order_are_sorted(tmp_path: Path) -> None:
    messages = drive(20)
    shuffled = [messages[place] for place in np.random.default_rng(1).permutation(len(messages))]
    recording = open_bag(record(tmp_path / "shuffled", shuffled))
    assert recording.poses("/odom").pose[:, 0].tolist() == list(range(20))
    assert recording.poses("/odom").rejected == 0


def test_one_stamp_in_the_future_costs_one_message(tmp_path: Path) -> None:
    rows = list(range(10))
    stamps = [START + row * STEP for row in rows]
    stamps[4] += 3_600_000_000_000
    messages = [
        ("/driver/joint_states", joint_state_cdr(stamp, WHEELS, np.full(4, row)), START + row * STEP)
        for row, stamp in zip(rows, stamps, strict=True)
    ]
    series = open_bag(record(tmp_path / "glitch", messages)).joint_states("/driver/joint_states", WHEELS)
    assert series.rejected == 1
    assert series.position[:, 0].tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_messages_without_a_stamp_are_rejected_among_stamped_ones_and_kept_alone(tmp_path: Path) -> None:
    def series(name: str, stamps: list[int]):  # type: ignore[no-untyped-def]
        messages = [
            ("/driver/joint_states", joint_state_cdr(stamp, WHEELS, np.zeros(4)), START + row)
            for row, stamp in enumerate(stamps)
        ]
        return open_bag(record(tmp_path / name, messages)).joint_states("/driver/joint_states", WHEELS)

    mixed = series("mixed", [START, 0, START + 2])
    assert mixed.rejected == 1 and mixed.stamp.size == 2
    unset = series("unset", [0, 0, 0])
    assert unset.rejected == 0 and np.isnan(unset.stamp).all()


def test_fields_of_the_wrong_length_and_impossible_quaternions_are_rejected(tmp_path: Path) -> None:
    store = jazzy_types()
    pose = store.deserialize_cdr(pose_stamped_cdr(START, "world", (0, 0, 0)), TYPES["/mocap"])
    pose.pose.orientation.w = 0.0  # type: ignore[attr-defined]
    messages = [
        ("/driver/joint_states", joint_state_cdr(START, WHEELS, np.zeros(3)), START),
        ("/driver/joint_states", joint_state_cdr(START, WHEELS, *[np.zeros(4)] * 3), START),
        ("/driver/joint_states", joint_state_cdr(START, WHEELS, np.zeros(4), [1.0] * 3, [1.0] * 5), START),
        ("/mocap", bytes(store.serialize_cdr(pose, TYPES["/mocap"])), START),
        ("/mocap", pose_stamped_cdr(START, "world", (0, 0, 0)), START),
    ]
    recording = open_bag(record(tmp_path / "bad", messages))
    joints = recording.joint_states("/driver/joint_states", WHEELS)
    assert joints.rejected == 2 and joints.position.shape == (1, 4)
    assert recording.poses("/mocap").rejected == 1


def test_dynamic_joint_states_without_one_value_for_each_joint_are_rejected(tmp_path: Path) -> None:
    types, topic = jazzy_types(), "/dynamic_joint_states"
    interface, made = (types.types[name] for name in ("control_msgs/msg/InterfaceValue", DYNAMIC_JOINT_STATE))
    plain = types.deserialize_cdr(joint_state_cdr(START, WHEELS), JOINT_STATE)
    writer = BagWriter(tmp_path / "bag", {})
    writer.add_topic(topic, DYNAMIC_JOINT_STATE)
    for k, told in enumerate((4, 3, 0, 4)):
        values = [interface(["position"], np.array([float(k)])) for _ in range(told)]
        raw = types.serialize_cdr(made(plain.header, list(WHEELS), values), DYNAMIC_JOINT_STATE)
        writer.write(topic, bytes(raw), START + k * STEP)
    writer.close()
    states = open_bag(tmp_path / "bag").joint_states(topic, WHEELS)
    assert states.rejected == 1
    np.testing.assert_array_equal(states.position[[0, -1]], [[0.0] * 4, [3.0] * 4])
    assert np.isnan(states.velocity).all()


def test_longest_nondecreasing_is_longest_and_ordered() -> None:
    rng = np.random.default_rng(0)
    for k in range(60):
        values = rng.integers(0, 6, size=k % 9)
        rows = longest_nondecreasing(values)
        assert (np.diff(rows) > 0).all() and (np.diff(values[rows]) >= 0).all()
        subsets = ([row for row in range(k % 9) if mask >> row & 1] for mask in range(2 ** (k % 9)))
        best = max(len(subset) for subset in subsets if (np.diff(values[subset]) >= 0).all())
        assert rows.size == best


def test_metadata_and_hash_come_with_the_recording(bag: Path) -> None:
    recording = open_bag(bag)
    assert recording.metadata == {"robot_id": "yb-7", "note": "a: b\n'c\""}
    assert open_bag(bag / "drive_0.mcap").metadata == recording.metadata
    assert recording.sha256 == hashlib.sha256((bag / "drive_0.mcap").read_bytes()).hexdigest()


def test_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError) as caught:
        open_bag(tmp_path / "nothing")
    one_line(caught.value, "nothing", "no such file", "check the spelling")


@pytest.mark.parametrize("content", [None, "readme.txt"])
def test_folder_without_a_bag_is_refused(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / content).write_text("hello")
    with pytest.raises(RecordingError) as caught:
        open_bag(tmp_path)
    one_line(caught.value, str(tmp_path), content or "empty folder", "name the folder or file")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("log.mcap", b"t,x\n1,2\n", "which is not the start of a bag"),
        ("log.mcap", b"", "an empty file"),
        ("log.csv", b"t,x\n1,2\n", "--columns"),
        ("log.db3", b"\x89MCAP0\r\n" + b"\0" * 40, "rename it to log.mcap"),
    ],
)
def test_file_that_is_no_bag_is_refused(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RecordingError) as caught:
        open_bag(tmp_path / name)
    one_line(caught.value, name, says)


def test_unknown_topic_names_the_nearest_first(bag: Path) -> None:
    with pytest.raises(RecordingError) as caught:
        open_bag(bag).twists("/cmd_vel_stampd")
    one_line(caught.value, "/cmd_vel_stampd", "one of /cmd_vel_stamped", "/odom", "name one of the topics")


def test_topic_of_another_type_names_both(bag: Path) -> None:
    with pytest.raises(RecordingError) as caught:
        open_bag(bag).poses("/cmd_vel")
    one_line(caught.value, "/cmd_vel", "got geometry_msgs/msg/Twist", "nav_msgs/msg/Odometry")


def test_topic_without_messages_says_so(bag: Path) -> None:
    with pytest.raises(RecordingError) as caught:
        open_bag(bag).twists("/silent")
    one_line(caught.value, "/silent", "no messages")


def test_missing_joints_are_named_with_those_found(bag: Path) -> None:
    with pytest.raises(RecordingError) as caught:
        open_bag(bag).joint_states("/driver/joint_states", ["wheel_joint_fl", "wheel_joint_rl"])
    one_line(caught.value, "got joints wheel_joint_fl", "arm_joint_5", "messages that name wheel_joint_rl")


def test_joints_of_separate_messages_are_put_together(bag: Path) -> None:
    joints = ["wheel_joint_fl", "arm_joint_1"]
    together = open_bag(bag).joint_states("/driver/joint_states", joints)
    apart = [open_bag(bag).joint_states("/driver/joint_states", [name]) for name in joints]
    assert 0 < len(together.stamp) <= len(apart[0].stamp) and set(together.stamp) <= set(apart[0].stamp)
    for k, alone in enumerate(apart):
        expected = np.interp(together.stamp, alone.stamp, alone.position[:, 0])
        np.testing.assert_allclose(together.position[:, k], expected)


def test_missing_package_says_how_to_get_it(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_rosbags(name: str, *arguments, **keywords):  # type: ignore[no-untyped-def]
        if name.split(".")[0] == "rosbags":
            raise ModuleNotFoundError("No module named 'rosbags'", name="rosbags")
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_rosbags)
    with pytest.raises(ResourceError, match=r"pip install 'youbot_dynamics\[bags\]'") as caught:
        open_bag(bag)
    assert "\n" not in str(caught.value)


def test_commands_without_a_stamp_among_stamped_ones_keep_their_place(tmp_path: Path) -> None:
    """The stop that some teleoperation sends without a stamp was left out, and the last speed seemed to be held."""
    late, messages = 3_000_000, []
    for row in range(50):
        stamp, stop = START + row * STEP, row % 10 == 9
        twist = twist_stamped_cdr(0 if stop else stamp, "base_footprint", (0.0 if stop else 0.3, 0.0, 0.0))
        messages.append(("/cmd_vel_stamped", twist, stamp + late + 1_000_000 * (row % 3)))
    twists = open_bag(record(tmp_path / "stops", messages)).twists("/cmd_vel_stamped")
    assert twists.rejected == 0 and twists.twist[:, 0].tolist() == [0.0 if row % 10 == 9 else 0.3 for row in range(50)]
    assert np.diff(twists.stamp) == pytest.approx(0.02, abs=2e-3)
    messages[20] = (
        messages[20][0],
        twist_stamped_cdr(START + 10**13, "base_footprint", (0.3, 0.0, 0.0)),
        messages[20][2],
    )
    broken = open_bag(record(tmp_path / "one bad stamp", messages)).twists("/cmd_vel_stamped")
    assert broken.rejected == 1 and np.ptp(broken.stamp) < 1.0


WRAPPED = 20.0 * np.sin(0.5 * np.arange(0.0, 60.0, 0.05))  # [rad], at 20 Hz


@pytest.mark.parametrize("size", [2.0 * np.pi, 65536 * 2.0 * np.pi / 20000.0])
def test_angles_that_start_again_at_the_end_of_their_range_are_put_together(tmp_path: Path, size: float) -> None:
    angles = np.column_stack([(WRAPPED + start) % size for start in (0.0, 1.0, 2.0)] + [WRAPPED])
    angles[7, 1] = np.nan
    lost = range(200, 206)  # a gap of the recording costs no leap elsewhere
    messages = [
        ("/driver/joint_states", joint_state_cdr(START + k * STEP, WHEELS, row), START + k * STEP)
        for k, row in enumerate(angles)
        if k not in lost
    ]
    series = open_bag(record(tmp_path / "wrapped", messages)).joint_states("/driver/joint_states", WHEELS)
    together = series.position - series.position[0]
    true = np.delete(WRAPPED - WRAPPED[0], lost)
    sound = np.arange(len(true)) != 7
    assert together[sound] == pytest.approx(true[sound, None] * np.ones(4), abs=0.02)
    assert series.ranges == pytest.approx((size, size, size, 0.0), abs=0.02) and np.isnan(series.position[7, 1])


@pytest.mark.parametrize("motion", ["corrupt", "steps", "rest", "sine"])
def test_other_angles_that_leap_are_left_alone(motion: str) -> None:
    time = np.arange(0.0, 60.0, 0.05)
    angles = {
        "corrupt": WRAPPED + 100.0 * (np.arange(len(time)) == 500),
        "steps": 4.0 * (np.floor(time / 3.0) % 2.0),  # read more slowly than the joint moves
        "rest": np.zeros(len(time)),
        "sine": 3.0 * np.sin(15.0 * time),
    }[motion]
    kept, ranges = unwrapped(time, angles[:, None])
    assert ranges.tolist() == [0.0] and kept[:, 0].tolist() == angles.tolist()
