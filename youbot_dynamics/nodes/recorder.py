"""Node recorder: every topic, or the named ones, into a bag that survives being killed."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient

from youbot_dynamics import __version__
from youbot_dynamics.errors import RecordingError, did_you_mean
from youbot_dynamics.files import check_folder, occupied
from youbot_dynamics.nodes._runtime import parse, run, steady_timer
from youbot_dynamics.nodes._topic_recorder import IGNORED, TopicRecorder
from youbot_dynamics.nodes.local_socket import LOST, notify
from youbot_dynamics.recording.mcap_writer import BagWriter, TopicQos
from youbot_dynamics.robot import PREFIX

_SEARCH = 0.25  # [s] between searches for the nodes
_WARN = 5.0  # [s] without a topic after which it warns; on a busy machine DDS needs longer than that to find publishers


class _RemoteParameters:
    """Finds the first running node of some names that has the parameters, and reports them once, name -> value.

    The node is in our namespace, or in the only other one that has such; `prefix` may be the name of a parameter.
    """

    def __init__(self, node: Node, names: Collection[str], prefix: str, report: Callable[[dict], None]) -> None:
        self._node, self._names, self._prefix, self._report = node, names, prefix, report
        self._client: AsyncParameterClient | None = None
        self._server = "", ""
        self._foreign: set[tuple[str, str]] = set()
        self._timer = steady_timer(node, _SEARCH, self._search)

    def _search(self) -> None:
        if self._client is None:
            running = self._node.get_node_names_and_namespaces()
            spaces = {space: n for n, space in running if n in self._names and (n, space) not in self._foreign}
            own = self._node.get_namespace()
            # Of several robots the bag describes only the one of our own namespace.
            space = own if own in spaces else next(iter(spaces)) if len(spaces) == 1 else None
            if space is not None:
                self._server = spaces[space], space
                self._client = AsyncParameterClient(self._node, f"{space.rstrip('/')}/{spaces[space]}")
        elif self._client.services_are_ready():
            self._timer.cancel()
            self._client.list_parameters([self._prefix], 0).add_done_callback(self._listed)

    def _listed(self, future) -> None:
        names = list(future.result().result.names) or [self._prefix]
        assert self._client is not None
        self._client.get_parameters(names).add_done_callback(lambda got: self._got(names, got))

    def _got(self, names: list[str], future) -> None:
        values = [parameter_value_to_python(value) for value in future.result().values]
        if len(values) != len(names) or all(value is None for value in values):
            # A node of another package with that name: ours may start later.
            self._foreign.add(self._server)
            self._client = None
            self._timer.reset()
            return
        self._report({n: list(v) if hasattr(v, "tolist") else v for n, v in zip(names, values, strict=True)})


_OF_ALL_ROBOTS = ("/diagnostics", "/clock", "/tf", "/tf_static")


class Recorder(Node):
    """Subscribes to serialised messages as their topics appear and hands them to a `BagWriter`.

    Topics are named as the user writes them; no names mean all, in a namespace all of this robot. With a finite `wait`
    [s] it warns after 5 s if no topic has a publisher, and ends after the wait.
    """

    def __init__(self, folder: Path, topics: Sequence[str], wait: float = math.inf) -> None:
        super().__init__("recorder")
        self._wanted = {self.resolve_topic_name(name) for name in topics}
        self._folder, self._longest_wait, self._gave_up = folder, wait, False
        self._writer = BagWriter(folder, {"youbot_dynamics": __version__})
        self._problem: RecordingError | None = None
        self.counts: dict[str, int] = {}
        self._recorder = TopicRecorder(self, self._is_wanted, self._take)
        _RemoteParameters(self, ("base_controller", "odometry"), PREFIX, self._describe_robot)
        _RemoteParameters(self, ("trajectory_tracker",), "feedback", self._describe_tracker)
        steady_timer(self, 1.0, lambda: self._write(self._writer.flush))
        if wait < math.inf:
            self._waiting = steady_timer(self, wait, self._end_wait)
        if _WARN < wait < math.inf:
            self._warning = steady_timer(self, _WARN, self._warn)

    def _is_wanted(self, topic: str) -> bool:
        if self._wanted:
            return topic in self._wanted
        own = self.get_namespace().rstrip("/")
        return topic.startswith(f"{own}/") or topic in _OF_ALL_ROBOTS

    def _describe_robot(self, values: dict[str, object]) -> None:
        robot_id = str(values.get(f"{PREFIX}.robot_id", ""))
        self._write(self._writer.describe, {"robot_id": robot_id, "parameters": json.dumps(values)})

    def _describe_tracker(self, values: dict[str, object]) -> None:
        self._write(self._writer.describe, {"feedback": json.dumps(values.get("feedback"))})

    def _take(self, topic: str, type_name: str, quality: TopicQos, data: bytes) -> None:
        received = time.time_ns()
        if topic not in self.counts:
            self.counts[topic] = 0
            self._write(self._writer.add_topic, topic, type_name, None, quality)
            self.get_logger().info(f"recording {topic}")
        self.counts[topic] += 1
        self._write(self._writer.write, topic, data, received)

    def _write(self, write: Callable[..., None], *arguments: object) -> None:
        """Write; `stop` reports an error of the disk, since an exception in a callback would print a traceback."""
        try:
            write(*arguments)
        except RecordingError as problem:
            self._problem = problem
            signal.raise_signal(signal.SIGTERM)

    def _warn(self) -> None:
        self._warning.cancel()
        if not self._recorder.topics:
            cause = self._misspelt(self._wanted) or f"is a bringup running here? {self._domain()};"
            text = f"{self._no_publisher(_WARN)}: {cause} it still waits for"
            self.get_logger().warning(f"{text} {self._longest_wait - _WARN:g} s (--wait)")

    def _no_publisher(self, seconds: float) -> str:
        return f"no publisher of {', '.join(sorted(self._wanted)) or 'any topic'} within {seconds:g} s"

    def _misspelt(self, names: Collection[str]) -> str:
        """Questions after the published topics that some names are like; "" for none."""
        known = [name for name, _ in self.get_topic_names_and_types() if self.count_publishers(name)]
        known = [name for name in known if name not in (*IGNORED, *names)]
        return " ".join(filter(None, (did_you_mean(name, known) for name in sorted(names))))

    def _domain(self) -> str:
        return f"this is ROS_DOMAIN_ID {os.environ.get('ROS_DOMAIN_ID') or '0'}"

    def _end_wait(self) -> None:
        self._waiting.cancel()
        if not self._recorder.topics:
            self._gave_up = True
            signal.raise_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Finish the bag and log what is in it.

        Raises:
            RecordingError: there was nothing to record; or the bag could not be written, which the stop_base of a
                bringup reports on /diagnostics.
        """
        try:
            self._writer.close()
            if self._problem is not None:
                raise self._problem
        except RecordingError as problem:
            notify(self.get_namespace(), "recording", LOST, f"has ended: {problem}")
            raise
        if self._gave_up:
            shutil.rmtree(self._folder, ignore_errors=True)  # so that the same command works once the robot runs
            remedy = f"start the robot first (youbot bringup); {self._domain()}: the robot must have the same"
            remedy = self._misspelt(self._wanted) or remedy
            got = self._no_publisher(self._longest_wait)
            raise RecordingError("nothing to record", got=got, expected="a running robot", remedy=remedy)
        self.get_logger().info(f"recorded {sum(self.counts.values())} messages of {len(self.counts)} topics")
        for name in sorted(self._wanted - self.counts.keys()):
            cause = self._misspelt([name]) or "is it published, in this namespace and domain?"
            self.get_logger().warning(f"nothing came on {name}: {cause}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Record until a signal."""
    parser = argparse.ArgumentParser(prog="recorder", description=__doc__)
    parser.add_argument("--out", required=True, help="folder of the bag, new or empty")
    parser.add_argument("topics", nargs="*", help="topics; default: all, in a namespace all of this robot")
    parser.add_argument("--wait", type=float, default=math.inf, help="how long to wait for a publisher [s]")
    given = parse(parser, arguments)
    folder = Path(given.out)
    try:
        refusal = RecordingError(str(folder), got="an existing file or folder", remedy="choose another --out")
        check_folder(folder, occupied(folder), refusal)
    except RecordingError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
    run(lambda: [Recorder(folder, given.topics, given.wait)])


if __name__ == "__main__":
    main()
