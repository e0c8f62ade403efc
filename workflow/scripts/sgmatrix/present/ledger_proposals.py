"""Ledger entries that a campaign's comparisons come to, as YAML that a person reads and pastes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.parquet as pq

from sgmatrix.analysis.ledger.propose import Proposals, proposals
from sgmatrix.core.files import read_json, read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.core.yaml_strict import yaml_text
from sgmatrix.plan.ledger import Entry


def proposed(layout: Layout, campaign: str, entries: Iterable[Entry]) -> str:
    """Return what the finished comparisons of a campaign come to, from the records alone."""
    points, compared = (layout.datasets / f"{n}.parquet" for n in ("points", "comparisons"))
    found = Proposals()
    if layout.plan.exists() and points.exists() and compared.exists():
        plan = read_json(layout.plan)
        rows = pq.read_table(points, partitioning=None).to_pylist()
        nodes = {cell: _node(layout, cell, rows) for cell in plan["cells"]}
        found = proposals(plan, pq.read_table(compared, partitioning=None).to_pylist(), rows, nodes)
    return proposal_text(campaign, found, entries)


def _node(layout: Layout, cell: str, points: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the facts of the node of a cell's last attempt that counts; empty: none is told."""
    attempts = [
        (row["started_at"], row["launch"], row["attempt"])
        for row in points
        if row["cell"] == cell and row["current"] and row["started_at"] is not None
    ]
    if not attempts:
        return {}
    _, launch, attempt = max(attempts)
    facts: Mapping[str, Any] | None = read_json_or_none(
        layout.attempt(cell, launch, attempt) / "node.json"
    )
    return facts or {}


def proposal_text(campaign: str, found: Proposals, entries: Iterable[Entry]) -> str:
    """Return proposed entries as YAML to be pasted, with what a person has to know as comments.

    Args:
        campaign: its name.
        found: what its comparisons come to.
        entries: of the ledger, as it is.
    """
    unfit = [f"# {line}; run snakemake first" for line in found.unfit]
    if not found.entries:
        return "\n".join(
            [*unfit, f"# nothing is decided: no comparison of {campaign} gives an entry"]
        )
    known = {one.id: one for one in entries}
    lines = [
        f"# Proposed by the comparisons of {campaign}. A person accepts an entry: read it, correct",
        "# it, and paste it below `entries:` of the ledger. Nothing was written.",
        *unfit,
    ]
    for entry in found.entries:
        if (old := known.get(entry["id"])) is not None:
            lines.append(f"  # {old.id} is in the ledger, {old.status}, of {old.date}: replace it")
        _, _, text = yaml_text({"entries": [entry]}).partition("\n")
        lines.append(textwrap.indent(text, "  "))
    return "\n".join(lines).rstrip()
