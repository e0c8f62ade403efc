"""The state of a campaign as a table of its cells, for the terminal."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from sgmatrix.core.layout import Layout
from sgmatrix.dataset.collect import point_rows


def cell_lines(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return one line per cell: id, status, points ok of planned, best throughput, TPOT there."""
    lines: list[tuple[str, ...]] = []
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    for cell in cells:
        mine = [row for row in rows if row["cell"] == cell and row["current"]]
        ok = [row for row in mine if row["status"] == "ok"]
        best = max(ok, key=lambda row: row["output_tok_s"], default=None)
        single = next((row for row in ok if row["concurrency"] == 1), None)
        failed = next((row for row in mine if row["status"] in ("failed", "skipped")), None)
        status = (
            "ok" if len(ok) == len(mine) else "not run" if failed is None else str(failed["reason"])
        )
        flags = sorted({str(row["validity"]) for row in ok} - {"valid"})
        lines.append(
            (
                cell,
                status,
                f"{len(ok)}/{len(mine)}",
                _number(best, "output_tok_s", ",.0f"),
                "" if best is None else str(best["concurrency"]),
                _number(best, "tpot_ms_mean", ".2f"),
                _number(single, "tpot_ms_mean", ".2f"),
                " ".join(flags),
            )
        )
    return lines


HEAD = ("cell", "status", "points", "tok/s", "at", "TPOT ms", "at 1", "flags")


def _number(row: dict[str, Any] | None, column: str, form: str) -> str:
    value = None if row is None else row.get(column)
    return "" if value is None else format(value, form)


def print_summary(layout: Layout, out: TextIO | None = None) -> None:
    """Print the table of the cells and where everything is."""
    out = out or sys.stderr
    if not layout.plan.exists():
        return
    rows, _ = point_rows(layout)
    lines = [HEAD, *cell_lines(rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    out.write("\n")
    for line in lines:
        texts = [
            text.ljust(width) if i in (0, 1, 7) else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.write("  ".join(texts).rstrip() + "\n")
    report = layout.root / "report" / "index.html"
    out.write(f"\nreport  {report}\nMLflow  {layout.root.parent / 'mlflow.db'}  (make ui)\n")
    out.flush()
