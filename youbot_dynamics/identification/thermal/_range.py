"""Temperatures that end at the top of their sensor's range, such as those of a thermistor that clips at 45 degC."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.thermal._run import HeatRun

_FEWEST = 20  # readings at the largest value that are suspect: noise and a peak give fewer
_SHARE = 0.03  # of all readings, likewise
_EQUAL = 1e-9  # relative difference of readings that are equal, since means of equal readings are rounded
_BEYOND = 5.0  # root mean squares of the other readings by which the model exceeds those at the top


def _at_top(column: Vector | None) -> NDArray[np.bool_] | None:
    """Which readings (n,) of a column have its largest value, None where too few do."""
    if column is None or not np.isfinite(column).any():
        return None
    top = float(np.nanmax(column))
    equal: NDArray[np.bool_] = column >= top - _EQUAL * max(1.0, abs(top))
    many = np.count_nonzero(equal) >= max(_FEWEST, _SHARE * np.count_nonzero(np.isfinite(column)))
    return equal if many and np.nanmin(column) < top else None


def without_top(run: HeatRun) -> HeatRun:
    """The run without readings at their largest value, where there are suspiciously many; else the run itself."""
    columns = run.winding, run.housing
    tops = [_at_top(column) for column in columns]
    if all(equal is None for equal in tops):
        return run
    winding, housing = (
        column if column is None or equal is None else np.where(equal, np.nan, column)
        for column, equal in zip(columns, tops, strict=True)
    )
    return dataclasses.replace(run, winding=winding, housing=housing)


def end_of_range(runs: Sequence[HeatRun], kept: Sequence[HeatRun], values: Vector, coefficient: float) -> Reason | None:
    """Why readings end at the top of their range, None if they do not.

    Args:
        runs: with all readings.
        kept: `without_top` of each.
        values: (4,) ratios that fit these.
        coefficient: of the resistance [1/K].
    """
    for run, rest in zip(runs, kept, strict=True):
        model = run.rises(values, coefficient)
        for k, name in enumerate(("winding", "housing")):
            column, known = getattr(run, name), getattr(rest, name)
            if known is column or not np.isfinite(known).any():
                continue
            apart = known - model[:, k]
            beyond = model[:, k] + (np.nanmean(apart) if run.ambient is None else 0.0) - np.nanmax(column)
            dropped = np.isfinite(column) & np.isnan(known)
            if np.median(beyond[dropped]) > _BEYOND * np.nanstd(apart):
                return Reason(
                    Kind.WRONG_SIGNALS,
                    f"the temperature of the {name} stays at exactly {np.nanmax(column):.4g} degC in "
                    f"{np.count_nonzero(dropped)} readings, where the other readings expect up to "
                    f"{np.max(beyond[dropped]):.2g} K more: the range of its sensor ends there",
                )
    return None
