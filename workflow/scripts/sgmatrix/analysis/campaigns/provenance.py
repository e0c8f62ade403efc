"""What is not the same of two campaigns' surroundings: engine, client, model, node, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.campaigns.match import shown
from sgmatrix.dataset.results import Results


@dataclass(frozen=True)
class Change:
    """One fact that differs."""

    fact: str
    base: str
    other: str
    cells: tuple[str, ...]
    """Where it differs, of those that both campaigns have."""


def changes(base: Results, other: Results, cells: Sequence[str]) -> list[Change]:
    """Return the facts that differ, in the order of their names, those of all cells as one."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        pairs = _differ(cell_facts(base, cell), cell_facts(other, cell))
        for fact, before, after in pairs:
            found.setdefault((fact, shown(before), shown(after)), []).append(cell)
    return [Change(*key, tuple(where)) for key, where in sorted(found.items())]


def cell_facts(results: Results, cell: str) -> dict[str, Any]:
    """Return with what a cell was measured, as far as it was recorded."""
    planned = results.plan["cells"][cell]
    plan = results.plan  # of an earlier version it may lack some facts
    model, settings = plan.get("model") or {}, plan.get("settings") or {}
    engine = dict((plan.get("engines") or {}).get(planned.get("engine"), {}))
    engine["version"] = reported(results, "engine_version", cell) or engine.get("version")
    return {
        "engine": engine,
        "flags": planned.get("flags") or {},
        "env": planned.get("env") or {},
        "patches": planned.get("patches") or {},
        "client": reported(results, "client", cell) or (plan.get("client") or {}).get("id"),
        "harness": reported(results, "harness", cell),
        "model": {name: model.get(name) for name in ("name", "digest")},
        "node": _node(results.nodes.get(cell, {})),
        "warmup": settings.get("warmup") or {},
        "validity": settings.get("validity") or {},
    }


def reported(results: Results, column: str, cell: str | None = None) -> str | None:
    """Return what the measured points say in a column, each value once; None: nothing."""
    values = {
        str(row[column])
        for row in results.rows
        if row.get(column) is not None and row["status"] == "ok" and cell in (None, row["cell"])
    }
    return ", ".join(sorted(values)) or None


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a node, its GPUs by kind and without what tells one from the next."""
    gpus = node.get("gpus") or []
    facts = {name: value for name, value in node.items() if name != "gpus"}
    if gpus:
        facts["gpus"] = len(gpus)
    for name in ("name", "driver_version", "power.limit", "memory.total"):
        if values := sorted({str(gpu.get(name)) for gpu in gpus}):
            facts[f"gpu_{name.replace('.', '_')}"] = ", ".join(values)
    return facts


def _differ(
    base: Mapping[str, Any], other: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted(base.keys() | other.keys()):
        before, after = base.get(name), other.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _differ(before, after, f"{path}{name}.")
        elif before != after:
            yield f"{path}{name}", before, after
