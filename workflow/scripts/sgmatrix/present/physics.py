"""What a plan's ceilings are computed of, and their view, for one invocation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sgmatrix.analysis.advice.experts import oea_advice
from sgmatrix.analysis.advice.memory import memory_advice
from sgmatrix.analysis.advice.noise import noise_advice
from sgmatrix.analysis.advice.piece import Advice
from sgmatrix.analysis.advice.references import reference_advice
from sgmatrix.analysis.ceiling.campaign import matrix_ceilings, planned_loads
from sgmatrix.analysis.ceiling.facts import campaign_facts, device_in, shape_in
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import HARDWARE, MODELS, hardware_file, model_file, model_shape
from sgmatrix.core.facts.references import Reference, read_reference
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.points import point_rows
from sgmatrix.node.facts import gpu_facts
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import Plan, plan_record
from sgmatrix.present.ceiling_view import ceiling_text

REFERENCES = Path("config/reference")


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


def references_for(campaign: Campaign, project: Path) -> list[Reference]:
    """Return the references that a campaign names.

    Raises:
        SgmatrixError: `facts_missing` for one that is not there or wrong.
    """
    return [read_reference(project / REFERENCES, name) for name in campaign.references]


def advice_for(
    campaign: Campaign, plan: Plan, layout: Layout, facts: Mapping[str, Any], project: Path
) -> list[Advice]:
    """Return what a careful expert would say of the plan; without facts, why nothing is said."""
    record = plan_record(plan, campaign, None)
    loads, base = planned_loads(record["launches"]), next(iter(plan.cells))
    rounds = {
        cell: sum(one["cell"] == cell for one in record["launches"]) for cell in record["cells"]
    }
    try:
        shape, device = shape_in(facts), device_in(facts, probe_of_node(layout))
    except SgmatrixError as refusal:
        return [Advice("no_ceilings", refusal.facts, refusal.fix or "see docs/ceiling.md")]
    ceilings = matrix_ceilings(record, shape, device)
    axes = {name: cell["axes"] for name, cell in record["cells"].items()}
    found = [
        *oea_advice(ceilings, loads),
        *memory_advice(ceilings, loads, axes, base),
        *noise_advice(ceilings, base, noise_floor_percent(layout), rounds),
    ]
    for reference in references_for(campaign, project):
        theirs = model_shape(model_file(project / MODELS, reference.file.model))
        on = hardware_file(project / HARDWARE, reference.file.hardware).device()
        found += reference_advice(reference, theirs, on)
    return found


def noise_floor_percent(layout: Layout) -> float | None:
    """Return the typical difference of two launches of one cell, as A/A pairs have shown it."""
    try:
        table = pq.read_table(layout.datasets / "comparisons.parquet", partitioning=None)
    except (OSError, pa.ArrowException):
        return None
    floors = [one for one in table["noise_floor_percent"].to_pylist() if one is not None]
    return max(floors, default=None)


def probe_of_node(layout: Layout) -> dict[str, Any]:
    """Return what was measured of the node; empty: nothing yet."""
    record = read_json_or_none(layout.node_probe) or {}
    measured: dict[str, Any] = record.get("measured") or {}
    return measured


def ceilings_text(campaign: Campaign, plan: Plan, layout: Layout, facts: Mapping[str, Any]) -> str:
    """Return the view that `snakemake ceiling` prints.

    Raises:
        SgmatrixError: `facts_missing`, with what is missing.
    """
    record = plan_record(plan, campaign, None)
    shape, device = shape_in(facts), device_in(facts, probe_of_node(layout))
    ceilings = matrix_ceilings(record, shape, device)
    measured = point_rows(layout)[0] if layout.plan.exists() else []
    text = ceiling_text(
        ceilings,
        measured,
        device=device.name,
        model=shape.name,
        base=next(iter(ceilings), ""),
    )
    others = [name for name in record["cells"] if name not in ceilings]
    left_out = f"\n\nleft out, engines of another kind of device: {', '.join(others)}"
    return text + left_out if others else text
