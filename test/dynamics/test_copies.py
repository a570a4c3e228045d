"""Models that go to other processes and come back: pickle, copies, and what of them stays read-only."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from wheeled_bases import base_of, sliding_state

from youbot_dynamics.compiled import HAVE_NUMBA
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.thermal_motor import ThermalMotor
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.dynamics.tree import _rows as tree_kernels
from youbot_dynamics.errors import ModelError
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import load_robot

ROBOT = load_robot()
ARM = ROBOT.arm.model()
SUBJECTS: dict[str, Any] = {
    "tree with straight-line code": ARM.tree,
    "tree without": Tree.from_urdf(urdf_path("youbot.urdf"), floating_base=True),
    "arm": ARM,
    "state of the arm": ARM.at_rest(np.linspace(0.1, 0.5, 5)),
    "friction": LuGre(1.0, 0.6, 1e4, 1.0, 1.5, 0.05),
    "thermal motor": ARM.motors[0].motor,
    "geared motor": ARM.motors[3],
    "kinematics of the base": ROBOT.base.geometry.mecanum(),
    "dynamics of the base": ROBOT.base.dynamics(),
    "wheeled base": base_of(["mecanum"] * 4),
    "state of the wheeled base": sliding_state(base_of(["mecanum"] * 4), 0),
    "robot": ROBOT,
}
COPIES: dict[str, Callable[[Any], Any]] = {
    f"pickle {k}": lambda x, k=k: pickle.loads(pickle.dumps(x, k)) for k in range(6)
}
COPIES |= {"copy": copy.copy, "deepcopy": copy.deepcopy}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays, numbers and texts an object is made of, by the path to them."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, tuple):
        for k, item in enumerate(value):
            yield from leaves(item, f"{name}[{k}]")
    else:
        yield name, value


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_copy_is_the_same_to_the_bit_and_as_read_only(subject: str, how: str) -> None:
    original = SUBJECTS[subject]
    copied = COPIES[how](original)
    assert type(copied) is type(original)
    pairs = list(zip(leaves(original), leaves(copied), strict=True))
    assert pairs
    for (name, one), (other_name, other) in pairs:
        assert name == other_name and type(one) is type(other)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=name)
            assert one.dtype == other.dtype and not one.flags.writeable and not other.flags.writeable, name
        else:
            assert one == other, name


def test_a_deep_copy_shares_no_array() -> None:
    ours, others = ([x for _, x in leaves(arm) if isinstance(x, np.ndarray)] for arm in (ARM, copy.deepcopy(ARM)))
    assert ours and not any(np.shares_memory(a, b) for a, b in zip(ours, others, strict=True))


def test_a_copy_of_the_arm_moves_as_the_arm() -> None:
    copied = pickle.loads(pickle.dumps(ARM))
    assert copied.tree.is_written_out
    torque = np.full((50, 5), 1.5)
    one, other = (arm.simulate(arm.at_rest(np.zeros(5)), 1e-3, torque=torque) for arm in (ARM, copied))
    np.testing.assert_array_equal(one.position, other.position)
    np.testing.assert_array_equal(one.winding, other.winding)


@pytest.mark.skipif(not HAVE_NUMBA, reason="nothing is compiled")
def test_copies_need_no_other_machine_code() -> None:
    """Numba compiles for arrays that may be written and for those that may not, seconds each."""
    tree, copied = SUBJECTS["tree without"], copy.deepcopy(SUBJECTS["tree without"])
    tree.mass_matrix(tree.neutral())
    kernel = tree_kernels.mass_matrix_rows
    before = len(kernel.signatures)  # type: ignore[attr-defined]
    copied.mass_matrix(copied.neutral())
    assert len(kernel.signatures) == before  # type: ignore[attr-defined]


def accelerations(arm: ArmModel) -> np.ndarray:
    return arm.acceleration(arm.at_rest(np.zeros(5)), np.ones(5))


def test_another_process_takes_the_arm_and_sends_its_answer() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(accelerations, (ARM,)), accelerations(ARM))


def test_a_copy_is_checked_as_the_first_was() -> None:
    made, arguments = ARM.motors[0].motor.__reduce__()
    assert made is ThermalMotor
    with pytest.raises(ModelError, match="torque_constant"):
        made(-1.0, *arguments[1:])


def test_a_tree_locks_the_arrays_it_is_given() -> None:
    layout = ARM.tree.layout._replace(masses=ARM.tree.layout.masses.copy())
    tree = dataclasses.replace(ARM.tree, layout=layout)
    with pytest.raises(ValueError, match="read-only"):
        tree.layout.masses[0] = 1.0
