"""The report's drive in motion: what is drawn is what was driven, with a script and without, and the lab's figures."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import report_bags
from browser import CHROMIUM, chromium, complaints
from report_pages import Report, render

from youbot_dynamics.identification.comparison import (
    FEEDBACK,
    OPEN_LOOP,
    RESTORED,
    Footprint,
    PathComparison,
    RecordedPath,
    error_statistics,
    path_errors,
    recorded_path,
    relative_path,
)
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.report._programs import LAB_TABLES, lab_row

TIME = np.arange(0.0, 20.01, 0.02)
OFF = {OPEN_LOOP: np.array([0.03, -0.04, 0.08]), FEEDBACK: np.array([0.003, 0.004, -0.002])}
OF_ODOMETRY = np.array([0.001, 0.0, 0.0015])

in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium")


def wanted(t: np.ndarray) -> np.ndarray:
    return np.column_stack([0.6 * np.sin(0.3 * t), 0.3 * np.sin(0.9 * t), 0.5 * t])


def comparison(name: str = "combined") -> PathComparison:
    """A drive that turns more than once and is off by constants; odometry is off the truth by another."""
    actual = {label: wanted(TIME) + off for label, off in OFF.items()}
    estimated = {label: poses - OF_ODOMETRY for label, poses in actual.items()}
    return PathComparison(name, TIME, wanted(TIME), actual, "ground truth", estimated)


def page(*paths: PathComparison) -> str:
    return render(Report("Drive", Result("youbot-7", (), (), {}, {}, ()), (), paths))


def animation(path: PathComparison) -> str:
    """The animation on a page of one program, "" for none."""
    return "".join(re.findall(r'<figure class="animation".*?</figure>', page(path), re.DOTALL))


def error_table(path: PathComparison) -> str:
    """The table of errors on a page of one program with the remarks below it."""
    [table] = re.findall(r'<div class="scroll" role="region" aria-label="Errors of .*</p>', page(path), re.DOTALL)
    return table


def run_of(figure: str) -> dict:
    """Data of an animation, with lines (m, 3) [m, m, rad] instead of steps."""
    found = json.loads(html.unescape(re.search(r'data-run="([^"]*)"', figure)[1]))
    lines = []
    for axes in found["lines"]:
        values = np.array(axes, dtype=float)
        there = np.isfinite(values)
        lines.append(np.where(there, 1e-4 * np.cumsum(np.where(there, values, 0.0), axis=1), np.nan).T)
    return {**found, "lines": lines}


def test_the_data_are_the_drive_to_a_tenth_of_a_millimetre() -> None:
    path = comparison()
    run = run_of(animation(path))
    at = np.linspace(0.0, 20.0, 501)  # 25 Hz
    assert run["end"] == 20.0
    for line, poses in zip(
        run["lines"], [path.desired, *(path.actual[k] for k in OFF), path.estimated[FEEDBACK]], strict=True
    ):
        expected = np.column_stack([np.interp(at, TIME, axis) for axis in poses.T])
        np.testing.assert_allclose(line, expected, atol=0.5001e-4)
    assert run["lines"][0][-1, 2] > 9.9  # turns are kept


def test_a_run_of_twenty_seconds_takes_less_than_sixty_kilobytes() -> None:
    rng = np.random.default_rng(1)
    path = comparison()
    noisy = {label: poses + 1e-3 * rng.standard_normal(poses.shape) for label, poses in path.actual.items()}
    assert len(animation(replace(path, actual=noisy, estimated=noisy)).encode()) < 60_000
    hour = np.linspace(0.0, 3600.0, len(TIME))
    assert len(run_of(animation(replace(path, time=hour)))["lines"][0]) == 1000


def test_what_was_not_measured_is_not_drawn() -> None:
    path = comparison()
    gappy = path.actual[FEEDBACK].copy()
    gappy[200:300] = np.nan
    figure = animation(replace(path, actual={FEEDBACK: gappy}, estimated={}))
    line = run_of(figure)["lines"][1]
    assert np.isnan(line[101:149]).all() and np.isfinite(line[:100]).all() and np.isfinite(line[151:]).all()
    trail = re.search(r'<g class="still">.*?<path class="trail main"[^>]* d="([^"]*)"', figure)[1]
    assert trail.count("M") == 2 and not re.search(r"\bnan\b", figure.lower())


@pytest.mark.parametrize(
    "changes",
    [{"actual": {}}, {"actual": {RESTORED: wanted(TIME)}}, {"desired": np.nan * wanted(TIME)}, {"time": TIME[:1]}],
)
def test_without_a_recorded_drive_there_is_no_animation_and_no_script(changes: dict) -> None:
    path = replace(comparison(), **changes)
    first = slice(0, len(path.time))
    poses = {label: values[first] for label, values in path.actual.items()}
    path = replace(path, desired=path.desired[first], actual=poses, estimated={})
    assert animation(path) == "" and "<script" not in page(path)
    assert "<script" not in page() and "script-src" not in page()


def test_the_one_script_is_short_and_the_only_one_that_may_run() -> None:
    text = page(comparison(), comparison("rotation"))
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert len(script) < 6000
    assert not re.search(r"fetch|XMLHttp|import|WebSocket|eval|innerHTML|https?:", script)


def corners(shape: str) -> np.ndarray:
    """Corners [m] of the rectangles of a footprint: (k, 4) of left, low, width, height."""
    return 1e-4 * np.array(re.findall(r"M(-?\d+) (-?\d+)h(\d+)v(\d+)h", shape), dtype=float)


def test_the_base_is_drawn_to_scale() -> None:
    """Overall 0.58 m by 0.376 m, wheels of 95 mm on axes 0.47 m apart (the youBot's sheets)."""
    figure = animation(comparison())
    boxes = corners(re.search(r'<path class="base main"[^>]* d="([^"]*)"', figure)[1])
    assert len(boxes) == 5
    low, high = boxes[:, :2].min(axis=0), (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
    np.testing.assert_allclose(high - low, [0.58, 0.376], atol=1e-3)
    centres = boxes[1:, :2] + boxes[1:, 2:] / 2.0
    np.testing.assert_allclose(np.abs(centres), np.tile([0.235, 0.15], (4, 1)), atol=1e-4)
    np.testing.assert_allclose(boxes[1:, 2], 0.095, atol=1e-4)
    other = animation(replace(comparison(), footprint=Footprint(0.3, 0.2, 0.05)))
    assert np.abs(corners(re.search(r'<path class="base main"[^>]* d="([^"]*)"', other)[1])[0, 0]) == pytest.approx(
        0.355, abs=1e-4
    )


def test_without_a_script_a_picture_with_bases_and_times_stands() -> None:
    text = page(comparison())
    [still] = re.findall(r'<g class="still">(.*)</g><g class="live">', text)
    assert still.count('<path class="base main"') == 6
    times = [float(t) for words in re.findall(r">([\d., ]+) s</text>", still) for t in words.split(", ")]
    assert sorted(times) == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0]
    place = re.findall(r"translate\((\S+) (\S+)\) rotate\((\S+)\)", still)[1]
    x, y, yaw = wanted(np.array([4.0]))[0] + OFF[FEEDBACK]
    np.testing.assert_allclose([float(v) for v in place], [1e4 * x, -1e4 * y, -np.degrees(yaw)], atol=1.0)
    assert 'aria-label="Animation of combined" hidden>' in text
    assert ".live{display:none}" in text


def test_the_faded_line_is_the_open_loop_beside_a_stabilised_drive_alone() -> None:
    assert 'class="trail faded"' in animation(comparison())
    alone = comparison()
    figure = animation(replace(alone, actual={OPEN_LOOP: alone.actual[OPEN_LOOP]}, truth="odometry"))
    assert "faded" not in figure and "open loop, odometry" in figure and len(run_of(figure)["lines"]) == 3


# The table: what odometry saw, what it did not, and the lab.


def cells(table: str) -> dict[str, list[float]]:
    """Rows of a table by "heading/label"."""
    found, heading = {}, ""
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table):
        names = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<th.*?</th>", row)]
        values = re.findall(r"<td.*?>(.*?)</td>", row)
        if values:
            found[f"{heading}/{names[0]}"] = [float(v.replace("\u2212", "-").replace("\u2013", "nan")) for v in values]
        elif len(names) == 1:
            heading = names[0].split(":")[0].split(",")[0]
    return found


