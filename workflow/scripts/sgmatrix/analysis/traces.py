"""Read a Chrome trace of PyTorch's profiler, event by event.

Memory: a piece of the file and one event at a time, whatever the size of the trace; the whole of
one takes about a kilobyte per event.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError

_PIECE = 1 << 20
_EVENT_AT_MOST = 16 << 20
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


def trace_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a gzipped trace in the order of the file.

    Raises:
        SgmatrixError: `trace_damaged` when it is cut off, or no trace.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            yield from _events(iter(lambda: file.read(_PIECE), ""), path)
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, str(error)) from None


def _events(pieces: Iterator[str], path: Path) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    text, place = "", None
    for piece in pieces:
        text += piece
        if place is None:
            begin = _BEGIN.search(text)
            if begin is None:
                text = text[-64:]
                continue
            place = begin.end()
        while True:
            between = _BETWEEN.match(text, place)
            assert between is not None
            place = between.end()
            if text.startswith("]", place):
                return
            try:
                event, place = decoder.raw_decode(text, place)
            except ValueError:
                break  # it goes on in the next piece
            yield event
        text, place = text[place:], 0
        if len(text) > _EVENT_AT_MOST:
            raise _damaged(path, f"no event in {len(text)} characters")
    raise _damaged(path, "it has no traceEvents" if place is None else "it ends within its events")


def _damaged(path: Path, why: str) -> SgmatrixError:
    return SgmatrixError(
        "trace_damaged", f"{path}: {why}", fix="profile the cell again: --forcerun profile_cell"
    )
