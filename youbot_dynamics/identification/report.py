"""The report of an identification: one HTML file that needs no network, with plots and tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification import comparison, plots
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, ErrorStatistics, PathComparison
from youbot_dynamics.identification.delay import DelayEstimate
from youbot_dynamics.parameter_file import write_atomically

Vector = NDArray[np.float64]
Statistics = Mapping[str, ErrorStatistics]

# Row of the lab's table -> name of its line in the plots, and how that is drawn.
_DRIVES = {
    OPEN_LOOP: ("actual (open loop)", plots.OPEN_LOOP),
    comparison.RESTORED: ("restored", plots.RESTORED),
    comparison.SIMULATED: ("simulated feedback", plots.SIMULATED),
    FEEDBACK: ("stabilised (feedback)", plots.FEEDBACK),
}
_MOST_POINTS = 2000  # of a line
_POINT_BUDGET = 170_000  # of the whole page, at about 14 bytes each: it stays below 3 MB
_NEGLIGIBLE = 2e-3  # [m, rad] RMSE below which how many times smaller it became means nothing
_NOT_AVAILABLE = "\u2013"


@dataclass(frozen=True, eq=False)
class ChannelFit:
    """What the delay fit of one channel looks like.

    Args:
        channel: its name, such as "x".
        unit: of the motion the delay was fitted on, such as "m"; the residual of its estimate has the same.
        time: (n,) [s], increasing.
        commanded: (n,) the command, held between its samples, as such a motion [unit].
        shifted: (n,) gain * commanded, moved by the delay [unit].
        measured: (n,) motion [unit].
    """

    channel: str
    unit: str
    time: Vector
    commanded: Vector
    shifted: Vector
    measured: Vector


@dataclass(frozen=True, eq=False)
class Report:
    """Everything a report shows.

    Args:
        title: heading of the page.
        robot_id: of the robot the recording and the result belong to.
        delays: one estimate a channel.
        fits: how the delays fit, for some or all channels.
        paths: one comparison a program.
        provenance: where it comes from: bag, hash, clock, versions, ...
        notes: what the reader should know, such as a recording that was cut.
    """

    title: str
    robot_id: str
    delays: tuple[DelayEstimate, ...]
    fits: tuple[ChannelFit, ...]
    paths: tuple[PathComparison, ...]
    provenance: Mapping[str, str]
    notes: tuple[str, ...]


def render(report: Report) -> str:
    """The report as a whole HTML document; the same bytes for the same report.

    Raises:
        ResourceError: there is something to plot and matplotlib is not installed.
    """
    lines = 7 * len(report.fits) + sum(1 + 4 * len(path.actual) for path in report.paths)
    most = max(100, min(_MOST_POINTS, _POINT_BUDGET // max(1, lines)))
    estimates = {estimate.channel: estimate for estimate in report.delays}
    errors = [_errors(path) for path in report.paths]
    tables = [{label: comparison.error_statistics(e) for label, e in of_path.items()} for of_path in errors]
    parts = [
        f"<header><h1>{_text(report.title)}</h1>",
        f'<p class="robot">Robot {_text(report.robot_id)}</p>',
        f'<p class="summary">{_text(_summary(report, tables))}</p></header>',
        _delay_section(report),
    ]
    fits = [fit for fit in report.fits if len(fit.time) > 1]
    if fits:
        parts.append("<section><h2>Fit of the delays</h2>" + _legend(_FIT_LEGEND))
        parts += [_fit(k, fits, estimates, most) for k in range(len(fits))]
        parts.append("</section>")
    if report.paths:
        parts.append("<section><h2>Paths</h2>")
        parts += [_path(path, errors[k], tables[k], f"p{k}", most) for k, path in enumerate(report.paths)]
        parts.append("</section>")
    if report.provenance:
        rows = (f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in report.provenance.items())
        parts.append(f"<section><h2>Provenance</h2><dl>{''.join(rows)}</dl></section>")
    if report.notes:
        items = "".join(f"<li>{_text(note)}</li>" for note in report.notes)
        parts.append(f"<section><h2>Notes</h2><ul>{items}</ul></section>")
    page = _PAGE.format(title=_text(report.title), style=_style(), body="\n".join(parts))
    # File names may hold what neither UTF-8 nor HTML can.
    return page.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def write_report(path: Path, report: Report) -> None:
    """Write `render(report)` to a file, whole or not at all; its folder must exist.

    Raises:
        ResourceError: as `render`.
    """
    write_atomically(path, render(report))


def _text(value: str) -> str:
    return html.escape(str(value))


def _number(value: float, decimals: int) -> str:
    """A number with that many decimals and a true minus sign; a dash where there is none."""
    if np.isnan(value):
        return _NOT_AVAILABLE
    text = f"{value:.{decimals}f}".replace("inf", "\u221e")
    return (text[1:] if float(value) < 0.0 and text.strip("-0.") == "" else text).replace("-", "\u2212")


def _significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits and no exponent, down to 1e-6."""
    if not np.isfinite(value) or value == 0.0:
        return _number(value, 0)
    return _number(value, int(np.clip(digits - 1 - np.floor(np.log10(abs(value))), 0, 8)))


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _summary(report: Report, tables: Sequence[Statistics]) -> str:
    """One sentence: the delays, and what feedback does to the errors."""
    found: list[str] = []
    for e in report.delays:
        if e.identified:
            words = "" if found else "95 % interval "
            found.append(f"{_milliseconds(e.value, e)} ms in {e.channel} ({words}{_interval(e)})")
    missing = [e.channel for e in report.delays if not e.identified]
    clauses = []
    if found:
        clauses.append(f"the base follows its commands after {_listed(found)}")
    if missing:
        clauses.append(f"the delay{'s' * (len(missing) > 1)} in {_listed(missing)} could not be identified")
    for quantity, unit in (("position", "mm"), ("heading", "mrad")):
        changes = []
        for path, table in zip(report.paths, tables, strict=True):
            if OPEN_LOOP in table and FEEDBACK in table:
                before, after = (getattr(table[row], f"{quantity}_rmse") for row in (OPEN_LOOP, FEEDBACK))
                changes.append(f"{_change(before, after, unit)} on {path.name}")
        if changes:
            lead = "with feedback instead of open loop " if quantity == "position" else ""
            clauses.append(f"{lead}the {quantity} RMSE is {_listed(changes)}")
    sentence = "; ".join(clauses) or "no delay was estimated"
    return sentence[0].upper() + sentence[1:] + "."


