"""Drives a robot in a loop by trajectories, and notes when commands and wheel states come: a process of `live_stack`.

It prints `driving` once commands come, and after the given time periods and latencies as JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time

import rclpy
from geometry_msgs.msg import Transform, Twist
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from youbot_dynamics.nodes._runtime import make_executor

_SETTLED = 3.0  # [s] of driving before anything counts
_WHEELS = b"wheel_joint_fl"


def circle(seconds: float) -> MultiDOFJointTrajectory:
    """To and fro over half a metre, gently, with a turn, relative to where the robot stands."""
    message = MultiDOFJointTrajectory(joint_names=["base_footprint"])
    message.header.frame_id = "base_footprint"
    for tenth in range(round(10 * seconds) + 1):
        t, whole = 0.1 * tenth, 2.0 * math.pi / 5.0
        place, turn = 0.25 * (1.0 - math.cos(whole * t)), 0.1 * (1.0 - math.cos(whole * t))
        point = MultiDOFJointTrajectoryPoint(transforms=[Transform()])
        point.transforms[0].translation.x, point.transforms[0].translation.y = place, 0.5 * place
        point.transforms[0].rotation.z, point.transforms[0].rotation.w = math.sin(turn / 2), math.cos(turn / 2)
        point.time_from_start.sec, point.time_from_start.nanosec = tenth // 10, tenth % 10 * 100_000_000
        message.points.append(point)
    return message


def main() -> None:
    """Measure."""
    ready, seconds = (float(word) for word in sys.argv[1:])
    rclpy.init()
    node = Node("probe")
    commands: list[float] = []
    wheels: list[float] = []
    tracked: list[float] = []
    node.create_subscription(Twist, "driver/cmd_vel", lambda data: commands.append(time.monotonic()), 100, raw=True)
    node.create_subscription(
        JointState,
        "driver/joint_states",
        lambda data: wheels.append(time.monotonic()) if _WHEELS in data else None,
        100,
        raw=True,
    )
    node.create_subscription(
        JointState, "trajectory_tracker/error", lambda data: tracked.append(time.monotonic()), 10, raw=True
    )
    trajectory = node.create_publisher(MultiDOFJointTrajectory, "trajectory", 1)
    executor = make_executor(node)
    end, asked = time.monotonic() + ready, 0.0
    while not (commands and tracked):
        if time.monotonic() > end:
            sys.exit(1)
        if time.monotonic() > asked + 5.0:
            trajectory.publish(circle(_SETTLED + seconds + 10.0))
            asked = time.monotonic()
        executor.spin_once(timeout_sec=0.05)
    trajectory.publish(circle(_SETTLED + seconds + 10.0))
    begin = time.monotonic() + _SETTLED
    print("driving", flush=True)
    while time.monotonic() < begin + seconds:
        executor.spin_once(timeout_sec=0.05)
    if time.monotonic() - tracked[-1] > 1.0:
        sys.exit("the trajectory was given up")
    sent = [moment for moment in commands if moment > begin]
    later = iter(sent)
    latencies, command = [], next(later)
    for wheel in (moment for moment in wheels if begin < moment < sent[-1]):
        while command < wheel:
            command = next(later)
        latencies.append(command - wheel)
    periods = [after - before for before, after in zip(sent, sent[1:], strict=False)]
    print(json.dumps({"periods": periods, "latencies": latencies}), flush=True)


if __name__ == "__main__":
    main()
