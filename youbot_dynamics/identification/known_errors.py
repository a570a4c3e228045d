"""What other stages and the recordings tell of a stage's findings: their intervals hold it, or they are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from youbot_dynamics.identification.finding import Finding, StageResult
from youbot_dynamics.identification.least_squares import NORMAL, Kind, Reason, Rival, Unknown, reaching, widened

_FRICTION = "wheel_coulomb"  # of the response
_PARTS = {"dead_time_{axis}": "dead_time_{axis}", "lag": "lag_{axis}"}  # of response -> of delay
_OTHER_ORDER = Reason(Kind.OTHER_EXPLANATION, "several lags in series explain the motion too, with another dead time")
_GAIN, _DELAY = "gain_{axis}", "effective_{axis}"  # of the response; of the delay, with the gain that it fits
_OTHER_LAGS = Reason(
    Kind.OTHER_EXPLANATION, "the axes have lags of their own, which wheels that are all alike have not"
)
_LIMIT = "acceleration_{axis}"  # of an axis, by the stage body
_STAMP_DELAY = "robot.base.delay.stamps"
_BY_STAMPS = "; how late the driver stamps the wheels is not known better"
_BETWEEN_ROWS = "; when commands were sent between the rows is not told"


def with_errors_of_scales(outcome: StageResult, stages: Sequence[StageResult]) -> StageResult:
    """A stage's findings with the relative errors of what earlier stages found and they are in proportion to."""
    found = {finding.row.key: finding for stage in stages for finding in stage.findings if finding.identified}

    def scaled(finding: Finding) -> Finding:
        estimate, keys = finding.estimate, finding.row.scales.get(finding.row.of.get("axis", ""), ())
        rivals = []
        for scale in (found[key] for key in keys if key in found):
            reason = Reason(Kind.DEPENDS, f"it is in proportion to the {scale.row.in_words}, whose interval is wide")
            error = 0.5 * float(np.ptp(scale.estimate.interval)) / NORMAL
            change = estimate.value * error / scale.estimate.value
            rivals.append(Rival(reason, {estimate.name: change}))
        (wider,) = widened([estimate], (), rivals, NORMAL)
        return replace(finding, estimate=wider)

    return replace(outcome, findings=tuple(scaled(finding) for finding in outcome.findings))


def with_errors_of_stamps(outcome: StageResult, stages: Sequence[StageResult]) -> StageResult:
    """Delays by the stamps of the wheels, with intervals that hold how late these may be by an earlier stage."""
    found = (one.estimate for stage in stages for one in stage.findings if one.row.pattern == _STAMP_DELAY)
    late = next((one for one in found if one.identified), None)
    if late is None or outcome.stage not in ("delay", "response"):
        return outcome

    def judged(finding: Finding) -> Finding:
        one = finding.estimate
        interval = one.interval[0] - (late.interval[1] - late.value), one.interval[1] + late.value - late.interval[0]
        wider = reaching(one, Unknown(one.name, one.unit, low=0.0), interval, _BY_STAMPS)
        return replace(finding, estimate=wider) if finding.row.since_command else finding

    return replace(outcome, findings=tuple(judged(one) for one in outcome.findings))


def with_errors_of_orders(outcome: StageResult, stages: Sequence[StageResult]) -> StageResult:
    """The response with what the stage `delay` leaves open of dead time, lag and gain, if no friction of wheels shows.

    Both explain the same motion by dead time and lag then, but only the delay has several lags in series as another
    explanation, and a lag for each axis. With friction, the loops that it disturbs are that of the response.
    """
    friction = next((one.estimate for one in outcome.findings if one.row.key == _FRICTION), None)
    shown = friction is None or friction.value > NORMAL * friction.standard_error
    parts = [one for stage in stages if stage.stage == "delay" for one in stage.findings]
    if outcome.stage != "response" or shown or not parts:
        return outcome

    gains = {one.row.of.get("axis"): one.details["gain"] for one in parts if one.row.key == _DELAY and one.identified}

    def judged(finding: Finding) -> Finding:
        name, axis = finding.row.key, finding.row.of.get("axis")
        if name == _GAIN:
            change = abs(finding.estimate.value - float(gains.get(axis, finding.estimate.value)))
            rival = Rival(_OTHER_LAGS, {finding.estimate.name: change})
            (wider,) = widened([finding.estimate], [Unknown(finding.estimate.name, "1")], [rival], NORMAL)
            return replace(finding, estimate=wider)
        same = [one.estimate for one in parts if one.row.key == _PARTS[name] and axis in (None, one.row.of["axis"])]
        errors = [(0.5 * float(np.ptp(one.interval)) / NORMAL, one.value) for one in same if math.isfinite(one.value)]
        error, value = min(filter(lambda pair: math.isfinite(pair[0]), errors), default=(0.0, finding.estimate.value))
        change = math.hypot(value - finding.estimate.value, error)
        unknown = Unknown(finding.estimate.name, "s", low=0.0)
        rival = Rival(_OTHER_ORDER, {finding.estimate.name: change})
        (wider,) = widened([finding.estimate], [unknown], [rival], NORMAL)
        return replace(finding, estimate=wider)

    of_orders = {*_PARTS, _GAIN}
    return replace(
        outcome, findings=tuple(judged(one) if one.row.key in of_orders else one for one in outcome.findings)
    )


