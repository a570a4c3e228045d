"""The report: one file without the network, with the numbers of the comparison, safe and repeatable."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from youbot_dynamics.errors import ResourceError
from youbot_dynamics.identification import plots
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, RESTORED, ROWS, PathComparison
from youbot_dynamics.identification.delay import DelayEstimate
from youbot_dynamics.identification.report import ChannelFit, Report, render, write_report

NAN = float("nan")
VOID = {"meta", "link", "img", "br", "hr", "input"}
IDENTIFIED = DelayEstimate(
    channel="x",
    value=0.1503,
    standard_error=0.002,
    interval=(0.1464, 0.1542),
    gain=0.985,
    residual=0.00147,
    samples=960,
    fastest=0.2,
    verdict="identified",
)
REFUSED = DelayEstimate(
    channel="yaw",
    value=NAN,
    standard_error=NAN,
    interval=(NAN, NAN),
    gain=NAN,
    residual=NAN,
    samples=812,
    fastest=0.4,
    verdict="not identifiable: the command never changed",
)


def comparison(name: str = "combined", labels: tuple[str, ...] = ROWS, count: int = 1000) -> PathComparison:
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 20.0, count)
    desired = np.column_stack([0.6 * np.sin(0.6 * t), 0.3 * np.sin(0.9 * t), 0.4 * np.sin(0.5 * t)])
    size = {label: 0.03 / (1 + 4 * k) for k, label in enumerate(labels)}
    actual = {label: desired + size[label] * (0.3 + rng.standard_normal(desired.shape)) for label in labels}
    return PathComparison(name, t, desired, actual, "ground truth")


def channel_fit(channel: str = "x", unit: str = "m", count: int = 1000) -> ChannelFit:
    t = 1.7e9 + np.linspace(0.0, 20.0, count)
    noise = 1e-3 * np.random.default_rng(4).standard_normal(count)
    moved = np.sin(t - 0.15)
    return ChannelFit(channel, unit, t, np.sin(t), moved, moved + noise)


def full_report() -> Report:
    return Report(
        title="Delay and path tracking",
        robot_id="youbot-7",
        delays=(IDENTIFIED, REFUSED),
        fits=(channel_fit(), channel_fit("yaw", "rad")),
        paths=(comparison(), comparison("rotation", (OPEN_LOOP, FEEDBACK))),
        provenance={"bag": "run.mcap", "clock": "header stamps"},
        notes=("The recording was cut: the last 0.8 s are missing.",),
    )


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
        if "style" not in self.open:
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
        assert tag not in ("script", "link", "img", "iframe", "object", "base")
        assert name != "src"
        assert not name.endswith("href") or target.startswith("#")
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


def test_every_reference_inside_the_page_has_one_target(text: str) -> None:
    ids = [target for _, name, target in Page(text).attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', text)) == set(ids)


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
    assert value(page.row(OPEN_LOOP, 1)[1]) == pytest.approx(report.paths[1].statistics(OPEN_LOOP).mean[0], abs=0.51e-4)
    assert len([row for row in page.rows if row[0] == RESTORED]) == 1  # the second program has none
    assert "opposite sign" in page.text and "population" in page.text and "another run" in page.text


def test_a_small_error_keeps_its_digits_and_its_sign() -> None:
    path = comparison(labels=(OPEN_LOOP,))
    actual = path.desired + np.array([-0.00042, 0.5, -1e-9])
    cells = Page(render(replace(full_report(), paths=(replace(path, actual={OPEN_LOOP: actual}),)))).row(OPEN_LOOP)
    assert cells[1:4] == ["\u22120.00042", "0.50000", "0.00000"]


def test_delays_are_shown_in_milliseconds_with_their_interval(text: str) -> None:
    page = Page(text)
    assert page.row("x")[1:] == ["150.3", "146.4 to 154.2", "0.985", "0.00147 m", "960", "identified"]
    assert "150.3 ms in x (95 % interval 146.4 to 154.2)" in page.text


def test_several_fits_of_a_channel_are_counted() -> None:
    text = render(replace(full_report(), fits=(channel_fit(), channel_fit())))
    assert re.findall(r"<h3>(Channel.*?)</h3>", text) == ["Channel x, 1 of 2", "Channel x, 2 of 2"]
    assert text.count("<figcaption>Combined delay 150.3 ms.") == 2


def test_what_is_not_identifiable_is_marked_with_its_reason(text: str) -> None:
    page = Page(text)
    assert page.row("yaw") == ["yaw", "\u2013", "\u2013", "\u2013", "\u2013", "812", REFUSED.verdict]
    assert "<strong>not identifiable</strong>: the command never changed" in text
    assert "the delay in yaw could not be identified" in page.text
    assert "nan" not in " ".join(page.words).lower().split()
    unbounded = replace(IDENTIFIED, interval=(-np.inf, np.inf), verdict="not identifiable: no information")
    assert "\u2212\u221e to \u221e" in Page(render(replace(full_report(), delays=(unbounded,), fits=(), paths=()))).row(
        "x"
    )


def test_the_summary_says_how_many_times_smaller_the_errors_became() -> None:
    path = comparison(labels=(OPEN_LOOP, FEEDBACK))
    actual = {
        OPEN_LOOP: path.desired + np.array([0.04, 0.0, 0.01]),
        FEEDBACK: path.desired + np.array([0.002, 0.0, 0.02]),
    }
    still = {OPEN_LOOP: path.desired, FEEDBACK: path.desired + np.array([0.001, 0.0, 0.005])}
    paths = (replace(path, actual=actual), replace(path, name="turn", actual=still))
    text = Page(render(replace(full_report(), paths=paths, fits=()))).text
    assert "the position RMSE is 20 times smaller on combined and below 2 mm both times on turn" in text
    assert "the heading RMSE is 2.0 times larger on combined and up to 5 mrad on turn" in text


def test_words_from_outside_are_escaped() -> None:
    evil = "<script>alert('1')</script>&\"{style}@LIGHT@"
    path = comparison(evil, (OPEN_LOOP, FEEDBACK))
    report = Report(
        title=evil,
        robot_id=evil,
        delays=(replace(IDENTIFIED, channel=evil), replace(REFUSED, verdict=evil)),
        fits=(channel_fit(evil, evil + "$\\frac$"),),
        paths=(replace(path, truth=evil, actual={**path.actual, evil: path.desired}),),
        provenance={evil: evil},
        notes=(evil,),
    )
    text = render(report)
    page = Page(text)
    assert "<script" not in text
    assert page.text.count("alert('1')") >= 10
    assert page.row(evil)[0] == evil


def test_a_file_name_outside_utf_8_does_not_break_the_file(tmp_path: Path) -> None:
    name = b"run_\xff.mcap".decode("utf-8", "surrogateescape")
    write_report(
        tmp_path / "report.html",
        replace(full_report(), provenance={"bag": name}, paths=(comparison(name),), fits=()),
    )
    assert "run_?.mcap" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_same_report_gives_the_same_bytes(tmp_path: Path, text: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 20.0, "svg.fonttype": "path", "axes.grid": False}):
        assert render(full_report()) == text  # whatever the user's matplotlibrc says
    write_report(tmp_path / "report.html", full_report())
    assert (tmp_path / "report.html").read_bytes() == text.encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_order_is_summary_delays_fits_paths_provenance_notes(text: str) -> None:
    headings = re.findall(r"<h[123]>(.*?)</h[123]>", text)
    assert headings == [
        "Delay and path tracking",
        "Delays",
        "Fit of the delays",
        "Channel x",
        "Channel yaw",
        "Paths",
        "combined",
        "rotation",
        "Provenance",
        "Notes",
    ]
    assert text.index('class="summary"') < text.index("<h2>")


def test_no_plot_brings_a_style_for_the_whole_page(text: str) -> None:
    assert text.count("<style") == 1


def test_every_plot_tells_what_it_shows(text: str) -> None:
    labels = re.findall(r'<svg class="plot"[^>]* role="img" aria-label="([^"]+)"', text)
    assert len(labels) == text.count('<svg class="plot"') == 8
    assert len(set(labels)) == len(labels)


def test_lines_differ_in_dashes_as_well_as_in_colour() -> None:
    styles = (plots.COMMANDED, plots.OPEN_LOOP, plots.RESTORED, plots.SIMULATED, plots.FEEDBACK)
    assert len({style.dashes for style in styles}) == len({style.colour for style in styles}) == len(styles)


@pytest.mark.parametrize(
    "parts",
    [
        {"paths": ()},
        {"fits": ()},
        {"fits": (), "paths": (), "delays": (), "provenance": {}, "notes": ()},
        {"fits": (channel_fit(count=1),)},
        {"fits": (channel_fit(count=2),)},
        {"paths": (comparison(labels=(OPEN_LOOP,)),)},
        {"paths": (comparison(labels=()),)},
        {"paths": (comparison(count=1),)},
    ],
)
def test_what_is_not_there_is_left_out(parts: dict[str, object]) -> None:
    page = Page(render(replace(full_report(), **parts)))  # type: ignore[arg-type]
    assert "Effective delay" in page.text


@pytest.mark.filterwarnings("error")
def test_gaps_in_a_run_are_drawn_as_gaps_and_a_run_at_rest_too() -> None:
    path = comparison(labels=(OPEN_LOOP,))
    gappy = path.actual[OPEN_LOOP].copy()
    gappy[100:200] = NAN
    resting = replace(path, name="rest", desired=0.0 * path.desired, actual={OPEN_LOOP: 0.0 * path.desired})
    page = Page(render(replace(full_report(), paths=(replace(path, actual={OPEN_LOOP: gappy}), resting))))
    assert page.row(OPEN_LOOP)[1] == "\u2013"
    assert value(page.row(OPEN_LOOP, 1)[7]) == 0.0


def test_long_runs_stay_below_three_megabytes() -> None:
    count = 40_000
    report = replace(
        full_report(),
        fits=tuple(channel_fit(name, "m", count) for name in ("x", "y", "yaw")),
        paths=tuple(comparison(f"program {k}", count=count) for k in range(6)),
    )
    assert len(render(report).encode()) < 3_000_000


def test_thinning_keeps_the_extremes() -> None:
    t = np.linspace(0.0, 1.0, 100_000)
    values = np.sin(40.0 * t)
    values[[12_345, 67_890]] = [9.0, -9.0]
    thin_t, thin_v = plots.thin(t, values, 2000)
    assert len(thin_t) == len(thin_v) <= 2000
    assert np.all(np.diff(thin_t) > 0.0)
    assert (thin_v.min(), thin_v.max()) == (-9.0, 9.0)
    assert (thin_t[0], thin_t[-1]) == (t[0], t[-1])


def test_the_detail_lies_where_the_command_moves() -> None:
    t = np.arange(0.0, 60.0, 0.02)
    part = plots.busiest(t, np.clip(t - 40.0, 0.0, 3.0), 0.15)
    assert 39.0 < t[part.start] < 42.0
    assert t[part.stop - 1] - t[part.start] == pytest.approx(14 * 0.15, abs=0.05)


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ResourceError, match="pip install matplotlib"):
        render(full_report())
    assert "150.3" in render(replace(full_report(), fits=(), paths=()))


def test_importing_the_report_does_not_load_matplotlib() -> None:
    code = "import sys, youbot_dynamics.identification.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
