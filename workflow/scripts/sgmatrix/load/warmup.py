"""The warm-up before the first load point: waves in the cell's own shapes until two agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import Stopwatch
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.events import emit
from sgmatrix.core.files import read_json, write_json
from sgmatrix.load.client import run_client
from sgmatrix.load.offer import Offer, wave_offer
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.step import CLOSING_S, Step, all_failed, died, ended, failed, skipped, why_not
from sgmatrix.node.batchlog import log_size
from sgmatrix.node.proof import (
    ANSWER_S,
    ask_ranks,
    proof_record,
    status_folder,
    stray_answers,
    why_unproven,
)
from sgmatrix.node.ready import generate
from sgmatrix.node.server import Server

_PROVING_TOKENS = 4
"""Of a request that is to see decode steps, where there was no wave."""


def run_warmup(step: Step) -> dict[str, Any]:
    """Run full concurrency waves in the cell's own shapes until two agree; keep them apart.

    Returns:
        The record: `status`, and the throughput of each wave. Also in `warmup.json`.

    Raises:
        SgmatrixError: when the environment ended the server.
    """
    if step.record["live"] is None:
        record = skipped(step.record["reason"])
    else:
        server = Server.from_record(step.record)
        with server.in_use():
            record = _warm_up(step, server)
    write_json(step.folder / "warmup.json", record)
    return record


def _warm_up(step: Step, server: Server) -> dict[str, Any]:
    spec = read_json(step.folder / "spec.json")
    rule, limit_s = spec["warmup"], spec["deadlines"]["warmup_s"]
    clock = Stopwatch()
    emit(step.layout.events, "warmup", cell=step.cell, launch=step.launch)
    began_s, begins = time.time(), log_size(step.folder / "server.log")
    waves: list[float] = []
    wave: dict[str, Any] = {}
    agree = False
    for number in range(rule["max_waves"]):
        left_s = max(limit_s - clock.elapsed_s(), 1.0)
        offer = wave_offer(spec["points"], number)
        wave = run_wave(step, server, offer, step.folder / "warmup" / str(number), left_s)
        if "status" in wave:
            return {**wave, "waves_tok_s": waves}
        waves.append(wave["output_tok_s"])
        agree = len(waves) > 1 and abs(waves[-1] - waves[-2]) <= rule["agreement"] * max(waves[-2:])
        if agree:
            break
    proof, unproven = prove(server, spec["cell"])
    return {
        **(unproven or {"status": "ok", "reason": None, "detail": None}),
        "proof": proof,
        "waves_tok_s": waves,
        "agree": agree,
        "request_s": wave.get("request_s"),
        "concurrency": wave.get("concurrency"),
        "took_s": clock.elapsed_s(),
        "window_s": [began_s, time.time()],
        "log_bytes": [begins, log_size(step.folder / "server.log")],
    }


def run_wave(
    step: Step,
    server: Server,
    offer: Offer,
    folder: Path,
    limit_s: float,
    *,
    meanwhile: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Offer one wave, whose numbers are kept apart from those of the points.

    Args:
        step: the step that it is of.
        server: the running server.
        offer: what is offered.
        folder: empty folder that keeps the client's output.
        limit_s: after which the client is ended.
        meanwhile: work to do once the client was started.

    Returns:
        `output_tok_s`, `request_s` and `concurrency`; or what failed, which alone has `status`.

    Raises:
        SgmatrixError: when the environment ended the server or the client.
    """
    client = read_json(step.layout.plan)["client"]
    model = read_json(step.folder / "spec.json")["model"]["path"]
    run = run_client(offer, client, server, model, folder, deadline_s=limit_s, meanwhile=meanwhile)
    if run.line is None or run.exit_code != 0:
        return why_not(run, server, limit_s)
    try:
        rows = request_rows(run.line, offer.requests, offer.output_len)
    except SgmatrixError as refusal:
        return failed(refusal.code, refusal.facts)
    metrics = summarise(rows, run.line.get("duration"))
    if closed := ended(server, CLOSING_S) if metrics["failed"] else server.failure(0):
        return died(closed)
    if metrics.get("output_tok_s") is None:
        return all_failed(rows)
    return {
        "output_tok_s": metrics["output_tok_s"],
        "request_s": metrics["request_s"],
        "concurrency": offer.concurrency,
    }


def prove(
    server: Server, cell: Mapping[str, Any]
) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None]:
    """Have every rank prove that the plug-in of a cell has taken part in decode steps.

    Returns:
        What the ranks said, None where there is no plug-in to prove; and what failed, None where
        nothing did.
    """
    oea, ranks = cell["oea"], cell["ranks"]
    if not oea:
        return None, None
    folder = status_folder(server.attempt_dir)
    if not oea["on"]:
        stray = stray_answers(folder)
        why = f"oea is off, and {stray[0]} says that it runs" if stray else None
        return [], failed("flag_mismatch", why) if why else None
    for _ in range(cell["flags"].get("dp_size") or 1):  # one for each replica, in turn
        generate(server.port, tokens=_PROVING_TOKENS, timeout_s=ANSWER_S)
    answers = ask_ranks(folder, ranks)
    why = why_unproven(answers, ranks, oea["settings"], decoded=True)
    return proof_record(answers), failed("plugin_inactive", why) if why else None


def why_cold(record: Mapping[str, Any]) -> str | None:
    """Return why a server is not warm after its warm-up; None where it is."""
    waves = record.get("waves_tok_s") or []
    if not waves:
        return "there was no warm-up"
    if len(waves) == 1:
        return "there was one warm-up wave, and none to compare it with"
    if not record.get("agree"):
        apart = abs(waves[-1] - waves[-2]) / max(waves[-2:])
        return f"the last of {len(waves)} warm-up waves differ by {100 * apart:.0f} %"
    return None
