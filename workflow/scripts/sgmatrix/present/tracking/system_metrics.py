"""Telemetry of one launch as MLflow's system metrics: a mean per 5 seconds, by its own names.

The step is the second since the start of the server, so that launches lie over one another in
MLflow's charts. All values, twice a second, are in `datasets/telemetry.parquet`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

EVERY_S = 5

# (source, name in telemetry) -> (name in MLflow, factor)
_NAMES = {
    ("gpu", "power_w"): ("gpu_{device}_power_usage_watts", 1.0),
    ("gpu", "utilization_share"): ("gpu_{device}_utilization_percentage", 100.0),
    ("gpu", "memory_used_mib"): ("gpu_{device}_memory_usage_megabytes", 1.048576),
    ("gpu", "temperature_c"): ("gpu_{device}_temperature_celsius", 1.0),
    ("host", "cpu_busy_share"): ("cpu_utilization_percentage", 100.0),
    ("host", "memory_used_mib"): ("system_memory_usage_megabytes", 1.048576),
    ("engine", "cpu_cores"): ("engine_cpu_cores", 1.0),
    ("engine", "rss_mib"): ("engine_memory_usage_megabytes", 1.048576),
    ("server", "running"): ("server_running_requests", 1.0),
    ("server", "queued"): ("server_queued_requests", 1.0),
    ("server", "token_usage"): ("server_token_usage", 1.0),
    ("server", "output_tok_s"): ("server_output_tok_s", 1.0),
}


@dataclass(frozen=True)
class Reading:
    """The mean of one quantity over 5 seconds."""

    key: str
    value: float
    time_ms: int
    """Begin of the 5 seconds, Unix time."""
    step: int
    """Seconds since the start of the server."""


def system_metrics(table: pa.Table) -> list[Reading]:
    """Return the readings of a launch, by name and time.

    Args:
        table: its `telemetry`.
    """
    names = pa.array(sorted({name for _, name in _NAMES}))
    kept = table.filter(pc.is_in(table["name"], names)).select(
        ["source", "name", "device", "t_s", "time", "value"]
    )
    bins: dict[tuple[str, int], dict[int | None, list[float]]] = {}
    starts: dict[tuple[str, int], float] = {}
    for row in kept.to_pylist():
        known = _NAMES.get((row["source"], row["name"]))
        if known is None:
            continue
        key = f"system/{known[0].format(device=row['device'])}"
        place = math.floor(row["t_s"] / EVERY_S)
        starts.setdefault((key, place), row["time"].timestamp() - row["t_s"])
        ranks = bins.setdefault((key, place), {})
        ranks.setdefault(row["device"], []).append(row["value"] * known[1])
    return [
        Reading(
            key,
            _together(key, [fmean(values) for values in ranks.values()]),
            round(1000 * (starts[key, place] + place * EVERY_S)),
            place * EVERY_S,
        )
        for (key, place), ranks in sorted(bins.items())
    ]


def _together(key: str, of_ranks: list[float]) -> float:
    """Return what the data-parallel ranks of a server are together: a share is their mean."""
    return fmean(of_ranks) if key.endswith("token_usage") else sum(of_ranks)
