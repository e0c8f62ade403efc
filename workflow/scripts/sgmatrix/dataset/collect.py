"""The history of all attempts, and the plan, to the tables of a campaign.

Every attempt counts as a row or more, also superseded and interrupted ones (`current` false);
a planned point without a record is a row with status `not_run`. The same history gives the
same bytes: order is by cell as in the plan, launch, attempt and load, and nothing of today is
in the files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sgmatrix.core.clock import parse_utc
from sgmatrix.core.files import read_json, read_json_or_none
from sgmatrix.core.flags import is_barred
from sgmatrix.core.layout import Layout, base_launch, launch_order
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import (
    POINTS_VERSION,
    REQUESTS,
    REQUESTS_VERSION,
    TELEMETRY,
    TELEMETRY_VERSION,
    points_schema,
    with_metadata,
)
from sgmatrix.dataset.ceilings import add_ceilings
from sgmatrix.dataset.flagging import add_flag
from sgmatrix.dataset.probes import experts_table, probe_doubts
from sgmatrix.dataset.telemetry import attempt_table


@dataclass(frozen=True)
class Attempt:
    """One attempt in the history."""

    folder: Path
    spec: dict[str, Any]
    server: dict[str, Any] | None
    final: dict[str, Any] | None
    """None: interrupted, never the current one."""
    current: bool

    def point(self, load_id: str) -> dict[str, Any] | None:
        record: dict[str, Any] | None = read_json_or_none(
            self.folder / "points" / f"{load_id}.json"
        )
        return record


def read_attempts(layout: Layout) -> list[Attempt]:
    """Return all attempts of the history in a fixed order.

    The current attempt of a launch is its newest complete one.
    """
    attempts: list[Attempt] = []
    newest: dict[tuple[str, str], int] = {}
    keys: dict[tuple[str, str], str] = {}
    found = []
    for cell, launch, number, folder in layout.all_attempts():
        spec = read_json_or_none(folder / "spec.json")
        if spec is None:
            continue  # the warden was ended before it wrote down what it was to start
        final = read_json_or_none(folder / "teardown.json")
        found.append((cell, launch, number, folder, spec, final))
        if final is not None:
            newest[cell, launch] = number  # they come in rising order
            keys[cell, launch] = spec["cell"]["key"]
    for cell, launch, number, folder, spec, final in found:
        # an extra launch completes a launch of the same server, and ends to count with it
        of_this_server = spec["cell"]["key"] == keys.get((cell, base_launch(launch)))
        current = newest.get((cell, launch)) == number and of_this_server
        server = read_json_or_none(folder / "server.json")
        attempts.append(Attempt(folder, spec, server, final, current))
    return attempts


def _base_row(
    campaign: str, study: str, cell: dict[str, Any], launch: str, point: dict[str, Any]
) -> dict[str, Any]:
    return {
        "campaign": campaign,
        "study": study,
        "cell": cell["id"],
        "cell_key": cell["key"],
        "launch": launch,
        "load_id": point["load_id"],
        "point_key": point["key"],
        "concurrency": point["concurrency"],
        "request_rate": point.get("request_rate"),
        "max_concurrency": point.get("max_concurrency"),
        "input_len": point["input_len"],
        "output_len": point["output_len"],
        "dataset": point["dataset"],
        "gpus": cell["gpus"],
        "engine": cell["engine"],
        "seed": point["seed"],
        **{f"axis_{axis}": text for axis, text in cell["axes_text"].items()},
    }


def _attempt_rows(attempt: Attempt, columns: set[str]) -> Iterator[dict[str, Any]]:
    spec = attempt.spec
    version = ((attempt.server or {}).get("info") or {}).get("version")
    for point in spec["points"]:
        row = _base_row(spec["campaign"], spec["study"], spec["cell"], spec["launch"], point)
        row |= {"attempt": spec["attempt"], "current": attempt.current, "engine_version": version}
        record = attempt.point(point["load_id"])
        if record is None:
            yield {**row, "status": "not_run", "reason": "interrupted"}
            continue
        row |= {key: value for key, value in record.items() if key in columns}
        if row.get("started_at"):
            row["started_at"] = parse_utc(row["started_at"])
        yield row


def point_rows(layout: Layout) -> tuple[list[dict[str, Any]], pa.Schema]:
    """Return the rows of `points` and their schema."""
    attempts = read_attempts(layout)
    plan = read_json(layout.plan)
    cells = [attempt.spec["cell"] for attempt in attempts] + list(plan["cells"].values())
    schema = points_schema({axis for cell in cells for axis in cell["axes_text"]})
    columns = set(schema.names)
    rows = [row for attempt in attempts for row in _attempt_rows(attempt, columns)]
    seen = {(row["cell"], row["launch"], row["load_id"]) for row in rows if row["current"]}
    for launch in plan["launches"]:
        cell = plan["cells"][launch["cell"]]
        for point in launch["points"]:
            if (cell["id"], launch["launch"], point["load_id"]) not in seen:
                row = _base_row(plan["campaign"], plan["study"], cell, launch["launch"], point)
                rows.append({**row, "current": True, "status": "not_run"})
    _add_scaling(rows)
    _add_probe_doubts(rows, layout, plan)
    add_ceilings(rows, layout)
    place: dict[str, int] = {}
    for launch in sorted(plan["launches"], key=lambda one: launch_order(one["launch"])):
        place.setdefault(launch["cell"], launch["position"])
    rows.sort(
        key=lambda r: (
            place.get(r["cell"], len(place)),
            r["cell"],
            launch_order(r["launch"]),
            r.get("attempt") or 0,
            r["request_rate"] or 0.0,
            r["concurrency"] or 0,
            r["load_id"],
        )
    )
    return rows, schema


def _add_probe_doubts(rows: list[dict[str, Any]], layout: Layout, plan: Mapping[str, Any]) -> None:
    """Flag the points of cells whose probe read other experts than its settings allow."""
    doubts = probe_doubts(layout, plan)
    for row in rows:
        why = doubts.get(row["cell"])
        if why is None or not row["current"] or row["status"] != "ok":
            continue
        add_flag(row, "implausible", why)


def _add_scaling(rows: list[dict[str, Any]]) -> None:
    """Set each point of a closed loop beside concurrency 1 of the same attempt and workload."""

    def attempt(row: dict[str, Any]) -> tuple[Any, ...]:
        names = ("cell", "launch", "attempt", "dataset", "input_len", "output_len")
        return tuple(row.get(name) for name in names)

    ones = {
        attempt(row): row["output_tok_s"]
        for row in rows
        if row["concurrency"] == 1 and row.get("output_tok_s") and not is_barred(row, "throughput")
    }
    for row in rows:
        one, rate = ones.get(attempt(row)), row.get("output_tok_s")
        if one and rate and row["concurrency"]:
            row["scaling_efficiency"] = rate / (row["concurrency"] * one)


def collect(layout: Layout, points: Path, requests: Path, telemetry: Path, experts: Path) -> None:
    """Write the four tables; a half-written file of the history is left out."""
    rows, schema = point_rows(layout)
    provenance = {"campaign": read_json(layout.plan)["campaign"]}
    tables, measured = [], []
    for attempt in read_attempts(layout):
        if attempt.final is not None:
            measured.append(attempt_table(attempt.folder, attempt.spec))
        for planned in attempt.spec["points"]:
            file = attempt.folder / "points" / f"{planned['load_id']}.requests.parquet"
            if attempt.point(planned["load_id"]) is not None and file.is_file():
                with contextlib.suppress(OSError, pa.ArrowException):
                    tables.append(pq.read_table(file, partitioning=None).cast(REQUESTS))
    schema = with_metadata(schema, "points", POINTS_VERSION, provenance)
    write_parquet(table_from_rows(rows, schema), points)
    request_schema = with_metadata(REQUESTS, "requests", REQUESTS_VERSION, provenance)
    merged = pa.concat_tables(tables) if tables else REQUESTS.empty_table()
    write_parquet(merged.replace_schema_metadata(request_schema.metadata), requests)
    whole = pa.concat_tables(measured) if measured else TELEMETRY.empty_table()
    schema = with_metadata(TELEMETRY, "telemetry", TELEMETRY_VERSION, provenance)
    write_parquet(whole.replace_schema_metadata(schema.metadata), telemetry)
    write_parquet(experts_table(layout, provenance), experts)
