"""The cells of a campaign as a reader wants them: state, best point, what failed, what to doubt.

Not here: how launches are taken together (`dataset.figures`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sgmatrix.core.layout import base_launch
from sgmatrix.core.reasons import NOT_NEEDED
from sgmatrix.dataset.figures import (
    LoadPoint,
    Row,
    best_load,
    first_bad_rows,
    load_points,
    single_stream,
)
from sgmatrix.present.outcome import Outcome


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
    failures += tuple(_from_row(row) for row in first_bad_rows(rows) if row["launch"] not in known)
    loads = load_points(ok)
    return CellView(
        cell=cell,
        status="failed" if failures else "ok" if len(ok) == len(rows) else "not run",
        failures=failures,
        ok=len(ok),
        planned=len(rows),
        flagged=tuple(row for row in ok if row["validity"] not in (None, "valid")),
        loads=loads,
        best=best_load(loads),
        single=single_stream(loads),
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
