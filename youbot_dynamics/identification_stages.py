"""What can be identified; apart from the code that does it, so that `--help` stays quick."""

STAGES = ("delay",)
