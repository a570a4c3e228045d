"""The bench harness measures and judges rightly; nothing here is about how fast anything is."""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from clones import Clone
from repository import ROOT

sys.path.insert(0, str(ROOT))  # `bench` is a folder beside the package, not part of it

harness = importlib.import_module("bench.harness")
program = importlib.import_module("bench.__main__")
AccuracyGoal, Candidate, Goal, Item, TimeGoal = (
    getattr(harness, name) for name in ("AccuracyGoal", "Candidate", "Goal", "Item", "TimeGoal")
)


class Clock:
    """Stands still but for what the candidates take."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(harness.time, "perf_counter", lambda: self.now)

    def takes(self, *seconds: float):
        """A call that takes these times in turn, the last one for ever."""
        left = list(seconds)

        def call() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def scripted(*seconds: float):
    """Candidate that says it took these times, one a repeat."""
    left = iter(seconds)
    return Candidate(lambda: next(left), timed=True)


def measure(item, repeats=5):
    return harness.measure("name", item, repeats=repeats, shortest=1.0)


def test_median_and_percentiles_are_those_of_the_repeats():
    timing = measure(Item("x", {"ours": scripted(5.0, 1.0, 3.0, 2.0, 4.0)})).timings["ours"]
    assert timing.seconds == (5.0, 1.0, 3.0, 2.0, 4.0)
    assert timing.median == 3.0
    assert harness.percentiles(timing.seconds) == (pytest.approx(1.4), pytest.approx(4.6))
    assert harness.percentiles((7.0,)) == (7.0, 7.0)


def test_ratio_is_the_median_of_the_ratios_of_each_repeat():
    # A machine that slows down tenfold for two of five repeats: both are slow then, and the ratio stays 3.
    drift = (1.0, 10.0, 1.0, 10.0, 1.0)
    item = Item(
        "x",
        {"ours": scripted(*drift), "peer": scripted(*(3.0 * d for d in drift))},
        goals=(Goal("ours", "peer", 3.0), Goal("ours", "peer", 3.01)),
    )
    met, missed = measure(item).verdicts
    assert (met.measured, met.spread, met.met) == (3.0, (3.0, 3.0), True)
    assert not missed.met
    # Without a common drift the two ways differ: here the ratio of the medians is 4.
    mixed = Item(
        "x",
        {"ours": scripted(1.0, 2.0, 4.0), "peer": scripted(8.0, 2.0, 12.0)},
        goals=(Goal("ours", "peer", 1.0),),
    )
    assert measure(mixed, repeats=3).verdicts[0].measured == 3.0  # of 8, 1, 3


def test_candidates_take_turns_and_none_is_always_first():
    order: list[str] = []
    candidates = {n: Candidate(lambda n=n: order.append(n) or 1.0, timed=True) for n in "abc"}
    measure(Item("x", candidates), repeats=4)
    assert "".join(order) == "abcbcacababc"


def test_calls_are_repeated_until_the_clock_can_tell_and_warmed_up_before(clock):
    item = Item("x", {"ours": Candidate(clock.takes(100.0, 0.3), samples=10)})
    timing = measure(item).timings["ours"]
    assert timing.calls == 4  # 4 x 0.3 s is the first doubling above 1 s
    assert timing.seconds == pytest.approx([0.03] * 5)


def test_entry_is_taken_off_where_asked(clock):
    item = Item("x", {"peer": Candidate(clock.takes(3.0), less=clock.takes(1.0), samples=2)})
    assert measure(item).timings["peer"].seconds == pytest.approx([1.0] * 5)


def test_item_may_want_fewer_repeats_but_not_more():
    times = (1.0, 1.0, 1.0)
    assert len(measure(Item("x", {"ours": scripted(*times)}, repeats=2), repeats=3).timings["ours"].seconds) == 2
    assert len(measure(Item("x", {"ours": scripted(*times)}, repeats=9), repeats=3).timings["ours"].seconds) == 3


def test_garbage_is_collected_before_and_after_but_not_while_timing():
    seen: list[bool] = []

    def fails() -> float:
        seen.append(gc.isenabled())
        raise OSError

    assert gc.isenabled()
    with pytest.raises(OSError):
        measure(Item("x", {"ours": Candidate(fails, timed=True)}))
    assert seen == [False]
    assert gc.isenabled()


def test_time_and_accuracy_goals():
    item = Item(
        "x",
        {"ours": scripted(2.0, 2.0)},
        accuracy={"good": 1e-12, "bad": 1e-9, "none": math.nan},
        goals=(
            TimeGoal("ours", 2.0),
            TimeGoal("ours", 1.9, says="a real-time factor"),
            *(AccuracyGoal(quantity, 1e-10) for quantity in ("good", "bad", "none")),
        ),
    )
    result = measure(item, repeats=2)
    assert [verdict.met for verdict in result.verdicts] == [True, False, True, False, False]
    assert "a real-time factor" in result.verdicts[1].goal
    assert not result.met


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": {}}, "no candidate"),
        ({"unit": "minutes"}, "minutes"),
        ({"goals": (Goal("ours", "them", 1.0),)}, "'them'"),
        ({"goals": (TimeGoal("mine", 1.0),)}, "'mine'"),
        ({"goals": (AccuracyGoal("ours", 1.0),)}, "'ours'"),
    ],
)
def test_item_that_could_not_be_judged_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Item("x", **{"candidates": {"ours": scripted(1.0)}, **arguments})


# A group of items for the whole program, in a folder of its own.
GROUP = """
import os
from bench.harness import AccuracyGoal, Candidate, Goal, Item

def fine():
    return Item("fine", {"ours [s]": int, "peer": Candidate(int, samples=2, note="two at once")}, "ns",
                {"ours": 1e-12, "undefined": float("nan")}, [AccuracyGoal("ours", 1e-10)])

