"""What telemetry says about a window of time, such as one load point. Pure functions.

`samples` are those of `read_samples` for that window or a larger one, by time. Nothing is
guessed: None is what was not measured, and a sum over GPUs is None when one of them is missing.
Notation  a GPU's reading has a time of its own and may be in two samples; shares are 0..1.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
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
    energy_j: float | None
    """Area under the power, summed over the GPUs."""
    power_w_mean_by_gpu: Mapping[str, float | None]
    counter_j: float | None
    """Growth of the GPUs' own energy counters."""
    counter_difference_share: float | None
    """(energy_j - counter_j) / counter_j."""
    held_s: float
    """Longest time at the borders that no reading enclosed; the nearest value was held."""


@dataclass(frozen=True)
class Window:
    """All that telemetry says about one window."""

    power: Power
    idle_power_w: float | None
    temperature_c_max: float | None
    throttle_shares: Mapping[str, float] | None
    """Share of samples in which a GPU had that reason; reasons that never held are absent."""
    foreign_cpu_cores_mean: float | None
    coverage: float | None
    gpu_coverage: Mapping[str, float | None]


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
    means: dict[str, float | None] = {}
    counters: list[float | None] = []
    held_s = 0.0
    for gpu in gpus:
        found = area(readings(samples, gpu, "power_w"), start_s, end_s, max_gap_s)
        means[gpu] = found.value / (end_s - start_s) if found else None
        held_s = max(held_s, found.held_s if found else 0.0)
        counters.append(growth(readings(samples, gpu, "energy_j"), start_s, end_s, max_gap_s))
    mean_w, counter_j = total(list(means.values())), total(counters)
    energy_j = None if mean_w is None else mean_w * (end_s - start_s)
    difference = (energy_j - counter_j) / counter_j if energy_j is not None and counter_j else None
    return Power(mean_w, energy_j, means, counter_j, difference, held_s)


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


def temperature_c_max(
    samples: Sequence[Sample], start_s: float, end_s: float, gpus: Sequence[str]
) -> float | None:
    """Return the highest temperature of any of those GPUs."""
    found = [
        one["temperature_c"]
        for sample in within(samples, start_s, end_s)
        for gpu in gpus
        if "temperature_c" in (one := sample.gpus.get(gpu, {}))
    ]
    return max(found, default=None)


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


def summarise(
    samples: Sequence[Sample],
    start_s: float,
    end_s: float,
    *,
    hz: float,
    gpus: Sequence[str] = (),
    idle_before_s: float | None = None,
    max_gap_s: float = MAX_GAP_S,
) -> Window:
    """Return all that the samples say about [start, end].

    Args:
        samples: of that window or a larger one, by time.
        start_s: unix time.
        end_s: unix time.
        hz: the pace that was asked of the sampler.
        gpus: the keys of the GPUs that were to be measured; empty on a CPU engine.
        idle_before_s: before which nothing ran, such as the start of the server; None: unknown.
        max_gap_s: longest pause between two readings of a GPU that may be bridged.
    """
    span = (start_s, end_s)
    return Window(
        power=power(samples, *span, gpus, max_gap_s),
        idle_power_w=None if idle_before_s is None else idle_power_w(samples, idle_before_s, gpus),
        temperature_c_max=temperature_c_max(samples, *span, gpus),
        throttle_shares=throttle_shares(samples, *span, gpus),
        foreign_cpu_cores_mean=host_mean(samples, *span, "foreign_cpu_cores"),
        coverage=coverage([sample.t_s for sample in samples], *span, hz),
        gpu_coverage={
            gpu: coverage([t for t, _ in readings(samples, gpu, "power_w")], *span, hz)
            for gpu in gpus
        },
    )
