"""What differs now from when a cell was measured, fact by fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def differences(then: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield a line per fact that is not the same, in the order of the names."""
    for name in sorted(then.keys() | now.keys()):
        key = f"{path}{name}"
        before, after = then.get(name), now.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{key}.")
        elif before != after:
            yield f"{key}: {_shown(before)} then, {_shown(after)} now"


def _shown(value: Any) -> str:
    text = "not there" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
