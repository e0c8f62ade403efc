"""Results of others beside own ones: marked as such, with their conditions and contradictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.flags import Kind, is_barred
from sgmatrix.dataset.figures import Row

_SHOWN = {"output_tok_s": "output tok/s", "total_tok_s": "total tok/s", "tpot_ms": "TPOT ms"}
_OWN = {"output_tok_s": "output_tok_s", "total_tok_s": "total_tok_s", "tpot_ms": "tpot_ms_mean"}


@dataclass(frozen=True)
class ReferenceRow:
    """What one series says at one concurrency."""

    series: str
    concurrency: int
    flags: str
    values: Mapping[str, str]
    """By metric, as it was given; a blank stays blank."""
    own: Mapping[str, float]
    """Best of this campaign at the same concurrency."""
    source: str


@dataclass(frozen=True)
class ReferenceView:
    """One reference."""

    name: str
    engine: str
    conditions: str
    source: str
    contradictions: tuple[str, ...]
    rows: tuple[ReferenceRow, ...]


def reference_views(plan: Mapping[str, Any], rows: Sequence[Row]) -> list[ReferenceView]:
    """Return the references that `plan.json` holds, beside the points of this campaign."""
    return [_view(one, rows) for one in plan.get("references") or []]


def _view(one: Mapping[str, Any], rows: Sequence[Row]) -> ReferenceView:
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for result in one["results"]:
        if result["metric"] in _SHOWN and result["concurrency"] is not None:
            groups.setdefault((result["series"], result["concurrency"]), []).append(result)
    return ReferenceView(
        name=one["file"]["name"],
        engine=one["file"]["engine"],
        conditions=one["file"]["conditions"],
        source=one["file"]["source"],
        contradictions=tuple(one["file"]["contradictions"]),
        rows=tuple(
            ReferenceRow(
                series=series,
                concurrency=at,
                flags=group[0]["flags"],
                values={result["metric"]: _said(result) for result in group},
                own=_own(rows, at),
                source=group[0]["source"],
            )
            for (series, at), group in groups.items()
        ),
    )


def _said(result: Mapping[str, Any]) -> str:
    sign = "" if result["qualifier"] in ("exact", "missing") else f" ({result['qualifier']})"
    return f"{result['text']}{sign}"


def _own(rows: Sequence[Row], concurrency: int) -> dict[str, float]:
    """Return the best trusted values of any cell at a concurrency: highest rate, lowest TPOT."""
    found: dict[str, float] = {}
    for metric, column in _OWN.items():
        kind: Kind = "latency" if metric == "tpot_ms" else "throughput"
        values = [
            row[column]
            for row in rows
            if row["concurrency"] == concurrency
            and row["status"] == "ok"
            and row.get(column) is not None
            and not is_barred(row, kind)
        ]
        if values:
            found[metric] = min(values) if metric == "tpot_ms" else max(values)
    return found
