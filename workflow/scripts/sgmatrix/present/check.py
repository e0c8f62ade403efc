"""The verdict on a campaign, for CI: which cells failed, are not to be trusted, or did not run."""

from __future__ import annotations

from pathlib import Path

from sgmatrix.core.errors import Refusal
from sgmatrix.core.files import read_json
from sgmatrix.core.flags import flags_of
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.probes import probe_of
from sgmatrix.present.cells import CellView, cell_views
from sgmatrix.present.outcome import outcome
from sgmatrix.present.points import read_points


def _problems(cell: CellView) -> list[str]:
    """Return one line per launch of the cell that failed or is not to be trusted."""
    lines = {one.launch: f"{one.reason}: {one.root}".rstrip(": ") for one in cell.failures}
    doubts: dict[str, list[str]] = {}
    for row in cell.flagged:
        barring = [
            flag.name for flag in flags_of(row["validity"]) if flag.bars and not flag.finding
        ]
        doubts.setdefault(row["launch"], []).extend(
            f"{name} at {row['load_id']}" for name in barring
        )
    for launch, names in doubts.items():
        if names and launch not in lines:
            lines[launch] = "invalid: " + ", ".join(names)
    problems = [f"{cell.cell}, launch {launch}: {text}" for launch, text in lines.items()]
    if cell.status == "not run":
        problems.append(f"{cell.cell}: not run: {cell.ok} of {cell.planned} points were measured")
    return problems


def check(layout: Layout, points: Path) -> str:
    """Return one line that says that all is well.

    Raises:
        Refusal: `cells_failed`, with one line per launch that failed or has a point with a flag
            that bars comparison, and per cell of which something did not run.
    """
    _, rows = read_points(points)
    plan = read_json(layout.plan)
    outcomes = [one for attempt in read_attempts(layout) if (one := outcome(attempt))]
    cells = cell_views(rows, outcomes, plan)
    problems = [line for cell in cells for line in _problems(cell)]
    for planned in plan.get("probes", []):
        probe = probe_of(layout, planned["cell"]) or {}
        if probe.get("status") not in (None, "ok"):
            told = f"{probe['reason']}: {probe['detail'] or ''}".rstrip(": ")
            problems.append(f"{planned['cell']}, probe: {told}")
    if problems:
        raise Refusal("cells_failed", problems)
    points_ok = sum(cell.ok for cell in cells)
    return f"{plan['campaign']}: all {len(cells)} cells are ok, {points_ok} points"
