"""Student's t: intervals and tests of the mean of a few differences.

Notation  n values with mean m and standard deviation s; standard error s / sqrt(n).
Source    t interval and t test: any textbook. Two one-sided tests: Schuirmann 1987,
          doi:10.1007/BF01068419. Distribution: scipy.special.
Not here  levels (`family`, `looks`), verdicts (`judge`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of n >= 2 differences, on the log scale."""

    n: int
    mean: float
    sd: float

    @property
    def error(self) -> float:
        return self.sd / math.sqrt(self.n)


def spread(values: Sequence[float]) -> Spread:
    """Return n, mean and sample standard deviation (n - 1) of at least two values.

    A standard deviation in the last digits of the values is rounding and becomes 0.
    """
    n = len(values)
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Spread(n, mean, 0.0 if sd <= 1e-12 * max(1.0, abs(mean)) else sd)


@lru_cache(maxsize=4096)
def quantile(upper: float, df: float) -> float:
    """Return t with P(T > t) = `upper` for `df` >= 1 degrees of freedom."""
    from scipy.special import stdtrit

    return -float(stdtrit(df, upper))


def half_width(sd: float, n: int, level: float) -> float:
    """Return half of the (1 - level) t interval of a mean over n values."""
    return quantile(level / 2, n - 1) * sd / math.sqrt(n)


def p_difference(of: Spread) -> float:
    """Return the two-sided p of "the mean is 0"."""
    if of.sd == 0:
        return 1.0 if of.mean == 0 else 0.0
    return min(1.0, 2 * tail(abs(of.mean) / of.error, of.n - 1))


def p_equivalence(of: Spread, low: float, high: float) -> float:
    """Return the p of "the mean is not within (low, high)": the larger of two one-sided ones."""
    if of.sd == 0:
        return 0.0 if low < of.mean < high else 1.0
    return tail(min(of.mean - low, high - of.mean) / of.error, of.n - 1)


def tail(t: float, df: float) -> float:
    """Return P(T > t)."""
    from scipy.special import stdtr

    return float(stdtr(df, -t))
