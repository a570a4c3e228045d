"""ROS 2 nodes: they translate between messages and the core, and hold no mathematics."""

import importlib.util
import sys

from youbot_dynamics.errors import missing_package
from youbot_dynamics.interrupts import NODE

if NODE and importlib.util.find_spec("rclpy") is None:
    sys.exit(f"error: {missing_package('rclpy', 'this node', 'ROS 2 Jazzy or Kilted')}")
