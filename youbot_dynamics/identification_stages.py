"""What can be identified; apart from the code that does it, so that `--help` stays quick."""

# In the order in which they are worked off: each uses what those before it found.
STAGES = ("calibration", "delay", "response", "base_friction", "arm_friction", "thermal")
