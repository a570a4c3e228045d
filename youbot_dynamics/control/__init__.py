"""Trajectories, PID stabilisation and the way from a twist to wheel speeds."""
