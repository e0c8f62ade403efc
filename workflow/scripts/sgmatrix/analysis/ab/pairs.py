"""From values by round to differences by pair, on the log scale.

A difference of logs is a ratio: the same change in percent weighs the same for a fast and a slow
load point, and what slows both launches of a round by a factor cancels.

Not here  what the differences mean (`judge`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sgmatrix.analysis.ab.inputs import Series, Value


@dataclass(frozen=True)
class Pairs:
    """Complete pairs of one series over its first rounds.

    Where a value is 0 no change in percent exists, and the other pairs alone would tell of the
    good rounds only: there are no differences then.
    """

    differences: tuple[float, ...]
    """log(variant / baseline) of each complete pair, in order of the rounds."""
    left_out: int
    """Rounds where either value is missing."""
    balanced: bool
    """As many pairs ran the baseline first as the variant first, or one more: drift cancels."""
    baseline_mean: float | None
    """Geometric mean over the complete pairs, in the metric's unit; None without a pair."""
    variant_mean: float | None
    zeros: tuple[int, int]
    """Complete pairs whose value is 0, of the baseline and of the variant."""


def pairs_of(series: Series, rounds: int) -> Pairs:
    """Return the complete pairs of the first `rounds` rounds.

    A round for which there are no values yet counts as left out.
    """
    complete = [
        (place, a, b)
        for place, (a, b) in enumerate(
            zip(series.baseline[:rounds], series.variant[:rounds], strict=True)
        )
        if a is not None and b is not None
    ]
    zeros = (sum(a == 0 for _, a, _ in complete), sum(b == 0 for _, _, b in complete))
    found = [] if any(zeros) else [(at, math.log(a), math.log(b)) for at, a, b in complete]
    baseline_first = sum(place % 2 == 0 for place, _, _ in found)
    return Pairs(
        differences=tuple(b - a for _, a, b in found),
        left_out=rounds - len(complete),
        balanced=abs(2 * baseline_first - len(found)) <= 1,
        baseline_mean=_geometric([a for _, a, _ in found]),
        variant_mean=_geometric([b for _, _, b in found]),
        zeros=zeros,
    )


def log_ratios(pairs: Iterable[tuple[Value, Value]]) -> list[float]:
    """Return log(second / first) of the complete pairs; one with a 0 has none."""
    return [math.log(b / a) for a, b in pairs if a and b]


def percent(log_ratio: float) -> float:
    """Return a log ratio as percent of the baseline."""
    return 100 * math.expm1(log_ratio)


def _geometric(logs: Sequence[float]) -> float | None:
    return math.exp(math.fsum(logs) / len(logs)) if logs else None
