"""One probe: a launch of its own, its counts and its quality, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import now_utc
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.layout import PROBE, Layout
from sgmatrix.load.probe.asked import ask_engine
from sgmatrix.load.probe.experts import batch_means, record_batches, step_rows
from sgmatrix.load.probe.quality import forced_logprobs, own_words, summary
from sgmatrix.load.step import CLOSING_S, Step, died, ended, failed, skipped
from sgmatrix.load.warmup import prove
from sgmatrix.node.launch import planned_launch, run_launch, run_teardown
from sgmatrix.node.server import Server

_TEXT_TOKENS = 16
"""Prompt tokens of a text whose likelihood is measured."""


def run_probe(layout: Layout, cell: str) -> Path:
    """Probe a cell; return the folder that holds `probe.json` and `experts.parquet`.

    A fault of the server is a record, as in a timed launch.

    Raises:
        SgmatrixError: when the environment disturbed it; nothing is filed then.
    """
    plan = read_json(layout.plan)
    planned = planned_launch(plan, cell, PROBE)
    record = run_launch(layout, cell, PROBE)
    step = Step(layout, cell, PROBE, record)
    spec = read_json(step.folder / "spec.json")
    result: dict[str, Any] = skipped(record["reason"] or "server_crash")
    rows: list[dict[str, Any]] = []
    if record["live"] is not None:
        server = Server.from_record(record)
        with server.in_use():
            try:
                result, rows = _probe(step, server, spec, planned, plan)
            except OSError as error:
                closed = ended(server, CLOSING_S)
                result = died(closed) if closed else failed("client_crash", str(error)[:500])
    final = run_teardown(layout, record)
    if final["status"] != "ok":
        result |= {name: final[name] for name in ("status", "reason", "detail")}
    result |= {
        **{name: final[name] for name in ("cell", "attempt", "finished_at")},
        **{name: planned[name] for name in ("key", "reference")},
    }
    _write_rows(step, spec, rows)
    write_json(step.folder / "probe.json", result)
    return step.folder


def _probe(
    step: Step,
    server: Server,
    spec: Mapping[str, Any],
    planned: Mapping[str, Any],
    plan: Mapping[str, Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    proof, unproven = prove(server, spec["cell"])
    if unproven is not None:
        return unproven, []
    dumps, problem = record_batches(step, server, spec)
    if problem is not None:
        return problem, []
    top_k = spec["model"]["experts_per_token"]
    if not top_k:
        return failed("config_rejected", "the model's config.json does not say its top-k"), []
    rows = step_rows(dumps, spec["cell"], top_k)
    devices = (step.record["live"] or {}).get("devices", [])
    visible = ",".join(name.removeprefix("gpu-") for name in devices if name.startswith("gpu-"))
    bandwidth = ask_engine(
        spec["cell"],
        "bandwidth.py",
        [spec["cell"]["device"]],
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": visible},
    )
    quality, words = _quality(step, server, spec, planned, plan)
    for dump in dumps.values():
        dump.unlink()  # what it says is in the rows; with many steps it is large
    return {
        "status": "ok",
        "reason": None,
        "detail": None,
        "proof": proof,
        "batches": batch_means(rows),
        "memory_bandwidth_bytes_s": bandwidth,
        "quality": quality,
        "texts": words,
        "made_at": now_utc(),
    }, rows


def _quality(
    step: Step,
    server: Server,
    spec: Mapping[str, Any],
    planned: Mapping[str, Any],
    plan: Mapping[str, Any],
) -> tuple[dict[str, Any], list[dict[str, list[int]]] | None]:
    """Return what was measured, or why it was not; and the texts that this cell wrote itself."""
    if not planned["prompts"]:
        return {"not_measured": "probe.prompts is 0"}, None
    reference, words = planned["reference"], None
    if reference is None:
        return {"not_measured": "no cell is the same with OEA off"}, None
    try:
        if reference == step.cell:
            words = texts = own_words(
                server,
                prompts=planned["prompts"],
                input_len=_TEXT_TOKENS,
                tokens=planned["tokens"],
                vocab=plan["client"].get("vocab_size") or 1000,
                seed=spec["points"][0]["seed"],
            )
        else:
            other = read_json(step.layout.launch(reference, PROBE) / "probe.json")
            texts = other.get("texts")
            if not texts:
                return {"not_measured": f"{reference} has written no text"}, None
        before, unproven = prove(server, spec["cell"])
        logprobs = forced_logprobs(server, texts)
        after, lost = prove(server, spec["cell"])
    except OSError as error:  # the counts stand; that the server died is in its closing record
        return {"not_measured": str(error)[:500]}, words
    if problem := unproven or lost:
        return {"not_measured": f"OEA is not proven there: {problem['detail']}"}, words
    calls = [[rank["calls"] for rank in ranks or []] for ranks in (before, after)]
    if any(late <= early for early, late in zip(*calls, strict=True)):
        return {"not_measured": f"OEA did not run meanwhile: calls {calls[0]} to {calls[1]}"}, words
    return {**summary(logprobs), "reference": reference, "calls": calls}, words


def _write_rows(step: Step, spec: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
    # pyarrow takes its time, and nothing waits for it here
    from sgmatrix.core.parquet import table_from_rows, write_parquet
    from sgmatrix.core.schemas import with_metadata
    from sgmatrix.core.schemas_compare import EXPERTS, EXPERTS_VERSION

    identity = {
        "campaign": spec["campaign"],
        "cell": step.cell,
        "cell_key": spec["cell"]["key"],
        "attempt": spec["attempt"],
    }
    schema = with_metadata(EXPERTS, "experts", EXPERTS_VERSION, {"cell": step.cell})
    table = table_from_rows([{**identity, **row} for row in rows], schema)
    write_parquet(table, step.folder / "experts.parquet")
