"""`youbot warm-up`: compile all code of the nodes in advance, on all processors."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from youbot_dynamics.commands._terminal import announce, steps
from youbot_dynamics.compiled import kept_in
from youbot_dynamics.errors import ResourceError
from youbot_dynamics.nodes.processes import follow_parent
from youbot_dynamics.warm_up import NODES, use_node


def warm_up() -> int:
    """Compile what is not compiled yet, with one process per processor; no function is compiled twice.

    Raises:
        OSError: no folder for the compiled code is available.
        ResourceError: the compiled code could not be stored, or the system killed a compiling process.
    """
    place, began, compiled = kept_in(), time.monotonic(), 0
    processes = min(os.cpu_count() or 1, len(NODES))
    workers = ProcessPoolExecutor(processes, get_context("spawn"), follow_parent, (os.getpid(),))
    with steps("youbot warm-up") as step, workers as pool:
        running = [pool.submit(use_node, node) for node in NODES]
        step("compiling, up to a minute")
        step.count(0, len(NODES))
        try:
            for number, finished in enumerate(as_completed(running)):
                functions, lost = finished.result()
                if lost:
                    raise ResourceError("machine code", got=lost, remedy="free space there, or set NUMBA_CACHE_DIR")
                compiled += functions
                step.count(number + 1, len(NODES))
        except BrokenProcessPool:
            ended = "one of its processes was killed, possibly because memory ran out"
            raise ResourceError("youbot warm-up", got=ended, remedy="free memory, and start it again") from None
    took = f"{time.monotonic() - began:.0f} s"
    announce(
        f"compiled {compiled} functions in {took}, kept in {place}"
        if compiled
        else f"all code is compiled already ({took})"
    )
    return 0
