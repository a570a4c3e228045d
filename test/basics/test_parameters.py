"""The table of parameters: types, ranges, names; one table for nodes, files and docs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.tracking_run import RunSettings
from youbot_dynamics.control.trajectory import TrajectoryLimits
from youbot_dynamics.control.wheel_commands import CommanderSettings
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.odometry import GyroSettings, SlipSettings
from youbot_dynamics.estimation.payload import PayloadTuning
from youbot_dynamics.parameters import (
    Parameter,
    build,
    check_names,
    fact,
    fact_table,
    facts_of,
    setting,
    settings_from_values,
    settings_table,
)

SPEED = Parameter("base.speed", 1.0, "Speed.", unit="m/s", low=0.0, high=2.0)
COUNT = Parameter("count", 3, "Count.", low=1.0)
SWITCH = Parameter("switch", True, "Switch.")
MODE = Parameter("mode", "twist", "Mode.", choices=("twist", "joint_state"))
SIGNS = Parameter("signs", (1.0, -1.0), "Signs.", low=-1.0, high=1.0, length=2)
NAMES = Parameter("names", ("a", "b"), "Names.")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(SPEED, 0.0), (SPEED, 2.0), (COUNT, 1), (SWITCH, False), (MODE, "joint_state"), (NAMES, ("x",))],
)
def test_a_value_that_fits_is_returned_in_its_own_type(parameter: Parameter, value: object) -> None:
    checked = parameter.check(value)
    assert checked == value and type(checked) is type(value)


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        (SPEED, 1, r"a number with a decimal point, 0 to 2 \[m/s\]"),
        (SPEED, "1.0", "a number with a decimal point"),
        (SPEED, True, "a number with a decimal point"),
        (SPEED, None, "a number with a decimal point"),
        (SPEED, math.nan, "a finite number"),
        (SPEED, math.inf, "a finite number"),
        (SPEED, -0.1, r"0 to 2 \[m/s\]"),
        (SPEED, 2.1, r"0 to 2 \[m/s\]"),
        (SPEED, [1.0], "a number"),
        (COUNT, 3.0, "an integer"),
        (COUNT, True, "an integer"),
        (COUNT, 0, "1 to inf"),
        (SWITCH, 1, "true or false"),
        (SWITCH, "true", "true or false"),
        (MODE, "pwm", "one of twist, joint_state"),
        (MODE, 1, "a text"),
        (SIGNS, (1.0,), "2 elements"),
        (SIGNS, (1.0, 2.0), "-1 to 1"),
        (SIGNS, (1.0, 1), "a list of floats"),
        (SIGNS, (1.0, math.nan), "a finite number"),
        (SIGNS, "ab", "a list of floats"),
        (SIGNS, 1.0, "a list of floats"),
        (NAMES, ("a", 1), "a list of texts"),
        (NAMES, "ab", "a list of texts"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_name_and_expectation(
    parameter: Parameter, value: object, words: str
) -> None:
    with pytest.raises(ParameterError, match=rf"parameter {parameter.name}: got .*; expected .*{words}") as caught:
        parameter.check(value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [[1.0, -1.0], (1.0, -1.0), np.array([1.0, -1.0])])
def test_lists_of_every_make_become_tuples_of_plain_floats(given: object) -> None:
    checked = SIGNS.check(given)
    assert checked == (1.0, -1.0) and all(type(item) is float for item in checked)


def test_the_range_names_its_unit_and_open_ends() -> None:
    assert (SPEED.range_text(), COUNT.range_text(), SWITCH.range_text()) == ("0 to 2 [m/s]", "1 to inf", "")
    assert Parameter("a", 0.0, "", unit="m", high=1.0).range_text() == "-inf to 1 [m]"


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    check_names(["a.speed"], ["a.speed", "a.rate"])
    with pytest.raises(ParameterError, match=r"parameter a\.sped: .*did you mean a\.speed\?"):
        check_names(["a.sped"], ["a.rate", "a.speed"])
    with pytest.raises(ParameterError, match=r"known: a\.rate, a\.speed"):
        check_names(["zzzzzz"], ["a.speed", "a.rate"])
    with pytest.raises(ParameterError, match=r"its own: /\*\*/base_controller: ros__parameters: command_interface"):
        check_names(["robot.driver.command_interface"], ["robot.driver.command_sign"])


@dataclasses.dataclass(frozen=True)
class Wheel:
    radius: float = fact("Radius.", "m", (0.01, 1.0), source="ruler")
    signs: tuple[float, ...] = fact("Signs.", "1", length=2, source="driver")


@dataclasses.dataclass(frozen=True)
class Cart:
    name: str = fact("Name.", source="user")
    wheel: Wheel


VALUES = {"cart.name": "c", "cart.wheel.radius": 0.1, "cart.wheel.signs": (1.0, -1.0)}


def test_facts_flatten_to_dotted_names_and_build_back() -> None:
    assert [name for name, _, _ in facts_of(Cart, "cart")] == list(VALUES)
    table = fact_table(Cart, "cart", VALUES)
    assert [(item.name, item.default, item.unit, item.source) for item in table] == [
        ("cart.name", "c", "", "user"),
        ("cart.wheel.radius", 0.1, "m", "ruler"),
        ("cart.wheel.signs", (1.0, -1.0), "1", "driver"),
    ]
    assert all(item.read_only for item in table)
    assert build(Cart, "cart", VALUES) == Cart("c", Wheel(0.1, (1.0, -1.0)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cart.wheel.radius": 2.0}, r"cart\.wheel\.radius: got 2\.0; expected 0\.01 to 1"),
        ({"cart.wheel.signs": (1.0,)}, "2 elements"),
        ({"cart.whel.radius": 0.1}, r"did you mean cart\.wheel\.radius"),
    ],
)
def test_facts_that_break_their_own_table_are_refused(changes: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fact_table(Cart, "cart", {**VALUES, **changes})


def test_a_missing_fact_is_named() -> None:
    with pytest.raises(ParameterError, match=r"cart\.wheel\.radius: got no value"):
        fact_table(Cart, "cart", {"cart.name": "c", "cart.wheel.signs": (1.0, 1.0)})


def test_settings_become_a_table_with_their_defaults() -> None:
    @dataclasses.dataclass(frozen=True)
    class Some:
        rate: float = setting(50.0, "Rate.", "Hz", (1.0, 100.0), read_only=True, source="ruler")
        mode: str = setting("a", "Mode.", choices=("a", "b"), source="ruler")

    rate, mode = settings_table(Some)
    assert (rate.name, rate.default, rate.range_text(), rate.read_only) == ("rate", 50.0, "1 to 100 [Hz]", True)
    assert mode.choices == ("a", "b") and not mode.read_only
    assert Some(rate=2.0).rate == 2.0


def test_settings_within_settings_are_read_and_filled_by_their_own_names() -> None:
    table = [parameter.name for parameter in settings_table(ArmSettings)]
    assert {"friction_error", "heat_error", "payload_share", "hold_time"} <= set(table)
    assert not {"filter", "effort_swing", "wander"} & set(table), "no parameters of the node"
    filled = settings_from_values(ArmSettings, {"friction_error": 0.05, "heat_error": 0.1, "hold_time": 9.0, "x": 1.0})
    assert (filled.filter.friction_error, filled.heat.heat_error, filled.hold_time) == (0.05, 0.1, 9.0)
    assert filled.payload == PayloadTuning()


@pytest.mark.parametrize("cls", [TrackerSettings, CommanderSettings, GyroSettings, ArmSettings])
def test_every_setting_of_the_core_says_what_it_is_and_keeps_its_own_range(cls: type) -> None:
    for parameter in settings_table(cls):
        assert parameter.check(parameter.default) == parameter.default
        assert parameter.description.endswith(".") and parameter.source
        if isinstance(parameter.default, float):
            assert parameter.unit and parameter.low is not None and parameter.high is not None


@pytest.mark.parametrize(
    "kind",
    [
        TrackerSettings,
        RunSettings,
        TrajectoryLimits,
        CommanderSettings,
        ArmSettings,
        GyroSettings,
        SlipSettings,
    ],
)
def test_settings_made_in_python_refuse_what_a_parameter_file_may_not_say(kind: type) -> None:
    own = {item.name for item in dataclasses.fields(kind)}
    for parameter in settings_table(kind):
        if parameter.name not in own:
            continue  # of a part, which checks its own
        kind(**{parameter.name: parameter.default})
        wrong = [None, [], {}] + ([math.nan, math.inf, -math.inf, "1"] if type(parameter.default) is float else [])
        wrong += [10**400] if type(parameter.default) is float else []
        wrong += [parameter.high * 1.01] if parameter.high is not None else []
        wrong += ["nonsense"] if parameter.choices else []
        for value in wrong:
            with pytest.raises(ParameterError, match=f"^parameter {parameter.name}: got .*; expected "):
                kind(**{parameter.name: value})


def test_a_whole_number_is_as_good_as_a_decimal_one_in_python() -> None:
    assert TrackerSettings(aggressiveness=1) == TrackerSettings(aggressiveness=1.0)
    with pytest.raises(ParameterError, match="parameter feedback: got 1; expected true or false"):
        TrackerSettings(feedback=1)
