"""The figures of soak and live bench: memory growth, processor time and periods, on processes whose truth is known."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from bench.process_samples import Usage, children, periods


def test_growth_is_the_slope_after_warm_up() -> None:
    usage = Usage(1)
    for k in range(300):
        usage.times.append(float(k))
        # Ten megabytes while it warms up, then 120 kB a minute in steps of 4 kB.
        usage.private.append(min(k, 100) * 100.0 + max(0, k - 100) // 2 * 4.0)
    assert usage.growth(100.0) == pytest.approx(120.0, abs=2.0)
    assert usage.growth(0.0) > 1000.0
    assert np.isnan(usage.growth(299.0))


def test_a_process_that_grows_and_works_is_seen_to() -> None:
    work = "import time\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n    time.sleep(0.05)\n"
    child = subprocess.Popen([sys.executable, "-c", work])
    try:
        usage = Usage(child.pid)
        while len(usage.times) < 20:
            assert usage.sample(time.monotonic())
            time.sleep(0.1)
    finally:
        child.kill()
        child.wait()
    assert usage.growth(usage.times[5]) > 50_000.0
    assert 0.0 < usage.cores(usage.times[0]) < 1.0
    assert not usage.sample(time.monotonic())


def test_periods_are_told_by_their_worst() -> None:
    times = np.concatenate((np.arange(1000) * 0.02, 20.0 + 0.05 + np.arange(1000) * 0.02))
    figures = periods(list(times))
    assert figures["p50"] == pytest.approx(20.0) and figures["worst"] == pytest.approx(70.0)
    assert np.isnan(periods([1.0])["worst"])


def test_children_are_the_nodes_of_one_parent_alone() -> None:
    wait = "import time; time.sleep(60)"
    processes = [subprocess.Popen([sys.executable, "-c", wait, *words]) for words in (["youbot_dynamics.nodes.a"], [])]
    try:
        deadline = time.monotonic() + 10.0
        while not children(os.getpid()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert children(os.getpid()) == {"a": processes[0].pid}
    finally:
        for process in processes:
            process.kill()
            process.wait()
