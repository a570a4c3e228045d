"""The program `youbot` in the process of the test, which saves a start each."""

from __future__ import annotations

import pytest

from youbot_dynamics.commands.main import main


def exit_code(*words: object) -> int:
    """Exit code of `youbot` with these words."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)
