"""Many load points, one error probability: the primary first, Holm for the others.

The primary load point is tested with 95 % of alpha, the others share 5 % by Holm. When the
primary is rejected, its part goes to the others (Holm at all of alpha); when all others are
rejected, theirs goes to the primary. This is a closed test with weighted Bonferroni tests, so any
false rejection has a probability of at most alpha, whatever the load points have to do with each
other and whichever of them truly differ.

Source    Holm 1979; Bretz et al. 2009, doi:10.1002/sim.3495 (weights that move on).
Not here  repeated looks (`looks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PRIMARY_WEIGHT = 0.95
"""As much as leaves the others something: five launches are to find an effect of 3 x the noise
at the primary load point in at least 90 % (`docs/comparing.md`)."""


@dataclass(frozen=True)
class Share:
    """What the family leaves to one load point."""

    p_adjusted: float
    """Rejected where this is <= alpha."""
    weight: float
    """Part of alpha that it was tested with last: rejected exactly where p <= weight * alpha, so an
    interval at this level says the same as the test."""


def shares(p: Sequence[float | None], primary: int, alpha: float) -> list[Share | None]:
    """Return what each load point is left with, in the order of `p`.

    Args:
        p: raw p values; None where a load point has too few pairs. Such a one takes no part, but
            a primary without a p keeps its weight: the others may not gain from its failure.
        primary: index of the primary load point.
        alpha: level of the whole family.
    """
    value = {i: one for i, one in enumerate(p) if one is not None}
    value.setdefault(primary, 1.0)
    left, floor, open_ = set(value), 0.0, True
    weights: dict[int, float] = {}
    adjusted: dict[int, float] = {}
    while left:
        now = _weights(left, primary)
        if open_:
            weights.update(now)
        first = min(left, key=lambda i: (value[i] / now[i], i))
        floor = max(floor, min(1.0, value[first] / now[first]))
        adjusted[first] = floor
        # Once one is not rejected, the weights of those that are left stand still.
        open_ = open_ and floor <= alpha
        left.remove(first)
    return [None if one is None else Share(adjusted[i], weights[i]) for i, one in enumerate(p)]


def _weights(left: set[int], primary: int) -> dict[int, float]:
    others = left - {primary}
    if primary not in left:
        return dict.fromkeys(others, 1 / len(others))
    if not others:
        return {primary: 1.0}
    return {primary: PRIMARY_WEIGHT} | dict.fromkeys(others, (1 - PRIMARY_WEIGHT) / len(others))
