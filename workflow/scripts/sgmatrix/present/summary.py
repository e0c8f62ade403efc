"""The state of a campaign as a table of its cells, for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from sgmatrix.core.files import read_json, read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.figures import Figure
from sgmatrix.dataset.points import point_rows
from sgmatrix.present.cells import CellView, cell_views
from sgmatrix.present.comparisons import comparison_lines

HEAD = ("cell", "status", "points", "tok/s", "at", "TPOT ms", "at 1", "flags")
_TEXT_COLUMNS = (0, 1, 7)


def _number(figure: Figure | None, form: str) -> str:
    return "" if figure is None else format(figure.mean, form)


def _line(view: CellView) -> tuple[str, ...]:
    reasons = sorted({str(one.reason) for one in view.failures})
    flags = {name for row in view.flagged for name in str(row["validity"]).split(",")}
    best, single = view.best, view.single
    return (
        view.cell,
        " ".join(reasons) if view.status == "failed" else view.status,
        f"{view.ok}/{view.planned}",
        _number(best.output_tok_s if best else None, ",.0f"),
        best.at if best else "",
        _number(best.tpot_ms if best else None, ".2f"),
        _number(single.tpot_ms if single else None, ".2f"),
        " ".join(sorted(flags)),
    )


def cell_lines(rows: list[dict[str, Any]], plan: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return one line per cell, in the columns of `HEAD`; blank where nothing was measured."""
    return [_line(view) for view in cell_views(rows, [], plan)]


def print_summary(layout: Layout, out: TextIO | None = None) -> None:
    """Print where everything is, and the table of the cells as the last lines."""
    out = out or sys.stderr
    if not layout.plan.exists():
        return
    rows, _ = point_rows(layout)
    lines = [HEAD, *cell_lines(rows, read_json(layout.plan))]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    report = layout.root / "report" / "index.html"
    database = layout.root.parent / "mlflow.db"
    out.write(f"\nreport  {report if report.exists() else 'when the campaign is complete'}\n")
    told = read_json_or_none(layout.root / "tracking.json") or {}
    server = str(told.get("target", ""))
    if server.startswith("http"):
        out.write(f"MLflow  {server}/{told.get('page', '')}\n\n")
    else:
        page = told.get("page")
        where = f"make ui, then http://127.0.0.1:5000/{page}" if page else "make ui"
        out.write(f"MLflow  {database}  ({where})\n\n" if database.exists() else "\n")
    for line in lines:
        texts = [
            text.ljust(width) if i in _TEXT_COLUMNS else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.write("  ".join(texts).rstrip() + "\n")
    for text in comparison_lines(layout):
        out.write(f"\n{text}\n")
    out.flush()
