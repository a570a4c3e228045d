"""Check a short vector at the price of a few hundred nanoseconds, for functions that nodes call in their loops."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.errors import InputError, ModelError

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

# What float() takes all the same, losing a part or reading a text.
_NO_NUMBERS = (str, bytes, bytearray, bool, np.bool_, np.complexfloating, np.datetime64, np.timedelta64)


LARGEST = 1e100  # no quantity here is larger, in SI units; a product of three of that size is still finite


def array(thing: str, value: ArrayLike, shape: tuple[int | None, ...], largest: float = LARGEST) -> Vector:
    """Return `value` as a contiguous float64 array of the wanted shape; None stands for any length.

    Raises:
        InputError: it is not made of real numbers (text, complex numbers, times and masked elements are not), has
            another shape, or holds NaN, infinity, or numbers so large that computing with them gives infinity.
    """
    numbers = real(thing, value, shape)
    if not (np.abs(numbers) <= largest).all():
        place = np.argwhere(~(np.abs(numbers) <= largest))[0]
        index = f"[{', '.join(str(k) for k in place)}]" if len(place) else ""
        wrong, remedy = float(numbers[tuple(place)]), "check the source of this value"
        expected = f"a number of at most {largest:g}" if math.isfinite(wrong) else "a finite number"
        raise InputError(f"{thing}{index}", got=str(wrong), expected=expected, remedy=remedy)
    return numbers


def real(thing: str, value: ArrayLike, shape: tuple[int | None, ...] | None = None) -> Vector:
    """Return `value` as `array` does, of any shape by default; NaN and infinity stand for what is not known.

    Raises:
        InputError: it is not made of real numbers, as in `array`, or has another shape.
    """
    try:
        numbers = np.asarray(_real(value), dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        expected = "an array of numbers" if shape is None else f"numbers of shape {_text(shape)}"
        raise InputError(thing, got=excerpt(value), expected=expected) from None
    wanted = numbers.shape if shape is None else shape
    if len(wanted) != numbers.ndim or any(n not in (None, m) for n, m in zip(wanted, numbers.shape, strict=True)):
        raise InputError(thing, got=f"shape {_text(numbers.shape)}", expected=f"shape {_text(wanted)}")
    return numbers


def scalar(thing: str, value: ArrayLike | SupportsFloat) -> float:
    """Return `value` as one finite number.

    Raises:
        InputError: as `array`.
    """
    if isinstance(value, float) and -LARGEST <= value <= LARGEST:
        return float(value)
    return float(array(thing, value, ()))  # type: ignore[arg-type]


def positive_time(thing: str, value: ArrayLike | SupportsFloat) -> float:
    """Return `value` as a time above 0 [s].

    Raises:
        InputError: as `scalar`, or a time that is not above 0.
    """
    if not (length := scalar(thing, value)) > 0.0:
        raise InputError(thing, got=f"{length:g} s", expected="a time above 0")
    return length


def _real(value: ArrayLike) -> ArrayLike:
    """Return `value`, or an array of it, if float64 can hold it without losing a part; else TypeError or ValueError."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray and np.ma.is_masked(value):
        raise TypeError
    values = np.asarray(value)
    texts = values.dtype.kind == "O" and any(isinstance(element, (str, bytes)) for element in values.flat)
    if values.dtype.kind not in "fiubO" or texts:
        raise TypeError
    return values


def number(
    thing: str,
    value: SupportsFloat,
    unit: str = "",
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
) -> float:
    """Return a model constant as a float, checked against its physical range.

    Args:
        thing: name of the constant as the user knows it.
        value: the constant.
        unit: its unit, for the message; empty for none.
        low: smallest accepted value.
        above: the value must be larger than this.
        high: largest accepted value.

    Raises:
        ModelError: it is no real number (text, True and False are none), not finite, or outside the range.
    """
    bounds = {"above": above, "of at least": low, "of at most": high}
    limits = [f" {words} {bound:g}" for words, bound in bounds.items() if bound is not None]
    wanted = "".join(("a finite number", *limits, f" [{unit}]" if unit else ""))
    try:
        if isinstance(value, _NO_NUMBERS):
            raise TypeError
        constant = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(thing, got=excerpt(value), expected=wanted) from None
    inside = (low is None or constant >= low) and (above is None or constant > above)
    if not (math.isfinite(constant) and inside and (high is None or constant <= high)):
        raise ModelError(thing, got=f"{constant:g}", expected=wanted)
    return constant


