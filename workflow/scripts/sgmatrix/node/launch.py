"""The launch and the teardown of one server, as the rules of these names need them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import now_utc
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.events import emit
from sgmatrix.core.files import read_json, read_json_or_none, write_json, write_text
from sgmatrix.core.layout import PROBE, Layout
from sgmatrix.core.reasons import NOT_NEEDED
from sgmatrix.core.recorded import recorded_facts
from sgmatrix.core.redact import redact
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.node import proc
from sgmatrix.node.facts import node_facts
from sgmatrix.node.rundirs import make_run_dir
from sgmatrix.node.server import Server, messages, raise_if_environment, start_warden
from sgmatrix.node.time_limit import begin_by
from sgmatrix.plan.patched_copy import PatchedCopy, patch_diff, provide

_STOPPED_S = 10.0
"""Beyond the stop deadline: how long a warden may be stopped by a signal before it is given up."""

RECORDER_VARIABLE = "SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR"
"""Where a server of a probe dumps the experts that its steps read."""
OWNER_VARIABLE = "SGMATRIX_OWNER"
"""JSON identity of the process whose end ends every server: Snakemake's."""
STOPPING_VARIABLE = "SGMATRIX_STOPPING"
"""A file that exists once the campaign is being stopped."""


def planned_launch(plan: dict[str, Any], cell: str, launch: str) -> dict[str, Any]:
    """Return a launch of `plan.json`."""
    every = [*plan["launches"], *plan.get("probes", []), *plan.get("profiles", [])]
    found: dict[str, Any] = next(
        one for one in every if (one["cell"], one["launch"]) == (cell, launch)
    )
    return found


def _owner() -> dict[str, Any]:
    text = os.environ.get(OWNER_VARIABLE)
    if text:
        owner: dict[str, Any] = json.loads(text)
        return owner
    parent = proc.identify(os.getppid())
    assert parent is not None
    return parent.record()


def run_launch(layout: Layout, cell: str, launch: str) -> dict[str, Any]:
    """Start a server under a warden and wait until it is ready, or has failed.

    Returns:
        The record of the launch: `status` ok with what is known of the running server, or
        failed with its reason class. Also written to the attempt's `server.json`.

    Raises:
        SgmatrixError: when the environment prevented it; nothing is left behind then.
    """
    plan = read_json(layout.plan)
    refuse_when_stopped()
    spec = _spec(layout, plan, cell, launch)
    facts = node_facts(plan["cells"][cell]["device"])
    copy = _patched_copy(plan["cells"][cell])
    run_dir = make_run_dir()
    me = proc.identify(os.getpid())
    assert me is not None
    spec |= {
        "token": secrets.token_hex(16),
        "run_dir": str(run_dir),
        "events": str(layout.events.resolve()),
        "stopping": os.environ.get(STOPPING_VARIABLE, ""),
        "begin_by": begin_by(layout, spec["cell"], len(spec["points"])),
        "owner": _owner(),
        "job": me.record(),
    }
    write_json(run_dir / "spec.json", spec)
    try:
        warden = start_warden(run_dir / "spec.json")
    except BaseException:
        shutil.rmtree(run_dir, ignore_errors=True)
        raise
    identity = proc.identify(warden.pid)
    for message in messages(warden, stopped_s=spec["deadlines"]["stop_s"] + _STOPPED_S):
        if message["event"] == "ready" and identity is not None:
            live = {k: message[k] for k in ("port", "nonce", "server", "devices")}
            record = {
                "status": "ok",
                "reason": None,
                "detail": None,
                **_identity_of(spec),
                "argv": message["argv"],
                "times": message["times"],
                "info": message["info"],
                "live": {**live, "warden": identity.record(), "run_dir": str(run_dir)},
            }
            break
        if message["event"] == "closed":
            raise_if_environment(message)
            record = {
                "status": "failed",
                **{k: message[k] for k in ("reason", "detail", "times")},
                **_identity_of(spec),
                "argv": None,
                "info": None,
                "live": None,
            }
            break
    else:
        shutil.rmtree(run_dir, ignore_errors=True)
        raise SgmatrixError("interrupted", f"the warden of {cell} launch {launch} was ended")
    folder = Path(record["attempt_dir"])
    write_json(folder / "node.json", facts)
    if copy is not None:
        write_text(folder / "patches.diff", patch_diff(copy))
    recorded = recorded_facts(spec["cell"], plan["engines"], plan["client"]["id"], facts)
    write_text(folder / "cell.yaml", _cell_yaml(spec["cell"]["reproduce"], recorded))
    write_json(folder / "server.json", record)
    if record["live"] is not None:
        Server.from_record(record).ask(ask="release", job=me.record())
    return record


def _spec(layout: Layout, plan: dict[str, Any], cell: str, launch: str) -> dict[str, Any]:
    """Return what an attempt is to be, from the plan: all that outlives its processes."""
    planned = planned_launch(plan, cell, launch)
    attempt = max([planned["attempt"], *(n + 1 for n in layout.attempt_numbers(cell, launch))])
    what = plan["cells"][cell]
    if launch == PROBE:
        env = {
            **what["env"],
            RECORDER_VARIABLE: str(layout.attempt(cell, launch, attempt).resolve()),
        }
        what = {**what, "arguments": [*what["arguments"], *planned["arguments"]], "env": env}
    return {
        "campaign": plan["campaign"],
        "study": plan["study"],
        "cell": what,
        "launch": launch,
        "attempt": attempt,
        "asked_attempt": planned["attempt"],
        "points": planned["points"],
        "rule": (planned.get("condition") or {}).get("rule"),
        "model": plan["model"],
        "client": {"id": plan["client"]["id"]},
        "harness": HARNESS_VERSION,
        "asked_at": now_utc(),
        # the times of the server's log are local ones
        "utc_offset_s": time.localtime().tm_gmtoff,
        "attempt_dir": str(layout.attempt(cell, launch, attempt).resolve()),
        **plan["settings"],
        "deadlines": plan["cells"][cell]["deadlines"],
    }


