"""Where the robot is and what its arm does: odometry, filters of joints and heat."""
