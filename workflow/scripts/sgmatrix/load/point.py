"""One load point on a running server, and the warm-up before the first of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import Stopwatch, now_utc
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.events import emit
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.load.client import ClientRun, Offer, run_client
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.validity import validity_flags
from sgmatrix.node import preflight
from sgmatrix.node.logwatch import LogWatch
from sgmatrix.node.server import Server
from sgmatrix.node.wire import request

_CLOSING_S = 2.0
"""After a failed client: how long the warden may take to notice that the server died."""
_FOLLOWING_S = 60.0
"""For a warden that has noticed: until its closing record is there."""


@dataclass(frozen=True)
class Step:
    """What a step of a launch needs to know."""

    layout: Layout
    cell: str
    launch: str
    record: dict[str, Any]
    """What `launch` published."""

    @property
    def folder(self) -> Path:
        return Path(self.record["attempt_dir"])


def flush_cache(server: Server) -> bool:
    """Empty the server's prefix cache; False when it refuses."""
    try:
        return request(server.port, "POST", "/flush_cache", {}, timeout_s=60)[0] == 200
    except OSError:
        return False


def _died(closed: dict[str, Any]) -> dict[str, Any]:
    return _failed(closed["reason"] or "server_crash", closed["root_line"] or closed["detail"])


def _failed(reason: str, detail: str) -> dict[str, Any]:
    return {"status": "failed", "reason": reason, "detail": detail}


def _skipped(reason: str) -> dict[str, Any]:
    return {"status": "skipped", "reason": reason, "detail": None}


def _ended(server: Server, timeout_s: float) -> dict[str, Any] | None:
    """Return how the server ended, if it did while requests failed.

    A front end may answer on when its engine is dead; the log then tells, and the warden is
    about to close.

    Raises:
        SgmatrixError: when it was the environment that ended the server.
    """
    closed = server.failure(timeout_s)
    if closed is None and LogWatch(server.attempt_dir / "server.log").death() is not None:
        closed = server.failure(_FOLLOWING_S)
    return closed


def _why_not(run: ClientRun, server: Server, deadline_s: float) -> dict[str, Any]:
    """Return the failure that a client run without a result stands for.

    Raises:
        SgmatrixError: when it was the environment that ended the server.
    """
    closed = _ended(server, 0 if run.exit_code == 0 or run.timed_out else _CLOSING_S)
    if closed is None:
        preflight.check_disk(server.attempt_dir, 1)  # its own words are then of no help
    if closed is None and run.killed_by is not None:
        raise SgmatrixError("interrupted", f"the load client was ended by signal {run.killed_by}")
    if closed is None and run.exit_code is None and not run.timed_out:
        closed = server.failure(_FOLLOWING_S)  # the warden ended first, its record is on the way
    if closed is not None:
        return _died(closed)
    if run.timed_out:
        return _failed("client_timeout", f"not finished after {deadline_s:g} s")
    return _failed("client_crash", run.last_words)


def run_warmup(step: Step) -> dict[str, Any]:
    """Run full concurrency waves in the cell's own shapes until two agree; keep them apart.

    Returns:
        The record: `status`, and the throughput of each wave. Also in `warmup.json`.

    Raises:
        SgmatrixError: when the environment ended the server.
    """
    if step.record["live"] is None:
        record = _skipped(step.record["reason"])
    else:
        server = Server.from_record(step.record)
        with server.in_use():
            record = _warm_up(step, server)
    write_json(step.folder / "warmup.json", record)
    return record


