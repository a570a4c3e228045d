"""Set-up of a worker process of a local fleet; dask imports this module by name and calls `dask_setup`."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C: the process that started the fleet stops its workers, so nothing is printed twice.

    Args:
        worker: dask's, unused.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
