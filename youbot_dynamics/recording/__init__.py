"""Recordings: rosbag2 (mcap, sqlite3), ROS 1 bags and text logs as time series."""
