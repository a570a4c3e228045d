"""The printed forms of the source documents that are wrong, each against the law it breaks; and their table."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from package_imports import syntax
from repository import ROOT

from youbot_dynamics.control.tracker import Pid, Tracker
from youbot_dynamics.control.tracker._pid import PidGains
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.dynamics.driven_base import DrivenBase
from youbot_dynamics.identification.delay import estimate_delay
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import load_robot

DT = 0.02
PROMPT = DrivenBase(load_robot().base.dynamics(), np.zeros(3), 0.0, 0.0)  # answers at once
TIME = np.arange(0.0, 20.0, DT)
DELAY = 0.25


def ideal_twists(times: np.ndarray) -> np.ndarray:
    """Body twists of a program with translation and turn; zero before 0."""
    speeds = [0.2 * np.sin(0.63 * times), 0.15 * np.sin(0.9 * times), 0.3 * np.sin(0.4 * times)]
    return np.where(times[:, None] > 0.0, np.column_stack(speeds), 0.0)


def left_sum(rates: np.ndarray) -> np.ndarray:
    """Document 003's integral by rectangles, x(i) = x(i-1) + dt v(i-1), from 0."""
    return np.vstack([np.zeros(rates.shape[1]), np.cumsum(rates[:-1], axis=0) * DT])


def fixed_rates(twists: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    turned = [planar.rotation(angle) @ twist[:2] for angle, twist in zip(yaw, twists, strict=True)]
    return np.column_stack([np.array(turned), twists[:, 2]])


def printed_fit(left: np.ndarray, velocities: np.ndarray) -> float:
    """(A'A)^-1 A'B of document 003, all rows in one."""
    return float(np.sum(velocities * left) / np.sum(velocities**2))


def test_d_003_1_the_lab_code_drives_backwards() -> None:
    """setData(+omega_1), (-omega_2), (+omega_3), (-omega_4) is the negative of the driver's own setBaseVelocity."""
    driver = load_robot().driver
    lab_signs = np.array([1.0, -1.0, 1.0, -1.0])
    for twist in np.vstack([np.eye(3), [[0.2, -0.1, 0.3]]]):
        wheels = driver.mecanum().wheel_speeds(twist)
        of_lab_code = lab_signs * wheels
        really_driven = driver.mecanum().twist(of_lab_code * np.array(driver.command_sign))
        np.testing.assert_allclose(really_driven, -twist, atol=1e-12)


def test_d_003_3_body_velocities_do_not_explain_displacements_in_the_fixed_frame() -> None:
    """A robot that faces +Y: dX = V_id dtzap compares its Y displacement with a velocity of 0."""
    twists, late = ideal_twists(TIME)[:, :2], ideal_twists(TIME - DELAY)[:, :2]
    turned = planar.rotation(np.pi / 2)
    displacement = left_sum(twists @ turned.T) - left_sum(late @ turned.T)
    one_axis = np.column_stack([twists[:, 0], 0.0 * TIME])  # forward only
    only_forward = left_sum(one_axis @ turned.T) - left_sum(np.column_stack([late[:, 0], 0.0 * TIME]) @ turned.T)
    assert printed_fit(only_forward, one_axis) == pytest.approx(0.0, abs=1e-12)
    assert printed_fit(only_forward, one_axis @ turned.T) == pytest.approx(DELAY, abs=0.01)
    assert abs(printed_fit(displacement, twists) - DELAY) > 0.1
    assert printed_fit(displacement, twists @ turned.T) == pytest.approx(DELAY, abs=0.01)


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.25, 0.5])
def test_d_003_4_the_left_side_vanishes_whatever_the_delay(delay: float) -> None:
    """dX - int dV: both are the same integral of the same difference, so nothing is left for dtzap to explain."""
    ideal, real = ideal_twists(TIME)[:, :1], ideal_twists(TIME - delay)[:, :1]
    left = (left_sum(ideal) - left_sum(real)) - left_sum(ideal - real)
    np.testing.assert_allclose(left, 0.0, atol=1e-13)
    assert printed_fit(left, ideal) == pytest.approx(0.0, abs=1e-12)
    found = estimate_delay(TIME, ideal[:, 0], TIME, left_sum(real)[:, 0], measured_is="position")[0]
    # Rectangles hold each value from its time on, as the command is held: the shift is exactly the delay.
    assert found.value == pytest.approx(delay, abs=0.011)


