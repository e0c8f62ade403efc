"""The table `points`, read for people: rows, CSV, and the figures of a cell in short."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sgmatrix.core.schema_versions import read_dataset
from sgmatrix.dataset.figures import Row
from sgmatrix.present.clean import clean


def read_points(path: Path) -> tuple[list[str], list[Row]]:
    """Return the columns and the rows of a points file; log lines in it are cleaned."""
    table = read_dataset(path, "points")
    rows = table.to_pylist()
    for row in rows:
        row["detail"] = None if row["detail"] is None else clean(row["detail"])
    return table.schema.names, rows


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    return repr(value) if isinstance(value, float) else str(value)


_FOREIGN = ("detail", "validity_detail")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _field(row: Row, column: str) -> str:
    """Return a field; foreign text that a spreadsheet would compute has a quote before it."""
    text = _text(row.get(column))
    return f"'{text}" if column in _FOREIGN and text.startswith(_FORMULA) else text


def csv_text(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return rows as CSV with all digits; null is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(row, column) for column in columns] for row in rows)
    return out.getvalue()


def ok_ratio(rows: Iterable[Row]) -> float | None:
    """Return completed over offered requests; None where a count is missing or none was offered."""
    offered = [row for row in rows if row.get("asked")]
    if not offered or any(row.get("completed") is None for row in offered):
        return None
    return float(sum(row["completed"] for row in offered) / sum(row["asked"] for row in offered))
