"""First use of the arm in a new process: imports, forward dynamics, all derivatives and friction.

Each sample is a process of its own that times itself from before its first import. Cold: numba compiles, its cache
being empty; warm: a process before it filled the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial

from bench.harness import Candidate, Item, TimeGoal

FIRST_USE = """
import time
began = time.perf_counter()
import numpy as np
from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.lugre import LuGre
imported = time.perf_counter()
tree = arm_tree()
q, v, tau = np.full((3, 5), 0.3)
for state in ((q, v, tau), (q[None], v[None], tau[None])):
    tree.forward_dynamics(*state)
    tree.forward_dynamics_derivatives(*state)
friction = LuGre(coulomb=1.0, viscous=0.1, sigma0=1e4, sigma1=1.0)
z = friction.advance(0.0, 0.2, -0.1, 1e-3)
friction.torque(z, -0.1)
friction.jacobians(z, -0.1)
print(time.perf_counter() - began, time.perf_counter() - imported, time.process_time())
"""
WHOLE, CALLS = "imports and first calls", "first calls alone"
PROCESSOR = "imports and first calls, processor time"  # of one thread: other programs hardly count


def first_use(cache: str, which: int) -> float:
    """Seconds of a first use in a new process: with imports (0) the calls alone (1), or processor time of all (2).

    Args:
        cache: folder for what numba compiles; an empty text stands for a new, empty one.
        which: figure to return.

    Raises:
        CalledProcessError: the process failed; its message is on standard error.
    """
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache or empty}
        command = [sys.executable, "-c", FIRST_USE]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.split()[which])


def cold() -> Item:
    """With an empty cache."""
    candidates = {PROCESSOR: Candidate(partial(first_use, "", 2), timed=True)}
    goals = (TimeGoal(PROCESSOR, 15.0, says="cold"),)
    return Item("first use of the arm, nothing compiled yet", candidates, "s", goals=goals, repeats=3)


def warm() -> Item:
    """With what an earlier process compiled."""
    folder = tempfile.TemporaryDirectory()
    first_use(folder.name, 0)
    candidates = {
        WHOLE: Candidate(partial(_first_use_in, folder, 0), timed=True),
        CALLS: Candidate(partial(_first_use_in, folder, 1), timed=True),
    }
    goals = (TimeGoal(WHOLE, 1.0, says="warm"),)
    return Item("first use of the arm in a second process", candidates, "s", goals=goals)


def _first_use_in(folder: tempfile.TemporaryDirectory[str], which: int) -> float:
    return first_use(folder.name, which)


ITEMS = {"startup-cold": cold, "startup-warm": warm}
