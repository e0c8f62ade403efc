"""A block of lines that stays at the bottom of a terminal while others write above it.

The terminal's scrolling region ends above the block, so whatever any process writes, with its own
line ends and at its own time, scrolls there and is neither eaten nor mixed with the block. The
cursor stays where the others write; the block is drawn by absolute place and the cursor put back,
in one write.

Source    ECMA-48 (CUP, EL, ED), DEC VT100 (DECSTBM, DECSC, DECRC, IND).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_WHOLE_REGION, _ERASE_BELOW, _ERASE_LINE = "\x1b[r", "\x1b[J", "\x1b[K"
_DOWN = "\x1bD"
"""One line down in the same column; at the last line all scrolls."""

Size = tuple[int, int]
"""Columns and lines."""


def is_live(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Tell whether a block may be drawn: a terminal, and nothing asks for plain text."""
    if environment.get("TERM", "dumb") in ("", "dumb"):
        return False
    return out.isatty() and not environment.get("NO_COLOR") and not environment.get("CI")


class Screen:
    """The terminal; one thread draws, another may take the block away."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._reserved: tuple[Size, int] | None = None
        self._closed = False
        self._lock = threading.RLock()  # a signal may come amid `close`

    def size(self) -> Size:
        """Return columns and lines; (0, 0) where the terminal is gone or another program has it."""
        try:
            columns, lines = os.get_terminal_size(self._descriptor)
        except OSError:
            return 0, 0
        return (columns, lines) if _in_front(self._descriptor) else (0, 0)

    def draw(self, lines: Sequence[str], size: Size, paint: Callable[[str], str] = str) -> None:
        """Show the block; without lines take it away.

        Args:
            lines: printable text, shorter than the terminal is wide.
            size: for which they were made.
            paint: adds to a line what takes no room.
        """
        with self._lock:
            if not self._closed:
                self._write(self._drawn(lines, size, paint))

    def _drawn(self, lines: Sequence[str], size: Size, paint: Callable[[str], str]) -> str:
        text = ""
        if self._reserved is not None and self._reserved != (size, len(lines)):
            text += self._given_back()
        if lines:
            top = size[1] - len(lines)
            if self._reserved is None:
                text += _DOWN * len(lines) + f"\x1b[{len(lines)}A"
                text += f"{_SAVE}\x1b[1;{top}r{_RESTORE}"
                self._reserved = (size, len(lines))
            text += _SAVE
            for place, line in enumerate(lines, start=top + 1):
                text += f"\x1b[{place};1H{paint(line)}{_ERASE_LINE}"
            text += _RESTORE
        return text

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the whole terminal to others in the block; the next `draw` is as the first."""
        with self._lock:
            self._write(self._given_back())
            yield

    def close(self) -> None:
        """Take the block away for good; what follows is written below what was said."""
        with self._lock:
            self._write(self._given_back())
            self._closed = True

    def _given_back(self) -> str:
        """Below the cursor there is nothing but the block, wherever a new size has put it."""
        if self._reserved is None:
            return ""
        self._reserved = None
        return f"{_SAVE}{_WHOLE_REGION}{_RESTORE}{_ERASE_BELOW}"

    def _write(self, text: str) -> None:
        data = text.encode("ascii", errors="replace")
        with contextlib.suppress(OSError):  # the terminal is gone: the campaign goes on
            while data:
                data = data[os.write(self._descriptor, data) :]


def _in_front(descriptor: int) -> bool:
    """Tell whether we are in the terminal's foreground; also where it is not our own."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True
