"""What a worker process of a local fleet does first; dask imports this module by its name and calls `dask_setup`."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the process that started the fleet: it stops its workers, and nothing is printed twice.

    Args:
        worker: dask's, unused.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
