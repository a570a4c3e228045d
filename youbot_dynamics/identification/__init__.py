"""From recordings to parameters with intervals and verdicts."""
