"""What the verbs under `promise` in matrix.yaml mean, as docs/reliability.md says it; needs no ROS."""

from __future__ import annotations

from typing import Any

# `{}` stands for the verb's argument.
WORDS: dict[str, str] = {
    "stops": "the base is at rest within {} s",
    "zero": "zero is sent to the driver within {} s, and nothing after it",
    "drives": "continues for {} s at the operator's speed",
    "tracks": "continues to follow the trajectory for {} s",
    "stands": "the base never moves, for {} s",
    "drives_again": "obeys the operator within {} s",
    "within_limits": "no command beyond {} m/s or not finite",
    "given_up": "given up within {0[0]} s, with the reason",
    "named": "reported in /diagnostics within {0[0]} s",
    "logged": "logged within {0[0]} s",
    "refused": "refused with the reason",
    "accepted": "accepted",
    "exits": "exit code {}",
    "lives": "{} still running",
    "back": "{0[0]} is started again within {0[1]} s",
    "bringup_ends": "the bringup ends within {} s, with all its processes",
    "odom_goes_on": "odom without a gap of {0[1]} s",
    "odom_moves_less": "odom finite and without a step of {} m",
    "bag_opens": "the bag can be read",
}


def in_words(promise: dict[str, Any]) -> str:
    """The promises of a row, as the docs say them."""
    texts = []
    for name, argument in promise.items():
        shown = ", ".join(argument) if name == "lives" else argument
        texts.append(WORDS[name].format(shown))
    return "; ".join(texts)
