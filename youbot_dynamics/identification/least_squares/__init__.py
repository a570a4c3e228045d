"""Linear least squares in blocks of time: mergeable sums, robust weights, intervals, whiteness and verdicts."""

from youbot_dynamics.identification.least_squares._block_sums import BlockSums, Rows, accumulate, merge
from youbot_dynamics.identification.least_squares._fit import Fit, fit, least_squares
from youbot_dynamics.identification.least_squares._recordings import ENOUGH, jackknife_error, pooled_estimate, student
from youbot_dynamics.identification.least_squares._verdict import (
    CONFIDENCE,
    IDENTIFIED,
    WIDEST_SHARE,
    Estimate,
    Unknown,
    alike,
    judge,
    needed,
    refusal,
    undetermined,
    unsettled,
    with_unit,
)
from youbot_dynamics.identification.least_squares._whiteness import Whiteness, whiteness

__all__ = [
    "BlockSums",
    "CONFIDENCE",
    "ENOUGH",
    "Estimate",
    "Fit",
    "IDENTIFIED",
    "Rows",
    "Unknown",
    "WIDEST_SHARE",
    "Whiteness",
    "accumulate",
    "alike",
    "fit",
    "jackknife_error",
    "judge",
    "least_squares",
    "merge",
    "needed",
    "pooled_estimate",
    "refusal",
    "student",
    "undetermined",
    "unsettled",
    "whiteness",
    "with_unit",
]
