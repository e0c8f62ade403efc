"""When a growing comparison is looked at, and which part of alpha each look may spend.

Each look is a test of its own at its part of alpha, so by Bonferroni all looks together claim
something false with at most the sum of the parts, however they depend on each other. Each look
before the last has a fortieth of alpha, the last one what they leave: an early stop is for effects
that hardly need statistics, and launches that were planned anyway lose little power.

A tenth of alpha is never spent. The t test keeps its level exactly for normal differences only, and
launches are not quite normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sgmatrix.analysis.ab.inputs import PAIRS_NEEDED, Rules

SPENT = 0.9
"""Part of alpha that all looks spend together."""
EARLY_SHARE = 0.025
"""Of each look before the last."""
EARLY_SHARE_ALL = SPENT / 2
"""Of these together, at most; it binds from a budget of 22 launches on."""


@dataclass(frozen=True)
class Look:
    """One moment at which the comparison may end."""

    number: int
    """From 1."""
    rounds: int
    """It sees the first `rounds` rounds."""
    share: float
    """Part of alpha that it spends."""


@lru_cache
def looks_of(rules: Rules) -> tuple[Look, ...]:
    """Return the looks: one after every round from the minimum to the budget.

    Empty where the budget is below 3 launches. The plan alone decides, never a value.
    """
    first = max(PAIRS_NEEDED, rules.launches_min)
    count = rules.launches_budget - first + 1
    if count < 1:
        return ()
    early = min(EARLY_SHARE, EARLY_SHARE_ALL / (count - 1)) if count > 1 else 0.0
    last = SPENT - early * (count - 1)
    return tuple(
        Look(number, first + number - 1, last if number == count else early)
        for number in range(1, count + 1)
    )
