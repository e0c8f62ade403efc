"""A fixed grid in time: a late tick is left out, never bunched with the next, and counted."""

from __future__ import annotations

import math


class Ticks:
    """Ticks at start, start + 1/hz, start + 2/hz, and so on, by the caller's clock."""

    def __init__(self, start_s: float, hz: float) -> None:
        self._start_s, self._hz = start_s, hz
        self._index = 0
        self.skipped = 0
        """Ticks that had passed before they could be taken."""

    def wait_s(self, now_s: float) -> float:
        """Go on to the next tick that is still to come; return how long that is from now."""
        due = max(self._index + 1, math.floor((now_s - self._start_s) * self._hz) + 1)
        self.skipped += due - self._index - 1
        self._index = due
        return max(0.0, self._start_s + due / self._hz - now_s)
