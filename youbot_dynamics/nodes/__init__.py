"""ROS 2 nodes: they translate between messages and the core, and hold no mathematics."""

import os
import signal
import sys
from pathlib import Path

# A node that still imports, started by `python -m` or as a program, ends without a traceback; StopFlag takes over.
if sys.argv and (sys.argv[0] == "-m" or Path(__file__).with_name(f"{Path(sys.argv[0]).name}.py").is_file()):
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))
