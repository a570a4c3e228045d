"""Apply a law of one joint to numbers or, element by element, to arrays of joints or samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import InputError

Value = TypeVar("Value", float, Vector)


def each(law: Callable[..., float], values: Mapping[str, Value], *constants: float) -> Value:
    """Figure of `law(*values, *constants)` for numbers, or for arrays (n,) of one shape, numbers among them.

    Args:
        law: function of floats that returns a float.
        values: arguments by the name a user knows them by.
        constants: further arguments, the same for all elements.

    Raises:
        InputError: a value is not finite, the shapes differ, or there is no element.
    """
    result: Any = _apply(law, values, constants)
    return result  # type: ignore[no-any-return]


def each_of_many(law: Callable[..., tuple[float, ...]], values: Mapping[str, Value], *constants: float) -> list[Value]:
    """The same as `each` for a law of several figures: one number or array (n,) for each of them."""
    return list(_apply(law, values, constants))


def _apply(law: Callable[..., Any], values: Mapping[str, Any], constants: tuple[float, ...]) -> Any:
    if all(isinstance(value, (float, int)) for value in values.values()):
        for name, value in values.items():
            if not math.isfinite(value):
                raise InputError(name, got=str(value), expected="a finite number", remedy="check where it came from")
        return law(*(float(value) for value in values.values()), *constants)
    found = [array(name, value, (None,) * _dimensions(name, value)) for name, value in values.items()]
    names = " and ".join(values)
    shapes = " and ".join(str(item.shape) for item in found)
    try:
        shape = np.broadcast_shapes(*(item.shape for item in found))
    except ValueError:
        raise InputError(names, got=f"shapes {shapes}", expected="numbers, or arrays of one shape (n,)") from None
    if 0 in shape:
        raise InputError(names, got=f"shapes {shapes}", expected="one element at least")
    columns = (np.broadcast_to(item, shape).ravel().tolist() for item in found)
    figures = np.array([law(*one, *constants) for one in zip(*columns, strict=True)])
    return np.ascontiguousarray(figures.T).reshape(figures.shape[1:] + shape)


def _dimensions(name: str, value: Any) -> int:
    try:
        return np.ndim(value)
    except ValueError:
        raise InputError(
            name, got="rows of different lengths", expected="numbers, or arrays of one shape (n,)"
        ) from None
