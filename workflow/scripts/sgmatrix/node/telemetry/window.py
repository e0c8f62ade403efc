"""What telemetry says about a window of time, such as one load point. Pure functions.

`samples` are those of `read_samples` for that window or a larger one, by time. Nothing is
guessed: None is what was not measured, and a sum over GPUs is None when one of them is missing.
Notation  a GPU's reading has a time of its own and may be in two samples; shares are 0..1.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.node.telemetry.samples import Sample
from sgmatrix.node.telemetry.series import area, growth, series, weighted_mean

MAX_GAP_S = 2.0
"""Longest pause between two readings of a GPU that is bridged by a straight line."""


@dataclass(frozen=True)
class Power:
    """Power and energy of some GPUs together, over exactly one window."""

    power_w_mean: float | None
    """Time-weighted mean, summed over the GPUs."""
    counter_j: float | None
    """Growth of the GPUs' own energy counters, summed over them."""


def within(samples: Sequence[Sample], start_s: float, end_s: float) -> list[Sample]:
    """Return the samples of [start, end]."""
    return [sample for sample in samples if start_s <= sample.t_s <= end_s]


def readings(samples: Sequence[Sample], gpu: str, value: str) -> list[tuple[float, float]]:
    """Return (unix time of the reading, value) of one GPU, each reading once."""
    return series(
        (one.get("t", sample.t_s), one[value])
        for sample in samples
        if (one := sample.gpus.get(gpu)) and value in one
    )


def power(
    samples: Sequence[Sample],
    start_s: float,
    end_s: float,
    gpus: Sequence[str],
    max_gap_s: float = MAX_GAP_S,
) -> Power:
    """Return power and energy of those GPUs over exactly [start, end]."""
    means: list[float | None] = []
    counters: list[float | None] = []
    for gpu in gpus:
        joules = area(readings(samples, gpu, "power_w"), start_s, end_s, max_gap_s)
        means.append(None if joules is None else joules / (end_s - start_s))
        counters.append(growth(readings(samples, gpu, "energy_j"), start_s, end_s, max_gap_s))
    return Power(total(means), total(counters))


def total(parts: Sequence[float | None]) -> float | None:
    """Return the sum of parts that are all known; None of no parts, too."""
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def idle_power_w(samples: Sequence[Sample], before_s: float, gpus: Sequence[str]) -> float | None:
    """Return the idle level: the median power of each GPU before a moment, summed."""
    medians = []
    for gpu in gpus:
        values = [value for at_s, value in readings(samples, gpu, "power_w") if at_s < before_s]
        medians.append(statistics.median(values) if values else None)
    return total(medians)


def throttle_shares(
    samples: Sequence[Sample], start_s: float, end_s: float, gpus: Sequence[str]
) -> dict[str, float] | None:
    """Return in which share of samples at least one of those GPUs had each reason.

    Returns:
        None when no sample has reasons; empty when none was ever given.
    """
    told = [
        {reason for lists in found for reason in lists}
        for sample in within(samples, start_s, end_s)
        if (
            found := [
                sample.gpus[gpu]["throttle_reasons"]
                for gpu in gpus
                if "throttle_reasons" in sample.gpus.get(gpu, {})
            ]
        )
    ]
    counts = Counter(reason for reasons in told for reason in reasons)
    return {reason: n / len(told) for reason, n in sorted(counts.items())} if told else None


def host_mean(samples: Sequence[Sample], start_s: float, end_s: float, value: str) -> float | None:
    """Return the mean of a rate of the host; an interval counts by its part in the window."""
    return weighted_mean(
        (
            min(sample.t_s, end_s) - max(sample.t_s - sample.interval_s, start_s),
            sample.host[value],
        )
        for sample in samples
        if sample.interval_s is not None and value in sample.host
    )


def coverage(ticks_s: Sequence[float], start_s: float, end_s: float, hz: float) -> float | None:
    """Return the share of expected ticks that are there, 0..1; None when there is no window.

    A window holds a whole number of ticks or one more, as its borders fall: the smaller number
    is expected, and at least one.
    """
    if not start_s < end_s:
        return None
    there = sum(start_s <= t_s <= end_s for t_s in ticks_s)
    return min(1.0, there / max(1, int((end_s - start_s) * hz + 1e-9)))
