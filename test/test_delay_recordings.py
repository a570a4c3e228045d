"""The effective delay on recordings of a real robot, and on the formulas of the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from youbot_dynamics.identification.pipeline import Options, identify
from youbot_dynamics.robot import load_robot

ROBOTINO = Path(__file__).resolve().parents[2] / "shared" / "data" / "robotino2_brylev"
MOTORS = (
    "time:ms,command.1:rad/s,command.2:rad/s,command.3:rad/s,_,_,_,measured.1:rad/s,measured.2:rad/s,measured.3:rad/s"
)
SURFACE = (
    "time:ms,_,_,_,command.1:rad/s,command.2:rad/s,command.3:rad/s,_,_,_,"
    "measured.1:rad/s,measured.2:rad/s,measured.3:rad/s"
)

pytestmark = pytest.mark.skipif(not ROBOTINO.is_dir(), reason="data folder absent")


@pytest.mark.parametrize("controller", ["with", "without"])
def test_real_motors_follow_their_set_speed_after_an_eighth_of_a_second(controller):
    log = ROBOTINO / "dc_motor_model_identification" / f"data_for_identification_{controller}_integral.csv"
    found = identify([log], load_robot(), Options(columns=MOTORS)).result.delays
    print([f"{delay.value:.4f} s {delay.interval}" for delay in found])
    assert all(delay.identified for delay in found)
    assert [delay.value for delay in found] == pytest.approx([0.125] * 3, abs=0.03)


@pytest.mark.parametrize("run", ["exp00", "exp12", "exp33"])
def test_a_run_at_constant_set_speed_is_refused(run):
    log = ROBOTINO / "one_surface_type" / "table_surface" / f"{run}.csv"
    found = identify([log], load_robot(), Options(columns=SURFACE)).result.delays
    assert [delay.verdict for delay in found] == ["not identifiable: the command never changed"] * 3
