"""Signals and rows of the base: friction, coast-down, calibration of wheels and rollers."""
