"""A recording as the stages of an identification see it: opened, numbered, with how the user wants it read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from youbot_dynamics.errors import ParameterError, RecordingError
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.recording.text_log import TextLog, read_text_log
from youbot_dynamics.robot import Robot

_BAG_FILES = (".mcap", ".db3", ".bag")


@dataclass(frozen=True)
class Options:
    """How recordings are read.

    Args:
        topics: role -> topic, where the user overrides.
        columns: description of the columns of text logs, "" if only bags are expected.
        pose_topic: topic with the pose of the base, "" to look for one.
        motors_off: (begin, end) of spans in which the base coasted, in seconds after the first wheel state of each
            recording: a bag does not hold the service calls that switch motors off.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    columns: str = ""
    pose_topic: str = ""
    motors_off: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Source:
    """A recording that was read.

    Args:
        path: as given.
        sha256: of its data.
        clock: which clock the times of its signals are of, "" where no stage compared any.
        signals: topics or columns that were compared.
        robot_id: as recorded, "" if it does not say.
        lost: what could not be read of it, "" for nothing.
    """

    path: str
    sha256: str
    clock: str
    signals: str
    robot_id: str
    lost: str


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened recording.

    Args:
        path: as given.
        number: of the recording within the identification, 0 for the first.
        options: how the user wants it read.
        recording: the bag, None for a text log.
        log: the text log, None for a bag.
    """

    path: Path
    number: int
    options: Options
    recording: Recording | None = None
    log: TextLog | None = None

    def bag(self) -> Recording:
        """The bag.

        Raises:
            RecordingError: it is a text log, which holds no topics.
        """
        if self.recording is None:
            raise RecordingError(str(self.path), got="a text log", expected="a bag with topics")
        return self.recording

    @property
    def sha256(self) -> str:
        """Hash of its data in hexadecimal digits."""
        return self.log.sha256 if self.log is not None else self.bag().sha256

    @property
    def robot_id(self) -> str:
        """Robot it was recorded of, "" if it does not say."""
        return "" if self.recording is None else self.recording.metadata.get("robot_id", "")

    @property
    def lost(self) -> str:
        """What could not be read of it so far, "" for nothing."""
        return "" if self.recording is None else self.recording.lost


def open_recording(path: Path, number: int, robot: Robot, options: Options) -> Opened:
    """Open a bag, or a text log where its columns are described.

    Args:
        path: rosbag2 folder, .mcap, .db3, .bag, or a text file with `options.columns`.
        number: of the recording within the identification.
        robot: it must belong to.
        options: how to read it.

    Raises:
        RecordingError: it cannot be read.
        ParameterError: it says to be of another robot.
    """
    if options.columns and path.is_file() and path.suffix not in _BAG_FILES:
        return Opened(path, number, options, log=read_text_log(path, options.columns))
    try:
        recording = open_bag(path)
    except OSError as problem:
        raise RecordingError(str(path), got=str(problem.strerror), expected="a recording that can be read") from None
    opened = Opened(path, number, options, recording=recording)
    if opened.robot_id and opened.robot_id != robot.robot_id:
        raise ParameterError(
            f"recording {path}",
            got=f"robot '{opened.robot_id}'",
            expected=f"robot '{robot.robot_id}'",
            remedy="identify it with the parameter file of its own robot: --params-file",
        )
    return opened
