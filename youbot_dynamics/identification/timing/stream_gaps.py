"""Where messages of a stream are missing: a damaged bag, a recorder that could not keep up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_EVEN, _MISSING = 2.0, 10.0  # usual periods: of nearly all intervals in a stream; of one in which messages are missing


def stream_gaps(sent: ArrayLike) -> NDArray[np.intp]:
    """Messages behind which others are missing: (k,) places.

    Empty where messages are no stream, but sent when something changes: then a long pause is a command held.

    Args:
        sent: (n,) times of the messages [s], increasing.
    """
    periods = np.diff(np.asarray(sent, dtype=float))
    periods = np.where(np.isfinite(periods), periods, 0.0)
    if not len(periods):
        return np.zeros(0, dtype=np.intp)
    usual = float(np.median(periods))
    if np.quantile(periods, 0.95) > _EVEN * usual:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(periods > _MISSING * usual)
