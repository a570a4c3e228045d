"""Identify parameters from recordings, with intervals and verdicts."""
