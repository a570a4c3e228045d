"""What the core computes, as messages of ROS: topics, types and CDR, for the nodes and for bags."""

from youbot_dynamics.messages._arm import ArmMessages, Message
from youbot_dynamics.messages._drive_bag import write_bag

__all__ = ["ArmMessages", "Message", "write_bag"]
