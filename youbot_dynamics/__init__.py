"""Dynamics, estimation, identification and control of the KUKA youBot; the core imports without ROS."""

__version__ = "0.1.0"
