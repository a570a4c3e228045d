"""Read result.json with checks. A module of its own, so that a node can read a result without loading the fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.files import read_text

LARGEST = 20_000_000  # [bytes] of a result.json

_TEXTS = ("stage", "name", "verdict")
_OTHERS = ("value", "unit", "standard_error", "interval_95", "samples", "valid_for")


def read_result(path: Path) -> dict[str, Any]:
    """Contents of a result.json of at most `LARGEST` bytes; see docs/result.schema.json.

    Every entry of "parameters" has its texts and values; "missing" and "warnings" hold texts.

    Raises:
        IdentificationError: no such file, too large, or not written by `youbot identify`.
    """
    thing = f"result {path}"
    text = read_text(path, IdentificationError, thing, "a result.json of youbot identify", LARGEST)
    try:
        content = json.loads(text)
        entries, missing, warnings = content["parameters"], content["missing"].items(), list(content["warnings"])
        texts = [content["robot_id"], *warnings, *(word for pair in missing for word in pair)]
        texts += [source["sha256"] for source in content.get("sources", [])]
        texts += [entry[key] for entry in entries for key in _TEXTS]
        complete = all(key in entry for entry in entries for key in _OTHERS)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        remedy = "give the folder that youbot identify wrote, or its result.json"
        got = f"other contents ({type(problem).__name__}: {problem})"
        raise IdentificationError(thing, got=got, expected="JSON of youbot identify", remedy=remedy) from None
    if not complete or not all(isinstance(word, str) and word.isprintable() for word in texts):
        raise IdentificationError(
            thing, got="incomplete entries, or entries that are not text", expected="JSON of youbot identify"
        )
    return dict(content)
