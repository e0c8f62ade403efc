"""What produced the numbers, from the records alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.figures import Row
from sgmatrix.dataset.history import Attempt
from sgmatrix.dataset.nodes import newest_node
from sgmatrix.load.node_probe import told


def provenance(
    layout: Layout, plan: dict[str, Any], attempts: Sequence[Attempt], rows: Sequence[Row]
) -> list[tuple[str, str]]:
    """Return what produced the numbers, from the records alone."""

    def seen(column: str) -> str:
        return ", ".join(sorted({str(row[column]) for row in rows if row[column] is not None}))

    began = [attempt.spec["asked_at"] for attempt in attempts]
    ended = [attempt.final["finished_at"] for attempt in attempts if attempt.final]
    model = plan["model"]
    facts = [
        ("campaign", plan["campaign"]),
        ("study", plan["study"]),
        ("measured (UTC)", f"{min(began)[:19]} to {max(ended)[:19]}" if ended else ""),
        ("engine", seen("engine")),
        ("engine version", seen("engine_version")),
        ("model", f"{model['name']} (facts {model['digest'][:12]})"),
        ("load client", seen("client") or plan["client"]["id"]),
        ("harness version", seen("harness") or str(plan["harness"])),
        ("GPUs per cell", seen("gpus")),
    ]
    node = newest_node(layout)
    facts += [
        (f"node: {name}", str(value))
        for name, value in sorted(node.items())
        if not isinstance(value, dict | list)
    ]
    facts += _node_probe(read_json_or_none(layout.node_probe))
    return [(name, value) for name, value in facts if value]


def _node_probe(record: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return what was measured of the node before the first launch."""
    if record is None:
        return []
    node = record["node"]
    gpus = ", ".join(sorted({str(gpu["name"]) for gpu in node["gpus"] or []}))
    where = f"{node['hostname']}, {node['processor']}" + (f", {gpus}" if gpus else "")
    torch = f"torch {record['torch']}" if record["torch"] else "no torch"
    with_what = f"{torch} of {record['engine']}, {record['started_at'][:19]}"
    return [("node probe", "; ".join([*told(record), f"{where} ({with_what})"]))]
