"""One load point on a running server."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import now_utc
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.events import emit
from sgmatrix.core.files import read_json, read_json_or_none, write_json
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.load.client import ClientRun, run_client
from sgmatrix.load.client_use import use_within
from sgmatrix.load.evidence import Evidence
from sgmatrix.load.metrics import derived
from sgmatrix.load.offer import in_flight, pilot_offer, point_offer
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.serverview import server_view
from sgmatrix.load.step import CLOSING_S, Step, all_failed, died, ended, failed, skipped, why_not
from sgmatrix.load.surroundings import surroundings
from sgmatrix.load.validity import findings, validity_columns
from sgmatrix.load.warmup import run_wave, why_cold
from sgmatrix.node.batchlog import batch_lines, log_size
from sgmatrix.node.server import Server
from sgmatrix.node.streamlog import stream_errors
from sgmatrix.node.wire import request


def flush_cache(server: Server) -> bool:
    """Empty the server's prefix cache; False when it refuses."""
    try:
        return request(server.port, "POST", "/flush_cache", {}, timeout_s=60)[0] == 200
    except OSError:
        return False


def run_point(
    step: Step, load_id: str, blocked: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Offer one load point and record what happened.

    Args:
        step: the launch.
        load_id: which of its points.
        blocked: reason class of an earlier step that makes this one pointless, or None.

    Returns:
        The point's record and one row per request; both are also in the attempt's folder,
        the record last, so that it never vouches for rows that are not there.

    Raises:
        SgmatrixError: when the environment disturbed it; nothing is written then.
    """
    spec = read_json(step.folder / "spec.json")
    point = next(one for one in spec["points"] if one["load_id"] == load_id)
    rows: list[dict[str, Any]] = []
    if blocked is not None:
        record = skipped(blocked)
    else:
        server = Server.from_record(step.record)
        with server.in_use():
            record, rows = _measure(step, server, spec, point)
        if point == spec["points"][-1]:
            # the server stops while the teardown job starts; that one waits for the proof
            server.ask(ask="stop", why="the last load point is done")
    identity = {
        "campaign": spec["campaign"],
        "cell": step.cell,
        "launch": step.launch,
        "attempt": spec["attempt"],
        "load_id": load_id,
    }
    record |= {
        **identity,
        "asked": record.get("asked"),
        "point_key": point["key"],
        "seed": point["seed"],
        "client": spec["client"]["id"],
        "harness": HARNESS_VERSION,
    }
    # the client's pause is over by now: these were loaded in it
    from sgmatrix.core.parquet import table_from_rows, write_parquet
    from sgmatrix.core.schemas import REQUESTS, REQUESTS_VERSION, with_metadata

    schema = with_metadata(REQUESTS, "requests", REQUESTS_VERSION, {"point_key": point["key"]})
    table = table_from_rows([{**identity, **row} for row in rows], schema)
    write_parquet(table, step.folder / "points" / f"{load_id}.requests.parquet")
    write_json(step.folder / "points" / f"{load_id}.json", record)
    emit(
        step.layout.events,
        "point_done",
        cell=step.cell,
        launch=step.launch,
        load=load_id,
        **{
            k: record.get(k)
            for k in ("status", "reason", "validity", "output_tok_s", "tpot_ms_mean")
        },
    )
    return record, rows


def _measure(
    step: Step, server: Server, spec: dict[str, Any], point: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if closed := server.failure(0):
        return skipped(closed["reason"] or "server_crash"), []
    client = read_json(step.layout.plan)["client"]
    warmup = read_json_or_none(step.folder / "warmup.json") or {}
    emit(step.layout.events, "point", cell=step.cell, launch=step.launch, load=point["load_id"])
    limit_s, wave = spec["deadlines"]["point_s"], warmup
    cold = why_cold(warmup) or _spoilt(step.folder, warmup)
    if pilot := pilot_offer(point, warmup):
        wave = run_wave(step, server, pilot, step.folder / "pilot" / point["load_id"], limit_s)
        if "status" in wave:
            return wave, []
    offer = point_offer(point, wave)
    log = step.folder / "server.log"
    flushed = flush_cache(server)
    begins, started_at = log_size(log), now_utc()
    run = run_client(
        offer,
        client,
        server,
        spec["model"]["path"],
        step.folder / "client" / point["load_id"],
        deadline_s=limit_s,
        # the client pauses for a second before it sends: what this job needs later loads now
        meanwhile=lambda: importlib.import_module("sgmatrix.core.parquet"),
    )
    common: dict[str, Any] = {
        "started_at": started_at,
        "asked": offer.requests,
        "client_wall_s": run.wall_s,
        "cache_flushed": flushed,
    }
    if run.line is None or run.exit_code != 0:
        return {**why_not(run, server, limit_s), **common}, []
    try:
        rows = request_rows(run.line, offer.requests, point["output_len"])
    except SgmatrixError as refusal:
        return {**failed(refusal.code, refusal.facts), **common}, []
    metrics = summarise(rows, run.line.get("duration"))
    counts = {name: metrics[name] for name in ("completed", "failed", "duration_s")}
    if closed := ended(server, CLOSING_S) if metrics["failed"] else server.failure(0):
        # what was answered before the server died is kept, but is no measurement of the load
        return {**died(closed), **common, **counts}, rows
    if not metrics["completed"]:
        return {**all_failed(rows), **common, **counts}, rows
    evidence = _evidence(step, spec, point, client, run, rows, metrics, begins, flushed, cold)
    record = {"status": "ok", "reason": None}
    first_error = next((row["error"] for row in rows if row["error"]), None)
    verdict = validity_columns(findings(evidence, spec["validity"]))
    return {**record, **common, **evidence.metrics, **verdict, "detail": first_error}, rows


def _evidence(
    step: Step,
    spec: Mapping[str, Any],
    point: Mapping[str, Any],
    client: Mapping[str, Any],
    run: ClientRun,
    rows: list[dict[str, Any]],
    metrics: Mapping[str, Any],
    begins: int,
    flushed: bool,
    cold: str | None,
) -> Evidence:
    """Bring together what is known of a point that was measured."""
    asked = in_flight(point)
    enough = None if asked is None else spec["validity"]["min_load_share"] * asked
    log = step.folder / "server.log"
    ends = log_size(log)
    view = server_view(batch_lines(log, begins, ends), enough)
    window = run.window_s(metrics["duration_s"])
    around = surroundings(
        step.folder / "telemetry.jsonl",
        window,
        hz=spec["telemetry"]["hz"],
        devices=(step.record["live"] or {}).get("devices", ()),
    )
    more = derived(point, rows, metrics, view, around, spec["cell"]["gpus"])
    use = use_within(run.looks, *window, one_thread=client["kind"] == "python")
    more |= {
        "client_cpu_cores": use.cpu_cores if use else None,
        "client_delay_share": use.delay_share if use else None,
    }
    return Evidence(
        point=point,
        rows=rows,
        metrics={**metrics, **more, "window_s": list(window), "log_bytes": [begins, ends]},
        server=view,
        pool=step.record.get("info") or {},
        vocab_size=client["vocab_size"],
        client=use,
        surroundings=around,
        stream_errors=stream_errors(log, begins, ends),
        cache_flushed=flushed,
        cold=cold,
    )


def _spoilt(folder: Path, warmup: Mapping[str, Any]) -> str | None:
    """Return why a server is not as fresh as its warm-up left it; None where it is.

    A server that had to throw requests out of a full pool may stay slow long after. The record of
    a point that failed does not tell of it; the log does.
    """
    for path in sorted((folder / "points").glob("*.json")):
        record = read_json(path)
        if record.get("retracted"):
            return f"requests were retracted at {record['load_id']}, on this same server"
    begins = (warmup.get("log_bytes") or (0, 0))[1]
    if any(line.kind == "retract" for line in batch_lines(folder / "server.log", begins)):
        return "requests were retracted since the warm-up, on this same server"
    return None
