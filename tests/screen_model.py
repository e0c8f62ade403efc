"""A terminal as a model: what bytes leave on its screen, and what has scrolled off.

Knows what the live display writes, and what a program that knows nothing of it does: text,
line ends, colours. Anything else is refused, so that no test passes by not looking.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(r"\x1b(?:([78D])|\[([0-9;?]*)([A-Za-z]))")


class Terminal:
    """Columns and lines; `off` holds the lines that have scrolled off the top."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns = columns
        self.rows = [""] * lines
        self.off: list[str] = []
        self.row = self.column = 0
        self.saved = (0, 0)
        self.region = (0, lines - 1)
        self.wrapped = 0
        """Lines that were longer than the terminal is wide."""

    @property
    def text(self) -> str:
        """All that can be seen or scrolled back to."""
        return "\n".join([*self.off, *self.rows])

    def resize(self, columns: int, lines: int) -> None:
        """Change the size as most terminals do: lines leave at the top, if the cursor must stay."""
        self.columns = columns
        while len(self.rows) > lines:
            if self.row < len(self.rows) - 1:
                self.rows.pop()
            else:
                self.off.append(self.rows.pop(0))
                self.row -= 1
        self.rows += [""] * (lines - len(self.rows))
        self.region = (0, lines - 1)

    def feed(self, text: str) -> None:
        place = 0
        while place < len(text):
            if text[place] == "\x1b":
                match = _CONTROL.match(text, place)
                assert match, f"an unknown control: {text[place : place + 12]!r}"
                self._control(match[1] or match[3], match[2] or "")
                place = match.end()
                continue
            self._put(text[place])
            place += 1

    def _put(self, one: str) -> None:
        if one == "\r":
            self.column = 0
        elif one == "\n":
            self._down()
        elif one in "\x07\x08":
            pass
        else:
            assert one >= " ", f"an unknown control character: {one!r}"
            if self.column >= self.columns:
                self.wrapped += 1
                self.column = 0
                self._down()
            line = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = line[: self.column] + one + line[self.column + 1 :]
            self.column += 1

    def _down(self) -> None:
        top, bottom = self.region
        if self.row == bottom:
            gone = self.rows.pop(top)
            if top == 0:
                self.off.append(gone)
            self.rows.insert(bottom, "")
        elif self.row < len(self.rows) - 1:
            self.row += 1

    def _control(self, kind: str, arguments: str) -> None:
        numbers = [int(one or 1) for one in arguments.split(";")] if arguments else []
        match kind:
            case "7":
                self.saved = (self.row, self.column)
            case "8":
                self.row, self.column = self.saved
            case "D":
                self._down()
            case "A":
                self.row = max(0, self.row - numbers[0])
            case "H":
                self.row, self.column = numbers[0] - 1, numbers[1] - 1
                assert self.row < len(self.rows), "a place below the screen"
            case "r":
                self.region = (
                    (numbers[0] - 1, numbers[1] - 1) if numbers else (0, len(self.rows) - 1)
                )
                assert self.region[0] < self.region[1] < len(self.rows), "a region off the screen"
                self.row = self.column = 0
            case "J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                for row in range(self.row + 1, len(self.rows)):
                    self.rows[row] = ""
            case "K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            case "m":
                pass
            case _:
                raise AssertionError(f"an unknown control: {arguments}{kind}")
