"""Who publishes and who subscribes on a topic, as plain values, and the rules by which the ROS graph is judged.

Two nodes of a kind on the same topics would alternate, so the second refuses to start (`refuse_rivals`). On one machine
`local_socket.claim` notices it at once; other machines, containers and users are seen on the graph, where a process was
seen to need four seconds to be known: so a newcomer keeps looking for a while, and gives way.

`base_controller` refuses to drive by some of the rules, `check_driver` reports all. A node counts as the youBot's
driver where it publishes what only a driver does (`driver/joint_states`, `driver/odom`, or the driver's own
`base/joint_states`), or bears one of its names. One that publishes `joint_states` counts only where it also listens on
`cmd_vel`: ours of that kind, `odometry` and joint_state_publisher, do not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo

from youbot_dynamics.estimation.driver_check import ERROR, OK, WARNING, DriverFinding
from youbot_dynamics.nodes.local_socket import occupied

LOOK = 1.0  # [s] from the birth of a node for which it looks before it speaks
_AGE = 10.0  # [s] after which ends are asked for anew though their numbers are the same
_UNKNOWN = "_NODE_NAME_UNKNOWN_"  # rmw's name of a node whose endpoint was heard of before the node itself


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscription."""

    node: str  # full name of the node that has it; empty while it is not known
    kind: str  # message type, such as geometry_msgs/msg/Twist
    reliable: bool = True  # it offers, or asks for, reliable delivery
    latched: bool = False  # it keeps, or asks for, the last messages for late joiners (transient local)


