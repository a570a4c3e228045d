"""Another account of this machine cannot take stop_base away from base_controller, whatever it tries; without ROS."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from repository import ROOT
from second_account import BY_CONNECTING, NOT_REFUSED, USER, WAYS, start, targets

from youbot_dynamics.errors import ResourceError
from youbot_dynamics.nodes import local_socket
from youbot_dynamics.nodes.local_socket import LOST, ControllerSocket, GuardSocket, check_folder, claim, notify

PAUSE = 0.1  # [s] in which a controller that hangs grows older
needs_second_account = pytest.mark.skipif(os.getuid() != 0, reason="only root may become a second account")


def node(domain: int = 7) -> Any:
    """What the sockets ask of a node."""
    return SimpleNamespace(
        context=SimpleNamespace(get_domain_id=lambda: domain), resolve_topic_name=lambda topic: f"/{topic}"
    )


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary folder that every account can reach, as /tmp; pytest's own is closed to others."""
    place = Path(tempfile.mkdtemp(prefix="yd"))
    place.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    yield place
    shutil.rmtree(place)


class Guarded:
    """stop_base and base_controller, as far as their sockets go."""

    def __init__(self) -> None:
        self.guard = GuardSocket(node())
        self.controller = ControllerSocket(node(), guarded=True)

    def end_controller(self) -> None:
        if self.controller._connection is not None:
            self.controller._connection.close()
            self.controller._connection = None

    def restart_controller(self) -> None:
        self.end_controller()
        self.controller = ControllerSocket(node(), guarded=True)

    def step(self) -> None:
        """A control period, and a look of the guard."""
        self.controller.heartbeat(driving=True)
        self.guard.heartbeat_age()
        time.sleep(0.01)

    def close(self) -> None:
        for kept in (self.guard._server, self.guard._notifications, self.guard._claim, self.controller._connection):
            if kept is not None:
                kept.close()


@pytest.fixture
def guarded(place: Path) -> Iterator[Guarded]:
    guarded = Guarded()
    yield guarded
    guarded.close()


def until(condition: Any, guarded: Guarded, what: str) -> None:
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        guarded.step()


