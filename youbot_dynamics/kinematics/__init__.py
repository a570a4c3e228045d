"""Geometry of motion: plane, space, rotations and their angles, the mecanum base (systems 14-17, 28-31, 34, 39-41)."""
