"""Whether the values of a record are of the kinds that the tables and the pages count on.

A record of an earlier version may lack a value; one that is there is of its kind, or the file is
not what a launch wrote.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from sgmatrix.core.clock import parse_utc
from sgmatrix.core.schemas import points_schema


def point_unfit(record: Mapping[str, Any]) -> str | None:
    """Return which value of a point's record is of another kind; None: none is."""
    kinds = _kinds()
    for name, value in record.items():
        kind = kinds.get(name)
        if value is not None and kind is not None and not _fits(value, kind):
            return f"has {name} {str(value)[:40]!r}, which is no {_name(kind)}"
    wall_s = record.get("client_wall_s")
    if wall_s is not None and not _is_number(wall_s):
        return f"has client_wall_s {str(wall_s)[:40]!r}, which is no number"
    return None


def final_unfit(record: Mapping[str, Any]) -> str | None:
    """Return which value of a closing record is of another kind; None: none is."""
    closed = record.get("closed")
    parts: list[tuple[str, Any, Callable[[Any], bool]]] = [
        (name, record.get(name), lambda value: isinstance(value, str))
        for name in ("status", "reason", "detail")
    ]
    parts += [
        (name, record.get(name), lambda value: isinstance(value, dict))
        for name in ("closed", "server_times", "warmup")
    ]
    parts.append(("finished_at", record.get("finished_at"), _is_time))
    times = closed.get("times") if isinstance(closed, dict) else None
    parts.append(("closed.times", times, lambda value: isinstance(value, dict)))
    for name, value in (("server_times", record.get("server_times")), ("closed.times", times)):
        if isinstance(value, dict):
            parts += [(f"{name}.{key}", one, _is_number) for key, one in value.items()]
    for name, value, fits in parts:
        if value is not None and not fits(value):
            return f"has {name} {str(value)[:40]!r}, which is of another kind"
    return None


@functools.cache
def _kinds() -> dict[str, pa.DataType]:
    return {field.name: field.type for field in points_schema(())}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any) -> bool:
    try:
        parse_utc(value)
    except (TypeError, ValueError):
        return False
    return True


def _fits(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_floating(kind):
        return _is_number(value)
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool) and -most <= value < most
    if pa.types.is_timestamp(kind):
        return _is_time(value)
    return isinstance(value, str)


def _name(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return "number of its size"
    return "time" if pa.types.is_timestamp(kind) else "text"
