"""What a campaign has measured, to be set beside another: also copied, also while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.files import read_json, read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.core.schema_versions import read_dataset
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
    """Return what a campaign has; from its history where its tables are not made yet.

    Raises:
        SgmatrixError: `table_unreadable`.
        ValueError: where the plan is none, or a point stands in the table twice.
    """
    plan = read_json(layout.plan)
    _check(plan)
    table = layout.datasets / "points.parquet"
    rows = read_dataset(table, "points").to_pylist() if table.exists() else point_rows(layout)[0]
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
    seen = set()
    for row in kept:
        place = (row["cell"], row["launch"], row["load_id"])
        if place in seen:  # it would count as one launch more
            raise ValueError(
                f"{row['cell']}, launch {row['launch']}, {row['load_id']} is there twice"
            )
        seen.add(place)
        if row.get("attempt") is not None:
            folder = layout.attempt(row["cell"], row["launch"], row["attempt"])
            if (node := read_json_or_none(folder / "node.json")) is not None:
                nodes[row["cell"]] = node
    return Results(label, plan, kept, nodes)


def _check(plan: Mapping[str, Any]) -> None:
    """Raise where a plan has not the form that a comparison reads."""
    maps: list[tuple[str, Any]] = [("cells", plan["cells"])]
    for cell, one in plan["cells"].items() if isinstance(plan["cells"], dict) else ():
        maps += [(f"cells.{cell}", one), (f"cells.{cell}.axes_text", one["axes_text"])]
    maps += [(name, plan.get(name) or {}) for name in ("engines", "model", "client", "settings")]
    for name, value in maps:
        if not isinstance(value, dict):
            raise TypeError(f"{name} is no mapping")
    for launch in plan["launches"]:
        if launch["cell"] not in plan["cells"]:
            raise ValueError(f"launches has the cell {launch['cell']}, cells has not")
        for point in launch["points"]:
            if not isinstance(point.get("prompts") or {}, dict):
                raise TypeError(f"prompts of {point['load_id']} is no mapping")
