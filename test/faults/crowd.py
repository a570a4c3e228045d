"""So many subscribers of the commands, each a participant of its own, in one process: `python crowd.py 10`."""

from __future__ import annotations

import sys

import rclpy
from geometry_msgs.msg import Twist
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState


def main(count: int) -> None:
    executors = []
    for k in range(count):
        context = Context()
        rclpy.init(context=context, args=[])
        node = Node(f"listener_{k}", context=context)
        node.create_subscription(Twist, "driver/cmd_vel", lambda message: None, 10)
        node.create_subscription(JointState, "wheel_commands", lambda message: None, 10)
        executors.append(SingleThreadedExecutor(context=context))
        executors[-1].add_node(node)
    while True:
        for executor in executors:
            executor.spin_once(timeout_sec=0.02)


main(int(sys.argv[1]))
