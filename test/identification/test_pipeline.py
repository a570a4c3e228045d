"""The way from recordings to a robot that uses the result: phases, missing data, broken recordings, exit codes."""

from __future__ import annotations

import json
from collections import Counter
from functools import wraps
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arm_motions import ROBOT, truth_of
from command_line import exit_code
from friction_runs import STRAIGHT, TURNING, calibrated_truth, drive, stairs
from stage_bags import WHEELS, Row, arm_rows, base_rows, joint_state_cdr, nanoseconds, swing, write_rows

from youbot_dynamics.errors import IdentificationError, OutputError, RecordingError, YoubotDynamicsError
from youbot_dynamics.identification.finding import StageResult
from youbot_dynamics.identification.pipeline import Identification, fleet_worker, identify
from youbot_dynamics.identification.pipeline._extraction import HereWorker, Task
from youbot_dynamics.identification.pipeline._pipeline import _add
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.message_types import odometry_cdr
from youbot_dynamics.report import write_outputs
from youbot_dynamics.robot import load_robot

FRICTION = "robot.base.friction"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("pipeline")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """A drive of the base with efforts and a swing of the arm."""
    return base_rows(drive(stairs(40.0, STRAIGHT + TURNING), calibrated_truth(3), 3))


@pytest.fixture(scope="module")
def bag(folder, rows) -> Path:
    return write_rows(folder / "drive", [*rows, *arm_rows(truth_of(1), swing(20.0), 1)])


@pytest.fixture(scope="module")
def found(bag) -> Identification:
    return identify([bag], ROBOT, Options(), only=("delay", "base_friction", "arm_friction"))


def test_a_bag_is_opened_once_and_each_of_its_topics_is_read_once(bag, monkeypatch):
    """By stages of several phases and the report together, with the worker of `youbot identify`."""
    stages = "delay", "body", "base_friction", "arm_friction"
    counts: Counter[tuple[str, str, str]] = Counter()

    def count(name: str) -> None:
        real = getattr(Recording, name)

        @wraps(real)
        def counted(recording: Recording, of: object, *joints: object) -> object:
            counts[name, str(of), str(joints)] += 1
            return real(recording, of, *joints)

        monkeypatch.setattr(Recording, name, counted)

    for name in ("__init__", "_messages", "joint_states"):
        count(name)
    with fleet_worker([bag], "") as worker:
        found = identify([bag], ROBOT, Options(), only=stages, worker=worker)
    assert {"delay", "base_friction", "arm_friction"} <= {stage.stage for stage in found.stages}
    topics = "/driver/joint_states", "/wheel_commands"
    read = {(how, topic) for how in ("_messages", "joint_states") for topic in topics}
    assert {(how, of) for how, of, _ in counts} == {("__init__", str(bag)), *read}
    assert set(counts.values()) == {1}, counts


def test_what_a_long_bag_holds_is_forgotten_between_the_phases_but_the_bag_stays_open(bag, monkeypatch):
    task = Task(bag, 0, ("delay",), ROBOT, Options())
    decoded = []
    for kept in (10**9, 0):
        worker = HereWorker(kept)
        found = [worker([task], lambda name: None)[0].parts["delay"].signals for _ in range(2)]
        opened = worker.opened(bag, 0, ROBOT, Options())
        assert found[0] == found[1] and opened.recording is worker.opened(bag, 0, ROBOT, Options()).recording
        decoded.append(len(opened.bag()._decoded))
    assert decoded[0] == 2 and decoded[1] == 0