def test_what_odometry_saw_and_what_it_could_not_see_stand_apart() -> None:
    table = cells(error_table(comparison()))
    for label, off in OFF.items():
        np.testing.assert_allclose(table[f"/{label}"][:3], off, atol=0.6e-5)
        np.testing.assert_allclose(table[f"Odometry \u2212 desired/{label}"][:3], off - OF_ODOMETRY, atol=0.6e-5)
        np.testing.assert_allclose(table[f"Ground truth \u2212 odometry/{label}"][:3], OF_ODOMETRY, atol=0.6e-5)
    assert "odometry" not in " ".join(cells(error_table(replace(comparison(), estimated={})))).lower()


def test_the_lab_stands_below_ours_where_it_drove_the_same_program() -> None:
    table = cells(error_table(comparison("combined_feedback")))
    assert table["Laboratory report of 2022/open loop"][:6] == [-0.0048, 0.0251, -0.1453, 0.0303, 0.0391, 0.0739]
    assert table["Laboratory report of 2022/feedback"][3:6] == [0.0074, 0.0075, 0.0034]
    assert np.isnan(table["Laboratory report of 2022/feedback"][8])
    words = error_table(comparison())
    assert (
        "works 3 and 6, as printed: desired \u2212 actual" in words
        and "opposite sign" in words
        and "document 003" in words
        and "opposite sign" in words
        and "document 003" in words
    )
    for name in ("drive_1", "rotation_translation"):
        assert "Laboratory report" not in " ".join(cells(error_table(comparison(name))))


