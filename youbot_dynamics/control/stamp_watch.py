"""Whether the stamps of a stream keep pace with a steady clock: one that jumps would make a tracker chase its clock."""

from __future__ import annotations

_AHEAD = 0.1  # [s] by which a stamp may be younger than any before: late messages only ever make stamps older
_BACK = 0.05  # [s] by which a stamp may be before the last one: jitter of stamps, not their clock
_SLEW = 1e-3  # by which a clock may be slower than the steady one while it is set right: twice what NTP does


class StampWatch:
    """Looks for jumps of the stamps that come in.

    The age of a stamp, steady time less stamp, is never less than that of the promptest message before, since messages
    can be held up and not come early; and stamps of one source come in their order. What is not so is a jump.
    Jumps ahead by less than 0.1 s, and back by less than 0.05 s plus the time nothing came, pass as jitter and delay.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._least = 0.0  # age of the promptest message [s], on two clocks that need have no common zero

    def take(self, steady: float, stamp: float) -> str:
        """Take a stamp; how it jumped, such as "jumped ahead by 2.00 s", "" where it did not. Then it starts anew.

        Args:
            steady: when it came, by a clock that never jumps [s].
            stamp: [s].
        """
        age = steady - stamp
        if self._last is None:
            self._last, self._least = (steady, stamp), age
            return ""
        came, before = self._last
        self._last = (steady, stamp)
        least = self._least + _SLEW * (steady - came)
        self._least = min(age, least)
        if age < least - _AHEAD:
            return f"jumped ahead by {least - age:.2f} s"
        if stamp < before - _BACK:
            self._least = age
            return f"went back by {before - stamp:.2f} s"
        return ""
