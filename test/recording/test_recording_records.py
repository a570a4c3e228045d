"""Single records and messages of bags: how damaged ones end, and what their bytes say."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from youbot_dynamics.recording.bag import _decode, open_bag
from youbot_dynamics.recording.bag._recovery import _split
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, TWIST, jazzy_types, joint_state_cdr, twist_cdr
from youbot_dynamics.recording.series import JointSamples

START = 1_700_000_000_000_000_000


class Stream(BytesIO):
    """Bytes that keep how many were asked for at once."""

    longest = 0

    def read(self, size: int | None = -1) -> bytes:
        self.longest = max(self.longest, size or 0)
        return super().read(size)


@pytest.mark.parametrize("length", [9, 1 << 40])
def test_a_record_longer_than_what_is_left_ends_the_reading_without_a_long_read(length: int) -> None:
    whole = struct.pack("<BQ", 3, 4) + b"good"
    stream = Stream(whole + struct.pack("<BQ", 4, length) + b"short")
    records = _split(stream, 26)
    assert next(records) == (3, b"good")
    with pytest.raises(EOFError):
        next(records)
    assert stream.longest < 100


def test_a_cut_file_has_each_topics_own_messages_and_tells_their_time(tmp_path: Path) -> None:
    """A time beyond 2^63 ns is no time; its message is left out everywhere."""
    with BagWriter(tmp_path / "whole", {}) as writer:
        for topic in ("/cmd_vel", "/other"):
            writer.add_topic(topic, TWIST)
        for row in range(300):
            writer.write("/cmd_vel", twist_cdr((row, 0, 0)), START + row * 50_000_000)
            writer.write("/other", twist_cdr((0, row, 0)), START + row * 50_000_000)
            if row == 3:
                writer.write("/cmd_vel", twist_cdr((-1, 0, 0)), (1 << 63) + 5)
    cut = tmp_path / "cut.mcap"
    data = (tmp_path / "whole" / "whole_0.mcap").read_bytes()
    cut.write_bytes(data[: len(data) // 2])
    recording = open_bag(cut)
    commands, others = recording.twists("/cmd_vel"), recording.twists("/other")
    count = len(commands.received)
    assert 100 < count < 300
    np.testing.assert_array_equal(commands.twist[:, 0], np.arange(count))
    np.testing.assert_array_equal(others.twist[:, 1], np.arange(len(others.received)))
    assert f"messages over {0.05 * (count - 1):.3f} s recovered" in recording.lost


def test_yaw_of_tilted_quaternions_is_the_heading_of_the_x_axis() -> None:
    quaternions = Rotation.from_euler("ZYX", np.random.default_rng(1).uniform(-1.2, 1.2, (40, 3))).as_quat()
    x_axes = Rotation.from_quat(quaternions).apply([1.0, 0.0, 0.0])
    np.testing.assert_allclose(_decode.yaw_of(quaternions), np.arctan2(x_axes[:, 1], x_axes[:, 0]), atol=1e-12)


def test_joint_states_of_one_size_but_other_counts_are_told_apart() -> None:
    """The effort of the second looks like the count of the first: only its count of speeds differs."""
    lookalike = struct.unpack("<d", struct.pack("<II", 1, 0x3FF00000))[0]
    samples = JointSamples(lambda raw: jazzy_types().deserialize_cdr(raw, JOINT_STATE))
    for velocity, effort in (([1.0, 2.0], [3.0]), ([4.0], [5.0, lookalike]), ([4.0], [lookalike, 5.0])):
        sample = samples(joint_state_cdr(START, ["a", "b"], [0.1, 0.2], velocity, effort))
        found = [np.frombuffer(values).tolist() for values in (sample.position, sample.velocity, sample.effort)]
        assert found == [[0.1, 0.2], velocity, effort]
