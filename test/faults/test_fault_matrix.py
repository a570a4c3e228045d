"""The fault matrix (matrix.yaml) against a running robot: every row as promised, no traceback in any log.

FAULTS=pending runs the rows that wait for a mend too. -s shows what was measured.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy")

from fault_actions import ACTIONS, Attack  # noqa: E402
from fault_promises import GIVEN_UP, PROMISES  # noqa: E402
from fault_stack import CRASH, Stack  # noqa: E402
from fault_words import WORDS  # noqa: E402

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("matrix.yaml").read_text(encoding="utf-8"))
WITHOUT = "no robot"
DURING = ("idle", "driving", "tracking", WITHOUT)
KEYS = {"fault", "during", "do", "promise", "usual", "pending"}
PENDING_TOO = os.environ.get("FAULTS") == "pending"


def name_of(row: dict[str, Any]) -> str:
    return f"{row['fault']} ({row['during']})"


def parameters() -> list[Any]:
    rows = [row for row in ROWS if "pending" not in row or PENDING_TOO]
    # The rows that leave the robot as it was come first, so that one bringup serves many.
    rows.sort(key=lambda row: "bringup_ends" in row["promise"])
    marks = {True: (pytest.mark.ros,), False: (pytest.mark.ros, pytest.mark.slow)}
    return [pytest.param(row, id=name_of(row), marks=marks[bool(row.get("usual"))]) for row in rows]


def test_every_row_is_complete_and_there_are_sixty() -> None:
    assert len(ROWS) >= 60
    names = [name_of(row) for row in ROWS]
    assert len(set(names)) == len(names), "two rows of one name"
    for row in ROWS:
        assert set(row) <= KEYS and {"fault", "during", "do", "promise"} <= set(row), row["fault"]
        assert row["during"] in DURING and row["promise"], row["fault"]
        assert {verb for action in row["do"] for verb in action} <= set(ACTIONS), row["fault"]
        assert set(row["promise"]) <= set(PROMISES), row["fault"]
    assert set(WORDS) == set(PROMISES)


class Robot:
    """The one stack that runs; made anew where a row has left it broken."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self.stack: Stack | None = None
        self.held_up = 0.0  # by the machine, in the row that failed last [s]
        self._pids: dict[str, int | None] = {}

    def ready(self) -> Stack:
        if self.stack is None:
            self.stack = Stack(self._factory.mktemp("stack"))
            self.stack.wait_until_ready()
            self._pids = self.stack.pids()
        return self.stack

    def whole(self) -> bool:
        """Whether all processes are the same as at the start, and the base can be brought to rest."""
        assert self.stack is not None
        if self.stack.pids() != self._pids or None in self._pids.values():
            return False
        try:
            self.stack.rest()
        except AssertionError:
            return False
        return True

    def drop(self) -> None:
        if self.stack is not None:
            self.stack.close()
            self.stack = None


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    robot = Robot(tmp_path_factory)
    yield robot
    robot.drop()


_HELD_UP = 0.2  # [s] of the robot's own loop: promises are made for a machine that runs it
_BEFORE = 1.0  # time [s] in which that may have begun what shows after the fault
_TRIES = 3


@pytest.mark.parametrize("row", parameters())
def test_fault(row: dict[str, Any], robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for left in reversed(range(_TRIES)):
        try:
            measured = _attacked(row, robot, tmp_path)
            break
        except AssertionError:
            # Where the machine stood still for longer than commands and odometry may be silent, nothing was tested.
            if left == 0 or robot.held_up <= _HELD_UP:
                raise
            robot.drop()
    with capsys.disabled():
        told = "; ".join(f"{verb}: {text}" for verb, text in measured.items() if text)
        if os.environ.get("FAULTS_PRINT"):
            print(f"\n{name_of(row)}: {told}")


def _attacked(row: dict[str, Any], robot: Robot, tmp_path: Path) -> dict[str, str]:
    """What was measured of the promises of a row."""
    robot.held_up = 0.0
    stack = None if row["during"] == WITHOUT else _prepared(robot, row)
    attack = Attack(stack, stack.folder / f"row_{time.monotonic_ns()}" if stack else tmp_path)
    attack.folder.mkdir(exist_ok=True)
    if stack:
        attack.pids, attack.logged_before = stack.pids(), len(stack.log("bringup"))
    try:
        attack.began = time.time()
        for action in row["do"]:
            for verb, argument in action.items():
                ACTIONS[verb](attack, argument)
        measured = {verb: PROMISES[verb](attack, argument) for verb, argument in row["promise"].items()}
    except AssertionError as failure:
        if stack is None:
            raise
        robot.held_up = max(stack.held_up(attack.began), stack.stood_still(attack.began - _BEFORE))
        raise AssertionError(f"{failure}\nheld up {robot.held_up:.3f} s\n{stack.end_of_logs()}") from failure
    finally:
        for undo in reversed(attack.undo):
            undo()
        crashes = _crashes(attack)
        if stack and (crashes or not robot.whole()):
            robot.drop()
    assert not crashes, crashes
    return measured


def _prepared(robot: Robot, row: dict[str, Any]) -> Stack:
    """The robot in the state the row asks for, and not already complaining of what the row will bring about."""
    stack = robot.ready()
    named = {"named": "", "given_up": GIVEN_UP}
    patterns = [before + row["promise"][verb][1] for verb, before in named.items() if verb in row["promise"]]
    if any(level and re.search(p, text) for p in patterns for _, level, text in stack.told(time.time() - 1.2)):
        robot.drop()
        stack = robot.ready()
    try:
        return _brought_to(stack, row["during"])
    except AssertionError:
        # Whatever an earlier row has left behind: this one is judged on a robot that is as it should be.
        robot.drop()
        return _brought_to(robot.ready(), row["during"])


def _brought_to(stack: Stack, during: str) -> Stack:
    {"idle": stack.rest, "driving": stack.set_driving, "tracking": stack.set_tracking}[during]()
    return stack


def _crashes(attack: Attack) -> str:
    """Tracebacks in any log of the robot and of the programs run beside it."""
    logs = dict(
        itertools.chain.from_iterable(
            ((path.name, path.read_text(encoding="utf-8", errors="replace")) for path in folder.rglob("*.log"))
            for folder in {attack.folder, *([attack.stack.folder] if attack.stack else [])}
        )
    )
    return "\n".join(f"--- {name}\n{text[-4000:]}" for name, text in logs.items() if CRASH.search(text))
