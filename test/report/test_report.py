"""The report: one file without the network, with the numbers of the comparison, safe and repeatable."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from named_findings import named_finding
from report_pages import Report, render

from youbot_dynamics.errors import ResourceError
from youbot_dynamics.identification.arm_friction.stage import FINDINGS as ARM_FINDINGS
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, RESTORED, ROWS, PathComparison
from youbot_dynamics.identification.delay import OPPOSITE, leading
from youbot_dynamics.identification.finding import Correlation, Finding, FitCurve, StageResult
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason, Unknown, judge, whiteness
from youbot_dynamics.identification.result import Result, Source
from youbot_dynamics.report import _drawing as drawing
from youbot_dynamics.report import _plots as plots
from youbot_dynamics.report._answer import next_step
from youbot_dynamics.report._identification import opening
from youbot_dynamics.report._page import _environment
from youbot_dynamics.robot import UNNAMED

NAN = float("nan")
VOID = {"meta", "link", "img", "br", "hr", "input", "wbr"}
NO_POSE = "no topic with a pose of the base"


def refused(text: str) -> Reason:
    return Reason(Kind.TOO_LITTLE_DATA, text)


def delay(axis: str, value: float, half: float, reason: Reason | None = None, **details: float) -> Finding:
    name = f"robot.base.delay.effective_{axis}"
    estimate = Estimate(name, "s", value, half / 2.0, (value - half, value + half), reason)
    return named_finding(name, estimate, 960, f"commands of up to 0.2 in {axis}", details=details)


def friction(name: str, value: float, half: float, **limits: float) -> Finding:
    estimate = judge(Unknown(name, "N s/m", **limits), value, half / 2.0, half)
    return named_finding(name, estimate, 5300, "wheel speeds of up to 9.1 rad/s")


DELAYS = (
    delay("x", 0.1503, 0.0039, gain=0.985, residual=0.00147),
    delay("yaw", NAN, NAN, refused("the command never changed"), gain=NAN),
)
FRICTION = (
    friction("robot.base.friction.viscous_x", 20.06, 0.73),
    friction("robot.base.friction.viscous_y", -0.4, 0.9, low=0.0),
    friction("base.friction.missed_inertia_x", -5.1, 0.54),
)


def comparison(name: str = "combined", labels: tuple[str, ...] = ROWS, count: int = 1000) -> PathComparison:
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 20.0, count)
    desired = np.column_stack([0.6 * np.sin(0.6 * t), 0.3 * np.sin(0.9 * t), 0.4 * np.sin(0.5 * t)])
    size = {label: 0.03 / (1 + 4 * k) for k, label in enumerate(labels)}
    actual = {label: desired + size[label] * (0.3 + rng.standard_normal(desired.shape)) for label in labels}
    estimated = {label: 0.5 * (desired + actual[label]) for label in labels if label in (OPEN_LOOP, FEEDBACK)}
    return PathComparison(name, t, desired, actual, "ground truth", estimated)


def curve(title: str = "Channel x", unit: str = "m", count: int = 1000) -> FitCurve:
    t = np.linspace(0.0, 20.0, count)
    noise = 1e-3 * np.random.default_rng(4).standard_normal(count)
    moved = np.sin(t - 0.15)
    band = np.full(count, 2e-3)
    return FitCurve(title, "motion", unit, t, moved + noise, moved, "shifted", band, np.sin(t), None, 2.0, "A caption.")


def stages(*curves: FitCurve) -> tuple[StageResult, ...]:
    matrix = np.array([[1.0, -0.96, NAN], [-0.96, 1.0, 0.12], [NAN, 0.12, 1.0]])
    correlation = Correlation("Base friction", ("viscous_x", "viscous_y", "lost"), matrix, 5.04, "QR", ("viscous_y",))
    return StageResult("delay", DELAYS, fits=curves), StageResult(
        "base_friction", FRICTION, correlations=(correlation,)
    )


def result(of: tuple[StageResult, ...], **missing: str) -> Result:
    findings = tuple(finding for stage in of for finding in stage.findings)
    stage_of = {finding.name: stage.stage for stage in of for finding in stage.findings}
    return Result("youbot-7", findings, ("delay", "base_friction"), missing, stage_of, ())


def full_report() -> Report:
    found = stages(curve(), curve("Channel yaw", "rad"))
    return Report(
        title="Identification of run",
        result=result(found, calibration=NO_POSE),
        stages=found,
        paths=(comparison(), comparison("rotation", (OPEN_LOOP, FEEDBACK))),
        provenance={"bag": "run.mcap", "clock": "header stamps"},
        warnings=("The clock jumped by 0.3 s.",),
        notes=("The recording was cut: the last 0.8 s are missing.",),
    )


def with_findings(*findings: Finding, stage: str = "delay") -> Report:
    """A report of findings alone."""
    found = (StageResult(stage, findings),)
    return Report("Findings", result(found), found)


@pytest.fixture(scope="module")
def text() -> str:
    return render(full_report())


class Page(HTMLParser):
    """Reads a page: checks that its tags are balanced, collects cells, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def row(self, name: str, occurrence: int = 0) -> list[str]:
        return [row for row in self.rows if row[0] == name][occurrence]


