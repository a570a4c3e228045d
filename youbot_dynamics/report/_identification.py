"""The report of an identification: one HTML file with verdicts, plots and tables, which needs no network.

It opens with the findings, how far to trust them and what to do next. For a simulated robot it shows the true values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import place_to_write, write_atomically, written_together
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, PathComparison
from youbot_dynamics.identification.export import export_all
from youbot_dynamics.identification.finding import Finding, FitCurve, StageResult, asked
from youbot_dynamics.identification.least_squares import Whiteness
from youbot_dynamics.identification.pipeline import Identification
from youbot_dynamics.identification.result import Result, next_bringup, versions, write_result, write_robot
from youbot_dynamics.identification.stages import STAGES
from youbot_dynamics.report import _drawing
from youbot_dynamics.report._answer import answer, line_of, next_step
from youbot_dynamics.report._page import page
from youbot_dynamics.report._plots import autocorrelation_plot, detail_plot, has_detail, white_bound, whole_plot
from youbot_dynamics.report._programs import program_of, statistics
from youbot_dynamics.report._words import Rows, facts, in_its_unit, listed, number, sentence, shown, significant
from youbot_dynamics.resources import short_path
from youbot_dynamics.robot import UNNAMED
from youbot_dynamics.simulation.scenario import identified_mjcf

_SECTIONS = {
    "warnings": "Warnings about the data",
    "paths": "Paths",
    "prediction": "Prediction of data not used in the fit",
    "truth": "The hidden truth",
    "verdicts": "Verdicts",
    "fits": "Fits",
    "correlations": "Correlations",
    "provenance": "Provenance",
    "notes": "Notes",
}
_FOLDED = ("fits", "correlations", "provenance", "notes")
_FEWEST_POINTS, _MOST_POINTS = 100, 2000  # samples of a line
# The page stays below 3 MB: bytes for all plots, for a plot without its lines, and for a point of a line.
_PLOT_BUDGET, _EMPTY_PLOT, _POINT = 2_300_000, 15_000, 14
_PLOTS_OF_CURVE, _LINES_OF_CURVE = 3, 11
_PLOTS_OF_PATH, _LINES_OF_DRIVE = 2, 4
_ANIMATION = 90_000  # largest size of an animation [bytes]
_MOST_CURVES = 25  # curves drawn, shared by the stages; a fleet would fill the page
_SMALLEST_P = 0.001  # smallest p-value printed as a number
_NEGLIGIBLE = 2e-3  # [m, rad] RMSE below which a ratio is meaningless


def identification_page(
    title: str,
    identification: Identification,
    paths: Sequence[PathComparison],
    provenance: Mapping[str, str],
    truth: Mapping[str, float] | None = None,
    result_file: str = "result.yaml",
    robot: str = "--robot real",
) -> str:
    """Return the report as an HTML document; identical bytes for identical identifications.

    Args:
        title: heading of the page.
        identification: findings with verdicts, curves, correlations, notes and warnings.
        paths: one comparison per program.
        provenance: origin of the data: bag, hash, clock, versions, ...
        truth: name of a finding -> true value of a simulated robot; shown beside the finding.
        result_file: path of the result, for the command that uses it.
        robot: options of that command which name the robot.

    Raises:
        ResourceError: jinja2 is not installed, or matplotlib is needed and not installed.
    """
    result, stages = identification.result, identification.stages
    most = _points_of_a_line(stages, paths)
    programs = [program_of(path, f"p{k}", most, identification.robot.is_youbot) for k, path in enumerate(paths)]
    content: dict[str, object] = {
        "warnings": identification.warnings,
        "verdicts": _verdicts(result),
        "truth": reveal(result, truth) if truth else None,
        "fits": _fits(stages, most, held_out=False),
        "prediction": _fits(stages, most, held_out=True),
        "correlations": [fit for stage in stages for fit in stage.correlations],
        "paths": programs,
        "provenance": provenance,
        "notes": identification.notes,
    }
    return page(
        "identification.html.j2",
        title=title,
        robot_id=result.robot_id,
        summary=summary(result, paths),
        opening=opening(result, identification.warnings, result_file, robot),
        folded=_FOLDED,
        predicted=predicted([curve for stage in stages for curve in stage.fits if curve.held_out]),
        interval_is=result.interval_is,
        sections={key: title for key, title in _SECTIONS.items() if content[key] or key == "verdicts"},
        moving=any(program["animation"] for program in programs),
        **content,
    )


def write_outputs(
    folder: Path | str,
    identification: Identification,
    comparisons: Sequence[PathComparison],
    title: str,
    truth: Mapping[str, float] | None = None,
    robot: str = "--robot real",
    robot_files: Sequence[Path] = (),
) -> None:
    """Write result.yaml, robot.yaml, result.json, exports/ and report.html into a folder, which is created if needed.

    After an error, such as a full disk, none of them is written.

    Args:
        folder: for the files; its earlier result is replaced.
        identification: what `identify` returned.
        comparisons: one per driven program, for the paths in the report; () for none.
        title: heading of the report.
        truth: name of a finding -> true value of a simulated robot, shown beside it; None for a real robot.
        robot: options of `youbot bringup` that name the robot, for the next command in the report; "" for an arm alone.
        robot_files: parameter files of the robot, of which robot.yaml takes over what they say to nodes.

    Raises:
        RecordingError: the folder cannot be written.
        OutputError: the folder has a name that none can have, or there is something that is no regular file.
        ResourceError: as `identification_page`.

    Example:
        >>> yd.write_outputs(Path("result"), found, (), "My robot")  # `found` as in the example of `identify`
        >>> yd.load_robot(Path("result/result.yaml")).base.delay.effective_x > 0.0
        True
    """
    folder, result = Path(folder), identification.result
    provenance: dict[str, str] = {}
    for k, source in enumerate(result.sources, 1):
        provenance |= {f"recording {k}": source.path, f"sha256 {k}": source.sha256}
        provenance |= {f"clock {k}": source.clock} if source.clock else {}
    place_to_write(folder / "result.yaml")
    used = short_path(folder / "result.yaml")
    text = identification_page(title, identification, comparisons, {**provenance, **versions()}, truth, used, robot)
    try:
        with written_together(folder, ("exports",)) as draft:
            write_result(draft, result, "" if result.robot_id in UNNAMED or not robot else next_bringup(robot, used))
            if result.robot_id not in UNNAMED:
                write_robot(draft, result, identification.robot, robot_files)
            export_all(draft, result, identification.robot, identification.products, identified_mjcf)
            write_atomically(draft / "report.html", text)
        if result.robot_id in UNNAMED:  # that of an earlier result is of another robot
            (folder / "robot.yaml").unlink(missing_ok=True)
    except OSError as problem:
        raise RecordingError(
            f"output folder {folder}",
            got=problem.strerror or str(problem),
            expected="a folder that can be written, with some free space",
            remedy="free space there or name another folder; nothing was written",
        ) from None


def _points_of_a_line(stages: Sequence[StageResult], paths: Sequence[PathComparison]) -> int:
    """Largest number of samples of each line of the page."""
    curves = sum(len(curves) for _, curves, _ in _drawn_curves(stages))
    plots = _PLOTS_OF_CURVE * curves + _PLOTS_OF_PATH * len(paths)
    lines = _LINES_OF_CURVE * curves + sum(1 + _LINES_OF_DRIVE * len(path.actual) for path in paths)
    points = (_PLOT_BUDGET - _EMPTY_PLOT * plots - _ANIMATION * len(paths)) // (_POINT * max(1, lines))
    return max(_FEWEST_POINTS, min(_MOST_POINTS, points))


# Verdicts.


def _verdicts(result: Result) -> list[dict[str, Any]]:
    """One table per stage: parameters of the robot (all findings if there are none), then other findings.

    Dead times and lags are folded: each axis shows one delay first.
    """
    tables: list[dict[str, Any]] = []
    for stage, about in STAGES.items():
        table: dict[str, Any] = {"title": sentence(about.title)}
        findings = result.of_stage(stage)
        if stage in result.missing:
            table["missing"] = result.missing[stage]
        elif findings:
            table["asked"] = counted = asked(findings)
            table["parts"] = [finding for finding in findings if finding.row.folded]
            table["beside"] = [finding for finding in findings if not (finding.row.folded or finding in counted)]
            all_facts = [facts(finding) for finding in findings]
            # Facts common to all findings appear once, below the table.
            shared = [fact for fact in all_facts[0] if len(findings) > 1 and all(fact in other for other in all_facts)]
            remarks = [*shared, *([about.remark] if about.remark else [])]
            table |= {"shared": shared, "remarks": remarks, "open": stage == "delay"}
        else:
            continue
        tables.append(table)
    return tables


# Fits: each model beside the measurement, and its residual.


def _drawn_curves(stages: Sequence[StageResult], held_out: bool | None = None) -> list[tuple[str, list[FitCurve], int]]:
    """Return the curves to draw, of one kind or both: stage, curves, and number of curves left out."""
    drawable = {
        stage.stage: [curve for curve in stage.fits if len(curve.time) > 1 and held_out in (None, curve.held_out)]
        for stage in stages
    }
    some = {name: curves for name, curves in drawable.items() if curves}
    share = _MOST_CURVES // max(1, len(some))
    return [(name, curves[:share], max(0, len(curves) - share)) for name, curves in some.items()]


def _fits(stages: Sequence[StageResult], most: int, held_out: bool) -> list[dict[str, Any]]:
    kind = "p" if held_out else ""
    return [
        {
            "title": sentence(STAGES[name].title),
            "fits": [_fit(curve, f"{name}{kind}{k}", most) for k, curve in enumerate(curves)],
            "left_out": left_out,
        }
        for name, curves, left_out in _drawn_curves(stages, held_out)
    ]


def _fit(curve: FitCurve, key: str, most: int) -> dict[str, Any]:
    """One curve with its legend, plots and caption."""
    residual = curve.measured - curve.modelled
    rms = significant(float(np.sqrt(np.nanmean(residual**2)))) if np.isfinite(residual).any() else ""
    spread = f"RMS residual {rms} {curve.unit}" if rms else "No residual"
    entries = [("commanded", _drawing.COMMANDED)] if curve.reference is not None else []
    entries += [(curve.modelled_is, _drawing.MODELLED), ("measured", _drawing.MEASURED)]
    band = " with its 95 % band" if curve.band is not None else ""
    lines = ", ".join(name + (band if style is _drawing.MODELLED else "") for name, style in entries)
    label = f"{curve.title}: {curve.quantity} over time ({lines}) and residual. {spread}. {curve.caption}".strip()
    whole = whole_plot(curve, label=label, key=key, most=most)
    words = [curve.caption] if curve.caption else []
    words.append(f"{spread}.")
    beside = []
    if has_detail(curve):
        beside.append(detail_plot(curve, label=f"Detail. {label}", key=f"{key}d", most=most))
        words.append("The second plot shows the part that changes most.")
    if band:
        words.append("The shaded band is the 95 % band of the model.")
    test = curve.whiteness
    if test is not None and test.lags:
        result = _whiteness_result(test)
        about = f"Autocorrelation of the residual, {curve.title}: {_correlations(test)}. {result}"
        beside.append(autocorrelation_plot(test, label=about, key=f"{key}w", low=bool(beside)))
        words.append(result)
    caption = " ".join(words)
    return {"title": curve.title, "legend": entries, "whole": whole, "beside": beside, "caption": caption}


def _whiteness_result(test: Whiteness) -> str:
    """Result of the whiteness test of a residual, in words."""
    p, uneven = (
        f"p = {significant(value, 2)}" if value >= _SMALLEST_P else f"p < {_SMALLEST_P}"
        for value in (test.p_value, test.uneven_p_value)
    )
    verdict = (
        "the residual is consistent with white noise."
        if test.white
        else "the residual is not white: it has slow variations that the model does not explain."
    )
    return f"Ljung-Box over {test.lags} lags: {p}, and {uneven} if the noise variance may change: {verdict}"


def _correlations(test: Whiteness) -> str:
    first = ", ".join(number(r, 2) for r in test.correlations[:3])
    return f"{first} at the first lags, bounds \u00b1{number(white_bound(test), 3)} for white noise"


# The report in one sentence.


def summary(result: Result, paths: Sequence[PathComparison]) -> str:
    """Summarise in one sentence how much was identified, and how feedback changes the errors."""
    clauses = [*_counts(result), *_changes(paths)]
    return sentence("; ".join(clauses) or "nothing was identified") + "."


def _counts(result: Result) -> list[str]:
    """Number of identified values of each stage."""
    counts: list[str] = []
    for stage, about in STAGES.items():
        findings = () if stage in result.missing else result.of_stage(stage)
        if findings:
            counted = asked(findings)
            if all(finding.part_of for finding in counted):
                counts.append(f"the {about.title} as a whole")
                continue
            what = f"{sum(finding.identified for finding in counted)} of {len(counted)}"
            counts.append(
                f"{what}{'' if any(' numbers' in count for count in counts) else ' numbers'} for the {about.title}"
            )
    return [f"identified: {listed(counts)}"] if counts else []


def _changes(paths: Sequence[PathComparison]) -> list[str]:
    """Change of the RMSE of position and heading by feedback."""
    tables = [(path.name, statistics(path)) for path in paths]
    clauses = []
    for quantity, unit in (("position", "mm"), ("heading", "mrad")):
        changes = []
        for name, table in tables:
            if OPEN_LOOP in table and FEEDBACK in table:
                before, after = (getattr(table[row], f"{quantity}_rmse") for row in (OPEN_LOOP, FEEDBACK))
                changes.append(f"{_change(before, after, unit)} on {name}")
        if changes:
            lead = "with feedback instead of open loop " if quantity == "position" else ""
            clauses.append(f"{lead}the {quantity} RMSE is {listed(changes)}")
    return clauses


def _change(before: float, after: float, unit: str) -> str:
    """Factor by which an RMSE [m or rad] changed; `unit` is that of a thousandth of it."""
    if not (np.isfinite(before) and np.isfinite(after)):
        return "unknown"
    if before < _NEGLIGIBLE:
        both = after < _NEGLIGIBLE
        return f"below {1e3 * _NEGLIGIBLE:g} {unit} both times" if both else f"up to {1e3 * after:.3g} {unit}"
    ratio = before / max(after, 1e-9)
    word, ratio = ("smaller", ratio) if ratio >= 1.0 else ("larger", 1.0 / ratio)
    return f"{ratio:.{0 if ratio >= 10.0 else 1}f} times {word}"


_COLUMNS = ("Parameter", "Found", "95 %", "Truth", "Unit", "Verdict")
_FEW_COLUMNS = ("value", "found (95 %)", "truth", "verdict")
_HIT, _REFUSED = "hit", "refused: no value given"


def reveal(result: Result, truth: Mapping[str, float], few: bool = False) -> Rows:
    """Compare the findings that have an interval with the truth, name -> value, and count the hits.

    A `few` are those of the short answer, in words.
    """
    known = [finding for finding in result.findings if finding.name in truth]
    rows = [_cells(finding, truth[finding.name]) for finding in known]
    claimed = [row[-1] for row in rows if row[-1] != _REFUSED]
    summary = f"{claimed.count(_HIT)} of {len(claimed)} identified values have the truth within their interval"
    if few:
        rows = [
            (line_of(finding), " ".join(filter(None, (value, unit, f"({interval})"))), true, verdict)
            for finding, (_, value, interval, true, unit, verdict) in zip(known, rows, strict=True)
            if finding.row.told and not finding.row.quiet
        ]
    return Rows(_FEW_COLUMNS if few else _COLUMNS, [row for row in rows if row[1]], summary)


def _cells(finding: Finding, truth: float) -> tuple[str, ...]:
    text, (low, high) = shown(finding.estimate), finding.estimate.interval
    verdict = _REFUSED
    if finding.identified:
        beyond = max(low - truth, truth - high) / (high - low)
        verdict = _HIT if beyond <= 0.0 else f"miss by {100.0 * beyond:.2g} % of the interval's width"
    value = text.value if text.low else ""
    true = in_its_unit(finding.estimate, truth, 0.5 * (high - low))
    return finding.name, value, f"{text.low} to {text.high}", true, text.unit, verdict


def opening(result: Result, warnings: Sequence[str], result_file: str, robot: str = "--robot real") -> dict[str, Any]:
    """Return the three tiles: `answer`; `trusted` and `why`; `following`, the next step.

    The command names `result_file`, the path of result.yaml, and the `robot` by its options.
    """
    trusted, why = _trust(result, warnings)
    following = next_step(result, result_file, robot)
    return {"answer": answer(result), "trusted": trusted, "why": why, "following": following}


def _trust(result: Result, warnings: Sequence[str]) -> tuple[bool, str]:
    """Whether the intervals are trustworthy, and the main reason."""
    if not any(finding.usable for finding in result.findings):
        return False, "Nothing was identified. The verdicts below state what each value needs."
    if warnings:
        return False, f"Read the {_number(warnings)} about the data below first."
    if result.enough_for:
        return False, f"{sentence(result.enough_for)}."
    count = len(result.sources)
    return True, f"The intervals include the scatter between {count} recordings, and no warning was raised."


def _number(warnings: Sequence[str]) -> str:
    return f"{len(warnings)} warnings" if len(warnings) > 1 else "warning"


def predicted(curves: Sequence[FitCurve]) -> str:
    """Describe the plots of a held-out prediction in one sentence; "" if there are none."""
    if not curves:
        return ""
    squares = [float(np.nanmean((curve.measured - curve.modelled) ** 2)) for curve in curves if curve.unit == "m"]
    over = max(float(curve.time[-1] - curve.time[0]) for curve in curves)
    return (
        "The model is fitted to the first half of the drive and predicts the second half from the commands alone. "
        f"Over these {over:.0f} s without measurements, the RMS position error is {1e3 * np.sqrt(sum(squares)):.3g} mm."
    )
