"""The rhythm of a series of stamps: rate, lost messages, and what does not come from one steady sender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

_MISSING = 1.5  # periods between messages from which on one is missing
_WINDOW = 25  # steps over which the rate is taken
_OTHER_RATE = 1.4  # ratio of rates
_SHORT = 0.5  # of a usual step: what a steady sender does not send
_MANY = 0.1  # share of the steps
_ALTERNATING = -0.8  # correlation of a step with the next; independent jitter of the stamps gives -0.5
_UNEVEN = 0.05  # spread of the steps over their mean


@dataclass(frozen=True)
class Rhythm:
    """How regularly messages were sent.

    Args:
        rate: from the median step [Hz]; NaN where no two stamps differ.
        missing: messages the rhythm lacks.
        warnings: a sentence each.
    """

    rate: float
    missing: int
    warnings: tuple[str, ...]


def rhythm(stamp: ArrayLike, jumps: Sequence[int]) -> Rhythm:
    """Look at the steps between stamps.

    Args:
        stamp: (m,) [s], finite, in the order of arrival.
        jumps: messages before which the clock jumped: those steps say nothing.
    """
    stamps = np.asarray(stamp, dtype=float)
    steps = np.delete(np.diff(stamps), [place - 1 for place in jumps])
    warnings = []
    back, same = int(np.count_nonzero(steps < 0.0)), int(np.count_nonzero(steps == 0.0))
    if back:
        warnings.append(f"{back} messages are stamped earlier than the one before: out of order, or of two senders")
    if same:
        warnings.append(f"{same} messages repeat the stamp of the one before")
    steps = steps[steps > 0.0]
    if not len(steps):
        return Rhythm(nan, 0, tuple(warnings))
    period = float(np.median(steps))
    mixed = _mixed(steps)
    changed = "" if mixed else _changed(steps)
    missing = 0
    if mixed or changed:
        warnings.append(mixed or changed)
    else:
        # A stamp that jitters makes one step long and its neighbour short; a missing message lengthens their sum.
        around = np.convolve(np.pad(steps, 1, constant_values=period), np.ones(3), mode="valid")
        long = steps[(steps > _MISSING * period) & (around > (_MISSING + 2.0) * period)]
        missing = int(np.sum(np.round(long / period) - 1.0))
        if missing:
            lost = "1 message is" if missing == 1 else f"{missing} messages are"
            where = "1 gap" if len(long) == 1 else f"{len(long)} gaps, the longest"
            warnings.append(
                f"{lost} missing in {where} of {float(long.max()):.3g} s, by a rhythm of {1.0 / period:.4g} Hz"
            )
    return Rhythm(1.0 / period, missing, tuple(warnings))


def _mixed(steps: Vector) -> str:
    """Reason to believe in two senders, "" for none: short steps all through, or short and long ones in turn."""
    if len(steps) < _WINDOW:
        return ""
    usual = [float(np.quantile(part, 0.75)) for part in _windows(steps)]
    short = [float(np.mean(part < _SHORT * long)) for part, long in zip(_windows(steps), usual, strict=True)]
    even = steps - steps.mean()
    spread = float(np.std(steps))
    alternating = spread > _UNEVEN * float(steps.mean()) and float(even[1:] @ even[:-1]) < _ALTERNATING * float(
        even @ even
    )
    if float(np.median(short)) <= _MANY and not alternating:
        return ""
    return (
        f"steps between stamps of {1e3 * float(np.quantile(steps, 0.1)):.3g} and "
        f"{1e3 * float(np.quantile(steps, 0.9)):.3g} ms mix: two senders, or two rates, on one topic"
    )


def _changed(steps: Vector) -> str:
    """What the rate changes to and when, "" where it stays."""
    rates = np.array([1.0 / float(np.median(part)) for part in _windows(steps)])
    if len(rates) < 4:
        return ""
    # Two windows in a row, so that one with many gaps is no change of rate.
    lasting = np.minimum(rates[1:], rates[:-1]), np.maximum(rates[1:], rates[:-1])
    fast, slow = float(np.max(lasting[0])), float(np.min(lasting[1]))
    if fast < _OTHER_RATE * slow:
        return ""
    return f"the rate changes between {slow:.4g} and {fast:.4g} Hz within the recording"


def _windows(steps: Vector) -> list[Vector]:
    """Steps (s,) in windows of at least `_WINDOW`."""
    return np.array_split(steps, max(1, len(steps) // _WINDOW))
