"""The metrics of one launch, as plain data.

`by_concurrency/…` have the concurrency as their step, so that MLflow's own charts are curves;
`by_request_rate/…` have requests per 1,000 s; a launch with several workloads has a curve of
each, `by_concurrency/<workload>/…`. `summary/…`, `phase/…` have one value. What was not measured
is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sgmatrix.core.flags import is_barred
from sgmatrix.dataset.figures import Row, measured
from sgmatrix.present.points import ok_ratio

BY_CONCURRENCY = (
    "output_tok_s",
    "total_tok_s",
    "ttft_ms_p50",
    "ttft_ms_p99",
    "tpot_ms_p50",
    "tpot_ms_p99",
    "itl_ms_p99",
    "e2e_ms_p99",
    "steady_output_tok_s",
    "peak_output_tok_s",
    "tok_s_per_user",
    "output_tok_s_per_gpu",
    "goodput_request_s",
    "concurrency_mean",
    "running_mean",
    "cached_share",
    "power_w_mean",
    "energy_j_per_output_tok",
    "ceiling_practical_tok_s",
    "practical_ratio",
    "hard_ratio",
)


@dataclass(frozen=True)
class Value:
    """One value of a metric."""

    key: str
    value: float
    time_ms: int
    step: int


def launch_metrics(
    points: Sequence[Row], phases: Mapping[str, float], end_ms: int
) -> tuple[Value, ...]:
    """Return the metrics of one launch from the records of its points.

    Args:
        points: one row per load point.
        phases: seconds per phase.
        end_ms: end of the launch; time of the metrics that have no step.
    """
    values = []
    several = len({workload(row) for row in points}) > 1
    for row in points:
        start, wall = row.get("started_at"), row.get("client_wall_s")
        time_ms = end_ms if start is None else round(1000 * (start.timestamp() + (wall or 0)))
        found = {name: measured(row, name) for name in BY_CONCURRENCY} | {
            "ok_ratio": ok_ratio([row])
        }
        values += [
            _on_series(row, name, value, time_ms, several)
            for name, value in found.items()
            if value is not None
        ]
    single = next((row for row in points if row["concurrency"] == 1), {})
    rates = [
        (rate, row["concurrency"], measured(row, "practical_ratio"))
        for row in points
        if row["concurrency"] is not None and (rate := _rate(row)) is not None
    ]
    peak, at, share = max(rates, key=lambda one: one[:2], default=(None, None, None))
    once: dict[str, float | None] = {
        "summary/peak_output_tok_s": peak,
        "summary/peak_at_concurrency": at,
        "summary/ceiling_fraction": share,
        "summary/single_stream_tpot_ms": measured(single, "tpot_ms_mean"),
        "summary/single_stream_tok_s": measured(single, "output_tok_s"),
        "summary/ok_ratio": ok_ratio(points),
        **{f"phase/{name}": span for name, span in phases.items()},
    }
    return (
        *values,
        *(Value(key, float(value), end_ms, 0) for key, value in once.items() if value is not None),
    )


def workload(row: Row) -> str:
    """Return the load without how much of it at once, as `i256-o128-random`."""
    return str(row.get("load_id") or "").partition("-")[2]


def _on_series(row: Row, name: str, value: float, time_ms: int, several: bool) -> Value:
    """Return a value on the curve of its kind of load, whose step is a whole number."""
    key = f"{workload(row)}/{name}" if several else name
    if (rate := row.get("request_rate")) is not None:
        return Value(f"by_request_rate/{key}", value, time_ms, round(1000 * rate))
    return Value(f"by_concurrency/{key}", value, time_ms, row["concurrency"])


def _rate(row: Row) -> float | None:
    """Return the throughput of a point that may be compared."""
    return None if is_barred(row, "throughput") else measured(row, "output_tok_s")
