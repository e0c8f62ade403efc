"""Verdicts on the load points of one cell and metric in two campaigns.

The rules of `analysis.ab` where they hold without pairs: log values, one per launch, three of each
arm at least, better or worse before no difference, and a tenth of alpha that is never spent. No
load point is the primary one, so all of a cell and metric share alpha by Holm.

Not here  what is compared (`match`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.analysis.ab.inputs import ALPHA, PAIRS_NEEDED, less_is_better
from sgmatrix.analysis.ab.judge import Verdict, bounds
from sgmatrix.analysis.ab.looks import SPENT
from sgmatrix.analysis.ab.pairs import percent
from sgmatrix.analysis.campaigns.welch import Difference, difference, noise_floor


@dataclass(frozen=True)
class Arms:
    """The values of one metric at one load point, one per launch, all > 0."""

    base: tuple[float, ...]
    other: tuple[float, ...]


@dataclass(frozen=True)
class Judged:
    """What one load point says; None is what there is not."""

    verdict: Verdict
    effect_percent: float | None
    """other / base - 1, of the geometric means."""
    interval_percent: tuple[float, float] | None = None
    confidence: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_equivalence_adjusted: float | None = None
    noise_floor_percent: float | None = None


def judge(family: Sequence[Arms], metric: str, bound_percent: float) -> list[Judged]:
    """Return the verdict on each load point of one cell."""
    low, high = bounds(bound_percent)
    logs = [([*map(math.log, one.base)], [*map(math.log, one.other)]) for one in family]
    found = [difference(*one) if min(map(len, one)) >= PAIRS_NEEDED else None for one in logs]
    differ = holm([None if one is None else one.p() / SPENT for one in found])
    equal = holm([None if one is None else one.p_equivalence(low, high) / SPENT for one in found])
    return [
        _judged(one, of, p, same, metric)
        for one, of, p, same in zip(logs, found, differ, equal, strict=True)
    ]


def _judged(
    logs: tuple[list[float], list[float]],
    of: Difference | None,
    differ: tuple[float, float] | None,
    equal: tuple[float, float] | None,
    metric: str,
) -> Judged:
    base, other = logs
    effect = None
    if base and other:
        effect = percent(math.fsum(other) / len(other) - math.fsum(base) / len(base))
    noise = noise_floor(base, other)
    floor = None if noise is None else percent(noise)
    if of is None or differ is None or equal is None:
        return Judged(Verdict.NONE, effect, noise_floor_percent=floor)
    level = ALPHA * SPENT * differ[1]
    if differ[0] <= ALPHA:
        verdict = Verdict.BETTER if (of.mean < 0) == less_is_better(metric) else Verdict.WORSE
    elif equal[0] <= ALPHA:
        verdict, level = Verdict.NO_DIFFERENCE, 2 * ALPHA * SPENT * equal[1]
    else:
        verdict = Verdict.UNDECIDED
    half = of.half_width(level)
    return Judged(
        verdict,
        effect,
        (percent(of.mean - half), percent(of.mean + half)),
        1 - level,
        of.p(),
        differ[0],
        equal[0],
        floor,
    )


def holm(p: Sequence[float | None]) -> list[tuple[float, float] | None]:
    """Return the adjusted p of each, and the part of alpha that it was tested with last.

    The first that is not rejected ends it: those after it are left with its part.
    """
    order = sorted((one, i) for i, one in enumerate(p) if one is not None)
    told: list[tuple[float, float] | None] = [None] * len(p)
    floor, weight, open_ = 0.0, 1.0, True
    for place, (one, i) in enumerate(order):
        if open_:
            weight = 1 / (len(order) - place)
        floor = max(floor, min(1.0, one * (len(order) - place)))
        told[i] = (floor, weight)
        open_ = open_ and floor <= ALPHA
    return told