def test_a_result_is_a_parameter_file_that_a_robot_starts_with(found, tmp_path):
    write_outputs(str(tmp_path), found, (), "test")
    with pytest.raises(OutputError, match="null byte"):
        write_outputs("null\0byte", found, (), "test")
    robot = load_robot(tmp_path / "result.yaml")
    for name, value in (
        ("robot.base.delay.effective_x", robot.base.delay.effective_x),
        (f"{FRICTION}.viscous_x", robot.base.friction.viscous_x),
        ("robot.arm.joint_4.friction.coulomb", robot.arm.joints[3].friction.coulomb),
    ):
        assert value == pytest.approx(found.result[name].estimate.value, rel=1e-12), name
    assert robot == found.result.applied_to(ROBOT)
    assert {"result.yaml", "robot.yaml", "result.json", "report.html", "exports"} == {
        path.name for path in tmp_path.iterdir()
    }


def test_friction_is_fitted_with_the_delays_found_before_it(found, bag):
    only = identify([bag], ROBOT, Options(), only=("base_friction",))
    with_delay, without = (one.result[f"{FRICTION}.viscous_x"].estimate.value for one in (found, only))
    assert with_delay != without
    known = found.result.applied_to(ROBOT)
    again = identify([bag], known, Options(), only=("base_friction",))
    assert again.result[f"{FRICTION}.viscous_x"].estimate.value == pytest.approx(with_delay, rel=1e-9)


def test_what_efforts_miss_between_two_commands_is_never_identified_as_the_robots(found):
    """Of equal drives each has another value, many of its errors apart: it depends on when the wheels are read."""
    missed = found.result["base.friction.missed_inertia_x"]
    low, high = missed.estimate.interval
    assert abs(missed.estimate.value) > high - low, "so that its width refuses it not"
    assert not missed.identified and "not a property of the robot" in missed.estimate.verdict


def test_what_the_recordings_lack_is_missing_and_no_failure_unless_it_was_asked_for(folder, rows):
    bare = write_rows(folder / "bare", [row for row in rows if row[1] == "/wheel_commands"] + without_effort(rows))
    found = identify([bare], ROBOT, Options())
    assert set(found.result.missing) >= {"calibration", "base_friction", "arm_friction", "thermal"}
    assert "no wheel effort" in found.result.missing["base_friction"]
    assert found.result["robot.base.delay.effective_x"].identified
    assert "delay" in found.result.requested and "base_friction" not in found.result.requested
    asked = identify([bare], ROBOT, Options(), only=("base_friction",))
    assert not asked.result.complete
    assert "no wheel effort" in asked.result[f"{FRICTION}.viscous_x"].estimate.verdict
    with pytest.raises(RecordingError, match="arm_joint_1"):
        identify([bare], ROBOT, Options(), only=("arm_friction",))


def without_effort(rows: list[Row]) -> list[Row]:
    """The states of the wheels as the standard driver sends them."""
    run_of = drive(stairs(40.0, STRAIGHT + TURNING), calibrated_truth(3), 3)
    return base_rows(run_of, effort=False, command=False)


def test_recordings_are_taken_together_and_a_broken_one_is_skipped(folder, rows, found):
    other = write_rows(folder / "other", base_rows(drive(stairs(40.0, TURNING + STRAIGHT), calibrated_truth(3), 7)))
    broken = folder / "broken.mcap"
    broken.write_bytes(b"no bag at all")
    first = write_rows(folder / "first", rows)
    both = identify([first, broken, other], ROBOT, Options(), only=("base_friction",))
    assert [Path(source.path).name for source in both.result.sources] == ["first", "other"]
    assert [Path(skipped.path).name for skipped in both.result.skipped] == ["broken.mcap"]
    assert any("broken.mcap was skipped" in note for note in both.notes)
    name = f"{FRICTION}.wheel_coulomb"
    assert both.result[name].samples > 1.8 * found.result[name].samples
    assert both.result[name].estimate.standard_error < found.result[name].estimate.standard_error


@pytest.mark.parametrize(
    ("paths", "words"),
    [([], "recordings: got none"), (None, "recordings: got None; expected a list of paths"), ([3], "a list of paths")],
)
def test_what_names_no_recording_is_refused(paths, words):
    with pytest.raises(RecordingError, match=words):
        identify(paths, ROBOT, Options())


