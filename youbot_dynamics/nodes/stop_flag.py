"""SIGINT and SIGTERM as a flag, so that what must still be said can be said."""

from __future__ import annotations

import signal
from types import FrameType


class StopFlag:
    """Set by the first SIGINT or SIGTERM; further ones change nothing while the last messages go out.

    rclpy's own handlers shut the context down before a last message can be sent.
    """

    def __init__(self) -> None:
        self.set = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.set = True
