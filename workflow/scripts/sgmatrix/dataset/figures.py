"""The figures of a cell: its launches taken together per load point, by the mean over launches.

Only points that no flag bars count, and where all are barred the figure says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.flags import Kind, is_barred

Row = dict[str, Any]

Workload = tuple[str, int, int]
"""Kind of prompts, input and output tokens: what must be equal for points to be compared."""


@dataclass(frozen=True)
class Figure:
    """One quantity of a cell at one load point, over its launches."""

    mean: float
    low: float
    high: float
    launches: int
    barred: bool
    """All points that it is made of are barred from comparison."""


@dataclass(frozen=True)
class LoadPoint:
    """What a cell did at one load point."""

    workload: Workload
    concurrency: int | None
    """Of the closed loop."""
    request_rate: float | None
    """Of the open loop, requests per second."""
    output_tok_s: Figure | None
    tpot_ms: Figure | None
    ttft_ms: Figure | None = None
    """Median."""
    per_gpu: Figure | None = None
    """Output throughput, tok/s per GPU; None on a node without GPUs."""
    power_w: Figure | None = None
    energy_j: Figure | None = None
    """Per output token."""

    @property
    def per_user(self) -> Figure | None:
        """Speed for one user, tok/s: 1,000 / mean TPOT in ms."""
        ms = self.tpot_ms
        if ms is None or ms.low <= 0:
            return None
        return Figure(1e3 / ms.mean, 1e3 / ms.high, 1e3 / ms.low, ms.launches, ms.barred)

    @property
    def at(self) -> str:
        """Return what is offered, as a reader knows it: `8`, or `2.5/s`."""
        return offered(self.concurrency, self.request_rate)

    @property
    def key(self) -> tuple[Workload, str]:
        """Return what two cells have to have in common to be compared at it."""
        return self.workload, self.at


def offered(concurrency: int | None, request_rate: float | None) -> str:
    """Return a load in short."""
    return f"{concurrency}" if request_rate is None else f"{request_rate:.10g}/s"


def measured(row: Row, column: str) -> float | None:
    """Return a number that was measured: finite and not null."""
    value = row.get(column)
    return float(value) if value is not None and math.isfinite(value) else None


def figure(rows: Sequence[Row], column: str, kind: Kind) -> Figure | None:
    """Return one column of the rows of one load point; None where nothing was measured."""
    values = [
        (value, is_barred(row, kind))
        for row in rows
        if (value := measured(row, column)) is not None
    ]
    kept = [value for value, barred in values if not barred] or [value for value, _ in values]
    if not kept:
        return None
    barred = all(barred for _, barred in values)
    return Figure(sum(kept) / len(kept), min(kept), max(kept), len(kept), barred)


def load_points(rows: Iterable[Row]) -> tuple[LoadPoint, ...]:
    """Return what rows that are ok say, per load point, the closed loop first."""
    groups: dict[tuple[Workload, float, float], list[Row]] = {}
    for row in rows:
        workload = (row["dataset"], row["input_len"], row["output_len"])
        # closed loop first, each from the lowest up
        order = (row.get("request_rate") or 0.0, row["concurrency"] or 0)
        groups.setdefault((workload, *order), []).append(row)
    return tuple(
        LoadPoint(
            key[0],
            group[0]["concurrency"],
            group[0].get("request_rate"),
            figure(group, "output_tok_s", "throughput"),
            figure(group, "tpot_ms_mean", "latency"),
            figure(group, "ttft_ms_p50", "latency"),
            figure(group, "output_tok_s_per_gpu", "throughput"),
            figure(group, "power_w_mean", "throughput"),
            figure(group, "energy_j_per_output_tok", "throughput"),
        )
        for key, group in sorted(groups.items())
    )


def best_load(loads: Iterable[LoadPoint]) -> LoadPoint | None:
    """Return the highest throughput; a barred one only where there is no other."""
    return max((load for load in loads if load.output_tok_s), key=_rank, default=None)


def single_stream(loads: Iterable[LoadPoint]) -> LoadPoint | None:
    """Return the load point at concurrency 1."""
    return next((load for load in loads if load.concurrency == 1), None)


def _rank(load: LoadPoint) -> tuple[bool, float]:
    assert load.output_tok_s is not None
    return not load.output_tok_s.barred, load.output_tok_s.mean


def first_bad_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the first failed or skipped point of each launch."""
    firsts: dict[str, Row] = {}
    for row in rows:
        if row["status"] in ("failed", "skipped"):
            firsts.setdefault(row["launch"], row)
    return list(firsts.values())
