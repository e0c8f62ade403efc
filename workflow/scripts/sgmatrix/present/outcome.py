"""How a launch ended, as the report, the tracking and `check` all tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgmatrix.dataset.collect import Attempt
from sgmatrix.present.clean import clean


@dataclass(frozen=True)
class Outcome:
    """How one complete attempt of a launch ended."""

    cell: str
    launch: str
    attempt: int
    current: bool
    reason: str | None
    """Reason class; None: all went well."""
    what: str | None
    """What happened, in a sentence."""
    seen: str | None
    """The root line of the server's log, where one was found."""
    line: int | None
    """Its number in server.log, from 1."""
    ready_s: float | None
    """Server start to ready; None: it never was."""
    advice: str | None = None
    """What to try, where the root line tells."""

    @property
    def root(self) -> str:
        """The one line that says most."""
        return self.seen or self.what or ""


def _span_s(times: dict[str, Any] | None, start: str, end: str) -> float | None:
    return times[end] - times[start] if times and start in times and end in times else None


def outcome(attempt: Attempt) -> Outcome | None:
    """Return how an attempt ended; None for one that is not complete, or was not needed."""
    final = attempt.final
    if final is None or final["status"] == "skipped":
        return None
    closed: dict[str, Any] = final.get("closed") or {}
    what = final["detail"]
    seen = closed.get("root_line") if closed.get("reason") else None
    return Outcome(
        cell=attempt.spec["cell"]["id"],
        launch=attempt.spec["launch"],
        attempt=attempt.spec["attempt"],
        current=attempt.current,
        reason=final["reason"],
        what=None if what is None else clean(what),
        seen=None if seen is None else clean(seen),
        line=closed.get("root_line_number") if seen else None,
        ready_s=_span_s(final.get("server_times"), "started", "ready"),
        advice=closed.get("advice"),
    )


def phases_s(attempt: Attempt) -> dict[str, float]:
    """Return the seconds that the phases of a complete attempt took; only those it had."""
    final = attempt.final or {}
    points = [attempt.point(point["load_id"]) or {} for point in attempt.spec["points"]]
    walls = [point["client_wall_s"] for point in points if point.get("client_wall_s") is not None]
    spans = {
        "start_s": _span_s(final.get("server_times"), "started", "ready"),
        "warmup_s": (final.get("warmup") or {}).get("took_s"),
        "bench_s": sum(walls) if walls else None,
        "teardown_s": _span_s((final.get("closed") or {}).get("times"), "stopping", "closed"),
    }
    return {name: span for name, span in spans.items() if span is not None}


def rerun_command(campaign: str, cell: str) -> str:
    """Return the command that reproduces one cell from its own record."""
    return f"snakemake --configfile results/{campaign}/cells/{cell}/cell.yaml"
