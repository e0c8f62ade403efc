"""One campaign as one HTML file that needs nothing else: what is best, what failed, what to doubt.

Everything in it comes from the records, so the same records give the same bytes. Text that
a server or a client wrote is cleaned, escaped, and barred from running by the page's policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.analysis.agreement import repeated_launches
from sgmatrix.core.files import read_json, read_json_or_none, write_text
from sgmatrix.core.layout import Layout
from sgmatrix.core.reasons import REASONS
from sgmatrix.dataset.figures import Row, offered
from sgmatrix.dataset.history import read_attempts
from sgmatrix.present.advice_view import advice_views
from sgmatrix.present.ceilings import ceilings_section, share_text
from sgmatrix.present.cells import cell_views
from sgmatrix.present.comparisons import (
    comparison_between,
    comparison_views,
    effect_text,
    heading,
    interval_text,
    sentence,
)
from sgmatrix.present.figures.charts import charts, other_entries
from sgmatrix.present.figures.levers import share_out
from sgmatrix.present.ledger_view import ledger_rows
from sgmatrix.present.oea_view import whole_percent
from sgmatrix.present.outcome import outcome, rerun_command
from sgmatrix.present.points import csv_text, read_points
from sgmatrix.present.profile_view import HEAD, profile_views
from sgmatrix.present.references import reference_views
from sgmatrix.present.repeat import headline_metrics, noise_text, percent_text
from sgmatrix.present.report.doubts import doubts, failure_lines, flag_lines
from sgmatrix.present.report.headline import headline
from sgmatrix.present.report.heat import against_base, levers
from sgmatrix.present.report.numbers import breakable, number
from sgmatrix.present.report.phases import NAMES, phases
from sgmatrix.present.report.provenance import provenance
from sgmatrix.present.report.script import policy, read_script
from sgmatrix.present.templates import FOLDER, templates

_FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "breakable": breakable,
    "percent": percent_text,
    "noise": noise_text,
    "headline_metrics": headline_metrics,
    "effect_text": effect_text,
    "interval_text": interval_text,
    "heading": heading,
    "sentence": sentence,
    "whole_percent": whole_percent,
    "share": share_text,
}
_KNOWN = {
    "offered": offered,
    "profile_head": HEAD,
    "phase_names": NAMES,
    "reasons": REASONS,
    "failure_lines": failure_lines,
    "flag_lines": flag_lines,
}


def render(layout: Layout, points: Path) -> tuple[str, str]:
    """Return the report as HTML, and its points as CSV."""
    columns, rows = read_points(points)
    plan = read_json(layout.plan)
    attempts = read_attempts(layout)
    outcomes = [one for attempt in attempts if (one := outcome(attempt))]
    cells = cell_views(rows, outcomes, plan)
    current, others = _planned(rows, plan)
    comparisons = comparison_views(layout, plan, layout.datasets / "comparisons.parquet")
    first = headline(cells)
    axes = {name: cell["axes_text"] for name, cell in plan["cells"].items()}
    shared = share_out(cells, axes)
    script = read_script(FOLDER)
    html = (
        templates(_FILTERS, **_KNOWN)
        .get_template("report.html.j2")
        .render(
            plan=plan,
            cells=cells,
            headline=first,
            compared=comparison_between(comparisons, first.base.cell, first.best.cell)
            if first.base and first.best
            else None,
            charts=charts(cells, current, plan, shared),
            shared=shared,
            other_entries=other_entries(current, plan),
            heats=against_base(cells, current),
            lever_heats=levers(cells, axes),
            phases=phases(attempts, [cell.cell for cell in cells]),
            current=current,
            repeated=repeated_launches(rows),
            superseded=others,
            several_launches=len({row["launch"] for row in rows}) > 1,
            several_workloads=len({_workload(row) for row in current}) > 1,
            doubts=doubts(cells),
            left_out=(read_json_or_none(layout.left_out) or {}).get("left_out", []),
            comparisons=comparisons,
            ceilings=ceilings_section(layout, current),
            advice=advice_views(plan, current),
            profiles=profile_views(layout, plan["cells"]),
            references=reference_views(plan, current),
            ledger=ledger_rows(plan),
            rerun=lambda cell: rerun_command(plan["campaign"], cell),
            provenance=provenance(layout, plan, attempts, rows),
            script=script,
            policy=policy(script),
        )
    )
    return html, csv_text(columns, rows)


def _workload(row: Row) -> tuple[str, int, int]:
    return row["dataset"], row["input_len"], row["output_len"]


def _planned(rows: Sequence[Row], plan: Mapping[str, Any]) -> tuple[list[Row], list[Row]]:
    """Return the current rows of what is planned, and the others."""
    planned = {
        (one["cell"], one["launch"], point["load_id"])
        for one in plan["launches"]
        for point in one["points"]
    }
    current: list[Row] = []
    others: list[Row] = []
    for row in rows:
        here = row["current"] and (row["cell"], row["launch"], row["load_id"]) in planned
        (current if here else others).append(row)
    return current, others


def write_report(layout: Layout, points: Path, html: Path, csv: Path) -> None:
    """Write the report and its points; each whole or not at all."""
    page, table = render(layout, points)
    write_text(csv, table)
    write_text(html, page)
