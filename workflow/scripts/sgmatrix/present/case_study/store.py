"""The small part of a finished campaign that a page of documentation stands on, as files.

What is taken are the campaign's own tables, as they are but for the folder of the project, which
stands as `{project}`; telemetry as means over some seconds; and the facts of plan and node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, read_json_or_none, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import write_parquet
from sgmatrix.core.schema_versions import read_dataset
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.occupancy import LaunchTime, Occupancy, occupancy, read_events

TABLES = ("points", "cells", "comparisons", "ceilings", "experts")
SERIES = ("power_w", "sm_mhz", "memory_used_mib", "temperature_c")
"""Of each GPU."""
EVERY_S = 2.0
FACTS = "campaign.json"


@dataclass(frozen=True)
class Study:
    """What a page is made of."""

    folder: Path
    facts: Mapping[str, Any]
    points: tuple[dict[str, Any], ...]
    """Current ones."""
    comparisons: tuple[dict[str, Any], ...]
    ceilings: tuple[dict[str, Any], ...]
    experts: tuple[dict[str, Any], ...]
    telemetry: tuple[dict[str, Any], ...]
    occupancy: Occupancy

    @property
    def cells(self) -> list[str]:
        """Return the cells in the order of the plan; the first is the base."""
        return list(self.facts["order"])

    def of_cell(self, cell: str) -> list[dict[str, Any]]:
        return [row for row in self.points if row["cell"] == cell]


def take(layout: Layout, folder: Path) -> None:
    """Take out of a campaign what a page needs.

    Args:
        layout: of the campaign, whose tables are made.
        folder: files of these names are replaced.

    Raises:
        SgmatrixError: `table_unreadable` where the campaign has no tables.
    """
    plan = read_json(layout.plan)
    root = _project(plan)
    for name in TABLES:
        path = layout.datasets / f"{name}.parquet"
        read_dataset(path, name)  # refuses what is not one
        table = pq.read_table(path, partitioning=None)
        write_parquet(_without_project(table, root), folder / path.name)
    telemetry = pq.read_table(layout.datasets / "telemetry.parquet", partitioning=None)
    write_parquet(_thinned(telemetry), folder / "telemetry.parquet")
    facts = json.dumps(_facts(layout, plan)).replace(root, "{project}")
    write_json(folder / FACTS, json.loads(facts))


def read_study(folder: Path) -> Study:
    """Return what was taken.

    Raises:
        SgmatrixError: `table_unreadable`, with the file.
    """
    facts = read_json_or_none(folder / FACTS)
    if facts is None:
        raise SgmatrixError(
            "table_unreadable",
            f"{folder / FACTS} is not there",
            fix="python -m sgmatrix.present.case_study take results/<campaign> <folder>",
        )

    def rows(name: str) -> tuple[dict[str, Any], ...]:
        return tuple(read_dataset(folder / f"{name}.parquet", name).to_pylist())

    launches = tuple(
        LaunchTime(**{**one, "gaps_s": tuple(one["gaps_s"])}) for one in facts["launch_times"]
    )
    return Study(
        folder,
        facts,
        tuple(row for row in rows("points") if row["current"]),
        rows("comparisons"),
        rows("ceilings"),
        rows("experts"),
        rows("telemetry"),
        Occupancy(launches, tuple(facts["handovers_s"])),
    )


def _project(plan: Mapping[str, Any]) -> str:
    """Return the folder of the project where it was measured."""
    path = str(plan["model"]["path"])
    return path.partition("/results/models/")[0] if "/results/models/" in path else "\0"


def _without_project(table: pa.Table, root: str) -> pa.Table:
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_string(field.type):
            column = pc.replace_substring(column, root, "{project}")
        elif pa.types.is_list(field.type) and pa.types.is_string(field.type.value_type):
            texts = [
                None if row is None else [text.replace(root, "{project}") for text in row]
                for row in column.to_pylist()
            ]
            column = pa.chunked_array([pa.array(texts, field.type)])
        table = table.set_column(place, field, column)
    return table


def _thinned(table: pa.Table) -> pa.Table:
    """Return the means of the GPUs' series over some seconds, in the schema of telemetry."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        if row["source"] == "gpu" and row["name"] in SERIES and row["value"] is not None:
            key = (
                *(row[name] for name in ("cell", "launch", "attempt", "device", "name")),
                *(row[name] for name in ("phase", "load_id")),
                row["t_s"] // EVERY_S,
            )
            groups.setdefault(key, []).append(row)
    means = []
    for rows in groups.values():
        count = len(rows)
        means.append(
            {
                **rows[0],
                "t_s": round(sum(row["t_s"] for row in rows) / count, 2),
                "value": round(sum(row["value"] for row in rows) / count, 2),
            }
        )
    return pa.Table.from_pylist(means, schema=table.schema)


def _facts(layout: Layout, plan: Mapping[str, Any]) -> dict[str, Any]:
    attempts = read_attempts(layout)
    time = occupancy(attempts, read_events(layout.events))
    return {
        "campaign": plan["campaign"],
        "cells": {name: cell["axes_text"] for name, cell in plan["cells"].items()},
        "order": list(_counts(plan)),  # the keys of a JSON file have none
        "launches": _counts(plan),
        "comparisons": plan.get("comparisons", []),
        "engines": plan["engines"],
        "client": plan["client"]["id"],
        "model": plan["model"]["name"],
        "warnings": plan.get("warnings", []),
        "nodes": _nodes(attempts),
        "node_probe": read_json_or_none(layout.node_probe),
        "launch_times": [vars(one) for one in time.launches],
        "handovers_s": list(time.handovers_s),
    }


def _counts(plan: Mapping[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for launch in sorted(plan["launches"], key=lambda one: one["position"]):
        counts[launch["cell"]] = counts.get(launch["cell"], 0) + 1
    return counts


def _nodes(attempts: Any) -> list[dict[str, Any]]:
    """Return the machines that it was measured on, with the launches of each."""
    found: dict[str, dict[str, Any]] = {}
    for attempt in attempts:
        node = read_json_or_none(attempt.folder / "node.json")
        if attempt.current and node is not None:
            one = found.setdefault(json.dumps(node, sort_keys=True), {"node": node, "launches": []})
            one["launches"].append(list(_name(attempt)))
    return list(found.values())


def _name(attempt: Any) -> Iterator[str]:
    yield attempt.identity["cell"]
    yield attempt.identity["launch"]
