"""Physics of the robot: rigid bodies, friction, motors and wheels, without control and without ROS."""
