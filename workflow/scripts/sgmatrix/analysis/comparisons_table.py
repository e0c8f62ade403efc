"""The table `comparisons`: one row per comparison and load point."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from sgmatrix.analysis.compared import comparison_rows, planned_keys
from sgmatrix.core.files import read_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import with_metadata
from sgmatrix.core.schemas_compare import COMPARISONS, COMPARISONS_VERSION


def write_comparisons(layout: Layout, points: Path, out: Path) -> None:
    """Conclude the campaign's comparisons from its table `points`; without any, no rows."""
    plan = read_json(layout.plan)
    keys = planned_keys(plan)
    rows = [
        row
        for row in pq.read_table(points, partitioning=None).to_pylist()
        # what is still of another server, or another load, is to be measured again
        if row["point_key"] == keys.get((row["cell"], row["launch"], row["load_id"]))
    ]
    made = comparison_rows(plan["campaign"], plan.get("comparisons", []), rows, keys)
    schema = with_metadata(
        COMPARISONS, "comparisons", COMPARISONS_VERSION, {"campaign": plan["campaign"]}
    )
    write_parquet(table_from_rows(made, schema), out)
