"""Publishers and subscribers of a topic, as plain values, and the rules by which the ROS graph is judged.

Two nodes of a kind on the same topics would alternate, so the second refuses to start (`refuse_rivals`). On one machine
`local_socket.claim` detects it at once; other machines, containers and users are seen on the graph, where a process
needed up to four seconds to be discovered [seen]: so a new node checks for a while.

`base_controller` refuses to drive by some of the rules, `check_driver` reports all. A node counts as the youBot's
driver where it publishes what only a driver does (`driver/joint_states`, `driver/odom`, or the driver's own
`base/joint_states`), or has one of its names. One that publishes `joint_states` counts only where it also subscribes to
`cmd_vel`: `odometry` and joint_state_publisher do not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo

from youbot_dynamics.estimation.driver_check import DriverFinding, Verdict
from youbot_dynamics.nodes._driver import INTERFACES
from youbot_dynamics.nodes.local_socket import occupied

DISCOVERY = 1.0  # [s] for which a new node looks for rivals before it publishes
_AGE = 10.0  # [s] after which endpoints are queried anew though their numbers are the same
_UNKNOWN = "_NODE_NAME_UNKNOWN_"  # rmw's name of a node that is discovered later than its endpoint


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscription."""

    node: str  # full name of its node; empty while it is not known
    kind: str  # message type, such as geometry_msgs/msg/Twist
    reliable: bool = True  # reliability, offered or requested
    latched: bool = False  # durability, offered or requested, is transient local


