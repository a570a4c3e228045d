"""Trajectories, PID stabilisation and the way from a twist to four wheel speeds."""