def skip_launch(layout: Layout, cell: str, launch: str, why: str) -> dict[str, Any]:
    """Record a launch that is not needed; no server is started.

    Args:
        layout: where the campaign's files lie.
        cell: cell id.
        launch: which launch.
        why: for people.

    Returns:
        Its record, as of `run_launch`, also in the attempt's `server.json`.
    """
    refuse_when_stopped()
    spec = _spec(layout, read_json(layout.plan), cell, launch)
    folder = Path(spec["attempt_dir"])
    folder.mkdir(parents=True)  # a number is used once
    write_json(folder / "spec.json", redact(spec))
    record: dict[str, Any] = {
        "status": "skipped",
        "reason": NOT_NEEDED,
        "detail": why,
        **_identity_of(spec),
        "times": {},
        **dict.fromkeys(("argv", "info", "live")),
    }
    write_json(folder / "closed.json", {"reason": None, "detail": why, "times": {}})
    write_json(folder / "server.json", record)
    return record


def _patched_copy(cell: dict[str, Any]) -> PatchedCopy | None:
    """Return the patched copy that a cell runs, made here where it is not there yet."""
    if cell["copy"] is None:
        return None
    copy = PatchedCopy.from_record(cell["copy"])
    provide(copy, cell["python"], cell["env"])
    return copy


def _cell_yaml(reproduce: dict[str, Any], recorded: dict[str, Any]) -> str:
    from sgmatrix.core.yaml_strict import yaml_text

    head = "# Reproduces this cell alone: snakemake --configfile <this file>\n"
    rerun = {**reproduce["rerun"], "recorded": recorded}
    return head + yaml_text({**reproduce, "rerun": rerun})


def _identity_of(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell": spec["cell"]["id"],
        "launch": spec["launch"],
        "attempt": spec["attempt"],
        "asked_attempt": spec["asked_attempt"],
        "attempt_dir": spec["attempt_dir"],
    }


def refuse_when_stopped() -> None:
    """Refuse to begin when an earlier job of this invocation met a disturbance, or was stopped.

    A busy node ends the campaign after the first launch that finds it so, not after all.
    """
    marker = os.environ.get(STOPPING_VARIABLE)
    if marker and Path(marker).exists():
        why = Path(marker).read_text(encoding="utf-8").strip() or "the campaign is being stopped"
        raise SgmatrixError("interrupted", f"not begun: {why}")


def refuse_when_orphaned() -> None:
    """Refuse to publish for a Snakemake that is gone: another one may be at work already."""
    text = os.environ.get(OWNER_VARIABLE)
    if text and not proc.Identity(**json.loads(text)).alive():
        raise SgmatrixError("interrupted", "the Snakemake process is gone")


@contextlib.contextmanager
def disturbance_stops_campaign() -> Iterator[None]:
    """Let no further launch of this invocation begin when the block meets a disturbance."""
    try:
        yield
    except SgmatrixError as refusal:
        marker = os.environ.get(STOPPING_VARIABLE)
        with contextlib.suppress(OSError):  # a full disk hides no refusal
            if marker and not Path(marker).exists():
                write_text(Path(marker), f"{refusal.code}: {refusal.facts}\n")
        raise


def run_teardown(layout: Layout, record: dict[str, Any]) -> dict[str, Any]:
    """Stop the server of a launch, wait for the proof, and write the final record.

    Args:
        layout: where the campaign's files lie.
        record: what `run_launch` returned.

    Returns:
        The final record of the launch, also in the attempt's `teardown.json`: its existence
        is what makes an attempt complete.

    Raises:
        SgmatrixError: when the environment ended the server, or it could not be ended.
    """
    folder = Path(record["attempt_dir"])
    spec = read_json(folder / "spec.json")
    if record["live"] is not None:
        server = Server.from_record(record)
        server.ask(ask="stop", why="the launch is finished")
        # the warden waits that long for the processes, then for the memory of the GPUs
        closed = server.closed(2 * spec["deadlines"]["stop_s"] + 60)
        if closed is None:
            raise SgmatrixError(
                "drain_failed",
                f"the warden of {server.nonce} (pid {server.warden.pid}) does not end",
            )
    else:
        closed = read_json(folder / "closed.json")
    raise_if_environment(closed)
    warmup = read_json_or_none(folder / "warmup.json")
    points = [read_json(p) for p in sorted((folder / "points").glob("*.json"))]
    bad = [step for step in (warmup, *points) if step and step["status"] == "failed"]
    reason = closed["reason"] or (bad[0]["reason"] if bad else None)
    detail = closed["detail"] if closed["reason"] else (bad[0]["detail"] if bad else None)
    status = "ok" if reason is None else "failed"
    if record["status"] == "skipped":
        status, reason, detail = "skipped", record["reason"], record["detail"]
    final = {
        "status": status,
        "reason": reason,
        "detail": detail,
        **{k: record[k] for k in ("cell", "launch", "attempt", "asked_attempt", "argv", "info")},
        "server_times": record["times"],
        "warmup": warmup,
        "closed": closed,
        "finished_at": now_utc(),
    }
    write_json(folder / "teardown.json", final)
    emit(
        layout.events,
        "launch_done",
        cell=record["cell"],
        launch=record["launch"],
        status=final["status"],
        reason=reason,
    )
    return final
