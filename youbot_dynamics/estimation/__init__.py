"""State estimation of base and arm: odometry, filters of the joints and of the motor temperatures."""
