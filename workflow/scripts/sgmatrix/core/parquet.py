"""Parquet files that are complete or not there; the same rows give the same bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sgmatrix.core.files import replacing

GROUP_ROWS = 1 << 14
"""Rows of a group from which on it is written: some MB of requests."""


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
    with replacing(path) as neighbour:
        write_table(table, neighbour)


def write_table(table: pa.Table, neighbour: Path) -> None:
    """Write a table into a file in the making."""
    pq.write_table(table, neighbour, **_options(table.schema))


@contextlib.contextmanager
def streaming(neighbour: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield what appends a table to a file in the making, of which only a part is in memory.

    Small tables are put together to row groups of at least `GROUP_ROWS` rows, by their order
    alone, so that the same tables give the same bytes.
    """
    waiting: list[pa.Table] = []
    rows = 0
    with pq.ParquetWriter(neighbour, schema, **_options(schema)) as writer:

        def append(table: pa.Table) -> None:
            nonlocal rows
            if not table.num_rows:
                return
            waiting.append(table.replace_schema_metadata(schema.metadata))
            rows += table.num_rows
            if rows >= GROUP_ROWS:
                flush()

        def flush() -> None:
            nonlocal rows
            if waiting:
                writer.write_table(pa.concat_tables(waiting), row_group_size=rows)
            waiting.clear()
            rows = 0

        yield append
        flush()


def _options(schema: pa.Schema) -> dict[str, Any]:
    text = [f.name for f in schema if pa.types.is_string(f.type)]
    return {"compression": "zstd", "use_dictionary": text, "version": "2.6"}
