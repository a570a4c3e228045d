"""How late this machine wakes a process that only sleeps: while it stands still, no test can keep a promise in time."""

from __future__ import annotations

import os
import subprocess
import sys

LATE = 0.05  # [s]; all tests at once on two cores that nobody else uses: at most 0.02
_SLEEPER = f"""
import select, sys, time
print("asleep", flush=True)
while True:
    due = time.monotonic() + 0.02
    if select.select([sys.stdin], [], [], 0.02)[0]:
        break  # its parent has ended
    late = time.monotonic() - due
    if late > {LATE}:
        print(f"{{late:.2f}} s late", flush=True)
"""


class MachineWatch:
    """A process that sleeps 20 ms at a time, and says when it was woken late. It ends with this process."""

    def __init__(self) -> None:
        self._sleeper = subprocess.Popen(
            [sys.executable, "-S", "-c", _SLEEPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the tests
        )
        assert self._sleeper.stdout is not None
        self._said = self._sleeper.stdout.fileno()
        self._sleeper.stdout.readline()  # before, it notices nothing
        os.set_blocking(self._said, False)

    def lates(self) -> list[str]:
        """What was late since the last call."""
        try:
            return os.read(self._said, 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    def close(self) -> None:
        """End the process."""
        self._sleeper.kill()
        self._sleeper.communicate()
