"""Readings of joints that come in separate rows, put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from youbot_dynamics.arrays import Flags, Vector

_AS_OFTEN = 0.5  # least readings over those of the first field and joint for which both are of one rate
_GAP = 3.0  # median periods between two readings above which some are missing between them


def in_common_rows(time: Vector, tables: Sequence[Vector]) -> tuple[Flags | slice, list[Vector]]:
    """Rows (n,) to keep, and the same tables (n, k) with what is read in other rows at the same rate interpolated.

    Positions and efforts, or some of the joints, may be read at times of their own. The rows are those of the first
    column with readings; times (n,) [s] do not decrease. If most readings are in common rows, all stay as they are.
    """
    known, width = np.hstack([np.isfinite(table) for table in tables]), tables[0].shape[1]
    rows = known[:, int(np.argmax(known.any(axis=0)))].copy()
    needed = _AS_OFTEN * np.count_nonzero(rows)
    apart = (np.count_nonzero(known[rows], axis=0) < needed) & (np.count_nonzero(known, axis=0) >= max(needed, 2))
    if not np.any(apart):
        return slice(None), list(tables)  # no copy: many readings fill the memory
    table = np.hstack(tables)
    for k in np.flatnonzero(apart):
        moments, values = time[known[:, k]], table[known[:, k], k]
        after = np.clip(np.searchsorted(moments, time), 1, len(moments) - 1)
        rows &= (time >= moments[0]) & (time <= moments[-1])
        near = moments[after] - moments[after - 1] <= _GAP * np.median(np.diff(moments))
        table[:, k] = np.where(near, np.interp(time, moments, values), np.nan)
    return rows, [table[:, first : first + width] for first in range(0, table.shape[1], width)]