def _change(before: float, after: float, unit: str) -> str:
    """How many times smaller (or larger) an RMSE [m or rad] became; unit: of its thousandth."""
    if not (np.isfinite(before) and np.isfinite(after)):
        return "unknown"
    if before < _NEGLIGIBLE:
        both = after < _NEGLIGIBLE
        return f"below {1e3 * _NEGLIGIBLE:g} {unit} both times" if both else f"up to {1e3 * after:.3g} {unit}"
    ratio = before / max(after, 1e-9)
    word, ratio = ("smaller", ratio) if ratio >= 1.0 else ("larger", 1.0 / ratio)
    return f"{ratio:.{0 if ratio >= 10.0 else 1}f} times {word}"


def _milliseconds(seconds: float, estimate: DelayEstimate) -> str:
    """A time [s] in ms, with the digits that the interval of its estimate is worth."""
    half = 1e3 * (estimate.interval[1] - estimate.interval[0]) / 2.0
    return _number(1e3 * seconds, (half < 10.0) + (half < 0.2) + (half < 0.02))


def _interval(estimate: DelayEstimate) -> str:
    low, high = estimate.interval
    if np.isnan(low) or np.isnan(high):
        return _NOT_AVAILABLE
    return f"{_milliseconds(low, estimate)} to {_milliseconds(high, estimate)}"


def _delay_section(report: Report) -> str:
    units = {fit.channel: fit.unit for fit in report.fits}
    rows = []
    for e in report.delays:
        state = "" if e.identified else ' class="refused"'
        unit = units.get(e.channel, "") if np.isfinite(e.residual) else ""
        residual = f"{_significant(e.residual)} {_text(unit)}".strip()
        verdict = _text(e.verdict)
        if not e.identified:
            head, _, reason = e.verdict.partition(": ")
            verdict = f"<strong>{_text(head)}</strong>" + (f": {_text(reason)}" if reason else "")
        rows.append(
            f'<tr{state}><th scope="row">{_text(e.channel)}</th><td>{_milliseconds(e.value, e)}</td>'
            f"<td>{_interval(e)}</td><td>{_number(e.gain, 3)}</td><td>{residual}</td>"
            f'<td>{e.samples}</td><td class="words">{verdict}</td></tr>'
        )
    columns = ("Delay [ms]", "95&nbsp;% interval [ms]", "Gain", "Residual RMS", "Samples")
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    table = (
        '<div class="scroll" role="region" aria-label="Delays" tabindex="0"><table>'
        f'<thead><tr><th scope="col">Channel</th>{head}<th scope="col" class="words">Verdict</th></tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    return (
        "<section><h2>Delays</h2>"
        + (table if rows else "<p>No delay was estimated.</p>")
        + '<p class="note"><dfn>Effective delay</dfn>: the time by which the command, held between its '
        "samples, has to be shifted to map best onto the motion; it is dead time and lag together. "
        "Gain: motion over command. Residual: what the shifted command leaves unexplained.</p></section>"
    )


