"""Values of foreign results, read as they are meant: what is no number is None, never 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sgmatrix.core.redact import redact, redact_prose

_INT32_MAX = 2**31 - 1
_LISTS = frozenset(
    {
        "errors",
        "generated_texts",
        "individual_request_metrics",
        "input_lens",
        "itls",
        "latencies",
        "output_lens",
        "queue_times",
        "start_times",
        "ttfts",
    }
)
"""One value per request: megabytes of times and texts that no column comes from."""


def number(value: Any) -> float | None:
    """Return a finite number, also from a text; None for anything else, NaN and infinity too."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def count(value: Any, limit: int = _INT32_MAX) -> int | None:
    """Return a whole number between 0 and the limit; None for anything else."""
    read = number(value)
    return int(read) if read is not None and read == int(read) and 0 <= read <= limit else None


def text(value: Any) -> str | None:
    """Return a text that is not empty, without secrets; None for anything else."""
    if not isinstance(value, str) or not value.strip():
        return None
    # JSON can hold halves of UTF-16 pairs, which no UTF-8 file can
    return redact_prose(value.strip()).encode("utf-8", "replace").decode("utf-8")


def at(data: Mapping[str, Any], path: str) -> Any:
    """Return what lies at a dotted path of nested objects; None when nothing does."""
    inner: Any = data
    for name in path.split("."):
        inner = inner.get(name) if isinstance(inner, Mapping) else None
    return inner


def rest(data: Mapping[str, Any], used: frozenset[str]) -> dict[str, Any]:
    """Return what a result holds beyond the paths used: strict JSON, without secrets.

    NaN and infinity become texts. Of a list with one value per request only the number of
    values is left.
    """
    masked: dict[str, Any] = redact(_without(data, used, ""))
    return {key: _strict(value) for key, value in masked.items()}


def _without(data: Mapping[str, Any], used: frozenset[str], above: str) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for key, value in data.items():
        path = f"{above}{key}"
        if path in used:
            continue
        if key in _LISTS and isinstance(value, list):
            left[key] = {"left_out": len(value)}
        elif isinstance(value, Mapping) and value:
            if inner := _without(value, used, f"{path}."):
                left[key] = inner
        else:
            left[key] = value
    return left


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_strict(inner) for inner in value]
    if isinstance(value, str):
        return redact_prose(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