def missed():
    return Item("missed", {"ours": int, "peer": int}, goals=[Goal("ours", "peer", 1e6)])

def broken():
    raise OSError("no such [peer]")

def settled():
    assert len(os.sched_getaffinity(0)) == 1 and os.environ["OMP_NUM_THREADS"] == "1"
    return fine()

def plain():
    try:
        import numba
    except ImportError:
        return fine()

ITEMS = {"fine": fine, "missed": missed, "broken": broken, "settled": settled}
ITEMS_WITHOUT_NUMBA = {"plain": plain}
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Runs the program on the group `trial`, and returns what it said and wrote."""
    root = tmp_path_factory.mktemp("bench")
    (root / "bench").mkdir()
    for name in ("harness.py", "report.py", "__main__.py"):
        shutil.copy(ROOT / "bench" / name, root / "bench" / name)
    (root / "bench" / "bench_trial.py").write_text(textwrap.dedent(GROUP))

    def run(*arguments: str) -> tuple[subprocess.CompletedProcess[str], dict]:
        path = root / "bench_results.json"
        path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "bench", "--quick", *arguments]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
        strict = {"parse_constant": pytest.fail}  # NaN and Infinity are not JSON
        return done, json.loads(path.read_text(), **strict) if path.exists() else {}

    return run


needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process")


@needs_affinity
def test_everything_is_measured_written_and_a_missed_goal_fails(bench):
    done, content = bench()
    assert done.returncode == 1, done.stderr
    by_name = {item["name"]: item for item in content["items"]}
    assert {name: item["met"] for name, item in by_name.items()} == {
        "fine": True,
        "missed": False,
        "broken": False,
        "settled": True,
        "plain": True,
    }
    assert by_name["broken"]["error"] == "OSError: no such [peer]"
    assert "no such [peer]" in done.stdout
    assert "MISS" in done.stdout
    assert by_name["plain"]["tier"] == "without numba"
    assert by_name["fine"]["tier"] == "numba"


@needs_affinity
def test_json_says_what_was_measured_with_what(bench):
    done, content = bench("fine")
    assert done.returncode == 0, done.stderr
    assert set(content) == {
        "schema", "date", "python", "processor", "pinned_to", "quick", "versions", "met", "items"
    }  # fmt: skip
    assert content["schema"] == 1
    assert content["quick"] and content["met"]
    assert {"numpy", "scipy", "numba", "pin", "mujoco", "casadi", "youbot_dynamics"} == set(content["versions"])
    (item,) = content["items"]
    assert set(item) == {"name", "group", "tier", "about", "candidates", "accuracy", "goals", "note", "error", "met"}
    assert item["accuracy"] == {"ours": 1e-12, "undefined": None}
    ours, peer = item["candidates"]
    assert set(ours) == {
        "label", "median", "p10_p90", "times_first", "repeats", "calls_per_repeat", "samples_per_call", "note"
    }  # fmt: skip
    assert (ours["label"], ours["times_first"], ours["repeats"]) == ("ours [s]", 1.0, 5)
    assert (peer["samples_per_call"], peer["note"]) == (2, "two at once")
    assert 0 < ours["p10_p90"][0] <= ours["median"] <= ours["p10_p90"][1]
    assert "ours [s]" in done.stdout  # not taken for markup
    (goal,) = item["goals"]
    assert goal == {"goal": "ours off by <= 1e-10", "measured": 1e-12, "p10_p90": None, "met": True}


@needs_affinity
def test_unknown_name_is_refused_before_anything_is_measured(bench):
    done, content = bench("fine", "trail")
    assert done.returncode == 2
    assert done.stderr == ("bench: got 'trail', expected a group (trial) or an item (--list); did you mean trial?\n")
    assert content == {}


@needs_affinity
def test_list_names_groups_and_items_and_measures_nothing(bench):
    done, content = bench("--list")
    assert done.stdout == "trial: fine, missed, broken, settled, plain\n"
    assert content == {}


def test_two_items_of_one_name_are_refused(tmp_path, monkeypatch):
    for group in ("one", "two"):
        (tmp_path / f"bench_{group}.py").write_text("")
        module = type(sys)(f"bench.bench_{group}")
        module.ITEMS = {"same": None}
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(program, "HERE", tmp_path)
    with pytest.raises(ValueError, match="two things are called 'same': in bench_one.py and bench_two.py"):
        program.load_groups()


def test_groups_that_are_shipped_can_be_listed():
    for peer in ("mujoco", "pinocchio"):
        pytest.importorskip(peer)
    groups = program.load_groups()
    assert {"arm", "startup"} <= set(groups)
    assert all(items for items, _ in groups.values())


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


def test_script_hands_its_arguments_over(clone):
    clone.run()
    clone.asked()
    assert clone.run('bash "$CLONE/scripts/bench.sh" lugre --quick').returncode == 0
    assert clone.asked() == ["-c import casadi, mujoco, pinocchio", "-m bench lugre --quick"]


def test_script_installs_missing_peers_with_the_pins(clone):
    clone.run()
    clone.asked()
    python = clone.root / ".venv" / "bin" / "python"
    lines = python.read_text().splitlines()
    lines.insert(-1, '[[ "$*" == *casadi* ]] && exit 1')
    python.write_text("\n".join(lines) + "\n")
    answer = clone.run('bash "$CLONE/scripts/bench.sh"')
    assert answer.returncode == 0, answer.stderr
    assert "installing the peers" in answer.stderr
    _, pip, run = clone.asked()
    assert pip.startswith("-m pip install") and pip.endswith("-e .[bench] -c constraints.txt")
    assert run == "-m bench"
