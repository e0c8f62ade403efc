"""What MLflow is told of one launch attempt, as plain data: a pure function of its records.

Names and meanings of the metrics: `by_concurrency/…` have the concurrency as their step, so
that MLflow's own charts are curves; `by_request_rate/…` have requests per 1,000 s; `summary/…`,
`phase/…` have one value. What was not measured is not there.
Not here: MLflow itself (`present.track`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sgmatrix.core.clock import parse_utc
from sgmatrix.core.flags import is_barred
from sgmatrix.core.reasons import REASONS
from sgmatrix.core.redact import redact
from sgmatrix.core.schemas import points_schema
from sgmatrix.dataset.figures import Row, measured
from sgmatrix.dataset.history import Attempt
from sgmatrix.dataset.spans import phases_s
from sgmatrix.dataset.telemetry import attempt_table
from sgmatrix.present.clean import clean, clean_tail
from sgmatrix.present.outcome import Outcome, outcome, rerun_command
from sgmatrix.present.points import csv_text, ok_ratio
from sgmatrix.present.system_metrics import Reading, system_metrics

BY_CONCURRENCY = (
    "output_tok_s",
    "total_tok_s",
    "ttft_ms_p50",
    "ttft_ms_p99",
    "tpot_ms_p50",
    "tpot_ms_p99",
    "itl_ms_p99",
    "e2e_ms_p99",
    "steady_output_tok_s",
    "peak_output_tok_s",
    "tok_s_per_user",
    "output_tok_s_per_gpu",
    "goodput_request_s",
    "concurrency_mean",
    "running_mean",
    "cached_share",
    "power_w_mean",
    "energy_j_per_output_tok",
    "ceiling_practical_tok_s",
    "practical_ratio",
    "hard_ratio",
)
LOG_LINES = 200


@dataclass(frozen=True)
class Value:
    """One value of a metric."""

    key: str
    value: float
    time_ms: int
    step: int


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

    @property
    def digest(self) -> str:
        """Return what tells two runs with different content apart; being current is no content."""
        content = {name: value for name, value in asdict(self).items() if name != "current"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _ms(utc: str) -> int:
    return int(parse_utc(utc).timestamp() * 1000)


def launch_metrics(
    points: Sequence[Row], phases: Mapping[str, float], end_ms: int
) -> tuple[Value, ...]:
    """Return the metrics of one launch from the records of its points.

    Args:
        points: one row per load point.
        phases: seconds per phase.
        end_ms: end of the launch; time of the metrics that have no step.
    """
    values = []
    for row in points:
        start, wall = row.get("started_at"), row.get("client_wall_s")
        time_ms = end_ms if start is None else _ms(start) + int(1000 * (wall or 0))
        found = {name: measured(row, name) for name in BY_CONCURRENCY} | {
            "ok_ratio": ok_ratio([row])
        }
        values += [
            _on_series(row, name, value, time_ms)
            for name, value in found.items()
            if value is not None
        ]
    single = next((row for row in points if row["concurrency"] == 1), {})
    rates = [
        (rate, row["concurrency"])
        for row in points
        if row["concurrency"] is not None and (rate := _rate(row)) is not None
    ]
    peak, at = max(rates, default=(None, None))
    once: dict[str, float | None] = {
        "summary/peak_output_tok_s": peak,
        "summary/peak_at_concurrency": at,
        "summary/single_stream_tpot_ms": measured(single, "tpot_ms_mean"),
        "summary/single_stream_tok_s": measured(single, "output_tok_s"),
        "summary/ok_ratio": ok_ratio(points),
        **{f"phase/{name}": span for name, span in phases.items()},
    }
    return (
        *values,
        *(Value(key, float(value), end_ms, 0) for key, value in once.items() if value is not None),
    )


def _on_series(row: Row, name: str, value: float, time_ms: int) -> Value:
    """Return a value on the curve of its kind of load, whose step is a whole number."""
    if (rate := row.get("request_rate")) is not None:
        return Value(f"by_request_rate/{name}", value, time_ms, round(1000 * rate))
    return Value(f"by_concurrency/{name}", value, time_ms, row["concurrency"])


def _rate(row: Row) -> float | None:
    """Return the throughput of a point that may be compared."""
    return None if is_barred(row, "throughput") else measured(row, "output_tok_s")


def _params(spec: Mapping[str, Any], version: str | None) -> dict[str, str]:
    cell = spec["cell"]
    points = spec["points"]

    def each(name: str) -> str:
        return ",".join(dict.fromkeys(str(point[name]) for point in points))

    params = {
        "engine": cell["engine"],
        "engine_version": version,
        "model": spec["model"]["name"],
        "gpus": cell["gpus"],
        "dataset": each("dataset"),
        "input_len": each("input_len"),
        "output_len": each("output_len"),
        "launch": spec["launch"],
        "seed": cell["reproduce"].get("load", {}).get("seed"),
        "client": spec["client"]["id"],
        "harness": spec["harness"],
        **cell["axes_text"],
    }
    return {name: str(value) for name, value in params.items() if value not in (None, "")}


def _note(spec: Mapping[str, Any], end: Outcome) -> str:
    """Return the description of a run in Markdown; foreign text stands in a code block."""
    cell = spec["cell"]
    axes = ", ".join(
        f"{axis} `{text}`" for axis, text in cell["axes_text"].items() if text is not None
    )
    lines = [f"**{cell['id']}**, launch {spec['launch']}, attempt {spec['attempt']}: {axes}", ""]
    if end.reason is None:
        lines += ["Outcome: ok", ""]
    else:
        known = REASONS.get(end.reason)
        lines += [f"Outcome: **{end.reason}**" + (f" ({known.help})" if known else ""), ""]
        where = f"server.log, line {end.line}: " if end.line else ""
        lines += [f"    {text[:600]}" for text in (end.what, end.seen and where + end.seen) if text]
        lines += [""]
    return "\n".join(
        [*lines, "Run it again:", "", f"    {rerun_command(spec['campaign'], cell['id'])}", ""]
    )


def _files(attempt: Attempt, points: Sequence[Row]) -> dict[str, str]:
    files = {}
    cell_yaml, log = attempt.folder / "cell.yaml", attempt.folder / "server.log"
    if cell_yaml.is_file():
        files["cell.yaml"] = _public_yaml(cell_yaml.read_text(encoding="utf-8"))
    asked = attempt.spec["cell"]
    # a server that never was ready has no command line with a port in its record
    argv = (attempt.final or {}).get("argv") or [asked["python"], *asked["arguments"]]
    files["argv.json"] = json.dumps(redact(argv), indent=1) + "\n"
    if log.is_file():
        files["server.log"] = clean_tail(_tail(log), LOG_LINES)
    there = {name for row in points for name in row}
    known = [name for name in points_schema(()).names if name in there]
    files["points.csv"] = csv_text([*known, *sorted(there.difference(known))], points)
    return files


def _public_yaml(text: str) -> str:
    """Return a campaign file with its secrets masked; as it is where it has none."""
    data = yaml.safe_load(text)
    masked = redact(data)
    return text if masked == data else yaml.safe_dump(masked, sort_keys=False, allow_unicode=True)


def _tail(path: Path, limit: int = 1 << 20) -> bytes:
    """Return the end of a file; a server that runs for a day logs gigabytes."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - limit))
        return file.read()


