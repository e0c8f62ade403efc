"""What no campaign file may hold, wherever it stands: secrets, and texts that no process takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sgmatrix.core.redact import is_secret_name, redact_text

_LONGEST_TEXT = 100_000
"""Linux refuses a single argument or variable of 128 KiB."""


def insane_places(data: Any, place: str = "") -> Iterator[str]:
    """Yield a line per value that may not be there; no secret is ever repeated in it.

    Args:
        data: what a YAML file holds, or a part of it.
        place: its key path.
    """
    if isinstance(data, Mapping):
        for key, value in data.items():
            if not isinstance(key, str):
                yield f"{place or 'the file'}: key {key!r} is no text; fix: write it in quotes"
                continue
            inner = f"{place}.{key}" if place else key
            if _is_given(value) and is_secret_name(key):
                yield f"{inner}: is a secret; {_MEND}"
            else:
                yield from insane_places(value, inner)
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from insane_places(value, f"{place}[{i}]")
    elif isinstance(data, str):
        yield from _insane_text(data, place)


_MEND = "fix: export it in the shell that runs snakemake, a campaign file is copied into records"


def _is_given(value: Any) -> bool:
    return value not in (None, False, "", [], {})


def _insane_text(text: str, place: str) -> Iterator[str]:
    if redact_text(text) != text:
        yield f"{place}: holds a secret; {_MEND}"
    if "\0" in text:
        yield f"{place}: holds a NUL character, which no process can be given; fix: take it out"
    try:
        text.encode()
    except UnicodeEncodeError:
        yield f"{place}: holds half a character (a surrogate); fix: take it out"
    if len(text) > _LONGEST_TEXT:
        yield f"{place}: {len(text)} characters, allowed: {_LONGEST_TEXT}; fix: use a file"
