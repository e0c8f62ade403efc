"""Cells that differ by less than two launches of one cell do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sgmatrix.analysis.advice.piece import Advice
from sgmatrix.analysis.ceiling.campaign import CellCeilings

_NOTHING = 1e-4
"""A difference of the ceilings below this is none: they do not see what the cells differ in."""


def noise_advice(
    ceilings: Mapping[str, CellCeilings],
    base: str,
    floor_percent: float | None,
    rounds: Mapping[str, int],
) -> Iterator[Advice]:
    """Yield the cells whose ceilings differ from the base's by less than the noise.

    Args:
        ceilings: by cell.
        base: the cell that the others are compared with.
        floor_percent: typical difference of two launches of one cell on this node; None: unknown.
        rounds: planned launches by cell.
    """
    if floor_percent is None:
        if all(count == 1 for count in rounds.values()) and len(rounds) > 1:
            yield Advice(
                "noise_unknown",
                "one launch per cell, and no two launches of one cell were measured on this node: "
                "no difference between cells can be told from noise; plan launches: 3 or compare",
                "noise floor = typical difference of two launches of one cell",
            )
        return
    for name, one in ceilings.items():
        gap = _largest_gap(ceilings, base, one) if name != base and base in ceilings else None
        if gap is not None and _NOTHING < gap < floor_percent / 100:
            yield Advice(
                "below_noise",
                f"its ceilings differ from those of {base} by at most {100 * gap:.1f} %, two "
                f"launches of one cell by {floor_percent:.1f} %: single launches cannot show it",
                "largest |practical tok/s / that of the base - 1| over the load points",
                (name,),
            )


def _largest_gap(
    ceilings: Mapping[str, CellCeilings], base: str, one: CellCeilings
) -> float | None:
    start = ceilings[base].points
    gaps = [
        abs(at.practical_tok_s / first.practical_tok_s - 1)
        for load, at in one.points.items()
        if at is not None and (first := start.get(load)) is not None
    ]
    return max(gaps, default=None)
