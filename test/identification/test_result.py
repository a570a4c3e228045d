"""What identification writes: only what was identified, with its provenance, whole or not at all."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from named_findings import named_finding

from youbot_dynamics import __version__, files
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.identification.arm_friction.stage import within_motors
from youbot_dynamics.identification.finding import Finding, FitCurve, joint_words
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason, Unknown, undetermined
from youbot_dynamics.identification.reading import Source
from youbot_dynamics.identification.result import SCHEMA_VERSION, Result, Skipped, within_ranges, write_result
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.robot import load_robot

DELAY = "robot.base.delay.effective_"


def found_as(name: str, value: float, unit: str = "s", **more) -> Finding:
    estimate = Estimate(name, unit, value, 1e-3, (value - 2e-3, value + 2e-3))
    return named_finding(name, estimate, 900, "commands of up to 0.2", **more)


def identified(channel: str, value: float = 0.15) -> Finding:
    return found_as(f"{DELAY}{channel}", value)


def refused(channel: str) -> Finding:
    name = f"{DELAY}{channel}"
    return named_finding(name, undetermined(Unknown(name, "s"), Reason(Kind.TOO_LITTLE_DATA, "too few readings")))


SOURCE = Source("drive.mcap", "ab" * 32, "stamps", "wheel_commands to joint_states", "youbot", "")


def result(*findings: Finding, robot_id: str = "youbot", **more) -> Result:
    of_stage = {finding.name: "delay" for finding in findings}
    return Result(robot_id, findings, ("delay",), {}, of_stage, (SOURCE,), **more)


def test_only_what_was_identified_becomes_a_parameter(tmp_path: Path) -> None:
    found = result(identified("x", 0.1234567891234), refused("y"), identified("yaw", 0.2))
    assert not found.complete
    write_result(tmp_path, found)
    assert read_parameters(tmp_path / "result.yaml", "any", "name/space") == {
        "robot.robot_id": "youbot",
        "robot.base.delay.effective_x": 0.1234567891234,
        "robot.base.delay.effective_yaw": 0.2,
    }


def test_a_robot_takes_its_result_and_another_robot_refuses_it(tmp_path: Path) -> None:
    write_result(tmp_path, result(identified("x", 0.11), identified("y", 0.12), identified("yaw", 0.13)))
    assert list(load_robot(tmp_path / "result.yaml").base.delay.effective()) == [0.11, 0.12, 0.13]
    write_result(tmp_path, result(identified("x"), robot_id="fred"))
    with pytest.raises(ParameterError, match="fred"):
        load_robot(tmp_path / "result.yaml")


def test_what_the_robot_has_no_parameter_for_is_reported_and_does_not_count_beside_parameters() -> None:
    missed = undetermined(Unknown("missed", "kg", unexcited="no change of speed"))
    beside = named_finding("base.friction.missed_inertia_x", missed)
    found = result(identified("x"), beside)
    assert found.complete
    assert list(found.parameters()) == ["robot.robot_id", f"{DELAY}x"]
    assert [entry["name"] for entry in found.as_dict()["parameters"]] == [f"{DELAY}x", beside.name]
    alone = found_as("delay.effective_motor", 0.1)
    assert result(alone).complete and list(result(alone).parameters()) == ["robot.robot_id"]
    assert not result(beside).complete


def test_a_stage_without_data_counts_only_where_it_was_asked_for() -> None:
    nothing = undetermined(Unknown("xi", "N s/m"), Reason(Kind.NOT_MEASURED, "no wheel effort"))
    friction = named_finding("robot.base.friction.viscous_x", nothing)
    of_stage = {friction.name: "base_friction", f"{DELAY}x": "delay"}
    both = (identified("x"), friction)
    missing = {"base_friction": "no wheel effort"}
    assert Result("youbot", both, ("delay",), missing, of_stage, (SOURCE,)).complete
    assert not Result("youbot", both, ("delay", "base_friction"), missing, of_stage, (SOURCE,)).complete


def test_a_response_without_the_dead_time_of_every_axis_is_not_written() -> None:
    """Beside a configured response it would mix two fits."""
    names = [f"robot.base.response.{name}" for name in ("lag", "dead_time_x", "dead_time_y", "dead_time_yaw")]
    response = [found_as(name, 0.1) for name in names]
    assert set(names) <= set(result(*response).parameters())
    unknown = response[3].refused(Reason(Kind.TOO_WIDE, "too wide"))
    assert list(result(*response[:3], unknown, identified("x")).parameters()) == [
        "robot.robot_id",
        "robot.base.delay.effective_x",
    ]


def test_friction_far_beyond_the_motor_is_of_another_unit() -> None:
    robot = load_robot()
    torque = robot.arm.joints[0].motor.largest_torque
    for factor, refused in ((2.0, False), (4.0, True)):
        joint = [found_as("robot.arm.joint_1.friction.coulomb", factor * torque, "N m")]
        joint.append(found_as("robot.arm.joint_1.friction.viscous", 1.0, "N m s/rad"))
        other = found_as("robot.arm.joint_2.friction.coulomb", 1.0, "N m")
        *own, beside = within_motors([*joint, other], robot)
        assert beside.identified and all(one.identified != refused for one in own)
        assert not refused or "far beyond" in own[1].estimate.verdict


@pytest.mark.parametrize(("limit", "refused"), [("10", True), ("1000", False), ("0", False), ("", False)])
def test_friction_far_beyond_the_limit_of_the_urdf_is_of_another_unit_where_the_motor_is_unknown(
    limit: str, refused: bool, tmp_path: Path
) -> None:
    joint = '<joint name="j1" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
    effort = f'<limit effort="{limit}" velocity="3"/>' if limit else ""
    heavy = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = f'<link name="a"/><link name="b">{heavy}</link>'
    (tmp_path / "one.urdf").write_text(f'<robot name="one">{links}{joint}{effort}</joint></robot>')
    robot = load_robot(robot_file=tmp_path / "one.urdf")
    (own,) = within_motors([found_as("robot.arm.joint_1.friction.coulomb", 50.0, "N m")], robot)
    assert own.identified != refused
    assert not refused or "far beyond the 10 N m of its limit" in own.estimate.verdict


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("arm_joint_1", "arm_joint_2"), ("joint 1", "joint 2")),
        (("shoulder_pan_joint", "elbow_joint"), ("shoulder_pan", "elbow")),
        (("panda_joint1", "panda_joint2"), ("joint1", "joint2")),
        (("axis_2", "axis_1"), ("axis_2", "axis_1")),
        (("elbow",), ("elbow",)),
    ],
)
def test_joints_are_called_by_what_tells_their_names_apart(names: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert tuple(joint_words(names).values()) == words
    assert tuple(joint_words(names)) == tuple(f"joint_{k}" for k in range(1, len(names) + 1))


def test_a_value_outside_its_range_is_refused_with_all_others_of_its_fit(tmp_path: Path) -> None:
    coulomb, viscous = (
        found_as(f"robot.arm.joint_1.friction.{name}", 9999.0 * k, unit)
        for k, name, unit in ((1, "coulomb", "N m"), (0.001, "viscous", "N m s/rad"))
    )
    found = result(*within_ranges((coulomb, viscous, identified("x"))))
    assert list(found.parameters()) == ["robot.robot_id", f"{DELAY}x"] and not found.complete
    verdicts = {found[one.name].estimate.verdict for one in (coulomb, viscous)}
    (verdict,) = verdicts
    assert "Coulomb torque of joint 1 is 9999 N m" in verdict and "outside the range" in verdict and "units" in verdict
    write_result(tmp_path, found)
    load_robot(tmp_path / "result.yaml")


def test_a_result_replaces_the_values_of_a_robot() -> None:
    robot = load_robot()
    better = result(found_as("robot.arm.joint_3.motor.resistance", 1.25, "Ohm")).applied_to(robot)
    assert better.arm.joints[2].motor.resistance == 1.25
    assert dataclasses.replace(better, arm=robot.arm) == robot


def test_the_json_carries_value_interval_verdict_and_provenance(tmp_path: Path) -> None:
    one = found_as(f"{DELAY}x", 0.15, details={"gain": 0.98, "residual": float("nan")})
    skipped = (Skipped("broken.mcap", "no messages"),)
    write_result(tmp_path, result(one, refused("y"), skipped=skipped, warnings=("a clock jumps",)))
    data = json.loads((tmp_path / "result.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert data["schema_version"] == SCHEMA_VERSION and data["robot_id"] == "youbot"
    x, y = data["parameters"]
    assert (x["stage"], x["name"], x["value"], x["unit"]) == ("delay", f"{DELAY}x", 0.15, "s")
    assert x["words"] == "delay forward"
    assert x["interval_95"] == [0.148, 0.152] and x["verdict"] == "identified" and x["samples"] == 900
    assert x["gain"] == 0.98 and x["residual"] is None
    assert x["valid_for"] == "commands of up to 0.2" and x["at_bound"] is False
    assert y["value"] is None and y["interval_95"] == [None, None] and y["verdict"].startswith("not identifiable: ")
    assert data["sources"] == [dataclasses.asdict(SOURCE)]
    assert data["skipped"] == [{"path": "broken.mcap", "reason": "no messages"}]
    assert data["warnings"] == ["a clock jumps"]
    assert data["versions"]["youbot_dynamics"] == __version__
    assert {"numpy", "scipy", "python"} <= set(data["versions"])


def test_a_result_does_not_replace_the_old_one_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_result(tmp_path, result(identified("x", 0.1)))
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_result(tmp_path, result(identified("x", 0.2)))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_result(tmp_path / name, result(identified("x"), identified("y")))
        written.append([(tmp_path / name / file).read_bytes() for file in ("result.yaml", "result.json")])
    assert written[0] == written[1]


@pytest.mark.parametrize(("readings", "kept"), [(7999, 7999), (8000, 4000), (15000, 5000)])
def test_a_long_curve_is_thinned(readings: int, kept: int):
    time = np.arange(float(readings))
    curve = FitCurve("Curve", "motion", "m", time, 2.0 * time, 3.0 * time, "model", reference=-time)
    assert len(curve.time) == kept and curve.band is None
    assert np.array_equal(curve.measured, 2.0 * curve.time) and np.array_equal(curve.modelled, 3.0 * curve.time)
    assert curve.reference is not None and np.array_equal(curve.reference, -curve.time)
