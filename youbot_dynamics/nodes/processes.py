"""Child processes that end with us, whatever ends us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

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
    """Start a process in a session of its own: Ctrl-C reaches us, and we stop it in order.

    Where we are killed without a chance to do that, the kernel sends it SIGTERM (Linux).
    """
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
    """Ask a process to end, insist after 5 s; its exit code."""
    stop_all([process], number)
    return process.wait()


def stop_all(processes: Sequence[subprocess.Popen[bytes]], number: int = signal.SIGTERM) -> None:
    """Ask all to end at once, then wait for each, and insist after 5 s.

    SIGTERM says the same as SIGINT to a node that runs, and ends without a traceback one that still imports.
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
