"""The record of a profile: what its launch said, and the tables of its traces, one per rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sgmatrix.analysis.kernels import tabulate
from sgmatrix.analysis.traces import trace_events
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json

_ENDING = ".trace.json.gz"


def write_profile(folder: Path) -> None:
    """Make `profile.json` of `capture.json` and the traces beside it.

    Args:
        folder: of the attempt.
    """
    capture = read_json(folder / "capture.json")
    traces = capture.get("traces") or []
    write_json(
        folder / "profile.json",
        {
            **capture,
            "traces_in": str(Path(*folder.parts[-6:]) / "traces") if traces else None,
            "tables": [_table(folder / "traces" / one["name"]) for one in traces],
        },
    )


def _table(path: Path) -> dict[str, Any]:
    rank = path.name.removesuffix(_ENDING).partition("-")[2]
    try:
        return {"rank": rank, "problem": None, **tabulate(trace_events(path))}
    except SgmatrixError as error:  # the trace of one rank tells nothing of the others'
        return {"rank": rank, "problem": error.facts, "rows": []}
