"""What the report says of the campaign's comparisons, and of OEA where the arms differ in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sgmatrix.core.layout import Layout
from sgmatrix.present.oea_view import OeaView, oea_view

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ComparisonView:
    """One comparison."""

    name: str
    baseline: str
    variant: str
    metric: str
    primary: Row
    rows: tuple[Row, ...]
    """All load points, the primary one among them."""
    oea: OeaView | None


def comparison_views(
    layout: Layout, plan: Mapping[str, Any], table: Path
) -> tuple[ComparisonView, ...]:
    """Return the comparisons of a campaign in its own order; none without a table."""
    if not table.exists():
        return ()
    rows = pq.read_table(table, partitioning=None).to_pylist()
    names = list(dict.fromkeys(row["comparison"] for row in rows))
    return tuple(
        _view(layout, plan, [row for row in rows if row["comparison"] == name]) for name in names
    )


def _view(layout: Layout, plan: Mapping[str, Any], rows: list[Row]) -> ComparisonView:
    primary = next(row for row in rows if row["primary"])
    return ComparisonView(
        name=primary["comparison"],
        baseline=primary["baseline"],
        variant=primary["variant"],
        metric=primary["metric"],
        primary=primary,
        rows=tuple(rows),
        oea=oea_view(layout, plan, primary, rows),
    )


def comparison_lines(layout: Layout) -> list[str]:
    """Return one line per comparison, for the terminal."""
    table = layout.datasets / "comparisons.parquet"
    if not table.exists():
        return []
    rows = pq.read_table(table, partitioning=None).to_pylist()
    return [
        " ".join(
            part
            for part in (
                f"{row['comparison']}: {row['variant']} against {row['baseline']},",
                f"{row['metric']} at {row['load_id']}:",
                row["verdict_text"],
                signed_percent(row["effect_percent"]),
                f"({interval_text(row)})" if row["interval_low_percent"] is not None else "",
                f"after {row['launches_used']} of {row['launches_planned']} launches per arm",
            )
            if part
        )
        for row in rows
        if row["primary"]
    ]


def signed_percent(value: float | None) -> str:
    """Return a change in percent with its sign; empty where there is none."""
    return "" if value is None else f"{value:+.1f} %"


def interval_text(row: Row) -> str:
    """Return the interval of a change; empty where there is none."""
    low, high = row["interval_low_percent"], row["interval_high_percent"]
    return "" if low is None else f"{low:+.1f} to {high:+.1f} %"
