"""`youbot warm-up`: compile all that the nodes run on, on all processors, before they are started."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue

from youbot_dynamics.commands.progress import announce, steps
from youbot_dynamics.compiled import HAVE_NUMBA, kept_in
from youbot_dynamics.warm_up import NODES, compilation_told, use_node

_LOOK = 0.1  # [s] between looks at the processes


def warm_up() -> int:
    """Compile what is not compiled yet, with a process for each processor; none repeats the work of another.

    Returns:
        Exit code 0.

    Raises:
        OSError: there is no place for what is compiled.
    """
    if not HAVE_NUMBA:
        announce("numba is not installed: nothing to compile, all arithmetic runs slower")
        return 0
    place, began, compiled = kept_in(), time.monotonic(), 0
    context = get_context("spawn")
    names: SimpleQueue[str] = context.SimpleQueue()
    processes = min(os.cpu_count() or 1, len(NODES))
    with (
        steps("youbot warm-up") as step,
        ProcessPoolExecutor(processes, context, initializer=_tell_for_life, initargs=(names,)) as pool,
    ):
        running = [pool.submit(use_node, node) for node in NODES]
        waiting = True
        while waiting or not names.empty():
            finished, unfinished = wait(running, timeout=_LOOK)
            waiting = bool(unfinished)
            while not names.empty():
                compiled += 1
                step(f"function {compiled}, {names.get()}")
            step.count(len(finished), len(running))
        for each in running:
            each.result()
    took = f"{time.monotonic() - began:.0f} s"
    announce(f"compiled {compiled} functions in {took}, kept in {place}" if compiled else f"all is compiled ({took})")
    return 0


def _tell_for_life(names: SimpleQueue[str], life: ExitStack = ExitStack()) -> None:  # noqa: B008  # one a process
    """Tell of each function that this process compiles, to its end."""
    life.enter_context(compilation_told(names.put))
