"""Child processes that end with us, and SIGINT, SIGTERM and SIGHUP as a flag: a node sends its last messages first."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

_PR_SET_PDEATHSIG = 1
_POLITE = 5.0  # [s] a process has to end after a signal


def node_command(executable: str, arguments: Sequence[str]) -> list[str]:
    """Command line that runs a node of this very installation, whatever PATH says."""
    return [sys.executable, "-m", f"youbot_dynamics.nodes.{executable}", *arguments]


def follow_parent(parent: int) -> None:
    """Let the kernel end this process (SIGTERM) with the one of the id `parent` that started it (Linux)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def start(
    command: Sequence[str], environment: Mapping[str, str] | None = None, output: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own: Ctrl-C reaches us, and we stop it in order; see `follow_parent`."""
    parent = os.getpid()
    return subprocess.Popen(
        command,
        env=None if environment is None else dict(environment),
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        start_new_session=True,
        preexec_fn=lambda: follow_parent(parent),
    )


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> int:
    """Send a process a signal, kill it after 5 s; its exit code."""
    stop_all([process], number)
    return process.wait()


def stop_all(processes: Sequence[subprocess.Popen[bytes]], number: int = signal.SIGTERM) -> None:
    """Send all a signal at once, wait for each, and kill it after 5 s.

    SIGTERM and SIGINT mean the same to a node that runs; SIGTERM ends without a traceback one that still imports.
    """
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)
    deadline = time.monotonic() + _POLITE
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last where the terminal, or ssh, is gone


def ignore_signals() -> None:
    """Ignore further signals: before its end the interpreter restores all other handlers, and Ctrl-C would kill it."""
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
        """Within it a signal ends the process: compiling may take half a minute, and nothing has been sent yet."""
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
            os._exit(0)  # the compiler swallows an exception [seen]
