"""Linear least squares in blocks of time: mergeable sums, robust weights, intervals, whiteness and verdicts."""

from youbot_dynamics.identification.least_squares._block_sums import BlockSums, Rows, accumulate, merge
from youbot_dynamics.identification.least_squares._fit import Fit, fit, least_squares
from youbot_dynamics.identification.least_squares._reason import (
    IDENTIFIED,
    Kind,
    Reason,
    recorded_reason,
    too_little,
    verdict_of,
)
from youbot_dynamics.identification.least_squares._recordings import ENOUGH, jackknife_error, pooled_estimate, student
from youbot_dynamics.identification.least_squares._verdict import (
    CONFIDENCE,
    WIDEST_SHARE,
    Estimate,
    Unknown,
    alike,
    judge,
    needed,
    undetermined,
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
    "Kind",
    "Reason",
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
    "recorded_reason",
    "student",
    "too_little",
    "undetermined",
    "verdict_of",
    "whiteness",
    "with_unit",
]
