"""The cells of a campaign as a reader wants them: state, best point, what failed, what to doubt.

The launches of a cell are taken together per load point, by the mean over launches; only
points that no flag bars count, and where all are barred the figure says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sgmatrix.core.flags import Kind, is_barred
from sgmatrix.core.layout import base_launch
from sgmatrix.core.reasons import NOT_NEEDED
from sgmatrix.present.outcome import Outcome
from sgmatrix.present.points import Row, measured

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


@dataclass(frozen=True)
class CellView:
    """One cell."""

    cell: str
    status: Literal["ok", "failed", "not run"]
    failures: tuple[Outcome, ...]
    """The launches that failed."""
    ok: int
    planned: int
    flagged: tuple[Row, ...]
    """Points with a flag."""
    loads: tuple[LoadPoint, ...]
    best: LoadPoint | None
    """The highest throughput; a barred one only where there is no other."""
    single: LoadPoint | None
    """At concurrency 1."""
    ready_s: tuple[float, ...]
    """Server start to ready, of each launch that became ready."""
    launches: int
    """Launches that measured something."""


def _figure(rows: Sequence[Row], column: str, kind: Kind) -> Figure | None:
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


def _load_points(rows: Iterable[Row]) -> tuple[LoadPoint, ...]:
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
            _figure(group, "output_tok_s", "throughput"),
            _figure(group, "tpot_ms_mean", "latency"),
            _figure(group, "ttft_ms_p50", "latency"),
            _figure(group, "output_tok_s_per_gpu", "throughput"),
            _figure(group, "power_w_mean", "throughput"),
            _figure(group, "energy_j_per_output_tok", "throughput"),
        )
        for key, group in sorted(groups.items())
    )


def _rank(load: LoadPoint) -> tuple[bool, float]:
    assert load.output_tok_s is not None
    return not load.output_tok_s.barred, load.output_tok_s.mean


def _first_bad_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the first failed or skipped point of each launch."""
    firsts: dict[str, Row] = {}
    for row in rows:
        if row["status"] in ("failed", "skipped"):
            firsts.setdefault(row["launch"], row)
    return list(firsts.values())


def _from_row(row: Row) -> Outcome:
    """Return the outcome of a launch of which only a point is known."""
    return Outcome(
        cell=row["cell"],
        launch=row["launch"],
        attempt=row["attempt"],
        current=row["current"],
        reason=row["reason"],
        what=row["detail"],
        seen=None,
        line=None,
        ready_s=None,
    )


def cell_view(cell: str, rows: Sequence[Row], outcomes: Sequence[Outcome]) -> CellView:
    """Return one cell from its current rows and its current outcomes."""
    ok = [row for row in rows if row["status"] == "ok"]
    failures = tuple(one for one in outcomes if one.reason is not None)
    known = {one.launch for one in failures}
    failures += tuple(_from_row(row) for row in _first_bad_rows(rows) if row["launch"] not in known)
    loads = _load_points(ok)
    return CellView(
        cell=cell,
        status="failed" if failures else "ok" if len(ok) == len(rows) else "not run",
        failures=failures,
        ok=len(ok),
        planned=len(rows),
        flagged=tuple(row for row in ok if row["validity"] not in (None, "valid")),
        loads=loads,
        best=max((load for load in loads if load.output_tok_s), key=_rank, default=None),
        single=next((load for load in loads if load.concurrency == 1), None),
        ready_s=tuple(one.ready_s for one in outcomes if one.ready_s is not None),
        launches=len({base_launch(row["launch"]) for row in ok}),
    )


def cell_views(
    rows: Sequence[Row], outcomes: Sequence[Outcome], plan: Mapping[str, Any]
) -> list[CellView]:
    """Return the cells of the plan in the order of the rows, the base first.

    What is in the history and no longer planned is left out: a cell that was taken out of the
    campaign neither wins nor fails it. So are launches that a decided comparison did not need.
    """
    planned = {
        (one["cell"], one["launch"], point["load_id"])
        for one in plan["launches"]
        for point in one["points"]
    }
    points: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("reason") == NOT_NEEDED:
            continue
        if row["current"] and (row["cell"], row["launch"], row["load_id"]) in planned:
            points.setdefault(row["cell"], []).append(row)
    ended: dict[str, list[Outcome]] = {}
    for one in outcomes:
        if one.current:
            ended.setdefault(one.cell, []).append(one)
    return [cell_view(cell, mine, ended.get(cell, [])) for cell, mine in points.items()]
