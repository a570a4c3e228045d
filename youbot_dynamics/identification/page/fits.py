"""Fits of the report: how each model follows what was measured, and what its residual has left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification.finding import FitCurve, StageResult
from youbot_dynamics.identification.fitting.whiteness import Whiteness, whiteness
from youbot_dynamics.identification.page import drawing
from youbot_dynamics.identification.page.curve_plots import (
    autocorrelation_plot,
    detail_plot,
    has_detail,
    white_bound,
    whole_plot,
)
from youbot_dynamics.identification.page.words import PLUS_MINUS, STAGE_TITLES, number, sentence, significant, text

Vector = NDArray[np.float64]

_SMALLEST_P = 0.001  # told as a number
_MOST_CURVES = 25  # drawn, shared by the stages; those of a fleet would fill the page


def shown_curves(stages: Sequence[StageResult]) -> list[tuple[str, list[FitCurve], int]]:
    """Curves that are drawn: stage, curves, and how many of it are left out."""
    drawable = {stage.stage: [curve for curve in stage.fits if len(curve.time) > 1] for stage in stages}
    some = {name: curves for name, curves in drawable.items() if curves}
    share = _MOST_CURVES // max(1, len(some))
    return [(name, curves[:share], max(0, len(curves) - share)) for name, curves in some.items()]


def fit_figures(stages: Sequence[StageResult], most: int) -> str:
    """The curves of every stage; "" where there are none.

    Args:
        stages: with their curves.
        most: samples a line.

    Raises:
        ResourceError: there is something to draw and matplotlib is not installed.
    """
    parts = []
    for name, curves, left_out in shown_curves(stages):
        parts.append(f"<h3>{text(sentence(STAGE_TITLES[name]))}</h3>")
        parts += [_figure(curve, f"{name}{k}", most) for k, curve in enumerate(curves)]
        if left_out:
            parts.append(f'<p class="note">{left_out} more curves of this stage are not drawn.</p>')
    return "".join(parts)


def _whiteness_as_drawn(curve: FitCurve, residual: Vector) -> Whiteness | None:
    """Test of the residual (n,) of a curve that brings none; None where it has no finite sample."""
    sound = np.isfinite(residual)
    return whiteness(curve.time[sound], residual[sound]) if sound.any() else None


def _left_over(found: Whiteness) -> str:
    """What the test of a residual says."""
    p, uneven = (
        f"p = {significant(value, 2)}" if value >= _SMALLEST_P else f"p < {_SMALLEST_P}"
        for value in (found.p_value, found.uneven_p_value)
    )
    verdict = (
        "nothing speaks against a white residual."
        if found.white
        else "the residual is not white: the model lacks something that moves slower than the readings."
    )
    return f"Ljung-Box over {found.lags} lags: {p}, and {uneven} if the noise may change its strength: {verdict}"


def _correlations(found: Whiteness) -> str:
    bound = number(white_bound(found), 3)
    first = ", ".join(number(r, 2) for r in found.correlations[:3])
    return f"{first} at the first lags, bounds {PLUS_MINUS}{bound} for white noise"


def _figure(curve: FitCurve, key: str, most: int) -> str:
    """Figure of one curve with its legend and caption."""
    residual = curve.measured - curve.modelled
    rms = significant(float(np.sqrt(np.nanmean(residual**2)))) if np.isfinite(residual).any() else ""
    spread = f"RMS residual {rms} {curve.unit}" if rms else "No residual"
    entries = [("commanded", drawing.COMMANDED)] if curve.reference is not None else []
    entries += [(curve.modelled_is, drawing.MODELLED), ("measured", drawing.MEASURED)]
    band = " with its 95 % band" if curve.band is not None else ""
    lines = ", ".join(name + (band if style is drawing.MODELLED else "") for name, style in entries)
    label = f"{curve.title}: {curve.quantity} over time ({lines}) and residual. {spread}. {curve.caption}".strip()
    plots = whole_plot(curve, label=label, key=key, most=most)
    words = [curve.caption] if curve.caption else []
    words.append(f"{spread}.")
    beside = ""
    if has_detail(curve):
        beside += detail_plot(curve, label=f"Detail. {label}", key=f"{key}d", most=most)
        words.append("The second plot is a detail, where it changes most.")
    if band:
        words.append("The shaded band is the 95 % band of the model.")
    left = curve.whiteness or _whiteness_as_drawn(curve, residual)
    if left is not None and left.lags:
        said = _left_over(left) + ("" if curve.whiteness else " This test is of the samples drawn here.")
        about = f"Autocorrelation of the residual, {curve.title}: {_correlations(left)}. {said}"
        beside += autocorrelation_plot(left, label=about, key=f"{key}w", low=bool(beside))
        words.append(said)
    plots += f"<div>{beside}</div>" if beside else ""
    return (
        f'<div class="fit"><h4>{text(curve.title)}</h4>{drawing.legend(entries)}'
        f'<figure><div class="pair">{plots}</div><figcaption>{text(" ".join(words))}</figcaption></figure></div>'
    )