def made_of(thing: str, value: object, kind: type) -> None:
    """Check that an argument is an object of a class.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(value, kind):
        raise InputError(thing, got=excerpt(value), expected=f"a {kind.__module__}.{kind.__name__}")


def read_only(value: Vector) -> Vector:
    """Lock an array that a frozen object keeps."""
    value.setflags(write=False)
    return value


def usual_step(times: Vector, otherwise: float = math.nan) -> float:
    """Median step between times (n,); `otherwise` of fewer than two."""
    return float(np.median(np.diff(times))) if len(times) > 1 else otherwise


_APART = 5.0  # usual steps, above which the next burst begins
_FEWEST_BURSTS, _SHORTEST_BURST = 5, 3
_ALIKE, _GATHERED = 0.4, 0.3  # by which bursts differ, and share of the time that they last, at most


def burst_length(times: Vector) -> int:
    """How many messages at increasing times (n,) come at once, 3 or more; 1 where they come one by one or in pairs.

    Bursts are alike in length and evenly apart, and last for a small part of the time between them.
    """
    steps = np.diff(times)
    usual = float(np.median(steps)) if len(steps) else 0.0
    begins = np.flatnonzero(steps > _APART * usual)
    if len(begins) < _FEWEST_BURSTS:
        return 1
    lengths, spans = np.diff(begins), np.diff(times[begins + 1])
    length, span = float(np.median(lengths)), float(np.median(spans))
    for values, middle in ((lengths, length), (spans, span)):
        low, high = np.quantile(values, (0.1, 0.9))
        if low < (1.0 - _ALIKE) * middle or high > (1.0 + _ALIKE) * middle:
            return 1
    return round(length) if length >= _SHORTEST_BURST and length * usual < _GATHERED * span else 1


def rms(values: Vector) -> float:
    """Root mean square of some values."""
    return float(np.sqrt(np.mean(values**2)))


def _text(shape: tuple[int | None, ...]) -> str:
    inner = ", ".join("n" if length is None else str(length) for length in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def excerpt(value: object) -> str:
    """Text of any value for a message, cut to 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


_FLOAT = np.dtype(np.float64)


def finite_vector(thing: str, value: ArrayLike, size: int, batch: bool = False) -> NDArray[np.float64]:
    """Return `value` (n,), or (..., n) of a batch, as float64 numbers, n = `size`; a right array is passed on as it is.

    Same verdict and message as `arrays.array`, which handles all that is no such array.

    Raises:
        InputError: it is not numeric, has another shape, or holds NaN or infinity.
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT and value.shape == (size,):
        numbers: NDArray[np.float64] = value
        if sum(map(abs, numbers.tolist())) <= LARGEST:  # False for NaN too
            return numbers
    return array(thing, value, (None,) * (_rank(value) - 1) + (size,) if batch else (size,))


def _rank(value: ArrayLike) -> int:
    try:
        return np.ndim(value)
    except (TypeError, ValueError):  # nothing with a shape, or rows of different lengths
        return 1


class MadeOfArguments:
    """Base of a frozen dataclass that is copied by calling its class again.

    Pickle and `copy.deepcopy` forget that an array is read-only, and cannot carry a module of compiled code at all.
    The class locks, looks up and checks what a copy needs as it did for the first.
    """

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Class and arguments, for pickle and `copy`."""
        given = fields(self)  # type: ignore[arg-type]
        return type(self), tuple(getattr(self, field.name) for field in given if field.init)


def rounded(value: float) -> float:
    """Four digits: more would be no assumption."""
    return float(f"{value:.4g}")


def smallest_change(readings: Vector) -> Vector:
    """Smallest change (n,) between consecutive readings (s, n) that differ; 0 for those that never change."""
    changes = np.abs(np.diff(readings, axis=0))
    smallest = np.min(np.where(changes > 0.0, changes, np.inf), axis=0, initial=np.inf)
    return np.where(np.isfinite(smallest), smallest, 0.0)
