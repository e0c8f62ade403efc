"""When the requests of a closed loop began, and the part of it in which the load was whole.

SGLang's clients write latencies without moments. In a closed loop the moments follow: the
first `concurrency` requests begin together, and each further one begins when the next place
is free, in the order of the load. Where the end of that course differs from the duration that
the client measured, nothing is said.

Source    SGLang's clients let requests through a fair semaphore in the order of the load
          (`sglang.benchmark.serving` and its Rust port, 0.5.23); the steady part as in its
          `steady_state.py`, but as the sum of all such times, not the longest one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

AGREES = 0.02
"""Relative difference of the course's end and the client's duration, below which it is told."""
_ROUNDING_S = 1e-6
"""By which sums of the same latencies may differ."""
STEADY_SHARE = 0.95
"""Part of the concurrency that has to run for a time to count as steady."""


@dataclass(frozen=True)
class Steady:
    """The part of a load point in which at least 95 % of the concurrency was running."""

    seconds: float
    share: float
    """Of the whole duration."""
    output_tok_s: float | None
    """Output tokens that came in it, per second; None where it is empty."""


def start_times_s(latencies_s: Sequence[float], concurrency: int) -> list[float]:
    """Return when each request began, in seconds from the first, for a closed loop."""
    running: list[float] = []
    starts = []
    for latency in latencies_s:
        start = heapq.heappop(running) if len(running) >= concurrency else 0.0
        starts.append(start)
        heapq.heappush(running, start + latency)
    return starts


def course_s(latencies_s: Sequence[float], concurrency: int) -> float:
    """Return how long a closed loop takes whose free places are taken at once."""
    starts = start_times_s(latencies_s, concurrency)
    return max(start + latency for start, latency in zip(starts, latencies_s, strict=True))


def steady_part(
    rows: Sequence[dict[str, Any]], concurrency: int, duration_s: float
) -> Steady | None:
    """Return the steady part of a closed loop.

    Args:
        rows: the requests, in the order of the load; all of them have to be ok, since a failed
            one held its place for a time that is not known.
        concurrency: requests in flight.
        duration_s: as the client measured it.

    Returns:
        None where the course cannot be told.
    """
    if not rows or not all(row["ok"] for row in rows):
        return None
    latencies = [row["e2e_ms"] / 1e3 for row in rows]
    starts = start_times_s(latencies, concurrency)
    ends = [start + latency for start, latency in zip(starts, latencies, strict=True)]
    if abs(max(ends) - duration_s) > AGREES * duration_s:
        return None
    spans = _whole_spans(starts, ends, math.ceil(STEADY_SHARE * min(concurrency, len(rows))))
    seconds = sum(end - start for start, end in spans)
    tokens = sum(_tokens_within(row, start, spans) for row, start in zip(rows, starts, strict=True))
    return Steady(
        seconds=seconds,
        share=min(1.0, seconds / duration_s),
        output_tok_s=tokens / seconds if seconds > 0 else None,
    )


def _whole_spans(
    starts: Sequence[float], ends: Sequence[float], enough: int
) -> list[tuple[float, float]]:
    """Return the times in which enough requests ran, in order."""
    changes = sorted([(t, 1) for t in starts] + [(t, -1) for t in ends])
    spans: list[tuple[float, float]] = []
    running, since = 0, 0.0
    index = 0
    while index < len(changes):
        moment = changes[index][0]
        before = running
        while index < len(changes) and changes[index][0] == moment:
            running += changes[index][1]
            index += 1
        if running >= enough > before:
            since = moment
        elif before >= enough > running and moment > since:
            spans.append((since, moment))
    return spans


def _tokens_within(
    row: dict[str, Any], start: float, spans: Sequence[tuple[float, float]]
) -> float:
    """Return how many output tokens of a request came in the spans; chunks share them evenly."""
    moment = start + row["ttft_ms"] / 1e3
    moments = [moment]
    for gap in row["itl_ms"]:
        moment += gap / 1e3
        moments.append(moment)
    place, inside = 0, 0
    for moment in moments:  # both rise
        while place < len(spans) and spans[place][1] + _ROUNDING_S < moment:
            place += 1
        inside += place < len(spans) and spans[place][0] - _ROUNDING_S <= moment
    return float(row["output_tokens"] * inside / len(moments))
