"""The results in a file: one JSON object, a list of them, or one after another as in JSONL.

Tolerant of what the tools really write: NaN and Infinity, a byte order mark, CRLF, blank
lines, objects over many lines. Not of a line that ends in the middle, nor of an empty file:
a file that is there is not yet one that is whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError

_BLANK = " \t\r\n"
_AS_WRITTEN = "name a result file as the tool wrote it"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Found:
    """One result and where it stands."""

    file: str
    line: int
    """Where it begins, or the list that it is in; from 1."""
    item: int
    """Which result of the file it is; from 1."""
    data: dict[str, Any]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def unreadable(place: str, problem: str, fix: str) -> SgmatrixError:
    """Return the refusal of a file or of one of its results."""
    return SgmatrixError("result_unreadable", f"{place}: {problem}", fix=fix)


def read_file(path: Path) -> bytes:
    """Return what a file holds.

    Raises:
        SgmatrixError: `result_unreadable` when it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise unreadable(str(path), why, "name a result file") from None


def results(name: str, data: bytes) -> list[Found]:
    """Return the results in what a file of that name holds, in their order.

    Raises:
        SgmatrixError: `result_unreadable` when it holds nothing, or something that is no
            JSON object; with the line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        what = f"byte {problem.start} is not UTF-8"
        raise unreadable(name, what, _AS_WRITTEN) from None
    found = list(_results(name, text))
    if not found:
        raise unreadable(name, "holds no result", "the run wrote none; take the file out")
    return found


def _results(name: str, text: str) -> Iterator[Found]:
    at, line, seen, item = 0, 1, 0, 0
    while (at := _after_blanks(text, at)) < len(text):
        line += text.count("\n", seen, at)
        seen = at
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as problem:
            raise unreadable(f"{name}:{line}", *_why(problem, text)) from None
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                what = f"a result is an object, not {type(one).__name__}"
                raise unreadable(f"{name}:{line}", what, _AS_WRITTEN)
            item += 1
            yield Found(name, line, item, one)
        at = end


def _why(problem: Exception, text: str) -> tuple[str, str]:
    if not isinstance(problem, json.JSONDecodeError):
        return f"no JSON that can be read: {problem}", _AS_WRITTEN
    if not text[problem.pos :].strip() or problem.msg.startswith("Unterminated"):
        return "ends in the middle", "its run was cut off; take out that result"
    what = f"no JSON: {problem.msg}, line {problem.lineno}, column {problem.colno}"
    return what, _AS_WRITTEN


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at
