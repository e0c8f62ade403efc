"""What was said of the plan before it ran, shown again beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.flags import is_barred
from sgmatrix.dataset.figures import Row

_MOST_CELLS = 3


@dataclass(frozen=True)
class AdviceView:
    """One piece of advice."""

    topic: str
    text: str
    formula: str
    cells: tuple[str, ...]
    measured: str
    """What this campaign measured of it; empty: nothing."""


def advice_views(plan: Mapping[str, Any], rows: Sequence[Row]) -> list[AdviceView]:
    """Return the advice of `plan.json` in its order."""
    base = next(iter(plan["cells"]), None)
    return [
        AdviceView(
            topic=one["topic"],
            text=one["text"],
            formula=one["formula"],
            cells=tuple(one["cells"]),
            measured=_measured(one, rows, base),
        )
        for one in plan.get("advice") or []
    ]


def _measured(one: Mapping[str, Any], rows: Sequence[Row], base: str | None) -> str:
    tell = _TELL.get(one["topic"])
    if tell is None:
        return ""
    told = [
        (cell, text)
        for cell in one["cells"]
        if (text := tell([row for row in rows if row["cell"] == cell], rows, base))
    ]
    if len(one["cells"]) == 1 and told:
        return told[0][1]
    return "; ".join(f"{cell}: {text}" for cell, text in told[:_MOST_CELLS])


def _ok(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["status"] == "ok" and row["current"]]


def _pool(mine: Sequence[Row], _: Sequence[Row], __: str | None) -> str:
    found = [tokens for row in _ok(mine) if (tokens := row.get("ceiling_kv_tokens"))]
    return f"a pool of {max(found):,} tokens" if found else ""


def _running(mine: Sequence[Row], _: Sequence[Row], __: str | None) -> str:
    closed = [row for row in _ok(mine) if row["concurrency"] and row.get("running_max")]
    if not closed:
        return ""
    top = max(closed, key=lambda row: row["concurrency"])
    waiting = f", {top['queued_max']:,} waited" if top.get("queued_max") else ""
    return f"{top['running_max']:,} ran at once at concurrency {top['concurrency']:,}{waiting}"


def _tpot(mine: Sequence[Row], rows: Sequence[Row], base: str | None) -> str:
    """Return TPOT against the base at each concurrency that both have, means over launches."""
    theirs = _means([row for row in rows if row["cell"] == base])
    ours = _means(mine)
    parts = [
        f"{100 * (ours[at] / theirs[at] - 1):+.1f} % at {at:,}"
        for at in sorted(ours.keys() & theirs.keys())
    ]
    return f"TPOT {', '.join(parts)}, no verdict by itself" if parts else ""


def _means(rows: Sequence[Row]) -> dict[int, float]:
    groups: dict[int, list[float]] = {}
    for row in _ok(rows):
        if row["concurrency"] and row.get("tpot_ms_mean") and not is_barred(row, "latency"):
            groups.setdefault(row["concurrency"], []).append(row["tpot_ms_mean"])
    return {at: sum(values) / len(values) for at, values in groups.items()}


_TELL: Mapping[str, Callable[[Sequence[Row], Sequence[Row], str | None], str]] = {
    "mem_fraction": _pool,
    "above_pool": _running,
    "oea_saturated": _tpot,
    "oea_bound": _tpot,
    "below_noise": _tpot,
}
