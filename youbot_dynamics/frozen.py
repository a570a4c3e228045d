"""Copies of frozen objects, by pickle or `copy`: made anew from the arguments of their class."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class MadeOfArguments:
    """Base of a frozen dataclass that is copied by calling its class again.

    Pickle and `copy.deepcopy` forget that an array is read-only, and cannot carry a module of compiled code at all.
    The class locks, looks up and checks what a copy needs as it did for the first.
    """

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Class and arguments, for pickle and `copy`."""
        given = fields(self)  # type: ignore[arg-type]
        return type(self), tuple(getattr(self, field.name) for field in given if field.init)
