"""Plots of docs/bench.md from what `scripts/bench.sh` measured: one an item, drawn when the site is built."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

UNITS = ((1e-6, "ns", 1e9), (1e-3, "us", 1e6), (1.0, "ms", 1e3), (float("inf"), "s", 1.0))
OURS, OTHERS = "#1f6f8b", "#b8b8b8"


def time_text(seconds: float) -> str:
    """A time with three digits and its unit."""
    unit, factor = next((unit, factor) for below, unit, factor in UNITS if seconds < below)
    return f"{seconds * factor:.3g} {unit}"


def sizes_of(item: dict[str, Any]) -> list[float] | None:
    """Sizes of an item that shows growth: all its candidates are numbers; None for others."""
    labels = [candidate["label"] for candidate in item["candidates"]]
    return [float(label) for label in labels] if all(label.isdecimal() for label in labels) else None


def fast(candidate: dict[str, Any]) -> float:
    """Time a sample of the fastest tenth of the repeats [s]: a busy machine lengthens the others."""
    return float(candidate["p10_p90"][0])


def growth_order(sizes: list[float], times: list[float]) -> float:
    """Exponent p of time = c size^p, from the largest size and the next one that is at most a quarter of it."""
    pairs = sorted(zip(sizes, times, strict=True))
    large = pairs[-1]
    small = next(pair for pair in reversed(pairs) if pair[0] <= large[0] / 4.0)
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def draw_growth(item: dict[str, Any], sizes: list[float]) -> Figure:
    """Time of a call over its size, both logarithmic, beside linear growth."""
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    points = sorted(zip(sizes, item["candidates"], strict=True), key=lambda pair: pair[0])
    x = [size for size, _ in points]
    y = [fast(candidate) for _, candidate in points]
    axes.plot(x, y, "o-", color=OURS, label="measured")
    axes.plot(x, [y[-1] * size / x[-1] for size in x], ":", color="black", label="linear growth")
    axes.set(xscale="log", yscale="log", xlabel=item["about"].rpartition("by ")[2], ylabel="time of a call [s]")
    axes.legend(frameon=False)
    return figure


def draw_candidates(item: dict[str, Any]) -> Figure:
    """Time a sample of each candidate, on a logarithmic axis; ours is coloured."""
    candidates = item["candidates"]
    figure = Figure(figsize=(7.5, 0.9 + 0.36 * len(candidates)), layout="constrained")
    axes = figure.add_subplot()
    for row, candidate in enumerate(candidates):
        time, median = fast(candidate), candidate["median"]
        axes.barh(row, time, color=OURS if row == 0 else OTHERS)
        axes.plot([time, median], [row, row], color="black", linewidth=1.0)
        ratio = "" if row == 0 else f" ({time / fast(candidates[0]):.3g} x ours)"
        axes.text(max(time, median) * 1.15, row, time_text(time) + ratio, va="center", fontsize=8)
    axes.set_yticks(range(len(candidates)), [candidate["label"] for candidate in candidates], fontsize=8)
    axes.invert_yaxis()
    highs = [max(fast(candidate), candidate["median"]) for candidate in candidates]
    axes.set(xscale="log", xlim=(min(map(fast, candidates)) / 3.0, max(highs) * 60.0), xlabel="time a sample [s]")
    return figure


def section(item: dict[str, Any]) -> str:
    """Heading, plot and goals of an item, as Markdown."""
    about = item["about"]
    lines = [f"### {item['name']}", "", f"{about[0].upper()}{about[1:]}.", ""]
    if item["error"]:
        return "\n".join([*lines, f"Not measured: {item['error']}", ""])
    lines += [f"![Plot of {item['name']}: {about}](generated/{item['name']}.svg)", ""]
    sizes = sizes_of(item)
    if sizes:
        order = growth_order(sizes, [fast(candidate) for candidate in item["candidates"]])
        lines += [f"Measured growth: time of a call ~ size^{order:.2f} at the largest sizes.", ""]
    for goal in () if sizes else item["goals"]:
        verdict = "met" if goal["met"] else "**missed**"
        measured = "-" if goal["measured"] is None else f"{goal['measured']:.3g}"
        lines.append(f"- goal: {goal['goal']}; measured {measured}, {verdict}")
    return "\n".join([*lines, ""])


def write(source: Path, folder: Path) -> None:
    """Draw every item of the measured file into a folder, with a page that shows them."""
    measured = json.loads(source.read_text(encoding="utf-8"))
    folder.mkdir(exist_ok=True)
    quick = "5 short repeats" if measured["quick"] else "21 repeats"
    versions = ", ".join(
        f"{name} {version}" for name, version in measured["versions"].items() if name != "youbot_dynamics"
    )
    text = [
        f"Measured on {measured['date'][:10]} with {quick} of every candidate on one core of an "
        f"{measured['processor']}, Python {measured['python']}; {versions}.\n"
    ]
    group = ""
    for item in measured["items"]:
        title = item["group"].replace("_", " ") + (" (without numba)" if item["tier"] == "without numba" else "")
        if title != group:
            text.append(f"## Group {title}\n")
            group = title
        text.append(section(item))
        if not item["error"]:
            sizes = sizes_of(item)
            figure = draw_growth(item, sizes) if sizes else draw_candidates(item)
            figure.savefig(folder / f"{item['name']}.svg", metadata={"Date": None})
    (folder / "bench_items.md").write_text("\n".join(text), encoding="utf-8")
