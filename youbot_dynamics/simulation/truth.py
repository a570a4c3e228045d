"""Tables of the hidden truth, config/mock.yaml, and the robots drawn from them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Parameter, Value, check_names, facts_of
from youbot_dynamics.resources import config_path
from youbot_dynamics.simulation.arm_truth import LOGARITHMIC, ArmTruth
from youbot_dynamics.simulation.base_truth import BaseTruth

PREFIX = "truth"
ARM_PREFIX = f"{PREFIX}.arm"


def truth_table(path: Path | None = None) -> tuple[Parameter, ...]:
    """Parameters `truth.*` of the base, then `truth.arm.*`, each (nominal, lowest, highest), from config/mock.yaml.

    Raises:
        ParameterError: a missing or unknown quantity, or values out of range.
    """
    file = config_path("mock.yaml") if path is None else path
    values = {
        name: value for name, value in read_parameters(file, "mock_youbot").items() if name.split(".")[0] == PREFIX
    }
    leaves = (*facts_of(BaseTruth, PREFIX), *facts_of(ArmTruth, ARM_PREFIX))
    check_names(values, (name for name, _, _ in leaves))
    table = []
    for name, _, metadata in leaves:
        if name not in values:
            raise ParameterError(f"parameter {name} in {file}", got="no value", expected="nominal, lowest, highest")
        parameter = Parameter(name, values[name], read_only=True, **{**metadata, "length": 3})
        parameter.check(values[name])
        table.append(parameter)
    return tuple(table)


def draw_truth(values: dict[str, Value], seed: int) -> BaseTruth:
    """Base of one seed.

    Args:
        values: complete `truth.*` table, each (nominal, lowest, highest).
        seed: 0 for the nominal robot, else each quantity of each wheel evenly between its bounds, reproducibly.

    Raises:
        ParameterError: a lowest value above its highest.
        ModelError: a robot that cannot be.
    """
    return BaseTruth(**_draw(BaseTruth, PREFIX, values, seed, np.random.default_rng(seed)))


def draw_arm_truth(values: dict[str, Value], seed: int) -> ArmTruth:
    """Arm of one seed; its draws leave those of the base as they are.

    Args:
        values: complete `truth.*` table, each (nominal, lowest, highest).
        seed: 0 for the nominal arm, else each quantity of each joint between its bounds, reproducibly.

    Raises:
        ParameterError: a lowest value above its highest.
    """
    return ArmTruth(**_draw(ArmTruth, ARM_PREFIX, values, seed, np.random.default_rng([seed, 3])))


def load_truth(seed: int, path: Path | None = None) -> BaseTruth:
    """Base of one seed from config/mock.yaml, or from a file of that form."""
    return draw_truth(_defaults(path), seed)


def load_arm_truth(seed: int, path: Path | None = None) -> ArmTruth:
    """Arm of one seed from config/mock.yaml, or from a file of that form."""
    return draw_arm_truth(_defaults(path), seed)


def _defaults(path: Path | None) -> dict[str, Value]:
    return {parameter.name: parameter.default for parameter in truth_table(path)}


def _draw(
    cls: type, prefix: str, values: dict[str, Value], seed: int, generator: np.random.Generator
) -> dict[str, Any]:
    """Quantities of a truth in the order of its fields; lists are drawn for each of their elements."""
    drawn: dict[str, Any] = {}
    for item in dataclasses.fields(cls):
        nominal, low, high = _spread(values, f"{prefix}.{item.name}")
        shares = generator.random(item.metadata["length"] or 1)
        if seed == 0:
            numbers = np.full(len(shares), nominal)
        elif item.name in LOGARITHMIC:
            numbers = low * (high / low) ** shares
        else:
            numbers = low + shares * (high - low)
        drawn[item.name] = tuple(numbers.tolist()) if item.metadata["length"] else float(numbers[0])
    return drawn


def _spread(values: dict[str, Value], name: str) -> tuple[float, float, float]:
    nominal, low, high = (float(number) for number in values[name])  # type: ignore[union-attr]
    if low > high:
        raise ParameterError(f"parameter {name}", got=f"lowest {low:g} above highest {high:g}")
    return nominal, low, high
