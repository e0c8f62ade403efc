"""The rows of `points`: every attempt's load points, and those of the plan without a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sgmatrix.core.clock import parse_utc
from sgmatrix.core.files import read_json
from sgmatrix.core.flags import is_barred
from sgmatrix.core.layout import Layout, launch_order
from sgmatrix.core.schemas import points_schema
from sgmatrix.dataset.ceilings import add_ceilings
from sgmatrix.dataset.flagging import add_flag
from sgmatrix.dataset.history import Attempt, read_attempts
from sgmatrix.dataset.probes import probe_doubts


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


def point_rows(
    layout: Layout, attempts: Sequence[Attempt] | None = None
) -> tuple[list[dict[str, Any]], pa.Schema]:
    """Return the rows of `points` and their schema.

    Args:
        layout: of the campaign.
        attempts: its history, where that was read already.
    """
    attempts = read_attempts(layout) if attempts is None else attempts
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
