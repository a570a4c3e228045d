"""ROS 2 nodes: they translate between messages and the core, and hold no mathematics."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

from youbot_dynamics.errors import missing_package

# A node that still imports, started by `python -m` or as a program, ends without a traceback; StopFlag takes over.
if sys.argv and (sys.argv[0] == "-m" or Path(__file__).with_name(f"{Path(sys.argv[0]).name}.py").is_file()):
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))
    if importlib.util.find_spec("rclpy") is None:
        sys.exit(f"error: {missing_package('rclpy', 'this node', 'ROS 2 Jazzy or Kilted')}")
