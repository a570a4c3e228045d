"""What can be identified; apart from the code that does it, so that `--help` stays quick."""

from youbot_dynamics.errors import IdentificationError

# In the order in which they are worked off: each uses what those before it found.
STAGES = ("calibration", "delay", "response", "base_friction", "arm_friction", "thermal")


def chosen_stages(name: str, text: str) -> tuple[str, ...]:
    """Read a list of stages as the user writes it; empty for an empty text.

    Args:
        name: of the option, for the error text.
        text: names separated by commas.

    Raises:
        IdentificationError: an unknown name.
    """
    only = tuple(stage.strip() for stage in text.split(",")) if text else ()
    for stage in only:
        if stage not in STAGES:
            raise IdentificationError(
                name, got=repr(stage), expected=f"names from {', '.join(STAGES)}, separated by commas"
            )
    return only
