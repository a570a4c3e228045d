"""When a refused command is worth a line in the terminal of the simulated robot."""

from __future__ import annotations

import math


class Bursts:
    """Tells when a count begins to grow after a pause: one line in the terminal for each burst.

    Args:
        pause: without growth, between two bursts [s].
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._count, self._last = 0, -math.inf

    def begins(self, count: int, time: float) -> bool:
        """Whether a burst begins with `count` at `time` [s]; a count that has become smaller begins anew."""
        grown, self._count = count > self._count, count
        if not grown:
            return False
        first, self._last = time - self._last > self._pause, time
        return first
