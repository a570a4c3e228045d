"""Other explanations of the data: what they change counts as an error, and they are the reason of a refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest

from youbot_dynamics.identification.arm_friction._fit import JointFit
from youbot_dynamics.identification.arm_friction._rows import JointRows
from youbot_dynamics.identification.least_squares import (
    WIDEST_SHARE,
    Kind,
    Reason,
    Rival,
    Rows,
    Unknown,
    admitted,
    combined,
    judge,
    least_squares,
    reaching,
    strength,
    undetermined,
    widened,
)

UNKNOWN = Unknown("friction", "N m", low=0.0)
LATE, WARM = (Reason(Kind.OTHER_EXPLANATION, text) for text in ("efforts are late", "the gear warms up"))
SURE = judge(UNKNOWN, 1.0, 0.1, 0.2)


def after(rivals: list[Rival], estimate=SURE):
    return widened([estimate], [UNKNOWN], rivals, 2.0)[0]


def test_what_a_rival_changes_is_an_independent_error():
    wider = after([Rival(LATE, {"friction": -0.1}), Rival(WARM, {"friction": 0.1})])
    assert wider.identified and wider.value == 1.0
    assert wider.standard_error == pytest.approx(0.1 * math.sqrt(3.0))
    assert wider.interval == pytest.approx((1.0 - 0.2 * math.sqrt(3.0), 1.0 + 0.2 * math.sqrt(3.0)))


def test_a_longer_interval_and_its_standard_error_say_the_same():
    """Intervals of +-27 ms stood beside standard errors of .8 ms."""
    longer = reaching(SURE, UNKNOWN, (0.8, 1.4))
    assert longer.identified and longer.interval == (0.8, 1.4)
    assert longer.standard_error == pytest.approx(0.1 * 0.6 / 0.4)
    wide = reaching(SURE, UNKNOWN, (0.2, 1.8), "; drive more")
    assert wide.reason.kind is Kind.TOO_WIDE and "drive more" in wide.reason.text
    assert reaching(wide, UNKNOWN, (0.1, 1.9)).reason == wide.reason
    assert reaching(SURE, UNKNOWN, SURE.interval) is SURE


def test_a_rival_that_says_nothing_of_a_value_leaves_it():
    assert after([Rival(LATE, {"friction": 0.0}), Rival(WARM, {"another": 5.0})]) == SURE


@pytest.mark.parametrize("change", [math.nan, math.inf])
def test_a_rival_that_leaves_a_value_undetermined_refuses_it(change):
    refused = after([Rival(WARM, {"friction": 0.1}), Rival(LATE, {"friction": change})])
    assert refused.reason == LATE and refused.interval == SURE.interval
    assert after([Rival(None, {"friction": change})]).reason.kind is Kind.OTHER_EXPLANATION


def test_the_rival_that_changes_a_value_most_is_the_reason_of_its_refusal():
    assert after([Rival(LATE, {"friction": 0.2}), Rival(WARM, {"friction": -0.3})]).reason == WARM
    assert after([Rival(None, {"friction": 0.5})]).reason.kind is Kind.TOO_WIDE


def test_an_earlier_reason_stays_unless_it_is_a_width_that_is_mostly_of_a_rival():
    against = SURE.refused(Reason(Kind.WRONG_SIGNALS, "the efforts have the wrong sign"))
    assert after([Rival(LATE, {"friction": 0.9})], against).reason == against.reason
    wide = judge(UNKNOWN, 1.0, 0.3, 0.6)
    assert after([Rival(LATE, {"friction": 0.1})], wide).reason == wide.reason
    assert after([Rival(LATE, {"friction": 0.4})], wide).reason == LATE


def test_a_value_at_a_bound_or_without_data_is_left_alone():
    for estimate in (judge(UNKNOWN, -0.1, 0.1, 0.2), undetermined(UNKNOWN)):
        assert repr(after([Rival(LATE, {"friction": 0.3})], estimate)) == repr(estimate)


def test_the_mean_of_recordings_is_judged_by_what_sufficed_for_them_not_by_the_widest():
    """Two that are half their value wide and far apart made a mean of .07 in (.003, .142) that was identified."""
    delay = Unknown("delay", "s", low=0.0, resolution=0.005)
    apart = [judge(delay, value, 0.25 * value, WIDEST_SHARE * value) for value in (0.14, 0.02)]
    assert all(one.identified for one in apart) and combined(apart).reason.kind is Kind.TOO_WIDE
    negligible = [judge(delay, value, 0.0022, 0.0045) for value in (0.004, 0.005)]
    assert combined(negligible).identified and combined(negligible).interval[1] < 0.01


def test_rivals_count_that_are_nearly_as_significant_as_the_strongest():
    found = admitted([Rival(LATE, {}, strength) for strength in (2.9, 4.0, 6.0, 8.0)])
    assert [rival.strength for rival in found] == [6.0, 8.0]
    assert not admitted([Rival(LATE, {}, 2.9)]) and not admitted([])
    certain = Rival(WARM, {})
    assert admitted([Rival(LATE, {}, 8.0), certain]) == [certain]


def test_the_strength_of_a_rival_is_that_of_its_own_terms():
    rng = np.random.default_rng(1)
    time = np.linspace(0.0, 60.0, 6000)
    table = rng.normal(size=(len(time), 2))
    rows = Rows(time, np.column_stack([table, np.zeros(len(time))]), table @ [1.0, 0.0] + rng.normal(size=len(time)))
    fit = least_squares([rows], [Unknown(name, "1") for name in ("real", "none", "absent")])
    assert (
        strength(fit, ["real"]) == pytest.approx(fit.values[0] / fit["real"].standard_error)
        and strength(fit, ["real"]) > 30
    )
    assert strength(fit, ["none"]) < 4.0 and strength(fit, ["absent"]) == strength(fit, []) == 0.0
    assert strength(fit, ["none", "real", "absent"]) == strength(fit, ["real"])


def test_a_total_is_compared_with_the_whole_of_another_fit_whatever_its_parts_are():
    """A further term may take the place of the Coulomb torque, which is then far below its bound of 0."""
    nothing = np.zeros(0)
    row = JointRows(0, "joint", nothing, nothing, *[nothing] * 8)
    total = judge(Unknown("joint_total_at_0.5", "N m", low=0.0), 0.4, 0.01, 0.02)
    joint = JointFit("joint", (), 0.99, 200, (0.1, 1.0), (total,), (0.5,))
    values = {"joint_coulomb": -1.1, "joint_viscous": 0.2, "joint_stribeck": math.nan, "joint_bend": math.nan}
    changes = joint.changes_to(values, row, lambda speed: 1.405 * (speed / 0.5) ** -1.0)
    assert changes["joint_total_at_0.5"] == pytest.approx(0.005)


@pytest.mark.parametrize("size", [0.001, 1.0, 1000.0])
def test_what_is_negligible_depends_on_the_whole_and_not_on_the_size_of_a_motor(size):
    rng = np.random.default_rng(2)
    time = np.linspace(0.0, 60.0, 3000)
    speed = np.sin(0.7 * time) + 0.3 * np.sin(2.9 * time)
    table = np.column_stack([np.sign(speed), speed])
    parts = [Unknown(name, "N m", whole="motor") for name in ("coulomb", "viscous")]
    kinds = {}
    for noise in (0.1, 3.0):
        target = size * (table @ [1.0, 0.0] + noise * rng.normal(size=len(time)))
        fit = least_squares([Rows(time, table, target)], parts)
        coulomb, viscous = fit.estimates
        assert coulomb.identified
        kinds[noise] = viscous.reason and viscous.reason.kind
        assert fit.half_width(viscous.standard_error) > WIDEST_SHARE * abs(viscous.value)
    assert kinds == {0.1: None, 3.0: Kind.TOO_WIDE}
