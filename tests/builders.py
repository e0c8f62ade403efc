"""Campaigns, client lines and histories that tests are made of, in the real forms.

A history is written through the product's own plan and request rows, and in the order of its
steps: `spec.json` when the server starts, then `server.json`, the points, `teardown.json`.

    history = History(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    history.attempt("tp1")                                   # complete, all points ok
    history.attempt("tp2", reason="oom_runtime")             # complete, a failed cell
    history.attempt("tp1", points=1, complete=False)         # ended from outside after one point
    history.layout, history.plan                             # where it lies, what `plan.json` holds

Not here  servers and processes: `tests/standin`, `tests/unit/node/conftest.py`.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.redact import redact
from sgmatrix.core.schemas import REQUESTS, REQUESTS_VERSION, with_metadata
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.node.launch import run_teardown, skip_launch
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import make_plan, plan_record

PROJECT = Path(__file__).resolve().parents[1]
STANDIN = PROJECT / "tests" / "standin"
STANDIN_OEA = PROJECT / "tests" / "standin_oea"
STARTED_AT = "2026-11-20T10:00:00.000000+00:00"


def campaign_data(**changes: Any) -> dict[str, Any]:
    """Return a small campaign on the stand-in as its file holds it; top-level keys replaced."""
    data: dict[str, Any] = {
        "campaign": "made-up",
        "study": "tests",
        "engine": "standin",
        "engines": {
            "standin": {
                "python": sys.executable,
                "device": "cpu",
                "env": {"PYTHONPATH": str(STANDIN)},
                "flags": {"standin_ready_ms": 30, "standin_ttft_ms": 1, "standin_tpot_ms": 0.5},
            }
        },
        "model": {"recipe": "tiny-qwen3-moe"},
        "axes": {"parallelism": ["tp1"]},
        "load": {"concurrency": [1, 2], "input_len": 16, "output_len": 4},
        "telemetry": {"hz": 0},
        "deadlines": {
            "start_s": 20,
            "stall_s": 20,
            "point_s": 20,
            "warmup_s": 20,
            "stop_s": 5,
            "idle_s": 20,
        },
    }
    return {**data, **copy.deepcopy(changes)}


def campaign(**changes: Any) -> Campaign:
    """Return that campaign, validated."""
    return Campaign.model_validate(campaign_data(**changes))


def with_plugin(**changes: Any) -> Campaign:
    """Return that campaign with the plug-in sglang-oea beside the stand-in, validated."""
    data = campaign_data(**changes)
    data["engines"]["standin"]["env"] = {"PYTHONPATH": f"{STANDIN}:{STANDIN_OEA}"}
    return Campaign.model_validate(data)


def client_line(
    requests: int,
    *,
    tokens: int = 4,
    input_len: int = 16,
    ttft_s: float = 0.010,
    itl_s: float = 0.002,
    failed: int = 0,
    duration_s: float = 0.5,
    **changes: Any,
) -> dict[str, Any]:
    """Return a result line as `sglang.benchmark.serving --output-details` writes it.

    The last `failed` requests had an error: the client then keeps the length that was asked
    for, a TTFT of 0 and no text.
    """
    ok = requests - failed
    return {
        "backend": "sglang",
        "duration": duration_s,
        "completed": ok,
        "input_lens": [input_len] * requests,
        "output_lens": [tokens] * ok + [0] * failed,
        "ttfts": [ttft_s] * ok + [0.0] * failed,
        "itls": [[itl_s] * (tokens - 1)] * ok + [[]] * failed,
        "generated_texts": ["w0001 " * tokens] * ok + [""] * failed,
        "errors": [""] * ok + ["Internal Server Error"] * failed,
        **changes,
    }


def launch_spec(
    plan: dict[str, Any], cell: str, launch: str, attempt: int, **changes: Any
) -> dict[str, Any]:
    """Return what a launch job gives its warden, but for its processes and folders."""
    planned = next(
        one for one in plan["launches"] if (one["cell"], one["launch"]) == (cell, launch)
    )
    return {
        "campaign": plan["campaign"],
        "study": plan["study"],
        "cell": plan["cells"][cell],
        "launch": launch,
        "attempt": attempt,
        "asked_attempt": attempt,
        "points": planned["points"],
        "rule": (planned["condition"] or {}).get("rule"),
        "model": plan["model"],
        "client": {"id": plan["client"]["id"]},
        "harness": HARNESS_VERSION,
        "asked_at": STARTED_AT,
        "token": "0123456789abcdef",
        **plan["settings"],
        "deadlines": plan["cells"][cell]["deadlines"],
        **changes,
    }


class History:
    """The files of one campaign, written as its jobs write them."""

    def __init__(self, folder: Path, what: Campaign | None = None) -> None:
        self.campaign = what or campaign()
        self.layout = Layout(folder / "results" / self.campaign.campaign)
        made = make_plan(self.campaign, self.layout, PROJECT)
        self.plan: dict[str, Any] = json.loads(json.dumps(plan_record(made, self.campaign, None)))
        self.cells = list(made.cells)
        self.loads = [point.load_id for point in made.launches[0].points]
        write_json(self.layout.plan, self.plan)

    def attempt(
        self,
        cell: str,
        launch: str = "1",
        *,
        number: int | None = None,
        reason: str | None = None,
        complete: bool = True,
        points: int | None = None,
        lines: dict[str, dict[str, Any]] | None = None,
        version: str = "0.5.23+standin",
    ) -> Path:
        """Write one attempt and return its folder.

        Args:
            cell: cell id.
            launch: its launch.
            number: its number; the next one by default.
            reason: reason class of a server that died at the last point; None: all is well.
            complete: whether it came to its teardown.
            points: how many load points have a record; all by default.
            lines: client lines by load id, where the default one is not wanted.
            version: what the running server reported.
        """
        if number is None:
            number = max(self.layout.attempt_numbers(cell, launch), default=0) + 1
        spec = launch_spec(self.plan, cell, launch, number)
        folder = self.layout.attempt(cell, launch, number)
        write_json(folder / "spec.json", redact(spec))
        identity = {"cell": cell, "launch": launch, "attempt": number, "asked_attempt": number}
        server = {"status": "ok", "reason": None, "info": {"version": version}, "argv": []}
        write_json(folder / "server.json", {**identity, **server})
        planned = spec["points"][:points]
        for point in planned:
            dead = reason if point is planned[-1] else None
            self._point(folder, spec, point, dead, (lines or {}).get(point["load_id"]))
        if complete:
            status = "ok" if reason is None else "failed"
            final = {"status": status, "reason": reason, "detail": None, "warmup": None}
            write_json(folder / "teardown.json", {**identity, **final})
        return folder

    def skip(self, cell: str, launch: str) -> None:
        """Record a launch that a decided comparison did not need."""
        record = skip_launch(self.layout, cell, launch, "slots is decided: better")
        run_teardown(self.layout, record)

    def _point(
        self,
        folder: Path,
        spec: dict[str, Any],
        point: dict[str, Any],
        reason: str | None,
        line: dict[str, Any] | None,
    ) -> None:
        identity = {
            "campaign": spec["campaign"],
            "cell": spec["cell"]["id"],
            "launch": spec["launch"],
            "attempt": spec["attempt"],
            "load_id": point["load_id"],
        }
        rows: list[dict[str, Any]] = []
        record: dict[str, Any] = {"status": "failed", "reason": reason, "detail": "its root line"}
        if reason is None:
            line = line or client_line(point["requests"], tokens=point["output_len"])
            rows = request_rows(line, point["requests"], point["output_len"])
            metrics = summarise(rows, line["duration"])
            record = {
                "status": "ok",
                "reason": None,
                "validity": "valid",
                **metrics,
                "detail": None,
            }
        record |= {
            **identity,
            "started_at": STARTED_AT,
            "client_wall_s": 1.5,
            "point_key": point["key"],
            "seed": point["seed"],
            "asked": point["requests"],
            "client": spec["client"]["id"],
            "harness": HARNESS_VERSION,
        }
        schema = with_metadata(REQUESTS, "requests", REQUESTS_VERSION, {"point_key": point["key"]})
        table = table_from_rows([{**identity, **row} for row in rows], schema)
        write_parquet(table, folder / "points" / f"{point['load_id']}.requests.parquet")
        write_json(folder / "points" / f"{point['load_id']}.json", record)
