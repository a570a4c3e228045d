"""Geometry of motion: SE(2), SO(3), SE(3), sets of angles and the mecanum base.

Source: systems 14-17, 28-31, 34, 39-41.
"""