def test_a_stage_that_there_is_not_is_refused_before_anything_is_read():
    for only in (("delai",), ("delay", "friction"), "delai"):
        with pytest.raises(IdentificationError, match="only: got '(delai|friction)'; expected names from calibration"):
            identify("nothing_here", ROBOT, Options(), only=only)


@pytest.mark.parametrize("paths", ["nothing_here", ["nothing_here"]])
def test_a_recording_may_be_named_by_a_text(paths):
    with pytest.raises(RecordingError, match="nothing_here: got no such file or folder"):
        identify(paths, ROBOT, Options())


def test_a_robot_that_stood_is_not_identifiable_and_nothing_recorded_is_an_error(folder):
    still = base_rows(drive(np.zeros((1000, 3)), calibrated_truth(3), 3))
    found = identify([write_rows(folder / "still", still)], ROBOT, Options())
    assert not found.result.complete and list(found.result.parameters()) == ["robot.robot_id"]
    few = write_rows(folder / "few", still[:30] + still[-30:])
    with pytest.raises(YoubotDynamicsError):
        identify([few], ROBOT, Options())
    with pytest.raises((RecordingError, IdentificationError), match="no states of wheel_joint_fl"):
        identify([write_rows(folder / "foreign", foreign_rows())], ROBOT, Options())


def foreign_rows() -> list[Row]:
    """Another robot's topics: its own joints under its own names."""
    names = [f"wheel_{k}" for k in range(4)]
    times = np.arange(0.0, 10.0, 0.02)
    return [(t, "/base/states", joint_state_cdr(nanoseconds(t), names, [t] * 4)) for t in times.tolist()]


def test_warnings_reach_the_result_the_terminal_and_the_report(folder, tmp_path, capsys):
    rows = []
    for t in np.arange(0.0, 30.0, 0.02).tolist():
        speed = np.array([1.0, 1.1, 0.9, 1.3]) * np.sin(1.3 * t) * np.array(ROBOT.driver.velocity_sign)
        angle = np.array([1.0, 1.1, 0.9, 1.3]) * (1.0 - np.cos(1.3 * t)) / 1.3
        state = joint_state_cdr(nanoseconds(t + 0.1), WHEELS, angle, 9.5493 * speed)
        wish = joint_state_cdr(nanoseconds(t), WHEELS, velocity=np.array([1.0, 1.1, 0.9, 1.3]) * np.sin(1.3 * t))
        rows += [(t + 0.1, "/driver/joint_states", state), (t, "/wheel_commands", wish)]
    bag = write_rows(folder / "rpm", rows)
    assert exit_code("identify", bag, "--out", tmp_path, "--only", "delay") == 0
    (told,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: "))
    assert "velocities look like revolutions per" in told and len(told) <= 80
    (warning,) = json.loads((tmp_path / "result.json").read_text())["warnings"]
    assert "revolutions per minute" in warning and warning.startswith("rpm: ")
    assert "revolutions per minute" in (tmp_path / "report.html").read_text()


def test_a_hole_in_a_recording_is_told_once_and_a_first_message_at_zero_has_a_stamp(folder, tmp_path):
    rows = []
    for t in [t for t in np.arange(0.0, 30.0, 0.02).tolist() if not 12.0 < t < 13.0]:
        speed, sign = np.full(4, np.sin(1.3 * t)), np.array(ROBOT.driver.velocity_sign)
        state = joint_state_cdr(nanoseconds(t + 0.1), WHEELS, np.full(4, (1.0 - np.cos(1.3 * t)) / 1.3), speed * sign)
        wish = joint_state_cdr(nanoseconds(t), WHEELS, velocity=speed)
        rows += [(t + 0.1, "/driver/joint_states", state), (t, "/wheel_commands", wish)]
    assert exit_code("identify", write_rows(folder / "hole", rows), "--out", tmp_path, "--only", "delay") in (0, 3)
    told = json.loads((tmp_path / "result.json").read_text())["warnings"]
    assert len(told) == 2 and all("49 messages are missing" in one for one in told), told


@pytest.mark.parametrize(
    ("stages", "code"),
    [
        ("delay", 0),
        pytest.param("base_friction,delay", 0, marks=pytest.mark.slow),
        ("arm_friction", 3),
        ("body", 3),
        ("thermal", 1),
        ("heat", 1),
    ],
)
def test_exit_codes_say_done_not_identifiable_or_refused(bag, tmp_path, stages, code):
    assert exit_code("identify", bag, "--out", tmp_path, "--only", stages) == code


@pytest.mark.parametrize("span", ["5", "5,4", "-1,4", "a,b", "nan,3", "1,inf"])
def test_spans_with_the_motors_off_are_checked(bag, tmp_path, capsys, span):
    assert exit_code("identify", bag, "--out", tmp_path, f"--motors-off={span}") == 1
    assert "BEGIN before END" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--pose-topic", "/nope"), "--pose-topic /nope in {bag}: got no such topic; expected one of /odom; correct"),
        (
            ("--topic", "wheel_states=/nope"),
            "wheel_states=/nope in {bag}: got no such topic; expected one of /driver/joi",
        ),
        (("--topic", "wheel_states=/odom"), "got a topic of type nav_msgs/msg/Odometry; expected one of /driver/joi"),
        (("--topic", "ground_truth=/wheel_commands"), "got a topic of type sensor_msgs/msg/JointState; expected one"),
        (("--topic", "imu=/nope"), "expected a topic of type sensor_msgs/msg/Imu, which it lacks; record such a topic"),
        (("--motors-off", "5,6", "--motors-off", "500,600"), "--motors-off 500,600 in {bag}: got a recording of"),
    ],
)
def test_a_choice_that_no_recording_has_ends_the_command(chosen_bag, tmp_path, capsys, words, told):
    out = tmp_path / "found"
    assert exit_code("identify", chosen_bag, "--only", "delay", "--out", out, *words) == 1
    assert told.format(bag=chosen_bag) in (said := capsys.readouterr().err), said
    assert not out.exists()


