"""Seconds of a collective over a link.

Source  ring all-reduce moves 2 (n-1)/n of the message over each device's link; a switch that adds
        up moves it once. Measured points: core.facts.hardware.Link.allreduce_s.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Literal

from sgmatrix.core.facts.hardware import Link

Tier = Literal["hard", "practical"]


def floor_s(link: Link, devices: int) -> float:
    """Return the latency of the smallest collective among `devices`, by the nearest known."""
    known = sorted(link.latency_s)
    return link.latency_s[min(known, key=lambda one: abs(one - devices))] if known else 0.0


def allreduce_s(link: Link | None, message_bytes: float, devices: int, tier: Tier) -> float:
    """Return the seconds of an all-reduce of a message that every device holds."""
    if link is None or devices <= 1 or message_bytes <= 0:
        return 0.0
    if tier == "practical" and link.measured_here:
        measured = measured_allreduce_s(link, message_bytes, devices)
        if measured is not None:
            return measured
    wire = message_bytes if link.in_network_reduce else 2 * (devices - 1) / devices * message_bytes
    return _moved_s(link, wire, devices, tier)


def shuffle_s(link: Link | None, sent_bytes: float, devices: int, tier: Tier) -> float:
    """Return the seconds of an all-gather, reduce-scatter or all-to-all.

    `sent_bytes` is what leaves each device.
    """
    if link is None or devices <= 1 or sent_bytes <= 0:
        return 0.0
    return _moved_s(link, sent_bytes, devices, tier)


def _moved_s(link: Link, wire_bytes: float, devices: int, tier: Tier) -> float:
    if tier == "hard":
        return wire_bytes / link.peak_bytes_s
    return floor_s(link, devices) + wire_bytes / link.practical_bytes_s


def measured_allreduce_s(link: Link, message_bytes: float, devices: int) -> float | None:
    """Return what a measured table says of an all-reduce; None where nobody measured."""
    points = link.allreduce_s.get(devices)
    return _between(points, message_bytes) if points else None


def _between(points: Sequence[tuple[float, float]], size: float) -> float:
    """Interpolate by logarithms; below the first its latency, above the last its bandwidth."""
    sizes = [one[0] for one in points]
    if size <= sizes[0]:
        return points[0][1]
    if size >= sizes[-1]:
        return points[-1][1] * size / sizes[-1]
    i = bisect.bisect_right(sizes, size)
    (x0, y0), (x1, y1) = points[i - 1], points[i]
    part = math.log(size / x0) / math.log(x1 / x0)
    return float(y0 ** (1 - part) * y1**part)
