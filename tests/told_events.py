"""Events as the jobs of a campaign write them, for the live display."""

from __future__ import annotations

from typing import Any

LOADS = ("c0001-i16-o4-random-ids", "c0002-i16-o4-random-ids")


def event(
    kind: str, cell: str = "tp1", launch: str = "1", *, time_s: float = 1000.0, **facts: Any
) -> dict[str, Any]:
    return {"time_s": time_s, "event": kind, "cell": cell, "launch": launch, **facts}


def point(
    load: str, rate: float, tpot: float = 2.0, validity: str = "valid", **facts: Any
) -> dict[str, Any]:
    """Return the `point_done` of a point that went well."""
    measured = {"output_tok_s": rate, "tpot_ms_mean": tpot, "validity": validity}
    return event("point_done", load=load, status="ok", reason=None, **measured, **facts)
