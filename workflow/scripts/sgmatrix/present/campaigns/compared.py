"""Two campaigns set side by side: read, matched and judged, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.campaigns.match import Match, match
from sgmatrix.analysis.campaigns.provenance import Change, changes, reported
from sgmatrix.analysis.campaigns.table import comparison_rows
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.results import Results, read_results

_FIX = "copy the results again, or remove the table: it is made again from the history"


@dataclass(frozen=True)
class Compared:
    """Everything that is told of two campaigns."""

    base: Results
    other: Results
    found: Match
    changed: tuple[Change, ...]
    rows: tuple[dict[str, Any], ...]

    def version(self, which: Results) -> str:
        return reported(which, "engine_version") or "not known"


def compare(layouts: Sequence[Layout], labels: Sequence[str], bound_percent: float) -> Compared:
    """Read and compare two campaigns.

    Raises:
        SgmatrixError: `nothing_to_compare`.
    """
    both = [_read(one, label) for one, label in zip(layouts, labels, strict=True)]
    for layout, one in zip(layouts, both, strict=True):
        if not any(row["status"] == "ok" for row in one.rows):
            raise SgmatrixError(
                "nothing_to_compare",
                f"{layout.root} has no measured point that its plan asks for",
                fix=f"run the campaign {one.plan['campaign']} first",
            )
    base, other = both
    found = match(base, other)
    if not found.points:
        why = found.unlike[0] if found.unlike else "no cell and load point is in both"
        cells = [", ".join(list(one.plan["cells"])[:3]) for one in both]
        raise SgmatrixError(
            "nothing_to_compare",
            f"{base.label} (cells {cells[0]}) and {other.label} (cells {cells[1]}): {why}",
            fix="compare campaigns with cells of one name and loads of one kind",
        )
    return Compared(
        base,
        other,
        found,
        tuple(changes(base, other, found.cells)),
        tuple(comparison_rows(base, other, found, bound_percent)),
    )


def _read(layout: Layout, label: str) -> Results:
    try:
        return read_results(layout, label)
    except SgmatrixError as error:
        raise SgmatrixError(error.code, error.facts, fix=error.fix or _FIX) from error
    except (KeyError, TypeError, ValueError, OSError) as error:  # ArrowInvalid is a ValueError
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        raise SgmatrixError(
            "nothing_to_compare",
            f"{layout.root}: plan.json or datasets/points.parquet cannot be read ({told})",
            fix=_FIX,
        ) from error
