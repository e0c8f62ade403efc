"""What the steps of a launch have in common: who they are, and how one that fails is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.load.client import ClientRun
from sgmatrix.node import preflight
from sgmatrix.node.logwatch import LogWatch
from sgmatrix.node.server import Server

CLOSING_S = 2.0
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


def died(closed: dict[str, Any]) -> dict[str, Any]:
    return failed(closed["reason"] or "server_crash", closed["root_line"] or closed["detail"])


def failed(reason: str, detail: str) -> dict[str, Any]:
    return {"status": "failed", "reason": reason, "detail": detail}


def skipped(reason: str) -> dict[str, Any]:
    return {"status": "skipped", "reason": reason, "detail": None}


def ended(server: Server, timeout_s: float) -> dict[str, Any] | None:
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


def why_not(run: ClientRun, server: Server, deadline_s: float) -> dict[str, Any]:
    """Return the failure that a client run without a result stands for.

    Raises:
        SgmatrixError: when it was the environment that ended the server.
    """
    closed = ended(server, 0 if run.exit_code == 0 or run.timed_out else CLOSING_S)
    if closed is None:
        preflight.check_disk(server.attempt_dir, 1)  # its own words are then of no help
    if closed is None and run.killed_by is not None:
        raise SgmatrixError("interrupted", f"the load client was ended by signal {run.killed_by}")
    if closed is None and run.exit_code is None and not run.timed_out:
        closed = server.failure(_FOLLOWING_S)  # the warden ended first, its record is on the way
    if closed is not None:
        return died(closed)
    if run.timed_out:
        return failed("client_timeout", f"not finished after {deadline_s:g} s")
    return failed("client_crash", run.last_words)


def all_failed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first = next(row["error"] for row in rows if row["error"])
    return failed("client_crash", f"0 of {len(rows)} requests succeeded: {first[:300]}")
