"""When a load client began to send and when it wrote its line, from the times of its files.

A time stamp of a file is of the clock of whoever keeps it; where that is another machine, what
it was at a moment that is known here tells how far they are apart.

Source    benchmark/serving.py of SGLang 0.5.23: what it prints before its run, and the pause.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

_SIGN = b"Starting main benchmark run...\n"
_PAUSE_S = 1.0
"""Between that line and the first request, in the Python client."""


class ClientClock:
    """The files of one client: its log, which was just made, and its result, which will be."""

    def __init__(self, log: BinaryIO, output: Path) -> None:
        made = os.fstat(log.fileno())
        self._ahead_s = made.st_mtime - time.time()
        self._log, self._output = Path(log.name), output
        self._size = -1
        self.began_s: float | None = None
        """When the run began, Unix time; None while it has not, or does not say so."""

    def look(self) -> None:
        """See whether the line that comes before the run is the last one of the log by now."""
        if self.began_s is not None:
            return
        with self._log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == self._size:
                return
            self._size = size
            file.seek(max(0, size - len(_SIGN)))
            if file.read() == _SIGN:
                self.began_s = os.fstat(file.fileno()).st_mtime - self._ahead_s + _PAUSE_S

    def wrote_s(self) -> float | None:
        """Return when the result was written, Unix time; None where there is none."""
        try:
            return self._output.stat().st_mtime - self._ahead_s
        except OSError:
            return None
