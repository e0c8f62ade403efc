"""One campaign as one HTML file that needs nothing else: what is best, what failed, what to doubt.

Everything in it comes from the records, so the same records give the same bytes. Text that
a server or a client wrote is cleaned, escaped, and barred from running by the page's policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from sgmatrix.analysis.agreement import repeated_launches
from sgmatrix.core.files import read_json, read_json_or_none, write_text
from sgmatrix.core.flags import Flag, flags_of
from sgmatrix.core.layout import Layout
from sgmatrix.core.reasons import REASONS
from sgmatrix.dataset.collect import Attempt, read_attempts
from sgmatrix.dataset.nodes import newest_node
from sgmatrix.load.node_probe import told
from sgmatrix.present.advice_view import advice_views
from sgmatrix.present.ceilings import ceilings_section, share_text
from sgmatrix.present.cells import CellView, Figure, LoadPoint, Workload, cell_views, offered
from sgmatrix.present.charts import charts, legends, other_legends
from sgmatrix.present.comparisons import (
    comparison_between,
    comparison_views,
    effect_text,
    heading,
    interval_text,
    sentence,
)
from sgmatrix.present.ledger_view import ledger_rows
from sgmatrix.present.oea_view import whole_percent
from sgmatrix.present.outcome import Outcome, outcome, rerun_command
from sgmatrix.present.points import Row, csv_text, read_points
from sgmatrix.present.profile_view import HEAD, profile_views
from sgmatrix.present.references import reference_views
from sgmatrix.present.repeat import headline_metrics, noise_text, percent_text

_TEMPLATES = Path(__file__).resolve().parents[3] / "report"


def number(value: float | None) -> str:
    """Return a quantity with about three digits; a missing one is blank."""
    if value is None:
        return ""
    if 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:,.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def breakable(command: str) -> Markup:
    """Return a command that wraps at the slashes of its path and is copied as it is."""
    program, _, path = command.rpartition(" ")
    wrapped = Markup("/<wbr>").join(path.split("/"))
    return Markup('<span class="nowrap">{}</span> {}').format(program, wrapped)


@dataclass(frozen=True)
class Headline:
    """What a reader takes away in ten seconds."""

    best: CellView | None
    """The best cell that finished whole, at load points that the base has too."""
    top: LoadPoint | None
    """Where it is best."""
    base: CellView | None
    base_top: LoadPoint | None
    """Where the base is best, of its own load points."""
    gain: float | None
    """Throughput of the best over that of the base, less 1."""
    spread: float | None
    """Largest relative difference between launches at a best point; None: no repetition."""
    launches: tuple[int, int]
    left_out: int
    """Points that a flag bars from this comparison."""


def _mean(figure: Figure | None) -> float:
    return 0.0 if figure is None else figure.mean


def _trusted(load: LoadPoint | None) -> Figure | None:
    figure = load.output_tok_s if load else None
    return None if figure is None or figure.barred else figure


def _best_of(cell: CellView, common: set[tuple[Workload, str]] | None) -> LoadPoint | None:
    """Return the trusted point of the highest throughput, of those load points; None: all."""
    loads = [
        load for load in cell.loads if _trusted(load) and (common is None or load.key in common)
    ]
    return max(loads, key=lambda load: _mean(load.output_tok_s), default=None)


def headline(cells: Sequence[CellView]) -> Headline:
    """Compare the best cell with the base, the first cell of the plan."""
    base = cells[0] if cells else None
    base_top = _best_of(base, None) if base else None
    # another load is another question: cells are compared where the base was measured too
    common = {load.key for load in base.loads} if base and base_top else None
    tops = {
        cell.cell: top for cell in cells if cell.status == "ok" and (top := _best_of(cell, common))
    }
    whole = [cell for cell in cells if cell.cell in tops]
    best = max(whole, key=lambda cell: _mean(tops[cell.cell].output_tok_s), default=None)
    ours = _trusted(tops[best.cell]) if best else None
    theirs = _trusted(base_top)
    measured = [cell.launches for cell in cells if cell.launches]
    spreads = [
        (figure.high - figure.low) / figure.mean
        for cell in whole
        if (figure := _trusted(tops[cell.cell])) and figure.launches > 1 and figure.mean
    ]
    return Headline(
        best=best,
        top=tops[best.cell] if best else None,
        base=base,
        base_top=base_top,
        gain=ours.mean / theirs.mean - 1
        if ours and theirs and theirs.mean and best is not base
        else None,
        spread=max(spreads, default=None),
        launches=(min(measured, default=0), max(measured, default=0)),
        left_out=sum(
            any(flag.bars for flag in flags_of(row["validity"])) for c in cells for row in c.flagged
        ),
    )


def failure_lines(cell: CellView) -> list[tuple[str, Outcome]]:
    """Return how a cell failed, launches that failed alike together: (which ones, how)."""
    alike: dict[tuple[str | None, str], list[Outcome]] = {}
    for one in cell.failures:
        alike.setdefault((one.reason, one.root), []).append(one)
    return [
        (
            ("launches " if len(ones) > 1 else "launch ") + ", ".join(one.launch for one in ones),
            ones[0],
        )
        for ones in alike.values()
    ]


def doubts(cells: Sequence[CellView]) -> list[tuple[Flag, list[tuple[str, str, str]]]]:
    """Return each flag with the cells that have it: (cell, at which loads, why at the first)."""
    found: dict[str, tuple[Flag, dict[str, list[Row]]]] = {}
    for cell in cells:
        for row in cell.flagged:
            for flag in flags_of(row["validity"]):
                _, where = found.setdefault(flag.name, (flag, {}))
                where.setdefault(cell.cell, []).append(row)
    return [
        (
            flag,
            [(cell, _at_loads(rows), _why(rows[0], flag.name)) for cell, rows in where.items()],
        )
        for flag, where in found.values()
    ]


def flag_lines(cell: CellView) -> list[str]:
    """Return each flag of a cell's points with the loads that have it, each once."""
    loads: dict[str, list[Row]] = {}
    for row in cell.flagged:
        for flag in flags_of(row["validity"]):
            loads.setdefault(flag.name, []).append(row)
    return [f"{name} at {_at_loads(rows)}" for name, rows in loads.items()]


