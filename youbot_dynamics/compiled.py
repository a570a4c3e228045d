"""Compile hot loops with numba where it is installed; without it the same functions run as plain Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def _choose_cache() -> None:
    """Point numba to a cache it can write: a read-only install and a missing home would otherwise stop it."""
    if "NUMBA_CACHE_DIR" in os.environ or os.access(Path(__file__).parent, os.W_OK):
        return
    home = Path(os.path.expanduser("~"))
    if not os.access(home, os.W_OK):
        os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"youbot_dynamics_numba_{os.getuid()}")


try:
    _choose_cache()
    from numba import njit

    HAVE_NUMBA = True
except ImportError:
    HAVE_NUMBA = False


def compiled(function: F) -> F:
    """Decorator: `numba.njit(cache=True)` where numba is installed, else the function itself."""
    if not HAVE_NUMBA:
        return function
    fast: F = njit(cache=True)(function)  # type: ignore[assignment]
    return fast
