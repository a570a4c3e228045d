"""The effective delay on recordings of a real robot, and on the formulas of the lab."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import DATA

from youbot_dynamics.identification.delay import DelayEstimate, estimate_delay
from youbot_dynamics.identification.delay.stage import text_signals
from youbot_dynamics.recording.text_log import read_text_log

ROBOTINO = DATA / "robotino2_brylev"
MOTORS = (
    "time:ms,command.1:rad/s,command.2:rad/s,command.3:rad/s,_,_,_,measured.1:rad/s,measured.2:rad/s,measured.3:rad/s"
)
SURFACE = (
    "time:ms,_,_,_,command.1:rad/s,command.2:rad/s,command.3:rad/s,_,_,_,"
    "measured.1:rad/s,measured.2:rad/s,measured.3:rad/s"
)

pytestmark = pytest.mark.skipif(not ROBOTINO.is_dir(), reason="data folder absent")


def estimates(log: Path, columns: str) -> tuple[DelayEstimate, ...]:
    signals = text_signals(read_text_log(log, columns))
    return estimate_delay(
        signals.command_time,
        signals.command,
        signals.measured_time,
        signals.measured,
        model="fopdt",
        measured_is=signals.measured_is,
        channels=signals.channels,
    )


@pytest.mark.parametrize("controller", ["with", "without"])
def test_real_motors_follow_their_set_speed_after_an_eighth_of_a_second(controller):
    log = ROBOTINO / "dc_motor_model_identification" / f"data_for_identification_{controller}_integral.csv"
    found = estimates(log, MOTORS)
    print([f"{delay.value:.4f} s {delay.interval}" for delay in found])
    assert all(delay.identified for delay in found)
    assert [delay.value for delay in found] == pytest.approx([0.125] * 3, abs=0.03)


@pytest.mark.parametrize("controller", ["with", "without"])
def test_of_real_motors_only_the_sum_of_dead_time_and_lag_is_identified(controller):
    """Their lag is too short for their friction: most of the delay is dead time, which no interval of its own holds."""
    log = ROBOTINO / "dc_motor_model_identification" / f"data_for_identification_{controller}_integral.csv"
    for delay in estimates(log, MOTORS):
        print(delay.dead_time, delay.lag, delay.whiteness)
        assert delay.identified and not delay.dead_time.identified
        assert delay.dead_time.value == pytest.approx(0.12, abs=0.03)
        assert not delay.lag.identified
        assert delay.whiteness.p_value < 1e-6  # the motors are not of first order


@pytest.mark.parametrize("run", ["exp00", "exp12", "exp33"])
def test_a_run_at_constant_set_speed_is_refused(run):
    log = ROBOTINO / "one_surface_type" / "table_surface" / f"{run}.csv"
    for delay in estimates(log, SURFACE):
        verdicts = {delay.verdict, delay.dead_time.verdict, delay.lag.verdict}
        assert verdicts == {"not identifiable: the command never changed"}
