"""Whether a cell that was repeated from its own record agrees with before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sgmatrix.analysis.agreement import Agreement, Repeated, repeated_launches
from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.points import point_rows
from sgmatrix.plan.plan import Plan


def store_agreements(layout: Layout, plan: Plan) -> list[Repeated]:
    """Compare each launch of the plan that was repeated with before, and store what it says.

    Writes `cells/<cell>/launch-<n>/agreement.json`; a launch without an earlier attempt that
    measured the same server is left out.
    """
    rows, _ = point_rows(layout)
    planned = {(one.cell, one.launch) for one in plan.launches}
    mine = [one for one in repeated_launches(rows) if (one.cell, one.launch) in planned]
    for one in mine:
        path: Path = layout.launch(one.cell, one.launch) / "agreement.json"
        attempts = {"old": one.old, "new": one.new}
        write_json(path, {"attempts": attempts, "points": [p.record() for p in one.points]})
    return mine


def headline_metrics(table: Iterable[Agreement]) -> list[Agreement]:
    """Return throughput and mean latencies, which are shown where there is little room."""
    return [one for one in table if one.metric.endswith(("tok_s", "_mean"))]


def agreement_lines(table: Iterable[Agreement]) -> list[str]:
    """Return a table for the terminal: throughput and mean latencies, before and now."""
    lines = [("load point", "metric", "before", "now", "change", "noise", "")]
    lines += [
        (
            one.load_id,
            one.metric,
            _number(one.old),
            _number(one.new),
            percent_text(one.difference),
            noise_text(one),
            one.verdict,
        )
        for one in headline_metrics(table)
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(7)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def noise_text(one: Agreement) -> str:
    """Return the known noise of a cell, or that it is not known."""
    if one.noise is None:
        return f"unknown, n={one.starts}"
    return f"± {100 * one.noise:.1f} %, n={one.starts}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def percent_text(value: float | None) -> str:
    """Return a relative difference in percent; blank where there is none."""
    return "" if value is None else f"{100 * value:+.1f} %"