def _warm_up(step: Step, server: Server) -> dict[str, Any]:
    plan = read_json(step.layout.plan)
    spec = read_json(step.folder / "spec.json")
    rule, limit_s = spec["warmup"], spec["deadlines"]["warmup_s"]
    hardest = max(spec["points"], key=lambda point: point["concurrency"])
    clock = Stopwatch()
    emit(step.layout.events, "warmup", cell=step.cell, launch=step.launch)
    waves: list[float] = []
    agree = False
    for number in range(rule["max_waves"]):
        offer = Offer(
            hardest["dataset"],
            hardest["concurrency"],
            hardest["input_len"],
            hardest["output_len"],
            hardest["concurrency"],
            # other prompts than the measured ones, so that nothing of them is cached
            seed=(hardest["seed"] + 1 + number) % 2**31,
        )
        left_s = limit_s - clock.elapsed_s()
        run = run_client(
            offer,
            plan["client"],
            server,
            spec["model"]["path"],
            step.folder / "warmup" / str(number),
            deadline_s=max(left_s, 1.0),
        )
        if run.line is None or run.exit_code != 0:
            return {**_why_not(run, server, limit_s), "waves_tok_s": waves}
        try:
            rows = request_rows(run.line, offer.requests, offer.output_len)
        except SgmatrixError as refusal:
            return {**_failed(refusal.code, refusal.facts), "waves_tok_s": waves}
        metrics = summarise(rows, run.line.get("duration"))
        if closed := _ended(server, _CLOSING_S) if metrics["failed"] else server.failure(0):
            return {**_died(closed), "waves_tok_s": waves}
        rate = metrics.get("output_tok_s")
        if rate is None:
            return {**_all_failed(rows), "waves_tok_s": waves}
        waves.append(float(rate))
        agree = len(waves) > 1 and abs(waves[-1] - waves[-2]) <= rule["agreement"] * max(waves[-2:])
        if agree:
            break
    return {
        "status": "ok",
        "reason": None,
        "detail": None,
        "waves_tok_s": waves,
        "agree": agree,
        "took_s": clock.elapsed_s(),
    }


def _all_failed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first = next(row["error"] for row in rows if row["error"])
    return _failed("client_crash", f"0 of {len(rows)} requests succeeded: {first[:300]}")


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
    from sgmatrix.core.parquet import table_from_rows, write_parquet
    from sgmatrix.core.schemas import REQUESTS, REQUESTS_VERSION, with_metadata

    spec = read_json(step.folder / "spec.json")
    point = next(one for one in spec["points"] if one["load_id"] == load_id)
    rows: list[dict[str, Any]] = []
    if blocked is not None:
        record = _skipped(blocked)
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
        "point_key": point["key"],
        "seed": point["seed"],
        "asked": point["requests"] if record["status"] != "skipped" else None,
        "client": spec["client"]["id"],
        "harness": HARNESS_VERSION,
    }
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
        return _skipped(closed["reason"] or "server_crash"), []
    plan = read_json(step.layout.plan)
    warm = spec["warmup"]["max_waves"] > 0
    emit(step.layout.events, "point", cell=step.cell, launch=step.launch, load=point["load_id"])
    flushed = flush_cache(server)
    offer = Offer(
        point["dataset"],
        point["concurrency"],
        point["input_len"],
        point["output_len"],
        point["requests"],
        point["seed"],
    )
    limit_s = spec["deadlines"]["point_s"]
    started_at = now_utc()
    run = run_client(
        offer,
        plan["client"],
        server,
        spec["model"]["path"],
        step.folder / "client" / point["load_id"],
        deadline_s=limit_s,
        # the client pauses for a second before it sends: what this job needs later loads now
        meanwhile=lambda: importlib.import_module("sgmatrix.core.parquet"),
    )
    common = {"started_at": started_at, "client_wall_s": run.wall_s, "cache_flushed": flushed}
    if run.line is None or run.exit_code != 0:
        return {**_why_not(run, server, limit_s), **common}, []
    try:
        rows = request_rows(run.line, point["requests"], point["output_len"])
    except SgmatrixError as refusal:
        return {**_failed(refusal.code, refusal.facts), **common}, []
    metrics = summarise(rows, run.line.get("duration"))
    counts = {name: metrics[name] for name in ("completed", "failed", "duration_s")}
    if closed := _ended(server, _CLOSING_S) if metrics["failed"] else server.failure(0):
        # what was answered before the server died is kept, but is no measurement of the load
        return {**_died(closed), **common, **counts}, rows
    if not metrics["completed"]:
        return {**_all_failed(rows), **common, **counts}, rows
    flags = validity_flags(rows, cache_flushed=flushed, warm=warm)
    record = {
        "status": "ok",
        "reason": None,
        "detail": None,
        "validity": ",".join(flags) or "valid",
    }
    first_error = next((row["error"] for row in rows if row["error"]), None)
    return {**record, **common, **metrics, "detail": first_error}, rows
