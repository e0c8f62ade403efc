"""What the running server uses now: the end of the telemetry that its own sampler writes.

Not here  the sampling (`node.telemetry`): the main process reads a file and asks no driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.node.telemetry.samples import Sample, last_sample

OLDEST_S = 15.0
"""A reading older than this tells nothing of now."""


@dataclass(frozen=True)
class GpuReading:
    """One GPU; None is what was not measured."""

    index: int
    power_w: float | None
    utilization_share: float | None
    memory_used_mib: float | None


@dataclass(frozen=True)
class Readings:
    """The newest of all running launches; None is what was not measured."""

    gpus: tuple[GpuReading, ...] = ()
    cpu_busy_share: float | None = None
    engine_memory_mib: float | None = None


def read_readings(files: Iterable[Path], now_s: float) -> Readings:
    """Return the newest readings of some `telemetry.jsonl`; empty where there are none."""
    found = [sample for file in files if (sample := last_sample(file)) is not None]
    return readings_of([one for one in found if now_s - one.t_s <= OLDEST_S])


def readings_of(samples: Sequence[Sample]) -> Readings:
    """Return what samples of launches that run side by side say together."""
    gpus = {
        int(index): values
        for one in samples
        for index, values in one.gpus.items()
        if index.isdecimal()
    }
    engines = [one.engine.get("rss_mib") for one in samples]
    return Readings(
        gpus=tuple(
            GpuReading(
                index,
                values.get("power_w"),
                values.get("utilization_share"),
                values.get("memory_used_mib"),
            )
            for index, values in sorted(gpus.items())
        ),
        cpu_busy_share=samples[-1].host.get("cpu_busy_share") if samples else None,
        engine_memory_mib=total(engines),
    )


def total(values: Sequence[float | None]) -> float | None:
    """Return a sum; None of nothing, or where a part was not measured."""
    known = [one for one in values if one is not None]
    return sum(known) if known and len(known) == len(values) else None
