"""What identification writes: only what was identified, with its provenance, whole or not at all."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from youbot_dynamics import __version__, parameter_file
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.identification.delay import DelayEstimate
from youbot_dynamics.identification.result import Result, Source, write_result
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.robot import load_robot

NAN = float("nan")


def identified(channel: str, value: float = 0.15) -> DelayEstimate:
    return DelayEstimate(channel, value, 1e-3, (value - 2e-3, value + 2e-3), 0.98, 1e-3, 900, 0.2, "identified")


def refused(channel: str) -> DelayEstimate:
    return DelayEstimate(channel, NAN, NAN, (NAN, NAN), NAN, NAN, 0, 0.0, "not identifiable: too few readings")


SOURCE = Source("drive.mcap", "ab" * 32, "stamps", "wheel_commands to joint_states", "youbot", "")


def result(*delays: DelayEstimate, robot_id: str = "youbot") -> Result:
    return Result(robot_id, delays, (SOURCE,))


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


def test_a_channel_of_a_text_log_is_reported_but_is_no_parameter_of_the_robot() -> None:
    found = result(identified("motor"))
    assert found.complete and list(found.parameters()) == ["robot.robot_id"]
    assert found.as_dict()["parameters"][0]["name"] == "delay.effective_motor"


def test_the_json_carries_value_interval_verdict_and_provenance(tmp_path: Path) -> None:
    write_result(tmp_path, result(identified("x"), refused("y")))
    data = json.loads((tmp_path / "result.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert data["schema_version"] == 1 and data["robot_id"] == "youbot"
    x, y = data["parameters"]
    assert (x["name"], x["value"], x["unit"]) == ("robot.base.delay.effective_x", 0.15, "s")
    assert x["interval_95"] == [0.148, 0.152] and x["verdict"] == "identified" and x["samples"] == 900
    assert x["valid_for"] == "commands of up to 0.2 in SI units of the channel"
    assert y["value"] is None and y["interval_95"] == [None, None] and y["verdict"].startswith("not identifiable: ")
    assert data["sources"] == [dataclasses.asdict(SOURCE)]
    assert data["versions"]["youbot_dynamics"] == __version__
    assert {"numpy", "scipy", "python"} <= set(data["versions"])


def test_a_result_does_not_replace_the_old_one_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_result(tmp_path, result(identified("x", 0.1)))
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parameter_file.os, "replace", fail)
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