def test_the_figures_of_the_lab_give_the_rms_errors_of_system_37() -> None:
    """X .0307 -> .0074, Y .0465 -> .0075, psi .163 -> .026 on the combined program."""
    _, rows = LAB_TABLES["combined"]
    assert lab_row(rows[OPEN_LOOP])[6:8] == pytest.approx([np.hypot(0.0307, 0.0465), 0.163], abs=1e-3)
    assert lab_row(rows[FEEDBACK])[6:8] == pytest.approx([np.hypot(0.0074, 0.0075), 0.026], abs=1e-3)
    assert all(set(table) == set(rows) for _, table in LAB_TABLES.values())


# Recordings.


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return open_bag(report_bags.path_bag(tmp_path_factory.mktemp("path") / "combined"))


def path_of(recording: Recording, **chosen: str) -> RecordedPath:
    path = recorded_path(recording, base_signals(recording, report_bags.ROBOT, {}), chosen)
    assert path is not None
    return path


def test_a_path_carries_the_odometry_beside_the_ground_truth(recording: Recording) -> None:
    path = path_of(recording)
    assert path.truth == "ground truth" and path.estimated is not None
    assert path.estimated.shape == path.actual.shape
    np.testing.assert_allclose(path.estimated[0], 0.0, atol=1e-9)
    apart = error_statistics(path_errors(path.estimated, path.actual))
    assert 0.0 < apart.position_rmse < 0.01  # of one and the same drive, by two instruments
    assert error_statistics(path_errors(path.actual, path.desired_poses())).position_rmse > 3.0 * apart.position_rmse


