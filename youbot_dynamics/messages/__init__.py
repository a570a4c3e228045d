"""What the core computes, as messages of ROS: topics, types and CDR, for the nodes and for bags."""
