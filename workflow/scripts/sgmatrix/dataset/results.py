"""What a campaign has measured, to be set beside another: also copied, also while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from sgmatrix.core.files import read_json, read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.points import point_rows

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """One campaign."""

    label: str
    """What it is called beside the other one."""
    plan: Mapping[str, Any]
    """`plan.json`."""
    rows: tuple[Row, ...]
    """Of `points`: what counts of today's plan."""
    nodes: Mapping[str, Mapping[str, Any]]
    """Cell to the facts of the node that it was measured on last."""


def read_results(layout: Layout, label: str) -> Results:
    """Return what a campaign has; from its history where its tables are not made yet."""
    plan = read_json(layout.plan)
    table = layout.datasets / "points.parquet"
    rows = (
        pq.read_table(table, partitioning=None).to_pylist()
        if table.exists()
        else point_rows(layout)[0]
    )
    keys = {
        (launch["cell"], launch["launch"], point["load_id"]): point["key"]
        for launch in plan["launches"]
        for point in launch["points"]
    }
    kept = tuple(
        row
        for row in rows
        if row["current"]
        and row["point_key"] == keys.get((row["cell"], row["launch"], row["load_id"]))
    )
    nodes = {}
    for row in kept:
        if row.get("attempt") is not None:
            folder = layout.attempt(row["cell"], row["launch"], row["attempt"])
            if (node := read_json_or_none(folder / "node.json")) is not None:
                nodes[row["cell"]] = node
    return Results(label, plan, kept, nodes)
