"""Where the robot is: odometry from wheel motion."""
