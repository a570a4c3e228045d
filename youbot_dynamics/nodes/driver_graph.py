"""The rules by which the graph of nodes and topics is judged: who is the driver, and what reaches it, and how.

Pure functions of `TopicEnds`: `base_controller` refuses to drive by some, `check_driver` reports all.

A node counts as the youBot's driver where it publishes what only a driver does (`driver/joint_states`, `driver/odom`,
or the driver's own `base/joint_states`), or bears one of its names. One that publishes `joint_states` counts only
where it also listens on `cmd_vel`: ours of that kind, `odometry` and joint_state_publisher, do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from youbot_dynamics.estimation.driver_check import ERROR, OK, WARNING, DriverFinding
from youbot_dynamics.nodes.topic_graph import TopicEnds

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
