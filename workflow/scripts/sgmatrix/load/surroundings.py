"""What telemetry saw of the machine while a load point was measured."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.load.evidence import Surroundings
from sgmatrix.node.telemetry.samples import Sample, read_errors, read_facts, read_samples
from sgmatrix.node.telemetry.window import (
    coverage,
    host_mean,
    idle_power_w,
    power,
    readings,
    throttle_shares,
    within,
)

_TAKEN_MIB = 64.0
"""GPU memory beyond the first reading from which on a server has begun to fill it."""
_COUNTED_SHARE = 0.5
"""Part of a window that the energy counters have to cover to speak for it."""


def surroundings(
    telemetry: Path,
    window_s: tuple[float, float],
    *,
    hz: float,
    devices: Sequence[str],
) -> Surroundings:
    """Return what telemetry says of a window.

    Args:
        telemetry: the sampler's file of the launch.
        window_s: begin and end, Unix time.
        hz: samples per second that were asked for; 0: none, and then none is missed.
        devices: the cell's, `gpu-0` and so on, or `cpu`.
    """
    if not hz:
        return Surroundings()
    names = [name.removeprefix("gpu-") for name in devices if name.startswith("gpu-")]
    facts = read_facts(telemetry) if names else {}
    gpus = [_index(name, facts) for name in names]
    samples = read_samples(telemetry, end_s=window_s[1])
    taken_s = _first_taken_s(samples, gpus)
    foreign = host_mean(samples, *window_s, "foreign_cpu_cores")
    power_w = _power_w(samples, window_s, gpus)
    return Surroundings(
        coverage=_coverage(samples, window_s, hz, gpus),
        errors=tuple(_told(telemetry)),
        foreign_share=None if foreign is None else foreign / len(os.sched_getaffinity(0)),
        foreign_pids=_foreign_pids(within(samples, *window_s), gpus),
        throttled=throttle_shares(samples, *window_s, gpus) or {},
        power_w_mean=power_w,
        power_idle_w=None if taken_s is None else idle_power_w(samples, taken_s, gpus),
        energy_j=None if power_w is None else power_w * (window_s[1] - window_s[0]),
    )


def _told(telemetry: Path) -> Iterator[str]:
    """Yield why the sampler could not measure something, in its own words."""
    for error in read_errors(telemetry):
        detail = f" ({error['detail']})" if error.get("detail") else ""
        yield f"{error.get('source', 'sampler')}: {error.get('kind', 'error')}{detail}"


def _index(name: str, facts: Mapping[str, Any]) -> str:
    """Return the index under which a GPU is sampled, of one that is named by its UUID."""
    for index, gpu in facts.get("gpus", {}).items():
        if str(gpu.get("uuid", "")).lower().startswith(name.lower()):
            return str(index)
    return name


def _power_w(
    samples: Sequence[Sample], window_s: tuple[float, float], gpus: Sequence[str]
) -> float | None:
    """Return the mean power of a window: by the GPUs' energy counters, else by their power.

    NVML's power is a mean over the last second and lags; its energy counter does not. The
    counter is read up to the last sample of the window, since none comes after it yet.
    """
    start_s, end_s = window_s
    ends = [max((t for t, _ in readings(samples, gpu, "energy_j")), default=0.0) for gpu in gpus]
    end_s = min([end_s, *ends])
    if end_s - start_s >= _COUNTED_SHARE * (window_s[1] - start_s):
        # between two readings of a counter nothing is lost, however far they are apart
        counted = power(samples, start_s, end_s, gpus, max_gap_s=math.inf).counter_j
        if counted is not None:
            return counted / (end_s - start_s)
    return power(samples, *window_s, gpus).power_w_mean


def _coverage(
    samples: Sequence[Sample], window_s: tuple[float, float], hz: float, gpus: Sequence[str]
) -> Mapping[str, float]:
    """Return the share of samples that are there, for each source that was expected.

    The tick before the window counts with it: a short window need not hold one.
    """
    span = (window_s[0] - 1 / hz, window_s[1])
    ticks = {"host": [sample.t_s for sample in samples if sample.host]}
    ticks |= {f"gpu {gpu}": [t for t, _ in readings(samples, gpu, "power_w")] for gpu in gpus}
    return {source: coverage(seen, *span, hz) or 0.0 for source, seen in ticks.items()}


def _first_taken_s(samples: Sequence[Sample], gpus: Sequence[str]) -> float | None:
    """Return when the server began to fill the memory of its GPUs; None where it never did."""
    first: dict[str, float] = {}
    for sample in samples:
        for gpu in gpus:
            used: Any = sample.gpus.get(gpu, {}).get("memory_used_mib")
            if used is not None and used > first.setdefault(gpu, used) + _TAKEN_MIB:
                return sample.t_s
    return None


def _foreign_pids(samples: Sequence[Sample], gpus: Sequence[str]) -> list[int]:
    return sorted(
        {
            pid
            for sample in samples
            for gpu in gpus
            for pid in sample.gpus.get(gpu, {}).get("foreign_pids", ())
        }
    )
