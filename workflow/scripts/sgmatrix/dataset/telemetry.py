"""The table `telemetry`: what was read beside the measurements, one value per row.

Sources are the sampler's lines and the batches that the server logged. Each attempt's table
is made once and kept beside its record; it is a pure function of that record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schema_versions import NewerTable, read_dataset
from sgmatrix.core.schemas import TELEMETRY, TELEMETRY_VERSION, with_metadata
from sgmatrix.dataset.history import Attempt
from sgmatrix.dataset.requests import another
from sgmatrix.node.batchlog import placed_lines
from sgmatrix.node.telemetry.samples import Sample, read_samples

FILE = "telemetry.parquet"
_INDICES = 1 << 15
_GROUPS = ("host", "engine", "harness")
_SERVER = ("running", "queued", "token_usage", "output_tok_s", "new_tokens", "cached_tokens")


@dataclass(frozen=True)
class Phases:
    """When a launch did what, in Unix time."""

    started_s: float
    spans: Sequence[tuple[float, float, str, str | None]]
    """Begin, end, phase, load point; what lies outside is `between`."""

    def at(self, moment_s: float) -> tuple[str, str | None]:
        for begin, end, phase, load_id in self.spans:
            if begin <= moment_s <= end:
                return phase, load_id
        return "between", None


def phases_of(
    times: Mapping[str, float],
    warmup: Mapping[str, Any] | None,
    points: Sequence[Mapping[str, Any]],
) -> Phases:
    """Return the phases of a launch.

    Args:
        times: of its closing record.
        warmup: record of the warm-up.
        points: records of its load points.
    """
    ended = times.get("closed", times["asked"])
    began = times.get("stopping", ended)
    spans: list[tuple[float, float, str, str | None]] = [
        (times["asked"], times.get("ready", began), "start", None)
    ]
    if window := (warmup or {}).get("window_s"):
        spans.append((window[0], window[1], "warmup", None))
    spans += [
        (*point["window_s"], "point", point["load_id"]) for point in points if point.get("window_s")
    ]
    spans.append((began, ended + 1.0, "teardown", None))
    return Phases(times.get("started", times["asked"]), spans)


def attempt_table(attempt: Attempt) -> pa.Table | None:
    """Return the telemetry of a complete attempt, and keep it beside its record.

    A kept file that is damaged or another's is made again; one of a version that is newer than
    this one knows stays as it is and is left out: None.
    """
    kept = attempt.folder / FILE
    if kept.is_file():
        try:
            found = read_dataset(kept, "telemetry")
            if not another(found, attempt.identity):
                return found
        except NewerTable as error:
            attempt.leave_out(kept, error.facts.removeprefix(f"{kept} "))
            return None
        except SgmatrixError:
            pass  # it is made again
    table = table_from_rows(_rows(attempt), TELEMETRY)
    if attempt.final:
        schema = with_metadata(TELEMETRY, "telemetry", TELEMETRY_VERSION, attempt.identity)
        write_parquet(table.replace_schema_metadata(schema.metadata), kept)
    return table


def gpu_memory_max(table: pa.Table) -> float | None:
    """Return the most memory in MiB that one GPU had in use; None where none was read."""
    of_gpu = pc.and_(
        pc.equal(table.column("source"), "gpu"), pc.equal(table.column("name"), "memory_used_mib")
    )
    most: float | None = pc.max(table.filter(of_gpu).column("value")).as_py()
    return most


def _rows(attempt: Attempt) -> list[dict[str, Any]]:
    folder, spec = attempt.folder, attempt.spec
    final = attempt.final or {}
    points = [record for planned in spec["points"] if (record := attempt.point(planned["load_id"]))]
    closed = final.get("closed") or {}
    times = {**(final.get("server_times") or {}), **(closed.get("times") or {})}
    if "asked" not in times:
        return []
    identity = attempt.identity
    warmup = final.get("warmup")
    phases = phases_of(times, warmup, points)
    rows = [{**identity, **_when(moment, phases), **value} for moment, value in _sampled(folder)]
    rows += [
        {**identity, **_when(moment, phases), **step, **value}
        for moment, step, value in _logged(
            folder, _log_parts(warmup, points), spec.get("utc_offset_s", 0)
        )
    ]
    return rows


def _when(moment_s: float, phases: Phases) -> dict[str, Any]:
    phase, load_id = phases.at(moment_s)
    return {
        "time": datetime.fromtimestamp(moment_s, UTC),
        "t_s": moment_s - phases.started_s,
        "phase": phase,
        "load_id": load_id,
    }


def _sampled(folder: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    for sample in read_samples(folder / "telemetry.jsonl"):
        for source in _GROUPS:
            for name, value in getattr(sample, source).items():
                yield sample.t_s, _value(source, None, name, value)
        yield from _gpus(sample)
        if sample.cpu_ms is not None:
            yield sample.t_s, _value("sampler", None, "cpu_ms", sample.cpu_ms)


def _gpus(sample: Sample) -> Iterator[tuple[float, dict[str, Any]]]:
    for gpu, values in sample.gpus.items():
        moment = values.get("t", sample.t_s)
        device = int(gpu) if gpu.isdecimal() and int(gpu) < _INDICES else None
        for name, value in values.items():
            if name == "throttle_reasons":
                for reason in value or ():
                    yield moment, _value("gpu", device, f"throttle_{reason}", 1.0)
            elif name != "t" and isinstance(value, int | float):
                yield moment, _value("gpu", device, name, value)


def _log_parts(
    warmup: Mapping[str, Any] | None, points: Sequence[Mapping[str, Any]]
) -> list[tuple[int, int, dict[str, Any]]]:
    """Return which bytes of the log are of which step; its times are whole seconds."""
    parts = []
    if span := (warmup or {}).get("log_bytes"):
        parts.append((span[0], span[1], {"phase": "warmup", "load_id": None}))
    parts += [
        (span[0], span[1], {"phase": "point", "load_id": point["load_id"]})
        for point in points
        if (span := point.get("log_bytes"))
    ]
    return parts


def _logged(
    folder: Path, parts: Sequence[tuple[int, int, dict[str, Any]]], utc_offset_s: float
) -> Iterator[tuple[float, dict[str, Any], dict[str, Any]]]:
    for place, line in placed_lines(folder / "server.log"):
        step = next((step for begin, end, step in parts if begin <= place < end), {})
        for name in _SERVER:
            value = getattr(line, name)
            if value is not None:
                yield line.time_s - utc_offset_s, step, _value("server", line.rank, name, value)


def _value(source: str, device: int | None, name: str, value: float) -> dict[str, Any]:
    return {"source": source, "device": device, "name": name, "value": float(value)}
