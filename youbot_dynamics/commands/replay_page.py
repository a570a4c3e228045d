"""The report of `youbot replay`: one HTML file that needs no network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.commands.replay_plots import (
    ESTIMATED,
    LIMIT,
    PART,
    TOLD,
    Line,
    consistency,
    lines_plot,
    nis_plot,
    position_plot,
)
from youbot_dynamics.estimation.replay import ArmReplay, JointSummary, sound_innovations
from youbot_dynamics.identification.fitting.whiteness import whiteness
from youbot_dynamics.identification.page.curve_plots import autocorrelation_plot
from youbot_dynamics.identification.page.drawing import LineStyle, legend
from youbot_dynamics.identification.page.style import document
from youbot_dynamics.identification.page.words import NOT_AVAILABLE, PLUS_MINUS, minus, number, scroller, text
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

_LEGEND = (
    ("estimated, with two standard deviations to either side", ESTIMATED),
    ("as the driver tells it", TOLD),
    ("bristles' part of the friction; housing", PART),
    ("limit of the winding", LIMIT),
)
_COLUMNS = (
    "NIS",
    "within 95 %",
    "refused",
    "speed beside driver's [rad/s]",
    "friction [N m]",
    "hottest winding [degC]",
    "seconds to limit",
)


def render(title: str, replay: ArmReplay, robot: Robot, provenance: Mapping[str, str], warnings: Sequence[str]) -> str:
    """The report as a whole HTML document; the same bytes for the same replay.

    Args:
        title: heading of the page.
        replay: what is shown.
        robot: whose arm it is.
        provenance: where the log comes from.
        warnings: what could not be read of it.

    Raises:
        ResourceError: matplotlib is not installed.
    """
    sections = {
        "findings": ("Findings", _findings(replay, warnings)),
        "joints": ("Joints", _table(replay.summary)),
        "consistency": ("Does the filter know how far it is off?", _whole(replay)),
        "estimates": (
            "Estimates",
            legend(_LEGEND) + "".join(_joint(k, replay, robot) for k in range(len(replay.log.joints))),
        ),
        "counts": ("Messages", _definitions({name: str(count) for name, count in replay.counts.items()})),
        "provenance": ("Provenance", _definitions(provenance)),
    }
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, (name, _) in sections.items())
    header = (
        f"<header><h1>{text(title)}</h1>"
        f'<p class="robot">Robot {text(robot.robot_id)}</p>'
        f'<p class="summary">{text(_sentence(replay))}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )
    body = [
        f'<section class="{key}" aria-labelledby="{key}"><h2 id="{key}">{name}</h2>{part}</section>'
        for key, (name, part) in sections.items()
    ]
    page = document(text(title), "\n".join([header, *body]), moving=False)
    # File names may hold what neither UTF-8 nor HTML can.
    return page.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def cells(one: JointSummary) -> tuple[str, ...]:
    """What a table says of a joint, one text for each of its columns."""
    return (
        f"{one.nis:.2f}",
        f"{100.0 * one.coverage:.0f} %",
        str(one.refused),
        f"{one.speed_difference:.3g}",
        f"{one.friction:.2f}",
        f"{one.winding:.0f} {PLUS_MINUS} {one.winding_deviation:.0f}",
        f"{one.seconds_to_limit:.0f}" if math.isfinite(one.seconds_to_limit) else "never",
    )


def column_names() -> tuple[str, ...]:
    """Names of the columns of `cells`."""
    return _COLUMNS


def _sentence(replay: ArmReplay) -> str:
    log, counts = replay.log, replay.counts
    taken = counts["messages taken in"]
    seconds = float(log.stamp[-1] - log.stamp[0])
    refused = int(replay.track.refused.sum())
    return (
        f"{taken} of {len(log.stamp)} messages of {seconds:.1f} s were filtered and {refused} readings refused; "
        f"{len(replay.findings) or 'no'} {'finding' if len(replay.findings) == 1 else 'findings'}."
    )


def _findings(replay: ArmReplay, warnings: Sequence[str]) -> str:
    items = [
        f"<li><strong>{text(one.level)}</strong>: {text(one.cause)}. <em>What to do:</em> {text(one.remedy)}.</li>"
        for one in replay.findings
    ]
    items += [f"<li>{text(warning)}</li>" for warning in warnings]
    return f"<ul>{''.join(items)}</ul>" if items else "<p>Nothing is wrong with the messages, and no motor is hot.</p>"


def _table(summary: Sequence[JointSummary]) -> str:
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in ("joint", *_COLUMNS))
    rows = "".join(
        f'<tr><th scope="row">{text(one.joint)}</th>'
        + "".join(f"<td>{text(NOT_AVAILABLE if 'nan' in cell else minus(cell))}</td>" for cell in cells(one))
        + "</tr>"
        for one in summary
    )
    note = (
        '<p class="note">NIS: mean of (innovation / expected deviation)\u00b2, 1 where the filter knows how far it is '
        "off. Friction: RMS of the torque while the joint moves. Seconds to limit: if the load at the end goes on.</p>"
    )
    return scroller("Joints", f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>") + note


def _whole(replay: ArmReplay) -> str:
    track = replay.track
    rows = track.taken & (track.readings > 0)
    found = consistency(_time(replay)[rows], track.nis[rows], track.readings[rows].astype(float))
    if not len(found.time):
        return "<p>No reading was taken in.</p>"
    plot = nis_plot(
        found,
        label=f"NIS of all readings; {100.0 * found.within:.0f} % of the windows lie within the 95 % bounds",
        key="nis",
    )
    words = (
        "NIS of all joints together, averaged over windows; the green band holds 95 % of them where the filter knows "
        f"how far it is off and its innovations are white. Here: {100.0 * found.within:.0f} %."
    )
    return f'<div class="pair">{_figure(plot, words)}</div>'


def _joint(k: int, replay: ArmReplay, robot: Robot) -> str:
    name = replay.log.joints[k]
    figures = [
        *_motion(k, name, replay),
        _friction(k, name, replay),
        _warmth(k, name, replay, robot),
        *_innovations(k, name, replay),
    ]
    return f'<article><h3>{text(name)}</h3><div class="pair">{"".join(figures)}</div></article>'


def _figure(plot: str, caption: str = "") -> str:
    return f"<figure>{plot}{f'<figcaption>{caption}</figcaption>' if caption else ''}</figure>"


def _time(replay: ArmReplay) -> Vector:
    times: Vector = replay.log.stamp - replay.log.stamp[0]
    return times


def _motion(k: int, name: str, replay: ArmReplay) -> list[str]:
    """Position with its innovation, and speed."""
    log, track, time = replay.log, replay.track, _time(replay)
    rows = np.flatnonzero(track.taken & np.isfinite(track.position[:, k]))
    sound = sound_innovations(track, k)
    expected = 1e3 * np.sqrt(track.innovation_variance[sound, k])
    innovation = Line(
        ESTIMATED, time[sound], 1e3 * track.innovation[sound, k], time[sound], np.zeros(len(expected)), expected
    )
    position = _banded(k, replay, track.position, replay.deviations.position)
    read = np.flatnonzero(track.taken & np.isfinite(log.position[:, k]))
    lines = [Line(TOLD, time[read], log.position[read, k]), position]
    plots = [
        position_plot(
            lines,
            innovation,
            label=f"{name}: position over time, and its innovation within two deviations",
            key=f"q{k}",
        )
    ]
    speeds = [_banded(k, replay, track.speed, replay.deviations.speed)]
    told = rows[np.isfinite(log.velocity[rows, k])]
    if len(told):
        speeds.insert(0, Line(TOLD, time[told], log.velocity[told, k]))
    plots.append(lines_plot(speeds, "speed [rad/s]", label=f"{name}: speed over time", key=f"v{k}"))
    return [_figure(plot) for plot in plots]


def _friction(k: int, name: str, replay: ArmReplay) -> str:
    friction = _banded(k, replay, replay.track.friction_torque, replay.deviations.friction)
    bristle = _banded(k, replay, replay.bristle_torque, replay.deviations.bristle, PART)
    label = f"{name}: friction torque, and the bristles' part of it, over time"
    return _figure(lines_plot([friction, bristle], "friction [N m]", label=label, key=f"f{k}"))


def _warmth(k: int, name: str, replay: ArmReplay, robot: Robot) -> str:
    heat, first = replay.heat, replay.log.stamp[0]
    time = heat.time - first
    winding, housing = heat.winding[:, k], heat.housing[:, k]
    lines = [
        Line(PART, time, housing, time, housing, heat.housing_deviation[:, k]),
        Line(ESTIMATED, time, winding, time, winding, heat.winding_deviation[:, k]),
    ]
    limit = robot.arm.joints[k].motor.winding_temperature_limit
    if np.max(winding + 2.0 * heat.winding_deviation[:, k]) > limit - 20.0:
        lines.append(Line(LIMIT, time[[0, -1]], np.full(2, limit)))
    label = f"{name}: temperatures of winding and housing over time"
    return _figure(
        lines_plot(lines, "winding and housing [degC]", label=label, key=f"t{k}"),
        f"The winding may have {limit:.0f} degC.",
    )


def _innovations(k: int, name: str, replay: ArmReplay) -> list[str]:
    """NIS over time, and how innovations follow themselves."""
    track, sound = replay.track, sound_innovations(replay.track, k)
    if not sound.any():
        return []
    time = _time(replay)[sound]
    normal = track.innovation[sound, k] / np.sqrt(track.innovation_variance[sound, k])
    found = consistency(time, normal**2, np.ones(len(normal)))
    label = f"{name}: NIS over time with its 95 % bounds"
    figures = [_figure(nis_plot(found, label=label, key=f"n{k}"), f"{100.0 * found.within:.0f} % within the bounds.")]
    test = whiteness(time, normal)
    if test.lags == 0:
        return figures
    r1, r2, r3 = (number(value, 2) for value in test.correlations[:3])
    plot = autocorrelation_plot(test, label=f"{name}: autocorrelation of the innovation", key=f"a{k}", low=False)
    words = f"Ljung-Box Q = {number(test.q, 0)} over {test.lags} lags; r\u2081 = {r1}, r\u2082 = {r2}, r\u2083 = {r3}."
    verdict = "White." if test.white else "Not white: vibration, jitter of the stamps, or a model that lacks something."
    figures.append(_figure(plot, f"{words} {verdict}"))
    return figures


def _banded(k: int, replay: ArmReplay, values: Vector, deviation: Vector, style: LineStyle = ESTIMATED) -> Line:
    """Values (t, n) of joint k with deviations (s, n) at some of the messages."""
    time, taken = _time(replay), replay.track.taken
    rows = np.flatnonzero(taken & np.isfinite(values[:, k]))
    stops = replay.deviations.row
    use = taken[stops] & np.isfinite(deviation[:, k]) & np.isfinite(values[stops, k])
    at = stops[use]
    return Line(style, time[rows], values[rows, k], time[at], values[at, k], deviation[use, k])


def _definitions(entries: Mapping[str, str]) -> str:
    rows = "".join(f"<div><dt>{text(key)}</dt><dd>{text(value)}</dd></div>" for key, value in entries.items())
    return f"<dl>{rows}</dl>"
