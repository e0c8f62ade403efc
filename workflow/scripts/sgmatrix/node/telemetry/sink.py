"""The file of the samples: one JSON line each; a disk that is full costs lines, never a process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


class Sink:
    """Appends lines to a file that may vanish or be full, and come back."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.lost = 0
        """Lines that are not in the file."""
        self._torn = _ends_torn(path)

    def write(self, record: Mapping[str, Any]) -> bool:
        """Append one record; False when it is lost.

        The file is opened each time: one that was removed with its folder would else go on
        taking lines that nobody can ever read.
        """
        line = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
        data = ("\n" + line if self._torn else line).encode()
        written = 0
        try:
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666
            )
            try:
                written = os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:
            pass  # counted below
        whole = written == len(data)
        if written:
            self._torn = not whole  # the next line must not grow onto half of this one
        self.lost += not whole
        return whole


def _ends_torn(path: str) -> bool:
    """Tell whether a file that is there already ends within a line."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path is a text all along
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False