@dataclass(frozen=True)
class TopicEndpoints:
    """A topic, by its resolved name, and its endpoints."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscriptions: tuple[Endpoint, ...] = ()

    def publisher_nodes(self) -> frozenset[str]:
        """Names of the nodes that publish."""
        return frozenset(endpoint.node for endpoint in self.publishers if endpoint.node)

    def subscriber_nodes(self) -> frozenset[str]:
        """Names of the nodes that subscribe."""
        return frozenset(endpoint.node for endpoint in self.subscriptions if endpoint.node)


def endpoints_of(node: Node, topic: str) -> TopicEndpoints:
    """Endpoints of a topic on the graph of `node`; the name is resolved as for the node's own topics."""
    name = node.resolve_topic_name(topic)
    sides = node.get_publishers_info_by_topic(name), node.get_subscriptions_info_by_topic(name)
    return TopicEndpoints(name, *(tuple(map(_endpoint, side)) for side in sides))


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    return Endpoint(
        "" if info.node_name == _UNKNOWN else f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        info.topic_type,
        info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
        info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


class EndpointCache:
    """Endpoints of some topics, queried anew where their number changed: counting is cheap."""

    def __init__(self, node: Node, topics: Sequence[str]) -> None:
        self._node = node
        self._names = {topic: node.resolve_topic_name(topic) for topic in topics}
        self._cached: dict[str, tuple[tuple[int, int], TopicEndpoints]] = {}
        self._begun = time.monotonic()

    def endpoints(self) -> dict[str, TopicEndpoints]:
        """Endpoints of each topic, by the names that were given."""
        now = time.monotonic()
        if now - self._begun >= _AGE:
            self._begun, self._cached = now, {}
        for topic, name in self._names.items():
            numbers = self._node.count_publishers(name), self._node.count_subscribers(name)
            cached = self._cached.get(topic)
            ends = endpoints_of(self._node, topic) if cached is None or cached[0] != numbers else cached[1]
            # The node of an endpoint may be discovered later.
            unknown = any(not end.node for end in (*ends.publishers, *ends.subscriptions))
            self._cached[topic] = ((-1, -1) if unknown else numbers, ends)
        return {topic: ends for topic, (_, ends) in self._cached.items()}


def refuse_rivals(node: Node, topic: str, others: Sequence[str], until: float = 0.0, mine: int = 0) -> None:
    """Look once, and on up to the time `until` on the steady clock [s], for nodes that do what this one does.

    A rival publishes on `topic` and on one at least of `others`; `mine` of the publishers on `topic` are of this node.
    A second node of the same name counts.

    Raises:
        ResourceError: there is one; it is named.
    """
    while True:
        count = Counter(end.node for end in endpoints_of(node, topic).publishers if end.node)
        count[node.get_fully_qualified_name()] -= mine
        names = {name for name, publishers in count.items() if publishers > 0}
        if names:
            names &= {name for other in others for name in endpoints_of(node, other).publisher_nodes()}
        if names:
            raise occupied(node, topic, f"{_listed(names)}, which runs already")
        if time.monotonic() >= until:
            return
        time.sleep(0.05)


# What a driver publishes, by its remapped names and by its own.
DRIVER_TOPICS = ("driver/joint_states", "driver/odom", "base/joint_states")
JOINT_STATES = "joint_states"
# youbot_driver_ros_interface, branch foxy-devel: src/youbot_oodl.cpp and its launch file
DRIVER_NAMES = ("youbot_oodl_driver", "youbot_driver_ros_interface")
EVIDENCE = (*DRIVER_TOPICS, JOINT_STATES)
# The topic to a driver by each of INTERFACES.
COMMANDS = ("driver/cmd_vel", "driver/wheel_velocity_command", "wheel_velocity_controller/commands")
_RECORDERS = ("recorder", "identification", "rosbag2_recorder")  # they subscribe to everything
TF = "/tf"
WATCHED = ("cmd_vel", *EVIDENCE, *COMMANDS, TF)

STAMPED = "geometry_msgs/msg/TwistStamped"


def _listed(nodes: Iterable[str]) -> str:
    return ", ".join(sorted(nodes))


def driver_nodes(ends: Mapping[str, TopicEndpoints], own: Iterable[str] = ()) -> frozenset[str]:
    """Full names of the nodes that are a driver, but for our `own`, from `cmd_vel` and each topic of EVIDENCE."""
    on_cmd_vel = ends["cmd_vel"].subscriber_nodes()
    drivers = {node for topic in DRIVER_TOPICS for node in ends[topic].publisher_nodes()}
    drivers |= ends[JOINT_STATES].publisher_nodes() & on_cmd_vel
    candidates = on_cmd_vel.union(*(ends[topic].publisher_nodes() for topic in EVIDENCE))
    drivers |= {node for node in candidates if node.rsplit("/", 1)[-1] in DRIVER_NAMES}
    return frozenset(drivers - set(own))


def driver_on_cmd_vel(ends: Mapping[str, TopicEndpoints], own: Iterable[str] = ()) -> str:
    """Problem and remedy where a driver subscribes to the operator's `cmd_vel`; else empty. See `driver_nodes`."""
    return ". ".join(_bypass(ends, own))


def _bypass(ends: Mapping[str, TopicEndpoints], own: Iterable[str] = ()) -> tuple[str, str] | tuple[()]:
    """The problem of `driver_on_cmd_vel` and its remedy; empty for none."""
    drivers = driver_nodes(ends, own) & ends["cmd_vel"].subscriber_nodes()
    if not drivers:
        return ()
    return (
        f"the driver {_listed(drivers)} listens on {ends['cmd_vel'].name} itself: it would obey commands that bypass "
        "this node and its limits",
        "Start it with the remapping -r cmd_vel:=driver/cmd_vel",
    )


def type_mismatch(cmd_vel: TopicEndpoints, stamped: bool) -> str:
    """Problem and remedy where an operator sends the other type of twist than is read; else empty."""
    return ". ".join(_other_type(cmd_vel, stamped))


def _other_type(cmd_vel: TopicEndpoints, stamped: bool) -> tuple[str, str] | tuple[()]:
    """The problem of `type_mismatch` and its remedy; empty for none."""
    read, other = ("TwistStamped", "Twist") if stamped else ("Twist", "TwistStamped")
    senders = _listed({end.node or "a node" for end in cmd_vel.publishers if end.kind == f"geometry_msgs/msg/{other}"})
    if not senders:
        return ()
    return (
        f"{senders} sends {other} on {cmd_vel.name}, and {read} is read there: none of it arrives",
        f"Set the parameter enable_stamped_cmd_vel to {str(not stamped).lower()} where {other} is wanted, or let "
        f"{senders} send {read}",
    )


def contradicting_operators(cmd_vel: TopicEndpoints) -> str:
    """Problem and remedy where several publishers send commands that contradict each other; empty for one publisher."""
    if len(cmd_vel.publishers) < 2:
        return ""
    return (
        f"the commands on {cmd_vel.name} turn back and forth faster than a hand does: of its publishers "
        f"({_listed(cmd_vel.publisher_nodes())}) two contradict each other. End one of them, or put twist_mux between"
    )


def judge_graph(
    ends: Mapping[str, TopicEndpoints],
    motor_services: frozenset[str],
    stamped: bool = False,
    is_youbot: bool = True,
    interface: str = INTERFACES[0],
) -> tuple[DriverFinding, ...]:
    """All findings on the graph, from each topic of WATCHED and the nodes that switch motors off.

    Only the driver of a youBot must offer this service; it has topics of joint states for base and arm. The command
    `interface` is that of the robot's files, for a base_controller that does not run.
    """
    drivers = driver_nodes(ends)
    return (
        _judge_operator(ends),
        _judge_twist(ends["cmd_vel"]),
        _judge_commands(ends, drivers, stamped, interface),
        _judge_joint_states(ends, drivers, is_youbot),
        _judge_delivery(ends),
        _judge_tf(ends[TF], drivers),
        *([_judge_motors(motor_services)] if is_youbot or motor_services else []),
    )


def _finding(item: str, problem: tuple[str, str] | tuple[()], text: str) -> DriverFinding:
    """Finding of a problem with its remedy, or of what is right where there is none."""
    return DriverFinding(item, Verdict.ERROR, *problem) if problem else DriverFinding(item, Verdict.OK, text)


def _judge_operator(ends: Mapping[str, TopicEndpoints]) -> DriverFinding:
    topic = ends["cmd_vel"]
    text = f"{topic.name}: {_listed(topic.subscriber_nodes()) or 'no subscriber'}; no driver among them"
    return _finding("listeners of the operator", _bypass(ends), text)


def _judge_twist(topic: TopicEndpoints) -> DriverFinding:
    item = "twist of the operator"
    read = {end.kind for end in topic.subscriptions if end.node.rsplit("/", 1)[-1] == "base_controller"}
    if not read:
        return DriverFinding(item, Verdict.OK, "base_controller does not run: nothing to compare")
    senders = _listed(topic.publisher_nodes()) or "no publisher yet"
    text = f"{min(read).rsplit('/', 1)[-1]}, as it is sent by {senders}"
    return _finding(item, _other_type(topic, STAMPED in read), text)


def _takers(ends: Mapping[str, TopicEndpoints], name: str, drivers: frozenset[str]) -> frozenset[Endpoint]:
    """Subscriptions of drivers to one of COMMANDS."""
    found = {end for end in ends[name].subscriptions if end.node in drivers}
    if name == COMMANDS[2]:  # a controller of ros2_control publishes nothing by which a driver is known
        found |= {end for end in ends[name].subscriptions if end.node.rsplit("/", 1)[-1] not in _RECORDERS}
    return frozenset(found)


def _judge_commands(
    ends: Mapping[str, TopicEndpoints], drivers: frozenset[str], stamped: bool, interface: str
) -> DriverFinding:
    item, takers = "commands to the driver", {name: _takers(ends, name, drivers) for name in COMMANDS}
    name = COMMANDS[INTERFACES.index(interface)]
    for sent in COMMANDS:  # by a base_controller that runs, whatever the files say
        name = sent if "base_controller" in {node.rsplit("/", 1)[-1] for node in ends[sent].publisher_nodes()} else name
    subscriptions, topic = takers[name], ends[name].name
    if not subscriptions:
        text, others = f"no driver listens on {topic}", _listed(ends[name].subscriber_nodes())
        remedy = "cmd_vel:=driver/cmd_vel" if name == COMMANDS[0] else f"COMMANDS:={name}, COMMANDS its own topic"
        remedy = f"start the driver with the remapping -r {remedy}"
        text += f", only {others}" if others else ""
        if other := next((one for one in COMMANDS if takers[one]), ""):
            text += f"; {_listed({end.node for end in takers[other]})} listens on {ends[other].name}"
            wanted = f"command_interface: {INTERFACES[COMMANDS.index(other)]}"
            remedy = f"set {wanted} in the section /**/base_controller of the robot file, or {remedy}"
        return DriverFinding(item, Verdict.ERROR, text, remedy)
    sent, other = ("TwistStamped", "Twist") if stamped else ("Twist", "TwistStamped")
    if any(end.kind.rsplit("/", 1)[-1] == other for end in subscriptions):
        text = f"the driver takes {other} on {topic}, and base_controller sends {sent}"
        remedy = f"set robot.driver.stamped_twist to {str(not stamped).lower()} in the robot file"
        return DriverFinding(item, Verdict.ERROR, text, f"start a driver, or a relay, that takes {sent}, or {remedy}")
    return DriverFinding(item, Verdict.OK, f"taken by {_listed({end.node for end in subscriptions})}")


def _judge_joint_states(ends: Mapping[str, TopicEndpoints], drivers: frozenset[str], is_youbot: bool) -> DriverFinding:
    item, raw, joint_states = "publishers of joint states", ends["driver/joint_states"], ends[JOINT_STATES]
    names = ("base/joint_states", "arm_1/joint_states") if is_youbot else ("joint_states",)
    remap = f"remap the driver's: {' '.join(f'-r {name}:=driver/joint_states' for name in names)}"
    publishers, corrected = raw.publisher_nodes(), joint_states.publisher_nodes()
    unmapped = drivers & (corrected | ends["base/joint_states"].publisher_nodes())
    if unmapped:
        both = unmapped & corrected and len(corrected) > 1
        text = f"{_listed(unmapped)} publishes them beside {raw.name}"
        text += f", on {joint_states.name} together with {_listed(corrected - unmapped)}" if both else ""
        return DriverFinding(item, Verdict.ERROR, text, remap)
    if len(publishers) > 1:
        text = f"{raw.name} is published by {_listed(publishers)}"
        remedy = "correct if base and arm have separate drivers; otherwise end one of them"
        return DriverFinding(item, Verdict.WARNING, text, remedy)
    if not publishers:
        return DriverFinding(item, Verdict.ERROR, f"no node publishes {raw.name}", f"start the driver; {remap}")
    return DriverFinding(item, Verdict.OK, f"{raw.name}: {_listed(publishers)}")


def _judge_delivery(ends: Mapping[str, TopicEndpoints]) -> DriverFinding:
    item = "delivery of the driver's messages"
    topics = [ends[name] for name in ("driver/joint_states", "driver/odom")]
    best_effort = _listed(topic.name for topic in topics if any(not end.reliable for end in topic.publishers))
    if best_effort:
        text = f"{best_effort} comes with best effort: messages may be lost"
        return DriverFinding(item, Verdict.WARNING, text, "let the driver publish reliably, or run on the same machine")
    return DriverFinding(item, Verdict.OK, "reliable")


def _judge_tf(topic: TopicEndpoints, drivers: frozenset[str]) -> DriverFinding:
    item, broadcasters = "broadcasters of tf", topic.publisher_nodes()
    if broadcasters & drivers:
        others = _listed(broadcasters - drivers)
        text = f"the driver {_listed(broadcasters & drivers)} broadcasts on {topic.name}"
        text += f" beside {others}" if others else ", where odometry's transform belongs"
        return DriverFinding(item, Verdict.ERROR, text, "remap the driver's: -r /tf:=driver/tf")
    return DriverFinding(item, Verdict.OK, f"{topic.name}: {_listed(broadcasters) or 'no publisher'}")


def _judge_motors(servers: frozenset[str]) -> DriverFinding:
    item = "service that switches the motors off"
    if not servers:
        text = "base/switchOffMotors is not offered: motors_off cannot call it"
        remedy = "keep the emergency stop within reach: another driver may use another name for this service"
        return DriverFinding(item, Verdict.WARNING, text, remedy)
    return DriverFinding(item, Verdict.OK, f"offered by {_listed(servers)}")
