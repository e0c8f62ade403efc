"""One profile: a launch of its own, its traces, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import now_utc
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.layout import PROFILE, Layout
from sgmatrix.load.offer import point_offer, wave_offer
from sgmatrix.load.profile.capture import Capture
from sgmatrix.load.step import CLOSING_S, Step, died, ended, failed, skipped
from sgmatrix.load.warmup import prove, run_wave
from sgmatrix.node.launch import planned_launch, run_launch, run_teardown
from sgmatrix.node.server import Server

_WARM_WAVES = 2
"""The first one builds what has to be built, the second one says how long a wave takes."""


def run_profile(layout: Layout, cell: str) -> Path:
    """Profile a cell; return the folder that holds `capture.json` and the traces.

    A fault of the server is a record, as in a timed launch.

    Raises:
        SgmatrixError: when the environment disturbed it; nothing is filed then.
    """
    planned = planned_launch(read_json(layout.plan), cell, PROFILE)
    record = run_launch(layout, cell, PROFILE)
    step = Step(layout, cell, PROFILE, record)
    spec = read_json(step.folder / "spec.json")
    result: dict[str, Any] = skipped(record["reason"] or "server_crash")
    if record["live"] is not None:
        server = Server.from_record(record)
        with server.in_use():
            try:
                result = _profile(step, server, spec, planned)
            except OSError as error:
                closed = ended(server, CLOSING_S)
                result = died(closed) if closed else failed("client_crash", str(error)[:500])
    final = run_teardown(layout, record)
    if final["status"] != "ok":
        result |= {name: final[name] for name in ("status", "reason", "detail")}
    point = spec["points"][0]
    result |= {
        **{name: final[name] for name in ("cell", "attempt", "finished_at")},
        **{name: planned[name] for name in ("key", "steps")},
        **{name: point[name] for name in ("concurrency", "input_len", "output_len", "dataset")},
        "ranks": spec["cell"]["ranks"],
    }
    write_json(step.folder / "capture.json", result)
    return step.folder


def _profile(
    step: Step, server: Server, spec: Mapping[str, Any], planned: Mapping[str, Any]
) -> dict[str, Any]:
    point, limit_s = spec["points"][0], spec["deadlines"]["point_s"]
    wave: dict[str, Any] = {}
    for number in range(_WARM_WAVES):
        folder = step.folder / "waves" / f"warm-{number}"
        wave = run_wave(step, server, wave_offer([point], number), folder, limit_s)
        if "status" in wave:
            return wave
    _, unproven = prove(server, spec["cell"])
    if unproven is not None:
        return unproven
    traced = step.folder / "traces"
    traced.mkdir()
    wave_s = point["concurrency"] / wave["request_s"]
    capture = Capture(server, traced.resolve(), planned, spec["cell"]["device"], wave_s)
    folder = step.folder / "waves" / "profiled"
    try:
        offer = point_offer(point, {})
        # not before the client is there: it is made where no other thread runs
        wave = run_wave(step, server, offer, folder, limit_s, meanwhile=capture.start)
    finally:
        capture.over.set()
    if "status" in wave:
        return wave
    traces = capture.finish()
    if not traces:
        return failed("client_crash", f"the profiler of the engine wrote no trace into {traced}")
    return {
        "status": "ok",
        "reason": None,
        "detail": None,
        "running": capture.running,
        "traces": [{"name": one.name, "bytes": one.stat().st_size} for one in traces],
        "made_at": now_utc(),
    }
