"""What other stages tell of a finding is in its interval: errors of a geometry, lags of each axis."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.identification.body.stage import FINDINGS as BODY
from youbot_dynamics.identification.calibration.stage import FINDINGS as CALIBRATION
from youbot_dynamics.identification.delay.stage import FINDINGS as DELAY
from youbot_dynamics.identification.finding import Finding, StageResult
from youbot_dynamics.identification.known_errors import (
    with_errors_of_orders,
    with_errors_of_scales,
    with_errors_of_stamps,
    with_untold_rows,
    without_sideways_motion,
    without_what_limits_hide,
)
from youbot_dynamics.identification.least_squares import NORMAL, Estimate, Kind, Reason
from youbot_dynamics.identification.response.stage import FINDINGS as RESPONSE


@pytest.mark.parametrize(("axis", "error"), [("x", 0.01), ("y", 0.01), ("yaw", np.hypot(0.01, 0.02))])
def test_a_gain_by_the_wheels_has_the_error_of_the_geometry_that_the_same_recordings_gave(axis, error) -> None:
    """Gains were 12 to 34 of their errors off beside a radius that was known to 1 %."""

    def estimate(name: str, value: float, relative: float, reason: Reason | None = None) -> Estimate:
        change = relative * value
        interval = value - NORMAL * change, value + NORMAL * change
        return Estimate(name, "m" if value < 0.5 else "1", value, change, interval, reason)

    size = (("wheel_radius", 0.05, 0.01, None), ("lever", 0.4, 0.02, None))
    refused = ("lateral_factor", 0.95, 0.5, Reason(Kind.TOO_WIDE, "too wide"))
    geometry = [Finding(CALIBRATION.row(name), estimate(name, *values)) for name, *values in (*size, refused)]
    gain = Finding(RESPONSE.row(f"gain_{axis}"), estimate(f"gain_{axis}", 0.95, 1e-4))
    alone = with_errors_of_scales(StageResult("response", (gain,)), []).findings[0]
    (wider,) = with_errors_of_scales(
        StageResult("response", (gain,)), [StageResult("calibration", tuple(geometry))]
    ).findings
    assert alone == gain and wider.identified
    assert wider.estimate.standard_error == pytest.approx(0.95 * np.hypot(error, 1e-4))
    assert wider.estimate.interval[1] - 0.95 > 1.9 * wider.estimate.standard_error


@pytest.mark.parametrize(("friction", "wider"), [(0.0, True), (0.05, False)])
def test_a_gain_of_wheels_without_friction_holds_that_of_an_axis_with_a_lag_of_its_own(friction: float, wider) -> None:
    """Mecanum bases whose axes have different lags: .912 +-.004 ticked for .932, and twelve more of 30."""

    def estimate(name: str, unit: str, value: float, error: float) -> Estimate:
        return Estimate(name, unit, value, error, (value - NORMAL * error, value + NORMAL * error), None)

    delay = Finding(DELAY.row("effective_x"), estimate("effective_x", "s", 0.28, 1e-3), details={"gain": 0.932})
    gain = Finding(RESPONSE.row("gain_x"), estimate("gain_x", "1", 0.912, 4e-3))
    coulomb = Finding(RESPONSE.row("wheel_coulomb"), estimate("wheel_coulomb", "N m", friction, 0.01))
    stages = [StageResult("delay", (delay,))]
    judged = with_errors_of_orders(StageResult("response", (gain, coulomb)), stages).findings[0].estimate
    assert judged.identified
    assert (judged.interval[1] >= 0.932) == wider
    assert (judged.standard_error > 0.02) == wider


def test_a_time_since_a_command_holds_values_later_by_a_row_of_its_log() -> None:
    delay = Finding(DELAY.row("effective_x"), Estimate("effective_x", "s", 0.3, 0.01, (0.28, 0.32), None))
    gain = Finding(RESPONSE.row("gain_x"), Estimate("gain_x", "1", 0.9, 0.01, (0.88, 0.92), None))
    outcome = StageResult("delay", (delay, gain))
    later, same = with_untold_rows(outcome, {"x": 0.1}).findings
    assert later.estimate.value == 0.3 and later.estimate.interval == pytest.approx((0.28, 0.42))
    assert same == gain and with_untold_rows(outcome, {"yaw": 0.1}) == outcome
    refused = with_untold_rows(outcome, {"x": 0.9}).findings[0].estimate
    assert not refused.identified and refused.reason.kind is Kind.TOO_WIDE


def test_a_delay_by_the_wheels_holds_how_late_the_driver_may_stamp_them() -> None:
    """A delay of 244 ms was ticked for one of 184: the wheels were stamped 60 ms late."""
    late = Finding(CALIBRATION.row("stamps"), Estimate("stamps", "s", 0.059, 0.001, (0.055, 0.06), None))
    delay = Finding(DELAY.row("effective_x"), Estimate("effective_x", "s", 0.185, 2e-4, (0.1846, 0.1854), None))
    gain = Finding(RESPONSE.row("gain_x"), Estimate("gain_x", "1", 0.9, 0.01, (0.88, 0.92), None))
    outcome = StageResult("delay", (delay, gain))
    wider, same = with_errors_of_stamps(outcome, [StageResult("calibration", (late,))]).findings
    assert wider.estimate.interval == pytest.approx((0.1836, 0.1894)) and same == gain
    assert with_errors_of_stamps(outcome, []) == outcome
    of_body = StageResult("body", (delay,))  # by odometry, which has stamps of its own
    assert with_errors_of_stamps(of_body, [StageResult("calibration", (late,))]) == of_body


@pytest.mark.parametrize(
    ("kind", "hidden"),
    [(None, True), (Kind.OTHER_EXPLANATION, True), (Kind.NOT_EXCITED, False), (Kind.CONFUSED, False)],
)
def test_a_limit_of_the_acceleration_that_shows_hides_the_delay_by_the_wheels(kind: Kind | None, hidden: bool) -> None:
    """Also of an axis that brakes otherwise than it speeds up: no single limit is identified then."""
    limit = Estimate("acceleration_x", "m/s2", 0.5, 0.01, (0.48, 0.52), None if kind is None else Reason(kind, "why"))
    delay = Estimate("effective_x", "s", 0.5, 0.01, (0.48, 0.52), None)
    stages = [
        StageResult("delay", (Finding(DELAY.row("effective_x"), delay),)),
        StageResult("body", (Finding(BODY.row("acceleration_x"), limit),)),
    ]
    (judged,) = without_what_limits_hide(stages)[0].findings
    assert judged.identified != hidden


@pytest.mark.parametrize(
    ("reason", "lacks"), [(Kind.NOT_EXCITED, True), (Kind.NOT_MEASURED, True), (Kind.TOO_WIDE, False)]
)
def test_a_base_that_was_never_told_to_move_sideways_may_lack_that_axis(reason: Kind, lacks: bool) -> None:
    """Every log of two wheels ended with "not identified: delay sideways", and the program with an error."""
    sideways = BODY.row("effective_y").refused(Reason(reason, "why"))
    forward = Finding(BODY.row("effective_x"), Estimate("effective_x", "s", 0.5, 0.01, (0.48, 0.52), None))
    (stage,) = without_sideways_motion([StageResult("body", (forward, sideways))])
    assert stage.findings == ((forward,) if lacks else (forward, sideways))
