"""The report of `youbot replay`: estimates with 2-sigma bands, innovations, temperatures, findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import gammaincinv

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.replay import ArmReplay, JointSummary, sound_innovations
from youbot_dynamics.identification.least_squares import CONFIDENCE, whiteness
from youbot_dynamics.report import _drawing as drawing
from youbot_dynamics.report._drawing import LineStyle
from youbot_dynamics.report._page import page
from youbot_dynamics.report._plots import autocorrelation_plot
from youbot_dynamics.report._words import number
from youbot_dynamics.robot import Robot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ESTIMATED = LineStyle("blue", (), 1.4, 3.0)
_MEASURED = LineStyle("vermillion", (7.0, 2.0), 1.1, 2.8)
_PART = LineStyle("purple", (1.0, 1.3), 1.5, 3.2)
_LIMIT = LineStyle("ink", (3.0, 2.0), 0.9, 2.6)
_LEGEND = (
    ("estimate with +- 2 standard deviations", ESTIMATED),
    ("measured by the driver", _MEASURED),
    ("bristle part of the friction; housing", _PART),
    ("limit of the winding", _LIMIT),
)
_SECTIONS = {
    "findings": "Findings",
    "joints": "Joints",
    "consistency": "Are the standard deviations of the filter correct?",
    "estimates": "Estimates",
    "counts": "Messages",
    "provenance": "Provenance",
}
JOINT_COLUMNS = (
    "NIS",
    "within 95 %",
    "refused",
    "speed minus driver's [rad/s]",
    "friction [N m]",
    "hottest winding [degC]",
    "seconds to limit",
)
_HEIGHT, _TWO_HIGH = 2.2, 3.4  # [in]
_MOST = 500  # samples per line
_WINDOWS = 100  # windows of a log over which NIS is averaged
_FEWEST = 20  # messages in a window
_LEAST = 1e-3  # smaller values of NIS are drawn at this one
_FARTHEST = 0.005  # share of a line that may lie outside a plot, on each side
_NEAR_LIMIT = 20.0  # [K] distance to the limit below which the plot shows the limit of a winding


class _Figure(NamedTuple):
    plot: Markup
    caption: str = ""


class Line(NamedTuple):
    """A line with a band."""

    style: LineStyle  # style
    time: Vector  # (n,) [s], increasing
    values: Vector  # (n,) NaN where unknown
    band_time: Vector = np.empty(0)  # (s,) [s]; empty for no band
    middle: Vector = np.empty(0)  # (s,) of the band
    deviation: Vector = np.empty(0)  # (s,) standard deviation; the band is +- two of them


def replay_page(
    title: str, replay: ArmReplay, robot: Robot, provenance: Mapping[str, str], warnings: Sequence[str]
) -> str:
    """Return the report as an HTML document; identical bytes for identical replays.

    Args:
        title: heading of the page.
        replay: the replay to show.
        robot: robot of the arm.
        provenance: origin of the log.
        warnings: what could not be read of the log.

    Raises:
        ResourceError: jinja2 or matplotlib is not installed.
    """
    return page(
        "replay.html.j2",
        title=title,
        robot_id=robot.robot_id,
        summary=_summary(replay),
        sections=_SECTIONS,
        moving=False,
        findings=replay.findings,
        warnings=warnings,
        columns=JOINT_COLUMNS,
        joints=[(joint.joint, joint_cells(joint)) for joint in replay.summary],
        consistency=_all_readings(replay),
        lines=_LEGEND,
        estimates=[(name, _joint(k, name, replay, robot)) for k, name in enumerate(replay.log.joints)],
        counts=replay.counts,
        provenance=provenance,
    )


def joint_cells(joint: JointSummary) -> tuple[str, ...]:
    """Table cells of a joint, one text for each of JOINT_COLUMNS."""
    return (
        f"{joint.nis:.2f}",
        f"{100.0 * joint.coverage:.0f} %",
        str(joint.refused),
        f"{joint.speed_difference:.3g}",
        f"{joint.friction:.2f}",
        f"{joint.winding:.0f} \u00b1 {joint.winding_deviation:.0f}",
        f"{joint.seconds_to_limit:.0f}" if math.isfinite(joint.seconds_to_limit) else "never",
    )


def _summary(replay: ArmReplay) -> str:
    log, findings = replay.log, len(replay.findings)
    return (
        f"{replay.counts['messages taken in']} of {len(log.stamp)} messages of {log.stamp[-1] - log.stamp[0]:.1f} s "
        f"were filtered and {int(replay.track.refused.sum())} readings refused; "
        f"{findings or 'no'} {'finding' if findings == 1 else 'findings'}."
    )


def _all_readings(replay: ArmReplay) -> _Figure | None:
    """NIS of all joints together; None without a reading."""
    track = replay.track
    rows = track.taken & (track.readings > 0)
    nis = consistency(_time(replay)[rows], track.nis[rows], track.readings[rows].astype(float))
    if not len(nis.time):
        return None
    share = f"{100.0 * nis.within:.0f} %"
    label = f"NIS of all readings; {share} of the windows lie within the 95 % bounds"
    words = (
        "NIS of all joints together, averaged over windows. The green band contains 95 % of them if the standard "
        f"deviations of the filter are correct and its innovations are white. Here: {share}."
    )
    return _Figure(_nis_plot(nis, label=label, key="nis"), words)


def _joint(k: int, name: str, replay: ArmReplay, robot: Robot) -> list[_Figure]:
    """Figures of joint k: position with its innovation, speed, friction, temperatures, NIS, autocorrelation."""
    log, track, deviations, time = replay.log, replay.track, replay.deviations, _time(replay)
    sound = sound_innovations(track, k)
    innovation, expected = 1e3 * track.innovation[sound, k], 1e3 * np.sqrt(track.innovation_variance[sound, k])
    positions = [
        _measured(k, replay, log.position, track.taken),
        _banded(k, replay, track.position, deviations.position),
    ]
    off = Line(ESTIMATED, time[sound], innovation, time[sound], np.zeros(len(expected)), expected)
    label = f"{name}: position over time, and its innovation within two deviations"
    panels = {"position [rad]": positions, "innovation [mrad]": [off]}
    figures = [_Figure(_lines_plot(panels, label=label, key=f"q{k}"))]

    measured = _measured(k, replay, log.velocity, track.taken & np.isfinite(track.position[:, k]))
    speeds = [*([measured] if len(measured.time) else []), _banded(k, replay, track.speed, deviations.speed)]
    figures.append(_Figure(_lines_plot({"speed [rad/s]": speeds}, label=f"{name}: speed over time", key=f"v{k}")))

    frictions = [
        _banded(k, replay, track.friction_torque, deviations.friction),
        _banded(k, replay, replay.bristle_torque, deviations.bristle, _PART),
    ]
    label = f"{name}: friction torque, and its bristle part, over time"
    figures.append(_Figure(_lines_plot({"friction [N m]": frictions}, label=label, key=f"f{k}")))
    return [*figures, _warmth(k, name, replay, robot), *_innovations(k, name, replay)]


def _warmth(k: int, name: str, replay: ArmReplay, robot: Robot) -> _Figure:
    heat = replay.heat
    time = heat.time - replay.log.stamp[0]
    winding, housing = heat.winding[:, k], heat.housing[:, k]
    lines = [
        Line(_PART, time, housing, time, housing, heat.housing_deviation[:, k]),
        Line(ESTIMATED, time, winding, time, winding, heat.winding_deviation[:, k]),
    ]
    limit = robot.arm.joints[k].motor.winding_temperature_limit
    if np.max(winding + 2.0 * heat.winding_deviation[:, k]) > limit - _NEAR_LIMIT:
        lines.append(Line(_LIMIT, time[[0, -1]], np.full(2, limit)))
    label = f"{name}: temperatures of winding and housing over time"
    plot = _lines_plot({"winding and housing [degC]": lines}, label=label, key=f"t{k}")
    return _Figure(plot, f"The limit of the winding is {limit:.0f} degC.")


def _innovations(k: int, name: str, replay: ArmReplay) -> list[_Figure]:
    """NIS over time, and the autocorrelation of the innovations."""
    track, sound = replay.track, sound_innovations(replay.track, k)
    if not sound.any():
        return []
    time = _time(replay)[sound]
    normal = track.innovation[sound, k] / np.sqrt(track.innovation_variance[sound, k])
    nis = consistency(time, normal**2, np.ones(len(normal)))
    plot = _nis_plot(nis, label=f"{name}: NIS over time with its 95 % bounds", key=f"n{k}")
    figures = [_Figure(plot, f"{100.0 * nis.within:.0f} % within the bounds.")]
    test = whiteness(time, normal)
    if test.lags == 0:
        return figures
    r1, r2, r3 = (number(value, 2) for value in test.correlations[:3])
    plot = autocorrelation_plot(test, label=f"{name}: autocorrelation of the innovation", key=f"a{k}")
    words = f"Ljung-Box Q = {number(test.q, 0)} over {test.lags} lags; r\u2081 = {r1}, r\u2082 = {r2}, r\u2083 = {r3}."
    verdict = "White." if test.white else "Not white: vibration, stamp jitter or an effect that the model lacks."
    return [*figures, _Figure(plot, f"{words} {verdict}")]


def _time(replay: ArmReplay) -> Vector:
    times: Vector = replay.log.stamp - replay.log.stamp[0]
    return times


def _measured(k: int, replay: ArmReplay, readings: Vector, among: NDArray[np.bool_]) -> Line:
    """Valid readings (t, n) of joint k, among some of the messages (t,)."""
    rows = np.flatnonzero(among & np.isfinite(readings[:, k]))
    return Line(_MEASURED, _time(replay)[rows], readings[rows, k])


def _banded(k: int, replay: ArmReplay, values: Vector, deviation: Vector, style: LineStyle = ESTIMATED) -> Line:
    """Values (t, n) of joint k with deviations (s, n) at some of the messages."""
    time, taken = _time(replay), replay.track.taken
    rows = np.flatnonzero(taken & np.isfinite(values[:, k]))
    stops = replay.deviations.row
    use = taken[stops] & np.isfinite(deviation[:, k]) & np.isfinite(values[stops, k])
    at = stops[use]
    return Line(style, time[rows], values[rows, k], time[at], values[at, k], deviation[use, k])


class Consistency(NamedTuple):
    """NIS over time."""

    time: Vector  # (w,) middles of the windows [s]
    nis: Vector  # (w,) mean for each reading
    low: Vector  # (w,) lower 95 % bound for a consistent filter
    high: Vector  # (w,) upper bound

    @property
    def within(self) -> float:
        """Share of the windows between the bounds; NaN without windows."""
        return float(np.mean((self.nis >= self.low) & (self.nis <= self.high))) if len(self.nis) else float("nan")


def consistency(time: Vector, squares: Vector, readings: Vector) -> Consistency:
    """Average sums of squared innovations over windows: N readings give chi-squared of N degrees of freedom, over N.

    Args:
        time: (m,) [s], increasing.
        squares: (m,) sums of squared innovations over variances.
        readings: (m,) number of readings in each sum.
    """
    windows = max(1, min(_WINDOWS, len(time) // _FEWEST))
    parts = [part for part in np.array_split(np.arange(len(time)), windows) if len(part) and readings[part].sum() > 0]
    count = np.array([readings[part].sum() for part in parts])
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = (2.0 * gammaincinv(0.5 * count, p) / count if len(parts) else count for p in (tail, 1.0 - tail))
    middles = np.array([0.5 * (time[part[0]] + time[part[-1]]) for part in parts])
    return Consistency(middles, np.array([squares[part].sum() for part in parts]) / count, low, high)


# Plots: `<svg>` elements; `label` and `key` as in `_plots`.


def _lines_plot(panels: Mapping[str, Sequence[Line]], *, label: str, key: str) -> Markup:
    """Lines over time of one quantity, or of two in panels, by their names."""
    with drawing.plain_style():
        figure = drawing.empty_figure(_HEIGHT if len(panels) == 1 else _TWO_HIGH)
        rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=(1.5, 1.0)[: len(panels)])
        for axes, (quantity, lines) in zip(rows[:, 0], panels.items(), strict=True):
            _draw(axes, lines)
            drawing.name_axes(axes, quantity)
        axes.set_xlabel("time [s]")
        return drawing.svg(figure, label, key)


def _nis_plot(nis: Consistency, *, label: str, key: str) -> Markup:
    """NIS over time with its 95 % bounds."""
    with drawing.plain_style():
        figure = drawing.empty_figure(_HEIGHT)
        axes = figure.subplots()
        axes.fill_between(nis.time, nis.low, nis.high, color=drawing.colour("green"), alpha=0.25, linewidth=0.0)
        axes.axhline(1.0, color=drawing.colour("axis"), linewidth=0.6)
        axes.plot(nis.time, np.maximum(nis.nis, _LEAST), marker=".", markersize=3.0, **drawing.drawn(ESTIMATED))
        axes.set_yscale("log")
        lowest, highest = float(np.min(nis.nis, initial=0.2)), float(np.max(nis.nis, initial=5.0))
        axes.set_ylim(max(_LEAST, 0.5 * lowest), 2.0 * highest)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        drawing.name_axes(axes, "NIS for each reading [1]", "time [s]")
        return drawing.svg(figure, label, key)


def _draw(axes: Axes, lines: Sequence[Line]) -> None:
    for line in lines:
        if len(line.band_time):
            half = 2.0 * line.deviation
            at, low, high = drawing.thinned(_MOST, line.band_time, line.middle - half, line.middle + half)
            axes.fill_between(
                at, low, high, color=drawing.colour(line.style.colour), alpha=0.25, linewidth=0.0, zorder=2.4
            )
        if len(line.time):
            axes.plot(*drawing.thinned(_MOST, line.time, line.values), **drawing.drawn(line.style))
    axes.set_ylim(*reach(lines))


def reach(lines: Sequence[Line]) -> tuple[float, float]:
    """Limits of a plot: all lines and bands except their most extreme values, since bands are wide at the start."""
    parts = [line.values for line in lines]
    parts += [line.middle + 2.0 * side * line.deviation for line in lines for side in (-1.0, 1.0)]
    ends = [np.nanquantile(part, (_FARTHEST, 1.0 - _FARTHEST)) for part in parts if np.isfinite(part).any()]
    if not ends:
        return 0.0, 1.0
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    margin = 0.08 * (high - low) or max(1e-3, 0.1 * abs(low))
    return low - margin, high + margin
