"""ROS 2 nodes: they translate between messages and the core, and hold no mathematics."""