_FIT_LEGEND = (
    ("commanded", plots.COMMANDED),
    ("shifted by the delay", plots.SHIFTED),
    ("measured", plots.MEASURED),
)


def _legend(entries: Sequence[tuple[str, plots.LineStyle]]) -> str:
    items = "".join(f"<li>{plots.swatch(style)}{_text(name)}</li>" for name, style in entries)
    return f'<ul class="legend" aria-label="Lines of the plots">{items}</ul>'


def _fit(index: int, fits: Sequence[ChannelFit], estimates: Mapping[str, DelayEstimate], most: int) -> str:
    """Figure of one fit: the whole run with its residual, and a detail where the command changes most."""
    fit = fits[index]
    same = [k for k, other in enumerate(fits) if other.channel == fit.channel]
    heading = f"Channel {fit.channel}" + (f", {same.index(index) + 1} of {len(same)}" if len(same) > 1 else "")
    time = np.asarray(fit.time, dtype=float) - float(fit.time[0])
    motions = [np.asarray(values, dtype=float) for values in (fit.commanded, fit.shifted, fit.measured)]
    estimate = estimates.get(fit.channel)
    delay = float("nan") if estimate is None else estimate.value
    known = "Delay unknown"
    if estimate is not None and np.isfinite(delay):
        known = f"{'Combined delay' if len(same) > 1 else 'Delay'} {_milliseconds(delay, estimate)} ms"
        known += "" if estimate.identified else ", not identifiable"
    label = f"{heading}: commanded, shifted, measured motion and residual over time. {known}"
    drawn = plots.fit_plots(time, motions, delay, unit=fit.unit, label=label, key=f"f{index}", most=most)
    return (
        f'<h3>{_text(heading)}</h3><figure><div class="pair">{drawn}</div><figcaption>'
        f"{known}. The second plot is a detail, where the command changes most.</figcaption></figure>"
    )


def _errors(path: PathComparison) -> dict[str, Vector]:
    """Errors (n, 3) of each drive, in the order of the lab's table."""
    order = dict.fromkeys([*comparison.ROWS, *path.actual])
    return {label: path.errors(label) for label in order if label in path.actual}


def _path(path: PathComparison, errors: Mapping[str, Vector], table: Statistics, key: str, most: int) -> str:
    """Section of one program: path, errors over time and the lab's table."""
    drives = {label: _DRIVES.get(label, (label, plots.COMMANDED)) for label in table}
    paths = [plots.Line(style, path.actual[label]) for label, (_, style) in drives.items()]
    away = [plots.Line(style, errors[label]) for label, (_, style) in drives.items()]
    rmse = [f"{label} {_significant(statistics.position_rmse)} m" for label, statistics in table.items()]
    about = f"{path.name}: position RMSE {_listed(rmse)}" if rmse else path.name
    over = plots.path_plot(
        [*paths, plots.Line(plots.COMMANDED, path.desired)],
        label=f"Path over the ground, {about}",
        key=key,
        most=most,
    )
    under = plots.error_plot(
        path.time, away, label=f"Errors of X, Y and heading over time, {about}", key=f"{key}e", most=most
    )
    return (
        f"<article><h3>{_text(path.name)}</h3>"
        + _legend([("commanded", plots.COMMANDED), *drives.values()])
        + f'<figure><div class="pair">{over}{under}</div><figcaption>Path over the ground from the dot on, '
        f"and the errors over time; measured by {_text(path.truth)}.</figcaption></figure>"
        + (_table(path.name, table) if table else "<p>No drive of this program was recorded.</p>")
        + "</article>"
    )


