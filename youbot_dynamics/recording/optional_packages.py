"""The packages rosbags and mcap: needed for bags only, so they are imported when a bag is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from youbot_dynamics.errors import ResourceError


@contextmanager
def bag_packages() -> Iterator[None]:
    """Turn a failing import of rosbags or mcap inside the block into one line that says how to get them.

    Raises:
        ResourceError: a package that reads or writes bags is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ResourceError(
            "reading and writing bags",
            got=f"no Python package {error.name or error}",
            expected="the packages rosbags and mcap",
            remedy="install them with: pip install rosbags mcap",
        ) from error