def test_d_003_5_the_printed_sum_is_not_the_integral_of_the_euler_path() -> None:
    """int to t[1] = dV[0] dt and to t[2] = (dV[0] + dV[1]) dt, but then sum from i = 1 to n."""
    ideal, real = ideal_twists(TIME)[:, :1] + 0.1, 0.5 * ideal_twists(TIME - DELAY)[:, :1]
    difference = ideal - real
    displacement = left_sum(ideal) - left_sum(real)
    printed = np.cumsum(difference, axis=0) * DT - difference[0] * DT
    correct = left_sum(difference)
    np.testing.assert_allclose(correct, displacement, atol=1e-13)
    assert correct[1, 0] == pytest.approx(difference[0, 0] * DT)
    assert np.max(np.abs(printed - displacement)) == pytest.approx(np.max(np.abs(difference - difference[0])) * DT)
    assert np.max(np.abs(printed - displacement)) > 1e-3


def mixed_fit(metres: float) -> float:
    """Correct first-order model but one unweighted fit; x answers after 0.2 s, the yaw after 0.1 s."""
    ideal = ideal_twists(TIME)[:, [0, 2]] * [1.0, 4.0]
    late = np.column_stack([ideal_twists(TIME - 0.2)[:, 0], 4.0 * ideal_twists(TIME - 0.1)[:, 2]])
    scale = np.array([metres, 1.0])
    return printed_fit((left_sum(ideal) - left_sum(late)) * scale, ideal * scale)


def test_d_003_6_the_mixed_fit_depends_on_the_unit_of_length() -> None:
    """Metres and radians in one unweighted sum: the answer changes with the unit; one fit a channel has none."""
    assert mixed_fit(1.0) == pytest.approx(0.10, abs=0.015)
    assert mixed_fit(1000.0) == pytest.approx(0.20, abs=0.015)
    ideal, late = ideal_twists(TIME), ideal_twists(TIME - 0.2)
    moved = left_sum(late)[:, 0]
    noise = 1e-4 * np.random.default_rng(0).standard_normal(len(TIME))
    metres, millimetres = (
        estimate_delay(TIME, unit * ideal[:, 0], TIME, unit * (moved + noise), measured_is="position")[0]
        for unit in (1.0, 1000.0)
    )
    assert metres.value == pytest.approx(millimetres.value, abs=1e-6)


def test_d_003_6_causality_sets_the_sign_of_the_delay() -> None:
    """The document picks the sign that makes the deviation smaller; a robot that leads its command is no answer."""
    early = left_sum(ideal_twists(TIME + 0.2))[:, 0]
    found = estimate_delay(TIME, ideal_twists(TIME)[:, 0], TIME, early, measured_is="position")[0]
    assert not found.identified and "leads the command" in found.verdict


@pytest.mark.parametrize("recording", ["delayed", "noise", "standing"])
def test_d_003_7_the_printed_restoration_returns_the_ideal_path_of_any_recording(recording: str) -> None:
    """X_vost = X_rf + Vx_id dtzap + int dV: with dtzap ~ 0 it adds back exactly what was missing (LR2: 1e-16)."""
    ideal = ideal_twists(TIME)
    real = {
        "delayed": ideal_twists(TIME - DELAY),
        "noise": np.random.default_rng(1).normal(size=ideal.shape),
        "standing": np.zeros_like(ideal),
    }[recording]
    difference = left_sum(ideal - real)
    delay = printed_fit(left_sum(ideal) - left_sum(real) - difference, ideal)
    restored = left_sum(real) + ideal * delay + difference
    np.testing.assert_allclose(restored, left_sum(ideal), atol=1e-12)


