"""Logs of arms and motors by other simulators that were once read wrongly; they are skipped where they are absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arm_runs import drawn_truth, swing
from repository import CASES

from youbot_dynamics.commands.main import main
from youbot_dynamics.errors import RecordingError, YoubotDynamicsError
from youbot_dynamics.estimation.support import supports
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.identification.pipeline import Identification, identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.robot import Robot, load_robot

THREE_JOINTS = ((1.0, 0.6), (1.2, 0.8), (0.5, 0.3))  # Coulomb torques [N m] and viscous friction [N m s/rad]


def case(name: str):
    path = CASES / "arm" / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path


def robot_of(name: str) -> Robot:
    file = case(f"{name}.csv").with_suffix(".yaml")
    return load_robot(robot_file=file) if file.exists() else load_robot()


def identified(name: str, *stages: str) -> Identification:
    log = case(f"{name}.csv")
    with log.open(encoding="utf-8") as lines:
        columns = lines.readline().strip()
    return identify(log, robot_of(name), Options(columns=columns), only=stages or ("arm_friction",))


def estimates(found: Identification, joint: int):
    return [found.result[f"robot.arm.joint_{joint}.friction.{name}"].estimate for name in ("coulomb", "viscous")]


@pytest.mark.parametrize(
    ("name", "friction"),
    [
        ("joints_in_driver_order", THREE_JOINTS),
        ("mimic_gripper", THREE_JOINTS),
        ("kinova_wrap", THREE_JOINTS),
        ("large_arm", ((25.0, 22.0), *THREE_JOINTS[1:])),
        ("lift_column", ((12.0, 15.0), *THREE_JOINTS[1:])),
    ],
)
def test_the_friction_of_arms_that_are_built_otherwise_is_found(name: str, friction) -> None:
    found = identified(name)
    for joint, true in enumerate(friction, 1):
        for estimate, value in zip(estimates(found, joint), true, strict=True):
            assert estimate.identified and estimate.value == pytest.approx(value, rel=0.03)
            assert estimate.interval[0] - 0.002 <= value <= estimate.interval[1] + 0.002


def test_friction_of_a_joint_that_slides_is_a_force() -> None:
    found = identified("lift_column")
    assert [one.unit for one in estimates(found, 1)] == ["N", "N s/m"]
    assert [one.unit for one in estimates(found, 2)] == ["N m", "N m s/rad"]


def test_joints_that_a_driver_lists_in_another_order_are_those_of_the_chain() -> None:
    assert robot_of("joints_in_driver_order").driver.arm_joints == ("j1", "j2", "j3")


def test_fingers_that_mimic_each_other_beyond_the_tip_are_locked_for_the_wheel_loads_too() -> None:
    assert not supports(robot_of("mimic_gripper"))


@pytest.mark.slow
def test_viscous_friction_that_differs_by_direction_is_refused_with_both_values() -> None:
    found = identified("direction_s4")
    for joint in range(1, 6):
        _, viscous = estimates(found, joint)
        assert viscous.reason.kind is Kind.OTHER_EXPLANATION and "differs by direction" in viscous.verdict
    assert "1.17 N m s/rad while the angle grows, 0.636 while it falls" in estimates(found, 3)[1].verdict  # 1.17, 0.63


@pytest.mark.parametrize("stages", [("thermal",), pytest.param(("arm_friction", "thermal"), marks=pytest.mark.slow)])
def test_efforts_in_ampere_give_no_number_but_times_in_any_stage(stages: tuple[str, ...]) -> None:
    found = identified("effort_in_ampere", *stages)
    known = [finding for finding in found.result.findings if finding.identified]
    assert {finding.row.unit for finding in known} == {"s"}
    assert "0.19 times what the links" in found.result["robot.arm.joint_2.motor.resistance"].estimate.verdict


@pytest.mark.parametrize(("every", "found"), [(1, True), (3, False)])
def test_slow_readings_of_a_motor_give_its_torque_constant_or_are_refused_for_their_rate(
    every: int, found: bool, tmp_path: Path
) -> None:
    head, *lines = case("motor_3hz.csv").read_text(encoding="utf-8").splitlines()
    log = tmp_path / "motor.csv"
    log.write_text("\n".join([head, *lines[::every]]), encoding="utf-8")
    result = identify(log, load_robot(), Options(columns=head), only=("thermal",)).result
    for name, true in (("torque_constant", 0.0335), ("resistance", 1.03)):
        estimate = result[f"robot.arm.joint_2.motor.{name}"].estimate
        assert estimate.identified == found and (found or "too slow for the motion" in estimate.verdict)
        assert not found or (estimate.value == pytest.approx(true, rel=0.02) and estimate.interval[0] < true)


def test_an_arm_without_masses_says_so() -> None:
    with pytest.raises(YoubotDynamicsError, match="got no mass of any of them"):
        identified("no_inertials")


def test_a_joint_whose_largest_speed_is_zero_is_named(tmp_path, capsys) -> None:
    file = str(case("velocity_zero.yaml"))
    with pytest.raises(SystemExit):
        main(["play", "arm_excitation", "--duration", "20", "--write", str(tmp_path / "g.yaml"), "--robot-file", file])
    assert 'excitation of j1: got <limit velocity="0"> in the URDF' in capsys.readouterr().err


YOUBOT = ((1.1, 1.3), (0.8, 1.1), (0.55, 0.9), (0.28, 0.12), (0.17, 0.03))  # as above, of the case files of the youBot


@pytest.mark.parametrize(
    "name", ["nan_rows.csv", "topic_echo.csv", "two_messages.mcap", "dynamic_torque.mcap", "ros1_in.mcap"]
)
def test_the_friction_is_found_however_the_arm_was_recorded(name: str) -> None:
    found = identify(case(name), load_robot(), Options(), only=("arm_friction",))
    for joint, true in enumerate(YOUBOT, 1):
        for estimate, value in zip(estimates(found, joint), true, strict=True):
            assert estimate.identified and estimate.value == pytest.approx(value, rel=0.05)


def test_efforts_without_their_sign_are_named_and_give_no_number() -> None:
    found = identified("effort_unsigned")
    assert not any(finding.identified for finding in found.result.findings)
    verdicts = [estimates(found, joint)[0].verdict for joint in range(1, 6)]
    assert all(
        "never change their sign" in one and "or the arm is not mounted as in its URDF" in one for one in verdicts
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("milliseconds", "a line every 20 s; .* name its unit: time:ms"),
        ("excel_date", "'24/11/2026 23:59:50.000' in column 1 of line 2; .* or as 2026-11-28T14:05:00.25"),
    ],
)
def test_times_that_are_no_seconds_are_named(name: str, told: str) -> None:
    with pytest.raises(RecordingError, match=told):
        identified(name)


def test_a_rotor_of_unknown_inertia_is_fitted(tmp_path) -> None:
    text = case("large_arm.yaml").read_text(encoding="utf-8")
    file = tmp_path / "arm.yaml"
    file.write_text(text.replace("2.000e-05", "0.0").replace("large_arm.urdf", str(case("large_arm.urdf"))), "utf-8")
    robot = load_robot(robot_file=file)
    assert robot.arm.joints[0].motor.rotor_inertia == 0.0 and robot.arm.model().tree.nv == 3


def test_efforts_whose_integers_overflow_are_named(tmp_path: Path) -> None:
    head, *lines = case("large_arm.csv").read_text(encoding="utf-8").splitlines()
    table = np.array([[float(cell) for cell in line.split(",")] for line in lines])
    for column in (k for k, name in enumerate(head.split(",")) if name.startswith("effort")):
        largest = 0.9 * np.abs(table[:, column]).max()
        table[:, column] = (table[:, column] + largest) % (2.0 * largest) - largest
    log = tmp_path / "overflow.csv"
    np.savetxt(log, table, delimiter=",", header=head, comments="")
    found = identify(log, robot_of("large_arm"), Options(columns=head), only=("arm_friction",))
    reasons = [one.reason for joint in (1, 2, 3) for one in estimates(found, joint)]
    assert {reason.kind for reason in reasons if reason is not None} == {Kind.WRONG_SIGNALS}
    assert all(reason is not None and "overflow" in reason.text for reason in reasons)


def test_readings_that_a_driver_repeats_count_once_and_are_told(tmp_path: Path) -> None:
    head, *lines = case("velocity_zero.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",", 1) for line in lines for _ in range(5)]
    log = tmp_path / "repeated.csv"
    log.write_text("\n".join([head, *(f"{0.004 * k:.4f},{row}" for k, (_, row) in enumerate(rows))]), encoding="utf-8")
    found = identify(log, robot_of("velocity_zero"), Options(columns=head), only=("arm_friction",))
    assert any("comes 5 times" in warning for warning in found.warnings)
    for joint, true in enumerate(THREE_JOINTS, 1):
        for estimate, value in zip(estimates(found, joint), true, strict=True):
            assert estimate.identified and estimate.value == pytest.approx(value, rel=0.03)


def test_a_log_of_one_joint_gives_its_friction(tmp_path: Path) -> None:
    """The others stand still and were not recorded."""
    truth = drawn_truth(3)
    run = swing(3, truth, seconds=40.0, amplitude=np.array([0.0, 0.0, 0.0, 0.6, 0.0])).every(5)
    columns, log = "time,position.arm_joint_4,effort.arm_joint_4", tmp_path / "one.csv"
    table = np.column_stack([run.stamp, run.position[:, 3], run.effort[:, 3]])
    np.savetxt(log, table, delimiter=",", header=columns, comments="")
    found = identify(log, load_robot(), Options(columns=columns), only=("arm_friction",))
    friction = load_robot().arm.joints[3].friction
    coulomb, viscous = truth.coulomb[3] * friction.coulomb, truth.viscous[3] * friction.viscous
    for estimate, true in zip(estimates(found, 4), (coulomb, viscous), strict=True):
        assert estimate.identified and estimate.value == pytest.approx(true, rel=0.04)
    totals = [one for one in found.result.findings if ".total_at_" in one.name]
    assert len(totals) == 3
    for one in totals:
        low, high = one.estimate.interval
        assert one.identified and low < coulomb + viscous * float(one.name.rsplit("_", 1)[1]) < high
    assert not [one for one in found.result.findings if "joint_3" in one.name]
    assert any("arm_joint_5 of the arm were not recorded" in note for note in found.notes)
