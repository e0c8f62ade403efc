"""The history of all attempts, and the plan, to the tables of a campaign.

Every attempt counts as a row or more, also superseded and interrupted ones (`current` false);
a planned point without a record is a row with status `not_run`. The same history gives the
same bytes: order is by cell as in the plan, launch, attempt and load, and nothing of today is
in the files. What is large is streamed, and no table gets its name before all are whole.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, replacing_all, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import streaming, table_from_rows, write_table
from sgmatrix.core.schema_versions import CURRENT, schema_of
from sgmatrix.core.schemas import with_metadata
from sgmatrix.dataset.cells import cell_rows
from sgmatrix.dataset.history import Attempt, LeftOut, read_history
from sgmatrix.dataset.points import point_rows
from sgmatrix.dataset.probes import experts_table
from sgmatrix.dataset.requests import request_tables
from sgmatrix.dataset.telemetry import attempt_table, gpu_memory_max

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Tables:
    """Where the tables of a campaign are written."""

    cells: Path
    points: Path
    requests: Path
    telemetry: Path
    experts: Path
    left_out: Path
    """JSON: what of the history is in none of them, and why."""

    @classmethod
    def of(cls, layout: Layout) -> Tables:
        """Return those of a campaign."""
        names = ("cells", "points", "requests", "telemetry", "experts")
        tables = {name: layout.datasets / f"{name}.parquet" for name in names}
        return cls(**tables, left_out=layout.left_out)


def collect(layout: Layout, tables: Tables) -> list[LeftOut]:
    """Write the tables; return what is left out of them.

    Raises:
        SgmatrixError: there is no room for them; the former ones stay as they were.
    """
    try:
        return _collect(layout, tables)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise SgmatrixError(
            "no_room",
            f"the tables do not fit into {tables.points.parent}: {error.strerror or error}; "
            "the former ones are as they were",
            fix="make room, then run again",
        ) from None


def _collect(layout: Layout, tables: Tables) -> list[LeftOut]:
    history = read_history(layout)
    attempts = history.attempts
    plan = read_json(layout.plan)
    rows, schema = point_rows(layout, attempts)
    axes = [name.removeprefix("axis_") for name in schema.names if name.startswith("axis_")]
    paths = [tables.cells, tables.points, tables.requests, tables.telemetry, tables.experts]
    provenance = _provenance(plan["campaign"], attempts)

    def told(dataset: str, extra: Sequence[str] = ()) -> Any:
        return with_metadata(schema_of(dataset, extra), dataset, CURRENT[dataset], provenance)

    _forget_unfinished([*paths, tables.left_out])
    with replacing_all([*paths, tables.left_out]) as (cells, points, requests, telemetry, *rest):
        write_table(table_from_rows(rows, told("points", axes)), points)
        with streaming(requests, told("requests")) as append:
            for table in request_tables(attempts):
                append(table)
        memory: dict[str, float] = {}
        with streaming(telemetry, told("telemetry")) as append:
            for attempt in attempts:
                table = attempt_table(attempt) if attempt.final is not None else None
                if table is None:
                    continue
                append(table)
                most = gpu_memory_max(table) if attempt.current else None
                if most is not None:
                    cell = attempt.spec["cell"]["id"]
                    memory[cell] = max(most, memory.get(cell, 0.0))
        found = cell_rows(plan, rows, attempts, memory)
        write_table(table_from_rows(found, told("cells", axes)), cells)
        probes, probes_left_out = experts_table(layout)
        write_table(probes.replace_schema_metadata(told("experts").metadata), rest[0])
        left_out = sorted({*history.left_out(), *probes_left_out})
        write_json(rest[1], {"left_out": [asdict(one) for one in left_out]})
    return left_out


def _forget_unfinished(paths: Sequence[Path]) -> None:
    """Remove what a collect that was killed left half-written; one at a time holds the campaign."""
    for path in paths:
        for file in path.parent.glob(f".{path.name}.*.tmp"):
            file.unlink(missing_ok=True)


def _provenance(campaign: str, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Return what the tables are made of, by the records alone."""
    engines: dict[str, set[str]] = {}
    for attempt in attempts:
        version = ((attempt.server or {}).get("info") or {}).get("version")
        of_engine = engines.setdefault(attempt.spec["cell"]["engine"], set())
        if version:
            of_engine.add(version)
    harnesses = {attempt.spec.get("harness") for attempt in attempts} - {None}
    return {
        "campaign": campaign,
        "attempts": len(attempts),
        "harness": sorted(harnesses),
        "engines": {name: sorted(found) for name, found in engines.items()},
    }
