"""What a reader of the report takes away in ten seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.core.flags import flags_of
from sgmatrix.dataset.figures import Figure, LoadPoint, Workload
from sgmatrix.present.cells import CellView


@dataclass(frozen=True)
class Headline:
    """What a reader takes away in ten seconds."""

    best: CellView | None
    """The best cell that finished whole, at load points that the base has too."""
    top: LoadPoint | None
    """Where it is best."""
    base: CellView | None
    base_top: LoadPoint | None
    """Where the base is best, of its own load points with the lengths of `top`."""
    gain: float | None
    """Throughput of the best over that of the base, less 1."""
    spread: float | None
    """Largest relative difference between launches at a best point; None: no repetition."""
    launches: tuple[int, int]
    left_out: int
    """Points that a flag bars from this comparison."""
    quick: CellView | None
    """The cell with the lowest TPOT at the lowest concurrency that the base has."""
    quick_at: LoadPoint | None


def _mean(figure: Figure | None) -> float:
    return 0.0 if figure is None else figure.mean


def _trusted(load: LoadPoint | None) -> Figure | None:
    figure = load.output_tok_s if load else None
    return None if figure is None or figure.barred else figure


def _best_of(cell: CellView, common: set[tuple[Workload, str]] | None) -> LoadPoint | None:
    """Return the trusted point of the highest throughput, of those load points; None: all."""
    loads = [
        load for load in cell.loads if _trusted(load) and (common is None or load.key in common)
    ]
    return max(loads, key=lambda load: _mean(load.output_tok_s), default=None)


def _keys_like(cell: CellView, top: LoadPoint | None) -> set[tuple[Workload, str]] | None:
    """Return the load points of a cell with the lengths of another one; None: all."""
    return None if top is None else {one.key for one in cell.loads if one.workload == top.workload}


def _quickest(
    cells: Sequence[CellView], common: set[tuple[Workload, str]] | None
) -> tuple[CellView, LoadPoint] | None:
    """Return the cell of the lowest trusted TPOT at the lowest concurrency of all, and where."""
    known = [
        (load.concurrency, load.tpot_ms.mean, place, cell, load)
        for place, cell in enumerate(cells)
        if cell.status == "ok"
        for load in cell.loads
        if load.concurrency is not None and load.tpot_ms and not load.tpot_ms.barred
        if common is None or load.key in common
    ]
    first = min(known, key=lambda one: one[:3], default=None)
    return None if first is None else (first[3], first[4])


def headline(cells: Sequence[CellView]) -> Headline:
    """Compare the best cell with the base, the first cell of the plan."""
    base = cells[0] if cells else None
    # another load is another question: cells are compared where the base was measured too
    common = {load.key for load in base.loads} if base and _best_of(base, None) else None
    tops = {
        cell.cell: top for cell in cells if cell.status == "ok" and (top := _best_of(cell, common))
    }
    whole = [cell for cell in cells if cell.cell in tops]
    best = max(whole, key=lambda cell: _mean(tops[cell.cell].output_tok_s), default=None)
    top = tops[best.cell] if best else None
    base_top = _best_of(base, _keys_like(base, top)) if base else None
    ours = _trusted(top)
    theirs = _trusted(base_top)
    quick = _quickest(cells, common)
    measured = [cell.launches for cell in cells if cell.launches]
    spreads = [
        (figure.high - figure.low) / figure.mean
        for cell in whole
        if (figure := _trusted(tops[cell.cell])) and figure.launches > 1 and figure.mean
    ]
    return Headline(
        best=best,
        top=top,
        base=base,
        base_top=base_top,
        gain=ours.mean / theirs.mean - 1
        if ours and theirs and theirs.mean and best is not base
        else None,
        spread=max(spreads, default=None),
        launches=(min(measured, default=0), max(measured, default=0)),
        quick=quick[0] if quick else None,
        quick_at=quick[1] if quick else None,
        left_out=sum(
            any(flag.bars for flag in flags_of(row["validity"])) for c in cells for row in c.flagged
        ),
    )
