"""Arithmetic of values over time: borders by interpolation, areas by the trapezoid rule.

A series is what was measured, (seconds, value) by rising time. None is the answer where too
little was measured: a gap that is too long is not bridged, and nothing is made up beyond the
ends but a value held for less than such a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

Points = Sequence[tuple[float, float]]


def series(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points by rising time, each time once."""
    return sorted(dict(points).items())


def at(points: Points, when_s: float, max_gap_s: float) -> float | None:
    """Return the value at a moment, on the line between its two neighbours.

    None when one of them is missing or they are more than `max_gap_s` apart.
    """
    for (t0, v0), (t1, v1) in pairwise(points):
        if t0 <= when_s <= t1:
            if t1 - t0 > max_gap_s and when_s not in {t0, t1}:
                return None
            return v0 + (v1 - v0) * (when_s - t0) / (t1 - t0)
    return next((value for t, value in points if t == when_s), None)


def area(points: Points, start_s: float, end_s: float, max_gap_s: float) -> float | None:
    """Return the area under a series over exactly [start, end], in its unit times seconds.

    At a border that lacks a neighbour the nearest value is held. None when a gap within is
    longer than `max_gap_s`, an end lies further than that from the nearest point, or no point
    is within and none on either side.
    """
    if not points or start_s >= end_s or start_s > points[-1][0] or end_s < points[0][0]:
        return None
    first, last = _border(points, start_s, max_gap_s), _border(points, end_s, max_gap_s)
    if first is None or last is None:
        return None
    inner = [(t, v) for t, v in points if start_s < t < end_s]
    corners = [(start_s, first), *inner, (end_s, last)]
    total = 0.0
    for (t0, v0), (t1, v1) in pairwise(corners):
        if t1 - t0 > max_gap_s:
            return None
        total += (v0 + v1) / 2 * (t1 - t0)
    return total


def _border(points: Points, when_s: float, max_gap_s: float) -> float | None:
    """Return the value at a border, on the line or held."""
    value = at(points, when_s, max_gap_s)
    if value is not None:
        return value
    (first_s, first), (last_s, last) = points[0], points[-1]
    away_s = max(first_s - when_s, when_s - last_s)
    if not 0 < away_s <= max_gap_s:
        return None
    return first if when_s < first_s else last


def growth(points: Points, start_s: float, end_s: float, max_gap_s: float) -> float | None:
    """Return by how much a counter grew over [start, end].

    None when it was set back meanwhile or an end has no neighbours: a counter is not held.
    """
    first, last = at(points, start_s, max_gap_s), at(points, end_s, max_gap_s)
    if first is None or last is None or start_s >= end_s:
        return None
    inner = [first, *(v for t, v in points if start_s < t < end_s), last]
    return None if any(b < a for a, b in pairwise(inner)) else last - first


def weighted_mean(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Return the mean of (weight, value); None when nothing has weight."""
    pairs = [(weight, value) for weight, value in pairs if weight > 0]
    whole = math.fsum(weight for weight, _ in pairs)
    return math.fsum(weight * value for weight, value in pairs) / whole if whole > 0 else None
