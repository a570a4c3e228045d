"""The EventsExecutor of rclpy with its faults corrected; `_runtime.make_executor` makes it.

Two faults remain, both seen with rclpy 7.1.6: a subscription's callback with MessageInfo gets one tuple in place of two
arguments, and `spin()` without a timeout keeps a core busy. Nothing here uses either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.task import Task

_CHECK = 100  # callbacks between checks for overdue timers
_OVERDUE = 200_000_000  # [ns] a timer may be late before the queue counts as too long


class _Queue(rclpy_implementation.EventsExecutor):
    """Keeps tasks apart from events: an error of a task ends rclpy's own with a segmentation fault."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes[0].context)
        self.tasks: deque[Task] = deque()
        for node in nodes:
            self.add_node(node)

    def create_task(self, callback: Callable[..., object], *args: Any, **kwargs: Any) -> Task:
        """Make a task that runs after the present callback."""
        self.tasks.append(Task(callback, args, kwargs, executor=self))
        return self.tasks[-1]


class EventsExecutor(AbstractContextManager["EventsExecutor"]):
    """Runs callbacks in the order of their events.

    It queues one event for each message, also for those that a newer one has replaced. Where messages come faster than
    they are taken, timers wait behind all of them, and memory grows [seen: 4 s behind after 6 s of 80,000 messages a
    second]. Where timers stay overdue a SingleThreadedExecutor takes over for good, which is fair.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._queue: _Queue | SingleThreadedExecutor = _Queue(nodes)
        self._calls = 0
        self._late = False

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Run one callback, and the tasks it made; wait for it `timeout_sec` [s] at most. Errors are raised."""
        self._queue.spin_once(timeout_sec)
        if not isinstance(self._queue, _Queue):
            return
        while self._queue.tasks:
            task = self._queue.tasks.popleft()
            task()
            if (problem := task.exception()) is not None:
                raise problem
        self._calls += 1
        if self._calls % _CHECK == 0:
            before, self._late = self._late, self._overdue()
            if before and self._late:
                self._take_turns()

    def _overdue(self) -> bool:
        waits = (timer.time_until_next_call() for node in self._nodes for timer in node.timers)
        return any(wait is not None and wait < -_OVERDUE for wait in waits)

    def _take_turns(self) -> None:
        self._nodes[0].get_logger().warning(
            "messages come faster than this process can take them: from now on every topic is served in turn "
            "(SingleThreadedExecutor), which takes more processor time. Either a node publishes too much, "
            "or this computer is busy with other programs."
        )
        self.shutdown()
        self._queue = SingleThreadedExecutor(context=self._nodes[0].context)
        for node in self._nodes:
            self._queue.add_node(node)

    def shutdown(self) -> None:
        """Let the nodes go."""
        self._queue.shutdown()

    def __exit__(self, kind: type | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """Let the nodes go."""
        self.shutdown()
