"""Physics of the robot: bodies, friction, motors and wheels, without control and without ROS."""
