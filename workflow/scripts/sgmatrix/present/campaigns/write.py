"""The files that hold a comparison of two campaigns, and what the terminal says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sgmatrix.core.files import write_text
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import with_metadata
from sgmatrix.core.schemas_compare import COMPARISON, COMPARISON_VERSION
from sgmatrix.present.campaigns.compared import compare
from sgmatrix.present.campaigns.page import page
from sgmatrix.present.campaigns.text import told
from sgmatrix.present.points import csv_text


def compare_campaigns(
    layouts: Sequence[Layout], labels: Sequence[str], folder: Path, bound_percent: float
) -> str:
    """Compare two campaigns, write table, CSV and page into a folder; return what to print."""
    compared = compare(layouts, labels, bound_percent)
    provenance = {"base": compared.base.label, "other": compared.other.label}
    schema = with_metadata(COMPARISON, "comparison", COMPARISON_VERSION, provenance)
    write_parquet(table_from_rows(compared.rows, schema), folder / "comparison.parquet")
    write_text(folder / "comparison.csv", csv_text(COMPARISON.names, compared.rows))
    write_text(folder / "index.html", page(compared))
    return f"{told(compared)}\n\ncomparison  {folder / 'index.html'}"
