"""The ceilings of a matrix for the terminal: the cell with the largest headroom first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.ceiling.campaign import CellCeilings
from sgmatrix.core.flags import is_barred

_HEAD = (
    "cell",
    "headroom",
    "best at",
    "hard tok/s",
    "practical tok/s",
    "measured",
    "of practical",
    "bound",
    "TPOT ms at 1",
    "KV tokens",
)
_TEXT = (0, 2, 7)


@dataclass(frozen=True)
class _Line:
    ceilings: CellCeilings
    load: str | None
    measured: float | None
    headroom: float | None


def best_measured(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return mean output throughput by cell and load id, of current points that no flag bars."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        rate = row.get("output_tok_s")
        if row["current"] and row["status"] == "ok" and rate and not is_barred(row, "throughput"):
            found.setdefault(row["cell"], {}).setdefault(row["load_id"], []).append(rate)
    return {
        cell: {load: sum(rates) / len(rates) for load, rates in loads.items()}
        for cell, loads in found.items()
    }


def ceiling_text(
    ceilings: Mapping[str, CellCeilings],
    rows: Sequence[Mapping[str, Any]],
    *,
    device: str,
    model: str,
    base: str,
) -> str:
    """Return the whole view.

    Args:
        ceilings: by cell.
        rows: of `points`; empty before anything was measured.
        device: its name.
        model: its name.
        base: the cell that the others are compared with.
    """
    measured = best_measured(rows)
    most = max((rate for loads in measured.values() for rate in loads.values()), default=None)
    start = ceilings[base].best if base in ceilings else None
    reference = most if most is not None else (start[1].practical_tok_s if start else None)
    lines = [_line(one, measured.get(name, {}), reference) for name, one in ceilings.items()]
    lines.sort(key=lambda one: (-(one.headroom or 0.0), one.ceilings.cell))
    against = "the best measured throughput" if most is not None else f"the ceiling of {base}"
    table = [_HEAD, *(_texts(one) for one in lines)]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEAD))]
    what = f"headroom: the practical ceiling at its best load point against {against}"
    head = [f"ceilings of {model} on {device}", f"{what}; what to try next stands first", ""]
    return "\n".join([*head, *(_joined(row, widths) for row in table)])


def _line(one: CellCeilings, measured: Mapping[str, float], reference: float | None) -> _Line:
    best = one.best
    if best is None:
        return _Line(one, None, None, None)
    load, at = best
    headroom = at.practical_tok_s / reference if reference else None
    return _Line(one, load, measured.get(load), headroom)


def _texts(line: _Line) -> tuple[str, ...]:
    one = line.ceilings
    if line.load is None:
        return (one.cell, "", "does not fit", "", "", "", "", "", "", "0")
    at = one.points[line.load]
    assert at is not None
    single, pool = one.single, one.server.pool
    share = line.measured / at.practical_tok_s if line.measured else None
    return (
        one.cell,
        "" if line.headroom is None else f"{line.headroom:.2f} x",
        line.load,
        f"{at.hard_tok_s:,.0f}",
        f"{at.practical_tok_s:,.0f}",
        "" if line.measured is None else f"{line.measured:,.0f}",
        "" if share is None else f"{share:.0%}",
        at.practical.bound,
        "" if single is None else f"{1e3 * single.practical.tpot_s:.2f}",
        "" if pool is None else f"{pool.tokens * one.server.parallel.replicas:,}",
    )


def _joined(row: tuple[str, ...], widths: Sequence[int]) -> str:
    texts = [
        text.ljust(width) if i in _TEXT else text.rjust(width)
        for i, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(texts).rstrip()
