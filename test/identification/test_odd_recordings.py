"""Recordings and options that somebody may well come with: told in words, never by a traceback or a silent number."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from acceptance_bags import base_motion, base_run
from command_line import exit_code
from stage_bags import JOINT_STATE, ROBOT, WHEELS, Row, nanoseconds, write_rows

from youbot_dynamics.errors import IdentificationError, RecordingError
from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.base_friction._signals import recorded_wheel_signals, wheel_signals
from youbot_dynamics.identification.pipeline import _extraction as extraction
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options, excess_of_angles, look_at, open_recording, robot_of
from youbot_dynamics.identification.signals import recorded_arm
from youbot_dynamics.identification.thermal.stage import MotorSignals, recorded_motors
from youbot_dynamics.recording import message_types
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import ODOMETRY, TWIST, joint_state_cdr, odometry_cdr, twist_cdr
from youbot_dynamics.report._words import rounded
from youbot_dynamics.robot import load_robot, unnamed_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import load_truth

STATES, COMMANDS = "/driver/joint_states", "/wheel_commands"
TIME = 0.02 * np.arange(1, 1000)
PATTERN = np.array([1.0, 1.1, 0.9, 1.3])
SPEED = np.outer(4.0 * np.sin(1.3 * TIME) + 2.0 * np.sin(0.7 * TIME), PATTERN)
TURNING = np.vstack([np.zeros((7, 4)), SPEED[:-7]])  # 0.14 s later
ANGLE = np.cumsum(TURNING, axis=0) * 0.02


def rows(angle: np.ndarray = ANGLE, *, stamps: np.ndarray = TIME, velocity: np.ndarray | None = None) -> list[Row]:
    """A drive whose wheels do what they are asked, late, as told by angles and velocities that may be anything."""
    found = []
    for k, time in enumerate(TIME):
        told = () if velocity is None else velocity[k]
        found.append((time, STATES, joint_state_cdr(nanoseconds(stamps[k]), WHEELS, angle[k], told)))
        found.append((time, COMMANDS, joint_state_cdr(nanoseconds(time), WHEELS, velocity=SPEED[k])))
    return found


def bag(folder: Path, messages: list[Row], kind: str = JOINT_STATE) -> Path:
    with BagWriter(folder, {"robot_id": "youbot"}) as writer:
        for time, topic, cdr in messages:
            writer.add_topic(topic, kind)
            writer.write(topic, cdr, nanoseconds(time))
    return folder


def warnings_of(folder: Path) -> str:
    return "\n".join(look_at(open_recording(folder, 0, ROBOT, Options()), ROBOT))


def wrapped() -> np.ndarray:
    return (ANGLE + np.pi) % (2.0 * np.pi) - np.pi


def spike() -> np.ndarray:
    angle = ANGLE.copy()
    angle[500, 2] = 1e6
    return angle


def three_axes(order: list[int], signs: list[float]) -> list[Row]:
    """A drive along all axes; the readings of wheel i are those of wheel `order[i]`, times `signs[i]`."""
    twists = np.column_stack([0.2 * np.sin(1.3 * TIME), 0.2 * np.sin(0.9 * TIME), 0.5 * np.sin(0.6 * TIME)])
    sent = ROBOT.base.geometry.mecanum().wheel_speeds(twists)
    turned = np.cumsum(np.vstack([np.zeros((7, 4)), sent[:-7]])[:, order] * signs, axis=0) * 0.02
    found = []
    for k, time in enumerate(TIME):
        found.append((time, STATES, joint_state_cdr(nanoseconds(time), WHEELS, turned[k] * ROBOT.driver.position_sign)))
        found.append((time, COMMANDS, joint_state_cdr(nanoseconds(time), WHEELS, velocity=sent[k])))
    return found


def test_wheels_that_follow_their_commands_are_not_warned_of(tmp_path: Path) -> None:
    assert "turns" not in warnings_of(bag(tmp_path / "bag", rows()))
    assert "turns" not in warnings_of(bag(tmp_path / "other", three_axes([0, 1, 2, 3], [1.0, 1.0, 1.0, 1.0])))


@pytest.mark.parametrize("period", [0.5, 0.8, 1.2, 1.3])
@pytest.mark.parametrize("late", [1, 3, 5, 8])
def test_a_periodic_command_that_half_a_period_turns_round_blames_no_wheel(
    tmp_path: Path, period: float, late: int
) -> None:
    sent = np.outer(6.0 * np.sin(2.0 * np.pi * TIME / period), np.ones(4))
    turned = np.cumsum(np.vstack([np.zeros((late, 4)), sent[:-late]]), axis=0) * 0.02
    messages = []
    for k, time in enumerate(TIME):
        messages.append((time, STATES, joint_state_cdr(nanoseconds(time), WHEELS, turned[k])))
        messages.append((time, COMMANDS, joint_state_cdr(nanoseconds(time), WHEELS, velocity=sent[k])))
    assert "turns" not in warnings_of(bag(tmp_path / "bag", messages))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rows(ANGLE * [1.0, -1.0, 1.0, 1.0]), ("wheel_joint_fr turns against its command on /wheel_commands",)),
        (
            lambda: three_axes([0, 1, 3, 2], [1.0, -1.0, 1.0, 1.0]),
            (
                "wheel_joint_fr turns against its command",
                "wheel_joint_bl turns as the command of wheel_joint_br",
                "wheel_joint_br turns as the command of wheel_joint_bl",
            ),
        ),
        (
            lambda: rows(wrapped()),
            ("angles of wheel_joint_fl, ", "start again after 6.283 rad", "they were put together"),
        ),
        (lambda: rows(spike()), ("jump between two readings, first wheel_joint_bl by 1e+06 rad at 10.0",)),
        (lambda: rows(np.degrees(ANGLE)), ("times as fast as commanded by /wheel_commands", "degrees")),
        (lambda: rows(0.0 * ANGLE), ("hardly turned although /wheel_commands", "were the motors on?")),
        (lambda: rows(stamps=TIME + 3600.0), ("differ from those of /wheel_commands by 3600 s", "clocks differ")),
    ],
)
def test_what_looks_wrong_is_told(tmp_path: Path, make: Callable[[], list[Row]], words: tuple[str, ...]) -> None:
    told = warnings_of(bag(tmp_path / "bag", make()))
    assert all(word in told for word in words), told


def test_a_sound_recording_has_nothing_wrong(tmp_path: Path) -> None:
    signs = np.array(ROBOT.driver.position_sign) * np.array(ROBOT.driver.velocity_sign)
    assert not warnings_of(bag(tmp_path / "bag", rows(velocity=signs * TURNING)))
    # A gap, and one stamp that comes twice, are no leaps.
    held = rows()
    assert "jump" not in warnings_of(bag(tmp_path / "gap", held[:900] + held[1100:]))
    assert "jump" not in warnings_of(bag(tmp_path / "twice", rows(stamps=np.floor(TIME / 0.04) * 0.04)))


def test_a_second_of_lost_messages_does_not_spoil_the_delays(tmp_path: Path) -> None:
    held = rows()
    bag(tmp_path / "bag", held[:1000] + held[1100:])
    found = identify([tmp_path / "bag"], ROBOT, Options(), only=("delay",)).result
    for axis in ("x", "y", "yaw"):
        one = found[f"robot.base.delay.effective_{axis}"].estimate
        assert one.identified and one.value == pytest.approx(0.12, abs=1e-3)


def test_commands_that_are_no_numbers_leave_friction_its_instruments() -> None:
    twists = np.column_stack([np.sin(TIME), np.zeros((len(TIME), 2))])
    whole, holed = twists, twists.copy()
    holed[1::7] = np.nan
    base = ROBOT.base.geometry.mecanum()
    one, other = (wheel_signals(TIME, ANGLE, None, (TIME, t), np.full(3, 0.12), base).commanded for t in (whole, holed))
    assert one is not None and other is not None
    assert np.array_equal(np.isfinite(one), np.isfinite(other)) and np.nanmax(np.abs(one - other)) < 0.5
    with pytest.raises(IdentificationError, match="none that can be read"):
        wheel_signals(TIME, ANGLE, None, (TIME, np.nan * twists), np.full(3, 0.12), base)


def test_infinite_values_are_read_as_none(tmp_path: Path) -> None:
    angle = ANGLE.copy()
    angle[7, 1], angle[9, 2] = np.inf, -np.inf
    states = open_bag(bag(tmp_path / "joints", rows(angle))).joint_states(STATES, WHEELS)
    assert np.isnan(states.position[7, 1]) and np.isnan(states.position[9, 2])
    assert np.count_nonzero(~np.isfinite(states.position)) == 2
    twists = [(0.0, "/cmd_vel", twist_cdr([np.inf, 0.0, 1.0])), (0.1, "/cmd_vel", twist_cdr([0.1, 0.0, 1.0]))]
    twist = open_bag(bag(tmp_path / "twists", twists, TWIST)).twists("/cmd_vel").twist
    np.testing.assert_array_equal(twist, [[np.nan, 0.0, 1.0], [0.1, 0.0, 1.0]])
    poses = [
        (0.1 * k, "/odom", odometry_cdr(nanoseconds(0.1 * k), "odom", "base", [x, 0.0, 0.0], [0.0] * 3))
        for k, x in enumerate((0.0, np.inf, np.nan, 2.0))
    ]
    odom = open_bag(bag(tmp_path / "poses", poses, ODOMETRY)).poses("/odom")
    assert odom.pose[:, 0].tolist() == [0.0, 2.0] and odom.rejected == 2


@pytest.mark.parametrize(("late", "words"), [(1, ": 1 message was left out"), (2, ": 2 messages were left out")])
def test_messages_that_are_left_out_are_counted_in_words(tmp_path: Path, late: int, words: str) -> None:
    stamps = TIME.copy()
    stamps[500 : 500 + late] = 0.0  # there are none
    assert words in warnings_of(bag(tmp_path / "drive", rows(stamps=stamps)))


def test_a_refusal_tells_what_is_wrong_with_the_recording(tmp_path: Path) -> None:
    other_clock = bag(tmp_path / "clocks", rows(stamps=TIME + 3600.0))
    found = identify([other_clock], ROBOT, Options(), only=("delay",))
    delay = found.result["robot.base.delay.effective_x"].estimate
    assert "clocks differ" in " ".join(found.warnings) and (not delay.identified or abs(delay.value - 0.14) < 0.03)
    whole = next(bag(tmp_path / "whole", rows()).glob("*.mcap")).read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(whole[: len(whole) // 5])
    with pytest.raises(IdentificationError, match="in common.*also check: cut.mcap is damaged.*no footer"):
        identify([cut], ROBOT, Options())


def test_an_error_nobody_foresaw_stops_one_stage_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = extraction.stage_of

    class Failing:
        @staticmethod
        def extract(opened: object, robot: object) -> None:
            raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(extraction, "stage_of", lambda name: Failing if name == "response" else real(name))
    found = identify([bag(tmp_path / "bag", rows())], ROBOT, Options()).result
    assert "unexpected error (ZeroDivisionError in extract" in found.missing["response"]
    assert found["robot.base.delay.effective_x"].identified


@pytest.mark.parametrize("broken", [False, True], ids=["no path", "an error nobody foresaw"])
def test_odometry_without_a_single_pose_does_not_cost_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    def fail(*_: object) -> None:
        raise IndexError("index 0 is out of bounds")

    if broken:
        monkeypatch.setattr(comparison, "recorded_path", fail)
    no_pose = [np.inf, 0.0, 0.0]  # read as none, like a quaternion of zeros
    odom = [(t, "/odom", ODOMETRY, odometry_cdr(nanoseconds(t), "odom", "base", no_pose, [0.0] * 3)) for t in TIME]
    found = identify([write_rows(tmp_path / "bag", [*rows(), *odom])], ROBOT, Options(), only=("delay",))
    assert found.result["robot.base.delay.effective_x"].identified and not found.paths
    assert [len(stage.fits) for stage in found.stages] == [sum(one.identified for one in found.result.findings)]
    assert any("no path in the report" in note for note in found.notes) == broken


def test_a_robot_that_stood_while_it_was_asked_to_move_is_no_crash(tmp_path: Path) -> None:
    found = identify([bag(tmp_path / "bag", rows(0.0 * ANGLE))], ROBOT, Options()).result
    assert not any(finding.identified for finding in found.findings)
    assert any("were the motors on?" in warning for warning in found.warnings)


def test_a_bag_without_states_tells_the_topics_there_are(tmp_path: Path) -> None:
    foreign = bag(tmp_path / "foreign", [(0.0, "/turtle1/cmd_vel", twist_cdr([0.1, 0.0, 0.0]))], TWIST)
    with pytest.raises(RecordingError, match="no JointState topic; topics: /turtle1/cmd_vel"):
        identify([foreign], ROBOT, Options())
    with pytest.raises(RecordingError, match="no messages at all"):
        identify([bag(tmp_path / "empty", [])], ROBOT, Options())


def test_a_folder_that_cannot_be_made_is_told_before_the_work(tmp_path: Path, capsys, monkeypatch) -> None:
    def work(*_: object) -> None:
        raise AssertionError("began to work")

    monkeypatch.setattr("youbot_dynamics.commands.identify.identify", work)
    (tmp_path / "file").touch()
    assert exit_code("identify", tmp_path, "--out", tmp_path / "file" / "found") == 1
    assert f"a file, {tmp_path / 'file'}, instead of a folder" in capsys.readouterr().err
    monkeypatch.setattr("os.access", lambda *_: False)
    assert exit_code("identify", tmp_path, "--out", tmp_path / "new" / "found") == 1
    assert f"without permission to write: {tmp_path}" in capsys.readouterr().err


def test_stages_may_be_named_with_blanks(tmp_path: Path, capsys) -> None:
    folder = bag(tmp_path / "bag", rows())
    assert exit_code("identify", folder, "--out", tmp_path / "found", "--only", "delay, calibrated") == 1
    assert "got 'calibrated'; expected names from calibration, delay," in capsys.readouterr().err
    assert exit_code("identify", folder, "--out", tmp_path / "found", "--only", " delay ,") == 1
    assert exit_code("identify", folder, "--out", tmp_path / "found", "--only", " delay ") == 0


def test_huge_values_do_not_fill_the_table() -> None:
    assert rounded(2.996e29, 1e28) == "3e+29"
    assert rounded(1234567.0, 10.0) == "1234567"


def test_angles_exceed_the_limits_of_their_joints_by_the_farthest() -> None:
    limits = ROBOT.arm.tree().limits
    ends = np.array([[limit.lower for limit in limits], [limit.upper for limit in limits]])
    assert excess_of_angles("arm", ends, ROBOT) == 0.0
    assert excess_of_angles("arm", ends + [[0.0, -0.5, 0.0, 0.0, 0.0], [0.3] * 5], ROBOT) == pytest.approx(0.5)


def test_dynamic_joint_states_give_what_joint_states_give(tmp_path: Path) -> None:
    """ros2_control publishes them beside joint_states, and some robots publish nothing else."""
    types = message_types.jazzy_types()

    def dynamic(raw: bytes) -> bytes:
        message = types.deserialize_cdr(raw, message_types.JOINT_STATE)
        interface = types.types["control_msgs/msg/InterfaceValue"]
        values = [
            interface(["velocity", "position", "temperature"], np.array([velocity, position, 30.0]))
            for position, velocity in zip(message.position, message.velocity, strict=True)
        ]
        made = types.types[message_types.DYNAMIC_JOINT_STATE](message.header, message.name, values)
        return bytes(types.serialize_cdr(made, message_types.DYNAMIC_JOINT_STATE))

    plant = BasePlant(load_truth(1), ROBOT.driver, 1)
    rows = base_run(plant, plant.advance, base_motion(30.0), 1, told=None).rows
    other = [
        (at, "/dynamic_joint_states", message_types.DYNAMIC_JOINT_STATE, dynamic(raw))
        if topic == "/driver/joint_states"
        else (at, topic, kind, raw)
        for at, topic, kind, raw in rows
    ]
    found = [
        identify([write_rows(tmp_path / name, some)], ROBOT, Options(), only=("delay",)).result.findings
        for name, some in (("joints", rows), ("dynamic", other))
    ]
    assert any(one.identified for one in found[0])
    assert [(a.name, a.estimate.value) for a in found[0]] == [(b.name, b.estimate.value) for b in found[1]]


def test_currents_of_dynamic_joint_states_are_efforts_by_the_constants_of_the_robot_file(tmp_path: Path) -> None:
    types, arm = message_types.jazzy_types(), ROBOT.driver.arm_joints
    interface, made = (
        types.types[name] for name in ("control_msgs/msg/InterfaceValue", message_types.DYNAMIC_JOINT_STATE)
    )
    rows = []
    for k in range(4):
        header = types.deserialize_cdr(joint_state_cdr(nanoseconds(1.0 + k), arm), JOINT_STATE).header
        currents = [interface(["position", "current"], np.array([0.1 * k, k - 1.5])) for _ in arm[1:]]
        both = interface(["position", "current", "effort"], np.array([0.1 * k, k - 1.5, 7.0]))
        raw = types.serialize_cdr(made(header, list(arm), [both, *currents]), message_types.DYNAMIC_JOINT_STATE)
        rows.append((1.0 + k, "/dynamic_joint_states", message_types.DYNAMIC_JOINT_STATE, bytes(raw)))
    recording = open_bag(write_rows(tmp_path / "bag", rows))
    torque = recorded_arm(recording, ROBOT, {}).signals.torque
    motors = [joint.motor for joint in ROBOT.arm.joints]
    expected = [[(k - 1.5) * one.torque_constant * one.gear_ratio for one in motors] for k in range(4)]
    np.testing.assert_allclose(torque[:, 1:], np.array(expected)[:, 1:])
    np.testing.assert_array_equal(torque[:, 0], 7.0)
    unknown = unnamed_robot("unnamed robot", arm, has_base=False)
    with pytest.raises(RecordingError, match="current of arm_joint_2 in .* no torque constant and gear ratio"):
        recorded_arm(recording, unknown, {})


@pytest.mark.parametrize("constant", [0.0, 2.5])
def test_currents_of_wheels_are_efforts_by_the_torque_of_an_ampere(constant: float, tmp_path: Path) -> None:
    types, kind = message_types.jazzy_types(), message_types.DYNAMIC_JOINT_STATE
    interface, made = types.types["control_msgs/msg/InterfaceValue"], types.types[kind]
    rows = []
    for k in range(200):
        header = types.deserialize_cdr(joint_state_cdr(nanoseconds(1.0 + 0.02 * k), WHEELS), JOINT_STATE).header
        values = [interface(["position", "current"], np.array([0.05 * k, 0.1 * j + 0.01 * k])) for j in range(4)]
        raw = types.serialize_cdr(made(header, list(WHEELS), values), kind)
        rows.append((1.0 + 0.02 * k, "/dynamic_joint_states", kind, bytes(raw)))
    driver = dataclasses.replace(ROBOT.driver, wheel_torque_constant=constant)
    robot, bag = dataclasses.replace(ROBOT, driver=driver), open_bag(write_rows(tmp_path / "bag", rows))
    torques = recorded_wheel_signals(bag, robot, {}, np.zeros(3)).torques
    assert (torques is None) == (constant == 0.0)
    if torques is not None:
        expected = 2.5 * (0.1 * np.arange(4) + 0.01 * 100) * ROBOT.driver.velocity_sign
        middle = int(np.argmin(np.abs(torques[:, 0] * ROBOT.driver.velocity_sign[0] - 2.5)))
        np.testing.assert_allclose(torques[middle], expected, atol=0.03)


def test_voltages_and_temperatures_of_dynamic_joint_states_are_those_of_the_motors(tmp_path: Path) -> None:
    types, arm = message_types.jazzy_types(), ROBOT.driver.arm_joints
    interface, made = (
        types.types[name] for name in ("control_msgs/msg/InterfaceValue", message_types.DYNAMIC_JOINT_STATE)
    )

    def motors_of(name: str, *named: str, chosen: dict[str, str] | None = None) -> MotorSignals:
        rows = []
        for k in range(100):
            header = types.deserialize_cdr(joint_state_cdr(nanoseconds(1.0 + 0.05 * k), arm), JOINT_STATE).header
            kinds = ["position", "effort", *named]
            values = [
                interface(kinds, np.array([0.01 * k, 0.5, *(10.0 * j + i for i in range(len(named)))]))
                for j in range(len(arm))
            ]
            raw = types.serialize_cdr(made(header, list(arm), values), message_types.DYNAMIC_JOINT_STATE)
            rows.append((1.0 + 0.05 * k, "/dynamic_joint_states", message_types.DYNAMIC_JOINT_STATE, bytes(raw)))
        return recorded_motors(open_bag(write_rows(tmp_path / name, rows)), ROBOT, chosen or {})

    every = motors_of("every", "voltage", "motor_temperature", "case_temperature", "temperature")
    np.testing.assert_allclose(every.electric.voltage, np.tile(10.0 * np.arange(5), (len(every.electric.voltage), 1)))
    for k, table in enumerate((every.winding, every.housing), 1):
        np.testing.assert_allclose(table, np.tile(10.0 * np.arange(5) + k, (len(table), 1)))
    with pytest.raises(RecordingError, match="plain temperature .* needs --topic motor_temperature=NAME"):
        motors_of("plain", "temperature")
    told = motors_of("told", "temperature", chosen={"housing_temperature": "/dynamic_joint_states"})
    assert told.winding is None and told.electric is None
    np.testing.assert_allclose(told.housing[1], 10.0 * np.arange(5))


class LateStamps(BasePlant):
    """Wheels whose driver stamps a reading only when it has received it."""

    def read(self):
        reading = super().read()
        return dataclasses.replace(reading, stamp=reading.stamp + self.late)


def test_wheels_that_are_stamped_late_are_told_before_anything_else_and_delays_are_without_it(tmp_path: Path) -> None:
    """Delays contained the 80 ms, and it was left open whether stamps or poses were late."""
    found = {}
    for late in (0.0, 0.08):
        plant = LateStamps(load_truth(1), ROBOT.driver, 1)
        plant.late = late
        rows = base_run(plant, plant.advance, base_motion(30.0), 1, told=None).rows
        bag = write_rows(tmp_path / f"bag_{late}", rows)
        found[late] = identify([bag], ROBOT, Options(), only=("calibration", "delay"))
    told = [warning for warning in found[0.08].warnings if warning.startswith("the driver stamps the wheels")]
    assert found[0.08].warnings[0] == told[0] and not any("stamp" in one for one in found[0.0].warnings)
    prompt, corrected = (
        {one.name: one.estimate for one in found[late].result.findings if one.name.startswith("robot.base.delay")}
        for late in (0.0, 0.08)
    )
    stamps = corrected.pop("robot.base.delay.stamps")
    assert stamps.interval[0] < 0.08 < stamps.interval[1] and "robot.base.delay.stamps" not in prompt
    for axis in ("x", "y", "yaw"):
        one = corrected[f"robot.base.delay.effective_{axis}"]
        assert one.identified and one.interval[0] < prompt[f"robot.base.delay.effective_{axis}"].value < one.interval[1]


JOINTS, FINGER = ("shoulder", "elbow"), "finger"
TWISTS = [(1.0, "/cmd_vel", TWIST, twist_cdr((0.1, 0.0, 0.0)))]


def arm_rows(names: tuple[str, ...], effort: tuple[float, ...] = ()) -> list[tuple[float, str, str, bytes]]:
    """Joint states of some joints, of which the first ones have efforts."""
    known = (*effort, *[math.nan] * (len(names) - len(effort))) if effort else None
    states = [joint_state_cdr(nanoseconds(0.02 * k), names, [0.1 * k] * len(names), None, known) for k in range(1, 20)]
    return [(0.02 * k, "/joint_states", JOINT_STATE, state) for k, state in enumerate(states, 1)]


@pytest.mark.parametrize(
    ("messages", "joints"),
    [
        (arm_rows((*JOINTS, FINGER), (1.0, 2.0)), JOINTS),
        (arm_rows(JOINTS, (1.0, 2.0)) + TWISTS, None),
        (arm_rows((*JOINTS, "arm_joint_1"), (1.0, 2.0)), None),
        (arm_rows(("front_wheel", "left_wheel", "right_wheel"), (1.0, 2.0)), None),
    ],
)
def test_a_bag_of_joints_alone_that_no_file_names_is_of_an_unnamed_arm(messages, joints, tmp_path: Path) -> None:
    youbot, path = load_robot(), write_rows(tmp_path / "bag", messages, robot_id="")
    robot = robot_of([None], youbot, lambda number: open_recording(path, number, youbot, Options()))
    expected = youbot if joints is None else unnamed_robot("unnamed robot", joints, has_base=False)
    assert robot.robot_id == expected.robot_id
    assert robot.driver.arm_joints == expected.driver.arm_joints


def test_a_bag_of_such_joints_without_efforts_is_told_what_it_lacks(tmp_path: Path) -> None:
    youbot, path = load_robot(), write_rows(tmp_path / "bag", arm_rows(JOINTS), robot_id="")
    with pytest.raises(RecordingError, match="without efforts, of elbow, shoulder; .*its URDF as --robot-file"):
        robot_of([None], youbot, lambda number: open_recording(path, number, youbot, Options()))