def attempt_run(attempt: Attempt) -> Run | None:
    """Return the run of one attempt; None for an attempt that is not complete."""
    end = outcome(attempt)
    if end is None or attempt.final is None:
        return None
    spec = attempt.spec
    cell = spec["cell"]
    points = []
    for planned in spec["points"]:
        record = attempt.point(planned["load_id"]) or {"status": "not_run"}
        row = {
            **{
                name: planned[name]
                for name in ("load_id", "concurrency", "input_len", "output_len")
            },
            "request_rate": planned.get("request_rate"),
            **record,
        }
        points.append({**row, "detail": clean(row["detail"])} if row.get("detail") else row)
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
        "mlflow.note.content": _note(spec, end),
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
        params=_params(spec, version),
        tags={name: text for name, text in tags.items() if text},
        metrics=(
            *launch_metrics(points, phases_s(attempt), end_ms),
            *(Value(one.key, one.value, one.time_ms, one.step) for one in _telemetry(attempt)),
        ),
        files=_files(attempt, points),
    )


def _telemetry(attempt: Attempt) -> Sequence[Reading]:
    table = attempt_table(attempt)
    return () if table is None else system_metrics(table)


def attempt_runs(attempts: Sequence[Attempt]) -> list[Run]:
    """Return the runs of all complete attempts, in the order of the history."""
    runs = (attempt_run(attempt) for attempt in attempts)
    return [run for run in runs if run is not None]