class Attack:
    """A second account beside a guard and its controller."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._robot = subprocess.Popen(["sleep", "60"])
        self._child = start(*targets(7), [self._robot.pid])

    def __enter__(self) -> Attack:
        return self

    def __exit__(self, *reason: object) -> None:
        for child in (self._child, self._robot):
            child.kill()
            child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()

    def tries(self, way: str) -> str:
        """Try a way while the robot drives; what came of it."""
        self.begins(way)
        assert self._child.stdout is not None
        os.set_blocking(self._child.stdout.fileno(), False)
        answers: list[str] = []

        def answered() -> bool:
            answers.extend(filter(None, [self._child.stdout.readline()]))  # type: ignore[union-attr]
            return bool(answers)

        until(answered, self._guarded, f"the end of {way}")
        for _ in range(3):  # the guard has seen it
            self._guarded.step()
        assert self._robot.poll() is None
        return answers[0].strip()

    def begins(self, way: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{way}\n")
        self._child.stdin.flush()


def check_guarded(guarded: Guarded) -> None:
    """The controller of now and the next one are guarded: one that ends or hangs is noticed."""
    until(lambda: not guarded.controller.missing, guarded, "an answer of the guard")
    guarded.step()
    assert guarded.guard.heartbeat_age() < 10.0 and guarded.guard.moving
    guarded.restart_controller()
    assert guarded.controller.missing
    until(lambda: not guarded.controller.missing, guarded, "an answer of the guard to the next controller")
    guarded.step()
    age = guarded.guard.heartbeat_age()
    assert age < 10.0 and guarded.guard.moving and not guarded.guard.goodbye and not guarded.controller.timeout()
    time.sleep(PAUSE)  # it hangs
    assert guarded.guard.heartbeat_age() >= age + PAUSE and guarded.guard.moving and not guarded.guard.goodbye
    assert guarded.guard.notifications() == {}
    notify("", "recorder", LOST, "ended")
    assert guarded.guard.notifications() == {"recorder": (LOST, "ended")}


@needs_second_account
@pytest.mark.parametrize("way", WAYS)
def test_a_second_account_does_not_disarm_the_guard(way: str, guarded: Guarded) -> None:
    with Attack(guarded) as attack:
        until(lambda: not guarded.controller.missing, guarded, "an answer of the guard")
        outcome = attack.tries(way)
        assert guarded.controller.missing == "" and guarded.controller.timeout() == ""
        assert outcome == "not refused" if way in NOT_REFUSED else outcome.startswith("refused (E"), outcome
        check_guarded(guarded)


def test_there_are_twenty_ways_and_more() -> None:
    assert len(WAYS) >= 20


@needs_second_account
@pytest.mark.parametrize("way", BY_CONNECTING)
def test_credentials_alone_keep_a_second_account_out(way: str, guarded: Guarded, place: Path) -> None:
    """As they do for root, whom no folder keeps out; here before the controller has come."""
    guarded.end_controller()
    guarded.controller._urgent = False
    folder = place / f"youbot_dynamics_{os.getuid()}"
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    with Attack(guarded) as attack:
        outcome = attack.tries(way)
        assert outcome != "refused (EACCES)", "the folder keeps it out"
        assert all(guarded.guard.notifications() == {} for _ in range(100))
        assert not guarded.guard.moving and not guarded.guard.driving and not guarded.guard.goodbye
        guarded.restart_controller()
        check_guarded(guarded)


HOSTILE = {
    "a folder of another account": lambda path: (path.mkdir(), os.chown(path, USER, USER)),
    "a folder of ours that others may enter": lambda path: (path.mkdir(), path.chmod(0o777)),
    "a link to a folder of ours": lambda path: ((path.parent / "mine").mkdir(0o700), path.symlink_to("mine")),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a file": lambda path: path.touch(mode=0o700),
    "a pipe": lambda path: os.mkfifo(path, 0o700),
    "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_folder_that_is_not_ours_alone_is_refused_and_named(what: str, place: Path) -> None:
    if "another account" in what and os.getuid() != 0:
        pytest.skip("only root may make a folder of a second account")
    path = place / f"youbot_dynamics_{os.getuid()}"
    HOSTILE[what](path)
    for step in (check_folder, lambda: claim(node(), "base_controller", "wheel_commands"), lambda: GuardSocket(node())):
        with pytest.raises(
            ResourceError, match=f"^folder of the local sockets: got {path}, which is .* or set TMPDIR"
        ) as caught:
            step()
        assert "\n" not in str(caught.value)
    notify("", "recorder", LOST, "ended")  # nobody hears it, and it does no harm


def test_a_temporary_folder_that_cannot_hold_sockets_is_refused_and_named(place: Path, monkeypatch) -> None:
    long = place / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    with pytest.raises(ResourceError, match="folder of the local sockets: got .*xxx/.*too long.* short path"):
        GuardSocket(node())


UNUSABLE = {
    "absent": lambda place: place / "absent",
    "a file": lambda place: place / "file",
    "not to be written": lambda place: Path("/proc"),  # not even by root
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_temporary_folder_in_which_nothing_can_be_made_is_named_in_one_line(what: str, place: Path, monkeypatch):
    (place / "file").touch()
    folder = UNUSABLE[what](place) / f"youbot_dynamics_{os.getuid()}"
    monkeypatch.setenv("TMPDIR", str(folder.parent))
    for step in (check_folder, lambda: claim(node(), "base_controller", "wheel_commands"), lambda: GuardSocket(node())):
        with pytest.raises(
            ResourceError, match=f"^folder of the local sockets: got .*{folder}.*or set TMPDIR"
        ) as caught:
            step()
        assert "\n" not in str(caught.value)


def test_a_full_disk_is_told_with_the_folder_on_it(place: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    folder = place / f"youbot_dynamics_{os.getuid()}"
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # what is written then fails, as on a full disk
    try:
        with pytest.raises(
            ResourceError, match=f"^folder of the local sockets: got {folder}: .*or set TMPDIR"
        ) as caught:
            claim(node(), "base_controller", "wheel_commands")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value)


def test_a_process_of_another_container_with_our_number_keeps_its_claim(place: Path) -> None:
    """Each container numbers its processes from 1, and two may share the folder."""
    ours = claim(node(), "base_controller", "wheel_commands")
    file = Path(ours.name)
    claim(node(), "base_controller", "wheel_commands").close()  # as where a node of ours is gone
    ours.close()
    with file.open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        theirs.write(f"{os.getpid()} of another container")
        theirs.flush()
        with pytest.raises(ResourceError, match=f"another base_controller, process {os.getpid()};"):
            claim(node(), "base_controller", "wheel_commands")
    claim(node(), "base_controller", "wheel_commands").close()


def test_a_bringup_whose_folder_another_account_has_taken_ends_with_that_line(place: Path) -> None:
    path = place / f"youbot_dynamics_{os.getuid()}"
    path.mkdir()
    path.chmod(0o755)
    command = [sys.executable, "-m", "youbot_dynamics.commands.main", "bringup", "--robot", "mock"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(
        f"error: folder of the local sockets: got {path}, which is a folder of user {os.getuid()}"
    )
    assert "started" not in done.stdout


def test_a_guard_that_was_killed_is_replaced_and_two_exclude_each_other(place: Path) -> None:
    hold = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from types import SimpleNamespace as N\n"
        "from youbot_dynamics.nodes.local_socket import GuardSocket\n"
        "guard = GuardSocket(N(context=N(get_domain_id=lambda: 7), resolve_topic_name=lambda topic: f'/{topic}'))\n"
        "print('guards', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(ROOT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "guards\n"
        with pytest.raises(ResourceError, match=f"another stop_base for a base_controller, process {other.pid};"):
            GuardSocket(node())
        other.kill()
    assert [path for path in place.rglob("*") if path.is_socket()], "nothing was left behind"
    guarded = Guarded()
    until(lambda: not guarded.controller.missing, guarded, "an answer of the guard")
    guarded.close()


def test_a_controller_that_must_be_guarded_says_so_until_it_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = ControllerSocket(node(), guarded=True)
    controller.heartbeat(driving=False)
    assert controller.missing and "waits" not in controller.missing  # it starts together with its guard
    monkeypatch.setattr(local_socket, "_STARTING", -1.0)
    controller.heartbeat(driving=False)
    assert controller.missing.startswith("waits for stop_base, which guards this node")
    guard = GuardSocket(node())
    controller.heartbeat(driving=False)
    assert controller.missing, "connected, and not answered"
    guard.heartbeat_age()
    controller.heartbeat(driving=False)
    assert controller.missing == ""
    guard.release()
    controller.heartbeat(driving=False)
    assert "has ended" in controller.missing
    assert guard._claim.closed, "the next guard would have to wait for the end of this one"
    assert ControllerSocket(node(), guarded=False).missing == ""


def test_robots_of_two_networks_do_not_meet_in_one_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = GuardSocket(node())
    monkeypatch.setattr(local_socket, "_NETWORK", str(place))  # a file of another number
    second, controller = GuardSocket(node()), ControllerSocket(node(), guarded=True)
    controller.heartbeat(driving=True)
    first.heartbeat_age(), second.heartbeat_age()
    assert (first.moving, second.moving) == (False, True)