def test_the_path_is_that_of_the_last_of_several_trajectories(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    [sent] = recording.trajectories("/trajectory")
    others = [replace(sent, start=sent.start - before, pose=-sent.pose) for before in (30.0, 20.0)]
    monkeypatch.setattr(Recording, "trajectories", lambda *_: (*others, sent))
    last = path_of(recording)
    np.testing.assert_allclose(last.desired_poses()[-1], relative_path(sent.pose, sent.pose[0])[-1], atol=0.02)
    monkeypatch.undo()
    np.testing.assert_array_equal(last.actual, path_of(recording).actual)


def test_an_odometry_that_does_not_cover_the_drive_is_no_estimate(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Recording.poses
    [name] = [topic for topic in recording.topics if topic.endswith("/odom") and "driver" not in topic]

    def from_fifth_second(self: Recording, topic: str):  # noqa: ANN202
        series = whole(self, topic)
        late = series.stamp > series.stamp[0] + 5.0
        cut = replace(series, stamp=series.stamp[late], received=series.received[late], pose=series.pose[late])
        return cut if topic == name else series

    monkeypatch.setattr(Recording, "poses", from_fifth_second)
    path = path_of(recording)
    assert path.estimated is None and path.truth == "ground truth"


# The script, in a browser that prefers rest.

TRY = """
onload = () => setTimeout(() => {
  const page = document.querySelector("iframe").contentDocument, one = (what) => page.querySelector(what);
  const view = frames[0], found = [], waiting = [];
  view.requestAnimationFrame = (draw) => waiting.push(draw);
  const look = () => found.push({
    moving: one(".animation").classList.contains("moving"), hidden: one(".controls").hidden,
    clock: one(".clock").textContent, said: one("[type=range]").getAttribute("aria-valuetext"),
    button: one("button").textContent,
    bases: [...page.querySelectorAll(".live .base")].map((base) => base.getAttribute("transform")),
    trails: [...page.querySelectorAll(".live .trail")].map((trail) => trail.getAttribute("d").split("L").length),
    offs: [...page.querySelectorAll(".off")].map((off) => off.textContent),
    still: view.getComputedStyle(one(".still")).display, live: view.getComputedStyle(one(".live")).display,
  });
  look();
  one("[type=range]").value = 7.5;
  one("[type=range]").dispatchEvent(new Event("input"));
  look();
  one("[type=checkbox]").click();
  look();
  one("[type=checkbox]").click();
  one("select").value = "2";
  one("button").click();
  for (let now = 5000; now <= 6000; now += 50) waiting.splice(0).forEach((draw) => draw(now));
  look();
  one("button").click();
  waiting.splice(0).forEach((draw) => draw(9000));
  look();
  document.body.innerHTML = "<pre></pre>";
  document.querySelector("pre").textContent = JSON.stringify(found);
}, 100);
"""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """The page as loaded; with the slider at 7.5 s; magnified; after a second played at twice the speed; paused."""
    folder = tmp_path_factory.mktemp("animation")
    frame = f'<iframe width="1280" height="3000" srcdoc="{html.escape(page(comparison()))}"></iframe>'
    (folder / "try.html").write_text(f"<!DOCTYPE html><body>{frame}<script>{TRY}</script>", encoding="utf-8")
    words = ("--force-prefers-reduced-motion", "--virtual-time-budget=4000", "--dump-dom")
    done = chromium(folder, *words, f"file://{folder / 'try.html'}")
    assert complaints(done) == []
    return json.loads(html.unescape(re.search(r"<pre>(.*)</pre>", done.stdout)[1]))


def places(look: dict) -> np.ndarray:
    """Poses (4, 3) [m, m, rad] at which the bases are drawn."""
    numbers = [re.findall(r"-?\d+\.\d+", words) for words in look["bases"]]
    return np.array(numbers, dtype=float) * [1e-4, -1e-4, -np.pi / 180.0]


def poses_at(time: float) -> np.ndarray:
    reference = wanted(np.array([time]))[0]
    errors = [0.0 * OF_ODOMETRY, OFF[OPEN_LOOP], OFF[FEEDBACK], OFF[FEEDBACK] - OF_ODOMETRY]
    return reference + np.array(errors)


@in_chromium
def test_who_prefers_rest_sees_the_still_picture_first(looks: list[dict]) -> None:
    loaded = looks[0]
    assert not loaded["moving"] and not loaded["hidden"] and loaded["button"] == "Play"
    assert loaded["still"] == "inline" and loaded["live"] == "none"


@in_chromium
def test_the_slider_shows_the_bases_where_they_were(looks: list[dict]) -> None:
    look = looks[1]
    assert look["clock"] == "7.50 s" and look["said"] == "7.50 of 20.00 seconds"
    assert look["still"] == "none" and look["live"] == "inline"
    np.testing.assert_allclose(places(look), poses_at(7.5), atol=2e-4)
    assert look["trails"][2] == pytest.approx(7.5 * 25.0, abs=2)
    assert look["offs"] == ["50.0 mm, 80.0 mrad", "5.0 mm, 2.0 mrad", "4.5 mm, 3.5 mrad"]


@in_chromium
def test_errors_are_magnified_on_request(looks: list[dict]) -> None:
    expected = poses_at(7.5)
    expected[1:] = expected[0] + 20.0 * (expected[1:] - expected[0])
    np.testing.assert_allclose(places(looks[2]), expected, atol=3e-3)  # 20 times what rounding leaves
    assert looks[2]["offs"] == looks[1]["offs"]


@in_chromium
def test_it_plays_as_fast_as_asked_and_pauses(looks: list[dict]) -> None:
    playing, paused = looks[3:]
    assert playing["button"] == "Pause" and paused["button"] == "Play"
    assert playing["clock"] == paused["clock"] == "9.50 s"


@in_chromium
def test_the_address_may_name_a_moment(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page(comparison(), comparison("rotation")), encoding="utf-8")
    done = chromium(tmp_path, "--dump-dom", f"file://{tmp_path / 'report.html'}#t=12.25")
    assert complaints(done) == []
    assert done.stdout.count(">12.25 s</span>") == 2
    tampered = page(comparison()).replace("let moment = 0", "let moment = 1")
    (tmp_path / "report.html").write_text(tampered, encoding="utf-8")
    refused = chromium(tmp_path, "--dump-dom", f"file://{tmp_path / 'report.html'}#t=12.25")
    assert len(complaints(refused)) == 1 and "12.25 s" not in refused.stdout