def _why(row: Row, flag: str) -> str:
    """Return why a point has a flag; empty where its record does not say."""
    told = str(row.get("validity_detail") or "").split(" | ")
    begin = f"{flag}: "
    return next((text.removeprefix(begin) for text in told if text.startswith(begin)), "")


def _at_loads(rows: Sequence[Row]) -> str:
    """Return the loads of some points, each once: `concurrency 1, 8`, or `2.5/s`."""
    closed = [offered(row["concurrency"], None) for row in rows if row["concurrency"] is not None]
    opened = [offered(None, rate) for row in rows if (rate := row.get("request_rate")) is not None]
    kinds = (("concurrency ", closed), ("", opened))
    return ", ".join(name + ", ".join(dict.fromkeys(loads)) for name, loads in kinds if loads)


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


def render(layout: Layout, points: Path) -> tuple[str, str]:
    """Return the report as HTML, and its points as CSV."""
    columns, rows = read_points(points)
    plan = read_json(layout.plan)
    attempts = read_attempts(layout)
    outcomes = [one for attempt in attempts if (one := outcome(attempt))]
    cells = cell_views(rows, outcomes, plan)
    planned = {
        (one["cell"], one["launch"], point["load_id"])
        for one in plan["launches"]
        for point in one["points"]
    }
    current = [
        row
        for row in rows
        if row["current"] and (row["cell"], row["launch"], row["load_id"]) in planned
    ]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
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
    environment.globals |= {"offered": offered, "profile_head": HEAD}
    comparisons = comparison_views(layout, plan, layout.datasets / "comparisons.parquet")
    first = headline(cells)
    html = environment.get_template("report.html.j2").render(
        plan=plan,
        cells=cells,
        headline=first,
        compared=comparison_between(comparisons, first.base.cell, first.best.cell)
        if first.base and first.best
        else None,
        charts=charts(cells, current, plan),
        legends=[*legends(cells), *other_legends(current, plan)],
        current=current,
        repeated=repeated_launches(rows),
        superseded=[row for row in rows if row not in current],
        several_launches=len({row["launch"] for row in rows}) > 1,
        several_workloads=len(
            {(row["dataset"], row["input_len"], row["output_len"]) for row in current}
        )
        > 1,
        reasons=REASONS,
        doubts=doubts(cells),
        comparisons=comparisons,
        ceilings=ceilings_section(layout, current),
        advice=advice_views(plan, current),
        profiles=profile_views(layout, plan["cells"]),
        references=reference_views(plan, current),
        ledger=ledger_rows(plan),
        failure_lines=failure_lines,
        flag_lines=flag_lines,
        rerun=lambda cell: rerun_command(plan["campaign"], cell),
        provenance=provenance(layout, plan, attempts, rows),
    )
    return html, csv_text(columns, rows)


def write_report(layout: Layout, points: Path, html: Path, csv: Path) -> None:
    """Write the report and its points; each whole or not at all."""
    page, table = render(layout, points)
    write_text(csv, table)
    write_text(html, page)
