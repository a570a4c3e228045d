"""Searches end within a budget, also on drives without noise, and a spent budget is a reason to refuse."""

from __future__ import annotations

import numpy as np
import pytest
from arm_motions import ROBOT as ARM
from calibration_runs import calibrated

from youbot_dynamics.identification.body import _model as body_model
from youbot_dynamics.identification.body import identify_axis
from youbot_dynamics.identification.calibration import _fit as calibration_fit
from youbot_dynamics.identification.calibration import _solution as calibration_solution
from youbot_dynamics.identification.calibration import _tape as tape
from youbot_dynamics.identification.delay import LaggedCommand, _fopdt, estimate_delay
from youbot_dynamics.identification.response import _fit as response_fit
from youbot_dynamics.identification.response import identify_response
from youbot_dynamics.identification.response._problem import Problem
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.identification.signals import HeldCommand
from youbot_dynamics.identification.thermal import _fit as thermal_fit
from youbot_dynamics.robot import load_robot

PERIOD, DEAD_TIME, LAG = 0.02, 0.06, 0.05
STOPPED = "the search was stopped after"
DYNAMICS = load_robot().base.dynamics()


def clean_motion(duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times of the commands, twists in ramps, and the path along each axis: a dead time and a lag, exactly."""
    random, sent = np.random.default_rng(3), np.arange(0.0, duration, PERIOD)
    goals = np.repeat(random.uniform(-1.0, 1.0, (len(sent) // 40 + 1, 3)) * (0.3, 0.2, 0.6), 40, axis=0)[: len(sent)]
    goals[sent < 1.0] = 0.0
    twists = np.zeros_like(goals)
    for k in range(1, len(sent)):
        twists[k] = twists[k - 1] + np.clip(goals[k] - twists[k - 1], -0.02, 0.02)
    commands = [LaggedCommand(HeldCommand(sent, twist, 0.0), LAG) for twist in twists.T]
    fine = np.arange(0.0, duration, PERIOD / 10.0)
    return sent, twists, np.column_stack([command.at(fine - DEAD_TIME).motion for command in commands])


def clean_drive(duration: float = 20.0) -> DriveSignals:
    sent, twists, body = clean_motion(duration)
    return DriveSignals(sent, twists, sent, rolled_path(body)[::10])


def test_the_response_of_a_drive_without_noise_is_found_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    simulations = 0
    stacked = Problem.stacked

    def counted(*arguments):
        nonlocal simulations
        simulations += 1
        return stacked(*arguments)

    monkeypatch.setattr(Problem, "stacked", counted)
    found = identify_response([clean_drive()], DYNAMICS, [0.1, 0.1, 0.1])
    kinds = len(response_fit._KINDS)
    assert simulations < response_fit._FIRST_BUDGET + kinds * (2 * response_fit._TRIAL + response_fit._BUDGET)
    for axis in ("x", "y", "yaw"):
        assert found[f"dead_time_{axis}"].value == pytest.approx(DEAD_TIME, abs=2e-3)
    assert found["lag"].value == pytest.approx(LAG, abs=2e-3)


def test_a_response_whose_search_spent_its_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_BUDGET", "_TRIAL", "_BUDGET"):
        monkeypatch.setattr(response_fit, name, 12)
    found = identify_response([clean_drive()], DYNAMICS, [0.1, 0.1, 0.1])
    assert not found.usable
    for one in found.estimates:
        assert not one.identified
        assert one.name == "feed" or f"{STOPPED} 12 simulations of the drives" in one.verdict, one


def test_a_dead_time_whose_search_spent_its_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, twists, body = clean_motion(30.0)
    arguments = sent, twists[:, 0], sent, body[::10, 0]
    assert estimate_delay(*arguments, model="fopdt", measured_is="position")[0].dead_time.identified
    monkeypatch.setattr(_fopdt, "_BUDGET", 4)
    (found,) = estimate_delay(*arguments, model="fopdt", measured_is="position")
    assert all(f"{STOPPED} 4 evaluations" in one.verdict for one in (found.dead_time, found.lag))
    assert found.identified, "the effective delay has a search of its own"


def test_a_body_whose_search_spent_its_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, twists, body = clean_motion(60.0)
    arguments = "x", "m/s", sent, twists[:, 0], sent, body[::10, 0]
    assert identify_axis(*arguments, measured_is="position")["effective"].identified
    monkeypatch.setattr(body_model, "BUDGET", 1)
    found = identify_axis(*arguments, measured_is="position")
    assert all(STOPPED in one.verdict for one in found.estimates)


def test_heat_whose_search_spent_its_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    motor = ARM.arm.motors()[3].motor
    time, ambient = np.arange(0.0, 1800.0, 2.0), motor.ambient_temperature
    current = np.select([time < 300, time < 420, time < 900, time < 1100], [1.2, 0.0, 0.9, 1.4], 0.0)
    after = motor.heat_history(ambient, ambient, current[:-1], np.full(len(time) - 1, 2.0))
    winding, housing = np.vstack([[ambient, ambient], after]).T
    run = thermal_fit.HeatRun(time, current, winding, housing, ambient)
    assert thermal_fit.identify_heat([run])["winding_time_constant"].identified
    monkeypatch.setattr(thermal_fit, "_BUDGET", 1)
    found = thermal_fit.identify_heat([run])
    assert all("stopped after 1 evaluations" in one.verdict for one in (*found.ratios, *found.constants))


def test_a_geometry_whose_search_spent_its_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (calibration_fit, calibration_solution):
        monkeypatch.setattr(module, "ROUNDS", 1)
    found, _ = calibrated(1)
    assert all(f"{STOPPED} 1 steps" in one.verdict for one in found.estimates)


def test_a_tape_whose_search_spent_its_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    base = load_robot().base.geometry.mecanum()
    ways = {tape.FORWARD: (0.3, 0.0, 0.0), tape.SIDEWAYS: (0.0, 0.3, 0.0), tape.TURN: (0.0, 0.0, 0.8)}
    times = np.linspace(0.0, 5.0, 200)[:, None]
    legs = [
        tape.TapeLeg(kind, times * base.wheel_speeds(twist), 1.01 * 5.0 * float(np.linalg.norm(twist)), 0.002)
        for kind, twist in ways.items()
    ]
    assert all(one.identified for one in tape.calibrate_by_tape(legs, base).estimates)
    monkeypatch.setattr(tape, "_ROUNDS", 1)
    assert all(f"{STOPPED} 1 steps" in one.verdict for one in tape.calibrate_by_tape(legs, base).estimates)
