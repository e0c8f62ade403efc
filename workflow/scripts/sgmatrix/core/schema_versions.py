"""Which versions of each dataset there were, what each added, and files of them read as of today.

A version only ever adds columns. Whoever adds one raises the version of its schema and names the
column here; then files of the version before are read with nulls for it. A file of a newer
version, of another dataset, or whose columns are not those of its version is refused by name, so
that a column which was renamed or has another type is never half-read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sgmatrix.core import schemas, schemas_ceiling, schemas_compare
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.schemas_cells import CELLS_VERSION, cells_schema
from sgmatrix.core.schemas_references import REFERENCES, REFERENCES_VERSION

AXIS = "axis_"

WITH_AXES = ("cells", "points")
"""Datasets with a column per axis of the campaign."""

CURRENT = {
    "cells": CELLS_VERSION,
    "points": schemas.POINTS_VERSION,
    "requests": schemas.REQUESTS_VERSION,
    "telemetry": schemas.TELEMETRY_VERSION,
    "ceilings": schemas_ceiling.CEILINGS_VERSION,
    "experts": schemas_compare.EXPERTS_VERSION,
    "comparisons": schemas_compare.COMPARISONS_VERSION,
    "comparison": schemas_compare.COMPARISON_VERSION,
    "references": REFERENCES_VERSION,
}

ADDED: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "points": {
        2: (
            "validity_detail",
            "max_concurrency",
            *(f"{latency}_ms_p95" for latency in schemas.LATENCIES),
            "steady_output_tok_s",
            "steady_share",
            "peak_output_tok_s",
            "tok_s_per_user",
            "output_tok_s_per_gpu",
            "scaling_efficiency",
            "slo",
            "goodput_request_s",
            "good_share",
            "concurrency_mean",
            "running_max",
            "queued_max",
            "retracted",
            "token_usage_max",
            "graph_share",
            "server_tpot_ms",
            "client_cpu_cores",
            "client_delay_share",
            "foreign_cpu_share",
            "power_idle_w",
        ),
        3: (
            "ceiling_hard_tpot_ms",
            "ceiling_practical_tpot_ms",
            "ceiling_bound",
            "ceiling_distinct_experts",
            "ceiling_kv_tokens",
            "ceiling_running",
            "hard_ratio",
            "practical_ratio",
        ),
    },
}
"""By dataset and version: the columns that the version added. Version 1 has all others."""


def schema_of(dataset: str, axes: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of a dataset as it is written today."""
    if dataset == "points":
        return schemas.points_schema(axes)
    if dataset == "cells":
        return cells_schema(axes)
    return {
        "requests": schemas.REQUESTS,
        "telemetry": schemas.TELEMETRY,
        "ceilings": schemas_ceiling.CEILINGS,
        "experts": schemas_compare.EXPERTS,
        "comparisons": schemas_compare.COMPARISONS,
        "comparison": schemas_compare.COMPARISON,
        "references": REFERENCES,
    }[dataset]


class NewerTable(SgmatrixError):
    """Raised for a file of a version that is not known yet."""


def read_dataset(path: Path, dataset: str) -> pa.Table:
    """Return a file of that dataset, of whichever version, with the columns of today.

    Raises:
        SgmatrixError: one line that names the file, and why it is not read.
    """
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            version = _version(path, found, dataset)
            axes = [name.removeprefix(AXIS) for name in found.names if name.startswith(AXIS)]
            wanted = schema_of(dataset, axes if dataset in WITH_AXES else ())
            _compare(path, found, wanted, dataset, version)
            table = file.read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, f"is no whole Parquet file: {_first_line(error)}") from None
    if table.schema.equals(wanted):
        return table.replace_schema_metadata(None)
    columns = [
        table.column(f.name) if f.name in found.names else pa.nulls(table.num_rows, f.type)
        for f in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


def _version(path: Path, found: pa.Schema, dataset: str) -> int:
    name = (found.metadata or {}).get(b"sgmatrix.schema", b"").decode(errors="replace")
    kind, _, number = name.partition("/")
    if kind != dataset or not number.isdecimal():
        raise _unreadable(path, f"holds {name or 'no dataset of ours'}, not {dataset}")
    if int(number) > CURRENT[dataset]:
        known = f"{dataset}/{CURRENT[dataset]}"
        raise NewerTable(
            "table_unreadable",
            f"{path} holds {name}, newer than the {known} known here",
            fix="read it with the sglang-matrix that wrote it, or a newer one",
        )
    return int(number)


def _compare(path: Path, found: pa.Schema, wanted: pa.Schema, dataset: str, version: int) -> None:
    later = {
        name
        for number, names in ADDED.get(dataset, {}).items()
        if number > version
        for name in names
    }
    expected = [f for f in wanted if f.name not in later]
    said = f"{dataset}/{version}"
    if lacking := [f.name for f in expected if f.name not in found.names]:
        raise _unreadable(path, f"lacks the column {lacking[0]} of {said}")
    known = {f.name for f in expected}
    if foreign := [name for name in found.names if name not in known]:
        raise _unreadable(path, f"has the column {foreign[0]}, which {said} does not know")
    for one in expected:
        kind = found.field(one.name).type
        if kind != one.type:
            raise _unreadable(path, f"has {one.name} as {kind}, in {said} it is {one.type}")


def _unreadable(path: Path, why: str) -> SgmatrixError:
    return SgmatrixError("table_unreadable", f"{path} {why}")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
