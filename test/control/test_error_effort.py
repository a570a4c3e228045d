"""Effort of the feedback and what it buys: PID and LQ on one curve, quick beside `scripts/error_effort.py`."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from delay_runs import calibrated_truth
from repository import ROOT
from response_runs import ROBOT, errors_of
from tracking_runs import knowing

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.tracker._base_lq import LqSettings
from youbot_dynamics.control.tracker._feed_forward import FeedForward
from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.resources import program_path
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.scenario._drive import Drive
from youbot_dynamics.simulation.youbot import BaseOnly

SCRIPT = ROOT / "scripts" / "error_effort.py"
spec = importlib.util.spec_from_file_location("error_effort", SCRIPT)
curve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(curve)

PERIOD = 0.02
TRUTH = calibrated_truth(1)
KNOWN = knowing(ROBOT, TRUTH)


def begin(settings: TrackerSettings | None = None) -> Drive:
    """Drive 8 s of the combined program."""
    whole = read_program(program_path("combined"), PERIOD)
    path = Program("begin", whole.twists[: round(8.0 / PERIOD)], PERIOD).trajectory()
    return drive(path, KNOWN, BaseOnly(TRUTH, ROBOT.driver, 1), 1, settings)


@functools.cache
def point(law: str, aggressiveness: float = 1.0):
    """Drive a robot that is known as it is: nothing is identified, so it is quick."""
    run = begin(TrackerSettings(tracker=law, aggressiveness=aggressiveness))
    return curve.Point(errors_of(run).std(axis=0), curve.feedback_effort(run))


def test_effort_is_the_command_less_the_feed_forward() -> None:
    run = begin()
    model = KNOWN.base.driven()
    forward = FeedForward(model, run.desired, PERIOD)
    rows = [request for request in run.tracker_requests if request.stamp <= run.start + run.desired.duration]
    added = [request.twist - forward.twist(request.stamp + PERIOD - run.start) for request in rows]
    np.testing.assert_allclose(curve.feedback_effort(run), np.sqrt(np.mean(np.square(added), axis=0)), rtol=1e-9)
    still = begin(TrackerSettings(feedback=False))
    np.testing.assert_array_equal(curve.feedback_effort(still), 0.0)


def test_lq_is_within_ten_percent_of_pid_or_a_tenth_of_a_millimetre() -> None:
    pid, lq = point("pid"), point("lq")
    print(f"\npid {1e3 * pid.error} for {1e3 * pid.effort}, lq {1e3 * lq.error} for {1e3 * lq.effort}")
    assert curve.lq_holds(pid, lq)
    assert not curve.lq_holds(pid, curve.Point(pid.error + [0.0, 0.0, 2e-4 + 0.1 * pid.error[2]], lq.effort))


@pytest.mark.parametrize("law", curve.LAWS)
def test_aggressiveness_moves_both_laws_along_their_curves(law: str) -> None:
    """More effort each time, on every axis; LQ settings of 1 are those shipped."""
    points = [point(law, setting) for setting in (0.25, 2.0)]
    assert np.all(points[1].effort > 1.5 * points[0].effort)
    assert LqSettings().quicker(1.0) == LqSettings()
    assert LqSettings().quicker(2.0).response == LqSettings().response / 2.0


@pytest.mark.slow
@pytest.mark.parametrize("program", ["translation", "rotation", "combined"])
@pytest.mark.parametrize(("plant", "seeds"), [("twin", range(3)), ("mujoco", range(1))])
def test_lq_holds_beside_pid_in_every_cell(plant: str, program: str, seeds: range) -> None:
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    pid, lq = (curve.mean([curve.measure(plant, program, law, 1.0, seed) for seed in seeds]) for law in curve.LAWS)
    print(f"\n{plant} {program}: pid {1e3 * pid.error} for {1e3 * pid.effort}, lq {1e3 * lq.error}, {1e3 * lq.effort}")
    assert curve.lq_holds(pid, lq)


def test_the_figure_has_a_curve_of_each_law(tmp_path: Path) -> None:
    settings = [0.25, 1.0, 2.0]
    made = {("combined", law): [point(law, setting) for setting in settings] for law in curve.LAWS}
    for path in (tmp_path / "curve.svg", tmp_path / "again.svg"):
        curve.draw(made, settings, path)
    text = (tmp_path / "curve.svg").read_text(encoding="utf-8")
    assert all(text.count(colour) >= 3 for colour in ("#1f77b4", "#ff7f0e"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--settings", "-1"), "--settings: got [-1.0], expected finite numbers above 0"),
        (("--settings", "1", "nan"), "--settings: got [1.0, nan]"),
        (("--seeds", "0", "-1"), "--seeds: got -1, expected 0 or more"),
        (("--out", "curve.foo"), "--out: got curve.foo, expected a file .svg or .png"),
        (("--out", "no/such/folder/curve.svg"), "in a folder that is there"),
    ],
)
def test_what_cannot_be_drawn_or_driven_is_refused_before_the_drives(words, told, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(SCRIPT), *words])
    with pytest.raises(SystemExit) as ended:
        curve.main()
    assert ended.value.code == 2 and told in capsys.readouterr().err
