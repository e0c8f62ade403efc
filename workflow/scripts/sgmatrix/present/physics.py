"""What a plan's ceilings are computed of, and their view, for one invocation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.analysis.ceiling.campaign import CellCeilings, matrix_ceilings
from sgmatrix.analysis.ceiling.facts import campaign_facts, device_in, shape_in
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.collect import point_rows
from sgmatrix.node.facts import gpu_facts
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import Plan, plan_record
from sgmatrix.present.ceiling_view import ceiling_text


def facts_for(campaign: Campaign, plan: Plan, project: Path, *, here: bool) -> dict[str, Any]:
    """Return the facts of model and hardware that `plan.json` keeps.

    `here` tells whether the servers run on this machine, so that its driver may be asked.
    """
    kinds = {cell.device for cell in plan.cells.values()}
    hardware = campaign.node.hardware
    ask = here and kinds == {"cuda"} and hardware is None
    names = [str(gpu["name"]) for gpu in (gpu_facts() or [])] if ask else []
    return campaign_facts(
        plan.model,
        device="cuda" if "cuda" in kinds else "cpu",
        hardware=hardware,
        gpu_names=names,
        project=project,
    )


def probe_of_node(layout: Layout) -> dict[str, Any]:
    """Return what was measured of the node; empty: nothing yet."""
    record = read_json_or_none(layout.root / "node-probe.json") or {}
    measured: dict[str, Any] = record.get("measured") or {}
    return measured


def ceilings_of(
    record: Mapping[str, Any], facts: Mapping[str, Any], layout: Layout
) -> dict[str, CellCeilings]:
    """Return the ceilings of all planned cells.

    Raises:
        SgmatrixError: `facts_missing`, with what is missing.
    """
    return matrix_ceilings(record, shape_in(facts), device_in(facts, probe_of_node(layout)))


def ceilings_text(campaign: Campaign, plan: Plan, layout: Layout, facts: Mapping[str, Any]) -> str:
    """Return the view that `snakemake ceiling` prints.

    Raises:
        SgmatrixError: `facts_missing`, with what is missing.
    """
    record = plan_record(plan, campaign, None)
    measured = point_rows(layout)[0] if layout.plan.exists() else []
    device = device_in(facts, probe_of_node(layout))
    return ceiling_text(
        ceilings_of(record, facts, layout),
        measured,
        device=device.name,
        model=shape_in(facts).name,
        base=next(iter(plan.cells)),
    )
