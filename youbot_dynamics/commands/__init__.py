"""The program `youbot` and its commands."""

import os
import signal
import sys
from pathlib import Path

INTERRUPTED = 130  # exit code after Ctrl-C, as of a shell: 128 + SIGINT


def _interrupted(number: int, frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def imported() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again: the program has been imported."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# The program while it still imports ends without a traceback; not where Ctrl-C is ignored, as in a shell's background.
_program = bool(sys.argv) and (sys.argv[0] == "-m" or Path(sys.argv[0]).name == "youbot")
if _program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _interrupted)
