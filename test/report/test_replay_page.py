"""The report of a replay: what it says is what was estimated, and a browser has nothing to complain of."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from arm_runs import ROBOT, drawn_truth, swing
from browser import CHROMIUM, chromium, complaints
from markupsafe import escape
from replay_logs import ARM

from youbot_dynamics.estimation.replay import ArmLog, ArmReplay, replay_arm
from youbot_dynamics.report import replay_page
from youbot_dynamics.report._replay import ESTIMATED, Line, consistency, reach

LOOK = """
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, all = (what) => [...page.querySelectorAll(what)];
    const root = page.documentElement;
    return {
      width: root.clientWidth,
      scroll: root.scrollWidth,
      plots: all("svg.plot").length,
      named: new Set(all("svg.plot[role=img]").map((plot) => plot.getAttribute("aria-label")).filter((n) => n)).size,
      narrowest: Math.min(...all("svg.plot").map((plot) => plot.getBoundingClientRect().width)),
      unscoped: all("th:not([scope])").length,
      levels: all("h1,h2,h3").map((h) => Number(h.tagName[1])),
    };
  });
  document.body.innerHTML = "<pre></pre>";
  document.querySelector("pre").textContent = JSON.stringify(found);
};
"""


@pytest.fixture(scope="module")
def replay() -> ArmReplay:
    """A swing with a wrong effort sign, a wild reading and a gap."""
    run = swing(5, drawn_truth(5), seconds=8.0).every(10)
    stamp, position, effort = run.stamp.copy(), run.position.copy(), run.effort.copy()
    stamp[300:] += 0.3
    position[100, 2] += 0.2
    effort[:, 1] *= -1.0
    return replay_arm(ArmLog(ARM, stamp, stamp, position, run.velocity, effort), ROBOT)


@pytest.fixture(scope="module")
def page(replay: ArmReplay) -> str:
    return replay_page("Replay of <a & b>", replay, ROBOT, {"log": "a <b>.mcap"}, ("half of it was lost",))


def test_it_says_what_was_found(page: str, replay: ArmReplay) -> None:
    assert "<h1>Replay of &lt;a &amp; b&gt;</h1>" in page and "a &lt;b&gt;.mcap" in page
    assert "half of it was lost" in page
    for finding in replay.findings:
        assert escape(finding.cause) in page and escape(finding.remedy) in page
    assert {one.name for one in replay.findings} >= {"effort sign", "readings beyond the gate"}
    for one in replay.summary:
        row = re.search(rf'<th scope="row">{one.joint}</th>(.*?)</tr>', page)
        assert row is not None
        cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<td>(.*?)</td>", row[1])]
        assert float(cells[0]) == pytest.approx(one.nis, abs=0.006)
        assert cells[2] == str(one.refused) and float(cells[4]) == pytest.approx(one.friction, abs=0.006)
    for name, count in replay.counts.items():
        assert f"<dt>{name}</dt><dd>{count}</dd>" in page
    assert page.count("Ljung-Box Q") == len(ARM)


def test_the_same_replay_gives_the_same_bytes(page: str, replay: ArmReplay) -> None:
    assert page == replay_page("Replay of <a & b>", replay, ROBOT, {"log": "a <b>.mcap"}, ("half of it was lost",))
    assert len(page) < 3_000_000


def test_bounds_of_nis_hold_what_is_drawn_from_the_filters_own_law() -> None:
    random = np.random.default_rng(0)
    time = 0.01 * np.arange(40_000)
    found = consistency(time, random.chisquare(5, len(time)), np.full(len(time), 5.0))
    assert len(found.nis) == 100 and 0.88 <= found.within <= 1.0
    off = consistency(time, 2.0 * random.chisquare(5, len(time)), np.full(len(time), 5.0))
    assert off.within == 0.0
    assert len(consistency(time[:0], time[:0], time[:0]).nis) == 0


def test_the_bounds_of_nis_have_the_probability_of_all_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    random, time = np.random.default_rng(0), 0.01 * np.arange(40_000)
    squares, readings = random.chisquare(5, len(time)), np.full(len(time), 5.0)
    monkeypatch.setattr("youbot_dynamics.report._replay.CONFIDENCE", 0.5)
    assert 0.3 <= consistency(time, squares, readings).within <= 0.7


def test_a_plot_is_not_scaled_by_one_wild_value() -> None:
    values = np.sin(np.arange(1000.0))
    values[3] = 1e6
    low, high = reach([Line(ESTIMATED, np.arange(1000.0), values)])
    assert -1.5 < low < -1.0 and 1.0 < high < 1.5
    assert reach([Line(ESTIMATED, np.arange(3.0), np.full(3, np.nan))]) == (0.0, 1.0)


def test_a_log_of_two_messages_has_a_page_too(replay: ArmReplay) -> None:
    log = replay.log
    short = {name: getattr(log, name)[:2] for name in ("stamp", "received", "position", "velocity", "effort")}
    page = replay_page("Two messages", replay_arm(dataclasses.replace(log, **short), ROBOT), ROBOT, {}, ())
    assert "2 of 2 messages" in page


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_a_browser_shows_it_on_a_desk_on_a_phone_and_on_paper(page: str, tmp_path: Path) -> None:
    frames = "".join(
        f'<iframe width="{w}" height="900" style="border:0" srcdoc="{html.escape(page)}"></iframe>' for w in (360, 1280)
    )
    (tmp_path / "look.html").write_text(f"<!DOCTYPE html><body>{frames}<script>{LOOK}</script>", encoding="utf-8")
    done = chromium(tmp_path, "--dump-dom", f"file://{tmp_path / 'look.html'}")
    assert complaints(done) == []
    written = re.search(r"<pre>(.*)</pre>", done.stdout)
    assert written is not None
    for look in json.loads(html.unescape(written[1])):
        assert look["scroll"] <= look["width"]
        assert look["plots"] == look["named"] == 1 + 6 * len(ARM)
        assert look["unscoped"] == 0 and look["levels"][0] == 1
        assert look["narrowest"] > (0.85 * 360 if look["width"] < 500 else 400)
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    pdf = tmp_path / "report.pdf"
    done = chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", f"file://{tmp_path / 'report.html'}")
    assert complaints(done) == [] and pdf.read_bytes().startswith(b"%PDF")
