"""A second opinion on the interval that assumes no normal distribution, where pairs allow it.

Percentile bootstrap of the mean difference. It is shown beside the t interval and decides nothing:
with three pairs only 10 different samples exist, and its 95 % interval missed the truth in
a quarter of simulations (`docs/comparing.md`).

Not here  any verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

PAIRS_NEEDED = 10
RESAMPLES = 10_000
SEED = 20261130
"""Fixed: the same values give the same interval, to the last digit."""


def bootstrap(differences: Sequence[float], level: float) -> tuple[float, float] | None:
    """Return the (1 - level) interval of the mean, in the unit of the differences.

    None below `PAIRS_NEEDED` differences.
    """
    if len(differences) < PAIRS_NEEDED:
        return None
    return interval(differences, level)


def interval(differences: Sequence[float], level: float) -> tuple[float, float]:
    """Return the interval for any number of differences, also where it is wrong to use it."""
    means = _weights(len(differences)) @ np.asarray(differences, dtype=np.float64)
    low, high = np.quantile(means, [level / 2, 1 - level / 2])
    return float(low), float(high)


@lru_cache(maxsize=4)
def _weights(n: int) -> NDArray[np.float64]:
    """Share of each of n values in each resample; shape (RESAMPLES, n)."""
    drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    return drawn / n
