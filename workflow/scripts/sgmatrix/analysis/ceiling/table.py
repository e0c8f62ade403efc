"""The table `ceilings`: each point of the plan and of the history beside what physics allows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.analysis.ceiling.facts import device_in, shape_in
from sgmatrix.analysis.ceiling.inputs import Reported, server_of
from sgmatrix.analysis.ceiling.points import point_ceiling, point_row
from sgmatrix.analysis.ceiling.reported import reported_by
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape
from sgmatrix.core.files import read_json, read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import with_metadata
from sgmatrix.core.schemas_ceiling import CEILINGS, CEILINGS_VERSION
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.probes import probe_of


def write_ceilings(layout: Layout, path: Path) -> None:
    """Write the table; where facts are missing each row says which."""
    plan = read_json(layout.plan)
    schema = with_metadata(CEILINGS, "ceilings", CEILINGS_VERSION, {"campaign": plan["campaign"]})
    write_parquet(table_from_rows(ceiling_rows(layout, plan), schema), path)


def ceiling_rows(layout: Layout, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row per point of every attempt, and of every launch that has not run."""
    table = _Table(layout, plan)
    rows, seen = [], set()
    for attempt in read_attempts(layout):
        spec = attempt.spec
        if spec["model"].get("digest") != plan["model"]["digest"]:
            continue  # of a model that the campaign no longer has
        reported = reported_by(attempt.folder, attempt.server, spec["cell"]["flags"])
        seen.add((spec["cell"]["id"], spec["launch"]))
        for point in spec["points"]:
            record = attempt.point(point["load_id"]) or {}
            shared = record.get("cached_share") or 0.0
            who = {"launch": spec["launch"], "attempt": spec["attempt"]}
            offered = {**point, **measured_lengths(record)}
            rows.append({**table.row(spec["cell"], offered, reported, shared), **who})
    for launch in plan["launches"]:
        if (launch["cell"], launch["launch"]) in seen:
            continue
        cell = plan["cells"][launch["cell"]]
        rows += [
            {**table.row(cell, point, Reported(), 0.0), "launch": launch["launch"]}
            for point in launch["points"]
        ]
    return rows


def measured_lengths(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean lengths of the requests that were answered; empty where none was.

    Prompts of topics and of files have other lengths than were asked for.
    """
    requests, out, total = (
        record.get(name) for name in ("request_s", "output_tok_s", "total_tok_s")
    )
    if not requests or not out or not total or total <= out:
        return {}
    return {
        "input_len": round((total - out) / requests, 3),
        "output_len": round(out / requests, 3),
    }


class _Table:
    """Ceilings of one campaign; equal questions are answered once."""

    def __init__(self, layout: Layout, plan: Mapping[str, Any]) -> None:
        self._layout, self._plan = layout, plan
        self._known: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._probes: dict[str, dict[str, Any]] = {}
        self._facts: tuple[Shape, Device] | None = None
        self._why: str | None = None
        facts = plan.get("facts") or {}
        measured = (read_json_or_none(layout.node_probe) or {}).get("measured") or {}
        try:
            self._facts = shape_in(facts), device_in(facts, measured)
        except SgmatrixError as refusal:
            self._why = refusal.facts

    def row(
        self, cell: Mapping[str, Any], point: Mapping[str, Any], reported: Reported, cached: float
    ) -> dict[str, Any]:
        who = {
            "campaign": self._plan["campaign"],
            "cell": cell["id"],
            "load_id": point["load_id"],
        }
        if self._facts is None:
            return {**who, "why_not": self._why}
        shape, device = self._facts
        if (kind := cell.get("device", device.kind)) != device.kind:
            return {
                **who,
                "why_not": f"its engine runs on {kind}, the ceilings are of {device.name}",
            }
        distinct = self._distinct(cell["id"], point["concurrency"])
        lengths = (point["input_len"], point["output_len"])
        offered = (point["load_id"], point.get("max_concurrency"), *lengths)
        key = (cell["key"], *offered, reported, round(cached, 4), distinct)
        if key not in self._known:
            server = server_of(cell, shape, device, reported=reported, distinct=distinct)
            at = point_ceiling(server, point, cached)
            self._known[key] = (
                {"why_not": "the weights leave no place for one request"}
                if at is None
                else point_row(server, at, reported)
            )
        return {**who, **self._known[key]}

    def _distinct(self, cell: str, batch: int | None) -> float | None:
        """Return the experts that the cell's own probe counted at that batch size."""
        if cell not in self._probes:
            self._probes[cell] = (probe_of(self._layout, cell) or {}).get("batches") or {}
        found: Mapping[str, Any] = self._probes[cell].get(str(batch)) or {}
        value = found.get("activated_mean")
        return float(value) if value else None
