"""Geometry of motion: the plane and the mecanum base."""