@dataclass(frozen=True)
class TopicEnds:
    """A topic, by its resolved name, and its ends."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscriptions: tuple[Endpoint, ...] = ()

    def speakers(self) -> frozenset[str]:
        """Names of the nodes that publish."""
        return frozenset(end.node for end in self.publishers if end.node)

    def listeners(self) -> frozenset[str]:
        """Names of the nodes that subscribe."""
        return frozenset(end.node for end in self.subscriptions if end.node)


def ends_of(node: Node, topic: str) -> TopicEnds:
    """Ends of a topic as `node` sees them; the name is resolved as for the node's own topics, remappings included."""
    name = node.resolve_topic_name(topic)
    sides = node.get_publishers_info_by_topic(name), node.get_subscriptions_info_by_topic(name)
    return TopicEnds(name, *(tuple(map(_endpoint, side)) for side in sides))


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    return Endpoint(
        "" if info.node_name == _UNKNOWN else f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        info.topic_type,
        info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
        info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


class EndsWatch:
    """Ends of some topics as a node sees them, asked for anew where their number changed: to count them is cheap."""

    def __init__(self, node: Node, topics: Sequence[str]) -> None:
        self._node = node
        self._names = {topic: node.resolve_topic_name(topic) for topic in topics}
        self._kept: dict[str, tuple[tuple[int, int], TopicEnds]] = {}
        self._begun = time.monotonic()

    def ends(self) -> dict[str, TopicEnds]:
        """Ends of each topic, by the names that were given."""
        now = time.monotonic()
        if now - self._begun >= _AGE:
            self._begun, self._kept = now, {}
        for topic, name in self._names.items():
            numbers = self._node.count_publishers(name), self._node.count_subscribers(name)
            kept = self._kept.get(topic)
            ends = ends_of(self._node, topic) if kept is None or kept[0] != numbers else kept[1]
            # The node of an end may be heard of later than the end.
            unknown = any(not end.node for end in (*ends.publishers, *ends.subscriptions))
            self._kept[topic] = ((-1, -1) if unknown else numbers, ends)
        return {topic: ends for topic, (_, ends) in self._kept.items()}


def refuse_rivals(node: Node, topic: str, others: Sequence[str], until: float = 0.0, mine: int = 0) -> None:
    """Look, up to the time `until` on the steady clock [s], for nodes that do what this one does.

    A rival publishes on `topic` and on one at least of `others`; `mine` of the publishers on `topic` are of this node.
    One look is always taken. A second node of the same name counts.

    Raises:
        ResourceError: there is one; it is named.
    """
    while True:
        count = Counter(end.node for end in ends_of(node, topic).publishers if end.node)
        count[node.get_fully_qualified_name()] -= mine
        names = {name for name, publishers in count.items() if publishers > 0}
        if names:
            names &= {name for other in others for name in ends_of(node, other).speakers()}
        if names:
            raise occupied(node, topic, f"{', '.join(sorted(names))}, there already")
        if time.monotonic() >= until:
            return
        time.sleep(0.05)


# What a driver publishes, by its remapped names and by its own.
DRIVER_TOPICS = ("driver/joint_states", "driver/odom", "base/joint_states")
JOINT_STATES = "joint_states"
# youbot_driver_ros_interface, branch foxy-devel: src/youbot_oodl.cpp and its launch file
DRIVER_NAMES = ("youbot_oodl_driver", "youbot_driver_ros_interface")
EVIDENCE = (*DRIVER_TOPICS, JOINT_STATES)
# The way to a driver by each command interface.
COMMANDS = ("driver/cmd_vel", "driver/wheel_velocity_command", "wheel_velocity_controller/commands")
_RECORDERS = ("recorder", "identification", "rosbag2_recorder")  # they listen on everything
TF = "/tf"
WATCHED = ("cmd_vel", *EVIDENCE, *COMMANDS, TF)

TWIST, STAMPED = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"


def driver_nodes(ends: Mapping[str, TopicEnds], own: Iterable[str] = ()) -> frozenset[str]:
    """Full names of the nodes that are a driver, out of the ends of `cmd_vel` and of each topic of EVIDENCE.

    Nodes of our `own` are none, whatever they publish.
    """
    listeners = ends["cmd_vel"].listeners()
    drivers = {node for topic in DRIVER_TOPICS for node in ends[topic].speakers()}
    drivers |= ends[JOINT_STATES].speakers() & listeners
    everybody = listeners.union(*(ends[topic].speakers() for topic in EVIDENCE))
    drivers |= {node for node in everybody if node.rsplit("/", 1)[-1] in DRIVER_NAMES}
    return frozenset(drivers - set(own))


def driver_on_cmd_vel(ends: Mapping[str, TopicEnds], own: Iterable[str] = ()) -> str:
    """What is wrong, with its remedy, where a driver listens on the operator's `cmd_vel` itself; else nothing.

    Its arguments are those of `driver_nodes`.
    """
    guilty = sorted(driver_nodes(ends, own) & ends["cmd_vel"].listeners())
    if not guilty:
        return ""
    topic = ends["cmd_vel"].name
    return (
        f"the driver {', '.join(guilty)} listens on {topic} itself: it would obey commands that bypass this "
        "node and its limits. Start it with the remapping -r cmd_vel:=driver/cmd_vel"
    )


def unheard_commands(cmd_vel: TopicEnds, stamped: bool) -> str:
    """What is wrong, with its remedy, where an operator sends the other kind of twist than is read; else nothing."""
    read, other = (STAMPED, TWIST) if stamped else (TWIST, STAMPED)
    senders = sorted({end.node or "a node" for end in cmd_vel.publishers if end.kind == other})
    if not senders:
        return ""
    return (
        f"{', '.join(senders)} sends {_short(other)} on {cmd_vel.name}, and {_short(read)} is read there: none of it "
        f"arrives. Set the parameter enable_stamped_cmd_vel to {str(not stamped).lower()} where {_short(other)} is "
        f"wanted, or let {', '.join(senders)} send {_short(read)}"
    )


def _short(kind: str) -> str:
    return kind.rsplit("/", 1)[-1]


def judge_graph(ends: Mapping[str, TopicEnds], motor_services: frozenset[str]) -> tuple[DriverFinding, ...]:
    """All findings on the graph, out of the ends of each topic of WATCHED and the nodes that switch motors off."""
    drivers = driver_nodes(ends)
    return (
        _judge_operator(ends),
        _judge_twist(ends["cmd_vel"]),
        _judge_commands(ends, drivers),
        _judge_speakers(ends, drivers),
        _judge_delivery(ends),
        _judge_tf(ends[TF], drivers),
        _judge_motors(motor_services),
    )


def _judge_operator(ends: Mapping[str, TopicEnds]) -> DriverFinding:
    item, topic = "listeners of the operator", ends["cmd_vel"]
    guilty = driver_on_cmd_vel(ends)
    if guilty:
        text, remedy = guilty.split(". ", 1)
        return DriverFinding(item, ERROR, text.replace("beside this node", "beside base_controller"), remedy)
    names = ", ".join(sorted(topic.listeners()))
    return DriverFinding(item, OK, f"{topic.name}: {names or 'nobody'}; no driver among them")


def _judge_twist(topic: TopicEnds) -> DriverFinding:
    item = "twist of the operator"
    read = {end.kind for end in topic.subscriptions if end.node.rsplit("/", 1)[-1] == "base_controller"}
    if not read:
        return DriverFinding(item, OK, "base_controller does not run: nothing to compare")
    told = unheard_commands(topic, STAMPED in read)
    if told:
        text, remedy = told.split(". ", 1)
        return DriverFinding(item, ERROR, text, remedy)
    senders = ", ".join(sorted(topic.speakers())) or "nobody yet"
    return DriverFinding(item, OK, f"{_short(min(read))}, as it is sent by {senders}")


def _judge_commands(ends: Mapping[str, TopicEnds], drivers: frozenset[str]) -> DriverFinding:
    item, way = "commands to the driver", ends[COMMANDS[0]]
    takers = {end for topic in COMMANDS for end in ends[topic].subscriptions if end.node in drivers}
    # A controller of ros2_control publishes nothing that would tell a driver.
    takers |= {end for end in ends[COMMANDS[2]].subscriptions if end.node.rsplit("/", 1)[-1] not in _RECORDERS}
    if not takers:
        others = sorted(set().union(*(ends[topic].listeners() for topic in COMMANDS)))
        text = f"no driver listens on {way.name}" + (f", only {', '.join(others)}" if others else "")
        return DriverFinding(item, ERROR, text, "start the driver with the remapping -r cmd_vel:=driver/cmd_vel")
    if any(end.kind == STAMPED for end in takers):
        text = f"the driver takes TwistStamped on {way.name}, and base_controller sends Twist"
        return DriverFinding(item, ERROR, text, "start a driver, or a relay, that takes Twist")
    return DriverFinding(item, OK, f"taken by {', '.join(sorted({end.node for end in takers}))}")


def _judge_speakers(ends: Mapping[str, TopicEnds], drivers: frozenset[str]) -> DriverFinding:
    item, raw, ours = "publishers of joint states", ends["driver/joint_states"], ends[JOINT_STATES]
    remap = "remap the driver's: -r base/joint_states:=driver/joint_states -r arm_1/joint_states:=driver/joint_states"
    stray = drivers & (ours.speakers() | ends["base/joint_states"].speakers())
    if stray:
        both = stray & ours.speakers() and len(ours.speakers()) > 1
        text = f"{', '.join(sorted(stray))} publishes them beside {raw.name}"
        text += f", on {ours.name} together with {', '.join(sorted(ours.speakers() - stray))}" if both else ""
        return DriverFinding(item, ERROR, text, remap)
    names = ", ".join(sorted(raw.speakers()))
    if len(raw.speakers()) > 1:
        text = f"{raw.name} is published by {names}"
        return DriverFinding(item, WARNING, text, "right where base and arm have a driver each; else end one of them")
    if not names:
        return DriverFinding(item, ERROR, f"nobody publishes {raw.name}", f"start the driver; {remap}")
    return DriverFinding(item, OK, f"{raw.name}: {names}")


def _judge_delivery(ends: Mapping[str, TopicEnds]) -> DriverFinding:
    item = "delivery of the driver's messages"
    topics = [ends[name] for name in ("driver/joint_states", "driver/odom")]
    weak = sorted(topic.name for topic in topics if any(not end.reliable for end in topic.publishers))
    if weak:
        text = f"{', '.join(weak)} comes with best effort: messages may be lost"
        return DriverFinding(item, WARNING, text, "let the driver publish reliably, or run on the same machine")
    return DriverFinding(item, OK, "reliable")


def _judge_tf(topic: TopicEnds, drivers: frozenset[str]) -> DriverFinding:
    item = "broadcasters of tf"
    second = sorted(topic.speakers() & drivers)
    if second:
        others = sorted(topic.speakers() - drivers)
        text = f"the driver {', '.join(second)} broadcasts on {topic.name}"
        text += f" beside {', '.join(others)}" if others else ", where odometry's transform belongs"
        return DriverFinding(item, ERROR, text, "remap the driver's: -r /tf:=driver/tf")
    return DriverFinding(item, OK, f"{topic.name}: {', '.join(sorted(topic.speakers())) or 'nobody'}")


def _judge_motors(servers: frozenset[str]) -> DriverFinding:
    item = "service that switches the motors off"
    if not servers:
        text = "base/switchOffMotors is not offered: motors_off cannot call it"
        remedy = "know where the emergency stop is: another driver may have another name for it"
        return DriverFinding(item, WARNING, text, remedy)
    return DriverFinding(item, OK, f"offered by {', '.join(sorted(servers))}")