def _table(name: str, table: Statistics) -> str:
    """The lab's table: mean and standard deviation of X, Y, psi a drive, then RMSE and worst position."""
    rows = [[*s.mean, *s.deviation, s.position_rmse, s.heading_rmse, s.position_worst] for s in table.values()]
    sizes = np.abs(np.array(rows, dtype=float))
    decimals = 5 if np.any((sizes > 0.0) & (sizes < 1e-3)) else 4
    spaced = ["", "", "", ' class="first"', "", "", ' class="first"', "", ' class="first"']
    body = ""
    for label, row in zip(table, rows, strict=True):
        cells = (f"<td{space}>{_number(v, decimals)}</td>" for space, v in zip(spaced, row, strict=True))
        body += f'<tr><th scope="row">{_text(label)}</th>{"".join(cells)}</tr>'
    names = (*("X [m]", "Y [m]", "\u03c8 [rad]") * 2, "position [m]", "heading [rad]", "position [m]")
    columns = "".join(f'<th scope="col"{space}>{n}</th>' for space, n in zip(spaced, names, strict=True))
    restored = (
        " \u201cRestored\u201d is the open-loop drive moved forward by a delay identified from another run."
        if comparison.RESTORED in table
        else ""
    )
    return (
        f'<div class="scroll" role="region" aria-label="Errors of {_text(name)}" tabindex="0"><table>'
        '<thead><tr><th rowspan="2" scope="col">Drive</th><th colspan="3" scope="colgroup">Mean</th>'
        '<th colspan="3" scope="colgroup" class="first">Standard deviation</th>'
        '<th colspan="2" scope="colgroup" class="first">RMSE</th>'
        '<th scope="colgroup" class="first">Worst</th></tr>'
        f"<tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
        '<p class="note">Errors are e = actual \u2212 desired, X and Y in the fixed frame; the lab\u2019s '
        "tables carry the opposite sign. Standard deviations are those of the population (divided by n)."
        f"{restored}</p>"
    )


def _style() -> str:
    light, dark = (";".join(f"--{role}:{pair[k]}" for role, pair in plots.PALETTE.items()) for k in (0, 1))
    return _CSS.replace("@LIGHT@", light).replace("@DARK@", dark)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

_CSS = """
:root{color-scheme:light dark;--paper:#fff;@LIGHT@}
@media screen and (prefers-color-scheme:dark){:root{--paper:#17171b;@DARK@}}
*{box-sizing:border-box} html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"Helvetica Neue",Arial,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:66rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.8rem;line-height:1.2;font-weight:650;margin:0;letter-spacing:-.01em}
h2{font-size:1.25rem;font-weight:650;margin:3rem 0 1rem;padding-top:.9rem;border-top:1px solid var(--grid)}
h3{font-size:1rem;font-weight:650;margin:2rem 0 .4rem}
h2+h3,h2+article h3,.legend+h3{margin-top:0} p{margin:.6rem 0;max-width:46rem}
.robot,.note,figcaption{color:var(--axis)}
.robot{margin:.3rem 0 1rem} .summary{font-size:1.1rem}
.note,figcaption{font-size:.875rem}
dfn{font-weight:600} article{margin-bottom:3rem}
figure{margin:0 0 1.25rem;break-inside:avoid}
figcaption{max-width:46rem;margin-top:.25rem}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 1.5rem}
.plot{display:block;width:100%;height:auto} .plot text{font-family:inherit}
.plot *{stroke-linejoin:round;stroke-linecap:butt}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:0 0 .6rem;padding:0;
max-width:none;font-size:.875rem}
.legend li{display:flex;align-items:center;gap:.5rem} .swatch{width:30px;height:8px;flex:none}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.4rem .5rem;text-align:right;vertical-align:baseline;white-space:nowrap}
th{font-weight:600}
thead th{border-bottom:1px solid var(--axis);vertical-align:bottom;font-weight:500;color:var(--axis)}
thead th[scope=colgroup]{border-bottom:1px solid var(--grid)}
thead th[colspan]{text-align:center}
tbody tr+tr>*{border-top:1px solid var(--grid)}
.first{padding-left:1.4rem} th:first-child{padding-left:0}
tr:first-child>th:first-child,tbody th{text-align:left}
.words{text-align:left;white-space:normal;min-width:14rem;padding-left:1.4rem}
.refused td{color:var(--axis)} .refused strong{color:var(--vermillion)}
dl{margin:0;font-size:.875rem}
dl div{display:flex;flex-wrap:wrap;gap:0 1rem;padding:.25rem 0}
dt{flex:0 0 11rem;color:var(--axis)}
dd{margin:0;flex:1 1 14rem;overflow-wrap:anywhere}
ul{padding-left:1.2rem;max-width:46rem}
@media (max-width:44rem){main{padding:1.5rem 1rem 3rem}.pair{grid-template-columns:minmax(0,1fr);gap:.75rem}
h1{font-size:1.5rem}.summary{font-size:1rem}.scroll tbody th{position:sticky;left:0;background:var(--paper)}
.refused th::after{content:" \\2717";color:var(--vermillion)}}
@media print{@page{margin:15mm}body{font-size:10pt}main{max-width:none;padding:0}.scroll{overflow:visible}
table{font-size:8pt}th,td{padding:.25rem}.first,.words{padding-left:.7rem}.words{min-width:0}
h2{margin:1.5rem 0 .8rem} h2,h3,.legend{break-after:avoid} tr,table,.legend{break-inside:avoid}
.pair{grid-template-columns:repeat(2,minmax(0,1fr))} article{break-inside:avoid;margin-bottom:1.5rem}}
"""
