"""Wheels and bases that cannot be, states that are none, and copies that stay what they are."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from wheeled_bases import LAYOUTS, base_of, wheel

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.source_systems.wheeled_base import BaseState, Wheel, WheeledBase, simulate, step

STILL = np.zeros(4)


def test_a_mecanum_wheel_must_be_told_its_roller_angle() -> None:
    with pytest.raises(ModelError, match=r"^roller_angle of wheel a: got none; expected the angle .* \[rad\]"):
        wheel("a", "mecanum", (0.1, 0.2))
    assert wheel("a", "mecanum", (0.1, 0.2), roller_angle=0.0).roller_angle == 0.0  # rollers that turn about the axle
    assert wheel("a", "fixed", (0.1, 0.2)).roller_angle == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "mecanum", "roller_angle": 45},
        {"kind": "fixed", "mount_angle": 90},
        {"kind": "fixed", "mount_angle": -7},
    ],
)
def test_angles_of_wheels_in_degrees_are_suspected(change: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"_angle of wheel a: got -?\d+; expected at most .* 2 pi; is it in rad\?"):
        wheel("a", position=(0.1, 0.2), **change)
    turned = wheel("a", "fixed", (0.1, 0.2), mount_angle=2.0 * np.pi)
    assert turned.mount_angle == 2.0 * np.pi


def test_roller_angles_of_a_base_in_degrees_are_suspected() -> None:
    places = [(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)]
    with pytest.raises(ModelError, match=r"roller_angles\[1\]: got 45; expected at most .*2 pi; is it in rad\?"):
        MecanumBase(np.array(places), np.full(4, 0.05), np.array([-np.pi / 4, 45.0, 45.0, -45.0]))


@pytest.mark.parametrize("wheels", [None, 4, (), "abc", ("a", "b", "c"), [None] * 4])
def test_a_base_wants_wheels(wheels: Any) -> None:
    with pytest.raises(ModelError, match="^wheels: got .*; expected a sequence of Wheel"):
        WheeledBase(wheels, 20.0, 1.0, (0.0, 0.0, 0.1))


@pytest.mark.parametrize("state", [None, 1.0, np.zeros(3), "rest"], ids=["none", "number", "array", "text"])
def test_what_is_no_state_of_a_base_is_refused(state: Any) -> None:
    base = base_of(["fixed"] * 4)
    for use in (
        lambda: simulate(base, state, np.zeros((2, 4))),
        lambda: step(base, state, STILL),
        lambda: base.motion(state, STILL),
        lambda: base.energy(state),
    ):
        with pytest.raises(InputError, match="^state: got .*; expected a BaseState"):
            use()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_move_alike_and_stay_read_only(name: str, how: Any) -> None:
    base = base_of(LAYOUTS[name])
    state = base.rolling_state([0.3, 0.1, 0.2])
    n = len(base.wheels)
    twin, there = how(base), how(state)
    np.testing.assert_array_equal(twin.motion(there, np.ones(n)).twist_rate, base.motion(state, np.ones(n)).twist_rate)
    held = [twin.centre_of_mass, *(one.position for one in twin.wheels), there.twist, there.wheel_speeds, there.pose]
    assert not any(array.flags.writeable for array in held)
    assert isinstance(twin.wheels[0], Wheel)
    assert isinstance(there, BaseState)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_mecanum_base_are_read_only(how: Any) -> None:
    twin = how(MecanumBase.rectangular(0.0475, 0.2355, 0.15))
    arrays = [twin.positions, twin.radii, twin.roller_angles, twin.inverse_matrix, twin.forward_matrix]
    assert not any(array.flags.writeable for array in arrays)
    np.testing.assert_array_equal(twin.inverse_matrix, MecanumBase.rectangular(0.0475, 0.2355, 0.15).inverse_matrix)
