"""Least squares in blocks of time: mergeable sums, searches, robust weights, intervals, whiteness and verdicts."""

from youbot_dynamics.identification.least_squares._block_sums import BlockSums, Rows, accumulate, merge
from youbot_dynamics.identification.least_squares._fit import Fit, fit, least_squares
from youbot_dynamics.identification.least_squares._jackknife import block_covariance, covariance_of_scores
from youbot_dynamics.identification.least_squares._reason import (
    IDENTIFIED,
    Kind,
    Reason,
    recorded_reason,
    too_little,
    verdict_of,
)
from youbot_dynamics.identification.least_squares._recordings import ENOUGH, combined, jackknife_error, student
from youbot_dynamics.identification.least_squares._rivals import (
    SIGNIFICANT,
    Rival,
    admitted,
    strength,
    values_of,
    widened,
)
from youbot_dynamics.identification.least_squares._search import (
    Model,
    Searched,
    rows_of,
    search,
    search_costly,
    slopes_of,
)
from youbot_dynamics.identification.least_squares._verdict import (
    CONFIDENCE,
    NEGLIGIBLE,
    WIDEST_SHARE,
    Estimate,
    Unknown,
    alike,
    confused,
    judge,
    search_ended,
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
    "Kind",
    "Model",
    "NEGLIGIBLE",
    "Reason",
    "Rival",
    "Rows",
    "SIGNIFICANT",
    "Searched",
    "Unknown",
    "WIDEST_SHARE",
    "Whiteness",
    "accumulate",
    "admitted",
    "alike",
    "block_covariance",
    "combined",
    "confused",
    "covariance_of_scores",
    "fit",
    "jackknife_error",
    "judge",
    "least_squares",
    "merge",
    "recorded_reason",
    "rows_of",
    "search",
    "search_costly",
    "search_ended",
    "slopes_of",
    "strength",
    "student",
    "too_little",
    "undetermined",
    "unsettled",
    "values_of",
    "verdict_of",
    "whiteness",
    "widened",
    "with_unit",
]
