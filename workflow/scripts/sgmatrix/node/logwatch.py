"""Sees in a growing log that the engine is dead while its HTTP front end still answers.

The front end and the scheduler are different processes: `/health` may say 200 for long after
the scheduler died. What proves a death is data in `node.triage_rules`; why it died is the
question of `node.triage`, when the log has come to its end.
"""

from __future__ import annotations

import os
from pathlib import Path

from sgmatrix.node.triage import (
    DEATHS,
    cleaned,
    first_of,
    for_record,
    line_starts,
    quotes,
    taken_apart,
)

_STEP_BYTES = 8 * 1024 * 1024
"""At most so much is read by one call; the next one goes on from there."""
_LINE_BYTES = 4096
"""Of a line that has not ended yet, its beginning is kept."""
_NEEDLES = tuple(sorted({needle.encode() for needle, _ in DEATHS}))


class LogWatch:
    """Reads a log as it grows; `death()` is cheap enough to be asked every second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._partial = b""
        self._seen: str | None = None

    def death(self) -> str | None:
        """Return the first line that proves that a part of the engine is dead, or None.

        Once seen, it stays. A log that is not there, or cannot be read, proves nothing.
        """
        if self._seen is None:
            self._seen = self._first(self._appended())
        return self._seen

    def _appended(self) -> bytes:
        """Return the lines that have ended since the last call."""
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._place:
                    self._place, self._partial = 0, b""  # begun anew
                file.seek(self._place)
                data = file.read(_STEP_BYTES)
        except OSError:
            return b""
        self._place += len(data)
        whole, newline, rest = (self._partial + data).rpartition(b"\n")
        step = rest.rstrip(b"\r")
        self._partial = step.rpartition(b"\r")[2][:_LINE_BYTES] + rest[len(step) :][:1]
        return whole + newline

    @staticmethod
    def _first(data: bytes) -> str | None:
        text = cleaned(data).replace(b"\r", b"\n")
        for start in sorted(line_starts(text, _NEEDLES)):
            end = text.find(b"\n", start)
            line = taken_apart(text[start:end])
            if not quotes(line.body) and first_of(DEATHS, line.body):
                return for_record(line.text)
        return None
