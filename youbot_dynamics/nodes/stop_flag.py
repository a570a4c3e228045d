"""SIGINT, SIGTERM and SIGHUP as a flag, so that what must still be said can be said."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last where the terminal, or ssh, is gone


def ignore_signals() -> None:
    """Let no signal disturb the end that has begun.

    The interpreter puts back the system's handlers before it is gone, by which a second Ctrl-C would kill it; only what
    is ignored stays so.
    """
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)


class StopFlag:
    """Set by the first of the signals; further ones change nothing while the last messages go out.

    rclpy's own handlers shut the context down before a last message can be sent.
    """

    def __init__(self) -> None:
        self.set = False
        self._at_once = False
        for number in _ENDINGS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as nohup wants it
                signal.signal(number, self._on_signal)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within it a signal ends the process: compiling may take half a minute, and nothing has been said yet."""
        self._at_once = True
        self._leave_at_once()
        try:
            yield
        finally:
            self._at_once = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.set = True
        self._leave_at_once()

    def _leave_at_once(self) -> None:
        if self.set and self._at_once:
            # An exception would come up in the middle of the compiler, which was seen to pass over it.
            os._exit(0)
