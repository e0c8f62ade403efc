"""Wall-clock time for records, monotonic time for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_utc() -> str:
    """Return the time of day as ISO 8601 in UTC with microseconds, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def parse_utc(text: str) -> datetime:
    """Return the time that `now_utc` wrote."""
    return datetime.fromisoformat(text).astimezone(UTC)


class Stopwatch:
    """Seconds since it was made, by the monotonic clock."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def elapsed_s(self) -> float:
        return time.monotonic() - self._start
