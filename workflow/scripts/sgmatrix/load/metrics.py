"""What is derived from a load point's requests, its server's own view and its surroundings.

Each quantity is defined in docs/metrics.md. What was not measured is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sgmatrix.load.evidence import Surroundings
from sgmatrix.load.offer import in_flight
from sgmatrix.load.serverview import ServerView
from sgmatrix.load.timeline import steady_part


def derived(
    point: Mapping[str, Any],
    rows: Sequence[dict[str, Any]],
    metrics: Mapping[str, Any],
    server: ServerView,
    around: Surroundings,
    gpus: int,
) -> dict[str, float | int | str | None]:
    """Return the derived metrics of a point that has at least one ok request.

    Args:
        point: what was offered, from the plan.
        rows: its requests, latencies in milliseconds.
        metrics: what `load.result.summarise` returned for them.
        server: the point as the server saw it.
        around: telemetry of the measured window.
        gpus: of the cell; 0 on the CPU engine.
    """
    duration_s, output_tok_s = metrics.get("duration_s"), metrics.get("output_tok_s")
    tpot_ms = metrics.get("tpot_ms_mean")
    tokens = sum(row["output_tokens"] for row in rows if row["ok"])
    return {
        **_steady(point, rows, duration_s),
        **_goodput(point.get("slo") or {}, rows, duration_s),
        "concurrency_mean": mean_concurrency(rows, duration_s),
        "tok_s_per_user": 1e3 / tpot_ms if tpot_ms else None,
        "output_tok_s_per_gpu": output_tok_s / gpus if output_tok_s and gpus else None,
        "peak_output_tok_s": server.peak_output_tok_s,
        "server_tpot_ms": server.tpot_ms,
        "cached_share": server.cached_share,
        "running_mean": server.running_mean,
        "running_max": server.running_max,
        "queued_max": server.queued_max,
        "retracted": server.retracted,
        "token_usage_max": server.token_usage_max,
        "graph_share": server.graph_share,
        "power_w_mean": around.power_w_mean,
        "power_idle_w": around.power_idle_w,
        "energy_j_per_output_tok": around.energy_j / tokens
        if around.energy_j is not None and tokens
        else None,
        "foreign_cpu_share": around.foreign_share,
    }


def mean_concurrency(rows: Sequence[Mapping[str, Any]], duration_s: float | None) -> float | None:
    """Return the mean number of requests in flight by Little's law: sum of E2E / duration.

    None where a request failed: for how long it was in flight is not known.
    """
    if not duration_s or not all(row["ok"] for row in rows):
        return None
    return math.fsum(row["e2e_ms"] for row in rows) / 1e3 / duration_s


def _steady(
    point: Mapping[str, Any], rows: Sequence[dict[str, Any]], duration_s: float | None
) -> dict[str, float | None]:
    part = None
    if point.get("request_rate") is None and duration_s:
        part = steady_part(rows, in_flight(point) or 1, duration_s)
    return {
        "steady_output_tok_s": part.output_tok_s if part else None,
        "steady_share": part.share if part else None,
    }


def is_good(row: Mapping[str, Any], slo: Mapping[str, float]) -> bool:
    """Tell whether a request kept the objective.

    One token has no TPOT to keep; of several in one piece it is not known, and not good.
    """
    return bool(row["ok"]) and all(
        row["output_tokens"] == 1 if row[latency] is None else row[latency] <= limit
        for latency, limit in slo.items()
    )


def _goodput(
    slo: Mapping[str, float], rows: Sequence[Mapping[str, Any]], duration_s: float | None
) -> dict[str, float | str | None]:
    if not slo or not duration_s:
        return {"slo": None, "goodput_request_s": None, "good_share": None}
    good = sum(is_good(row, slo) for row in rows)
    return {
        "slo": ", ".join(f"{latency} <= {limit:g}" for latency, limit in sorted(slo.items())),
        "goodput_request_s": good / duration_s,
        "good_share": good / len(rows),
    }
