"""How long the phases of a launch took, from its closing record."""

from __future__ import annotations

from typing import Any

from sgmatrix.dataset.history import Attempt


def span_s(times: dict[str, Any] | None, start: str, end: str) -> float | None:
    """Return the seconds between two of the times; None where one is not there."""
    return times[end] - times[start] if times and start in times and end in times else None


def phases_s(attempt: Attempt) -> dict[str, float]:
    """Return the seconds that the phases of a complete attempt took; only those it had."""
    final = attempt.final or {}
    points = [attempt.point(point["load_id"]) or {} for point in attempt.spec["points"]]
    walls = [point["client_wall_s"] for point in points if point.get("client_wall_s") is not None]
    spans = {
        "start_s": span_s(final.get("server_times"), "started", "ready"),
        "warmup_s": (final.get("warmup") or {}).get("took_s"),
        "bench_s": sum(walls) if walls else None,
        "teardown_s": span_s((final.get("closed") or {}).get("times"), "stopping", "closed"),
    }
    return {name: span for name, span in spans.items() if span is not None}
