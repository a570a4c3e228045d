"""Parameters of other nodes, asked for without waiting: DDS takes seconds to connect, and messages go on."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient

_LOOK = 0.25  # [s] between looks for the nodes


class RemoteParameters:
    """Finds the first running node of some names that has the parameters, and reports them once.

    Args:
        node: that asks.
        names: of the nodes that may answer, in our namespace, or in the only other one that has them.
        prefix: of the parameters wanted, or the name of one.
        report: called with name -> value when the answer has come.
    """

    def __init__(
        self, node: Node, names: Collection[str], prefix: str, report: Callable[[dict[str, object]], None]
    ) -> None:
        self._node = node
        self._names = names
        self._prefix = prefix
        self._report = report
        self._client: AsyncParameterClient | None = None
        self._asked = "", ""
        self._foreign: set[tuple[str, str]] = set()
        self._timer = node.create_timer(_LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        if self._client is None:
            running = self._node.get_node_names_and_namespaces()
            found = {space: n for n, space in running if n in self._names and (n, space) not in self._foreign}
            own = self._node.get_namespace()
            # Of several robots only the one of our own namespace may answer for the bag.
            space = own if own in found else next(iter(found)) if len(found) == 1 else None
            if space is not None:
                self._asked = found[space], space
                self._client = AsyncParameterClient(self._node, f"{space.rstrip('/')}/{found[space]}")
        elif self._client.services_are_ready():
            self._timer.cancel()
            self._client.list_parameters([self._prefix], 0).add_done_callback(self._listed)

    def _listed(self, future) -> None:
        names = list(future.result().result.names) or [self._prefix]
        assert self._client is not None
        self._client.get_parameters(names).add_done_callback(lambda got: self._got(names, got))

    def _got(self, names: list[str], future) -> None:
        plain = [parameter_value_to_python(value) for value in future.result().values]
        if len(plain) != len(names) or all(value is None for value in plain):
            # Somebody else's node of that name: ours may come yet.
            self._foreign.add(self._asked)
            self._client = None
            self._timer.reset()
            return
        self._report({n: list(v) if hasattr(v, "tolist") else v for n, v in zip(names, plain, strict=True)})
