"""Another account of this machine that tries to take the guard away: `python -S second_account.py SETTINGS`.

It reads names of ways from its input, tries each, and answers with a line: `refused (errno)`, or what it did.
SETTINGS are JSON: user, files (of the guard, of the notifications, of the claim), names (without files, that earlier
versions used), pids (of the robot) and, instead of an input, `forever`: all ways again and again, a line per round.
Needs no ROS. What it imports is imported as root: another user may not be allowed to read this Python.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ != "__main__":  # the account itself has nothing of ours
    from youbot_dynamics.nodes import local_socket

USER = 65534  # nobody
_ATTACH, _PIDFD_OPEN, _PIDFD_GETFD = 16, 434, 438  # ptrace.h; system calls of every architecture
_MANY, _LARGE = 300, 100_000  # more than a listening socket keeps; bytes of a message
_LIBC = ctypes.CDLL(None, use_errno=True)


def targets(domain: int) -> tuple[list[str], list[str]]:
    """Files and names of the sockets of a robot without namespace: what anybody can compute."""
    kinds = (local_socket._GUARD, local_socket._NOTIFICATIONS, "base_controller")
    files = [local_socket._file(kind, domain, "/wheel_commands") for kind in kinds[:2]]
    keys = [f"{os.getuid()} {domain} {kind} /wheel_commands" for kind in kinds]
    names = [f"youbot_dynamics/{hashlib.sha256(key.encode()).hexdigest()}" for key in keys]
    return [*files, f"{files[0]}.lock"], names


def start(files: Sequence[str], names: Sequence[str], pids: Sequence[int], forever: bool = False) -> subprocess.Popen:
    """Start the second account; only root can."""
    settings = {"user": USER, "files": [*files], "names": [*names], "pids": [*pids], "forever": forever}
    command = [sys.executable, "-S", __file__, json.dumps(settings)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")


class Account:
    """The ways, each a method; one that ends without OSError has done what it wanted."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.guard, self.notifications, self.lock = settings["files"]
        self.folder = os.path.dirname(self.guard)
        self.names, self.pids = settings["names"], settings["pids"]
        self.kept: list[socket.socket] = []

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        connection.connect(self.guard)
        return connection

    def _say(self, message: bytes) -> None:
        with self._connected() as connection:
            connection.send(message)

    def _notify(self, message: bytes, times: int = 1) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            for _ in range(times):
                sender.sendto(message, self.notifications)

    def _each(self, step: Callable[[int], object]) -> None:
        """A step on each process; an error of the last one alone is kept."""
        refused = None
        for pid in self.pids:
            try:
                step(pid)
            except OSError as problem:
                refused = problem
        if refused is not None:
            raise refused

    def _called(self, result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), "refused")
        return result

    def connect_again_and_again(self) -> None:
        for _ in range(_MANY):
            self._connected().close()

    def fill_the_queue_of_connections(self) -> None:
        for _ in range(_MANY):
            with contextlib.suppress(BlockingIOError):
                self.kept.append(self._connected())

    def pretend_to_idle(self) -> None:
        self._say(b"i")

    def pretend_to_drive(self) -> None:
        self._say(b"d")

    def say_goodbye(self) -> None:
        self._say(b"f")

    def send_a_large_message(self) -> None:
        self._say(bytes(_LARGE))

    def pass_files(self) -> None:
        with self._connected() as connection, open(os.devnull) as null:
            files = array.array("i", [null.fileno()] * 200)
            connection.sendmsg([b"d"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])

    def hang_up_the_connection(self) -> None:
        with self._connected() as connection:
            connection.shutdown(socket.SHUT_RDWR)

    def report_a_part_lost(self) -> None:
        self._notify(b'["odometry", "lost", "by a stranger"]')

    def report_a_part_back(self) -> None:
        self._notify(b'["recorder", "back", "by a stranger"]')

    def flood_the_notifications(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._notify(b"x" * 1000, times=2000)

    def remove_the_socket(self) -> None:
        os.unlink(self.guard)

    def remove_the_lock(self) -> None:
        os.unlink(self.lock)

    def rename_the_socket(self) -> None:
        os.rename(self.guard, f"{self.guard}_")

    def replace_the_socket_by_its_own(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.guard)
        self.kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.kept[-1].bind(self.guard)
        self.kept[-1].listen()

    def replace_the_socket_by_a_link(self) -> None:
        os.symlink("/dev/null", f"{self.guard}_")
        os.replace(f"{self.guard}_", self.guard)

    def open_the_socket_to_all(self) -> None:
        os.chmod(self.guard, 0o777)

    def open_the_folder_to_all(self) -> None:
        os.chmod(self.folder, 0o777)

    def rename_the_folder(self) -> None:
        os.rename(self.folder, f"{self.folder}_")

    def replace_the_folder(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self.folder)
        os.mkdir(self.folder)

    def list_the_folder(self) -> None:
        os.listdir(self.folder)

    def lock_the_lock(self) -> None:
        fcntl.flock(os.open(self.lock, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)

    def lock_the_folder(self) -> None:
        fcntl.flock(os.open(self.folder, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)

    def take_the_names_of_earlier_versions(self) -> None:
        """Nobody keeps them from it, and nobody listens there."""
        for name in self.names:
            for kind in (socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
                self.kept.append(socket.socket(socket.AF_UNIX, kind))
                with contextlib.suppress(OSError):
                    self.kept[-1].bind(f"\0{name}")

    def stop_the_robot(self) -> None:
        self._each(lambda pid: os.kill(pid, signal.SIGSTOP))

    def kill_the_robot(self) -> None:
        self._each(lambda pid: os.kill(pid, signal.SIGKILL))

    def trace_the_robot(self) -> None:
        self._each(lambda pid: self._called(_LIBC.ptrace(_ATTACH, pid, None, None)))

    def take_a_socket_of_the_robot(self) -> None:
        def take(pid: int) -> None:
            handle = self._called(_LIBC.syscall(_PIDFD_OPEN, pid, 0))
            with os.fdopen(handle):
                for number in range(64):
                    taken = _LIBC.syscall(_PIDFD_GETFD, handle, number, 0)
                    if taken < 0 and ctypes.get_errno() != errno.EBADF:
                        self._called(taken)

        self._each(take)

    def open_the_memory_of_the_robot(self) -> None:
        self._each(lambda pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))

    def open_the_files_of_the_robot(self) -> None:
        self._each(lambda pid: os.listdir(f"/proc/{pid}/fd"))

    def choose_the_robot_to_be_killed(self) -> None:
        self._each(lambda pid: Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="utf-8"))

    def slow_the_robot(self) -> None:
        self._each(lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19))

    def put_the_robot_last(self) -> None:
        self._each(lambda pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))

    def limit_the_files_of_the_robot(self) -> None:
        self._each(lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, 1)))

    def tried(self, way: str) -> str:
        """What came of a way."""
        try:
            getattr(self, way)()
        except OSError as problem:
            return f"refused ({errno.errorcode.get(problem.errno or 0, problem.strerror)})"
        return "not refused"


WAYS = tuple(name for name, way in vars(Account).items() if name[0] != "_" and name != "tried")
NOT_REFUSED = ("take_the_names_of_earlier_versions",)
# They need no right but that to connect or to send: where the folder is open, only credentials stand in their way.
BY_CONNECTING = WAYS[: WAYS.index("remove_the_socket")]


def main() -> None:
    """Become the other account, and try."""
    settings = json.loads(sys.argv[1])
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(settings["user"])
        os.setuid(settings["user"])
    account = Account(settings)
    while settings["forever"]:
        for way in WAYS:
            account.tried(way)
            time.sleep(0.002)
        print("a round", flush=True)
        for kept in account.kept:
            kept.close()
        account.kept.clear()
    for line in sys.stdin:
        print(account.tried(line.strip()), flush=True)


if __name__ == "__main__":
    main()