@pytest.fixture(scope="module")
def chosen_bag(folder, rows) -> Path:
    """A drive with odometry beside the wheels."""
    cdr = odometry_cdr(nanoseconds(0.1), "odom", "base_footprint", np.zeros(3), np.zeros(3))
    return write_rows(folder / "chosen", [*rows, (0.1, "/odom", "nav_msgs/msg/Odometry", cdr)])


def test_a_choice_that_one_of_two_recordings_has_is_used(chosen_bag, bag, tmp_path):
    options = Options(pose_topic="/odom")
    assert identify([bag, chosen_bag], ROBOT, options, only=("delay",)).result.complete
    with pytest.raises(RecordingError, match="--pose-topic /nope in .*drive and 1 more recordings: got no such topic"):
        identify([bag, chosen_bag], ROBOT, Options(pose_topic="/nope"), only=("delay",))


def test_a_topic_chosen_for_a_log_without_topics_is_refused(tmp_path):
    np.savetxt(tmp_path / "log.csv", np.column_stack([0.02 * np.arange(500)] + 2 * [np.sin(np.arange(500))]))
    columns = "time,command.wheel,measured.wheel"
    with pytest.raises(RecordingError, match="--pose-topic /pose in .*: got a text log of channels"):
        identify([tmp_path / "log.csv"], ROBOT, Options(columns=columns, pose_topic="/pose"))


def test_a_provisional_value_gives_way_to_that_of_a_later_stage_and_any_other_stays() -> None:
    a, b, c = (SimpleNamespace(name=name) for name in "abc")
    for provisional, kept in ((True, ["a", "bc"]), (False, ["ab", "c"])):
        stages = [StageResult("first", (a, b), provisional=provisional)]
        assert _add(stages, StageResult("second", (b, c))) == {"first" if provisional else "second"}
        assert ["".join(one.name for one in stage.findings) for stage in stages] == kept