def test_d_003_8_velocities_are_integrated_in_the_fixed_frame() -> None:
    """Forward, a quarter turn, forward again: in the body frame the turn would not matter."""
    twists = np.vstack([np.tile([0.5, 0.0, 0.0], (100, 1)), np.tile([0.0, 0.0, np.pi / 4], (100, 1))])
    twists = np.vstack([twists, twists[:100], [[0.0, 0.0, 0.0]]])
    yaw = left_sum(twists)[:, 2]
    in_body = left_sum(twists)[-1]
    in_fixed = left_sum(fixed_rates(twists, yaw))[-1]
    np.testing.assert_allclose(in_fixed, [1.0, 1.0, np.pi / 2], atol=1e-9)
    np.testing.assert_allclose(in_body, [2.0, 0.0, np.pi / 2], atol=1e-9)
    pose = np.zeros(3)
    for twist in twists[:-1]:
        pose = planar.integrate(pose, twist, DT)
    np.testing.assert_allclose(pose, in_fixed, atol=1e-9)


def test_d_003_13_the_programmed_velocity_is_no_residual() -> None:
    """Following perfectly leaves every residual 0, yet the command must go on at the programmed velocity."""
    line = Trajectory([0.0, 10.0], [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    gains = PidGains((1.0,) * 3, (0.1,) * 3, (0.2,) * 3, 0.1)
    tracker = Tracker(line, 0.0, PROMPT, Pid(gains), DT)
    for k in range(100):
        state = tracker.step(k * DT, k * DT, line.pose(k * DT))
    np.testing.assert_allclose(state.error, 0.0, atol=1e-12)
    np.testing.assert_allclose(state.twist, [0.2, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(Pid(gains).correct(np.zeros(3), 0.0, np.zeros(3)), 0.0)
    # A velocity, not a coordinate: half as fast when the same path takes twice the time.
    slow = Tracker(Trajectory([0.0, 20.0], line.poses), 0.0, PROMPT, None, DT)
    assert slow.step(1.0, 1.0, np.zeros(3)).twist[0] == pytest.approx(0.1)


def rows() -> dict[str, list[str]]:
    found = {}
    for line in (ROOT / "docs" / "source_systems" / "deviations.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"D-\d{3}-\d+", cells[0]):
            assert cells[0] not in found, f"{cells[0]} twice"
            found[cells[0]] = cells[1:]
    return found


def test_every_deviation_cited_in_the_code_has_a_row() -> None:
    cited = set()
    for path in (ROOT / "youbot_dynamics").rglob("*.py"):
        cited |= set(re.findall(r"D-\d{3}-\d+", path.read_text(encoding="utf-8")))
    assert len(cited) >= 10
    assert not cited - set(rows())


def test_the_table_has_every_deviation_of_the_systems_built_so_far() -> None:
    built = {
        "000": range(1, 7),
        "001": range(1, 4),
        "002": range(1, 11),
        "003": range(1, 17),
        "004": range(1, 10),
    }
    assert {f"D-{source}-{k}" for source, numbers in built.items() for k in numbers} == set(rows())
    for identifier, cells in rows().items():
        assert len(cells) == 4 and all(cells), identifier


def test_every_proof_in_the_table_exists() -> None:
    for identifier, (_, _, proof, _) in rows().items():
        named = [entry.strip() for entry in proof.split(",")]
        for entry in named:
            file, _, name = entry.partition("::")
            (path,) = (ROOT / "test").rglob(file)
            tree = syntax(path)
            tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name.startswith("test_") and name in tests, f"{identifier}: {entry}"


def test_the_printed_forms_are_no_option_of_the_package() -> None:
    """They live in the tests alone: nothing in the package is named after them."""
    for path in (ROOT / "youbot_dynamics").rglob("*.py"):
        for node in ast.walk(syntax(path)):
            name = getattr(node, "name", "") or getattr(node, "arg", "") or ""
            assert not re.search(r"printed|as_in_seed|legacy", str(name)), f"{path}: {name}"
