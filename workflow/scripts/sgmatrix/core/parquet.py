"""Parquet files that are complete or not there; the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sgmatrix.core.files import replacing


def table_from_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return a table of exactly that schema; a column that a row lacks is null.

    Raises:
        ValueError: when a row has a column that the schema does not know.
    """
    rows = [dict(row) for row in rows]
    known = set(schema.names)
    for row in rows:
        if unknown := row.keys() - known:
            raise ValueError(f"columns {sorted(unknown)} are not in the schema")
    columns = [pa.array([row.get(f.name) for row in rows], type=f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table with zstd; dictionaries for text only, where they make files smaller."""
    text = [f.name for f in table.schema if pa.types.is_string(f.type)]
    with replacing(path) as neighbour:
        pq.write_table(table, neighbour, compression="zstd", use_dictionary=text, version="2.6")
