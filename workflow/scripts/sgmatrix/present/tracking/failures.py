"""What went wrong between this job and MLflow, in one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.redact import redact_prose
from sgmatrix.present.tracking.target import Target

REPLAY = "then run snakemake track; nothing of the results is lost"
_TWICE = re.compile(r"duplicate (?:key|entry)|unique constraint|uniqueviolation", re.IGNORECASE)
_LOCKED = re.compile(r"database (?:table )?is locked", re.IGNORECASE)


def is_twice(error: BaseException) -> bool:
    """Tell whether another job made the same entry at the same time; it is there by now."""
    return bool(_TWICE.search(str(error)))


def is_locked(error: BaseException) -> bool:
    """Tell whether SQLite gave up because another program writes to the file."""
    return bool(_LOCKED.search(str(error)))


def failure(error: BaseException, target: Target) -> SgmatrixError:
    """Return the one line that tells an error of MLflow, its database or its server."""
    text = str(error)
    for pattern, what, mend in _SERVER if target.is_server else _DATABASE:
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            facts = f"MLflow {target.public} {what(found)}"
            return SgmatrixError("tracking_failed", facts, fix=f"{mend}, {REPLAY}")
    first = (text.splitlines() or [type(error).__name__])[0]
    return SgmatrixError(
        "tracking_failed",
        f"MLflow {target.public}: {redact_prose(first)[:300]}",
        fix=f"mend that, {REPLAY}",
    )


_Row = tuple[str, Callable[[re.Match[str]], str], str]

_NOT_REACHED = (
    r"connection refused|name or service not known|failed to resolve|no route to host"
    r"|newconnectionerror|connection reset|connection aborted|remotedisconnected"
)
_SERVER: tuple[_Row, ...] = (
    (
        r"\b401\b|\bUNAUTHENTICATED\b",
        lambda _: "refuses the user name or password (401)",
        "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
    ),
    (
        r"\b403\b|\bPERMISSION_DENIED\b",
        lambda _: "does not let this user write (403)",
        "get the permission, or name the server by a host that it allows",
    ),
    (
        _NOT_REACHED,
        lambda _: "cannot be reached",
        "start it or mend tracking_uri",
    ),
    (r"timed? ?out", lambda _: "does not answer in time", "see why it hangs"),
    (
        r"too many (\d{3}) error|error code (5\d\d)|\b(50[0-4])\b",
        lambda found: f"answers with errors ({found[1] or found[2] or found[3]})",
        "see the server's log",
    ),
    (
        r"not in a valid json format|exceeded \d+ redirects|failed to parse",
        lambda _: "is no MLflow server: it answers with something else",
        "mend tracking_uri",
    ),
    (
        r"error code (\d{3})",
        lambda found: f"is no MLflow server, or refuses ({found[1]})",
        "mend tracking_uri",
    ),
)
_DATABASE: tuple[_Row, ...] = (
    (
        _LOCKED.pattern,
        lambda _: "is kept locked by another program",
        "end that program",
    ),
    (
        r"readonly database|read-only file system|permission denied|unable to open database",
        lambda _: "cannot be written",
        "make the file and its folder writable",
    ),
    (
        r"no module named '(\w+)'",
        lambda found: f"needs the Python package {found[1]}",
        "install it in the environment of the workflow, or track through an MLflow server",
    ),
    (
        r"disk image is malformed|file is not a database",
        lambda _: "is damaged",
        "move it away, it is made anew",
    ),
    (
        r"no space left|disk is full",
        lambda _: "finds no room on the disk",
        "free some",
    ),
    (
        r"password authentication failed|no password supplied|access denied",
        lambda _: "refuses the user name or password",
        "set MLFLOW_TRACKING_URI to the whole URI",
    ),
    (
        r"connection refused|could not translate host|could not connect|timeout expired",
        lambda _: "cannot be reached",
        "start it or mend tracking_uri",
    ),
    (
        r"out-of-date database schema|can't locate revision",
        lambda _: "was made by another version of MLflow",
        "after a backup, run mlflow db upgrade on it",
    ),
)
