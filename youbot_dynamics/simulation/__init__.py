"""Robots that are not there: the digital twin and lock-step runs in simulated time."""