def with_untold_rows(outcome: StageResult, rows: Mapping[str, float]) -> StageResult:
    """A stage's findings, of which times since a command hold values later by up to a row of the log, with a note.

    Rows that repeat a command show that it changed since the row before. If the recorder of the rows and the sender
    of the commands have one rate, each change is late by the same share of a row, which may be any. `rows` is axis or
    channel -> time between the rows [s] of the recordings that the stage used.
    """
    findings = tuple(_or_later(finding, rows) for finding in outcome.findings)
    told = [name for name in rows if any(name in one.row.of.values() for one in findings if one.row.since_command)]
    if not told:
        return outcome
    note = (
        f"commands of {', '.join(told)} are taken to be sent with the row that shows them first; if they were sent "
        f"between two rows, delays are up to {1e3 * max(rows[name] for name in told):.3g} ms longer, which the "
        "intervals hold: name the column command_held.NAME (sent with its row) or command_sampled.NAME (sampled) to "
        "say which"
    )
    return replace(outcome, findings=findings, notes=(*outcome.notes, note))


def _or_later(finding: Finding, rows: Mapping[str, float]) -> Finding:
    """The finding, if it is a time since a command, with an interval that holds values later by a row of its log.

    The value is the least that is possible. Whether the interval is too wide is judged at the middle, which a refused
    one has.
    """
    late = max((rows.get(of, 0.0) for of in finding.row.of.values()), default=0.0)
    if not (finding.row.since_command and late):
        return finding
    low, high = finding.estimate.interval
    unknown = Unknown(finding.estimate.name, finding.estimate.unit)
    middle = replace(finding.estimate, value=finding.estimate.value + 0.5 * late)
    wider = reaching(middle, unknown, (low, high + late), _BETWEEN_ROWS)
    return replace(finding, estimate=replace(wider, value=finding.estimate.value) if wider.identified else wider)


def without_what_limits_hide(stages: Sequence[StageResult]) -> list[StageResult]:
    """The stages without delays of axes whose commands exceeded a largest acceleration, and without the response.

    How fast such an axis follows smaller changes is unknown: its delay grows with the size of the jumps. So does that
    of an axis that brakes otherwise than it speeds up, of which no single limit is known.
    """
    reasons = {}
    for finding in (finding for stage in stages for finding in stage.findings if finding.row.key == _LIMIT):
        limit, why = finding.estimate, ""
        if limit.identified:
            why = f"the commands exceeded {limit.value:.3g} {limit.unit}, the largest acceleration of the axis"
        elif limit.reason is not None and limit.reason.kind is Kind.OTHER_EXPLANATION:
            why = limit.reason.text
        if why:
            hidden = f"{why}, which hides its delay; identify drives with smaller accelerations alone"
            reasons[finding.row.of["axis"]] = Reason(Kind.OTHER_EXPLANATION, hidden)

    def judged(stage: StageResult, finding: Finding) -> Finding:
        axis = finding.row.of.get("axis", "")
        reason = reasons.get(axis) if stage.stage == "delay" else None
        if stage.stage == "response" and reasons:
            reason = next(iter(reasons.values()))
        if reason is None or not (finding.identified or finding.usable):
            return finding
        return finding.refused(reason)

    return [replace(stage, findings=tuple(judged(stage, finding) for finding in stage.findings)) for stage in stages]


def without_sideways_motion(stages: Sequence[StageResult]) -> list[StageResult]:
    """The stages without findings of sideways motion, if it was never commanded or measured: the base may lack it."""
    sideways = [finding.estimate for stage in stages for finding in stage.findings if finding.row.of_sideways]
    if any(one.reason is None or one.reason.kind not in (Kind.NOT_EXCITED, Kind.NOT_MEASURED) for one in sideways):
        return list(stages)
    return [
        replace(stage, findings=tuple(finding for finding in stage.findings if not finding.row.of_sideways))
        for stage in stages
    ]
