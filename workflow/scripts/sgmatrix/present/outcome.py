"""How a launch ended, as the report, the tracking and `check` all tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgmatrix.dataset.history import Attempt
from sgmatrix.dataset.spans import span_s
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
        ready_s=span_s(final.get("server_times"), "started", "ready"),
        advice=closed.get("advice"),
    )


def rerun_command(campaign: str, cell: str) -> str:
    """Return the command that reproduces one cell from its own record."""
    return f"snakemake --configfile results/{campaign}/cells/{cell}/cell.yaml"
