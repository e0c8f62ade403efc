"""Why a server ended: what its warden saw, what its log says, and whether the disk was full.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.reasons import is_environment
from sgmatrix.node import preflight
from sgmatrix.node.triage import triage

DIED = "died"
"""What a warden says when the server ended by itself; its log tells the reason class."""


@dataclass(frozen=True)
class Verdict:
    """The end of a server."""

    reason: str | None
    """Reason class; None: it was asked to end."""
    detail: str
    log: dict[str, Any] = field(
        default_factory=lambda: {
            "root_line": None,
            "root_line_number": None,
            "advice": None,
            "harmless": {},
        }
    )
    """Root line, its number in server.log, what to try, and harmless errors by their names."""


def judge(
    reason: str | None,
    detail: str,
    *,
    attempt_dir: Path,
    port: int,
    exit_code: int | None,
    times: Mapping[str, float],
    min_free_disk_mib: int,
) -> Verdict:
    """Return the verdict on a server that has ended.

    Args:
        reason: what the warden saw: a reason class, `DIED`, or None where it was asked to end it.
        detail: in words.
        attempt_dir: folder of its log.
        port: where it was to listen; 0: none was chosen.
        exit_code: as `subprocess` counts it; None where it is not known.
        times: moments of its life, by their names.
        min_free_disk_mib: below this the disk was full, and no end is the server's fault.
    """
    found = triage(attempt_dir / "server.log", port or None)
    if reason == DIED:
        reason = found.reason or "server_crash"
        detail = f"the engine exited with code {exit_code}{_after(times)}"
    if reason is not None and not is_environment(reason):
        try:
            preflight.check_disk(attempt_dir, min_free_disk_mib)
        except SgmatrixError as full:
            reason, detail = full.code, f"{full.facts}; then {detail}"
    verdict = Verdict(reason, detail)
    verdict.log["harmless"] = found.harmless
    if reason is not None and (not is_environment(reason) or reason == found.reason):
        verdict.log.update(
            root_line=found.root_line, root_line_number=found.line_number, advice=found.advice
        )
        if reason == "leftover_process" and found.root_line:
            held = preflight.port_holders(found.root_line)
            return Verdict(reason, detail + held, verdict.log)
    return verdict


def _after(times: Mapping[str, float]) -> str:
    seconds = times["stopping"] - times["started"]
    phase = "while it served" if "ready" in times else "before it was ready"
    return f" after {seconds:.1f} s, {phase}"
