"""The report of a simulated robot's recordings in headless Chromium: no network, no complaint, on a phone, on paper."""

from __future__ import annotations

import json
import re
from pathlib import Path

import browser
import pytest
import report_bags
from browser import CHROMIUM, chromium, complaints

from youbot_dynamics.report import write_outputs

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium")

LOOK = """
      tables: all("table").length,
      out: all("table").filter((t) => !inside(t) && !t.closest(".scroll")).length,
      frames: all(".scroll[aria-label]").filter((box) => box.tabIndex === 0 && inside(box)).length,
      verdicts: all(".verdicts .words").filter((cell) => !inside(cell)).length,
      plots: all("svg.plot").length,
      named: new Set(all("svg.plot[role=img]").map((plot) => plot.getAttribute("aria-label")).filter((n) => n)).size,
      narrowest: Math.min(...all("svg.plot").map((plot) => plot.getBoundingClientRect().width)),
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    found, comparisons = report_bags.identified(folder)
    write_outputs(folder / "found", found, comparisons, "Identification of two drives")
    return folder / "found" / "report.html"


@pytest.fixture(scope="module")
def looks(report: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict]:
    """What the page looks like at several widths [px]."""
    return browser.looks(tmp_path_factory.mktemp("looks"), report.read_text(encoding="utf-8"), LOOK)


def test_the_page_loads_without_a_word_on_the_console(report: Path, tmp_path: Path) -> None:
    done = chromium(tmp_path, "--dump-dom", f"file://{report}")
    assert complaints(done) == []
    assert "<h1>Identification of two drives</h1>" in done.stdout
    assert "\ufffd" not in done.stdout


def test_what_is_loaded_from_elsewhere_would_be_told_on_the_console(report: Path, tmp_path: Path) -> None:
    """The check of the test above can fail: the page itself forbids what it does not need."""
    worse = tmp_path / "worse.html"
    text = report.read_text(encoding="utf-8")
    worse.write_text(text.replace("</main>", '<img src="https://example.org/a.png" alt=""></main>'), encoding="utf-8")
    assert len(complaints(chromium(tmp_path, "--dump-dom", f"file://{worse}"))) == 1


def test_the_page_fits_a_phone(looks: dict[int, dict]) -> None:
    phone, desk = looks[360], looks[1280]
    for look in (phone, desk):
        assert look["scroll"] <= look["width"]
        assert look["out"] == 0
        assert look["verdicts"] == 0  # the verdict is in sight without scrolling the table
    assert phone["narrowest"] > 0.85 * 360  # one plot beside the other on a desk, below it on a phone
    assert desk["narrowest"] > 400


def test_the_page_can_be_read_aloud_and_by_keyboard(looks: dict[int, dict]) -> None:
    look = looks[1280]
    assert look["unscoped"] == 0
    assert look["plots"] == look["named"] >= 8
    assert look["frames"] == look["tables"] >= 4
    levels = look["levels"]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


def test_the_page_prints(report: Path, tmp_path: Path) -> None:
    done = chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'report.pdf'}", f"file://{report}")
    assert complaints(done) == []
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12


def test_the_numbers_of_the_page_are_those_of_the_result(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    result = json.loads((report.parent / "result.json").read_text(encoding="utf-8"))
    assert len(result["parameters"]) > 8
    for entry in result["parameters"]:
        row = re.search(rf'rowheader"[^>]*>{re.escape(entry["name"])}</th>(.*?)</tr>', text)
        assert row is not None, entry["name"]
        cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row[1])]
        assert ("not identifiable" in cells[3]) == entry["verdict"].startswith("not identifiable")
        if entry["value"] is None:
            assert cells[0] == "\u2013"
            continue
        scale = 1e3 if cells[2] == "ms" else 1.0
        low, high = (scale * bound for bound in entry["interval_95"])
        shown = float(cells[0].replace("\u2212", "-"))
        assert shown == pytest.approx(scale * entry["value"], abs=0.05 * (high - low) + 1e-12)
