"""Which messages of a stream are passed on, so that they go out at a given rate."""

from __future__ import annotations

_SLACK = 0.4  # of a period: stamps jitter, and the rate is kept all the same


class RateLimiter:
    """Lets stamps through at a rate [Hz] on average; where they come more slowly, all of them."""

    def __init__(self, rate: float) -> None:
        self._period = 1.0 / rate
        self._next = -1.0  # of a stamp long past: the first one goes through

    def due(self, stamp: float) -> bool:
        """Whether a message with this stamp [s] goes out; after a jump of the stamps, either way, it does."""
        ahead = self._next - stamp
        if _SLACK * self._period < ahead < 2.0 * self._period:
            return False
        on_time = -self._period < ahead < 2.0 * self._period
        self._next = (self._next if on_time else stamp) + self._period
        return True