def value(cell: str) -> float:
    return float(cell.replace("\u2212", "-"))


def test_the_page_needs_nothing_from_elsewhere(text: str) -> None:
    page = Page(text)
    assert set(re.findall(r"https?://[^\"'\s<>]*", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    for tag, name, target in page.attributes:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert name != "src"
        assert not name.endswith("href") or target.startswith("#")
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


def test_every_reference_inside_the_page_has_one_target(text: str) -> None:
    page = Page(text)
    ids = [target for _, name, target in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', text)) == set(ids)
    assert {target for _, name, target in page.attributes if name == "aria-labelledby"} <= set(ids)


def test_the_table_carries_the_numbers_of_the_comparison(text: str) -> None:
    report, page = full_report(), Page(text)
    for label in ROWS:
        expected = report.paths[0].statistics(label)
        cells = [value(cell) for cell in page.row(label)[1:]]
        numbers = [
            *expected.mean,
            *expected.deviation,
            expected.position_rmse,
            expected.heading_rmse,
            expected.position_worst,
        ]
        np.testing.assert_allclose(cells, numbers, rtol=0.0, atol=0.51e-4)
    second = page.row(OPEN_LOOP, 4)  # after what odometry saw and did not see of the first, and the lab's
    assert value(second[1]) == pytest.approx(report.paths[1].statistics(OPEN_LOOP).mean[0], abs=0.51e-4)
    assert len([row for row in page.rows if row[0] == RESTORED]) == 3  # the second program has but the lab's
    assert "opposite sign" in page.text and "divided by n" in page.text and "another run" in page.text


def test_a_small_error_keeps_its_digits_and_its_sign() -> None:
    path = comparison(labels=(OPEN_LOOP,))
    actual = path.desired + np.array([-0.00042, 0.5, -1e-9])
    cells = Page(render(replace(full_report(), paths=(replace(path, actual={OPEN_LOOP: actual}),)))).row(OPEN_LOOP)
    assert cells[1:4] == ["\u22120.00042", "0.50000", "0.00000"]


def test_delays_are_shown_in_milliseconds_with_their_interval(text: str) -> None:
    page = Page(text)
    row = page.row("robot.base.delay.effective_x")
    assert row[1:4] == ["150.3", "146.4 to 154.2", "ms"]
    assert row[4] == "\u2713 identifiedvalid for commands of up to 0.2 in x; gain 0.985; residual 0.00147"
    assert "Identified: 1 of 2 numbers for the delays of the base and 1 of 2 for the friction of the base;" in page.text


def test_long_times_are_told_in_seconds_and_ratios_without_a_unit() -> None:
    slow = named_finding("slow", Estimate("slow", "s", 713.0, 5.0, (703.0, 723.0)))
    ratio = named_finding("ratio", Estimate("ratio", "1", 0.861, 0.02, (0.82, 0.902)))
    page = Page(render(with_findings(slow, ratio, stage="thermal")))
    assert page.row("slow")[1:4] == ["713", "703 to 723", "s"]
    assert page.row("ratio")[1:4] == ["0.861", "0.820 to 0.902", ""]


def test_what_holds_for_a_whole_table_is_said_once(text: str) -> None:
    page = Page(text)
    assert page.text.count("960 samples") == 1
    assert page.text.count("5300 samples. Valid for wheel speeds of up to 9.1 rad/s.") == 1
    assert page.row("robot.base.friction.viscous_x")[4] == "\u2713 identified"


def test_what_is_not_identifiable_is_marked_with_its_reason(text: str) -> None:
    page = Page(text)
    row = page.row("robot.base.delay.effective_yaw")
    assert row[1:4] == ["\u2013", "", "ms"]
    assert row[4].startswith("\u2717 not identifiable: the command never changed")
    assert "Not identified: delay in yaw (the command never changed)" in page.text
    assert "nan" not in " ".join(page.words).lower().split()
    unbounded = delay("x", 0.15, float("inf"), refused("no information"))
    assert Page(render(with_findings(unbounded))).row("robot.base.delay.effective_x")[2] == "\u2212\u221e to \u221e"


def test_a_value_at_its_bound_says_so(text: str) -> None:
    row = Page(text).row("robot.base.friction.viscous_y")
    assert row[4].startswith("\u2717 not identifiable at bound 0: the fit gives -0.4 \u00b10.9 N s/m")
    kept = judge(Unknown("x", "N", low=0.0, resolution=1.0), -0.1, 0.05, 0.1)
    shown = Page(render(with_findings(named_finding("x", kept), stage="thermal"))).row("x")
    assert shown[1] == "0" and shown[4].startswith("\u2717 not identifiable at bound 0")


def test_a_part_of_something_used_as_a_whole_says_so() -> None:
    estimate = delay("x", 0.1, 0.09, refused("too wide")).estimate
    part = named_finding("robot.base.response.lag", estimate, together=True)
    row = Page(render(with_findings(part))).row("robot.base.response.lag")
    assert row[4].startswith("\u2717 not identifiable used as part of the response of the base: too wide")


def test_what_the_robot_has_no_parameter_for_stands_apart(text: str) -> None:
    page = Page(text)
    names = [row[0] for row in page.rows]
    heading = names.index("Additional values, not parameters of the robot")
    assert names[heading + 1] == "base.friction.missed_inertia_x"
    assert "1 of 2 identified, and 1 of 1 additional values" in page.text
    alone = Page(render(with_findings(friction("base.friction.missed_inertia_x", -5.1, 0.54), stage="base_friction")))
    assert "1 of 1 identified" in alone.text and "Additional values" not in alone.text


def test_of_each_axis_one_delay_is_read_first_and_its_parts_are_folded_away() -> None:
    parts = [
        named_finding(f"robot.base.delay.{name}_x", delay("x", 0.1, 0.01).estimate) for name in ("dead_time", "lag")
    ]
    html = render(with_findings(delay("x", 0.15, 0.01), *parts))
    page = Page(html)
    assert "1 of 1 identified" in page.text
    folded = html[html.index("<summary>Dead times and lags, 2 of 2 identified</summary>") :]
    assert "robot.base.delay.lag_x" in folded and "robot.base.delay.effective_x" not in folded


def test_a_stage_without_data_is_one_line_with_the_reason(text: str) -> None:
    assert f"<strong>no result</strong>: {NO_POSE}</p>\n<h3>Delays of the base</h3>" in text
    absent = text[: text.index(NO_POSE)].rpartition("<p")[2]
    assert absent.startswith(' class="absent"') and "\u2717" not in absent  # grey, and no cross: nothing went wrong
    empty = tuple(replace(finding, estimate=finding.estimate.refused(refused("-"))) for finding in FRICTION)
    found = (StageResult("base_friction", empty, missing="no effort"),)
    empty = Page(render(replace(full_report(), stages=found, result=result(found, base_friction="no effort"))))
    assert "no result: no effort" in empty.text
    assert not [row for row in empty.rows if row[0].startswith(("base.friction", "robot.base.friction"))]


def test_a_fit_says_whether_its_residual_is_white() -> None:
    time, smooth = np.arange(2000) * 0.02, np.sin(np.arange(2000) * 0.01)
    noise = np.random.default_rng(7).standard_normal(2000)
    fit = FitCurve("x", "motion", "m", time, smooth + noise, smooth, "model")
    drifting = replace(fit, title="y", measured=smooth + np.cumsum(noise), whiteness=None)
    tested = replace(fit, title="z", whiteness=whiteness(time, noise))
    short = replace(fit, title="s", time=time[:10], measured=noise[:10], modelled=smooth[:10], whiteness=None)
    page = render(replace(full_report(), stages=stages(fit, drifting, tested, short), paths=()))
    shown = [Page(figure).text for figure in re.findall(r"<figure>.*?</figure>", page)]
    assert "Ljung-Box over 20 lags: p = 0." in shown[0] and "the residual is consistent with white noise" in shown[0]
    assert "p < 0.001 if the noise variance may change: the residual is not white" in shown[1]
    assert "Ljung-Box" not in shown[3]
    assert "bounds \u00b10.045 for white noise" in page  # 2 / sqrt(2000)


def test_the_delays_stand_open_and_the_other_verdicts_are_folded_away(text: str) -> None:
    assert re.findall(r"<details( open)?><summary>\d of", text) == [" open", ""]  # delays, friction
    headings = re.findall(r'<details><summary><h2 id="(\w+)"', text)
    assert headings == ["fits", "correlations", "provenance", "notes"]


def test_the_page_opens_with_what_was_found_how_far_to_trust_it_and_what_to_do_next(text: str) -> None:
    tiles = re.findall(r'<section class="tile ?(\w*)" aria-label="(\w+)">(.*?)</section>', text, re.DOTALL)
    assert [(colour, name) for colour, name, _ in tiles] == [("found", "Found"), ("amber", "Trust"), ("", "Next")]
    found, trust, following = (Page(body).text for _, _, body in tiles)
    assert "delay forward 150 ms (146 to 154) gain about 0.985" in found
    assert "viscous friction forward 20.1 N s/m (19.3 to 20.8)" in found
    assert "Not identified: delay in yaw (the command never changed)" in found
    assert "No result: geometry of the base." in found
    assert "Read the warning about the data below first." in trust
    assert "youbot bringup --robot real --result-file result.yaml" in following
    assert text.index('id="paths"') < text.index('id="verdicts"') < text.index('id="fits"')


@pytest.mark.parametrize(
    ("recordings", "warnings", "green", "why"),
    [
        (1, (), False, "1 recording is enough to use these values; to compare robots, take 5."),
        (3, (), False, "3 recordings are enough to use these values; to compare robots, take 5."),
        (5, (), True, "5 recordings"),
        (5, ("odd",), False, "warning"),
    ],
)
def test_trust_needs_several_drives_and_no_warning(recordings, warnings, green, why) -> None:
    sources = tuple(Source(f"drive_{k}", "", "", "", "", "") for k in range(recordings))
    tiles = opening(replace(result((StageResult("delay", DELAYS),)), sources=sources), warnings, "result.yaml")
    assert tiles["trusted"] == green and why in tiles["why"]


def test_where_nothing_was_identified_the_next_step_is_a_drive_that_moves_every_axis() -> None:
    tiles = opening(result((StageResult("delay", DELAYS[1:]),)), (), "result.yaml")
    assert not tiles["trusted"] and not tiles["answer"].blocks
    assert tiles["following"].command == "youbot play excitation"
    arm = replace(result((StageResult("delay", DELAYS[1:]),)), requested=("arm_friction",))
    assert opening(arm, (), "result.yaml")["following"].command == "youbot play arm_excitation"


def test_where_no_axis_moves_as_commanded_the_next_step_is_to_see_which_wheel_is_where() -> None:
    reasons = (Reason(Kind.UNEXPLAINED, "the command explains only 1 %"), Reason(Kind.NOT_MEASURED, "never commanded"))
    source, steps = Source("my drive", "", "", "", "", ""), []
    for second in reasons:
        kinds = zip(("x", "y"), (reasons[0], second), strict=True)
        found = tuple(delay(axis, NAN, NAN, reason, gain=NAN) for axis, reason in kinds)
        steps.append(next_step(replace(result((StageResult("delay", found),)), sources=(source,)), "found/result.yaml"))
    assert steps[0].command == "youbot new-robot --bag 'my drive' --out checked.yaml"
    assert steps[1].command == "youbot play excitation"


@pytest.mark.parametrize(
    ("recording", "command"), [("drive", "youbot new-robot --bag drive --out checked.yaml"), ("a.csv", "")]
)
def test_where_motion_contradicts_the_commands_no_drive_is_suggested(recording: str, command: str) -> None:
    """With the wheels of both sides exchanged, forward has a delay, and yaw drives away from every correction."""
    source = Source(recording, "", "", "", "", "")
    for reason in (OPPOSITE, leading("20 ms")):
        found = DELAYS[0], delay("yaw", NAN, NAN, reason, gain=NAN)
        contradicted = replace(result((StageResult("delay", found),)), sources=(source,))
        following = next_step(contradicted, "found/result.yaml")
        assert following.words.startswith("before you drive, mend what commands and motion contradict")
        assert following.command == command and not following.at_once


def test_the_next_step_with_an_arm_is_its_urdf_or_follows_from_the_kind_of_its_refusals() -> None:
    for found in ((), DELAYS[:1]):
        unnamed = replace(result((StageResult("delay", found),)), robot_id=UNNAMED[1])
        for robot in ("--robot real", ""):
            following = next_step(unnamed, "found/result.yaml", robot)
            assert following.words.startswith("give the URDF of the arm with --robot-file") and not following.command
    steps = {
        Kind.WRONG_SIGNALS: "mend what efforts and robot file contradict (see above), and identify again",
        Kind.NOT_EXCITED: "move each joint in both directions, at several speeds",
        Kind.NOT_MEASURED: "record what was not measured (see above)",
        Kind.UNEXPLAINED: "mend what is refused (see above), and identify again",
    }
    for kind, step in steps.items():
        refusals = tuple(
            Finding(ARM_FINDINGS.row(name, "joint_1"), Estimate(name, unit, NAN, NAN, (NAN, NAN), Reason(kind, "so")))
            for name, unit in (("coulomb", "N m"), ("viscous", "N m s/rad"))
        )
        assert next_step(result((StageResult("arm_friction", refusals),)), "found/result.yaml", "").words == step
    nothing = result((StageResult("arm_friction", ()),))
    assert next_step(nothing, "found/result.yaml", "").words.startswith("move each")


def test_the_next_step_with_a_simulated_robot_starts_the_same_one_again() -> None:
    known, mock = result((StageResult("delay", DELAYS[:1]),)), "--robot mock --params-file demo/stabilised.yaml"
    following = next_step(known, "demo/result.yaml", mock)
    assert following.command == f"youbot bringup {mock} --result-file demo/result.yaml"
    assert (following.words, following.at_once) == ("drive with these values:", True)
    some = next_step(result((StageResult("delay", DELAYS),)), "demo/result.yaml", mock)
    assert "; in yaw, whose delay is unknown, will use the mean of the others or a configured one:" in some.words
    assert not some.at_once


def test_a_prediction_of_what_the_fit_did_not_see_has_a_section_of_its_own() -> None:
    seen, unseen = curve("Seen"), replace(curve("Unseen"), held_out=True)
    page = render(replace(full_report(), stages=stages(seen, unseen), paths=()))
    section = page[page.index('id="prediction"') : page.index('id="verdicts"')]
    assert "Unseen" in section and ">Seen" not in section
    assert "Over these 20 s without measurements, the RMS position error is 1." in page
    assert 'id="prediction"' not in render(replace(full_report(), stages=stages(seen), paths=()))


def test_correlations_are_a_tinted_table_with_the_condition_number(text: str) -> None:
    page = Page(text)
    [heat] = re.findall(r'<table class="heat">.*?</table>', text)
    cells = Page(heat).rows
    assert cells[0] == ["", "viscous_x", "viscous_y", "lost"]
    assert cells[1] == ["viscous_x", "1", "\u22120.96", "\u2013"]
    assert cells[2] == ["viscous_y", "\u22120.96", "1", "0.12"]
    assert '<td class="negative strong" style="--r:0.96">' in heat and '<td class="positive" style="--r:0.12">' in heat
    assert "Condition number 5.04, solved by QR; set to a physical bound: viscous_y." in page.text


def test_warnings_stand_before_the_verdicts(text: str) -> None:
    assert text.index("The clock jumped by 0.3 s.") < text.index('<h2 id="verdicts">')
    assert "warnings" not in re.findall(
        r'<h2 id="(\w+)"', render(replace(full_report(), warnings=(), stages=(), paths=()))
    )


def test_a_fit_says_its_residual_and_shows_its_band(text: str) -> None:
    residual = curve().measured - curve().modelled
    rms = f"{np.sqrt(np.mean(residual**2)):.5f}"
    assert text.count(f"RMS residual {rms} m.") == 3  # caption, and the labels of the whole run and of the detail
    assert "The shaded band is the 95 % band of the model." in text
    assert text.count("fill-opacity: 0.25") == 4
    bare = replace(curve(), band=None, reference=None, detail=0.0)
    plain = render(replace(full_report(), stages=stages(bare), paths=()))
    assert "band" not in Page(plain).text and "commanded" not in Page(plain).text
    assert plain.count('<svg class="plot"') == 2  # fit and autocorrelation


def test_the_summary_says_how_many_times_smaller_the_errors_became() -> None:
    path = comparison(labels=(OPEN_LOOP, FEEDBACK))
    actual = {
        OPEN_LOOP: path.desired + np.array([0.04, 0.0, 0.01]),
        FEEDBACK: path.desired + np.array([0.002, 0.0, 0.02]),
    }
    still = {OPEN_LOOP: path.desired, FEEDBACK: path.desired + np.array([0.001, 0.0, 0.005])}
    paths = (replace(path, actual=actual), replace(path, name="turn", actual=still))
    text = Page(render(replace(full_report(), paths=paths, stages=()))).text
    assert "the position RMSE is 20 times smaller on combined and below 2 mm both times on turn" in text
    assert "the heading RMSE is 2.0 times larger on combined and up to 5 mrad on turn" in text


def test_words_from_outside_are_escaped() -> None:
    evil = "<script>alert('1')</script>&\"{style}@LIGHT@"
    path = comparison(evil, (OPEN_LOOP, FEEDBACK))
    estimate = Estimate(evil, evil, 1.0, 0.1, (0.9, 1.1), refused(evil))
    finding = named_finding(evil, estimate, valid_for=evil, details={evil: evil})
    hung = Correlation(evil, (evil,), np.eye(1), 1.0, evil, (evil,))
    drawn = replace(curve(evil, evil + "$\\frac$"), quantity=evil, modelled_is=evil, caption=evil)
    found = (StageResult("delay", (finding,), fits=(drawn,), correlations=(hung,)),)
    report = Report(
        title=evil,
        result=replace(result(found, thermal=evil), robot_id=evil),
        stages=found,
        paths=(replace(path, truth=evil, actual={**path.actual, evil: path.desired}),),
        provenance={evil: evil},
        warnings=(evil,),
        notes=(evil,),
    )
    text = render(report)
    page = Page(text)
    assert text.count("<script") == 1  # that of the animations
    assert page.text.count("alert('1')") >= 20
    assert page.row(evil)[0] == evil


def test_a_file_name_outside_utf_8_does_not_break_the_file() -> None:
    name = b"run_\xff.mcap".decode("utf-8", "surrogateescape")
    page = render(replace(full_report(), provenance={"bag": name}, paths=(comparison(name),), stages=()))
    assert page.encode("utf-8").count(b"run_\\udcff.mcap") >= 4


def test_the_same_report_gives_the_same_bytes(text: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 20.0, "svg.fonttype": "path", "axes.grid": False}):
        assert render(full_report()) == text  # whatever the user's matplotlibrc says


def test_headings_are_in_order_and_skip_no_level(text: str) -> None:
    headings = [(int(level), re.sub("<.*?>", "", name)) for level, name in re.findall(r"<h(\d).*?>(.*?)</h\d>", text)]
    assert headings == [
        (1, "Identification of run"),
        (2, "Found"),
        (2, "Trust"),
        (2, "Next"),
        (2, "Warnings about the data"),
        (2, "Paths"),
        (3, "combined"),
        (3, "rotation"),
        (2, "Verdicts"),
        (3, "Geometry of the base"),
        (3, "Delays of the base"),
        (3, "Friction of the base"),
        (2, "Fits"),
        (3, "Delays of the base"),
        (4, "Channel x"),
        (4, "Channel yaw"),
        (2, "Correlations"),
        (3, "Base friction"),
        (2, "Provenance"),
        (2, "Notes"),
    ]
    assert text.index('class="summary"') < text.index('<h2 id="warnings"')


def test_no_plot_brings_a_style_for_the_whole_page(text: str) -> None:
    assert text.count("<style") == 1


def test_every_plot_tells_what_it_shows(text: str) -> None:
    labels = re.findall(r'<svg class="plot"[^>]* role="img" aria-label="([^"]+)"', text)
    assert len(labels) == text.count('<svg class="plot"') == 10
    assert len(set(labels)) == len(labels)


def test_lines_differ_in_dashes_as_well_as_in_colour() -> None:
    of_paths = (drawing.COMMANDED, drawing.OPEN_LOOP, drawing.RESTORED, drawing.SIMULATED, drawing.FEEDBACK)
    for styles in (of_paths, (drawing.COMMANDED, drawing.MODELLED, drawing.MEASURED)):
        assert len({style.dashes for style in styles}) == len({style.colour for style in styles}) == len(styles)


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize(("paper", "k"), [("#ffffff", 0), ("#17171b", 1)])
def test_words_and_lines_stand_out_from_the_paper(paper: str, k: int) -> None:
    """WCAG 2.2: 4.5 for words, 3 for what is drawn; words are ink, axis or, as links, blue."""
    for role, pair in drawing.PALETTE.items():
        bright, dark = sorted((luminance(paper), luminance(pair[k])), reverse=True)
        wanted = 4.5 if role in ("ink", "axis", "blue") else 3.0 if role != "grid" else 1.0
        assert (bright + 0.05) / (dark + 0.05) >= wanted, role


def test_the_shades_of_a_correlation_are_the_colours_of_the_lines() -> None:
    style = (files("youbot_dynamics") / "report/assets/page.css").read_text(encoding="utf-8")
    for k, line in enumerate(style.splitlines()[:2]):
        for shade, role in (("warm", "vermillion"), ("cold", "blue")):
            channels = bytes.fromhex(drawing.PALETTE[role][k][1:])
            assert f"--{shade}:{' '.join(map(str, channels))}" in line


@pytest.mark.parametrize(
    "parts",
    [
        {"paths": ()},
        {"stages": ()},
        {"stages": (), "result": result(()), "paths": (), "provenance": {}, "warnings": (), "notes": ()},
        {"stages": stages(curve(count=1))},
        {"stages": stages(curve(count=2))},
        {"stages": stages(replace(curve(), measured=np.full(1000, NAN)))},
        {"stages": stages(replace(curve(), measured=np.minimum(curve().modelled, 0.9)))},  # mostly no residual
        {"paths": (comparison(labels=(OPEN_LOOP,)),)},
        {"paths": (comparison(labels=()),)},
        {"paths": (comparison(count=1),)},
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_not_there_is_left_out(parts: dict[str, object]) -> None:
    page = Page(render(replace(full_report(), **parts)))  # type: ignore[arg-type]
    assert "Verdicts" in page.text


@pytest.mark.filterwarnings("error")
def test_gaps_in_a_run_are_drawn_as_gaps_and_a_run_at_rest_too() -> None:
    path = comparison(labels=(OPEN_LOOP,))
    gappy = path.actual[OPEN_LOOP].copy()
    gappy[100:200] = NAN
    path = replace(path, estimated={})
    resting = replace(path, name="rest", desired=0.0 * path.desired, actual={OPEN_LOOP: 0.0 * path.desired})
    page = Page(render(replace(full_report(), paths=(replace(path, actual={OPEN_LOOP: gappy}), resting))))
    assert page.row(OPEN_LOOP)[1] == "\u2013"
    assert value(page.row(OPEN_LOOP, 2)[7]) == 0.0


def fleet(curves: int, programs: int) -> Report:
    """A report of long runs, many unknowns, and ten thousand recordings."""
    count, names = 40_000, tuple(f"unknown_{k}" for k in range(60))
    of_delay, of_base = stages(*(curve(f"Channel {k}", "m", count) for k in range(curves)))
    hung = Correlation("Arm", names, np.corrcoef(np.random.default_rng(1).standard_normal((60, 80))), 7.0)
    joints = tuple(friction(f"robot.arm.{k}", 1.0, 0.1) for k in range(60))
    found = (of_delay, of_base, StageResult("arm_friction", joints, correlations=(hung,)))
    return replace(
        full_report(),
        result=result(found),
        stages=found,
        paths=tuple(comparison(f"program {k}", count=count) for k in range(programs)),
        provenance={f"sha256 {k}": f"{k:064x}" for k in range(10_000)},
        notes=tuple(f"recording {k} was skipped: it is empty" for k in range(10_000)),
    )


def test_long_runs_stay_below_three_megabytes() -> None:
    text = render(fleet(curves=1, programs=1))
    assert len(text.encode()) < 3_000_000
    assert text.count("9800 more are not shown here.") == 2


@pytest.mark.slow
def test_long_runs_of_a_fleet_stay_below_three_megabytes() -> None:
    text = render(fleet(curves=40, programs=6))
    assert len(text.encode()) < 3_000_000
    assert "15 more curves of this stage are not drawn." in text


def test_thinning_keeps_the_extremes() -> None:
    values = np.sin(np.linspace(0.0, 40.0, 100_000))
    values[[12_345, 67_890]] = [9.0, -9.0]
    keep = drawing.thin(values, 2000)
    assert len(keep) <= 2000 and np.all(np.diff(keep) > 0)
    assert (values[keep].min(), values[keep].max()) == (-9.0, 9.0)
    assert (keep[0], keep[-1]) == (0, 99_999)


def test_the_detail_lies_where_the_command_moves() -> None:
    t = np.arange(0.0, 60.0, 0.02)
    ramp = np.clip(t - 40.0, 0.0, 3.0)
    asked = FitCurve("x", "motion", "m", t, 0.0 * t, 0.0 * t, "model", reference=ramp, detail=2.1)
    part = plots.detail(asked)
    assert 39.0 < t[part.start] < 42.0
    assert t[part.stop - 1] - t[part.start] == pytest.approx(2.1, abs=0.05)
    short = plots.detail(replace(asked, detail=0.01))
    assert short.stop - short.start >= 29
    assert plots.has_detail(asked)
    assert not plots.has_detail(replace(asked, detail=0.0))
    assert not plots.has_detail(replace(asked, detail=50.0))


def test_no_line_leads_across_missing_samples() -> None:
    time = np.concatenate([np.arange(0.0, 1.0, 0.01), np.arange(5.0, 6.0, 0.01)])
    keep = np.arange(0, 200, 3)
    broken = drawing.with_gaps(time, keep)
    [gap] = np.flatnonzero(broken == -1)
    assert time[broken[gap - 1]] < 1.0 and time[broken[gap + 1]] >= 5.0
    assert np.array_equal(np.delete(broken, gap), keep)


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ResourceError, match=r"youbot_dynamics\[report\]"):
        render(full_report())
    assert "150.3" in render(replace(full_report(), stages=stages(), paths=()))


def test_without_jinja2_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ResourceError, match=r"youbot_dynamics\[report\]"):
        render(replace(full_report(), stages=stages(), paths=()))


def test_importing_the_report_does_not_load_matplotlib() -> None:
    code = "import sys, youbot_dynamics.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
