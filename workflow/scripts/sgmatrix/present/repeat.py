"""Whether a cell that was repeated from its own record agrees with before."""

from __future__ import annotations

from pathlib import Path

from sgmatrix.analysis.agreement import Agreement, agreements
from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.collect import point_rows
from sgmatrix.plan.plan import Plan


def agreement_tables(layout: Layout, plan: Plan) -> dict[tuple[str, str], list[Agreement]]:
    """Compare each launch that was repeated with its last complete attempt before; store it.

    Writes `cells/<cell>/launch-<n>/agreement.json`; a launch without an earlier attempt that
    measured the same server is left out.
    """
    rows, _ = point_rows(layout)
    tables = {}
    for launch in plan.launches:
        mine = [row for row in rows if (row["cell"], row["launch"]) == (launch.cell, launch.launch)]
        new = {row["load_id"]: row for row in mine if row["current"] and row["status"] == "ok"}
        keys = {row["cell_key"] for row in new.values()}
        numbers = [
            row["attempt"]
            for row in mine
            if not row["current"] and row["status"] == "ok" and row["cell_key"] in keys
        ]
        if not new or not numbers:
            continue
        old = {row["load_id"]: row for row in mine if row["attempt"] == max(numbers)}
        # every earlier start of the same server tells of its noise, whichever launch it was
        others = [
            row
            for row in rows
            if row["cell"] == launch.cell
            and row["cell_key"] in keys
            and row["status"] == "ok"
            and row not in list(new.values())
            and row not in list(old.values())
        ]
        table = agreements(old, new, others)
        path: Path = layout.launch(launch.cell, launch.launch) / "agreement.json"
        attempts = {"old": max(numbers), "new": next(iter(new.values()))["attempt"]}
        write_json(path, {"attempts": attempts, "points": [one.record() for one in table]})
        tables[launch.cell, launch.launch] = table
    return tables


def agreement_lines(table: list[Agreement]) -> list[str]:
    """Return a table for the terminal: throughput and mean latencies, before and now."""
    lines = [("load point", "metric", "before", "now", "change", "noise", "")]
    lines += [
        (
            one.load_id,
            one.metric,
            _number(one.old),
            _number(one.new),
            _percent(one.difference),
            _noise(one),
            one.verdict,
        )
        for one in table
        if one.metric.endswith(("tok_s", "_mean"))
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(7)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _noise(one: Agreement) -> str:
    if one.noise is None:
        return f"unknown, n={one.starts}"
    return f"± {100 * one.noise:.1f} %, n={one.starts}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"
