"""Commands and options that do not exist, answered with the nearest ones that do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from youbot_dynamics.errors import did_you_mean


def check_spelling(whole: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Exit with 2 for an unknown command, or an unknown option that is near to one of its command's."""
    verbs = next(action.choices for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    verb = next((word for word in words if not word.startswith("-")), None)
    if verb is None:
        return
    if verb not in verbs:
        hint = f"{did_you_mean(verb, list(verbs))} the commands are".strip()
        whole.error(f"no command {verb}: {hint} {', '.join(verbs)}")
    own = sorted(word[2:] for word in verbs[verb]._option_string_actions if word.startswith("--"))
    for name in (word[2:].partition("=")[0] for word in words[words.index(verb) :] if word.startswith("--")):
        if not any(known.startswith(name) for known in own) and (hint := did_you_mean(name, own)):
            verbs[verb].error(f"no option --{name}: {hint.replace('mean ', 'mean --')}")
