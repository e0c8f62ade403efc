"""A measured load point as the validity rules see it, all in order but for what a test changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from builders import client_line
from sgmatrix.load.evidence import Evidence, Surroundings
from sgmatrix.load.metrics import mean_concurrency
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.serverview import ServerView, UsualSteps
from sgmatrix.load.validity import Finding, findings
from sgmatrix.plan.load_parts import Validity

LIMITS = Validity().model_dump()
NOTHING = dict.fromkeys(ServerView.__dataclass_fields__) | {"decode_lines": 0, "rank_lines": 0}


def evidence(
    line: dict[str, Any],
    *,
    point: Mapping[str, Any] | None = None,
    view: Mapping[str, Any] | ServerView | None = None,
    output_len: int = 4,
    **changes: Any,
) -> Evidence:
    """Return a closed loop of 2 streams whose client wrote this line; all else is as it should be.

    Args:
        line: of the client.
        point: what was asked otherwise.
        view: what the server said; a mapping of what it said at all.
        output_len: tokens per request that were asked for.
        changes: fields of the evidence.
    """
    rows = request_rows(line, len(line["errors"]), output_len)
    asked = {"concurrency": 2, "request_rate": None, "dataset": "random-ids", "input_len": 16}
    metrics = summarise(rows, line["duration"])
    metrics["concurrency_mean"] = mean_concurrency(rows, line["duration"])
    given = {
        "point": {**asked, **(point or {})},
        "rows": rows,
        "metrics": metrics,
        "server": view
        if isinstance(view, ServerView)
        else ServerView(**NOTHING | dict(view or {})),
        "pool": {},
        "vocab_size": 151_936,
        "client": None,
        "surroundings": Surroundings(),
        "stream_errors": (),
        "cache_flushed": True,
        "cold": None,
    }
    return Evidence(**given | changes)


def steady(step_ms: float | None) -> dict[str, Any]:
    """Return what a server says whose decode steps all take as long."""
    return {"steps": None if step_ms is None else UsualSteps(*[step_ms] * 4)}


def found(
    line: dict[str, Any] | None = None, limits: Mapping[str, float] | None = None, **changes: Any
) -> list[Finding]:
    """Return the findings; `limits` replaces thresholds."""
    return findings(evidence(line or client_line(8), **changes), {**LIMITS, **(limits or {})})


def flags(
    line: dict[str, Any] | None = None, limits: Mapping[str, float] | None = None, **changes: Any
) -> list[str]:
    """Return the names of the flags."""
    return [one.flag for one in found(line, limits, **changes)]


def why(line: dict[str, Any] | None = None, **changes: Any) -> str:
    """Return the reason of the only flag."""
    (only,) = found(line, **changes)
    return only.why
