"""What MLflow is told of one launch attempt, as plain data: a pure function of its records.

Not here: MLflow itself (`synchronise`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sgmatrix.core.clock import parse_utc
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.figures import Row
from sgmatrix.dataset.history import Attempt, read_attempts
from sgmatrix.dataset.points import point_rows
from sgmatrix.dataset.spans import phases_s
from sgmatrix.dataset.telemetry import attempt_table
from sgmatrix.present.clean import clean
from sgmatrix.present.outcome import outcome
from sgmatrix.present.tracking.metrics import Value, launch_metrics, workload
from sgmatrix.present.tracking.system_metrics import Reading, system_metrics
from sgmatrix.present.tracking.texts import files, hardware, note, params

_OF_THE_RUN = ("campaign", "study", "current")
"""Columns that say the same of all points of a run, or change when another attempt is made."""


@dataclass(frozen=True)
class Prompts:
    """What was sent: MLflow shows it as the dataset of a run."""

    name: str
    digest: str
    source: str
    """JSON: kind, seed and lengths."""


@dataclass(frozen=True)
class Run:
    """One MLflow run."""

    key: str
    """campaign/cell/launch."""
    attempt: int
    current: bool
    name: str
    ok: bool
    start_ms: int
    end_ms: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: tuple[Value, ...]
    files: Mapping[str, str] = field(repr=False)
    """Artifact name to text."""
    prompts: tuple[Prompts, ...] = ()

    @property
    def digest(self) -> str:
        """Return what tells two runs with different content apart; being current is no content."""
        content = {name: value for name, value in asdict(self).items() if name != "current"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _ms(utc: str) -> int:
    return int(parse_utc(utc).timestamp() * 1000)


def _prompts(points: Sequence[Mapping[str, Any]]) -> tuple[Prompts, ...]:
    """Return one entry per workload; seeds differ between its points, and are all in it."""
    names = ("dataset", "input_len", "output_len")
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for point in points:
        groups.setdefault(workload(dict(point)), []).append(point)
    found = []
    for name, group in groups.items():
        source = {key: group[0][key] for key in names} | {"seeds": [one["seed"] for one in group]}
        text = json.dumps(source, sort_keys=True)
        found.append(Prompts(name, hashlib.sha256(text.encode()).hexdigest()[:16], text))
    return tuple(found)


def attempt_run(attempt: Attempt, rows: Sequence[Row], columns: Sequence[str]) -> Run | None:
    """Return the run of one attempt; None for an attempt that is not complete.

    Args:
        attempt: from the history.
        rows: its rows of `points`.
        columns: of `points`, in their order.
    """
    end = outcome(attempt)
    if end is None or attempt.final is None:
        return None
    spec = attempt.spec
    cell = spec["cell"]
    points = [{**row, "detail": clean(row["detail"])} if row.get("detail") else row for row in rows]
    several = spec["launch"] != "1" or cell["reproduce"].get("launches", 1) > 1
    start_ms, end_ms = _ms(spec["asked_at"]), _ms(attempt.final["finished_at"])
    version = ((attempt.server or {}).get("info") or {}).get("version") or cell.get(
        "engine_version"
    )
    flags = sorted(
        {name for row in points for name in (row.get("validity") or "valid").split(",")} - {"valid"}
    )
    tags = {
        "bench.kind": "cell",
        "bench.campaign": spec["campaign"],
        "bench.cell": cell["id"],
        "bench.launch": spec["launch"],
        "bench.cell_key": cell["key"],
        "bench.status": "ok" if end.reason is None else "failed",
        "bench.failure": end.reason or "",
        "bench.flags": ",".join(flags),
        "bench.hardware": hardware(read_json_or_none(attempt.folder / "node.json") or {}),
        "mlflow.note.content": note(spec, end, points),
        "mlflow.source.name": "sglang-matrix",
        "mlflow.source.type": "PROJECT",
    }
    return Run(
        key=f"{spec['campaign']}/{cell['id']}/{spec['launch']}",
        attempt=spec["attempt"],
        current=attempt.current,
        name=cell["id"] + (f" launch {spec['launch']}" if several else ""),
        ok=end.reason is None,
        start_ms=start_ms,
        end_ms=end_ms,
        params=params(spec, version),
        tags={name: text for name, text in tags.items() if text},
        metrics=(
            *launch_metrics(points, phases_s(attempt), end_ms),
            *(Value(one.key, one.value, one.time_ms, one.step) for one in _telemetry(attempt)),
        ),
        files=files(attempt, points, [name for name in columns if name not in _OF_THE_RUN]),
        prompts=_prompts(spec["points"]),
    )


def _telemetry(attempt: Attempt) -> Sequence[Reading]:
    table = attempt_table(attempt)
    return () if table is None else system_metrics(table)


def attempt_runs(layout: Layout) -> list[Run]:
    """Return the runs of all complete attempts, in the order of the history."""
    attempts = read_attempts(layout)
    rows, schema = point_rows(layout, attempts)
    of: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        of.setdefault((row["cell"], row["launch"], row.get("attempt")), []).append(row)
    found = []
    for attempt in attempts:
        spec = attempt.spec
        its = of.get((spec["cell"]["id"], spec["launch"], spec["attempt"]), [])
        if (run := attempt_run(attempt, its, schema.names)) is not None:
            found.append(run)
    return found
